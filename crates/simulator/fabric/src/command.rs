//! Commands to domains between rounds, and their reports.

use crate::flow::{Flow, FlowEvent};
use crate::program::Delivery;
use clearway_transport::FlowStatistics;
use clearway_units::{FlowId, HostId, Span, Time};
use std::cmp::Ordering;

/// Report of a domain between rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// Event of a flow: it has reached a milestone.
    Flow {
        event: FlowEvent,
        statistics: FlowStatistics,
    },
    /// Something comes to the NIC `to` after this time, or after the delay of messages between NICs.
    Delivery {
        time: Time,
        after: Option<Span>,
        to: HostId,
        delivery: Delivery,
    },
}

impl Ord for Report {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Flow { event: a, .. }, Self::Flow { event: b, .. }) => a.cmp(b),
            (
                Self::Delivery {
                    time,
                    to,
                    delivery,
                    after,
                },
                Self::Delivery {
                    time: other_time,
                    to: other_to,
                    delivery: other,
                    after: other_after,
                },
            ) => {
                let others = (other_time, other_to, other, other_after);
                (time, to, delivery, after).cmp(&others)
            }
            (Self::Flow { .. }, Self::Delivery { .. }) => Ordering::Less,
            (Self::Delivery { .. }, Self::Flow { .. }) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Report {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Command to a domain between rounds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Command {
    Start(StartFlow),
    /// Something comes to the NIC `to`.
    Delivery {
        at: Time,
        to: HostId,
        delivery: Delivery,
    },
    /// Events that wait for the clock come earlier than the engine knows.
    Wake,
}

/// Command to start a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StartFlow {
    pub(crate) at: Time,
    pub(crate) id: FlowId,
    pub(crate) flow: Flow,
}

impl Ord for StartFlow {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.id).cmp(&(other.at, other.id))
    }
}

impl PartialOrd for StartFlow {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

//! Commands to domains between rounds, and their reports.

use crate::flow::{Flow, FlowEvent};
use crate::program::NicMessage;
use clearway_transport::FlowStatistics;
use clearway_units::{FlowId, HostId, Time};
use std::cmp::Ordering;

/// Report of a domain between rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// Event of a flow: it has reached a milestone.
    Flow {
        event: FlowEvent,
        statistics: FlowStatistics,
    },
    /// A program sends a message to the program of the NIC `to`.
    NicMessage {
        time: Time,
        to: HostId,
        nic_message: NicMessage,
    },
}

impl Ord for Report {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Flow { event: a, .. }, Self::Flow { event: b, .. }) => a.cmp(b),
            (
                Self::NicMessage {
                    time,
                    to,
                    nic_message,
                },
                Self::NicMessage {
                    time: other_time,
                    to: other_to,
                    nic_message: other,
                },
            ) => (time, to, nic_message).cmp(&(other_time, other_to, other)),
            (Self::Flow { .. }, Self::NicMessage { .. }) => Ordering::Less,
            (Self::NicMessage { .. }, Self::Flow { .. }) => Ordering::Greater,
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
    /// For the program of the NIC `to`.
    NicMessage {
        at: Time,
        to: HostId,
        nic_message: NicMessage,
    },
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

//! Acknowledgements, as seen by data senders.

use super::Merge;
use clearway_fabric::{Interests, Observer};
use clearway_transport::Event;
use clearway_units::{FlowId, HostId, Span, Time};
use std::collections::BTreeMap;

/// One acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckRecord {
    /// Time at which the acknowledgement arrived.
    pub time: Time,
    /// Round-trip time of the acknowledged packet.
    pub rtt: Span,
    /// True if the acknowledged packet was marked.
    pub ecn: bool,
    /// The window after the acknowledgement, in bytes.
    pub window: u64,
}

/// The acknowledgements of one flow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AckTrace {
    /// The first acknowledgements.
    pub first: Vec<AckRecord>,
    /// Number of all acknowledgements.
    pub count: u64,
    /// Number of acknowledgements of marked packets.
    pub marked: u64,
    rtt_sum: u128,
    window_sum: u128,
    last_window: Option<u64>,
    last_cut: Option<f64>,
}

impl AckTrace {
    fn add(&mut self, record: AckRecord, limit: usize) {
        if self.first.len() < limit {
            self.first.push(record);
        }
        self.count += 1;
        self.marked += u64::from(record.ecn);
        self.rtt_sum += u128::from(record.rtt.as_ps());
        self.window_sum += u128::from(record.window);
        let before = self.last_window.replace(record.window);
        if let Some(before) = before.filter(|&before| record.window < before) {
            self.last_cut = Some(record.window as f64 / before as f64);
        }
    }

    /// Mean round-trip time over all acknowledgements, in microseconds; NaN without acknowledgements.
    pub fn mean_rtt_us(&self) -> f64 {
        self.rtt_sum as f64 / 1e6 / self.count as f64
    }

    /// Mean window over all acknowledgements, in bytes; NaN without acknowledgements.
    pub fn mean_window(&self) -> f64 {
        self.window_sum as f64 / self.count as f64
    }

    /// The window after the last acknowledgement that reduced it, as a share of the window before; `None` if the window was never reduced.
    pub fn last_cut(&self) -> Option<f64> {
        self.last_cut
    }
}

/// Records the first `limit` acknowledgements of each flow, and means over all of them.
#[derive(Debug, Clone)]
pub struct AckRecorder {
    limit: usize,
    flows: BTreeMap<FlowId, AckTrace>,
}

impl AckRecorder {
    /// Keeps the first `limit` acknowledgements of each flow.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            flows: BTreeMap::new(),
        }
    }

    /// Acknowledged flows.
    pub fn flows(&self) -> &BTreeMap<FlowId, AckTrace> {
        &self.flows
    }
}

impl Observer for AckRecorder {
    fn interests(&self) -> Interests {
        Interests {
            transport: true,
            ..Interests::NONE
        }
    }

    fn on_transport(&mut self, _: Time, _: HostId, event: &Event) {
        if let Event::Ack {
            flow,
            now,
            rtt,
            ecn,
            window,
            ..
        } = *event
        {
            let record = AckRecord {
                time: now,
                rtt,
                ecn,
                window: window.as_u64(),
            };
            self.flows.entry(flow).or_default().add(record, self.limit);
        }
    }
}

impl Merge for AckRecorder {
    /// Flows of the other domain; each flow is sent from only one domain.
    fn merge(&mut self, other: Self) {
        self.flows.extend(other.flows);
    }
}

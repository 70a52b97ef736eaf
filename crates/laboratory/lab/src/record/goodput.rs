//! Goodput: payload that reaches its receiver for the first time.

use super::Merge;
use super::series::Series;
use clearway_fabric::topology::NodeId;
use clearway_fabric::{Interests, Observer};
use clearway_transport::{Header, Packet};
use clearway_units::{FlowId, Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// Arrived packets of a flow: one bit per packet from the first gap on.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// Packet number below which all packets have arrived; a multiple of 64.
    base: u32,
    words: VecDeque<u64>,
}

impl Seen {
    /// False if the packet has arrived before.
    fn insert(&mut self, psn: u32) -> bool {
        let Some(ahead) = psn.checked_sub(self.base) else {
            return false;
        };
        let (word, bit) = ((ahead / 64) as usize, 1u64 << (ahead % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let fresh = self.words[word] & bit == 0;
        self.words[word] |= bit;
        while self.words.front() == Some(&u64::MAX) {
            self.words.pop_front();
            self.base += 64;
        }
        fresh
    }
}

/// Arrivals of one flow.
#[derive(Debug, Clone)]
pub struct FlowArrivals {
    seen: Seen,
    series: Series<u64>,
}

impl FlowArrivals {
    /// Payload bytes in each bin.
    pub fn series(&self) -> &Series<u64> {
        &self.series
    }
    /// Total payload bytes.
    pub fn total(&self) -> u64 {
        self.series.buckets().iter().sum()
    }
}

/// Records the goodput of the first flows, each in bins of one width.
///
/// Sequence numbers of a flow are assumed to stay below 2^32, which is 17 TB in packets of 4 KB.
#[derive(Debug, Clone)]
pub struct GoodputRecorder {
    flows: u32,
    width: Span,
    limit: usize,
    arrivals: BTreeMap<FlowId, FlowArrivals>,
}

impl GoodputRecorder {
    /// Records flows `0..flows` in bins of `width`, at most `limit` of them for each.
    pub fn new(flows: u32, width: Span, limit: usize) -> Self {
        Self {
            flows,
            width,
            limit,
            arrivals: BTreeMap::new(),
        }
    }

    /// Flows with arrivals.
    pub fn flows(&self) -> &BTreeMap<FlowId, FlowArrivals> {
        &self.arrivals
    }
}

impl Observer for GoodputRecorder {
    fn interests(&self) -> Interests {
        Interests {
            arrivals: self.flows > 0,
            ..Interests::NONE
        }
    }

    fn on_arrival(&mut self, now: Time, node: NodeId, packet: &Packet) {
        let Header::Data { psn, payload, .. } = packet.header else {
            return;
        };
        if node.0 != packet.dst.0 || packet.flow.0 >= self.flows || !packet.can_be_trimmed() {
            return;
        }
        let flow = self
            .arrivals
            .entry(packet.flow)
            .or_insert_with(|| FlowArrivals {
                seen: Seen::default(),
                series: Series::new(self.width, self.limit),
            });
        if flow.seen.insert(psn) {
            *flow.series.at(now) += u64::from(payload);
        }
    }
}

impl Merge for GoodputRecorder {
    /// Flows of the other domain; each flow arrives in only one domain.
    fn merge(&mut self, other: Self) {
        self.arrivals.extend(other.arrivals);
    }
}

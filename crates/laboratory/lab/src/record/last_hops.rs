//! Arrivals at the queues in front of hosts.

use super::Merge;
use super::series::Series;
use clearway_fabric::topology::{LinkId, Topology};
use clearway_fabric::{Interests, Observer};
use clearway_units::{Bytes, Rate, Span, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The queue in front of a host.
#[derive(Debug, Clone)]
pub struct LastHop {
    /// Rate of the link behind the queue.
    pub rate: Rate,
    /// Data that joined the queue in each bin, including headers, in bytes.
    pub arrivals: Series<u64>,
    /// Longest queue in bytes.
    pub peak: u64,
    depth: u64,
}

impl LastHop {
    /// The time that the longest queue takes to drain.
    pub fn longest_delay(&self) -> Span {
        self.rate.span_of(Bytes::new(self.peak))
    }
}

/// Records the queues of data in front of all hosts.
#[derive(Debug, Clone)]
pub struct LastHopRecorder {
    /// Rate of each link that leads to a host; `None` for other links.
    rates: Arc<[Option<Rate>]>,
    width: Span,
    limit: usize,
    hops: BTreeMap<LinkId, LastHop>,
}

impl LastHopRecorder {
    /// Records in bins of `width`, at most `limit` of them for each queue.
    pub fn new(topology: &Topology, width: Span, limit: usize) -> Self {
        let mut rates = vec![None; 2 * topology.cables.len()];
        for link in topology.links_up() {
            let (_, to) = topology.link_ends(link);
            let leads_to_host = topology.switch_index(to).is_none();
            rates[link.0 as usize] = leads_to_host.then(|| topology.cables[link.cable()].rate);
        }
        Self {
            rates: rates.into(),
            width,
            limit,
            hops: BTreeMap::new(),
        }
    }

    /// The queues that packets have joined.
    pub fn hops(&self) -> &BTreeMap<LinkId, LastHop> {
        &self.hops
    }
}

impl Observer for LastHopRecorder {
    fn interests(&self) -> Interests {
        Interests {
            queues: true,
            ..Interests::NONE
        }
    }

    fn on_enqueue(&mut self, now: Time, link: LinkId, bytes: u64) {
        let Some(rate) = self.rates[link.0 as usize] else {
            return;
        };
        let (width, limit) = (self.width, self.limit);
        let hop = self.hops.entry(link).or_insert_with(|| LastHop {
            rate,
            arrivals: Series::new(width, limit),
            peak: 0,
            depth: 0,
        });
        *hop.arrivals.at(now) += bytes.saturating_sub(hop.depth);
        hop.depth = bytes;
        hop.peak = hop.peak.max(bytes);
    }

    fn on_dequeue(&mut self, _: Time, link: LinkId, bytes: u64) {
        if let Some(hop) = self.hops.get_mut(&link) {
            hop.depth = bytes;
        }
    }
}

impl Merge for LastHopRecorder {
    /// Queues of the other domain; each queue is in only one domain.
    fn merge(&mut self, other: Self) {
        self.hops.extend(other.hops);
    }
}

/// Counts the marks of each link's queue.
#[derive(Debug, Clone, Default)]
pub struct MarkRecorder(BTreeMap<LinkId, u64>);

impl MarkRecorder {
    /// Number of marked packets of each link whose queue has marked packets.
    pub fn marks(&self) -> &BTreeMap<LinkId, u64> {
        &self.0
    }
}

impl Observer for MarkRecorder {
    fn interests(&self) -> Interests {
        Interests::NONE
    }

    fn on_mark(&mut self, _: Time, link: LinkId, _: &clearway_transport::Packet) {
        *self.0.entry(link).or_default() += 1;
    }
}

impl Merge for MarkRecorder {
    fn merge(&mut self, other: Self) {
        for (link, marks) in other.0 {
            *self.0.entry(link).or_default() += marks;
        }
    }
}

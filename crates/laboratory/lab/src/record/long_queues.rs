//! Longest of all queues over time.

use super::Merge;
use super::series::{Bucket, Series};
use clearway_fabric::topology::{LinkId, Topology};
use clearway_fabric::{Interests, Observer};
use clearway_units::{Bytes, Rate, Span, Time};
use std::sync::Arc;

/// The longest queue in one bucket of time, as the delay of a packet behind it; zero if no queue was longer than the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LongestQueue(pub Span);

impl Bucket for LongestQueue {
    fn absorb(&mut self, other: &Self) {
        self.0 = self.0.max(other.0);
    }
}

/// Records the longest of all queues between switches and to hosts in each bucket of time, if it is longer than a threshold.
#[derive(Debug, Clone)]
pub struct LongQueueRecorder {
    /// Rate of each link, and the threshold in bytes at that rate.
    links: Arc<[(Rate, u64)]>,
    longest: Series<LongestQueue>,
    last: Option<Time>,
}

impl LongQueueRecorder {
    /// Records queues longer than `above` in buckets of `width`, at most `limit` of them.
    pub fn new(topology: &Topology, above: Span, width: Span, limit: usize) -> Self {
        let link = |link: usize| {
            let rate = topology.cables[link / 2].rate;
            (rate, rate.bytes_in(above).as_u64())
        };
        Self {
            links: (0..2 * topology.cables.len()).map(link).collect(),
            longest: Series::new(width, limit),
            last: None,
        }
    }

    /// The longest queue of each bucket.
    pub fn series(&self) -> &Series<LongestQueue> {
        &self.longest
    }

    /// Last time at which a queue was longer than the threshold.
    pub fn last(&self) -> Option<Time> {
        self.last
    }
}

impl Observer for LongQueueRecorder {
    fn interests(&self) -> Interests {
        Interests {
            queues: true,
            ..Interests::NONE
        }
    }

    fn on_queue(&mut self, now: Time, link: LinkId, bytes: u64) {
        let (rate, threshold) = self.links[link.0 as usize];
        if bytes > threshold {
            let delay = LongestQueue(rate.span_of(Bytes::new(bytes)));
            self.longest.at(now).absorb(&delay);
            self.last = self.last.max(Some(now));
        }
    }
}

impl Merge for LongQueueRecorder {
    fn merge(&mut self, other: Self) {
        self.longest.merge(other.longest);
        self.last = self.last.max(other.last);
    }
}

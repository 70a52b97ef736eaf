//! Drops and marks of packets over time.

use super::Merge;
use super::series::Series;
use clearway_fabric::topology::LinkId;
use clearway_fabric::{DropCause, Interests, Observer};
use clearway_transport::Packet;
use clearway_units::{Span, Time};

/// Events of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct EventCounts {
    /// Time of the first event.
    pub first: Option<Time>,
    /// Time of the last event.
    pub last: Option<Time>,
    /// Number of events in each bucket of time.
    pub series: Series<u64>,
}

impl EventCounts {
    fn new(width: Span, limit: usize) -> Self {
        Self {
            first: None,
            last: None,
            series: Series::new(width, limit),
        }
    }

    /// Number of all events.
    pub fn count(&self) -> u64 {
        self.series.buckets().iter().sum()
    }

    fn add(&mut self, now: Time) {
        self.first = Some(self.first.map_or(now, |first| first.min(now)));
        self.last = self.last.max(Some(now));
        *self.series.at(now) += 1;
    }

    fn merge(&mut self, other: Self) {
        self.first = [self.first, other.first].into_iter().flatten().min();
        self.last = self.last.max(other.last);
        self.series.merge(other.series);
    }
}

/// Records drops at links (queue full or link down), packets with bit errors, and marks, summed over all links.
#[derive(Debug, Clone, PartialEq)]
pub struct LossRecorder {
    /// Packets dropped at a full queue, at a link that is down, or without a route to their destination.
    pub drops: EventCounts,
    /// Packets with bit errors.
    pub corrupted: EventCounts,
    /// Packets marked.
    pub marks: EventCounts,
}

impl LossRecorder {
    /// Counts in buckets of `width`, at most `limit` of them.
    pub fn new(width: Span, limit: usize) -> Self {
        let counts = EventCounts::new(width, limit);
        Self {
            drops: counts.clone(),
            corrupted: counts.clone(),
            marks: counts,
        }
    }
}

impl Observer for LossRecorder {
    fn interests(&self) -> Interests {
        Interests::NONE
    }

    fn on_drop(&mut self, now: Time, _: LinkId, _: &Packet, cause: DropCause) {
        match cause {
            DropCause::QueueFull
            | DropCause::HeadroomFull
            | DropCause::Agent
            | DropCause::LinkDown
            | DropCause::NoRoute => self.drops.add(now),
            DropCause::BitError => self.corrupted.add(now),
        }
    }
    fn on_mark(&mut self, now: Time, _: LinkId, _: &Packet) {
        self.marks.add(now);
    }
}

impl Merge for LossRecorder {
    fn merge(&mut self, other: Self) {
        self.drops.merge(other.drops);
        self.corrupted.merge(other.corrupted);
        self.marks.merge(other.marks);
    }
}

//! Recorders: observers that keep the data of a figure.
//!
//! Each domain of a run has separate recorders; [`Merge`] joins them after the run. All recorders are bounded: a time series that grows
//! beyond its limit halves its resolution ([`Series`]), and traces keep the first entries and count the rest.
//!
//! * [`QueueRecorder`]: the depth of chosen queues over time.
//! * [`LongQueueRecorder`]: the longest of all queues over time.
//! * [`LastHopRecorder`]: arrivals at the queues in front of hosts; [`MarkRecorder`]: the marks of each queue.
//! * [`GoodputRecorder`]: payload that arrives for the first time, per flow and bin.
//! * [`RateFairnessSampler`]: fairness of the rates at which flows may send, sampled between rounds.
//! * [`LossRecorder`]: drops and marks over time.
//! * [`AckRecorder`]: acknowledgements, as seen by data senders.
//! * [`PacketLatencyRecorder`]: the largest latency of each flow's packets.
//! * [`CaptureRecorder`]: the frames on chosen links.
//! * [`TraceEventRecorder`]: the first drops, detected losses and pauses, as single events.
//! * [`Both`] joins two recorders into one; nest it to join more.

mod acks;
mod capture;
mod fairness;
mod goodput;
mod last_hops;
mod latencies;
mod long_queues;
mod losses;
mod queues;
mod series;
#[cfg(test)]
mod tests;
mod trace_events;

pub use acks::{AckRecord, AckRecorder, AckTrace};
pub use capture::{Capture, CapturePlace, CapturePlan, CaptureRecorder, CapturedFrame};
pub use fairness::RateFairnessSampler;
pub use goodput::{FlowArrivals, GoodputRecorder};
pub use last_hops::{LastHop, LastHopRecorder, MarkRecorder};
pub use latencies::PacketLatencyRecorder;
pub use long_queues::{LongQueueRecorder, LongestQueue};
pub use losses::{EventCounts, LossRecorder};
pub use queues::delay_us;
pub use queues::{QueueBucket, QueueRecorder, QueueSeries};
pub use series::{Bucket, Series};
pub use trace_events::TraceEventRecorder;

use clearway_fabric::topology::{LinkId, NodeId};
use clearway_fabric::{DropCause, Interests, Observer, Senders};
use clearway_transport::{ClassSet, Event, Packet};
use clearway_units::{HostId, Time};

/// A recorder whose parts, one per domain, can be joined.
pub trait Merge {
    /// Adds the records of another domain.
    fn merge(&mut self, other: Self);
}

/// Joins the recorders of all domains; `None` without recorders.
pub fn merge_all<R: Merge>(parts: impl IntoIterator<Item = R>) -> Option<R> {
    parts.into_iter().reduce(|mut whole, part| {
        whole.merge(part);
        whole
    })
}

/// Two recorders in one.
#[derive(Debug, Clone, Default)]
pub struct Both<A, B> {
    /// First recorder.
    pub first: A,
    /// Second recorder.
    pub second: B,
}

/// Both recorders receive every event in which either is interested.
impl<A: Observer, B: Observer> Observer for Both<A, B> {
    fn interests(&self) -> Interests {
        self.first.interests().and(self.second.interests())
    }
    fn on_arrival(&mut self, now: Time, node: NodeId, packet: &Packet) {
        self.first.on_arrival(now, node, packet);
        self.second.on_arrival(now, node, packet);
    }
    fn on_departure(&mut self, end: Time, link: LinkId, packet: &Packet) {
        self.first.on_departure(end, link, packet);
        self.second.on_departure(end, link, packet);
    }
    fn on_queue(&mut self, now: Time, link: LinkId, bytes: u64) {
        self.first.on_queue(now, link, bytes);
        self.second.on_queue(now, link, bytes);
    }
    fn on_enqueue(&mut self, now: Time, link: LinkId, bytes: u64) {
        self.first.on_enqueue(now, link, bytes);
        self.second.on_enqueue(now, link, bytes);
    }
    fn on_dequeue(&mut self, now: Time, link: LinkId, bytes: u64) {
        self.first.on_dequeue(now, link, bytes);
        self.second.on_dequeue(now, link, bytes);
    }
    fn on_drop(&mut self, now: Time, link: LinkId, packet: &Packet, cause: DropCause) {
        self.first.on_drop(now, link, packet, cause);
        self.second.on_drop(now, link, packet, cause);
    }
    fn on_trim(&mut self, now: Time, link: LinkId, packet: &Packet) {
        self.first.on_trim(now, link, packet);
        self.second.on_trim(now, link, packet);
    }
    fn on_mark(&mut self, now: Time, link: LinkId, packet: &Packet) {
        self.first.on_mark(now, link, packet);
        self.second.on_mark(now, link, packet);
    }
    fn on_pause(&mut self, now: Time, link: LinkId, classes: ClassSet) {
        self.first.on_pause(now, link, classes);
        self.second.on_pause(now, link, classes);
    }
    fn on_transport(&mut self, now: Time, host: HostId, event: &Event) {
        self.first.on_transport(now, host, event);
        self.second.on_transport(now, host, event);
    }
    fn on_endpoint(&mut self, now: Time, endpoint: &dyn Senders) {
        self.first.on_endpoint(now, endpoint);
        self.second.on_endpoint(now, endpoint);
    }
}

impl<R: Merge> Merge for Option<R> {
    /// Either all domains have a recorder, or none.
    fn merge(&mut self, other: Self) {
        if let (Some(own), Some(other)) = (self, other) {
            own.merge(other);
        }
    }
}

impl<A: Merge, B: Merge> Merge for Both<A, B> {
    fn merge(&mut self, other: Self) {
        self.first.merge(other.first);
        self.second.merge(other.second);
    }
}

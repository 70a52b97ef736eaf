//! Looking at a whole fabric between two rounds.

use crate::domain::FabricDomain;
use crate::flow::{Flow, FlowEvent};
use crate::host::Host;
use crate::meter::LinkView;
use crate::observer::Observation;
use crate::topology::LinkId;
use clearway_transport::OpenFlow;
use clearway_transport::congestion::telemetry::Telemetry;
use clearway_units::{Bytes, FlowId, Span, Time};

/// Looks at a fabric from time to time, on one thread and at instants that do not depend on the number of threads.
pub trait Sampler {
    /// Time at which the next sample is due. It shows the fabric as it is after the first round that ends at or after this instant.
    fn due(&self) -> Time;
    /// The fabric at `now`; at the end of the run whether due or not, and then perhaps at an instant that it has seen.
    fn on_sample(&mut self, now: Time, snapshot: &mut Snapshot<'_>);
    /// Called when `flow` has reached a milestone. Events of one round come in order, before any sample that is taken after that round.
    fn on_flow(&mut self, event: FlowEvent, flow: &Flow) {
        let _ = (event, flow);
    }
    /// Called when a message of `flow` is posted that takes no packets: so many bytes of the flow will not be acknowledged.
    fn on_known_transfer(&mut self, flow: FlowId, bytes: Bytes) {
        let _ = (flow, bytes);
    }
}

/// View of a domain for a sampler, with any kind of telemetry.
pub(super) trait Visible {
    fn for_each_link(&mut self, now: Time, look: &mut dyn FnMut(LinkView<'_>));
    fn for_each_open_flow(&self, look: &mut dyn FnMut(&OpenFlow<'_>));
    fn for_each_paused_link(&self, look: &mut dyn FnMut(LinkId));
    fn next_by_the_clock(&self) -> Time;
    fn skip(&mut self, time: Span, packets: &mut dyn FnMut(&OpenFlow<'_>) -> u64);
}

impl<O: Observation, T: Telemetry> Visible for FabricDomain<O, T> {
    fn for_each_link(&mut self, now: Time, look: &mut dyn FnMut(LinkView<'_>)) {
        Self::for_each_link(self, now, look);
    }
    fn for_each_open_flow(&self, mut look: &mut dyn FnMut(&OpenFlow<'_>)) {
        for endpoint in self.hosts.iter().flat_map(Host::endpoints) {
            endpoint.for_each_open(&mut look);
        }
    }
    fn for_each_paused_link(&self, look: &mut dyn FnMut(LinkId)) {
        for link in self.hosts.iter().filter_map(Host::paused) {
            look(link);
        }
        self.switch.for_each_paused(look);
    }
    fn next_by_the_clock(&self) -> Time {
        Self::next_by_the_clock(self)
    }
    fn skip(&mut self, time: Span, packets: &mut dyn FnMut(&OpenFlow<'_>) -> u64) {
        Self::skip(self, time, packets);
    }
}

/// Calls back with each domain.
pub(super) type EachDomain<'a> = &'a mut dyn FnMut(&mut dyn FnMut(&mut dyn Visible));

/// A fabric between two rounds.
///
/// # Skipped time
/// Where nothing changes but how much of each message is sent, a sampler may [skip](Self::skip) time. Packets, queues, timers and
/// controllers stay as they are, by a clock of their own that stands still meanwhile. All that the user sees is by the clock of the run:
/// starts of flows, programs, milestones, samples and limits.
pub struct Snapshot<'a> {
    /// By the clock of packets.
    now: Time,
    /// End of the next round, by the clock of packets; `None` at the end of the run.
    round_end: Option<Time>,
    /// The next start or limit that is known to the accounts, by the clock of packets.
    next: Time,
    /// Time that this sampler has skipped.
    skipped: Span,
    domains: EachDomain<'a>,
}

impl<'a> Snapshot<'a> {
    pub(super) fn new(
        now: Time,
        (round_end, next): (Option<Time>, Time),
        domains: EachDomain<'a>,
    ) -> Self {
        Self {
            now,
            round_end,
            next,
            skipped: Span::ZERO,
            domains,
        }
    }

    /// The present time by the clock of packets.
    pub fn packet_time(&self) -> Time {
        self.now
    }

    /// True at the end of the run.
    pub fn is_last(&self) -> bool {
        self.round_end.is_none()
    }

    /// Time that the sampler has skipped.
    pub(super) fn skipped(&self) -> Span {
        self.skipped
    }

    /// The most time that may be skipped: until shortly before a flow starts, a program goes on by the clock, or the time limit. The next
    /// round goes by the old times. Zero at the end of the run.
    pub fn longest_skip(&mut self) -> Span {
        let Some(round_end) = self.round_end else {
            return Span::ZERO;
        };
        let mut next = self.next.earlier_by(self.skipped);
        (self.domains)(&mut |domain| next = next.min(domain.next_by_the_clock()));
        next.since(round_end)
    }

    /// Skips `time`, in which each queue pair that is open sends, delivers and has acknowledged as many full packets as `packets` says. The
    /// caller sees to it that nothing else would have happened to packets in it, and adds the [traffic of links](LinkView::add_skipped).
    ///
    /// # Panics
    /// If `time` is [too long](Self::longest_skip), or a queue pair does not have [so many](OpenFlow::skippable) packets.
    pub fn skip(&mut self, time: Span, mut packets: impl FnMut(&OpenFlow<'_>) -> u64) {
        assert!(
            time <= self.longest_skip(),
            "something happens in the skipped time"
        );
        self.skipped += time;
        (self.domains)(&mut |domain| domain.skip(time, &mut packets));
    }

    /// Shows each link.
    pub fn for_each_link(&mut self, mut look: impl FnMut(LinkView<'_>)) {
        let now = self.now;
        (self.domains)(&mut |domain| domain.for_each_link(now, &mut look));
    }

    /// Shows every queue pair of every flow that is open at its sender.
    pub fn for_each_open_flow(&mut self, mut look: impl FnMut(&OpenFlow<'_>)) {
        (self.domains)(&mut |domain| domain.for_each_open_flow(&mut look));
    }

    /// Shows every link that flow control holds back now.
    pub fn for_each_paused_link(&mut self, mut look: impl FnMut(LinkId)) {
        (self.domains)(&mut |domain| domain.for_each_paused_link(&mut look));
    }
}

//! Output-queued, store-and-forward switches.
//!
//! * [`lossy`]: each egress port has separate queues. Ports do not affect each other, so a round is handled port by port, unless ports are
//!   chosen by their queues ([`local_choice`]).
//! * [`shared`]: all ports share one buffer, and links towards the switch are paused before it overflows (priority flow
//!   control); a round in which pauses may change is handled in the order of time, any other port by port.

mod adaptive_routing;
mod bit_set;
mod class_marks;
mod detours;
mod fifo;
mod ingress;
mod lossy;
mod lossy_port;
mod marking;
mod parameters;
mod prefetching;
mod reroutes;
mod shared;
mod trimming;

use crate::link::{Arrival, Sinks};
use crate::meter::LinkView;
use crate::observer::Observation;
use crate::order::{ArrivalKey, Sorter};
use crate::pause::LinkPauses;
use crate::topology::LinkId;
use clearway_engine::{BufferPool, DomainHorizon, Round};
use clearway_transport::Class;
use clearway_transport::congestion::telemetry::Telemetry;
use clearway_units::{Time, mix64};

pub(crate) use adaptive_routing::AdaptiveRouting;
pub use class_marks::ClassMarks;
pub(crate) use detours::Detours;
pub(crate) use ingress::{Ingress, NextHopSelector};
pub(crate) use lossy::LossySwitch;
pub(crate) use lossy_port::{LossyPort, ONE_DATA_QUEUE};
pub use parameters::{
    AdaptiveRoutingParameters, LosslessClasses, MarkAt, PathChoice, QueueRules,
    SharedBufferParameters, SwitchParameters, TelemetryFormat, TrimVictim,
};
pub(crate) use parameters::{BufferRules, PortFacts};
pub(crate) use reroutes::Reroutes;
pub(crate) use shared::{SharedPort, SharedSwitch};

/// A switch of any kind.
#[expect(
    clippy::large_enum_variant,
    reason = "the usual kind is reached without a pointer"
)]
#[derive(Debug)]
pub(crate) enum Switch<T> {
    Lossy(LossySwitch<T, ONE_DATA_QUEUE>),
    /// Lossy, with a queue for each class.
    Strict(Box<LossySwitch<T, { Class::COUNT }>>),
    Shared(Box<SharedSwitch<T>>),
}

/// Buffers that a thread lends to each switch that it runs.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Arrivals of the round: by egress port, or all in the first line.
    lines: Vec<Vec<ArrivalKey>>,
    sorter: Sorter,
    /// The memory that switches will touch is loaded into the caches before.
    pub(crate) prefetches: bool,
}

impl Scratch {
    /// At least `count` lines.
    #[inline]
    fn lines(&mut self, count: usize) -> &mut [Vec<ArrivalKey>] {
        if self.lines.len() < count {
            self.lines.resize_with(count, Vec::new);
        }
        &mut self.lines
    }
}

impl<T: Telemetry> Switch<T> {
    /// New messages have come in at `port`.
    pub(crate) fn collect(
        &mut self,
        port: usize,
        round: &Round,
        buffers: &mut BufferPool<Arrival<T>>,
        prefetches: bool,
    ) {
        match self {
            Self::Lossy(switch) => switch.collect(port, round, buffers, prefetches),
            Self::Strict(switch) => switch.collect(port, round, buffers, prefetches),
            Self::Shared(switch) => switch.collect(port, round, buffers, prefetches),
        }
    }

    /// Loads what [`collect`](Self::collect) will touch into the caches.
    #[inline]
    pub(crate) fn prefetch_mailbox(&self, port: usize) {
        match self {
            Self::Lossy(switch) => switch.ingress.prefetch_mailbox(port),
            Self::Strict(switch) => switch.ingress.prefetch_mailbox(port),
            Self::Shared(switch) => switch.ingress.prefetch_mailbox(port),
        }
    }

    /// The next event.
    pub(crate) fn next(&self) -> Time {
        match self {
            Self::Lossy(switch) => switch.next(),
            Self::Strict(switch) => switch.next(),
            Self::Shared(switch) => switch.next(),
        }
    }

    /// Runs all events of the round.
    pub(crate) fn run<O: Observation>(
        &mut self,
        round: &Round,
        scratch: &mut Scratch,
        sinks: &mut Sinks<'_, O, T>,
    ) -> DomainHorizon {
        match self {
            Self::Lossy(switch) => switch.run(round, scratch, sinks),
            Self::Strict(switch) => switch.run(round, scratch, sinks),
            Self::Shared(switch) => switch.run(round, scratch, sinks),
        }
    }

    /// Packets in queues.
    pub(crate) fn queued(&self) -> u64 {
        match self {
            Self::Lossy(switch) => switch.queued(),
            Self::Strict(switch) => switch.queued(),
            Self::Shared(switch) => switch.queued(),
        }
    }

    /// Shows each link at `now`.
    pub(crate) fn for_each_link(&mut self, now: Time, look: impl FnMut(LinkView<'_>)) {
        match self {
            Self::Lossy(switch) => switch.links(now).for_each(look),
            Self::Strict(switch) => switch.links(now).for_each(look),
            Self::Shared(switch) => switch.links(now).for_each(look),
        }
    }

    /// Shows the links that flow control holds back now.
    pub(crate) fn for_each_paused(&self, look: &mut dyn FnMut(LinkId)) {
        if let Self::Shared(switch) = self {
            switch.paused().for_each(look);
        }
    }

    /// Pauses of the switch's transmitters until `end`.
    pub(crate) fn pauses(&self, end: Time) -> Vec<LinkPauses> {
        match self {
            Self::Lossy(_) | Self::Strict(_) => Vec::new(),
            Self::Shared(switch) => switch.pauses(end).collect(),
        }
    }

    /// Messages on the wires towards this switch.
    pub(crate) fn on_the_wire(&self) -> u64 {
        match self {
            Self::Lossy(switch) => switch.on_the_wire(),
            Self::Strict(switch) => switch.on_the_wire(),
            Self::Shared(switch) => switch.on_the_wire(),
        }
    }
}

/// Index of the next hop that ECMP selects for a packet among `choices` of equal cost.
#[inline]
pub(crate) fn ecmp(header_hash: u32, salt: u64, choices: usize) -> usize {
    let hash = mix64(salt ^ u64::from(header_hash)) >> 32;
    ((hash * choices as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ecmp_is_even_and_switches_choose_independently() {
        let mut counts = [[0u32; 8]; 8];
        for hash in 0..64_000u32 {
            let hash = mix64(hash.into()) as u32;
            counts[ecmp(hash, mix64(1), 8)][ecmp(hash, mix64(2), 8)] += 1;
        }
        // Each pair of choices 1000 times; 5 sigma are 158.
        assert!(
            counts.iter().flatten().all(|&n| n.abs_diff(1000) < 158),
            "{counts:?}"
        );
    }
}

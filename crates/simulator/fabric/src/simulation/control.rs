//! Control of a run: its limits and callbacks, its progress, and why it stopped.

use super::traffic::Traffic;
use crate::flow::Reactions;
use clearway_engine::{RunDecision, Threads};
use clearway_units::{Span, Time};

/// Reason why a run ended before all flows and [programs](crate::Program) were done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The time limit was reached.
    AtMost,
    /// The progress callback said so.
    Interrupted,
    /// No event was left although flows or programs wait: their triggers never came.
    Stuck,
    /// No event was left because paused links wait for each other, or for the end of a pause storm that has none.
    Deadlocked,
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::AtMost => "stopped at the time limit",
            Self::Interrupted => "interrupted",
            Self::Stuck => "nothing was left to happen although flows or jobs wait",
            Self::Deadlocked => "deadlock: paused links wait for each other",
        })
    }
}

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunProgress {
    /// Simulated time.
    pub now: Time,
    /// Flows done.
    pub flows_sent: usize,
    /// All flows.
    pub flows: usize,
    /// Packet-hops so far.
    pub hops: u64,
}

/// Control of a run: threads, time limit, coordinator, traffic and progress callback.
pub struct RunControl<'a> {
    /// Worker threads; results do not depend on them.
    pub threads: Threads,
    /// Time limit: the run stops when the next event is at or after it, even with flows left; a round that has begun is finished.
    pub at_most: Time,
    /// Sees all flow events and starts flows anywhere.
    pub coordinator: Option<Box<dyn Reactions>>,
    /// Further flows besides [`Setup::flows`](super::Setup::flows). Memory holds only the flows under way.
    pub traffic: Option<Traffic<'a>>,
    /// The time that the coordinator's decisions take; at least, and by default, the shortest delay of a link.
    pub coordination_delay: Option<Span>,
    /// Called after each round; [`RunDecision::Stop`] interrupts the run.
    pub on_progress: &'a mut dyn FnMut(RunProgress) -> RunDecision,
}

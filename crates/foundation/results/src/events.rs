//! Single events of a run, for timelines.

use clearway_units::Time;

/// Trace event: what happened at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceEvent {
    /// A packet vanished in front of a link, or on it.
    Dropped {
        /// The number of the link.
        link: u32,
        /// The number of the flow that the packet belongs to, as data or as acknowledgement.
        flow: u32,
    },
    /// A sender took packets for lost.
    LossDetected {
        /// The number of the flow.
        flow: u32,
        /// Cause of the detection, in a word or two: `timeout`, `out of order`.
        cause: &'static str,
        /// Packets that are sent again.
        packets: u32,
    },
    /// Flow control holds back these classes of a link from now on, and no others.
    Pause {
        /// The number of the link.
        link: u32,
        /// A bit for each class; zero when the link goes on.
        classes: u8,
    },
}

/// Trace event with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRecord {
    /// Time of the event.
    pub time: Time,
    /// The event.
    pub event: TraceEvent,
}

/// Log of the single events of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventLog {
    /// Events that are kept, in the order of time. At one instant drops come before losses, and losses before pauses.
    pub records: Vec<TraceRecord>,
    /// Events, and dependencies, beyond those that are kept.
    pub left_out: u64,
    /// Flows that started because another one got somewhere: the numbers of cause and effect.
    pub dependencies: Vec<(u32, u32)>,
}

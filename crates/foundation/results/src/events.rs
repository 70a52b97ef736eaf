//! Single events of a run, for timelines.

use clearway_units::Time;

/// Trace event at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceEvent {
    /// A packet was dropped in front of a link, or on it.
    Dropped {
        /// The number of the link.
        link: u32,
        /// The number of the flow that the packet belongs to, as data or as acknowledgement.
        flow: u32,
    },
    /// A sender declared packets lost.
    LossDetected {
        /// The number of the flow.
        flow: u32,
        /// Cause of the detection, in a word or two: `timeout`, `out of order`.
        cause: &'static str,
        /// Number of packets to retransmit.
        packets: u32,
    },
    /// Flow control pauses exactly these classes of a link from now on.
    Pause {
        /// The number of the link.
        link: u32,
        /// A bit for each class; zero when the link resumes.
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
    /// Kept events, in the order of time. At one instant drops come before losses, and losses before pauses.
    pub records: Vec<TraceRecord>,
    /// Number of events and dependencies not kept.
    pub left_out: u64,
    /// Flows that started because of the progress of another flow: the numbers of cause and effect.
    pub dependencies: Vec<(u32, u32)>,
}

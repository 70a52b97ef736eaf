//! Settings that several collectives share.

use super::Layout;
use clearway_units::{Bytes, Rate, Span, choices, parameters};
use std::num::NonZero;

parameters! {
    /// Chunk size and window of an algorithm that forwards data.
    pub struct Pipelining {
        /// Maximum payload of a message. A rank forwards each chunk as soon as it has it.
        pub chunk: Bytes = Bytes::new(131_072), "chunk", "STrack §4.3: 128KB";
        /// Maximum number of messages in flight from one rank to another, counted separately for each tree. "auto": no limit.
        pub window: Option<u32> = None, "window", "STrack names no limit";
    }
}

parameters! {
    /// Channels of an algorithm that forwards data from rank to rank.
    pub struct Channels {
        /// Number of parallel rings, or pairs of trees, each with an equal share of the bytes. Each enters a node at another rank, so that
        /// all NICs of a node have work. "auto": the number of ranks of each node, or one if nodes have different numbers.
        pub channels: Option<NonZero<u32>> = None, "channels", "NCCL: one for each NIC of a node at least";
    }
}

impl Channels {
    /// Number of channels for ranks that lie so, none of which is without bytes of the `parts` that it is given.
    pub(super) fn resolve(&self, layout: &Layout, size: Bytes) -> u32 {
        let auto = layout.ranks_per_node();
        let most = u32::try_from(size.as_u64()).unwrap_or(u32::MAX);
        self.channels.map_or(auto.min(most), NonZero::get)
    }
}

parameters! {
    /// Chunk size and window of an algorithm that sends directly to the receiver.
    pub struct DirectPipelining {
        /// Maximum payload of a message. "auto": one message for all data that goes from one rank to another at a time.
        pub chunk: Option<Bytes> = None, "chunk", "nobody waits for less, so the whole is one message";
        /// Maximum number of messages in flight from one rank to another. "auto": no limit.
        pub window: Option<u32> = None, "window", "no limit";
    }
}

parameters! {
    /// Chunk size and window of an algorithm in which all ranks take the same steps.
    pub struct StepPipelining {
        /// Maximum payload of a message; each is forwarded as soon as it has arrived. "auto": one message for a step.
        pub chunk: Option<Bytes> = None, "chunk", "steps follow each other; chunks of one would compete with those of the next. STrack §4.3: 128KB";
        /// Maximum number of messages in flight from one rank to another. "auto": no limit.
        pub window: Option<u32> = None, "window", "no limit";
    }
}

choices! {
    /// Rank with which a rank exchanges the largest half.
    pub enum FirstPartner {
        /// The rank half of all ranks away, then a quarter, and so on: rank r gets block r.
        Far = "far",
        /// The next rank, then the one two away, and so on: the most bytes go the shortest way.
        Near = "near",
    }
}

parameters! {
    /// Rate of the reduction.
    pub struct Reduction {
        /// Rate at which a rank adds received data to its own, message by message. It may forward a message only after that. The addition
        /// takes no time from the computations of the job, and is as fast on a straggler. "auto": at once.
        pub reduction_rate: Option<Rate> = None, "reduction-rate", "STrack §4.3 measures the network alone";
    }
}

/// Settings that a [`Builder`](super::builder::Builder) needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Options {
    pub(super) chunk: Option<Bytes>,
    pub(super) window: Option<u32>,
    pub(super) reduction_rate: Option<Rate>,
    /// Time that each message takes at its receiver.
    pub(super) delay: Span,
}

impl Options {
    pub(super) fn delayed(self, delay: Span) -> Self {
        Self { delay, ..self }
    }

    pub(super) fn reducing(self, reduction: &Reduction) -> Self {
        Self {
            reduction_rate: reduction.reduction_rate,
            ..self
        }
    }
}

impl From<&Pipelining> for Options {
    fn from(pipelining: &Pipelining) -> Self {
        Self {
            chunk: Some(pipelining.chunk),
            window: pipelining.window,
            ..Self::default()
        }
    }
}

impl From<&StepPipelining> for Options {
    fn from(steps: &StepPipelining) -> Self {
        Self {
            chunk: steps.chunk,
            window: steps.window,
            ..Self::default()
        }
    }
}

impl From<&DirectPipelining> for Options {
    fn from(parts: &DirectPipelining) -> Self {
        Self {
            chunk: parts.chunk,
            window: parts.window,
            ..Self::default()
        }
    }
}

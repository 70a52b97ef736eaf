//! Settings that several collectives share.

use clearway_units::{Bytes, Rate, parameters};

parameters! {
    /// How an algorithm that passes data on cuts it into messages.
    pub struct Pipelining {
        /// Payload of a message at most. A rank passes on each chunk as soon as it has it.
        pub chunk: Bytes = Bytes::new(131_072), "chunk", "STrack §4.3: 128KB";
        /// How many messages may be under way from one rank to another at a time, in each tree of its own. "auto": any number.
        pub window: Option<u32> = None, "window", "STrack names no limit";
    }
}

parameters! {
    /// How an algorithm that sends directly to the receiver cuts data into messages.
    pub struct Parts {
        /// Payload of a message at most. "auto": one message for all that goes from one rank to another at a time.
        pub chunk: Option<Bytes> = None, "chunk", "nobody waits for less, so the whole is one message";
        /// How many messages may be under way from one rank to another at a time. "auto": any number.
        pub window: Option<u32> = None, "window", "no limit";
    }
}

parameters! {
    /// How an algorithm in which all ranks take the same steps cuts each step into messages.
    pub struct Steps {
        /// Payload of a message at most; each is passed on as soon as it has arrived. "auto": one message for a step.
        pub chunk: Option<Bytes> = None, "chunk", "steps follow each other; chunks of one would compete with those of the next. STrack §4.3: 128KB";
        /// How many messages may be under way from one rank to another at a time. "auto": any number.
        pub window: Option<u32> = None, "window", "no limit";
    }
}

parameters! {
    /// What adding up costs.
    pub struct Reduction {
        /// How fast a rank adds what has arrived to what it has, message by message; only then it may pass it on. It adds beside what
        /// the job computes, and no slower if it is a straggler. "auto": at once.
        pub reduction_rate: Option<Rate> = None, "reduction-rate", "STrack §4.3 measures the network alone";
    }
}

/// What a [`Builder`](super::builder::Builder) needs of the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Options {
    pub(super) chunk: Option<Bytes>,
    pub(super) window: Option<u32>,
    pub(super) reduction_rate: Option<Rate>,
}

impl Options {
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
            reduction_rate: None,
        }
    }
}

impl From<&Steps> for Options {
    fn from(steps: &Steps) -> Self {
        Self {
            chunk: steps.chunk,
            window: steps.window,
            reduction_rate: None,
        }
    }
}

impl From<&Parts> for Options {
    fn from(parts: &Parts) -> Self {
        Self {
            chunk: parts.chunk,
            window: parts.window,
            reduction_rate: None,
        }
    }
}

//! Parts of a trace that cause a warning.

use super::call::Approximation;

/// Parts of a trace that are read but not simulated as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Skipped {
    /// A call that is simulated in another way.
    Approximation(Approximation),
    /// Communications outside of the profiler's steps.
    Outside,
    /// A trace without times.
    Untimed,
    /// A rank that does not communicate.
    Silent,
    /// Lists of groups in an unknown form.
    Groups,
}

impl Skipped {
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::Approximation(Approximation::Root) => {
                "has a root that is not in the trace, and takes the first rank of its group as the root"
            }
            Self::Approximation(Approximation::Parts) => {
                "lists only some of its parts, and sends equal parts: an execution trace lists all"
            }
            Self::Approximation(Approximation::Empty) => {
                "has no bytes to send, and sends one because a message needs a packet"
            }
            Self::Outside => {
                "has communications that were started outside of all `ProfilerStep`s, which are left out"
            }
            Self::Untimed => {
                "has an execution trace without times: its communications follow one another, and computations take no time; a profile has times"
            }
            Self::Silent => "communicates with no other rank",
            Self::Groups => "lists process groups in a way that is not understood",
        }
    }
}

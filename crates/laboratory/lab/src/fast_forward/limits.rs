//! Settings and limits of what is remembered.

/// Settings of a memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    /// The wanted error, as a fraction.
    pub(crate) error: f64,
    /// Part of the remembered calls to verify.
    pub(crate) verify: f64,
    pub(crate) seed: u64,
}

/// Families of calls that are under way: a bit for calls and last segments of calls, and one for segments that others follow. Families from
/// the 32nd on share bits.
pub(super) type FamilySet = u64;

/// Part of the wanted error that the confidence interval of a kind's transfer times may take; the rest is for what it does not show: calls
/// that overlap in another way, and paths through the program.
pub(super) const SHARE_OF_ERROR: f64 = 0.5;
/// Part of a sample's time that may be beside remembered calls.
pub(super) const SHADOW: f64 = 0.1;
/// Most samples of a kind beside the same families of calls.
pub(super) const MOST_SAMPLES: usize = 32;
/// Samples that kinds of one shape need at most before they are looked at: those that are over first may be the shortest.
pub(super) const WAITED_FOR: usize = 16;
/// Calls of a kind that does not agree are remembered if so many more of them are within the error: a call among simulated ones finds what
/// these left, and leaves nothing to them.
pub(super) const RUN: u64 = 8;
/// Most bytes of all remembered times.
pub(super) const MOST_BYTES: usize = 512 << 20;
/// Most tasks of a call: each open call has a table of its messages.
pub(super) const MOST_TASKS: u32 = 1 << 22;
/// The links must not change for so many times as long as a call took in the mean, if it is remembered: ranks may come late to it.
pub(super) const TIME_TO_CHANGE: u64 = 2;

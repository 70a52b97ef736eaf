//! Triggers as a workload declares them.

/// The index of a trigger in [`Workload::triggers`](crate::Workload::triggers).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TriggerIndex(pub u32);

impl TriggerIndex {
    /// The index as an index into a `Vec`.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Condition on which a trigger starts the flows that wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerKind {
    /// The one activation that it gets starts all.
    Oneshot,
    /// Each activation starts the next one, in the order of the flows.
    Multishot,
    /// The `count`-th activation starts all.
    Barrier {
        /// Number of activations that it takes, above zero.
        count: u32,
    },
}

/// A trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerSpec {
    /// The user's number for the trigger, for messages.
    pub label: u64,
    /// Condition on which the trigger starts flows.
    pub kind: TriggerKind,
}

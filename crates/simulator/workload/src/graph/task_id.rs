//! Numbers of tasks.

/// The number of a task of a graph, from zero in the order in which they were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

impl TaskId {
    /// The number as an index into a `Vec`.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

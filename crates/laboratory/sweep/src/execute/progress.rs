//! Progress of a sweep, and what came of it.

/// State of a sweep that goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SweepProgress {
    /// Runs that are asked for.
    pub total: usize,
    /// Runs that are done, those of former executions and of other processes included.
    pub done: usize,
    /// Runs that failed.
    pub failed: usize,
    /// Runs that this process is at.
    pub running: usize,
    /// Runs that other processes are at, or were at the last look.
    pub elsewhere: usize,
    /// Wall seconds since this process began.
    pub elapsed: f64,
    /// Wall seconds that are left, from the times of finished runs; `None` while there are none.
    pub left: Option<f64>,
}

/// What came of an execution.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SweepExecution {
    /// Runs that were there before.
    pub known: usize,
    /// Runs that were done by this process.
    pub done: usize,
    /// Runs that other processes did meanwhile.
    pub by_others: usize,
    /// Places of the runs that failed.
    pub failed: Vec<usize>,
    /// True if the user ended it.
    pub interrupted: bool,
}

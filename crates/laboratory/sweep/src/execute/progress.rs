//! Progress and outcome of an execution.

/// State of a running sweep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SweepProgress {
    /// Requested runs.
    pub total: usize,
    /// Finished runs, including runs of former executions and of other processes.
    pub done: usize,
    /// Runs that failed.
    pub failed: usize,
    /// Runs in progress in this process.
    pub running: usize,
    /// Runs in progress in other processes at the last check.
    pub elsewhere: usize,
    /// Wall seconds since this process began.
    pub elapsed: f64,
    /// Remaining wall seconds, from the times of finished runs; `None` without finished runs.
    pub left: Option<f64>,
}

/// Outcome of an execution.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SweepExecution {
    /// Runs that were finished before.
    pub known: usize,
    /// Runs that this process finished.
    pub done: usize,
    /// Runs that other processes finished meanwhile.
    pub by_others: usize,
    /// Places of the runs that failed.
    pub failed: Vec<usize>,
    /// True if the user stopped the execution.
    pub interrupted: bool,
}

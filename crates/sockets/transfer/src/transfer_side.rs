//! One side of a transfer, as a state machine without IO.

use crate::name::Name;
use crate::reason::Reason;
use bytes::Bytes;

/// Protocol violation by the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violation(pub &'static str);

/// Fate of a file, with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferEvent {
    /// Name of the file.
    pub name: String,
    /// Fate of the file.
    pub what: FileOutcome,
}

/// Fate of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileOutcome {
    /// The receiver has parts of it from an earlier transfer.
    Kept {
        /// Bytes of the kept blocks.
        bytes: u64,
        /// True if the blocks come from a file with another size or time: unchanged blocks are used.
        changed: bool,
    },
    /// In its place.
    Done {
        /// Bytes of the file.
        size: u64,
        /// Bytes sent in this transfer.
        moved: u64,
    },
    /// Not transferred.
    Failed(Reason),
}

/// Counters of planned and finished work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransferProgress {
    /// Total files, as the sender states.
    pub files: u64,
    /// Total bytes, as the sender states.
    pub bytes: u64,
    /// Files that are in their place.
    pub done: u64,
    /// Files that were refused or withdrawn.
    pub failed: u64,
    /// Bytes of the failed files.
    pub failed_bytes: u64,
    /// Bytes sent or received in this transfer.
    pub moved: u64,
    /// Part of `moved` that the receiver has written to files, as far as the sender knows.
    pub written: u64,
    /// Bytes that the receiver already had with the sender's content.
    pub kept: u64,
    /// Blocks sent again because they did not match their digests.
    pub repaired: u64,
}

impl TransferProgress {
    /// Counts a file that was refused or withdrawn.
    pub(crate) fn add_failed(&mut self, bytes: u64) {
        self.failed += 1;
        // A refused file can claim any size.
        self.failed_bytes = self.failed_bytes.saturating_add(bytes);
    }

    /// True if the fate of each file is settled.
    pub fn is_complete(&self) -> bool {
        self.done + self.failed >= self.files
    }
}

/// One side of a transfer. The driver carries messages and jobs; order and number of its calls do not matter.
pub(crate) trait TransferSide {
    /// Task for a disk.
    type Job: Send + 'static;
    /// Result of a job.
    type Outcome: Send + 'static;

    /// Takes a message of the other end.
    fn on_message(&mut self, tag: u64, content: Vec<u8>) -> Result<(), Violation>;
    /// Takes the result of a job.
    fn on_outcome(&mut self, outcome: Self::Outcome);
    /// Notes that about a tenth of a second has passed.
    fn on_tick(&mut self);
    /// True if there is room for the effects of the next message.
    fn takes_messages(&self) -> bool;
    /// The next message to send.
    fn poll_send(&mut self) -> Option<(u64, Bytes)>;
    /// The next job.
    fn poll_job(&mut self) -> Option<Self::Job>;
    /// The next event.
    fn poll_event(&mut self) -> Option<TransferEvent>;
    /// Counters of planned and finished work.
    fn progress(&self) -> &TransferProgress;
    /// True if this side has finished.
    fn is_over(&self) -> bool;
    /// True if the greeting of the other end has arrived.
    fn is_greeted(&self) -> bool;
}

/// Disk that executes the jobs of one side, on several threads at a time.
pub(crate) trait Disk<P: TransferSide>: Send + Sync + 'static {
    /// Executes a job.
    fn run(&self, job: P::Job) -> P::Outcome;
}

/// An event about a file.
pub(crate) fn event(name: &Name, what: FileOutcome) -> TransferEvent {
    TransferEvent {
        name: name.to_string(),
        what,
    }
}

//! One side of a transfer, as a state machine without IO.

use crate::name::Name;
use crate::reason::Reason;
use bytes::Bytes;

/// Fault of the other end: what it must not do.
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
        /// Bytes of the blocks that it has.
        bytes: u64,
        /// True if these are of a file with another size or time: blocks that are still the same are used.
        changed: bool,
    },
    /// In its place.
    Done {
        /// Bytes of the file.
        size: u64,
        /// Bytes that were sent now.
        moved: u64,
    },
    /// Not transferred.
    Failed(Reason),
}

/// Count of what is to be done, and of what is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransferProgress {
    /// Files in all, as the sender says.
    pub files: u64,
    /// Bytes in all, as the sender says.
    pub bytes: u64,
    /// Files that are in their place.
    pub done: u64,
    /// Files that were refused or given up.
    pub failed: u64,
    /// Bytes of files of these.
    pub failed_bytes: u64,
    /// Bytes sent or received now.
    pub moved: u64,
    /// Of these, bytes that are in files of the receiver, as far as the sender has heard.
    pub written: u64,
    /// Bytes that the receiver had, and that are what the sender has.
    pub kept: u64,
    /// Blocks that were sent once more, since they were not what their digests say.
    pub repaired: u64,
}

impl TransferProgress {
    /// A file was refused or given up.
    pub(crate) fn add_failed(&mut self, bytes: u64) {
        self.failed += 1;
        // Refused sizes can be anything.
        self.failed_bytes = self.failed_bytes.saturating_add(bytes);
    }

    /// True if each file has had its fate.
    pub fn is_complete(&self) -> bool {
        self.done + self.failed >= self.files
    }
}

/// One side of a transfer. Whoever drives it carries messages and jobs; order and number of its calls do not matter.
pub(crate) trait TransferSide {
    /// Task for a disk.
    type Job: Send + 'static;
    /// Result of a job.
    type Outcome: Send + 'static;

    /// Takes a message of the other end.
    fn on_message(&mut self, tag: u64, content: Vec<u8>) -> Result<(), Violation>;
    /// Takes the result of a job.
    fn on_outcome(&mut self, outcome: Self::Outcome);
    /// Takes note that some time has passed: a tenth of a second, about.
    fn on_tick(&mut self);
    /// True if there is room for what the next message may lead to.
    fn takes_messages(&self) -> bool;
    /// The next message to send.
    fn poll_send(&mut self) -> Option<(u64, Bytes)>;
    /// The next job.
    fn poll_job(&mut self) -> Option<Self::Job>;
    /// The next event.
    fn poll_event(&mut self) -> Option<TransferEvent>;
    /// Count of what is to be done and is.
    fn progress(&self) -> &TransferProgress;
    /// True if nothing is left to be done at this side.
    fn is_over(&self) -> bool;
    /// True if the other end has said what it is.
    fn is_greeted(&self) -> bool;
}

/// Carries out the jobs of a party, on several threads at a time.
pub(crate) trait Disk<P: TransferSide>: Send + Sync + 'static {
    /// Carries out a job.
    fn run(&self, job: P::Job) -> P::Outcome;
}

/// An event about a file.
pub(crate) fn event(name: &Name, what: FileOutcome) -> TransferEvent {
    TransferEvent {
        name: name.to_string(),
        what,
    }
}

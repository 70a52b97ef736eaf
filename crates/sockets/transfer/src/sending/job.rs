//! Jobs of the sending side.

use crate::reason::Reason;
use crate::wire::FileMetadata;
use bytes::Bytes;

/// Task for the sender's disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Job {
    /// Open a file and read its size and time.
    Open(u32),
    /// Read a block.
    Read {
        /// Number of the file.
        file: u32,
        /// Number of the block.
        block: u32,
        /// Offset in the file.
        offset: u64,
        /// Length of the block.
        length: usize,
    },
    /// Check that the file has not changed.
    Compare(u32),
    /// Close a file.
    Close(u32),
}

/// Result of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The file's size and time.
    Opened {
        /// Number of the file.
        file: u32,
        /// The result.
        result: Result<FileMetadata, Reason>,
    },
    /// A digest, followed by its block.
    Read {
        /// Number of the file.
        file: u32,
        /// Number of the block.
        block: u32,
        /// Requested length.
        length: usize,
        /// Digest and content.
        result: Result<Bytes, Reason>,
    },
    /// The file has not changed, or has.
    Compared {
        /// Number of the file.
        file: u32,
        /// The result.
        result: Result<(), Reason>,
    },
    /// A file is closed.
    Closed,
}

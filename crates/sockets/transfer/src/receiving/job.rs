//! Jobs of the receiving side, and its limits.

use crate::blocks::ContentHash;
use crate::name::Name;
use crate::reason::Reason;
use crate::wire::Offer;

/// Limits for one sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveLimits {
    /// Files, one million by default.
    pub files: u64,
    /// Bytes of files to write, 1 TB by default.
    pub bytes: u64,
}

impl Default for ReceiveLimits {
    fn default() -> Self {
        Self {
            files: 1_000_000,
            bytes: 1_000_000_000_000,
        }
    }
}

/// Task for the receiver's disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Job {
    /// Check whether the receiver can accept a file, and open its existing part.
    Begin {
        /// Name of the file.
        name: Name,
        /// The offer of the file.
        offer: Offer,
    },
    /// Compute the digests of recorded blocks.
    Check {
        /// Number of the file.
        file: u32,
        /// Numbers of the blocks.
        blocks: Vec<u32>,
    },
    /// Write a block, if it matches its digest.
    Write {
        /// Number of the file.
        file: u32,
        /// Number of the block.
        block: u32,
        /// Digest and content.
        content: Vec<u8>,
    },
    /// Move a file to its place, if its digest matches the sender's.
    Publish {
        /// Number of the file.
        file: u32,
        /// Digests of its blocks.
        digests: Vec<ContentHash>,
        /// Digest from the sender.
        digest: ContentHash,
    },
    /// Close a file; its written part stays.
    Forget(u32),
}

/// Result of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The receiver can accept the file, or not.
    Begun {
        /// Number of the file.
        file: u32,
        /// Recorded blocks, and whether they come from a file with another size or time.
        result: Result<(Vec<u32>, bool), Reason>,
    },
    /// Digests of recorded blocks. An unreadable block has a digest of zeros.
    Checked {
        /// Number of the file.
        file: u32,
        /// Blocks and digests.
        blocks: Vec<(u32, ContentHash)>,
    },
    /// A block was written, or not; `Ok(None)` if the block does not match its digest.
    Written {
        /// Number of the file.
        file: u32,
        /// Number of the block.
        block: u32,
        /// Bytes of digest and content.
        length: usize,
        /// The digest.
        result: Result<Option<ContentHash>, Reason>,
    },
    /// The file is in its place, or not.
    Published {
        /// Number of the file.
        file: u32,
        /// The result.
        result: Result<(), Reason>,
    },
    /// A file is closed.
    Forgotten(u32),
}

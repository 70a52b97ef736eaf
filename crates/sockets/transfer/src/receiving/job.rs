//! Jobs of the receiving side, and its bounds.

use crate::blocks::ContentHash;
use crate::name::Name;
use crate::reason::Reason;
use crate::wire::Offer;

/// Bounds of what is taken of one sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveLimits {
    /// Files, one million by default.
    pub files: u64,
    /// Bytes of files that are to be written, 1 TB by default.
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
    /// See whether a file can be taken, and open what is there of it.
    Begin {
        /// Name of the file.
        name: Name,
        /// All else about it.
        offer: Offer,
    },
    /// Compute the digests of blocks that should be there.
    Check {
        /// Number of the file.
        file: u32,
        /// Numbers of the blocks.
        blocks: Vec<u32>,
    },
    /// Write a block, if it is what its digest says.
    Write {
        /// Number of the file.
        file: u32,
        /// Number of the block.
        block: u32,
        /// Digest and content.
        content: Vec<u8>,
    },
    /// Put a file in its place, if it is what the sender has.
    Publish {
        /// Number of the file.
        file: u32,
        /// Digests of its blocks.
        digests: Vec<ContentHash>,
        /// Digest that the sender has computed.
        digest: ContentHash,
    },
    /// Close a file; what is there of it is kept.
    Forget(u32),
}

/// Result of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The file can be taken, or not.
    Begun {
        /// Number of the file.
        file: u32,
        /// Blocks that should be there, and whether they are of a file with another size or time.
        result: Result<(Vec<u32>, bool), Reason>,
    },
    /// Digests of blocks that should be there. A block that cannot be read has a digest of zeros.
    Checked {
        /// Number of the file.
        file: u32,
        /// Blocks and digests.
        blocks: Vec<(u32, ContentHash)>,
    },
    /// A block was written, or not; `Ok(None)` if it is not what its digest says.
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

//! Messages of a transfer, as tags and contents of messages of a connection.
//!
//! The page "Transfers" of the book describes the format. The tag of a block's message holds the numbers of its file and block, so that the
//! receiver can write the block at its place in any order.

use crate::blocks::{BlockLayout, ContentHash, DIGEST};
use crate::name::LONGEST_NAME;
use crate::reason::{LONGEST_DETAIL, Reason, ReasonKind};
use bytes::{BufMut as _, Bytes, BytesMut};

/// Version of the format.
pub const VERSION: u32 = 2;
/// Bit that is set in tags of blocks.
const BLOCK: u64 = 1 << 63;
/// Prefix of the tags of other messages.
const CONTROL: u64 = 0x5452_0000_0000_0000;
/// Most digests in a message.
pub(crate) const MOST_DIGESTS: usize = 64;

/// Size, time and kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMetadata {
    /// Bytes of the file.
    pub size: u64,
    /// Time of the last modification: seconds since 1970, and nanoseconds beyond.
    pub modified: (i64, u32),
    /// True if the file can be executed.
    pub executable: bool,
}

/// Offer of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Number of the file in this transfer.
    pub file: u32,
    /// Size and blocks.
    pub geometry: BlockLayout,
    /// Time of the last modification.
    pub modified: (i64, u32),
    /// True if the file can be executed.
    pub executable: bool,
    /// Name; not checked yet.
    pub name: String,
}

/// A message that is not a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlMessage {
    /// First message of both ends. The sender gives the numbers of files and bytes.
    Greeting {
        /// Version of the format.
        version: u32,
        /// Files to send.
        files: u64,
        /// Bytes of these files.
        bytes: u64,
    },
    /// The sender offers a file.
    Offer(Offer),
    /// The receiver accepts a file, and will send digests of the blocks that it has.
    Accept {
        /// Number of the file.
        file: u32,
        /// Number of blocks that the receiver has.
        kept: u32,
        /// True if the blocks come from a file with another size or time.
        changed: bool,
    },
    /// Digests of blocks that the receiver has.
    Have {
        /// Number of the file.
        file: u32,
        /// Blocks and their digests.
        blocks: Vec<(u32, ContentHash)>,
    },
    /// The receiver does not accept a file, or no longer.
    Refuse {
        /// Number of the file.
        file: u32,
        /// The reason.
        reason: Reason,
    },
    /// A block did not match its digest, and the receiver requests it again.
    Again {
        /// Number of the file.
        file: u32,
        /// Number of the block.
        block: u32,
    },
    /// The sender has sent all blocks that the receiver did not have.
    Finish {
        /// Number of the file.
        file: u32,
        /// Number of sent blocks.
        sent: u32,
        /// Digest of the file.
        digest: ContentHash,
    },
    /// The sender withdraws a file.
    Withdraw {
        /// Number of the file.
        file: u32,
        /// The reason.
        reason: Reason,
    },
    /// The file is in its place.
    Done {
        /// Number of the file.
        file: u32,
    },
    /// Bytes of blocks that the receiver has written, over all files.
    Written {
        /// Bytes since the beginning of the transfer.
        bytes: u64,
    },
}

/// Content of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    Block { file: u32, block: u32 },
    Control(u8),
}

impl Tag {
    /// Parses a tag; `None` if it does not belong to a transfer.
    pub(crate) fn from_tag(tag: u64) -> Option<Self> {
        if tag & BLOCK != 0 {
            let file = (tag >> 32) as u32 & !(1 << 31);
            return Some(Self::Block {
                file,
                block: tag as u32,
            });
        }
        (tag & !0xff == CONTROL).then_some(Self::Control(tag as u8))
    }

    pub(crate) fn of_block(file: u32, block: u32) -> u64 {
        BLOCK | u64::from(file) << 32 | u64::from(block)
    }
}

impl ControlMessage {
    fn kind(&self) -> u8 {
        match self {
            Self::Greeting { .. } => 1,
            Self::Offer(_) => 2,
            Self::Accept { .. } => 3,
            Self::Have { .. } => 4,
            Self::Refuse { .. } => 5,
            Self::Again { .. } => 6,
            Self::Finish { .. } => 7,
            Self::Withdraw { .. } => 8,
            Self::Done { .. } => 9,
            Self::Written { .. } => 10,
        }
    }

    /// Tag and content.
    pub fn encode(&self) -> (u64, Bytes) {
        let mut to = BytesMut::new();
        match self {
            Self::Greeting {
                version,
                files,
                bytes,
            } => {
                to.put_u32(*version);
                to.put_u64(*files);
                to.put_u64(*bytes);
            }
            Self::Offer(offer) => offer.encode(&mut to),
            Self::Accept {
                file,
                kept,
                changed,
            } => {
                to.put_u32(*file);
                to.put_u32(*kept);
                to.put_u8((*changed).into());
            }
            Self::Have { file, blocks } => {
                to.put_u32(*file);
                for (block, digest) in blocks {
                    to.put_u32(*block);
                    to.put_slice(&digest.0);
                }
            }
            Self::Refuse { file, reason } | Self::Withdraw { file, reason } => {
                to.put_u32(*file);
                to.put_u8(reason.kind.code());
                to.put_slice(reason.detail.as_bytes());
            }
            Self::Again { file, block } => {
                to.put_u32(*file);
                to.put_u32(*block);
            }
            Self::Finish { file, sent, digest } => {
                to.put_u32(*file);
                to.put_u32(*sent);
                to.put_slice(&digest.0);
            }
            Self::Done { file } => to.put_u32(*file),
            Self::Written { bytes } => to.put_u64(*bytes),
        }
        (CONTROL | u64::from(self.kind()), to.freeze())
    }

    /// Parses a message that is not a block; `None` if it is malformed.
    pub fn decode(tag: u64, content: &[u8]) -> Option<Self> {
        let Some(Tag::Control(kind)) = Tag::from_tag(tag) else {
            return None;
        };
        let mut from = Reader(content);
        let message = match kind {
            1 => Self::Greeting {
                version: from.u32()?,
                files: from.u64()?,
                bytes: from.u64()?,
            },
            2 => Self::Offer(Offer::decode(&mut from)?),
            3 => Self::Accept {
                file: from.u32()?,
                kept: from.u32()?,
                changed: from.flag()?,
            },
            4 => Self::Have {
                file: from.u32()?,
                blocks: from.digests()?,
            },
            5 => Self::Refuse {
                file: from.u32()?,
                reason: from.reason()?,
            },
            6 => Self::Again {
                file: from.u32()?,
                block: from.u32()?,
            },
            7 => Self::Finish {
                file: from.u32()?,
                sent: from.u32()?,
                digest: from.digest()?,
            },
            8 => Self::Withdraw {
                file: from.u32()?,
                reason: from.reason()?,
            },
            9 => Self::Done { file: from.u32()? },
            10 => Self::Written { bytes: from.u64()? },
            _ => return None,
        };
        // A greeting of a later version may be longer, and this version must still parse it.
        (from.0.is_empty() || kind == 1).then_some(message)
    }
}

impl Offer {
    fn encode(&self, to: &mut BytesMut) {
        to.put_u32(self.file);
        to.put_u64(self.geometry.size());
        to.put_u32(self.geometry.block());
        to.put_i64(self.modified.0);
        to.put_u32(self.modified.1);
        to.put_u8(self.executable.into());
        to.put_slice(self.name.as_bytes());
    }

    fn decode(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            file: from.u32().filter(|file| file >> 31 == 0)?,
            geometry: BlockLayout::new(from.u64()?, from.u32()?)?,
            modified: (
                from.u64()? as i64,
                from.u32().filter(|nanos| *nanos < 1_000_000_000)?,
            ),
            executable: from.flag()?,
            name: from.text(LONGEST_NAME)?,
        })
    }

    /// Size, time and kind of the file.
    pub fn facts(&self) -> FileMetadata {
        FileMetadata {
            size: self.geometry.size(),
            modified: self.modified,
            executable: self.executable,
        }
    }
}

/// Content of a message that is being read.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn flag(&mut self) -> Option<bool> {
        let [flag] = self.array()?;
        (flag <= 1).then_some(flag == 1)
    }

    fn digest(&mut self) -> Option<ContentHash> {
        self.array::<DIGEST>().map(ContentHash)
    }

    fn digests(&mut self) -> Option<Vec<(u32, ContentHash)>> {
        let count = self.0.len() / (4 + DIGEST);
        let fits = self.0.len().is_multiple_of(4 + DIGEST) && (1..=MOST_DIGESTS).contains(&count);
        fits.then(|| {
            (0..count)
                .map(|_| Some((self.u32()?, self.digest()?)))
                .collect()
        })?
    }

    /// The rest as text.
    fn text(&mut self, longest: usize) -> Option<String> {
        let rest = std::mem::take(&mut self.0);
        let text = str::from_utf8(rest).ok()?;
        (text.len() <= longest).then(|| text.to_owned())
    }

    fn reason(&mut self) -> Option<Reason> {
        let [code] = self.array()?;
        Some(Reason::new(
            ReasonKind::from_code(code),
            &self.text(LONGEST_DETAIL)?,
        ))
    }
}

//! Records of partial files: the offered file, and the written blocks.
//!
//! A record is a few lines of text, followed by the number of each written block in four bytes. A record is only a hint: a block counts
//! once its digest matches the sender's.

use crate::blocks::{BlockLayout, BlockSet, MOST_BLOCKS};
use crate::name::LONGEST_NAME;
use crate::wire::FileMetadata;

/// Longest record: the text, and twice each block, as some may be written twice.
pub(crate) const LONGEST_RECORD: u64 = LONGEST_NAME as u64 + 256 + 8 * MOST_BLOCKS as u64;

const FIRST_LINE: &str = "clearway partial file 1";

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) facts: FileMetadata,
    pub(crate) block: u32,
    /// Blocks, in ascending order.
    pub(crate) blocks: Vec<u32>,
}

impl Record {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (seconds, nanos) = self.facts.modified;
        let mut bytes = format!(
            "{FIRST_LINE}\nname {}\nsize {}\nblock {}\nmodified {seconds} {nanos}\nexecutable {}\n\n",
            self.name, self.facts.size, self.block, self.facts.executable,
        )
        .into_bytes();
        self.blocks
            .iter()
            .for_each(|block| bytes.extend(block.to_be_bytes()));
        bytes
    }

    /// Parses a record; `None` if it is not a record. An incomplete block number at the end does not count.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(2).position(|pair| pair == b"\n\n")?;
        let text = str::from_utf8(&bytes[..end]).ok()?;
        let mut lines = text.split('\n');
        let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ');
        // The first line also contains a space.
        let first = FIRST_LINE.rsplit_once(' ')?;
        (value(first.0)? == first.1).then_some(())?;
        let name = value("name")?.to_owned();
        let size = value("size")?.parse().ok()?;
        let block = value("block")?.parse().ok()?;
        let (seconds, nanos) = value("modified")?.split_once(' ')?;
        let facts = FileMetadata {
            size,
            modified: (seconds.parse().ok()?, nanos.parse().ok()?),
            executable: value("executable")?.parse().ok()?,
        };
        let geometry = BlockLayout::new(size, block)?;
        let mut set = BlockSet::new(geometry.blocks());
        for number in bytes[end + 2..].as_chunks::<4>().0 {
            set.insert(u32::from_be_bytes(*number));
        }
        let blocks = (0..geometry.blocks())
            .filter(|block| set.contains(*block))
            .collect();
        Some(Self {
            name,
            facts,
            block,
            blocks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            name: "folder/file name".into(),
            facts: FileMetadata {
                size: 300_000,
                modified: (-5, 7),
                executable: true,
            },
            block: 1 << 16,
            blocks: vec![0, 2, 4],
        }
    }

    #[test]
    fn records_are_read_as_they_are_written() {
        assert_eq!(Record::decode(&record().encode()), Some(record()));
        let none = Record {
            blocks: vec![],
            ..record()
        };
        assert_eq!(Record::decode(&none.encode()), Some(none));
    }

    #[test]
    fn a_record_that_was_cut_short_has_fewer_blocks_or_is_none() {
        let bytes = record().encode();
        for end in 0..bytes.len() {
            let blocks = Record::decode(&bytes[..end]).map(|read| read.blocks.len());
            let text = bytes.len() - 12;
            assert_eq!(blocks, (end >= text).then(|| (end - text) / 4), "{end}");
        }
    }

    #[test]
    fn a_damaged_record_has_no_block_that_the_file_has_not() {
        let mut bytes = record().encode();
        bytes.extend([0xff; 4]);
        bytes.extend([0, 0, 0, 2, 0, 0, 0, 1, 0, 0]);
        assert_eq!(Record::decode(&bytes).unwrap().blocks, [0, 1, 2, 4]);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            if let Some(read) = Record::decode(&damaged) {
                let geometry = BlockLayout::new(read.facts.size, read.block).unwrap();
                assert!(read.blocks.iter().all(|block| *block < geometry.blocks()));
            }
        }
    }
}

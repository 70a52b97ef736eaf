//! Blocks of a file: their places, sets of blocks, and their digests.

use ring::digest::{Context, SHA256, digest};
use std::fmt;

/// Length of blocks of files up to [`FEW_BLOCKS`] blocks.
const USUAL_BLOCK: u32 = 1 << 20;
/// Shortest block.
pub const SHORTEST_BLOCK: u32 = 1 << 16;
/// Longest block.
pub const LONGEST_BLOCK: u32 = 1 << 24;
/// Number of blocks above which a file gets longer blocks.
const FEW_BLOCKS: u64 = 1 << 16;
/// Most blocks of a file: their digests are 32 MiB.
pub const MOST_BLOCKS: u32 = 1 << 20;

/// Size of a file and of its blocks. The last block may be shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockLayout {
    size: u64,
    block: u32,
}

impl BlockLayout {
    /// Blocks of a file of `size` bytes; `None` beyond 16 TiB.
    pub fn for_size(size: u64) -> Option<Self> {
        let mut block = USUAL_BLOCK;
        while block < LONGEST_BLOCK && size.div_ceil(u64::from(block)) > FEW_BLOCKS {
            block *= 2;
        }
        Self::new(size, block)
    }

    /// Blocks of `block` bytes; `None` if they are too short, too long or too many.
    pub fn new(size: u64, block: u32) -> Option<Self> {
        let fits = (SHORTEST_BLOCK..=LONGEST_BLOCK).contains(&block)
            && size.div_ceil(u64::from(block)) <= u64::from(MOST_BLOCKS);
        fits.then_some(Self { size, block })
    }

    /// Bytes of the file.
    pub fn size(self) -> u64 {
        self.size
    }

    /// Bytes of a block.
    pub fn block(self) -> u32 {
        self.block
    }

    /// Number of blocks.
    pub fn blocks(self) -> u32 {
        self.size.div_ceil(u64::from(self.block)) as u32
    }

    /// Offset of a block in the file, and its length; `None` if there is no such block.
    pub fn place(self, block: u32) -> Option<(u64, usize)> {
        let offset = u64::from(block) * u64::from(self.block);
        let left = self.size.checked_sub(offset).filter(|left| *left > 0)?;
        Some((offset, left.min(u64::from(self.block)) as usize))
    }

    /// Length of a block, or zero if there is no such block.
    pub fn length(self, block: u32) -> u64 {
        self.place(block).map_or(0, |(_, length)| length as u64)
    }
}

/// A set of blocks.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockSet {
    words: Vec<u64>,
    count: u32,
}

impl BlockSet {
    /// An empty set, of blocks below `blocks`.
    pub(crate) fn new(blocks: u32) -> Self {
        Self {
            words: vec![0; blocks.div_ceil(64) as usize],
            count: 0,
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.count
    }

    pub(crate) fn contains(&self, block: u32) -> bool {
        let word = self.words.get(block as usize / 64).copied().unwrap_or(0);
        word >> (block % 64) & 1 == 1
    }

    /// Adds a block; false if the set has the block already, or its number is out of range.
    pub(crate) fn insert(&mut self, block: u32) -> bool {
        if self.contains(block) {
            return false;
        }
        let Some(word) = self.words.get_mut(block as usize / 64) else {
            return false;
        };
        *word |= 1 << (block % 64);
        self.count += 1;
        true
    }

    /// Removes a block; false if the set does not have the block.
    pub(crate) fn remove(&mut self, block: u32) -> bool {
        let is_there = self.contains(block);
        if is_there {
            self.words[block as usize / 64] &= !(1 << (block % 64));
            self.count -= 1;
        }
        is_there
    }
}

/// Length of a digest.
pub(crate) const DIGEST: usize = 32;

/// SHA-256 of a block, or of a file.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct ContentHash(pub [u8; DIGEST]);

impl ContentHash {
    /// Digest of a block's bytes.
    pub fn of_block(bytes: &[u8]) -> Self {
        Self::from(digest(&SHA256, bytes))
    }

    /// Digest of a file: of its size, the length of its blocks, and their digests in the order of the file. The order in which blocks were
    /// read or arrived does not matter.
    pub fn of_file(geometry: BlockLayout, blocks: &[Self]) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(b"clearway transfer 1");
        context.update(&geometry.size.to_be_bytes());
        context.update(&geometry.block.to_be_bytes());
        blocks.iter().for_each(|block| context.update(&block.0));
        Self::from(context.finish())
    }
}

impl From<ring::digest::Digest> for ContentHash {
    fn from(digest: ring::digest::Digest) -> Self {
        let mut bytes = [0; DIGEST];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_a_file_exactly() {
        for (size, block) in [
            (0, 1 << 16),
            (1, 1 << 16),
            (1 << 16, 1 << 16),
            ((1 << 20) + 1, 1 << 18),
        ] {
            let geometry = BlockLayout::new(size, block).unwrap();
            let places: Vec<_> = (0..geometry.blocks())
                .map(|number| geometry.place(number).unwrap())
                .collect();
            let mut end = 0;
            for (offset, length) in places {
                assert!(offset == end && length > 0 && length <= block as usize);
                end += length as u64;
            }
            assert_eq!(end, size);
            assert_eq!(geometry.place(geometry.blocks()), None);
            assert_eq!(geometry.place(u32::MAX), None);
        }
    }

    #[test]
    fn longer_files_have_longer_blocks() {
        let of = |size| {
            BlockLayout::for_size(size).map(|geometry| (geometry.block(), geometry.blocks()))
        };
        assert_eq!(of(0), Some((1 << 20, 0)));
        assert_eq!(of(1 << 36), Some((1 << 20, 1 << 16)));
        assert_eq!(of((1 << 36) + 1), Some((1 << 21, (1 << 15) + 1)));
        assert_eq!(of(1 << 44), Some((1 << 24, 1 << 20)));
        assert_eq!(of((1 << 44) + 1), None);
        assert_eq!(of(u64::MAX), None);
        assert_eq!(BlockLayout::new(10, 100), None);
        assert_eq!(BlockLayout::new(u64::MAX, 1 << 16), None);
    }

    #[test]
    fn sets_count_each_block_once() {
        let mut set = BlockSet::new(65);
        assert!(set.insert(64) && set.insert(0) && !set.insert(64) && !set.insert(1000));
        assert_eq!(
            (set.len(), set.contains(64), set.contains(1000)),
            (2, true, false)
        );
        assert!(set.remove(64) && !set.remove(64));
        assert_eq!(set.len(), 1);
    }

    #[test]
    fn digests_of_files_depend_on_all_that_they_are_made_of() {
        let [a, b] = [b"a", b"b"].map(|text| ContentHash::of_block(text));
        assert!(
            format!("{a:?}")
                .starts_with("ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb")
        );
        let two = BlockLayout::new((1 << 16) + 1, 1 << 16).unwrap();
        let other = BlockLayout::new((1 << 16) + 1, 1 << 17).unwrap();
        let digests = [
            ContentHash::of_file(two, &[a, b]),
            ContentHash::of_file(two, &[b, a]),
            ContentHash::of_file(other, &[a, b]),
            ContentHash::of_file(BlockLayout::new((1 << 16) + 2, 1 << 16).unwrap(), &[a, b]),
        ];
        for (index, digest) in digests.iter().enumerate() {
            assert!(!digests[..index].contains(digest));
        }
    }
}

//! A buffer cut into parts as equal as whole bytes allow.

use std::ops::Range;

/// A buffer cut into blocks: the first `size mod count` have one byte more than the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    size: u64,
    count: u64,
}

impl Blocks {
    /// `count` blocks, above zero, of a buffer of `size` bytes.
    pub fn new(size: u64, count: u32) -> Self {
        let count = u64::from(count);
        Self { size, count }
    }

    /// Offset of block `index`; the end of the buffer for `index` = `count`.
    pub fn start(&self, index: u32) -> u64 {
        let index = u64::from(index);
        index * (self.size / self.count) + index.min(self.size % self.count)
    }

    /// Byte range of block `index`.
    pub fn range(&self, index: u32) -> Range<u64> {
        self.span(index..index + 1)
    }

    /// Byte range of part `number` of block `index`, which is cut into `parts` as equal as whole bytes allow.
    pub(super) fn part(&self, index: u32, (number, parts): (u32, u32)) -> Range<u64> {
        let block = self.range(index);
        let part = Self::new(block.end - block.start, parts).range(number);
        block.start + part.start..block.start + part.end
    }

    /// Byte range of consecutive blocks.
    pub fn span(&self, blocks: Range<u32>) -> Range<u64> {
        self.start(blocks.start)..self.start(blocks.end)
    }

    /// The block of the byte at `offset`.
    pub fn block_at(&self, offset: u64) -> u32 {
        let (small, longer) = (self.size / self.count, self.size % self.count);
        let end_of_longer = longer * (small + 1);
        let block = match offset < end_of_longer {
            true => offset / (small + 1),
            // If blocks had no bytes beyond the longer ones, no offset would lie there.
            false => longer + (offset - end_of_longer) / small,
        };
        block as u32
    }
}

/// Ranks whose blocks lie one behind the other in a buffer.
///
/// The buffer is cut into `splits` parts, and each of these into a block for each rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockOwners {
    splits: u32,
    /// The rank at each place; empty if it is the number of the place.
    ranks: Vec<u32>,
}

impl BlockOwners {
    /// One part, in which block r is that of rank r.
    pub const NATURAL: Self = Self {
        splits: 1,
        ranks: Vec::new(),
    };

    /// `splits` parts, in each of which blocks are those of `ranks`, in this order.
    pub(super) fn new(splits: u32, ranks: Vec<u32>) -> Self {
        let is_natural = (0..).zip(&ranks).all(|(place, rank)| place == *rank);
        let ranks = if is_natural { Vec::new() } else { ranks };
        Self { splits, ranks }
    }

    /// Byte ranges of the blocks of a buffer of `size` bytes, with the rank of each.
    pub fn blocks(&self, size: u64, ranks: u32) -> impl Iterator<Item = (u32, Range<u64>)> + '_ {
        let parts = Blocks::new(size, self.splits);
        (0..self.splits).flat_map(move |split| {
            let part = parts.range(split);
            let blocks = Blocks::new(part.end - part.start, ranks);
            (0..ranks).map(move |place| {
                let block = blocks.range(place);
                let range = part.start + block.start..part.start + block.end;
                (self.at(place), range)
            })
        })
    }

    /// The rank whose block has the byte at `offset` of a buffer of `size` bytes.
    pub fn owner(&self, offset: u64, (size, ranks): (u64, u32)) -> u32 {
        let parts = Blocks::new(size, self.splits);
        let part = parts.range(parts.block_at(offset));
        let blocks = Blocks::new(part.end - part.start, ranks);
        self.at(blocks.block_at(offset - part.start))
    }

    fn at(&self, place: u32) -> u32 {
        self.ranks.get(place as usize).copied().unwrap_or(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_tile_the_buffer_and_differ_by_one_byte_at_most() {
        for size in [1, 2, 7, 12, 13, 1_000_003] {
            for count in [1, 2, 3, 7, 12, 64] {
                let blocks = Blocks::new(size, count);
                assert_eq!((blocks.start(0), blocks.start(count)), (0, size));
                for index in 0..count {
                    let range = blocks.range(index);
                    let small = size / u64::from(count);
                    assert!((small..=small + 1).contains(&(range.end - range.start)));
                    if !range.is_empty() {
                        assert_eq!(blocks.block_at(range.start), index);
                        assert_eq!(blocks.block_at(range.end - 1), index);
                    }
                }
            }
        }
    }
}

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

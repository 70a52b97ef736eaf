//! Tables of next hops by group, of which every switch has one.
//!
//! All packets look into them, and those of a large fabric together are in no cache. Most of a table says the same of neighbouring groups:
//! a leaf sends packets for all other leaves to the same switches, and a core switch those for a pod to the same ports. A block of groups
//! with one answer takes the room of one.

use std::sync::Arc;

/// Groups in a block, a power of two.
const BLOCK: usize = 32;
/// The bits of a group that tell groups of one block apart.
const WITHIN: usize = BLOCK - 1;
/// The bits of an entry of `blocks` above those.
const SHIFT: u32 = BLOCK.ilog2();

/// A number for each group: the place of its next hops. Clones share the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupTable {
    /// For each block the place of its first number in `numbers`, and in the bits below `SHIFT` those bits of a group that are added to it:
    /// all, or none if the block has one number.
    blocks: Arc<[u32]>,
    numbers: Arc<[u16]>,
}

impl GroupTable {
    /// The number of a group.
    #[inline(always)]
    pub(super) fn get(&self, group: u16) -> u16 {
        let group = usize::from(group);
        self.numbers[place(self.blocks[group / BLOCK], group)]
    }

    /// The highest number.
    pub(super) fn highest(&self) -> Option<u16> {
        self.numbers.iter().copied().max()
    }
}

/// The place of the number of `group`, which is in `block`.
#[inline(always)]
fn place(block: u32, group: usize) -> usize {
    (block >> SHIFT) as usize + (group & WITHIN & block as usize)
}

/// [`GroupTable`] while it grows.
#[derive(Debug, Default)]
pub(super) struct GroupTableBuilder {
    /// As in the table. The last block has all of its numbers.
    blocks: Vec<u32>,
    numbers: Vec<u16>,
    /// Groups so far.
    groups: usize,
}

impl GroupTableBuilder {
    /// Appends the number of the next group.
    pub(super) fn push(&mut self, number: u16) {
        if self.groups.is_multiple_of(BLOCK) {
            self.end_block();
            let first = self.numbers.len() as u32;
            self.blocks.push(first << SHIFT | WITHIN as u32);
        }
        self.numbers.push(number);
        self.groups += 1;
    }

    /// The number of a group that has one.
    pub(super) fn get(&self, group: usize) -> u16 {
        self.numbers[place(self.blocks[group / BLOCK], group)]
    }

    /// The last block is complete.
    fn end_block(&mut self) {
        let Some(last) = self.blocks.last_mut() else {
            return;
        };
        let first = (*last >> SHIFT) as usize;
        let numbers = &self.numbers[first..];
        if numbers.windows(2).all(|pair| pair[0] == pair[1]) {
            *last = (first as u32) << SHIFT;
            self.numbers.truncate(first + 1);
        }
    }

    pub(super) fn finish(mut self) -> GroupTable {
        self.end_block();
        GroupTable {
            blocks: self.blocks.into(),
            numbers: self.numbers.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Runs of equal numbers, of any lengths.
        #[test]
        fn every_group_has_the_number_that_it_was_given(runs in prop::collection::vec((0u16..4, 1usize..100), 0..30)) {
            let numbers: Vec<u16> = runs
                .into_iter()
                .flat_map(|(number, groups)| std::iter::repeat_n(number, groups))
                .collect();
            let mut builder = GroupTableBuilder::default();
            for (group, number) in numbers.iter().enumerate() {
                builder.push(*number);
                prop_assert_eq!(builder.get(group), *number);
                prop_assert_eq!(builder.get(group / 2), numbers[group / 2]);
            }
            let table = builder.finish();
            prop_assert_eq!(table.highest(), numbers.iter().copied().max());
            for (group, number) in numbers.iter().enumerate() {
                prop_assert_eq!(table.get(group as u16), *number);
            }
        }
    }

    #[test]
    fn blocks_with_one_number_take_the_room_of_one() {
        let mut builder = GroupTableBuilder::default();
        for group in 0..10 * BLOCK + 3 {
            builder.push(u16::from(group == 70));
        }
        let table = builder.finish();
        assert_eq!(table.blocks.len(), 11);
        assert_eq!(table.numbers.len(), 10 + BLOCK);
    }
}

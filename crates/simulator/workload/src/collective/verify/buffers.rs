//! Sets of contributors in place of data.

use super::fault::{CollectiveFault, named};
use super::layout::{After, Before, Layout};
use crate::Rank;
use std::ops::Range;

/// The contributors to one byte of each rank.
pub(super) struct Buffers {
    ranks: u32,
    words: usize,
    pub(super) is_set: Vec<bool>,
    sets: Vec<u64>,
}

impl Buffers {
    pub(super) fn new(ranks: u32) -> Self {
        let words = (ranks as usize).div_ceil(64);
        Self {
            ranks,
            words,
            is_set: vec![false; ranks as usize],
            sets: vec![0; words * ranks as usize],
        }
    }

    pub(super) fn begin(&mut self, layout: &Layout<'_>, at: u64) {
        self.sets.fill(0);
        for rank in 0..self.ranks {
            let before = layout.before(rank, at);
            self.is_set[rank as usize] = before != Before::Nothing;
            if before == Before::Own {
                self.sets[rank as usize * self.words + rank as usize / 64] |= 1 << (rank % 64);
            }
        }
    }

    fn has(&self, rank: u32, contributor: u32) -> bool {
        let word = self.sets[rank as usize * self.words + contributor as usize / 64];
        word & (1 << (contributor % 64)) != 0
    }

    /// Adds the contributors of `src` to those of `dst`. Returns a contributor that both have, if any.
    pub(super) fn add(&mut self, src: Rank, dst: Rank) -> Option<Rank> {
        let (src, dst) = (src.index() * self.words, dst.index() * self.words);
        for word in 0..self.words {
            let (from, to) = (self.sets[src + word], self.sets[dst + word]);
            if from & to != 0 {
                let contributor = word as u32 * 64 + (from & to).trailing_zeros();
                return Some(Rank(contributor));
            }
            self.sets[dst + word] = from | to;
        }
        None
    }

    pub(super) fn copy(&mut self, src: Rank, dst: Rank) {
        let from = src.index() * self.words;
        self.sets
            .copy_within(from..from + self.words, dst.index() * self.words);
        self.is_set[dst.index()] = true;
    }

    /// Checks that every rank has what it must have. A rank cannot have data that it must not have: only ranks whose data belongs to a
    /// place have anything there in the beginning.
    pub(super) fn check(
        &self,
        layout: &Layout<'_>,
        range: &Range<u64>,
    ) -> Result<(), CollectiveFault> {
        for rank in 0..self.ranks {
            let lacks = |contributor: &u32| !self.has(rank, *contributor);
            let lacking = match layout.after(rank, range.start) {
                After::Anything => None,
                After::From(only) => Some(only).filter(lacks),
                After::Sum => {
                    let mut contributors = (0..self.ranks).filter(|rank| layout.contributes(*rank));
                    contributors.find(lacks)
                }
            };
            if let Some(contributor) = lacking {
                return Err(CollectiveFault::Missing {
                    rank: Rank(rank),
                    range: named(range),
                    contributor: Rank(contributor),
                });
            }
        }
        Ok(())
    }
}

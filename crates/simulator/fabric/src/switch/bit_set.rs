//! Sets of ports.

/// A set of small numbers that is cheap to walk through in order.
#[derive(Debug, Default)]
pub(super) struct BitSet(Vec<u64>);

impl BitSet {
    pub(super) fn new(size: usize) -> Self {
        Self(vec![0; size.div_ceil(64)])
    }
    #[inline]
    pub(super) fn insert(&mut self, index: usize) {
        self.0[index / 64] |= 1 << (index % 64);
    }
    /// Calls `keep` for each member in ascending order; those for which it says no are removed.
    #[inline]
    pub(super) fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        self.retain_looking_ahead(|member, _| keep(member));
    }
    /// As [`retain`](Self::retain); `keep` also sees the members that follow.
    #[inline]
    pub(super) fn retain_looking_ahead(
        &mut self,
        mut keep: impl FnMut(usize, NextMembers) -> bool,
    ) {
        for (word, bits) in self.0.iter_mut().enumerate() {
            let mut left = *bits;
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                let next = NextMembers { word, bits: left };
                if !keep(word * 64 + bit as usize, next) {
                    *bits &= !(1 << bit);
                }
            }
        }
    }
}

/// The members of a set that follow one, in ascending order, up to the next multiple of 64.
#[derive(Clone, Copy)]
pub(super) struct NextMembers {
    word: usize,
    bits: u64,
}

impl Iterator for NextMembers {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.bits == 0 {
            return None;
        }
        let bit = self.bits.trailing_zeros();
        self.bits &= self.bits - 1;
        Some(self.word * 64 + bit as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_sets_walk_in_order_and_forget() {
        let mut set = BitSet::new(130);
        [129, 0, 64].into_iter().for_each(|index| set.insert(index));
        let mut seen = Vec::new();
        set.retain(|index| {
            seen.push(index);
            index != 64
        });
        set.retain(|index| {
            seen.push(index);
            true
        });
        assert_eq!(seen, [0, 64, 129, 0, 129]);
    }

    #[test]
    fn members_that_follow_are_seen() {
        let mut set = BitSet::new(130);
        [3, 5, 63, 64, 100]
            .into_iter()
            .for_each(|index| set.insert(index));
        let mut seen = Vec::new();
        set.retain_looking_ahead(|index, next| {
            seen.push((index, next.collect::<Vec<_>>()));
            true
        });
        let expected = [
            (3, vec![5, 63]),
            (5, vec![63]),
            (63, vec![]),
            (64, vec![100]),
            (100, vec![]),
        ];
        assert_eq!(seen, expected);
    }
}

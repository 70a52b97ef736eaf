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
        for (word, bits) in self.0.iter_mut().enumerate() {
            let mut left = *bits;
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                if !keep(word * 64 + bit as usize) {
                    *bits &= !(1 << bit);
                }
            }
        }
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
}

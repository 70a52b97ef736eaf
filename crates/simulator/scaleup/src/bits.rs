//! A set of small numbers.

/// A set of port or GPU numbers that is emptied as often as it is filled.
#[derive(Debug, Default)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// An empty set for numbers below `bound`.
    pub(crate) fn new(bound: usize) -> Self {
        Self(vec![0; bound.div_ceil(64)])
    }

    #[inline]
    pub(crate) fn insert(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    #[inline]
    pub(crate) fn contains(&self, number: usize) -> bool {
        self.0[number / 64] & 1 << (number % 64) != 0
    }

    #[inline]
    pub(crate) fn remove(&mut self, number: usize) {
        self.0[number / 64] &= !(1 << (number % 64));
    }

    /// The smallest member of at least `from`.
    #[inline]
    pub(crate) fn next(&self, from: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = *self.0.get(word)? & u64::MAX << (from % 64);
        loop {
            if bits != 0 {
                return Some(word * 64 + bits.trailing_zeros() as usize);
            }
            word += 1;
            bits = *self.0.get(word)?;
        }
    }

    /// Takes out the smallest member of at least `from`.
    #[inline]
    pub(crate) fn take(&mut self, from: usize) -> Option<usize> {
        let number = self.next(from)?;
        self.remove(number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_out_in_order() {
        let mut bits = Bits::new(200);
        for number in [130, 0, 63, 64, 199] {
            bits.insert(number);
        }
        assert!(bits.contains(64) && !bits.contains(65));
        assert_eq!(bits.next(65), Some(130));
        assert_eq!(bits.next(200), None);
        let mut out = Vec::new();
        while let Some(number) = bits.take(0) {
            out.push(number);
        }
        assert_eq!(out, [0, 63, 64, 130, 199]);
    }
}

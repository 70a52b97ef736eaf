//! The receiver's bitmap: packets beyond the expected one that have arrived.

use clearway_prefetch::prefetch;

/// A ring of bits addressed by sequence number. It holds `capacity` consecutive numbers; its owner keeps track of which.
#[derive(Debug, Clone)]
pub(crate) struct Bitmap {
    words: Box<[u64]>,
}

impl Bitmap {
    /// Creates a ring of `capacity` bits, a power of two of at least 64.
    pub(crate) fn new(capacity: u32) -> Self {
        debug_assert!(capacity.is_power_of_two() && capacity >= 64);
        Self {
            words: vec![0; capacity as usize / 64].into_boxed_slice(),
        }
    }

    #[inline]
    fn word(&self, psn: u64) -> usize {
        (psn >> 6) as usize & (self.words.len() - 1)
    }

    /// Loads the word of `psn` into the caches.
    #[inline]
    pub(crate) fn prefetch(&self, psn: u64) {
        prefetch(&self.words[self.word(psn)]);
    }

    /// Sets the bit of `psn`; false if it was set before.
    #[inline]
    pub(crate) fn insert(&mut self, psn: u64) -> bool {
        let (word, bit) = (self.word(psn), 1u64 << (psn & 63));
        let fresh = self.words[word] & bit == 0;
        self.words[word] |= bit;
        fresh
    }

    /// The bits of `base..base + 64`.
    #[inline(always)]
    pub(crate) fn segment(&self, base: u64) -> u64 {
        let shift = base & 63;
        let low = self.words[self.word(base)] >> shift;
        if shift == 0 {
            return low;
        }
        low | self.words[self.word(base + 64)] << (64 - shift)
    }

    /// Clears the run of set bits that begins at `from` and returns its length.
    pub(crate) fn take_run(&mut self, from: u64) -> u64 {
        let mut psn = from;
        loop {
            let (word, shift) = (self.word(psn), psn & 63);
            // Shifting fills with zeros, so that the run ends at the word's end at the latest.
            let run = u64::from((self.words[word] >> shift).trailing_ones());
            self.words[word] &= !(ones(run) << shift);
            psn += run;
            if shift + run < 64 || run == 0 {
                return psn - from;
            }
        }
    }
}

/// The lowest `count` bits, up to 64.
#[inline]
pub(crate) fn ones(count: u64) -> u64 {
    if count >= 64 {
        u64::MAX
    } else {
        (1 << count) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn runs_cross_words_and_the_end_of_the_ring() {
        let mut bitmap = Bitmap::new(256);
        (200..400).for_each(|psn| assert!(bitmap.insert(psn)));
        assert!(!bitmap.insert(399));
        assert_eq!(bitmap.segment(199), u64::MAX << 1);
        assert_eq!(bitmap.take_run(200), 200);
        assert_eq!(bitmap.take_run(400), 0);
        (0..4).for_each(|word| assert_eq!(bitmap.segment(word * 64), 0));
    }

    proptest! {
        #[test]
        fn agrees_with_a_set(offset in 0u64..1000, psns in prop::collection::vec(0u64..256, 1..300)) {
            let (mut bitmap, mut set) = (Bitmap::new(256), BTreeSet::new());
            for psn in psns {
                prop_assert_eq!(bitmap.insert(offset + psn), set.insert(offset + psn));
            }
            for base in offset..=offset + 192 {
                let expected = (0..64).fold(0, |bits, k| bits | u64::from(set.contains(&(base + k))) << k);
                prop_assert_eq!(bitmap.segment(base), expected);
            }
            let run = (offset..).take_while(|psn| set.contains(psn)).count() as u64;
            prop_assert_eq!(bitmap.take_run(offset), run);
        }
    }
}

//! Mixing and digests: small, fixed, the same on every machine.

use std::fmt;

/// A bijective mix of 64 bits in which every input bit moves about half of the output bits
/// (the finaliser of SplitMix64, Steele, Lea and Flood, OOPSLA 2014).
#[inline]
pub const fn mix64(value: u64) -> u64 {
    let mut x = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A hash over a *set* of records: each record's fields are mixed in order and the records are summed, so the order in which threads add
/// records does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Digest(u64);

impl Digest {
    /// Adds one record.
    #[inline]
    pub fn add(&mut self, record: &[u64]) {
        let hash = record
            .iter()
            .fold(0x243f_6a88_85a3_08d3, |hash, &field| mix64(hash ^ field));
        self.0 = self.0.wrapping_add(hash);
    }
    /// Adds all the records of `other`.
    #[inline]
    pub fn merge(&mut self, other: Self) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_records_does_not_matter_but_order_of_fields_does() {
        let digest = |records: &[&[u64]]| {
            let mut digest = Digest::default();
            records.iter().for_each(|record| digest.add(record));
            digest
        };
        assert_eq!(digest(&[&[1, 2], &[3, 4]]), digest(&[&[3, 4], &[1, 2]]));
        assert_ne!(digest(&[&[1, 2]]), digest(&[&[2, 1]]));
        assert_ne!(digest(&[&[1, 2], &[3, 4]]), digest(&[&[1, 4], &[3, 2]]));
        let mut halves = digest(&[&[1, 2]]);
        halves.merge(digest(&[&[3, 4]]));
        assert_eq!(halves, digest(&[&[1, 2], &[3, 4]]));
    }

    #[test]
    fn the_mix_is_pinned() {
        // The first outputs of SplitMix64 seeded with 0 and 1.
        assert_eq!(mix64(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix64(1), 0x910a_2dec_8902_5cc1);
    }
}

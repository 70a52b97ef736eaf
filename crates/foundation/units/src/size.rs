//! Sizes in bytes and packets.

use crate::decimal::{
    ParseUnitError, is_bare_zero, scaled_integer, split_unit, unit_advice, write_scaled,
};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::str::FromStr;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

/// A number of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Packets(pub u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }
    /// The number itself.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
    /// The number as a float, for ratios.
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }
    /// The difference, or zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// Number of packets with at most `payload` bytes each that carry this many bytes; an empty message needs one.
    pub const fn packets_of(self, payload: u32) -> Packets {
        let packets = self.0.div_ceil(payload as u64);
        Packets(if packets == 0 { 1 } else { packets })
    }
}

impl Add for Bytes {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}
impl AddAssign for Bytes {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}
impl Sub for Bytes {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}
impl SubAssign for Bytes {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}
impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The largest unit that leaves at most one decimal: 1.5KB, but 4096B.
        let units = [("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000)];
        let fits = |&(_, unit): &(&str, u64)| self.0 >= unit && self.0.is_multiple_of(unit / 10);
        let (name, unit) = units.into_iter().find(fits).unwrap_or(("B", 1));
        write_scaled(f, self.0, unit, name)
    }
}

pub(crate) const SIZE_UNITS: [(&str, u64); 10] = [
    ("B", 1),
    ("KB", 1_000),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

impl Bytes {
    /// Advice on the unit of `text`, which is not a size; `None` if the unit is correct.
    pub(crate) fn unit_advice(text: &str) -> Option<String> {
        unit_advice(
            text,
            "a size",
            SIZE_UNITS.iter().map(|(name, _)| *name),
            "B",
        )
    }
}

impl FromStr for Bytes {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        if is_bare_zero(text) {
            return Ok(Self::ZERO);
        }
        let (number, unit) = split_unit(text);
        SIZE_UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .and_then(|&(_, scale)| scaled_integer(number, scale))
            .map(Self)
            .ok_or(ParseUnitError {
                expected: "a size such as `2MB`, `64KiB` or `4096B`",
            })
    }
}

impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn packet_counts() {
        assert_eq!(Bytes::new(2_000_000).packets_of(4086), Packets(490));
        assert_eq!(Bytes::new(4086).packets_of(4086), Packets(1));
        assert_eq!(Bytes::ZERO.packets_of(4086), Packets(1));
    }

    proptest! {
        #[test]
        fn printing_loses_nothing(n in any::<u64>()) {
            let bytes = Bytes::new(n);
            prop_assert_eq!(bytes.to_string().parse::<Bytes>().unwrap(), bytes);
        }
    }
}

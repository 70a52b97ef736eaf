//! Instants and spans of simulated time.

use crate::decimal::{
    ParseUnitError, is_bare_zero, scaled_integer, split_unit, unit_advice, write_scaled,
};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub};
use std::str::FromStr;

/// A length of simulated time in picoseconds. 2^64 ps are 213 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

/// An instant of simulated time: picoseconds since the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

const UNITS: [(&str, u64); 6] = [
    ("s", 1_000_000_000_000),
    ("ms", 1_000_000_000),
    ("us", 1_000_000),
    ("µs", 1_000_000),
    ("ns", 1_000),
    ("ps", 1),
];

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than any run.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }
    /// A span of `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns * 1_000)
    }
    /// A span of `us` microseconds.
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000_000)
    }
    /// A span of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000_000)
    }
    /// The picoseconds of this span.
    pub const fn as_ps(self) -> u64 {
        self.0
    }
    /// The span in microseconds, for printing and for controllers; not exact above 2^53 ps (2.5 hours).
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// The span in seconds, for printing.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / 1e12
    }
    /// The span less `other`, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// The sum, unless it does not fit.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }
    /// True for a span of no length.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Time {
    /// The start of every run.
    pub const ZERO: Self = Self(0);
    /// "Never": later than any event.
    pub const NEVER: Self = Self(u64::MAX);

    /// The instant `ps` picoseconds after the start.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }
    /// The instant `us` microseconds after the start.
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000_000)
    }
    /// Picoseconds since the start.
    pub const fn as_ps(self) -> u64 {
        self.0
    }
    /// Microseconds since the start, for printing.
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// The time since `earlier`, or zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
    /// The instant `span` later, at most [`Time::NEVER`].
    pub const fn saturating_add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
    /// The instant `span` earlier, at least zero. [`Time::NEVER`] stays.
    pub const fn earlier_by(self, span: Span) -> Self {
        match self.is_never() {
            true => self,
            false => Self(self.0.saturating_sub(span.0)),
        }
    }
    /// True for [`Time::NEVER`].
    pub const fn is_never(self) -> bool {
        self.0 == u64::MAX
    }
}

impl Add<Span> for Time {
    type Output = Self;
    #[inline]
    fn add(self, span: Span) -> Self {
        Self(self.0 + span.0)
    }
}
impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}
impl Sub<Span> for Time {
    type Output = Self;
    #[inline]
    fn sub(self, span: Span) -> Self {
        Self(self.0 - span.0)
    }
}
impl Sub for Time {
    type Output = Span;
    #[inline]
    fn sub(self, earlier: Self) -> Span {
        Span(self.0 - earlier.0)
    }
}
impl Add for Span {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}
impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}
impl Sub for Span {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}
impl Mul<u64> for Span {
    type Output = Self;
    #[inline]
    fn mul(self, factor: u64) -> Self {
        Self(self.0 * factor)
    }
}
impl Div<u64> for Span {
    type Output = Self;
    #[inline]
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}
impl Sum for Span {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, unit) = match self.0 {
            0 => ("s", 1),
            1..1_000 => ("ps", 1),
            1_000..1_000_000 => ("ns", 1_000),
            1_000_000..1_000_000_000 => ("us", 1_000_000),
            1_000_000_000..1_000_000_000_000 => ("ms", 1_000_000_000),
            _ => ("s", 1_000_000_000_000),
        };
        write_scaled(f, self.0, unit, name)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_never() {
            return f.pad("never");
        }
        Span(self.0).fmt(f)
    }
}

impl Span {
    /// Advice on the unit of `text`, which is not a span; `None` if the unit is correct.
    pub(crate) fn unit_advice(text: &str) -> Option<String> {
        unit_advice(
            text,
            "a duration",
            UNITS.iter().map(|(name, _)| *name),
            "us",
        )
    }
}

impl FromStr for Span {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let error = ParseUnitError {
            expected: "a duration such as `1us`, `250ns` or `2.5ms`",
        };
        if is_bare_zero(text) {
            return Ok(Self::ZERO);
        }
        let (number, unit) = split_unit(text);
        UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .and_then(|&(_, scale)| scaled_integer(number, scale))
            .map(Self)
            .ok_or(error)
    }
}

impl FromStr for Time {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        text.parse::<Span>().map(|span| Self(span.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn prints_with_the_unit_that_fits() {
        assert_eq!(Span::from_ps(8_337_120).to_string(), "8.33712us");
        assert_eq!(Span::from_us(50_000).to_string(), "50ms");
        assert_eq!(Span::ZERO.to_string(), "0s");
        assert_eq!(Time::NEVER.to_string(), "never");
    }

    #[test]
    fn refuses_what_is_not_a_duration() {
        for bad in ["", "5", "us", "1 parsec", "-1us", "0.1ps", "1us2", "300d"] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
        assert_eq!("0".parse(), Ok(Span::ZERO));
        assert_eq!("1.5 µs".parse(), Ok(Span::from_ns(1500)));
    }

    proptest! {
        #[test]
        fn printing_loses_nothing(ps in any::<u64>()) {
            let span = Span::from_ps(ps);
            prop_assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        }
    }
}

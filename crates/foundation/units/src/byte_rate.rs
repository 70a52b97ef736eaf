//! Rates in bytes, such as memory bandwidths.

use crate::Rate;
use crate::decimal::{ParseUnitError, unit_advice, write_scaled};
use crate::rate::of_bytes;
use std::fmt;
use std::str::FromStr;

/// A [`Rate`] that is written in bytes per second, `2039GB/s`, or in bits per second, `16312Gbps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteRate(pub Rate);

impl ByteRate {
    /// Advice on the unit of `text`, which is not a rate in bytes; `None` if the unit is correct.
    pub(crate) fn unit_advice(text: &str) -> Option<String> {
        const UNITS: [&str; 8] = [
            "B/s", "KB/s", "MB/s", "GB/s", "TB/s", "Mbps", "Gbps", "Tbps",
        ];
        unit_advice(text, "a rate", UNITS.into_iter(), "GB/s")
    }
}

impl fmt::Display for ByteRate {
    /// Writes whole bytes per second in bytes, other rates in bits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bps = self.0.as_bps();
        if !bps.is_multiple_of(8) {
            return self.0.fmt(f);
        }
        let bytes = bps / 8;
        let (name, unit) = match bytes {
            0..1_000 => ("B/s", 1),
            1_000..1_000_000 => ("KB/s", 1_000),
            1_000_000..1_000_000_000 => ("MB/s", 1_000_000),
            _ => ("GB/s", 1_000_000_000),
        };
        write_scaled(f, bytes, unit, name)
    }
}

impl FromStr for ByteRate {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let rate = of_bytes(text).or_else(|| text.parse().ok());
        rate.map(Self).ok_or(ParseUnitError {
            expected: "a rate above zero such as `2039GB/s`",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_and_bits_are_the_same_rate() {
        let rate = ByteRate(Rate::from_gbps(16_312));
        for text in ["2039GB/s", "2.039TB/s", "2039GBps", "16312Gbps"] {
            assert_eq!(text.parse(), Ok(rate), "{text}");
        }
        assert_eq!(rate.to_string(), "2039GB/s");
        for bad in ["0GB/s", "2039", "2039GB", "-1GB/s", "nan"] {
            assert!(bad.parse::<ByteRate>().is_err(), "{bad}");
        }
        let advice = ByteRate::unit_advice("2039GB").unwrap();
        assert!(
            advice.starts_with("there is no unit `GB` of a rate"),
            "{advice}"
        );
        assert_eq!(ByteRate::unit_advice("0GB/s"), None);
    }

    proptest! {
        #[test]
        fn printing_loses_nothing(bps in 1u64..) {
            let rate = ByteRate(Rate::from_bps(bps));
            prop_assert_eq!(rate.to_string().parse::<ByteRate>(), Ok(rate));
        }
    }
}

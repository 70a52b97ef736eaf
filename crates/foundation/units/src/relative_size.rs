//! Sizes: absolute, relative to a bandwidth-delay product, or the bytes that a link sends in a time.

use crate::decimal::{ParseUnitError, scaled_integer, split_unit, unit_advice, write_scaled};
use crate::size::SIZE_UNITS;
use crate::{Bytes, Rate, Span};
use std::fmt;
use std::str::FromStr;

const MILLION: u64 = 1_000_000;

/// A size that is absolute (`"100KB"`), a multiple of the fabric's bandwidth-delay product (`"25%bdp"`, `"5bdp"`), or the bytes that a link
/// sends in a time (`"32us"`), which scale only with its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelativeSize {
    /// Size in bytes.
    Absolute(Bytes),
    /// Size in millionths of the bandwidth-delay product.
    OfBdp {
        /// 1 000 000 is one bandwidth-delay product.
        millionths: u64,
    },
    /// Bytes that the link sends in this time.
    OfTime(Span),
}

impl RelativeSize {
    /// `percent` % of the bandwidth-delay product.
    pub const fn percent_of_bdp(percent: u64) -> Self {
        Self::OfBdp {
            millionths: percent * (MILLION / 100),
        }
    }
    /// The size in bytes at a link of this rate whose bandwidth-delay product is `bdp`, rounded to the nearest byte.
    pub fn resolve(self, rate: Rate, bdp: Bytes) -> Bytes {
        match self {
            Self::OfTime(span) => rate.bytes_in(span),
            Self::Absolute(bytes) => bytes,
            Self::OfBdp { millionths } => {
                let scaled = u128::from(millionths) * u128::from(bdp.as_u64());
                let rounded = (scaled + u128::from(MILLION / 2)) / u128::from(MILLION);
                Bytes::new(u64::try_from(rounded).unwrap_or(u64::MAX))
            }
        }
    }
}

impl fmt::Display for RelativeSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Absolute(bytes) => bytes.fmt(f),
            Self::OfBdp { millionths } if millionths < MILLION => {
                write_scaled(f, millionths, MILLION / 100, "%bdp")
            }
            Self::OfBdp { millionths } => write_scaled(f, millionths, MILLION, "bdp"),
            Self::OfTime(span) => span.fmt(f),
        }
    }
}

impl RelativeSize {
    /// Advice on the unit of `text`, which is not a size; `None` if the unit is correct.
    pub(crate) fn unit_advice(text: &str) -> Option<String> {
        let units = SIZE_UNITS.iter().map(|(name, _)| *name);
        unit_advice(text, "a size", units.chain(["bdp", "%bdp"]), "B")
    }
}

impl FromStr for RelativeSize {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let (number, unit) = split_unit(text);
        let scale = match unit {
            "bdp" => Some(MILLION),
            "%bdp" | "% bdp" => Some(MILLION / 100),
            _ => None,
        };
        let parsed = match scale {
            Some(scale) => {
                scaled_integer(number, scale).map(|millionths| Self::OfBdp { millionths })
            }
            None => {
                let bytes = text.parse().map(Self::Absolute);
                bytes.or_else(|_| text.parse().map(Self::OfTime)).ok()
            }
        };
        parsed.ok_or(ParseUnitError {
            expected: "a size such as `100KB`, `25%bdp` or `5bdp`, or a time such as `32us`",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn relative_sizes_resolve_against_the_bdp() {
        let bdp = Bytes::new(400_000);
        let resolve = |text: &str| {
            let size = text.parse::<RelativeSize>().unwrap();
            size.resolve(Rate::from_gbps(100), bdp).as_u64()
        };
        assert_eq!(resolve("25%bdp"), 100_000);
        assert_eq!(resolve("75 %bdp"), 300_000);
        assert_eq!(resolve("5bdp"), 2_000_000);
        assert_eq!(resolve("1.25bdp"), 500_000);
        assert_eq!(resolve("64KiB"), 65_536);
        assert_eq!(resolve("32us"), 400_000, "at 100 Gb/s");
    }

    #[test]
    fn refuses_what_is_not_a_size() {
        for bad in ["", "MB", "2Mb", "25%", "-1B", "1.5B", "%bdp", "20000000TB"] {
            assert!(bad.parse::<RelativeSize>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn printing_loses_nothing(n in any::<u64>()) {
            for relative in [RelativeSize::OfBdp { millionths: n }, RelativeSize::OfTime(Span::from_ps(n))] {
                prop_assert_eq!(relative.to_string().parse::<RelativeSize>().unwrap(), relative);
            }
        }
    }
}

//! Link and sending rates.

use crate::decimal::{ParseUnitError, scaled_integer, split_unit, unit_advice, write_scaled};
use crate::{Bytes, Span};
use std::fmt;
use std::str::FromStr;

const PS_PER_SECOND: u64 = 1_000_000_000_000;

/// A rate in bit/s, never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// A rate of `bps` bit/s.
    ///
    /// # Panics
    /// If `bps` is zero.
    #[inline]
    pub const fn from_bps(bps: u64) -> Self {
        assert!(bps > 0, "a rate is never zero");
        Self(bps)
    }
    /// A rate of `gbps` Gbit/s.
    pub const fn from_gbps(gbps: u64) -> Self {
        Self::from_bps(gbps * 1_000_000_000)
    }
    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// Gbit/s, for printing and ratios.
    #[inline]
    pub fn as_gbps(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// The time that `bytes` take on a wire of this rate, rounded up to a picosecond.
    ///
    /// Exact, not rounded, at each standard Ethernet rate from 1 to 1600 Gb/s.
    #[inline]
    pub fn span_of(self, bytes: Bytes) -> Span {
        let bits = u128::from(bytes.as_u64()) * 8 * u128::from(PS_PER_SECOND);
        Span::from_ps(u64::try_from(bits.div_ceil(u128::from(self.0))).unwrap_or(u64::MAX))
    }
    /// The bytes that pass in `span`, rounded down: the bandwidth-delay product.
    #[inline]
    pub fn bytes_in(self, span: Span) -> Bytes {
        let bits = u128::from(self.0) * u128::from(span.as_ps());
        let bytes = bits / (8 * u128::from(PS_PER_SECOND));
        Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

/// A [`Rate`] prepared for the hot path: the picoseconds per byte, if they are a whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireClock {
    rate: Rate,
    /// Zero if a byte is not a whole number of picoseconds.
    ps_per_byte: u64,
}

impl WireClock {
    /// Prepares `rate`.
    #[inline]
    pub const fn new(rate: Rate) -> Self {
        let bits = 8 * PS_PER_SECOND;
        let ps_per_byte = if bits.is_multiple_of(rate.0) {
            bits / rate.0
        } else {
            0
        };
        Self { rate, ps_per_byte }
    }
    /// The rate that this clock was made for.
    pub const fn rate(self) -> Rate {
        self.rate
    }
    /// As [`Rate::span_of`], for packet sizes.
    #[inline]
    pub fn span_of(self, bytes: u32) -> Span {
        if self.ps_per_byte != 0 {
            return Span::from_ps(u64::from(bytes) * self.ps_per_byte);
        }
        self.rate.span_of(Bytes::new(u64::from(bytes)))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, unit) = match self.0 {
            0..1_000 => ("bps", 1),
            1_000..1_000_000 => ("Kbps", 1_000),
            1_000_000..1_000_000_000 => ("Mbps", 1_000_000),
            1_000_000_000..1_000_000_000_000 => ("Gbps", 1_000_000_000),
            _ => ("Tbps", 1_000_000_000_000),
        };
        write_scaled(f, self.0, unit, name)
    }
}

/// Units of rates.
const RATE_UNITS: [(&str, u64); 18] = [
    ("bps", 1),
    ("Kbps", 1_000),
    ("Mbps", 1_000_000),
    ("Gbps", 1_000_000_000),
    ("Tbps", PS_PER_SECOND),
    ("b/s", 1),
    ("Kb/s", 1_000),
    ("Mb/s", 1_000_000),
    ("Gb/s", 1_000_000_000),
    ("Tb/s", PS_PER_SECOND),
    ("bit/s", 1),
    ("Kbit/s", 1_000),
    ("Mbit/s", 1_000_000),
    ("Gbit/s", 1_000_000_000),
    ("Tbit/s", PS_PER_SECOND),
    ("kbps", 1_000),
    ("G", 1_000_000_000),
    ("T", PS_PER_SECOND),
];

/// The rate for a number of bytes per second, such as `50GB/s`.
pub(crate) fn of_bytes(text: &str) -> Option<Rate> {
    const UNITS: [(&str, u64); 5] = [
        ("B", 8),
        ("KB", 8_000),
        ("MB", 8_000_000),
        ("GB", 8_000_000_000),
        ("TB", 8 * PS_PER_SECOND),
    ];
    let (number, unit) = split_unit(text);
    let unit = unit
        .strip_suffix("/s")
        .or_else(|| unit.strip_suffix("ps"))?;
    let unit = if unit == "kB" { "KB" } else { unit };
    let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let bps = scaled_integer(number, *scale).filter(|bps| *bps > 0)?;
    Some(Rate::from_bps(bps))
}

impl Rate {
    /// Advice on the unit of `text`, which is not a rate; `None` if the unit is correct.
    pub(crate) fn unit_advice(text: &str) -> Option<String> {
        if let Some(rate) = of_bytes(text) {
            return Some(format!(
                "write \"{rate}\": rates are in bits, and a byte has 8"
            ));
        }
        unit_advice(
            text,
            "a rate",
            RATE_UNITS.iter().map(|(name, _)| *name),
            "Gbps",
        )
    }
}

impl FromStr for Rate {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let (number, unit) = split_unit(text);
        RATE_UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .and_then(|&(_, scale)| scaled_integer(number, scale))
            .filter(|&bps| bps > 0)
            .map(Self)
            .ok_or(ParseUnitError {
                expected: "a rate above zero such as `400Gbps` or `25Gb/s`",
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_byte_is_a_whole_number_of_picoseconds_at_every_ethernet_rate() {
        for (gbps, ps) in [
            (1, 8000),
            (10, 800),
            (25, 320),
            (40, 200),
            (50, 160),
            (100, 80),
        ]
        .into_iter()
        .chain([(200, 40), (400, 20), (800, 10), (1600, 5)])
        {
            let rate = Rate::from_gbps(gbps);
            assert_eq!(rate.span_of(Bytes::new(1)), Span::from_ps(ps));
            assert_eq!(WireClock::new(rate).span_of(4150), Span::from_ps(4150 * ps));
        }
        assert_eq!(
            Rate::from_gbps(300).span_of(Bytes::new(3)),
            Span::from_ps(80)
        );
        assert_eq!(
            WireClock::new(Rate::from_gbps(300)).span_of(1),
            Span::from_ps(27)
        );
    }

    #[test]
    fn bandwidth_delay_products_of_the_strack_paper() {
        let rtt = Span::from_us(8);
        assert_eq!(Rate::from_gbps(400).bytes_in(rtt), Bytes::new(400_000));
        assert_eq!(Rate::from_gbps(200).bytes_in(rtt), Bytes::new(200_000));
    }

    #[test]
    fn refuses_what_is_not_a_rate() {
        for bad in [
            "",
            "400",
            "0Gbps",
            "Gbps",
            "400GBps",
            "-4Gbps",
            "0.0000000001Gbps",
        ] {
            assert!(bad.parse::<Rate>().is_err(), "{bad}");
        }
        assert_eq!("1.6Tbps".parse(), Ok(Rate::from_gbps(1600)));
    }

    proptest! {
        #[test]
        fn printing_loses_nothing(bps in 1u64..) {
            let rate = Rate::from_bps(bps);
            prop_assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate);
        }

        #[test]
        fn the_prepared_clock_agrees(bps in 1_000_000u64..10_000_000_000_000, bytes in 1u32..65_536) {
            let rate = Rate::from_bps(bps);
            prop_assert_eq!(WireClock::new(rate).span_of(bytes), rate.span_of(Bytes::new(bytes.into())));
        }
    }
}

//! Quantities in the notation of ns-3.

use crate::text::{DecimalFault, exact_decimal};
use clearway_units::{Rate, Span};

/// Splits a quantity at the end of its number.
fn split(text: &str, in_number: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !in_number(c)).unwrap_or(text.len());
    text.split_at(end)
}

/// Rate such as `100Gbps`, `25000000000bps` or `12.5GB/s`; a number without unit is in bit/s. `B` stands for bytes.
pub(super) fn rate(text: &str) -> Option<Rate> {
    let (number, unit) = split(text, |c| c.is_ascii_digit() || c == '.');
    let (prefix, bits) = match unit {
        "" => ("", 1),
        _ => {
            let per_second = unit
                .strip_suffix("/s")
                .or_else(|| unit.strip_suffix("ps"))?;
            match per_second.strip_suffix('b') {
                Some(prefix) => (prefix, 1),
                None => (per_second.strip_suffix('B')?, 8),
            }
        }
    };
    let exponent = match prefix {
        "" => 0,
        "k" | "K" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        _ => return None,
    };
    let value = exact_decimal(number, exponent).ok()?.checked_mul(bits)?;
    (value > 0).then(|| Rate::from_bps(value))
}

/// Time such as `1000ns`, `0.001ms` or `1e-6s`; a number without unit is in seconds.
pub(super) fn time(text: &str) -> Option<Span> {
    let (number, unit) = split(text, |c| c.is_ascii_digit() || ".eE+-".contains(c));
    let exponent = match unit {
        "" | "s" => 12,
        "ms" => 9,
        "us" => 6,
        "ns" => 3,
        "ps" => 0,
        "fs" => -3,
        _ => return None,
    };
    exact_decimal(number, exponent).ok().map(Span::from_ps)
}

/// A number of seconds.
pub(super) fn seconds(text: &str) -> Result<Span, DecimalFault> {
    exact_decimal(text, 12).map(Span::from_ps)
}

/// A probability below one, such as `0`, `0.001` or `1e-6`.
pub(super) fn probability(text: &str) -> Option<f64> {
    // The standard library also parses signs and words such as `inf`.
    let is_number = text
        .bytes()
        .all(|b| b.is_ascii_digit() || b".eE-".contains(&b));
    let value = text.parse().ok().filter(|_| is_number)?;
    (0.0..1.0).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_spelt_as_in_ns3() {
        for (text, bps) in [
            ("100Gbps", 100_000_000_000),
            ("25000000000bps", 25_000_000_000),
            ("25000000000", 25_000_000_000),
            ("0.1Tbps", 100_000_000_000),
            ("12.5GB/s", 100_000_000_000),
            ("1GBps", 8_000_000_000),
            ("100Mb/s", 100_000_000),
            ("10kbps", 10_000),
            ("10Kb/s", 10_000),
        ] {
            assert_eq!(rate(text), Some(Rate::from_bps(bps)), "{text}");
        }
        for text in [
            "",
            "Gbps",
            "0Gbps",
            "100G",
            "100GBPS",
            "1Gib/s",
            "-1bps",
            "0.1bps",
            "1e9bps",
            "1 Gbps",
            "99999999999999999999bps",
        ] {
            assert_eq!(rate(text), None, "{text}");
        }
    }

    #[test]
    fn times_are_spelt_as_in_ns3() {
        for (text, ps) in [
            ("1000ns", 1_000_000),
            ("0.001ms", 1_000_000),
            ("1us", 1_000_000),
            ("1e-6s", 1_000_000),
            ("0.000001", 1_000_000),
            ("1500fs", 0),
            ("5000fs", 5),
            ("7ps", 7),
        ] {
            let expected = (ps > 0).then(|| Span::from_ps(ps));
            assert_eq!(time(text), expected, "{text}");
        }
        for text in ["", "ns", "1 ns", "-1ns", "1min", "0.1ps", "1e30s", "1µs"] {
            assert_eq!(time(text), None, "{text}");
        }
    }

    #[test]
    fn probabilities_are_below_one() {
        for (text, expected) in [
            ("0", Some(0.0)),
            ("0.000000", Some(0.0)),
            ("0e-5", Some(0.0)),
            ("1e-12", Some(1e-12)),
            ("0.5", Some(0.5)),
            ("1", None),
            ("1.5", None),
            ("-0.1", None),
            ("+0.1", None),
            ("nan", None),
            ("", None),
        ] {
            assert_eq!(probability(text), expected, "{text}");
        }
    }
}

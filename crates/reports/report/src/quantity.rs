//! Quantities for people: a few significant digits, a unit, thousands separators.
//!
//! These functions round. For exact values, print [`Span`] and [`clearway_units::Bytes`] themselves. All quantities are at least zero.

use clearway_units::Span;

const TIME_UNITS: [(&str, f64); 5] = [
    ("s", 1e6),
    ("ms", 1e3),
    ("us", 1.0),
    ("ns", 1e-3),
    ("ps", 1e-6),
];
const BYTE_UNITS: [(&str, f64); 5] = [
    ("TB", 1e12),
    ("GB", 1e9),
    ("MB", 1e6),
    ("KB", 1e3),
    ("B", 1.0),
];
const PREFIXES: [(&str, f64); 5] = [("T", 1e12), ("G", 1e9), ("M", 1e6), ("K", 1e3), ("", 1.0)];
const FACTOR_UNITS: [(&str, f64); 3] = [(" Gx", 1e9), (" Mx", 1e6), ("x", 1.0)];

/// A span with four significant digits: `48.88 us`.
pub fn span(span: Span) -> String {
    microseconds(span.as_us())
}

/// A time in microseconds with four significant digits: `48.88 us`, `1.750 s`.
pub fn microseconds(us: f64) -> String {
    if us == 0.0 {
        return "0 s".into();
    }
    let (number, unit) = significant(us, &TIME_UNITS, 4);
    match unit {
        // A picosecond is the smallest unit.
        "ps" => format!("{:.0} ps", us * 1e6),
        _ => format!("{number} {unit}"),
    }
}

/// A time in seconds with four significant digits: `1.750 s`.
pub fn seconds(seconds: f64) -> String {
    microseconds(seconds * 1e6)
}

/// A whole number with thousands separators: `8,032,000`.
pub fn count(count: u64) -> String {
    separate(&count.to_string())
}

/// A large number with up to three significant digits and a decimal prefix: `12.5 M`, `1.2 G`.
pub fn prefixed(value: f64) -> String {
    let (number, prefix) = significant(value, &PREFIXES, 3);
    format!("{} {prefix}", without_trailing_zeros(&number))
        .trim_end()
        .into()
}

/// A size with up to three significant digits and a decimal unit: `95 MB`.
pub fn bytes(bytes: u64) -> String {
    let (number, unit) = significant(bytes as f64, &BYTE_UNITS, 3);
    format!("{} {unit}", without_trailing_zeros(&number))
}

/// A ratio with four significant digits: `1.023x`; from a million on with a prefix: `1.250 Mx`.
pub fn factor(ratio: f64) -> String {
    let (number, unit) = significant(ratio, &FACTOR_UNITS, 4);
    format!("{number}{unit}")
}

/// A number of any kind with four significant digits: `48.88`; at most three digits after the decimal point.
pub fn plain(value: f64) -> String {
    significant(value, &[("", 1.0)], 4).0
}

/// A number of any kind with three significant digits: `1.07`, `12.3`.
pub(crate) fn three_digits(value: f64) -> String {
    significant(value, &[("", 1.0)], 3).0
}

/// `part` of `whole` in percent: `0.02 %`. If `whole` is zero, the result is `0 %`.
pub fn percent(part: u64, whole: u64) -> String {
    if part == 0 || whole == 0 {
        return "0 %".into();
    }
    let percent = part as f64 * 100.0 / whole as f64;
    match percent {
        ..0.01 => "<0.01 %".into(),
        ..10.0 => format!("{percent:.2} %"),
        _ => format!("{percent:.1} %"),
    }
}

/// `value` in the largest unit in which the rounded value is at least one, with `digits` significant digits (at least the digits before
/// the decimal point). `units` go from the largest to the smallest; values below one of the smallest also use the smallest.
fn significant<'a>(value: f64, units: &[(&'a str, f64)], digits: i32) -> (String, &'a str) {
    // From this value on a number is rounded up to the next power of ten.
    let nearly_one = 1.0 - 0.5 * 0.1f64.powi(digits);
    let (unit, scale) = *units
        .iter()
        .find(|(_, scale)| value / scale >= nearly_one)
        .unwrap_or_else(|| units.last().expect("there is a unit"));
    let scaled = value / scale;
    let whole_digits = 1
        + (1..digits)
            .filter(|&power| scaled >= nearly_one * 10f64.powi(power))
            .count();
    let decimals = (digits as usize).saturating_sub(whole_digits);
    (separate(&format!("{scaled:.decimals$}")), unit)
}

/// Puts a comma between groups of three digits before the decimal point.
fn separate(number: &str) -> String {
    let (whole, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let mut separated = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            separated.push(',');
        }
        separated.push(digit);
    }
    separated + fraction
}

/// A decimal number without trailing zeros.
pub(crate) fn without_trailing_zeros(number: &str) -> &str {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}

/// Share of `part` in `whole`, in whole percent: `71 %`; with one decimal below one percent.
pub fn share(part: u64, whole: u64) -> String {
    let share = 100.0 * part as f64 / whole.max(1) as f64;
    match share {
        1.0.. => format!("{share:.0} %"),
        _ => format!("{share:.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_have_four_significant_digits() {
        let us = |us: f64| microseconds(us);
        assert_eq!(span(Span::from_ps(48_881_300)), "48.88 us");
        assert_eq!(span(Span::from_ps(8_337_120)), "8.337 us");
        assert_eq!(span(Span::from_us(70)), "70.00 us");
        assert_eq!(span(Span::from_ps(12)), "12 ps");
        assert_eq!(span(Span::from_ps(999)), "999 ps");
        assert_eq!(span(Span::ZERO), "0 s");
        assert_eq!(us(999.94), "999.9 us");
        assert_eq!(us(999.96), "1.000 ms");
        assert_eq!(us(9.9996), "10.00 us");
        assert_eq!(seconds(1.75), "1.750 s");
        assert_eq!(seconds(12_345.6), "12,346 s");
    }

    #[test]
    fn counts_have_separators() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(8_032_000), "8,032,000");
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn prefixes_and_sizes_have_up_to_three_digits() {
        assert_eq!(prefixed(1_200_000_000.0), "1.2 G");
        assert_eq!(prefixed(12_490_000.0), "12.5 M");
        assert_eq!(prefixed(999_600.0), "1 M");
        assert_eq!(prefixed(12.0), "12");
        assert_eq!(prefixed(0.0), "0");
        assert_eq!(prefixed(5.6e15), "5,600 T");
        assert_eq!(bytes(95_000_000), "95 MB");
        assert_eq!(bytes(100_000), "100 KB");
        assert_eq!(bytes(1_234), "1.23 KB");
        assert_eq!(bytes(64), "64 B");
        assert_eq!(bytes(0), "0 B");
    }

    #[test]
    fn ratios_and_percentages() {
        assert_eq!(factor(1.0), "1.000x");
        assert_eq!(factor(12.345_6), "12.35x");
        assert_eq!(factor(123_456.0), "123,456x");
        assert_eq!(factor(1_250_000.0), "1.250 Mx");
        assert_eq!(plain(48.881), "48.88");
        assert_eq!(plain(0.0126), "0.013");
        assert_eq!(plain(12_345.6), "12,346");
        assert_eq!(percent(0, 7), "0 %");
        assert_eq!(percent(7, 0), "0 %");
        assert_eq!(percent(1, 1_000_000), "<0.01 %");
        assert_eq!(percent(1, 5_000), "0.02 %");
        assert_eq!(percent(1, 1), "100.0 %");
    }

    proptest! {
        #[test]
        fn a_printed_time_is_within_half_a_last_digit(ps in 1u64..1 << 53) {
            let text = span(Span::from_ps(ps));
            let (number, unit) = text.replace(',', "").split_once(' ').map(|(n, u)| (n.to_owned(), u.to_owned())).unwrap();
            let scale = TIME_UNITS.iter().find(|(name, _)| *name == unit).unwrap().1;
            let printed = number.parse::<f64>().unwrap() * scale * 1e6;
            prop_assert!((printed - ps as f64).abs() <= ps as f64 * 0.000_500_1, "{}", text);
        }
    }
}

//! Exact decimal parsing and printing shared by all units.

use std::fmt;

/// A text that is not a quantity of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseUnitError {
    /// Description of a right value, with an example.
    pub expected: &'static str,
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.expected)
    }
}

impl std::error::Error for ParseUnitError {}

/// Advice on the unit of `text`, which was rejected as a quantity called `noun`; `None` if the unit is correct. `usual` is the likely unit
/// of a number without one.
pub(crate) fn unit_advice(
    text: &str,
    noun: &str,
    units: impl Iterator<Item = &'static str>,
    usual: &str,
) -> Option<String> {
    let (number, unit) = split_unit(text);
    let is_number = number.replace('_', "").parse::<f64>().is_ok();
    let units: Vec<&str> = units.collect();
    if !is_number || units.contains(&unit) {
        return None;
    }
    let list = units.join(", ");
    Some(match unit {
        "" => {
            format!("{noun} has a unit, one of {list}: write \"{number}{usual}\" if that is meant")
        }
        unit => match meant_unit(unit, &units) {
            Some(meant) => format!("write \"{number}{meant}\"; the units are {list}"),
            None => format!("there is no unit `{unit}` of {noun}; the units are {list}"),
        },
    })
}

/// The unit in `units` that equals `unit` except for case, or for the `B` of bytes at its end.
fn meant_unit<'a>(unit: &str, units: &[&'a str]) -> Option<&'a str> {
    let is = |own: &&&str| own.eq_ignore_ascii_case(unit);
    let in_bytes = |own: &&&str| {
        let short = own.strip_suffix('B');
        short.is_some_and(|short| !short.is_empty() && short.eq_ignore_ascii_case(unit))
    };
    let all = || units.iter();
    all().find(is).or_else(|| all().find(in_bytes)).copied()
}

/// True for a zero without a unit, which is the same in all of them.
pub(crate) fn is_bare_zero(text: &str) -> bool {
    text.trim() == "0"
}

/// Splits `"12.5us"` into its number and its unit, both trimmed.
pub(crate) fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(text.len());
    (text[..end].trim(), text[end..].trim())
}

/// The value of the decimal number `text` times `scale`, if that is a whole number that fits.
///
/// Rejects a sign, an exponent, a lone dot and digits finer than the scale: nothing is rounded.
pub(crate) fn scaled_integer(text: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() || (text.contains('.') && fraction.is_empty()) {
        return None;
    }
    let mut value: u128 = 0;
    for digit in whole.bytes().filter(|&b| b != b'_') {
        let digit = digit.is_ascii_digit().then(|| u128::from(digit - b'0'))?;
        value = value.checked_mul(10)?.checked_add(digit)?;
        if value > u128::from(u64::MAX) {
            return None;
        }
    }
    value = value.checked_mul(u128::from(scale))?;
    let mut unit = u128::from(scale);
    for digit in fraction.bytes().filter(|&b| b != b'_') {
        let digit = digit.is_ascii_digit().then(|| u128::from(digit - b'0'))?;
        if digit != 0 && !unit.is_multiple_of(10) {
            return None;
        }
        unit /= 10;
        value += digit * unit;
    }
    u64::try_from(value).ok()
}

/// Writes `value / unit` exactly, without trailing zeros. `unit` must be a power of ten.
pub(crate) fn write_scaled(
    f: &mut fmt::Formatter<'_>,
    value: u64,
    unit: u64,
    suffix: &str,
) -> fmt::Result {
    let (whole, rest) = (value / unit, value % unit);
    if rest == 0 {
        return f.pad(&format!("{whole}{suffix}"));
    }
    let width = unit.ilog10() as usize;
    let digits = format!("{rest:0width$}");
    f.pad(&format!("{whole}.{}{suffix}", digits.trim_end_matches('0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_or_refused() {
        assert_eq!(scaled_integer("8.33712", 1_000_000), Some(8_337_120));
        assert_eq!(scaled_integer("1_000", 1), Some(1000));
        assert_eq!(scaled_integer("0.5", 1), None);
        assert_eq!(scaled_integer("1.0", 1), Some(1));
        for bad in ["", ".", "1.", ".5", "-1", "1e3", "99999999999999999999"] {
            assert_eq!(scaled_integer(bad, 1000), None, "{bad}");
        }
    }

    #[test]
    fn units_split_from_numbers() {
        assert_eq!(split_unit(" 12.5 us "), ("12.5", "us"));
        assert_eq!(split_unit("25%bdp"), ("25", "%bdp"));
        assert_eq!(split_unit("bdp"), ("", "bdp"));
    }
}

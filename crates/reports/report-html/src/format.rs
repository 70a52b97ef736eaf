//! Quantities and counts as the page prints them.

use clearway_report::quantity;

/// A time in microseconds: `48.88 µs`.
pub(crate) fn time(us: f64) -> String {
    quantity::microseconds(us).replace(" us", " µs")
}

/// A size: `95 MB`.
pub(crate) fn bytes(bytes: f64) -> String {
    quantity::bytes(bytes as u64)
}

/// A rate in bits per second: `400 Gb/s`.
pub(crate) fn rate(bps: f64) -> String {
    let text = quantity::prefixed(bps);
    match text.split_once(' ') {
        Some((number, prefix)) => format!("{number} {prefix}b/s"),
        None => format!("{text} b/s"),
    }
}

/// A ratio: `1.023×`.
pub(crate) fn factor(ratio: f64) -> String {
    quantity::factor(ratio).replace('x', "×")
}

/// A whole number with separators: `8,032`.
pub(crate) fn count(number: u64) -> String {
    quantity::count(number)
}

/// Any number, with up to four digits after the point.
pub(crate) fn number(value: f64) -> String {
    if value >= 1000.0 {
        return count(value.round() as u64);
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// A part of one in percent: `12.5 %`.
pub(crate) fn share(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// `1 flow`, `2 flows`.
pub(crate) fn counted(number: usize, one: &str, many: &str) -> String {
    let noun = if number == 1 { one } else { many };
    format!("{} {noun}", count(number as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities() {
        assert_eq!(time(48.8813), "48.88 µs");
        assert_eq!(time(0.0), "0 s");
        assert_eq!(bytes(95_000_000.0), "95 MB");
        assert_eq!(rate(4e11), "400 Gb/s");
        assert_eq!(rate(12.0), "12 b/s");
        assert_eq!(factor(1.25), "1.250×");
        assert_eq!(number(0.9876), "0.9876");
        assert_eq!(number(12.0), "12");
        assert_eq!(number(12_345.6), "12,346");
        assert_eq!(share(0.125), "12.5 %");
        assert_eq!(counted(1, "flow", "flows"), "1 flow");
        assert_eq!(counted(8192, "flow", "flows"), "8,192 flows");
    }
}

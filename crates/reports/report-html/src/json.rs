//! The page's data: JSON with numbers as short as their precision allows.

/// Appends `value` with at most `digits` significant digits, in the shortest form; `null` if it is not a number.
pub(crate) fn push_number(text: &mut String, value: f64, digits: usize) {
    if !value.is_finite() {
        text.push_str("null");
        return;
    }
    let printed = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = printed.split_once('e').expect("printed with an exponent");
    let exponent: i32 = exponent.parse().expect("a whole number");
    let negative = mantissa.starts_with('-');
    let figures: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let figures = figures.trim_end_matches('0');
    if figures.is_empty() {
        text.push('0');
        return;
    }
    if negative {
        text.push('-');
    }
    let plain = plain(figures, exponent);
    let scientific = format!("{figures}e{}", exponent + 1 - figures.len() as i32);
    text.push_str(if plain.len() <= scientific.len() {
        &plain
    } else {
        &scientific
    });
}

/// The number `f.igures × 10^exponent` without an exponent.
fn plain(figures: &str, exponent: i32) -> String {
    let whole = exponent + 1;
    if whole <= 0 {
        return format!("0.{}{figures}", "0".repeat(whole.unsigned_abs() as usize));
    }
    let whole = whole as usize;
    if figures.len() <= whole {
        return format!("{figures}{}", "0".repeat(whole - figures.len()));
    }
    let (before, after) = figures.split_at(whole);
    format!("{before}.{after}")
}

/// Appends a list of numbers.
pub(crate) fn push_numbers(text: &mut String, values: &[f64], digits: usize) {
    text.push('[');
    for (place, &value) in values.iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        push_number(text, value, digits);
    }
    text.push(']');
}

/// Appends a text. It may hold any characters: sequences that could end the surrounding script element are escaped.
pub(crate) fn push_text(text: &mut String, value: &str) {
    let quoted = serde_json::to_string(value).expect("a text can be written");
    for c in quoted.chars() {
        match c {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            c => text.push(c),
        }
    }
}

/// Appends a list, with `push` for each element.
pub(crate) fn push_list<T>(
    text: &mut String,
    items: impl IntoIterator<Item = T>,
    mut push: impl FnMut(&mut String, T),
) {
    text.push('[');
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        push(text, item);
    }
    text.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number(value: f64, digits: usize) -> String {
        let mut text = String::new();
        push_number(&mut text, value, digits);
        text
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (48.8813, "48.88"),
            (1_000_000.0, "1e6"),
            (399_812_345_678.0, "3998e8"),
            (0.5, "0.5"),
            (0.000_123_456, "1235e-7"),
            (1234.0, "1234"),
            (99_999.0, "1e5"),
            (f64::NAN, "null"),
            (f64::INFINITY, "null"),
        ] {
            assert_eq!(number(value, 4), text);
        }
    }

    #[test]
    fn texts_cannot_end_the_script() {
        let mut text = String::new();
        push_text(&mut text, "</script><!-- \"&\u{2028}");
        assert_eq!(text, r#""\u003c/script\u003e\u003c!-- \"\u0026\u2028""#);
        assert_eq!(
            serde_json::from_str::<String>(&text).unwrap(),
            "</script><!-- \"&\u{2028}"
        );
    }

    proptest! {
        #[test]
        fn a_number_is_json_and_within_half_a_last_digit(value in -1e15f64..1e15, shift in -20i32..20, digits in 2usize..9) {
            let value = value * 10f64.powi(shift);
            let read: f64 = serde_json::from_str(&number(value, digits)).unwrap();
            prop_assert!((read - value).abs() <= value.abs() * 0.500_001 * 10f64.powi(1 - digits as i32));
        }
    }
}

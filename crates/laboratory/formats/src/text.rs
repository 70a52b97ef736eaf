//! Lines, tokens and exact numbers of the text formats.

use clearway_input::{InputError, InputKind};
use clearway_units::{nearest, suggestion};
use clearway_workload::{FileError, WorkloadError};
use std::path::Path;

/// One word of a line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    /// Column in characters, from 1.
    pub(crate) column: usize,
}

/// A line with more than blanks and a comment.
#[derive(Debug, Clone)]
pub(crate) struct Line<'a> {
    /// Number of the line, from 1.
    pub(crate) number: usize,
    /// Words of the line; never empty.
    pub(crate) tokens: Vec<Token<'a>>,
}

/// The lines of `text` that have words. Blanks and tabs separate words; `#` at the start of a word begins a comment.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    (1..).zip(text.lines()).filter_map(|(number, line)| {
        let tokens = tokens(line);
        (!tokens.is_empty()).then_some(Line { number, tokens })
    })
}

fn tokens(line: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut start: Option<(usize, usize)> = None;
    let end = (line.chars().count(), (line.len(), ' '));
    for (column, (offset, character)) in line.char_indices().enumerate().chain([end]) {
        let blank = character == ' ' || character == '\t' || character == '\r';
        match start {
            None if character == '#' => break,
            None if !blank => start = Some((column, offset)),
            Some((column, from)) if blank => {
                let text = &line[from..offset];
                tokens.push(Token {
                    text,
                    column: column + 1,
                });
                start = None;
            }
            None | Some(_) => {}
        }
    }
    tokens
}

/// A token as a message shows it: short, and without control characters.
pub fn shown(text: &str) -> String {
    const LIMIT: usize = 40;
    let mut shown: String = text
        .chars()
        .take(LIMIT)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().count() > LIMIT {
        shown.push('…');
    }
    shown
}

/// The name that `text` probably means: the same except for capitals, else the nearest.
pub(crate) fn meant<'a>(text: &str, names: &[&'a str]) -> Option<&'a str> {
    // A long token is not a misspelling of a short name, and the cost of comparing grows with the length.
    const LONGEST: usize = 64;
    if text.len() > LONGEST {
        return None;
    }
    names
        .iter()
        .copied()
        .find(|name| name.eq_ignore_ascii_case(text))
        .or_else(|| nearest(text, names.iter().copied()))
}

/// "`a`, `b` or `c`".
pub fn one_of(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    }
}

/// A whole number of ASCII digits, without sign and separators.
pub fn whole_number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Reason why a text is not a usable decimal number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecimalFault {
    /// Text that is not a number of zero or more.
    NotANumber,
    /// Number that does not fit in 64 bits.
    TooLarge,
    /// Number that is not a whole number of units.
    TooFine,
}

/// The decimal `text` (`5`, `0.25`, `1.6e-05`) times ten to the power of `exponent`, exactly.
pub(crate) fn exact_decimal(text: &str, exponent: i32) -> Result<u64, DecimalFault> {
    let (number, power) = match text.split_once(['e', 'E']) {
        Some((number, power)) => (number, signed(power).ok_or(DecimalFault::NotANumber)?),
        None => (text, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty()
        || (number.contains('.') && fraction.is_empty())
        || !is_digits(whole)
        || !is_digits(fraction)
    {
        return Err(DecimalFault::NotANumber);
    }
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Ok(0);
    }
    let stripped = (digits.len() - digits.trim_end_matches('0').len()) as i64;
    let power = i64::from(power) + i64::from(exponent) + stripped - fraction.len() as i64;
    if power < 0 {
        return Err(DecimalFault::TooFine);
    }
    let scale = u32::try_from(power).ok().and_then(|p| 10u64.checked_pow(p));
    let value = significant.parse::<u64>().ok();
    value
        .zip(scale)
        .and_then(|(value, scale)| value.checked_mul(scale))
        .ok_or(DecimalFault::TooLarge)
}

/// As [`exact_decimal`], rounded down.
pub(crate) fn whole_part(text: &str) -> Result<u64, DecimalFault> {
    match exact_decimal(text, 0) {
        Err(DecimalFault::TooFine) => {}
        result => return result,
    }
    // A `TooFine` number is well formed, so it has all these parts.
    let (number, power) = match text.split_once(['e', 'E']) {
        Some((number, power)) => (number, signed(power).ok_or(DecimalFault::NotANumber)?),
        None => (text, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    let kept = usize::try_from(whole.len() as i64 + i64::from(power)).unwrap_or(0);
    match digits.get(..kept).unwrap_or(&digits) {
        "" => Ok(0),
        kept => kept.parse().map_err(|_| DecimalFault::TooLarge),
    }
}

/// A short signed integer, as in an exponent.
fn signed(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let short = digits.len() <= 4;
    let value = i32::try_from(whole_number(digits).filter(|_| short)?).ok()?;
    Some(if text.starts_with('-') { -value } else { value })
}

/// The text of the file at `path`.
///
/// # Errors
/// If the file cannot be read, or if it is not UTF-8, with the first invalid line.
pub fn read_text(path: &Path, kind: InputKind) -> Result<String, WorkloadError> {
    clearway_input::read_text(path, kind).map_err(|error| refused(path, &error))
}

/// The error about an unreadable file at `path`.
pub fn refused(path: &Path, error: &InputError) -> WorkloadError {
    let file = path.display().to_string();
    let source = Source { file: &file };
    let reason = match error {
        InputError::NotText { line } => {
            let fault = source.fault(*line, None, "this is not plain text (UTF-8)");
            return fault.fix(error.fix()).into();
        }
        InputError::Unreadable(reason) => reason.to_string(),
        other => other.to_string(),
    };
    let fix = error.fix();
    WorkloadError::Unreadable { file, reason, fix }
}

/// File of a text, to build [`FileError`]s.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
}

/// A [`FileError`] without its fix.
#[must_use]
pub(crate) struct Fault(FileError);

impl Source<'_> {
    /// A fault on `line`, at `column` if it concerns one token.
    pub(crate) fn fault(
        &self,
        line: usize,
        column: Option<usize>,
        message: impl Into<String>,
    ) -> Fault {
        Fault(FileError {
            file: self.file.into(),
            line,
            column,
            message: message.into(),
            fix: String::new(),
        })
    }

    /// Error about a token that is not one of `names`, with the probable name.
    pub(crate) fn unknown(&self, line: usize, token: Token<'_>, names: &[&str]) -> FileError {
        let message = format!("unknown word `{}`", shown(token.text));
        let fix = match meant(token.text, names) {
            near @ Some(_) => suggestion(near, ""),
            None => format!("use {}", one_of(names)),
        };
        self.fault(line, Some(token.column), message).fix(fix)
    }
}

impl Fault {
    /// Completes the error.
    pub(crate) fn fix(self, fix: impl Into<String>) -> FileError {
        FileError {
            fix: fix.into(),
            ..self.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_know_their_columns() {
        let text = "\u{feff}a  bé\tc\r\n# no\n \n x#y # z";
        let found: Vec<(usize, Vec<(&str, usize)>)> = lines(text)
            .map(|line| {
                let tokens = line.tokens.iter().map(|t| (t.text, t.column));
                (line.number, tokens.collect())
            })
            .collect();
        assert_eq!(
            found,
            [
                (1, vec![("a", 1), ("bé", 4), ("c", 7)]),
                (4, vec![("x#y", 2)])
            ]
        );
    }

    #[test]
    fn decimals_are_exact_or_refused() {
        use DecimalFault::{NotANumber, TooFine, TooLarge};
        for (text, exponent, expected) in [
            ("5", 6, Ok(5_000_000)),
            ("0.000001", 6, Ok(1)),
            ("16777217.5", 6, Ok(16_777_217_500_000)),
            ("1.6e-05", 12, Ok(16_000_000)),
            ("1E+2", 0, Ok(100)),
            ("100e-2", 0, Ok(1)),
            ("0.0e-9999", 0, Ok(0)),
            ("007", 0, Ok(7)),
            ("18446744073709551615", 0, Ok(u64::MAX)),
            ("18446744073709551616", 0, Err(TooLarge)),
            ("1e9999", 0, Err(TooLarge)),
            ("20000000", 12, Err(TooLarge)),
            ("0.0000001", 6, Err(TooFine)),
            ("1e-1", 0, Err(TooFine)),
            ("", 0, Err(NotANumber)),
            (".5", 0, Err(NotANumber)),
            ("5.", 0, Err(NotANumber)),
            ("-1", 0, Err(NotANumber)),
            ("1e", 0, Err(NotANumber)),
            ("1e99999", 0, Err(NotANumber)),
            ("1.2.3", 0, Err(NotANumber)),
            ("nan", 0, Err(NotANumber)),
        ] {
            assert_eq!(exact_decimal(text, exponent), expected, "{text}");
        }
    }

    #[test]
    fn a_decimal_has_a_whole_part() {
        for (text, expected) in [
            ("5", Ok(5)),
            ("8388608.5", Ok(8_388_608)),
            ("1.23456789e5", Ok(123_456)),
            ("1.5e+0", Ok(1)),
            ("123.9e-2", Ok(1)),
            ("123.9e-3", Ok(0)),
            ("123e-9", Ok(0)),
            ("18446744073709551615.9", Ok(u64::MAX)),
            ("18446744073709551616.5", Err(DecimalFault::TooLarge)),
            ("1.5e", Err(DecimalFault::NotANumber)),
            ("1.5.1", Err(DecimalFault::NotANumber)),
        ] {
            assert_eq!(whole_part(text), expected, "{text}");
        }
    }

    #[test]
    fn messages_stay_short_and_clean() {
        assert_eq!(shown("a\u{1b}[31m"), "a\\u{1b}[31m");
        assert_eq!(shown(&"x".repeat(50)), format!("{}…", "x".repeat(40)));
        assert_eq!(meant("NODES", &["Nodes", "node"]), Some("Nodes"));
        assert_eq!(meant(&"Nodes".repeat(99), &["Nodes"]), None);
        assert_eq!(one_of(&["a", "b", "c"]), "`a`, `b` or `c`");
    }
}

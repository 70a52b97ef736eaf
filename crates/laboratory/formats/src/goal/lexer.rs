//! The tokens of a schedule.

/// A token, borrowed from the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// `send`, `to`, a label.
    Word(&'a str),
    /// Digits.
    Number(&'a str),
    /// `-1`.
    Any,
    Colon,
    Open,
    Close,
    NewLine,
    /// Text that is not a token of a schedule.
    Other(&'a str),
    End,
}

/// Splits a text into tokens.
pub(super) struct Lexer<'a> {
    pub(super) text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let at = text.len() - text.trim_start_matches('\u{feff}').len();
        Self { text, at }
    }

    /// The next token, and the byte at which it begins.
    pub(super) fn next(&mut self) -> (Token<'a>, usize) {
        self.skip_blanks();
        let start = self.at;
        let bytes = &self.text.as_bytes()[start..];
        let Some(&first) = bytes.first() else {
            return (Token::End, start);
        };
        let run = |is: fn(&u8) -> bool| bytes.iter().take_while(|byte| is(byte)).count();
        let (length, token): (usize, fn(&'a str) -> Token<'a>) = match first {
            b'\n' => (1, |_| Token::NewLine),
            b'\r' if bytes.get(1) == Some(&b'\n') => (2, |_| Token::NewLine),
            b':' => (1, |_| Token::Colon),
            b'{' => (1, |_| Token::Open),
            b'}' => (1, |_| Token::Close),
            b'0'..=b'9' => (run(u8::is_ascii_digit), Token::Number),
            b'a'..=b'z' | b'A'..=b'Z' => {
                let length = run(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
                (length, Token::Word)
            }
            b'-' if bytes.starts_with(b"-1") && !matches!(bytes.get(2), Some(b'0'..=b'9')) => {
                (2, |_| Token::Any)
            }
            _ => {
                let rest = &self.text[start..];
                let length = rest.find([' ', '\t', '\n']).unwrap_or(rest.len());
                (length.max(1), Token::Other)
            }
        };
        self.at = start + length;
        (token(&self.text[start..self.at]), start)
    }

    /// Skips blanks and comments. A comment over several lines does not end a line.
    fn skip_blanks(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let bytes = rest.as_bytes();
            self.at += match bytes {
                [b' ' | b'\t', ..] => 1,
                [b'/', b'/', ..] => rest.find('\n').unwrap_or(rest.len()),
                [b'/', b'*', ..] => rest.find("*/").map_or(rest.len(), |end| end + 2),
                _ => return,
            };
        }
    }
}

/// The line of the byte at `offset`, from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    let before = &text.as_bytes()[..offset];
    1 + before.iter().filter(|&&byte| byte == b'\n').count()
}

/// The column of the byte at `offset` in characters, from 1.
pub(super) fn column_of(text: &str, offset: usize) -> usize {
    let begin = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
    let before = text[begin..offset].trim_start_matches('\u{feff}');
    1 + before.chars().count()
}

/// The label of the operation that begins at `offset`, if there is one.
pub(super) fn label_at(text: &str, offset: usize) -> Option<&str> {
    let mut lexer = Lexer::new(&text[offset..]);
    match (lexer.next().0, lexer.next().0) {
        (Token::Word(label), Token::Colon) => Some(label),
        _ => None,
    }
}

//! The words of one line, read from left to right.

use crate::text::{Line, Source, Token, shown, whole_number};
use clearway_workload::FileError;
use std::ops::RangeInclusive;

/// Unread words of a line.
pub(crate) struct Words<'a> {
    source: Source<'a>,
    /// Number of the line, from 1.
    pub(crate) line: usize,
    rest: std::slice::Iter<'a, Token<'a>>,
}

impl<'a> Words<'a> {
    /// The first word of `line`, and the rest.
    pub(crate) fn split(source: Source<'a>, line: &'a Line<'a>) -> (Token<'a>, Self) {
        let mut rest = line.tokens.iter();
        let first = *rest.next().expect("a line holds at least one token");
        let line = line.number;
        (first, Self { source, line, rest })
    }

    pub(crate) fn next(&mut self) -> Option<Token<'a>> {
        self.rest.next().copied()
    }

    /// Column of the word after `keyword`, or of `keyword` itself if it is the last word.
    pub(crate) fn next_column(&self, keyword: Token<'_>) -> usize {
        let next = self.rest.as_slice().first();
        next.map_or(keyword.column, |token| token.column)
    }

    /// The word after `keyword`.
    pub(crate) fn value(&mut self, keyword: Token<'_>) -> Result<Token<'a>, FileError> {
        self.next().ok_or_else(|| {
            let name = shown(keyword.text);
            self.source
                .fault(
                    self.line,
                    Some(keyword.column),
                    format!("`{name}` lacks its value"),
                )
                .fix(format!("write the value after `{name}`"))
        })
    }

    /// The whole number after `keyword`.
    pub(crate) fn number(
        &mut self,
        keyword: Token<'_>,
        range: RangeInclusive<u64>,
    ) -> Result<u64, FileError> {
        let token = self.value(keyword)?;
        whole_number(token.text)
            .filter(|value| range.contains(value))
            .ok_or_else(|| {
                let (name, text) = (shown(keyword.text), shown(token.text));
                let (least, most) = (range.start(), range.end());
                self.source
                    .fault(
                        self.line,
                        Some(token.column),
                        format!("`{text}` is not a valid value for `{name}`"),
                    )
                    .fix(format!("write a whole number from {least} to {most}"))
            })
    }

    /// As [`number`](Self::number) of at most 32 bits.
    pub(crate) fn number_u32(&mut self, keyword: Token<'_>, least: u32) -> Result<u32, FileError> {
        let range = u64::from(least)..=u64::from(u32::MAX);
        self.number(keyword, range).map(|value| value as u32)
    }

    /// The next word if it is a whole number; the word is then taken.
    pub(crate) fn number_if_any(&mut self) -> Option<u64> {
        let mut rest = self.rest.clone();
        let number = whole_number(rest.next()?.text)?;
        self.rest = rest;
        Some(number)
    }

    /// Checks that no word follows.
    pub(crate) fn end(&mut self, what: &str) -> Result<(), FileError> {
        match self.next() {
            None => Ok(()),
            Some(token) => {
                let message = format!("`{}` after the end of {what}", shown(token.text));
                Err(self
                    .source
                    .fault(self.line, Some(token.column), message)
                    .fix("remove it, or put a `#` before it"))
            }
        }
    }

    /// Stores the value of `keyword`, or fails if the keyword occurs twice on the line.
    pub(crate) fn once<T>(
        &self,
        slot: &mut Option<T>,
        keyword: Token<'_>,
        value: T,
    ) -> Result<(), FileError> {
        match slot.replace(value) {
            None => Ok(()),
            Some(_) => {
                let message = format!("`{}` stands twice on the line", shown(keyword.text));
                Err(self
                    .source
                    .fault(self.line, Some(keyword.column), message)
                    .fix("keep one of them"))
            }
        }
    }
}

//! Aligned plain-text tables.

use std::fmt;

/// Number of blanks between two columns.
const GAP: usize = 2;
/// Minimum width of the last column, even if the table is then wider than requested.
const MIN_WRAP: usize = 20;
/// Width at which [`Table`]'s `Display` wraps.
const DEFAULT_WIDTH: usize = 80;

/// Alignment of the cells of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Left, for text.
    Left,
    /// Right, for numbers.
    Right,
}

/// A table of text: every column is as wide as its widest cell, and the last column wraps between words.
///
/// ```
/// use clearway_report_text::{Align, Table};
/// let mut table = Table::new().column("name", Align::Left).column("hosts", Align::Right);
/// table.row(["leaf-spine", "8,192"]);
/// table.row(["dumbbell", "4"]);
/// assert_eq!(table.to_string(), "\
/// name        hosts
/// ----------  -----
/// leaf-spine  8,192
/// dumbbell        4
/// ");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a column on the right. If all headers are empty the table has no header line.
    pub fn column(mut self, header: impl Into<String>, align: Align) -> Self {
        assert!(self.rows.is_empty(), "columns come before rows");
        self.columns.push((header.into(), align));
        self
    }

    /// Adds a row at the bottom. Line breaks are kept in the last cell and become blanks in the others.
    ///
    /// # Panics
    /// If there is not one cell for each column.
    pub fn row<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) {
        let mut cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        assert_eq!(cells.len(), self.columns.len(), "one cell for each column");
        if let Some((_, others)) = cells.split_last_mut() {
            for cell in others {
                *cell = cell.replace('\n', " ");
            }
        }
        self.rows.push(cells);
    }

    /// The table as lines of at most `width` characters, if the columns before the last leave room for that.
    ///
    /// A word that is longer than its column is not broken, so that it can be copied.
    pub fn render(&self, width: usize) -> String {
        let Some(last) = self.columns.len().checked_sub(1) else {
            return String::new();
        };
        let mut widths: Vec<usize> = (0..=last).map(|column| self.widest(column)).collect();
        let before: usize = widths[..last].iter().map(|width| width + GAP).sum();
        let room = width.saturating_sub(before).max(MIN_WRAP);
        widths[last] = widths[last].min(room);

        let mut text = String::new();
        if self.has_header() {
            let headers: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
            self.render_row(&headers, &widths, &mut text);
            let rules: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
            self.render_row(&rules, &widths, &mut text);
        }
        for row in &self.rows {
            self.render_row(row, &widths, &mut text);
        }
        text
    }

    fn has_header(&self) -> bool {
        self.columns.iter().any(|(header, _)| !header.is_empty())
    }

    fn widest(&self, column: usize) -> usize {
        let cells = self.rows.iter().flat_map(|row| row[column].lines());
        let header = self.columns[column].0.as_str();
        cells.chain([header]).map(length).max().unwrap_or(0)
    }

    fn render_row(&self, cells: &[String], widths: &[usize], text: &mut String) {
        let (last, others) = cells.split_last().expect("a row has the table's columns");
        let mut line = String::new();
        for ((cell, (_, align)), &width) in others.iter().zip(&self.columns).zip(widths) {
            pad(cell, width, *align, &mut line);
            line.push_str(&" ".repeat(GAP));
        }
        let indent = " ".repeat(length(&line));
        let (width, align) = (widths[others.len()], self.columns[others.len()].1);
        for (number, part) in wrap(last, width).iter().enumerate() {
            if number > 0 {
                line.clone_from(&indent);
            }
            pad(part, width, align, &mut line);
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(DEFAULT_WIDTH))
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn pad(cell: &str, width: usize, align: Align, line: &mut String) {
    let blanks = " ".repeat(width.saturating_sub(length(cell)));
    match align {
        Align::Left => line.extend([cell, &blanks]),
        Align::Right => line.extend([&blanks, cell]),
    }
}

/// `text` in lines of at most `width` characters, broken at blanks; at least one line.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        if length(paragraph) <= width {
            lines.push(paragraph.to_owned());
            continue;
        }
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && length(&line) + 1 + length(word) > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

/// Text in lines of at most `width` columns, if its words allow it.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let mut lines = Table::new().column("", Align::Left);
    lines.row([text]);
    lines.render(width).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_column_wraps_between_words() {
        let mut table = Table::new()
            .column("parameter", Align::Left)
            .column("default", Align::Right)
            .column("meaning", Align::Left);
        table.row([
            "ecn.kmin",
            "25%bdp",
            "Queue length from which packets are marked.",
        ]);
        table.row(["x", "µ", "First line.\nhttps://example.org/a-long-address"]);
        table.row(["y", "1", ""]);
        insta::assert_snapshot!(table.render(45), @"
        parameter  default  meaning
        ---------  -------  -------------------------
        ecn.kmin    25%bdp  Queue length from which
                            packets are marked.
        x                µ  First line.
                            https://example.org/a-long-address
        y                1
        ");
    }

    #[test]
    fn without_headers_there_is_no_header_line() {
        let mut table = Table::new()
            .column("", Align::Right)
            .column("", Align::Left);
        table.row(["8,192", "data packets\nof all flows"]);
        table.row(["one\nline", "acknowledgements"]);
        assert_eq!(
            table.to_string(),
            "   8,192  data packets\n          of all flows\none line  acknowledgements\n"
        );
    }

    #[test]
    fn nothing_prints_as_nothing() {
        assert_eq!(Table::new().to_string(), "");
        let empty = Table::new().column("name", Align::Left);
        assert_eq!(empty.to_string(), "name\n----\n");
    }

    #[test]
    #[should_panic(expected = "one cell for each column")]
    fn a_row_of_the_wrong_length_is_our_bug() {
        Table::new().column("name", Align::Left).row(["a", "b"]);
    }

    proptest! {
        #[test]
        fn wrapping_keeps_all_words_and_the_width(words in prop::collection::vec("[a-z]{1,9}", 0..40), width in 10usize..60) {
            let text = words.join(" ");
            let lines = wrap(&text, width);
            prop_assert_eq!(lines.join(" "), text);
            prop_assert!(lines.iter().all(|line| length(line) <= width));
        }
    }
}

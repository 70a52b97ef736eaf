//! Labels on the left of the summary.

use crate::table::{Align, Table};

/// Width of the column of labels, equal in all parts.
const LABEL: usize = 9;

/// A table of labels and texts.
pub(super) fn labelled() -> Table {
    Table::new().column("", Align::Left).column("", Align::Left)
}

/// A label, as wide as its column.
pub(super) fn label(text: &str) -> String {
    format!("{text:<LABEL$}")
}

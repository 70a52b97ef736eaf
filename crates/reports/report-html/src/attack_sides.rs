//! Attackers and victims: results of each side of an attack.

use super::document::Document;
use super::html::{Column, paragraph, table};
use clearway_report::attack_sides::{HEADINGS, NOTE};
use clearway_report::summary::Summary;

/// The section on both sides of an attack; empty without an attack.
pub(super) fn section(document: &mut Document, summary: &Summary) {
    let Some(parties) = &summary.parties else {
        return;
    };
    document.open_section("attack", "Attack");
    let columns: Vec<_> = std::iter::once(("", Column::Text))
        .chain(HEADINGS.map(|heading| (heading, Column::Number)))
        .collect();
    // Signs as on the rest of the page; the terminal uses letters.
    let sign = |text: String| match text.strip_suffix('x') {
        Some(factor) => format!("{factor}×"),
        None => text.replace(" us", " µs"),
    };
    let rows = parties.rows().map(|row| row.map(sign).to_vec());
    document.push(&table(&columns, &rows));
    let fairness = parties.fairness_sentence().unwrap_or_default();
    document.push(&paragraph(&format!("{NOTE} {fairness}")));
    document.close_section();
}

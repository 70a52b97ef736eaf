//! A comparison for a terminal.

use crate::table::{Align, Table, wrapped};
use clearway_report::comparison::{Comparison, MEAN_ITERATION, MeasureRow, Unit};

/// Width of the answer on a terminal, in columns.
const ANSWER_WIDTH: usize = 100;

/// Maximum number of variants that fit on a terminal, besides the first.
const PER_BLOCK: usize = 4;

/// Text of a comparison: the compared scenarios, then a row for each measure and a column for each variant.
///
/// Measures of events that most runs do not have are left out if they are zero everywhere.
pub fn comparison_table(comparison: &Comparison) -> String {
    let mut text = legend(comparison);
    if let Some(answer) = comparison.answer() {
        let lines = wrapped(&answer, ANSWER_WIDTH);
        text = format!("{lines}\n\n{text}");
    }
    let others: Vec<usize> = (1..comparison.variants.len()).collect();
    // Without other variants the first variant still makes a block.
    let blocks: Vec<&[usize]> = match others.is_empty() {
        true => vec![&[]],
        false => others.chunks(PER_BLOCK).collect(),
    };
    for block in blocks {
        text += &format!("\n{}", block_table(comparison, block).render(usize::MAX));
    }
    text += &format!("\n{}", explanation(comparison));
    for warning in &comparison.warnings {
        text += &format!("warning: {warning}\n");
    }
    text
}

/// Table of the variants and their letters.
fn legend(comparison: &Comparison) -> String {
    let mut table = Table::new().column("", Align::Left);
    for heading in comparison.work_headings() {
        table = table.column(*heading, Align::Right);
    }
    table = table.column("seeds", Align::Right).column(
        comparison.label_heading().unwrap_or("what".into()),
        Align::Left,
    );
    for variant in &comparison.variants {
        let names = [variant.seeds(), variant.label.clone()];
        let work = comparison.work_of(variant).into_iter();
        table.row([variant.id.clone()].into_iter().chain(work).chain(names));
    }
    table.render(120)
}

/// Table of the first variant and the variants at `others`.
fn block_table(comparison: &Comparison, others: &[usize]) -> Table {
    let first = &comparison.variants[0].id;
    let mut table = Table::new()
        .column("", Align::Left)
        .column(first, Align::Right);
    for &other in others {
        let id = &comparison.variants[other].id;
        table = table
            .column(id, Align::Right)
            .column(format!("{id}/{first}"), Align::Right);
    }
    for row in comparison.shown() {
        add_rows(row, others, &mut table);
    }
    table
}

/// Notes on the table.
fn explanation(comparison: &Comparison) -> String {
    let most = comparison
        .variants
        .iter()
        .map(|variant| variant.runs.len())
        .max();
    let ratios = comparison.variants.len() > 1;
    let mut text = String::new();
    if let Some(note) = comparison.equal_note() {
        text += &format!("{note}\n");
    }
    if comparison.classes_differ() {
        text += "\"up to 10 KB\": slowdown of the flows of more than 1 KB, and so on.\n";
    }
    if comparison.shown().any(|row| row.name == MEAN_ITERATION) {
        text += "iteration mean: over jobs, of the mean of each; slowest job: the greatest of these means.\n";
    }
    if comparison.has_operations() {
        text += "effective bandwidth: flits received per GPU and cycle; latency: injection to response.\n";
    }
    if comparison.shown().any(|row| row.unit == Unit::Index) {
        text += "finish order: rank correlation with the starts; 1: those that start first finish first.\n";
    }
    if most > Some(1) {
        text += "Medians over seeds, with the least and the greatest value below.\n";
    }
    match (ratios, most) {
        (false, _) => {}
        (true, Some(1)) => {
            text += "One seed each: seeds alone may explain the differences; --seeds N tells.\n";
        }
        (true, _) => {
            text += "Ratios of medians, with the 95 % interval of the ratio of the means over common seeds below;\n\
                     ~: within the spread of seeds (the two ranges overlap).\n";
        }
    }
    text
}

/// Adds a row with medians and ratios, and a row with ranges if there are any.
fn add_rows(row: &MeasureRow, others: &[usize], table: &mut Table) {
    let shown = || [0].iter().chain(others).map(|&place| &row.values[place]);
    let cells = shown().enumerate().flat_map(|(place, spread)| {
        let median = spread.median_text(row.unit);
        match place {
            0 => vec![median],
            _ => vec![median, spread.ratio_text(&row.values[0], row.unit)],
        }
    });
    table.row([row.title.clone().into_owned()].into_iter().chain(cells));
    let ranges: Vec<String> = shown().map(|spread| spread.range_text(row.unit)).collect();
    if ranges.iter().any(|range| !range.is_empty()) {
        let cells = ranges.into_iter().zip(shown()).enumerate();
        let cells = cells.flat_map(|(place, (range, spread))| match place {
            0 => vec![range],
            _ => vec![range, spread.interval_text()],
        });
        table.row([String::new()].into_iter().chain(cells));
    }
}

#[cfg(test)]
mod tests;

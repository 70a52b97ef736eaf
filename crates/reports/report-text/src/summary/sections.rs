//! Completion times by section of the workload.

use crate::table::{Align, Table};
use clearway_report::Distribution;
use clearway_report::by_section::{FlowFigures, SectionSummary};
use clearway_report::quantity::{count, factor, microseconds, prefixed};
use clearway_report::summary::Summary;

/// Sections with completion times and goodput, then with slowdown by size; empty if all flows belong to one section.
pub(super) fn sections(summary: &Summary) -> String {
    if summary.sections.is_empty() {
        return String::new();
    }
    format!(
        "{}\n{}",
        completion(&summary.sections),
        slowdown(&summary.sections)
    )
}

fn completion(sections: &[SectionSummary]) -> Table {
    let mut table = Table::new().column("FCT by section", Align::Left);
    for heading in ["flows", "completed", "p50", "p99", "p99.9", "goodput"] {
        table = table.column(heading, Align::Right);
    }
    for section in sections {
        let figures = section.figures;
        let goodput = figures.goodput_bps.map(|bps| prefixed(bps) + "bit/s");
        let first = [
            section.name.clone(),
            count(figures.flows),
            count(figures.completed),
        ];
        let row = first
            .into_iter()
            .chain(percentiles(figures.fct_us, microseconds));
        table.row(row.chain([goodput.unwrap_or_else(|| "-".into())]));
    }
    table
}

/// Table of slowdown, with a row for each size class of the sections that have several.
fn slowdown(sections: &[SectionSummary]) -> Table {
    let mut table = Table::new()
        .column("Slowdown by section", Align::Left)
        .column("flows", Align::Right);
    for heading in ["p50", "p99", "p99.9"] {
        table = table.column(heading, Align::Right);
    }
    let mut add = |name: String, figures: FlowFigures| {
        let first = [name, count(figures.flows)];
        table.row(
            first
                .into_iter()
                .chain(percentiles(figures.slowdown, factor)),
        );
    };
    for section in sections {
        add(section.name.clone(), section.figures);
        if section.by_class.len() > 1 {
            let classes = section.by_class.iter();
            classes.for_each(|class| add(format!("  {}", class.name()), class.figures));
        }
    }
    table
}

/// The median and the tail, or dashes.
pub(super) fn percentiles(all: Option<Distribution>, print: fn(f64) -> String) -> [String; 3] {
    match all {
        Some(all) => [all.p50, all.p99, all.p999].map(print),
        None => ["-"; 3].map(String::from),
    }
}

//! Results by section of the workload.

use super::completion::cumulative;
use super::document::Document;
use super::format;
use super::html::{Column, paragraph, table};
use super::plot::{Axis, MOST_SERIES, Plot, Unit};
use clearway_report::Distribution;
use clearway_report::by_section::{FlowFigures, SectionSummary};
use clearway_report::summary::Summary;
use clearway_report::{FlowTimes, RunRecord};

/// Section on the sections of the workload; empty if all flows belong to one.
pub(super) fn section(document: &mut Document, record: &RunRecord, summary: &Summary) {
    if summary.sections.is_empty() {
        return;
    }
    document.open_section("sections", "By section of the workload");
    document.push(&paragraph(
        "Percentiles over all flows are those of the section that has most of them. Goodput: payload of the completed flows, over the \
         time from the first start to the last finish among them.",
    ));
    document.push(&breakdown(&summary.sections));
    document.plots(vec![slowdowns(record, &summary.sections)]);
    document.close_section();
}

/// Headings of the figures of a row.
pub(super) const FIGURES: [&str; 9] = [
    "Flows",
    "Completed",
    "FCT p50",
    "p99",
    "p99.9",
    "Slowdown p50",
    "p99",
    "p99.9",
    "Goodput",
];

/// Table of all sections, with a row for each size class of the sections that have several.
fn breakdown(sections: &[SectionSummary]) -> String {
    let columns: Vec<_> = [("Section", Column::Text)]
        .into_iter()
        .chain(FIGURES.map(|name| (name, Column::Number)))
        .collect();
    let mut rows = Vec::new();
    for section in sections {
        rows.push(row(section.name.clone(), &section.figures));
        if section.by_class.len() > 1 {
            let classes = section.by_class.iter();
            rows.extend(classes.map(|class| {
                let name = format!("{}, {}", section.name, class.name());
                row(name, &class.figures)
            }));
        }
    }
    table(&columns, &rows)
}

/// A name and its figures.
pub(super) fn row(name: String, figures: &FlowFigures) -> Vec<String> {
    let tail = |all: Option<Distribution>, print: fn(f64) -> String| match all {
        Some(all) => [all.p50, all.p99, all.p999].map(print),
        None => ["–"; 3].map(String::from),
    };
    let mut row = vec![
        name,
        format::count(figures.flows),
        format::count(figures.completed),
    ];
    row.extend(tail(figures.fct_us, format::time));
    row.extend(tail(figures.slowdown, format::factor));
    row.push(figures.goodput_bps.map_or("–".into(), format::rate));
    row
}

/// Distributions of slowdown, one for each section.
fn slowdowns(record: &RunRecord, sections: &[SectionSummary]) -> Plot {
    let flows = record.flow_times();
    let of = |name: &str| {
        let is_own = |flow: &&FlowTimes| {
            let own = record.sections.get(flow.section as usize);
            own.is_some_and(|own| own == name)
        };
        let own = flows.iter().filter(is_own);
        let mut sorted: Vec<f64> = own.filter_map(FlowTimes::slowdown).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted
    };
    let drawn = sections.iter().take(MOST_SERIES).enumerate();
    let series = drawn.filter_map(|(colour, section)| {
        let sorted = of(&section.name);
        (!sorted.is_empty()).then(|| cumulative(&section.name, &sorted, colour))
    });
    Plot {
        id: "section-slowdown",
        title: "Slowdown by section".into(),
        note: "share of the completed flows of each section that were at most so many times as slow as alone".into(),
        x: Axis::log("slowdown", Unit::Factor),
        y: Axis::from_zero("share of flows", Unit::Fraction).to(1.0),
        series: series.collect(),
        rules: Vec::new(),
    }
}

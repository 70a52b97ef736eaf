//! Operations of a scale-up run for the terminal.

use super::labels::label;
use crate::table::{Align, Table};
use clearway_report::operation_summary::{HEADINGS, OperationSummary, note, number};
use clearway_report::quantity::{count, microseconds};
use clearway_report::summary::Summary;
use clearway_results::{BreakdownFigures, LatencyCycles, OperationFigures};

/// Text of the row with the number of completed operations.
pub(super) fn completed(operations: &OperationSummary, simulated_us: f64) -> String {
    let totals = operations.figures.totals;
    format!(
        "{} of {} operations in {} of simulated time",
        count(totals.completed),
        count(totals.posted),
        microseconds(simulated_us)
    )
}

/// Tables of latencies, of all operations and by section and kind; empty for a run of packets.
pub(super) fn latency(summary: &Summary) -> String {
    let Some(operations) = &summary.operations else {
        return String::new();
    };
    let Some(latency) = operations.figures.latency_cycles else {
        return format!("{}  no operation completed\n", label("Latency"));
    };
    let LatencyCycles {
        min,
        mean,
        p50,
        p99,
        p999,
        max,
    } = latency;
    let [min, p50, p99, p999, max] = [min, p50, p99, p999, max].map(|cycles| cycles as f64);
    let mut table = Table::new().column("Latency", Align::Left);
    for header in ["min", "mean", "p50", "p99", "p99.9", "max"] {
        table = table.column(header, Align::Right);
    }
    let all = [min, mean, p50, p99, p999, max];
    let cycles = all.map(|cycles| number(Some(cycles)));
    table.row([label("cycles")].into_iter().chain(cycles));
    let times = all.map(|cycles| microseconds(operations.cycles_as_us(cycles)));
    table.row([label("time")].into_iter().chain(times));
    format!(
        "{table}\n{}\n{}\n",
        by_section(operations),
        note(operations)
    )
}

/// Table of latencies in cycles by section and kind.
fn by_section(operations: &OperationSummary) -> Table {
    let mut table = Table::new();
    for heading in HEADINGS {
        table = table.column(heading, Align::Left);
    }
    for column in BreakdownFigures::COLUMNS {
        table = table.column(column.label, Align::Right);
    }
    operations.rows().for_each(|row| table.row(row));
    table
}

/// Figures that have a phrase: bandwidth, reduction tables, queues and links; empty for a run of packets.
pub(super) fn fabric(summary: &Summary) -> String {
    let Some(operations) = &summary.operations else {
        return String::new();
    };
    let mut table = Table::new()
        .column("", Align::Left)
        .column("", Align::Right)
        .column("", Align::Left);
    let figures = OperationFigures::figures().filter(|figure| !figure.phrase.is_empty());
    for (place, figure) in figures.enumerate() {
        let name = if place == 0 { "Fabric" } else { "" };
        let value = (figure.of)(&operations.figures);
        table.row([label(name), number(value), figure.phrase.to_owned()]);
    }
    table.to_string()
}

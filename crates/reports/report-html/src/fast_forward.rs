//! Remembered calls and skipped time, for runs with `fast-forward`.

use super::document::Document;
use super::format;
use super::html::{Column, paragraph, table};
use clearway_report::fast_forward::CallSort;
use clearway_report::summary::Summary;

/// Section on what was not simulated; empty in a run without `fast-forward`.
pub(super) fn section(document: &mut Document, summary: &Summary) {
    let Some(own) = &summary.fast_forward else {
        return;
    };
    document.open_section("fast-forward", "Fast-forward");
    document.push(&paragraph(&format!("{}.", own.accuracy())));
    if own.skipped.stretches > 0 {
        document.push(&paragraph(
            "While long flows were steady, time was skipped: their packets count as sent at the rates that they had. Curves and loads of \
             links on this page include them; counts of packets are those of the simulated packets.",
        ));
    }
    if !own.calls.is_empty() {
        document.push(&paragraph(
            "Calls of collectives that repeat were simulated a few times; the others took the transfer times of a simulated one, and no \
             packets. Counts of packets, curves and loads of links on this page are those of the simulated calls.",
        ));
        document.push(&calls(&own.calls));
    }
    for job in &own.declined_jobs {
        document.push(&paragraph(&format!(
            "{} is simulated as a whole: {}.",
            job.label, job.reason
        )));
    }
    document.close_section();
}

fn calls(sorts: &[CallSort]) -> String {
    let columns = [
        "Ranks of a call",
        "Messages",
        "Bytes",
        "Different calls",
        "Disagreeing",
        "Simulated",
        "Remembered",
        "Void",
    ]
    .map(|name| (name, Column::Number));
    let row = |calls: &CallSort| {
        vec![
            format::count(calls.ranks.into()),
            format::count(calls.messages.into()),
            format::bytes(calls.bytes as f64),
            format::count(calls.kinds.into()),
            format::count(calls.disagreeing.into()),
            format::count(calls.simulated),
            format::count(calls.remembered),
            format::count(calls.void),
        ]
    };
    table(&columns, &sorts.iter().map(row).collect::<Vec<_>>())
}

//! Simulated and remembered calls, for runs that may remember calls.

use super::document::Document;
use super::format;
use super::html::{Column, paragraph, table};
use clearway_report::fast_forward::CallSort;
use clearway_report::summary::Summary;

/// Section on the calls; empty if every packet is simulated.
pub(super) fn section(document: &mut Document, summary: &Summary) {
    let Some(own) = &summary.fast_forward else {
        return;
    };
    document.open_section("fast-forward", "Remembered calls");
    document.push(&paragraph(&format!("{}.", own.accuracy())));
    document.push(&paragraph(
        "Calls of collectives that repeat were simulated a few times; the others took the transfer times of a simulated one, and no \
         packets. Counts of packets, curves and loads of links on this page are those of the simulated calls.",
    ));
    document.push(&calls(&own.calls));
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

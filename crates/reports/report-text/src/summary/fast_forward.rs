//! Simulated and remembered calls.

use super::labels::{label, labelled};
use crate::table::{Align, Table};
use clearway_report::quantity::{bytes, count};
use clearway_report::summary::Summary;

/// Accuracy and calls by sort; empty if every packet is simulated.
pub(super) fn fast_forward(summary: &Summary) -> String {
    let Some(own) = &summary.fast_forward else {
        return String::new();
    };
    let mut lines = labelled();
    for (index, part) in own.accuracy().split("; ").enumerate() {
        let name = if index == 0 { "Forward" } else { "" };
        lines.row([label(name), part.to_owned()]);
    }
    for job in &own.declined_jobs {
        lines.row([
            label(""),
            format!("{} is simulated: {}", job.label, job.reason),
        ]);
    }
    let mut table = Table::new();
    for heading in [
        "Ranks",
        "messages",
        "bytes",
        "kinds",
        "disagree",
        "simulated",
        "remembered",
        "void",
    ] {
        table = table.column(heading, Align::Right);
    }
    for calls in &own.calls {
        table.row([
            count(calls.ranks.into()),
            count(calls.messages.into()),
            bytes(calls.bytes),
            count(calls.kinds.into()),
            count(calls.disagreeing.into()),
            count(calls.simulated),
            count(calls.remembered),
            count(calls.void),
        ]);
    }
    match own.calls.is_empty() {
        true => lines.to_string(),
        false => format!("{lines}\n{table}"),
    }
}

//! Links of a run: one row for each direction of a cable, with its totals. The table is only in memory, not in a file.
//!
//! [`columns`](crate::columns) gives the meaning of each column.

use crate::observed::{LinkRow, RunObservations};
use crate::parquet_table::{Columns, Values, column};
use parquet::data_type::ByteArray;

/// A link with the names of its ends.
pub(crate) struct Row {
    link: LinkRow,
    from: ByteArray,
    to: ByteArray,
}

/// The rows of a run.
pub(crate) fn rows(observed: &RunObservations) -> impl Iterator<Item = Row> {
    let name = |node: u32| observed.nodes[node as usize].name.as_str().into();
    observed.links.iter().map(move |link| Row {
        from: name(link.from),
        to: name(link.to),
        link: link.clone(),
    })
}

pub(crate) const COLUMNS: &Columns<Row> = &[
    column(
        "link",
        Values::Text(|row| row.link.name.as_str().into()),
        "",
        "name of the link, such as `leaf0-spine2`",
    ),
    column(
        "from",
        Values::Text(|row| row.from.clone()),
        "",
        "node at which it begins",
    ),
    column(
        "to",
        Values::Text(|row| row.to.clone()),
        "",
        "node at which it ends",
    ),
    column(
        "rate_bps",
        Values::U64(|row| row.link.rate.as_bps()),
        "bit/s",
        "rate",
    ),
    column(
        "bytes",
        Values::U64(|row| row.link.bytes),
        "bytes",
        "bytes that it carried, headers included",
    ),
    column(
        "packets",
        Values::U64(|row| row.link.packets),
        "packets",
        "packets that it carried",
    ),
    column(
        "marks",
        Values::U64(|row| row.link.marks),
        "packets",
        "packets that the queue in front of it marked",
    ),
    column(
        "drops",
        Values::U64(|row| row.link.drops),
        "packets",
        "packets that were dropped in front of it, or lost on it",
    ),
    column(
        "trims",
        Values::U64(|row| row.link.trims),
        "packets",
        "data packets that the queue in front of it trimmed",
    ),
    column(
        "pauses",
        Values::U64(|row| row.link.pauses),
        "pauses",
        "number of times that flow control paused it",
    ),
    column(
        "paused_ps",
        Values::Ps(|row| row.link.paused.as_ps()),
        "ps",
        "time for which flow control paused it",
    ),
    column(
        "peak_queue_bytes",
        Values::U64(|row| row.link.peak_queue),
        "bytes",
        "the most bytes that were in its data queue",
    ),
];

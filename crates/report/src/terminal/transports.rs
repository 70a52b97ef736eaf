//! Results by transport.

use super::sections::percentiles;
use crate::quantity::{count, factor, microseconds, prefixed};
use crate::summary::Summary;
use crate::table::{Align, Table};

/// A row for each transport; nothing if the run has one.
pub(super) fn transports(summary: &Summary) -> String {
    if summary.transports.is_empty() {
        return String::new();
    }
    let mut fct = Table::new().column("FCT by transport", Align::Left);
    for heading in ["flows", "completed", "p50", "p99", "p99.9", "goodput"] {
        fct = fct.column(heading, Align::Right);
    }
    let mut cost = Table::new().column("Slowdown by transport", Align::Left);
    for heading in ["p50", "p99", "p99.9", "sent", "retransmitted", "timeouts"] {
        cost = cost.column(heading, Align::Right);
    }
    for transport in &summary.transports {
        let figures = transport.figures;
        let goodput = figures.goodput_bps.map(|bps| prefixed(bps) + "bit/s");
        let first = [
            transport.name.clone(),
            count(figures.flows),
            count(figures.completed),
        ];
        let times = percentiles(figures.fct_us, microseconds);
        let row = first.into_iter().chain(times);
        fct.row(row.chain([goodput.unwrap_or_else(|| "-".into())]));
        let packets = [
            transport.data_sent,
            transport.retransmitted,
            transport.timeouts,
        ];
        let row = [transport.name.clone()].into_iter();
        let row = row.chain(percentiles(figures.slowdown, factor));
        cost.row(row.chain(packets.map(count)));
    }
    format!("{fct}\n{cost}")
}

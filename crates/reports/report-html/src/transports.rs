//! Results by transport, for runs with several transports.

use super::document::Document;
use super::format;
use super::html::{Column, paragraph, table};
use super::sections;
use clearway_report::by_transport::TransportSummary;
use clearway_report::summary::Summary;

/// Section on the transports; empty if the run has one.
pub(super) fn section(document: &mut Document, summary: &Summary) {
    if summary.transports.is_empty() {
        return;
    }
    document.open_section("transports", "By transport");
    document.push(&paragraph(
        "Sections of the workload have transports of their own. Packets are counted at the senders of each transport, those of flows \
         that did not complete included.",
    ));
    document.push(&breakdown(&summary.transports));
    document.close_section();
}

fn breakdown(transports: &[TransportSummary]) -> String {
    let texts = ["Transport", "Sections"].map(|name| (name, Column::Text));
    let packets = ["Packets sent", "Sent again", "Timeouts"].map(|name| (name, Column::Number));
    let figures = sections::FIGURES.map(|name| (name, Column::Number));
    let columns: Vec<_> = texts.into_iter().chain(figures).chain(packets).collect();
    let row = |transport: &TransportSummary| {
        let mut row = sections::row(transport.name.clone(), &transport.figures);
        row.insert(1, transport.sections.join(", "));
        let packets = [
            transport.data_sent,
            transport.retransmitted,
            transport.timeouts,
        ];
        row.extend(packets.map(format::count));
        row
    };
    table(&columns, &transports.iter().map(row).collect::<Vec<_>>())
}

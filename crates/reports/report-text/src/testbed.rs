//! A simulation and a test bed side by side, for a terminal.

use crate::table::{Align, Table};
use clearway_report::testbed::TestbedRecord;

/// Number of flows from which on the table shows size classes instead.
const MOST_ROWS: usize = 24;

/// Tables of a simulation and a test bed, and the differences between the two.
pub fn testbed_text(record: &TestbedRecord) -> String {
    let mut text = format!(
        "{} on a test bed with {} switches: {}, {} over {} of {:.3} Gb/s\n",
        record.scenario,
        record.switches,
        record.fabric,
        record.transport,
        match record.paths {
            1 => "1 path".to_owned(),
            paths => format!("{paths} paths"),
        },
        record.line_rate_gbps,
    );
    let trips = &record.round_trip;
    text += &format!(
        "base round trip: measured {:.0} us (median {:.0} us), simulated {:.0} us\n\n",
        trips.measured_least_us, trips.measured_median_us, trips.simulated_us
    );
    if record.flows.len() <= MOST_ROWS {
        text += &flow_table(record).render(usize::MAX);
        text.push('\n');
    }
    text += &class_table(record).render(usize::MAX);
    text.push('\n');
    text += &link_table(record).render(usize::MAX);
    text += "\nWhere they differ, and why\n";
    for difference in &record.differences {
        text += &format!("  {}: {}\n", difference.what, difference.facts);
    }
    text
}

fn flow_table(record: &TestbedRecord) -> Table {
    let mut table = Table::new()
        .column("flow", Align::Right)
        .column("hosts", Align::Left)
        .column("MB", Align::Right)
        .column("simulated ms", Align::Right)
        .column("measured ms", Align::Right)
        .column("ratio", Align::Right)
        .column("again", Align::Right)
        .column("marks", Align::Right)
        .column("paths", Align::Right);
    for flow in &record.flows {
        table.row(flow.cells());
    }
    table
}

fn class_table(record: &TestbedRecord) -> Table {
    let mut table = Table::new()
        .column("completion, ms", Align::Left)
        .column("flows", Align::Right)
        .column("simulated p50", Align::Right)
        .column("p99", Align::Right)
        .column("max", Align::Right)
        .column("measured p50", Align::Right)
        .column("p99", Align::Right)
        .column("max", Align::Right)
        .column("ratio p50", Align::Right);
    for class in record.classes() {
        table.row(class.cells());
    }
    table
}

fn link_table(record: &TestbedRecord) -> Table {
    let mut table = Table::new()
        .column("link", Align::Left)
        .column("simulated MB", Align::Right)
        .column("share", Align::Right)
        .column("measured MB", Align::Right)
        .column("share", Align::Right)
        .column("drops", Align::Right)
        .column("marks", Align::Right);
    for row in record.link_rows() {
        table.row(row);
    }
    table
}

//! The critical path of an iteration for a terminal.

use crate::table::{Align, Table, wrapped};
use clearway_report::quantity::{count, microseconds, share, span};
use clearway_report::why::SlowIteration;
use clearway_units::Span;

/// Rows of a table on a terminal.
const SHOWN: usize = 5;

/// Text of an iteration: its parts, links and hosts.
pub(super) fn iteration_text(iteration: &SlowIteration) -> String {
    let mut text = format!("{}\n\n", wrapped(&iteration.sentence, 100));
    let mut table = ["part", "time", "share"]
        .into_iter()
        .zip([Align::Left, Align::Right, Align::Right])
        .fold(Table::new(), |table, (head, align)| {
            table.column(head, align)
        });
    let took = iteration.took_ps();
    for row in &iteration.parts {
        let time = span(Span::from_ps(row.ps));
        table.row(vec![row.part.name().into(), time, share(row.ps, took)]);
    }
    text += &table.render(200);
    let us = |us: f64| match us {
        0.0 => "-".to_owned(),
        us => microseconds(us),
    };
    let number = |number: usize| count(number as u64);
    if !iteration.links.is_empty() {
        let heads = ["link", "queueing", "paused", "serialisation", "messages"];
        let mut table = headed(&heads);
        for row in iteration.links.iter().take(SHOWN) {
            table.row(vec![
                row.link.clone(),
                us(row.queueing_us),
                us(row.paused_us),
                us(row.serialisation_us),
                number(row.messages),
            ]);
        }
        text.push('\n');
        text += &table.render(200);
    }
    let heads = ["host", "computing", "messages", "time", "more than alone"];
    let mut table = headed(&heads);
    for row in iteration.hosts.iter().take(SHOWN) {
        table.row(vec![
            row.host.to_string(),
            us(row.computing_us),
            number(row.messages),
            us(row.messages_us),
            us(row.excess_us),
        ]);
    }
    text.push('\n');
    text + &table.render(200)
}

fn headed(heads: &[&str]) -> Table {
    let first = Table::new().column(heads[0], Align::Left);
    let others = heads[1..].iter();
    others.fold(first, |table, &head| table.column(head, Align::Right))
}

//! The choice of a tuning for a terminal.

use super::sweep_table;
use crate::table::{Align, Table};
use clearway_report::sweep::{SweepRecord, no_value};
use std::fmt::Write as _;

/// Rungs of a tuning with the points of the last rung, or with the chosen points if more than one measure or group decided.
pub fn tuning_table(sweep: &SweepRecord) -> String {
    let Some(tuning) = &sweep.tuning else {
        return sweep_table(sweep, None);
    };
    let mut table = Table::new()
        .column("rung", Align::Right)
        .column("points", Align::Right)
        .column("seeds", Align::Right)
        .column("left out", Align::Right);
    for (number, rung) in (1..).zip(&tuning.rungs) {
        table.row([
            i32::to_string(&number),
            rung.points.to_string(),
            rung.seeds.to_string(),
            rung.left_out.to_string(),
        ]);
    }
    let mut text = table.render(usize::MAX) + "\n";
    let unknown = sweep.unknown_of(tuning);
    if let Some(measure) = unknown {
        return text + "\n" + &no_value(measure) + "\n";
    }
    if tuning.is_grouped || tuning.then.is_some() {
        return text + &chosen_table(sweep);
    }
    let mut last = sweep.clone();
    last.runs.retain(|run| tuning.last.contains(&run.place));
    // Runs of points that the tuning dropped are not missing.
    last.missing = 0;
    let _ = write!(text, "{}", sweep_table(&last, Some(&tuning.measure)));
    text
}

fn chosen_table(sweep: &SweepRecord) -> String {
    let (titles, rows) = sweep.chosen();
    let mut table = Table::new();
    for (number, title) in titles.into_iter().enumerate() {
        let is_text = sweep
            .axes
            .get(number)
            .is_some_and(|axis| axis.numbers.is_none());
        let align = match is_text {
            true => Align::Left,
            false => Align::Right,
        };
        table = table.column(title, align);
    }
    rows.into_iter().for_each(|row| table.row(row));
    let mut text = table.render(usize::MAX);
    if let Some(sentence) = sweep.chosen_by() {
        let _ = write!(text, "\n{sentence}\n");
    }
    text
}

//! A sweep for a terminal.

mod groups;
mod tuning;

pub use tuning::tuning_table;

use crate::table::{Align, Table};
use clearway_report::quantity::count;
use clearway_report::sweep::{
    AssertionVerdict, RankedGroup, Samples, Statistic, SweepRecord, no_value, share_text,
};
use groups::answer_text;
use std::fmt::Write as _;

/// Maximum number of points in the table.
const MOST_POINTS: usize = 40;

/// Maximum number of listed failures.
const MOST_FAILURES: usize = 4;

/// The answer of a sweep by a measure (by default the [primary](SweepRecord::primary) one), then points with intervals, the best of
/// each [group](SweepRecord::groups) first, then assertions and failures.
pub fn sweep_table(sweep: &SweepRecord, measure: Option<&str>) -> String {
    let named = measure.map(|name| (name, sweep.place_of(name)));
    let measure = match named {
        // The answer for another measure would not be the requested one.
        Some((name, None)) => return no_value(name) + "\n" + &remarks(sweep),
        Some((_, measure)) => measure,
        None => sweep.primary(),
    };
    let Some(measure) = measure else {
        return remarks(sweep);
    };
    let groups = sweep.best_of_groups(measure, Statistic::Mean);
    let mut text = answer_text(sweep, &groups, measure);
    text += &point_table(sweep, &groups, measure).render(usize::MAX);
    text + &remarks(sweep)
}

fn point_table(sweep: &SweepRecord, groups: &[RankedGroup], measure: usize) -> Table {
    let of = &sweep.measures[measure];
    let shares = sweep.shares(groups);
    let mut table = Table::new();
    for axis in &sweep.axes {
        let align = match axis.numbers {
            Some(_) => Align::Right,
            None => Align::Left,
        };
        table = table.column(axis.key.clone(), align);
    }
    table = table
        .column(of.title.clone(), Align::Right)
        .column("95 % interval", Align::Right)
        .column("seeds", Align::Right)
        .column("best in", Align::Right)
        .column("", Align::Left);
    let points = sweep.points();
    let mut samples = Samples::default();
    let ranked = sweep.ranked(measure);
    for &number in ranked.iter().take(MOST_POINTS) {
        let point = &points[number];
        let estimate = sweep.estimate(point, measure, Statistic::Mean, &mut samples);
        let values = sweep
            .values_of(&point.place)
            .map(|(_, value)| value.to_owned());
        let share = shares[number].map_or(String::new(), share_text);
        let cells = [
            estimate.map_or("-".into(), |estimate| of.unit.print(estimate.value)),
            sweep.interval_text(point, measure, estimate),
            estimate.map_or(0, |estimate| estimate.seeds).to_string(),
            share,
            sweep.state_of(point),
        ];
        table.row(values.chain(cells));
    }
    if ranked.len() > MOST_POINTS {
        let rest = count((ranked.len() - MOST_POINTS) as u64);
        let mut cells = vec![String::new(); sweep.axes.len() + 5];
        if let Some(first) = cells.first_mut() {
            *first = format!("and {rest} more");
        }
        table.row(cells);
    }
    table
}

/// Assertions, failures and missing runs.
fn remarks(sweep: &SweepRecord) -> String {
    let mut text = String::new();
    for outcome in &sweep.assertions {
        let verdict = match outcome.verdict {
            AssertionVerdict::Undecided => "UNDECIDED (counts as failed)",
            AssertionVerdict::Fail => "FAIL",
            AssertionVerdict::Pass => "pass",
        };
        let _ = write!(
            text,
            "\n{verdict}: {}\n  {}\n",
            outcome.text, outcome.reason
        );
    }
    for failure in sweep.failures.iter().take(MOST_FAILURES) {
        let name = sweep.name_of(&failure.place);
        let _ = write!(
            text,
            "\nfailed: {name} seed {}: {}\n",
            failure.seed, failure.reason
        );
    }
    if sweep.failures.len() > MOST_FAILURES {
        let _ = write!(
            text,
            "\nand {} more runs failed\n",
            sweep.failures.len() - MOST_FAILURES
        );
    }
    if sweep.missing > 0 {
        let _ = write!(
            text,
            "\n{} runs of the plan are not done yet\n",
            count(sweep.missing)
        );
    }
    text
}

#[cfg(test)]
mod tests;

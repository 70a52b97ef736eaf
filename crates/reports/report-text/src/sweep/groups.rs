//! The answer of a sweep and its groups for a terminal.

use crate::table::{Align, Table, wrapped};
use clearway_report::sweep::{RankedGroup, Statistic, SweepRecord, share_text};
use std::fmt::Write as _;

/// Width of the answer on a terminal, in columns.
const ANSWER_WIDTH: usize = 100;

/// Maximum number of groups that a terminal lists.
const MOST_GROUPS: usize = 20;

/// The answer as text, with a row for each group if there are several.
pub(super) fn answer_text(sweep: &SweepRecord, groups: &[RankedGroup], measure: usize) -> String {
    let answer = sweep.answer_of(groups, measure, Statistic::Mean);
    if answer.is_empty() {
        return answer;
    }
    let mut text = wrapped(&answer, ANSWER_WIDTH) + "\n";
    if groups.len() > 1 {
        let _ = write!(
            text,
            "\n{}",
            group_table(sweep, groups, measure).render(usize::MAX)
        );
    }
    text + "\n"
}

/// A row for each group: the given values, the best choice, and the choices that cannot be distinguished from it.
fn group_table(sweep: &SweepRecord, groups: &[RankedGroup], measure: usize) -> Table {
    let of = &sweep.measures[measure];
    let mut table = Table::new();
    for axis in sweep.axes.iter().filter(|axis| axis.given) {
        table = table.column(axis.key.clone(), Align::Right);
    }
    table = table
        .column("best", Align::Left)
        .column(of.title.clone(), Align::Right)
        .column("95 % interval", Align::Right)
        .column("best in", Align::Right)
        .column("cannot be told apart", Align::Left);
    let points = sweep.points();
    let name = |point: usize| sweep.name_of_choice(&sweep.chosen_place(&points[point].place));
    for (group, best) in groups.iter().take(MOST_GROUPS) {
        let place = &points[group.points[0]].place;
        let values = sweep.values_of(place).zip(&sweep.axes);
        let values = values.filter(|(_, axis)| axis.given);
        let mut row: Vec<String> = values.map(|((_, value), _)| value.to_owned()).collect();
        match best {
            None => row.extend(["not known", "-", "-", "-", ""].map(str::to_owned)),
            Some(best) => {
                let shares = best.shares.as_ref();
                let alike: Vec<String> = best
                    .alike
                    .iter()
                    .map(|&point| sweep.undecided(name(point), &points[point], measure))
                    .collect();
                row.extend([
                    name(best.point),
                    of.unit.print(best.estimate.value),
                    sweep.interval_text(&points[best.point], measure, Some(best.estimate)),
                    shares.map_or(String::new(), |shares| share_text(shares[&best.point])),
                    alike.join(", "),
                ]);
            }
        }
        table.row(row);
    }
    if groups.len() > MOST_GROUPS {
        let given = sweep.axes.iter().filter(|axis| axis.given).count();
        let mut row = vec![String::new(); given + 5];
        row[0] = format!("and {} more", groups.len() - MOST_GROUPS);
        table.row(row);
    }
    table
}

//! A sweep for the terminal.

use super::groups::RankedGroup;
use super::points::{CONFIDENCE, Samples, share_text};
use super::{AssertionVerdict, BestPoint, Statistic, SweepPoint, SweepRecord};
use crate::quantity::{count, factor};
use crate::table::{Align, Table};
use std::fmt::Write as _;

/// Points that the table in a terminal has at most.
const MOST_POINTS: usize = 40;
/// Points that a sentence names at most.
const MOST_NAMES: usize = 4;

impl SweepRecord {
    /// The answer by a measure (the [primary](Self::primary) one if none is named), then points with intervals, the best of each
    /// [group](Self::groups) first, then assertions and failures.
    pub fn to_table(&self, measure: Option<&str>) -> String {
        let named = measure.map(|name| (name, self.place_of(name)));
        let measure = match named {
            // Another measure would answer a question that nobody has asked.
            Some((name, None)) => return no_value(name) + "\n" + &self.remarks(),
            Some((_, measure)) => measure,
            None => self.primary(),
        };
        let Some(measure) = measure else {
            return self.remarks();
        };
        let groups = self.best_of_groups(measure, Statistic::Mean);
        let mut text = self.answer_text(&groups, measure);
        text += &self.point_table(&groups, measure).render(usize::MAX);
        text + &self.remarks()
    }

    /// Places of the points, group by group, the best by the mean of a measure first; those without a value last. In the order of the
    /// plan where nothing can be chosen.
    pub fn ranked(&self, measure: usize) -> Vec<usize> {
        let points = self.points();
        let unit = self.measures[measure].unit;
        let costs: Vec<f64> = points
            .iter()
            .map(|point| {
                let values: Vec<f64> = self.values_by_seed(point, measure).into_values().collect();
                Statistic::Mean
                    .of(&values)
                    .map_or(f64::INFINITY, |mean| unit.cost(mean))
            })
            .collect();
        if !self.has_choice() {
            return (0..points.len()).collect();
        }
        let groups = self.groups().into_iter();
        let ranked = groups.flat_map(|mut group| {
            group.points.sort_by(|&a, &b| costs[a].total_cmp(&costs[b]));
            group.points
        });
        ranked.collect()
    }

    fn point_table(&self, groups: &[RankedGroup], measure: usize) -> Table {
        let of = &self.measures[measure];
        let shares = self.shares(groups);
        let mut table = Table::new();
        for axis in &self.axes {
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
        let points = self.points();
        let mut samples = Samples::default();
        let ranked = self.ranked(measure);
        for &number in ranked.iter().take(MOST_POINTS) {
            let point = &points[number];
            let estimate = self.estimate(point, measure, Statistic::Mean, &mut samples);
            let values = self
                .values_of(&point.place)
                .map(|(_, value)| value.to_owned());
            let share = shares[number].map_or(String::new(), share_text);
            let cells = [
                estimate.map_or("-".into(), |estimate| of.unit.print(estimate.value)),
                self.interval_text(point, measure, estimate),
                estimate.map_or(0, |estimate| estimate.seeds).to_string(),
                share,
                self.state_of(point),
            ];
            table.row(values.chain(cells));
        }
        if ranked.len() > MOST_POINTS {
            let rest = count((ranked.len() - MOST_POINTS) as u64);
            let mut cells = vec![String::new(); self.axes.len() + 5];
            if let Some(first) = cells.first_mut() {
                *first = format!("and {rest} more");
            }
            table.row(cells);
        }
        table
    }

    /// Share of the bootstrap's samples in which each point is the best of its group; `None` of one seed.
    pub fn shares(&self, groups: &[RankedGroup]) -> Vec<Option<f64>> {
        let mut all = vec![None; self.points().len()];
        for (group, best) in groups {
            let shares = best.as_ref().and_then(|best| best.shares.as_ref());
            for &point in &group.points {
                all[point] = shares.map(|shares| shares[&point]);
            }
        }
        all
    }

    /// Runs of a point that are not complete, in words.
    pub fn state_of(&self, point: &super::SweepPoint) -> String {
        match self.not_complete(point) {
            0 => String::new(),
            some => format!("{some} of {} runs not complete", point.runs.len()),
        }
    }

    /// The best point in words, and how sure that is.
    pub fn best_sentence(&self, measure: usize, statistic: Statistic) -> String {
        let best = self.best(measure, statistic);
        self.sentence_of(best.as_ref(), measure, statistic)
    }

    /// As [`best_sentence`](Self::best_sentence), of a best point that is known.
    pub(super) fn sentence_of(
        &self,
        best: Option<&BestPoint>,
        measure: usize,
        statistic: Statistic,
    ) -> String {
        let of = &self.measures[measure];
        let Some(best) = best else {
            return format!(
                "Best {}: not known, no point has all of its runs.",
                of.title
            );
        };
        let points = self.points();
        let mut text = format!(
            "Best {}: {}, {}",
            of.title,
            self.name_of(&points[best.point].place),
            of.unit.print(best.estimate.value)
        );
        let seeds = best.estimate.seeds;
        let Some(shares) = &best.shares else {
            return text
                + ", with 1 seed: there is no interval, and seeds alone may explain the differences.";
        };
        if let Some(interval) = self.possible_interval(measure, best.estimate) {
            let range = of.unit.print_range(interval.low, interval.high);
            let percent = CONFIDENCE * 100.0;
            let _ = write!(
                text,
                " ({range}: {percent} % interval of the {} over {seeds} seeds)",
                statistic.name()
            );
        }
        let _ = write!(
            text,
            ". It is the best in {} of the bootstrap's samples of the seeds",
            share_text(shares[&best.point])
        );
        text + &self.alike(best, measure)
    }

    /// Name of a point that cannot be told apart, and how much its seeds differ, if that is much: then they are why.
    pub fn undecided(&self, name: String, point: &SweepPoint, measure: usize) -> String {
        match self.seeds_differ(point, measure) {
            Some(times) => format!("{name} (seeds differ {})", factor(times)),
            None => name,
        }
    }

    fn alike(&self, best: &BestPoint, measure: usize) -> String {
        let points = self.points();
        let all = best.points;
        let names = best.alike.iter().take(MOST_NAMES);
        let names: Vec<String> = names
            .map(|&point| {
                let point = &points[point];
                self.undecided(self.name_of(&point.place), point, measure)
            })
            .collect();
        let mut text = match best.alike.len() {
            0 if all - best.left_out - best.fewer_seeds > 1 => {
                let percent = CONFIDENCE * 100.0;
                format!("; told apart from every other point at {percent} %.")
            }
            0 => ".".into(),
            alike if alike > MOST_NAMES => format!(
                "; cannot be told apart from it: {} and {} more.",
                names.join(", "),
                alike - MOST_NAMES
            ),
            _ => format!("; cannot be told apart from it: {}.", names.join(", ")),
        };
        let left_out = [
            (
                best.left_out,
                "have runs that are not complete or have no value",
            ),
            (best.fewer_seeds, "have fewer seeds"),
        ];
        let left_out = left_out.iter().filter(|(points, _)| *points > 0);
        let left_out: Vec<String> = left_out
            .map(|(points, why)| format!("{points} that {why}"))
            .collect();
        if !left_out.is_empty() {
            let _ = write!(text, " Left out of {all} points: {}.", left_out.join(", "));
        }
        text
    }

    /// Assertions, failures and what is missing.
    fn remarks(&self) -> String {
        let mut text = String::new();
        for outcome in &self.assertions {
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
        for failure in self.failures.iter().take(MOST_NAMES) {
            let name = self.name_of(&failure.place);
            let _ = write!(
                text,
                "\nfailed: {name} seed {}: {}\n",
                failure.seed, failure.reason
            );
        }
        if self.failures.len() > MOST_NAMES {
            let _ = write!(
                text,
                "\nand {} more runs failed\n",
                self.failures.len() - MOST_NAMES
            );
        }
        if self.missing > 0 {
            let _ = write!(
                text,
                "\n{} runs of the plan are not done yet\n",
                count(self.missing)
            );
        }
        text
    }
}

/// A measure that no run has, in words.
pub fn no_value(measure: &str) -> String {
    format!("No run has a value of `{measure}`.")
}

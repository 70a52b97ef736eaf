//! A sweep in sentences and cells, for a terminal and for the page.

use super::groups::RankedGroup;
use super::points::{CONFIDENCE, share_text};
use super::{BestPoint, Statistic, SweepPoint, SweepRecord};
use crate::quantity::factor;
use std::fmt::Write as _;

/// Maximum number of points that a sentence names.
const MOST_NAMES: usize = 4;

impl SweepRecord {
    /// Places of the points, group by group, ordered by the mean of a measure, the best first, and points without a value last. If nothing
    /// can be chosen, the points are in the order of the plan.
    pub fn ranked(&self, measure: usize) -> Vec<usize> {
        let points = self.points();
        let unit = self.measures[measure].unit;
        let costs: Vec<f64> = points
            .iter()
            .map(|point| {
                let values: Vec<f64> = self.values_by_seed(point, measure).into_values().collect();
                Statistic::Mean
                    .compute(&values)
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

    /// Share of the bootstrap samples in which each point is the best of its group; `None` with one seed.
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

    /// The best point in words, with its certainty.
    pub fn best_sentence(&self, measure: usize, statistic: Statistic) -> String {
        let best = self.best(measure, statistic);
        self.sentence_of(best.as_ref(), measure, statistic)
    }

    /// As [`best_sentence`](Self::best_sentence), for a known best point.
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

    /// Name of an indistinguishable point, with the difference between its seeds if that is large enough to be the reason.
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
}

/// Sentence on a measure that no run has.
pub fn no_value(measure: &str) -> String {
    format!("No run has a value of `{measure}`.")
}

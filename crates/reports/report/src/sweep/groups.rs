//! Groups of points that compete with each other.
//!
//! The sizes of messages and the failing links are given conditions, not settings. Points compete only with points that have the same
//! values of such axes: the answer is a choice of settings, not the fastest message.

use super::points::Ranking;
use super::{BestPoint, Statistic, SweepRecord};
use std::collections::BTreeMap;

/// Points with the same values on all given axes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointGroup {
    /// Place of the value on each given axis, in their order.
    pub place: Vec<u32>,
    /// Places among the [points](SweepRecord::points).
    pub points: Vec<usize>,
}

/// A group and its best point, if one is known.
pub type RankedGroup = (PointGroup, Option<BestPoint>);

impl SweepRecord {
    /// Groups in the order of the plan. There is one group of all points if no axis is given, or if no two points share the values of the
    /// given axes, such as randomly drawn points.
    pub fn groups(&self) -> Vec<PointGroup> {
        let points = self.points();
        let mut groups: BTreeMap<Vec<u32>, Vec<usize>> = BTreeMap::new();
        for (number, point) in points.iter().enumerate() {
            let place = self.given(&point.place);
            groups.entry(place).or_default().push(number);
        }
        // A tuning without groups has chosen one point of all.
        let is_tuned = self
            .tuning
            .as_ref()
            .is_some_and(|tuning| !tuning.is_grouped);
        if is_tuned || groups.len() == points.len() {
            let all = (0..points.len()).collect();
            groups = BTreeMap::from([(Vec::new(), all)]);
        }
        let groups = groups.into_iter();
        groups
            .map(|(place, points)| PointGroup { place, points })
            .collect()
    }

    /// True if some axis can be chosen; a sweep without such an axis only shows dependencies.
    pub fn has_choice(&self) -> bool {
        self.tuning.is_some() || self.axes.is_empty() || self.axes.iter().any(|axis| !axis.given)
    }

    /// The best point of each group.
    pub fn best_of_groups(&self, measure: usize, statistic: Statistic) -> Vec<RankedGroup> {
        let mut ranking = Ranking::from_sweep(self);
        let groups = self.groups().into_iter();
        groups
            .map(|group| {
                let best = ranking.best(&group.points, measure, statistic);
                (group, best)
            })
            .collect()
    }

    /// The answer: the best point in words with its certainty, or the best choice in each group; empty if nothing can be chosen.
    pub fn answer(&self, measure: usize, statistic: Statistic) -> String {
        let groups = self.best_of_groups(measure, statistic);
        self.answer_of(&groups, measure, statistic)
    }

    /// The [answer](Self::answer) for groups with known best points.
    pub fn answer_of(
        &self,
        groups: &[RankedGroup],
        measure: usize,
        statistic: Statistic,
    ) -> String {
        match groups {
            _ if !self.has_choice() => String::new(),
            [] => self.sentence_of(None, measure, statistic),
            [(_, best)] => self.sentence_of(best.as_ref(), measure, statistic),
            _ => self.best_everywhere(groups, measure),
        }
    }

    /// Answer for several groups: the choice that is the best, or indistinguishable from the best, in most groups.
    fn best_everywhere(&self, groups: &[RankedGroup], measure: usize) -> String {
        let points = self.points();
        let known: Vec<&BestPoint> = groups
            .iter()
            .filter_map(|(_, best)| best.as_ref())
            .collect();
        // For each choice: the number of groups in which it is the best, and in which it is indistinguishable from the best.
        let mut counts: BTreeMap<Vec<u32>, (usize, usize)> = BTreeMap::new();
        for best in &known {
            let choice = |point: usize| self.chosen_place(&points[point].place);
            counts.entry(choice(best.point)).or_default().0 += 1;
            for &point in &best.alike {
                counts.entry(choice(point)).or_default().1 += 1;
            }
        }
        let title = &self.measures[measure].title;
        let given: Vec<&str> = self
            .axes
            .iter()
            .filter(|axis| axis.given)
            .map(|axis| axis.key.as_str())
            .collect();
        // The first, in the order of the plan, of the choices that are good in most groups.
        let most = counts
            .iter()
            .max_by(|(a, (best, alike)), (b, (others, like))| {
                let by_both = (best + alike).cmp(&(others + like));
                by_both.then(best.cmp(others)).then(b.cmp(a))
            });
        let Some((choice, &(best, alike))) = most else {
            return format!("Best {title}: not known, no point has all of its runs.");
        };
        let name = self.name_of_choice(choice);
        let all = groups.len();
        let alike = match alike {
            0 => String::new(),
            some if best == 0 => format!("cannot be told apart from the best at {some}"),
            some => format!(", and cannot be told apart from the best at {some}"),
        };
        let what = match given.len() {
            1 => "values",
            _ => "combinations",
        };
        let given = given.join(" and ");
        let best = match best {
            0 => String::new(),
            some if some == all => {
                return format!("{name} has the best {title} at all {all} {what} of {given}.");
            }
            some => format!("has the best {title} at {some}"),
        };
        format!("{name} {best}{alike} of {all} {what} of {given}.")
    }

    /// Places on the given axes.
    fn given(&self, place: &[u32]) -> Vec<u32> {
        self.places(place, true)
    }

    /// Places on the axes that can be chosen.
    pub fn chosen_place(&self, place: &[u32]) -> Vec<u32> {
        self.places(place, false)
    }

    fn places(&self, place: &[u32], given: bool) -> Vec<u32> {
        let own = self.axes.iter().zip(place);
        own.filter(|(axis, _)| axis.given == given)
            .map(|(_, &place)| place)
            .collect()
    }

    /// Values on the axes that can be chosen, as a user types them.
    pub fn name_of_choice(&self, choice: &[u32]) -> String {
        let axes = self.axes.iter().filter(|axis| !axis.given);
        let values: Vec<String> = axes
            .zip(choice)
            .map(|(axis, &value)| format!("{}={}", axis.key, axis.values[value as usize]))
            .collect();
        values.join(" ")
    }
}

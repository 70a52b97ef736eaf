//! Tuning: the best point of a plan for a budget of runs, by successive halving (Jamieson and Talwalkar, AISTATS 2016).
//!
//! All points run with few seeds. In each rung the better points run with more seeds, until the last points have run with all seeds of the
//! plan. All points of a rung have the same seeds (common random numbers), so they differ only by the values that the plan varies. Runs are
//! kept like the runs of a sweep: a sweep of the same plan continues from them, and a second call has nothing to do.
//!
//! With `each`, points form groups, one for each combination of values on these axes, and compete within their group. With `within` and
//! `then`, points whose measure is within a share of the best are equally good, and another measure chooses among them: for example, the
//! largest throughput at the lowest latency.

use crate::dataset::record;
use crate::execute::{ExecuteOptions, SweepExecution, execute};
use crate::plan::{SweepPlan, counted};
use crate::points::{ProgramIdentity, RunKey, Sweep};
use crate::store::{Store, StoreError};
use clearway_lab::Laboratory;
use clearway_report::sweep::{SweepRecord, SweepStatus, TuningRecord, TuningRung};
use clearway_scenario::{ScenarioError, SourceLocation};
use std::collections::BTreeMap;

/// Schedule of a tuning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TuningSchedule {
    /// Points and seeds of each rung.
    rungs: Vec<(u64, u64)>,
}

/// A finished rung.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rung {
    /// Points that ran.
    pub points: usize,
    /// Seeds of each point.
    pub seeds: usize,
    /// Best point of each group with valid points.
    pub best: Vec<Vec<u32>>,
    /// Points that the next rung keeps, the best of each group first; in the last rung, points with a value.
    pub kept: Vec<Vec<u32>>,
    /// Points that are left out because a run failed, is incomplete or has no value of the measure.
    pub left_out: usize,
}

/// Outcome of a tuning.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tuning {
    /// Groups of points that compete.
    pub groups: usize,
    /// The rungs, in order.
    pub rungs: Vec<Rung>,
    /// Sum of all executions.
    pub execution: SweepExecution,
}

impl Tuning {
    /// Record of the tuning for files and tables.
    pub fn record(&self, sweep: &Sweep) -> TuningRecord {
        let settings = &sweep.plan.tune;
        let last = self.rungs.last().cloned().unwrap_or_default();
        let rungs = self.rungs.iter().map(|rung| TuningRung {
            points: rung.points,
            seeds: rung.seeds,
            left_out: rung.left_out,
        });
        TuningRecord {
            measure: settings.measure.clone(),
            within: settings.within,
            then: Some(settings.then.clone()).filter(|then| !then.is_empty()),
            is_grouped: !settings.each.is_empty(),
            rungs: rungs.collect(),
            best: last.best,
            last: last.kept,
        }
    }
}

/// Largest number of runs of a tuning, over all rungs.
pub fn runs_of_tuning(sweep: &Sweep) -> u64 {
    let groups = groups(sweep);
    let runs = TuningSchedule::from_groups(sweep, &groups).runs();
    runs.saturating_mul(groups.len() as u64)
}

impl TuningSchedule {
    /// Schedule of a plan whose points compete in these groups.
    fn from_groups(sweep: &Sweep, groups: &[Group]) -> Self {
        let points = groups.iter().map(BTreeMap::len).max().unwrap_or(0);
        let seeds = sweep.plan.general.seeds.count();
        Self::new(points as u64, seeds as u64, sweep.plan.tune.keep.into())
    }

    /// Schedule for this number of points and seeds; one point in `keep` continues to the next rung.
    pub fn new(points: u64, seeds: u64, keep: u64) -> Self {
        let (points, seeds, keep) = (points.max(1), seeds.max(1), keep.max(2));
        let mut rungs = vec![(points, 1)];
        while let Some(&(points, own)) = rungs.last()
            && own < seeds
        {
            // At least two points, so that a comparison is possible.
            let next = points.div_ceil(keep).max(points.min(2));
            rungs.push((next, own.saturating_mul(keep).min(seeds)));
        }
        Self { rungs }
    }

    /// Number of runs of all rungs.
    pub fn runs(&self) -> u64 {
        let mut before = 0;
        let runs = self.rungs.iter().map(|(points, seeds)| {
            let new = points.saturating_mul(seeds - before);
            before = *seeds;
            new
        });
        runs.fold(0, u64::saturating_add)
    }

    /// Largest number of points within a budget of runs, if any.
    pub fn most_points(budget: u64, seeds: u64, keep: u64) -> Option<u64> {
        let fits = |points: &u64| Self::new(*points, seeds, keep).runs() <= budget;
        let (mut low, mut high) = (0, budget.saturating_add(1));
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match fits(&middle) {
                true => low = middle,
                false => high = middle,
            }
        }
        (low > 0).then_some(low)
    }
}

/// Fits a plan to its budget: draws as many points as the budget allows. Explicit points must fit.
///
/// # Errors
/// If the plan has no `[tune]`, or the budget does not suffice.
pub fn fit(plan: &mut SweepPlan) -> Result<(), ScenarioError> {
    let place = SourceLocation::Whole {
        file: plan.file.clone(),
    };
    let shape = plan.shape();
    let (seeds, settings) = (plan.general.seeds.count() as u64, plan.tune.clone());
    if settings.measure.is_empty() {
        return Err(ScenarioError::at(
            &place,
            "the plan has no measure to tune",
            "give `--measure NAME`, or write `[tune]` with `measure = \"slowdown.p99\"` into the plan",
        ));
    }
    let Some(budget) = settings.budget else {
        return Ok(());
    };
    let groups = plan.group_count();
    let most = TuningSchedule::most_points(budget / groups, seeds, settings.keep.into());
    let most = most.map(|most| most.saturating_mul(groups));
    let refuse = |what: String| {
        Err(ScenarioError::at(
            &place,
            format!("a budget of {} {what}", counted(budget, "run")),
            "raise `budget`, or use fewer seeds",
        ))
    };
    let Some(most) = most else {
        return refuse(format!(
            "does not even suffice for a point with {}",
            counted(seeds, "seed")
        ));
    };
    if let Some(sample) = &mut plan.sample {
        let fixed = plan.points.len() as u64;
        if most <= fixed {
            return refuse(format!(
                "suffices for {}, and as many are written out",
                counted(most, "point")
            ));
        }
        sample.settings.points = u32::try_from(most - fixed).unwrap_or(u32::MAX);
        return Ok(());
    }
    match plan.run_count().map(|runs| runs / seeds) {
        Some(points) if points <= most => Ok(()),
        _ => refuse(format!(
            "suffices for {} of the plan ({})",
            counted(most, "point"),
            shape
        )),
    }
}

/// Tunes a plan: carries out its rungs in order. `options` creates the options of each execution.
///
/// # Errors
/// If the folder cannot be read or written.
pub fn tune<'a>(
    (sweep, laboratory): (&'a Sweep, &'a Laboratory),
    store: &'a Store,
    program: &ProgramIdentity,
    mut options: impl FnMut(usize) -> ExecuteOptions<'a>,
) -> Result<Tuning, StoreError> {
    let mut groups = groups(sweep);
    let schedule = TuningSchedule::from_groups(sweep, &groups);
    let mut tuning = Tuning {
        groups: groups.len(),
        ..Tuning::default()
    };
    for (number, &(_, own)) in schedule.rungs.iter().enumerate() {
        let own = own as usize;
        let survivors = groups.iter().flat_map(BTreeMap::values);
        let chosen: Vec<usize> = survivors
            .flat_map(|runs| runs.iter().take(own).copied())
            .collect();
        let outcome = execute((sweep, laboratory), store, &chosen, options(chosen.len()))?;
        let is_interrupted = outcome.interrupted;
        add(&mut tuning.execution, outcome);
        if is_interrupted {
            break;
        }
        let record = record(sweep, store, program, "")?;
        let ranks = Ranks::new(sweep, &record, own);
        let next = schedule.rungs.get(number + 1);
        let mut rung = Rung {
            seeds: own,
            ..Rung::default()
        };
        for group in &mut groups {
            let ranking = ranks.rank(group);
            rung.points += group.len();
            rung.left_out += group.len() - ranking.len();
            rung.best.extend(ranking.first().cloned());
            let next = next.map_or(ranking.len(), |&(next, _)| next as usize);
            let kept: Vec<Vec<u32>> = ranking.into_iter().take(next).collect();
            group.retain(|place, _| kept.contains(place));
            rung.kept.extend(kept);
        }
        tuning.rungs.push(rung);
    }
    Ok(tuning)
}

/// Runs of each point, by seed in the order of the plan.
type Group = BTreeMap<Vec<u32>, Vec<usize>>;

/// Groups of competing points: all points, or the points with the same values on the axes of `each`.
fn groups(sweep: &Sweep) -> Vec<Group> {
    let each = &sweep.plan.tune.each;
    let axes = sweep.axes.iter();
    let axes: Vec<bool> = axes.map(|axis| each.contains(&axis.key)).collect();
    let mut groups: BTreeMap<Vec<u32>, Group> = BTreeMap::new();
    for (at, run) in sweep.runs.iter().enumerate() {
        let values = run.place.iter().zip(&axes);
        let values = values.filter(|(_, is_each)| **is_each);
        let values = values.map(|(place, _)| *place).collect();
        let group = groups.entry(values).or_default();
        group.entry(run.place.clone()).or_default().push(at);
    }
    groups.into_values().collect()
}

/// Costs of a rung for the ranking of points; lower is better.
struct Ranks<'a> {
    sweep: &'a Sweep,
    /// Seeds of each point.
    seeds: usize,
    costs: BTreeMap<RunKey, f64>,
    /// Costs that decide between equally good points, if `then` is set.
    then: Option<BTreeMap<RunKey, f64>>,
}

impl<'a> Ranks<'a> {
    fn new(sweep: &'a Sweep, record: &SweepRecord, seeds: usize) -> Self {
        let settings = &sweep.plan.tune;
        let then = Some(&settings.then).filter(|then| !then.is_empty());
        Self {
            sweep,
            seeds,
            costs: costs(record, &settings.measure),
            then: then.map(|then| costs(record, then)),
        }
    }

    /// Mean over the seeds; `None` if a run has no value.
    fn mean(&self, costs: &BTreeMap<RunKey, f64>, runs: &[usize]) -> Option<f64> {
        let own = runs.iter().take(self.seeds);
        let own = own.map(|&run| costs.get(&self.sweep.runs[run].key).copied());
        let own: Vec<f64> = own.collect::<Option<_>>()?;
        Some(own.iter().sum::<f64>() / own.len() as f64)
    }

    /// Points of a group with values, best first. Equal points keep the order of the plan.
    fn rank(&self, group: &Group) -> Vec<Vec<u32>> {
        let costs = group.iter().filter_map(|(place, runs)| {
            let then = match &self.then {
                Some(then) => self.mean(then, runs)?,
                None => 0.0,
            };
            Some((self.mean(&self.costs, runs)?, then, place.clone()))
        });
        ranked(costs.collect(), self.sweep.plan.tune.within)
    }
}

/// Points by cost; points within a share of the lowest cost by their second cost.
fn ranked(mut points: Vec<(f64, f64, Vec<u32>)>, within: f64) -> Vec<Vec<u32>> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let Some(&(least, ..)) = points.first() {
        let limit = least + within * least.abs();
        let as_good = points.partition_point(|point| point.0 <= limit);
        points[..as_good].sort_by(|a, b| a.1.total_cmp(&b.1));
    }
    points.into_iter().map(|(.., place)| place).collect()
}

/// The measure of each complete run as a cost; lower is better.
fn costs(record: &SweepRecord, measure: &str) -> BTreeMap<RunKey, f64> {
    let Some(place) = record.place_of(measure) else {
        return BTreeMap::new();
    };
    let unit = record.measures[place].unit;
    let complete = record
        .runs
        .iter()
        .filter(|run| run.status == SweepStatus::Complete);
    complete
        .filter_map(|run| Some((RunKey::read(&run.key)?, unit.cost(run.values[place]?))))
        .collect()
}

fn add(all: &mut SweepExecution, one: SweepExecution) {
    all.known += one.known;
    all.done += one.done;
    all.by_others += one.by_others;
    all.failed.extend(one.failed);
    all.interrupted |= one.interrupted;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_have_fewer_points_and_more_seeds() {
        let schedule = TuningSchedule::new(27, 9, 3);
        assert_eq!(schedule.rungs, [(27, 1), (9, 3), (3, 9)]);
        assert_eq!(schedule.runs(), 27 + 9 * 2 + 3 * 6);
        // Uneven numbers.
        assert_eq!(
            TuningSchedule::new(10, 5, 3).rungs,
            [(10, 1), (4, 3), (2, 5)]
        );
        assert_eq!(TuningSchedule::new(40, 1, 3).rungs, [(40, 1)]);
        // The last two are compared with all seeds.
        assert_eq!(
            TuningSchedule::new(4, 16, 2).rungs,
            [(4, 1), (2, 2), (2, 4), (2, 8), (2, 16)]
        );
        assert_eq!(TuningSchedule::new(1, 3, 3).rungs, [(1, 1), (1, 3)]);
    }

    #[test]
    fn of_points_that_are_as_good_another_measure_chooses() {
        let points = |within| {
            // Higher is better for the first measure, so its costs are negative.
            let points = [(-1.90, 40.0), (-1.99, 60.0), (-2.0, 90.0), (-1.0, 1.0)];
            let numbered = points.iter().zip(0..);
            let points = numbered.map(|(&(cost, then), number)| (cost, then, vec![number]));
            ranked(points.collect(), within).concat()
        };
        assert_eq!(points(0.0), [2, 1, 0, 3]);
        assert_eq!(points(0.01), [1, 2, 0, 3]);
        assert_eq!(points(0.05), [0, 1, 2, 3]);
        assert_eq!(ranked(Vec::new(), 0.1), Vec::<Vec<u32>>::new());
    }

    #[test]
    fn a_budget_buys_points() {
        for (budget, seeds, keep) in [(63, 9, 3), (100, 5, 3), (1, 1, 2), (1000, 20, 4)] {
            let most = TuningSchedule::most_points(budget, seeds, keep).unwrap();
            assert!(TuningSchedule::new(most, seeds, keep).runs() <= budget);
            assert!(TuningSchedule::new(most + 1, seeds, keep).runs() > budget);
        }
        assert_eq!(TuningSchedule::most_points(63, 9, 3), Some(27));
        assert_eq!(TuningSchedule::most_points(4, 9, 3), None);
        assert_eq!(
            TuningSchedule::most_points(u64::MAX, 1, 3),
            Some(u64::MAX - 1)
        );
    }
}

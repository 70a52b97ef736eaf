//! Points of a sweep: estimates of a measure over their seeds, and the best point.

use super::{Statistic, SweepPoint, SweepRecord, SweepRun, SweepStatus};
use crate::measures::Unit;
use crate::quantity::factor;
use clearway_statistics::{
    Estimate, Interval, Resamples, mean, mean_estimate, median, median_estimate, shares_of_best,
};
use std::collections::{BTreeMap, BTreeSet};

pub use crate::comparison::CONFIDENCE;

/// Factor between the greatest and the least value from which on the seeds of a point differ much.
const MUCH: f64 = 2.0;

/// Samples of seeds for the bootstrap, by the number of seeds.
#[derive(Debug, Default)]
pub struct Samples(BTreeMap<usize, Resamples>);

impl Samples {
    /// Samples of `seeds` seeds.
    pub(crate) fn for_seeds(&mut self, seeds: usize) -> &Resamples {
        let samples = self.0.entry(seeds);
        samples.or_insert_with(|| Resamples::new(seeds, Resamples::ENOUGH))
    }
}

impl Statistic {
    /// The statistic of `values`; `None` without values.
    pub(crate) fn compute(self, values: &[f64]) -> Option<f64> {
        match self {
            Self::Mean => mean(values),
            Self::Median => median(values),
        }
    }

    /// The statistic with its interval; `None` without values.
    pub(crate) fn estimate(
        self,
        values: &[f64],
        confidence: f64,
        samples: &mut Samples,
    ) -> Option<Estimate> {
        match self {
            Self::Mean => mean_estimate(values, confidence),
            Self::Median => median_estimate(values, confidence, samples.for_seeds(values.len())),
        }
    }
}

/// The best point of a sweep by a measure.
#[derive(Debug, Clone, PartialEq)]
pub struct BestPoint {
    /// Place of the point among the [points](SweepRecord::points).
    pub point: usize,
    /// The measure at the point.
    pub estimate: Estimate,
    /// Share of the bootstrap samples in which each competing point is the best, 0 for points that are left out; `None` with one
    /// seed.
    pub shares: Option<BTreeMap<usize, f64>>,
    /// Other points that cannot be distinguished from the best point, the nearest first: the interval of the paired difference is not
    /// entirely on the worse side.
    pub alike: Vec<usize>,
    /// Points that are left out because a run failed, is incomplete or has no value.
    pub left_out: usize,
    /// Points that are left out because others ran with more seeds: a tuning dropped them, or they are not done yet.
    pub fewer_seeds: usize,
    /// Number of competing points, including points that are left out.
    pub points: usize,
}

impl SweepRecord {
    /// Place of a measure in [`measures`](Self::measures).
    pub fn place_of(&self, measure: &str) -> Option<usize> {
        let mut measures = self.measures.iter();
        measures.position(|known| known.name == measure)
    }

    /// Measure that matters most: the measure of the tuning or of the first assertion, otherwise slowdown, iterations of jobs, or the first
    /// measure that runs have.
    pub fn primary(&self) -> Option<usize> {
        let tuned = self.tuning.as_ref().map(|tuning| tuning.measure.as_str());
        let asserted = self.assertions.first();
        let asserted = asserted.map(|outcome| outcome.measure.as_str());
        let names = tuned.into_iter().chain(asserted);
        let names = names.chain(["slowdown.p99", "jobs_us.mean"]);
        let known = names.filter_map(|name| self.place_of(name)).next();
        known.or((!self.measures.is_empty()).then_some(0))
    }

    /// Runs of a point.
    pub(crate) fn runs_of<'a>(
        &'a self,
        point: &'a SweepPoint,
    ) -> impl Iterator<Item = &'a SweepRun> {
        point.runs.iter().map(|&run| &self.runs[run])
    }

    /// Seeds of a point with their values of a measure.
    pub(crate) fn values_by_seed(&self, point: &SweepPoint, measure: usize) -> BTreeMap<u64, f64> {
        let runs = self.runs_of(point);
        let values = runs.filter_map(|run| Some((run.seed, run.values[measure]?)));
        values.collect()
    }

    /// A measure at a point; `None` if no run has a value.
    pub fn estimate(
        &self,
        point: &SweepPoint,
        measure: usize,
        statistic: Statistic,
        samples: &mut Samples,
    ) -> Option<Estimate> {
        let values: Vec<f64> = self.values_by_seed(point, measure).into_values().collect();
        statistic.estimate(&values, CONFIDENCE, samples)
    }

    /// Interval of an estimate, unless it reaches impossible values: below zero, or below one for a slowdown. Then there are too few seeds
    /// for their differences.
    pub fn possible_interval(&self, measure: usize, estimate: Estimate) -> Option<Interval> {
        let of = &self.measures[measure];
        let least = match of.unit {
            Unit::Index => f64::NEG_INFINITY,
            _ if of.name.contains("slowdown") => 1.0,
            _ => 0.0,
        };
        estimate.interval.filter(|interval| interval.low >= least)
    }

    /// The greatest value of a measure over the seeds of a point divided by the least, if the quotient is large.
    pub(crate) fn seeds_differ(&self, point: &SweepPoint, measure: usize) -> Option<f64> {
        let values = self.values_by_seed(point, measure).into_values();
        let (least, most) = values.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        (least > 0.0 && most >= MUCH * least).then(|| most / least)
    }

    /// Interval of a measure at a point in words; without a possible interval, the difference between seeds.
    pub fn interval_text(
        &self,
        point: &SweepPoint,
        measure: usize,
        estimate: Option<Estimate>,
    ) -> String {
        let interval = estimate.and_then(|estimate| self.possible_interval(measure, estimate));
        if let Some(interval) = interval {
            let unit = self.measures[measure].unit;
            return unit.print_range(interval.low, interval.high);
        }
        let differ = self.seeds_differ(point, measure);
        differ.map_or("-".into(), |times| {
            format!("seeds differ {}", factor(times))
        })
    }

    /// Number of runs of a point that are not complete, including failed runs.
    pub fn not_complete(&self, point: &SweepPoint) -> usize {
        let runs = self.runs_of(point);
        runs.filter(|run| run.status != SweepStatus::Complete)
            .count()
    }

    /// The best of all points by a measure; `None` if all are left out.
    pub fn best(&self, measure: usize, statistic: Statistic) -> Option<BestPoint> {
        let mut ranking = Ranking::from_sweep(self);
        let all: Vec<usize> = (0..ranking.points.len()).collect();
        ranking.best(&all, measure, statistic)
    }
}

/// Search for best points, among all or some points of a sweep.
pub(crate) struct Ranking<'a> {
    sweep: &'a SweepRecord,
    points: Vec<SweepPoint>,
    /// Maximum number of seeds of a point.
    seeds: usize,
    samples: Samples,
}

impl<'a> Ranking<'a> {
    pub(crate) fn from_sweep(sweep: &'a SweepRecord) -> Self {
        let seeds: BTreeSet<u64> = sweep.runs.iter().map(|run| run.seed).collect();
        Self {
            sweep,
            points: sweep.points(),
            seeds: seeds.len(),
            samples: Samples::default(),
        }
    }

    /// The best of these points by a measure; `None` if all are left out.
    pub(crate) fn best(
        &mut self,
        among: &[usize],
        measure: usize,
        statistic: Statistic,
    ) -> Option<BestPoint> {
        let (whole, fewer_seeds) = self.whole(among, measure);
        let unit = self.sweep.measures[measure].unit;
        let cost = |values: &[f64]| statistic.compute(values).map(|value| unit.cost(value));
        let (best, own) = whole.iter().min_by(|(_, a), (_, b)| {
            let (a, b) = (
                cost(a).unwrap_or(f64::INFINITY),
                cost(b).unwrap_or(f64::INFINITY),
            );
            a.total_cmp(&b)
        })?;
        let samples = &mut self.samples;
        let estimate = statistic.estimate(own, CONFIDENCE, samples)?;
        let mut alike = Vec::new();
        for (number, values) in whole.iter().filter(|(number, _)| number != best) {
            let costs = values.iter().zip(own);
            let pairs: Vec<(f64, f64)> = costs
                .map(|(value, own)| (unit.cost(*value), unit.cost(*own)))
                .collect();
            let difference = statistic.difference(&pairs, 1.0, CONFIDENCE, samples);
            let interval = difference.and_then(|difference| difference.interval);
            if interval.is_none_or(|interval| interval.low <= 0.0) {
                alike.push((cost(values).unwrap_or(f64::INFINITY), *number));
            }
        }
        alike.sort_by(|a, b| a.0.total_cmp(&b.0));
        let seeds = self.seeds;
        let shares = (seeds > 1).then(|| {
            // A point that is worse with every seed is never the best in a sample.
            let is_beaten = |values: &[f64]| {
                let mut both = values.iter().zip(own);
                both.all(|(value, best)| unit.cost(*value) > unit.cost(*best))
            };
            let rivals = whole.iter().filter(|(_, values)| !is_beaten(values));
            let (places, values): (Vec<usize>, Vec<Vec<f64>>) = rivals.cloned().unzip();
            let of_rivals = shares_of_best(&values, samples.for_seeds(seeds), cost);
            let of_rivals = places.into_iter().zip(of_rivals);
            let none = among.iter().map(|&point| (point, 0.0));
            none.chain(of_rivals).collect()
        });
        Some(BestPoint {
            point: *best,
            estimate,
            shares,
            alike: alike.into_iter().map(|(_, point)| point).collect(),
            left_out: among.len() - whole.len() - fewer_seeds,
            fewer_seeds,
            points: among.len(),
        })
    }
    /// Points among `among` that have all of their runs, with their values by seed; and the number of points that lack seeds of others.
    fn whole(&self, among: &[usize], measure: usize) -> (Vec<(usize, Vec<f64>)>, usize) {
        let (mut whole, mut fewer_seeds) = (Vec::new(), 0);
        for &number in among {
            let point = &self.points[number];
            let values = self.sweep.values_by_seed(point, measure);
            if values.len() < point.runs.len() || self.sweep.not_complete(point) > 0 {
                continue;
            }
            match values.len() < self.seeds {
                true => fewer_seeds += 1,
                false => whole.push((number, values.into_values().collect())),
            }
        }
        (whole, fewer_seeds)
    }
}

/// Text for a share of the bootstrap samples: only a share of exactly one is 100 %.
pub fn share_text(share: f64) -> String {
    match share * 100.0 {
        all if all >= 100.0 - 1e-9 => "100 %".into(),
        near if near > 99.9 => ">99.9 %".into(),
        percent => format!("{percent:.1} %"),
    }
}

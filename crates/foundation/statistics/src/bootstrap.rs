//! The bootstrap: many resamples of the seeds, drawn with replacement.

use crate::interval::Interval;
use clearway_units::{Purpose, RandomStream};

/// Samples of seeds, drawn with replacement: the same samples in every process.
///
/// All statistics of one sample have common random numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resamples {
    seeds: usize,
    drawn: Vec<u32>,
}

impl Resamples {
    /// Number of samples for an interval.
    pub const ENOUGH: usize = 2000;

    /// `count` samples of `seeds` seeds.
    pub fn new(seeds: usize, count: usize) -> Self {
        let mut stream = RandomStream::new(0, Purpose::Bootstrap, seeds as u64);
        let bound = u32::try_from(seeds).expect("there are fewer seeds");
        let drawn = (0..seeds * count).map(|_| stream.below(bound));
        Self {
            seeds,
            drawn: drawn.collect(),
        }
    }

    /// The samples, each as the places of its seeds.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.drawn.chunks_exact(self.seeds.max(1))
    }

    /// Percentile interval of `statistic`; `None` for fewer than two seeds, or if a sample has no value.
    pub fn interval(
        &self,
        confidence: f64,
        mut statistic: impl FnMut(&[u32]) -> Option<f64>,
    ) -> Option<Interval> {
        if self.seeds < 2 {
            return None;
        }
        let values: Option<Vec<f64>> = self.iter().map(&mut statistic).collect();
        let mut values = values?;
        values.sort_unstable_by(f64::total_cmp);
        let outside = ((1.0 - confidence) / 2.0 * values.len() as f64) as usize;
        let last = values.len().checked_sub(1)?;
        Some(Interval {
            low: values[outside.min(last)],
            high: values[last - outside.min(last)],
        })
    }
}

/// Share of the samples in which each of several settings is the best: has the least mean, or median, of all settings.
///
/// `values` has a list for each setting, with one value for each of the same seeds in the same order. Equally good settings share a sample.
/// With a single seed the same setting is the best in all samples, which is not evidence.
pub fn shares_of_best(
    values: &[Vec<f64>],
    resamples: &Resamples,
    statistic: impl Fn(&[f64]) -> Option<f64>,
) -> Vec<f64> {
    let mut shares = vec![0.0; values.len()];
    let mut samples = 0;
    let mut drawn = Vec::new();
    for seeds in resamples.iter() {
        let mut outcomes = Vec::with_capacity(values.len());
        for values in values {
            drawn.clear();
            drawn.extend(seeds.iter().map(|&seed| values[seed as usize]));
            outcomes.push(statistic(&drawn).unwrap_or(f64::INFINITY));
        }
        let least = outcomes.iter().copied().fold(f64::INFINITY, f64::min);
        let best = outcomes.iter().filter(|&&outcome| outcome == least).count();
        for (share, outcome) in shares.iter_mut().zip(outcomes) {
            if outcome == least {
                *share += 1.0 / best as f64;
            }
        }
        samples += 1;
    }
    shares
        .iter()
        .map(|share| share / f64::from(samples.max(1)))
        .collect()
}

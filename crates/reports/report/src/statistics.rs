//! Order statistics: nearest-rank percentiles, the minimum, the maximum and the mean.

use clearway_units::statistics::nearest_rank;
use serde::{Deserialize, Serialize};

/// Distribution of a quantity over the completed flows of a run, over its jobs, or over the iterations of one job.
///
/// A percentile is the nearest rank: of n sorted values, the one at place ⌈n·p/100⌉. It is therefore always a value that occurred.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// The least.
    pub min: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The median: half of the values are at most this.
    pub p50: f64,
    /// 99 % of the values are at most this.
    pub p99: f64,
    /// 99.9 % of the values are at most this.
    pub p999: f64,
    /// The greatest.
    pub max: f64,
}

impl Distribution {
    /// The distribution, in microseconds, of times in picoseconds; `None` without values. The mean is rounded to a picosecond.
    pub(crate) fn of_picoseconds(mut times: Vec<u64>) -> Option<Self> {
        times.sort_unstable();
        let mean = mean_of_picoseconds(&times)?;
        Self::of_sorted(&times, mean as f64 / 1e6, |ps| ps as f64 / 1e6)
    }

    /// The distribution of finite ratios; `None` without values.
    pub fn of_ratios(mut ratios: Vec<f64>) -> Option<Self> {
        ratios.sort_unstable_by(f64::total_cmp);
        // Summed in sorted order, so that the mean does not depend on the order of the flows.
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        Self::of_sorted(&ratios, mean, |ratio| ratio)
    }

    /// The distribution of whole numbers; `None` without values.
    pub(crate) fn of_counts(counts: &mut [u64]) -> Option<Self> {
        counts.sort_unstable();
        let sum: u128 = counts.iter().map(|&count| u128::from(count)).sum();
        let mean = sum as f64 / counts.len() as f64;
        Self::of_sorted(counts, mean, |count| count as f64)
    }

    fn of_sorted<T: Copy>(sorted: &[T], mean: f64, convert: impl Fn(T) -> f64) -> Option<Self> {
        let rank = |per_mille| nearest_rank(sorted, per_mille).map(&convert);
        Some(Self {
            min: convert(*sorted.first()?),
            mean,
            p50: rank(500)?,
            p99: rank(990)?,
            p999: rank(999)?,
            max: convert(*sorted.last()?),
        })
    }
}

/// Mean, rounded to a picosecond; `None` without values.
pub(crate) fn mean_of_picoseconds(times: &[u64]) -> Option<u64> {
    let count = times.len() as u128;
    let sum: u128 = times.iter().map(|&time| u128::from(time)).sum();
    let mean = (sum + count / 2).checked_div(count)?;
    Some(u64::try_from(mean).expect("a mean is at most the greatest"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_has_no_distribution() {
        assert_eq!(Distribution::of_picoseconds(vec![]), None);
        assert_eq!(Distribution::of_ratios(vec![]), None);
    }

    #[test]
    fn times_come_in_microseconds_and_the_mean_is_rounded_to_a_picosecond() {
        let times = vec![48_881_300, 8_337_120, 8_337_121];
        let distribution = Distribution::of_picoseconds(times).unwrap();
        assert_eq!(distribution.min, 8.33712);
        assert_eq!(distribution.p50, 8.337121);
        assert_eq!(distribution.max, 48.8813);
        assert_eq!(distribution.mean, 21.851847);
    }

    #[test]
    fn the_mean_of_times_does_not_overflow() {
        let distribution = Distribution::of_picoseconds(vec![u64::MAX; 3]).unwrap();
        assert_eq!(distribution.mean, distribution.max);
    }

    /// The definition: the least value such that at least `per_mille` thousandths of the values are at most this value.
    fn by_definition(values: &[u64], per_mille: usize) -> u64 {
        let covered = |limit| values.iter().filter(|&&value| value <= limit).count();
        let enough = |&limit: &u64| covered(limit) * 1000 >= per_mille * values.len();
        values.iter().copied().filter(enough).min().unwrap()
    }

    proptest! {
        #[test]
        fn statistics_agree_with_the_definition(values in prop::collection::vec(0u64..1 << 50, 1..300)) {
            let us = |ps: u64| ps as f64 / 1e6;
            let distribution = Distribution::of_picoseconds(values.clone()).unwrap();
            prop_assert_eq!(distribution.min, us(*values.iter().min().unwrap()));
            prop_assert_eq!(distribution.max, us(*values.iter().max().unwrap()));
            prop_assert_eq!(distribution.p50, us(by_definition(&values, 500)));
            prop_assert_eq!(distribution.p99, us(by_definition(&values, 990)));
            prop_assert_eq!(distribution.p999, us(by_definition(&values, 999)));
            let mean = values.iter().map(|&value| value as f64).sum::<f64>() / values.len() as f64;
            prop_assert!((distribution.mean * 1e6 - mean).abs() <= 0.5 + mean * 1e-12);
        }

        #[test]
        fn ratios_do_not_depend_on_the_order_of_flows(ratios in prop::collection::vec(1.0f64..1e6, 1..200)) {
            let backwards = ratios.iter().rev().copied().collect();
            prop_assert_eq!(Distribution::of_ratios(ratios), Distribution::of_ratios(backwards));
        }
    }
}

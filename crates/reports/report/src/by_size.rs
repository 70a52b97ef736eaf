//! Slowdown by flow size: bins of equal count within a run, and fixed classes that runs of different traffic have in common.
//!
//! Both cover the flows that completed and have an ideal completion time, sorted by size. Flows of equal size are never split, so the
//! order among them does not matter.
//!
//! **Bins** show how slowdown depends on size in one run. If there are at most [`MOST_BINS`] sizes, each size has its own bin. Otherwise
//! [`equal_count_bins`] cuts the flows into [`MOST_BINS`] bins with equal numbers of flows (5 % each), or into fewer bins with at least
//! [`FEWEST_PER_BIN`] flows each. A size that many flows share gets its own bin, which may be much larger than the others.
//!
//! **Classes** end at the powers of ten from 1 KB to 100 MB. A class holds the flows above the previous power and up to its own. One more
//! class holds all larger flows. Classes without flows are left out.
//!
//! Percentiles are nearest rank, so they are values that occurred. A percentile of too few flows is the slowest flow: p95 takes
//! 20 flows to be exceeded by at most one in twenty, p99 takes 100 and p99.9 takes 1000.

use crate::quantity::bytes;
use crate::record::FlowTimes;
use clearway_units::statistics::{equal_count_bins, nearest_rank};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Maximum number of bins: each holds 5 % of the flows.
pub const MOST_BINS: usize = 20;

/// Approximate minimum number of flows in a bin of several sizes; with fewer flows there are fewer bins.
pub const FEWEST_PER_BIN: usize = 10;

/// Upper ends of the size classes, in bytes. One more class holds all larger flows.
pub const CLASS_ENDS: [u64; 6] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Distribution of slowdown over a set of flows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    /// The arithmetic mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// 95 % of the flows are at most this.
    pub p95: f64,
    /// 99 % of the flows are at most this.
    pub p99: f64,
    /// 99.9 % of the flows are at most this.
    pub p999: f64,
    /// The greatest.
    pub max: f64,
}

/// Flows of about one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SizeBin {
    /// The smallest flow in bytes.
    pub smallest_bytes: u64,
    /// The flow in the middle, in bytes.
    pub median_bytes: u64,
    /// The largest flow in bytes.
    pub largest_bytes: u64,
    /// Number of flows in the bin.
    pub flows: u64,
    /// Slowdown of the flows in the bin.
    #[serde(flatten)]
    pub slowdown: Tail,
}

/// Flows between two powers of ten.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SizeClass {
    /// All flows have more bytes; 0 in the first class, which also holds flows without bytes.
    pub above_bytes: u64,
    /// No flow has more bytes; `None` in the last class.
    pub up_to_bytes: Option<u64>,
    /// Number of flows in the class.
    pub flows: u64,
    /// Slowdown of the flows in the class.
    #[serde(flatten)]
    pub slowdown: Tail,
}

/// Slowdowns of completed flows, sorted by size.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowsBySize {
    sizes: Vec<u64>,
    /// Slowdown of each flow, sorted among flows of equal size.
    slowdowns: Vec<f64>,
}

impl FlowsBySize {
    /// The completed flows among `flows`, which may belong to several runs.
    pub fn from_flows<'a>(flows: impl IntoIterator<Item = &'a FlowTimes>) -> Self {
        let completed = |flow: &FlowTimes| Some((flow.bytes, flow.slowdown()?));
        let mut pairs: Vec<(u64, f64)> = flows.into_iter().filter_map(completed).collect();
        pairs.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let (sizes, slowdowns) = pairs.into_iter().unzip();
        Self { sizes, slowdowns }
    }

    /// The bins, from the smallest flows to the largest.
    pub fn bins(&self) -> Vec<SizeBin> {
        let sizes = self.sizes.chunk_by(|a, b| a == b).take(MOST_BINS + 1);
        let bins = match sizes.count() {
            // With as many bins as flows no two sizes share one.
            ..=MOST_BINS => self.sizes.len(),
            _ => (self.sizes.len() / FEWEST_PER_BIN).clamp(1, MOST_BINS),
        };
        let bin = |range: Range<usize>| SizeBin {
            smallest_bytes: self.sizes[range.start],
            median_bytes: self.sizes[range.start + (range.len() - 1) / 2],
            largest_bytes: self.sizes[range.end - 1],
            flows: range.len() as u64,
            slowdown: self.tail(range),
        };
        let ranges = equal_count_bins(&self.sizes, bins);
        ranges.into_iter().map(bin).collect()
    }

    /// The classes that have flows, from the smallest flows to the largest.
    pub fn classes(&self) -> Vec<SizeClass> {
        let mut first = 0;
        (0..=CLASS_ENDS.len())
            .map(class_bounds)
            .filter_map(|(above_bytes, up_to_bytes)| {
                let most = up_to_bytes.unwrap_or(u64::MAX);
                let range = first..self.sizes.partition_point(|&size| size <= most);
                first = range.end;
                (!range.is_empty()).then(|| SizeClass {
                    above_bytes,
                    up_to_bytes,
                    flows: range.len() as u64,
                    slowdown: self.tail(range),
                })
            })
            .collect()
    }

    /// Distribution over a range that is not empty.
    fn tail(&self, range: Range<usize>) -> Tail {
        let mut sorted = self.slowdowns[range].to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let rank = |per_mille| nearest_rank(&sorted, per_mille).unwrap_or(f64::NAN);
        Tail {
            // Summed in sorted order, so that the mean does not depend on the order of the flows.
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
            p50: rank(500),
            p95: rank(950),
            p99: rank(990),
            p999: rank(999),
            max: rank(1000),
        }
    }
}

impl SizeClass {
    /// Name of the class, such as `up to 10 KB` or `over 100 MB`. It leaves out the lower end: a class holds only flows above the previous
    /// class.
    pub fn name(&self) -> String {
        class_name(self.above_bytes, self.up_to_bytes)
    }
}

/// Name of the class above `above_bytes` and up to `up_to_bytes`; see [`SizeClass::name`].
pub(crate) fn class_name(above_bytes: u64, up_to_bytes: Option<u64>) -> String {
    match up_to_bytes {
        Some(end) => format!("up to {}", bytes(end)),
        None => format!("over {}", bytes(above_bytes)),
    }
}

/// Place of the class of a flow with `bytes` bytes, counted from the smallest class.
pub(crate) fn class_of(bytes: u64) -> usize {
    CLASS_ENDS.partition_point(|&end| end < bytes)
}

/// Bounds of the class at `place` in bytes: flows are above the first and up to the second.
pub(crate) fn class_bounds(place: usize) -> (u64, Option<u64>) {
    let above = place.checked_sub(1).map_or(0, |below| CLASS_ENDS[below]);
    (above, CLASS_ENDS.get(place).copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::flow;
    use clearway_units::Span;
    use proptest::prelude::*;

    /// Flows of these sizes; flow n is n+1 times as slow as ideal.
    fn of_sizes(sizes: impl IntoIterator<Item = u64>) -> Vec<FlowTimes> {
        (0..)
            .zip(sizes)
            .map(|(number, bytes)| FlowTimes {
                bytes,
                ideal_fct: Span::from_us(10),
                ..FlowTimes::from(&flow(
                    number,
                    Some(Span::from_us(10 * (u64::from(number) + 1))),
                ))
            })
            .collect()
    }

    fn extents(bins: &[SizeBin]) -> Vec<(u64, u64, u64)> {
        bins.iter()
            .map(|bin| (bin.smallest_bytes, bin.largest_bytes, bin.flows))
            .collect()
    }

    #[test]
    fn few_sizes_have_a_bin_each() {
        let flows = of_sizes([100, 2_000_000, 100, 100, 64]);
        let bins = FlowsBySize::from_flows(&flows).bins();
        assert_eq!(
            extents(&bins),
            [(64, 64, 1), (100, 100, 3), (2_000_000, 2_000_000, 1)]
        );
        // Numbers 0, 2 and 3.
        let expected = Tail {
            mean: 8.0 / 3.0,
            p50: 3.0,
            p95: 4.0,
            p99: 4.0,
            p999: 4.0,
            max: 4.0,
        };
        assert_eq!(bins[1].slowdown, expected);
        assert!(FlowsBySize::from_flows(&[]).bins().is_empty());
    }

    #[test]
    fn flows_of_one_size_have_one_bin() {
        let flows = of_sizes([2_000_000; 500]);
        let bins = FlowsBySize::from_flows(&flows).bins();
        assert_eq!(extents(&bins), [(2_000_000, 2_000_000, 500)]);
        let tail = bins[0].slowdown;
        assert_eq!(
            [tail.p50, tail.p95, tail.p99, tail.p999, tail.max],
            [250.0, 475.0, 495.0, 500.0, 500.0]
        );
        assert_eq!(tail.mean, 250.5);
    }

    #[test]
    fn many_sizes_are_cut_into_bins_of_equal_count() {
        // In descending order, so that the bins need sorting.
        let flows = of_sizes((1..=1000).rev());
        let bins = FlowsBySize::from_flows(&flows).bins();
        assert_eq!(bins.len(), MOST_BINS);
        assert_eq!(extents(&bins)[..2], [(1, 50, 50), (51, 100, 50)]);
        assert_eq!(bins[1].median_bytes, 75);
        // The flow of size s is 1001 − s times as slow as ideal.
        assert_eq!(bins[1].slowdown.p50, 925.0);
        assert_eq!(bins[1].slowdown.max, 950.0);
        // A few flows have a few bins.
        let few = of_sizes(1..=35);
        assert_eq!(
            extents(&FlowsBySize::from_flows(&few).bins()),
            [(1, 11, 11), (12, 23, 12), (24, 35, 12)]
        );
    }

    #[test]
    fn classes_end_at_powers_of_ten() {
        let flows = of_sizes([0, 1_000, 1_001, 1_000_000, 1_000_001, 100_000_001, 5_000]);
        let classes = FlowsBySize::from_flows(&flows).classes();
        for flow in &flows {
            let (above, end) = class_bounds(class_of(flow.bytes));
            assert!(flow.bytes > above || above == 0, "{}", flow.bytes);
            assert!(end.is_none_or(|end| flow.bytes <= end), "{}", flow.bytes);
        }
        let figures: Vec<_> = classes
            .iter()
            .map(|class| (class.above_bytes, class.up_to_bytes, class.flows))
            .collect();
        assert_eq!(
            figures,
            [
                (0, Some(1_000), 2),
                (1_000, Some(10_000), 2),
                (100_000, Some(1_000_000), 1),
                (1_000_000, Some(10_000_000), 1),
                (100_000_000, None, 1),
            ]
        );
        assert_eq!(classes[1].slowdown.max, 7.0);
        let names: Vec<String> = classes.iter().map(SizeClass::name).collect();
        assert_eq!(
            names,
            [
                "up to 1 KB",
                "up to 10 KB",
                "up to 1 MB",
                "up to 10 MB",
                "over 100 MB"
            ]
        );
    }

    #[test]
    fn flows_that_did_not_complete_are_in_no_bin() {
        let unfinished = FlowsBySize::from_flows(&[FlowTimes::from(&flow(0, None))]);
        assert!(unfinished.bins().is_empty() && unfinished.classes().is_empty());
    }

    proptest! {
        #[test]
        fn bins_and_classes_hold_every_flow_once(sizes in prop::collection::vec(0u64..1 << 34, 1..400)) {
            let flows = of_sizes(sizes);
            let by_size = FlowsBySize::from_flows(&flows);
            let bins = by_size.bins();
            prop_assert!((1..=MOST_BINS).contains(&bins.len()));
            prop_assert_eq!(bins.iter().map(|bin| bin.flows).sum::<u64>(), flows.len() as u64);
            prop_assert!(bins.windows(2).all(|pair| pair[0].largest_bytes < pair[1].smallest_bytes));
            for bin in &bins {
                prop_assert!((bin.smallest_bytes..=bin.largest_bytes).contains(&bin.median_bytes));
                let own = flows.iter().filter(|flow| (bin.smallest_bytes..=bin.largest_bytes).contains(&flow.bytes));
                prop_assert_eq!(own.count() as u64, bin.flows);
            }
            let classes = by_size.classes();
            prop_assert_eq!(classes.iter().map(|class| class.flows).sum::<u64>(), flows.len() as u64);
            let backwards: Vec<&FlowTimes> = flows.iter().rev().collect();
            prop_assert_eq!(FlowsBySize::from_flows(backwards), by_size);
        }
    }
}

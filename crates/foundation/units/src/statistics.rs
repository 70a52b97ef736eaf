//! Statistics for results and for the judgement of figures: nearest ranks, bins of equal count, rank correlation, fairness.
//!
//! All statistics depend only on the values and not on their order, use no floating point function except the square root, and cost at most
//! O(n log n).

use std::ops::Range;

/// The value at the nearest rank of `per_mille` (1 to 1000) thousandths of `sorted`: the value at place ⌈n·p/1000⌉ of n values, which
/// always occurs in the data. `None` for an empty slice.
///
/// The number of values decides whether a percentile lies below the greatest value: at least 20 for p95, 100 for p99, 1000 for p99.9. With
/// fewer values the percentile is the greatest value itself.
pub fn nearest_rank<T: Copy>(sorted: &[T], per_mille: usize) -> Option<T> {
    let rank = (sorted.len() * per_mille).div_ceil(1000);
    sorted.get(rank.checked_sub(1)?).copied()
}

/// Cuts sorted keys into at most `bins` non-empty ranges of about equal count; never separates equal keys.
///
/// The ideal cut after bin k is at place ⌊k·n/bins⌋, where n is the number of keys. If the keys on both sides are equal, the cut moves to
/// the nearer end of their run (the lower end on a tie), so a frequent key gets a separate range. Cuts at the same place merge. With
/// distinct keys the ranges differ by at most one key.
pub fn equal_count_bins<K: PartialEq>(sorted: &[K], bins: usize) -> Vec<Range<usize>> {
    let count = sorted.len();
    // Starts of the runs of equal keys; a run ends at the next start.
    let mut cuts = vec![0];
    let (mut begin, mut end) = (0, 0);
    for bin in 1..bins {
        let ideal = (bin as u128 * count as u128 / bins as u128) as usize;
        while end <= ideal && end < count {
            begin = end;
            end += 1;
            while end < count && sorted[end] == sorted[begin] {
                end += 1;
            }
        }
        // The run that the key behind the ideal cut belongs to.
        let cut = match ideal {
            ideal if ideal >= count => count,
            ideal if ideal - begin <= end - ideal => begin,
            _ => end,
        };
        cuts.push(cut);
    }
    cuts.push(count);
    cuts.dedup();
    cuts.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

/// Spearman's rank correlation of the pairs: 1 if the second value grows whenever the first does, −1 if it falls, near 0 without a
/// monotonic relation. Computed as Pearson's correlation of the ranks, where equal values share the mean of their ranks. `None` for fewer
/// than two pairs, or if all first or all second values are equal.
pub fn spearman(pairs: &[(u64, u64)]) -> Option<f64> {
    let first = doubled_ranks(pairs, |pair| pair.0);
    let second = doubled_ranks(pairs, |pair| pair.1);
    let middle = pairs.len() as i128 + 1;
    let (mut together, mut alone) = (0i128, [0i128; 2]);
    for (&a, &b) in first.iter().zip(&second) {
        let (a, b) = (i128::from(a) - middle, i128::from(b) - middle);
        together += a * b;
        alone[0] += a * a;
        alone[1] += b * b;
    }
    let both = (alone[0] as f64 * alone[1] as f64).sqrt();
    // Rounding could leave the range from −1 to 1.
    (both > 0.0).then(|| (together as f64 / both).clamp(-1.0, 1.0))
}

/// Twice the rank of each value, from 1: mean ranks may be halves.
fn doubled_ranks(pairs: &[(u64, u64)], value: impl Fn(&(u64, u64)) -> u64) -> Vec<u64> {
    let mut order: Vec<u32> = (0..pairs.len() as u32).collect();
    let value_at = |place: &u32| value(&pairs[*place as usize]);
    order.sort_unstable_by_key(value_at);
    let mut ranks = vec![0; pairs.len()];
    let mut begin = 0;
    for run in order.chunk_by(|a, b| value_at(a) == value_at(b)) {
        // The mean of the ranks begin + 1 to begin + length, twice.
        let doubled = (2 * begin + run.len() + 1) as u64;
        for place in run {
            ranks[*place as usize] = doubled;
        }
        begin += run.len();
    }
    ranks
}

/// Jain's index of fairness: (Σx)² / (n·Σx²), which is 1 if all values are equal and 1/n if one holds the total. `None` for fewer than two
/// values, or if all are zero.
pub fn jain_index(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0u64, 0.0, 0.0);
    for value in values {
        count += 1;
        sum += value;
        squares += value * value;
    }
    (count > 1 && squares > 0.0).then(|| sum * sum / (count as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nearest_ranks_of_small_and_round_numbers() {
        let values: Vec<u64> = (1..=1000).collect();
        assert_eq!(nearest_rank(&values, 500), Some(500));
        assert_eq!(nearest_rank(&values, 990), Some(990));
        assert_eq!(nearest_rank(&values, 999), Some(999));
        assert_eq!(nearest_rank(&values, 1000), Some(1000));
        assert_eq!(nearest_rank(&values[..999], 999), Some(999));
        assert_eq!(nearest_rank(&values[..5], 500), Some(3));
        assert_eq!(nearest_rank(&values[..4], 500), Some(2));
        assert_eq!(nearest_rank(&values[..100], 990), Some(99));
        assert_eq!(nearest_rank(&values[..101], 990), Some(100));
        assert_eq!(nearest_rank(&values[..1], 1), Some(1));
        assert_eq!(nearest_rank::<u64>(&[], 500), None);
    }

    #[test]
    fn distinct_keys_are_cut_evenly() {
        let keys: Vec<u64> = (0..103).collect();
        let bins = equal_count_bins(&keys, 20);
        assert_eq!(bins.len(), 20);
        assert_eq!(bins[0], 0..5);
        assert_eq!(bins[1], 5..10);
        assert_eq!(bins[19], 97..103);
        assert!(bins.iter().all(|bin| (5..=6).contains(&bin.len())));
        assert_eq!(equal_count_bins(&keys, 1), vec![0..103; 1]);
        assert_eq!(equal_count_bins(&keys[..3], 20), [0..1, 1..2, 2..3]);
        assert!(equal_count_bins::<u64>(&[], 20).is_empty());
    }

    #[test]
    fn equal_keys_stay_together_and_a_frequent_one_has_its_own_bin() {
        assert_eq!(equal_count_bins(&[7; 1000], 20), vec![0..1000; 1]);
        // 33 distinct keys, 40 times the same, 27 distinct ones.
        let keys: Vec<u64> = (0..33).chain([33; 40]).chain(34..61).collect();
        let bins = equal_count_bins(&keys, 10);
        assert_eq!(
            bins,
            [
                0..10,
                10..20,
                20..30,
                30..33,
                33..73,
                73..80,
                80..90,
                90..100
            ]
        );
        // Half way between the two ends of a run the lower one is taken.
        assert_eq!(equal_count_bins(&[1, 2, 2, 3], 2), [0..1, 1..4]);
    }

    #[test]
    fn ranks_agree_or_disagree() {
        let up: Vec<(u64, u64)> = (0..50).map(|n| (n, n * n)).collect();
        let down: Vec<(u64, u64)> = (0..50).map(|n| (n, 1000 - 7 * n)).collect();
        assert_eq!(spearman(&up), Some(1.0));
        assert_eq!(spearman(&down), Some(-1.0));
        assert_eq!(spearman(&[(1, 5), (2, 5), (3, 5)]), None);
        assert_eq!(spearman(&[(5, 1), (5, 2)]), None);
        assert_eq!(spearman(&[(1, 1)]), None);
        assert_eq!(spearman(&[]), None);
    }

    /// Worked by hand: ranks 1, 2.5, 2.5, 4 and 2, 1, 3.5, 3.5; deviations from 2.5 multiply to 0.75 + 0 + 0 + 1.5, squares sum up to
    /// 4.5 and 4.5.
    #[test]
    fn equal_values_share_the_mean_of_their_ranks() {
        let pairs = [(10, 20), (20, 10), (20, 30), (30, 30)];
        assert_eq!(spearman(&pairs), Some(2.25 / 4.5));
    }

    #[test]
    fn fairness_of_shares() {
        assert_eq!(jain_index([3.0; 7]), Some(1.0));
        assert_eq!(jain_index([5.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain_index([1.0, 3.0]), Some(0.8));
        assert_eq!(jain_index([1.0]), None);
        assert_eq!(jain_index([0.0, 0.0]), None);
    }

    /// The definition itself: the least value such that at least `per_mille` thousandths of the values are at most it.
    fn by_definition(values: &[u64], per_mille: usize) -> u64 {
        let covered = |limit| values.iter().filter(|&&value| value <= limit).count();
        let enough = |&limit: &u64| covered(limit) * 1000 >= per_mille * values.len();
        values.iter().copied().filter(enough).min().unwrap()
    }

    /// The definition itself: the correlation of ranks that are counted.
    fn spearman_by_definition(pairs: &[(u64, u64)]) -> f64 {
        let rank = |values: &[u64], own: u64| {
            let below = values.iter().filter(|&&value| value < own).count() as f64;
            let equal = values.iter().filter(|&&value| value == own).count() as f64;
            below + (equal + 1.0) / 2.0
        };
        let (x, y): (Vec<u64>, Vec<u64>) = pairs.iter().copied().unzip();
        let mean = (pairs.len() as f64 + 1.0) / 2.0;
        let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
        for &(a, b) in pairs {
            let (a, b) = (rank(&x, a) - mean, rank(&y, b) - mean);
            xy += a * b;
            xx += a * a;
            yy += b * b;
        }
        xy / (xx * yy).sqrt()
    }

    proptest! {
        #[test]
        fn ranks_agree_with_the_definition(
            values in prop::collection::vec(0u64..500, 1..300),
            per_mille in 1usize..=1000,
        ) {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            prop_assert_eq!(nearest_rank(&sorted, per_mille), Some(by_definition(&values, per_mille)));
        }

        #[test]
        fn bins_hold_every_key_once_and_part_no_equal_ones(
            mut keys in prop::collection::vec(0u64..200, 0..500),
            bins in 1usize..30,
        ) {
            keys.sort_unstable();
            let ranges = equal_count_bins(&keys, bins);
            prop_assert!(ranges.len() <= bins);
            let mut next = 0;
            for range in &ranges {
                prop_assert_eq!(range.start, next);
                prop_assert!(range.start < range.end);
                prop_assert!(next == 0 || keys[next - 1] != keys[next]);
                next = range.end;
            }
            prop_assert_eq!(next, keys.len());
            // A bin of several keys is about as long as asked for: each of its ends moved by at most half a run.
            let longest_run = keys.chunk_by(|a, b| a == b).map(<[u64]>::len).max().unwrap_or(0);
            for range in ranges.iter().filter(|range| keys[range.start] != keys[range.end - 1]) {
                prop_assert!(range.len() <= keys.len() / bins + 1 + longest_run);
            }
        }

        #[test]
        fn correlation_agrees_with_the_definition(pairs in prop::collection::vec((0u64..40, 0u64..40), 2..100)) {
            match spearman(&pairs) {
                Some(value) => prop_assert!((value - spearman_by_definition(&pairs)).abs() < 1e-9),
                None => prop_assert!(spearman_by_definition(&pairs).is_nan()),
            }
            let backwards: Vec<(u64, u64)> = pairs.iter().rev().copied().collect();
            prop_assert_eq!(spearman(&pairs), spearman(&backwards));
        }
    }
}

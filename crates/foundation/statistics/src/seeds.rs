//! Means, medians and ratios over seeds.

use crate::bootstrap::Resamples;
use crate::interval::{Estimate, Interval};
use crate::student::student_t;

/// Arithmetic mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Standard deviation of the population, estimated from `values` (n − 1 in the denominator); `None` for fewer than two values.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let freedom = values.len().checked_sub(1).filter(|&freedom| freedom > 0)?;
    let mean = mean(values)?;
    let squares: f64 = values
        .iter()
        .map(|value| (value - mean) * (value - mean))
        .sum();
    Some((squares / freedom as f64).sqrt())
}

/// The middle value, or the mean of the two middle values; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(match sorted.len() % 2 {
        1 => upper,
        // Halved first, so that the sum stays finite; of equal values it is exactly that value.
        _ => sorted[middle - 1] / 2.0 + upper / 2.0,
    })
}

/// Mean over seeds with the interval of Student's t; `None` without values.
///
/// The interval has its nominal confidence if the values are normally distributed, and about that confidence for other distributions with
/// little skew. Equal values have an interval of length zero.
pub fn mean_estimate(values: &[f64], confidence: f64) -> Option<Estimate> {
    let value = mean(values)?;
    let interval = deviation(values).map(|deviation| {
        let count = values.len() as f64;
        let quantile = student_t(confidence, values.len() as u64 - 1);
        let half = quantile * deviation / count.sqrt();
        Interval {
            low: value - half,
            high: value + half,
        }
    });
    Some(Estimate {
        value,
        interval,
        seeds: values.len(),
    })
}

/// Median over seeds with the percentile interval of the bootstrap; `None` without values.
///
/// `resamples` are of as many seeds. With few seeds it holds the true median less often than it claims: an interval can be no longer
/// than from the least to the greatest value. At a confidence of 0.95 it holds it in 75 % of all studies with 3 seeds, in 94 % with 5, in
/// 91 % with 15.
pub fn median_estimate(values: &[f64], confidence: f64, resamples: &Resamples) -> Option<Estimate> {
    let value = median(values)?;
    let interval = resamples.interval(confidence, |seeds| {
        let drawn: Vec<f64> = seeds.iter().map(|&seed| values[seed as usize]).collect();
        median(&drawn)
    });
    Some(Estimate {
        value,
        interval,
        seeds: values.len(),
    })
}

/// Mean of the first values of `pairs` divided by the mean of the second values, with Fieller's interval; `None` without pairs, or if the
/// second mean is zero.
///
/// The two values of a pair are of one seed: what a seed does to both does not count. There is no interval of fewer than two pairs, nor
/// if the second mean may be zero as far as its own interval tells and the pairs do not all have the same ratio. A ratio lies outside
/// of the interval exactly if the paired t test at this confidence tells the first values from the second ones times that ratio.
pub fn ratio_estimate(pairs: &[(f64, f64)], confidence: f64) -> Option<Estimate> {
    let (above, below): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (top, bottom) = (mean(&above)?, mean(&below)?);
    if bottom == 0.0 {
        return None;
    }
    let value = top / bottom;
    Some(Estimate {
        value,
        interval: fieller(&above, &below, value, confidence),
        seeds: pairs.len(),
    })
}

/// All ratios for which the mean of `above − ratio · below` may be zero.
fn fieller(above: &[f64], below: &[f64], ratio: f64, confidence: f64) -> Option<Interval> {
    let count = above.len();
    if count < 2 {
        return None;
    }
    let bottom = mean(below)?;
    let quantile = student_t(confidence, count as u64 - 1);
    // Factor for sums of squares: the squared quantile over the number of seeds and the degrees of freedom.
    let weight = quantile * quantile / (count as f64 * (count as f64 - 1.0));
    let (mut residual, mut both, mut spread) = (0.0, 0.0, 0.0);
    for (above, below) in above.iter().zip(below) {
        // The residuals have the mean zero.
        let off = above - ratio * below;
        let from_mean = below - bottom;
        residual += off * off;
        both += off * from_mean;
        spread += from_mean * from_mean;
    }
    if residual == 0.0 {
        return Some(Interval::at(ratio));
    }
    // (δ · bottom)² ≤ weight · Σ (off − δ · from_mean)², for δ around the ratio.
    let square = bottom * bottom - weight * spread;
    if square <= 0.0 {
        return None;
    }
    let linear = weight * both;
    let root = (linear * linear + square * weight * residual).sqrt();
    Some(Interval {
        low: ratio + (-linear - root) / square,
        high: ratio + (-linear + root) / square,
    })
}

//! Two points over the seeds that they share.
//!
//! For means, the differences within each seed count. For medians, the difference of both medians counts, with the bootstrap over the
//! pairs: the median of the differences is another number, and may have another sign.

use super::Statistic;
use super::points::Samples;
use clearway_statistics::{Estimate, ratio_estimate};

impl Statistic {
    /// The statistic of the first values minus `times` the statistic of the second values.
    pub(crate) fn difference(
        self,
        pairs: &[(f64, f64)],
        times: f64,
        confidence: f64,
        samples: &mut Samples,
    ) -> Option<Estimate> {
        match self {
            Self::Mean => {
                let differences = pairs.iter().map(|(own, other)| own - times * other);
                self.estimate(&differences.collect::<Vec<f64>>(), confidence, samples)
            }
            Self::Median => of_medians(pairs, confidence, samples, |own, other| {
                Some(own - times * other)
            }),
        }
    }

    /// The statistic of the first values over the statistic of the second values.
    pub(crate) fn ratio(
        self,
        pairs: &[(f64, f64)],
        confidence: f64,
        samples: &mut Samples,
    ) -> Option<Estimate> {
        match self {
            Self::Mean => ratio_estimate(pairs, confidence),
            Self::Median => of_medians(pairs, confidence, samples, |own, other| {
                (other != 0.0).then(|| own / other)
            }),
        }
    }
}

/// A function of both medians, with the interval of the bootstrap over pairs.
fn of_medians(
    pairs: &[(f64, f64)],
    confidence: f64,
    samples: &mut Samples,
    of: impl Fn(f64, f64) -> Option<f64>,
) -> Option<Estimate> {
    let both = |pairs: &[(f64, f64)]| {
        let (own, other): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        of(
            Statistic::Median.compute(&own)?,
            Statistic::Median.compute(&other)?,
        )
    };
    let interval = samples
        .for_seeds(pairs.len())
        .interval(confidence, |seeds| {
            let drawn: Vec<(f64, f64)> = seeds.iter().map(|&seed| pairs[seed as usize]).collect();
            both(&drawn)
        });
    Some(Estimate {
        value: both(pairs)?,
        interval,
        seeds: pairs.len(),
    })
}

//! Log-normal distributions, as lines between their quantiles.

use super::{SizeDistribution, SizePoint};
use crate::power::power;
use clearway_units::Bytes;
use std::f64::consts::E;

/// Percents above the median, and the quantiles of the standard normal distribution there (Abramowitz and Stegun, table 26.5). The last one
/// ends the line: one draw in 4300 would be beyond.
const QUANTILES: [(f64, f64); 12] = [
    (60.0, 0.253_347),
    (70.0, 0.524_401),
    (80.0, 0.841_621),
    (85.0, 1.036_433),
    (90.0, 1.281_552),
    (95.0, 1.644_854),
    (97.5, 1.959_964),
    (99.0, 2.326_348),
    (99.5, 2.575_829),
    (99.8, 2.878_162),
    (99.9, 3.090_232),
    (100.0, 3.5),
];

impl SizeDistribution {
    /// The log-normal distribution with this median, above zero, whose logarithm has the standard deviation `sigma`; no size is above
    /// `most`. It is linear between its quantiles, and ends 3.5 standard deviations from the median.
    pub fn log_normal(median: Bytes, sigma: f64, most: Bytes) -> Self {
        let middle = median.as_f64();
        let point = |percent: f64, size: f64| SizePoint {
            // Too large a float becomes the largest integer.
            bytes: Bytes::new(((size + 0.5) as u64).clamp(1, most.as_u64().max(1))),
            percent,
        };
        let below = QUANTILES.iter().rev();
        let below = below.map(|&(percent, z)| point(100.0 - percent, middle / power(E, sigma * z)));
        let above = QUANTILES.iter();
        let above = above.map(|&(percent, z)| point(percent, middle * power(E, sigma * z)));
        Self::new(below.chain([point(50.0, middle)]).chain(above).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_mean_are_those_of_the_distribution() {
        let most = Bytes::new(u64::MAX);
        let sizes = SizeDistribution::log_normal(Bytes::new(1_000_000), 0.5, most);
        assert_eq!(sizes.quantile(50.0), Bytes::new(1_000_000));
        // exp(±1.644854 / 2).
        assert_eq!(sizes.quantile(95.0), Bytes::new(2_276_017));
        assert_eq!(sizes.quantile(5.0), Bytes::new(439_364));
        // exp(1 / 8): lines lie above a convex curve, and the ends are cut.
        assert!(
            (sizes.mean() / 1_133_148.0 - 1.0).abs() < 0.01,
            "{}",
            sizes.mean()
        );
        assert_eq!(
            (sizes.points()[0].percent, sizes.points()[24].percent),
            (0.0, 100.0)
        );
    }

    #[test]
    fn extremes_stay_within_their_limits() {
        let most = Bytes::new(5000);
        let wide = SizeDistribution::log_normal(Bytes::new(1000), 4.0, most);
        assert_eq!(
            (wide.quantile(0.0), wide.quantile(100.0)),
            (Bytes::new(1), most)
        );
        let alike = SizeDistribution::log_normal(Bytes::new(1000), 0.0, most);
        assert!([0.0, 13.0, 100.0].map(|p| alike.quantile(p)) == [Bytes::new(1000); 3]);
        assert_eq!(alike.mean(), 1000.0);
    }
}

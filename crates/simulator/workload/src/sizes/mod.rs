//! Sizes of the flows of data-centre traffic: a cumulative distribution of sizes, piecewise linear between its points.
//!
//! Three measured distributions are built in ([`PublishedSizes::ALL`]); a user's own comes from a file in the format of HPCC's traffic
//! generator:
//!
//! ```text
//! 0 0                            # bytes, percent of the flows that carry at most as many
//! 10000 15
//! 1000000 70.5
//! 30000000 100
//! ```
//!
//! The first percent is 0, the last 100, and both columns rise from line to line. A flow's size is drawn by the inverse: a uniform
//! percent, the first point that is not below it, and the line from the point before.

mod log_normal;
mod published;

pub use published::PublishedSizes;

use clearway_units::{Bytes, RandomStream};

/// The largest size of a distribution. A flow of it takes 20 s at 400 Gb/s.
pub const LARGEST_SIZE: Bytes = Bytes::new(1_000_000_000_000);

/// One point of a cumulative distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizePoint {
    /// A size.
    pub bytes: Bytes,
    /// Percent of the flows that carry at most as much.
    pub percent: f64,
}

/// A distribution of sizes; see the [module](self).
#[derive(Debug, Clone, PartialEq)]
pub struct SizeDistribution {
    /// At least two; both members rise from one to the next, and percents go from 0 to 100.
    points: Vec<SizePoint>,
}

impl SizeDistribution {
    /// Creates the distribution of these points: at least two, both columns ascending, the percents from 0 to 100. The reader of a
    /// distribution file checks that.
    pub fn new(points: Vec<SizePoint>) -> Self {
        debug_assert!(points.len() >= 2, "a distribution has a line");
        Self { points }
    }

    /// The points, from the smallest size to the largest.
    pub fn points(&self) -> &[SizePoint] {
        &self.points
    }

    /// The mean size in bytes, before sizes are cut to whole bytes.
    pub fn mean(&self) -> f64 {
        let of_pair = |pair: &[SizePoint]| {
            let (low, high) = (pair[0], pair[1]);
            (low.bytes.as_f64() + high.bytes.as_f64()) / 2.0 * (high.percent - low.percent) / 100.0
        };
        self.points.windows(2).map(of_pair).sum()
    }

    /// The size that `percent` of the flows do not exceed, cut to whole bytes, at least one.
    ///
    /// Percents below 0 count as 0, those above 100 as 100.
    pub fn quantile(&self, percent: f64) -> Bytes {
        let index = self.points.partition_point(|point| point.percent < percent);
        let low = self.points[index.saturating_sub(1)];
        let high = self.points[index.min(self.points.len() - 1)];
        let mut bytes = low.bytes.as_f64();
        if low != high {
            let slope = (high.bytes.as_f64() - low.bytes.as_f64()) / (high.percent - low.percent);
            bytes += slope * (percent - low.percent);
        }
        // Rounding may carry the line past its end.
        let bytes = (bytes as u64).clamp(low.bytes.as_u64(), high.bytes.as_u64());
        Bytes::new(bytes.max(1))
    }

    /// Draws a size at random.
    pub fn sample(&self, random: &mut RandomStream) -> Bytes {
        self.quantile(random.unit() * 100.0)
    }
}

//! Figures over seeds: the median, the minimum and the maximum.

use serde::Serialize;

/// A figure over seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SeedSpread {
    /// The median; for an even number of values, the mean of the two in the middle.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub greatest: f64,
}

impl SeedSpread {
    /// The spread of finite values; `None` without any.
    pub(crate) fn from_values(values: impl IntoIterator<Item = Option<f64>>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().flatten().collect();
        values.retain(|value| value.is_finite());
        values.sort_unstable_by(f64::total_cmp);
        let (least, greatest) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            1 => values[middle],
            _ => f64::midpoint(values[middle - 1], values[middle]),
        };
        Some(Self {
            median,
            least,
            greatest,
        })
    }
}

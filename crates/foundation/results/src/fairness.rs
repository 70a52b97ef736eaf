//! Fairness of flows to each other, as Jain's index has it: over some time, and how soon it settles.

use clearway_units::Span;
use serde::{Deserialize, Serialize};

/// Jain's index from here on counts as fair.
pub const FAIR: f64 = 0.95;

/// Course of Jain's index over one set of flows: from the last time that a flow started beside others until the first flow after that was
/// done.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Time at which a flow last started beside others, in microseconds.
    pub from_us: f64,
    /// Time at which the first flow after that was done, in microseconds; `None` if none was.
    pub until_us: Option<f64>,
    /// Number of flows that were active in between.
    pub flows: u64,
    /// Index of what flows got, as [`Metric::Fairness`](crate::Metric::Fairness) has it, over windows that begin after the last start;
    /// `None` if no such window ended in time.
    pub goodput: Option<JainCourse>,
    /// Index of the rates at which flows may send, as [`Metric::RateFairness`](crate::Metric::RateFairness) has it; `None` if there was no
    /// sample, or no controller limits its flow.
    pub allowed_rate: Option<JainCourse>,
}

/// Jain's index over some time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct JainCourse {
    /// The least value.
    pub min: f64,
    /// The last one.
    pub last: f64,
    /// Time from the last start until the index reached the threshold ([`FAIR`], or that of a measure) and stayed there, in
    /// microseconds; `None` if it was less in the end.
    pub settled_us: Option<f64>,
}

impl JainCourse {
    /// Returns the course `before` with one more value, taken so long `after` the last start.
    pub fn and(before: Option<Self>, after: Span, index: f64, fair: f64) -> Self {
        let settled = before.and_then(|before| before.settled_us);
        Self {
            min: before.map_or(index, |before| before.min.min(index)),
            last: index,
            settled_us: (index >= fair).then(|| settled.unwrap_or(after.as_us())),
        }
    }
}

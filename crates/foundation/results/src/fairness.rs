//! Fairness between flows by Jain's index: its course, and its settling time.

use clearway_units::Span;
use serde::{Deserialize, Serialize};

/// Least value of Jain's index that counts as fair.
pub const FAIR: f64 = 0.95;

/// Course of Jain's index over one set of flows: from the last start of a flow beside others until the next completion of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Time at which a flow last started beside others, in microseconds.
    pub from_us: f64,
    /// Time of the next completion of a flow, in microseconds; `None` if there was none.
    pub until_us: Option<f64>,
    /// Number of flows that were active in between.
    pub flows: u64,
    /// Index of the goodput of flows, as in [`Metric::Fairness`](crate::Metric::Fairness), over windows that begin after the last start;
    /// `None` if no such window ended in time.
    pub goodput: Option<JainCourse>,
    /// Index of the rates at which flows may send, as in [`Metric::RateFairness`](crate::Metric::RateFairness); `None` if there was no
    /// sample, or no controller limits its flow.
    pub allowed_rate: Option<JainCourse>,
}

/// Jain's index over some time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct JainCourse {
    /// The least value.
    pub min: f64,
    /// The last value.
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

//! Assertions of a plan, and their outcomes.

use clearway_statistics::Estimate;
use serde::Serialize;

/// Number that represents a measure over the seeds of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// The mean over all possible seeds; intervals are Student's.
    #[default]
    Mean,
    /// The median over all possible seeds; intervals are percentiles of the bootstrap.
    Median,
}

impl Statistic {
    /// Both statistics.
    pub const ALL: [Self; 2] = [Self::Mean, Self::Median];

    /// The statistic as one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Median => "median",
        }
    }
}

/// Assertion of a plan.
///
/// It applies to each point with the values of `of`, and passes if it passes at each of these points.
#[derive(Debug, Clone, PartialEq)]
pub struct Assertion {
    /// Name of the measure.
    pub measure: String,
    /// Number that represents the measure over the seeds.
    pub statistic: Statistic,
    /// Keys of axes and their values at the points concerned, as the plan gives them; all points if the list is empty.
    pub of: Vec<(String, String)>,
    /// Bound of the measure.
    pub bound: Bound,
    /// Confidence of the intervals, between 0 and 1.
    pub confidence: f64,
}

impl Assertion {
    /// The same assertion for the points `of`, compared with the points `other` if the assertion compares points.
    pub fn with_values(&self, of: Vec<(String, String)>, other: &[(String, String)]) -> Self {
        let limit = |limit: &Limit| match limit {
            Limit::Number(number) => Limit::Number(*number),
            Limit::Points { factor, .. } => Limit::Points {
                of: other.to_vec(),
                factor: *factor,
            },
        };
        let bound = match &self.bound {
            Bound::Below(other) => Bound::Below(limit(other)),
            Bound::Above(other) => Bound::Above(limit(other)),
            Bound::Between(low, high) => Bound::Between(*low, *high),
            Bound::Near { tolerance, .. } => Bound::Near {
                of: other.to_vec(),
                tolerance: *tolerance,
            },
        };
        Self {
            of,
            bound,
            ..self.clone()
        }
    }
}

/// Bound of a measure.
#[derive(Debug, Clone, PartialEq)]
pub enum Bound {
    /// The measure is below the limit.
    Below(Limit),
    /// The measure is above the limit.
    Above(Limit),
    /// The measure lies between two numbers, both included.
    Between(f64, f64),
    /// The measure differs by at most the share `tolerance` from its value at the points that have the values `of` instead.
    Near {
        /// Keys of axes and their values that the other points have.
        of: Vec<(String, String)>,
        /// Largest relative difference: 0.05 is 5 %.
        tolerance: f64,
    },
}

/// Limit of a measure.
#[derive(Debug, Clone, PartialEq)]
pub enum Limit {
    /// A number in the unit of the measure.
    Number(f64),
    /// `factor` times the measure at the points that have the values `of` instead, and otherwise the same values.
    Points {
        /// Keys of axes and their values that the other points have.
        of: Vec<(String, String)>,
        /// Multiple of the measure at the other points; 1 unless the plan gives it.
        factor: f64,
    },
}

/// Verdict on an assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AssertionVerdict {
    /// The assertion holds with the requested confidence.
    Pass,
    /// The opposite of the assertion holds with the requested confidence.
    Fail,
    /// The runs do not decide; counts as failed.
    Undecided,
}

impl AssertionVerdict {
    /// The verdict as one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Undecided => "undecided",
        }
    }
}

/// An assertion at one point.
#[derive(Debug, Clone, PartialEq)]
pub struct AssertionCase {
    /// Place of the point on each axis.
    pub place: Vec<u32>,
    /// Place of the point to compare with, if any.
    pub other: Option<Vec<u32>>,
    /// The measure, or its difference to the limit at the other point; `None` without values.
    pub estimate: Option<Estimate>,
    /// Ratio of the measure to its value at the other point; `None` without another point.
    pub ratio: Option<Estimate>,
    /// Verdict at this point.
    pub verdict: AssertionVerdict,
    /// Reason for the verdict, for people.
    pub reason: String,
}

/// Outcome of an assertion.
#[derive(Debug, Clone, PartialEq)]
pub struct AssertionOutcome {
    /// The assertion in words.
    pub text: String,
    /// Name of the measure.
    pub measure: String,
    /// Number that represents the measure over the seeds.
    pub statistic: Statistic,
    /// Confidence of the intervals.
    pub confidence: f64,
    /// Points that the assertion applies to; empty if no point has the values that the plan names.
    pub cases: Vec<AssertionCase>,
    /// Verdict on all cases: passed if each case passes, failed if one fails.
    pub verdict: AssertionVerdict,
    /// Reason for the verdict, for people.
    pub reason: String,
}

//! Assertions of a plan, and what became of them.

use clearway_statistics::Estimate;
use serde::Serialize;

/// Number that stands for a measure over the seeds of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// The mean over all seeds that there could be; intervals are Student's.
    #[default]
    Mean,
    /// The median over all seeds that there could be; intervals are percentiles of the bootstrap.
    Median,
}

impl Statistic {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Mean, Self::Median];

    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Median => "median",
        }
    }
}

/// Assertion of a plan.
///
/// It concerns all points with the values of `of`, one after the other; it passes if it passes at each of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Assertion {
    /// Name of the measure.
    pub measure: String,
    /// Number that stands for the measure over the seeds.
    pub statistic: Statistic,
    /// Keys of axes and their values at the points concerned, as the plan gives them; all points if there are none.
    pub of: Vec<(String, String)>,
    /// What is asserted.
    pub bound: Bound,
    /// Confidence of the intervals, between 0 and 1.
    pub confidence: f64,
}

impl Assertion {
    /// The same assertion of the points `of`, in comparison with those of `other` if it compares points.
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

/// What is asserted of a measure.
#[derive(Debug, Clone, PartialEq)]
pub enum Bound {
    /// The measure is below the limit.
    Below(Limit),
    /// The measure is above the limit.
    Above(Limit),
    /// The measure lies between two numbers, both included.
    Between(f64, f64),
    /// The measure differs by at most the share `tolerance` from that of the points that have the values `of` instead.
    Near {
        /// Keys of axes and their values that the other points have.
        of: Vec<(String, String)>,
        /// Share by which it may differ: 0.05 is 5 %.
        tolerance: f64,
    },
}

/// Limit of a measure.
#[derive(Debug, Clone, PartialEq)]
pub enum Limit {
    /// A number in the unit of the measure.
    Number(f64),
    /// `factor` times the measure of the points that have the values `of` instead, and else the same ones.
    Points {
        /// Keys of axes and their values that the other points have.
        of: Vec<(String, String)>,
        /// Multiple of the measure there; 1 unless the plan says otherwise.
        factor: f64,
    },
}

/// Verdict on an assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AssertionVerdict {
    /// It holds with the confidence that was asked for.
    Pass,
    /// Its opposite holds with the confidence that was asked for.
    Fail,
    /// The runs do not tell; counts as failed.
    Undecided,
}

impl AssertionVerdict {
    /// In one word.
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
    /// Place of the point that it is compared with, if it is.
    pub other: Option<Vec<u32>>,
    /// The measure, or its difference to the limit at the other point; `None` if there are no values.
    pub estimate: Option<Estimate>,
    /// Ratio of the measure to that of the other point; `None` without one.
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
    /// Number that stands for the measure over the seeds.
    pub statistic: Statistic,
    /// Confidence of the intervals.
    pub confidence: f64,
    /// Points that it concerns; none if no point has the values that the plan names.
    pub cases: Vec<AssertionCase>,
    /// Verdict on all cases: passed if each has, failed if one has.
    pub verdict: AssertionVerdict,
    /// Reason for the verdict, for people.
    pub reason: String,
}

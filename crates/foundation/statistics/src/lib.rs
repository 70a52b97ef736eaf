//! Confidence intervals over the seeds of a study, for sweeps, assertions, comparisons and the judgement of figures.
//!
//! The *seeds* of one setting count as independent draws from all possible seeds. An *interval* of confidence 0.95 comes from a rule that,
//! over many studies, contains the setting's true number (its mean over all seeds) in 95 % of them. An interval does not tell how well the
//! simulator agrees with reality.
//!
//! Two settings with the same seeds are compared seed by seed (*common random numbers*): the intervals apply to the differences, or to the
//! ratio, within pairs.
//!
//! The crate uses no floating point function except the square root: the same values in the same order give the same result on every
//! machine.

mod bootstrap;
mod interval;
mod seeds;
mod student;

pub use bootstrap::{Resamples, shares_of_best};
pub use interval::{Estimate, Interval, IntervalVerdict};
pub use seeds::{deviation, mean, mean_estimate, median, median_estimate, ratio_estimate};
pub use student::student_t;

#[cfg(test)]
mod tests;

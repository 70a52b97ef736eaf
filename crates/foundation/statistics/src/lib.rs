//! Confidence intervals over the seeds of a study: what sweeps, assertions, comparisons and the judgement of figures share.
//!
//! The *seeds* of one setting are taken for independent draws from all seeds that there could be. An *interval* of confidence 0.95 is
//! computed by a rule that, over many studies, holds the true number of that setting (its mean over all seeds) in 95 % of them. It
//! says nothing of how well the simulator agrees with anything else.
//!
//! Two settings that ran with the same seeds are compared seed by seed (*common random numbers*): the intervals are those of the
//! differences, or of the ratio, within pairs.
//!
//! All of it uses no floating point function but the square root: the same values in the same order give the same result anywhere.

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

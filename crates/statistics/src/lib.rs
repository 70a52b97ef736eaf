//! Confidence intervals over the seeds of a study: what sweeps, assertions and comparisons share.
//!
//! The *seeds* of one setting are taken for independent draws from all seeds that there could be. An *interval* of confidence 0.95 is
//! computed by a rule that, over many studies, holds the true number of that setting (its mean over all seeds) in 95 % of them. It
//! says nothing of how well the simulator agrees with anything else.
//!
//! All of it uses no floating point function but the square root, and does not depend on the order of the seeds.

mod interval;
mod student;

pub use interval::{Estimate, Interval, Verdict};
pub use student::student_t;

//! Measures of jobs.

use super::measure::{Options, RunData};
use clearway_units::statistics::nearest_rank;

fn jobs(run: &RunData) -> Result<&[f64], String> {
    match run.jobs.as_deref() {
        None => Err("not all jobs are done".into()),
        Some([]) => Err("there are no jobs".into()),
        Some(jobs) => Ok(jobs),
    }
}

/// A percentile over jobs of their mean time of an iteration, us; the median unless `percentile` says otherwise.
pub(super) fn job_us(run: &RunData, options: &Options) -> Result<f64, String> {
    nearest_rank(jobs(run)?, options.per_mille).ok_or_else(|| "there are no jobs".into())
}

/// Mean over jobs of their mean time of an iteration, us.
pub(super) fn job_mean_us(run: &RunData, _: &Options) -> Result<f64, String> {
    let jobs = jobs(run)?;
    Ok(jobs.iter().sum::<f64>() / jobs.len() as f64)
}

/// The slowest job's mean time of an iteration, us.
pub(super) fn job_max_us(run: &RunData, _: &Options) -> Result<f64, String> {
    let jobs = jobs(run)?;
    Ok(jobs[jobs.len() - 1])
}

/// How much longer the slowest job takes than the fastest, as a share of the fastest one's time.
pub(super) fn job_spread(run: &RunData, _: &Options) -> Result<f64, String> {
    let jobs = jobs(run)?;
    Ok(jobs[jobs.len() - 1] / jobs[0] - 1.0)
}

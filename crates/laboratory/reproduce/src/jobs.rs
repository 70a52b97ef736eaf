//! Measures of jobs: iterations and communication times.

use super::options::Options;
use super::outcome::BucketCurve;
use super::run_data::RunData;
use clearway_lab::IterationTimes;
use clearway_units::Time;
use clearway_units::statistics::nearest_rank;

impl RunData {
    fn jobs(&self) -> Result<&[f64], String> {
        match self.jobs.as_deref() {
            None => Err(self.unfinished("jobs")),
            Some([]) => Err("there are no jobs".into()),
            Some(jobs) => Ok(jobs),
        }
    }

    /// The iterations of a finished job.
    fn iterations(&self, job: usize) -> Result<&[IterationTimes], String> {
        let result = self.job_results.get(job);
        let result = result.ok_or_else(|| format!("there is no job {job}"))?;
        match result.is_done() {
            true => Ok(&result.times),
            false => Err(format!("job {job} is not done")),
        }
    }

    /// Beginning and end of a job's communication in an iteration: from its first message until the iteration was over.
    fn communication(&self, job: usize, iteration: usize) -> Result<(Time, Time), String> {
        let iterations = self.iterations(job)?;
        let times = iterations.get(iteration);
        let times = times.ok_or_else(|| format!("job {job} has no iteration {iteration}"))?;
        let phase = times.sending.zip(times.over);
        phase.ok_or_else(|| format!("job {job} does not communicate"))
    }
}

/// A percentile over jobs of their mean iteration time, us; by default the median.
pub(super) fn job_us(run: &RunData, options: &Options) -> Result<f64, String> {
    nearest_rank(run.jobs()?, options.per_mille).ok_or_else(|| "there are no jobs".into())
}

/// Mean over jobs of their mean iteration time, us.
pub(super) fn job_mean_us(run: &RunData, _: &Options) -> Result<f64, String> {
    let jobs = run.jobs()?;
    Ok(jobs.iter().sum::<f64>() / jobs.len() as f64)
}

/// The slowest job's mean iteration time, us.
pub(super) fn job_max_us(run: &RunData, _: &Options) -> Result<f64, String> {
    let jobs = run.jobs()?;
    Ok(jobs[jobs.len() - 1])
}

/// Excess of the slowest job's time over the fastest job's time, as a share of the fastest job's time.
pub(super) fn job_spread(run: &RunData, _: &Options) -> Result<f64, String> {
    let jobs = run.jobs()?;
    Ok(jobs[jobs.len() - 1] / jobs[0] - 1.0)
}

/// The times of a job's iterations, without the first `after` and without the iterations from `before` on, us.
fn iteration_times(run: &RunData, options: &Options) -> Result<Vec<f64>, String> {
    let iterations = run.iterations(options.job)?.iter();
    let iterations = iterations.take(options.before).skip(options.after);
    let spans = iterations.filter_map(IterationTimes::span);
    let times: Vec<f64> = spans.map(|span| span.as_us()).collect();
    match times.is_empty() {
        true => Err(format!("job {} has no such iterations", options.job)),
        false => Ok(times),
    }
}

/// A percentile over the iterations of a job, us; by default the median.
pub(super) fn iteration_us(run: &RunData, options: &Options) -> Result<f64, String> {
    let mut times = iteration_times(run, options)?;
    times.sort_unstable_by(f64::total_cmp);
    nearest_rank(&times, options.per_mille).ok_or_else(|| "there are no iterations".into())
}

/// The mean iteration of a job, us.
pub(super) fn iteration_mean_us(run: &RunData, options: &Options) -> Result<f64, String> {
    let times = iteration_times(run, options)?;
    Ok(times.iter().sum::<f64>() / times.len() as f64)
}

/// Communication time of a job in an iteration, us.
pub(super) fn communication_us(run: &RunData, options: &Options) -> Result<f64, String> {
    let (begun, over) = run.communication(options.job, options.iteration)?;
    Ok(over.since(begun).as_us())
}

/// Part of that time in which another job also communicates, us.
pub(super) fn overlap_us(run: &RunData, options: &Options) -> Result<f64, String> {
    let (begun, over) = run.communication(options.job, options.iteration)?;
    let others = run.iterations(options.with)?.iter();
    let phases = others.filter_map(|times| times.sending.zip(times.over));
    let shared = phases.map(|(from, to)| to.min(over).since(from.max(begun)).as_us());
    Ok(shared.sum())
}

/// Time in which each pair of jobs communicates simultaneously, us, in each iteration of the first job of the pair.
pub(super) fn overlaps(run: &RunData) -> Vec<BucketCurve> {
    let pairs = (0..run.job_results.len()).flat_map(|job| (0..job).map(move |first| (first, job)));
    let curve = |(job, with): (usize, usize)| {
        let overlap = |iteration: usize| {
            let options = Options {
                job,
                with,
                iteration,
                ..Options::default()
            };
            overlap_us(run, &options).ok()
        };
        let values: Vec<f64> = (0..).map_while(overlap).collect();
        (!values.is_empty()).then(|| BucketCurve {
            name: format!("overlap of jobs {job} and {with}, us"),
            bucket_us: 0.0,
            values,
        })
    };
    pairs.filter_map(curve).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_fabric::LinkCounters;
    use clearway_lab::JobResult;
    use clearway_transport::EndpointCounters;
    use clearway_transport::testing::network;
    use clearway_units::{Bytes, Digest, Rate, Span};
    use std::collections::BTreeMap;

    /// A run with only job results.
    fn run_of(job_results: Vec<JobResult>) -> RunData {
        RunData {
            sections: Vec::new(),
            flows: Vec::new(),
            sizes: Vec::new(),
            ends: Vec::new(),
            base_rtts: Vec::new(),
            attacks: Vec::new(),
            largest_message: Bytes::ZERO,
            network: network(Rate::from_gbps(100), Span::from_us(8)),
            settings: BTreeMap::new(),
            simulated: Time::ZERO,
            stopped: None,
            links: LinkCounters::default(),
            endpoints: EndpointCounters::default(),
            digest: Digest::default(),
            jobs: None,
            job_results,
            pauses: 0,
            queue: None,
            long_queues: None,
            losses: None,
            switch_marks: None,
            fullest_link: None,
            last_hops: None,
            packet_latency: None,
            goodput: BTreeMap::new(),
            acks: BTreeMap::new(),
            rates: None,
        }
    }

    /// A job that computes 10 us and communicates 5 us in each iteration, from `start` us on.
    fn job(start: u64) -> JobResult {
        let iteration = |number: u64| {
            let begun = start + 15 * number;
            IterationTimes {
                begun: Time::from_us(begun),
                sending: Some(Time::from_us(begun + 10)),
                over: Some(Time::from_us(begun + 15)),
            }
        };
        JobResult {
            label: String::new(),
            ranks: 2,
            hosts: Vec::new(),
            section: 0,
            flows: 0..0,
            iterations: 3,
            volume: None,
            times: (0..3).map(iteration).collect(),
        }
    }

    #[test]
    fn phases_of_jobs_overlap() {
        let mut run = run_of(vec![job(0), job(3), job(5)]);
        let options = |job, with, iteration| Options {
            job,
            with,
            iteration,
            ..Options::default()
        };
        for (with, expected) in [(0, 5.0), (1, 2.0), (2, 0.0)] {
            let overlap = overlap_us(&run, &options(0, with, 1));
            assert_eq!(overlap, Ok(expected), "{with}");
        }
        assert_eq!(communication_us(&run, &options(2, 0, 2)), Ok(5.0));
        assert!(overlap_us(&run, &options(0, 1, 3)).is_err());
        let curves = overlaps(&run);
        let drawn: Vec<(&str, &[f64])> = curves
            .iter()
            .map(|curve| (curve.name.as_str(), curve.values.as_slice()))
            .collect();
        assert_eq!(
            drawn,
            [
                ("overlap of jobs 0 and 1, us", [2.0; 3].as_slice()),
                ("overlap of jobs 0 and 2, us", &[0.0; 3]),
                ("overlap of jobs 1 and 2, us", &[3.0; 3]),
            ]
        );
        // The job is cut off in its last iteration.
        run.job_results[1].times[2].over = None;
        let error = || overlap_us(&run, &options(0, 1, 1));
        let expected = Err("job 1 is not done".to_owned());
        assert_eq!(error(), expected);
        run.job_results[1].times.pop();
        let error = || overlap_us(&run, &options(0, 1, 1));
        assert_eq!(error(), expected);
    }

    #[test]
    fn iterations_of_one_job_are_told_apart() {
        let mut slow = job(0);
        slow.times[0].over = Some(Time::from_us(100));
        let run = run_of(vec![job(0), slow]);
        let options = |after, per_mille| Options {
            job: 1,
            after,
            per_mille,
            ..Options::default()
        };
        assert_eq!(iteration_us(&run, &options(0, 500)), Ok(15.0));
        assert_eq!(iteration_us(&run, &options(0, 1000)), Ok(100.0));
        assert_eq!(iteration_us(&run, &options(1, 1000)), Ok(15.0));
        assert_eq!(iteration_mean_us(&run, &options(1, 500)), Ok(15.0));
        assert!(iteration_mean_us(&run, &options(3, 500)).is_err());
        let first = Options {
            before: 1,
            ..options(0, 500)
        };
        assert_eq!(iteration_mean_us(&run, &first), Ok(100.0));
    }
}

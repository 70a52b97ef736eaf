//! Jobs: ranks that repeat a collective or a training iteration, and the time of an iteration.
//!
//! An iteration begins with its first rank and ends with its last rank. All figures of a job cover the iterations that ended before the
//! run ended.
//!
//! **Bandwidths** are defined as in nccl-tests, in GB/s of 10⁹ bytes. The *algorithm bandwidth* is the size of the collective over the
//! mean time of an iteration. The *bus bandwidth* is the algorithm bandwidth times a factor of the collective, such as 2·(n − 1)/n for an
//! all-reduce of n ranks: the rate that each link must carry with any algorithm, comparable with the rate of a network card.

use crate::record::{IterationRow, JobRow};
use crate::statistics::{Distribution, mean_of_picoseconds};
use clearway_units::Span;
use serde::{Deserialize, Serialize};

/// Maximum number of iterations of a job whose times are listed.
pub const MOST_ITERATIONS: usize = 1000;

/// A job with the times of its iterations; the [table of `summary.json`](crate::summary) describes the fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSummary {
    /// The user's name for the job.
    pub label: String,
    /// Name of the job's section of the workload; `None` in results of older versions.
    #[serde(default)]
    pub section: Option<String>,
    /// Name of the job's tenant, if its section names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Number of ranks of the job.
    pub ranks: u32,
    /// The host of each rank.
    #[serde(default)]
    pub hosts: Vec<u32>,
    /// The connections between its ranks.
    #[serde(default)]
    pub flows: JobFlows,
    /// Number of iterations that the job had to run.
    pub iterations: u32,
    /// Number of iterations that ended before the run ended.
    pub completed: u32,
    /// Times of the completed iterations, in microseconds; `None` without any.
    pub iteration_us: Option<Distribution>,
    /// Start of the first iteration, in microseconds.
    pub start_us: Option<f64>,
    /// End of the last iteration, in microseconds; `None` if some iterations did not end.
    pub end_us: Option<f64>,
    /// The size of the collective in bytes.
    pub bytes: Option<u64>,
    /// Algorithm bandwidth: the size over the mean time of an iteration, in 10⁹ bytes per second.
    pub algbw_gb_per_s: Option<f64>,
    /// Bus bandwidth in 10⁹ bytes per second.
    pub busbw_gb_per_s: Option<f64>,
    /// Time of each completed iteration, in microseconds, in their order: at most [`MOST_ITERATIONS`], the first and the last among them.
    pub iterations_us: Vec<f64>,
}

/// Rows of `flows.parquet` that are connections of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JobFlows {
    /// Number of the first connection.
    pub first: u32,
    /// Number of connections. They have consecutive numbers.
    pub count: u32,
}

/// Number of jobs in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCounts {
    /// All jobs.
    pub total: u64,
    /// Jobs whose iterations all ended before the run ended.
    pub completed: u64,
}

impl JobCounts {
    /// The counts of `jobs`.
    pub fn from_jobs(jobs: &[JobSummary]) -> Self {
        let completed = jobs.iter().filter(|job| job.completed == job.iterations);
        Self {
            total: jobs.len() as u64,
            completed: completed.count() as u64,
        }
    }
}

impl JobSummary {
    /// Summarises a job of a run whose sections have these names.
    pub fn from_job(job: &JobRow, sections: &[String]) -> Self {
        let times: Vec<Span> = job.times.iter().filter_map(IterationRow::time).collect();
        let completed = times.len() as u32;
        let iteration_us =
            Distribution::of_picoseconds(times.iter().map(|time| time.as_ps()).collect());
        let end = job
            .times
            .iter()
            .filter_map(|iteration| iteration.over)
            .max();
        let algbw_gb_per_s = iteration_us.and_then(|us| gigabytes_per_second(job.bytes?, us.mean));
        Self {
            label: job.label.clone(),
            section: sections.get(job.section as usize).cloned(),
            tenant: None,
            ranks: job.hosts.len() as u32,
            hosts: job.hosts.clone(),
            flows: JobFlows {
                first: job.flows.start,
                count: job.flows.len() as u32,
            },
            iterations: job.iterations,
            completed,
            iteration_us,
            start_us: job.times.first().map(|first| first.begun.as_us()),
            end_us: end
                .filter(|_| completed == job.iterations)
                .map(|end| end.as_us()),
            bytes: job.bytes,
            algbw_gb_per_s,
            busbw_gb_per_s: algbw_gb_per_s.and_then(|algbw| Some(algbw * job.bus_factor?)),
            iterations_us: evenly(times.len(), MOST_ITERATIONS)
                .map(|place| times[place].as_us())
                .collect(),
        }
    }

    /// The mean time of an iteration in microseconds; `None` if no iteration ended.
    pub fn mean_us(&self) -> Option<f64> {
        Some(self.iteration_us?.mean)
    }
}

/// Distribution of the mean time of an iteration over `jobs`, in microseconds; `None` if no iteration of any job ended.
pub fn over_jobs(jobs: &[JobRow]) -> Option<Distribution> {
    let mean = |job: &JobRow| {
        let times = job.times.iter().filter_map(IterationRow::time);
        mean_of_picoseconds(&times.map(|time| time.as_ps()).collect::<Vec<_>>())
    };
    Distribution::of_picoseconds(jobs.iter().filter_map(mean).collect())
}

/// Rate in GB/s; `None` if no time passed.
fn gigabytes_per_second(bytes: u64, us: f64) -> Option<f64> {
    (us > 0.0).then(|| bytes as f64 / (us * 1e3))
}

/// At most `most` places out of `count`, in order, as evenly spaced as possible, including the first and the last: place i is
/// ⌊i·(count − 1)/(most − 1)⌋.
///
/// # Panics
/// If `most` is less than two.
pub fn evenly(count: usize, most: usize) -> impl Iterator<Item = usize> {
    assert!(most >= 2, "the first and the last");
    let kept = count.min(most);
    (0..kept).map(move |place| match count <= most {
        true => place,
        false => place * (count - 1) / (most - 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::job;
    use clearway_units::Time;
    use proptest::prelude::*;

    #[test]
    fn a_collective_has_bandwidths() {
        // 8 MB in 100 us are 80 GB/s.
        let summary = JobSummary::from_job(&job("ring", 3, &[90, 110, 100]), &[]);
        assert_eq!((summary.completed, summary.iterations), (3, 3));
        assert_eq!(summary.mean_us(), Some(100.0));
        assert_eq!(summary.algbw_gb_per_s, Some(80.0));
        assert_eq!(summary.busbw_gb_per_s, Some(140.0));
        assert_eq!((summary.start_us, summary.end_us), (Some(5.0), Some(305.0)));
        assert_eq!(summary.iterations_us, [90.0, 110.0, 100.0]);
    }

    #[test]
    fn what_is_not_over_does_not_count() {
        let mut row = job("ring", 4, &[90, 110, 100]);
        row.times[2].over = None;
        let summary = JobSummary::from_job(&row, &[]);
        assert_eq!((summary.completed, summary.iterations), (2, 4));
        assert_eq!(summary.mean_us(), Some(100.0));
        assert_eq!((summary.start_us, summary.end_us), (Some(5.0), None));
        assert_eq!(summary.iterations_us, [90.0, 110.0]);
        for times in [vec![], row.times[2..].to_vec()] {
            row.times = times;
            let summary = JobSummary::from_job(&row, &[]);
            assert_eq!((summary.completed, summary.iteration_us), (0, None));
            assert_eq!(summary.start_us.is_some(), !row.times.is_empty());
            assert_eq!((summary.end_us, summary.algbw_gb_per_s), (None, None));
        }
    }

    #[test]
    fn what_is_no_collective_or_took_no_time_has_no_bandwidth() {
        let mut row = job("training", 2, &[90, 110]);
        row.bytes = None;
        let summary = JobSummary::from_job(&row, &[]);
        assert_eq!(
            (summary.algbw_gb_per_s, summary.busbw_gb_per_s),
            (None, None)
        );
        row.bytes = Some(8_000_000);
        row.bus_factor = None;
        let summary = JobSummary::from_job(&row, &[]);
        assert_eq!(summary.algbw_gb_per_s, Some(80.0));
        assert_eq!(summary.busbw_gb_per_s, None);
        let summary = JobSummary::from_job(&job("ring", 1, &[0]), &[]);
        assert_eq!(
            (summary.mean_us(), summary.algbw_gb_per_s),
            (Some(0.0), None)
        );
    }

    #[test]
    fn jobs_count_by_their_means() {
        let jobs = [
            job("a", 3, &[90, 110, 100]),
            job("b", 1, &[160]),
            job("c", 1, &[]),
        ];
        let over_jobs = over_jobs(&jobs).unwrap();
        assert_eq!(
            (over_jobs.min, over_jobs.mean, over_jobs.max),
            (100.0, 130.0, 160.0)
        );
        assert_eq!(super::over_jobs(&jobs[2..]), None);
    }

    #[test]
    #[should_panic(expected = "was over at 1us, before it began at 2us")]
    fn an_iteration_that_is_over_before_it_begins_is_our_bug() {
        let mut row = job("ring", 1, &[10]);
        row.times[0] = IterationRow {
            begun: Time::from_us(2),
            sending: None,
            over: Some(Time::from_us(1)),
        };
        JobSummary::from_job(&row, &[]);
    }

    proptest! {
        #[test]
        fn even_places_grow_and_hold_both_ends(count in 0usize..5000, most in 2usize..1500) {
            let places: Vec<usize> = evenly(count, most).collect();
            prop_assert_eq!(places.len(), count.min(most));
            prop_assert!(places.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(places.first().copied(), (count > 0).then_some(0));
            prop_assert_eq!(places.last().copied(), count.checked_sub(1));
            let gaps = || places.windows(2).map(|pair| pair[1] - pair[0]);
            prop_assert!(gaps().max() <= gaps().min().map(|least| least + 1));
        }

        #[test]
        fn the_summary_agrees_with_the_iterations(times in prop::collection::vec(1u64..1_000_000, 1..40), lost in 0u32..3) {
            let row = job("any", times.len() as u32 + lost, &times);
            let summary = JobSummary::from_job(&row, &[]);
            prop_assert_eq!(summary.completed as usize, times.len());
            let us: Vec<f64> = times.iter().map(|&us| us as f64).collect();
            prop_assert_eq!(&summary.iterations_us, &us);
            prop_assert_eq!(summary.end_us.is_some(), lost == 0);
            let distribution = summary.iteration_us.unwrap();
            prop_assert!(distribution.min <= distribution.mean && distribution.mean <= distribution.max);
            // Bandwidth times time is the size again.
            let bytes = summary.algbw_gb_per_s.unwrap() * 1e3 * distribution.mean;
            prop_assert!((bytes - 8e6).abs() < 1e-3);
            prop_assert_eq!(over_jobs(&[row]).unwrap().mean, distribution.mean);
        }
    }
}

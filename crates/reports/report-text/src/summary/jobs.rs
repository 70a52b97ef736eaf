//! Jobs for the terminal: a line for each if there are few, the extremes and the middle if there are many.

use super::labels::{label, labelled};
use crate::table::{Align, Table};
use clearway_report::Distribution;
use clearway_report::jobs::{JobCounts, JobSummary};
use clearway_report::quantity::{count, microseconds, plain};
use clearway_report::summary::Summary;

/// Maximum number of jobs with a line each.
const LISTED: usize = 8;

/// Placeholder for a missing figure.
const NONE: &str = "-";

/// Table of the iteration times of jobs; empty without jobs.
pub(super) fn jobs(summary: &Summary) -> String {
    match summary.jobs.len() {
        0 => String::new(),
        1..=LISTED => each(&summary.jobs),
        _ => overview(summary),
    }
}

fn each(jobs: &[JobSummary]) -> String {
    let several = jobs.iter().any(|job| job.iterations > 1);
    let collectives = jobs.iter().any(|job| job.bytes.is_some());
    let mut table = Table::new().column("Job", Align::Left);
    let times: &[&str] = if several {
        &["mean", "p99", "max"]
    } else {
        &["time"]
    };
    let bandwidths: &[&str] = if collectives {
        &["algbw", "busbw"]
    } else {
        &[]
    };
    for header in ["ranks", "iter."].iter().chain(times).chain(bandwidths) {
        table = table.column(*header, Align::Right);
    }
    for job in jobs {
        let time = |pick: fn(Distribution) -> f64| {
            let us = job.iteration_us.map(pick);
            us.map_or(NONE.into(), microseconds)
        };
        let mut cells = vec![job.label.clone(), count(job.ranks.into()), done(job)];
        cells.push(time(|us| us.mean));
        if several {
            cells.extend([time(|us| us.p99), time(|us| us.max)]);
        }
        if collectives {
            let rates = [job.algbw_gb_per_s, job.busbw_gb_per_s];
            cells.extend(rates.map(|rate| rate.map_or(NONE.into(), plain)));
        }
        table.row(cells);
    }
    let mut text =
        format!("{table}\nTimes of an iteration: first rank begins to last rank through.\n");
    if collectives {
        text += "algbw: bytes of the collective / mean time; busbw: as in nccl-tests; in GB/s.\n";
    }
    text
}

/// `20`, or `18/20` if some iterations did not end.
fn done(job: &JobSummary) -> String {
    let all = count(job.iterations.into());
    match job.completed == job.iterations {
        true => all,
        false => format!("{}/{all}", count(job.completed.into())),
    }
}

fn overview(summary: &Summary) -> String {
    let jobs = &summary.jobs;
    let mut table = labelled();
    let JobCounts { completed, total } = JobCounts::from_jobs(jobs);
    let counts = [completed, total].map(count);
    table.row([
        label("Jobs"),
        format!("{} of {} done", counts[0], counts[1]),
    ]);
    let mean = |job: &&JobSummary| job.mean_us();
    let slowest = jobs
        .iter()
        .filter(|job| mean(job).is_some())
        .reduce(|a, b| if mean(&b) > mean(&a) { b } else { a });
    if let (Some(us), Some(slowest)) = (summary.jobs_us, slowest) {
        let [fastest, median, most] = [us.min, us.p50, us.max].map(microseconds);
        let text = format!(
            "slowest {most}, median {median}, fastest {fastest}\nthe slowest is {}",
            slowest.label
        );
        table.row([label("Iteration"), text]);
    }
    let rates = jobs.iter().filter_map(|job| job.busbw_gb_per_s).collect();
    if let Some(rates) = Distribution::of_ratios(rates) {
        let [lowest, median, highest] = [rates.min, rates.p50, rates.max].map(plain);
        let text = format!("lowest {lowest} GB/s, median {median} GB/s, highest {highest} GB/s");
        table.row([label("busbw"), text]);
    }
    let mut text = table.to_string();
    if summary.jobs_us.is_some() {
        text += "\nIteration: mean of a job; first rank begins to last rank through.\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{job, run};
    use crate::summary::summary_table;
    use clearway_report::JobRow;

    fn print(rows: Vec<JobRow>) -> String {
        let mut record = run();
        record.jobs = rows;
        jobs(&Summary::from_record(&record))
    }

    #[test]
    fn few_jobs_have_a_line_each() {
        let mut training = job("training", 20, &[1000, 1250]);
        training.bytes = None;
        training.hosts = (0..1024).collect();
        let rows = vec![
            job("ring-all-reduce 3", 3, &[90, 110, 100]),
            training,
            job("late", 5, &[]),
        ];
        insta::assert_snapshot!(print(rows), @"
        Job                ranks  iter.      mean       p99       max  algbw  busbw
        -----------------  -----  -----  --------  --------  --------  -----  -----
        ring-all-reduce 3      8      3  100.0 us  110.0 us  110.0 us  80.00  140.0
        training           1,024   2/20  1.125 ms  1.250 ms  1.250 ms      -      -
        late                   8    0/5         -         -         -      -      -

        Times of an iteration: first rank begins to last rank through.
        algbw: bytes of the collective / mean time; busbw: as in nccl-tests; in GB/s.
        ");
    }

    #[test]
    fn one_iteration_has_one_time() {
        let mut row = job("step", 1, &[123]);
        insta::assert_snapshot!(print(vec![row.clone(), job("other", 1, &[100])]), @"
        Job    ranks  iter.      time  algbw  busbw
        -----  -----  -----  --------  -----  -----
        step       8      1  123.0 us  65.04  113.8
        other      8      1  100.0 us  80.00  140.0

        Times of an iteration: first rank begins to last rank through.
        algbw: bytes of the collective / mean time; busbw: as in nccl-tests; in GB/s.
        ");
        row.bytes = None;
        insta::assert_snapshot!(print(vec![row]), @"
        Job   ranks  iter.      time
        ----  -----  -----  --------
        step      8      1  123.0 us

        Times of an iteration: first rank begins to last rank through.
        ");
    }

    #[test]
    fn many_jobs_are_told_by_their_ends_and_their_middle() {
        let mut rows: Vec<JobRow> = (0..64)
            .map(|number| {
                job(
                    &format!("ring-all-reduce {number}"),
                    1,
                    &[100 + number * 5 % 64],
                )
            })
            .collect();
        rows[3].times.clear();
        insta::assert_snapshot!(print(rows), @"
        Jobs       63 of 64 done
        Iteration  slowest 163.0 us, median 132.0 us, fastest 100.0 us
                   the slowest is ring-all-reduce 51
        busbw      lowest 85.89 GB/s, median 106.1 GB/s, highest 140.0 GB/s

        Iteration: mean of a job; first rank begins to last rank through.
        ");
    }

    #[test]
    fn many_jobs_of_which_none_began() {
        let row = job("training", 1, &[]);
        insta::assert_snapshot!(print(vec![row; 9]), @"Jobs       0 of 9 done");
    }

    #[test]
    fn jobs_stand_before_flows_and_take_their_place_if_all_are_connections() {
        let mut record = run();
        record.jobs = vec![job("ring", 1, &[10])];
        let text = summary_table(&Summary::from_record(&record));
        assert!(text.find("Job ").unwrap() < text.find("FCT").unwrap());
        for flow in &mut record.flows {
            flow.ideal_fct = clearway_units::Span::ZERO;
        }
        let text = summary_table(&Summary::from_record(&record));
        assert!(text.contains("Job ") && !text.contains("FCT"), "{text}");
        assert!(!text.contains("\n\n\n"), "{text}");
    }

    #[test]
    fn wide_figures_fit_into_80_columns() {
        let mut row = job("ring-all-reduce 63", 10_000, &[999_949; 10_000]);
        row.hosts = (0..65_536).collect();
        let wide = print(vec![row.clone(); 2]);
        row.label = "a name of many words ".repeat(5);
        for text in [wide, print(vec![row; 9])] {
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(80), "{text}");
        }
    }
}

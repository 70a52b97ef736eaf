//! Jobs: the times of their iterations, in order, and a comparison of jobs.

use super::completion::cumulative;
use super::document::Document;
use super::format;
use super::html::{Column, details, paragraph, table};
use super::plot::{Axis, Join, MOST_POINTS, MOST_SERIES, Plot, Series, Shape, Unit};
use clearway_report::Distribution;
use clearway_report::jobs::{JobSummary, MOST_ITERATIONS, evenly};
use clearway_report::quantity::plain;
use clearway_report::summary::Summary;
use std::sync::Arc;

/// Maximum number of jobs that are listed without a click.
const FEW: usize = 16;
/// Maximum number of jobs that are listed at all: the slowest.
const LISTED: usize = 500;
/// Maximum number of points of a curve with marks: more marks would touch each other.
const MOST_MARKED: usize = 60;

/// The section on jobs; empty without jobs.
pub(super) fn section(document: &mut Document, summary: &Summary) {
    if summary.jobs.is_empty() {
        return;
    }
    document.open_section("jobs", "Jobs");
    // From the fastest to the slowest; jobs without an iteration are the slowest.
    let mut ranked: Vec<&JobSummary> = summary.jobs.iter().collect();
    ranked.sort_by(|a, b| {
        let key = |job: &JobSummary| job.mean_us().unwrap_or(f64::INFINITY);
        key(a).total_cmp(&key(b))
    });
    if summary.jobs_us.is_none() {
        document.push(&paragraph("No iteration of any job was over."));
    }
    let plots = [courses(&summary.jobs, &ranked), by_job(&ranked)];
    document.plots(plots.into_iter().flatten().collect());
    if ranked.len() <= FEW {
        document.push(&list(summary.jobs.iter()));
    } else {
        document.push(&overview(summary));
        let (name, listed) = match ranked.len() > LISTED {
            true => (format!("The {LISTED} slowest jobs"), LISTED),
            false => ("All jobs, the slowest first".into(), ranked.len()),
        };
        let slowest = ranked.iter().rev().take(listed).copied();
        document.push(&details(&name, &list(slowest)));
    }
    document.push(&note(&summary.jobs));
    document.close_section();
}

/// The most important figure.
pub(super) fn tile(summary: &Summary) -> Option<(&'static str, String, String)> {
    let us = summary.jobs_us?;
    let jobs = format::counted(summary.jobs.len(), "job", "jobs");
    let under = match summary.jobs.as_slice() {
        [_] => jobs,
        _ => format!("{jobs}; slowest {}", format::time(us.max)),
    };
    Some(("Mean iteration", format::time(us.mean), under))
}

/// Times of successive iterations, with a line for each of some jobs; `None` if no job has more than one iteration.
fn courses(jobs: &[JobSummary], ranked: &[&JobSummary]) -> Option<Plot> {
    let has_course = |job: &&JobSummary| job.iterations_us.len() > 1;
    let all: Vec<&JobSummary> = match jobs.len() <= MOST_SERIES {
        true => jobs.iter().filter(has_course).collect(),
        false => ranked.iter().copied().filter(has_course).collect(),
    };
    if all.is_empty() {
        return None;
    }
    let series = evenly(all.len(), MOST_SERIES).enumerate();
    let series = series.map(|(colour, place)| {
        let job = all[place];
        let numbers = evenly(job.completed as usize, MOST_ITERATIONS);
        Series {
            name: job.label.clone(),
            x: numbers.map(|number| (number + 1) as f64).collect(),
            y: job.iterations_us.clone(),
            shape: match job.iterations_us.len() {
                ..=MOST_MARKED => Shape::Points,
                _ => Shape::Line,
            },
            join: Join::Never,
            colour,
        }
    });
    let note = match all.len() > MOST_SERIES {
        true => format!(
            "{MOST_SERIES} of {} jobs, evenly from the fastest to the slowest",
            format::count(all.len() as u64)
        ),
        false => String::new(),
    };
    Some(Plot {
        id: "job-iterations",
        title: "Iterations".into(),
        note,
        x: Axis {
            from: Some(1.0),
            ..Axis::from_zero("iteration", Unit::Count)
        },
        y: Axis::from_zero("iteration time", Unit::Time),
        series: series.collect(),
        rules: Vec::new(),
    })
}

/// Times of all jobs, from the fastest to the slowest; `None` if there is nothing to compare.
fn by_job(ranked: &[&JobSummary]) -> Option<Plot> {
    let known: Vec<Distribution> = ranked.iter().filter_map(|job| job.iteration_us).collect();
    if known.len() < 2 {
        return None;
    }
    let places: Vec<usize> = evenly(known.len(), MOST_POINTS).collect();
    let x: Arc<[f64]> = places.iter().map(|place| (place + 1) as f64).collect();
    type Pick = fn(&Distribution) -> f64;
    let mut lines: Vec<(&str, Pick)> = vec![("mean", |us| us.mean)];
    let several = ranked.iter().any(|job| job.completed > 1);
    if several {
        lines.push(("longest iteration", |us| us.max));
    }
    let series = lines
        .into_iter()
        .enumerate()
        .map(|(colour, (name, pick))| Series {
            name: name.into(),
            x: x.clone(),
            y: places.iter().map(|&place| pick(&known[place])).collect(),
            shape: Shape::Dots,
            join: Join::Never,
            colour,
        });
    let drawn = match places.len() < known.len() {
        true => format!(
            "{} of {} drawn",
            format::count(places.len() as u64),
            format::counted(known.len(), "job", "jobs")
        ),
        false => format!(
            "a dot for each of {}",
            format::counted(known.len(), "job", "jobs")
        ),
    };
    Some(Plot {
        id: "jobs-ranked",
        title: "From the fastest job to the slowest".into(),
        note: drawn,
        x: Axis {
            from: None,
            ..Axis::from_zero("job, from the fastest", Unit::Count)
        },
        y: Axis::from_zero("iteration time", Unit::Time),
        series: series.collect(),
        rules: Vec::new(),
    })
}

/// Plot of how jobs differ in several variants. Each variant has a name, a colour and the mean iteration times of its jobs in microseconds.
/// `None` if a variant has no job, or if all have only one.
pub(super) fn overlay(variants: Vec<(&str, usize, Vec<f64>)>) -> Option<Plot> {
    let counts = || variants.iter().map(|(_, _, times)| times.len());
    if counts().min()? == 0 || counts().max()? == 1 {
        return None;
    }
    let series = variants.into_iter().map(|(name, colour, mut times)| {
        times.sort_unstable_by(f64::total_cmp);
        cumulative(name, &times, colour)
    });
    Some(Plot {
        id: "jobs",
        title: "Iteration time of jobs".into(),
        note: "share of jobs whose mean is at most a time, all seeds together".into(),
        x: Axis {
            from: None,
            ..Axis::from_zero("mean iteration time", Unit::Time)
        },
        y: Axis::from_zero("share of jobs", Unit::Fraction).to(1.0),
        series: series.collect(),
        rules: Vec::new(),
    })
}

/// Table of the spread over all jobs.
fn overview(summary: &Summary) -> String {
    let columns: Vec<_> = [("Over all jobs", Column::Text)]
        .into_iter()
        .chain(["min", "mean", "p50", "p99", "p99.9", "max"].map(|name| (name, Column::Number)))
        .collect();
    let row = |name: &str, over_jobs: Option<Distribution>, print: fn(f64) -> String| {
        let of = over_jobs?;
        let mut row = vec![name.to_owned()];
        row.extend([of.min, of.mean, of.p50, of.p99, of.p999, of.max].map(print));
        Some(row)
    };
    let rates = summary.jobs.iter().filter_map(|job| job.busbw_gb_per_s);
    let rows = [
        row("Mean iteration time", summary.jobs_us, format::time),
        row(
            "busbw",
            Distribution::of_ratios(rates.collect()),
            gigabytes_per_second,
        ),
    ];
    let rows: Vec<Vec<String>> = rows.into_iter().flatten().collect();
    match rows.is_empty() {
        true => String::new(),
        false => table(&columns, &rows),
    }
}

fn gigabytes_per_second(rate: f64) -> String {
    format!("{} GB/s", plain(rate))
}

/// A row for each of some jobs.
fn list<'a>(jobs: impl Iterator<Item = &'a JobSummary> + Clone) -> String {
    let several = jobs.clone().any(|job| job.iterations > 1);
    let collectives = jobs.clone().any(|job| job.bytes.is_some());
    let times: &[&str] = if several {
        &["Mean", "p99", "Max"]
    } else {
        &["Time"]
    };
    let bandwidths: &[&str] = if collectives {
        &["Size", "algbw", "busbw"]
    } else {
        &[]
    };
    let figures = ["Ranks", "Iterations", "Began"].iter();
    let columns: Vec<_> = [("Job", Column::Text)]
        .into_iter()
        .chain(
            figures
                .chain(times)
                .chain(bandwidths)
                .map(|name| (*name, Column::Number)),
        )
        .collect();
    let none = || String::from("–");
    let rows = jobs.map(|job| {
        let done = match job.completed == job.iterations {
            true => format::count(job.iterations.into()),
            false => {
                let [done, all] = [job.completed, job.iterations].map(|n| format::count(n.into()));
                format!("{done} of {all}")
            }
        };
        let time = |us: Option<f64>| us.map_or_else(none, format::time);
        let mut row = vec![job.label.clone(), format::count(job.ranks.into()), done];
        row.extend([time(job.start_us), time(job.mean_us())]);
        if several {
            row.push(time(job.iteration_us.map(|us| us.p99)));
            row.push(time(job.iteration_us.map(|us| us.max)));
        }
        if collectives {
            row.push(
                job.bytes
                    .map_or_else(none, |bytes| format::bytes(bytes as f64)),
            );
            let rates = [job.algbw_gb_per_s, job.busbw_gb_per_s];
            row.extend(rates.map(|rate| rate.map_or_else(none, gigabytes_per_second)));
        }
        row
    });
    table(&columns, &rows.collect::<Vec<_>>())
}

/// Explanation of the terms in the tables.
fn note(jobs: &[JobSummary]) -> String {
    let collectives = match jobs.iter().any(|job| job.bytes.is_some()) {
        true => {
            " algbw: size of the collective / mean time. busbw: as nccl-tests count it, in 10⁹ bytes per second."
        }
        false => "",
    };
    format!(
        "<p class=\"note\">Iteration: from its first rank that begins to its last that is through.{collectives}</p>"
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::{data, plot_ids};
    use super::super::{Page, render};
    use crate::sample::{job, run};
    use clearway_report::{JobRow, RunRecord};
    use clearway_units::Span;

    fn html(jobs: Vec<JobRow>) -> String {
        let record = RunRecord { jobs, ..run() };
        render(&Page {
            record: &record,
            scenario_text: "",
            settings: &[],
            why: None,
        })
    }

    /// Jobs with equal numbers of iterations: iterations of job n take 100 us plus 7n modulo `count`, and the last one 1 us more.
    fn jobs(count: u64, iterations: u32) -> Vec<JobRow> {
        let one = |number: u64| {
            let mut times = vec![100 + number * 7 % count; iterations as usize];
            times[iterations as usize - 1] += 1;
            job(&format!("ring {number}"), iterations, &times)
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn a_run_without_jobs_has_no_section() {
        let page = html(Vec::new());
        assert!(!page.contains("id=\"jobs\"") && !page.contains("Mean iteration"));
    }

    #[test]
    fn few_jobs_have_a_line_and_a_row_each() {
        let mut rows = vec![job("ring", 3, &[90, 110, 100]), job("late", 5, &[])];
        rows[1].bytes = None;
        let page = html(rows);
        for text in [
            "<dt>Mean iteration</dt><dd><b>100.0 µs</b> <span>2 jobs; slowest 100.0 µs</span>",
            "<th scope=\"row\">ring</th><td class=\"n\">8</td><td class=\"n\">3</td><td class=\"n\">5.000 µs</td>\
             <td class=\"n\">100.0 µs</td><td class=\"n\">110.0 µs</td><td class=\"n\">110.0 µs</td>\
             <td class=\"n\">8 MB</td><td class=\"n\">80.00 GB/s</td><td class=\"n\">140.0 GB/s</td>",
            "<th scope=\"row\">late</th><td class=\"n\">8</td><td class=\"n\">0 of 5</td><td class=\"n\">–</td>",
        ] {
            assert!(page.contains(text), "no {text}");
        }
        assert!(page.find("id=\"jobs\"") < page.find("id=\"completion\""));
        assert_eq!(plot_ids(&page)[0], "job-iterations");
        assert!(!plot_ids(&page).contains(&"jobs-ranked".to_owned()));
        let data = data(&page);
        let plot = &data["plots"]["plots"][0];
        assert_eq!(plot["series"][0]["y"], serde_json::json!([90, 110, 100]));
        assert_eq!(data["plots"]["lists"][0], serde_json::json!([1, 2, 3]));
        assert_eq!(plot["series"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn single_iterations_are_sorted_dots() {
        let page = html(jobs(64, 1));
        assert_eq!(plot_ids(&page)[0], "jobs-ranked");
        assert!(!plot_ids(&page).contains(&"job-iterations".to_owned()));
        let data = data(&page);
        let plot = &data["plots"]["plots"][0];
        let series = plot["series"].as_array().unwrap();
        assert_eq!((series.len(), &series[0]["shape"]), (1, &"dots".into()));
        let times = series[0]["y"].as_array().unwrap();
        let times: Vec<u64> = times.iter().map(|time| time.as_u64().unwrap()).collect();
        assert_eq!(times, (101..=164).collect::<Vec<_>>());
        assert!(page.contains("a dot for each of 64 jobs"));
        // The slowest comes first: 7 * 9 = 63.
        let list = &page[page.find("All jobs, the slowest first").unwrap()..];
        let (slowest, fastest) = (list.find(">ring 9<"), list.find(">ring 0<"));
        assert!(slowest.is_some() && slowest < fastest);
    }

    #[test]
    fn many_jobs_are_chosen_from() {
        let page = html(jobs(2001, 70));
        let data = data(&page);
        let plots = &data["plots"]["plots"];
        let names: Vec<&str> = (0..16)
            .map(|place| plots[0]["series"][place]["name"].as_str().unwrap())
            .collect();
        assert_eq!(plots[0]["series"].as_array().unwrap().len(), 16);
        // 7 * 1715 = 6 * 2001 - 1: the slowest.
        assert_eq!((names[0], names[15]), ("ring 0", "ring 1715"));
        assert_eq!(plots[0]["series"][0]["shape"], "line");
        assert_eq!(plots[1]["id"], "jobs-ranked");
        assert_eq!(plots[1]["series"].as_array().unwrap().len(), 2);
        assert_eq!(plots[1]["series"][1]["y"].as_array().unwrap().len(), 1000);
        assert!(page.contains("16 of 2,001 jobs, evenly from the fastest"));
        assert!(page.contains("1,000 of 2,001 jobs drawn"));
        assert!(page.contains("The 500 slowest jobs"));
        assert_eq!(
            page.matches(">ring ").count(),
            16 + 500,
            "plots as tables, and the list"
        );
    }

    #[test]
    fn jobs_without_an_iteration_are_told() {
        for count in [1, 40] {
            let page = html(vec![job("late", 1, &[]); count]);
            assert!(page.contains("No iteration of any job was over."));
            assert!(!page.contains("<dt>Mean iteration"));
        }
    }

    #[test]
    fn connections_of_jobs_are_no_reason_to_say_that_no_flow_completed() {
        let mut record = run();
        record.jobs = jobs(2, 1);
        for flow in &mut record.flows {
            flow.ideal_fct = Span::ZERO;
        }
        let page = render(&Page {
            record: &record,
            scenario_text: "",
            settings: &[],
            why: None,
        });
        assert!(!page.contains("No flow completed."));
        assert!(page.contains("connections of jobs"));
        assert!(!page.contains("Max FCT"));
    }
}

//! Checks that every run must pass.

mod operations;

use crate::run::Ended;
use crate::violation::{Verdict, Violation, must};
use clearway_report::flows::FILE_NAME as FLOWS;
use clearway_report::iterations::FILE_NAME as ITERATIONS;
use clearway_report::operations::FILE_NAME as OPERATIONS;
use clearway_report::series::FILE_NAME as SERIES;
use clearway_report::timeline::FILE_NAME as TIMELINE;
use clearway_report::{
    Distribution, FlowRow, JobSummary, Metric, StatusName, Summary, read_flows, read_iterations,
    read_series,
};
use operations::Operations;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Checks that the process ended with exit code 0, 1 or 2.
pub(crate) fn exit(ended: &Ended) -> Verdict {
    if let Some(0..=2) = ended.code {
        return Ok(());
    }
    let errors = ended.errors.as_str();
    let shown = || {
        let lines: Vec<&str> = errors.lines().take(12).collect();
        format!("{}\n{}", ended.status, lines.join("\n"))
    };
    if ended.hung {
        return Err(Violation::new("time", "wall", shown()));
    }
    if errors.contains("memory allocation of") || errors.contains("failed to spawn thread") {
        return Err(Violation::new("memory", "allocation failed", shown()));
    }
    // Such as `thread 'main' (123) panicked at crates/x/src/y.rs:12:5:`
    let places = errors
        .lines()
        .filter_map(|line| line.split_once("panicked at "));
    if let Some((_, place)) = places.into_iter().next() {
        let place = place.trim_end_matches(':');
        let line = place.rsplit_once(':').map_or(place, |(line, _)| line);
        return Err(Violation::new("panic", line, shown()));
    }
    if ended.status.contains("SIGXCPU") {
        return Err(Violation::new("time", "cpu", shown()));
    }
    let mark = errors.lines().next().unwrap_or(&ended.status);
    Err(Violation::new("exit", mark, shown()))
}

/// The results of a run that ended with exit code 0 or 1.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) summary: Summary,
    rows: Rows,
}

/// Rows of the table of flows or operations.
#[derive(Debug)]
enum Rows {
    Flows(Vec<FlowRow>),
    /// Operations of a scale-up fabric.
    Operations(Operations),
}

impl Results {
    /// Reads the results in `folder`.
    ///
    /// # Errors
    /// If a file is missing, or has an impossible value.
    pub(crate) fn read(folder: &Path) -> Result<Self, Violation> {
        let unreadable = |file: &str, error: &dyn std::error::Error| {
            let mut text = error.to_string();
            let mut source = error.source();
            while let Some(error) = source {
                text = format!("{text}: {error}");
                source = error.source();
            }
            Violation::new("file", file, text)
        };
        let summary = Summary::read(folder).map_err(|error| unreadable("summary.json", &error))?;
        let rows = match summary.is_of_flows() {
            true => {
                let table = read_flows(folder).map_err(|error| unreadable(FLOWS, &error))?;
                Rows::Flows(table.flows)
            }
            false => Rows::Operations(Operations::read(folder)?),
        };
        Ok(Self { summary, rows })
    }

    /// Runs all checks of a single run.
    pub(crate) fn check(&self, ended: &Ended) -> Verdict {
        self.status(ended.code)?;
        self.numbers()?;
        self.packets()?;
        match &self.rows {
            Rows::Flows(flows) => {
                self.rows(flows)?;
                self.slowdowns(flows)?;
                self.jobs(&ended.out)?;
            }
            Rows::Operations(operations) => operations.check(&self.summary, &ended.out)?,
        }
        series(&ended.out)
    }

    /// Checks the status: *complete* means that all flows, operations and iterations are done and the exit code is 0.
    fn status(&self, code: Option<i32>) -> Verdict {
        let summary = &self.summary;
        let complete = summary.status == StatusName::Complete;
        let (completed, total) = match &summary.operations {
            None => (summary.flows.completed, summary.flows.total),
            Some(operations) => {
                let totals = operations.figures.totals;
                (totals.completed, totals.posted)
            }
        };
        let unfinished = summary
            .jobs
            .iter()
            .find(|job| job.completed < job.iterations);
        let all_done = completed == total && unfinished.is_none();
        must(
            !complete || all_done,
            "complete",
            "although not all is done",
            || {
                format!(
                    "status complete, {completed} of {total} flows or operations, {:?}",
                    unfinished.map(|job| (&job.label, job.completed, job.iterations))
                )
            },
        )?;
        must(
            complete || !all_done,
            "complete",
            "not although all is done",
            || format!("status {:?}: {:?}", summary.status, summary.status_reason),
        )?;
        must(
            (code == Some(0)) == complete,
            "exit",
            "code against status",
            || format!("exit code {code:?}, status {:?}", summary.status),
        )?;
        let reason = summary.status_reason.is_some();
        must(
            reason == (summary.status == StatusName::Incomplete),
            "complete",
            "reason",
            || format!("status {:?}: {:?}", summary.status, summary.status_reason),
        )
    }

    /// Checks that numbers are finite and not negative, and that percentiles are in order. JSON cannot express numbers that are not finite.
    fn numbers(&self) -> Verdict {
        let summary = &self.summary;
        let single = [
            ("simulated_us", summary.simulated_us),
            ("cpu_seconds", summary.cpu_seconds),
            ("wall_seconds", summary.wall_seconds),
        ];
        let of_jobs = summary.jobs.iter().flat_map(|job| {
            let JobSummary {
                start_us,
                end_us,
                algbw_gb_per_s,
                busbw_gb_per_s,
                ..
            } = job;
            let options = [start_us, end_us, algbw_gb_per_s, busbw_gb_per_s];
            let options = options.into_iter().flatten();
            options.chain(&job.iterations_us).map(|&us| ("jobs", us))
        });
        for (name, value) in single.into_iter().chain(of_jobs) {
            must(value.is_finite() && value >= 0.0, "numbers", name, || {
                format!("{name} is {value}")
            })?;
        }
        let distributions = [
            ("fct_us", &summary.fct_us),
            ("ideal_fct_us", &summary.ideal_fct_us),
            ("slowdown", &summary.slowdown),
            ("jobs_us", &summary.jobs_us),
        ];
        let of_jobs = summary.jobs.iter();
        let of_jobs = of_jobs.map(|job| ("iteration_us", &job.iteration_us));
        for (name, distribution) in distributions.into_iter().chain(of_jobs) {
            if let Some(distribution) = distribution {
                ordered(name, distribution)?;
            }
        }
        Ok(())
    }

    /// Checks the conservation of packets: the numbers of arrived, lost and retransmitted packets do not exceed the number sent.
    fn packets(&self) -> Verdict {
        let packets = &self.summary.packets;
        let at_most = [
            ("retransmitted", packets.retransmitted, packets.data_sent),
            ("data_delivered", packets.data_delivered, packets.data_sent),
            ("duplicates", packets.duplicates, packets.data_delivered),
            ("headroom_drops", packets.headroom_drops, packets.dropped),
            ("agent_drops", packets.agent_drops, packets.dropped),
            ("trimmed", packets.trimmed, packets.data_sent),
            ("speculative", packets.speculative, packets.data_sent),
            (
                "data_packet_hops",
                self.summary.data_packet_hops,
                self.summary.packet_hops,
            ),
        ];
        for (name, value, most) in at_most {
            must(value <= most, "conservation", name, || {
                format!("{name} is {value}, more than {most}: {packets:?}")
            })?;
        }
        // Every packet that is sent arrives, is lost, or is in flight.
        // Control packets of rate allocation are reflected; the reflected copies are not counted.
        let controls = 2 * packets.rate_controls;
        let answers = packets.acks + packets.nacks + packets.pulls;
        let sent = packets.data_sent + answers + packets.probes + packets.cnps + controls;
        let lost = packets.dropped + packets.corrupted;
        must(
            packets.data_delivered + packets.trimmed + lost <= sent + lost.min(packets.trimmed),
            "conservation",
            "sum",
            || format!("{packets:?}"),
        )?;
        let paused = self.summary.paused_links;
        must(
            (packets.pfc_pauses > 0) == (paused > 0),
            "sums",
            "paused links",
            || format!("{} pauses, {paused} links", packets.pfc_pauses),
        )
    }

    /// Checks that `flows.parquet` agrees with `summary.json`.
    fn rows(&self, flows: &[FlowRow]) -> Verdict {
        let summary = &self.summary;
        let count =
            |holds: fn(&FlowRow) -> bool| flows.iter().filter(|row| holds(row)).count() as u64;
        let sums = [
            ("flows.total", summary.flows.total, flows.len() as u64),
            (
                "flows.started",
                summary.flows.started,
                count(|row| row.start.is_some()),
            ),
            (
                "flows.completed",
                summary.flows.completed,
                count(|row| row.finish.is_some()),
            ),
        ];
        for (name, of_summary, of_rows) in sums {
            must(of_summary == of_rows, "sums", name, || {
                format!("{name}: {of_summary} in summary.json, {of_rows} in flows.parquet")
            })?;
        }
        self.counted(flows)?;
        let numbers: BTreeSet<u32> = flows.iter().map(|row| row.flow).collect();
        let all = (0..).zip(&numbers).all(|(place, &number)| place == number);
        must(
            all && numbers.len() == flows.len(),
            "sums",
            "numbers of flows",
            || format!("{numbers:?}"),
        )?;
        for (place, row) in flows.iter().enumerate() {
            let shown = || format!("row {place}: {row:?}");
            must(
                row.retransmits <= row.packets,
                "sums",
                "retransmits of a flow",
                shown,
            )?;
            must(
                row.packets == 0 || row.start.is_some(),
                "sums",
                "sent before its start",
                shown,
            )?;
            let last = row.finish.or(row.start).map_or(0.0, |time| time.as_us());
            // The summary gives microseconds as a decimal number, which is rounded.
            let late = last > summary.simulated_us * (1.0 + 1e-9) + 1e-6;
            must(
                !late || row.finish.is_none(),
                "sums",
                "after the end",
                shown,
            )?;
        }
        Ok(())
    }

    /// Checks that the senders' counts are the sums of the rows, or, for probes, at least the sum.
    fn counted(&self, flows: &[FlowRow]) -> Verdict {
        let packets = &self.summary.packets;
        let sum = |of: fn(&FlowRow) -> u64| flows.iter().map(of).sum::<u64>();
        let again = sum(|row| row.retransmits);
        // The empty packet that closes a queue pair may be retransmitted at a timeout after the last message of the flow was
        // acknowledged on another queue pair. Then the retransmission belongs to no row.
        let late = packets.timeouts.saturating_sub(sum(|row| row.timeouts));
        // A probe that still waits for the wire when its flow ends belongs to no row.
        let counted = [
            ("data_sent", late, packets.data_sent, sum(|row| row.packets)),
            ("retransmitted", late, packets.retransmitted, again),
            ("probes", u64::MAX, packets.probes, sum(|row| row.probes)),
        ];
        for (name, of_none, of_summary, of_rows) in counted {
            let difference = of_summary.checked_sub(of_rows);
            let holds = difference.is_some_and(|difference| difference <= of_none);
            must(holds, "sums", name, || {
                format!("{name}: {of_summary} in summary.json, {of_rows} in flows.parquet")
            })?;
        }
        Ok(())
    }

    /// Checks that no flow is faster than alone on an idle network, and that the summary gives the same slowdowns.
    fn slowdowns(&self, flows: &[FlowRow]) -> Verdict {
        for row in flows {
            if let Some(fct) = row.fct() {
                must(fct >= row.ideal_fct, "slowdown", "below 1", || {
                    format!("took {fct}, alone {}: {row:?}", row.ideal_fct)
                })?;
            }
        }
        let completed = flows.iter().filter_map(FlowRow::slowdown);
        let least = completed.min_by(f64::total_cmp);
        let of_summary = self.summary.slowdown.as_ref().map(|all| all.min);
        must(least == of_summary, "sums", "slowdown", || {
            format!("{of_summary:?} in summary.json, {least:?} in flows.parquet")
        })?;
        let by_size = self.summary.slowdown_by_size.iter();
        let wrong = by_size
            .filter(|bin| !(bin.slowdown.mean >= 1.0 && bin.slowdown.p50 <= bin.slowdown.max));
        let wrong: Vec<_> = wrong.collect();
        must(wrong.is_empty(), "slowdown", "by size", || {
            format!("{wrong:?}")
        })
    }

    /// Checks that `iterations.parquet` agrees with `summary.json`.
    fn jobs(&self, folder: &Path) -> Verdict {
        let jobs = &self.summary.jobs;
        if jobs.is_empty() {
            return Ok(());
        }
        let unreadable = |error| Violation::new("file", ITERATIONS, format!("{error:?}"));
        let mut rows = read_iterations(folder).map_err(unreadable)?;
        must(rows.len() <= jobs.len(), "sums", "jobs", || {
            format!("{} jobs, {} in iterations.parquet", jobs.len(), rows.len())
        })?;
        for (number, job) in (0..).zip(jobs) {
            // Some jobs may never have begun.
            let times = rows.remove(&number).unwrap_or_default();
            let shown = || format!("{job:?}: {times:?}");
            let over = times.iter().filter(|times| times.over.is_some()).count();
            must(over == job.completed as usize, "sums", "iterations", shown)?;
            must(
                times.len() <= job.iterations as usize,
                "sums",
                "more iterations",
                shown,
            )?;
            let in_order = times.iter().all(|times| {
                let sending = times.sending.unwrap_or(times.begun);
                times.begun <= sending && times.over.is_none_or(|over| sending <= over)
            });
            must(in_order, "sums", "order within an iteration", shown)?;
            let one_by_one = times.windows(2).all(|pair| pair[0].begun <= pair[1].begun);
            must(one_by_one, "sums", "order of iterations", shown)?;
        }
        Ok(())
    }
}

/// Checks that the figures of a distribution are finite, not negative, and in order.
fn ordered(name: &str, all: &Distribution) -> Verdict {
    let steps = [all.min, all.p50, all.p99, all.p999, all.max];
    let finite = steps
        .iter()
        .chain([&all.mean])
        .all(|value| value.is_finite());
    let in_order = steps.windows(2).all(|pair| pair[0] <= pair[1]);
    // The mean is rounded.
    let within =
        all.mean >= all.min * (1.0 - 1e-9) - 1e-6 && all.mean <= all.max * (1.0 + 1e-9) + 1e-6;
    must(
        finite && in_order && within && all.min >= 0.0,
        "numbers",
        name,
        || format!("{name}: {all:?}"),
    )
}

/// Checks that `series.parquet`, if it exists, holds finite numbers that are not negative. Only tokens of GPUs may be negative.
fn series(folder: &Path) -> Verdict {
    if !folder.join(SERIES).exists() {
        return Ok(());
    }
    let mut wrong = None;
    let read = read_series(folder, |line| {
        let may_be_owed = matches!(line.metric, Metric::RequestTokens | Metric::ResponseTokens);
        if !(line.value.is_finite() && (line.value >= 0.0 || may_be_owed)) {
            wrong.get_or_insert_with(|| format!("{line:?}"));
        }
    });
    read.map_err(|error| Violation::new("file", SERIES, format!("{error:?}")))?;
    must(wrong.is_none(), "numbers", SERIES, || {
        wrong.unwrap_or_default()
    })
}

/// Checks that two runs that differ only in their threads have the same outcome.
pub(crate) fn same(one: (&Results, &Path), two: (&Results, &Path)) -> Verdict {
    let (first, second) = (&one.0.summary, &two.0.summary);
    must(
        first.digest == second.digest,
        "digest",
        "of two runs",
        || format!("{} and {}", first.digest, second.digest),
    )?;
    let plain = |summary: &Summary| Summary {
        threads: 0,
        cpu_seconds: 0.0,
        wall_seconds: 0.0,
        peak_rss_bytes: 0,
        ..summary.clone()
    };
    let (first, second) = (plain(first).to_json(), plain(second).to_json());
    must(
        first == second,
        "digest",
        "same digest, other summary",
        || {
            let lines = first.lines().zip(second.lines());
            let other = lines.filter(|(one, two)| one != two);
            format!("{:?}", other.take(5).collect::<Vec<_>>())
        },
    )?;
    for file in [
        FLOWS,
        ITERATIONS,
        OPERATIONS,
        SERIES,
        TIMELINE,
        "scenario.toml",
    ] {
        let read = |folder: &Path| fs::read(folder.join(file)).ok();
        must(read(one.1) == read(two.1), "digest", file, || {
            format!("{file} of the two runs differ")
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;

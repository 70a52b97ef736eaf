//! Checks of the operations of a scale-up fabric.

use crate::violation::{Verdict, Violation, must};
use clearway_report::operations::FILE_NAME as OPERATIONS;
use clearway_report::timeline::FILE_NAME as TIMELINE;
use clearway_report::{OperationSummary, StatusName, Summary};
use parquet::errors::ParquetError;
use parquet::file::reader::SerializedFileReader;
use parquet::record::{Row, RowAccessor};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File};
use std::path::Path;

/// A row of `operations.parquet`.
#[derive(Debug, Clone, PartialEq)]
struct Operation {
    gpu: u32,
    number: u32,
    section: String,
    kind: String,
    group: Option<u32>,
    destination: Option<u32>,
    posted_ps: i64,
    sent_ps: i64,
    completed_ps: i64,
    latency_cycles: u64,
}

impl Operation {
    fn read(row: &Row) -> Result<Self, ParquetError> {
        Ok(Self {
            gpu: row.get_uint(0)?,
            number: row.get_uint(1)?,
            section: row.get_string(2)?.clone(),
            kind: row.get_string(3)?.clone(),
            // Reading a null gives an error.
            group: row.get_uint(4).ok(),
            destination: row.get_uint(5).ok(),
            posted_ps: row.get_long(6)?,
            sent_ps: row.get_long(7)?,
            completed_ps: row.get_long(8)?,
            latency_cycles: row.get_ulong(9)?,
        })
    }
}

/// The rows of `operations.parquet`.
#[derive(Debug)]
pub(super) struct Operations(Vec<Operation>);

impl Operations {
    /// Reads the rows of a result folder.
    ///
    /// # Errors
    /// If the file is missing or damaged.
    pub(super) fn read(folder: &Path) -> Result<Self, Violation> {
        let read = || -> Result<Vec<Operation>, Box<dyn Error>> {
            let file = SerializedFileReader::new(File::open(folder.join(OPERATIONS))?)?;
            let rows = file.into_iter().map(|row| Ok(Operation::read(&row?)?));
            rows.collect()
        };
        let rows = read().map_err(|error| Violation::new("file", OPERATIONS, error.to_string()))?;
        Ok(Self(rows))
    }

    /// Runs all checks of a run's operations.
    pub(super) fn check(&self, summary: &Summary, folder: &Path) -> Verdict {
        let missing = || Violation::new("sums", "no operations", "in summary.json");
        let operations = summary.operations.as_ref().ok_or_else(missing)?;
        figures(summary, operations)?;
        self.rows(summary, operations)?;
        self.numbers(operations)?;
        self.latencies(summary, operations)?;
        self.breakdown(operations)?;
        limits(operations, folder)
    }

    /// Checks that each row describes a possible operation.
    fn rows(&self, summary: &Summary, operations: &OperationSummary) -> Verdict {
        let totals = &operations.figures.totals;
        let (gpus, cycle) = (totals.gpus, totals.cycle_ps);
        let end = summary.simulated_us * (1.0 + 1e-9) + 1e-6;
        for (place, row) in self.0.iter().enumerate() {
            let is_group = matches!(row.kind.as_str(), "multicast write" | "reduction");
            let is_gpu = |gpu: u32| u64::from(gpu) < gpus;
            let other = row.destination;
            let times = [row.posted_ps, row.sent_ps, row.completed_ps];
            let cycles = times.map(|time| u64::try_from(time).unwrap_or(u64::MAX) / cycle.max(1));
            let in_cycles = cycles
                .iter()
                .zip(times)
                .all(|(cycles, time)| i64::try_from(cycles * cycle) == Ok(time));
            let latency = cycles[2].checked_sub(cycles[1]);
            let checks = [
                ("order of times", times.is_sorted() && times[0] >= 0),
                ("times between cycles", in_cycles),
                ("latency of a row", latency == Some(row.latency_cycles)),
                ("completed with its sending", row.latency_cycles > 0),
                ("after the end", times[2] as f64 * 1e-6 <= end),
                ("GPU of a row", is_gpu(row.gpu)),
                ("group of a row", row.group.is_some() == is_group),
                ("destination of a row", other.is_none() == is_group),
                ("no such GPU", other.is_none_or(is_gpu)),
                ("to itself", other != Some(row.gpu)),
            ];
            for (name, holds) in checks {
                must(holds, "operations", name, || {
                    format!("row {place}: {row:?}, a cycle is {cycle} ps, the run {end} us")
                })?;
            }
        }
        Ok(())
    }

    /// Checks that the numbers and the departure cycles of each GPU's operations ascend, and that none is missing in a complete run.
    fn numbers(&self, operations: &OperationSummary) -> Verdict {
        let totals = &operations.figures.totals;
        let is_complete = totals.completed == totals.posted;
        let mut before: Option<&Operation> = None;
        for row in &self.0 {
            let same = before.filter(|before| before.gpu == row.gpu);
            let shown = || format!("{before:?}, then {row:?}");
            let is_next = match (before, same) {
                (_, Some(same)) => same.number < row.number && same.sent_ps <= row.sent_ps,
                (Some(before), None) => before.gpu < row.gpu,
                (None, None) => true,
            };
            must(is_next, "operations", "order of rows", shown)?;
            let expected = same.map_or(0, |same| same.number + 1);
            let fits = !is_complete || row.number == expected;
            must(fits, "operations", "number left out", shown)?;
            before = Some(row);
        }
        Ok(())
    }

    /// Checks that the summary agrees with the rows on latencies and on the duration from the first to the last of them.
    fn latencies(&self, summary: &Summary, operations: &OperationSummary) -> Verdict {
        let (rows, figures) = (&self.0, &operations.figures);
        let (totals, latency) = (&figures.totals, figures.latency_cycles.as_ref());
        let count = rows.len() as u64;
        must(
            totals.completed == count,
            "sums",
            "operations.completed",
            || format!("{totals:?}, {count} rows"),
        )?;
        let own = || rows.iter().map(|row| row.latency_cycles);
        let of_rows = own().min().zip(own().max());
        let of_summary = latency.map(|latency| (latency.min, latency.max));
        must(of_rows == of_summary, "sums", "operations.latency", || {
            format!("{of_summary:?} in summary.json, {of_rows:?} of the rows")
        })?;
        let is_ordered = latency.is_none_or(|all| {
            let steps = [all.min, all.p50, all.p99, all.p999, all.max];
            let range = all.min as f64 * (1.0 - 1e-9)..=all.max as f64 * (1.0 + 1e-9);
            steps.is_sorted() && range.contains(&all.mean)
        });
        must(is_ordered, "numbers", "latency_cycles", || {
            format!("{latency:?}")
        })?;
        let first = rows.iter().map(|row| row.sent_ps).min().unwrap_or(0);
        let last = rows.iter().map(|row| row.completed_ps).max().unwrap_or(0);
        let of_rows = (last - first) as u64 / totals.cycle_ps.max(1);
        // In an incomplete run, the first operation to leave may not be among the rows, and a job may compute after the last row.
        let is_whole = totals.completed == totals.posted && summary.status == StatusName::Complete;
        let fits = match is_whole {
            true => totals.cycles == of_rows,
            false => totals.cycles >= of_rows,
        };
        must(fits, "sums", "operations.cycles", || {
            format!("{totals:?}, {of_rows} of the rows")
        })
    }

    /// Checks that the breakdown covers all rows, each in its place.
    fn breakdown(&self, operations: &OperationSummary) -> Verdict {
        let mut of_rows: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
        for row in &self.0 {
            let part = of_rows.entry((&row.section, &row.kind)).or_default();
            part.0 += 1;
            part.1 = part.1.max(row.latency_cycles);
        }
        let parts = operations.by_section.iter().map(|part| {
            let figures = &part.figures;
            let name = (part.section.as_str(), part.kind.name());
            (name, (figures.count, figures.max))
        });
        let count = operations.by_section.len();
        let of_summary: BTreeMap<_, _> = parts.collect();
        must(
            of_rows == of_summary && of_summary.len() == count,
            "sums",
            "operations.by_section",
            || format!("{of_summary:?} in summary.json, {of_rows:?} of the rows"),
        )?;
        let wrong = operations.by_section.iter().find(|part| {
            let figures = &part.figures;
            let means = [figures.mean, figures.latency_of_gpus_mean_cycles];
            let most = figures.max as f64 * (1.0 + 1e-9);
            let is_mean = |mean: f64| mean > 0.0 && mean <= most;
            !(means.into_iter().all(is_mean) && [figures.p50, figures.p99, figures.max].is_sorted())
        });
        must(wrong.is_none(), "numbers", "by_section", || {
            format!("{wrong:?}")
        })
    }
}

/// Checks figures without rows: they are finite, and there are no flows or packets of another kind of fabric.
fn figures(summary: &Summary, operations: &OperationSummary) -> Verdict {
    let figures = &operations.figures;
    let (totals, table, fabric) = (&figures.totals, &figures.reduction_table, &figures.fabric);
    let bandwidth = totals.effective_bandwidth;
    let peak = table.peak_entries as f64;
    let others = [
        summary.flows.total,
        summary.packets.data_sent,
        summary.data_packet_hops,
    ];
    let checks = [
        ("more than posted", totals.completed <= totals.posted),
        (
            "effective_bandwidth",
            bandwidth.is_finite() && bandwidth >= 0.0,
        ),
        ("nothing received", bandwidth > 0.0 || totals.completed == 0),
        (
            "mean_entries",
            (0.0..=peak * (1.0 + 1e-9)).contains(&table.mean_entries),
        ),
        ("packet_hops", fabric.packet_hops == summary.packet_hops),
        ("flit_hops", fabric.flit_hops >= fabric.packet_hops),
        ("flows and packets", others == [0; 3]),
    ];
    for (name, holds) in checks {
        must(holds, "operations", name, || format!("{figures:?}"))?;
    }
    Ok(())
}

/// Checks that tables and queues hold no more than the scenario allows, and that requested outputs exist.
fn limits(operations: &OperationSummary, folder: &Path) -> Verdict {
    let unreadable = |error: std::io::Error| Violation::new("file", "scenario", error.to_string());
    let scenario = fs::read_to_string(folder.join("scenario.toml")).map_err(unreadable)?;
    let setting = |key: &str| {
        let mut lines = scenario.lines().filter_map(|line| line.split_once(" = "));
        lines.find_map(|(known, value)| (known == key).then_some(value))
    };
    let figures = &operations.figures;
    let (table, peak_queue) = (figures.reduction_table, figures.fabric.peak_queue_flits);
    for (key, used) in [
        ("reduction-table", table.peak_entries),
        ("output-queue", peak_queue),
    ] {
        let most = setting(key).and_then(|value| value.parse::<u64>().ok());
        must(
            most.is_none_or(|most| used <= most),
            "operations",
            key,
            || format!("{used} of {most:?}: {figures:?}"),
        )?;
    }
    let waits = table.waits == 0 || setting("reduction-table") != Some("\"auto\"");
    must(waits, "operations", "waits for nothing", || {
        format!("{table:?}")
    })?;
    let wanted = setting("trace.perfetto") == Some("true");
    let exists = folder.join(TIMELINE).exists();
    must(wanted == exists, "file", TIMELINE, || {
        format!("wanted: {wanted}, there: {exists}")
    })
}

#[cfg(test)]
mod tests;

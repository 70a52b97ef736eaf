//! Figures of a scale-up run: the object `operations` of [`summary.json`](crate::summary).
//!
//! The figures `completed` to `packet_hops` are declared in the table [`OperationFigures`], with their meanings; `latency_cycles` is
//! null if no operation completed. `by_section` is a list with an object for each section of the workload and each kind of operation that
//! completed in it:
//!
//! | field | type, unit | meaning |
//! |---|---|---|
//! | `section` | text | label of the section |
//! | `kind` | text | `multicast write`, `reduction`, `write` or `read` |
//! | others | | columns of the table [`BreakdownFigures`] |
//!
//! Latencies are in cycles, from the head flit's departure to the arrival of the response; percentiles are nearest rank.

use crate::by_section::firsts_of_names;
use crate::quantity::{count, plain, span};
use crate::record::{OperationResults, OperationRow};
use crate::statistics::Distribution;
use clearway_results::{BreakdownFigures, LatencyCycles, OperationClass, OperationFigures};
use clearway_units::Span;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The object `operations`; the [module](self) describes its fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperationSummary {
    /// Figures of the run.
    #[serde(flatten)]
    pub figures: OperationFigures,
    /// Latency by section and kind.
    pub by_section: Vec<OperationBreakdown>,
}

/// Latency of the operations of one kind in one section of the workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperationBreakdown {
    /// Label of the section.
    pub section: String,
    /// Kind of the operations.
    pub kind: OperationClass,
    /// Figures of the operations.
    #[serde(flatten)]
    pub figures: BreakdownFigures,
}

impl OperationSummary {
    pub(crate) fn from_results(results: &OperationResults) -> Self {
        let mut all: Vec<u64> = results
            .rows
            .iter()
            .map(OperationRow::latency_cycles)
            .collect();
        let latency = |all: Distribution| LatencyCycles {
            min: all.min as u64,
            mean: all.mean,
            p50: all.p50 as u64,
            p99: all.p99 as u64,
            p999: all.p999 as u64,
            max: all.max as u64,
        };
        Self {
            figures: OperationFigures {
                totals: results.totals,
                latency_cycles: Distribution::of_counts(&mut all).map(latency),
                reduction_table: results.reduction_table,
                fabric: results.fabric,
            },
            by_section: by_section(results),
        }
    }

    /// Time of a number of cycles, in microseconds.
    pub fn cycles_as_us(&self, cycles: f64) -> f64 {
        cycles * Span::from_ps(self.figures.totals.cycle_ps).as_us()
    }
}

/// Latencies of the operations of one kind in one section.
#[derive(Default)]
struct Latencies {
    cycles: Vec<u64>,
    /// Sum and number of the latencies of each GPU.
    of_gpus: BTreeMap<u32, (u64, u64)>,
}

fn by_section(results: &OperationResults) -> Vec<OperationBreakdown> {
    let firsts = firsts_of_names(&results.sections);
    let mut parts: BTreeMap<(u32, OperationClass), Latencies> = BTreeMap::new();
    for row in &results.rows {
        let section = firsts[row.section as usize];
        let part = parts.entry((section, row.kind)).or_default();
        let cycles = row.latency_cycles();
        part.cycles.push(cycles);
        let (sum, number) = part.of_gpus.entry(row.gpu).or_default();
        *sum += cycles;
        *number += 1;
    }
    let breakdown = |((section, kind), mut part): ((u32, OperationClass), Latencies)| {
        let all = Distribution::of_counts(&mut part.cycles)?;
        let means = part.of_gpus.values();
        let means: f64 = means.map(|&(sum, number)| sum as f64 / number as f64).sum();
        Some(OperationBreakdown {
            section: results.sections[section as usize].clone(),
            kind,
            figures: BreakdownFigures {
                count: part.cycles.len() as u64,
                mean: all.mean,
                p50: all.p50 as u64,
                p99: all.p99 as u64,
                max: all.max as u64,
                latency_of_gpus_mean_cycles: means / part.of_gpus.len() as f64,
            },
        })
    };
    parts.into_iter().filter_map(breakdown).collect()
}

/// Headings of the columns of [`OperationSummary::rows`] before the columns of [`BreakdownFigures`].
pub const HEADINGS: [&str; 2] = ["section", "kind"];

/// Note on the tables of latency, in sentences.
pub fn note(operations: &OperationSummary) -> String {
    format!(
        "Latency: from the departure of the head flit to the arrival of the response.\n\
         A cycle is {}; mean of GPUs: over GPUs, of the mean of each.",
        span(Span::from_ps(operations.figures.totals.cycle_ps))
    )
}

impl OperationSummary {
    /// The breakdown as rows of texts: section and kind, then the columns of [`BreakdownFigures`].
    pub fn rows(&self) -> impl Iterator<Item = Vec<String>> + '_ {
        self.by_section.iter().map(|part| {
            let columns = BreakdownFigures::COLUMNS.iter();
            let columns = columns.map(|column| (column.of)(&part.figures));
            let names = [part.section.clone(), part.kind.name().to_owned()];
            names.into_iter().chain(columns.map(number)).collect()
        })
    }
}

/// A figure for people, without its unit; a dash if the figure is missing.
pub fn number(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(value) if value.fract() == 0.0 => count(value as u64),
        Some(value) => plain(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::scale_up_run;
    use crate::summary::Summary;

    #[test]
    fn gpus_with_few_operations_count_as_much_as_those_with_many() {
        let mut record = scale_up_run();
        let results = record.operations.as_mut().unwrap();
        results.rows.retain(|row| row.section == 0 && row.gpu < 2);
        results.rows.truncate(4);
        for (row, (gpu, cycles)) in
            results
                .rows
                .iter_mut()
                .zip([(0, 100), (0, 200), (0, 300), (1, 1000)])
        {
            row.kind = OperationClass::Write;
            row.gpu = gpu;
            row.completed_cycle = row.sent_cycle + cycles;
        }
        let summary = OperationSummary::from_results(results);
        let [only] = summary.by_section.as_slice() else {
            panic!("{:?}", summary.by_section);
        };
        assert_eq!((only.figures.count, only.figures.mean), (4, 400.0));
        assert_eq!(only.figures.latency_of_gpus_mean_cycles, 600.0);
        assert_eq!(summary.figures.latency_cycles.unwrap().max, 1000);
    }

    #[test]
    fn sections_of_one_name_are_one() {
        let mut record = scale_up_run();
        let results = record.operations.as_mut().unwrap();
        results.sections = vec!["both".into(), "other".into(), "both".into()];
        results.rows.truncate(6);
        for (row, section) in results.rows.iter_mut().zip([2, 1, 0, 2, 0, 2]) {
            row.section = section;
            row.kind = OperationClass::Read;
        }
        let summary = OperationSummary::from_results(results);
        let parts = summary.by_section.iter();
        let counts: Vec<_> = parts
            .map(|part| (part.section.as_str(), part.figures.count))
            .collect();
        assert_eq!(counts, [("both", 5), ("other", 1)]);
    }

    #[test]
    fn the_object_is_read_back() {
        let mut record = scale_up_run();
        for rows in [true, false] {
            if !rows {
                record.operations.as_mut().unwrap().rows.clear();
            }
            let summary = Summary::from_record(&record);
            assert_eq!(Summary::from_json(&summary.to_json()).unwrap(), summary);
            assert!(!summary.is_of_flows());
        }
    }

    #[test]
    fn the_object_of_a_run() {
        let json = serde_json::to_string_pretty(&Summary::from_record(&scale_up_run()).operations)
            .unwrap();
        insta::assert_snapshot!(json, @r#"
        {
          "completed": 512,
          "posted": 512,
          "gpus": 16,
          "cycle_ps": 640,
          "cycles": 1720,
          "effective_bandwidth": 0.8125,
          "latency_cycles": {
            "min": 609,
            "mean": 864.095703125,
            "p50": 859,
            "p99": 1124,
            "p999": 1148,
            "max": 1148
          },
          "reduction_table": {
            "peak_entries": 96,
            "mean_entries": 40.2,
            "waits": 7
          },
          "peak_queue_flits": 288,
          "peak_responses": 12,
          "flit_hops": 40960,
          "packet_hops": 4096,
          "by_section": [
            {
              "section": "all-reduce",
              "kind": "multicast write",
              "count": 128,
              "mean": 795.0703125,
              "p50": 796,
              "p99": 995,
              "max": 996,
              "latency_of_gpus_mean_cycles": 795.0703125
            },
            {
              "section": "all-reduce",
              "kind": "reduction",
              "count": 128,
              "mean": 836.265625,
              "p50": 835,
              "p99": 1029,
              "max": 1039,
              "latency_of_gpus_mean_cycles": 836.265625
            },
            {
              "section": "point to point",
              "kind": "write",
              "count": 128,
              "mean": 890.5390625,
              "p50": 865,
              "p99": 1096,
              "max": 1099,
              "latency_of_gpus_mean_cycles": 890.5390625
            },
            {
              "section": "point to point",
              "kind": "read",
              "count": 128,
              "mean": 934.5078125,
              "p50": 922,
              "p99": 1142,
              "max": 1148,
              "latency_of_gpus_mean_cycles": 934.5078125
            }
          ]
        }
        "#);
    }

    #[test]
    fn runs_of_packets_have_no_such_object() {
        let summary = Summary::from_record(&crate::sample::run());
        assert!(!summary.to_json().contains("operations") && summary.is_of_flows());
    }
}

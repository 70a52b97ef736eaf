//! The table and the JSON of a comparison.

use crate::end::EndReport;
use crate::failure::Failure;
use serde::Serialize;
use std::fmt::Write as _;

/// The transfers that others are compared with, by name.
const REFERENCES: [&str; 2] = ["quinn, 1 stream", "iperf3, TCP"];

/// Measurements of one transfer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) sender: EndReport,
    pub(crate) receiver: EndReport,
}

impl Sample {
    fn gigabytes(&self) -> f64 {
        self.sender.bytes as f64 / 1e9
    }

    fn throughput_gbps(&self) -> f64 {
        self.gigabytes() * 8.0 / self.sender.seconds
    }
}

/// A transfer on a network, and its measurements.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) network: &'static str,
    pub(crate) transfer: &'static str,
    /// Both ends share one processor.
    pub(crate) one_core: bool,
    pub(crate) samples: Vec<Sample>,
}

impl Row {
    pub(crate) fn new(network: &'static str, transfer: &'static str, one_core: bool) -> Self {
        Self {
            network,
            transfer,
            one_core,
            samples: Vec::new(),
        }
    }

    pub(crate) fn name(&self) -> String {
        let cores = if self.one_core { ", one core" } else { "" };
        format!("{}{cores}", self.transfer)
    }

    fn median(&self, of: impl Fn(&Sample) -> f64) -> f64 {
        median(self.samples.iter().map(of).collect())
    }
}

/// The middle of some numbers; of an even number of them the mean of the two in the middle.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match numbers.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => numbers[middle],
        _ => f64::midpoint(numbers[middle - 1], numbers[middle]),
    }
}

/// Medians of a row.
#[derive(Debug, Clone, Serialize)]
struct Line {
    network: &'static str,
    transfer: &'static str,
    one_core: bool,
    throughput_gbps: f64,
    throughput_least_gbps: f64,
    throughput_most_gbps: f64,
    cpu_seconds_per_gigabyte: f64,
    sender_cpu_seconds_per_gigabyte: f64,
    receiver_cpu_seconds_per_gigabyte: f64,
    throughput_to_quinn: Option<f64>,
    throughput_to_iperf3: Option<f64>,
    retransmitted_packets_per_million: Option<f64>,
    data_packets_per_acknowledgement: Option<f64>,
}

/// All results.
#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    repetitions: usize,
    transfer_seconds: f64,
    iperf3: Option<String>,
    /// Processes that wanted to run just before, on average over a minute.
    load_average_before: Option<f64>,
    notes: Vec<String>,
    rows: Vec<Line>,
    #[serde(skip)]
    pub(crate) text: String,
}

impl Comparison {
    pub(crate) fn new(
        rows: Vec<Row>,
        notes: Vec<String>,
        iperf3: Option<String>,
        transfer_seconds: f64,
    ) -> Self {
        let lines: Vec<Line> = rows.iter().map(|row| line(row, &rows)).collect();
        let mut text = table(&lines);
        for note in &notes {
            let _ = write!(text, "\n{note}");
        }
        Self {
            repetitions: rows.first().map_or(0, |row| row.samples.len()),
            transfer_seconds,
            iperf3,
            load_average_before: None,
            notes,
            rows: lines,
            text,
        }
    }

    /// The comparison on a machine that had this load average before.
    pub(crate) fn at_load(mut self, load: Option<f64>) -> Self {
        if let Some(load) = load {
            let _ = write!(self.text, "\nload average of the machine before: {load:.2}");
        }
        self.load_average_before = load;
        self
    }

    pub(crate) fn to_json(&self) -> Result<String, Failure> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

fn line(row: &Row, rows: &[Row]) -> Line {
    let throughput = row.median(Sample::throughput_gbps);
    let [to_quinn, to_iperf3] = REFERENCES.map(|name| {
        let like = |other: &&Row| {
            (other.network, other.transfer, other.one_core) == (row.network, name, row.one_core)
        };
        let reference = rows.iter().find(like)?;
        Some(throughput / reference.median(Sample::throughput_gbps))
    });
    let all = row.samples.iter().map(Sample::throughput_gbps);
    let packets: u64 = row.samples.iter().map(|s| s.sender.data_packets).sum();
    let again: u64 = row.samples.iter().map(|s| s.sender.retransmitted).sum();
    let acknowledgements: u64 = row.samples.iter().map(|s| s.sender.acknowledgements).sum();
    let per_gigabyte = |of: fn(&Sample) -> f64| row.median(|s| of(s) / s.gigabytes());
    Line {
        network: row.network,
        transfer: row.transfer,
        one_core: row.one_core,
        throughput_gbps: throughput,
        throughput_least_gbps: all.clone().fold(f64::INFINITY, f64::min),
        throughput_most_gbps: all.fold(0.0, f64::max),
        cpu_seconds_per_gigabyte: per_gigabyte(|s| s.sender.cpu_seconds + s.receiver.cpu_seconds),
        sender_cpu_seconds_per_gigabyte: per_gigabyte(|s| s.sender.cpu_seconds),
        receiver_cpu_seconds_per_gigabyte: per_gigabyte(|s| s.receiver.cpu_seconds),
        throughput_to_quinn: to_quinn,
        throughput_to_iperf3: to_iperf3,
        retransmitted_packets_per_million: (packets > 0)
            .then(|| again as f64 * 1e6 / packets as f64),
        data_packets_per_acknowledgement: (acknowledgements > 0)
            .then(|| packets as f64 / acknowledgements as f64),
    }
}

/// The rows as a table of Markdown, which reads well as it is.
fn table(lines: &[Line]) -> String {
    let head = [
        "network",
        "transfer",
        "Gb/s",
        "least to most",
        "CPU s/GB",
        "sender",
        "receiver",
        "to quinn",
        "to iperf3",
    ]
    .map(str::to_owned);
    let ratio = |ratio: Option<f64>| ratio.map_or("-".into(), |ratio| format!("{ratio:.2}"));
    let mut rows = vec![head];
    for line in lines {
        let cores = if line.one_core { ", one core" } else { "" };
        rows.push([
            line.network.into(),
            format!("{}{cores}", line.transfer),
            format!("{:.2}", line.throughput_gbps),
            format!(
                "{:.2} to {:.2}",
                line.throughput_least_gbps, line.throughput_most_gbps
            ),
            format!("{:.2}", line.cpu_seconds_per_gigabyte),
            format!("{:.2}", line.sender_cpu_seconds_per_gigabyte),
            format!("{:.2}", line.receiver_cpu_seconds_per_gigabyte),
            ratio(line.throughput_to_quinn),
            ratio(line.throughput_to_iperf3),
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        for (column, cell) in row.iter().enumerate() {
            let width = width(column);
            let _ = match column {
                0 | 1 => write!(text, "| {cell:<width$} "),
                _ => write!(text, "| {cell:>width$} "),
            };
        }
        text.push_str("|\n");
        if number == 0 {
            for column in 0..row.len() {
                let dashes = "-".repeat(width(column) + if column < 2 { 2 } else { 1 });
                let _ = write!(text, "|{dashes}{}", if column < 2 { "" } else { ":" });
            }
            text.push_str("|\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(bytes: u64, seconds: f64, cpu_seconds: f64) -> EndReport {
        EndReport {
            bytes,
            seconds,
            cpu_seconds,
            retransmitted: 1,
            data_packets: 1000,
            acknowledgements: 100,
        }
    }

    #[test]
    fn ratios_are_of_medians_on_the_same_network() {
        let row = |network, transfer, seconds: [f64; 3]| Row {
            samples: seconds
                .map(|seconds| Sample {
                    sender: end(1_000_000_000, seconds, 0.5),
                    receiver: end(0, seconds, 0.25),
                })
                .to_vec(),
            ..Row::new(network, transfer, false)
        };
        let rows = vec![
            row("loopback", REFERENCES[0], [1.0, 2.0, 9.0]),
            row("loopback", "strack", [1.0, 1.0, 1.0]),
            row("namespaces", "strack", [1.0, 1.0, 1.0]),
        ];
        let comparison = Comparison::new(rows, vec!["a note".into()], None, 2.0);
        let [quinn, strack, other] = &comparison.rows[..] else {
            panic!("three rows")
        };
        assert_eq!((quinn.throughput_gbps, strack.throughput_gbps), (4.0, 8.0));
        assert_eq!(
            (strack.throughput_to_quinn, strack.throughput_to_iperf3),
            (Some(2.0), None)
        );
        assert_eq!(other.throughput_to_quinn, None);
        assert_eq!(strack.cpu_seconds_per_gigabyte, 0.75);
        assert_eq!(strack.retransmitted_packets_per_million, Some(1000.0));
        assert!(
            comparison
                .text
                .contains("| loopback   | strack          | 8.00 |")
        );
        assert!(comparison.text.ends_with("a note"));
    }
}

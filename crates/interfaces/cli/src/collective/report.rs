//! Results of `clearway collective` as a table like the tables of nccl-tests, and as JSON.

use super::CollectiveArguments;
use clearway_collective::Algorithm;
use clearway_collective::measure::CollectiveMeasurement;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::net::SocketAddr;

/// Conditions of the results.
pub(super) struct Report<'a> {
    pub(super) arguments: &'a CollectiveArguments,
    pub(super) algorithm: Algorithm,
    pub(super) addresses: Vec<SocketAddr>,
}

impl Report<'_> {
    fn reduction(&self) -> &'static str {
        match self.algorithm.operation().adds() {
            true => "sum",
            false => "none",
        }
    }

    /// Lines above the results. Result lines are printed as they arrive, so columns have fixed widths.
    pub(super) fn head(&self) -> String {
        let arguments = self.arguments;
        let encrypted = match arguments.connection.insecure {
            false => "AES-256-GCM",
            true => "not encrypted",
        };
        let place = match arguments.loopback {
            Some(_) => ", all on this host",
            None => "",
        };
        let ranks = self.addresses.len();
        let mut text = format!(
            "# {}, {ranks} ranks{place}, {encrypted}, {} warm-ups, {} iterations\n",
            self.algorithm, arguments.warmups, arguments.iterations
        );
        if arguments.loopback.is_none() {
            for (rank, address) in self.addresses.iter().enumerate() {
                let _ = writeln!(text, "#   rank {rank:>3} at {address}");
            }
        }
        text += "#\n";
        for cells in [
            [
                "size", "count", "type", "redop", "time", "algbw", "busbw", "#wrong",
            ],
            ["(B)", "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)", ""],
        ] {
            let line = columns(cells.map(str::to_owned));
            let _ = writeln!(text, "#{}", line.trim_end().split_at(1).1);
        }
        text
    }

    pub(super) fn row(&self, measured: &CollectiveMeasurement) -> String {
        let wrong = measured
            .wrong
            .map_or("N/A".to_owned(), |wrong| wrong.to_string());
        let cells = [
            measured.size.to_string(),
            measured.count.to_string(),
            "float".to_owned(),
            self.reduction().to_owned(),
            format!("{:.1}", measured.time.as_us()),
            format!("{:.3}", measured.algorithm_bandwidth),
            format!("{:.3}", measured.bus_bandwidth),
            wrong,
        ];
        columns(cells) + "\n"
    }

    pub(super) fn foot(&self, measured: &[CollectiveMeasurement]) -> String {
        let wrong = match self.arguments.no_check {
            true => "not checked".to_owned(),
            false => match wrong(measured) {
                0 => "0 OK".to_owned(),
                wrong => format!("{wrong} FAILED"),
            },
        };
        format!(
            "# wrong elements: {wrong}\n# mean bus bandwidth: {:.3} GB/s\n",
            mean_bus_bandwidth(measured)
        )
    }

    pub(super) fn to_json(&self, measured: &[CollectiveMeasurement]) -> Value {
        let rows = measured.iter().map(|row| {
            json!({
                "size_bytes": row.size,
                "count_elements": row.count,
                "time_us": row.time.as_us(),
                "algbw_gbytes_per_s": row.algorithm_bandwidth,
                "busbw_gbytes_per_s": row.bus_bandwidth,
                "wrong_elements": row.wrong,
            })
        });
        let arguments = self.arguments;
        let addresses = self.addresses.iter().map(SocketAddr::to_string);
        json!({
            "operation": self.algorithm.operation().name(),
            "algorithm": self.algorithm.name(),
            "type": "float",
            "redop": self.reduction(),
            "ranks": addresses.collect::<Vec<_>>(),
            "loopback": arguments.loopback.is_some(),
            "encrypted": !arguments.connection.insecure,
            "warmups": arguments.warmups,
            "iterations": arguments.iterations,
            "results": rows.collect::<Vec<_>>(),
            "wrong_elements": (!arguments.no_check).then(|| wrong(measured)),
            "mean_busbw_gbytes_per_s": mean_bus_bandwidth(measured),
        })
    }
}

fn wrong(measured: &[CollectiveMeasurement]) -> u64 {
    measured.iter().filter_map(|row| row.wrong).sum()
}

fn mean_bus_bandwidth(measured: &[CollectiveMeasurement]) -> f64 {
    let sum: f64 = measured.iter().map(|row| row.bus_bandwidth).sum();
    sum / measured.len().max(1) as f64
}

fn columns(cells: [String; 8]) -> String {
    let widths = [12, 12, 7, 7, 11, 9, 9, 8];
    let cells = cells.iter().zip(widths);
    cells
        .map(|(cell, width)| format!("{cell:>width$}"))
        .collect()
}

//! Results of transfers as tables and as JSON.

use crate::hosts::{paths_json, paths_text};
use clearway_report::quantity;
use clearway_report_text::{Align, Table};
use clearway_transfer::{Reason, TransferProgress, Unfinished};
use clearway_udp::net::ConnectionSnapshot;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// Result of a transfer at one end.
pub(super) struct Report<'a> {
    /// True at the sender.
    pub(super) sends: bool,
    pub(super) peer: SocketAddr,
    pub(super) encrypted: bool,
    pub(super) progress: TransferProgress,
    pub(super) seconds: f64,
    pub(super) snapshot: ConnectionSnapshot,
    pub(super) failures: &'a [(String, Reason)],
    /// Files that the receiver has in part.
    pub(super) unfinished: &'a [Unfinished],
    /// Reason for an early end.
    pub(super) error: Option<String>,
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64 * 100.0
}

impl Report<'_> {
    fn gbps(&self) -> f64 {
        match self.seconds > 0.0 {
            true => self.progress.moved as f64 * 8e-9 / self.seconds,
            false => 0.0,
        }
    }

    pub(super) fn to_text(&self) -> String {
        let encrypted = match self.encrypted {
            true => "AES-256-GCM",
            false => "not encrypted",
        };
        let place = if self.sends { "to" } else { "from" };
        let facts = self.facts().render(usize::MAX);
        let mut text = format!("files {place} {}, {encrypted}\n\n{facts}", self.peer);
        // The receiver's paths carry only answers.
        if self.sends {
            text += &format!("\n{}", paths_text(&self.snapshot));
        }
        text
    }

    fn facts(&self) -> Table {
        let progress = &self.progress;
        let counters = &self.snapshot.counters;
        let mut facts = Table::new().column("", Align::Left).column("", Align::Left);
        facts.row([
            "files in place".to_owned(),
            format!(
                "{} of {}",
                quantity::count(progress.done),
                quantity::count(progress.files)
            ),
        ]);
        facts.row([
            if self.sends { "sent" } else { "received" }.to_owned(),
            format!(
                "{} in {}, {:.2} Gb/s",
                quantity::bytes(progress.moved),
                quantity::seconds(self.seconds),
                self.gbps()
            ),
        ]);
        if progress.written < progress.moved {
            facts.row([
                "written there".to_owned(),
                format!(
                    "{}, as far as it is known",
                    quantity::bytes(progress.written)
                ),
            ]);
        }
        facts.row(["there before".to_owned(), quantity::bytes(progress.kept)]);
        if self.sends {
            facts.row([
                "packets sent again".to_owned(),
                format!(
                    "{} of {}, {:.3} %",
                    counters.retransmitted,
                    counters.data_sent,
                    share(counters.retransmitted, counters.data_sent)
                ),
            ]);
        }
        if progress.repaired > 0 {
            facts.row(["blocks repaired".to_owned(), progress.repaired.to_string()]);
        }
        facts
    }

    pub(super) fn to_json(&self) -> Value {
        let progress = &self.progress;
        let counters = &self.snapshot.counters;
        let failures = self.failures.iter();
        let failures = failures.map(|(name, reason)| json!({"file": name, "reason": reason.to_string(), "fix": reason.fix()}));
        let unfinished = self.unfinished.iter().map(|file| {
            json!({
                "file": file.name,
                "kept_bytes": file.bytes,
                "file_bytes": file.size,
            })
        });
        json!({
            "role": if self.sends { "sender" } else { "receiver" },
            "peer": self.peer.to_string(),
            "encrypted": self.encrypted,
            "complete": self.error.is_none() && progress.is_complete() && progress.failed == 0,
            "error": self.error,
            "files": progress.files,
            "files_in_place": progress.done,
            "files_failed": progress.failed,
            "file_bytes_total": progress.bytes,
            "moved_bytes": progress.moved,
            "written_bytes": progress.written,
            "kept_bytes": progress.kept,
            "repaired_blocks": progress.repaired,
            "time_s": self.seconds,
            "throughput_gbps": self.gbps(),
            "sent_packets": counters.data_sent,
            "retransmitted_packets": counters.retransmitted,
            "timeouts": counters.timeouts,
            "paths": paths_json(&self.snapshot),
            "failures": failures.collect::<Vec<_>>(),
            "unfinished": unfinished.collect::<Vec<_>>(),
        })
    }
}

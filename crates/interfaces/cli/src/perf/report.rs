//! Results of `clearway perf` as tables and as JSON.

use crate::hosts::{LineRate, paths_json, paths_text, paths_up};
use clearway_report_text::{Align, Table};
use clearway_udp::net::ConnectionSnapshot;
use clearway_udp::net::perf::{PerfInterval, PerfMeasurement};
use clearway_udp::{Security, Settings, Transport};
use clearway_units::{Span, statistics::nearest_rank};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// Results of a measurement, and its conditions.
pub(super) struct Report {
    pub(super) both_ends: bool,
    pub(super) peer: SocketAddr,
    pub(super) settings: Settings,
    pub(super) line_rate: LineRate,
    pub(super) measured: PerfMeasurement,
    /// Processor time of this process while messages were sent as fast as possible.
    pub(super) cpu_seconds: f64,
}

/// Gigabits per second.
fn gbps(bytes: u64, time: Span) -> f64 {
    let seconds = time.as_secs();
    match seconds > 0.0 {
        true => bytes as f64 * 8e-9 / seconds,
        false => 0.0,
    }
}

/// Line of progress.
pub(super) fn line(interval: &PerfInterval, snapshot: &ConnectionSnapshot) -> String {
    let time = Span::from_ps(interval.to.as_ps() - interval.from.as_ps());
    format!(
        "{:5.1} to {:5.1} s  {:7.1} MB  {:6.2} Gb/s  {:6} packets again  {}",
        interval.from.as_secs(),
        interval.to.as_secs(),
        interval.bytes as f64 / 1e6,
        gbps(interval.bytes, time),
        interval.retransmitted,
        paths_up(snapshot),
    )
}

impl Report {
    fn throughput(&self) -> f64 {
        gbps(self.measured.bytes, self.measured.time)
    }

    fn small_rate(&self) -> f64 {
        let seconds = self.measured.small_time.as_secs();
        match seconds > 0.0 {
            true => self.measured.small as f64 / seconds,
            false => 0.0,
        }
    }

    fn cpu_per_gb(&self) -> f64 {
        self.cpu_seconds / (self.measured.bytes.max(1) as f64 / 1e9)
    }

    /// Round trips by name: least, median and so on, in microseconds.
    fn round_trips(&self) -> [(&'static str, f64); 5] {
        let sorted: Vec<Span> = self.measured.round_trips.clone();
        let at = |per_mille| nearest_rank(&sorted, per_mille).map_or(0.0, Span::as_us);
        let ends = [sorted.first(), sorted.last()].map(|span| span.map_or(0.0, |s| s.as_us()));
        [
            ("min", ends[0]),
            ("p50", at(500)),
            ("p99", at(990)),
            ("p99.9", at(999)),
            ("max", ends[1]),
        ]
    }

    fn transport(&self) -> &'static str {
        match self.settings.transport {
            Transport::Strack => "strack",
            Transport::GoBackN => "rocev2",
        }
    }

    fn is_encrypted(&self) -> bool {
        self.settings.security != Security::Insecure
    }

    pub(super) fn to_text(&self) -> String {
        let encrypted = match self.is_encrypted() {
            true => "AES-256-GCM",
            false => "not encrypted",
        };
        let place = match self.both_ends {
            true => "both ends on this host".to_owned(),
            false => format!("to {}", self.peer),
        };
        format!(
            "{} over UDP, {place}, {encrypted}, datagrams of {} bytes\n\n{}\n{}",
            self.transport(),
            self.measured.snapshot.datagram,
            self.facts().render(usize::MAX),
            paths_text(&self.measured.snapshot),
        )
    }

    fn facts(&self) -> Table {
        let counters = &self.measured.snapshot.counters;
        let ends = if self.both_ends {
            "both ends"
        } else {
            "this end"
        };
        let mut facts = Table::new().column("", Align::Left).column("", Align::Left);
        let again = counters.retransmitted as f64 / counters.data_sent.max(1) as f64 * 100.0;
        let trips = self
            .round_trips()
            .map(|(name, us)| format!("{name} {us:.0}"));
        facts.row([
            "throughput".to_owned(),
            format!(
                "{:.2} Gb/s, {:.1} MB in {:.2} s",
                self.throughput(),
                self.measured.bytes as f64 / 1e6,
                self.measured.time.as_secs()
            ),
        ]);
        facts.row(["line rate".to_owned(), self.line_rate.to_string()]);
        facts.row([
            "sent again".to_owned(),
            format!(
                "{} of {} packets, {again:.3} %",
                counters.retransmitted, counters.data_sent
            ),
        ]);
        facts.row([
            "round trip of 64 B".to_owned(),
            format!("{} us", trips.join(", ")),
        ]);
        facts.row([
            "messages of 64 B".to_owned(),
            format!("{:.0} per second", self.small_rate()),
        ]);
        facts.row([
            "processor time".to_owned(),
            format!("{:.2} s per GB, {ends}", self.cpu_per_gb()),
        ]);
        facts
    }

    pub(super) fn to_json(&self) -> Value {
        let counters = &self.measured.snapshot.counters;
        let trips = self
            .round_trips()
            .map(|(name, us)| (name.replace('.', "_") + "_us", json!(us)));
        json!({
            "transport": self.transport(),
            "both_ends": self.both_ends,
            "peer": self.peer.to_string(),
            "encrypted": self.is_encrypted(),
            "datagram_bytes": self.measured.snapshot.datagram,
            "line_rate_gbps": self.settings.line_rate.as_gbps(),
            "throughput_gbps": self.throughput(),
            "message_bytes_total": self.measured.bytes,
            "time_s": self.measured.time.as_secs(),
            "sent_packets": counters.data_sent,
            "retransmitted_packets": counters.retransmitted,
            "timeouts": counters.timeouts,
            "small_messages_per_s": self.small_rate(),
            "round_trip": trips.into_iter().collect::<serde_json::Map<_, _>>(),
            "cpu_s_per_gb": self.cpu_per_gb(),
            "paths": paths_json(&self.measured.snapshot),
        })
    }
}

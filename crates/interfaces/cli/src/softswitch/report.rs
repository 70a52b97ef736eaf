//! Counters as tables and as JSON.

use clearway_lab::LinkId;
use clearway_report_text::{Align, Table};
use clearway_softswitch::{ForwardedLinkCounters, Totals};
use clearway_units::Span;
use serde_json::{Value, json};

/// Facts about a fabric that has forwarded packets.
pub(super) struct Report {
    pub(super) time: Span,
    pub(super) totals: Totals,
    pub(super) in_flight: u64,
    /// Packets that a device refused.
    pub(super) refused: u64,
    /// Lateness of the last hop: median, 99th percentile, longest.
    pub(super) late: [Span; 3],
    /// Processor time of this process.
    pub(super) cpu_seconds: f64,
    pub(super) links: Vec<(LinkId, String, ForwardedLinkCounters)>,
}

impl Report {
    pub(super) fn to_text(&self) -> String {
        let mut facts = Table::new().column("", Align::Left).column("", Align::Left);
        let totals = &self.totals;
        let seconds = self.time.as_secs();
        let [median, p99, longest] = self.late.map(Span::as_us);
        facts.row([
            "packets of hosts".to_owned(),
            format!("{} in {seconds:.1} s", totals.received),
        ]);
        facts.row(["delivered".to_owned(), totals.delivered.to_string()]);
        facts.row([
            "not forwarded".to_owned(),
            format!(
                "{} to no host, {} malformed, {} for want of memory; {} refused by devices",
                totals.no_route, totals.malformed, totals.no_memory, self.refused
            ),
        ]);
        facts.row([
            "late".to_owned(),
            format!("p50 {median:.0}, p99 {p99:.0}, max {longest:.0} us behind the emulated links"),
        ]);
        facts.row([
            "processor time".to_owned(),
            format!("{:.1} s", self.cpu_seconds),
        ]);
        format!(
            "{}\n{}",
            facts.render(usize::MAX),
            self.table().render(usize::MAX)
        )
    }

    /// Links that carried packets.
    fn table(&self) -> Table {
        let mut table = Table::new().column("link", Align::Left);
        for name in [
            "packets",
            "MB",
            "marked",
            "queue full",
            "down",
            "lost",
            "twice",
            "held back",
            "corrupted",
            "largest queue B",
        ] {
            table = table.column(name, Align::Right);
        }
        for (_, name, link) in &self.links {
            if link.packets + link.queue_full == 0 {
                continue;
            }
            let mut row = vec![
                name.clone(),
                link.packets.to_string(),
                format!("{:.2}", link.bytes as f64 / 1e6),
            ];
            let counts = [
                link.marked,
                link.queue_full,
                link.down,
                link.lost,
                link.duplicated,
                link.reordered,
                link.corrupted,
                link.largest_queue,
            ];
            row.extend(counts.map(|count| count.to_string()));
            table.row(row);
        }
        table
    }

    pub(super) fn to_json(&self) -> Value {
        let totals = &self.totals;
        let links = self.links.iter().map(|(id, name, link)| {
            json!({
                "link": name,
                "cable": id.cable(),
                "packets": link.packets,
                "bytes": link.bytes,
                "marked_packets": link.marked,
                "queue_full_packets": link.queue_full,
                "down_packets": link.down,
                "lost_packets": link.lost,
                "duplicated_packets": link.duplicated,
                "reordered_packets": link.reordered,
                "corrupted_packets": link.corrupted,
                "largest_queue_bytes": link.largest_queue,
            })
        });
        json!({
            "time_s": self.time.as_secs(),
            "received_packets": totals.received,
            "delivered_packets": totals.delivered,
            "in_flight_packets": self.in_flight,
            "no_route_packets": totals.no_route,
            "malformed_packets": totals.malformed,
            "no_memory_packets": totals.no_memory,
            "refused_packets": self.refused,
            "late_p50_us": self.late[0].as_us(),
            "late_p99_us": self.late[1].as_us(),
            "late_max_us": self.late[2].as_us(),
            "cpu_s": self.cpu_seconds,
            "links": links.collect::<Vec<_>>(),
        })
    }
}

//! `report.html`, and `compare.html` in the same style: a run in one self-contained file, for screens of every width and for paper.
//!
//! This crate selects, counts and shortens all data, so that a run of thousands of flows opens quickly. A distribution becomes at most
//! 1000 of its exact points, and a curve over time at most 1000 intervals. A plot has at most 16 curves, or 3000 dots. Tables, captions
//! and text alternatives are in the HTML; the script in `assets/` only draws. Names come from users' files and are escaped everywhere. A
//! security policy forbids the network and all scripts and styles except the page's.
//!
//! * [`render`] gives the report of a run. [`render_comparison`], [`render_sweep`], [`render_isolation`], [`render_plan`] and
//!   [`render_testbed`] give pages of the documents of [`clearway_report`].
//! * [`render_topology`] gives the page of a fabric, and [`render_map`] the map of a run without the rest of its report.
//! * [`live`] gives the page of a run in progress.
//!
//! **Architecture Invariant:** this crate depends on records and documents, not on the simulator or a terminal. It reads no clock and
//! no file; the same record gives the same page.

mod attack_sides;
mod comparison;
pub(crate) mod completion;
mod content;
mod curves;
mod document;
pub(crate) mod fast_forward;
mod format;
mod heat;
pub(crate) mod html;
mod isolation;
mod iteration;
mod jobs;
mod json;
mod live;
mod map;
mod operations;
mod plan;
mod plan_trials;
pub(crate) mod plot;
#[cfg(test)]
#[path = "../../report/src/sample/mod.rs"]
mod sample;
mod scatter;
mod sections;
mod sequence;
mod settings;
mod sha256;
mod sweep;
mod testbed;
#[cfg(test)]
mod tests;
mod topology;
mod transports;
mod views;
mod why;

use clearway_report::fast_forward::FastForwardSummary;
use clearway_report::quantity::{percent, prefixed};
use clearway_report::summary::Summary;
use clearway_report::{RunRecord, Status};
pub use comparison::{COMPARISON_FILE_NAME, ComparisonPage, render_comparison};
pub use content::{Page, ResolvedSetting};
use document::Document;
pub use document::{HtmlFile, PAGE_SCRIPTS, PAGE_STYLE, report_sources};
use html::{Column, Escaped, paragraph, prose, table};
pub use isolation::{ISOLATION_FILE_NAME, render_isolation};
pub use live::{LivePage, Tile, is_drawn_live, live, tiles};
pub use map::{LiveMap, render_map};
pub use plan::{PLAN_FILE_NAME, render_plan};
use std::fmt::Write as _;
pub use sweep::{SWEEP_FILE_NAME, render_sweep};
pub use testbed::render_testbed;
pub use topology::{TopologyPage, render_topology};

/// The name of the file in a result folder.
pub const FILE_NAME: &str = "report.html";

/// Maximum number of paused links that are listed if the run was not sampled.
const LISTED: usize = 16;

/// The report as HTML. The same page gives the same bytes.
pub fn render(page: &Page<'_>) -> String {
    let record = page.record;
    let summary = Summary::from_record(record);
    let mut document = Document::new(&format!("{} · Clearway", record.scenario.name));
    header(&mut document, record);
    document.push("<main>");
    headline(&mut document, record, &summary);
    operations::section(&mut document, record, &summary);
    jobs::section(&mut document, &summary);
    fast_forward::section(&mut document, &summary);
    sections::section(&mut document, record, &summary);
    transports::section(&mut document, &summary);
    attack_sides::section(&mut document, &summary);
    if summary.is_of_flows() {
        completion::section(&mut document, record, &summary);
        // `clearway why` refuses runs without all packets.
        let forward = summary.fast_forward.as_ref();
        if !forward.is_some_and(FastForwardSummary::is_inexact) {
            why::section(&mut document, page.why, map::is_drawn(record));
        }
    }
    match &record.observed {
        Some(observed) => {
            map::section(&mut document, record, page.why);
            curves::sections(&mut document, record, observed);
            sequence::section(&mut document, observed);
            heat::section(&mut document, observed, record.simulated, page.why);
        }
        None => unwatched(&mut document, record),
    }
    settings::section(&mut document, page);
    provenance(&mut document, record, &summary);
    document.push("</main>");
    document.finish()
}

fn header(document: &mut Document, record: &RunRecord) {
    let scenario = &record.scenario;
    document.push(&format!(
        "<header>\n<div>\n<p class=\"kicker\">Clearway report</p>\n<h1>{}</h1>\n\
         <p class=\"note\">seed {} · scenario hash <code>{}</code></p>\n</div>\n\
         <button type=\"button\" id=\"theme\" hidden>Theme: system</button>\n</header>\n\
         <noscript><p class=\"warning\">Plots need JavaScript; the tables do not.</p></noscript>",
        Escaped(&scenario.name),
        scenario.seed,
        Escaped(&scenario.hash),
    ));
    let status = match &record.status {
        Status::Complete => None,
        Status::Incomplete { reason } => Some(format!("Incomplete: {reason}.")),
        Status::Interrupted => {
            Some("Interrupted: the figures cover what was simulated until then.".into())
        }
    };
    let warnings = record.warnings().into_iter().map(|text| text + ".");
    for warning in status.into_iter().chain(warnings) {
        document.push(&format!(
            "<p class=\"warning\" role=\"status\">{}</p>",
            prose(&warning)
        ));
    }
}

/// An important figure: its name, its value, and a value to compare with.
type Figure = (&'static str, String, String);

/// The most important figures.
fn headline(document: &mut Document, record: &RunRecord, summary: &Summary) {
    let tiles = jobs::tile(summary)
        .into_iter()
        .chain(outcome_tiles(record, summary));
    let mut html = String::from("<dl class=\"tiles\">\n");
    for (name, value, under) in tiles {
        let _ = writeln!(
            html,
            "<div><dt>{}</dt><dd><b>{}</b> <span>{}</span></dd></div>",
            Escaped(name),
            Escaped(&value),
            Escaped(&under)
        );
    }
    document.push(&(html + "</dl>"));
}

/// The figures of operations, or of flows and packets.
fn outcome_tiles(record: &RunRecord, summary: &Summary) -> Vec<Figure> {
    let mut tiles = Vec::new();
    if let Some(operations) = &summary.operations {
        tiles.extend(operations::tiles(operations, summary.simulated_us));
    }
    if summary.is_of_flows() {
        tiles.extend(completion_tiles(record, summary));
        tiles.extend(packet_tiles(summary));
    }
    tiles
}

fn completion_tiles(record: &RunRecord, summary: &Summary) -> Vec<Figure> {
    let mut tiles = Vec::new();
    if let Some((fct, ideal)) = completion::slowest(&record.flow_times()) {
        let ratio = fct.as_ps() as f64 / ideal.as_ps() as f64;
        let ideal = format::time(ideal.as_us());
        let under = format!("{} its ideal of {ideal}", format::factor(ratio));
        tiles.push(("Max FCT", format::time(fct.as_us()), under));
    }
    if let Some(slowdown) = summary.slowdown {
        let [p99, max] = [slowdown.p99, slowdown.max].map(format::factor);
        tiles.push((
            "Mean slowdown",
            format::factor(slowdown.mean),
            format!("p99 {p99}, max {max}"),
        ));
    }
    let flows = summary.flows;
    let mut under = format!("of {}", format::count(flows.total));
    if flows.started < flows.total {
        let waiting = format::count(flows.total - flows.started);
        let _ = write!(under, "; {waiting} never started");
    }
    tiles.push(("Flows completed", format::count(flows.completed), under));
    tiles.push((
        "Simulated time",
        format::time(summary.simulated_us),
        format!("{} packet-hops", prefixed(summary.packet_hops as f64)),
    ));
    tiles
}

fn packet_tiles(summary: &Summary) -> Vec<Figure> {
    let packets = &summary.packets;
    let tile = |name, number| {
        let under = format!("{} of data packets", percent(number, packets.data_sent));
        (name, format::count(number), under)
    };
    let last = if packets.pfc_pauses > 0 {
        let links = format::counted(summary.paused_links as usize, "link", "links");
        let pauses = format::count(packets.pfc_pauses);
        ("Pauses", pauses, format!("on {links}"))
    } else {
        let acks = format::count(packets.acks);
        let sent = format::count(packets.data_sent);
        ("Data packets", sent, format!("{acks} acknowledgements"))
    };
    let lost = match packets.trimmed {
        0 => tile("Drops", packets.dropped),
        trimmed => {
            let (name, count, under) = tile("Trimmed", trimmed);
            let drops = format::counted(packets.dropped as usize, "drop", "drops");
            (name, count, format!("{under}; {drops}"))
        }
    };
    vec![
        lost,
        tile("Marks", packets.marked),
        tile("Retransmissions", packets.retransmitted),
        last,
    ]
}

/// Section over time for a run that was not sampled.
fn unwatched(document: &mut Document, record: &RunRecord) {
    document.open_section("time", "Over time");
    document.push(&paragraph(
        "Nothing was watched while this run went on, so there are no curves over time and no figures of single links.",
    ));
    if !record.paused_links.is_empty() {
        let mut longest: Vec<_> = record.paused_links.iter().collect();
        longest.sort_by(|a, b| {
            b.paused_us
                .total_cmp(&a.paused_us)
                .then(a.link.cmp(&b.link))
        });
        let rows: Vec<Vec<String>> = longest
            .iter()
            .take(LISTED)
            .map(|paused| {
                vec![
                    paused.link.clone(),
                    format::count(paused.pauses),
                    format::time(paused.paused_us),
                ]
            })
            .collect();
        document.push("<h3>Links that flow control paused longest</h3>");
        document.push(&table(
            &[
                ("Link", Column::Text),
                ("Pauses", Column::Number),
                ("Paused for", Column::Number),
            ],
            &rows,
        ));
    }
    document.close_section();
}

/// Section on the origin of the figures, and the command that reproduces them.
fn provenance(document: &mut Document, record: &RunRecord, summary: &Summary) {
    document.open_section("reproduce", "Reproduce this run");
    let command = Escaped(&record.command);
    document.push(&format!(
        "<pre class=\"command\"><code>{command}</code></pre>"
    ));
    let unknown = || "unknown".to_owned();
    let cpu = match summary.is_cpu_unknown() {
        true => unknown(),
        false => format::time(record.cpu_seconds * 1e6),
    };
    let memory = match record.peak_rss_bytes {
        0 => unknown(),
        peak => format!("{} at the peak", format::bytes(peak as f64)),
    };
    let rows = [
        ("Digest", record.digest.clone()),
        ("Scenario hash", record.scenario.hash.clone()),
        ("Seed", record.scenario.seed.to_string()),
        ("Version", record.version.clone()),
        ("Revision", record.revision.clone()),
        (
            "Time",
            format!(
                "{} wall, {cpu} CPU on {}",
                format::time(record.wall_seconds * 1e6),
                format::counted(record.threads as usize, "thread", "threads")
            ),
        ),
        ("Memory", memory),
    ];
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(name, value)| vec![name.to_string(), value])
        .collect();
    document.push(&table(&[("", Column::Text), ("", Column::Code)], &rows));
    let covered = match summary.is_of_flows() {
        true => "every flow's finish time, bytes and retransmissions, and every lost packet",
        false => "every operation's times",
    };
    document.push(&format!(
        "<p class=\"note\">Equal digests, equal runs: it covers {covered}, whatever the number of threads.</p>"
    ));
    document.close_section();
}

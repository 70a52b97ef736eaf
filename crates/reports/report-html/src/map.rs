//! The map of the fabric: nodes as boxes in rows, links as lines between them, coloured by what the links did.
//!
//! [`clearway_report::fabric_map`] says which nodes share a box, and which links a bundle. The script draws bundles between two rows as
//! lines, or as a matrix if there are more than some hundred.

use super::document::Document;
use super::format;
use super::heat::{Cell, METRICS, push_column};
use super::html::paragraph;
use super::json::{push_list, push_number, push_text};
use clearway_report::fabric_map::{FabricMap, MapRow};
use clearway_report::observed::{FrameCounts, RunObservations};
use clearway_report::why::{SlowFlow, WhyRecord};
use clearway_report::{LinkEventRow, LinkRow, RunRecord};
use clearway_units::{Span, Time};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// True if the page of a run has a map.
pub(super) fn is_drawn(record: &RunRecord) -> bool {
    let observed = record.observed.as_ref();
    observed.is_some_and(|observed| !observed.map.bundles.is_empty())
}

/// A page with the map of a run alone, for a frame in a notebook; `None` if the run was not sampled.
pub fn render_map(record: &RunRecord) -> Option<String> {
    if !is_drawn(record) {
        return None;
    }
    let mut document = Document::new(&format!("{} · map · Clearway", record.scenario.name));
    section(&mut document, record, None);
    Some(document.finish())
}

/// The section with the map of a run.
pub(super) fn section(document: &mut Document, record: &RunRecord, why: Option<&WhyRecord>) {
    let Some(observed) = record.observed.as_ref().filter(|_| is_drawn(record)) else {
        return;
    };
    let bundles = Bundles::new(&observed.map, &observed.links);
    let totals = bundles.totals(record.simulated);
    document.open_section("map", "The network");
    document.set_map(json(record, observed, &bundles, &totals, why));
    let text = alternative(observed, &totals);
    let keys = "Enter shows the curves of a link.";
    document.push(&drawing(&format!("{text} {keys}")));
    let click = "Click a link or a box for its course over time.";
    document.push(&paragraph(&format!("{} {click}", caption(&observed.map))));
    document.close_section();
}

/// The section with the map of a fabric before any run.
pub(super) fn section_of_fabric(document: &mut Document, fabric: &RunObservations) {
    document.open_section("map", "The network");
    let mut text = String::from("{");
    push_shape(&mut text, &Bundles::new(&fabric.map, &fabric.links));
    text.push('}');
    document.set_map(text);
    document.push(&drawing(&alternative(fabric, &[])));
    document.push(&paragraph(&caption(&fabric.map)));
    document.close_section();
}

/// The map of a run in progress.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveMap {
    /// JSON for the script: rows, boxes, bundles, and zeros for what the colours show.
    pub(super) shape: String,
    /// Text alternative of the drawing.
    pub(super) alternative: String,
    /// Total rate of the links of each bundle that are up, in bits per second.
    rates: Vec<f64>,
}

impl LiveMap {
    /// The map of a fabric, before any interval.
    pub fn new(fabric: &RunObservations) -> Self {
        let bundles = Bundles::new(&fabric.map, &fabric.links);
        let mut shape = String::from("{");
        push_shape(&mut shape, &bundles);
        let zeros = FRAME_METRICS.map(|(name, _)| format!("\"{name}\":0"));
        let _ = write!(shape, ",\"totals\":{{{}}}}}", zeros.join(","));
        Self {
            shape,
            alternative: alternative(fabric, &[]),
            rates: bundles.rates,
        }
    }

    /// JSON of an interval: its beginning and end in microseconds, and the values of each metric by bundle.
    pub fn frame(&self, (from, end): (Time, Time), counts: &[FrameCounts]) -> String {
        let mut values = String::new();
        for (name, pick) in FRAME_METRICS {
            let rated = counts.iter().zip(&self.rates);
            let own = rated.map(|(counts, rate)| pick(counts, *rate, end.since(from)));
            push_column(&mut values, name, &own.collect::<Vec<f64>>());
        }
        let values = values.trim_start_matches(',');
        let mut text = String::from("{\"from\":");
        push_number(&mut text, from.as_us(), 12);
        text.push_str(",\"to\":");
        push_number(&mut text, end.as_us(), 12);
        let _ = write!(text, ",\"values\":{{{values}}}}}");
        text
    }
}

/// A metric of an interval: its name in the script, and its value by counts, rate and length of the interval.
type FrameMetric = (&'static str, fn(&FrameCounts, f64, Span) -> f64);

const FRAME_METRICS: [FrameMetric; 5] = [
    ("utilisation", |counts, rate, span| {
        utilisation(counts.bytes, rate, span)
    }),
    ("queue", |counts, _, _| counts.peak_queue as f64),
    ("marks", |counts, _, _| counts.marks as f64),
    ("drops", |counts, _, _| counts.drops as f64),
    ("paused", |counts, _, _| counts.paused.as_us()),
];

/// The element that the script fills. The table of links says the same in words.
pub(super) fn drawing(alternative: &str) -> String {
    format!(
        "<div id=\"fabric-map\" data-alternative=\"{}\"></div>",
        super::html::Escaped(alternative)
    )
}

/// Rows in words: `16 × spine, 8 × leaf`.
fn rows(rows: &[MapRow]) -> String {
    let rows = rows.iter().map(|row| {
        let count = format::count(row.nodes as u64);
        format!("{count} × {}", row.kind)
    });
    rows.collect::<Vec<_>>().join(", ")
}

fn alternative(observed: &RunObservations, totals: &[Cell]) -> String {
    let mut text = format!("Map of the network: {}.", rows(&observed.map.rows));
    let busiest = totals
        .iter()
        .max_by(|a, b| a.busiest.0.total_cmp(&b.busiest.0));
    if let Some(Cell {
        busiest: (utilisation, link),
        ..
    }) = busiest
        && *utilisation > 0.0
    {
        let share = format::share(*utilisation);
        let _ = write!(text, " The busiest link is {link}, {share} utilised.");
    }
    text + " Arrow keys move from link to link."
}

fn caption(map: &FabricMap) -> String {
    let shared = map.boxes.iter().any(|one| one.nodes > 1);
    let shared = match shared {
        true => {
            " Neighbours share a box, and the links between two boxes a line: utilisation is then their mean, the queue their longest, \
             everything else their sum."
        }
        false => "",
    };
    format!(
        "Each direction of a cable has a line; hundreds of them form a matrix with a column for each box below it, where the left half of a \
         cell is the way up and the right half the way down.{shared}"
    )
}

/// Bundles and their links.
struct Bundles<'a> {
    map: &'a FabricMap,
    links: &'a [LinkRow],
    /// Links of each bundle.
    of_bundle: Vec<Vec<usize>>,
    /// Total rate of the links that are up, in bits per second.
    rates: Vec<f64>,
}

impl<'a> Bundles<'a> {
    fn new(map: &'a FabricMap, links: &'a [LinkRow]) -> Self {
        let mut of_bundle = vec![Vec::new(); map.bundles.len()];
        for (link, &bundle) in map.bundle_of.iter().enumerate() {
            of_bundle[bundle as usize].push(link);
        }
        let rate = |own: &Vec<usize>| {
            let up = own.iter().filter(|&&link| links[link].is_up);
            up.map(|&link| links[link].rate.as_bps() as f64).sum()
        };
        Self {
            rates: of_bundle.iter().map(rate).collect(),
            map,
            links,
            of_bundle,
        }
    }

    /// Counts of each bundle over the whole run. Links that are down from the beginning have no part in the utilisation.
    fn totals(&self, span: Span) -> Vec<Cell> {
        let own = self.of_bundle.iter().zip(&self.rates);
        let total = |(own, rate): (&Vec<usize>, &f64)| {
            let links = || own.iter().map(|&link| &self.links[link]);
            let bytes: u64 = links().map(|link| link.bytes).sum();
            let whole = Cell::join(
                String::new(),
                links().map(|link| Cell::from_link(link, span)),
            );
            whole.map(|mut whole| {
                whole.utilisation = utilisation(bytes as f64, *rate, span);
                whole
            })
        };
        own.filter_map(total).collect()
    }

    /// Number of links of each bundle that are down from the beginning.
    fn down(&self) -> Vec<f64> {
        let down = |own: &Vec<usize>| own.iter().filter(|&&link| !self.links[link].is_up).count();
        self.of_bundle.iter().map(|own| down(own) as f64).collect()
    }
}

/// Share of the capacity that `bytes` take.
fn utilisation(bytes: f64, rate_bps: f64, span: Span) -> f64 {
    let possible = rate_bps * span.as_ps() as f64 * 1e-12;
    if possible > 0.0 {
        bytes * 8.0 / possible
    } else {
        0.0
    }
}

fn json(
    record: &RunRecord,
    observed: &RunObservations,
    bundles: &Bundles<'_>,
    totals: &[Cell],
    why: Option<&WhyRecord>,
) -> String {
    let mut text = String::from("{");
    push_shape(&mut text, bundles);
    push_totals(&mut text, observed, totals);
    push_frames(&mut text, observed, bundles, record.simulated);
    push_events(&mut text, record, bundles.map);
    push_paths(
        &mut text,
        observed,
        why.map_or(&[][..], |why| &why.flows[..]),
    );
    text.push('}');
    text
}

/// Rows, boxes and bundles.
fn push_shape(text: &mut String, bundles: &Bundles<'_>) {
    let map = bundles.map;
    text.push_str("\"rows\":");
    push_list(text, &map.rows, |text, row| {
        text.push_str("{\"kind\":");
        push_text(text, &row.kind);
        let _ = write!(text, ",\"nodes\":{}}}", row.nodes);
    });
    text.push_str(",\"boxes\":{\"name\":");
    push_list(text, &map.boxes, |text, one| push_text(text, &one.name));
    let numbers = |pick: fn(&clearway_report::MapBox) -> usize| -> Vec<f64> {
        map.boxes.iter().map(|one| pick(one) as f64).collect()
    };
    push_column(text, "row", &numbers(|one| one.row));
    push_column(text, "group", &numbers(|one| one.group));
    push_column(text, "nodes", &numbers(|one| one.nodes));
    text.push_str("},\"bundles\":{\"from\":");
    push_list(text, &map.bundles, |text, one| {
        let _ = write!(text, "{}", one.from);
    });
    text.push_str(",\"to\":");
    push_list(text, &map.bundles, |text, one| {
        let _ = write!(text, "{}", one.to);
    });
    let links: Vec<f64> = map.bundles.iter().map(|one| one.links as f64).collect();
    push_column(text, "links", &links);
    push_column(text, "rate", &bundles.rates);
    push_column(text, "down", &bundles.down());
    text.push('}');
}

/// Metrics over the whole run.
fn push_totals(text: &mut String, observed: &RunObservations, totals: &[Cell]) {
    let mut all = String::new();
    for (name, pick) in METRICS {
        let values: Vec<f64> = totals.iter().map(pick).collect();
        push_column(&mut all, name, &values);
    }
    let all = all.trim_start_matches(',');
    let _ = write!(text, ",\"totals\":{{{all}");
    if observed.map.bundles.iter().any(|bundle| bundle.links > 1) {
        let values: Vec<f64> = totals.iter().map(|total| total.busiest.0).collect();
        push_column(text, "busiest", &values);
        text.push_str(",\"busiestName\":");
        push_list(text, totals, |text, total| {
            push_text(text, &total.busiest.1);
        });
    }
    text.push('}');
}

/// Metrics over time, interval by interval.
fn push_frames(
    text: &mut String,
    observed: &RunObservations,
    bundles: &Bundles<'_>,
    simulated: Span,
) {
    let end = Time::ZERO + simulated;
    let starts = std::iter::once(Time::ZERO).chain(observed.frames.ends.iter().copied());
    let frames = starts.zip(observed.frames.frames());
    // Later samples are taken while the last timers expire.
    let frames: Vec<_> = frames.take_while(|(start, _)| *start < end).collect();
    if frames.is_empty() {
        return;
    }
    text.push_str(",\"frames\":{\"ends\":");
    push_list(text, &frames, |text, (_, (end, _))| {
        push_number(text, end.as_us(), 12);
    });
    for (name, pick) in FRAME_METRICS {
        let values = frames.iter().flat_map(|(start, (end, counts))| {
            let rated = counts.iter().zip(&bundles.rates);
            rated.map(|(counts, rate)| pick(counts, *rate, end.since(*start)))
        });
        push_column(text, name, &values.collect::<Vec<f64>>());
    }
    text.push('}');
}

/// Cables that go down or come up: the time, the bundles of both directions, and by how many links down they differ.
fn push_events(text: &mut String, record: &RunRecord, map: &FabricMap) {
    let end = Time::ZERO + record.simulated;
    let events = record.link_events.iter().filter(|event| event.at <= end);
    let events: Vec<(&LinkEventRow, bool)> = events
        .filter_map(|event| Some((event, event.comes_up?)))
        .collect();
    if events.is_empty() {
        return;
    }
    text.push_str(",\"events\":");
    push_list(text, &events, |text, (event, comes_up)| {
        text.push_str("{\"at\":");
        push_number(text, event.at.as_us(), 12);
        let [one, other] =
            [event.link, event.link ^ 1].map(|link| map.bundle_of.get(link as usize).copied());
        let [one, other] = [one, other].map(|bundle| bundle.unwrap_or_default());
        let down = if *comes_up { -1 } else { 1 };
        let _ = write!(text, ",\"bundles\":[{one},{other}],\"down\":{down}}}");
    });
}

/// Bundles that the data of the slowest flows crossed.
fn push_paths(text: &mut String, observed: &RunObservations, flows: &[SlowFlow]) {
    if flows.is_empty() {
        return;
    }
    let places = observed.links.iter().zip(&observed.map.bundle_of);
    let bundle_of: BTreeMap<&str, u32> = places
        .map(|(link, bundle)| (link.name.as_str(), *bundle))
        .collect();
    text.push_str(",\"paths\":");
    push_list(text, flows, |text, flow| {
        let mut packets: BTreeMap<u32, u64> = BTreeMap::new();
        for link in &flow.links {
            if let Some(bundle) = bundle_of.get(link.link.as_str()) {
                *packets.entry(*bundle).or_default() += link.packets;
            }
        }
        text.push_str("{\"name\":");
        let time = format::time(flow.completion_ps as f64 * 1e-6);
        let name = format!(
            "flow {}: host {} → host {}, {time}",
            flow.flow, flow.src, flow.dst
        );
        push_text(text, &name);
        let packets: Vec<(u32, u64)> = packets.into_iter().collect();
        text.push_str(",\"bundles\":");
        push_list(text, &packets, |text, (bundle, _)| {
            let _ = write!(text, "{bundle}");
        });
        text.push_str(",\"packets\":");
        push_list(text, &packets, |text, (_, packets)| {
            let _ = write!(text, "{packets}");
        });
        text.push('}');
    });
}

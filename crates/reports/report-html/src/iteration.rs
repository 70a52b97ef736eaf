//! An iteration by host and time: a line for each host, with a thick bar for each of its steps on the critical path, and below them a thin
//! bar for each of its messages, computations and waits.

use super::format;
use super::html::Escaped;
use clearway_report::why::{PathStepRow, RankRow, SlowIteration, StepName};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Width of a line in SVG units.
const WIDTH: f64 = 1000.0;
/// Height of bars of the critical path in SVG units.
const THICK: usize = 14;
/// Height of the other bars in SVG units, with a gap of 1.
const THIN: usize = 5;
/// Minimum width of a bar in SVG units.
const LEAST: f64 = 0.6;
/// Maximum number of thin bars that have a title each.
const MOST_TITLES: usize = 4000;
/// Maximum number of thin bars beside one another.
const MOST_LANES: usize = 12;

/// Colours of bars, among those of curves, and their meanings.
const KEYS: [(usize, &str); 4] = [
    (7, "message, as long as if it were alone"),
    (1, "message, beyond that"),
    (2, "computation"),
    (6, "wait for a slot or a turn"),
];

/// The figure; empty without steps.
pub(super) fn figure(iteration: &SlowIteration) -> String {
    let (path, ranks) = (&iteration.steps, &iteration.ranks);
    let steps = || ranks.rows.iter().flat_map(|row| &row.steps).chain(path);
    let (Some(from), Some(until)) = (
        steps().map(|step| step.from_ps).min(),
        steps().map(end).max(),
    ) else {
        return String::new();
    };
    let mut html = format!(
        "<figure class=\"ranks\">\n<figcaption>{}</figcaption>\n",
        caption(iteration, until - from)
    );
    let span = (until - from).max(1) as f64;
    let thin: usize = ranks.rows.iter().map(|row| row.steps.len()).sum();
    let has_titles = thin <= MOST_TITLES;
    let at = |ps: u64| (ps - from) as f64 / span * WIDTH;
    html.push_str("<div class=\"lines\" tabindex=\"0\" role=\"region\" aria-label=\"hosts\">\n");
    for row in &ranks.rows {
        let own = path.iter().filter(|step| step.host == row.host);
        let own: Vec<&PathStepRow> = own.collect();
        push_line(&mut html, row, (&own, has_titles), at);
    }
    html.push_str("</div>\n<ul class=\"keys\">\n");
    for (colour, meaning) in KEYS {
        let _ = writeln!(html, "<li class=\"c{colour}\"><i></i>{meaning}</li>");
    }
    html + "</ul>\n</figure>"
}

fn end(step: &PathStepRow) -> u64 {
    step.from_ps + step.ps
}

/// What is drawn, over a time of `span_ps`.
fn caption(iteration: &SlowIteration, span_ps: u64) -> String {
    let ranks = &iteration.ranks;
    let drawn = ranks.rows.len();
    let mut caption = format!(
        "The iteration by host and time, {} from left to right: thick bars are the critical path, thin bars all computations, sent \
         messages and waits for slots and turns of a host; the thin bar of a message ends where it arrives",
        format::time(span_ps as f64 / 1e6)
    );
    if ranks.hosts > drawn {
        let all = format::count(ranks.hosts as u64);
        let _ = write!(
            caption,
            "; {drawn} of {all} hosts, with those that cost most on the path"
        );
    }
    if ranks.rows.iter().any(|row| Lanes::new(&row.steps).is_full) {
        let _ = write!(
            caption,
            "; where a host has more than {MOST_LANES} at a time, the last cover one another"
        );
    }
    if ranks.is_cut {
        let steps: usize = ranks.rows.iter().map(|row| row.steps.len()).sum();
        let steps = format::count(steps as u64);
        let _ = write!(caption, "; the first {steps} thin bars");
    }
    if iteration.messages + iteration.computations > iteration.steps.len() {
        let steps = format::count(iteration.steps.len() as u64);
        let _ = write!(caption, "; the first {steps} thick bars");
    }
    caption
}

/// The line of a host, with its steps on the path; `at` is the place of an instant.
fn push_line(
    html: &mut String,
    row: &RankRow,
    (path, has_titles): (&[&PathStepRow], bool),
    at: impl Fn(u64) -> f64,
) {
    let lanes = Lanes::new(&row.steps);
    let top = if path.is_empty() { 0 } else { THICK + 1 };
    let height = (top + lanes.count * THIN).max(THICK);
    let on_path = match path.iter().map(|step| step.ps).sum::<u64>() {
        0 => "not on the path".into(),
        ps => format!("{} on the path", format::time(ps as f64 / 1e6)),
    };
    let sent = row.steps.iter();
    let sent = sent.filter(|step| step.what == StepName::Message).count();
    let _ = writeln!(
        html,
        "<div class=\"rank\"><span>host {host}</span><svg viewBox=\"0 0 {WIDTH} {height}\" height=\"{height}\" \
         preserveAspectRatio=\"none\" role=\"img\" aria-label=\"host {host}: {on_path}; messages sent: {}\">",
        format::count(sent as u64),
        host = row.host,
    );
    for step in path {
        push_bars(html, step, (0, THICK), &at);
    }
    let thin = row.steps.iter().zip(&lanes.places);
    let thin = thin.map(|(step, lane)| (step, top + lane * THIN));
    if has_titles {
        thin.for_each(|(step, y)| push_bars(html, step, (y, THIN - 1), &at));
    } else {
        push_paths(html, thin, &at);
    }
    html.push_str("</svg></div>\n");
}

/// Places of the steps of a host.
#[derive(Debug, PartialEq)]
struct Lanes {
    /// Number of lanes.
    count: usize,
    /// The lane of each step: the first that is free when the step starts, or else the last.
    places: Vec<usize>,
    /// True if bars of the last lane cover one another.
    is_full: bool,
}

impl Lanes {
    fn new(steps: &[PathStepRow]) -> Self {
        let mut ends: Vec<u64> = Vec::new();
        let mut is_full = false;
        let places = steps.iter().map(|step| {
            let free = ends.iter().position(|end| *end <= step.from_ps);
            let lane = free.unwrap_or(ends.len());
            is_full |= lane == MOST_LANES;
            let lane = lane.min(MOST_LANES - 1);
            match ends.get_mut(lane) {
                Some(last) => *last = end(step).max(*last),
                None => ends.push(end(step)),
            }
            lane
        });
        let places: Vec<usize> = places.collect();
        Self {
            count: ends.len(),
            places,
            is_full,
        }
    }
}

/// The bars of a step: colour, begin and end.
fn bars(step: &PathStepRow) -> impl Iterator<Item = (usize, u64, u64)> {
    let alone = step.from_ps + step.ideal_ps.min(step.ps);
    let (first, second) = match step.what {
        StepName::Message => (7, 1),
        StepName::Computation => (2, 2),
        StepName::Slot | StepName::Turn => (6, 6),
    };
    let parts = [(first, step.from_ps, alone), (second, alone, end(step))];
    parts.into_iter().filter(|(_, from, until)| from < until)
}

/// The bars of a step at this height, with a title; `at` is the place of an instant.
fn push_bars(
    html: &mut String,
    step: &PathStepRow,
    (y, height): (usize, usize),
    at: impl Fn(u64) -> f64,
) {
    let _ = write!(html, "<g><title>{}</title>", Escaped(&title(step)));
    for (colour, from, until) in bars(step) {
        let x = at(from);
        let width = (at(until) - x).max(LEAST);
        let _ = write!(
            html,
            "<rect class=\"c{colour}\" x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{height}\"/>"
        );
    }
    html.push_str("</g>\n");
}

/// The bars of all steps at their heights, as one path for each colour.
fn push_paths<'a>(
    html: &mut String,
    steps: impl Iterator<Item = (&'a PathStepRow, usize)>,
    at: impl Fn(u64) -> f64,
) {
    let mut paths: BTreeMap<usize, String> = BTreeMap::new();
    for (step, y) in steps {
        for (colour, from, until) in bars(step) {
            let x = at(from);
            let width = (at(until) - x).max(LEAST);
            let path = paths.entry(colour).or_default();
            let _ = write!(path, "M{x:.1} {y}h{width:.1}v{}h-{width:.1}z", THIN - 1);
        }
    }
    for (colour, path) in paths {
        let _ = writeln!(html, "<path class=\"c{colour}\" d=\"{path}\"/>");
    }
}

fn title(step: &PathStepRow) -> String {
    let time = format::time(step.ps as f64 / 1e6);
    match step.what {
        StepName::Computation => format!("computation: {time}"),
        StepName::Slot => format!("wait for the slot: {time}"),
        StepName::Turn => format!("wait for the turn at a receiver: {time}"),
        StepName::Message => {
            let bytes = step.bytes.map_or(String::new(), |bytes| {
                format!(" of {}", format::bytes(bytes as f64))
            });
            let to = step.to.map_or(String::new(), |to| format!(" to host {to}"));
            let alone = format::time(step.ideal_ps as f64 / 1e6);
            let until = match step.acknowledged {
                Some(true) => " until acknowledged",
                _ => "",
            };
            format!("message{bytes}{to}{until}: {time}, {alone} if it were alone")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_report::why::RankTimeline;

    fn step(what: StepName, host: u32, (from_ps, ps, ideal_ps): (u64, u64, u64)) -> PathStepRow {
        let is_message = what == StepName::Message;
        PathStepRow {
            to: is_message.then_some(host + 1),
            bytes: is_message.then_some(2_000_000),
            ideal_ps,
            ..PathStepRow::new(what, host, from_ps, ps)
        }
    }

    /// An iteration with this path; hosts 4 to 6 have these steps.
    fn iteration(path: Vec<PathStepRow>, steps: Vec<PathStepRow>) -> SlowIteration {
        let mut iteration = SlowIteration::new("train", 2, "the longest of the run", path);
        iteration.ranks = RankTimeline::new(std::iter::empty(), 4..7, steps.into_iter());
        iteration
    }

    /// Colour and place of each bar, as `c2 0.00 0 250.00 14`: x, y, width and height.
    fn rectangles(html: &str) -> Vec<String> {
        let bars = html.split("<rect class=\"").skip(1);
        let numbers = bars.map(|bar| bar.split("/>").next().unwrap_or_default());
        let spaced = numbers.map(|bar| bar.replace("\" x=\"", " ").replace("\" y=\"", " "));
        let spaced = spaced.map(|bar| bar.replace("\" width=\"", " ").replace("\" height=\"", " "));
        spaced.map(|bar| bar.replace('"', "")).collect()
    }

    #[test]
    fn each_step_is_a_bar_at_its_host_and_time() {
        let path = vec![
            step(StepName::Computation, 4, (1_000_000, 250_000, 250_000)),
            step(StepName::Message, 4, (1_250_000, 500_000, 400_000)),
            step(StepName::Turn, 5, (1_750_000, 250_000, 250_000)),
        ];
        let mut steps = path.clone();
        steps.push(step(StepName::Message, 6, (1_000_000, 100_000, 100_000)));
        let html = figure(&iteration(path, steps));
        assert_eq!(
            rectangles(&html),
            [
                "c2 0.00 0 250.00 14",
                "c7 250.00 0 400.00 14",
                "c1 650.00 0 100.00 14",
                "c2 0.00 15 250.00 4",
                "c7 250.00 15 400.00 4",
                "c1 650.00 15 100.00 4",
                "c6 750.00 0 250.00 14",
                "c6 750.00 15 250.00 4",
                "c7 0.00 0 100.00 4",
            ]
        );
        assert!(html.contains("to host 5: 500.0 ns, 400.0 ns if it were alone"));
        assert!(html.contains("host 4: 750.0 ns on the path; messages sent: 1"));
        assert!(html.contains("host 6: not on the path; messages sent: 1"));
        assert!(html.contains(", 1.000 µs from left to right: thick"));
        assert!(html.contains("where it arrives</figcaption>"));
        assert_eq!(figure(&iteration(Vec::new(), Vec::new())), "");
    }

    #[test]
    fn bars_of_the_same_time_are_beside_one_another() {
        let message = |from: u64| step(StepName::Message, 4, (from, 100, 100));
        let few = Lanes::new(&[0, 10, 20, 105, 112].map(message));
        assert_eq!((few.count, few.is_full), (3, false));
        assert_eq!(few.places, [0, 1, 2, 0, 1]);
        let many: Vec<PathStepRow> = (0..20).map(message).collect();
        let html = figure(&iteration(Vec::new(), many.clone()));
        assert!(html.contains("more than 12 at a time, the last cover one another"));
        let many = Lanes::new(&many);
        assert_eq!((many.count, many.is_full), (MOST_LANES, true));
        assert_eq!(many.places.last(), Some(&(MOST_LANES - 1)));
    }

    #[test]
    fn what_is_not_drawn_is_said() {
        let path = || vec![step(StepName::Computation, 70, (0, 100, 100))];
        let mut wide = iteration(path(), Vec::new());
        wide.ranks = RankTimeline::new([70].into_iter(), 0..2000, path().into_iter());
        let html = figure(&wide);
        assert!(
            html.contains(
                "; 32 of 2,000 hosts, with those that cost most on the path</figcaption>"
            )
        );
        assert!(html.contains("<span>host 70</span>") && !html.contains("<span>host 31</span>"));
        let mut long = iteration(path(), Vec::new());
        let many = (0..40_100).map(|from| step(StepName::Message, 70, (from, 1, 1)));
        long.ranks = RankTimeline::new(std::iter::empty(), 70..71, many);
        let html = figure(&long);
        assert!(html.contains("arrives; the first 40,000 thin bars</figcaption>"));
        // So many are one path without titles.
        assert_eq!(
            (
                html.matches("<path ").count(),
                html.matches("<title>").count()
            ),
            (1, 1)
        );
        assert_eq!(html.matches("v4h-0.6z").count(), 40_000);
    }
}

//! The critical path of an iteration by rank and time: a line for each host on it, and a bar for each of its steps.

use super::format;
use super::html::Escaped;
use clearway_report::why::{PathStepRow, SlowIteration, StepName};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Maximum number of hosts: those with most time on the path.
const MOST_HOSTS: usize = 32;
/// Width of a line in SVG units.
const WIDTH: f64 = 1000.0;
/// Height of a line in SVG units.
const HEIGHT: u32 = 14;

/// Colours of bars, among those of curves, and their meanings.
const KEYS: [(usize, &str); 4] = [
    (7, "message, as long as if it were alone"),
    (1, "message, beyond that"),
    (2, "computation"),
    (6, "wait for a slot or a turn"),
];

/// The figure; empty without steps.
pub(super) fn figure(iteration: &SlowIteration) -> String {
    let end = |step: &PathStepRow| step.from_ps + step.ps;
    let steps = &iteration.steps;
    let (Some(from), Some(until)) = (
        steps.iter().map(|step| step.from_ps).min(),
        steps.iter().map(end).max(),
    ) else {
        return String::new();
    };
    let mut hosts: BTreeMap<u32, (u64, Vec<&PathStepRow>)> = BTreeMap::new();
    for step in steps {
        let (time, own) = hosts.entry(step.host).or_default();
        *time += step.ps;
        own.push(step);
    }
    let all = hosts.len();
    let mut costliest: Vec<(u64, u32)> = hosts.iter().map(|(host, row)| (row.0, *host)).collect();
    costliest.sort_by_key(|(time, host)| (u64::MAX - time, *host));
    for (_, host) in costliest.into_iter().skip(MOST_HOSTS) {
        hosts.remove(&host);
    }
    let span = (until - from).max(1) as f64;
    let mut html = format!(
        "<figure class=\"ranks\">\n<figcaption>The path by host and time, {} from left to right{}{}</figcaption>\n",
        format::time((until - from) as f64 / 1e6),
        match all > hosts.len() {
            true => format!("; the {} of {all} hosts with most time on it", hosts.len()),
            false => String::new(),
        },
        match iteration.messages + iteration.computations > steps.len() {
            true => format!("; its first {} steps", format::count(steps.len() as u64)),
            false => String::new(),
        },
    );
    for (host, (time, own)) in &hosts {
        let label = format!(
            "host {host}: {} on the path",
            format::time(*time as f64 / 1e6)
        );
        let _ = writeln!(
            html,
            "<div class=\"rank\"><span>host {host}</span><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" \
             aria-label=\"{label}\">"
        );
        for step in own {
            push_bars(&mut html, step, |ps| (ps - from) as f64 / span * WIDTH);
        }
        html.push_str("</svg></div>\n");
    }
    html.push_str("<ul class=\"keys\">\n");
    for (colour, meaning) in KEYS {
        let _ = writeln!(html, "<li class=\"c{colour}\"><i></i>{meaning}</li>");
    }
    html + "</ul>\n</figure>"
}

/// The bars of a step; `at` is the place of an instant.
fn push_bars(html: &mut String, step: &PathStepRow, at: impl Fn(u64) -> f64) {
    let title = title(step);
    let alone = step.ideal_ps.min(step.ps);
    let parts = match step.what {
        StepName::Message => [(7, 0, alone), (1, alone, step.ps)],
        StepName::Computation => [(2, 0, step.ps), (2, 0, 0)],
        StepName::Slot | StepName::Turn => [(6, 0, step.ps), (6, 0, 0)],
    };
    for (colour, first, last) in parts {
        if last <= first {
            continue;
        }
        let (x, end) = (at(step.from_ps + first), at(step.from_ps + last));
        let _ = writeln!(
            html,
            "<rect class=\"c{colour}\" x=\"{x:.2}\" y=\"0\" width=\"{:.2}\" height=\"{HEIGHT}\"><title>{}</title></rect>",
            (end - x).max(0.6),
            Escaped(&title)
        );
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
            format!("message{bytes}{to}: {time}, {alone} if it were alone")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(what: StepName, host: u32, (from_ps, ps, ideal_ps): (u64, u64, u64)) -> PathStepRow {
        let is_message = what == StepName::Message;
        PathStepRow {
            what,
            host,
            to: is_message.then_some(host + 1),
            flow: is_message.then_some(3),
            bytes: is_message.then_some(2_000_000),
            acknowledged: None,
            from_ps,
            ps,
            ideal_ps,
            parts: Vec::new(),
        }
    }

    fn iteration(steps: Vec<PathStepRow>) -> SlowIteration {
        SlowIteration::new("train", 2, "the longest of the run", steps)
    }

    #[test]
    fn each_step_is_a_bar_at_its_host_and_time() {
        let html = figure(&iteration(vec![
            step(StepName::Computation, 4, (1_000_000, 250_000, 250_000)),
            step(StepName::Message, 4, (1_250_000, 500_000, 400_000)),
            step(StepName::Turn, 5, (1_750_000, 250_000, 250_000)),
        ]));
        let bars: Vec<&str> = html.lines().filter(|line| line.contains("<rect")).collect();
        let place = |bar: &str| bar.split(" y=").next().unwrap_or_default().to_owned();
        let places: Vec<String> = bars.iter().map(|bar| place(bar)).collect();
        assert_eq!(
            places,
            [
                "<rect class=\"c2\" x=\"0.00\"",
                "<rect class=\"c7\" x=\"250.00\"",
                "<rect class=\"c1\" x=\"650.00\"",
                "<rect class=\"c6\" x=\"750.00\"",
            ]
        );
        assert!(bars[1].contains("width=\"400.00\"") && bars[2].contains("width=\"100.00\""));
        assert!(bars[1].contains("to host 5: 500.0 ns, 400.0 ns if it were alone"));
        assert!(html.contains("host 4: 750.0 ns on the path"));
        assert!(html.contains("1.000 µs from left to right</figcaption>"));
    }

    #[test]
    fn the_hosts_with_most_time_are_drawn() {
        let steps = (0..50u32).map(|host| {
            let ps = u64::from(host + 1) * 100;
            step(
                StepName::Computation,
                host,
                (u64::from(host) * 10_000, ps, ps),
            )
        });
        let html = figure(&iteration(steps.collect()));
        assert_eq!(html.matches("class=\"rank\"").count(), MOST_HOSTS);
        assert!(html.contains("the 32 of 50 hosts with most time on it"));
        assert!(html.contains("<span>host 49</span>") && !html.contains("<span>host 17</span>"));
        assert_eq!(figure(&iteration(Vec::new())), "");
    }
}

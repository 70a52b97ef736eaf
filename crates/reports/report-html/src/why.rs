//! The section on slow flows: the bound of the run, the parts of the slowest flows' time, and the links that delayed them most.

use super::document::Document;
use super::format;
use super::html::{Column, Escaped, details, paragraph, table};
use super::iteration;
use clearway_report::why::{PathPart, SlowFlow, SlowIteration, WhyRecord};
use clearway_results::DelayPart;
use std::fmt::Write as _;

/// Width of a bar in SVG units.
const WIDTH: f64 = 1000.0;
/// Maximum number of listed links.
const LISTED: usize = 10;

/// The colour of a part, among the colours of curves. Time that an idle network also takes is grey.
const fn colour(part: DelayPart) -> usize {
    match part {
        DelayPart::Serialisation | DelayPart::Propagation | DelayPart::SwitchLatency => 7,
        DelayPart::Queueing => 1,
        DelayPart::Pause => 3,
        DelayPart::Pacing => 0,
        DelayPart::Window | DelayPart::Credit => 5,
        DelayPart::Recovery => 4,
        DelayPart::Waiting => 2,
        DelayPart::Unexplained => 6,
    }
}

/// The section; without `why`, a hint how to request it.
///
/// With a map on the page, each flow has a button that draws its path there.
pub(super) fn section(document: &mut Document, why: Option<&WhyRecord>, has_map: bool) {
    let Some(why) = why else {
        document.push(
            "<p class=\"note\"><code>clearway why</code> with the folder of this report writes in here why flows were slow, and which links cost \
             them most; <code>--flow N</code> asks about flow N.</p>",
        );
        return;
    };
    document.open_section("why", "Why flows were slow");
    let bound = format!("{} {}", why.bound.sentence, why.bound.verdict());
    document.push(&paragraph(&signs(&format!(
        "No transport could have been faster than the bound. {bound}"
    ))));
    if let Some(iteration) = &why.iteration {
        push_iteration(document, iteration);
    }
    if why.flows.is_empty() {
        document.push(&paragraph("No flow is done."));
    } else {
        document.push(&legend(&why.parts()));
        for (place, flow) in why.flows.iter().enumerate() {
            document.push(&flow_bar(flow, has_map.then_some(place)));
        }
        document.push("<p class=\"note\">Other flows: <code>clearway why</code> with <code>--flow N</code>.</p>");
        document.push(&details("Parts of each completion time", &shares(why)));
        document.push("<h3>Links that cost these flows most</h3>");
        document.push(&links(why));
        document.push(
            "<p class=\"note\">Time on the critical paths of these flows: behind packets of others, and while pause frames held the link back.</p>",
        );
    }
    document.close_section();
}

/// Signs as on the rest of the page; the terminal uses letters.
fn signs(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let number = word.trim_end_matches(['.', ',', ':']);
        let factor = number.strip_suffix('x');
        let is_factor = factor.is_some_and(|factor| factor.parse::<f64>().is_ok());
        words.push(match is_factor {
            true => word.replacen('x', "×", 1),
            false if number == "us" => word.replacen("us", "µs", 1),
            false => word.into(),
        });
    }
    words.join(" ")
}

fn legend(parts: &[DelayPart]) -> String {
    let mut html = String::from("<ul class=\"parts\">\n");
    for &part in parts {
        let _ = writeln!(
            html,
            "<li class=\"c{}\"><b>{}</b>: {}</li>",
            colour(part),
            Escaped(part.name()),
            Escaped(part.meaning())
        );
    }
    html + "</ul>"
}

/// The colour of a kind of time on a job's critical path.
const fn colour_of(part: PathPart) -> usize {
    match part {
        PathPart::Message(part) => colour(part),
        PathPart::Computation => 2,
        PathPart::Slot | PathPart::Turn => 6,
    }
}

/// Adds the longest iteration: a bar, and its largest costs.
fn push_iteration(document: &mut Document, iteration: &SlowIteration) {
    document.push("<h3>The critical path of an iteration</h3>");
    let rows = iteration.parts.iter().map(|row| Segment {
        colour: colour_of(row.part),
        name: row.part.name().into(),
        ps: row.ps,
    });
    let rows: Vec<Segment> = rows.collect();
    document.push(&bar((&iteration.sentence, ""), "", &rows));
    let names: Vec<String> = rows
        .iter()
        .map(|row| {
            format!(
                "<li class=\"c{}\"><b>{}</b>: {}</li>\n",
                row.colour,
                Escaped(&row.name),
                format::time(row.ps as f64 / 1e6)
            )
        })
        .collect();
    document.push(&format!("<ul class=\"parts\">\n{}</ul>", names.concat()));
    document.push(&iteration::figure(iteration));
    let links = iteration.links.iter().take(LISTED).map(|row| {
        vec![
            row.link.clone(),
            format::time(row.queueing_us),
            format::time(row.paused_us),
            format::time(row.serialisation_us),
            format::count(row.messages as u64),
        ]
    });
    let links: Vec<Vec<String>> = links.collect();
    if !links.is_empty() {
        let columns = [
            ("Link", Column::Text),
            ("Queueing", Column::Number),
            ("Paused", Column::Number),
            ("Serialisation", Column::Number),
            ("Messages", Column::Number),
        ];
        document.push(&details("Links of this path", &table(&columns, &links)));
    }
    let hosts = iteration.hosts.iter().take(LISTED).map(|row| {
        vec![
            row.host.to_string(),
            format::time(row.computing_us),
            format::count(row.messages as u64),
            format::time(row.messages_us),
            format::time(row.excess_us),
        ]
    });
    let columns = [
        ("Host", Column::Number),
        ("Computing", Column::Number),
        ("Messages", Column::Number),
        ("Their time", Column::Number),
        ("More than alone", Column::Number),
    ];
    let hosts = table(&columns, &hosts.collect::<Vec<_>>());
    document.push(&details("Hosts of this path", &hosts));
    document.push(
        "<p class=\"note\">Other iterations: <code>clearway why</code> with <code>--job NAME --iteration K</code>.</p>\n<h3>The slowest flows</h3>",
    );
}

/// Segment of a bar.
struct Segment {
    colour: usize,
    name: String,
    ps: u64,
}

/// The parts of a flow as a bar, with the flow in words, and its place among the paths of the map.
fn flow_bar(flow: &SlowFlow, path: Option<usize>) -> String {
    let rows = DelayPart::ALL.into_iter().flat_map(|part| {
        let own = flow.parts.iter().filter(move |row| row.part == part);
        own.map(move |row| Segment {
            colour: colour(part),
            name: match &row.link {
                Some(link) => format!("{} at {link}", part.name()),
                None => part.name().into(),
            },
            ps: row.ps,
        })
    });
    let rows: Vec<Segment> = rows.collect();
    let button = path.map(|place| {
        format!(" <button type=\"button\" class=\"control\" data-path=\"{place}\" hidden>On the map</button>")
    });
    bar(
        (&flow.sentence, &flow.path),
        &button.unwrap_or_default(),
        &rows,
    )
}

/// A bar with its sentence and a note, and HTML after them.
fn bar((sentence, note): (&str, &str), more: &str, rows: &[Segment]) -> String {
    let note = match note.is_empty() {
        true => String::new(),
        false => format!(" <span class=\"note\">{}</span>", Escaped(note)),
    };
    let mut html = format!(
        "<figure class=\"delays\">\n<figcaption>{}{note}{more}</figcaption>\n\
         <svg viewBox=\"0 0 {WIDTH} 18\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">\n",
        Escaped(&signs(sentence)),
        Escaped(&signs(sentence)),
    );
    let whole: u64 = rows.iter().map(|row| row.ps).sum();
    let mut from = 0.0;
    for row in rows {
        let share = row.ps as f64 / whole.max(1) as f64;
        let title = format!(
            "{}: {}, {}",
            row.name,
            format::time(row.ps as f64 / 1e6),
            format::share(share)
        );
        let _ = writeln!(
            html,
            "<rect class=\"c{}\" x=\"{:.2}\" y=\"0\" width=\"{:.2}\" height=\"18\"><title>{}</title></rect>",
            row.colour,
            from * WIDTH,
            share * WIDTH,
            Escaped(&title)
        );
        from += share;
    }
    html + "</svg>\n</figure>"
}

/// Times by flow and part.
fn shares(why: &WhyRecord) -> String {
    let parts = why.parts();
    let head = ["Flow", "Completion", "Slowdown", "Bottleneck"];
    let kinds = [Column::Text, Column::Number, Column::Number, Column::Text];
    let mut columns: Vec<(&str, Column)> = head.into_iter().zip(kinds).collect();
    columns.extend(parts.iter().map(|part| (part.name(), Column::Number)));
    let row = |flow: &SlowFlow| {
        let mut cells = vec![
            format!("{}: host {} to {}", flow.flow, flow.src, flow.dst),
            format::time(flow.completion_ps as f64 / 1e6),
            flow.slowdown().map_or("–".into(), format::factor),
            flow.bottleneck.clone().unwrap_or("–".into()),
        ];
        let times = parts
            .iter()
            .map(|&part| format::time(flow.total(part).as_us()));
        cells.extend(times);
        cells
    };
    let rows: Vec<Vec<String>> = why.flows.iter().map(row).collect();
    table(&columns, &rows)
}

fn links(why: &WhyRecord) -> String {
    if why.links.is_empty() {
        return paragraph("None: these flows waited in front of no link.");
    }
    let rows = why.links.iter().take(LISTED).map(|link| {
        vec![
            link.link.clone(),
            format::time(link.queueing_us),
            format::time(link.paused_us),
            format::count(link.flows as u64),
        ]
    });
    let columns = [
        ("Link", Column::Text),
        ("Queueing", Column::Number),
        ("Paused", Column::Number),
        ("Flows", Column::Number),
    ];
    table(&columns, &rows.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_become_signs_and_names_stay() {
        let text = "took 1.500 us, 1.250x that. 3x us-west x us: 2x.";
        let signed = "took 1.500 µs, 1.250× that. 3× us-west x µs: 2×.";
        assert_eq!(signs(text), signed);
    }
}

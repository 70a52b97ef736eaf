//! Reasons why flows and iterations were slow, for a terminal.

mod compared;
mod iteration;

pub use compared::why_comparison_text;

use crate::table::{Align, Table};
use clearway_report::quantity::{factor, share, span};
use clearway_report::why::WhyRecord;
use clearway_results::DelayPart;
use clearway_units::Span;
use iteration::iteration_text;
use std::fmt::Write as _;

/// Maximum number of parts that a terminal lists for each flow.
const SHOWN: usize = 5;

/// Bound of a run, its slow flows and the parts of their times.
pub fn why_text(why: &WhyRecord) -> String {
    let mut text = format!("Bound      {}\n", why.bound.sentence);
    let _ = writeln!(text, "           {}\n", why.bound.verdict());
    if let Some(iteration) = &why.iteration {
        text += &iteration_text(iteration);
        text.push('\n');
    }
    if why.flows.is_empty() {
        return text + "No flow is done.\n";
    }
    let parts = why.parts();
    let mut table = ["flow", "from", "to", "time", "slowdown"]
        .into_iter()
        .fold(Table::new(), |table, head| table.column(head, Align::Right));
    for part in &parts {
        table = table.column(part.name(), Align::Right);
    }
    table = table.column("bottleneck", Align::Left);
    for flow in &why.flows {
        let mut cells = vec![
            flow.flow.to_string(),
            flow.src.to_string(),
            flow.dst.to_string(),
            span(Span::from_ps(flow.completion_ps)),
            flow.slowdown().map_or("-".into(), factor),
        ];
        let of = |part: &DelayPart| share(flow.total(*part).as_ps(), flow.completion_ps);
        cells.extend(parts.iter().map(of));
        cells.push(flow.bottleneck.clone().unwrap_or("-".into()));
        table.row(cells);
    }
    text += &table.render(200);
    text.push('\n');
    for flow in &why.flows {
        let _ = writeln!(text, "{}\n  path: {}", flow.sentence, flow.path);
        for row in flow.parts.iter().take(SHOWN) {
            let at = row
                .link
                .as_ref()
                .map_or(String::new(), |link| format!(" at {link}"));
            let (time, part) = (
                span(Span::from_ps(row.ps)),
                share(row.ps, flow.completion_ps),
            );
            let _ = writeln!(text, "  {time:>10}  {part:>6}  {}{at}", row.part.name());
        }
    }
    text
}

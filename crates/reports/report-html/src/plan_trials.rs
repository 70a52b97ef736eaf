//! The part of a plan's page on the trials of its jobs in the simulator.

use super::document::Document;
use super::html::{Column, paragraph, table};
use clearway_report::plan::PlanRecord;

/// The section, if there were trials.
pub(super) fn section(document: &mut Document, plan: &PlanRecord) {
    let Some(trials) = &plan.trials else {
        return;
    };
    document.open_section("trials", "Simulated");
    document.push(&paragraph(&format!(
        "Iterations of each job in the packet simulator, alone and together ({} iterations), and what the plan or a fluid model of it \
         predicts. Fair: all begin together. Shifted: communication begins in slots, as planned. Timers: more urgent jobs raise their \
         rates more often. Adaptive: rates rise the faster, the more of its communication a job is through. Priorities: switches send \
         what is more urgent first.",
        trials.iterations
    )));
    let columns = [
        ("", Column::Text),
        ("Job", Column::Text),
        ("Predicted", Column::Number),
        ("Median", Column::Number),
        ("Mean", Column::Number),
        ("To fair", Column::Number),
    ];
    let rows = trials.rows(plan).into_iter().map(Vec::from);
    document.push(&table(&columns, &rows.collect::<Vec<_>>()));
    for remark in trials.remarks(plan) {
        document.push(&paragraph(&remark));
    }
    document.close_section();
}

//! Record of a run in steps.

use crate::flow_rows::row;
use crate::process_usage::Stopwatch;
use crate::record::record;
use clearway_lab::SteppedEnd;
use clearway_report::{FlowRow, RunRecord};

/// Creates the record of a run that was driven in steps. The record belongs to the scenario that lists the posted messages.
pub fn stepped_record(end: &SteppedEnd, stopwatch: &Stopwatch) -> RunRecord {
    let listed = end
        .assembly
        .workload
        .numbered()
        .zip(&end.finished.flows)
        .map(|((id, flow), result)| row(id, flow, result));
    let posted = end.messages.iter();
    let posted = posted.map(|(id, flow, result)| row(*id, flow, result));
    let flows: Vec<FlowRow> = listed.chain(posted).collect();
    RunRecord {
        flows,
        ..record(&end.scenario, &end.assembly, &end.finished, stopwatch)
    }
}

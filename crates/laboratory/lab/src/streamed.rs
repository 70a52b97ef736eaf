//! Runs with streamed flows, so that memory holds only the flows under way.
//!
//! A run over 50 ms of a data centre's traffic has a million flows, but only a few thousand are under way at a time. Flows without triggers
//! can be generated at their start and dropped at their end. Hosts with several NICs, captures and timelines need a list of all flows.

use crate::assemble::Assembly;
use crate::run::{Finished, FlowResult, RunOptions};
use clearway_fabric::{Flow, FlowOutcome, FlowSource, RunProgress, Sampler, Traffic, Watch};
use clearway_units::{FlowId, Time};
use clearway_workload::{FlowSpec, MergedArrivals};
use rustc_hash::FxHashMap;
use std::cell::RefCell;

impl Assembly {
    /// Runs the assembly with streamed flows.
    pub(crate) fn run_streamed(
        &self,
        arrivals: &MergedArrivals,
        options: RunOptions<'_>,
        watch: Watch<'_>,
        sampler: Option<&mut dyn Sampler>,
    ) -> Finished {
        let RunOptions {
            threads,
            on_progress,
            on_flow,
        } = options;
        // The fabric knows neither the user's label of a flow nor its section.
        let origins = RefCell::new(FxHashMap::default());
        let numbered = (0..).map(FlowId).zip(arrivals.clone());
        let mut arrivals = numbered.map(|(id, flow)| {
            let origin = (flow.label, flow.section);
            origins.borrow_mut().insert(id, origin);
            self.transports.fabric_flow(&flow)
        });
        let mut on_done = |id: FlowId, flow: &Flow, outcome: &FlowOutcome| {
            let (label, section) = origins.borrow_mut().remove(&id).unwrap_or_default();
            let start = flow.start.unwrap_or(Time::NEVER);
            let spec = FlowSpec {
                section,
                ..FlowSpec::timed(label, flow.src, flow.dst, flow.bytes, start)
            };
            let ideal = self.ideal_between((flow.src, flow.dst), flow.transport, flow.bytes);
            on_flow(id, &spec, &FlowResult::new(outcome, ideal));
        };
        let traffic = Traffic {
            arrivals: FlowSource::Known(&mut arrivals),
            on_done: &mut on_done,
        };
        // The fabric does not know how many flows will come.
        let flows = self.flow_count();
        let on_progress = &mut |progress| on_progress(RunProgress { flows, ..progress });
        self.simulate((threads, on_progress), watch, sampler, Some(traffic), None)
    }
}

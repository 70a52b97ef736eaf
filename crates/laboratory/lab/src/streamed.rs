//! Runs whose flows come one by one, so that memory holds those under way and not all of the run.
//!
//! A run over 50 ms of a data centre's traffic has a million flows, of which a few thousand are under way at a time. Flows that wait for
//! nothing can be made when their time has come and be forgotten when they are done. Hosts with several NICs need a list of all
//! flows, and so do captures and timelines.

use crate::assemble::Assembly;
use crate::run::{Finished, FlowResult, RunOptions};
use clearway_fabric::{Flow, FlowOutcome, FlowSource, RunProgress, Sampler, Traffic, Watch};
use clearway_units::{FlowId, Time};
use clearway_workload::{FlowSpec, MergedArrivals};
use rustc_hash::FxHashMap;
use std::cell::RefCell;

impl Assembly {
    /// Runs it with flows that come one by one.
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
        // The fabric knows neither how users call a flow nor of which section it is.
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
        self.simulate((threads, on_progress), watch, sampler, Some(traffic))
    }
}

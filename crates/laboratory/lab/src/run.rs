//! Runs of assemblies.

use crate::assemble::Assembly;
use crate::fast_forward::{
    FastForwardReport, Handle, LinkClock, LinkStates, Memory, OnTop, SkipWish, SteadySkips, Wish,
};
use crate::job_result::JobResult;
use crate::rank_events::RankEvent;
use clearway_fabric::{
    FlowOutcome, LinkCounters, LinkPauses, LinkTotals, Program, Reactions, Rounds, RunControl,
    RunDecision, RunProgress, Sampler, Simulation, Stopped, Threads, TracedRoutes, Traffic, Watch,
};
use clearway_transport::{EndpointCounters, FlowStatistics};
use clearway_units::{Bytes, Digest, FlowId, Span, Time};
use clearway_workload::FlowSpec;
use std::sync::Arc;

/// Reason why every packet is simulated.
const LINKS_CHANGE: &str = "links change during the run";

/// Options of a run.
pub struct RunOptions<'a> {
    /// Worker threads.
    pub threads: Threads,
    /// Called after each round of the engine; may stop the run.
    pub on_progress: &'a mut dyn FnMut(RunProgress) -> RunDecision,
    /// Called for each flow, in order of numbers, after the run. If flows are [streamed](Assembly::streaming), called when a flow is done,
    /// and after the run for the other flows.
    pub on_flow: &'a mut dyn FnMut(FlowId, &FlowSpec, &FlowResult),
}

/// Outcome of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FlowResult {
    /// Time at which the message was ready; `None` if its trigger never fired.
    pub started: Option<Time>,
    /// Time at which the receiver had all bytes.
    pub received: Option<Time>,
    /// Time at which the last byte was acknowledged.
    pub finished: Option<Time>,
    /// Completion time of the flow on an idle network.
    pub ideal: Span,
    /// Counters of the sender.
    pub statistics: FlowStatistics,
}

impl FlowResult {
    /// Creates the outcome of a flow whose completion time on an idle network is `ideal`.
    pub(crate) fn new(outcome: &FlowOutcome, ideal: Span) -> Self {
        Self {
            started: outcome.started,
            received: outcome.received,
            finished: outcome.sent,
            ideal,
            statistics: outcome.statistics,
        }
    }

    /// The flow completion time.
    pub fn completion(&self) -> Option<Span> {
        Some(self.finished? - self.started?)
    }
}

/// A finished run.
#[derive(Debug)]
pub struct Finished {
    /// Results by [`FlowId`]; empty if flows were [streamed](Assembly::streaming).
    pub flows: Vec<FlowResult>,
    /// Results of jobs, in the order of the scenario.
    pub jobs: Vec<JobResult>,
    /// Actions of jobs' ranks, by time; empty unless observers follow senders.
    pub rank_events: Vec<RankEvent>,
    /// Time at which the last flow or job was done, or the run was stopped.
    pub simulated: Time,
    /// Reason why the run ended early, if it did.
    pub stopped: Option<Stopped>,
    /// Rounds of the engine.
    pub rounds: Rounds,
    /// Number of threads at the end.
    pub threads: usize,
    /// Counters of links and queues.
    pub links: LinkCounters,
    /// Links paused by flow control, in the order of links.
    pub pauses: Vec<LinkPauses>,
    /// Carried totals of each link; empty in a run [without observers](Watch::Off).
    pub meters: Vec<LinkTotals>,
    /// Counters of endpoints.
    pub endpoints: EndpointCounters,
    /// Counters of endpoints by transport: the transport of `[transport]`, then the sections' own transports, in order.
    pub transports: Vec<EndpointCounters>,
    /// Digest of the outcome. That of a run which may remember calls differs from that of a run which may not.
    pub digest: Digest,
    /// What was simulated and what was remembered, if calls may be remembered.
    pub fast_forward: Option<FastForwardReport>,
}

impl Finished {
    /// The longest completion time; `None` if a flow is not done.
    pub fn longest_completion(&self) -> Option<Span> {
        let completions: Option<Vec<Span>> =
            self.flows.iter().map(FlowResult::completion).collect();
        completions?.into_iter().max()
    }
}

impl Assembly {
    /// A value for each domain of the fabric, such as an observer. A domain is a switch with its hosts.
    pub fn per_domain<T>(&self, make: impl FnMut() -> T) -> Vec<T> {
        self.setup().per_domain(make)
    }

    /// Runs the assembly with the observers of `watch`.
    ///
    /// # Panics
    /// If packets are not conserved, which is a defect of the program, never of the scenario. If observers watch and there is not [one per
    /// domain](Self::per_domain).
    pub fn run(&self, options: RunOptions<'_>, watch: Watch<'_>) -> Finished {
        self.run_sampled(options, watch, None)
    }

    /// As [`run`](Self::run), with a sampler that reads the whole fabric between rounds.
    ///
    /// # Panics
    /// As `run`.
    pub fn run_sampled(
        &self,
        options: RunOptions<'_>,
        watch: Watch<'_>,
        sampler: Option<&mut dyn Sampler>,
    ) -> Finished {
        if let Some(arrivals) = &self.arrivals {
            return self.run_streamed(arrivals, options, watch, sampler);
        }
        let RunOptions {
            threads,
            on_progress,
            on_flow,
        } = options;
        let memory = self.memory();
        let mut on_round = |progress| {
            if let Some(memory) = &memory {
                memory.between_rounds();
            }
            on_progress(progress)
        };
        let control = (threads, &mut on_round as &mut dyn FnMut(_) -> _);
        let no_skips = self.no_skips(&watch);
        let remembers = memory.as_ref().is_some_and(|own| own.has_calls());
        let may_skip = memory.as_ref().filter(|_| !remembers && no_skips.is_none());
        let mut skipped = Default::default();
        let mut finished = if let Some(own) = may_skip {
            let mut skips = OnTop::new(SteadySkips::new(self.skips(own.wish())), sampler);
            let finished = self.simulate(control, watch, Some(&mut skips), None, Some(own));
            skipped = skips.own.result();
            finished
        } else if let Some(own) = memory.as_ref().filter(|_| self.links_change()) {
            let mut clock = OnTop::new(LinkClock::new(Arc::clone(own)), sampler);
            self.simulate(control, watch, Some(&mut clock), None, Some(own))
        } else {
            self.simulate(control, watch, sampler, None, memory.as_ref())
        };
        if let Some(memory) = memory {
            let mut report = memory.report(finished.simulated);
            report.no_skips = no_skips.filter(|_| !remembers);
            let all = self.workload.flows.iter();
            let all = all.map(|flow| flow.bytes.as_u64()).sum();
            report.add_skips(skipped, (Bytes::new(all), finished.simulated));
            let bytes = [report.remembered_bytes, report.skipped.bytes].map(Bytes::as_u64);
            let own = [report.wanted.to_bits(), bytes[0], bytes[1]];
            finished.digest.add(&own);
            finished.fast_forward = Some(report);
        }
        for ((id, flow), result) in self.workload.numbered().zip(&finished.flows) {
            on_flow(id, flow, result);
        }
        finished
    }

    /// Runs the listed flows, and further `traffic`. Jobs take remembered transfer times from `memory`.
    pub(crate) fn simulate<'a>(
        &self,
        (threads, on_progress): (Threads, &'a mut dyn FnMut(RunProgress) -> RunDecision),
        watch: Watch<'_>,
        sampler: Option<&mut dyn Sampler>,
        traffic: Option<Traffic<'a>>,
        memory: Option<&Handle>,
    ) -> Finished {
        let (mut local, global) = self.reactions();
        let reactions = |host| {
            let own = local.remove(&host)?;
            Some(Box::new(own) as Box<dyn Reactions>)
        };
        let follows_senders = watch.interests().senders;
        let setup = self.setup();
        let (mut programs, notes) =
            self.jobs
                .programs(self.seed, self.nic_traffic(), follows_senders, memory);
        let program = |host| {
            let own = programs.remove(&host)?;
            Some(Box::new(own) as Box<dyn Program>)
        };
        let simulation =
            Simulation::by_threads(threads, &setup, reactions, watch).with_programs(program);
        let control = RunControl {
            threads,
            at_most: self.at_most,
            coordinator: self.coordinator(global),
            traffic,
            coordination_delay: self.trigger_delay,
            on_progress,
        };
        let outcome = simulation.run_sampled(control, sampler);
        if let Err(defect) = outcome.check_conservation() {
            panic!("packets are not conserved: {defect}");
        }
        let flows = (0..).map(FlowId).zip(&outcome.flows);
        let flows = flows.map(|(id, flow)| FlowResult::new(flow, self.ideal_completion(id)));
        Finished {
            flows: flows.collect(),
            jobs: self.jobs.results(&notes),
            rank_events: notes.rank_events(),
            simulated: outcome.finished,
            stopped: outcome.stopped,
            rounds: outcome.rounds,
            threads: outcome.threads,
            links: outcome.links,
            pauses: outcome.pauses,
            meters: outcome.meters,
            endpoints: outcome.endpoints,
            transports: outcome.transports,
            digest: outcome.digest,
            fast_forward: None,
        }
    }

    /// Reason why the run skips no time, apart from remembered calls, whose messages would take no packets.
    fn no_skips(&self, watch: &Watch<'_>) -> Option<&'static str> {
        let mut cables = self.topology.cables.iter();
        if self.links_change() {
            return Some(LINKS_CHANGE);
        }
        if cables.any(|cable| cable.packet_loss > 0.0 || cable.bit_error_rate > 0.0) {
            return Some("links lose packets by chance");
        }
        matches!(watch, Watch::Observers(_)).then_some("single packets are recorded")
    }

    /// True if links change during the run.
    fn links_change(&self) -> bool {
        let mut cables = self.topology.cables.iter();
        !self.link_events.is_empty() || cables.any(|cable| !cable.dead_from.is_never())
    }

    /// Settings of skips through steady states.
    fn skips(&self, wish: &Wish) -> SkipWish {
        let networks = self.transports.networks();
        let round_trips = networks.iter().map(|network| network.base_rtt);
        SkipWish {
            error: wish.error,
            verify: wish.verify,
            seed: self.seed,
            round_trip: round_trips.max().unwrap_or(Span::ZERO),
        }
    }

    /// What changes the transfer times of jobs, beside jobs.
    fn beside_jobs(&self) -> Option<&'static str> {
        let connections: usize = self.jobs.all().map(|(_, own)| own.all().count()).sum();
        (self.workload.flows.len() > connections).then_some("the scenario has other flows as well")
    }

    /// Memory of the run, if calls are to be remembered.
    fn memory(&self) -> Option<Handle> {
        let error = self.fast_forward.error?.fraction();
        let wish = Wish {
            error,
            verify: self.fast_forward.verify.fraction(),
            seed: self.seed,
        };
        let setup = self.setup();
        let routes = TracedRoutes::new(&setup);
        let path = |connection| {
            let flow = self.nic_traffic().flow(connection);
            self.routes.paths.between(flow.src, flow.dst)
        };
        let jobs: Vec<_> = self.jobs.all().collect();
        let routes = (&routes, &path as &dyn Fn(_) -> _);
        let links = LinkStates::new(&self.topology.cables, &self.link_events);
        let memory = Memory::new(&jobs, routes, (wish, links), self.beside_jobs());
        Some(Arc::new(memory))
    }
}

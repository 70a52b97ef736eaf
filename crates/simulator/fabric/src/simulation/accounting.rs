//! Accounting of a run: reports of domains, outcomes of flows, and conservation of packets.

use super::control::{RunControl, RunProgress, Stopped};
use super::snapshot::{EachDomain, Visible};
use super::snapshot::{Sampler, Snapshot};
use super::traffic::{Advance, Stream};
use crate::command::{Command, Report, StartFlow};
use crate::domain::FabricDomain;
use crate::flow::{Flow, FlowEvent, FlowMilestone, FlowOutcome};
use crate::link::LinkCounters;
use crate::meter::LinkTotals;
use crate::observer::Observation;
use crate::pause::LinkPauses;
use crate::program::Delivery;
use clearway_engine::{Concluded, Conductor, Domains, Round, Rounds, RunDecision, StopReason};
use clearway_transport::congestion::telemetry::Telemetry;
use clearway_transport::{EndpointCounters, FlowStatistics, OpenFlow};
use clearway_units::{Digest, FlowId, HostId, Span, Time};
use std::sync::Arc;
use std::sync::atomic::{self, AtomicU64};

/// The result of a run.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    /// For each flow.
    pub flows: Vec<FlowOutcome>,
    /// Time at which the last flow or program was done; the end of the last round if some are not.
    pub finished: Time,
    /// Reason why the run ended before all flows and programs were done, if it did.
    pub stopped: Option<Stopped>,
    /// Time at which the time limit ended the run although something was still to happen. If all flows and programs were done by then, the
    /// run is complete all the same: the events that were left, such as duplicate packets or a timer, belonged to none of them.
    pub cut_off: Option<Time>,
    /// Rounds of the engine. The number of shared rounds depends on whether, and since when, there was more than one thread. Of the other
    /// fields, only `threads` depends on that.
    pub rounds: Rounds,
    /// Number of threads in the end.
    pub threads: usize,
    /// Links and queues.
    pub links: LinkCounters,
    /// Endpoints.
    pub endpoints: EndpointCounters,
    /// The same by transport.
    pub transports: Vec<EndpointCounters>,
    /// Packets still in queues and on wires.
    pub in_network: u64,
    /// The links that were paused, in the order of links.
    pub pauses: Vec<LinkPauses>,
    /// Digest over all flows (id, finish, bytes, retransmissions) and all losses.
    pub digest: Digest,
    /// Totals of each link, by link; zeros for links that are down. Empty in a run that [nobody watches](crate::Watch::Off).
    pub meters: Vec<LinkTotals>,
}

impl Outcome {
    /// Checks that every packet sent was delivered, dropped, or is still under way, and that no packet is under way if the run ended by
    /// itself and no link is paused.
    ///
    /// # Errors
    /// Names the sums that differ: a defect of Clearway, not of the scenario.
    pub fn check_conservation(&self) -> Result<(), String> {
        let LinkCounters {
            injected,
            delivered,
            dropped,
            corrupted,
            trimmed,
            ..
        } = self.links;
        let arrived = self.endpoints.trimmed_received;
        let negative = self.endpoints.lost_trimmed;
        if arrived > trimmed || negative > arrived {
            return Err(format!(
                "{trimmed} packets were trimmed, but {arrived} arrived so, and {negative} were reported lost for it"
            ));
        }
        if injected != delivered + dropped + corrupted + self.in_network {
            return Err(format!(
                "{injected} packets sent, but {delivered} delivered, {dropped} dropped, {corrupted} corrupted and {} in flight",
                self.in_network
            ));
        }
        let interrupted = self.stopped == Some(Stopped::Interrupted);
        let ended_by_itself = self.cut_off.is_none() && !interrupted;
        let paused = self.pauses.iter().any(|pauses| pauses.at_the_end);
        if ended_by_itself && self.in_network > 0 && !paused {
            return Err(format!(
                "the run is over, but {} packets are in flight",
                self.in_network
            ));
        }
        let EndpointCounters {
            data_sent,
            sacks_sent,
            probes_sent,
            notifications_sent,
            rate_controls_sent,
            rate_controls_reflected,
            pulls_sent,
            ..
        } = self.endpoints;
        let rate_controls = rate_controls_sent + rate_controls_reflected;
        let control = sacks_sent + probes_sent + notifications_sent + rate_controls + pulls_sent;
        if injected != data_sent + control {
            return Err(format!(
                "NICs sent {injected} packets, but transports {data_sent} data, {sacks_sent} acknowledgements, {probes_sent} probes, {notifications_sent} notifications, {pulls_sent} pulls and {rate_controls} control packets of rate allocation"
            ));
        }
        Ok(())
    }
}

impl FlowOutcome {
    /// Notes that the flow has reached a milestone; false if it had reached it before, which changes nothing.
    pub(super) fn note(&mut self, event: FlowEvent, statistics: FlowStatistics) -> bool {
        let at = match event.milestone {
            FlowMilestone::Started => &mut self.started,
            FlowMilestone::Received => &mut self.received,
            FlowMilestone::Sent => &mut self.sent,
            FlowMilestone::CreditRequested | FlowMilestone::CreditReturned => return true,
        };
        if at.is_some() {
            return false;
        }
        *at = Some(event.time);
        if event.milestone == FlowMilestone::Sent {
            self.statistics = statistics;
        }
        true
    }
}

/// Accounting of flows, and relay to the coordinator.
pub(super) struct Accounting<'a, 's> {
    /// Outcomes of the flows in the table.
    flows: Vec<FlowOutcome>,
    /// The other flows.
    stream: Option<Stream<'a>>,
    /// Digest of the stream's flows that are done.
    streamed: Digest,
    sent: usize,
    last_sent: Time,
    /// End of the last round, by the clock of packets.
    now: Time,
    /// Time that the sampler has [skipped](Snapshot::skip): the clock of the run is ahead by so much.
    skipped: Span,
    /// Domains do not know yet that events that wait for the clock come earlier.
    are_to_wake: bool,
    interrupted: bool,
    /// The driver has ended the run.
    abandoned: bool,
    cut_off: Option<Time>,
    delay: Span,
    /// The longest that a round can be.
    lookahead: Span,
    flow_sources: Arc<[Flow]>,
    domain_of_host: Vec<u32>,
    hops: Arc<AtomicU64>,
    control: RunControl<'a>,
    sampler: Option<&'s mut (dyn Sampler + 's)>,
}

impl<'a, 's> Accounting<'a, 's> {
    pub(super) fn new(
        flows: Arc<[Flow]>,
        domain_of_host: Vec<u32>,
        hops: Arc<AtomicU64>,
        delay: Span,
        mut control: RunControl<'a>,
        lookahead: Span,
        sampler: Option<&'s mut (dyn Sampler + 's)>,
    ) -> Self {
        let traffic = control.traffic.take();
        Self {
            flows: vec![FlowOutcome::default(); flows.len()],
            stream: traffic.map(|traffic| Stream::new(traffic, flows.len(), lookahead)),
            streamed: Digest::default(),
            sent: 0,
            last_sent: Time::ZERO,
            now: Time::ZERO,
            skipped: Span::ZERO,
            are_to_wake: false,
            interrupted: false,
            abandoned: false,
            cut_off: None,
            delay,
            lookahead,
            flow_sources: flows,
            domain_of_host,
            hops,
            control,
            sampler,
        }
    }

    /// Ends the accounting.
    pub(super) fn close<O: Observation, T: Telemetry>(
        mut self,
        concluded: Concluded<FabricDomain<O, T>>,
    ) -> Outcome {
        let Concluded {
            ending,
            mut domains,
            rounds,
            threads,
        } = concluded;
        let mut links = LinkCounters::default();
        let mut endpoints = EndpointCounters::default();
        let mut transports = Vec::new();
        for domain in &domains {
            links.merge(&domain.counters);
            for host in &domain.hosts {
                for (transport, endpoint) in host.endpoints().enumerate() {
                    endpoints.merge(endpoint.counters());
                    if transport == transports.len() {
                        transports.push(EndpointCounters::default());
                    }
                    transports[transport].merge(endpoint.counters());
                    endpoint.for_each_open(|queue_pair| self.note_unfinished(queue_pair));
                }
            }
        }
        let messages: u64 = domains.iter().map(FabricDomain::in_network).sum();
        let gone = links.pause_frames_received + links.pause_frames_lost;
        let in_network = messages - (links.pause_frames - gone);
        let programs = programs_over(&domains).filter(|_| self.sent == self.known());
        let stopped = self.stopped(ending, in_network, programs.is_some());
        let finished = match (stopped, programs) {
            (None, Some(programs)) => self.last_sent.max(programs),
            _ => self.now + self.skipped,
        };
        let end = finished.earlier_by(self.skipped);
        if let Some(sampler) = &mut self.sampler {
            let mut each = |look: &mut dyn FnMut(&mut dyn Visible)| {
                domains.iter_mut().for_each(|domain| look(domain));
            };
            let mut last = Snapshot::new(end, (None, Time::NEVER), &mut each);
            sampler.on_sample(finished, &mut last);
        }
        let digest = self.digest(links.losses);
        Outcome {
            finished,
            pauses: pauses(&domains, self.cut_off.unwrap_or(end)),
            meters: meters(&mut domains),
            stopped,
            cut_off: self.cut_off.map(|at| at + self.skipped),
            rounds,
            threads,
            digest,
            in_network,
            flows: self.flows,
            links,
            endpoints,
            transports,
        }
    }

    /// Reason why a run ended early, with so many packets in the network; none if all flows and programs `are_over`.
    fn stopped(&self, ending: StopReason, in_network: u64, are_over: bool) -> Option<Stopped> {
        match ending {
            // A pause storm without end may hold packets that nobody waits for.
            StopReason::Idle if are_over => None,
            StopReason::Idle if in_network > 0 => Some(Stopped::Deadlocked),
            StopReason::Idle => (!are_over).then_some(Stopped::Stuck),
            StopReason::Stopped if self.interrupted => Some(Stopped::Interrupted),
            StopReason::Stopped if self.abandoned => (!are_over).then_some(Stopped::Interrupted),
            StopReason::Stopped => (!are_over).then_some(Stopped::AtMost),
        }
    }

    /// Digest of all flows, and of the losses of links.
    fn digest(&mut self, losses: Digest) -> Digest {
        let mut digest = losses;
        digest.merge(self.streamed);
        for (id, (outcome, flow)) in self.flows.iter().zip(&*self.flow_sources).enumerate() {
            add_flow(&mut digest, FlowId(id as u32), flow, outcome);
        }
        if let Some(stream) = self.stream.take() {
            stream.close(|id, flow, outcome| add_flow(&mut digest, id, flow, outcome));
        }
        digest
    }

    /// Lets the sampler look before the round whose first event is at `start`.
    fn sample(&mut self, start: Time, domains: EachDomain<'_>) {
        let Some(due) = self.sampler.as_ref().map(|sampler| sampler.due()) else {
            return;
        };
        if due <= start + self.skipped {
            // All is as it was when the last round ended.
            self.look(due.max(self.now + self.skipped), start, domains);
            let due = self.sampler.as_ref().map(|sampler| sampler.due());
            if due.is_some_and(|due| due <= start + self.skipped) {
                // Nothing has happened since: one look for the whole gap.
                self.look(start + self.skipped, start, domains);
            }
        }
    }

    /// Lets the sampler look at `now`, by the clock of the run, before the round whose first event is at `start`.
    fn look(&mut self, now: Time, start: Time, domains: EachDomain<'_>) {
        let stream = self.stream.as_ref();
        let next = stream.map_or(Time::NEVER, Stream::next_start);
        let next = next.min(self.control.at_most).earlier_by(self.skipped);
        let round_end = start.saturating_add(self.lookahead);
        if let Some(sampler) = &mut self.sampler {
            let packet_time = now.earlier_by(self.skipped);
            let mut snapshot = Snapshot::new(packet_time, (Some(round_end), next), domains);
            sampler.on_sample(now, &mut snapshot);
            let skipped = snapshot.skipped();
            self.skipped += skipped;
            self.are_to_wake |= !skipped.is_zero();
        }
    }

    /// Flows that are done or will be.
    fn known(&self) -> usize {
        let table = self.flows.len();
        let streamed = self.stream.as_ref().map(|stream| stream.known(table));
        table + streamed.unwrap_or(0)
    }

    /// Notes where a flow has got; returns the flow, unless it has been there before.
    fn note(&mut self, event: FlowEvent, statistics: FlowStatistics) -> Option<Flow> {
        let flow = if let Some(outcome) = self.flows.get_mut(event.flow.index()) {
            if !outcome.note(event, statistics) {
                return None;
            }
            self.flow_sources[event.flow.index()]
        } else {
            let stream = self.stream.as_mut();
            let stream = stream.expect("a flow is of the table or the stream");
            let (flow, outcome) = stream.note(event, statistics)?;
            if let Some(outcome) = outcome {
                add_flow(&mut self.streamed, event.flow, &flow, &outcome);
            }
            flow
        };
        if event.milestone == FlowMilestone::Sent {
            self.sent += 1;
            self.last_sent = self.last_sent.max(event.time);
        }
        Some(flow)
    }

    /// Notes the statistics of a queue pair whose flow is not over when the run ends.
    fn note_unfinished(&mut self, queue_pair: &OpenFlow<'_>) {
        let id = queue_pair.flow();
        let outcome = match self.flows.get_mut(id.index()) {
            Some(outcome) => Some(outcome),
            None => self
                .stream
                .as_mut()
                .and_then(|stream| stream.outcome_mut(id)),
        };
        if let Some(outcome) = outcome.filter(|outcome| outcome.sent.is_none()) {
            outcome.statistics.merge(&queue_pair.progress().statistics);
        }
    }

    /// Orders flows of the stream when all rounds before `now` are over, each from the domain of its host.
    pub(super) fn order_stream(&mut self, now: Time, mut order: impl FnMut(usize, StartFlow)) {
        if let Some(stream) = &mut self.stream {
            let (domain_of_host, skipped) = (&self.domain_of_host, self.skipped);
            stream.order(now + skipped, |start| {
                let at = start.at.earlier_by(skipped);
                let start = StartFlow { at, ..start };
                order(domain_of_host[start.flow.src.index()] as usize, start);
            });
        }
    }

    /// Shows an event to the coordinator and commands the starts of the flows that it answers with.
    fn coordinate(&mut self, event: FlowEvent, commands: &mut Vec<(usize, Command)>) {
        let Some(coordinator) = &mut self.control.coordinator else {
            return;
        };
        let mut start = Vec::new();
        coordinator.on_event(event, &mut start);
        let at = event.time.earlier_by(self.skipped) + self.delay;
        commands.extend(start.into_iter().map(|id| {
            let flow = self.flow_sources[id.index()];
            let domain = self.domain_of_host[flow.src.index()] as usize;
            (domain, Command::Start(StartFlow { at, id, flow }))
        }));
    }

    fn on_flow(
        &mut self,
        event: FlowEvent,
        statistics: FlowStatistics,
        commands: &mut Vec<(usize, Command)>,
    ) {
        let Some(flow) = self.note(event, statistics) else {
            return;
        };
        if let Some(sampler) = &mut self.sampler {
            sampler.on_flow(event, &flow);
        }
        if let Some(stream) = &mut self.stream {
            stream.tell(event);
        }
        self.coordinate(event, commands);
    }

    /// Passes on a delivery to another NIC.
    fn forward(
        &self,
        (time, after): (Time, Option<Span>),
        to: HostId,
        delivery: Delivery,
    ) -> (usize, Command) {
        let domain = self.domain_of_host[to.index()] as usize;
        // Rounds that are over cannot change.
        let at = (time + after.unwrap_or(self.delay)).max(self.now);
        (domain, Command::Delivery { at, to, delivery })
    }
}

impl<O: Observation, T: Telemetry> Conductor<FabricDomain<O, T>> for Accounting<'_, '_> {
    fn plan_round(&mut self, next: Time, commands: &mut Vec<(usize, Command)>) -> Time {
        let Some(stream) = &mut self.stream else {
            return Time::NEVER;
        };
        let domain_of_host = &self.domain_of_host;
        let advance = stream.drive(self.now, next, |start| {
            let domain = domain_of_host[start.flow.src.index()] as usize;
            commands.push((domain, Command::Start(start)));
        });
        match advance {
            Advance::Until(horizon) => horizon,
            Advance::ToTheEnd => Time::NEVER,
            Advance::Stop => {
                self.abandoned = true;
                Time::NEVER
            }
        }
    }

    fn before_round(
        &mut self,
        start: Time,
        domains: &Domains<'_, FabricDomain<O, T>>,
    ) -> RunDecision {
        if self.abandoned {
            self.cut_off = Some(self.now);
            return RunDecision::Stop;
        }
        self.sample(start, &mut |look| domains.for_each(|domain| look(domain)));
        let at_most = self.control.at_most.earlier_by(self.skipped);
        if start >= at_most {
            self.now = self.now.max(at_most);
            self.cut_off = Some(self.now);
            return RunDecision::Stop;
        }
        RunDecision::Continue
    }

    fn between_rounds(
        &mut self,
        round: &Round,
        reports: &mut Vec<Report>,
        commands: &mut Vec<(usize, Command)>,
    ) -> RunDecision {
        self.now = round.end();
        for report in reports.iter() {
            match *report {
                Report::Flow { event, statistics } => {
                    let time = event.time + self.skipped;
                    self.on_flow(FlowEvent { time, ..event }, statistics, commands);
                }
                Report::Delivery {
                    time,
                    after,
                    to,
                    delivery,
                } => {
                    if let Delivery::Arrived(flow, _, bytes) = delivery
                        && let Some(sampler) = &mut self.sampler
                    {
                        sampler.on_known_transfer(flow, bytes);
                    }
                    commands.push(self.forward((time, after), to, delivery));
                }
            }
        }
        self.order_stream(round.end(), |domain, order| {
            commands.push((domain, Command::Start(order)));
        });
        if std::mem::take(&mut self.are_to_wake) {
            let domains = self.domain_of_host.iter().copied().max().unwrap_or(0);
            commands.extend((0..=domains as usize).map(|domain| (domain, Command::Wake)));
        }
        let progress = RunProgress {
            now: round.end() + self.skipped,
            flows_sent: self.sent,
            flows: self.known(),
            hops: self.hops.load(atomic::Ordering::Relaxed),
        };
        if (self.control.on_progress)(progress) == RunDecision::Stop {
            self.interrupted = true;
            return RunDecision::Stop;
        }
        RunDecision::Continue
    }
}

/// Time at which the last program was done; `None` if one is not.
fn programs_over<O: Observation, T: Telemetry>(domains: &[FabricDomain<O, T>]) -> Option<Time> {
    let mut hosts = domains.iter().flat_map(|domain| &domain.hosts);
    hosts.try_fold(Time::ZERO, |last, host| {
        Some(last.max(host.program_over()?))
    })
}

/// Totals of each link, by link; empty in a run that nobody watches.
fn meters<O: Observation, T: Telemetry>(domains: &mut [FabricDomain<O, T>]) -> Vec<LinkTotals> {
    let mut meters = Vec::new();
    if O::METERS_LINKS {
        for domain in domains {
            domain.for_each_link(Time::NEVER, &mut |view| {
                let index = view.link.0 as usize;
                if index >= meters.len() {
                    meters.resize(index + 1, LinkTotals::default());
                }
                meters[index] = view.totals();
            });
        }
    }
    meters
}

/// All links that were paused, in the order of links.
fn pauses<O: Observation, T: Telemetry>(
    domains: &[FabricDomain<O, T>],
    end: Time,
) -> Vec<LinkPauses> {
    let mut pauses: Vec<LinkPauses> = domains
        .iter()
        .flat_map(|domain| {
            let hosts = domain.hosts.iter().filter_map(|host| host.pauses(end));
            hosts.chain(domain.switch.pauses(end))
        })
        .collect();
    pauses.sort_unstable_by_key(|pauses| pauses.link);
    pauses
}

/// Adds a flow to the digest of a run: its number, finish time, bytes and retransmissions. Losses are in it as well.
fn add_flow(digest: &mut Digest, id: FlowId, flow: &Flow, outcome: &FlowOutcome) {
    let finish = outcome.sent.unwrap_or(Time::NEVER);
    digest.add(&[
        id.index() as u64,
        finish.as_ps(),
        flow.bytes.as_u64(),
        outcome.statistics.retransmitted,
    ]);
}

//! The books of a run: what domains report, what became of flows, and whether it adds up.

use super::snapshot::{EachDomain, Visible};
use super::{Flow, FlowEvent, Moment, Progress, RunControl, Sampler, Snapshot, Stopped};
use crate::domain::FabricDomain;
use crate::link::LinkCounters;
use crate::meter::LinkTotals;
use crate::observer::Observer;
use crate::pause::LinkPauses;
use clearway_engine::{Conductor, Domains, Ending, Round, Verdict};
use clearway_transport::telemetry::Telemetry;
use clearway_transport::{EndpointCounters, FlowStatistics};
use clearway_units::{Digest, FlowId, Span, Time};
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicU64};

/// What domains tell between rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) event: FlowEvent,
    pub(crate) statistics: FlowStatistics,
}

impl Ord for Report {
    fn cmp(&self, other: &Self) -> Ordering {
        self.event.cmp(&other.event)
    }
}

impl PartialOrd for Report {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A flow to start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartOrder {
    pub(crate) flow: FlowId,
    pub(crate) at: Time,
}

/// What became of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowOutcome {
    /// When its message was ready.
    pub started: Option<Time>,
    /// When the receiver had everything.
    pub received: Option<Time>,
    /// When the last byte was acknowledged at the sender: start to here is the flow completion time.
    pub sent: Option<Time>,
    /// What its sender counted.
    pub statistics: FlowStatistics,
}

/// The result of a run.
#[derive(Debug)]
pub struct Outcome<O> {
    /// For each flow.
    pub flows: Vec<FlowOutcome>,
    /// When the last flow was done; the end of the last round if some are not.
    pub finished: Time,
    /// Why the run ended before all flows were done, if it did.
    pub stopped: Option<Stopped>,
    /// When the time limit ended the run although something was still to happen. If all flows were done by then, the run is
    /// complete all the same: what was left, such as packets sent twice or a timer, was nobody's.
    pub cut_off: Option<Time>,
    /// Rounds of the engine.
    pub rounds: u64,
    /// Links and queues.
    pub links: LinkCounters,
    /// Endpoints.
    pub endpoints: EndpointCounters,
    /// Packets still in queues and on wires.
    pub in_network: u64,
    /// The links that were paused, in the order of links.
    pub pauses: Vec<LinkPauses>,
    /// Digest over all flows (id, finish, bytes, retransmissions) and all losses.
    pub digest: Digest,
    /// What each link has carried, by link; zeros for links that are down. Empty unless the observer
    /// [asks for it](Observer::METERS_LINKS).
    pub meters: Vec<LinkTotals>,
    /// One for each domain.
    pub observers: Vec<O>,
}

impl<O> Outcome<O> {
    /// Every packet sent was delivered, dropped, or is still under way; and none is if the run ended by itself.
    ///
    /// # Errors
    /// Says what does not add up: that is our defect, not the user's.
    pub fn check_conservation(&self) -> Result<(), String> {
        let LinkCounters {
            injected,
            delivered,
            dropped,
            corrupted,
            ..
        } = self.links;
        if injected != delivered + dropped + corrupted + self.in_network {
            return Err(format!(
                "{injected} packets sent, but {delivered} delivered, {dropped} dropped, {corrupted} corrupted and {} under way",
                self.in_network
            ));
        }
        let interrupted = self.stopped == Some(Stopped::Interrupted);
        let ended_by_itself = self.cut_off.is_none() && !interrupted;
        let paused = self.pauses.iter().any(|pauses| pauses.at_the_end);
        if ended_by_itself && self.in_network > 0 && !paused {
            return Err(format!(
                "the run is over, but {} packets are under way",
                self.in_network
            ));
        }
        let EndpointCounters {
            data_sent,
            sacks_sent,
            probes_sent,
            notifications_sent,
            ..
        } = self.endpoints;
        if injected != data_sent + sacks_sent + probes_sent + notifications_sent {
            return Err(format!(
                "NICs sent {injected} packets, but transports {data_sent} data, {sacks_sent} acknowledgements, {probes_sent} probes and {notifications_sent} notifications"
            ));
        }
        Ok(())
    }
}

/// Keeps the books of flows and relays to the coordinator.
pub(super) struct Bookkeeper<'a, 's> {
    flows: Vec<FlowOutcome>,
    sent: usize,
    last_sent: Time,
    now: Time,
    rounds: u64,
    stopped: Option<Stopped>,
    cut_off: Option<Time>,
    delay: Span,
    flow_sources: Arc<[Flow]>,
    domain_of_host: Vec<u32>,
    hops: Arc<AtomicU64>,
    control: RunControl<'a>,
    sampler: Option<&'s mut (dyn Sampler + 's)>,
}

impl<'a, 's> Bookkeeper<'a, 's> {
    pub(super) fn new(
        flows: Arc<[Flow]>,
        domain_of_host: Vec<u32>,
        hops: Arc<AtomicU64>,
        delay: Span,
        control: RunControl<'a>,
        sampler: Option<&'s mut (dyn Sampler + 's)>,
    ) -> Self {
        Self {
            flows: vec![FlowOutcome::default(); flows.len()],
            sent: 0,
            last_sent: Time::ZERO,
            now: Time::ZERO,
            rounds: 0,
            stopped: None,
            cut_off: None,
            delay,
            flow_sources: flows,
            domain_of_host,
            hops,
            control,
            sampler,
        }
    }

    /// Closes the books.
    pub(super) fn close<O: Observer, T: Telemetry>(
        mut self,
        ending: Ending,
        mut domains: Vec<FabricDomain<O, T>>,
    ) -> Outcome<O> {
        let mut links = LinkCounters::default();
        let mut endpoints = EndpointCounters::default();
        for domain in &domains {
            links.merge(&domain.counters);
            for host in &domain.hosts {
                endpoints.merge(host.endpoint().counters());
            }
        }
        let letters: u64 = domains.iter().map(FabricDomain::in_network).sum();
        let in_network = letters - (links.pause_frames - links.pause_frames_received);
        let stopped = match ending {
            Ending::Idle if in_network > 0 => Some(Stopped::Deadlocked),
            Ending::Idle => (self.sent < self.flows.len()).then_some(Stopped::Stuck),
            Ending::Stopped => self.stopped,
        };
        let finished = if stopped.is_some() {
            self.now
        } else {
            self.last_sent
        };
        if let Some(sampler) = &mut self.sampler {
            let mut each = |look: &mut dyn FnMut(&mut dyn Visible)| {
                domains.iter_mut().for_each(|domain| look(domain));
            };
            sampler.on_sample(finished, &mut Snapshot::new(&mut each));
        }
        Outcome {
            finished,
            pauses: pauses(&domains, self.cut_off.unwrap_or(finished)),
            meters: meters(&mut domains),
            stopped,
            cut_off: self.cut_off,
            rounds: self.rounds,
            digest: digest(&self.flows, &self.flow_sources, links.losses),
            in_network,
            flows: self.flows,
            links,
            endpoints,
            observers: domains.into_iter().map(|domain| domain.observer).collect(),
        }
    }

    /// Lets the sampler look before the round whose first event is at `start`.
    fn sample(&mut self, start: Time, domains: EachDomain<'_>) {
        let Some(sampler) = &mut self.sampler else {
            return;
        };
        if sampler.due() <= start {
            // All is as it was when the last round ended.
            let now = sampler.due().max(self.now);
            sampler.on_sample(now, &mut Snapshot::new(domains));
        }
        if sampler.due() <= start {
            // Nothing has happened since: one look for the whole gap.
            sampler.on_sample(start, &mut Snapshot::new(domains));
        }
    }

    fn note(&mut self, report: &Report) {
        let FlowEvent { time, flow, moment } = report.event;
        let outcome = &mut self.flows[flow.index()];
        match moment {
            Moment::Started => outcome.started = Some(time),
            Moment::Received => outcome.received = Some(time),
            Moment::Sent => {
                assert!(outcome.sent.is_none(), "flow {flow} is done twice");
                outcome.sent = Some(time);
                outcome.statistics = report.statistics;
                self.sent += 1;
                self.last_sent = self.last_sent.max(time);
            }
        }
    }
}

impl<O: Observer, T: Telemetry> Conductor<FabricDomain<O, T>> for Bookkeeper<'_, '_> {
    fn before_round(&mut self, start: Time, domains: &Domains<'_, FabricDomain<O, T>>) -> Verdict {
        self.sample(start, &mut |look| domains.for_each(|domain| look(domain)));
        if start >= self.control.at_most {
            self.now = self.now.max(self.control.at_most);
            self.cut_off = Some(self.now);
            self.stopped = (self.sent < self.flows.len()).then_some(Stopped::AtMost);
            return Verdict::Stop;
        }
        Verdict::Continue
    }

    fn between_rounds(
        &mut self,
        round: &Round,
        reports: &mut Vec<Report>,
        orders: &mut Vec<(usize, StartOrder)>,
    ) -> Verdict {
        self.now = round.end();
        self.rounds += 1;
        let mut start = Vec::new();
        for report in reports.iter() {
            self.note(report);
            if let Some(sampler) = &mut self.sampler {
                sampler.on_flow(report.event);
            }
            if let Some(coordinator) = &mut self.control.coordinator {
                coordinator.on_event(report.event, &mut start);
                let at = report.event.time + self.delay;
                orders.extend(start.drain(..).map(|flow| {
                    let source = self.flow_sources[flow.index()].src;
                    (
                        self.domain_of_host[source.index()] as usize,
                        StartOrder { flow, at },
                    )
                }));
            }
        }
        let progress = Progress {
            now: round.end(),
            flows_sent: self.sent,
            flows: self.flows.len(),
            hops: self.hops.load(atomic::Ordering::Relaxed),
        };
        if (self.control.on_progress)(progress) == Verdict::Stop {
            self.stopped = Some(Stopped::Interrupted);
            return Verdict::Stop;
        }
        Verdict::Continue
    }
}

/// What each link has carried, by link.
fn meters<O: Observer, T: Telemetry>(domains: &mut [FabricDomain<O, T>]) -> Vec<LinkTotals> {
    let mut meters = Vec::new();
    if O::METERS_LINKS {
        for domain in domains {
            domain.for_each_link(&mut |link, meter, _| {
                let index = link.0 as usize;
                if index >= meters.len() {
                    meters.resize(index + 1, LinkTotals::default());
                }
                meters[index] = meter.totals();
            });
        }
    }
    meters
}

/// All links that were paused, in the order of links.
fn pauses<O: Observer, T: Telemetry>(domains: &[FabricDomain<O, T>], end: Time) -> Vec<LinkPauses> {
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

/// The digest of a run: every flow's number, finish time, bytes and retransmissions, and every loss.
fn digest(outcomes: &[FlowOutcome], flows: &[Flow], losses: Digest) -> Digest {
    let mut digest = losses;
    for (id, (outcome, flow)) in outcomes.iter().zip(flows).enumerate() {
        let finish = outcome.sent.unwrap_or(Time::NEVER);
        digest.add(&[
            id as u64,
            finish.as_ps(),
            flow.bytes.as_u64(),
            outcome.statistics.retransmitted,
        ]);
    }
    digest
}

//! Putting a fabric together, running it and taking stock.

use crate::domain::FabricDomain;
use crate::host::Host;
use crate::link::{Arrival, Link, LinkCounters};
use crate::observer::Observer;
use crate::order::Ticket;
use crate::port::{Port, QueueRules, SwitchParameters};
use crate::switch::{Switch, SwitchParts};
use crate::topology::{Attachment, LinkId, Routes, Topology};
use clearway_engine::{
    Conductor, Ending, Engine, Inlet, Mailroom, Outlet, PostOffice, Round, Verdict,
};
use clearway_transport::{Endpoint, EndpointCounters, FlowStatistics, Profile};
use clearway_units::{
    Bytes, Digest, FlowId, HostId, Purpose, RandomStream, Span, Time, WireClock, mix64,
};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicU64};

/// A flow of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Who sends.
    pub src: HostId,
    /// Who receives.
    pub dst: HostId,
    /// How much.
    pub bytes: Bytes,
    /// When; `None`: when something [reacts](Reactions) with it.
    pub start: Option<Time>,
}

/// A moment in the life of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moment {
    /// The message is ready at the sender.
    Started,
    /// The receiver has every packet.
    Received,
    /// The sender has every acknowledgement.
    Sent,
}

/// A flow has got somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowEvent {
    /// When.
    pub time: Time,
    /// Which.
    pub flow: FlowId,
    /// Where.
    pub moment: Moment,
}

/// Starts flows in answer to events of other flows.
///
/// One that belongs to a host sees the events of that host (what its flows sent, what it received) and starts flows of that
/// host at the same instant. One that belongs to the whole run sees all events and starts flows anywhere, but later by
/// [`RunControl::coordination_delay`]: nothing in a network happens elsewhere at once.
pub trait Reactions: Send {
    /// `event` has happened; flows to start are pushed to `start`.
    fn on_event(&mut self, event: FlowEvent, start: &mut Vec<FlowId>);
}

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

/// Everything that a run is made of.
#[derive(Debug, Clone)]
pub struct Setup<'a> {
    /// The fabric.
    pub topology: &'a Topology,
    /// Its routes.
    pub routes: Routes,
    /// All flows; flow `i` has [`FlowId`] `i`.
    pub flows: Arc<[Flow]>,
    /// The transport of all hosts.
    pub profile: Arc<Profile>,
    /// What switches do.
    pub switch: SwitchParameters,
    /// Seed of all random streams.
    pub seed: u64,
}

/// A fabric ready to run, watched by one `O` per domain.
pub struct Simulation<O> {
    domains: Vec<(FabricDomain<O>, Time)>,
    mailrooms: Vec<Arc<Mailroom>>,
    lookahead: Span,
    /// The shortest delay of a link; rounds may be shorter still.
    shortest_delay: Span,
    flows: Arc<[Flow]>,
    /// The domain of each host.
    domain_of_host: Vec<u32>,
    hops: Arc<AtomicU64>,
}

/// The ends of all links while a fabric is put together.
struct Ends {
    outlets: Vec<Option<Outlet<Arrival>>>,
    inlets: Vec<Option<Inlet<Arrival>>>,
}

impl<O: Observer> Simulation<O> {
    /// Puts a fabric together. `reactions` may give each host something that starts further flows; `observer` makes the
    /// observer of each domain.
    pub fn new(
        setup: &Setup<'_>,
        mut reactions: impl FnMut(HostId) -> Option<Box<dyn Reactions>>,
        mut observer: impl FnMut() -> O,
    ) -> Self {
        let topology = setup.topology;
        let node_ports = topology.ports();
        let (domain_of_host, hosts_of_switch) = partition(topology, &node_ports);
        let (mut ends, mailrooms) = connect(topology, &node_ports, &hosts_of_switch);
        let attachments: Arc<[_]> = setup.routes.attachments.clone().into();
        let hops = Arc::new(AtomicU64::new(0));
        let mut domains = Vec::new();
        for (index, members) in hosts_of_switch.iter().enumerate() {
            let host = |&host: &HostId| {
                let up = node_ports[host.index()][0];
                build_host(
                    setup,
                    &mut ends,
                    host,
                    up,
                    reactions(host),
                    O::TRACES_TRANSPORT,
                )
            };
            let hosts: Vec<Host> = members.iter().map(host).collect();
            let node = topology.switch_node(index);
            let links = &node_ports[node.0 as usize];
            let switch = build_switch(setup, &mut ends, index, links, Arc::clone(&attachments));
            domains.push(FabricDomain {
                flows: Arc::clone(&setup.flows),
                host_next: vec![Time::NEVER; hosts.len()],
                hosts,
                switch,
                counters: LinkCounters::default(),
                observer: observer(),
                hops: Arc::clone(&hops),
            });
        }
        schedule_starts(&mut domains, setup, &domain_of_host);
        let first = |domain: &FabricDomain<O>| {
            domain
                .host_next
                .iter()
                .copied()
                .min()
                .unwrap_or(Time::NEVER)
        };
        Self {
            domains: domains
                .into_iter()
                .map(|domain| {
                    let at = first(&domain);
                    (domain, at)
                })
                .collect(),
            mailrooms,
            lookahead: lookahead(setup),
            shortest_delay: topology.lookahead(),
            flows: Arc::clone(&setup.flows),
            domain_of_host,
            hops,
        }
    }

    /// Runs until nothing is left to happen, or until `control` stops it.
    pub fn run(self, control: RunControl<'_>) -> Outcome<O> {
        let mut engine = Engine::new(
            self.lookahead,
            control.threads,
            self.domains,
            self.mailrooms,
        );
        let delay = control
            .coordination_delay
            .unwrap_or(Span::ZERO)
            .max(self.shortest_delay);
        let mut conductor = Bookkeeper {
            flows: vec![FlowOutcome::default(); self.flows.len()],
            sent: 0,
            last_sent: Time::ZERO,
            now: Time::ZERO,
            rounds: 0,
            stopped: None,
            delay,
            flow_sources: self.flows,
            domain_of_host: self.domain_of_host,
            hops: self.hops,
            control,
        };
        let ending = engine.run(&mut conductor);
        let stopped = match ending {
            Ending::Idle => (conductor.sent < conductor.flows.len()).then_some(Stopped::Stuck),
            Ending::Stopped => conductor.stopped,
        };
        take_stock(conductor, engine.into_domains(), stopped)
    }
}

/// The length of a round: the shortest delay, but no longer than an inlet can count the packets of.
fn lookahead(setup: &Setup<'_>) -> Span {
    let topology = setup.topology;
    let smallest = Bytes::new(setup.profile.network.header.into());
    let fastest = topology
        .links_up()
        .map(|link| topology.cables[link.cable()].rate)
        .max();
    let countable = fastest.map_or(Span::MAX, |rate| {
        rate.span_of(smallest).max(Span::from_ps(1)) * (Ticket::MOST_LETTERS / 2)
    });
    topology
        .lookahead()
        .min(countable)
        .min(Span::from_ps(Ticket::LONGEST_ROUND_PS - 1))
}

/// The domain of each host, and the hosts of each switch: a domain is a switch with its hosts.
fn partition(topology: &Topology, node_ports: &[Vec<LinkId>]) -> (Vec<u32>, Vec<Vec<HostId>>) {
    let mut hosts_of_switch = vec![Vec::new(); topology.switches.len()];
    let domain_of_host = (0..topology.hosts).map(|host| {
        let (_, to) = topology.link_ends(node_ports[host as usize][0]);
        let switch = topology
            .switch_index(to)
            .expect("routing has checked that hosts hang on switches");
        hosts_of_switch[switch].push(HostId(host));
        switch as u32
    });
    (domain_of_host.collect(), hosts_of_switch)
}

/// A mailbox for every link. The inlets of a domain are those of its hosts, then those of its switch by port.
fn connect(
    topology: &Topology,
    node_ports: &[Vec<LinkId>],
    hosts_of_switch: &[Vec<HostId>],
) -> (Ends, Vec<Arc<Mailroom>>) {
    let switch_ports = |index: usize| &node_ports[topology.switch_node(index).0 as usize];
    let counts: Vec<usize> = (0..topology.switches.len())
        .map(|index| hosts_of_switch[index].len() + switch_ports(index).len())
        .collect();
    let mut post = PostOffice::new(&counts);
    let links = topology.cables.len() * 2;
    let mut ends = Ends {
        outlets: (0..links).map(|_| None).collect(),
        inlets: (0..links).map(|_| None).collect(),
    };
    for (index, hosts) in hosts_of_switch.iter().enumerate() {
        let towards_hosts = hosts
            .iter()
            .map(|host| LinkId(node_ports[host.index()][0].0 ^ 1));
        let towards_switch = switch_ports(index).iter().map(|link| LinkId(link.0 ^ 1));
        for link in towards_hosts.chain(towards_switch) {
            let (outlet, inlet) = post.mailbox(index);
            ends.outlets[link.0 as usize] = Some(outlet);
            ends.inlets[link.0 as usize] = Some(inlet);
        }
    }
    (ends, post.into_mailrooms())
}

impl Ends {
    fn link(&mut self, setup: &Setup<'_>, id: LinkId) -> Link {
        let cable = &setup.topology.cables[id.cable()];
        let delay = setup.topology.link_delay(id);
        let outlet = self.outlets[id.0 as usize]
            .take()
            .expect("each link has one sender");
        Link::new(
            id,
            WireClock::new(cable.rate),
            delay,
            cable.bit_error_rate,
            setup.seed,
            outlet,
        )
    }

    fn inlet(&mut self, id: LinkId) -> Inlet<Arrival> {
        self.inlets[id.0 as usize]
            .take()
            .expect("each link has one receiver")
    }
}

fn build_host(
    setup: &Setup<'_>,
    ends: &mut Ends,
    host: HostId,
    up: LinkId,
    reactions: Option<Box<dyn Reactions>>,
    tracing: bool,
) -> Host {
    let link = ends.link(setup, up);
    let inlet = ends.inlet(LinkId(up.0 ^ 1));
    let mut endpoint = Endpoint::new(host, Arc::clone(&setup.profile), setup.seed);
    endpoint.set_tracing(tracing);
    Host::new(endpoint, link, inlet, reactions)
}

fn build_switch(
    setup: &Setup<'_>,
    ends: &mut Ends,
    index: usize,
    links: &[LinkId],
    attachments: Arc<[Attachment]>,
) -> Switch {
    let propagation = setup.profile.network.propagation_rtt;
    let port = |&id: &LinkId| {
        let rate = setup.topology.cables[id.cable()].rate;
        let rules = QueueRules::new(&setup.switch, rate.bytes_in(propagation));
        Port::new(rules, setup.seed, ends.link(setup, id))
    };
    let ports = links.iter().map(port).collect();
    let inlets = links
        .iter()
        .map(|id| LinkId(id.0 ^ 1))
        .map(|id| (id, ends.inlet(id)))
        .collect();
    Switch::new(SwitchParts {
        node: setup.topology.switch_node(index),
        salt: RandomStream::new(setup.seed, Purpose::Hashing, index as u64).next_u64(),
        tie_seed: tie_seed(setup.seed),
        routes: setup.routes.switches[index].clone(),
        attachments,
        ports,
        inlets,
    })
}

/// The seed of the order of simultaneous arrivals.
pub(crate) fn tie_seed(seed: u64) -> u64 {
    mix64(seed ^ Purpose::Ties as u64)
}

fn schedule_starts<O>(domains: &mut [FabricDomain<O>], setup: &Setup<'_>, domain_of_host: &[u32]) {
    let mut position = BTreeMap::new();
    for domain in domains.iter() {
        position.extend(
            domain
                .hosts
                .iter()
                .enumerate()
                .map(|(index, host)| (host.endpoint().host(), index)),
        );
    }
    for (index, flow) in setup.flows.iter().enumerate() {
        let Some(start) = flow.start else { continue };
        let domain = &mut domains[domain_of_host[flow.src.index()] as usize];
        let host = position[&flow.src];
        domain.hosts[host].schedule(start, FlowId(index as u32));
        domain.host_next[host] = domain.host_next[host].min(start);
    }
}

/// Why a run ended before all flows were done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The time limit was reached.
    AtMost,
    /// The progress callback said so.
    Interrupted,
    /// Nothing was left to happen although flows wait: their triggers never came.
    Stuck,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Flows done.
    pub flows_sent: usize,
    /// All flows.
    pub flows: usize,
    /// Packet-hops so far.
    pub hops: u64,
}

/// How to run.
pub struct RunControl<'a> {
    /// Worker threads; results do not depend on them.
    pub threads: usize,
    /// Stop at the end of the round that reaches this time.
    pub at_most: Time,
    /// Sees all flow events and starts flows anywhere.
    pub coordinator: Option<Box<dyn Reactions>>,
    /// The time that the coordinator's decisions take; at least, and by default, the shortest delay of a link.
    pub coordination_delay: Option<Span>,
    /// Called after each round; [`Verdict::Stop`] interrupts the run.
    pub on_progress: &'a mut dyn FnMut(Progress) -> Verdict,
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
    /// Why the run ended early, if it did.
    pub stopped: Option<Stopped>,
    /// Rounds of the engine.
    pub rounds: u64,
    /// Links and queues.
    pub links: LinkCounters,
    /// Endpoints.
    pub endpoints: EndpointCounters,
    /// Packets still in queues and on wires.
    pub in_network: u64,
    /// Digest over all flows (id, finish, bytes, retransmissions) and all losses.
    pub digest: Digest,
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
        let ended_by_itself = matches!(self.stopped, None | Some(Stopped::Stuck));
        if ended_by_itself && self.in_network > 0 {
            return Err(format!(
                "the run is over, but {} packets are under way",
                self.in_network
            ));
        }
        let EndpointCounters {
            data_sent,
            sacks_sent,
            probes_sent,
            ..
        } = self.endpoints;
        if injected != data_sent + sacks_sent + probes_sent {
            return Err(format!(
                "NICs sent {injected} packets, but transports {data_sent} data, {sacks_sent} acknowledgements and {probes_sent} probes"
            ));
        }
        Ok(())
    }
}

/// Keeps the books of flows and relays to the coordinator.
struct Bookkeeper<'a> {
    flows: Vec<FlowOutcome>,
    sent: usize,
    last_sent: Time,
    now: Time,
    rounds: u64,
    stopped: Option<Stopped>,
    delay: Span,
    flow_sources: Arc<[Flow]>,
    domain_of_host: Vec<u32>,
    hops: Arc<AtomicU64>,
    control: RunControl<'a>,
}

impl Bookkeeper<'_> {
    fn note(&mut self, report: &Report) {
        let FlowEvent { time, flow, moment } = report.event;
        let outcome = &mut self.flows[flow.index()];
        match moment {
            Moment::Started => outcome.started = Some(time),
            Moment::Received => outcome.received = Some(time),
            Moment::Sent => {
                outcome.sent = Some(time);
                outcome.statistics = report.statistics;
                self.sent += 1;
                self.last_sent = self.last_sent.max(time);
            }
        }
    }
}

impl<O: Observer> Conductor<FabricDomain<O>> for Bookkeeper<'_> {
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
        if round.end() >= self.control.at_most && self.sent < self.flows.len() {
            self.stopped = Some(Stopped::AtMost);
            return Verdict::Stop;
        }
        Verdict::Continue
    }
}

fn take_stock<O: Observer>(
    books: Bookkeeper<'_>,
    domains: Vec<FabricDomain<O>>,
    stopped: Option<Stopped>,
) -> Outcome<O> {
    let mut outcome = Outcome {
        finished: if stopped.is_some() {
            books.now
        } else {
            books.last_sent
        },
        flows: books.flows,
        stopped,
        rounds: books.rounds,
        links: LinkCounters::default(),
        endpoints: EndpointCounters::default(),
        in_network: domains.iter().map(FabricDomain::in_network).sum(),
        digest: Digest::default(),
        observers: Vec::with_capacity(domains.len()),
    };
    for domain in domains {
        outcome.links.merge(&domain.counters);
        for host in &domain.hosts {
            outcome.endpoints.merge(host.endpoint().counters());
        }
        outcome.observers.push(domain.observer);
    }
    outcome.digest = digest(&outcome.flows, &books.flow_sources, outcome.links.losses);
    outcome
}

/// The digest of a run: every flow's number, finish time, bytes and retransmissions, and every loss.
pub(crate) fn digest(outcomes: &[FlowOutcome], flows: &[Flow], losses: Digest) -> Digest {
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

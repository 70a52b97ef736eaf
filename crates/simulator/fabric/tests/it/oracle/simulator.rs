//! A slow and simple simulator of the same model: one heap of events for the whole fabric, with an event for the end of every
//! transmission. Nothing is done late, early or in bulk.
//!
//! At one instant: ends of transmissions, events of links, pause frames taking effect, arrivals (by the order of their links), starts of
//! transmissions, timers, and at last the coordinator. All timers of a host that are due at one instant are one event.

use super::choice::{Choices, Way};
use super::log::Log;
use super::network::Network;
use super::queue::{Joined, Port, Rules};
use super::shared::{Left, Switch, twin};
use super::{Beside, IntPacket};
use crate::common::Scenario;
use clearway_fabric::topology::{
    GroupRouting, LinkId, NodeId, PacketSizes, Paths, PortChoice, SwitchRole, Topology,
};
use clearway_fabric::{
    Agent, DropCause, FlowEvent, FlowMilestone, FlowOutcome, LinkChange, LinkCounters, Observer,
    Reactions, TelemetryFormat,
};
use clearway_transport::congestion::NetworkFacts;
use clearway_transport::congestion::telemetry::{Hop, Telemetry};
use clearway_transport::{
    Class, ClassSet, Endpoint, EndpointCounters, Event, FlowStatistics, Header, Opening, Packet,
    Profile,
};
use clearway_units::{
    Bytes, Digest, FlowId, HostId, MessageId, Purpose, RandomStream, Rate, RelativeSize, Span, Time,
};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

#[derive(Debug, Clone)]
enum What {
    End(LinkId),
    /// The event of this index.
    Change(usize),
    Arrival(LinkId, IntPacket),
    /// A pause frame has arrived.
    Frame(LinkId, ClassSet),
    /// The transmitter of a link is to hold back these classes.
    Effect(LinkId, ClassSet),
    Start(LinkId),
    Timer(HostId),
    Coordination,
}

/// Time, rank of the kind of event, order within the kind, and a number that makes the key unique.
type Key = (Time, u8, u64, u64);

struct Entry(Key, What);

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

struct Host {
    /// By transport, each with whether switches record telemetry on its packets.
    endpoints: Vec<(Endpoint<Beside>, bool)>,
    /// The transport that sent last; before the first packet, the last one.
    sent_last: usize,
    uplink: LinkId,
    /// The packet on the wire, and when it began.
    sending: Option<(Time, IntPacket)>,
    starts: BTreeSet<(Time, FlowId)>,
    /// Classes that the NIC holds back.
    obeyed: ClassSet,
    /// The timer event that stands for the endpoint's deadline.
    armed: Time,
    reactions: Option<Box<dyn Reactions>>,
}

impl Host {
    fn is_ready(&self) -> bool {
        self.endpoints.iter().any(|(endpoint, _)| endpoint.ready())
    }

    fn deadline(&self) -> Time {
        let deadlines = self.endpoints.iter();
        let deadlines = deadlines.map(|(endpoint, _)| endpoint.deadline());
        deadlines.min().expect("a host has a transport")
    }

    /// Sends from the next endpoint, in turn, among the endpoints whose packet is most urgent; if it has no packet after all, from the
    /// others.
    fn transmit(&mut self, now: Time) -> Option<IntPacket> {
        loop {
            let place = self.most_urgent()?;
            self.sent_last = place;
            let (endpoint, is_recorded) = &mut self.endpoints[place];
            if let Some(mut packet) = endpoint.poll_transmit(now) {
                if !*is_recorded {
                    packet.telemetry.seal();
                }
                return Some(packet);
            }
        }
    }

    fn most_urgent(&self) -> Option<usize> {
        let count = self.endpoints.len();
        let mut best: Option<(u8, usize)> = None;
        for step in 1..=count {
            let place = (self.sent_last + step) % count;
            if let Some(urgency) = self.endpoints[place].0.urgency()
                && best.is_none_or(|(most, _)| urgency > most)
            {
                best = Some((urgency, place));
            }
        }
        best.map(|(_, place)| place)
    }

    fn next_event(&mut self) -> Option<Event> {
        let mut endpoints = self.endpoints.iter_mut();
        endpoints.find_map(|(endpoint, _)| endpoint.poll_event())
    }
}

/// Result of a run.
pub(crate) struct Result {
    pub(crate) log: Log,
    pub(crate) flows: Vec<FlowOutcome>,
    pub(crate) links: LinkCounters,
    pub(crate) endpoints: EndpointCounters,
    /// By transport.
    pub(crate) transports: Vec<EndpointCounters>,
    pub(crate) in_network: u64,
    pub(crate) digest: Digest,
    /// The last event before the time limit, if there is any.
    pub(crate) last_within: Option<Time>,
    /// The last event of all.
    pub(crate) last: Time,
    /// Number of deliveries of the message of each flow.
    pub(crate) deliveries: BTreeMap<FlowId, u32>,
    /// Copies that an adversary has added.
    pub(crate) replayed: u64,
}

/// The simulator.
pub(crate) struct Oracle<'a> {
    scenario: &'a Scenario,
    network: Network<'a>,
    choices: Choices<'a>,
    paths: Arc<Paths>,
    lookahead: Span,
    heap: BinaryHeap<Reverse<Entry>>,
    serial: u64,
    now: Time,
    hosts: Vec<Host>,
    /// By link, where switches are lossy; ports of hosts stay empty.
    ports: Vec<Port>,
    /// Switches with shared buffers.
    switches: BTreeMap<NodeId, Switch>,
    /// By link.
    errors: Vec<RandomStream>,
    /// By link: draws of third groups.
    detours: Vec<RandomStream>,
    /// By link: agents.
    agents: Vec<Option<Agent>>,
    /// By link: bytes that have left, counted for links that leave switches.
    sent: Vec<u64>,
    coordinator: Option<Box<dyn Reactions>>,
    /// Events of this instant that the coordinator has not seen.
    reported: Vec<FlowEvent>,
    flows: Vec<FlowOutcome>,
    links: LinkCounters,
    log: Log,
    last_within: Option<Time>,
    last: Time,
    adversary: Option<Adversary>,
    /// Time to skip, and time that was skipped.
    skip: Option<Skip>,
    skipped: Span,
    deliveries: BTreeMap<FlowId, u32>,
}

/// Time that a run skips.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Skip {
    /// By the clock of packets: everything before has happened.
    pub(crate) at: Time,
    pub(crate) time: Span,
    /// The most packets that a queue pair skips.
    pub(crate) packets: u64,
}

/// Adversary on the last links. It holds packets back and replays them, at any time up to the longest delay.
struct Adversary {
    random: RandomStream,
    longest: Span,
    replayed: u64,
}

impl Adversary {
    /// A delay from a microsecond up to the longest, each order of magnitude as often as any other.
    fn delay(&mut self) -> Span {
        let doublings = (self.longest.as_ps() / 1_000_000).max(2).ilog2();
        let exponent = self.random.below(doublings);
        Span::from_us(1 << exponent) + Span::from_us(u64::from(self.random.below(1 << exponent)))
    }

    /// Extra delay of each copy of a packet.
    fn delays(&mut self) -> Vec<Span> {
        let held_back = self.random.chance(0.05);
        let mut delays = vec![if held_back { self.delay() } else { Span::ZERO }];
        while self.random.chance(0.2) {
            self.replayed += 1;
            delays.push(self.delay());
        }
        delays
    }
}

impl<'a> Oracle<'a> {
    pub(crate) fn new(scenario: &'a Scenario) -> Self {
        let topology = &scenario.topology;
        let links = topology.cables.len() as u32 * 2;
        let network = Network::new(topology, &scenario.link_events, scenario.seed);
        let host = |host| {
            let host = HostId(host);
            let endpoint = |profile: &Arc<Profile>| {
                let mut profile = Profile::clone(profile);
                let facts = &mut profile.network;
                facts.line_rate = topology.cables[network.uplink(host).0 as usize / 2].rate;
                facts.bdp = facts.line_rate.bytes_in(facts.base_rtt);
                let is_recorded = profile.uses_telemetry();
                let mut endpoint = Endpoint::with_telemetry(host, Arc::new(profile), scenario.seed);
                endpoint.set_tracing(true);
                (endpoint, is_recorded)
            };
            let profiles = scenario.further_transports.profiles.iter();
            let endpoints: Vec<_> = std::iter::once(&scenario.profile)
                .chain(profiles)
                .map(endpoint)
                .collect();
            Host {
                sent_last: endpoints.len() - 1,
                endpoints,
                uplink: network.uplink(host),
                sending: None,
                starts: BTreeSet::new(),
                obeyed: ClassSet::EMPTY,
                armed: Time::NEVER,
                reactions: scenario.reactions_of(host),
            }
        };
        let rules = |link: LinkId| {
            let rate = topology.cables[link.0 as usize / 2].rate;
            let bdp = bdp_of_port(&scenario.profile.network, rate);
            let last_hop = network.is_host(network.end_of(link));
            let mut parameters = scenario.switch.clone();
            if let Some(queue) = queue_of_port(topology, link) {
                parameters.queue = RelativeSize::Absolute(queue);
            }
            if network.is_scale_up(network.start_of(link)) {
                parameters.queue = RelativeSize::Absolute(Bytes::new(u64::MAX));
                (parameters.ecn, parameters.trimming) = (false, false);
            }
            let role = topology.role_of(network.start_of(link));
            parameters.ecn &= role != Some(SwitchRole::Nic(PortChoice::LeastQueue));
            Rules::new(&parameters, (rate, bdp), scenario.seed, (link, last_hop))
        };
        let agent = |link| {
            let rate = topology.cables[link as usize / 2].rate;
            scenario.profile.link_agent(link, rate).map(Agent::new)
        };
        let switch = |index| {
            let node = NodeId(topology.hosts + index);
            let parameters = scenario.buffer.as_ref()?;
            if network.is_scale_up(node) {
                return None;
            }
            let switch = Switch::new(scenario, &network, parameters, node, rules);
            Some((node, switch))
        };
        let detours = |link| RandomStream::new(scenario.seed, Purpose::Detours, link);
        let errors = |link| RandomStream::new(scenario.seed, Purpose::BitErrors, link);
        let delays = (0..links)
            .filter(|link| topology.cables[*link as usize / 2].up)
            .map(|link| network.delay(LinkId(link)));
        Self {
            scenario,
            choices: Choices::new(&scenario.switch, topology, scenario.seed),
            lookahead: delays.min().expect("a fabric has links"),
            heap: BinaryHeap::new(),
            serial: 0,
            now: Time::ZERO,
            hosts: (0..topology.hosts).map(host).collect(),
            ports: (0..links)
                .map(|link| Port::new(rules(LinkId(link))))
                .collect(),
            switches: (0..topology.switches.len() as u32)
                .filter_map(switch)
                .collect(),
            errors: (0..u64::from(links)).map(errors).collect(),
            detours: (0..u64::from(links)).map(detours).collect(),
            agents: (0..links).map(agent).collect(),
            sent: vec![0; links as usize],
            coordinator: scenario.coordinator(),
            reported: Vec::new(),
            flows: vec![FlowOutcome::default(); scenario.flows.len()],
            links: LinkCounters::default(),
            log: Log::default(),
            last_within: None,
            last: Time::ZERO,
            adversary: None,
            skip: None,
            skipped: Span::ZERO,
            deliveries: BTreeMap::new(),
            network,
            paths: scenario.setup().routes.paths,
        }
    }

    /// The same network, on whose last links packets come late, in disorder and again, by up to `longest`.
    pub(crate) fn hostile(mut self, longest: Span) -> Self {
        self.adversary = Some(Adversary {
            random: RandomStream::new(self.scenario.seed, Purpose::Test, 77),
            longest,
            replayed: 0,
        });
        self
    }

    /// Skips time once, as a sampler of the simulator did.
    pub(crate) fn skipping(mut self, skip: Option<Skip>) -> Self {
        self.skip = skip;
        self
    }

    /// Moves starts of flows to an earlier time, and lets queue pairs skip packets.
    fn skip_time(&mut self, skip: Skip) {
        self.skipped = skip.time;
        for index in 0..self.hosts.len() {
            let at = &mut self.hosts[index];
            for (endpoint, _) in &mut at.endpoints {
                let mut packets = Vec::new();
                endpoint.for_each_open(|open| {
                    let own = open
                        .skippable()
                        .map_or(0, |(_, left)| left.min(skip.packets));
                    packets.push((open.flow(), open.queue_pair(), own));
                });
                packets.retain(|(.., own)| *own > 0);
                for (flow, queue_pair, own) in packets {
                    endpoint.skip(flow, queue_pair, own);
                }
            }
            for (time, flow) in std::mem::take(&mut at.starts) {
                self.schedule_flow(time - skip.time, flow);
            }
        }
    }

    /// The present by the clock of the run.
    fn clock(&self) -> Time {
        self.now + self.skipped
    }

    /// Runs all events before `end`, by the clock of packets.
    pub(crate) fn run(mut self, end: Time) -> Result {
        for (index, flow) in self.scenario.flows.iter().enumerate() {
            if let Some(start) = flow.start {
                self.schedule_flow(start, FlowId(index as u32));
            }
        }
        for (index, event) in self.scenario.link_events.events().iter().enumerate() {
            self.push(event.at, What::Change(index));
        }
        while let Some(Reverse(Entry(key, _))) = self.heap.peek()
            && key.0 < end
        {
            if let Some(skip) = self.skip.take_if(|skip| skip.at <= key.0) {
                self.skip_time(skip);
                continue;
            }
            let Some(Reverse(Entry((time, ..), what))) = self.heap.pop() else {
                break;
            };
            self.now = time;
            match what {
                What::End(link) => self.end(link),
                What::Change(event) => self.change(event),
                What::Arrival(link, packet) => self.arrive(link, packet),
                What::Frame(link, classes) => self.on_frame(link, classes),
                What::Effect(link, classes) => self.on_effect(link, classes),
                What::Start(link) => self.start(link),
                What::Timer(host) => self.on_timer(host),
                What::Coordination => self.coordinate(),
            }
        }
        self.finish()
    }

    fn push(&mut self, time: Time, what: What) {
        let (rank, order) = match what {
            What::End(link) => (0, u64::from(link.0)),
            What::Change(event) => (1, event as u64),
            What::Effect(link, _) => (2, u64::from(link.0)),
            What::Arrival(link, _) | What::Frame(link, _) => {
                (3, self.network.tie_break(time, link))
            }
            What::Start(link) => (4, u64::from(link.0)),
            What::Timer(host) => (5, u64::from(host.0)),
            What::Coordination => (6, 0),
        };
        self.serial += 1;
        let entry = Entry((time, rank, order, self.serial), what);
        self.heap.push(Reverse(entry));
    }

    /// Notes the time of an event that is also an event of the fast simulator.
    fn witness(&mut self) {
        self.last = self.now;
        if self.now < self.scenario.at_most {
            self.last_within = Some(self.now);
        }
    }

    fn start(&mut self, link: LinkId) {
        let from = self.network.start_of(link);
        if !self.network.is_host(from) && !self.network.works(link, self.now) {
            return;
        }
        let size = if self.network.is_host(from) {
            self.pull(HostId(from.0)).map(u64::from)
        } else if let Some(switch) = self.switches.get_mut(&from) {
            switch.begin(link)
        } else {
            self.ports[link.0 as usize].begin().map(u64::from)
        };
        if let Some(size) = size {
            self.witness();
            self.record(from, link);
            let end = self.now + self.network.transmission(link, self.now, size);
            self.push(end, What::End(link));
        }
    }

    /// Asks the endpoint of a host for a packet.
    fn pull(&mut self, host: HostId) -> Option<u16> {
        let now = self.now;
        let at = &mut self.hosts[host.index()];
        if at.sending.is_some() || !at.is_ready() {
            return None;
        }
        let mut packet = at.transmit(now)?;
        packet.header_hash = Network::header_hash(&packet);
        let size = packet.size;
        at.sending = Some((now, packet));
        self.links.injected += 1;
        self.look_after(host);
        Some(size)
    }

    fn end(&mut self, link: LinkId) {
        let from = self.network.start_of(link);
        let mut begun = self.now;
        let left = if self.network.is_host(from) {
            let at = &mut self.hosts[from.0 as usize];
            let (start, packet) = at.sending.take().expect("a transmission has ended");
            begun = start;
            Left::Packet {
                packet,
                bytes: None,
                marked: false,
            }
        } else {
            self.witness();
            self.end_at_switch(from, link)
        };
        match left {
            Left::Frame(classes) => {
                self.links.pause_frames += 1;
                let arrival = self.now + self.network.delay(link);
                if self.network.is_cut(link, self.now, arrival) {
                    self.links.pause_frames_lost += 1;
                } else {
                    self.push(arrival, What::Frame(link, classes));
                }
            }
            Left::Packet {
                packet,
                bytes,
                marked,
            } => {
                if let Some(bytes) = bytes {
                    self.log.on_queue(self.now, link, bytes);
                }
                self.note_mark(link, &packet, marked);
                self.sent[link.0 as usize] += u64::from(packet.size);
                self.carry((begun, self.now), link, packet);
            }
        }
        self.push(self.now, What::Start(link));
    }

    fn end_at_switch(&mut self, node: NodeId, link: LinkId) -> Left {
        if let Some(switch) = self.switches.get_mut(&node) {
            let left = switch.end(link);
            self.look_at_ports(node);
            return left;
        }
        let (packet, bytes, marked) = self.ports[link.0 as usize].end();
        Left::Packet {
            packet,
            bytes,
            marked,
        }
    }

    /// Lets every port of a switch with a shared buffer try to start: something may have changed for any of them.
    fn look_at_ports(&mut self, node: NodeId) {
        for link in self.switches[&node].links() {
            self.push(self.now, What::Start(link));
        }
    }

    fn on_frame(&mut self, link: LinkId, classes: ClassSet) {
        self.witness();
        self.links.pause_frames_received += 1;
        let reaction = self.scenario.buffer.as_ref().map(|buffer| buffer.reaction);
        let effect = self.now + reaction.expect("only shared buffers send frames");
        self.push(effect, What::Effect(twin(link), classes));
    }

    fn on_effect(&mut self, link: LinkId, classes: ClassSet) {
        self.witness();
        let node = self.network.start_of(link);
        if let Some(switch) = self.switches.get_mut(&node) {
            switch.obey(link, classes);
            let classes = switch.held_back(link);
            self.log.on_pause(self.now, link, classes);
            self.look_at_ports(node);
        } else {
            self.log.on_pause(self.now, link, classes);
            let mut held = classes;
            if classes.contains(Class::DATA) && !self.scenario.switch.control_priority {
                held.insert(Class::CONTROL);
            }
            self.hosts[node.0 as usize].obeyed = classes;
            for (endpoint, _) in &mut self.hosts[node.0 as usize].endpoints {
                endpoint.set_paused(held);
            }
            self.look_after(HostId(node.0));
        }
    }

    /// A switch writes telemetry onto a data packet whose transmission starts.
    fn record(&mut self, node: NodeId, link: LinkId) {
        if self.network.is_host(node) {
            return;
        }
        let (queue, packet) = match self.switches.get_mut(&node) {
            Some(switch) => (switch.waiting_bytes(link), switch.on_the_wire(link)),
            None => {
                let port = &mut self.ports[link.0 as usize];
                (port.waiting_bytes(), port.on_the_wire())
            }
        };
        let Some(packet) = packet.filter(|packet| packet.class != Class::CONTROL) else {
            return;
        };
        let queue = queue - u64::from(packet.size);
        let sent = self.sent[link.0 as usize];
        let (unit, ps) = match self.scenario.switch.telemetry {
            TelemetryFormat::Exact => ((1, 1), 1),
            TelemetryFormat::Hpcc => ((128, 80), 1000),
        };
        packet.telemetry.record(Hop {
            time: Time::from_ps(self.now.as_ps() - self.now.as_ps() % ps),
            rate: self.network.rate(link, self.now),
            sent: (sent - sent % unit.0) as u32,
            queue: (queue - queue % unit.1) as u32,
        });
    }

    fn note_mark(&mut self, link: LinkId, packet: &Packet, marked: bool) {
        if marked {
            self.links.marked += 1;
            self.log.on_mark(self.now, link, packet);
        }
    }

    /// The last bit of a packet has left at `end`; the first one left a host at `start`.
    fn carry(&mut self, (start, end): (Time, Time), link: LinkId, packet: IntPacket) {
        self.links.hops += 1;
        self.links.data_hops += u64::from(packet.class != Class::CONTROL);
        let arrival = end + self.network.delay(link);
        if self.network.is_cut(link, start, arrival) {
            return self.drop_for(DropCause::LinkDown, end, link, &packet);
        }
        let survival = self.network.survival(link, end, packet.size);
        if survival < 1.0 && self.errors[link.0 as usize].unit() >= survival {
            self.links.corrupted += 1;
            self.lose(end, link, &packet, DropCause::BitError);
            return;
        }
        let to_host = self.network.is_host(self.network.end_of(link));
        let delays = match &mut self.adversary {
            Some(adversary) if to_host => adversary.delays(),
            _ => vec![Span::ZERO],
        };
        for delay in delays {
            self.push(arrival + delay, What::Arrival(link, packet.clone()));
        }
    }

    /// A packet has been trimmed; `lost` if the rest of it had no room either.
    fn note_trim(&mut self, link: LinkId, packet: &Packet, lost: bool) {
        self.links.trimmed += 1;
        self.log.on_trim(self.now, link, packet);
        self.add_to_digest(self.now, link, packet, 7 << 32);
        if lost {
            self.links.dropped += 1;
            let last_hop = self.network.is_host(self.network.end_of(link));
            let mut rest = *packet;
            rest.trim(self.scenario.switch.trim_size.as_u64() as u16, last_hop);
            self.lose(self.now, link, &rest, DropCause::QueueFull);
        }
    }

    /// Drops a packet because of the state of links.
    fn drop_for(&mut self, cause: DropCause, time: Time, link: LinkId, packet: &Packet) {
        self.links.dropped += 1;
        self.links.link_down_drops += u64::from(cause == DropCause::LinkDown);
        self.links.no_route_drops += u64::from(cause == DropCause::NoRoute);
        self.lose(time, link, packet, cause);
    }

    /// An event of a cable.
    fn change(&mut self, index: usize) {
        let event = self.scenario.link_events.events()[index];
        let cable = event.cable as u32;
        for link in [LinkId(2 * cable), LinkId(2 * cable + 1)] {
            let works = self.network.works(link, self.now);
            let before = self.now.as_ps().checked_sub(1).map(Time::from_ps);
            let worked = before.is_none_or(|before| self.network.works(link, before));
            match event.change {
                LinkChange::PacketLoss(_) => {}
                LinkChange::PauseStorm(_) => {
                    self.change_storm(link);
                }
                LinkChange::Down | LinkChange::Up if works == worked => {}
                LinkChange::Down | LinkChange::Up if !works => self.go_down(link),
                LinkChange::Down | LinkChange::Up | LinkChange::Rate(_) => {
                    self.note_change(link);
                    let node = self.network.start_of(link);
                    if let Some(switch) = self.switches.get_mut(&node) {
                        if !worked && switch.come_back(link) {
                            let classes = switch.held_back(link);
                            self.log.on_pause(self.now, link, classes);
                        }
                        self.look_at_ports(node);
                    }
                }
            }
        }
    }

    /// Notes the time of a change at a port that has anything to do with it.
    fn note_change(&mut self, link: LinkId) {
        let node = self.network.start_of(link);
        let waits = |what: &What| matches!(what, What::Effect(at, _) if *at == link);
        let is_quiet = match self.switches.get(&node) {
            _ if self.network.is_host(node) => true,
            Some(switch) => switch.is_quiet(link) && !self.heap.iter().any(|e| waits(&e.0.1)),
            None => self.ports[link.0 as usize].packets() == 0,
        };
        if !is_quiet {
            self.witness();
        }
    }

    /// A pause storm has begun or ended.
    fn change_storm(&mut self, link: LinkId) {
        let node = self.network.start_of(link);
        let (storms, works) = (
            self.network.storms(link, self.now),
            self.network.works(link, self.now),
        );
        let Some(switch) = self.switches.get_mut(&node) else {
            // It concerns nobody, but is an event.
            let before = self.now.as_ps().checked_sub(1).map(Time::from_ps);
            if before.is_some_and(|before| self.network.storms(link, before)) != storms {
                self.note_change(link);
            }
            return;
        };
        if switch.storms(link) == storms {
            return;
        }
        switch.change_storm(link, storms);
        self.witness();
        if works {
            let classes = self.switches[&node].held_back(link);
            self.log.on_pause(self.now, link, classes);
            self.look_at_ports(node);
        }
    }

    fn go_down(&mut self, link: LinkId) {
        self.note_change(link);
        let node = self.network.start_of(link);
        let is_host = self.network.is_host(node);
        self.heap.retain(|Reverse(Entry(_, what))| match what {
            What::End(at) => is_host || *at != link,
            What::Effect(at, _) => *at != link,
            _ => true,
        });
        let mut was_paused = is_host && !self.hosts[node.0 as usize].obeyed.is_empty();
        let mut dropped = Vec::new();
        if let Some(switch) = self.switches.get_mut(&node) {
            (dropped, was_paused) = switch.give_up(link);
            self.look_at_ports(node);
        } else if !is_host {
            dropped = self.ports[link.0 as usize].give_up();
        }
        if was_paused {
            self.on_effect(link, ClassSet::EMPTY);
        }
        let mut data: Vec<usize> = dropped.iter().map(|(queue, _)| *queue).collect();
        data.retain(|queue| *queue > 0);
        data.dedup();
        for _ in data {
            self.log.on_queue(self.now, link, 0);
        }
        for (_, packet) in dropped {
            self.drop_for(DropCause::LinkDown, self.now, link, &packet);
        }
    }

    fn lose(&mut self, time: Time, link: LinkId, packet: &Packet, cause: DropCause) {
        self.log.on_drop(time, link, packet, cause);
        self.add_to_digest(time, link, packet, 0);
    }

    fn add_to_digest(&mut self, time: Time, link: LinkId, packet: &Packet, trim: u64) {
        let kind = 1u64 << 32;
        let number = match packet.header {
            Header::Data { psn, .. } => u64::from(psn) + trim,
            Header::Nack { psn, .. } => u64::from(psn) + 6 * kind,
            Header::Sack { epsn, .. } => u64::from(epsn) + kind,
            Header::Probe { base, .. } => u64::from(base) + 2 * kind,
            Header::Pull { pull } => u64::from(pull) + 8 * kind,
            Header::Ack { epsn, .. } => u64::from(epsn) + 3 * kind,
            Header::Notification => 4 * kind,
            Header::RateControl { sequence, .. } => u64::from(sequence) + 5 * kind,
        };
        let number = number + u64::from(packet.queue_pair) * 256 * kind;
        let flow = u64::from(packet.flow.0);
        self.links
            .losses
            .add(&[time.as_ps(), u64::from(link.0), flow, number]);
    }

    fn arrive(&mut self, link: LinkId, mut packet: IntPacket) {
        self.witness();
        let node = self.network.end_of(link);
        self.steer(node, link, &mut packet);
        self.log.on_arrival(self.now, node, &packet);
        if self.network.is_host(node) {
            self.links.delivered += 1;
            let at = &mut self.hosts[node.0 as usize];
            let transport = self.scenario.flows[packet.flow.index()].transport;
            let (endpoint, _) = &mut at.endpoints[usize::from(transport)];
            endpoint.on_packet(self.now, &packet);
            self.handle_events(HostId(node.0));
            self.look_after(HostId(node.0));
        } else {
            self.forward(node, link, packet);
        }
    }

    /// The switch of the sender draws a third group for each packet to another group, and the first switch of that group forgets it.
    fn steer(&mut self, node: NodeId, link: LinkId, packet: &mut Packet) {
        let topology = &self.scenario.topology;
        let groups = topology.groups.as_ref();
        let detouring = groups.filter(|groups| groups.routing != GroupRouting::Minimal);
        let Some(groups) = detouring.filter(|_| !self.network.is_host(node)) else {
            return;
        };
        let (own, to) = (
            self.network.group_of(node),
            self.network.group_of_host(packet.dst),
        );
        if self.network.is_host(self.network.start_of(link)) && own != to && groups.count > 2 {
            let third: Vec<u16> = (0..groups.count)
                .filter(|g| ![own, to].contains(g))
                .collect();
            let drawn = self.detours[link.0 as usize].below(third.len() as u32);
            packet.via = third[drawn as usize] as u8 + 1;
            if groups.routing == GroupRouting::Ugal && !self.is_detour_better(node, packet) {
                packet.via = 0;
            }
        }
        if packet.via > 0
            && !self
                .network
                .leads_to_group(node, u16::from(packet.via) - 1, self.now)
        {
            packet.via = 0;
        }
    }

    /// True if less waits on the detour that a packet has drawn, each queue times the links of its way.
    fn is_detour_better(&self, node: NodeId, packet: &Packet) -> bool {
        let via = u16::from(packet.via) - 1;
        if !self.network.leads_to_group(node, via, self.now) {
            return false;
        }
        let mut direct = *packet;
        direct.via = 0;
        let weight = |packet: &Packet| {
            let links = self.network.next_links(node, packet, self.now).ok()?;
            let picked = match self.chooses_by_queue(node) {
                true => links,
                false => vec![self.network.hashed(node, packet, &links)],
            };
            let bytes = picked.iter().map(|link| self.bytes_at(node, *link));
            Some(u128::from(bytes.min()?))
        };
        let (queue, queue_of_detour) = (weight(&direct), weight(packet));
        let (Some(queue), Some(queue_of_detour)) = (queue, queue_of_detour) else {
            return true;
        };
        let (links, links_of_detour, members) = self.network.weights(node, packet);
        queue * links * members > queue_of_detour * links_of_detour
    }

    fn forward(&mut self, node: NodeId, from: LinkId, mut packet: IntPacket) {
        let link = match self.network.next_links(node, &packet, self.now) {
            Ok(links) => self.choose(node, &packet, &links),
            Err(links) => {
                let link = self.network.hashed(node, &packet, &links);
                return self.drop_for(DropCause::NoRoute, self.now, link, &packet);
            }
        };
        if !self.network.works(link, self.now) {
            return self.drop_for(DropCause::LinkDown, self.now, link, &packet);
        }
        if let Some(agent) = &mut self.agents[link.0 as usize]
            && {
                agent.set_rate(self.network.rate(link, self.now));
                !agent.on_arrival(self.now, &mut packet)
            }
        {
            self.links.dropped += 1;
            self.links.agent_drops += 1;
            return self.lose(self.now, link, &packet, DropCause::Agent);
        }
        let joined = if let Some(switch) = self.switches.get_mut(&node) {
            let joined = switch.admit(&mut packet, from, link);
            self.look_at_ports(node);
            joined
        } else {
            self.ports[link.0 as usize].admit(&mut packet)
        };
        match joined {
            Err(cause) => {
                self.links.dropped += 1;
                self.links.headroom_drops += u64::from(cause == DropCause::HeadroomFull);
                self.lose(self.now, link, &packet, cause);
            }
            Ok(Joined {
                bytes,
                marked,
                trimmed,
            }) => {
                self.note_mark(link, &packet, marked);
                if let Some(bytes) = bytes {
                    self.log.on_queue(self.now, link, bytes);
                }
                if let Some((victim, lost)) = trimmed {
                    self.note_trim(link, &victim, lost);
                }
                self.push(self.now, What::Start(link));
            }
        }
    }

    /// True if the switch `node` looks at queues when it chooses among links.
    fn chooses_by_queue(&self, node: NodeId) -> bool {
        let role = self.scenario.topology.role_of(node).expect("a switch");
        self.scenario.switch.path_choice(role).is_local()
    }

    /// Bytes that wait at the port of a link from the switch `node`.
    fn bytes_at(&self, node: NodeId, link: LinkId) -> u64 {
        match self.switches.get(&node) {
            Some(switch) => switch.waiting_bytes(link),
            None => self.ports[link.0 as usize].waiting_bytes(),
        }
    }

    /// The one of the links that lead on which `packet` takes from the switch `node`.
    fn choose(&mut self, node: NodeId, packet: &Packet, links: &[LinkId]) -> LinkId {
        if self.network.is_host(self.network.end_of(links[0])) {
            return links[0];
        }
        if !self.chooses_by_queue(node) {
            return self.network.hashed(node, packet, links);
        }
        let way = |link: &LinkId| {
            let rate = self.scenario.topology.cables[link.0 as usize / 2].rate;
            Way {
                link: *link,
                works: self.network.works(*link, self.now),
                bytes: self.bytes_at(node, *link),
                limit: queue_of_port(&self.scenario.topology, *link)
                    .map_or(self.scenario.switch.queue, RelativeSize::Absolute)
                    .resolve(rate, bdp_of_port(&self.scenario.profile.network, rate))
                    .as_u64(),
            }
        };
        let ways: Vec<Way> = links.iter().map(way).collect();
        self.choices.choose_link(node, packet, &ways, self.now)
    }

    /// Sets a host's events after something has happened to its endpoint.
    fn look_after(&mut self, host: HostId) {
        let at = &mut self.hosts[host.index()];
        let deadline = at.deadline();
        let timer = (!deadline.is_never()).then(|| deadline.max(self.now));
        let timer = timer.filter(|&timer| timer != at.armed);
        if let Some(timer) = timer {
            at.armed = timer;
        }
        let start = (at.sending.is_none() && at.is_ready()).then_some(at.uplink);
        if let Some(timer) = timer {
            self.push(timer, What::Timer(host));
        }
        if let Some(link) = start {
            self.push(self.now, What::Start(link));
        }
    }

    fn on_timer(&mut self, host: HostId) {
        let now = self.now;
        let at = &mut self.hosts[host.index()];
        if at.armed == now {
            at.armed = Time::NEVER;
        }
        if at.deadline() <= now {
            for (endpoint, _) in &mut at.endpoints {
                if endpoint.deadline() <= now {
                    endpoint.on_deadline(now);
                }
            }
            self.witness();
            self.handle_events(host);
        }
        while let Some(&(time, flow)) = self.hosts[host.index()].starts.first()
            && time <= now
        {
            self.hosts[host.index()].starts.pop_first();
            self.witness();
            self.start_flow(flow);
        }
        self.look_after(host);
    }

    fn schedule_flow(&mut self, time: Time, flow: FlowId) {
        let host = self.scenario.flows[flow.index()].src;
        self.hosts[host.index()].starts.insert((time, flow));
        self.push(time, What::Timer(host));
    }

    fn start_flow(&mut self, flow: FlowId) {
        let clearway_fabric::Flow {
            src,
            dst,
            bytes,
            class,
            transport,
            ..
        } = self.scenario.flows[flow.index()];
        let network = &match transport {
            0 => &self.scenario.profile,
            further => &self.scenario.further_transports.profiles[usize::from(further) - 1],
        }
        .network;
        let sizes = PacketSizes {
            payload: network.payload,
            header: network.header,
            ack: network.ack,
        };
        let path = self.paths.path_facts(src, dst, sizes);
        let opening = Opening::usual(class, path);
        let (endpoint, _) = &mut self.hosts[src.index()].endpoints[usize::from(transport)];
        endpoint.open(flow, dst, &opening);
        endpoint.post(self.now, flow, MessageId(0), bytes);
        endpoint.close(self.now, flow);
        self.flows[flow.index()].started = Some(self.clock());
        self.report(flow, FlowMilestone::Started);
    }

    fn handle_events(&mut self, host: HostId) {
        while let Some(event) = self.hosts[host.index()].next_event() {
            self.log.on_transport(self.now, host, &event);
            match event {
                Event::Sent {
                    flow, statistics, ..
                } => self.on_sent(host, flow, statistics),
                Event::Received { flow, .. } => {
                    *self.deliveries.entry(flow).or_default() += 1;
                    self.flows[flow.index()].received = Some(self.clock());
                    self.report(flow, FlowMilestone::Received);
                    self.react(host, flow, FlowMilestone::Received);
                }
                Event::Ack { .. } | Event::Loss { .. } => {}
            }
        }
    }

    fn on_sent(&mut self, host: HostId, flow: FlowId, statistics: FlowStatistics) {
        self.flows[flow.index()].sent = Some(self.clock());
        self.flows[flow.index()].statistics = statistics;
        self.report(flow, FlowMilestone::Sent);
        self.react(host, flow, FlowMilestone::Sent);
    }

    /// The host's own answer.
    fn react(&mut self, host: HostId, flow: FlowId, milestone: FlowMilestone) {
        let time = self.clock();
        let mut start = Vec::new();
        if let Some(reactions) = &mut self.hosts[host.index()].reactions {
            reactions.on_event(
                FlowEvent {
                    time,
                    flow,
                    milestone,
                },
                &mut start,
            );
        }
        for flow in start {
            self.schedule_flow(self.now, flow);
        }
    }

    fn report(&mut self, flow: FlowId, milestone: FlowMilestone) {
        self.reported.push(FlowEvent {
            time: self.clock(),
            flow,
            milestone,
        });
        self.push(self.now, What::Coordination);
    }

    /// The coordinator sees the events of an instant by flow, then by milestone.
    fn coordinate(&mut self) {
        let shortest = self.lookahead;
        let delay = self.scenario.coordination_delay.unwrap_or(shortest);
        let mut reported = std::mem::take(&mut self.reported);
        reported.sort_by_key(|event| (event.flow, event.milestone));
        let mut start = Vec::new();
        if let Some(coordinator) = &mut self.coordinator {
            for event in reported {
                coordinator.on_event(event, &mut start);
            }
        }
        for flow in start {
            self.schedule_flow(self.now + delay.max(shortest), flow);
        }
    }

    fn finish(mut self) -> Result {
        // A packet that a host has begun to send counts as being on the wire.
        for index in 0..self.hosts.len() {
            if let Some((start, packet)) = self.hosts[index].sending.take() {
                let link = self.hosts[index].uplink;
                let ends = self.heap.iter().find_map(|Reverse(Entry(key, what))| {
                    matches!(what, What::End(at) if *at == link).then_some(key.0)
                });
                self.carry((start, ends.expect("it ends at some time")), link, packet);
            }
        }
        let flying = self
            .heap
            .iter()
            .filter(|entry| matches!(entry.0.1, What::Arrival(..)));
        let queued: u64 = self.ports.iter().map(Port::packets).sum();
        let held: u64 = self.switches.values().map(Switch::packets).sum();
        let in_network = flying.count() as u64 + queued + held;
        let mut endpoints = EndpointCounters::default();
        let mut transports = vec![EndpointCounters::default(); self.hosts[0].endpoints.len()];
        for host in &self.hosts {
            for ((endpoint, _), transport) in host.endpoints.iter().zip(&mut transports) {
                endpoints.merge(endpoint.counters());
                transport.merge(endpoint.counters());
            }
        }
        for (endpoint, _) in self.hosts.iter().flat_map(|host| &host.endpoints) {
            endpoint.for_each_open(|queue_pair| {
                let outcome = &mut self.flows[queue_pair.flow().index()];
                if outcome.sent.is_none() {
                    outcome.statistics.merge(&queue_pair.progress().statistics);
                }
            });
        }
        let mut digest = self.links.losses;
        for (id, (outcome, flow)) in self.flows.iter().zip(&*self.scenario.flows).enumerate() {
            let finish = outcome.sent.map_or(u64::MAX, Time::as_ps);
            let again = outcome.statistics.retransmitted;
            digest.add(&[id as u64, finish, flow.bytes.as_u64(), again]);
        }
        Result {
            log: self.log.comparable(self.scenario, &self.network),
            flows: self.flows,
            links: self.links,
            endpoints,
            transports,
            in_network,
            digest,
            last_within: self.last_within,
            last: self.last,
            deliveries: self.deliveries,
            replayed: self.adversary.map_or(0, |adversary| adversary.replayed),
        }
    }
}

/// Bandwidth-delay product of a port: no less than four full packets.
fn bdp_of_port(network: &NetworkFacts, rate: Rate) -> Bytes {
    let packet = u64::from(network.payload) + u64::from(network.header);
    let bdp = rate.bytes_in(network.propagation_rtt).as_u64();
    Bytes::new(bdp.max(4 * packet))
}

/// Limit that the fabric itself gives the queue in front of a link.
fn queue_of_port(topology: &Topology, link: LinkId) -> Option<Bytes> {
    let mut ends = topology.cables[link.0 as usize / 2].ends;
    if link.0 % 2 == 1 {
        ends.reverse();
    }
    let tier = |node: NodeId| {
        let switch = node.0.checked_sub(topology.hosts)?;
        Some(topology.switches[switch as usize].tier)
    };
    let [own, other] = ends.map(tier);
    let queues = topology.queues.get(usize::from(own?))?;
    // A host is below all switches.
    if other > own { queues.up } else { queues.down }
}

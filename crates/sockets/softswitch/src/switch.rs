//! The fabric: packets of hosts in, packets for hosts out, with time.

use crate::address;
use crate::command::Command;
use crate::counters::{ForwardedLinkCounters, Totals};
use crate::link::{Link, Node, TransmitOutcome};
use crate::packet::{Headers, PacketFault};
use crate::pool::{Pool, Slot};
use clearway_fabric::topology::{LinkId, Routes, Topology};
use clearway_fabric::{Forwarding, QueueRules, SwitchParameters};
use clearway_transport::congestion::port_bdp;
use clearway_units::{Bytes, HostId, Span, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Memory for packets in queues and on wires.
const MEMORY: usize = 512 << 20;

/// Description of a fabric: the description of a simulation, plus limits.
#[derive(Debug, Clone)]
pub struct FabricPlan<'a> {
    /// Nodes and links.
    pub topology: &'a Topology,
    /// Routes of the topology.
    pub routes: Routes,
    /// Queues, marks, choice of paths.
    pub switch: &'a SwitchParameters,
    /// Round trip that sizes queues, if the scenario gives them relative to the bandwidth-delay product.
    pub propagation_rtt: Span,
    /// Limit of the queue in front of a host's link, which does not mark.
    pub host_queue: Bytes,
    /// Longest packet in bytes, with its IP header.
    pub longest_packet: u16,
    /// Seed of all random choices.
    pub seed: u64,
}

/// Reason why user space cannot emulate a fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnfitFabric {
    /// A host has several NICs.
    #[error("hosts of this fabric have several NICs")]
    SeveralNics,
    /// Packets take detours, which real frames do not encode.
    #[error("packets of this fabric take detours")]
    Detours,
    /// Switches choose a port for each packet by queue length, which user space does not support.
    #[error("switches or NICs choose ports by their queues")]
    LocalChoice,
    /// More hosts than addresses.
    #[error("{0} hosts are more than there are addresses in 10.77.0.0/16")]
    TooManyHosts(u32),
}

impl UnfitFabric {
    /// Suggested fix.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::SeveralNics => "use a fabric whose hosts have one link each, such as leaf-spine",
            Self::Detours => "set `topology.routing = \"minimal\"`",
            Self::LocalChoice => {
                "set `switch.routing = \"ecmp\"`, and with NICs of several ports `topology.port-choice = \"hash\"`"
            }
            Self::TooManyHosts(_) => "use at most 65534 hosts",
        }
    }
}

/// Packet that has reached its host.
#[derive(Debug, PartialEq, Eq)]
pub struct Delivery<'a> {
    /// The host.
    pub host: HostId,
    /// Time of arrival, not later than the time of the call that caused it.
    pub at: Time,
    /// The IP packet.
    pub packet: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    /// Execute the scheduled command with this number.
    Command(usize),
    /// The last bit of the first packet of the link's queue leaves.
    End(LinkId),
    /// A packet arrives at the far end of the link.
    Arrival(LinkId, Slot),
}

/// At equal times, commands come first, then ends of transmissions, then arrivals, as in the simulator. Events of the same kind keep their
/// scheduling order, so packets do not overtake each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at: Time,
    rank: u8,
    number: u64,
    action: Action,
}

/// All switches and links of a fabric.
///
/// A state machine without clock and IO: [`advance`](Self::advance) executes due events, [`on_packet`](Self::on_packet) takes a packet from
/// a host, [`poll_delivery`](Self::poll_delivery) hands out a packet that has reached its host, and [`deadline`](Self::deadline) is the
/// time of the next event. Spurious calls are harmless. Time never goes back: an earlier time counts as the latest time. The same packets
/// and commands at the same times give the same outcome.
#[derive(Debug)]
pub struct SoftSwitch {
    now: Time,
    forwarding: Forwarding,
    hosts: u32,
    /// Links by number; `None` for links that the scenario takes down.
    links: Vec<Option<Link>>,
    pool: Pool,
    events: BinaryHeap<Reverse<Event>>,
    /// Number of the next event.
    number: u64,
    commands: Vec<Command>,
    deliveries: VecDeque<(HostId, Time, Slot)>,
    /// Buffer of the last delivery handed out.
    lent: Option<Slot>,
    totals: Totals,
}

impl SoftSwitch {
    /// An empty fabric.
    ///
    /// # Errors
    /// If user space cannot emulate the fabric.
    pub fn new(plan: &FabricPlan<'_>) -> Result<Self, UnfitFabric> {
        let topology = plan.topology;
        if !topology.further_nics.is_empty() {
            return Err(UnfitFabric::SeveralNics);
        }
        if topology.detours().is_some() {
            return Err(UnfitFabric::Detours);
        }
        let mut roles = topology.switches.iter().map(|spec| spec.role);
        if roles.any(|role| plan.switch.path_choice(role).is_local()) {
            return Err(UnfitFabric::LocalChoice);
        }
        if !address::fits(topology.hosts) {
            return Err(UnfitFabric::TooManyHosts(topology.hosts));
        }
        let mut links: Vec<Option<Link>> = Vec::new();
        links.resize_with(topology.cables.len() * 2, || None);
        for id in topology.links_up() {
            let (from, _) = topology.link_ends(id);
            let rate = topology.cables[id.cable()].rate;
            let packet = Bytes::new(plan.longest_packet.into());
            let bdp = port_bdp(rate, plan.propagation_rtt, packet);
            let rules = QueueRules::new(plan.switch, rate, bdp).with_limit(topology.queue_of(id));
            let queue = match topology.switch_index(from) {
                Some(_) => {
                    let limit = rules.limit();
                    (Some(rules), limit)
                }
                None => (None, plan.host_queue.as_u64()),
            };
            links[id.0 as usize] = Some(Link::new(topology, id, queue, plan.seed));
        }
        Ok(Self {
            now: Time::ZERO,
            forwarding: Forwarding::new(topology, plan.routes.clone(), plan.switch, plan.seed),
            hosts: topology.hosts,
            links,
            pool: Pool::new(plan.longest_packet.into(), MEMORY),
            events: BinaryHeap::new(),
            number: 0,
            commands: Vec::new(),
            deliveries: VecDeque::new(),
            lent: None,
            totals: Totals::default(),
        })
    }

    /// Number of hosts.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// Executes all events up to `now`.
    pub fn advance(&mut self, now: Time) {
        while let Some(Reverse(event)) = self.events.peek().copied() {
            if event.at > now {
                break;
            }
            self.events.pop();
            self.now = self.now.max(event.at);
            match event.action {
                Action::Command(index) => {
                    let command = std::mem::take(&mut self.commands[index]);
                    self.carry_out(&command);
                }
                Action::End(link) => self.on_end(link),
                Action::Arrival(link, slot) => self.on_arrival(link, slot),
            }
        }
        self.now = self.now.max(now);
    }

    /// Takes a packet from a host.
    ///
    /// # Panics
    /// If the host does not exist.
    pub fn on_packet(&mut self, now: Time, from: HostId, packet: &[u8]) {
        assert!(from.0 < self.hosts, "{from:?} is not a host");
        self.advance(now);
        self.totals.received += 1;
        let headers = match Headers::parse(packet) {
            Ok(headers) if headers.to.0 < self.hosts => headers,
            Ok(_) | Err(PacketFault::NoRoute) => {
                self.totals.no_route += 1;
                return;
            }
            Err(PacketFault::Malformed) => {
                self.totals.malformed += 1;
                return;
            }
        };
        let hash = headers.hash(from);
        match self.pool.store(packet, headers, hash) {
            Some(slot) => self.enqueue(self.forwarding.uplink(from), slot),
            None => self.totals.no_memory += 1,
        }
    }

    /// Changes links immediately.
    pub fn apply(&mut self, now: Time, command: &Command) {
        self.advance(now);
        self.carry_out(command);
    }

    /// Changes links at a time.
    pub fn schedule(&mut self, at: Time, command: Command) {
        self.commands.push(command);
        self.foresee(at, Action::Command(self.commands.len() - 1));
    }

    /// The next packet that has reached its host.
    pub fn poll_delivery(&mut self) -> Option<Delivery<'_>> {
        if let Some(slot) = self.lent.take() {
            self.pool.release(slot);
        }
        let (host, at, slot) = self.deliveries.pop_front()?;
        self.totals.delivered += 1;
        self.lent = Some(slot);
        let packet = self.pool.bytes(slot);
        Some(Delivery { host, at, packet })
    }

    /// Time of the next event; [`Time::NEVER`] if nothing happens before the next packet.
    pub fn deadline(&self) -> Time {
        if !self.deliveries.is_empty() {
            return self.now;
        }
        let next = self.events.peek();
        next.map_or(Time::NEVER, |Reverse(event)| event.at)
    }

    /// Counters of each link that is not down from the beginning.
    pub fn links(&self) -> impl Iterator<Item = (LinkId, ForwardedLinkCounters)> + '_ {
        let links = self.links.iter().enumerate();
        links.filter_map(|(id, link)| Some((LinkId(id as u32), link.as_ref()?.counters)))
    }

    /// Counters at the edge.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Packets in queues and on wires, and delivered packets that are not polled yet.
    pub fn in_flight(&self) -> u64 {
        self.pool.in_use() as u64 - u64::from(self.lent.is_some())
    }

    /// Packets in queues.
    pub fn queued(&self) -> u64 {
        let links = self.links.iter().flatten();
        links.map(|link| link.queued() as u64).sum()
    }

    fn foresee(&mut self, at: Time, action: Action) {
        let rank = match action {
            Action::Command(_) => 0,
            Action::End(_) => 1,
            Action::Arrival(..) => 2,
        };
        let number = self.number;
        self.number += 1;
        self.events.push(Reverse(Event {
            at,
            rank,
            number,
            action,
        }));
    }

    fn carry_out(&mut self, command: &Command) {
        for link in &command.links {
            if let Some(Some(link)) = self.links.get_mut(link.0 as usize) {
                command
                    .changes
                    .iter()
                    .for_each(|&change| link.apply(change));
            }
        }
    }

    fn enqueue(&mut self, id: LinkId, slot: Slot) {
        let link = self.links[id.0 as usize].as_mut();
        let link = link.expect("routes are made of links that are up");
        match link.enqueue(self.now, slot, &mut self.pool) {
            Ok(None) => {}
            Ok(Some(end)) => self.foresee(end, Action::End(id)),
            Err(_) => self.pool.release(slot),
        }
    }

    fn on_end(&mut self, id: LinkId) {
        let Some(link) = &mut self.links[id.0 as usize] else {
            return;
        };
        let (fate, next) = link.finish(self.now, &mut self.pool);
        if let Some(end) = next {
            self.foresee(end, Action::End(id));
        }
        match fate {
            None => {}
            Some(TransmitOutcome::Lost(slot)) => self.pool.release(slot),
            Some(TransmitOutcome::Carried(slot, arrival, copy)) => {
                self.foresee(arrival, Action::Arrival(id, slot));
                if let Some(copy) = copy {
                    self.foresee(arrival, Action::Arrival(id, copy));
                }
            }
        }
    }

    fn on_arrival(&mut self, id: LinkId, slot: Slot) {
        let Some(link) = &self.links[id.0 as usize] else {
            return;
        };
        match link.to {
            Node::Host(host) => self.deliveries.push_back((host, self.now, slot)),
            Node::Switch(switch) => {
                let (headers, hash) = self.pool.headers(slot);
                let next = self.forwarding.next_link(switch, headers.to, hash);
                self.enqueue(next, slot);
            }
        }
    }
}

#[cfg(test)]
mod tests;

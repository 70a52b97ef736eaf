//! The oracle's own view of a fabric: wires, routes, hashes and the order of simultaneous arrivals, each computed in the most obvious way
//! whenever it is needed. The state of links at an instant is read from the list of events each time.

use clearway_fabric::topology::{LinkId, NodeId, SwitchRole, Topology};
use clearway_fabric::{LinkChange, LinkEvent, LinkSchedule};
use clearway_transport::Packet;
use clearway_units::{HostId, Purpose, RandomStream, Rate, Span, Time, mix64};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// From each switch to some others: links between groups, then links within groups.
type Distance = Vec<Option<(u32, u32)>>;

/// To the switch of each host, and to the nearest switch of each group.
struct Distances {
    to_hosts: Vec<Distance>,
    to_groups: Vec<Distance>,
}

/// A fabric as the oracle sees it.
pub(crate) struct Network<'a> {
    topology: &'a Topology,
    schedule: &'a LinkSchedule,
    seed: u64,
    /// Distances by the cables that are known to be up.
    distances: RefCell<BTreeMap<Vec<bool>, Rc<Distances>>>,
}

impl<'a> Network<'a> {
    pub(crate) fn new(topology: &'a Topology, schedule: &'a LinkSchedule, seed: u64) -> Self {
        Self {
            topology,
            schedule,
            seed,
            distances: RefCell::default(),
        }
    }

    /// The events of the cable of a link.
    fn events_of(&self, link: LinkId) -> impl Iterator<Item = &'a LinkEvent> {
        let events = self.schedule.events().iter();
        events.filter(move |event| event.cable == link.0 as usize / 2)
    }

    /// True if a link works at `now`.
    pub(crate) fn works(&self, link: LinkId, now: Time) -> bool {
        let states = self.events_of(link).filter_map(|event| match event.change {
            LinkChange::Down => Some((event.at, false)),
            LinkChange::Up => Some((event.at, true)),
            LinkChange::Rate(_) | LinkChange::PacketLoss(_) | LinkChange::PauseStorm(_) => None,
        });
        states.fold(true, |before, (at, works)| match at <= now {
            true => works,
            false => before,
        })
    }

    /// True if a pause storm is on at a link at `now`.
    pub(crate) fn storms(&self, link: LinkId, now: Time) -> bool {
        let before = self.events_of(link).filter(|event| event.at <= now);
        let storms = before.filter_map(|event| match event.change {
            LinkChange::PauseStorm(storm) => Some(storm),
            _ => None,
        });
        storms.last().unwrap_or(false)
    }

    /// True if a link does not work at some time from `from` to `to`, both included.
    pub(crate) fn is_cut(&self, link: LinkId, from: Time, to: Time) -> bool {
        let times = self.events_of(link).map(|event| event.at);
        let mut within = times.filter(|at| from < *at && *at <= to);
        !self.works(link, from) || within.any(|at| !self.works(link, at))
    }

    /// The rate of a link at `now`.
    pub(crate) fn rate(&self, link: LinkId, now: Time) -> Rate {
        let before = self.events_of(link).filter(|event| event.at <= now);
        let rates = before.filter_map(|event| match event.change {
            LinkChange::Rate(rate) => Some(rate),
            _ => None,
        });
        let own = self.topology.cables[link.0 as usize / 2].rate;
        rates.last().unwrap_or(own)
    }

    /// The highest rate of a link at any time.
    pub(crate) fn highest_rate(&self, link: LinkId) -> Rate {
        let times = self.events_of(link).map(|event| event.at);
        let rates = times.map(|at| self.rate(link, at));
        rates.fold(self.rate(link, Time::ZERO), Rate::max)
    }

    /// The cables that switches take for up at `now`.
    fn known_up(&self, now: Time) -> Vec<bool> {
        let cables = self.topology.cables.iter().enumerate();
        let then = now
            .as_ps()
            .checked_sub(self.schedule.reroute_delay().as_ps());
        let up = |(index, cable): (usize, &clearway_fabric::topology::Cable)| {
            let link = LinkId(2 * index as u32);
            cable.up && then.is_none_or(|then| self.works(link, Time::from_ps(then)))
        };
        cables.map(up).collect()
    }

    fn distances(&self, known_up: &[bool]) -> Rc<Distances> {
        if let Some(found) = self.distances.borrow().get(known_up) {
            return Rc::clone(found);
        }
        let hosts = (0..self.topology.hosts).map(|host| vec![self.switch_of(HostId(host))]);
        let groups = self.topology.groups.as_ref();
        let of_group = |group| {
            let all = (0..).map(|index| NodeId(self.topology.hosts + index));
            let groups = groups.iter().flat_map(|groups| &groups.of_switch);
            let own = all.zip(groups).filter(|(_, own)| **own == group);
            own.map(|(node, _)| node).collect()
        };
        let count = groups.map_or(0, |groups| groups.count);
        let all = Rc::new(Distances {
            to_hosts: hosts.map(|to| self.distances_to(&to, known_up)).collect(),
            to_groups: (0..count)
                .map(of_group)
                .map(|to: Vec<NodeId>| self.distances_to(&to, known_up))
                .collect(),
        });
        let mut distances = self.distances.borrow_mut();
        distances.insert(known_up.to_vec(), Rc::clone(&all));
        all
    }

    /// Links that leave `node` and are up, in the order of cables.
    pub(crate) fn links_of(&self, node: NodeId) -> impl Iterator<Item = LinkId> + '_ {
        let cables = self.topology.cables.iter().enumerate();
        cables
            .filter(|(_, cable)| cable.up)
            .flat_map(move |(index, cable)| {
                let leaves = |end: &usize| cable.ends[*end] == node;
                let link = move |end| LinkId(2 * index as u32 + end as u32);
                [0, 1]
                    .into_iter()
                    .filter(leaves)
                    .map(link)
                    .collect::<Vec<_>>()
            })
    }

    pub(crate) fn end_of(&self, link: LinkId) -> NodeId {
        self.topology.cables[link.0 as usize / 2].ends[1 - link.0 as usize % 2]
    }

    pub(crate) fn start_of(&self, link: LinkId) -> NodeId {
        self.topology.cables[link.0 as usize / 2].ends[link.0 as usize % 2]
    }

    pub(crate) fn is_host(&self, node: NodeId) -> bool {
        node.0 < self.topology.hosts
    }

    /// True for a switch of a scale-up fabric.
    pub(crate) fn is_scale_up(&self, node: NodeId) -> bool {
        let index = node.0.checked_sub(self.topology.hosts);
        let switch = index.map(|index| &self.topology.switches[index as usize]);
        switch.is_some_and(|switch| switch.role == SwitchRole::ScaleUp)
    }

    /// The one link that leaves a host.
    pub(crate) fn uplink(&self, host: HostId) -> LinkId {
        let mut links = self.links_of(NodeId(host.0));
        links.next().expect("a host has a link")
    }

    fn switch_of(&self, host: HostId) -> NodeId {
        self.end_of(self.uplink(host))
    }

    /// The group of a switch; without groups all switches are in one.
    pub(crate) fn group_of(&self, switch: NodeId) -> u16 {
        let index = (switch.0 - self.topology.hosts) as usize;
        let groups = self.topology.groups.as_ref();
        groups.map_or(0, |groups| groups.of_switch[index])
    }

    /// The group of the switch of a host.
    pub(crate) fn group_of_host(&self, host: HostId) -> u16 {
        self.group_of(self.switch_of(host))
    }

    /// One link more.
    fn farther(&self, link: LinkId, (globals, locals): (u32, u32)) -> (u32, u32) {
        match self.group_of(self.start_of(link)) == self.group_of(self.end_of(link)) {
            true => (globals, locals + 1),
            false => (globals + 1, locals),
        }
    }

    /// Relaxes until nothing changes.
    fn distances_to(&self, roots: &[NodeId], known_up: &[bool]) -> Distance {
        let hosts = self.topology.hosts;
        let mut distance = vec![None; self.topology.switches.len()];
        for root in roots {
            distance[(root.0 - hosts) as usize] = Some((0, 0));
        }
        let links: Vec<LinkId> = (hosts..hosts + distance.len() as u32)
            .flat_map(|node| self.links_of(NodeId(node)).collect::<Vec<_>>())
            .filter(|&link| !self.is_host(self.end_of(link)) && known_up[link.0 as usize / 2])
            .collect();
        loop {
            let before = distance.clone();
            for &link in &links {
                let from = (self.start_of(link).0 - hosts) as usize;
                let to = (self.end_of(link).0 - hosts) as usize;
                if !self.passes(self.end_of(link), &distance) {
                    continue;
                }
                let through = distance[to].map(|rest| self.farther(link, rest));
                if let Some(through) = through
                    && distance[from].is_none_or(|known| known > through)
                {
                    distance[from] = Some(through);
                }
            }
            if distance == before {
                return distance;
            }
        }
    }

    /// True if packets on their way may come to a switch: not to the ports of a NIC, unless it is their receiver's.
    fn passes(&self, node: NodeId, distance: &Distance) -> bool {
        let is_nic = matches!(self.topology.role_of(node), Some(SwitchRole::Nic(_)));
        let hosts = self.topology.cables.iter().filter(|cable| {
            cable.ends.contains(&node) && cable.ends.iter().any(|end| self.is_host(*end))
        });
        let is_nic = is_nic && hosts.count() == 1;
        !is_nic || distance[(node.0 - self.topology.hosts) as usize] == Some((0, 0))
    }

    /// True if a way leads from a switch to a group that it is not of.
    pub(crate) fn leads_to_group(&self, switch: NodeId, group: u16, now: Time) -> bool {
        let distances = self.distances(&self.known_up(now));
        let index = (switch.0 - self.topology.hosts) as usize;
        distances.to_groups[usize::from(group)][index].is_some_and(|rest| rest > (0, 0))
    }

    /// With all links up: the links of the direct way of a packet from `switch`, the sum of the links of its detours over each switch of
    /// the third group, and the number of these switches from which a way leads on.
    pub(crate) fn weights(&self, switch: NodeId, packet: &Packet) -> (u128, u128, u128) {
        let whole: Vec<bool> = self.topology.cables.iter().map(|cable| cable.up).collect();
        let distances = self.distances(&whole);
        let links = |distance: &Distance, node: NodeId| {
            let rest = distance[(node.0 - self.topology.hosts) as usize];
            rest.map(|(globals, locals)| u128::from(globals + locals))
        };
        let via = u16::from(packet.via) - 1;
        let to_host = &distances.to_hosts[packet.dst.index()];
        let first_leg = links(&distances.to_groups[usize::from(via)], switch).expect("a way there");
        let all = (0..self.topology.switches.len() as u32)
            .map(|index| NodeId(self.topology.hosts + index));
        let members = all.filter(|node| self.group_of(*node) == via);
        let legs: Vec<u128> = members.filter_map(|node| links(to_host, node)).collect();
        let count = legs.len() as u128;
        let all_legs = legs.iter().sum::<u128>() + count * first_leg;
        (links(to_host, switch).expect("connected"), all_legs, count)
    }

    /// The links that lead `packet` from `switch` on at `now`; where no way is left, those that would if all links were up.
    pub(crate) fn next_links(
        &self,
        switch: NodeId,
        packet: &Packet,
        now: Time,
    ) -> Result<Vec<LinkId>, Vec<LinkId>> {
        if let Some(links) = self.leading(switch, packet, &self.known_up(now)) {
            return Ok(links);
        }
        let whole: Vec<bool> = self.topology.cables.iter().map(|cable| cable.up).collect();
        Err(self.leading(switch, packet, &whole).expect("connected"))
    }

    /// The links that lead `packet` from `switch` on where these cables are up.
    fn leading(&self, switch: NodeId, packet: &Packet, known_up: &[bool]) -> Option<Vec<LinkId>> {
        let hosts = self.topology.hosts;
        let distances = self.distances(known_up);
        if packet.via > 0 {
            let distance = &distances.to_groups[usize::from(packet.via) - 1];
            return Some(self.nearer(switch, distance, known_up));
        }
        if self.switch_of(packet.dst) == switch {
            let link = LinkId(self.uplink(packet.dst).0 ^ 1);
            return known_up[link.0 as usize / 2].then_some(vec![link]);
        }
        let distance = &distances.to_hosts[packet.dst.index()];
        distance[(switch.0 - hosts) as usize]?;
        Some(self.nearer(switch, distance, known_up))
    }

    /// The links that lead from `switch` nearer to something, and that come first in the order of cables.
    fn nearer(&self, switch: NodeId, distance: &Distance, known_up: &[bool]) -> Vec<LinkId> {
        let hosts = self.topology.hosts;
        let here = distance[(switch.0 - hosts) as usize];
        let nearer = |link: &LinkId| {
            let end = self.end_of(*link);
            known_up[link.0 as usize / 2]
                && !self.is_host(end)
                && self.passes(end, distance)
                && distance[(end.0 - hosts) as usize].map(|rest| self.farther(*link, rest)) == here
        };
        let order = |link: &LinkId| self.topology.cables[link.cable()].order;
        let nearer: Vec<LinkId> = self.links_of(switch).filter(nearer).collect();
        let lowest = nearer.iter().map(order).min();
        let first = |link: &LinkId| Some(order(link)) == lowest;
        nearer.into_iter().filter(first).collect()
    }

    /// The one of several links that ECMP takes from `switch`.
    pub(crate) fn hashed(&self, switch: NodeId, packet: &Packet, links: &[LinkId]) -> LinkId {
        let index = u64::from(switch.0 - self.topology.hosts);
        let salt = RandomStream::new(self.seed, Purpose::Hashing, index).next_u64();
        let hash = mix64(salt ^ u64::from(packet.header_hash)) >> 32;
        links[(hash * links.len() as u64 / (1 << 32)) as usize]
    }

    /// The hash of source, destination and source port that a NIC writes into a packet.
    pub(crate) fn header_hash(packet: &Packet) -> u32 {
        let addresses = (u64::from(packet.src.0) << 32) + u64::from(packet.dst.0);
        (mix64(mix64(addresses) ^ u64::from(packet.source_port)) % (1 << 32)) as u32
    }

    /// Orders arrivals of one instant: `(link ⊕ a)·b` modulo 2^32, with `a` and odd `b` from seed and instant.
    pub(crate) fn tie_break(&self, time: Time, link: LinkId) -> u64 {
        let seed = mix64(self.seed ^ Purpose::Ties as u64);
        let drawn = mix64(seed ^ time.as_ps());
        let (a, b) = (drawn % (1 << 32), (drawn / (1 << 32)) | 1);
        ((u64::from(link.0) ^ a) * b) % (1 << 32)
    }

    /// The time that `bytes` need on `link` from `now` on, rounded up to a picosecond.
    pub(crate) fn transmission(&self, link: LinkId, now: Time, bytes: u64) -> Span {
        let rate = u128::from(self.rate(link, now).as_bps());
        let bits = u128::from(bytes) * 8 * 1_000_000_000_000;
        Span::from_ps((bits / rate + u128::from(bits % rate != 0)) as u64)
    }

    /// From the end of transmission to the arrival: the wire, and the latency of the switch at its end.
    pub(crate) fn delay(&self, link: LinkId) -> Span {
        let wire = self.topology.cables[link.0 as usize / 2].delay;
        let end = self.end_of(link);
        if self.is_host(end) {
            return wire;
        }
        wire + self.topology.switches[(end.0 - self.topology.hosts) as usize].latency
    }

    /// The probability that a packet of `bytes` on `link` arrives, and without a wrong bit.
    pub(crate) fn survival(&self, link: LinkId, end: Time, bytes: u16) -> f64 {
        let cable = &self.topology.cables[link.0 as usize / 2];
        if end >= cable.dead_from {
            return 0.0;
        }
        let before = self.events_of(link).filter(|event| event.at <= end);
        let losses = before.filter_map(|event| match event.change {
            LinkChange::PacketLoss(loss) => Some(loss),
            _ => None,
        });
        let loss = losses.last().unwrap_or(cable.packet_loss);
        let (wrong, arrives) = (cable.bit_error_rate, 1.0 - loss);
        if wrong == 0.0 {
            return arrives;
        }
        (0..u32::from(bytes) * 8).fold(arrives, |right, _| right * (1.0 - wrong))
    }
}

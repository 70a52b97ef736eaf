//! Unloaded path lengths: base round-trip times and bandwidth-delay products. Among equal-cost paths the longest counts, which controllers
//! use as their base; ideal completion times use the shortest (the module `ideal`).

use super::detours::DetourBounds;
use super::equal_cost::{Bundle, EqualCostPaths, faster_than_both};
use super::path_class::PathClass;
use super::{LinkId, Topology};
use clearway_transport::congestion::{NetworkFacts, PathFacts};
use clearway_units::{HostId, Span};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The packet sizes for which times are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketSizes {
    /// Payload of a full packet in bytes.
    pub payload: u32,
    /// Headers of each packet in bytes.
    pub header: u32,
    /// An acknowledgement in bytes.
    pub ack: u32,
}

impl PacketSizes {
    /// The sizes with so many bytes more on each packet and acknowledgement.
    #[must_use]
    pub fn with(self, more: u32) -> Self {
        Self {
            header: self.header + more,
            ack: self.ack + more,
            ..self
        }
    }
}

/// In place of an index: no path leads there.
const NO_PATH: u32 = u32::MAX;

/// Path lengths between all hosts.
#[derive(Debug, Clone)]
pub struct Paths {
    groups: usize,
    /// Distinct sets of equal-cost paths between attachment switches.
    equal_cost: Vec<EqualCostPaths>,
    /// The fastest paths of those sets that have others than the longest one, in ranges.
    pub(super) fastest: Vec<PathClass>,
    /// `between[to * groups + from]` is an index into `equal_cost`, or [`NO_PATH`].
    between: Vec<u32>,
    /// For each host its group, its link up and its link down.
    hosts: Vec<(u16, PathClass, PathClass)>,
    /// For each group, true if it is the router of a host in a scale-up fabric.
    routers: Vec<bool>,
}

/// Collects [`Paths`] while routes are computed.
pub(super) struct PathsBuilder {
    paths: Paths,
    known: FxHashMap<EqualCostPaths, u32>,
    known_fastest: FxHashMap<Vec<PathClass>, (u32, u8)>,
}

impl PathsBuilder {
    pub(super) fn new(groups: usize, hosts: Vec<(u16, PathClass, PathClass)>) -> Self {
        Self {
            paths: Paths {
                groups,
                equal_cost: Vec::new(),
                fastest: Vec::new(),
                between: Vec::with_capacity(groups * groups),
                hosts,
                routers: Vec::new(),
            },
            known: FxHashMap::default(),
            known_fastest: FxHashMap::default(),
        }
    }

    /// Appends the paths from the next group to the group at hand, if there are any.
    pub(super) fn push(&mut self, bundle: &Bundle) {
        let Some(paths) = bundle.paths(|fastest| self.range_of(fastest)) else {
            self.paths.between.push(NO_PATH);
            return;
        };
        let index = self.index_of(paths);
        self.paths.between.push(index);
    }

    /// Appends the paths to a group, from all groups: those to its twin, the group `of`, but that these two change places.
    pub(super) fn push_twin(&mut self, group: usize, of: usize) {
        let first = of * self.paths.groups;
        let between = &mut self.paths.between;
        let own = between.len();
        between.extend_from_within(first..first + self.paths.groups);
        between.swap(own + group, own + of);
    }

    /// Index of a set of paths; stores it if it is new.
    fn index_of(&mut self, paths: EqualCostPaths) -> u32 {
        let known = &mut self.paths.equal_cost;
        *self.known.entry(paths).or_insert_with(|| {
            known.push(paths);
            known.len() as u32 - 1
        })
    }

    /// Range of a list of fastest paths in `Paths::fastest`; stores the list if it is new.
    fn range_of(&mut self, fastest: &[PathClass]) -> (u32, u8) {
        if let Some(&range) = self.known_fastest.get(fastest) {
            return range;
        }
        let range = (self.paths.fastest.len() as u32, fastest.len() as u8);
        self.paths.fastest.extend_from_slice(fastest);
        self.known_fastest.insert(fastest.to_vec(), range);
        range
    }

    /// Replaces the paths between groups of switches by detours, where packets take such.
    pub(super) fn make_detours(&mut self, bounds: &DetourBounds) {
        let groups = self.paths.groups;
        for (to, from) in (0..groups).flat_map(|to| (0..groups).map(move |from| (to, from))) {
            let place = to * groups + from;
            let direct = self.paths.between[place];
            let Some(detour) = bounds.between(from, to).filter(|_| direct != NO_PATH) else {
                continue;
            };
            let (mut fastest, mut longest) = (detour.fastest, detour.longest);
            if detour.is_optional {
                let direct = self.paths.equal_cost[direct as usize];
                longest = longest.longer(direct.longest);
                let direct = direct.fastest(&self.paths.fastest).iter().copied();
                fastest = direct.fold(fastest, faster_than_both);
            }
            let paths = EqualCostPaths {
                longest,
                fastest: self.range_of(&[fastest]),
                capacity: detour.capacity,
                is_single: false,
            };
            self.paths.between[place] = self.index_of(paths);
        }
    }

    /// The paths. `routers` says which groups are routers of hosts in a scale-up fabric.
    pub(super) fn finish(self, routers: Vec<bool>) -> Paths {
        Paths {
            routers,
            ..self.paths
        }
    }
}

impl Paths {
    /// True if a path leads from one host to another; always where each host has one NIC.
    pub fn reaches(&self, from: HostId, to: HostId) -> bool {
        let group = |host: HostId| usize::from(self.hosts[host.index()].0);
        self.joins(group(from), group(to))
    }

    fn joins(&self, from: usize, to: usize) -> bool {
        self.between[to * self.groups + from] != NO_PATH
    }

    /// The unloaded path from one host to another, of several the longest.
    ///
    /// # Panics
    /// If no path leads from one host to the other.
    pub fn between(&self, from: HostId, to: HostId) -> PathClass {
        let (from_group, up, _) = self.hosts[from.index()];
        let (to_group, _, down) = self.hosts[to.index()];
        up.then(self.between_groups(from_group.into(), to_group.into()))
            .then(down)
    }

    /// Number of links from one host to another. The link between a host and its [router](Topology::with_routers_of) in a scale-up fabric
    /// lies within the host and does not count.
    ///
    /// # Panics
    /// If no path leads from one host to the other.
    pub fn links_between(&self, from: HostId, to: HostId) -> u32 {
        let has_router = |host: HostId| self.routers[usize::from(self.hosts[host.index()].0)];
        let inside = u32::from(has_router(from)) + u32::from(has_router(to));
        self.between(from, to).hops - inside
    }

    fn between_groups(&self, from: usize, to: usize) -> PathClass {
        self.equal_cost(from, to).longest
    }

    fn equal_cost(&self, from: usize, to: usize) -> &EqualCostPaths {
        let index = self.between[to * self.groups + from];
        let found = self.equal_cost.get(index as usize);
        found.expect("a path leads there")
    }

    /// The link of one host up, all equal-cost paths from switch to switch, all equal-cost paths back, and the link of the other host down.
    pub(super) fn legs(
        &self,
        from: HostId,
        to: HostId,
    ) -> (PathClass, &EqualCostPaths, &EqualCostPaths, PathClass) {
        let (from_group, up, _) = self.hosts[from.index()];
        let (to_group, _, down) = self.hosts[to.index()];
        let (from, to) = (from_group.into(), to_group.into());
        (
            up,
            self.equal_cost(from, to),
            self.equal_cost(to, from),
            down,
        )
    }

    /// The round trip of a lone full packet and its acknowledgement.
    pub fn round_trip(&self, from: HostId, to: HostId, sizes: PacketSizes) -> Span {
        self.between(from, to).span_of(sizes.payload + sizes.header)
            + self.between(to, from).span_of(sizes.ack)
    }

    /// Facts about its path that the sender of a flow may know.
    pub fn path_facts(&self, from: HostId, to: HostId, sizes: PacketSizes) -> PathFacts {
        PathFacts {
            rtt: self.round_trip(from, to, sizes),
            switches: self.between(from, to).hops.saturating_sub(1),
        }
    }

    /// The pair of hosts with the longest round trip, of those that reach each other; one host from each group stands for all.
    pub fn longest_pair(&self, sizes: PacketSizes) -> Option<(HostId, HostId)> {
        let mut of_group: Vec<Vec<HostId>> = vec![Vec::new(); self.groups];
        for (host, &(group, up, down)) in self.hosts.iter().enumerate() {
            let hosts = &mut of_group[usize::from(group)];
            let slowest = hosts.first().map(|&host| self.hosts[host.index()]);
            match slowest {
                Some((_, u, d)) if u.then(d).longer(up.then(down)) == u.then(d) => {
                    if hosts.len() < 2 {
                        hosts.push(HostId(host as u32));
                    }
                }
                _ => hosts.insert(0, HostId(host as u32)),
            }
        }
        // Pairs that are alike have the same round trip, and the first of them counts.
        let mut known = FxHashMap::default();
        let kinds = self.kinds_of(&of_group);
        // Square by square: the table is read along its rows and its columns.
        const SIDE: usize = 64;
        let squares = (0..self.groups).step_by(SIDE);
        let squares =
            squares.flat_map(|from| (0..self.groups).step_by(SIDE).map(move |to| (from, to)));
        for (first_from, first_to) in squares {
            for from in first_from..(first_from + SIDE).min(self.groups) {
                let Some(&sender) = of_group[from].first() else {
                    continue;
                };
                let mut last = None;
                for to in first_to..(first_to + SIDE).min(self.groups) {
                    let second = usize::from(from == to);
                    let there = self.between[to * self.groups + from];
                    let Some(&kind) = kinds[to].get(second) else {
                        continue;
                    };
                    let back = self.between[from * self.groups + to];
                    let pair = (kinds[from][0], there, back, kind);
                    if there == NO_PATH || last.replace(pair) == Some(pair) {
                        continue;
                    }
                    let hosts = (from, to, sender, of_group[to][second]);
                    let first = known.entry(pair).or_insert(hosts);
                    if (from, to) < (first.0, first.1) {
                        *first = hosts;
                    }
                }
            }
        }
        let longest = known
            .into_values()
            .max_by_key(|&(from, to, sender, receiver)| {
                let round_trip = self.round_trip(sender, receiver, sizes);
                (round_trip, std::cmp::Reverse((from, to)))
            });
        longest.map(|(_, _, sender, receiver)| (sender, receiver))
    }

    /// A number for each of these hosts, the same where their links are alike.
    fn kinds_of(&self, groups: &[Vec<HostId>]) -> Vec<Vec<u32>> {
        let mut known = FxHashMap::default();
        let mut kind = |host: &HostId| {
            let (_, up, down) = self.hosts[host.index()];
            let next = known.len() as u32;
            *known.entry((up, down)).or_insert(next)
        };
        let of_hosts = |hosts: &Vec<HostId>| hosts.iter().map(&mut kind).collect();
        groups.iter().map(of_hosts).collect()
    }

    /// Facts about the network that transports may know: the rate of the first host's NIC and the longest unloaded round trip. In a run the
    /// endpoint of a host with another rate knows its own.
    ///
    /// # Panics
    /// If no host reaches another.
    pub fn network_facts(&self, sizes: PacketSizes) -> NetworkFacts {
        let (from, to) = self.longest_pair(sizes).expect("a fabric has two hosts");
        let line_rate = self.hosts[0].1.bottleneck.expect("a host has a link");
        let base_rtt = self.round_trip(from, to, sizes);
        NetworkFacts {
            line_rate,
            base_rtt,
            propagation_rtt: self.between(from, to).propagation
                + self.between(to, from).propagation,
            bdp: line_rate.bytes_in(base_rtt),
            payload: sizes.payload,
            header: sizes.header,
            ack: sizes.ack,
            path: self.path_facts(from, to, sizes),
        }
    }

    /// For each number of links, how many ordered pairs of different hosts are so far apart.
    pub fn histogram(&self) -> BTreeMap<u32, u64> {
        let mut population = vec![0u64; self.groups];
        for &(group, ..) in &self.hosts {
            population[usize::from(group)] += 1;
        }
        // By set of equal-cost paths, of which there are few.
        let mut alike = vec![0u64; self.equal_cost.len()];
        for to in 0..self.groups {
            for from in 0..self.groups {
                let count = if from == to {
                    population[to] * population[to].saturating_sub(1)
                } else {
                    population[from] * population[to]
                };
                if count > 0 && self.joins(from, to) {
                    alike[self.between[to * self.groups + from] as usize] += count;
                }
            }
        }
        let mut pairs = BTreeMap::new();
        for (paths, count) in self.equal_cost.iter().zip(alike) {
            if count > 0 {
                *pairs.entry(paths.longest.hops + 2).or_default() += count;
            }
        }
        pairs
    }

    /// The links of a host, up and down.
    pub(super) fn of_host(topology: &Topology, up: LinkId) -> (PathClass, PathClass) {
        let down = LinkId(up.0 ^ 1);
        (
            PathClass::of_link(topology, up),
            PathClass::of_link(topology, down),
        )
    }
}

//! Shortest-path routing with equal-cost multipath, computed once for the links that are up.
//!
//! Destinations are grouped by the switch that they hang on (their *attachment*). A failed link is simply absent, so a remote
//! leaf does not hash onto a spine that has lost its link to the destination's leaf: that spine is no longer on a shortest
//! path (STrack §4.2, decision Q25: no black holes).
//!
//! One search finds the paths to a switch from everywhere. The leaves of a pod, all with links of the same kinds to the same aggregation
//! switches, are [twins]: the result of one search holds for each of them, except for themselves and their neighbours.

use super::detour_hops::DetourHops;
use super::detours::DetourBounds;
use super::equal_cost::Bundle;
use super::equivalent_switches;
use super::group_table::{GroupTable, GroupTableBuilder};
use super::neighbours::{Hop, switch_neighbours};
use super::path_class::PathClass;
use super::paths::{Paths, PathsBuilder};
use super::routing_limits::{check_delays, check_group_count, check_port_counts};
use super::{GroupRouting, LinkId, Topology, TopologyError};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

/// Attachment point of a host: the group of its switch and the switch's port to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttachmentPoint {
    /// The group: switches with hosts, numbered from zero.
    pub group: u16,
    /// The port of that switch which leads to the host.
    pub port: u16,
}

/// Next hops at one switch. Clones share their tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchRoutes {
    /// The group of the hosts on this switch, if it has any.
    own_group: Option<u16>,
    /// For each group, the place of its next hops in `sets`.
    towards: GroupTable,
    /// Distinct sets of next hops: ranges of `ports`.
    sets: Arc<[(u32, u16)]>,
    ports: Arc<[u16]>,
    /// For each group of switches by way of which packets take detours, a range of `ports`.
    detours: Arc<[(u32, u16)]>,
    /// For each port, by how many the numbers of destinations differ that go to different switches of the tier behind it, where the number
    /// decides (d-mod-k): so many ways there are to the switches below that tier.
    pub(crate) strides: Arc<[u32]>,
}

impl SwitchRoutes {
    /// The ports that lead to `to` on a shortest path; ECMP picks one.
    #[inline]
    pub fn next_hops(&self, to: AttachmentPoint) -> NextHops<'_> {
        if Some(to.group) == self.own_group {
            return NextHops::Host(to.port);
        }
        let (first, count) = self.sets[usize::from(self.towards.get(to.group))];
        NextHops::Ports(&self.ports[first as usize..first as usize + usize::from(count)])
    }

    /// The port that leads to `to` on a shortest path. Among several ports `choose` selects a place from their number. A route must exist.
    #[inline(always)]
    pub(crate) fn next_hop(
        &self,
        to: AttachmentPoint,
        choose: impl FnOnce(usize) -> usize,
    ) -> usize {
        if Some(to.group) == self.own_group {
            return to.port.into();
        }
        let (first, count) = self.sets[usize::from(self.towards.get(to.group))];
        debug_assert!(count > 0, "a way to each group");
        usize::from(self.ports[first as usize + choose(count.into())])
    }

    /// The ports that lead to the nearest switch of a [group](super::SwitchGroups) by way of which packets take detours: none in the group
    /// itself, or if no way leads there.
    pub(crate) fn towards_group(&self, group: u16) -> &[u16] {
        let (first, count) = self.detours[usize::from(group)];
        &self.ports[first as usize..first as usize + usize::from(count)]
    }

    /// The sets of next hops that packets without a detour take: those of groups come first.
    fn sets_in_use(&self) -> &[(u32, u16)] {
        let last = self.towards.highest();
        &self.sets[..last.map_or(0, |last| usize::from(last) + 1)]
    }

    /// The place of the switch among those with hosts, if it has any.
    pub(crate) fn own_group(&self) -> Option<u16> {
        self.own_group
    }
}

/// The answer of [`SwitchRoutes::next_hops`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextHops<'a> {
    /// The host hangs on this switch, behind this port.
    Host(u16),
    /// Any of these ports.
    Ports(&'a [u16]),
}

/// Routes of a whole fabric. Clones share their tables, which are large: every run of a fabric and every switch of a run has one.
#[derive(Debug, Clone)]
pub struct Routes {
    /// For each host.
    pub attachments: Arc<[AttachmentPoint]>,
    /// For each switch.
    pub switches: Arc<[SwitchRoutes]>,
    /// Lengths of paths between groups.
    pub paths: Arc<Paths>,
    /// Lengths of detours, where switches weigh them.
    pub(crate) detour_hops: Option<Arc<DetourHops>>,
}

/// [`SwitchRoutes`] while they grow.
#[derive(Default)]
struct Table {
    own_group: Option<u16>,
    towards: GroupTableBuilder,
    sets: Vec<(u32, u16)>,
    detours: Vec<(u32, u16)>,
    ports: Vec<u16>,
    /// The sets of ports that `sets` already has.
    known: FxHashMap<Vec<u16>, usize>,
}

impl Routes {
    /// Finds all shortest paths.
    ///
    /// # Errors
    /// If a host has no cable or two, if a cable has no delay, or if hosts cannot reach each other. Where hosts have several NICs, or NICs
    /// several ports, some of these need not reach each other: [`Paths::reaches`] says which do.
    pub fn compute(topology: &Topology) -> Result<Self, TopologyError> {
        Self::with_search(topology, |search| search)
    }

    /// As [`compute`](Self::compute), by a search that `change` has changed.
    fn with_search(
        topology: &Topology,
        change: impl FnOnce(Search) -> Search,
    ) -> Result<Self, TopologyError> {
        check_delays(topology)?;
        let ports = topology.ports();
        check_port_counts(topology, &ports)?;
        let attached = attach(topology, &ports)?;
        let mut paths = PathsBuilder::new(attached.groups.len(), attached.links);
        let mut search = change(Search::new(topology, &ports, |_| true));
        let may_be_apart = topology.may_be_apart();
        let mut bounds = DetourBounds::new(topology, &attached.groups);
        let weighed = topology.detours();
        let weighed = weighed.filter(|groups| groups.routing == GroupRouting::Ugal);
        let mut hops = weighed.map(|groups| DetourHops::new(groups, &attached.groups));
        let switches = search.tables(topology, &attached.groups, |root, bundles| {
            let root = match root {
                Root::Switch(root) => root,
                Root::Twin(twin) => {
                    paths.push_twin(twin.group, twin.of);
                    return Ok(());
                }
                Root::Group(group) => {
                    bounds.add_first_legs(group, bundles);
                    hops.iter_mut().for_each(|hops| hops.add_group(bundles));
                    return Ok(());
                }
            };
            bounds.add_second_legs(root, bundles);
            hops.iter_mut()
                .for_each(|hops| hops.add_destination(bundles));
            for &from in &attached.groups {
                let bundle = &bundles[from];
                if bundle.is_empty() && !may_be_apart {
                    return Err(TopologyError::NotConnected {
                        from: topology.switches[from].name.clone(),
                        to: topology.switches[root].name.clone(),
                    });
                }
                paths.push(bundle);
            }
            Ok(())
        })?;
        paths.make_detours(&bounds);
        let is_router = topology.scale_up_routers();
        let routers = attached.groups.iter().map(|switch| is_router[*switch]);
        let paths = paths.finish(routers.collect());
        Ok(Self {
            attachments: attached.hosts.into(),
            switches: switches.into(),
            paths: Arc::new(paths),
            detour_hops: hops.map(Arc::new),
        })
    }

    /// The tables of all switches when the cables of `down` are avoided. Ports keep their numbers; a destination that cannot be reached has
    /// no next hops.
    ///
    /// # Errors
    /// As [`compute`](Self::compute), for the fabric with all cables that are up.
    pub(crate) fn avoiding(
        topology: &Topology,
        down: &BTreeSet<usize>,
    ) -> Result<Vec<SwitchRoutes>, TopologyError> {
        let ports = topology.ports();
        let attached = attach(topology, &ports)?;
        let mut search = Search::new(topology, &ports, |link| !down.contains(&link.cable()));
        search.tables(topology, &attached.groups, |_, _| Ok(()))
    }
}

/// The tier of the switch behind each port; zero behind ports to hosts.
fn tiers_behind(topology: &Topology, hops: &[Hop]) -> Vec<u8> {
    let mut tiers = Vec::new();
    for hop in hops {
        let port = usize::from(hop.port);
        tiers.resize(tiers.len().max(port + 1), 0);
        tiers[port] = topology.switches[hop.neighbour as usize].tier;
    }
    tiers
}

fn set_strides(topology: &Topology, hops: &[Vec<Hop>], switches: &mut [SwitchRoutes]) {
    let behind: Vec<Vec<u8>> = hops.iter().map(|own| tiers_behind(topology, own)).collect();
    // For each tier, the most ways up that a switch has to choose from.
    let mut widest: BTreeMap<u8, u32> = BTreeMap::new();
    for (index, routes) in switches.iter().enumerate() {
        let own = topology.switches[index].tier;
        let leads_up = |&&(first, count): &&(u32, u16)| {
            count > 0 && behind[index][usize::from(routes.ports[first as usize])] > own
        };
        let ways_up = routes.sets_in_use().iter().filter(leads_up);
        if let Some(most) = ways_up.map(|&(_, count)| u32::from(count)).max() {
            let widest = widest.entry(own).or_insert(1);
            *widest = (*widest).max(most);
        }
    }
    let stride = |tier: u8| {
        let below = widest.range(..tier.saturating_sub(1));
        below.fold(1u32, |all, (_, &ways)| all.saturating_mul(ways))
    };
    for (routes, behind) in switches.iter_mut().zip(behind) {
        routes.strides = behind.into_iter().map(stride).collect();
    }
}

/// Breadth-first searches from one attachment switch after the other.
struct Search {
    /// Neighbours of each switch.
    hops: Vec<Vec<Hop>>,
    /// Switches that stand for the ports of a NIC, which forward nothing; empty without such switches.
    nics: Vec<bool>,
    /// The lengths of links, each once.
    kinds: Vec<PathClass>,
    distance: Vec<u32>,
    /// The shortest paths from each switch to the root.
    bundles: Vec<Bundle>,
    /// Links differ in cost.
    is_weighted: bool,
    /// One search serves all twins.
    has_twins: bool,
}

/// Destination of a tree of shortest paths.
#[derive(Debug, Clone, Copy)]
enum Root {
    /// A switch with hosts.
    Switch(usize),
    /// A switch whose tree was not searched for.
    Twin(Twin),
    /// The nearest switch of a group.
    Group(u16),
}

/// A switch with hosts whose tree equals an earlier switch's tree, except for the two and their neighbours.
#[derive(Debug, Clone, Copy)]
struct Twin {
    /// The group of its hosts.
    group: usize,
    /// The group of the other switch.
    of: usize,
}

impl Search {
    /// A search over the links that `is_used` says yes to.
    fn new(topology: &Topology, ports: &[Vec<LinkId>], is_used: impl Fn(LinkId) -> bool) -> Self {
        let (hops, kinds) = switch_neighbours(topology, ports, is_used);
        let is_weighted = hops.iter().flatten().any(|hop| hop.is_global);
        let is_ordered = hops.iter().flatten().any(|hop| hop.order > 0);
        Self {
            nics: topology.port_switches(),
            is_weighted,
            // Detours and costs are not the same for all switches of a group.
            has_twins: !is_weighted && !is_ordered && topology.detours().is_none(),
            hops,
            kinds,
            distance: Vec::new(),
            bundles: Vec::new(),
        }
    }

    /// The tables of all switches towards the switches `groups`, and the groups of switches by way of which packets take detours. `on_tree`
    /// sees the paths to each of these; none where there is a twin.
    fn tables(
        &mut self,
        topology: &Topology,
        groups: &[usize],
        mut on_tree: impl FnMut(Root, &[Bundle]) -> Result<(), TopologyError>,
    ) -> Result<Vec<SwitchRoutes>, TopologyError> {
        let mut tables: Vec<Table> = Vec::new();
        tables.resize_with(topology.switches.len(), Table::default);
        let twins = match self.has_twins {
            true => equivalent_switches::of_each(&self.hops, groups),
            false => vec![None; groups.len()],
        };
        let mut group = 0;
        while let Some(&root) = groups.get(group) {
            self.grow_tree(&[root], |at, ports| tables[at].learn(ports));
            on_tree(Root::Switch(root), &self.bundles)?;
            group += 1;
            // The first one has no twin before it.
            let copies = twins[group..].iter().map_while(|of| *of);
            let copies: Vec<Twin> = (group..)
                .zip(copies)
                .map(|(group, of)| Twin { group, of })
                .collect();
            self.copy_trees(&mut tables, &copies, groups);
            for &twin in &copies {
                on_tree(Root::Twin(twin), &[])?;
            }
            group += copies.len();
        }
        for (group, &root) in groups.iter().enumerate() {
            tables[root].own_group = Some(group as u16);
        }
        if let Some(detours) = topology.detours() {
            for group in 0..detours.count {
                let of_group = |index: &usize| detours.of_switch[*index] == group;
                let roots: Vec<usize> = (0..topology.switches.len()).filter(of_group).collect();
                self.grow_tree(&roots, |at, ports| tables[at].learn_detour(ports));
                on_tree(Root::Group(group), &self.bundles)?;
            }
        }
        let mut switches: Vec<SwitchRoutes> = tables.into_iter().map(Table::finish).collect();
        set_strides(topology, &self.hops, &mut switches);
        Ok(switches)
    }

    /// Teaches all switches the ways to the `copies`, which are the next groups. The ways equal those to their twins, except at both
    /// switches and their neighbours.
    fn copy_trees(&self, tables: &mut [Table], copies: &[Twin], groups: &[usize]) {
        // Where a switch has another way, by switch: the place of the copy, and the ports.
        let mut others: FxHashMap<usize, Vec<(usize, Vec<u16>)>> = FxHashMap::default();
        for (place, twin) in copies.iter().enumerate() {
            for (at, ports) in self.ways_of_its_own(groups[twin.group], groups[twin.of]) {
                others.entry(at).or_default().push((place, ports));
            }
        }
        // Table by table: no cache holds all of them.
        for (at, table) in tables.iter_mut().enumerate() {
            let mut from = 0;
            let mut copy = |table: &mut Table, to: usize| {
                for twin in &copies[from..to] {
                    table.towards.push(table.towards.get(twin.of));
                }
                from = to + 1;
            };
            for (place, ports) in others.get(&at).into_iter().flatten() {
                copy(table, *place);
                table.learn(ports);
            }
            copy(table, copies.len());
        }
    }

    /// Switches that have another way to `root` than to its `twin`, with its ports.
    fn ways_of_its_own(&self, root: usize, twin: usize) -> Vec<(usize, Vec<u16>)> {
        let ports = |from: usize, is_wanted: &dyn Fn(&&Hop) -> bool| -> Vec<u16> {
            let hops = self.hops[from].iter().filter(is_wanted);
            hops.map(|hop| hop.port).collect()
        };
        let mut others: Vec<(usize, Vec<u16>)> = vec![
            (root, Vec::new()),
            // All its neighbours are neighbours of the root; NICs forward nothing.
            (
                twin,
                ports(twin, &|hop| !self.is_nic(hop.neighbour as usize)),
            ),
        ];
        let mut neighbours: Vec<usize> = self.hops[root]
            .iter()
            .map(|hop| hop.neighbour as usize)
            .collect();
        neighbours.sort_unstable();
        neighbours.dedup();
        let direct = |at| (at, ports(at, &|hop| hop.neighbour as usize == root));
        others.extend(neighbours.into_iter().map(direct));
        others
    }

    /// Tells `learn` for every switch its next hops towards the nearest of `roots`, which has none.
    fn grow_tree(&mut self, roots: &[usize], mut learn: impl FnMut(usize, &[u16])) {
        let count = self.hops.len();
        self.distance.clear();
        self.distance.resize(count, u32::MAX);
        self.bundles.resize_with(count, Bundle::default);
        self.bundles.iter_mut().for_each(Bundle::clear);
        for &root in roots {
            self.distance[root] = 0;
            self.bundles[root].arrive();
        }
        let order = match self.is_weighted {
            false => self.breadth_first(roots),
            true => self.by_cost(roots),
        };
        let mut towards = Vec::new();
        for at in order {
            self.next_hops(at, &mut towards);
            learn(at, &towards);
        }
        for at in (0..count).filter(|at| self.distance[*at] == u32::MAX) {
            learn(at, &[]);
        }
    }

    /// Sets distances from the roots, where every link costs the same; the switches that are reached, nearer ones first.
    fn breadth_first(&mut self, roots: &[usize]) -> Vec<usize> {
        let mut queue = roots.to_vec();
        let mut head = 0;
        while let Some(&at) = queue.get(head) {
            head += 1;
            if !self.passes(at) {
                continue;
            }
            for hop in &self.hops[at] {
                if self.distance[hop.neighbour as usize] == u32::MAX {
                    self.distance[hop.neighbour as usize] = self.distance[at] + 1;
                    queue.push(hop.neighbour as usize);
                }
            }
        }
        queue
    }

    /// As [`breadth_first`](Self::breadth_first), where links between groups cost more (Dijkstra's algorithm).
    fn by_cost(&mut self, roots: &[usize]) -> Vec<usize> {
        let mut heap: BinaryHeap<Reverse<(u32, usize)>> =
            roots.iter().map(|&root| Reverse((0, root))).collect();
        let mut order = Vec::new();
        while let Some(Reverse((distance, at))) = heap.pop() {
            if distance > self.distance[at] {
                continue;
            }
            order.push(at);
            if !self.passes(at) {
                continue;
            }
            for hop in &self.hops[at] {
                let through = distance.saturating_add(hop.cost());
                let known = &mut self.distance[hop.neighbour as usize];
                if through < *known {
                    *known = through;
                    heap.push(Reverse((through, hop.neighbour as usize)));
                }
            }
        }
        order
    }

    /// True if ways lead on from `at` to the root: not from the ports of a NIC, unless it is the root.
    fn passes(&self, at: usize) -> bool {
        self.distance[at] == 0 || !self.is_nic(at)
    }

    /// True if a switch stands for the ports of a NIC.
    fn is_nic(&self, at: usize) -> bool {
        self.nics.get(at).is_some_and(|is_nic| *is_nic)
    }

    /// Puts the ports of `at` that lead one step nearer to the root into `ports`; notes the paths of `at` on the way.
    fn next_hops(&mut self, at: usize, ports: &mut Vec<u16>) {
        ports.clear();
        let mut lowest = u8::MAX;
        let mut own = std::mem::take(&mut self.bundles[at]);
        for hop in &self.hops[at] {
            // A neighbour beyond the ports of a NIC may not be reached.
            let beyond = self.distance[hop.neighbour as usize].saturating_add(hop.cost());
            let is_nearer = beyond == self.distance[at] && self.passes(hop.neighbour as usize);
            if is_nearer && hop.order <= lowest {
                if hop.order < lowest {
                    ports.clear();
                    own.clear();
                    lowest = hop.order;
                }
                ports.push(hop.port);
                // Nearer switches come first, so that theirs are complete.
                own.add(
                    self.kinds[hop.kind as usize],
                    &self.bundles[hop.neighbour as usize],
                );
            }
        }
        self.bundles[at] = own;
    }
}

impl Table {
    /// Appends the next hops to the next group, sharing equal sets.
    fn learn(&mut self, ports: &[u16]) {
        let set = self.set_of(ports);
        // Each group adds at most one set, and there are no more groups than numbers.
        self.towards.push(set as u16);
    }

    /// As [`learn`](Self::learn), to the next group of switches.
    fn learn_detour(&mut self, ports: &[u16]) {
        let set = self.set_of(ports);
        self.detours.push(self.sets[set]);
    }

    fn set_of(&mut self, ports: &[u16]) -> usize {
        self.known.get(ports).copied().unwrap_or_else(|| {
            let set = self.sets.len();
            self.sets
                .push((self.ports.len() as u32, ports.len() as u16));
            self.ports.extend_from_slice(ports);
            self.known.insert(ports.to_vec(), set);
            set
        })
    }

    fn finish(self) -> SwitchRoutes {
        SwitchRoutes {
            own_group: self.own_group,
            towards: self.towards.finish(),
            sets: self.sets.into(),
            ports: self.ports.into(),
            detours: self.detours.into(),
            strides: Arc::default(),
        }
    }
}

/// Hosts by attachment, and the switch of each group.
struct Attached {
    hosts: Vec<AttachmentPoint>,
    links: Vec<(u16, PathClass, PathClass)>,
    groups: Vec<usize>,
}

fn attach(topology: &Topology, ports: &[Vec<LinkId>]) -> Result<Attached, TopologyError> {
    let mut group_of_switch = vec![None; topology.switches.len()];
    let mut attached = Attached {
        hosts: Vec::new(),
        links: Vec::new(),
        groups: Vec::new(),
    };
    // Where each cable stands among the ports of its switch; filled once instead of searched for each host.
    let mut port_of_link = vec![0u16; topology.cables.len() * 2];
    for links in ports {
        for (port, link) in links.iter().enumerate() {
            port_of_link[link.0 as usize] = port as u16;
        }
    }
    for host in 0..topology.hosts {
        let links = &ports[host as usize];
        let cables = links.len();
        let switch = (cables == 1).then(|| topology.link_ends(links[0]).1);
        let Some(switch) = switch.and_then(|node| topology.switch_index(node)) else {
            return Err(TopologyError::HostCables { host, cables });
        };
        let group = *group_of_switch[switch].get_or_insert_with(|| {
            attached.groups.push(switch);
            (attached.groups.len() - 1) as u16
        });
        let back = LinkId(links[0].0 ^ 1);
        let (up, down) = Paths::of_host(topology, links[0]);
        attached.links.push((group, up, down));
        attached.hosts.push(AttachmentPoint {
            group,
            port: port_of_link[back.0 as usize],
        });
    }
    check_group_count(attached.groups.len())?;
    Ok(attached)
}

#[cfg(test)]
mod tests;

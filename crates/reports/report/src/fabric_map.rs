//! Map of a fabric: nodes as boxes in rows, and bundles of links between the boxes.
//!
//! A row holds the switches of one tier; the highest tier is the first row. Hosts, or GPUs, are below the switches of tier 0, and switches
//! of scale-up fabrics below the hosts. Within a row, nodes that belong together are neighbours:
//!
//! * Hosts are ordered by the switch that they are on. NICs of a host are one node of the map.
//! * Switches of a tier form groups: those of the topology itself, if it has any (a dragonfly); else the parts into which the tier and
//!   the tier below fall, which are the pods of a fat tree; else the parts with the tier above, which are the planes of a multi-plane
//!   fabric.
//!
//! Neighbours of a group share a box where a row would have too many boxes. Links from one box to another are a bundle, and the two
//! directions of a cable are in different bundles. The map depends on nothing but nodes, links and tiers, so a fabric from a file has one
//! too.

use crate::nodes::{NodeRole, NodeRow};
use crate::quantity::count;
use clearway_results::LinkBundles;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Maximum number of boxes of switches in a row.
pub const MOST_SWITCH_BOXES: usize = 64;
/// Maximum number of boxes of hosts; with more hosts, those on the same box of switches share a box.
pub const MOST_HOST_BOXES: usize = 128;

/// Nodes of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapRow {
    /// Name of the kind: `leaf`, `host`, `switch of tier 1`.
    pub kind: String,
    /// Number of nodes.
    pub nodes: usize,
}

/// One node, or several neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapBox {
    /// `leaf3`, or `leaf4 – leaf7`.
    pub name: String,
    /// Row of the box: a place in [`FabricMap::rows`].
    pub row: usize,
    /// Group of the box, numbered within its row from the left.
    pub group: usize,
    /// Number of nodes.
    pub nodes: usize,
}

/// Links from one box to another, or within a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bundle {
    /// Box at which the links begin: a place in [`FabricMap::boxes`].
    pub from: usize,
    /// Box at which they end.
    pub to: usize,
    /// Number of links.
    pub links: usize,
}

/// Map of a fabric.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FabricMap {
    /// The rows, from top to bottom.
    pub rows: Vec<MapRow>,
    /// The boxes, row by row, each row from left to right.
    pub boxes: Vec<MapBox>,
    /// The bundles, in the order of their first links.
    pub bundles: Vec<Bundle>,
    /// The bundle of each link.
    pub bundle_of: Vec<u32>,
}

/// Row of a node; the order is that of the rows from bottom to top.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Level {
    ScaleUp(u8),
    Hosts,
    Tier(u8),
}

impl Level {
    fn from_node(node: &NodeRow) -> Self {
        match node.tier {
            None => Self::Hosts,
            Some(tier) if node.role == NodeRole::ScaleUp => Self::ScaleUp(tier),
            Some(tier) => Self::Tier(tier),
        }
    }
}

impl FabricMap {
    /// The map of a fabric. `links` are the nodes at which each link begins and ends.
    pub fn new(nodes: &[NodeRow], links: &[(u32, u32)]) -> Self {
        let layout = Layout::new(nodes, links);
        let mut map = Self::default();
        let mut box_of = vec![0; nodes.len()];
        for level in layout.levels() {
            let own = layout.members(level);
            map.rows.push(MapRow {
                kind: kind_of(own.iter().map(|&node| &nodes[node as usize])),
                nodes: own.len(),
            });
            let boxes = match level {
                Level::Hosts => layout.host_boxes(&own, &box_of, &map.boxes),
                Level::Tier(_) | Level::ScaleUp(_) => layout.switch_boxes(&own, level),
            };
            map.add_row(nodes, boxes, &mut box_of);
        }
        // Further NICs are in the box of their host.
        for (place, node) in nodes.iter().enumerate() {
            if let Some(host) = node.host {
                box_of[place] = box_of[host as usize];
            }
        }
        map.add_links(links, &box_of);
        map
    }

    /// Assignment of the links to bundles, for a recorder.
    pub fn link_bundles(&self) -> LinkBundles {
        LinkBundles {
            count: self.bundles.len(),
            of_link: self.bundle_of.clone(),
        }
    }

    /// Name of a bundle: that of its link, such as `leaf0-spine2`, or `leaf0 – leaf3 → spine0, 8 links`.
    pub fn bundle_name(&self, bundle: usize) -> String {
        let Bundle { from, to, links } = self.bundles[bundle];
        let [from, to] = [from, to].map(|end| &self.boxes[end]);
        match links {
            1 if from.nodes == 1 && to.nodes == 1 => format!("{}-{}", from.name, to.name),
            1 => format!("{} → {}, 1 link", from.name, to.name),
            links => {
                let links = count(links as u64);
                format!("{} → {}, {links} links", from.name, to.name)
            }
        }
    }

    /// Adds the boxes of the last row, each a group and its nodes.
    fn add_row(&mut self, nodes: &[NodeRow], boxes: Vec<(usize, Vec<u32>)>, box_of: &mut [usize]) {
        let row = self.rows.len() - 1;
        for (group, own) in boxes {
            own.iter()
                .for_each(|&node| box_of[node as usize] = self.boxes.len());
            let name = |node: u32| nodes[node as usize].name.clone();
            self.boxes.push(MapBox {
                name: match own[..] {
                    [only] => name(only),
                    [first, .., last] => format!("{} – {}", name(first), name(last)),
                    [] => continue,
                },
                row,
                group,
                nodes: own.len(),
            });
        }
    }

    fn add_links(&mut self, links: &[(u32, u32)], box_of: &[usize]) {
        let mut known = FxHashMap::default();
        for &(from, to) in links {
            let [from, to] = [from, to].map(|node| box_of[node as usize]);
            let bundle = *known.entry((from, to)).or_insert(self.bundles.len());
            if bundle == self.bundles.len() {
                self.bundles.push(Bundle { from, to, links: 0 });
            }
            self.bundles[bundle].links += 1;
            self.bundle_of.push(bundle as u32);
        }
    }
}

/// The part of a name before its number: `leaf` of `leaf3`, `router` of `router2.1`.
pub fn stem(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '_' | '-'))
}

/// Name for a kind of node: the common [stem] of their names; without one, `host` or `switch of tier 1`.
pub fn kind_of<'a>(nodes: impl IntoIterator<Item = &'a NodeRow>) -> String {
    let mut nodes = nodes.into_iter().peekable();
    let tier = nodes.peek().and_then(|node| node.tier);
    let first = nodes.peek().map_or("", |node| stem(&node.name));
    if !first.is_empty() && nodes.all(|node| stem(&node.name) == first) {
        return first.into();
    }
    match tier {
        None => "host".into(),
        Some(tier) => format!("switch of tier {tier}"),
    }
}

/// The nodes of a fabric and what they are joined to.
struct Layout<'a> {
    nodes: &'a [NodeRow],
    level_of: Vec<Level>,
    /// Links between switches of the network, as nodes.
    between_switches: Vec<(u32, u32)>,
    /// The first switch of the network that each node is on; hosts that are on several are with the first.
    attached: Vec<Option<u32>>,
}

impl<'a> Layout<'a> {
    fn new(nodes: &'a [NodeRow], links: &[(u32, u32)]) -> Self {
        let level_of: Vec<Level> = nodes.iter().map(Level::from_node).collect();
        let mut attached: Vec<Option<u32>> = vec![None; nodes.len()];
        let mut between_switches = Vec::new();
        let level = |node: u32| level_of[node as usize];
        for &(from, to) in links {
            match (level(from), level(to)) {
                (Level::Tier(_), Level::Tier(_)) if from < to => between_switches.push((from, to)),
                (Level::Hosts, Level::Tier(_)) => {
                    let host = nodes[from as usize].host.unwrap_or(from);
                    let first = &mut attached[host as usize];
                    *first = Some(first.map_or(to, |first| first.min(to)));
                }
                _ => {}
            }
        }
        Self {
            nodes,
            level_of,
            between_switches,
            attached,
        }
    }

    /// The levels that have nodes, from top to bottom.
    fn levels(&self) -> Vec<Level> {
        let mut levels = self.level_of.clone();
        levels.sort_unstable();
        levels.dedup();
        levels.reverse();
        levels
    }

    /// The nodes of a level, each host once.
    fn members(&self, level: Level) -> Vec<u32> {
        let all = (0u32..).zip(&self.level_of).zip(self.nodes);
        let own = all.filter(|((_, of), node)| **of == level && node.host.is_none());
        own.map(|((node, _), _)| node).collect()
    }

    /// Boxes of hosts. `box_of` is known of the switches of the network, and `known` are their boxes.
    fn host_boxes(
        &self,
        own: &[u32],
        box_of: &[usize],
        known: &[MapBox],
    ) -> Vec<(usize, Vec<u32>)> {
        let switch = |host: u32| self.attached[host as usize];
        let place = |host: u32| switch(host).map_or(usize::MAX, |switch| box_of[switch as usize]);
        let mut hosts = own.to_vec();
        hosts.sort_by_key(|&host| (place(host), switch(host), host));
        let by_switch = hosts.chunk_by(|a, b| place(*a) == place(*b)).enumerate();
        let is_crowded = own.len() > MOST_HOST_BOXES;
        let boxes = by_switch.flat_map(|(group, hosts)| {
            let size = if is_crowded { hosts.len() } else { 1 };
            hosts.chunks(size).map(move |own| (group, own.to_vec()))
        });
        let mut boxes: Vec<(usize, Vec<u32>)> = boxes.collect();
        // Groups of a single box say nothing: the groups are then those of the switches.
        if boxes
            .last()
            .is_some_and(|(last, _)| last + 1 == boxes.len())
        {
            for (group, own) in &mut boxes {
                let switches = own.first().and_then(|&host| known.get(place(host)));
                *group = switches.map_or(usize::MAX, |switches| switches.group);
            }
        }
        boxes
    }

    /// Boxes of the switches of a level: neighbours of a group share a box where there are too many.
    fn switch_boxes(&self, own: &[u32], level: Level) -> Vec<(usize, Vec<u32>)> {
        let mut groups = self.groups(own, level);
        if groups.len() > MOST_SWITCH_BOXES {
            let joined = groups.chunks(groups.len().div_ceil(MOST_SWITCH_BOXES));
            groups = joined.map(<[Vec<u32>]>::concat).collect();
        }
        let boxes = |size: usize| -> usize {
            let sizes = groups.iter().map(|group| group.len().div_ceil(size));
            sizes.sum()
        };
        let size = (1..).find(|&size| boxes(size) <= MOST_SWITCH_BOXES);
        let size = size.unwrap_or(own.len().max(1));
        // Groups of a single box say nothing.
        let are_single = groups.iter().all(|group| group.len() <= size);
        let groups = groups.iter().enumerate();
        let boxes = groups.flat_map(|(group, nodes)| {
            let group = if are_single { 0 } else { group };
            let size = nodes.len().div_ceil(nodes.len().div_ceil(size));
            nodes.chunks(size).map(move |own| (group, own.to_vec()))
        });
        boxes.collect()
    }

    /// Groups of the switches of a level, ordered by their first switches.
    fn groups(&self, own: &[u32], level: Level) -> Vec<Vec<u32>> {
        let given = |node: &u32| self.nodes[*node as usize].group;
        if own.iter().all(|node| given(node).is_some()) {
            return grouped(own, |node| given(&node).unwrap_or_default().into());
        }
        if let Level::Tier(tier) = level {
            let below = tier.checked_sub(1).map(Level::Tier);
            let above = tier.checked_add(1).map(Level::Tier);
            for other in [below, above].into_iter().flatten() {
                let groups = self.parts_with(own, level, other);
                if groups.len() > 1 && groups.len() < own.len() {
                    return groups;
                }
            }
        }
        vec![own.to_vec()]
    }

    /// The switches of a level by the parts into which it and another level fall.
    fn parts_with(&self, own: &[u32], level: Level, other: Level) -> Vec<Vec<u32>> {
        if !self.level_of.contains(&other) {
            return Vec::new();
        }
        let mut parts = DisjointSets::new(self.nodes.len());
        let is_of_either = |node: u32| {
            let level_of = self.level_of[node as usize];
            [level, other].contains(&level_of)
                && self.nodes[node as usize].role == NodeRole::Network
        };
        for &(a, b) in &self.between_switches {
            if is_of_either(a) && is_of_either(b) {
                parts.join(a, b);
            }
        }
        grouped(own, |node| parts.root(node))
    }
}

/// Nodes with equal keys, ordered by the first node of each key.
fn grouped(nodes: &[u32], mut key: impl FnMut(u32) -> u32) -> Vec<Vec<u32>> {
    let mut places = BTreeMap::new();
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for &node in nodes {
        let place = *places.entry(key(node)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(node);
    }
    groups
}

/// Sets of nodes that are joined one by one.
struct DisjointSets {
    parents: Vec<u32>,
}

impl DisjointSets {
    fn new(count: usize) -> Self {
        Self {
            parents: (0..count as u32).collect(),
        }
    }

    fn root(&mut self, mut node: u32) -> u32 {
        while self.parents[node as usize] != node {
            let parent = self.parents[node as usize];
            self.parents[node as usize] = self.parents[parent as usize];
            node = parent;
        }
        node
    }

    fn join(&mut self, a: u32, b: u32) {
        let [a, b] = [a, b].map(|node| self.root(node));
        // The lower node is the root, so that the result does not depend on the order of links.
        self.parents[a.max(b) as usize] = a.min(b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes with names and tiers, and cables between them; each cable is two links.
    fn map(nodes: &[NodeRow], cables: &[(u32, u32)]) -> FabricMap {
        let links = cables.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
        FabricMap::new(nodes, &links.collect::<Vec<_>>())
    }

    fn row(stem: &str, count: u32, tier: Option<u8>) -> impl Iterator<Item = NodeRow> {
        (0..count).map(move |number| NodeRow::new(format!("{stem}{number}"), tier))
    }

    /// A fat tree: `pods` of two leaves and two aggregation switches, four cores, `hosts` on each leaf.
    fn fat_tree(pods: u32, hosts: u32) -> FabricMap {
        let leaves = 2 * pods;
        let (first_leaf, first_agg, first_core) = (
            leaves * hosts,
            leaves * hosts + leaves,
            leaves * hosts + 2 * leaves,
        );
        let nodes = row("host", leaves * hosts, None)
            .chain(row("leaf", leaves, Some(0)))
            .chain(row("agg", leaves, Some(1)))
            .chain(row("core", 4, Some(2)));
        let mut cables: Vec<(u32, u32)> = (0..leaves * hosts)
            .map(|host| (host, first_leaf + host / hosts))
            .collect();
        for switch in 0..leaves {
            let pod = switch / 2;
            for other in 0..2 {
                cables.push((first_leaf + switch, first_agg + 2 * pod + other));
                cables.push((first_agg + switch, first_core + 2 * (switch % 2) + other));
            }
        }
        map(&nodes.collect::<Vec<_>>(), &cables)
    }

    fn names(map: &FabricMap, row: usize) -> Vec<(&str, usize)> {
        let own = map.boxes.iter().filter(|one| one.row == row);
        own.map(|one| (one.name.as_str(), one.group)).collect()
    }

    #[test]
    fn rows_are_tiers_and_pods_are_groups() {
        let map = fat_tree(2, 1);
        let kinds: Vec<(&str, usize)> = map
            .rows
            .iter()
            .map(|row| (row.kind.as_str(), row.nodes))
            .collect();
        assert_eq!(kinds, [("core", 4), ("agg", 4), ("leaf", 4), ("host", 4)]);
        assert_eq!(
            names(&map, 1),
            [("agg0", 0), ("agg1", 0), ("agg2", 1), ("agg3", 1)]
        );
        assert_eq!(
            names(&map, 2),
            [("leaf0", 0), ("leaf1", 0), ("leaf2", 1), ("leaf3", 1)]
        );
        // Cores belong to the planes of the aggregation switches; hosts are below their leaves.
        assert_eq!(
            names(&map, 0),
            [("core0", 0), ("core1", 0), ("core2", 1), ("core3", 1)]
        );
        assert_eq!(
            names(&map, 3),
            [("host0", 0), ("host1", 0), ("host2", 1), ("host3", 1)]
        );
        assert_eq!(map.bundles.len(), 2 * (4 + 8 + 8));
        assert_eq!(map.bundle_name(0), "host0-leaf0");
        assert_eq!(map.bundle_name(1), "leaf0-host0");
    }

    #[test]
    fn large_rows_share_boxes_and_no_link_is_lost() {
        for (pods, hosts) in [(33, 1), (40, 3), (200, 2)] {
            let map = fat_tree(pods, hosts);
            for (row, of) in map.rows.iter().enumerate() {
                let own: Vec<&MapBox> = map.boxes.iter().filter(|one| one.row == row).collect();
                let nodes: usize = own.iter().map(|one| one.nodes).sum();
                assert_eq!(nodes, of.nodes, "{pods} pods: {}", of.kind);
                let most = if of.kind == "host" {
                    MOST_HOST_BOXES
                } else {
                    MOST_SWITCH_BOXES
                };
                assert!(
                    own.len() <= most,
                    "{pods} pods: {} of {}",
                    own.len(),
                    of.kind
                );
                assert!(own.is_sorted_by_key(|one| one.group));
            }
            let links: usize = map.bundles.iter().map(|bundle| bundle.links).sum();
            assert_eq!(links, map.bundle_of.len());
            let mut counts = vec![0; map.bundles.len()];
            for &bundle in &map.bundle_of {
                counts[bundle as usize] += 1;
            }
            let expected: Vec<usize> = map.bundles.iter().map(|bundle| bundle.links).collect();
            assert_eq!(counts, expected);
        }
        let map = fat_tree(40, 3);
        // 80 leaves in pods of two: one box for each pod, and their hosts below.
        assert_eq!(names(&map, 2)[1], ("leaf2 – leaf3", 0));
        assert_eq!(names(&map, 3)[1], ("host6 – host11", 0));
        let up = map.bundle_of[12] as usize;
        assert_eq!(
            map.bundle_name(up),
            "host6 – host11 → leaf2 – leaf3, 6 links"
        );
    }

    #[test]
    fn nics_are_with_their_host_and_scale_up_switches_below() {
        let mut nodes: Vec<NodeRow> = row("host", 2, None).collect();
        nodes.extend((0..2).map(|host| NodeRow {
            host: Some(host),
            ..NodeRow::new(format!("host{host}.1"), None)
        }));
        nodes.extend(row("leaf", 2, Some(0)));
        nodes.push(NodeRow {
            role: NodeRole::ScaleUp,
            ..NodeRow::new("nvlink0", Some(0))
        });
        let map = map(&nodes, &[(0, 5), (1, 4), (2, 6), (3, 6)]);
        let kinds: Vec<&str> = map.rows.iter().map(|row| row.kind.as_str()).collect();
        assert_eq!(kinds, ["leaf", "host", "nvlink"]);
        // By the leaf that they are on.
        assert_eq!(names(&map, 1), [("host1", 0), ("host0", 0)]);
        let box_of = |name| map.boxes.iter().position(|one| one.name == name);
        let of_nic = map.bundles[map.bundle_of[4] as usize];
        assert_eq!(Some(of_nic.from), box_of("host0"));
        assert_eq!(Some(of_nic.to), box_of("nvlink0"));
    }

    #[test]
    fn given_groups_and_links_within_a_row() {
        let nodes: Vec<NodeRow> = (0..130u16)
            .map(|number| NodeRow {
                group: Some(number / 2),
                ..NodeRow::new(format!("router{}.{}", number / 2, number % 2), Some(0))
            })
            .collect();
        let ring: Vec<(u32, u32)> = (0..130).map(|node| (node, (node + 1) % 130)).collect();
        let map = map(&nodes, &ring);
        // 65 groups are too many for a box each: two share one.
        assert_eq!(map.boxes.len(), 33);
        assert_eq!(map.boxes[1].name, "router2.0 – router3.1");
        let within = map.bundles.iter().filter(|bundle| bundle.from == bundle.to);
        assert_eq!(within.count(), 33);
        assert_eq!(FabricMap::new(&[], &[]), FabricMap::default());
    }
}

//! Dragonfly and Dragonfly+: groups of switches, each pair of which is connected.
//!
//! * **Dragonfly** (Kim et al., ISCA 2008): a group has `a` routers, all connected to each other, with `p` hosts and `h` links to other
//!   groups each. Minimal routes are local, global, local.
//! * **Dragonfly+** (Shpiner et al., HiPINEB 2017): a group is a leaf-spine fabric, and its spines have the links to other groups. Minimal
//!   routes are leaf, spine, spine, leaf.
//!
//! The ports to other groups are numbered through a group: port `k` of router `r` is port `j = r h + k` of `a h`. With the largest number
//! of groups, `g = a h + 1`, port `j` of group `G` leads to group `G + j + 1` modulo `g`, where it is port `a h - 1 - j`. With fewer groups
//! each pair of groups has `a h / (g - 1)` links, rounded down; the remaining ports stay free.

use super::{Cable, GroupRouting, NodeId, SwitchGroups, SwitchSpec, Topology, TopologyError};
use clearway_units::{Rate, Span};

/// Most hosts.
const MOST_HOSTS: u64 = 1 << 20;

/// Groups, and the links of a dragonfly of either kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DragonflyLinks {
    /// Number of groups, g.
    pub groups: u32,
    /// Links to other groups of each router (spine in Dragonfly+), h.
    pub global_links: u32,
    /// Rate and delay of the links of hosts.
    pub host: (Rate, Span),
    /// Rate and delay of the links within groups.
    pub local: (Rate, Span),
    /// Rate and delay of the links between groups.
    pub global: (Rate, Span),
    /// Rule by which packets go from one group to another.
    pub routing: GroupRouting,
}

/// Builds a dragonfly of routers: `routers` (a) in each group, with `hosts_per_router` (p) hosts each. Hosts are numbered router by router,
/// and these group by group.
///
/// # Errors
/// If groups are too many for their links, or numbers too large.
pub fn dragonfly(
    routers: u32,
    hosts_per_router: u32,
    links: &DragonflyLinks,
) -> Result<Topology, TopologyError> {
    let groups = links.groups;
    let hosts = product(&[groups, routers, hosts_per_router])?;
    let wiring = Wiring::new(routers, links)?;
    let router = |group: u32, number: u32| NodeId(hosts + group * routers + number);
    let mut cables = Vec::new();
    for host in 0..hosts {
        let number = host / hosts_per_router;
        let ends = [NodeId(host), router(number / routers, number % routers)];
        cables.push(Cable::new(ends, links.host));
    }
    for group in 0..groups {
        for low in 0..routers {
            for high in low + 1..routers {
                let ends = [router(group, low), router(group, high)];
                cables.push(Cable::new(ends, links.local));
            }
        }
    }
    cables.extend(wiring.cables(links.global, router));
    let all = || (0..groups).flat_map(|group| (0..routers).map(move |number| (group, number)));
    Ok(Topology {
        summary: format!(
            "dragonfly: {hosts} hosts, {groups} groups of {routers} routers, {} between two groups",
            wiring.between()
        ),
        hosts,
        further_nics: Vec::new(),
        queues: Vec::new(),
        switches: all()
            .map(|(group, number)| SwitchSpec::new(format!("router{group}.{number}"), 0))
            .collect(),
        groups: Some(SwitchGroups {
            of_switch: all().map(|(group, _)| group as u16).collect(),
            count: groups as u16,
            routing: links.routing,
        }),
        cables,
    })
}

/// Builds a Dragonfly+: each group has `leaves` leaves with `hosts_per_leaf` hosts, each connected to all of its `spines` spines.
///
/// # Errors
/// If groups are too many for their links, or numbers too large.
pub fn dragonfly_plus(
    (leaves, spines): (u32, u32),
    hosts_per_leaf: u32,
    links: &DragonflyLinks,
) -> Result<Topology, TopologyError> {
    let groups = links.groups;
    let hosts = product(&[groups, leaves, hosts_per_leaf])?;
    let wiring = Wiring::new(spines, links)?;
    let leaf = |group: u32, number: u32| NodeId(hosts + group * leaves + number);
    let spine = |group: u32, number: u32| NodeId(hosts + groups * leaves + group * spines + number);
    let mut cables = Vec::new();
    for host in 0..hosts {
        let number = host / hosts_per_leaf;
        let ends = [NodeId(host), leaf(number / leaves, number % leaves)];
        cables.push(Cable::new(ends, links.host));
    }
    for group in 0..groups {
        for low in 0..leaves {
            for high in 0..spines {
                let ends = [leaf(group, low), spine(group, high)];
                cables.push(Cable::new(ends, links.local));
            }
        }
    }
    cables.extend(wiring.cables(links.global, spine));
    let level = |count: u32| {
        let groups = 0..groups;
        groups.flat_map(move |group| (0..count).map(move |number| (group, number)))
    };
    let names = |name: &'static str, tier, count| {
        level(count)
            .map(move |(group, number)| SwitchSpec::new(format!("{name}{group}.{number}"), tier))
    };
    Ok(Topology {
        summary: format!(
            "Dragonfly+: {hosts} hosts, {groups} groups of {leaves} leaves and {spines} spines, {} between two groups",
            wiring.between()
        ),
        hosts,
        further_nics: Vec::new(),
        queues: Vec::new(),
        switches: names("leaf", 0, leaves)
            .chain(names("spine", 1, spines))
            .collect(),
        groups: Some(SwitchGroups {
            of_switch: level(leaves)
                .chain(level(spines))
                .map(|(group, _)| group as u16)
                .collect(),
            count: groups as u16,
            routing: links.routing,
        }),
        cables,
    })
}

fn impossible(what: String, fix: &str) -> TopologyError {
    let fix = fix.into();
    TopologyError::Impossible { what, fix }
}

/// Number of hosts.
fn product(factors: &[u32; 3]) -> Result<u32, TopologyError> {
    let all = factors.iter().try_fold(1u64, |product, &factor| {
        product
            .checked_mul(factor.into())
            .filter(|product| (1..=MOST_HOSTS).contains(product))
    });
    all.map(|hosts| hosts as u32).ok_or_else(|| {
        let [groups, switches, hosts] = factors;
        impossible(
            format!("{groups} groups of {switches} switches with {hosts} hosts each"),
            "use at least one of each, and at most 1048576 hosts",
        )
    })
}

/// Links between groups.
struct Wiring {
    groups: u32,
    /// Ports of each switch to other groups, h.
    of_switch: u32,
    /// Number of links between two groups.
    rounds: u32,
}

impl Wiring {
    /// For groups with `switches` switches that have links to other groups.
    fn new(switches: u32, links: &DragonflyLinks) -> Result<Self, TopologyError> {
        let DragonflyLinks {
            groups,
            global_links,
            routing,
            ..
        } = *links;
        let ports = switches
            .checked_mul(global_links)
            .filter(|ports| *ports < 1 << 16);
        let Some(ports) = ports.filter(|_| groups >= 2 && switches < 1 << 12) else {
            return Err(impossible(
                format!(
                    "{groups} groups, in each {switches} switches with {global_links} links to others"
                ),
                "use at least 2 groups, and less than 4096 switches with 65536 links to others in each",
            ));
        };
        if groups - 1 > ports {
            return Err(impossible(
                format!("{groups} groups, each with {ports} links to others"),
                &format!("use at most {} groups, or more links", ports + 1),
            ));
        }
        if routing != GroupRouting::Minimal && groups > SwitchGroups::MOST_DETOURS.into() {
            return Err(impossible(
                format!("`routing` = \"{}\" among {groups} groups", routing.name()),
                "use at most 254 groups, or `routing = \"minimal\"`",
            ));
        }
        Ok(Self {
            groups,
            of_switch: global_links,
            rounds: ports / (groups - 1),
        })
    }

    /// Number of links between two groups, in words.
    fn between(&self) -> String {
        match self.rounds {
            1 => "1 link".into(),
            links => format!("{links} links"),
        }
    }

    /// The links between groups, by the first port of each; `switch` is one with such links, by group and number.
    fn cables(
        &self,
        link: (Rate, Span),
        switch: impl Fn(u32, u32) -> NodeId,
    ) -> impl Iterator<Item = Cable> {
        let (others, of_switch) = (self.groups - 1, self.of_switch);
        let groups = self.groups;
        let ports = (0..groups).flat_map(move |group| {
            let ports = 0..self.rounds * others;
            ports.map(move |port| (group, port))
        });
        ports.filter_map(move |(group, port)| {
            let (round, offset) = (port / others, port % others);
            let other = (group + offset + 1) % groups;
            let far = round * others + (others - 1 - offset);
            (group < other).then(|| {
                let ends = [
                    switch(group, port / of_switch),
                    switch(other, far / of_switch),
                ];
                Cable::new(ends, link)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Routes;
    use super::*;
    use clearway_units::HostId;
    use std::collections::{BTreeMap, BTreeSet};

    fn links(groups: u32, global_links: u32, routing: GroupRouting) -> DragonflyLinks {
        let link = (Rate::from_gbps(400), Span::from_us(1));
        DragonflyLinks {
            groups,
            global_links,
            host: link,
            local: link,
            global: link,
            routing,
        }
    }

    fn group(topology: &Topology, node: NodeId) -> Option<u16> {
        let index = topology.switch_index(node)?;
        Some(topology.groups.as_ref()?.of_switch[index])
    }

    /// Number of links between each pair of groups.
    fn between_groups(topology: &Topology) -> BTreeMap<(u16, u16), u32> {
        let mut links = BTreeMap::new();
        for cable in &topology.cables {
            let [a, b] = cable.ends.map(|end| group(topology, end));
            if let (Some(a), Some(b)) = (a, b)
                && a != b
            {
                *links.entry((a.min(b), a.max(b))).or_default() += 1;
            }
        }
        links
    }

    fn degrees(topology: &Topology, prefix: &str) -> BTreeSet<usize> {
        let ports = topology.ports();
        let named = topology.switches.iter().enumerate();
        let named = named.filter(|(_, switch)| switch.name.starts_with(prefix));
        named
            .map(|(index, _)| ports[topology.switch_node(index).0 as usize].len())
            .collect()
    }

    #[test]
    fn the_largest_dragonfly_connects_each_pair_of_groups_once() {
        for (routers, global) in [(4, 2), (3, 1), (2, 3), (6, 3)] {
            let groups = routers * global + 1;
            let topology = dragonfly(routers, 2, &links(groups, global, GroupRouting::Minimal));
            let topology = topology.unwrap();
            let pairs = between_groups(&topology);
            assert_eq!(pairs.len() as u32, groups * (groups - 1) / 2);
            assert!(pairs.values().all(|&links| links == 1));
            let degree = (2 + routers - 1 + global) as usize;
            assert_eq!(degrees(&topology, "router"), BTreeSet::from([degree]));
        }
    }

    #[test]
    fn ports_lead_where_the_formula_says() {
        let (a, h, g) = (4, 2, 9);
        let topology = dragonfly(a, 2, &links(g, h, GroupRouting::Minimal)).unwrap();
        let node = |group: u32, router: u32| topology.switch_node((group * a + router) as usize);
        for group in 0..g {
            for (router, k) in (0..a).flat_map(|router| (0..h).map(move |k| (router, k))) {
                let far = (group + router * h + k + 1) % g;
                let far_router = (a * h - 1 - (router * h + k)) / h;
                let ends = BTreeSet::from([node(group, router), node(far, far_router)]);
                let same = |cable: &&Cable| BTreeSet::from(cable.ends) == ends;
                assert_eq!(topology.cables.iter().filter(same).count(), 1);
            }
        }
    }

    #[test]
    fn fewer_groups_have_several_links_between_them() {
        let topology = dragonfly(4, 2, &links(4, 2, GroupRouting::Minimal)).unwrap();
        let pairs = between_groups(&topology);
        assert_eq!(pairs.len(), 6);
        assert!(pairs.values().all(|&links| links == 2), "8 ports, 3 groups");
        // Two of eight ports stay free: the ports of the last router.
        assert_eq!(degrees(&topology, "router"), BTreeSet::from([5, 7]));
        assert!(topology.summary.ends_with("2 links between two groups"));
    }

    #[test]
    fn groups_of_leaves_and_spines() {
        let topology = dragonfly_plus((2, 4), 3, &links(9, 2, GroupRouting::Minimal)).unwrap();
        assert_eq!((topology.hosts, topology.switches.len()), (54, 9 * 6));
        assert!(between_groups(&topology).values().all(|&links| links == 1));
        assert_eq!(between_groups(&topology).len(), 36);
        assert_eq!(degrees(&topology, "leaf"), BTreeSet::from([3 + 4]));
        assert_eq!(degrees(&topology, "spine"), BTreeSet::from([2 + 2]));
        let histogram = Routes::compute(&topology).unwrap().paths.histogram();
        // On a leaf 2 others, in the group 3, elsewhere 48; leaf, spine, spine, leaf.
        assert_eq!(histogram, BTreeMap::from([(2, 108), (4, 162), (5, 2592)]));
    }

    /// A way over a third group can have fewer links than the direct one, but takes two links between groups.
    #[test]
    fn minimal_routes_are_local_global_local() {
        let topology = dragonfly(4, 2, &links(9, 2, GroupRouting::Minimal)).unwrap();
        let routes = Routes::compute(&topology).unwrap();
        let ports = topology.ports();
        let mut lengths: BTreeMap<Vec<bool>, u32> = BTreeMap::new();
        for (from, to) in (0..72).flat_map(|from| (0..72).map(move |to| (from, to))) {
            let attachment = routes.attachments[to as usize];
            let (_, mut node) = topology.link_ends(ports[from as usize][0]);
            let mut globals = Vec::new();
            while let super::super::NextHops::Ports(next) =
                routes.switches[topology.switch_index(node).unwrap()].next_hops(attachment)
            {
                assert_eq!(next.len(), 1, "one minimal route");
                let (_, end) = topology.link_ends(ports[node.0 as usize][usize::from(next[0])]);
                globals.push(group(&topology, node) != group(&topology, end));
                node = end;
            }
            *lengths.entry(globals).or_default() += 1;
        }
        let (local, global) = (false, true);
        let ways = [
            vec![],
            vec![local],
            vec![global],
            vec![local, global],
            vec![global, local],
            vec![local, global, local],
        ];
        assert_eq!(
            lengths.keys().cloned().collect::<BTreeSet<_>>(),
            BTreeSet::from(ways)
        );
        // From each of 36 routers to the routers of 8 other groups: one of the 32 by the one link of the two groups, and so on.
        assert_eq!(lengths[&vec![global]], 36 * 2 * 4);
        assert_eq!(
            lengths[&vec![local, global, local]],
            36 * (32 - 2 - 6 - 6) * 4
        );
    }

    #[test]
    fn detours_are_the_longest_paths() {
        let topology = dragonfly(4, 2, &links(9, 2, GroupRouting::Valiant)).unwrap();
        let paths = Routes::compute(&topology).unwrap().paths;
        let hops = |from, to| paths.between(HostId(from), HostId(to)).hops;
        assert_eq!([hops(0, 1), hops(0, 7)], [2, 3], "in the group directly");
        // Host, local, global to the third group; local, global, local from there; host.
        assert_eq!(hops(0, 71), 7);
        let two = dragonfly(4, 2, &links(2, 2, GroupRouting::Valiant)).unwrap();
        let paths = Routes::compute(&two).unwrap().paths;
        assert!(
            paths.between(HostId(0), HostId(15)).hops <= 5,
            "no third group"
        );
    }

    #[test]
    fn impossible_dragonflies_are_refused() {
        let refused = |routers, hosts, groups, global, routing| {
            dragonfly(routers, hosts, &links(groups, global, routing))
                .unwrap_err()
                .to_string()
        };
        let minimal = GroupRouting::Minimal;
        let errors = [
            refused(4, 2, 10, 2, minimal),
            refused(4, 0, 9, 2, minimal),
            refused(4, 2, 1, 2, minimal),
            refused(u32::MAX, 2, 9, 2, minimal),
            refused(4, 2, 9, u32::MAX, minimal),
            refused(16, 1, 255, 16, GroupRouting::Valiant),
        ];
        insta::assert_snapshot!(errors.join("\n"), @r#"
        10 groups, each with 8 links to others; use at most 9 groups, or more links
        9 groups of 4 switches with 0 hosts each; use at least one of each, and at most 1048576 hosts
        1 groups, in each 4 switches with 2 links to others; use at least 2 groups, and less than 4096 switches with 65536 links to others in each
        9 groups of 4294967295 switches with 2 hosts each; use at least one of each, and at most 1048576 hosts
        9 groups, in each 4 switches with 4294967295 links to others; use at least 2 groups, and less than 4096 switches with 65536 links to others in each
        `routing` = "valiant" among 255 groups; use at most 254 groups, or `routing = "minimal"`
        "#);
    }
}

//! Builders, wiring, routes and path lengths, against counts by hand.

use clearway_fabric::topology::{
    Cable, CoreWiring, FatTree, NextHops, NodeId, PacketSizes, Routes, SwitchSpec, Tier, Topology,
    TopologyError, dumbbell, fat_tree, leaf_spine, single_switch,
};
use clearway_fabric::{Flow, RunControl, RunDecision, Setup, Simulation, SwitchParameters, Watch};
use clearway_transport::{ClassSet, Profile};
use clearway_units::{Bytes, HostId, Purpose, RandomStream, Rate, Span, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const SIZES: PacketSizes = PacketSizes {
    payload: 4086,
    header: 64,
    ack: 64,
};

fn at_400g() -> (Rate, Span) {
    (Rate::from_gbps(400), Span::from_us(1))
}

fn tier(down_ports: u32, up_ports: u32, bundle: u32) -> Tier {
    let (link_rate, link_delay) = at_400g();
    Tier {
        down_ports,
        up_ports,
        link_rate,
        link_delay,
        switch_latency: Span::ZERO,
        bundle,
    }
}

/// A fat tree by the numbers that a `.topo` file has.
fn tree(hosts: u32, hosts_per_pod: u32, tiers: &[(u32, u32, u32)]) -> FatTree {
    FatTree {
        hosts,
        hosts_per_pod,
        tiers: tiers
            .iter()
            .map(|&(down, up, bundle)| tier(down, up, bundle))
            .collect(),
        cores: CoreWiring::Interleaved,
    }
}

fn spines(leaves: u32, per_leaf: u32, spines: u32, links: u32) -> Topology {
    leaf_spine(
        leaves * per_leaf,
        per_leaf,
        spines,
        links,
        at_400g(),
        at_400g(),
    )
    .unwrap()
}

fn switch_called(topology: &Topology, name: &str) -> usize {
    let names = topology.switches.iter().map(|switch| switch.name.as_str());
    names.clone().position(|other| other == name).unwrap()
}

/// Number of cables that connect two nodes.
fn cables_between(topology: &Topology, a: NodeId, b: NodeId) -> u32 {
    let joins = |cable: &&Cable| cable.up && (cable.ends == [a, b] || cable.ends == [b, a]);
    topology.cables.iter().filter(joins).count() as u32
}

/// The neighbours to which a switch may send packets for `host`, with the number of links to each.
fn next_hops(topology: &Topology, switch: &str, host: u32) -> BTreeMap<String, usize> {
    let routes = Routes::compute(topology).unwrap();
    let index = switch_called(topology, switch);
    let ports = &topology.ports()[topology.switch_node(index).0 as usize];
    let chosen = match routes.switches[index].next_hops(routes.attachments[host as usize]) {
        NextHops::Host(port) => vec![port],
        NextHops::Ports(ports) => ports.to_vec(),
    };
    let mut neighbours = BTreeMap::new();
    for port in chosen {
        let (_, to) = topology.link_ends(ports[usize::from(port)]);
        *neighbours.entry(topology.node_name(to)).or_default() += 1;
    }
    neighbours
}

fn names(neighbours: &BTreeMap<String, usize>) -> Vec<&str> {
    neighbours.keys().map(String::as_str).collect()
}

#[test]
fn planes_of_cores_keep_to_themselves() {
    let spec = FatTree {
        cores: CoreWiring::Planes,
        ..tree(16, 8, &[(2, 2, 1), (4, 3, 1), (2, 0, 1)])
    };
    let topology = fat_tree(&spec).unwrap();
    let node = |name: &str| topology.switch_node(switch_called(&topology, name));
    for agg in 0..4 {
        for core in 0..6 {
            let joined = cables_between(
                &topology,
                node(&format!("agg{agg}")),
                node(&format!("core{core}")),
            );
            assert_eq!(joined, u32::from(agg % 2 == core / 3), "{agg} {core}");
        }
    }
}

#[test]
fn a_fat_tree_of_radix_4() {
    let topology = fat_tree(&tree(16, 4, &[(2, 2, 1), (2, 2, 1), (4, 0, 1)])).unwrap();
    let tiers = topology.switches.iter().map(|switch| switch.tier);
    let count = |tier| tiers.clone().filter(|&t| t == tier).count();
    assert_eq!([count(0), count(1), count(2)], [8, 8, 4]);
    assert_eq!(topology.cables.len(), 16 + 16 + 16);
    let node = |name: &str| topology.switch_node(switch_called(&topology, name));
    for (lower, upper, joined) in [
        ("leaf0", "agg0", true),
        ("leaf0", "agg1", true),
        ("leaf0", "agg2", false),
        ("leaf7", "agg7", true),
        // Position 0 of each pod to cores 0 and 2, position 1 to cores 1 and 3.
        ("agg0", "core0", true),
        ("agg0", "core1", false),
        ("agg0", "core2", true),
        ("agg7", "core1", true),
        ("agg7", "core3", true),
    ] {
        let cables = cables_between(&topology, node(lower), node(upper));
        assert_eq!(cables, u32::from(joined), "{lower} {upper}");
    }
    let histogram = Routes::compute(&topology).unwrap().paths.histogram();
    // Each host has 1 neighbour on its leaf, 2 more in its pod, 12 elsewhere.
    let expected = [(2, 16), (4, 16 * 2), (6, 16 * 12)];
    assert_eq!(histogram, BTreeMap::from(expected));
    assert_eq!(
        topology.summary,
        "3-tier fat tree: 16 hosts, 4 pods, 8 leaves, 8 aggregation switches, 4 cores"
    );
}

/// 320 hosts in 5 pods of 4 leaves and 4 aggregation switches, 16 cores.
#[test]
fn the_fabric_of_hpcc() {
    let tiers = [(16, 4, 1), (4, 4, 1), (5, 0, 1)];
    let topology = fat_tree(&tree(320, 64, &tiers)).unwrap();
    assert_eq!(topology.switches.len(), 20 + 20 + 16);
    assert_eq!(topology.cables.len(), 320 + 160);
    let histogram = Routes::compute(&topology).unwrap().paths.histogram();
    let expected = [(2, 320 * 15), (4, 320 * 48), (6, 320 * 256)];
    assert_eq!(histogram, BTreeMap::from(expected));
}

/// The fabric of STrack §4.1: 128 leaves with 64 hosts and 64 uplinks each.
#[test]
fn the_leaf_spine_of_strack() {
    let topology = spines(128, 64, 64, 1);
    assert_eq!(topology.hosts, 8192);
    assert_eq!(topology.switches.len(), 128 + 64);
    assert_eq!(topology.cables.len(), 8192 + 8192);
    let histogram = Routes::compute(&topology).unwrap().paths.histogram();
    let expected = [(2, 8192 * 63), (4, 8192 * 8128)];
    assert_eq!(histogram, BTreeMap::from(expected));
    assert_eq!(topology.shortest_delay(), Span::from_us(1));
}

#[test]
fn small_builders() {
    let (rate, delay) = at_400g();
    let star = single_switch(5, rate, delay).unwrap();
    assert_eq!((star.switches.len(), star.cables.len()), (1, 5));
    let histogram = Routes::compute(&star).unwrap().paths.histogram();
    assert_eq!(histogram, BTreeMap::from([(2, 20)]));

    let narrow = (Rate::from_gbps(100), Span::from_us(10));
    let bell = dumbbell(3, 2, (rate, delay), narrow).unwrap();
    assert_eq!((bell.switches.len(), bell.cables.len()), (2, 6));
    let paths = Routes::compute(&bell).unwrap().paths;
    assert_eq!(paths.histogram(), BTreeMap::from([(2, 6 + 2), (3, 12)]));
    let across = paths.between(HostId(0), HostId(4));
    assert_eq!(across.bottleneck, Some(narrow.0));
    assert_eq!(across.propagation, Span::from_us(12));
    let beside = paths.between(HostId(0), HostId(2));
    assert_eq!(beside.bottleneck, Some(rate));
}

proptest! {
    /// The wiring rules of `.topo` files, for every pair of switches.
    #[test]
    fn trees_are_wired_by_position(
        (per_leaf, leaves, pods, aggs) in (1u32..4, 1u32..4, 1u32..4, 1u32..4),
        (cores_per_agg, low, high) in (1u32..4, 1u32..3, 1u32..3),
    ) {
        let spec = tree(per_leaf * leaves * pods, per_leaf * leaves, &[
            (per_leaf, aggs * low, 1),
            (leaves * low, cores_per_agg * high, low),
            (pods * high, 0, high),
        ]);
        let topology = fat_tree(&spec).unwrap();
        let of_tier = |tier| {
            let indices = 0..topology.switches.len();
            indices.filter(|&i| topology.switches[i].tier == tier).map(|i| topology.switch_node(i)).collect::<Vec<_>>()
        };
        let (leaf, agg, core) = (of_tier(0), of_tier(1), of_tier(2));
        prop_assert_eq!(leaf.len() as u32, leaves * pods);
        prop_assert_eq!(agg.len() as u32, aggs * pods);
        prop_assert_eq!(core.len() as u32, cores_per_agg * aggs);
        for host in 0..spec.hosts {
            for (i, &leaf) in leaf.iter().enumerate() {
                let joined = host / per_leaf == i as u32;
                prop_assert_eq!(cables_between(&topology, NodeId(host), leaf), u32::from(joined));
            }
        }
        for (i, &lower) in agg.iter().enumerate() {
            for (j, &leaf) in leaf.iter().enumerate() {
                let joined = i as u32 / aggs == j as u32 / leaves;
                prop_assert_eq!(cables_between(&topology, leaf, lower), if joined { low } else { 0 });
            }
            for (j, &core) in core.iter().enumerate() {
                let joined = i as u32 % aggs == j as u32 % aggs;
                prop_assert_eq!(cables_between(&topology, lower, core), if joined { high } else { 0 });
            }
        }
        let cables = spec.hosts + leaves * pods * aggs * low + aggs * pods * cores_per_agg * high;
        prop_assert_eq!(topology.cables.len() as u32, cables);
    }

    /// Next hops are exactly the neighbours that are one switch nearer, with any failures; distances by brute force.
    #[test]
    fn next_hops_are_all_ports_on_shortest_paths(dead in prop::collection::vec(any::<prop::sample::Index>(), 0..12), bundle in 1u32..3) {
        let tiers = [(2, 2 * bundle, 1), (2 * bundle, 2, bundle), (3, 0, 1)];
        let mut topology = fat_tree(&tree(12, 4, &tiers)).unwrap();
        for index in dead {
            let uplinks = topology.hosts as usize..topology.cables.len();
            let cable = uplinks.start + index.index(uplinks.len());
            topology.cables[cable].up = false;
        }
        let distance = switch_distances(&topology);
        let reachable = (0..6).all(|leaf| distance[leaf][..6].iter().all(Option::is_some));
        let routes = Routes::compute(&topology);
        prop_assert_eq!(routes.is_ok(), reachable);
        let Ok(routes) = routes else { return Ok(()) };
        let ports = topology.ports();
        for (from, routes_here) in routes.switches.iter().enumerate() {
            for host in 0..topology.hosts {
                let to = host as usize / 2;
                let links = &ports[topology.switch_node(from).0 as usize];
                let hops = routes_here.next_hops(routes.attachments[host as usize]);
                let nearer = |port: &u16| {
                    let (_, end) = topology.link_ends(links[usize::from(*port)]);
                    topology.switch_index(end).is_some_and(|end| match (distance[end][to], distance[from][to]) {
                        (Some(there), Some(here)) => there + 1 == here,
                        _ => false,
                    })
                };
                match hops {
                    NextHops::Host(port) => {
                        prop_assert_eq!(topology.link_ends(links[usize::from(port)]).1, NodeId(host));
                        prop_assert_eq!(from, to);
                    }
                    NextHops::Ports(chosen) => {
                        let expected: Vec<u16> = (0..links.len() as u16).filter(nearer).collect();
                        prop_assert_eq!(chosen, expected);
                    }
                }
                prop_assert_eq!(routes.paths.between(HostId(host), HostId((host + 2) % 12)).hops,
                    distance[to][(to + 1) % 6].unwrap() + 2);
            }
        }
    }
}

/// Floyd and Warshall over the switches.
fn switch_distances(topology: &Topology) -> Vec<Vec<Option<u32>>> {
    let count = topology.switches.len();
    let mut distance = vec![vec![None; count]; count];
    for (i, row) in distance.iter_mut().enumerate() {
        row[i] = Some(0);
    }
    for cable in topology.cables.iter().filter(|cable| cable.up) {
        let ends = cable.ends.map(|end| topology.switch_index(end));
        if let [Some(a), Some(b)] = ends {
            (distance[a][b], distance[b][a]) = (Some(1), Some(1));
        }
    }
    for via in 0..count {
        for a in 0..count {
            for b in 0..count {
                if let (Some(first), Some(second)) = (distance[a][via], distance[via][b])
                    && distance[a][b].is_none_or(|known| known > first + second)
                {
                    distance[a][b] = Some(first + second);
                }
            }
        }
    }
    distance
}

/// A failed link is gone at both of its ends, and other leaves keep off the spine that has lost it: no packet meets a dead end
/// (STrack §4.2, decision Q25).
#[test]
fn a_spine_without_a_link_to_a_leaf_carries_nothing_for_it() {
    let mut topology = spines(3, 2, 3, 1);
    topology.fail("leaf1-spine2", None).unwrap();
    assert_eq!(
        names(&next_hops(&topology, "leaf1", 0)),
        ["spine0", "spine1"]
    );
    assert_eq!(
        names(&next_hops(&topology, "leaf0", 2)),
        ["spine0", "spine1"]
    );
    assert_eq!(
        names(&next_hops(&topology, "leaf2", 3)),
        ["spine0", "spine1"]
    );
    let all = ["spine0", "spine1", "spine2"];
    assert_eq!(names(&next_hops(&topology, "leaf0", 4)), all);
    assert_eq!(names(&next_hops(&topology, "spine0", 2)), ["leaf1"]);
    // Nothing for leaf 1 gets there, but if it did it would go round.
    assert_eq!(
        names(&next_hops(&topology, "spine2", 2)),
        ["leaf0", "leaf2"]
    );
    assert_eq!(
        next_hops(&topology, "leaf1", 2),
        BTreeMap::from([("host2".into(), 1)])
    );
}

#[test]
fn one_of_two_parallel_links_leaves_the_other() {
    let mut topology = spines(2, 1, 2, 2);
    let both = [("spine0".into(), 2), ("spine1".into(), 2)];
    assert_eq!(next_hops(&topology, "leaf0", 1), BTreeMap::from(both));
    // By either direction.
    topology.fail("spine1-leaf1", Some(1)).unwrap();
    let back = [("spine0".into(), 2), ("spine1".into(), 1)];
    assert_eq!(next_hops(&topology, "leaf1", 0), BTreeMap::from(back));
    let there = [("spine0".into(), 2), ("spine1".into(), 2)];
    assert_eq!(next_hops(&topology, "leaf0", 1), BTreeMap::from(there));
    assert_eq!(
        next_hops(&topology, "spine1", 1),
        BTreeMap::from([("leaf1".into(), 1)])
    );
    topology.fail("spine1-leaf1", None).unwrap();
    assert_eq!(
        next_hops(&topology, "leaf0", 1),
        BTreeMap::from([("spine0".into(), 2)])
    );
}

/// In three tiers: an aggregation switch that is cut off from the cores carries nothing between pods, in its own pod and in
/// all others at the same position.
#[test]
fn an_aggregation_switch_without_cores_serves_its_pod_only() {
    let mut topology = fat_tree(&tree(12, 4, &[(2, 2, 1), (2, 2, 1), (3, 0, 1)])).unwrap();
    topology.fail("agg2-core0", None).unwrap();
    topology.fail("agg2-core2", None).unwrap();
    // agg2 is position 0 of pod 1, where hosts 4 to 7 are.
    assert_eq!(names(&next_hops(&topology, "leaf2", 0)), ["agg3"]);
    assert_eq!(names(&next_hops(&topology, "leaf2", 6)), ["agg2", "agg3"]);
    assert_eq!(names(&next_hops(&topology, "leaf0", 4)), ["agg1"]);
    assert_eq!(names(&next_hops(&topology, "leaf5", 7)), ["agg5"]);
    assert_eq!(names(&next_hops(&topology, "leaf0", 8)), ["agg0", "agg1"]);
    assert_eq!(names(&next_hops(&topology, "agg1", 4)), ["core1", "core3"]);
    assert_eq!(names(&next_hops(&topology, "core1", 4)), ["agg3"]);
}

/// STrack §4.2: 16 of 128 leaves lose 4 (or 16) of their 64 uplinks, 64 (or 256) links in all, spread over the spines.
#[test]
fn failed_uplinks_are_spread_over_the_spines() {
    for (per_switch, per_spine) in [(4, 1), (16, 4)] {
        let mut topology = spines(128, 64, 64, 1);
        topology.fail_uplinks(16, per_switch).unwrap();
        let dead: Vec<&Cable> = topology.cables.iter().filter(|cable| !cable.up).collect();
        assert_eq!(dead.len(), 16 * per_switch);
        let mut losses: BTreeMap<String, usize> = BTreeMap::new();
        for cable in dead {
            for end in cable.ends {
                *losses.entry(topology.node_name(end)).or_default() += 1;
            }
        }
        for leaf in 0..16 {
            assert_eq!(losses.remove(&format!("leaf{leaf}")), Some(per_switch));
        }
        for spine in 0..64 {
            assert_eq!(losses.remove(&format!("spine{spine}")), Some(per_spine));
        }
        assert!(losses.is_empty(), "{losses:?}");
        let usable = |leaf: &str, host: u32| next_hops(&topology, leaf, host).len();
        assert_eq!(usable("leaf3", 8191), 64 - per_switch);
        assert_eq!(usable("leaf127", 3 * 64), 64 - per_switch);
        assert_eq!(usable("leaf127", 20 * 64), 64);
        // Two leaves that have lost different spines share those that neither has lost.
        assert_eq!(usable("leaf0", 64), 64 - 2 * per_switch);
    }
}

/// The time of a lone packet there and its acknowledgement back, from a run.
fn measured_round_trip(topology: &Topology, from: u32, to: u32) -> Span {
    let routes = Routes::compute(topology).unwrap();
    let profile = Profile::strack(routes.paths.network_facts(SIZES));
    let flow = Flow::timed(
        HostId(from),
        HostId(to),
        Bytes::new(u64::from(SIZES.payload)),
        Time::ZERO,
    );
    let setup = Setup {
        topology,
        routes,
        flows: Arc::new([flow]),
        further_classes: ClassSet::EMPTY,
        profile: Arc::new(profile),
        further_transports: Default::default(),
        switch: SwitchParameters::default(),
        buffer: None,
        link_events: Arc::default(),
        seed: 1,
    };
    let outcome = Simulation::new(&setup, |_| None, Watch::Off).run(RunControl {
        threads: 1.into(),
        at_most: Time::from_us(1_000),
        coordinator: None,
        traffic: None,
        coordination_delay: None,
        on_progress: &mut |_| RunDecision::Continue,
    });
    outcome.flows[0].sent.unwrap() - Time::ZERO
}

/// Six links of 1 us each way; 4150 B take 83 ns at 400 Gb/s, 64 B take 1.28 ns.
#[test]
fn the_round_trip_of_three_tiers() {
    let topology = fat_tree(&tree(16, 4, &[(2, 2, 1), (2, 2, 1), (4, 0, 1)])).unwrap();
    let paths = Routes::compute(&topology).unwrap().paths;
    let facts = paths.network_facts(SIZES);
    assert_eq!(facts.propagation_rtt, Span::from_us(12));
    assert_eq!(facts.base_rtt.as_ps(), 12_000_000 + 6 * 83_000 + 6 * 1_280);
    assert_eq!(facts.bdp, Bytes::new(12_505_680 * 50 / 1_000));
    for (to, links) in [(1, 2), (2, 4), (15, 6)] {
        let trip = paths.round_trip(HostId(0), HostId(to), SIZES);
        assert_eq!(
            trip.as_ps(),
            links * (2_000_000 + 83_000 + 1_280),
            "to {to}"
        );
        assert_eq!(trip, measured_round_trip(&topology, 0, to), "to {to}");
    }
}

/// Hosts at 200 Gb/s and 0.5 us, leaves to spines at 800 Gb/s and 2 us, and switches that take their time.
#[test]
fn the_round_trip_of_unequal_tiers_and_slow_switches() {
    let mut spec = tree(8, 8, &[(4, 2, 1), (2, 0, 1)]);
    (spec.tiers[0].link_rate, spec.tiers[0].link_delay) =
        (Rate::from_gbps(200), Span::from_ns(500));
    (spec.tiers[1].link_rate, spec.tiers[1].link_delay) = (Rate::from_gbps(800), Span::from_us(2));
    spec.tiers[0].switch_latency = Span::from_ns(300);
    spec.tiers[1].switch_latency = Span::from_ns(700);
    let topology = fat_tree(&spec).unwrap();
    let facts = Routes::compute(&topology)
        .unwrap()
        .paths
        .network_facts(SIZES);
    // Each way: two links of 0.5 us, two of 2 us, two leaves of 0.3 us, a spine of 0.7 us.
    let propagation = 2 * (1_000_000 + 4_000_000 + 600_000 + 700_000);
    assert_eq!(facts.propagation_rtt.as_ps(), propagation);
    // 40 ps for each byte on the links of hosts, 10 ps on the others.
    let wires = (4150 + 64) * (2 * 40 + 2 * 10);
    assert_eq!(facts.base_rtt.as_ps(), propagation + wires);
    assert_eq!(facts.line_rate, Rate::from_gbps(200));
    assert_eq!(measured_round_trip(&topology, 1, 6), facts.base_rtt);
}

/// Of equally short ways the slowest counts, so that no packet is slower than the base round trip.
#[test]
fn the_longest_of_the_shortest_paths_counts() {
    let mut topology = spines(2, 2, 2, 1);
    let slow = topology.cables.len() - 1;
    topology.cables[slow].delay = Span::from_us(5);
    let facts = Routes::compute(&topology)
        .unwrap()
        .paths
        .network_facts(SIZES);
    assert_eq!(facts.propagation_rtt, Span::from_us(2 * (1 + 1 + 5 + 1)));
    // And the slowest host stands for its leaf.
    topology.cables[3].delay = Span::from_us(3);
    let facts = Routes::compute(&topology)
        .unwrap()
        .paths
        .network_facts(SIZES);
    assert_eq!(facts.propagation_rtt, Span::from_us(2 * (1 + 1 + 5 + 3)));
}

/// Delays of which no two pairs have the same sum (Erdős and Turán 1941), on the cables of 370 switches to one in the middle:
/// 68 635 different path lengths.
#[test]
fn every_pair_may_have_a_path_length_of_its_own() {
    const PRIME: u64 = 373;
    let (rate, delay) = at_400g();
    let leaves = 370;
    let mut star = leaf_spine(leaves, 1, 1, 1, (rate, delay), (rate, delay)).unwrap();
    let odd = |leaf: u64| Span::from_ps(1_000_000 + 2 * PRIME * leaf + leaf * leaf % PRIME);
    for leaf in 0..leaves {
        star.cables[(leaves + leaf) as usize].delay = odd(leaf.into());
    }
    let paths = Routes::compute(&star).unwrap().paths;
    for (from, to) in (0..leaves).flat_map(|from| (0..leaves).map(move |to| (from, to))) {
        if from != to {
            let expected = delay * 2 + odd(from.into()) + odd(to.into());
            let path = paths.between(HostId(from), HostId(to));
            assert_eq!(path.propagation, expected, "{from} to {to}");
        }
    }
}

fn refused<T>(result: Result<T, TopologyError>) -> TopologyError {
    result.err().expect("it should be refused")
}

#[test]
fn builders_refuse_what_does_not_fit() {
    let (rate, delay) = at_400g();
    let link = (rate, delay);
    let tree = |hosts, pod, tiers: &[_]| refused(fat_tree(&tree(hosts, pod, tiers)));
    insta::assert_snapshot!(tree(16, 16, &[(4, 4, 1)]), @"a fat tree of 1 tiers; use two or three");
    insta::assert_snapshot!(tree(1 << 23, 16, &[(4, 4, 1), (4, 0, 1)]), @"8388608 hosts; use at most 4194304");
    insta::assert_snapshot!(tree(18, 18, &[(4, 4, 1), (4, 0, 1)]), @"hosts per leaf: 18 is not a multiple of 4; use a multiple of 4, such as 16");
    insta::assert_snapshot!(tree(16, 5, &[(4, 4, 1), (4, 0, 1)]), @"hosts per pod: 16 is not a multiple of 5; use a multiple of 5, such as 15");
    insta::assert_snapshot!(tree(16, 2, &[(4, 4, 1), (4, 0, 1)]), @"leaves per pod: 4 is not a multiple of 8; use a multiple of 8, such as 8");
    insta::assert_snapshot!(tree(16, 16, &[(4, 3, 1), (4, 0, 2)]), @"uplinks of a leaf in bundles: 3 is not a multiple of 2; use a multiple of 2, such as 2");
    insta::assert_snapshot!(tree(16, 16, &[(4, 4, 1), (5, 0, 1)]), @"a switch of tier 1 has 5 ports down, but connects to 4; give it 4");
    insta::assert_snapshot!(tree(16, 4, &[(2, 2, 1), (2, 3, 1), (4, 0, 2)]), @"uplinks of an aggregation switch in bundles: 3 is not a multiple of 2; use a multiple of 2, such as 2");
    insta::assert_snapshot!(tree(16, 4, &[(2, 2, 1), (2, 2, 1), (5, 0, 1)]), @"a core has 5 ports down, but connects to 4; give it 4");
    insta::assert_snapshot!(tree(0, 0, &[(0, 0, 1), (0, 0, 0)]), @"hosts per leaf: 0 is not a multiple of 0; use a multiple of 1, such as 1");
    insta::assert_snapshot!(refused(leaf_spine(16, 3, 4, 1, link, link)), @"hosts per leaf: 16 is not a multiple of 3; use a multiple of 3, such as 15");
    insta::assert_snapshot!(refused(leaf_spine(16, 4, 0, 1, link, link)), @"0 spines with 1 links each; use 1 to 65536 uplinks per leaf");
    insta::assert_snapshot!(refused(leaf_spine(16, 4, 4, 1 << 31, link, link)), @"4 spines with 2147483648 links each; use 1 to 65536 uplinks per leaf");
    insta::assert_snapshot!(refused(single_switch(1, rate, delay)), @"1 hosts on one switch; use 2 to 65535");
    insta::assert_snapshot!(refused(dumbbell(3, 0, link, link)), @"a dumbbell of 3 and 0 hosts; give each side at least one host, and both together at most 65536");
}

#[test]
fn routing_refuses_what_is_not_connected() {
    let routes = |topology: &Topology| refused(Routes::compute(topology));
    let sound = spines(2, 2, 2, 1);

    let mut cut = sound.clone();
    cut.fail("leaf1-spine0", None).unwrap();
    cut.fail("leaf1-spine1", None).unwrap();
    insta::assert_snapshot!(routes(&cut), @"no path leads from leaf1 to leaf0; too many links have failed, or the graph has parts that are not connected");

    // Two tiers have no pods: two halves are built, and nothing joins them.
    let halves = fat_tree(&tree(16, 8, &[(4, 4, 1), (2, 0, 1)])).unwrap();
    insta::assert_snapshot!(routes(&halves), @"no path leads from leaf2 to leaf0; too many links have failed, or the graph has parts that are not connected");

    let mut lonely = sound.clone();
    lonely.cables[2].up = false;
    insta::assert_snapshot!(routes(&lonely), @"host 2 has 0 cables, but each host needs exactly one that is up; connect it to one switch");

    let mut twice = sound.clone();
    twice.cables.push(sound.cables[1].clone());
    insta::assert_snapshot!(routes(&twice), @"host 1 has 2 cables, but each host needs exactly one that is up; connect it to one switch");

    let mut instant = sound.clone();
    instant.cables[5].delay = Span::from_ps(999);
    insta::assert_snapshot!(routes(&instant), @"the cable between leaf0 and spine1 has a delay of 999ps; the engine needs at least 1ns");
    // Nobody minds the delay of a cable that is not connected.
    instant.cables[5].up = false;
    assert!(Routes::compute(&instant).is_ok());

    // Port numbers have 16 bits.
    let crowded = leaf_spine(65_535, 65_535, 1, 1, at_400g(), at_400g()).unwrap();
    insta::assert_snapshot!(routes(&crowded), @"leaf0 has 65536 ports that are up; a switch can have at most 65535");
    let (rate, delay) = at_400g();
    assert!(Routes::compute(&single_switch(65_535, rate, delay).unwrap()).is_ok());

    let mut direct = sound.clone();
    direct.cables[0].ends[1] = NodeId(1);
    direct.cables.remove(1);
    insta::assert_snapshot!(routes(&direct), @"host 0 has 1 cables, but each host needs exactly one that is up; connect it to one switch");
}

/// Switches without hosts may be cut off: nothing is lost by that.
#[test]
fn an_island_without_hosts_is_no_harm() {
    let mut topology = spines(2, 2, 2, 1);
    topology.fail("leaf0-spine1", None).unwrap();
    topology.fail("leaf1-spine1", None).unwrap();
    topology.switches.push(SwitchSpec::new("spare", 1));
    assert_eq!(names(&next_hops(&topology, "leaf0", 3)), ["spine0"]);
    assert_eq!(measured_round_trip(&topology, 0, 3).as_ps(), 8_337_120);
}

#[test]
fn failures_name_links_that_exist() {
    let mut topology = spines(3, 2, 3, 2);
    insta::assert_snapshot!(refused(topology.fail("leaf0-leaf1", None)), @"no link `leaf0-leaf1`; links are named after their two ends, such as `leaf2-spine2`, and 0 of that name are up");
    insta::assert_snapshot!(refused(topology.fail("leaf0-spine1", Some(3))), @"no link `leaf0-spine1`; links are named after their two ends, such as `leaf2-spine2`, and 2 of that name are up");
    insta::assert_snapshot!(refused(topology.fail_uplinks(4, 1)), @"4 switches are to lose links, but tier 0 has 3; name at most 3");
    insta::assert_snapshot!(refused(topology.fail_uplinks(2, 6)), @"each switch is to lose 6 uplinks, but has 6; fail at most 5");
    topology.fail("leaf0-spine1", Some(2)).unwrap();
    insta::assert_snapshot!(refused(topology.fail("leaf0-spine1", None)), @"no link `leaf0-spine1`; links are named after their two ends, such as `leaf2-spine2`, and 0 of that name are up");
    let down = topology.cables.iter().filter(|cable| !cable.up).count();
    assert_eq!(down, 2);
    let up: BTreeSet<usize> = topology.links_up().map(|link| link.cable()).collect();
    assert_eq!(up.len(), topology.cables.len() - 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    /// More leaves than the side of a square in which pairs are searched; links of few lengths, so that many pairs are alike.
    #[test]
    fn the_longest_pair_is_the_first_of_the_longest(leaves in 60u32..140, seed in any::<u64>()) {
        let mut topology = leaf_spine(2 * leaves, 2, 2, 1, at_400g(), at_400g()).unwrap();
        let mut random = RandomStream::new(seed, Purpose::Workload, 0);
        for cable in &mut topology.cables {
            cable.delay = Span::from_ns(900 + 100 * u64::from(random.next_u32() % 64 / 62));
        }
        let paths = Routes::compute(&topology).unwrap().paths;
        let hosts = || (0..2 * leaves).map(HostId);
        let pairs = hosts().flat_map(|from| hosts().map(move |to| (from, to)));
        let longest = pairs.filter(|(from, to)| from != to).map(|(from, to)| paths.round_trip(from, to, SIZES)).max();
        let (from, to) = paths.longest_pair(SIZES).unwrap();
        prop_assert_eq!(Some(paths.round_trip(from, to, SIZES)), longest);
        // Leaves before those of the pair, and receivers before its own, have no pair as long.
        let leaf = |host: HostId| host.0 / 2;
        for sender in hosts().filter(|host| leaf(*host) <= leaf(from)) {
            let before = hosts().filter(|host| leaf(sender) < leaf(from) || leaf(*host) < leaf(to));
            for receiver in before.filter(|host| *host != sender) {
                prop_assert!(Some(paths.round_trip(sender, receiver, SIZES)) < longest);
            }
        }
    }
}

#[test]
fn of_pairs_that_are_alike_the_first_counts_across_squares() {
    let mut topology = leaf_spine(260, 2, 2, 1, at_400g(), at_400g()).unwrap();
    // Leaves 2 and 70 are far from one spine, leaves 3 and 5 from the other.
    for (leaf, spine) in [(2, 0), (70, 0), (3, 1), (5, 1)] {
        let ends = [leaf, 130 + spine].map(|index| topology.switch_node(index));
        let joins = |cable: &&mut Cable| ends.iter().all(|end| cable.ends.contains(end));
        let cable = topology.cables.iter_mut().find(joins).unwrap();
        cable.delay += Span::from_ns(100);
    }
    let paths = Routes::compute(&topology).unwrap().paths;
    let pair = |from, to| paths.round_trip(HostId(from), HostId(to), SIZES);
    assert_eq!(pair(4, 140), pair(6, 10));
    assert!(pair(4, 6) < pair(4, 140));
    assert_eq!(paths.longest_pair(SIZES), Some((HostId(4), HostId(140))));
}

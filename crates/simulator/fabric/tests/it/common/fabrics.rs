//! Random fabrics: the builders' and irregular graphs, with failures, odd rates, unequal delays and bit errors.

use super::draw::Draw;
use clearway_fabric::topology::{
    Cable, CoreWiring, Dimension, DimensionLinks, DirectRouting, DragonflyLinks, FatTree,
    GroupRouting, NodeId, Routes, SwitchGroups, SwitchSpec, Tier, TierQueues, Topology,
    VirtualChannels, direct_network, dragonfly, dragonfly_plus, dumbbell, fat_tree, leaf_spine,
    single_switch,
};
use clearway_units::{Bytes, Rate, Span};

const ODD_RATES: [u64; 5] = [
    7_000_000_000,
    25_000_000_000,
    100_000_000_000,
    300_000_000_000,
    123_456_789_012,
];

/// A connected fabric of a few hosts.
pub(crate) fn random_fabric(draw: &mut Draw) -> Topology {
    let mut topology = regular(draw);
    // Half of the fabrics stay as regular as they are, for the sake of simultaneous events.
    if draw.chance(50) {
        make_uneven(draw, &mut topology);
    }
    if draw.chance(30) {
        for switch in &mut topology.switches {
            switch.latency = Span::from_ps(draw.between(0, 700_000));
        }
    }
    if draw.chance(25) {
        for cable in &mut topology.cables {
            cable.bit_error_rate = draw.pick(&[0.0, 1e-7, 1e-6, 1e-5]);
            // As likely as an error in a packet of some size.
            if cable.bit_error_rate == 1e-6 {
                cable.packet_loss = draw.pick(&[0.0, 0.001, 0.02]);
            } else if cable.bit_error_rate == 0.0 {
                cable.packet_loss = draw.pick(&[0.0, 0.005]);
            }
        }
    }
    if draw.chance(40) {
        fail_some(draw, &mut topology);
    }
    topology
}

/// In some, the fabric itself says how long the queues of a tier are.
pub(crate) fn choose_queues(draw: &mut Draw, topology: &mut Topology) {
    if draw.chance(20) {
        let mut queue = || {
            draw.chance(70)
                .then(|| Bytes::new(draw.between(9_000, 60_000)))
        };
        let tier = |_| TierQueues {
            up: queue(),
            down: queue(),
        };
        topology.queues = (0..2).map(tier).collect();
    }
}

/// Puts the switches of some fabrics in groups: the groups of a dragonfly, or any.
pub(crate) fn in_groups(draw: &mut Draw, mut topology: Topology) -> Topology {
    let routing = draw.pick(&[
        GroupRouting::Minimal,
        GroupRouting::Valiant,
        GroupRouting::Ugal,
    ]);
    if draw.chance(12) {
        let count = draw.between(2, 5) as u16;
        let switches = topology.switches.iter();
        topology.groups = Some(SwitchGroups {
            of_switch: switches.map(|_| draw.below(count.into()) as u16).collect(),
            count,
            routing,
        });
        return topology;
    }
    if !draw.chance(12) {
        return topology;
    }
    let (switches, global_links) = (draw.between(1, 3) as u32, draw.between(1, 2) as u32);
    let most = (switches * global_links + 1).min(4);
    let links = DragonflyLinks {
        groups: draw.between(2, most.into()) as u32,
        global_links,
        host: random_link(draw),
        local: random_link(draw),
        global: random_link(draw),
        routing,
    };
    let hosts = draw.between(1, 2) as u32;
    let built = match draw.chance(50) {
        true => dragonfly(switches, hosts, &links),
        false => dragonfly_plus((draw.between(1, 2) as u32, switches), hosts, &links),
    };
    topology = built.expect("the numbers fit together");
    if draw.chance(50) {
        fail_some(draw, &mut topology);
    }
    topology
}

/// Replaces some fabrics by hosts that are joined with each other, and forward.
pub(crate) fn or_direct(draw: &mut Draw, topology: Topology) -> Topology {
    if !draw.chance(8) {
        return topology;
    }
    let dimension = |_| {
        let (rate, delay) = random_link(draw);
        Dimension {
            size: draw.between(2, 4) as u32,
            links: draw.pick(DimensionLinks::ALL),
            rate,
            // Part of it lies inside the hosts.
            delay: delay.max(Span::from_ns(3)),
        }
    };
    let dimensions: Vec<Dimension> = (0..2).map(dimension).collect();
    let count = draw.between(1, 2) as usize;
    let routing = draw.pick(DirectRouting::ALL);
    let mut topology =
        direct_network(&dimensions[..count], routing, VirtualChannels::One).expect("few hosts");
    if draw.chance(40) {
        fail_some(draw, &mut topology);
    }
    topology
}

/// A ring or torus with two virtual channels, and with dimension order.
pub(crate) fn torus(draw: &mut Draw) -> Topology {
    let dimension = |size: u32, draw: &mut Draw| {
        let (rate, delay) = random_link(draw);
        Dimension {
            size,
            links: DimensionLinks::Ring,
            rate,
            delay: delay.max(Span::from_ns(3)),
        }
    };
    let sizes = match draw.below(4) {
        0 | 1 => vec![draw.between(4, 9) as u32],
        2 => vec![draw.between(3, 5) as u32, draw.between(2, 4) as u32],
        _ => vec![3, 2, draw.between(2, 4) as u32],
    };
    let mut dimensions: Vec<Dimension> = sizes.iter().map(|&size| dimension(size, draw)).collect();
    // Packets need not be switched between hosts alone, nor along rings.
    if dimensions.len() > 1 && draw.chance(30) {
        dimensions[1].links = draw.pick(DimensionLinks::ALL);
    }
    let routing = DirectRouting::DimensionOrder;
    let mut topology =
        direct_network(&dimensions, routing, VirtualChannels::Two).expect("few hosts");
    if draw.chance(15) {
        fail_some(draw, &mut topology);
    }
    topology
}

fn regular(draw: &mut Draw) -> Topology {
    let link = random_link(draw);
    let other = if draw.chance(50) {
        link
    } else {
        random_link(draw)
    };
    let count = |draw: &mut Draw, low, high| draw.between(low, high) as u32;
    let built = match draw.below(5) {
        0 => single_switch(count(draw, 2, 10), link.0, link.1),
        1 => dumbbell(count(draw, 1, 5), count(draw, 1, 5), link, other),
        2 => {
            let (per_leaf, leaves) = (count(draw, 1, 4), count(draw, 2, 4));
            let (spines, links) = (count(draw, 1, 3), count(draw, 1, 2));
            leaf_spine(per_leaf * leaves, per_leaf, spines, links, link, other)
        }
        3 => fat_tree(&random_tree(draw, link, other)),
        _ => Ok(random_graph(draw, link)),
    };
    built.expect("the numbers fit together")
}

fn random_link(draw: &mut Draw) -> (Rate, Span) {
    let bps = if draw.chance(60) {
        draw.pick(&[100_000_000_000, 400_000_000_000])
    } else {
        draw.pick(&ODD_RATES)
    };
    let delay = match draw.below(32) {
        // Many rounds, so that something happens in the first and the last instant of one.
        0 => Span::from_ps(draw.between(1_000, 1_003)),
        // Longer than it takes to send all there is.
        1 => Span::from_us(60),
        _ => draw.pick(&[Span::from_ns(100), Span::from_ns(500), Span::from_us(1)]),
    };
    (Rate::from_bps(bps), delay)
}

fn random_tree(draw: &mut Draw, link: (Rate, Span), upper: (Rate, Span)) -> FatTree {
    let mut few = || draw.between(1, 2) as u32;
    let (per_leaf, leaves, aggs, cores_per_agg) = (few(), few(), few(), few());
    let (low_bundle, high_bundle, pods) = (few(), few(), few() + 1);
    let tier = |down_ports, up_ports, (link_rate, link_delay), bundle| Tier {
        down_ports,
        up_ports,
        link_rate,
        link_delay,
        switch_latency: Span::ZERO,
        bundle,
    };
    FatTree {
        hosts: per_leaf * leaves * pods,
        hosts_per_pod: per_leaf * leaves,
        tiers: vec![
            tier(per_leaf, aggs * low_bundle, link, 1),
            tier(
                leaves * low_bundle,
                cores_per_agg * high_bundle,
                upper,
                low_bundle,
            ),
            tier(pods * high_bundle, 0, upper, high_bundle),
        ],
        cores: CoreWiring::Interleaved,
    }
}

/// A tree of switches with some more cables, and hosts anywhere.
fn random_graph(draw: &mut Draw, (rate, delay): (Rate, Span)) -> Topology {
    let (hosts, switches) = (draw.between(2, 9) as u32, draw.between(1, 5) as u32);
    let cable = |a: u32, b: u32| Cable::new([NodeId(a), NodeId(b)], (rate, delay));
    let mut cables: Vec<Cable> = (0..hosts)
        .map(|host| cable(host, hosts + draw.below(switches)))
        .collect();
    cables.extend((1..switches).map(|switch| cable(hosts + draw.below(switch), hosts + switch)));
    for _ in 0..draw.below(2 * switches) {
        let (a, b) = (draw.below(switches), draw.below(switches));
        if a != b {
            cables.push(cable(hosts + a, hosts + b));
        }
    }
    // Nothing may depend on hosts' cables coming first or pointing upwards.
    draw.shuffle(&mut cables);
    for cable in &mut cables {
        draw.shuffle(&mut cable.ends);
    }
    let switch = |i| SwitchSpec::new(format!("s{i}"), 0);
    Topology {
        summary: "graph".into(),
        hosts,
        further_nics: Vec::new(),
        queues: Vec::new(),
        groups: None,
        switches: (0..switches).map(switch).collect(),
        cables,
    }
}

fn make_uneven(draw: &mut Draw, topology: &mut Topology) {
    let odd_delays = draw.chance(50);
    let odd_rates = draw.chance(50);
    for cable in &mut topology.cables {
        let ps = cable.delay.as_ps();
        cable.delay = if odd_delays {
            Span::from_ps(draw.between(ps, 10 * ps))
        } else {
            Span::from_ps(ps * draw.between(1, 10))
        };
        if odd_rates {
            cable.rate = Rate::from_bps(draw.pick(&ODD_RATES));
        }
    }
}

/// Takes down some cables between switches, as far as the fabric stays connected.
fn fail_some(draw: &mut Draw, topology: &mut Topology) {
    for cable in 0..topology.cables.len() {
        let between_switches = topology.cables[cable]
            .ends
            .iter()
            .all(|&end| topology.switch_index(end).is_some());
        if between_switches && draw.chance(30) {
            topology.cables[cable].up = false;
            topology.cables[cable].up = Routes::compute(topology).is_err();
        }
    }
}

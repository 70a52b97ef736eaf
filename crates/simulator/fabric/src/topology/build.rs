//! Builders of the usual fabrics.

use super::{Cable, NodeId, SwitchRole, SwitchSpec, Topology, TopologyError};
use clearway_units::{Rate, Span};

/// The links below one tier of a fat tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier {
    /// Ports of a switch of this tier that lead down.
    pub down_ports: u32,
    /// Ports of a switch of this tier that lead up; not used on the top tier.
    pub up_ports: u32,
    /// Rate of the links below.
    pub link_rate: Rate,
    /// Delay of the links below.
    pub link_delay: Span,
    /// Latency of the switches of this tier.
    pub switch_latency: Span,
    /// Parallel links to each switch below.
    pub bundle: u32,
}

/// A fat tree (Clos network) of two or three tiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FatTree {
    /// Number of hosts.
    pub hosts: u32,
    /// Hosts in a pod; all hosts in two tiers.
    pub hosts_per_pod: u32,
    /// From the hosts upwards.
    pub tiers: Vec<Tier>,
    /// Wiring between aggregation switches and cores, in three tiers.
    pub cores: CoreWiring,
}

/// Wiring of the cores: which of them an aggregation switch is connected to, where a pod has A aggregation switches with C uplinks each.
/// The first two variants have C·A cores and differ only in the numbers of the cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoreWiring {
    /// Switch `a` of each pod to the cores `a, a + A, a + 2A, …`, as in htsim's `.topo` files.
    Interleaved,
    /// Switch `a` of each pod to the cores `aC, aC + 1, …, aC + C - 1`, as in the fabric of HPCC's evaluation.
    Planes,
    /// Each switch to all cores, of which there are C, as in the fat tree of eight servers of TMDML's Figure 1.
    All,
}

fn impossible(what: impl Into<String>, fix: impl Into<String>) -> TopologyError {
    TopologyError::Impossible {
        what: what.into(),
        fix: fix.into(),
    }
}

/// Switches of one tier, and where their nodes begin.
struct Level {
    first: u32,
    count: u32,
}

impl Level {
    fn node(&self, index: u32) -> NodeId {
        debug_assert!(index < self.count);
        NodeId(self.first + index)
    }
}

fn cable(a: NodeId, b: NodeId, tier: &Tier) -> Cable {
    Cable::new([a, b], (tier.link_rate, tier.link_delay))
}

fn add_switches(topology: &mut Topology, name: &str, tier: u8, count: u32, latency: Span) -> Level {
    let first = topology.hosts + topology.switches.len() as u32;
    topology.switches.extend((0..count).map(|i| SwitchSpec {
        name: if name == "switch" {
            name.into()
        } else {
            format!("{name}{i}")
        },
        tier,
        latency,
        role: SwitchRole::Network,
    }));
    Level { first, count }
}

/// `a / b` if that is a whole number above zero.
fn exactly(a: u32, b: u32, what: &str) -> Result<u32, TopologyError> {
    if b == 0 || a == 0 || !a.is_multiple_of(b) {
        return Err(impossible(
            format!("{what}: {a} is not a multiple of {b}"),
            format!(
                "use a multiple of {}, such as {}",
                b.max(1),
                (a / b.max(1)).max(1) * b.max(1)
            ),
        ));
    }
    Ok(a / b)
}

/// Builds a fat tree. Host `h` hangs on leaf `h / down_ports`, every leaf of a pod is connected to every aggregation switch of
/// the pod (two tiers: every leaf to every spine), and every aggregation switch to its cores (see [`CoreWiring`]), each with `bundle`
/// parallel links.
///
/// # Errors
/// If the numbers of ports do not come out even.
pub fn fat_tree(spec: &FatTree) -> Result<Topology, TopologyError> {
    let two_tiers = spec.tiers.len() == 2;
    if !(2..=3).contains(&spec.tiers.len()) {
        return Err(impossible(
            format!("a fat tree of {} tiers", spec.tiers.len()),
            "use two or three",
        ));
    }
    if spec.hosts > 1 << 22 {
        return Err(impossible(
            format!("{} hosts", spec.hosts),
            "use at most 4194304",
        ));
    }
    let (leaf, spine) = (&spec.tiers[0], &spec.tiers[1]);
    let leaves = exactly(spec.hosts, leaf.down_ports, "hosts per leaf")?;
    let pods = exactly(spec.hosts, spec.hosts_per_pod, "hosts per pod")?;
    let leaves_per_pod = exactly(leaves, pods, "leaves per pod")?;
    let spines_per_pod = exactly(leaf.up_ports, spine.bundle, "uplinks of a leaf in bundles")?;
    let needed = leaves_per_pod * spine.bundle;
    if spine.down_ports != needed {
        return Err(impossible(
            format!(
                "a switch of tier 1 has {} ports down, but connects to {needed}",
                spine.down_ports
            ),
            format!("give it {needed}"),
        ));
    }
    let mut topology = Topology {
        summary: String::new(),
        hosts: spec.hosts,
        further_nics: Vec::new(),
        queues: Vec::new(),
        groups: None,
        switches: Vec::new(),
        cables: Vec::new(),
    };
    let leaf_level = add_switches(&mut topology, "leaf", 0, leaves, leaf.switch_latency);
    for host in 0..spec.hosts {
        let end = leaf_level.node(host / leaf.down_ports);
        topology.cables.push(cable(NodeId(host), end, leaf));
    }
    let name = if two_tiers { "spine" } else { "agg" };
    let spines = pods * spines_per_pod;
    let spine_level = add_switches(&mut topology, name, 1, spines, spine.switch_latency);
    for index in 0..leaves {
        for position in 0..spines_per_pod {
            let upper = spine_level.node(index / leaves_per_pod * spines_per_pod + position);
            for _ in 0..spine.bundle {
                topology
                    .cables
                    .push(cable(leaf_level.node(index), upper, spine));
            }
        }
    }
    if two_tiers {
        topology.summary = format!(
            "leaf-spine: {} hosts, {leaves} leaves, {spines} spines",
            spec.hosts
        );
    } else {
        add_cores(&mut topology, spec, &spine_level, spines_per_pod, pods)?;
    }
    Ok(topology)
}

fn add_cores(
    topology: &mut Topology,
    spec: &FatTree,
    aggs: &Level,
    aggs_per_pod: u32,
    pods: u32,
) -> Result<(), TopologyError> {
    let (agg, core) = (&spec.tiers[1], &spec.tiers[2]);
    let cores_per_agg = exactly(
        agg.up_ports,
        core.bundle,
        "uplinks of an aggregation switch in bundles",
    )?;
    let (cores, below) = match spec.cores {
        CoreWiring::Interleaved | CoreWiring::Planes => (cores_per_agg * aggs_per_pod, pods),
        CoreWiring::All => (cores_per_agg, aggs.count),
    };
    let needed = below * core.bundle;
    if core.down_ports != needed {
        return Err(impossible(
            format!(
                "a core has {} ports down, but connects to {needed}",
                core.down_ports,
            ),
            format!("give it {needed}"),
        ));
    }
    let core_level = add_switches(topology, "core", 2, cores, core.switch_latency);
    for index in 0..aggs.count {
        for k in 0..cores_per_agg {
            let agg = index % aggs_per_pod;
            let upper = core_level.node(match spec.cores {
                CoreWiring::Interleaved => agg + k * aggs_per_pod,
                CoreWiring::Planes => agg * cores_per_agg + k,
                CoreWiring::All => k,
            });
            for _ in 0..core.bundle {
                topology.cables.push(cable(aggs.node(index), upper, core));
            }
        }
    }
    topology.summary = format!(
        "3-tier fat tree: {} hosts, {pods} pods, {} leaves, {} aggregation switches, {cores} cores",
        spec.hosts,
        spec.hosts / spec.tiers[0].down_ports,
        aggs.count,
    );
    Ok(())
}

/// Builds a leaf-spine fabric in which every leaf has `links` cables to each of `spines` spines.
///
/// # Errors
/// If the hosts do not fill the leaves.
pub fn leaf_spine(
    hosts: u32,
    hosts_per_leaf: u32,
    spines: u32,
    links: u32,
    host_link: (Rate, Span),
    fabric_link: (Rate, Span),
) -> Result<Topology, TopologyError> {
    let leaves = exactly(hosts, hosts_per_leaf, "hosts per leaf")?;
    let up_ports = spines
        .checked_mul(links)
        .filter(|&ports| (1..=1 << 16).contains(&ports))
        .ok_or_else(|| {
            impossible(
                format!("{spines} spines with {links} links each"),
                "use 1 to 65536 uplinks per leaf",
            )
        })?;
    let tier = |down_ports, up_ports, (link_rate, link_delay), bundle| Tier {
        down_ports,
        up_ports,
        link_rate,
        link_delay,
        switch_latency: Span::ZERO,
        bundle,
    };
    let spine_ports = leaves.saturating_mul(links);
    fat_tree(&FatTree {
        hosts,
        hosts_per_pod: hosts,
        tiers: vec![
            tier(hosts_per_leaf, up_ports, host_link, 1),
            tier(spine_ports, 0, fabric_link, links),
        ],
        cores: CoreWiring::Interleaved,
    })
}

/// Builds `hosts` hosts on one switch.
///
/// # Errors
/// If there are fewer than two hosts.
pub fn single_switch(hosts: u32, rate: Rate, delay: Span) -> Result<Topology, TopologyError> {
    if !(2..=65_535).contains(&hosts) {
        return Err(impossible(
            format!("{hosts} hosts on one switch"),
            "use 2 to 65535",
        ));
    }
    let mut topology = Topology {
        summary: format!("single switch: {hosts} hosts"),
        hosts,
        further_nics: Vec::new(),
        queues: Vec::new(),
        groups: None,
        switches: Vec::new(),
        cables: Vec::new(),
    };
    let level = add_switches(&mut topology, "switch", 0, 1, Span::ZERO);
    let tier = plain_tier(rate, delay);
    topology.cables = (0..hosts)
        .map(|host| cable(NodeId(host), level.node(0), &tier))
        .collect();
    Ok(topology)
}

/// Builds `left` and `right` hosts on two switches with `bottleneck` between them; hosts are numbered from the left.
///
/// # Errors
/// If a side has no host.
pub fn dumbbell(
    left: u32,
    right: u32,
    edge: (Rate, Span),
    bottleneck: (Rate, Span),
) -> Result<Topology, TopologyError> {
    if left == 0 || right == 0 || left.saturating_add(right) > 1 << 16 {
        return Err(impossible(
            format!("a dumbbell of {left} and {right} hosts"),
            "give each side at least one host, and both together at most 65536",
        ));
    }
    let hosts = left + right;
    let mut topology = Topology {
        summary: format!(
            "dumbbell: {left} and {right} hosts, {} between",
            bottleneck.0
        ),
        hosts,
        further_nics: Vec::new(),
        queues: Vec::new(),
        groups: None,
        switches: Vec::new(),
        cables: Vec::new(),
    };
    let level = Level {
        first: hosts,
        count: 2,
    };
    topology.switches = ["left", "right"]
        .map(|name| SwitchSpec::new(name, 0))
        .into();
    let tier = plain_tier(edge.0, edge.1);
    let ends =
        (0..hosts).map(|host| cable(NodeId(host), level.node(u32::from(host >= left)), &tier));
    topology.cables = ends.collect();
    let middle = plain_tier(bottleneck.0, bottleneck.1);
    topology
        .cables
        .push(cable(level.node(0), level.node(1), &middle));
    Ok(topology)
}

fn plain_tier(link_rate: Rate, link_delay: Span) -> Tier {
    Tier {
        down_ports: 1,
        up_ports: 0,
        link_rate,
        link_delay,
        switch_latency: Span::ZERO,
        bundle: 1,
    }
}

//! Nodes of GPUs: a scale-up switch inside, and NICs, each on a rail of a network of leaves and spines.
//!
//! A GPU is a host of the user's. It has a cable for each NIC that it uses, to a leaf of the NIC's rail, and one to the switch of its node.
//! Spines join the rails. Hosts do not forward, so GPUs of different nodes reach each other only over leaves and spines. GPUs of one node
//! reach each other over the node's switch, because the choice of NICs takes the shortest path.
//!
//! Without such a switch, links join the GPUs of a node with each other. Each GPU then has a [router](Topology::with_routers_of), which
//! forwards to GPUs of the node that have no link to the sender. Routers have no cables of NICs, so no GPU forwards between its node and
//! the network.
//!
//! GPUs may share a NIC. The NIC is then a [switch](SwitchRole::Nic) between them and the leaf, as fast as the NIC on all sides. Half of
//! the delay of the NIC's link lies between GPU and NIC. The queue of its port to the leaf stands for what waits in the NIC.
//!
//! Switches and routers of nodes are [lossless](SwitchRole::ScaleUp). NVLink has credits: data that does not fit waits at the sender. Here
//! it waits in the egress queue of the switch, which takes every packet; the order in which a receiver gets it is the same, and senders are
//! held back by their windows alone.

use super::{Cable, NodeId, PortChoice, SwitchRole, SwitchSpec, Topology, TopologyError};
use clearway_units::{Rate, Span};

/// Maximum number of GPUs, of NICs, and of cables of a kind.
const MOST: u32 = 1 << 20;

/// A node of GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuNode {
    /// Links between its GPUs.
    pub scale_up: ScaleUpLinks,
    /// NICs.
    pub nics: Vec<NodeNic>,
}

/// Links between the GPUs of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScaleUpLinks {
    /// To a switch: for each GPU, the rate of each direction.
    Switch(Vec<Rate>),
    /// From GPU to GPU.
    Direct {
        /// Number of GPUs.
        gpus: u32,
        /// Links.
        links: Vec<GpuLink>,
    },
}

/// A link between two GPUs of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuLink {
    /// The two GPUs.
    pub ends: [u32; 2],
    /// Rate of each direction.
    pub rate: Rate,
}

impl ScaleUpLinks {
    /// Number of GPUs.
    pub fn gpus(&self) -> u32 {
        match self {
            Self::Switch(rates) => u32::try_from(rates.len()).unwrap_or(u32::MAX),
            Self::Direct { gpus, .. } => *gpus,
        }
    }
}

/// A NIC of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeNic {
    /// Rate of its link.
    pub rate: Rate,
    /// Rail that it is on.
    pub rail: u32,
    /// GPUs that use it, at least one.
    pub gpus: Vec<u32>,
}

/// A fabric of equal nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuNodes {
    /// Number of nodes.
    pub nodes: u32,
    /// Each node.
    pub node: GpuNode,
    /// Leaves of each rail, among which its nodes are shared out in order.
    pub leaves_per_rail: u32,
    /// Spines, each connected to every leaf. With none the rails are apart.
    pub spines: u32,
    /// Links from each leaf to each spine.
    pub bundle: u32,
    /// Delay of the links of NICs.
    pub nic_delay: Span,
    /// Rate and delay of the links between leaves and spines.
    pub fabric: (Rate, Span),
    /// Delay of the links between GPUs and the switch of their node, or from GPU to GPU.
    pub scale_up_delay: Span,
}

/// Builds a fabric of equal nodes. GPU `i` of node `n` is host `n` times the GPUs of a node, plus `i`. Hosts have several cables: see
/// [`Topology::split_hosts`]. Without other GPUs in its node, a GPU has no link to a switch of the node.
///
/// # Errors
/// If the numbers do not come out even, or are too large, or if the delay of links from GPU to GPU is less than 3 ns.
pub fn gpu_nodes(spec: &GpuNodes) -> Result<Topology, TopologyError> {
    let shape = Shape::from_spec(spec)?;
    let mut cables = Vec::new();
    for node in 0..spec.nodes {
        let mut shared = 0..shape.shared_nics;
        for nic in &spec.node.nics {
            let leaf = shape.leaf(shape.leaf_of(node, nic.rail));
            let gpu = |gpu: &u32| NodeId(node * shape.gpus_per_node + gpu);
            if let [only] = &nic.gpus[..] {
                let link = (nic.rate, spec.nic_delay);
                cables.push(Cable::new([gpu(only), leaf], link));
                continue;
            }
            let own = shape.shared_nic(node, shared.next().unwrap_or_default());
            let inside = (nic.rate, spec.nic_delay / 2);
            cables.extend(
                nic.gpus
                    .iter()
                    .map(|own_gpu| Cable::new([gpu(own_gpu), own], inside)),
            );
            let outside = (nic.rate, spec.nic_delay - spec.nic_delay / 2);
            cables.push(Cable::new([own, leaf], outside));
        }
    }
    for leaf in 0..shape.leaves {
        for spine in 0..spec.spines {
            let ends = [shape.leaf(leaf), shape.spine(spine)];
            cables.extend((0..spec.bundle).map(|_| Cable::new(ends, spec.fabric)));
        }
    }
    let before = cables.len();
    shape.add_scale_up_links(spec, &mut cables);
    let topology = Topology {
        summary: format!(
            "rail-optimised: {} nodes of {} GPUs, {} leaves, {} spines",
            spec.nodes, shape.gpus_per_node, shape.leaves, spec.spines
        ),
        hosts: shape.gpus,
        further_nics: Vec::new(),
        queues: Vec::new(),
        groups: None,
        switches: shape.switches(spec),
        cables,
    };
    match spec.node.scale_up {
        ScaleUpLinks::Switch(_) => Ok(topology),
        ScaleUpLinks::Direct { .. } => {
            topology.with_routers_of(SwitchRole::ScaleUp, |_, cable| cable >= before)
        }
    }
}

/// The numbers of a fabric, before hosts are split into NICs.
struct Shape {
    gpus: u32,
    gpus_per_node: u32,
    leaves_per_rail: u32,
    /// Nodes with a NIC on one leaf.
    nodes_per_leaf: u32,
    leaves: u32,
    spines: u32,
    /// Switches of nodes.
    node_switches: u32,
    /// NICs of each node that GPUs share.
    shared_nics: u32,
}

impl Shape {
    fn from_spec(spec: &GpuNodes) -> Result<Self, TopologyError> {
        let impossible = |what: String, fix: &str| {
            let fix = fix.into();
            Err(TopologyError::Impossible { what, fix })
        };
        let gpus_per_node = spec.node.scale_up.gpus();
        let gpus = spec.nodes.checked_mul(gpus_per_node);
        let Some(gpus) = gpus.filter(|gpus| (2..=MOST).contains(gpus)) else {
            let what = format!("{} nodes of {gpus_per_node} GPUs", spec.nodes);
            return impossible(what, "use 2 to 1048576 GPUs");
        };
        let leaves_per_rail = spec.leaves_per_rail;
        if leaves_per_rail == 0 || !spec.nodes.is_multiple_of(leaves_per_rail) {
            let what = format!(
                "{} nodes on {leaves_per_rail} leaves of each rail",
                spec.nodes
            );
            return impossible(what, "use a number of leaves that divides the nodes");
        }
        if spec.spines == 0 && leaves_per_rail > 1 {
            let what = format!("rails of {leaves_per_rail} leaves without spines");
            return impossible(what, "use one leaf for each rail, or at least one spine");
        }
        let uplinks = spec.spines.checked_mul(spec.bundle);
        if uplinks.is_none_or(|links| links > 1 << 16) || (spec.bundle == 0 && spec.spines > 0) {
            let what = format!("{} spines with {} links each", spec.spines, spec.bundle);
            return impossible(
                what,
                "use at least 1 link and at most 65536 uplinks per leaf",
            );
        }
        let uses = spec.node.nics.iter().map(|nic| nic.gpus.len() as u64);
        let uses = u64::from(spec.nodes).saturating_mul(uses.sum());
        let rails = spec
            .node
            .nics
            .iter()
            .map(|nic| nic.rail.saturating_add(1))
            .max();
        let leaves = rails.unwrap_or(0).checked_mul(leaves_per_rail);
        let Some(leaves) = leaves.filter(|_| uses <= u64::from(MOST)) else {
            let what = format!("{uses} links between GPUs and NICs");
            return impossible(what, "use fewer nodes");
        };
        check_links(&spec.node.scale_up, spec.nodes)?;
        let shared = spec.node.nics.iter().filter(|nic| nic.gpus.len() != 1);
        let shared_nics = shared.count() as u32;
        if shared_nics > 0 && (spec.nic_delay / 2).is_zero() {
            let what = format!("NICs that GPUs share, with links of {}", spec.nic_delay);
            return impossible(what, "use a longer delay");
        }
        Ok(Self {
            gpus,
            gpus_per_node,
            leaves_per_rail,
            nodes_per_leaf: spec.nodes / leaves_per_rail,
            leaves,
            spines: spec.spines,
            node_switches: match spec.node.scale_up {
                ScaleUpLinks::Switch(_) if gpus_per_node > 1 => spec.nodes,
                _ => 0,
            },
            shared_nics,
        })
    }

    /// Adds the links between the GPUs of each node.
    fn add_scale_up_links(&self, spec: &GpuNodes, cables: &mut Vec<Cable>) {
        let own = |node: u32, gpu: u32| NodeId(node * self.gpus_per_node + gpu);
        for node in 0..spec.nodes {
            match &spec.node.scale_up {
                ScaleUpLinks::Switch(rates) if rates.len() > 1 => {
                    cables.extend((0..).zip(rates).map(|(gpu, rate)| {
                        let ends = [own(node, gpu), self.node_switch(node)];
                        Cable::new(ends, (*rate, spec.scale_up_delay))
                    }));
                }
                ScaleUpLinks::Switch(_) => {}
                ScaleUpLinks::Direct { links, .. } => cables.extend(links.iter().map(|link| {
                    let ends = link.ends.map(|gpu| own(node, gpu));
                    Cable::new(ends, (link.rate, spec.scale_up_delay))
                })),
            }
        }
    }

    /// Number of the leaf that the NICs of a node on a rail are on: leaves of a rail follow each other.
    fn leaf_of(&self, node: u32, rail: u32) -> u32 {
        rail * self.leaves_per_rail + node / self.nodes_per_leaf
    }

    fn leaf(&self, number: u32) -> NodeId {
        NodeId(self.gpus + number)
    }

    fn spine(&self, number: u32) -> NodeId {
        NodeId(self.gpus + self.leaves + number)
    }

    fn node_switch(&self, node: u32) -> NodeId {
        NodeId(self.gpus + self.leaves + self.spines + node)
    }

    fn shared_nic(&self, node: u32, number: u32) -> NodeId {
        let before = self.gpus + self.leaves + self.spines + self.node_switches;
        NodeId(before + node * self.shared_nics + number)
    }

    fn switches(&self, spec: &GpuNodes) -> Vec<SwitchSpec> {
        let leaves = (0..self.leaves).map(|leaf| {
            let (rail, place) = (leaf / self.leaves_per_rail, leaf % self.leaves_per_rail);
            let name = match self.leaves_per_rail {
                1 => format!("leaf{rail}"),
                _ => format!("leaf{rail}.{place}"),
            };
            SwitchSpec::new(name, 0)
        });
        let spines = (0..self.spines).map(|spine| SwitchSpec::new(format!("spine{spine}"), 1));
        let of_nodes = (0..self.node_switches).map(|node| SwitchSpec {
            role: SwitchRole::ScaleUp,
            ..SwitchSpec::new(format!("nvlink{node}"), 0)
        });
        let shared = (0..spec.nodes).flat_map(|node| {
            (0..self.shared_nics).map(move |number| SwitchSpec {
                role: SwitchRole::Nic(PortChoice::Hash),
                ..SwitchSpec::new(format!("hca{node}.{number}"), 0)
            })
        });
        let all = leaves.chain(spines).chain(of_nodes).chain(shared);
        all.collect()
    }
}

/// Checks links from GPU to GPU.
fn check_links(scale_up: &ScaleUpLinks, nodes: u32) -> Result<(), TopologyError> {
    let ScaleUpLinks::Direct { gpus, links } = scale_up else {
        return Ok(());
    };
    let impossible = |what: String, fix: &str| {
        let fix = fix.into();
        Err(TopologyError::Impossible { what, fix })
    };
    if (links.len() as u64).saturating_mul(nodes.into()) > u64::from(MOST) {
        let what = format!("{nodes} nodes of {} links between GPUs", links.len());
        return impossible(what, "use fewer nodes");
    }
    let is_wrong = |link: &&GpuLink| {
        let [a, b] = link.ends;
        a == b || a.max(b) >= *gpus
    };
    match links.iter().find(is_wrong) {
        None => Ok(()),
        Some(link) => {
            let [a, b] = link.ends;
            let what = format!("a link of {} from GPU {a} to GPU {b} of {gpus}", link.rate);
            impossible(what, "join two different GPUs of a node")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Routes;
    use super::*;
    use clearway_units::HostId;

    const NVLINK: Rate = Rate::from_gbps(2400);
    const RATE: Rate = Rate::from_gbps(100);

    fn nic(rail: u32, gpus: &[u32]) -> NodeNic {
        NodeNic {
            rate: RATE,
            rail,
            gpus: gpus.into(),
        }
    }

    /// Two nodes of four GPUs: two share a NIC, one has two NICs, and one has a NIC on the rail of the first.
    fn spec() -> GpuNodes {
        GpuNodes {
            nodes: 2,
            node: GpuNode {
                scale_up: ScaleUpLinks::Switch(vec![NVLINK; 4]),
                nics: vec![nic(0, &[0, 1]), nic(1, &[2]), nic(2, &[2]), nic(0, &[3])],
            },
            leaves_per_rail: 1,
            spines: 1,
            bundle: 2,
            nic_delay: Span::from_us(1),
            fabric: (Rate::from_gbps(400), Span::from_us(2)),
            scale_up_delay: Span::from_ns(300),
        }
    }

    /// Names of the neighbours of a node, in the order of cables.
    fn neighbours(topology: &Topology, name: &str) -> Vec<String> {
        let ends = topology.links_up().map(|link| topology.link_ends(link));
        let from_here = ends.filter(|(from, _)| topology.node_name(*from) == name);
        from_here.map(|(_, to)| topology.node_name(to)).collect()
    }

    #[test]
    fn gpus_share_nics_and_have_several() {
        let topology = gpu_nodes(&spec()).unwrap().split_hosts();
        assert_eq!((topology.machines(), topology.hosts), (8, 8 + 10));
        assert_eq!(neighbours(&topology, "hca0.0"), ["host0", "host1", "leaf0"]);
        let of_rail = ["hca0.0", "host3", "hca1.0", "host7", "spine0", "spine0"];
        assert_eq!(neighbours(&topology, "leaf0"), of_rail);
        assert_eq!(neighbours(&topology, "leaf2")[..2], ["host2.1", "host6.1"]);
        let of_node = ["host4.1", "host5.1", "host6.2", "host7.1"];
        assert_eq!(neighbours(&topology, "nvlink1"), of_node);
        let delay = |name: &str| {
            let mut links = topology.links_up();
            let link = links
                .find(|link| topology.link_name(*link) == name)
                .unwrap();
            topology.link_delay(link)
        };
        assert_eq!(delay("host0-hca0.0"), Span::from_ns(500));
        assert_eq!(delay("hca0.0-leaf0"), Span::from_ns(500));
    }

    #[test]
    fn paths_pass_shared_nics() {
        let topology = gpu_nodes(&spec()).unwrap().split_hosts();
        let paths = Routes::compute(&topology).unwrap().paths;
        let between = |a: u32, b: u32| paths.between(HostId(a), HostId(b));
        assert_eq!(between(0, 4).hops, 4, "both NICs are shared");
        assert_eq!(between(0, 7).hops, 3, "one rail");
        assert_eq!(between(0, 6).hops, 5, "over a spine");
        assert_eq!(between(0, 1).hops, 2, "within the NIC");
        assert_eq!(between(0, 4).bottleneck, Some(RATE));
    }

    #[test]
    fn ports_of_nics_are_not_joined_with_the_scale_up_link() {
        let equal = GpuNodes {
            scale_up_delay: spec().nic_delay,
            node: GpuNode {
                scale_up: ScaleUpLinks::Switch(vec![RATE; 4]),
                ..spec().node
            },
            ..spec()
        };
        let topology = gpu_nodes(&equal).unwrap().join_nics(PortChoice::LeastQueue);
        let topology = topology.split_hosts();
        // GPU 2 of each node has two NICs.
        assert_eq!(neighbours(&topology, "nic2"), ["leaf1", "leaf2", "host2.1"]);
        assert_eq!(neighbours(&topology, "nvlink0").len(), 4);
        assert_eq!(topology.hosts, 8 + 8);
    }

    #[test]
    fn a_node_alone_needs_no_nics() {
        let alone = GpuNodes {
            nodes: 1,
            spines: 0,
            node: GpuNode {
                nics: Vec::new(),
                ..spec().node
            },
            ..spec()
        };
        let topology = gpu_nodes(&alone).unwrap();
        assert_eq!((topology.hosts, topology.cables.len()), (4, 4));
        assert_eq!(topology.switches.len(), 1);
        assert!(Routes::compute(&topology).is_ok());
    }

    /// Four GPUs in a row, with the NICs of `spec`.
    fn row() -> GpuNodes {
        let link = |a: u32| GpuLink {
            ends: [a, a + 1],
            rate: NVLINK,
        };
        GpuNodes {
            node: GpuNode {
                scale_up: ScaleUpLinks::Direct {
                    gpus: 4,
                    links: (0..3).map(link).collect(),
                },
                ..spec().node
            },
            ..spec()
        }
    }

    #[test]
    fn gpus_forward_within_their_node() {
        let topology = gpu_nodes(&row()).unwrap().join_nics(PortChoice::LeastQueue);
        let topology = topology.split_hosts();
        assert_eq!(topology.machines(), 8);
        assert_eq!(
            neighbours(&topology, "router1"),
            ["router0", "router2", "host1.1"]
        );
        assert_eq!(neighbours(&topology, "router4"), ["router5", "host4.1"]);
        // The link to the router, and two NICs, which are one with two ports.
        assert_eq!(neighbours(&topology, "host2"), ["router2"]);
        assert_eq!(neighbours(&topology, "nic2"), ["leaf1", "leaf2", "host2.1"]);
        let paths = Routes::compute(&topology).unwrap().paths;
        let at_router = |gpu: u32| {
            let mut nics = topology.nics_of(HostId(gpu));
            let link_up = |nic: &HostId| topology.link_to_host(*nic).unwrap();
            let own = format!("router{gpu}");
            nics.find(|nic| topology.node_name(topology.link_ends(link_up(nic)).0) == own)
                .unwrap()
        };
        let between = |a: u32, b: u32| paths.between(at_router(a), at_router(b));
        assert_eq!(between(0, 1).hops, 3);
        assert_eq!(between(0, 1).propagation, row().scale_up_delay);
        assert_eq!(
            (between(0, 3).hops, between(0, 3).bottleneck),
            (5, Some(NVLINK))
        );
        // The link inside the GPU does not count, that to a NIC does.
        assert_eq!(paths.links_between(at_router(0), at_router(1)), 1);
        assert_eq!(paths.links_between(at_router(0), at_router(3)), 3);
        assert_eq!(paths.links_between(HostId(0), HostId(7)), 3);
        assert!(!paths.reaches(at_router(0), at_router(4)), "another node");
        assert!(
            !paths.reaches(at_router(0), HostId(1)),
            "from NVLink to a NIC"
        );
    }

    #[test]
    fn impossible_numbers_are_refused() {
        let refusal = |change: fn(&mut GpuNodes)| {
            let mut spec = spec();
            change(&mut spec);
            gpu_nodes(&spec).unwrap_err().to_string()
        };
        let errors = [
            refusal(|s| s.nodes = 1 << 19),
            refusal(|s| s.node.scale_up = ScaleUpLinks::Switch(Vec::new())),
            refusal(|s| s.nic_delay = Span::from_ps(1)),
            refusal(|s| {
                s.nodes = 1 << 17;
                s.node.nics = (0..9).map(|rail| nic(rail, &[0])).collect();
            }),
            refusal(|s| {
                *s = row();
                s.scale_up_delay = Span::from_ns(2);
            }),
            refusal(|s| {
                let ends = [1, 4];
                let links = vec![GpuLink { ends, rate: RATE }];
                s.node.scale_up = ScaleUpLinks::Direct { gpus: 4, links };
            }),
        ];
        insta::assert_snapshot!(errors.join("\n"), @r"
        524288 nodes of 4 GPUs; use 2 to 1048576 GPUs
        2 nodes of 0 GPUs; use 2 to 1048576 GPUs
        NICs that GPUs share, with links of 1ps; use a longer delay
        1179648 links between GPUs and NICs; use fewer nodes
        a link of host 1, which forwards, with a delay of 2ns; use at least 3ns: a tenth, and at least 1ns, lies inside each host
        a link of 100Gbps from GPU 1 to GPU 4 of 4; join two different GPUs of a node
        ");
    }
}

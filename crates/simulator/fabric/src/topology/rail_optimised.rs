//! Rail-optimised fabrics: [nodes of several GPUs](super::gpu_nodes), each with a NIC on a separate rail: GPU `i` of every node is on rail
//! `i`, so that GPUs of one rail reach each other over one leaf.

use super::{GpuNode, GpuNodes, NodeNic, ScaleUpLinks, Topology, TopologyError, gpu_nodes};
use clearway_units::{Rate, Span};

/// A rail-optimised fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RailOptimised {
    /// Number of nodes.
    pub nodes: u32,
    /// GPUs in each node: so many rails.
    pub gpus_per_node: u32,
    /// Leaves of each rail, among which its nodes are shared out in order.
    pub leaves_per_rail: u32,
    /// Spines, each connected to every leaf. With none the rails are apart.
    pub spines: u32,
    /// Links from each leaf to each spine.
    pub bundle: u32,
    /// Rate and delay of the links of NICs.
    pub nic: (Rate, Span),
    /// Rate and delay of the links between leaves and spines.
    pub fabric: (Rate, Span),
    /// Rate of each direction and delay of the links between GPUs and the switch of their node.
    pub nvlink: (Rate, Span),
}

/// Builds a rail-optimised fabric. GPU `i` of node `n` is host `n · gpus_per_node + i`.
///
/// # Errors
/// If the numbers do not come out even, or are too large.
pub fn rail_optimised(spec: &RailOptimised) -> Result<Topology, TopologyError> {
    let gpus = spec.nodes.checked_mul(spec.gpus_per_node);
    if !gpus.is_some_and(|gpus| (2..=1 << 20).contains(&gpus)) {
        return Err(TopologyError::Impossible {
            what: format!("{} nodes of {} GPUs", spec.nodes, spec.gpus_per_node),
            fix: "use 2 to 1048576 GPUs".into(),
        });
    }
    let gpus = 0..spec.gpus_per_node;
    let node = GpuNode {
        scale_up: ScaleUpLinks::Switch(gpus.clone().map(|_| spec.nvlink.0).collect()),
        nics: gpus
            .map(|gpu| NodeNic {
                rate: spec.nic.0,
                rail: gpu,
                gpus: vec![gpu],
            })
            .collect(),
    };
    let fabric = gpu_nodes(&GpuNodes {
        nodes: spec.nodes,
        node,
        leaves_per_rail: spec.leaves_per_rail,
        spines: spec.spines,
        bundle: spec.bundle,
        nic_delay: spec.nic.1,
        fabric: spec.fabric,
        scale_up_delay: spec.nvlink.1,
    })?;
    Ok(fabric.split_hosts())
}

#[cfg(test)]
mod tests {
    use super::super::Routes;
    use super::*;
    use clearway_units::HostId;

    const SPEC: RailOptimised = RailOptimised {
        nodes: 4,
        gpus_per_node: 2,
        leaves_per_rail: 1,
        spines: 2,
        bundle: 1,
        nic: (Rate::from_gbps(400), Span::from_us(1)),
        fabric: (Rate::from_gbps(400), Span::from_us(1)),
        nvlink: (Rate::from_gbps(3600), Span::from_ns(300)),
    };

    /// Names of the neighbours of a node, in the order of cables.
    fn neighbours(topology: &Topology, name: &str) -> Vec<String> {
        let ends = topology.links_up().map(|link| topology.link_ends(link));
        let from_here = ends.filter(|(from, _)| topology.node_name(*from) == name);
        from_here.map(|(_, to)| topology.node_name(to)).collect()
    }

    #[test]
    fn rails_have_the_same_gpu_of_every_node() {
        let topology = rail_optimised(&SPEC).unwrap();
        assert_eq!((topology.machines(), topology.hosts), (8, 16));
        assert_eq!(topology.switches.len(), 2 + 2 + 4);
        let of_rail = ["host1", "host3", "host5", "host7", "spine0", "spine1"];
        assert_eq!(neighbours(&topology, "leaf1"), of_rail);
        assert_eq!(neighbours(&topology, "nvlink3"), ["host6.1", "host7.1"]);
        assert_eq!(neighbours(&topology, "host6"), ["leaf0"]);
        let of_nodes = topology.cables.iter().filter(|c| topology.is_scale_up(c));
        let rates: Vec<Rate> = of_nodes.map(|cable| cable.rate).collect();
        assert_eq!(rates, [SPEC.nvlink.0; 8]);
    }

    #[test]
    fn rails_of_several_leaves_share_their_nodes_out() {
        let spec = RailOptimised {
            leaves_per_rail: 2,
            ..SPEC
        };
        let topology = rail_optimised(&spec).unwrap();
        let of_leaf = |name| neighbours(&topology, name)[..2].to_vec();
        assert_eq!(of_leaf("leaf0.0"), ["host0", "host2"]);
        assert_eq!(of_leaf("leaf1.1"), ["host5", "host7"]);
    }

    #[test]
    fn paths_stay_in_the_node_or_on_the_rail() {
        let topology = rail_optimised(&SPEC).unwrap();
        let paths = Routes::compute(&topology).unwrap().paths;
        let nic = |gpu: u32, place: usize| topology.nics_of(HostId(gpu)).nth(place).unwrap();
        assert_eq!(paths.between(nic(0, 1), nic(1, 1)).hops, 2, "NVLink");
        assert_eq!(paths.between(nic(0, 0), nic(1, 0)).hops, 4, "over a spine");
        assert_eq!(paths.between(nic(0, 0), nic(6, 0)).hops, 2, "one rail");
        assert!(!paths.reaches(nic(0, 1), nic(2, 1)), "another node");
        assert!(!paths.reaches(nic(0, 0), nic(0, 1)), "hosts do not forward");
        let apart = RailOptimised { spines: 0, ..SPEC };
        let paths = Routes::compute(&rail_optimised(&apart).unwrap())
            .unwrap()
            .paths;
        assert!(paths.reaches(nic(0, 0), nic(2, 0)) && !paths.reaches(nic(0, 0), nic(3, 0)));
    }

    #[test]
    fn uplinks_fail_at_leaves_alone() {
        let mut topology = rail_optimised(&SPEC).unwrap();
        topology.fail_uplinks(2, 1).unwrap();
        assert_eq!(topology.cables.iter().filter(|cable| !cable.up).count(), 2);
        let error = topology.fail_uplinks(3, 1).unwrap_err();
        assert!(error.to_string().contains("tier 0 has 2"), "{error}");
    }

    #[test]
    fn impossible_numbers_are_refused() {
        let spec = |change: fn(&mut RailOptimised)| {
            let mut spec = SPEC;
            change(&mut spec);
            rail_optimised(&spec).unwrap_err().to_string()
        };
        let errors = [
            spec(|s| s.nodes = 0),
            spec(|s| s.gpus_per_node = u32::MAX),
            spec(|s| s.leaves_per_rail = 3),
            spec(|s| (s.spines, s.leaves_per_rail) = (0, 2)),
            spec(|s| s.bundle = 0),
        ];
        insta::assert_snapshot!(errors.join("\n"), @r"
        0 nodes of 2 GPUs; use 2 to 1048576 GPUs
        4 nodes of 4294967295 GPUs; use 2 to 1048576 GPUs
        4 nodes on 3 leaves of each rail; use a number of leaves that divides the nodes
        rails of 2 leaves without spines; use one leaf for each rail, or at least one spine
        2 spines with 0 links each; use at least 1 link and at most 65536 uplinks per leaf
        ");
    }
}

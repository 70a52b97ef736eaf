//! Rail-optimised fabrics: nodes of GPUs with NVLink inside and a rail for each of their NICs.

use crate::error::ScenarioError;
use crate::limits::check_hosts;
use crate::topology::error::{impossible, topology_error};
use crate::topology::oversubscription::Oversubscription;
use clearway_fabric::topology::{RailOptimised, Topology, rail_optimised};
use clearway_units::{Rate, Span};

clearway_units::parameters! {
    /// Nodes of GPUs with a NIC each: NIC `i` of every node is on rail `i`, spines join the rails, and NVLink joins the GPUs of a node.
    pub struct RailOptimisedSettings {
        /// Number of nodes.
        pub nodes: u32 = 8, "nodes", "decision: 64 GPUs";
        /// GPUs in each node, each with a NIC, and number of rails. Hosts are GPUs: GPU `i` of node `n` is host `n` × `gpus-per-node` +
        /// `i`.
        pub gpus_per_node: u32 = 8, "gpus-per-node", "NVIDIA DGX H100: 8";
        /// Leaves of each rail; the nodes are divided among them in order.
        pub leaves_per_rail: u32 = 1, "leaves-per-rail", "NVIDIA DGX SuperPOD: one for each rail of a scalable unit";
        /// Number of spines; "auto": by `oversubscription`. With 0 the rails are apart, and only `pxn` leads from one to another.
        pub spines: Option<u32> = None, "spines", "by `oversubscription`";
        /// Parallel links from each leaf to each spine.
        pub links: u32 = 1, "parallel-links", "decision";
        /// Downlinks of a leaf per uplink.
        pub oversubscription: Oversubscription = Oversubscription::NONE, "oversubscription", "decision";
        /// Rate of the links of NICs.
        pub rate: Rate = Rate::from_gbps(400), "link-rate", "NVIDIA DGX H100: 400 Gb/s";
        /// Delay of the links of NICs.
        pub delay: Span = Span::from_us(1), "link-delay", "STrack §4.2";
        /// Rate of the links between switches; "auto" is `link-rate`.
        pub fabric_rate: Option<Rate> = None, "fabric-link-rate", "all links alike";
        /// Delay of the links between switches; "auto" is `link-delay`.
        pub fabric_delay: Option<Span> = None, "fabric-link-delay", "all links alike";
        /// Rate of NVLink between a GPU and its node's switch, in each direction. Hopper has 450 GB/s, Blackwell 900 GB/s (7200Gbps).
        pub nvlink_rate: Rate = Rate::from_gbps(3600), "nvlink-rate", "NVIDIA H100: 450 GB/s in each direction";
        /// Delay of NVLink between a GPU and its node's switch.
        pub nvlink_delay: Span = Span::from_ns(500), "nvlink-delay", "decision: 0.3 to 0.5 us; rounds of the engine are no longer";
    }
}

impl RailOptimisedSettings {
    pub(crate) fn build(&self) -> Result<Topology, ScenarioError> {
        const KEYS: [&str; 5] = [
            "leaves-per-rail",
            "nodes",
            "gpus-per-node",
            "spines",
            "parallel-links",
        ];
        let gpus = u64::from(self.nodes) * u64::from(self.gpus_per_node);
        check_hosts(&KEYS[1..3], gpus)?;
        let spines = number_of_spines(&RailLinks {
            spines: self.spines,
            oversubscription: self.oversubscription,
            parallel: self.links,
            nodes: self.nodes,
            leaves_per_rail: self.leaves_per_rail,
            nics_of_node: 1,
        })?;
        let spec = RailOptimised {
            nodes: self.nodes,
            gpus_per_node: self.gpus_per_node,
            leaves_per_rail: self.leaves_per_rail,
            spines,
            bundle: self.links,
            nic: (self.rate, self.delay),
            fabric: (
                self.fabric_rate.unwrap_or(self.rate),
                self.fabric_delay.unwrap_or(self.delay),
            ),
            nvlink: (self.nvlink_rate, self.nvlink_delay),
        };
        rail_optimised(&spec).map_err(|error| topology_error(&KEYS, &error))
    }
}

/// Links of the leaves of a rail.
pub(crate) struct RailLinks {
    /// Number of spines, if given.
    pub(crate) spines: Option<u32>,
    /// Downlinks per uplink, if the spines are not given.
    pub(crate) oversubscription: Oversubscription,
    /// Links from each leaf to each spine.
    pub(crate) parallel: u32,
    /// Nodes of the fabric.
    pub(crate) nodes: u32,
    /// Leaves among which they are divided.
    pub(crate) leaves_per_rail: u32,
    /// NICs of each node on the rail.
    pub(crate) nics_of_node: u32,
}

/// Number of spines: as given, or such that it gives the oversubscription.
pub(crate) fn number_of_spines(links: &RailLinks) -> Result<u32, ScenarioError> {
    if let Some(spines) = links.spines {
        if links.oversubscription == Oversubscription::NONE {
            return Ok(spines);
        }
        return Err(impossible(
            &["spines", "oversubscription"],
            "both `spines` and `oversubscription` are given".into(),
            "give one of them: `spines = \"auto\"` or `oversubscription = 1` leaves the other to it",
        ));
    }
    let nodes = links.nodes.checked_div(links.leaves_per_rail).unwrap_or(0);
    let down = nodes.saturating_mul(links.nics_of_node);
    let spines = links.oversubscription.spines(down, links.parallel);
    spines.ok_or_else(|| {
        let nics = match links.nics_of_node {
            1 => String::new(),
            nics => format!(" with {nics} NICs each"),
        };
        impossible(
            &["oversubscription", "parallel-links", "leaves-per-rail", "nodes"],
            format!(
                "leaves with {nodes} nodes{nics} cannot be oversubscribed {} over {} parallel links",
                links.oversubscription, links.parallel
            ),
            "make the nodes of a leaf a multiple of `oversubscription` times `parallel-links`, or give `spines`",
        )
    })
}

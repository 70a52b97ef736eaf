//! Fabrics that `[topology]` builds.

use crate::topology::nearest_nics::NicNearness;
use clearway_fabric::topology::Topology;
use clearway_units::Rate;

/// A fabric with facts about its hosts from its file or kind.
#[derive(Debug)]
pub struct BuiltFabric {
    /// The fabric.
    pub topology: Topology,
    /// Number of consecutive hosts that are GPUs of one node, connected by NVLink; 1 if hosts are nodes.
    pub gpus_per_node: u32,
    /// Hosts in each dimension, the first of which changes fastest with the number of the host; empty if the fabric has none.
    pub dimensions: Vec<u32>,
    /// Numbers of the hosts in files of flows for this fabric, in ascending order; `None` if they are 0, 1, 2 and so on.
    pub host_numbers: Option<Vec<u32>>,
    /// GPUs of each node, in their order, if a file of NCCL describes a node.
    pub node_gpus: Vec<NodeGpu>,
    /// Warnings about the fabric's file.
    pub warnings: Vec<String>,
}

/// A GPU of a node that a file describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeGpu {
    /// Rate to the switch of its node; `None` if it has none.
    pub scale_up: Option<Rate>,
    /// GPUs of its node that links join it with directly, and their rates.
    pub peers: Vec<(u32, Rate)>,
    /// NICs that it uses.
    pub nics: Vec<NodeGpuNic>,
    /// Nearness of these NICs; `None` without NICs.
    pub nearness: Option<NicNearness>,
}

/// A NIC that a GPU of a node uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeGpuNic {
    /// Name of the NIC in the file.
    pub name: String,
    /// Rate of its link.
    pub rate: Rate,
    /// Rail that it is on.
    pub rail: u32,
    /// Number of GPUs that use it.
    pub gpus: u32,
}

impl From<Topology> for BuiltFabric {
    fn from(topology: Topology) -> Self {
        Self {
            topology,
            gpus_per_node: 1,
            dimensions: Vec::new(),
            host_numbers: None,
            node_gpus: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

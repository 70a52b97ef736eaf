//! Fabrics that `[topology]` builds.

use clearway_fabric::topology::Topology;

/// A fabric with facts about its hosts from its file or kind.
#[derive(Debug)]
pub struct BuiltFabric {
    /// The fabric.
    pub topology: Topology,
    /// Number of consecutive hosts that are GPUs of one node, connected by NVLink; 1 if hosts are nodes.
    pub gpus_per_node: u32,
    /// Numbers of the hosts in files of flows for this fabric, in ascending order; `None` if they are 0, 1, 2 and so on.
    pub host_numbers: Option<Vec<u32>>,
    /// Warnings about the fabric's file.
    pub warnings: Vec<String>,
}

impl From<Topology> for BuiltFabric {
    fn from(topology: Topology) -> Self {
        Self {
            topology,
            gpus_per_node: 1,
            host_numbers: None,
            warnings: Vec::new(),
        }
    }
}

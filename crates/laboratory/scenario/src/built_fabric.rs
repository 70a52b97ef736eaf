//! Fabrics as `[topology]` builds them.

use clearway_fabric::topology::Topology;

/// A fabric with what its file or kind says of its hosts.
#[derive(Debug)]
pub struct BuiltFabric {
    /// The fabric.
    pub topology: Topology,
    /// Number of consecutive hosts that are GPUs of one node, which NVLink joins; 1 where hosts are nodes.
    pub gpus_per_node: u32,
    /// Numbers that files of flows for this fabric give its hosts, in ascending order; `None` if they are 0, 1, 2 and so on.
    pub host_numbers: Option<Vec<u32>>,
    /// Warnings about its file.
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

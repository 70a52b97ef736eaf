//! Unloaded lengths of paths, for the controllers of flows.

use crate::flow::Flow;
use crate::topology::{PacketSizes, Paths};
use clearway_transport::congestion::PathFacts;
use std::sync::Arc;

/// Unloaded lengths of all paths between hosts.
#[derive(Debug)]
pub(crate) struct PathTable {
    pub(crate) paths: Arc<Paths>,
    /// By transport.
    pub(crate) sizes: Vec<PacketSizes>,
}

impl PathTable {
    /// The path of a flow.
    pub(crate) fn path_facts(&self, flow: &Flow) -> PathFacts {
        let sizes = self.sizes[usize::from(flow.transport)];
        self.paths.path_facts(flow.src, flow.dst, sizes)
    }
}

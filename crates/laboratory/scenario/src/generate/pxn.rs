//! PXN: all-to-all over a rail-optimised fabric without its spines.
//!
//! Traffic for a GPU on another rail of another node first goes over NVLink to the local GPU on that rail. From there it goes over the rail
//! (NCCL 2.12, "PCI x NVLink"). Here these are two messages of the job, because hosts do not forward.

use super::{BuildContext, WorkloadDefinition};
use clearway_units::{HostId, parameters};
use clearway_workload::WorkloadError;
use std::collections::BTreeMap;

parameters! {
    /// Routes between GPUs of different rails.
    pub struct Pxn {
        /// PXN: traffic for a GPU on another rail of another node goes over NVLink to the local GPU on that rail, then over the rail,
        /// without a spine. If the job has no rank on the local GPU, the traffic goes over spines. It needs `topology.kind =
        /// "rail-optimised"`.
        pub pxn: bool = false, "pxn", "decision: off, as on other fabrics; NCCL 2.12 has it on";
    }
}

impl Pxn {
    /// GPUs of each node of the fabric; `None` if the job does not use PXN.
    ///
    /// # Errors
    /// If the job uses PXN on a fabric whose nodes do not have several GPUs.
    pub(super) fn gpus_per_node<D: WorkloadDefinition>(
        &self,
        context: &BuildContext<'_>,
    ) -> Result<Option<u32>, WorkloadError> {
        if self.pxn && context.gpus_per_node < 2 {
            let message = "PXN needs nodes of several GPUs with NVLink between them";
            let fix = "set `topology.kind = \"rail-optimised\"` with `gpus-per-node` above 1, or leave `pxn` out";
            return Err(D::fault("pxn", message, fix));
        }
        Ok(self.pxn.then_some(context.gpus_per_node))
    }
}

/// The GPUs of a job's ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gpus {
    /// Node and rail of each rank. Nodes are numbered in the order of their first ranks, so that jobs with the same layout are equal.
    of_rank: Vec<(u32, u32)>,
    ranks: BTreeMap<(u32, u32), u32>,
}

impl Gpus {
    /// The GPUs of ranks on `hosts`.
    pub(super) fn from_hosts(hosts: &[HostId], gpus_per_node: u32) -> Self {
        let mut nodes = BTreeMap::new();
        let mut place = |host: &HostId| {
            let next = nodes.len() as u32;
            let node = *nodes.entry(host.0 / gpus_per_node).or_insert(next);
            (node, host.0 % gpus_per_node)
        };
        let of_rank: Vec<(u32, u32)> = hosts.iter().map(&mut place).collect();
        Self {
            ranks: of_rank.iter().copied().zip(0..).collect(),
            of_rank,
        }
    }

    /// Number of ranks.
    pub(super) fn ranks(&self) -> u32 {
        self.of_rank.len() as u32
    }

    /// The rank through which `src` sends to `dst`; `None` if `src` sends directly.
    pub(super) fn proxy(&self, src: u32, dst: u32) -> Option<u32> {
        let ((node, rail), (far, far_rail)) =
            (self.of_rank[src as usize], self.of_rank[dst as usize]);
        let direct = node == far || rail == far_rail;
        let proxy = self.ranks.get(&(node, far_rail)).copied();
        proxy.filter(|_| !direct)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxy_is_on_the_rail_of_the_receiver() {
        // Nodes of four GPUs; the job does not use GPU 1 of node 2.
        let hosts = [0, 1, 2, 3, 8, 10, 11].map(HostId);
        let gpus = Gpus::from_hosts(&hosts, 4);
        assert_eq!(gpus.proxy(0, 3), None, "the same node");
        assert_eq!(gpus.proxy(0, 4), None, "the same rail");
        assert_eq!(gpus.proxy(0, 5), Some(2));
        assert_eq!(gpus.proxy(5, 3), Some(6));
        assert_eq!(gpus.proxy(5, 1), None, "no rank is there");
    }

    #[test]
    fn jobs_that_lie_alike_are_equal() {
        let gpus = |hosts: [u32; 3]| Gpus::from_hosts(&hosts.map(HostId), 4);
        assert_eq!(gpus([0, 1, 4]), gpus([8, 9, 12]));
        assert_ne!(gpus([0, 1, 4]), gpus([8, 10, 12]));
        assert_ne!(gpus([0, 1, 4]), gpus([3, 4, 8]));
    }
}

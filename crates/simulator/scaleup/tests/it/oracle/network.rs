//! The network of the oracle: who is connected to whom, and where packets go.

use clearway_scaleup::{GroupId, Target, Tree};
use clearway_units::{HostId, mix64};

/// The other end of a switch's port.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Peer {
    Gpu(usize),
    /// A switch and its port.
    Switch(usize, usize),
}

/// A tree and its groups.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) tree: Tree,
    pub(crate) groups: Vec<Vec<HostId>>,
}

impl Network {
    pub(crate) fn gpus_per_leaf(&self) -> usize {
        self.tree.gpus_per_leaf as usize
    }

    fn links(&self) -> usize {
        self.tree.links_per_spine as usize
    }

    pub(crate) fn is_leaf(&self, switch: usize) -> bool {
        switch < self.tree.leaves() as usize
    }

    /// The other ends of all ports of a switch: of a leaf its GPUs, then uplinks by spine and link; of a spine leaves by number and link.
    pub(crate) fn peers(&self, switch: usize) -> Vec<Peer> {
        let (leaves, below, links) = (
            self.tree.leaves() as usize,
            self.gpus_per_leaf(),
            self.links(),
        );
        let mut peers = Vec::new();
        if self.is_leaf(switch) {
            for gpu in 0..below {
                peers.push(Peer::Gpu(switch * below + gpu));
            }
            for spine in 0..self.tree.spines as usize {
                for link in 0..links {
                    peers.push(Peer::Switch(leaves + spine, switch * links + link));
                }
            }
        } else {
            for leaf in 0..leaves {
                for link in 0..links {
                    let uplink = (switch - leaves) * links + link;
                    peers.push(Peer::Switch(leaf, below + uplink));
                }
            }
        }
        peers
    }

    /// The GPUs that an operation goes to.
    pub(crate) fn targets(&self, target: Target) -> Vec<HostId> {
        match target {
            Target::Gpu(gpu) => vec![gpu],
            Target::Group(GroupId(group)) => self.groups[group as usize].clone(),
        }
    }

    /// Number of an operation's uplink; `None` if its root is a leaf.
    pub(crate) fn uplink(&self, initiator: HostId, target: Target, address: u64) -> Option<usize> {
        let home = self.tree.leaf(initiator);
        let targets = self.targets(target);
        if targets.iter().all(|&gpu| self.tree.leaf(gpu) == home) {
            return None;
        }
        let key = match target {
            Target::Gpu(gpu) => u64::from(gpu.0),
            Target::Group(group) => (1 << 32) + u64::from(group.0),
        };
        let hash = mix64(mix64(key) ^ address) >> 32;
        Some(((hash * u64::from(self.tree.uplinks())) >> 32) as usize)
    }

    /// Outputs of a switch towards `gpus`, on the way down of a tree with this uplink.
    pub(crate) fn down(&self, switch: usize, uplink: Option<usize>, gpus: &[HostId]) -> Vec<usize> {
        let mut outputs = Vec::new();
        for &gpu in gpus {
            let leaf = self.tree.leaf(gpu) as usize;
            if !self.is_leaf(switch) {
                let link = uplink.expect("a spine is in no other tree") % self.links();
                outputs.push(leaf * self.links() + link);
            } else if leaf == switch {
                outputs.push(gpu.0 as usize % self.gpus_per_leaf());
            }
        }
        outputs.sort_unstable();
        outputs.dedup();
        outputs
    }
}

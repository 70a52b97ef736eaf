//! The network: a single switch, or leaves and spines with parallel links.

use crate::{GroupId, Target};
use clearway_units::{HostId, mix64};

/// A two-level tree: each leaf has `gpus_per_leaf` GPUs below it, and `links_per_spine` links to each spine.
///
/// Ports of a leaf are numbered GPUs first, then uplinks by spine and link. Ports of a spine are numbered by leaf and link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// GPUs in all.
    pub gpus: u32,
    /// GPUs below each leaf switch.
    pub gpus_per_leaf: u32,
    /// Spine switches; none if there is one leaf.
    pub spines: u32,
    /// Links between each leaf and each spine.
    pub links_per_spine: u32,
}

/// Turning point of a tree of a group: a leaf, or the spine at the end of an uplink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    Leaf,
    Uplink(u16),
}

impl Tree {
    /// Number of leaf switches.
    pub fn leaves(&self) -> u32 {
        self.gpus / self.gpus_per_leaf
    }

    /// Number of uplinks of each leaf.
    pub fn uplinks(&self) -> u32 {
        self.spines * self.links_per_spine
    }

    /// Number of switches, leaves first.
    pub fn switches(&self) -> u32 {
        self.leaves() + self.spines
    }

    /// The leaf above a GPU.
    pub fn leaf(&self, gpu: HostId) -> u32 {
        gpu.0 / self.gpus_per_leaf
    }

    /// The port of its leaf to which a GPU is connected.
    pub(crate) fn port(&self, gpu: HostId) -> usize {
        (gpu.0 % self.gpus_per_leaf) as usize
    }

    /// Checks the shape.
    ///
    /// # Errors
    /// The key of a number that cannot be, and the reason.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let refuse = |key, reason: String| Err((key, reason));
        if self.gpus == 0 || self.gpus > MOST_GPUS {
            return refuse("gpus", format!("a fabric has 1 to {MOST_GPUS} GPUs"));
        }
        if self.gpus_per_leaf == 0 || !self.gpus.is_multiple_of(self.gpus_per_leaf) {
            let (gpus, below) = (self.gpus, self.gpus_per_leaf);
            let reason = format!("{gpus} GPUs do not fill leaves of {below}: choose a divisor");
            return refuse("gpus-per-leaf", reason);
        }
        if self.leaves() > 1 && self.spines == 0 {
            let reason = format!("{} leaves need a spine to meet", self.leaves());
            return refuse("spines", reason);
        }
        if self.spines > 0 && self.links_per_spine == 0 {
            return refuse("links-per-spine", "a spine needs links".into());
        }
        let ports = u64::from(self.spines) * u64::from(self.links_per_spine);
        let below = u64::from(self.leaves()) * u64::from(self.links_per_spine);
        let limit = format!("a switch has at most {MOST_PORTS} ports");
        if u64::from(self.gpus_per_leaf) > MOST_PORTS {
            return refuse("gpus-per-leaf", limit);
        }
        if ports + u64::from(self.gpus_per_leaf) > MOST_PORTS || below > MOST_PORTS {
            return refuse("spines", limit);
        }
        if ports * u64::from(self.leaves()) > MOST_LINKS {
            return refuse(
                "spines",
                format!("at most {MOST_LINKS} links between leaves and spines"),
            );
        }
        Ok(())
    }
}

const MOST_GPUS: u32 = 65_536;
const MOST_PORTS: u64 = 4096;
const MOST_LINKS: u64 = 1 << 18;

/// Groups and where their members are.
#[derive(Debug)]
pub(crate) struct Groups {
    members: Vec<Vec<HostId>>,
    /// The leaf that all members are below, if there is one.
    leaf: Vec<Option<u32>>,
}

impl Groups {
    /// `members` of each group are in ascending order and not empty.
    pub(crate) fn new(members: Vec<Vec<HostId>>, tree: &Tree) -> Self {
        let leaf = members.iter().map(|members| {
            let first = tree.leaf(members[0]);
            let alone = members.iter().all(|&gpu| tree.leaf(gpu) == first);
            alone.then_some(first)
        });
        let leaf = leaf.collect();
        Self { members, leaf }
    }

    pub(crate) fn members(&self, group: GroupId) -> &[HostId] {
        &self.members[group.index()]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (GroupId, &[HostId])> {
        let numbered = self.members.iter().enumerate();
        numbered.map(|(i, members)| (GroupId(i as u32), members.as_slice()))
    }

    /// Rank of a GPU in a group.
    pub(crate) fn rank(&self, group: GroupId, gpu: HostId) -> Option<u32> {
        let rank = self.members(group).binary_search(&gpu).ok()?;
        Some(rank as u32)
    }

    /// The root of an operation's tree: a hash of target and address names the spine and the parallel link to it, so that requests of all
    /// senders for one address meet, and requests for many addresses spread.
    pub(crate) fn root(
        &self,
        tree: &Tree,
        initiator: HostId,
        target: Target,
        address: u64,
    ) -> Root {
        let (leaf, key) = match target {
            Target::Group(group) => (self.leaf[group.index()], 1 << 32 | u64::from(group.0)),
            Target::Gpu(gpu) => {
                let leaf = tree.leaf(gpu);
                (
                    (leaf == tree.leaf(initiator)).then_some(leaf),
                    u64::from(gpu.0),
                )
            }
        };
        match leaf {
            Some(_) => Root::Leaf,
            None => {
                let hash = mix64(mix64(key) ^ address) >> 32;
                Root::Uplink(((hash * u64::from(tree.uplinks())) >> 32) as u16)
            }
        }
    }
}

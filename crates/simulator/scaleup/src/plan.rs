//! Facts that all switches know: settings, the tree, groups and routes.

use crate::packet::Packet;
use crate::tree::{Groups, Root};
use crate::{Configuration, GroupId, Replication, Tree};
use clearway_units::HostId;

/// Place of a switch in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Leaf(u32),
    Spine(u32),
}

/// Settings, tree, groups, and the output ports of each switch.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) configuration: Configuration,
    pub(crate) tree: Tree,
    pub(crate) groups: Groups,
    /// Flits of responses for which a GPU takes requests.
    pub(crate) response_queue: u32,
    /// Ports of each leaf below which members of each group are.
    at_leaf: Vec<Vec<Box<[u16]>>>,
    /// For each group, the first port of a spine to each leaf that has members.
    at_spine: Vec<Box<[u16]>>,
}

impl Plan {
    pub(crate) fn new(configuration: Configuration, tree: Tree, groups: Groups) -> Self {
        let leaves = tree.leaves() as usize;
        let mut at_leaf = vec![Vec::new(); leaves];
        let mut at_spine = Vec::new();
        for (_, members) in groups.iter() {
            let mut ports = vec![Vec::new(); leaves];
            for &gpu in members {
                ports[tree.leaf(gpu) as usize].push(tree.port(gpu) as u16);
            }
            let leaves = ports
                .iter()
                .enumerate()
                .filter(|(_, ports)| !ports.is_empty());
            let first = |leaf: usize| (leaf * tree.links_per_spine as usize) as u16;
            at_spine.push(leaves.map(|(leaf, _)| first(leaf)).collect());
            for (leaf, ports) in ports.into_iter().enumerate() {
                at_leaf[leaf].push(ports.into_boxed_slice());
            }
        }
        Self {
            response_queue: configuration.response_queue(tree.gpus),
            configuration,
            tree,
            groups,
            at_leaf,
            at_spine,
        }
    }

    /// Number of ports of a switch.
    pub(crate) fn ports(&self, place: Place) -> usize {
        let ports = match place {
            Place::Leaf(_) => self.tree.gpus_per_leaf + self.tree.uplinks(),
            Place::Spine(_) => self.tree.leaves() * self.tree.links_per_spine,
        };
        ports as usize
    }

    /// Number of ports of a switch that lead to GPUs; they are the first.
    pub(crate) fn gpus_at(&self, place: Place) -> usize {
        match place {
            Place::Leaf(_) => self.tree.gpus_per_leaf as usize,
            Place::Spine(_) => 0,
        }
    }

    /// Entries of a switch's reduction table for requests on their way down and up.
    pub(crate) fn entries(&self, place: Place) -> Option<[u32; 2]> {
        let is_passed = matches!(place, Place::Leaf(_)) && self.tree.spines > 0;
        self.configuration.entries(is_passed)
    }

    /// True if packets that come in through `port` are on their way up.
    pub(crate) fn is_below(&self, place: Place, port: usize) -> bool {
        port < self.gpus_at(place)
    }

    /// The port of a leaf for an uplink.
    pub(crate) fn uplink_port(&self, uplink: u16) -> u16 {
        self.tree.gpus_per_leaf as u16 + uplink
    }

    /// The parallel link between a spine and each leaf that a tree with `root` uses; 0 at a leaf, which does not use it.
    pub(crate) fn link_of(&self, place: Place, root: Root) -> u16 {
        match (place, root) {
            (Place::Spine(_), Root::Uplink(uplink)) => uplink % self.tree.links_per_spine as u16,
            _ => 0,
        }
    }

    /// The port on the way down to a GPU.
    pub(crate) fn down_port(&self, place: Place, gpu: HostId, root: Root) -> u16 {
        match place {
            Place::Leaf(_) => self.tree.port(gpu) as u16,
            Place::Spine(_) => {
                let first = self.tree.leaf(gpu) * self.tree.links_per_spine;
                first as u16 + self.link_of(place, root)
            }
        }
    }

    /// Ports on the way down to a group: at a spine, the first of the parallel ones of each leaf.
    pub(crate) fn down_ports(&self, place: Place, group: GroupId) -> &[u16] {
        match place {
            Place::Leaf(leaf) => &self.at_leaf[leaf as usize][group.index()],
            Place::Spine(_) => &self.at_spine[group.index()],
        }
    }

    /// True if switches also copy multicast requests on their way up.
    pub(crate) fn copies_on_the_way_up(&self) -> bool {
        self.configuration.replication == Replication::Nearest
    }

    /// The first port of a spine to the leaf of an initiator, if that leaf has made its copies on the way up.
    pub(crate) fn served_port(&self, place: Place, initiator: HostId) -> Option<u16> {
        let is_spine = matches!(place, Place::Spine(_));
        let port = self.tree.leaf(initiator) * self.tree.links_per_spine;
        (is_spine && self.copies_on_the_way_up()).then_some(port as u16)
    }

    /// The port for a response that is complete here, and whether nothing more will be merged with it. `is_merged` if it was put
    /// together here, of answers to a multicast operation.
    pub(crate) fn response_output(
        &self,
        place: Place,
        response: &Packet,
        is_merged: bool,
    ) -> (u16, bool) {
        let initiator = response.initiator;
        let to_initiator = self.down_port(place, initiator, response.root);
        // The initiator's leaf unites the spine's answer with the answers of its own GPUs.
        let ends_at_home = is_merged && self.copies_on_the_way_up();
        match (place, response.root) {
            (Place::Spine(_), _) => (to_initiator, !ends_at_home),
            (Place::Leaf(_), Root::Leaf) => (to_initiator, true),
            (Place::Leaf(leaf), Root::Uplink(uplink)) => {
                let is_home = self.tree.leaf(initiator) == leaf;
                match is_home && is_merged == ends_at_home {
                    true => (to_initiator, true),
                    false => (self.uplink_port(uplink), !is_merged),
                }
            }
        }
    }
}

//! Graph of a fabric: hosts, switches and the cables between them.

mod bcube;
mod build;
mod detour_hops;
mod detours;
mod direct;
mod dragonfly;
mod equal_cost;
mod equivalent_switches;
mod error;
mod gpu_nodes;
mod group_table;
mod groups;
mod ideal;
mod multi_plane;
mod neighbours;
mod nics;
mod path_class;
mod paths;
mod rail_optimised;
mod routers;
mod routing;
mod routing_limits;
mod virtual_channels;

pub use bcube::bcube;
pub use build::{CoreWiring, FatTree, Tier, dumbbell, fat_tree, leaf_spine, single_switch};
pub(crate) use detour_hops::DetourHops;
pub use direct::{Dimension, DimensionLinks, DirectRouting, VirtualChannels, direct_network};
pub use dragonfly::{DragonflyLinks, dragonfly, dragonfly_plus};
pub use error::TopologyError;
pub use gpu_nodes::{GpuLink, GpuNode, GpuNodes, NodeNic, ScaleUpLinks, gpu_nodes};
pub use groups::{GroupRouting, SwitchGroups};
pub use ideal::{PathUse, Striped};
pub use multi_plane::{MultiPlane, multi_plane};
pub use path_class::PathClass;
pub use paths::{PacketSizes, Paths};
pub use rail_optimised::{RailOptimised, rail_optimised};
pub use routing::{AttachmentPoint, NextHops, Routes, SwitchRoutes};
pub(crate) use virtual_channels::{ChannelPort, both_channels, channels_of_highest, first_channel};

use clearway_units::{Bytes, HostId, Rate, Span, Time};
use std::fmt;
use std::sync::Arc;

/// A host (more precisely: a NIC, see [`Topology::split_hosts`]) or a switch. Hosts come first: host `h` is node `h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// One direction of a cable: cable `c` is links `2c` (from its first end) and `2c + 1` (from its second).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

impl LinkId {
    /// The link from end `end` (0 or 1) of cable `cable`.
    pub const fn from_end(cable: usize, end: usize) -> Self {
        Self(cable as u32 * 2 + end as u32)
    }
    /// The number of the cable.
    pub const fn cable(self) -> usize {
        self.0 as usize / 2
    }
    /// The end of the cable at which this link begins.
    pub const fn end(self) -> usize {
        self.0 as usize % 2
    }
}

/// A switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchSpec {
    /// A name for people, unique in the fabric: `leaf3`, `spine0`.
    pub name: String,
    /// 0 for switches next to hosts, growing upwards.
    pub tier: u8,
    /// Time from the arrival of a packet until it stands in the queue of its egress port.
    pub latency: Span,
    /// Role of the switch in the fabric.
    pub role: SwitchRole,
}

/// Part of the fabric that a switch belongs to, which decides the settings of switches that apply to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SwitchRole {
    /// A switch of the network: all settings hold.
    #[default]
    Network,
    /// The switch of a node's scale-up fabric, such as NVLink. Its queues take every packet, and mark and trim nothing.
    ScaleUp,
    /// Switch that joins the ports of a NIC. Its queues are as in switches of the network, but mark nothing where it chooses by them. It
    /// chooses a port by this rule, not by the settings of switches.
    Nic(PortChoice),
}

clearway_units::choices! {
    /// Rule by which a NIC of several ports selects one for a packet.
    pub enum PortChoice {
        /// The port at which the least waits, for each packet.
        LeastQueue = "least-queue",
        /// A hash of the header: packets of a flow that does not spray take one port.
        Hash = "hash",
    }
}

impl SwitchSpec {
    /// A switch of the network without latency.
    pub fn new(name: impl Into<String>, tier: u8) -> Self {
        Self {
            name: name.into(),
            tier,
            latency: Span::ZERO,
            role: SwitchRole::Network,
        }
    }
}

/// Most bytes in the queues of the ports of a tier of switches, in place of the settings of switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TierQueues {
    /// At ports that lead to a higher tier.
    pub up: Option<Bytes>,
    /// At ports that lead to hosts, or to a tier that is not higher.
    pub down: Option<Bytes>,
}

/// A cable between two nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Cable {
    /// Nodes at the two ends of the cable.
    pub ends: [NodeId; 2],
    /// Rate of each direction.
    pub rate: Rate,
    /// Propagation delay of each direction.
    pub delay: Span,
    /// Probability that a bit arrives wrong; a packet with a wrong bit is discarded at the far end.
    pub bit_error_rate: f64,
    /// Probability that a packet of any size is lost on the way.
    pub packet_loss: f64,
    /// Time from which on every packet is lost on the way, in both directions, without any routing knowing; [`Time::NEVER`] if it
    /// stays whole.
    pub dead_from: Time,
    /// False: disconnected, known to all routing.
    pub up: bool,
    /// Place in the order in which packets take cables: among the cables that lead to a destination on shortest paths, a switch uses those
    /// of the lowest place only. 0 for all cables: all shortest paths are used.
    pub order: u8,
    /// The dateline of a ring: lossless packets that take it change to their second [virtual channel](Topology::has_virtual_channels).
    /// They are on the first one again after they have left the ring, whose other cables have the same `order`. Then flows have classes 1
    /// to 3, and the second channels are the classes 5 to 7.
    pub dateline: bool,
}

impl Cable {
    /// A cable without faults, of this rate and delay.
    pub const fn new(ends: [NodeId; 2], (rate, delay): (Rate, Span)) -> Self {
        Self {
            ends,
            rate,
            delay,
            bit_error_rate: 0.0,
            packet_loss: 0.0,
            dead_from: Time::NEVER,
            up: true,
            order: 0,
            dateline: false,
        }
    }
}

/// A fabric as a graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// Description of the fabric, for people.
    pub summary: String,
    /// Number of hosts, each with one cable; where hosts of the user's have several NICs, the number of NICs.
    pub hosts: u32,
    /// The last of them are further NICs of these hosts, in order; see [`split_hosts`](Self::split_hosts).
    pub further_nics: Vec<HostId>,
    /// Queues of ports by the tier of their switches, where the fabric itself says how long they are; tiers beyond the last say nothing.
    pub queues: Vec<TierQueues>,
    /// Switches: node `hosts + i` is switch `i`.
    pub switches: Vec<SwitchSpec>,
    /// Groups of switches, in a dragonfly.
    pub groups: Option<SwitchGroups>,
    /// Cables.
    pub cables: Vec<Cable>,
}

impl Topology {
    /// The node of a host.
    pub const fn host_node(host: HostId) -> NodeId {
        NodeId(host.0)
    }
    /// The node of switch `index`.
    pub const fn switch_node(&self, index: usize) -> NodeId {
        NodeId(self.hosts + index as u32)
    }
    /// The switch index of a node, or `None` for a host.
    pub fn switch_index(&self, node: NodeId) -> Option<usize> {
        node.0.checked_sub(self.hosts).map(|index| index as usize)
    }
    /// The node's name: `host7`, `host7.1` for a further NIC of that host, or the switch's own.
    pub fn node_name(&self, node: NodeId) -> String {
        match self.switch_index(node) {
            None => self.nic_name(HostId(node.0)),
            Some(index) => self.switches[index].name.clone(),
        }
    }
    /// The name of a link: `leaf0-spine2`. Parallel links share it.
    pub fn link_name(&self, link: LinkId) -> String {
        let (from, to) = self.link_ends(link);
        format!("{}-{}", self.node_name(from), self.node_name(to))
    }
    /// Most bytes in the queue of the port at the beginning of a link, where the fabric itself says it.
    pub fn queue_of(&self, link: LinkId) -> Option<Bytes> {
        let (from, to) = self.link_ends(link);
        let tier = |node: NodeId| {
            self.switch_index(node)
                .map(|index| self.switches[index].tier)
        };
        let own = tier(from)?;
        let queues = self.queues.get(usize::from(own))?;
        match tier(to).is_some_and(|other| other > own) {
            true => queues.up,
            false => queues.down,
        }
    }
    /// Role of the switch at a node; `None` for a host.
    pub fn role_of(&self, node: NodeId) -> Option<SwitchRole> {
        self.switch_index(node)
            .map(|index| self.switches[index].role)
    }
    /// True if a cable is part of a scale-up fabric.
    pub fn is_scale_up(&self, cable: &Cable) -> bool {
        let mut roles = cable.ends.iter().map(|end| self.role_of(*end));
        roles.any(|role| role == Some(SwitchRole::ScaleUp))
    }
    /// Groups by way of which packets take detours, or may; `None` if routes are minimal.
    pub fn detours(&self) -> Option<&SwitchGroups> {
        let groups = self.groups.as_ref();
        groups.filter(|groups| groups.has_detours())
    }
    /// The group of the switch that each host is on.
    pub(crate) fn groups_of_hosts(&self, groups: &SwitchGroups) -> Arc<[u16]> {
        let mut of_host = vec![0; self.hosts as usize];
        for cable in self.cables.iter().filter(|cable| cable.up) {
            for (end, other) in [(0, 1), (1, 0)] {
                let switch = self.switch_index(cable.ends[other]);
                let host = of_host.get_mut(cable.ends[end].0 as usize);
                if let (Some(host), Some(switch)) = (host, switch) {
                    *host = groups.of_switch[switch];
                }
            }
        }
        of_host.into()
    }
    /// True if a node is a host.
    pub fn is_host(&self, node: NodeId) -> bool {
        node.0 < self.hosts
    }
    /// Nodes at which a link begins and ends.
    pub fn link_ends(&self, link: LinkId) -> (NodeId, NodeId) {
        let ends = self.cables[link.cable()].ends;
        (ends[link.end()], ends[1 - link.end()])
    }
    /// Time from the end of transmission until the packet stands at the next node: propagation and the latency of a switch.
    pub fn link_delay(&self, link: LinkId) -> Span {
        let (_, to) = self.link_ends(link);
        let latency = self
            .switch_index(to)
            .map(|index| self.switches[index].latency);
        self.cables[link.cable()].delay + latency.unwrap_or(Span::ZERO)
    }
    /// All links of cables that are up.
    pub fn links_up(&self) -> impl Iterator<Item = LinkId> + '_ {
        let cables = self.cables.iter().enumerate().filter(|(_, cable)| cable.up);
        cables.flat_map(|(index, _)| [LinkId::from_end(index, 0), LinkId::from_end(index, 1)])
    }
    /// The shortest delay of any link that is up; no round of the engine is longer.
    pub fn shortest_delay(&self) -> Span {
        let delays = self.links_up().map(|link| self.link_delay(link));
        delays.min().unwrap_or(Span::from_us(1))
    }
    /// For each node, its links that are up, in the order of cables: port `p` of a node is item `p`.
    pub fn ports(&self) -> Vec<Vec<LinkId>> {
        let mut ports = vec![Vec::new(); self.hosts as usize + self.switches.len()];
        for link in self.links_up() {
            ports[self.link_ends(link).0.0 as usize].push(link);
        }
        ports
    }
    /// The rate of the slowest link of a host that is up.
    pub fn slowest_host_rate(&self) -> Option<Rate> {
        let of_hosts = self.cables.iter().filter(|cable| {
            let is_host = |end: &NodeId| self.switch_index(*end).is_none();
            cable.up && cable.ends.iter().any(is_host)
        });
        of_hosts.map(|cable| cable.rate).min()
    }
    /// The link that reaches `host`.
    pub fn link_to_host(&self, host: HostId) -> Option<LinkId> {
        self.links_up()
            .find(|&link| self.link_ends(link).1 == Self::host_node(host))
    }
    /// Takes down `count` of the cables named `a-b` (either direction), or all of them if `count` is `None`.
    ///
    /// # Errors
    /// If there are fewer such cables that are up.
    pub fn fail(&mut self, name: &str, count: Option<usize>) -> Result<(), TopologyError> {
        let matching: Vec<usize> = (0..self.cables.len())
            .filter(|&cable| self.cables[cable].up)
            .filter(|&cable| (0..2).any(|end| self.link_name(LinkId::from_end(cable, end)) == name))
            .collect();
        let wanted = count.unwrap_or(matching.len().max(1));
        if matching.len() < wanted {
            return Err(TopologyError::NoSuchLink {
                name: name.into(),
                fix: format!(
                    "links are named after their two ends, such as `{}`, and {} of that name are up",
                    self.cables.last().map_or(String::new(), |_| {
                        self.link_name(LinkId::from_end(self.cables.len() - 1, 0))
                    }),
                    matching.len()
                ),
            });
        }
        for &cable in &matching[..wanted] {
            self.cables[cable].up = false;
        }
        Ok(())
    }
    /// Takes down `per_switch` cables to switches above from each of the first `switches` of the network's lowest switches (STrack §4.2: 16
    /// switches lose 4 or 16 uplinks each). Switch `i` loses uplinks `i * per_switch`, `i * per_switch + 1`, … counted round, so
    /// that the losses spread over the upper switches.
    ///
    /// # Errors
    /// If there are not so many switches or uplinks.
    pub fn fail_uplinks(
        &mut self,
        switches: usize,
        per_switch: usize,
    ) -> Result<(), TopologyError> {
        let of_network = |spec: &&SwitchSpec| spec.role == SwitchRole::Network;
        let tiers = self.switches.iter().filter(of_network);
        let lowest = tiers.map(|spec| spec.tier).min().unwrap_or(0);
        let leaves: Vec<NodeId> = (0..self.switches.len())
            .filter(|&index| self.switches[index].tier == lowest)
            .map(|index| self.switch_node(index))
            .filter(|&node| self.role_of(node) == Some(SwitchRole::Network))
            .collect();
        if switches > leaves.len() {
            return Err(TopologyError::Impossible {
                what: format!(
                    "{switches} switches are to lose links, but tier {lowest} has {}",
                    leaves.len()
                ),
                fix: format!("name at most {}", leaves.len()),
            });
        }
        for (i, &leaf) in leaves[..switches].iter().enumerate() {
            let uplinks: Vec<usize> = (0..self.cables.len())
                .filter(|&cable| self.cables[cable].up && self.cables[cable].ends.contains(&leaf))
                .filter(|&cable| {
                    self.cables[cable]
                        .ends
                        .iter()
                        .all(|&end| self.role_of(end) == Some(SwitchRole::Network))
                })
                .collect();
            if per_switch >= uplinks.len() {
                return Err(TopologyError::Impossible {
                    what: format!(
                        "each switch is to lose {per_switch} uplinks, but has {}",
                        uplinks.len()
                    ),
                    fix: format!("fail at most {}", uplinks.len().saturating_sub(1)),
                });
            }
            for k in 0..per_switch {
                self.cables[uplinks[(i * per_switch + k) % uplinks.len()]].up = false;
            }
        }
        Ok(())
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

//! Predicted routes of packets: the decisions of switches without a run.

use super::{Setup, build};
use crate::switch::NextHopSelector;
use crate::topology::{LinkId, NextHops, NodeId};
use clearway_transport::header_hash;
use clearway_units::{FlowId, HostId};
use std::collections::BTreeMap;

/// So many packets of a queue pair stand for all of them; STrack sprays over 256 paths.
const PACKETS: usize = 256;

/// The decisions of all switches of a fabric.
pub struct TracedRoutes<'a> {
    setup: &'a Setup<'a>,
    picks: Vec<NextHopSelector>,
    /// The links that leave each node, by port.
    ports: Vec<Vec<LinkId>>,
}

impl<'a> TracedRoutes<'a> {
    /// Of the fabric that `setup` describes.
    pub fn new(setup: &'a Setup<'a>) -> Self {
        let switches = 0..setup.topology.switches.len();
        Self {
            setup,
            picks: switches.map(|index| build::pick(setup, index)).collect(),
            ports: setup.topology.ports(),
        }
    }

    /// The links that a packet with this source port crosses, in their order, if it goes by way of the group `via` of switches, or
    /// directly.
    pub fn of_packet(
        &self,
        src: HostId,
        dst: HostId,
        source_port: u16,
        mut via: Option<u16>,
    ) -> Vec<LinkId> {
        let Setup {
            topology, routes, ..
        } = self.setup;
        let hash = header_hash(src, dst, source_port);
        let to = routes.attachments[dst.index()];
        let mut links = vec![self.ports[src.index()][0]];
        loop {
            let (_, node) = topology.link_ends(links[links.len() - 1]);
            let Some(switch) = topology.switch_index(node) else {
                return links;
            };
            let (pick, table) = (self.picks[switch], &routes.switches[switch]);
            via = via.filter(|&group| !table.towards_group(group).is_empty());
            let port = match via {
                None => pick.port(table, (dst, to), hash),
                Some(group) => pick.among(table.towards_group(group), table, dst, hash),
            };
            links.push(self.ports[node.0 as usize][port]);
        }
    }

    /// The groups of switches by way of which packets go from one host to another, one as often as another; one `None` if they go there
    /// directly.
    pub fn detours(&self, src: HostId, dst: HostId) -> Vec<Option<u16>> {
        let topology = self.setup.topology;
        let of_host = |host: HostId| {
            let (_, node) = topology.link_ends(self.ports[host.index()][0]);
            topology.switch_index(node)
        };
        let (Some(groups), Some(from), Some(to)) = (topology.detours(), of_host(src), of_host(dst))
        else {
            return vec![None];
        };
        match (groups.of_switch[from], groups.of_switch[to]) {
            (from, to) if from == to => vec![None],
            (from, to) => groups.others(from, to).map(Some).collect(),
        }
    }

    /// The links that data of a listed flow crosses, and what part of it crosses each. Exact where its packets have one path for each
    /// queue pair; of a flow that sprays, what its first packets do if nothing is marked. Detours are shared out evenly, as they are in the
    /// mean. Where switches choose by their own state, all next hops carry as much.
    pub fn of_flow(&self, id: FlowId) -> BTreeMap<LinkId, f64> {
        let flow = &self.setup.flows[id.index()];
        if self.setup.switch.routing.is_local() && self.setup.topology.detours().is_none() {
            return self.spread_evenly(flow.src, flow.dst);
        }
        let profile = self.setup.profile_of(flow.transport);
        let queue_pairs = profile.source_ports(id, self.setup.seed, PACKETS);
        let mut ports: BTreeMap<u16, u32> = BTreeMap::new();
        for port in queue_pairs.iter().flatten() {
            *ports.entry(*port).or_default() += 1;
        }
        let all: u32 = ports.values().sum();
        let detours = self.detours(flow.src, flow.dst);
        let mut crossing: BTreeMap<LinkId, u32> = BTreeMap::new();
        for (port, packets) in ports {
            for &via in &detours {
                for link in self.of_packet(flow.src, flow.dst, port, via) {
                    *crossing.entry(link).or_default() += packets;
                }
            }
        }
        let all = f64::from(all) * detours.len() as f64;
        let part = |packets| f64::from(packets) / all;
        crossing
            .into_iter()
            .map(|(link, packets)| (link, part(packets)))
            .collect()
    }

    /// What part of the packets between two hosts crosses each link, if every switch spreads them evenly over their next hops.
    fn spread_evenly(&self, src: HostId, dst: HostId) -> BTreeMap<LinkId, f64> {
        let Setup {
            topology, routes, ..
        } = self.setup;
        let to = routes.attachments[dst.index()];
        let first = self.ports[src.index()][0];
        let mut crossing = BTreeMap::from([(first, 1.0)]);
        // All next hops of a switch are equally far from the destination, so that a switch has its whole share before it passes it on.
        let mut at: BTreeMap<NodeId, f64> = BTreeMap::from([(topology.link_ends(first).1, 1.0)]);
        while !at.is_empty() {
            for (node, part) in std::mem::take(&mut at) {
                let Some(switch) = topology.switch_index(node) else {
                    continue;
                };
                let next = match routes.switches[switch].next_hops(to) {
                    NextHops::Host(port) => vec![port],
                    NextHops::Ports(ports) => ports.to_vec(),
                };
                let each = part / next.len() as f64;
                for port in next {
                    let link = self.ports[node.0 as usize][usize::from(port)];
                    *crossing.entry(link).or_default() += each;
                    *at.entry(topology.link_ends(link).1).or_default() += each;
                }
            }
        }
        crossing
    }
}

//! Predicted routes of packets: the decisions of switches without a run.

use super::{Setup, build};
use crate::switch::NextHopSelector;
use crate::topology::{GroupRouting, LinkId, NextHops};
use clearway_transport::header_hash;
use clearway_units::{FlowId, HostId};
use std::collections::BTreeMap;

/// So many packets of a queue pair stand for all of them; STrack sprays over 256 paths.
const PACKETS: usize = 256;

/// The decisions of all switches of a fabric.
pub struct TracedRoutes<'a> {
    setup: &'a Setup<'a>,
    picks: Vec<NextHopSelector>,
    /// By switch: it chooses among next hops by its own state.
    is_local: Vec<bool>,
    /// The links that leave each node, by port.
    ports: Vec<Vec<LinkId>>,
}

impl<'a> TracedRoutes<'a> {
    /// Traced routes of the fabric that `setup` describes.
    pub fn new(setup: &'a Setup<'a>) -> Self {
        let switches = 0..setup.topology.switches.len();
        let specs = setup.topology.switches.iter();
        let rules = specs.map(|spec| setup.switch.path_choice(spec.role));
        Self {
            setup,
            is_local: rules.map(|rule| rule.is_local()).collect(),
            picks: switches.map(|index| build::pick(setup, index)).collect(),
            ports: setup.topology.ports(),
        }
    }

    /// The links that a packet with this source port crosses if it goes by way of the group `via` of switches, or directly, each with how
    /// likely it is: one, but behind switches and NICs that choose by their own state, whose next hops are all as likely.
    pub fn of_packet(
        &self,
        src: HostId,
        dst: HostId,
        source_port: u16,
        via: Option<u16>,
    ) -> BTreeMap<LinkId, f64> {
        let Setup {
            topology, routes, ..
        } = self.setup;
        let hash = header_hash(src, dst, source_port);
        let to = routes.attachments[dst.index()];
        let first = self.ports[src.index()][0];
        let mut crossing = BTreeMap::from([(first, 1.0)]);
        // All next hops of a switch are equally far from where they lead, so that a switch has its whole part before it passes it on.
        let mut at = BTreeMap::from([((topology.link_ends(first).1, via), 1.0)]);
        while !at.is_empty() {
            for ((node, via), part) in std::mem::take(&mut at) {
                let Some(switch) = topology.switch_index(node) else {
                    continue;
                };
                let (pick, table) = (&self.picks[switch], &routes.switches[switch]);
                let via = via.filter(|&group| !table.towards_group(group).is_empty());
                let next = match via {
                    None => table.next_hops(to),
                    Some(group) => NextHops::Ports(table.towards_group(group)),
                };
                let next = match next {
                    NextHops::Host(port) => vec![port],
                    NextHops::Ports(ports) if self.is_local[switch] => ports.to_vec(),
                    NextHops::Ports(ports) => vec![pick.among(ports, table, dst, hash) as u16],
                };
                let each = part / next.len() as f64;
                for port in next {
                    let link = self.ports[node.0 as usize][usize::from(port)];
                    *crossing.entry(link).or_default() += each;
                    let next = (topology.link_ends(link).1, via);
                    *at.entry(next).or_default() += each;
                }
            }
        }
        crossing
    }

    /// The groups of switches by way of which packets go from one host to another, one as often as another; `None` stands for the direct
    /// way. Which of them UGAL takes depends on queues: they all count alike here.
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
            (from, to) => {
                let direct = (groups.routing == GroupRouting::Ugal).then_some(None);
                let others = groups.others(from, to).map(Some);
                direct.into_iter().chain(others).collect()
            }
        }
    }

    /// The links that data of a listed flow crosses, and the part of the data on each. The parts are exact where packets have one path for
    /// each queue pair. For a flow that sprays they follow its first packets, if nothing is marked. Detours are shared out evenly, as they
    /// are in the mean. Where switches choose by their own state, all next hops carry equal parts.
    pub fn of_flow(&self, id: FlowId) -> BTreeMap<LinkId, f64> {
        let flow = &self.setup.flows[id.index()];
        let profile = self.setup.profile_of(flow.transport);
        let queue_pairs = profile.source_ports(id, self.setup.seed, PACKETS);
        let mut ports: BTreeMap<u16, u32> = BTreeMap::new();
        for port in queue_pairs.iter().flatten() {
            *ports.entry(*port).or_default() += 1;
        }
        if self.is_local.iter().all(|is_local| *is_local) {
            // No header decides anything: one stands for all.
            ports = ports.into_iter().take(1).collect();
        }
        let all: u32 = ports.values().sum();
        let detours = self.detours(flow.src, flow.dst);
        let all = f64::from(all) * detours.len() as f64;
        let mut crossing: BTreeMap<LinkId, f64> = BTreeMap::new();
        for (port, packets) in ports {
            for &via in &detours {
                for (link, part) in self.of_packet(flow.src, flow.dst, port, via) {
                    *crossing.entry(link).or_default() += part * f64::from(packets) / all;
                }
            }
        }
        crossing
    }
}

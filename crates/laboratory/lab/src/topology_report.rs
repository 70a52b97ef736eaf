//! Report on the fabric of an assembled scenario.

use crate::assemble::Assembly;
use crate::scenario::path_lengths;
use clearway_fabric::topology::{NodeId, Topology};
use clearway_transport::congestion::NetworkFacts;
use clearway_units::{Bytes, Rate, Span};
use std::collections::{BTreeMap, BTreeSet};

/// Report that `clearway topology` shows.
#[derive(Debug, Clone, PartialEq)]
pub struct TopologyReport {
    /// Summary in a few words.
    pub summary: String,
    /// Number of hosts.
    pub hosts: u32,
    /// Number of the hosts' NICs.
    pub nics: u32,
    /// Distinct rates of the NICs.
    pub nic_rates: Vec<Rate>,
    /// Number of switches of each tier, lowest tier first.
    pub switches: Vec<usize>,
    /// Number of cables that are up, and number of all cables.
    pub cables: (usize, usize),
    /// Number of ordered pairs of hosts at each path length in links.
    pub path_lengths: BTreeMap<u32, u64>,
    /// Facts that transports know of the network.
    pub network: NetworkFacts,
    /// The bandwidth-delay product that sizes queues: line rate times propagation round trip, at least four packets.
    pub queue_bdp: Bytes,
    /// The shortest delay of a link; no round of the engine is longer.
    pub shortest_delay: Span,
}

impl Assembly {
    /// Report on the fabric, in numbers.
    pub fn topology_report(&self) -> TopologyReport {
        let topology = &self.topology;
        let mut switches = Vec::new();
        for switch in &topology.switches {
            let tier = usize::from(switch.tier);
            if switches.len() <= tier {
                switches.resize(tier + 1, 0);
            }
            switches[tier] += 1;
        }
        let up = topology.cables.iter().filter(|cable| cable.up).count();
        TopologyReport {
            summary: topology.summary.clone(),
            hosts: topology.machines(),
            nics: topology.hosts,
            nic_rates: nic_rates(topology),
            switches,
            cables: (up, topology.cables.len()),
            path_lengths: path_lengths(topology, &self.routes),
            network: self.network,
            queue_bdp: self.network.port_bdp(self.network.line_rate),
            shortest_delay: topology.shortest_delay(),
        }
    }
}

/// Distinct rates of NICs.
fn nic_rates(topology: &Topology) -> Vec<Rate> {
    let is_host = |node: &NodeId| topology.switch_index(*node).is_none();
    let of_hosts = topology
        .cables
        .iter()
        .filter(|c| c.ends.iter().any(is_host));
    let rates: BTreeSet<Rate> = of_hosts.map(|cable| cable.rate).collect();
    rates.into_iter().collect()
}

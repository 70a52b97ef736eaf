//! Next hops of packets, for those who forward packets themselves instead of simulating them.

use crate::switch::{NextHopSelector, SwitchParameters};
use crate::topology::{LinkId, Routes, Topology};
use clearway_units::HostId;

/// Decisions of all switches of a fabric: those that they make in a simulation with the same seed.
#[derive(Debug, Clone)]
pub struct Forwarding {
    routes: Routes,
    /// By switch.
    selectors: Vec<NextHopSelector>,
    /// Links that leave each node, by port.
    ports: Vec<Vec<LinkId>>,
    hosts: u32,
}

impl Forwarding {
    /// Decisions by these routes of the topology.
    pub fn new(
        topology: &Topology,
        routes: Routes,
        parameters: &SwitchParameters,
        seed: u64,
    ) -> Self {
        let switches = topology.switches.iter().enumerate();
        Self {
            routes,
            selectors: switches
                .map(|(index, spec)| {
                    NextHopSelector::new(parameters.path_choice(spec.role), seed, index)
                })
                .collect(),
            ports: topology.ports(),
            hosts: topology.hosts,
        }
    }

    /// The link that leaves a host.
    ///
    /// # Panics
    /// If the topology has no such host.
    pub fn uplink(&self, host: HostId) -> LinkId {
        self.ports[host.index()][0]
    }

    /// The link over which a switch sends a packet with this [digest](clearway_transport::header_hash) of its header.
    ///
    /// # Panics
    /// If the topology has no such switch or host.
    #[inline]
    pub fn next_link(&self, switch: usize, to: HostId, header_hash: u32) -> LinkId {
        let attachment = self.routes.attachments[to.index()];
        let routes = &self.routes.switches[switch];
        let port = self.selectors[switch].port(routes, (to, attachment), header_hash);
        self.ports[self.hosts as usize + switch][port]
    }
}

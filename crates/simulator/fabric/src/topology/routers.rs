//! Hosts that forward packets of others: each has a router, as in a NIC with several ports.
//!
//! An endpoint has exactly one link (see [`nics`](super::nics)). A host that forwards is therefore two nodes: the host, and a router that
//! has its cables, joined by a link as fast as all of them together. The router is a switch, of the network or of a scale-up fabric, with
//! queues and settings like all others. A tenth of the delay of the host's shortest cable, at least 1 ns, lies between the host and its
//! router, and as much less on its cables, so that the delay from host to host over one cable is that of the cable.

use super::{Cable, NodeId, SwitchRole, SwitchSpec, Topology, TopologyError};
use clearway_units::{Rate, Span};
use std::collections::BTreeSet;

/// Least delay of a cable.
const LEAST_DELAY: Span = Span::from_ns(1);
/// Part of the delay of a cable that lies inside each host.
const INSIDE: u64 = 10;

impl Topology {
    /// The same fabric with a router in each host that has cables and for which `forwards` returns true. Cables keep their numbers; those
    /// between hosts and routers come last, as do the routers.
    ///
    /// # Errors
    /// If the delay of a cable is too short to lie partly inside its hosts: less than 3 ns between two hosts that forward.
    pub fn with_routers(self, forwards: impl Fn(u32) -> bool) -> Result<Self, TopologyError> {
        self.with_routers_of(SwitchRole::Network, |host, _| forwards(host))
    }

    /// The same fabric with a router of a role in each host that has cables for which `is_forwarded` returns true, given the host and the
    /// number of the cable. The other cables of the host stay as they are: its router forwards nothing to them.
    ///
    /// # Errors
    /// As for [`with_routers`](Self::with_routers).
    pub fn with_routers_of(
        mut self,
        role: SwitchRole,
        is_forwarded: impl Fn(u32, usize) -> bool,
    ) -> Result<Self, TopologyError> {
        let hosts = self.hosts;
        let mut rates = vec![0u64; hosts as usize];
        let mut shortest = vec![Span::MAX; hosts as usize];
        for (index, cable) in self.cables.iter().enumerate() {
            let ends = cable.ends.iter().map(|end| end.0);
            for host in ends.filter(|end| *end < hosts && is_forwarded(*end, index)) {
                let place = host as usize;
                rates[place] = rates[place].saturating_add(cable.rate.as_bps());
                shortest[place] = shortest[place].min(cable.delay);
            }
        }
        let routed: Vec<u32> = (0..hosts)
            .filter(|&host| rates[host as usize] > 0)
            .collect();
        let inside = |host: u32| (shortest[host as usize] / INSIDE).max(LEAST_DELAY);
        let first = self.switches.len();
        let mut router_of = vec![None; hosts as usize];
        for (place, &host) in routed.iter().enumerate() {
            router_of[host as usize] = Some(self.switch_node(first + place));
        }
        for (index, cable) in self.cables.iter_mut().enumerate() {
            let delay = cable.delay;
            for end in &mut cable.ends {
                let host = end.0;
                let router = router_of.get(host as usize).copied().flatten();
                let Some(router) = router.filter(|_| is_forwarded(host, index)) else {
                    continue;
                };
                cable.delay = cable.delay.saturating_sub(inside(host));
                *end = router;
                if cable.delay < LEAST_DELAY {
                    return Err(TopologyError::Impossible {
                        what: format!(
                            "a link of host {host}, which forwards, with a delay of {delay}"
                        ),
                        fix: "use at least 3ns: a tenth, and at least 1ns, lies inside each host"
                            .into(),
                    });
                }
            }
        }
        self.add_routers(role, &routed, |host| {
            (Rate::from_bps(rates[host as usize]), inside(host))
        });
        Ok(self)
    }

    /// For each switch, true if it is a router of a scale-up fabric: one host alone is on it.
    pub(super) fn scale_up_routers(&self) -> Vec<bool> {
        let mut hosts = vec![0u32; self.switches.len()];
        for cable in self.cables.iter().filter(|cable| cable.up) {
            let switches = cable.ends.map(|end| self.switch_index(end));
            if let [None, Some(switch)] | [Some(switch), None] = switches {
                hosts[switch] += 1;
            }
        }
        let all = self.switches.iter().zip(hosts);
        all.map(|(switch, hosts)| switch.role == SwitchRole::ScaleUp && hosts == 1)
            .collect()
    }

    /// Adds a router and its cable to each host of `routed`. Router names are `router5`, or `router5.1` if the host has one already.
    fn add_routers(
        &mut self,
        role: SwitchRole,
        routed: &[u32],
        link: impl Fn(u32) -> (Rate, Span),
    ) {
        let names = self.switches.iter().map(|switch| switch.name.as_str());
        let taken: BTreeSet<String> = names.map(str::to_owned).collect();
        for &host in routed {
            let name = format!("router{host}");
            let name = match taken.contains(&name) {
                true => format!("{name}.1"),
                false => name,
            };
            let router = self.switch_node(self.switches.len());
            self.switches.push(SwitchSpec {
                role,
                ..SwitchSpec::new(name, 0)
            });
            self.cables
                .push(Cable::new([NodeId(host), router], link(host)));
        }
    }
}

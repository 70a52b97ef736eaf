//! Hosts that forward packets of others: each has a router, as in a NIC with several ports.
//!
//! An endpoint has exactly one link (see [`nics`](super::nics)). A host that forwards is therefore two nodes: the host, and a router that
//! has its cables, joined by a link as fast as all of them together. The router is a switch of the network, with queues and settings like
//! all others. A tenth of the delay of the host's shortest cable, at least 1 ns, lies between the host and its router, and as much less on
//! its cables, so that the delay from host to host over one cable is that of the cable.

use super::{Cable, NodeId, SwitchSpec, Topology, TopologyError};
use clearway_units::{Rate, Span};

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
    pub fn with_routers(mut self, forwards: impl Fn(u32) -> bool) -> Result<Self, TopologyError> {
        let mut rates = vec![0u64; self.hosts as usize];
        let mut shortest = vec![Span::MAX; self.hosts as usize];
        for cable in &self.cables {
            for end in cable.ends.iter().filter(|end| end.0 < self.hosts) {
                let host = end.0 as usize;
                rates[host] = rates[host].saturating_add(cable.rate.as_bps());
                shortest[host] = shortest[host].min(cable.delay);
            }
        }
        let hosts = self.hosts;
        let routed: Vec<u32> = (0..hosts)
            .filter(|&host| rates[host as usize] > 0 && forwards(host))
            .collect();
        let inside = |host: u32| (shortest[host as usize] / INSIDE).max(LEAST_DELAY);
        let first = self.switches.len();
        let mut router_of = vec![None; hosts as usize];
        for (place, &host) in routed.iter().enumerate() {
            router_of[host as usize] = Some(self.switch_node(first + place));
        }
        for cable in &mut self.cables {
            let delay = cable.delay;
            for end in &mut cable.ends {
                let host = end.0;
                let Some(&Some(router)) = router_of.get(host as usize) else {
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
        for &host in &routed {
            let router = self.switch_node(self.switches.len());
            self.switches
                .push(SwitchSpec::new(format!("router{host}"), 0));
            let rate = Rate::from_bps(rates[host as usize]);
            self.cables
                .push(Cable::new([NodeId(host), router], (rate, inside(host))));
        }
        Ok(self)
    }
}

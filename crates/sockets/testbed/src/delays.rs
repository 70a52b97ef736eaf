//! Delays of links: the delays that a scenario gives, and the delay that its simulation uses for all other links.
//!
//! A link has the delay of `topology.link-delay`, unless the scenario gives another one (`fabric-link-delay`, `links`, a fabric file). If
//! the scenario does not give that key, the delay of such a link is *open*: a bed adds nothing to the software's delay, and the simulation
//! uses the delay at which a handshake takes the measured time. Delays from the scenario apply to both the bed and the simulation, and no
//! part of the measured time counts twice.

use crate::fault::Fault;
use clearway_fabric::topology::{LinkId, NextHops, NodeId, Topology};
use clearway_lab::{Assembly, FlowSpec, Laboratory, Scenario};
use clearway_units::{HostId, Span};
use std::collections::BTreeSet;

/// Bytes of IP and UDP.
pub(crate) const NETWORK: u32 = 28;

/// The key on which open delays depend.
pub(crate) const LINK_DELAY: &str = "topology.link-delay";
/// Least delay of a link in a simulation of a bed.
const LEAST: Span = Span::from_us(1);

/// Delay of a directed link, with the latency of the switch at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LinkDelay {
    /// Delay from the scenario.
    given: Span,
    /// The open delay is added.
    is_open: bool,
}

/// Delays of all links, by their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinkDelays(Vec<LinkDelay>);

impl LinkDelays {
    /// The delays of the scenario in `source` with `overrides`.
    pub(crate) fn read(
        laboratory: &Laboratory,
        source: &str,
        overrides: &[String],
    ) -> Result<Self, Fault> {
        let scenario = laboratory.load(source, overrides)?;
        let mut settings = scenario.settings().into_iter();
        let is_open = settings.any(|setting| setting.path() == LINK_DELAY && !setting.given);
        if !is_open {
            let given = |given| LinkDelay {
                given,
                is_open: false,
            };
            return Ok(Self(all(&scenario)?.into_iter().map(given).collect()));
        }
        // Load the scenario with two values of the key: delays that depend on the key differ.
        let with = |delay: Span| {
            let mut overrides = overrides.to_vec();
            overrides.push(format!("{LINK_DELAY}=\"{}ps\"", delay.as_ps()));
            all(&laboratory.load(source, &overrides)?)
        };
        let delays = with(LEAST)?.into_iter().zip(with(LEAST * 2)?);
        let delay = |(shorter, longer): (Span, Span)| {
            // The difference is the part of the delay that follows the key.
            let follows = longer.saturating_sub(shorter);
            LinkDelay {
                given: shorter.saturating_sub(follows),
                is_open: !follows.is_zero(),
            }
        };
        Ok(Self(delays.map(delay).collect()))
    }

    /// The delay that the scenario gives to a link.
    pub(crate) fn given(&self, link: LinkId) -> Span {
        self.0[link.0 as usize].given
    }

    /// The open delay at which the fastest handshake of a run takes `round_trip`; `None` if the delay does not matter. `transmission` gives
    /// the time of a number of bytes on a link.
    pub(crate) fn calibrate(
        &self,
        assembly: &Assembly,
        round_trip: Span,
        transmission: &dyn Fn(LinkId, u32) -> Span,
    ) -> Option<Span> {
        let with = |open: Span| {
            fastest_handshake(assembly, &|link, bytes| {
                let delay = self.0[link.0 as usize];
                let open = if delay.is_open { open } else { Span::ZERO };
                delay.given + open + transmission(link, bytes)
            })
        };
        if with(Span::ZERO) == with(LEAST) {
            return None;
        }
        // Binary search for the largest delay whose round trip does not exceed the measured round trip.
        let (mut fits, mut exceeds) = (LEAST.as_ps(), round_trip.as_ps());
        while fits + 1 < exceeds {
            let middle = fits.midpoint(exceeds);
            match with(Span::from_ps(middle)) <= round_trip {
                true => fits = middle,
                false => exceeds = middle,
            }
        }
        Some(Span::from_ps(fits))
    }
}

/// Delays of all links of a scenario's fabric.
fn all(scenario: &Scenario) -> Result<Vec<Span>, Fault> {
    let topology = fabric(scenario)?;
    let links = (0..topology.cables.len() as u32 * 2).map(LinkId);
    Ok(links.map(|link| topology.link_delay(link)).collect())
}

/// The fabric of a scenario.
pub(crate) fn fabric(scenario: &Scenario) -> Result<Topology, Fault> {
    let built = scenario.fabric();
    let built = built.map_err(|error| error.or_in(scenario.places(), "topology", 0))?;
    Ok(built.topology)
}

/// Bytes of the datagrams of a handshake, there and back.
const HANDSHAKE: [u32; 2] = [clearway_udp::wire::INIT_LENGTH as u32 + NETWORK, 180];

/// Links between the ends of a flow.
pub(crate) fn hops(assembly: &Assembly, flow: &FlowSpec) -> u32 {
    assembly.routes.paths.between(flow.src, flow.dst).hops
}

/// Links between the ends of the flow with the longest path. Only handshakes of such flows count.
pub(crate) fn most_hops(assembly: &Assembly) -> u32 {
    let flows = assembly.workload.flows.iter();
    flows.map(|flow| hops(assembly, flow)).max().unwrap_or(0)
}

/// Round trip of the fastest handshake of a run in its simulated fabric.
pub(crate) fn simulated_handshake(assembly: &Assembly) -> Span {
    fastest_handshake(assembly, &|link, bytes| {
        assembly.topology.link_delay(link) + transmission(&assembly.topology, link, bytes)
    })
}

/// Transmission time of `bytes` bytes on a link.
pub(crate) fn transmission(topology: &Topology, link: LinkId, bytes: u32) -> Span {
    let rate = topology.cables[link.cable()].rate;
    rate.span_of(clearway_units::Bytes::new(bytes.into()))
}

/// Round trip of the fastest handshake among the pairs of hosts with the longest paths: a connection tries all its paths.
fn fastest_handshake(assembly: &Assembly, time: &dyn Fn(LinkId, u32) -> Span) -> Span {
    let most = most_hops(assembly);
    let flows = assembly.workload.flows.iter();
    let farthest = flows.filter(|flow| hops(assembly, flow) == most);
    let pairs: BTreeSet<(HostId, HostId)> = farthest.map(|flow| (flow.src, flow.dst)).collect();
    let [there, back] = HANDSHAKE;
    let ways = Ways::new(assembly);
    let round_trips = pairs.into_iter().map(|(from, to)| {
        ways.fastest(from, to, &|link| time(link, there))
            + ways.fastest(to, from, &|link| time(link, back))
    });
    round_trips.min().unwrap_or(Span::ZERO)
}

/// Paths that packets may take.
struct Ways<'a> {
    assembly: &'a Assembly,
    ports: Vec<Vec<LinkId>>,
}

impl<'a> Ways<'a> {
    fn new(assembly: &'a Assembly) -> Self {
        Self {
            assembly,
            ports: assembly.topology.ports(),
        }
    }

    /// Time over the fastest of the equal-cost paths; `time` gives the time of each link.
    fn fastest(&self, from: HostId, to: HostId, time: &dyn Fn(LinkId) -> Span) -> Span {
        let mut known = vec![None; self.assembly.topology.switches.len()];
        let uplink = self.ports[from.index()][0];
        self.over(uplink, to, time, &mut known)
    }

    /// Time over a link and from its end to the host. `known` has the times from switches.
    fn over(
        &self,
        link: LinkId,
        to: HostId,
        time: &dyn Fn(LinkId) -> Span,
        known: &mut Vec<Option<Span>>,
    ) -> Span {
        let (_, end) = self.assembly.topology.link_ends(link);
        time(link) + self.beyond(end, to, time, known)
    }

    fn beyond(
        &self,
        node: NodeId,
        to: HostId,
        time: &dyn Fn(LinkId) -> Span,
        known: &mut Vec<Option<Span>>,
    ) -> Span {
        let Some(switch) = self.assembly.topology.switch_index(node) else {
            return Span::ZERO;
        };
        if let Some(known) = known[switch] {
            return known;
        }
        let routes = &self.assembly.routes;
        let ports = &self.ports[node.0 as usize];
        let next = match routes.switches[switch].next_hops(routes.attachments[to.index()]) {
            NextHops::Host(port) => vec![port],
            NextHops::Ports(ports) => ports.to_vec(),
        };
        let times = next
            .into_iter()
            .map(|port| self.over(ports[usize::from(port)], to, time, known));
        let least = times.min().unwrap_or(Span::ZERO);
        known[switch] = Some(least);
        least
    }
}

#[cfg(test)]
mod tests;

//! Limits of fabrics for which routes are computed.

use super::{LinkId, Topology, TopologyError};
use clearway_units::Span;

/// Numbers of switches with hosts have 16 bits.
pub(super) fn check_group_count(groups: usize) -> Result<(), TopologyError> {
    const MOST: usize = 1 << u16::BITS;
    match groups > MOST {
        false => Ok(()),
        true => Err(TopologyError::Impossible {
            what: format!("{groups} switches have hosts"),
            fix: format!("connect the hosts to at most {MOST} switches"),
        }),
    }
}

/// Port numbers have 16 bits.
pub(super) fn check_port_counts(
    topology: &Topology,
    ports: &[Vec<LinkId>],
) -> Result<(), TopologyError> {
    let of_switches = ports[topology.hosts as usize..]
        .iter()
        .zip(&topology.switches);
    match of_switches
        .into_iter()
        .find(|(ports, _)| ports.len() > usize::from(u16::MAX))
    {
        None => Ok(()),
        Some((ports, switch)) => Err(TopologyError::TooManyPorts {
            switch: switch.name.clone(),
            ports: ports.len(),
        }),
    }
}

pub(super) fn check_delays(topology: &Topology) -> Result<(), TopologyError> {
    match topology
        .cables
        .iter()
        .find(|cable| cable.up && cable.delay < Span::from_ns(1))
    {
        None => Ok(()),
        Some(cable) => Err(TopologyError::NoDelay {
            from: topology.node_name(cable.ends[0]),
            to: topology.node_name(cable.ends[1]),
            delay: cable.delay,
        }),
    }
}

//! Events of the links of a switch that are to come.

use super::port::SharedPort;
use crate::events::PortChange;
use clearway_transport::congestion::telemetry::Telemetry;
use clearway_units::Time;
use std::collections::VecDeque;

/// Event of the link at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PortEvent {
    pub(super) at: Time,
    pub(super) port: u16,
    /// A pause storm begins or ends.
    pub(super) storm: bool,
}

/// Events of all ports that are to come, the next one first.
#[derive(Debug)]
pub(super) struct Changes(pub(super) VecDeque<PortEvent>);

impl Changes {
    /// The events of all links of the switch.
    pub(super) fn from_ports<T: Telemetry>(ports: &[SharedPort<T>]) -> Self {
        let of_ports = (0u16..).zip(ports).flat_map(|(port, own)| {
            let changes = own.link.changes();
            changes.map(move |(at, change)| PortEvent {
                at,
                port,
                storm: matches!(change, PortChange::PauseStorm(_)),
            })
        });
        let mut all: Vec<PortEvent> = of_ports.collect();
        all.sort_by_key(|change| (change.at, change.port));
        Self(all.into())
    }

    /// Time of the first pause storm, which also a switch without traffic has to note.
    pub(super) fn first_storm(&self) -> Time {
        let mut changes = self.0.iter();
        let storm = changes.find(|change| change.storm);
        storm.map_or(Time::NEVER, |change| change.at)
    }

    /// Time of the next event.
    pub(super) fn next(&self) -> Time {
        self.0.front().map_or(Time::NEVER, |change| change.at)
    }
}

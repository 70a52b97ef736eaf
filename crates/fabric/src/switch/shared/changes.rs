//! Events of the links of a switch that are to come.

use super::port::SharedPort;
use clearway_transport::telemetry::Telemetry;
use clearway_units::Time;
use std::collections::VecDeque;

/// Events of all ports that are to come, the next one first.
#[derive(Debug)]
pub(super) struct Changes(pub(super) VecDeque<(Time, u16)>);

impl Changes {
    /// The events of all links of the switch.
    pub(super) fn of<T: Telemetry>(ports: &[SharedPort<T>]) -> Self {
        let ports = (0u16..).zip(ports);
        let of_ports =
            ports.flat_map(|(index, port)| port.link.changes().map(move |at| (at, index)));
        let mut all: Vec<(Time, u16)> = of_ports.collect();
        all.sort_unstable();
        Self(all.into())
    }

    /// Time of the next event.
    pub(super) fn next(&self) -> Time {
        self.0.front().map_or(Time::NEVER, |(at, _)| *at)
    }
}

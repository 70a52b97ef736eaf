//! From a scenario to a fabric in user space.

use super::config::Config;
use crate::failure::Failure;
use clearway_lab::{Assembly, Scenario, ScenarioError};
use clearway_softswitch::{ActiveLinks, FabricPlan, SoftSwitch};
use clearway_units::{Bytes, Time};

/// Headroom for IP, UDP and the header of `clearway-udp`, beside the payload of the scenario.
const HEADERS: u32 = 128;
const ETHERNET: u16 = 1500;
const DEFAULT_HOST_QUEUE: Bytes = Bytes::new(4_000_000);

/// A fabric that is ready for the devices of its hosts.
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "only Linux has such devices")
)]
pub(super) struct Prepared {
    pub(super) switch: SoftSwitch,
    pub(super) names: ActiveLinks,
    /// Longest IP packet.
    pub(super) mtu: u16,
    pub(super) assembly: Assembly,
}

/// An error about keys of a section of a scenario.
fn about(
    scenario: &Scenario,
    keys: &[&'static str],
    section: &'static str,
    message: &str,
    fix: &str,
) -> ScenarioError {
    ScenarioError::about(keys, message, fix).or_in(scenario.places(), section, 0)
}

/// Rejects scenarios whose switches or links cannot be emulated.
fn check(scenario: &Scenario) -> Result<(), Failure> {
    if scenario.switch.buffer.is_some() {
        return Err(about(
            scenario,
            &["kind"],
            "switch",
            "switches with a shared buffer and pause frames cannot be emulated",
            "use `switch.kind = \"lossy\"`",
        )
        .into());
    }
    if scenario.switch.ports.strict_priority {
        return Err(about(
            scenario,
            &["strict-priority"],
            "switch",
            "strict priority of classes cannot be emulated",
            "leave `switch.strict-priority` out",
        )
        .into());
    }
    let routing = scenario.switch.ports.routing;
    if routing.is_local() {
        return Err(about(
            scenario,
            &["routing"],
            "switch",
            &format!(
                "`switch.routing` = \"{}\" is for simulations",
                routing.name()
            ),
            "set it to \"ecmp\": the softswitch spreads packets by their ports",
        )
        .into());
    }
    if !scenario.events.is_empty() {
        return Err(about(scenario,
            &["at"],
            "event",
            "events of a scenario are for simulations",
            "leave `[[event]]` out of the scenario; commands to links are written into the softswitch's own file",
        )
        .into());
    }
    Ok(())
}

impl Prepared {
    /// The fabric of a scenario with the events of a file.
    ///
    /// # Errors
    /// If the fabric cannot be emulated, or an event is invalid.
    pub(super) fn new(config: &Config, scenario: &Scenario) -> Result<Self, Failure> {
        check(scenario)?;
        let assembly = Assembly::new(scenario)?;
        let mtu = config.mtu.unwrap_or_else(|| {
            let frame = assembly.network.payload.saturating_add(HEADERS);
            frame.clamp(ETHERNET.into(), u16::MAX.into()) as u16
        });
        let plan = FabricPlan {
            topology: &assembly.topology,
            routes: assembly.routes.clone(),
            switch: &scenario.switch.ports,
            propagation_rtt: assembly.network.propagation_rtt,
            host_queue: config.host_queue.unwrap_or(DEFAULT_HOST_QUEUE),
            longest_packet: mtu,
            seed: scenario.general.seed,
        };
        let mut switch = SoftSwitch::new(&plan).map_err(|unfit| {
            about(
                scenario,
                &["kind"],
                "topology",
                &unfit.to_string(),
                unfit.fix(),
            )
        })?;
        let names = ActiveLinks::from_topology(&assembly.topology);
        for event in &config.events {
            let command = names
                .read(&event.line)
                .map_err(|error| ScenarioError::at(&event.place, error.message, error.fix))?;
            let command = command.ok_or_else(|| {
                let fix = "write what happens, for instance `do = \"link leaf0-spine1 down\"`";
                ScenarioError::at(&event.place, "an event in which nothing happens", fix)
            })?;
            switch.schedule(Time::ZERO + event.at, command);
        }
        Ok(Self {
            switch,
            names,
            mtu,
            assembly,
        })
    }
}

//! `clearway softswitch`.

mod arguments;
mod config;
#[cfg(target_os = "linux")]
mod live;
mod report;

pub(crate) use arguments::SoftswitchArguments;

use crate::failure::Failure;
use crate::messages::say;
use crate::run::load;
use clearway_lab::{Assembly, Laboratory, Scenario, ScenarioError};
use clearway_softswitch::{FabricPlan, LinkNames, SoftSwitch};
use clearway_units::{Bytes, Time};
use config::Config;
use std::process::ExitCode;

/// Bytes of IP, UDP and the header of `clearway-udp` that packets have beside the payload of the scenario, and some to spare.
const HEADERS: u32 = 128;
const ETHERNET: u16 = 1500;
const DEFAULT_HOST_QUEUE: Bytes = Bytes::new(4_000_000);

/// A fabric that is ready to be connected with devices.
struct Prepared {
    switch: SoftSwitch,
    names: LinkNames,
    mtu: u16,
    assembly: Assembly,
}

pub(crate) fn softswitch(
    laboratory: &Laboratory,
    arguments: &SoftswitchArguments,
) -> Result<ExitCode, Failure> {
    let config = Config::read(arguments)?;
    let scenario = load(laboratory, &config.scenario)?;
    let prepared = prepare(&config, &scenario)?;
    if scenario.switch.ports.control_priority && !arguments.quiet {
        say(
            "note: all packets of a link share one queue; `--set switch.control-priority=false` makes the simulator do the same",
        );
    }
    run(prepared, arguments)
}

fn prepare(config: &Config, scenario: &Scenario) -> Result<Prepared, Failure> {
    let about = |keys: &[&'static str], section, message: &str, fix: &str| {
        ScenarioError::about(keys, message, fix).or_in(scenario.places(), section, 0)
    };
    if scenario.switch.buffer.is_some() {
        return Err(about(
            &["kind"],
            "switch",
            "switches with a shared buffer and pause frames cannot be emulated",
            "use `switch.kind = \"lossy\"`",
        )
        .into());
    }
    if scenario.switch.ports.strict_priority {
        return Err(about(
            &["strict-priority"],
            "switch",
            "strict priority of classes cannot be emulated",
            "leave `switch.strict-priority` out",
        )
        .into());
    }
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
    let mut switch = SoftSwitch::new(&plan)
        .map_err(|unfit| about(&["kind"], "topology", &unfit.to_string(), unfit.fix()))?;
    let names = LinkNames::of(&assembly.topology);
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
    Ok(Prepared {
        switch,
        names,
        mtu,
        assembly,
    })
}

#[cfg(target_os = "linux")]
fn run(prepared: Prepared, arguments: &SoftswitchArguments) -> Result<ExitCode, Failure> {
    live::run(prepared, arguments)
}

#[cfg(not(target_os = "linux"))]
fn run(_: Prepared, _: &SoftswitchArguments) -> Result<ExitCode, Failure> {
    Err(Failure::new(
        "`clearway softswitch` needs network namespaces and TUN devices, which only Linux has\n  fix: run it on Linux, or in a virtual machine with Linux",
    ))
}

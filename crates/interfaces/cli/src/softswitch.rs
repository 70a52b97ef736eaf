//! `clearway softswitch`.

mod arguments;
mod config;
#[cfg(target_os = "linux")]
mod live;
mod prepared;
#[cfg(target_os = "linux")]
mod report;

pub(crate) use arguments::SoftswitchArguments;

use crate::failure::Failure;
use crate::messages::say;
use crate::run::load;
use clearway_lab::Laboratory;
use config::Config;
use prepared::Prepared;
use std::process::ExitCode;

pub(crate) fn softswitch(
    laboratory: &Laboratory,
    arguments: &SoftswitchArguments,
) -> Result<ExitCode, Failure> {
    let config = Config::read(arguments)?;
    let scenario = load(laboratory, &config.scenario)?;
    let prepared = Prepared::new(&config, &scenario)?;
    if scenario.switch.ports.control_priority && !arguments.quiet {
        say(
            "note: all packets of a link share one queue; `--set switch.control-priority=false` makes the simulator do the same",
        );
    }
    run(prepared, arguments)
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

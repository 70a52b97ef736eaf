//! `clearway testbed`: network namespaces as a fabric, and simulation against them.

mod arguments;
#[cfg(target_os = "linux")]
mod linux;

pub(crate) use arguments::TestbedArguments;

use crate::failure::Failure;
use clearway_lab::Laboratory;
use std::process::ExitCode;

#[cfg(target_os = "linux")]
pub(crate) fn testbed(
    laboratory: &Laboratory,
    arguments: &TestbedArguments,
) -> Result<ExitCode, Failure> {
    linux::testbed(laboratory, arguments)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn testbed(_: &Laboratory, _: &TestbedArguments) -> Result<ExitCode, Failure> {
    Err(Failure::new(
        "`clearway testbed` needs network namespaces, which only Linux has\n  fix: run it on Linux, or in a virtual machine with Linux",
    ))
}

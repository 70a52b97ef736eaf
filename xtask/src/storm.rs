//! Random scenarios against the program: builds the program and `storm/`, and starts the latter.

use crate::{Faults, output};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds both programs, and runs the storm with `options`.
pub(crate) fn run(root: &Path, options: &[&str]) -> Faults {
    match storm(root, options) {
        Ok(()) => Faults::new(),
        Err(fault) => vec![fault],
    }
}

fn storm(root: &Path, options: &[&str]) -> Result<(), String> {
    // With the features that tests of the workspace enable, so that its dependencies are already built.
    build(root, &["--workspace", "--bin", "clearway-storm"])?;
    build(root, &["--release", "--package", "clearway"])?;
    let target = target(root)?;
    let program = |path: &str| target.join(format!("{path}{}", std::env::consts::EXE_SUFFIX));
    let status = Command::new(program("debug/clearway-storm"))
        .arg("--program")
        .arg(program("release/clearway"))
        .arg("--out")
        .arg(target.join("storm"))
        .args(options)
        .current_dir(root)
        .status()
        .map_err(|error| format!("the storm cannot be started: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("storm: {status}")),
    }
}

fn build(root: &Path, what: &[&str]) -> Result<(), String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--quiet"]).args(what);
    output(command.current_dir(root)).map(drop)
}

/// The folder that cargo builds in.
fn target(root: &Path) -> Result<PathBuf, String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    let metadata = output(command.current_dir(root))?;
    let (_, rest) = metadata
        .split_once("\"target_directory\":\"")
        .ok_or("cargo names no target folder")?;
    let (folder, _) = rest.split_once('"').ok_or("cargo names no target folder")?;
    Ok(PathBuf::from(folder))
}

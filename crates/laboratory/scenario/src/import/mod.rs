//! Scenarios from the settings of other simulators: the command line of `htsim_uec`, HPCC's `config.txt`, `SimAI.conf`.
//!
//! An import sets the keys that the other simulator's settings correspond to, and the keys whose defaults differ, so that the scenario
//! is the other simulator's run. A comment at each key names its source. Settings without a counterpart stand at the end of the scenario
//! with their meaning; those that change results are also [warnings](Imported::warnings).
//!
//! An import reads the topology and the traffic, if they exist: thresholds and limits of queues can depend on rates, delays and hosts.
//!
//! **Architecture Invariant:** imports know no key's type or default. The scenario's reader checks every printed key.

mod draft;
mod hpcc;
mod htsim;
mod marks;
mod paths;
mod simai_files;

pub use draft::Imported;
pub use simai_files::SimaiFiles;

use crate::error::ScenarioError;
use clearway_formats::HtsimCommand;
use std::path::Path;

/// The scenario of a command line of `htsim_uec`, to lie in `folder`, or in the current folder.
///
/// # Errors
/// If an option or a file is wrong.
pub fn import_htsim(
    arguments: &[String],
    folder: Option<&Path>,
) -> Result<Imported, ScenarioError> {
    htsim::import(arguments, folder)
}

/// Names of all options of `htsim_uec`, with their dashes.
pub fn htsim_options() -> impl Iterator<Item = &'static str> {
    HtsimCommand::option_names()
}

/// The scenario of HPCC's configuration at `path`, to lie in `folder`, or in the current folder.
///
/// # Errors
/// If the configuration or a file that it names is wrong.
pub fn import_hpcc(path: &str, folder: Option<&Path>) -> Result<Imported, ScenarioError> {
    hpcc::import(path, None, folder)
}

/// The scenario of SimAI's configuration at `path` with its other files, to lie in `folder`, or in the current folder.
///
/// # Errors
/// If the configuration or the topology is wrong.
pub fn import_simai(
    path: &str,
    files: SimaiFiles<'_>,
    folder: Option<&Path>,
) -> Result<Imported, ScenarioError> {
    hpcc::import(path, Some(files), folder)
}

//! `clearway show`.

use crate::arguments::ShowArguments;
use crate::failure::Failure;
use crate::output::print;
use clearway_lab::Laboratory;
use clearway_plan::builtin_plans;
use clearway_sweep::builtin_sweeps;
use std::process::ExitCode;

pub(crate) fn show(
    laboratory: &Laboratory,
    arguments: &ShowArguments,
) -> Result<ExitCode, Failure> {
    let ShowArguments {
        name,
        resolved,
        overrides,
        ..
    } = arguments;
    print(&shown(laboratory, name, *resolved, overrides)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The text of a scenario or of a plan, or a scenario with every default written out.
///
/// # Errors
/// If there is no scenario or plan of this name, or it is invalid.
pub fn shown(
    laboratory: &Laboratory,
    name: &str,
    resolved: bool,
    overrides: &[String],
) -> Result<String, Failure> {
    let mut plans = builtin_plans().iter().chain(builtin_sweeps());
    let plan = plans.find(|(known, _)| *known == name);
    Ok(match (plan, resolved) {
        (Some(_), true) => {
            return Err(Failure::new(format!(
                "--resolved: `{name}` is a plan, and no scenario\n  fix: leave it out, and see `clearway explain plan` for defaults"
            )));
        }
        (Some((_, text)), false) => (*text).to_owned(),
        (None, true) => laboratory.load_any(name, overrides)?.resolved(),
        (None, false) => laboratory.text(name)?,
    })
}

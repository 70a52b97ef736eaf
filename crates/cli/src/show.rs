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
    let name = arguments.name.as_str();
    let mut plans = builtin_plans().iter().chain(builtin_sweeps());
    let plan = plans.find(|(known, _)| *known == name);
    let text = match (plan, arguments.resolved) {
        (Some(_), true) => {
            return Err(Failure::new(format!(
                "--resolved: `{name}` is a plan, and no scenario\n  fix: leave it out, and see `clearway explain plan` for defaults"
            )));
        }
        (Some((_, text)), false) => (*text).to_owned(),
        (None, true) => laboratory.load_any(name, &arguments.overrides)?.resolved(),
        (None, false) => laboratory.text(name)?,
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

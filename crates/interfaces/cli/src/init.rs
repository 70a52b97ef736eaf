//! `clearway init`.

use crate::arguments::InitArguments;
use crate::atomic_file::AtomicFile;
use crate::explain::catalogue;
use crate::failure::Failure;
use crate::output::print;
use clearway_lab::scenario::{NVLINK, ScaleupWorkloadKind, SwitchKind, starter};
use clearway_lab::units::{Value, nearest, suggestion};
use clearway_lab::{Assembly, Experiment, Laboratory, ScaleupAssembly, Scenario, ScenarioError};
use std::path::Path;
use std::process::ExitCode;

/// Name of the printed scenario.
const UNNAMED: &str = "my-scenario";

pub(crate) fn init(
    laboratory: &Laboratory,
    arguments: &InitArguments,
) -> Result<ExitCode, Failure> {
    let text = text(laboratory, arguments)?;
    if is_printed(arguments) {
        print(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let file = &arguments.file;
    if file.is_file() && !arguments.force {
        return Err(Failure::new(format!(
            "{}: there is such a file already\n  fix: name another one, or replace it with `--force`",
            file.display()
        )));
    }
    let whole = AtomicFile::create(file, "name a file that you may write")?;
    whole.publish(&text)?;
    let name = file.display();
    print(&format!("Wrote {name}; `clearway run {name}` runs it.\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn is_printed(arguments: &InitArguments) -> bool {
    arguments.file == Path::new("-")
}

/// The requested scenario, as text.
fn text(laboratory: &Laboratory, arguments: &InitArguments) -> Result<String, Failure> {
    check_kinds(laboratory, arguments)?;
    let overrides = overrides(arguments);
    let name = match arguments.file.file_stem() {
        Some(stem) if !is_printed(arguments) => stem.to_string_lossy(),
        _ => UNNAMED.into(),
    };
    let first = format!("name = {}\n", Value::Text(name.into_owned()));
    let read = |more: &[String]| {
        let all = [&overrides[..], more].concat();
        laboratory.read_any("the new scenario", &first, arguments.file.parent(), &all)
    };
    let mut experiment = read(&[])?;
    if let Experiment::Packets(scenario) = &experiment {
        experiment = read(&fitted(scenario).map_err(|error| not_to_run(&error))?)?;
    }
    let runs = match &experiment {
        Experiment::Packets(scenario) => Assembly::new(scenario).map(drop),
        Experiment::Scaleup(scenario) => ScaleupAssembly::new(scenario).map(drop),
    };
    runs.map_err(|error| not_to_run(&error))?;
    Ok(starter(&experiment.every_setting()))
}

/// All keys from the arguments.
fn overrides(arguments: &InitArguments) -> Vec<String> {
    let kinds = [
        ("topology", arguments.topology.clone()),
        ("switch", arguments.switch.clone()),
        ("transport", arguments.transport.clone()),
        ("injection", arguments.injection.clone()),
        ("workload", arguments.workload.clone()),
    ];
    let kinds = kinds
        .into_iter()
        .filter_map(|(section, kind)| Some(format!("{section}.kind={}", kind?)));
    kinds.chain(arguments.overrides.iter().cloned()).collect()
}

/// Rejects unknown kinds.
fn check_kinds(laboratory: &Laboratory, arguments: &InitArguments) -> Result<(), Failure> {
    let catalogue = catalogue(laboratory);
    let is_scaleup = arguments.topology.as_deref() == Some(NVLINK);
    let group = |name: &str| -> Vec<String> {
        let known = catalogue.group(name).unwrap_or_default();
        known.into_iter().map(|(name, _)| name).collect()
    };
    let scaleup_workloads = ScaleupWorkloadKind::KINDS.iter();
    let chosen = [
        (
            "--topology",
            &arguments.topology,
            [group("topologies"), vec![NVLINK.into()]].concat(),
        ),
        ("--switch", &arguments.switch, group("switches")),
        ("--transport", &arguments.transport, group("transports")),
        ("--injection", &arguments.injection, group("injection")),
        (
            "--workload",
            &arguments.workload,
            match is_scaleup {
                true => scaleup_workloads.map(|(name, _)| (*name).into()).collect(),
                false => group("workloads"),
            },
        ),
    ];
    for (option, kind, known) in chosen {
        let Some(kind) = kind.as_ref().filter(|kind| !known.contains(kind)) else {
            continue;
        };
        let all = format!("use one of: {}", known.join(", "));
        let fix = suggestion(nearest(kind, known.iter().map(String::as_str)), &all);
        return Err(Failure::new(format!(
            "{option} {kind}: there is no such kind\n  fix: {fix}"
        )));
    }
    Ok(())
}

/// Keys whose defaults do not fit the number of hosts or the transport, with values that do.
fn fitted(scenario: &Scenario) -> Result<Vec<String>, ScenarioError> {
    let topology = scenario.fabric()?.topology;
    let hosts = i64::from(topology.machines());
    let settings = scenario.settings();
    let defaults = settings.iter().filter(|setting| !setting.given);
    let fitted = defaults.filter_map(|setting| {
        let value = match (setting.path().as_str(), setting.key, &setting.value) {
            ("switch.kind", ..) if scenario.transport.expects_no_loss() => {
                SwitchKind::SharedBuffer.name().to_owned()
            }
            (_, "senders", Value::Integer(senders)) if *senders >= hosts => (hosts - 1).to_string(),
            (_, "ranks", Value::Text(_)) if needs_power_of_two(scenario) => {
                (1i64 << hosts.ilog2()).to_string()
            }
            _ => return None,
        };
        Some(format!("{}={value}", setting.path()))
    });
    Ok(fitted.collect())
}

fn needs_power_of_two(scenario: &Scenario) -> bool {
    let mut kinds = scenario.workloads.iter().map(|workload| workload.kind());
    kinds.any(|kind| kind == "halving-doubling")
}

/// Failure for a scenario that could be written, but would not run.
fn not_to_run(error: &ScenarioError) -> Failure {
    Failure::new(format!(
        "the scenario would not run: {}\n  fix: {}; `--set KEY=VALUE` sets any key",
        error.message, error.fix
    ))
}

#[cfg(test)]
mod tests;

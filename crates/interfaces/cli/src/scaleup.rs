//! Runs of scale-up fabrics: from a scenario to its results.

use crate::arguments::RunArguments;
use crate::failure::Failure;
use crate::messages::warn;
use crate::progress::{Console, Display, Interrupt};
use crate::run::{conclude, default_folder, inputs, no_results, refuse_deleting, say_status, show};
use clearway_lab::{RunProgress, ScaleupScenario};
use clearway_report::{FolderError, ResultFolder, SeriesRow, Summary};
use clearway_runs::scaleup::{ScaleupOutputs, assemble, record, simulate};
use clearway_runs::{RunWork, Stopwatch};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(
    arguments: &RunArguments,
    scenario: &ScaleupScenario,
) -> Result<ExitCode, Failure> {
    refuse_options(arguments)?;
    let target = arguments
        .out
        .clone()
        .unwrap_or_else(|| default_folder(&scenario.general.name, &scenario.hash()));
    let stopwatch = Stopwatch::start();
    let assembly = assemble(scenario)?;
    refuse_deleting(&target, &inputs(&arguments.scenario, scenario.files()))?;
    let unwritten = |error: FolderError| no_results(arguments, &error);
    let folder = ResultFolder::create(&target).map_err(unwritten)?;
    if !arguments.print.quiet {
        assembly.warnings.iter().for_each(|warning| warn(warning));
    }
    let outputs = ScaleupOutputs::create(folder, &assembly, !arguments.no_report);
    let mut outputs = outputs.map_err(unwritten)?;
    let (interrupt, console) = (Interrupt::install(), Console::new(arguments.print.quiet));
    let mut display = Display::of_work(RunWork::Operations(assembly.operations), &console);
    let on_progress = &mut |progress: RunProgress| display.update(&progress, &interrupt);
    let on_rows = &mut |rows: &[SeriesRow]| outputs.add(rows);
    let (finished, observed) = simulate(&assembly, arguments.threads, on_progress, on_rows);
    display.finish();
    let mut record = record(&assembly, &finished, &stopwatch);
    record.observed = observed;
    // Print before writing: a full disk must not cost the user the figures of a long run.
    let shown = show(arguments, &Summary::from_record(&record));
    let written = outputs.publish(&record);
    let place = match &written {
        Ok(()) => Some(target.clone()),
        Err(error) => error.kept().map(Path::to_owned),
    };
    Failure::all([shown, written.map_err(unwritten)])
        .and_then(|()| conclude(arguments, &target, &record.status))
        .inspect_err(|_| say_status(&record.status, place.as_deref()))
}

/// Rejects options for flows or packets.
fn refuse_options(arguments: &RunArguments) -> Result<(), Failure> {
    let rows = "`operations.parquet` has a row for each operation";
    let options = [
        ("--fct-txt", arguments.fct_txt.is_some(), rows),
        ("--htsim-txt", arguments.htsim_txt.is_some(), rows),
        (
            "--live",
            arguments.live,
            "the report of the finished run has its curves",
        ),
        (
            "--why",
            arguments.why,
            "`report.html` of the finished run says where the time of its operations went, and `operations.parquet` has a row for each",
        ),
    ];
    match options.iter().find(|(_, given, _)| *given) {
        None => Ok(()),
        Some((option, _, instead)) => Err(Failure::new(format!(
            "{option}: a scale-up fabric has operations and no flows\n  fix: leave it out; {instead}"
        ))),
    }
}

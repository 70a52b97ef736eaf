//! `clearway run`.

use crate::arguments::{RunArguments, SLOWEST};
use crate::dry_run;
use crate::failure::{Failure, with_causes};
use crate::kinds::Kind;
use crate::live::{self, Live};
use crate::messages::{say, warn};
use crate::output::print;
use crate::overwrite_check::{Input, is_same, refuse_input_in};
use crate::progress::{Console, Display, Interrupt};
use crate::scenario_arguments::ScenarioArguments;
use crate::text_file::TextFiles;
use crate::threads;
use crate::why;
use clearway_lab::record::Capture;
use clearway_lab::{
    Assembly, Experiment, Finished, Laboratory, RunDecision, Scenario, builtin_scenario,
};
use clearway_report::{FolderError, ResultFolder, RunRecord, Status, Summary, pcapng, timeline};
use clearway_report_text::summary_table;
use clearway_runs::watch::{self, ObservedRun, Watchers};
use clearway_runs::{FlowRows, Outputs, Results, Stopwatch, capture_warning, record, work_of};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Name of the scenario without a scenario argument.
const DEFAULT: &str = "the default scenario";
const TEXT_OF_DEFAULT: &str = "name = \"custom\"\n";

/// Loads the scenario that the arguments name, for any kind of fabric.
pub(crate) fn load_any(
    laboratory: &Laboratory,
    arguments: &ScenarioArguments,
) -> Result<Experiment, Failure> {
    let overrides = arguments.all_overrides();
    Ok(match &arguments.scenario {
        Some(name) => laboratory
            .load_any(name, &overrides)
            .map_err(|error| Kind::Scenario.explain(laboratory, name, error))?,
        None => laboratory.read_any(DEFAULT, TEXT_OF_DEFAULT, None, &overrides)?,
    })
}

/// Loads the scenario that the arguments name, for a packet fabric.
pub(crate) fn load(
    laboratory: &Laboratory,
    arguments: &ScenarioArguments,
) -> Result<Scenario, Failure> {
    let overrides = arguments.all_overrides();
    Ok(match &arguments.scenario {
        Some(name) => laboratory.load(name, &overrides)?,
        None => laboratory.read(DEFAULT, TEXT_OF_DEFAULT, None, &overrides)?,
    })
}

/// Prints the estimated cost of a run.
pub(crate) fn print_cost_estimate(
    arguments: &RunArguments,
    scenario: &Scenario,
) -> Result<ExitCode, Failure> {
    let assembly = Assembly::streaming(scenario)?;
    if !arguments.print.quiet {
        assembly.warnings.iter().for_each(|warning| warn(warning));
    }
    dry_run::run(&assembly)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn run(
    laboratory: &Laboratory,
    arguments: &RunArguments,
    scenario: &Scenario,
) -> Result<ExitCode, Failure> {
    let own = || default_folder(&scenario.general.name, &scenario.hash());
    let target = arguments.out.clone().unwrap_or_else(own);
    let stopwatch = Stopwatch::start();
    // The formats of other simulators need a list of all flows.
    let assembly = match arguments.fct_txt.is_some() || arguments.htsim_txt.is_some() {
        true => Assembly::new(scenario)?,
        false => Assembly::streaming(scenario)?,
    };
    // Open outputs before the run, which may be long, but after all checks of the scenario, so that an invalid scenario leaves no files
    // behind.
    let inputs = inputs(&arguments.scenario, scenario.files());
    refuse_deleting(&target, &inputs)?;
    let texts = TextFiles::prepare(arguments, &target, &inputs, &assembly)?;
    let live = Live::start(arguments, scenario, &assembly)?;
    let unwritten = |error: FolderError| no_results(arguments, &error);
    let folder = ResultFolder::create(&target).map_err(unwritten)?;
    if !arguments.print.quiet {
        assembly.warnings.iter().for_each(|warning| warn(warning));
        removed_files(&target, scenario, &assembly).for_each(|warning| warn(&warning));
    }
    let report = !arguments.no_report;
    let mut outputs = Outputs::create(folder, scenario, &assembly, report).map_err(unwritten)?;
    texts.reserve(&mut outputs.folder).map_err(unwritten)?;
    let rows = FlowRows::new(scenario, &assembly, &outputs.folder).map_err(unwritten)?;
    let interrupt = Interrupt::install();
    let watching = (&interrupt, live.as_ref());
    let (watch, rows) = simulate(&assembly, arguments, &mut outputs, rows, watching);
    let finished = &watch.finished;
    let mut record = record(scenario, &assembly, finished, &stopwatch);
    outputs.flows = rows.record(&mut record);
    (record.observed, record.events) = (watch.observed, watch.events);
    // Print before writing, and try each output even if others fail: a full disk must not cost the user the figures of a long run.
    let shown = show(arguments, &Summary::from_record(&record));
    remark(
        arguments,
        &assembly,
        &record,
        finished,
        watch.capture.as_ref(),
    );
    let written = outputs.publish(&Results {
        record: &record,
        finished,
        capture: watch.capture.as_ref(),
        texts: &texts.in_results(),
    });
    let texts = texts.publish(&assembly, finished);
    let place = match &written {
        Ok(()) => Some(target.clone()),
        Err(error) => error.kept().map(Path::to_owned),
    };
    if let Some(live) = &live {
        live.conclude(&record, place.as_deref());
    }
    let ended = Failure::all([shown, written.map_err(unwritten), texts])
        .and_then(|()| explain(laboratory, arguments, &target, &record.status))
        .and_then(|()| conclude(arguments, &target, &record.status))
        .inspect_err(|_| say_status(&record.status, place.as_deref()));
    if let Some(live) = live {
        live.stay(live::stay(arguments.live_stay, ended.is_ok()), &interrupt);
    }
    ended
}

/// Prints warnings and notes about a finished run.
fn remark(
    arguments: &RunArguments,
    assembly: &Assembly,
    record: &RunRecord,
    finished: &Finished,
    capture: Option<&Capture>,
) {
    if arguments.print.quiet {
        return;
    }
    record.packets.warnings().iter().for_each(|text| warn(text));
    threads::tell(arguments.threads, finished.rounds, assembly);
    if let Some(warning) = capture.and_then(capture_warning) {
        warn(&warning);
    }
}

/// The input files of a run, with `files` that its scenario names.
pub(crate) fn inputs(scenario: &ScenarioArguments, files: Vec<(String, PathBuf)>) -> Vec<Input> {
    let own = scenario.scenario.iter();
    let own = own.filter(|name| builtin_scenario(name).is_none());
    let own = own.map(|name| Input {
        what: "the scenario".into(),
        path: name.into(),
    });
    let named = files.into_iter().map(|(key, path)| Input {
        what: format!("`{key}`"),
        path,
    });
    own.chain(named).collect()
}

/// Fails if the run would delete its inputs. The resolved scenario of the replaced results is allowed, because that is how a user repeats a
/// run.
pub(crate) fn refuse_deleting(target: &Path, inputs: &[Input]) -> Result<(), Failure> {
    let is_resolved = |input: &Input| is_same(&input.path, &target.join("scenario.toml"));
    let others: Vec<Input> = inputs
        .iter()
        .filter(|input| !is_resolved(input))
        .cloned()
        .collect();
    refuse_input_in("--out", target, &others)
}

fn simulate(
    assembly: &Assembly,
    arguments: &RunArguments,
    outputs: &mut Outputs<'_>,
    mut flow_rows: FlowRows,
    (interrupt, live): (&Interrupt, Option<&Live<'_>>),
) -> (ObservedRun, FlowRows) {
    let console = Console::new(arguments.print.quiet);
    let mut display = Display::of_work(work_of(assembly), &console);
    if let Some(live) = live {
        live.announce();
    }
    let watchers = Watchers {
        on_progress: &mut |progress| match (display.update(&progress, interrupt), live) {
            (RunDecision::Continue, Some(live)) => live.on_round(progress, interrupt),
            (verdict, _) => verdict,
        },
        on_flow: &mut |id, flow, result| flow_rows.add(id, flow, result),
        events: outputs.wants_timeline(),
        on_rows: &mut |rows| {
            outputs.add(rows);
            if let Some(live) = live {
                live.on_rows(rows);
            }
        },
        on_frames: &mut |frames| {
            if let Some(live) = live {
                live.on_frames(frames);
            }
        },
    };
    let watch = watch::simulate(assembly, arguments.threads, watchers);
    display.finish();
    if let Some(live) = live {
        live.on_simulated();
    }
    (watch, flow_rows)
}

/// Failure for results that cannot be written.
pub(crate) fn no_results(arguments: &RunArguments, error: &FolderError) -> Failure {
    let place = match &arguments.out {
        Some(folder) => format!("--out {}: ", folder.display()),
        None => String::new(),
    };
    let fix = match error {
        FolderError::Partial { .. } => {
            "make sure that they are writable, and run the scenario again: the results are the same"
        }
        FolderError::Beside { .. } => {
            "move them to the folder, and close programs that use the former results"
        }
        _ => "name a folder with `--out` that does not exist yet, or that holds earlier results",
    };
    Failure::new(format!("{place}{}\n  fix: {fix}", with_causes(error)))
}

/// The result folder of a scenario with this name and hash.
pub(crate) fn default_folder(name: &str, hash: &str) -> PathBuf {
    PathBuf::from("out").join(format!("{}-{hash}", file_name(name)))
}

/// A name that is safe in a path: letters, digits, `-` and `_` stay unchanged.
pub(crate) fn file_name(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let safe = |c: char| if is_plain(c) { c } else { '-' };
    name.chars().map(safe).collect()
}

/// Prints the figures of a run.
pub(crate) fn show(arguments: &RunArguments, summary: &Summary) -> Result<(), Failure> {
    if arguments.print.json {
        print(&format!("{}\n", summary.to_json().trim_end()))
    } else if !arguments.print.quiet {
        print(&format!("{}\n", summary_table(summary).trim_end()))
    } else {
        Ok(())
    }
}

/// Explains the slowest flows, if requested.
fn explain(
    laboratory: &Laboratory,
    arguments: &RunArguments,
    target: &Path,
    status: &Status,
) -> Result<(), Failure> {
    if !arguments.why || *status == Status::Interrupted {
        return Ok(());
    }
    let question = why::WhyRequest {
        folder: target,
        flows: &[],
        slowest: SLOWEST.into(),
        job: None,
        iteration: None,
        threads: arguments.threads,
        json: false,
        // With `--json`, standard output has only the summary.
        quiet: arguments.print.quiet || arguments.print.json,
    };
    why::explain(laboratory, &question).map(|_| ())
}

/// Captures among the results, with the programs that open them; `None` if there are none.
fn captures(target: &Path) -> Option<String> {
    let viewers = [
        (pcapng::FILE_NAME, "Wireshark"),
        (timeline::FILE_NAME, "https://ui.perfetto.dev"),
    ];
    let captures: Vec<String> = viewers
        .iter()
        .filter(|(name, _)| target.join(name).exists())
        .map(|(name, viewer)| format!("{name} ({viewer})"))
        .collect();
    (!captures.is_empty()).then(|| format!("Captures   {}", captures.join(", ")))
}

/// Prints the location and the status of the results.
pub(crate) fn conclude(
    arguments: &RunArguments,
    target: &Path,
    status: &Status,
) -> Result<ExitCode, Failure> {
    match (arguments.print.json, arguments.print.quiet) {
        (_, true) => {}
        (false, false) => {
            let captures = captures(target).map_or_else(String::new, |line| line + "\n");
            print(&format!("Results    {}\n{captures}", target.display()))?;
        }
        // Standard output has only the document. A user who names the folder knows it.
        (true, false) if arguments.out.is_none() => {
            say(&format!("results in {}", target.display()));
        }
        (true, false) => {}
    }
    say_status(status, Some(target));
    Ok(match status {
        Status::Complete => ExitCode::SUCCESS,
        Status::Incomplete { .. } => ExitCode::from(1),
        Status::Interrupted => ExitCode::from(130),
    })
}

/// Prints why a run is incomplete, and where its partial results are kept.
pub(crate) fn say_status(status: &Status, kept: Option<&Path>) {
    let kept = |what: &str| match kept {
        Some(folder) => format!("{what} kept in {}", folder.display()),
        None => "nothing of it is kept".into(),
    };
    match status {
        Status::Complete => {}
        Status::Incomplete { reason } => {
            let kept = kept("what was simulated is");
            say(&format!("incomplete: {reason}; {kept}"));
        }
        Status::Interrupted => say(&format!("interrupted: {}", kept("partial results are"))),
    }
}

/// Warnings about files of an earlier run in the folder that this run does not write.
fn removed_files<'a>(
    target: &'a Path,
    scenario: &Scenario,
    assembly: &Assembly,
) -> impl Iterator<Item = String> + 'a {
    let files = [
        (
            pcapng::FILE_NAME,
            assembly.capture.is_some(),
            "`observe.trace.pcap`",
        ),
        (
            timeline::FILE_NAME,
            scenario.observe.perfetto,
            "`observe.trace.perfetto`",
        ),
    ];
    let lost = files.into_iter().filter(|(_, is_written, _)| !is_written);
    let lost = lost.filter(|(name, ..)| target.join(name).is_file());
    lost.map(|(name, _, key)| {
        format!(
            "{}: the {name} of an earlier run is removed with its other files, and this run does not write it ({key}); choose another folder with `--out`",
            target.display()
        )
    })
}

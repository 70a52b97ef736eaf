//! `clearway compare`.
//!
//! All inputs are read and checked completely before the first run starts. Runs go seed by seed through all variants, so an interrupted
//! comparison still has complete seeds.

mod folders;
mod labels;
mod plan;

use crate::arguments::CompareArguments;
use crate::atomic_file::AtomicFile;
use crate::dry_run;
use crate::failure::{Failure, with_causes};
use crate::messages::{say, warn};
use crate::output::print;
use crate::overwrite_check::{Input, refuse_input, refuse_input_in};
use crate::progress::{Console, Display, Interrupt};
use clearway_lab::{Experiment, Laboratory, RunDecision, RunProgress};
use clearway_report::comparison::FILE_NAME as DOCUMENT;
use clearway_report::fast_forward::warning;
use clearway_report::{ComparedRun, Comparison, FolderError, Origin, Status, Variant};
use clearway_report_html::{COMPARISON_FILE_NAME, ComparisonPage, render_comparison};
use clearway_report_text::comparison_table;
use clearway_runs::{REVISION, RunRequest, RunWatcher, RunWork, command_line, run};
use clearway_units::mix64;
use plan::{Planned, Source, plan};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Advice to the user if results cannot be written.
const FIX: &str = "choose another file or folder with --out";

pub(crate) fn compare(
    laboratory: &Laboratory,
    arguments: &CompareArguments,
) -> Result<ExitCode, Failure> {
    let planned = plan(laboratory, arguments)?;
    for variant in &planned {
        check(variant, arguments)?;
    }
    if arguments.dry_run {
        let variants: Vec<_> = planned.iter().map(Planned::to_run).collect();
        dry_run::compare(&variants)?;
        return Ok(ExitCode::SUCCESS);
    }
    let target = Target::from_arguments(arguments, &planned);
    target.refuse_inputs(&planned)?;
    let files = Files::create(&target)?;
    let total = planned.iter().map(Planned::runs_to_do).sum();
    let run = run_all(planned, arguments, &target, total)?;
    if run.variants.is_empty() {
        say("interrupted before a run was done: there is nothing to compare");
        return Ok(ExitCode::from(130));
    }
    let comparison = Comparison::from_variants(&run.variants);
    let has_all_packets = warn_of_remembered(&run.variants, arguments.print.quiet);
    let origin = Origin {
        version: env!("CARGO_PKG_VERSION").into(),
        revision: REVISION.into(),
        command: command_line(),
        complete: run.done == total,
    };
    let json = comparison.to_json(&origin);
    // Print before writing, and try each output even if others fail: a full disk must not cost the user the figures of long runs.
    let shown = match (arguments.print.json, arguments.print.quiet) {
        (true, _) => print(&json),
        (false, false) => print(&comparison_table(&comparison)),
        (false, true) => Ok(()),
    };
    let page = || {
        render_comparison(&ComparisonPage {
            comparison: &comparison,
            variants: &run.variants,
            origin: &origin,
        })
    };
    let written = files.publish(&json, page);
    let place = target.path().display();
    Failure::all([run.kept, shown, written])?;
    if !arguments.print.json && !arguments.print.quiet {
        let why = match target {
            Target::Folder(_) if has_all_packets => format!("Why      clearway why {place}\n"),
            _ => String::new(),
        };
        print(&format!("\nResults  {place}\n{why}"))?;
    }
    if run.done < total {
        say(&format!(
            "interrupted: {} of {total} runs are done; the comparison of those is kept in {place}",
            run.done
        ));
        return Ok(ExitCode::from(130));
    }
    Ok(match comparison.is_incomplete() {
        true => ExitCode::from(1),
        false => ExitCode::SUCCESS,
    })
}

/// Warns of variants whose runs remember calls or skip time, unless `quiet`; returns true if there are none.
fn warn_of_remembered(variants: &[Variant], quiet: bool) -> bool {
    let warnings: Vec<String> = variants.iter().filter_map(remembered).collect();
    if !quiet {
        warnings.iter().for_each(|text| warn(text));
    }
    warnings.is_empty()
}

/// Warning about a variant whose runs remember calls; `None` if they simulate every packet.
fn remembered(variant: &Variant) -> Option<String> {
    let runs = variant.runs.iter();
    let reports = runs.filter_map(|run| run.summary.fast_forward.as_ref());
    let reports = reports.filter(|own| own.is_inexact());
    let worst = reports.map(|own| own.estimated).max_by(f64::total_cmp)?;
    Some(format!("{}: {}", variant.label, warning(worst)))
}

/// Fails if a scenario of a variant is inconsistent; prints its warnings.
fn check(variant: &Planned, arguments: &CompareArguments) -> Result<(), Failure> {
    if let Source::Scenarios(scenarios) = &variant.source {
        // The first seed is enough, because a different seed cannot make a scenario invalid.
        let first = scenarios.first().expect("there is a seed");
        let refusal = |error| variant.refusal(&error);
        let warnings = clearway_runs::check(first).map_err(refusal)?;
        if !arguments.print.quiet {
            let warnings = warnings.iter();
            warnings.for_each(|warning| warn(&format!("{}: {warning}", variant.label)));
        }
    }
    Ok(())
}

/// Result of all runs.
struct Ran {
    /// Variants with runs, in the order of the arguments.
    variants: Vec<Variant>,
    /// Number of finished runs.
    done: usize,
    /// Failure if the results of a run could not be written.
    kept: Result<(), Failure>,
}

/// Runs the missing runs, seed by seed, until all are done or the user interrupts.
fn run_all(
    planned: Vec<Planned>,
    arguments: &CompareArguments,
    target: &Target,
    total: usize,
) -> Result<Ran, Failure> {
    let (interrupt, console) = (Interrupt::install(), Console::new(arguments.print.quiet));
    let most = planned.iter().map(Planned::runs_to_do).max().unwrap_or(0);
    let mut variants: Vec<Variant> = Vec::new();
    let mut to_do: Vec<Vec<Experiment>> = Vec::new();
    for variant in planned {
        let (runs, scenarios) = match variant.source {
            Source::Folders(runs) => (runs, Vec::new()),
            Source::Scenarios(scenarios) => (Vec::new(), scenarios),
        };
        let label = variant.label;
        variants.push(Variant { label, runs });
        to_do.push(scenarios);
    }
    let mut done = 0;
    let mut kept = Vec::new();
    'all: for seed in 0..most {
        for (place, scenarios) in to_do.iter().enumerate() {
            let Some(scenario) = scenarios.get(seed) else {
                continue;
            };
            let run = Run {
                arguments,
                console: &console,
                interrupt: &interrupt,
                folder: target.folder_of(place, scenario.general().seed),
                title: format!("run {} of {total}", done + 1),
            };
            let Some(simulated) = run.simulate(scenario)? else {
                break 'all;
            };
            variants[place].runs.push(simulated.run);
            kept.push(simulated.kept);
            done += 1;
        }
    }
    variants.retain(|variant| !variant.runs.is_empty());
    let kept = Failure::all(kept);
    Ok(Ran {
        variants,
        done,
        kept,
    })
}

/// A run to do.
struct Run<'a> {
    arguments: &'a CompareArguments,
    console: &'a Console,
    interrupt: &'a Interrupt,
    /// Folder for the results; `None` if they are not kept.
    folder: Option<PathBuf>,
    title: String,
}

/// A finished run.
struct Simulated {
    run: ComparedRun,
    /// Failure if the results could not be written.
    kept: Result<(), Failure>,
}

impl Run<'_> {
    /// Runs the scenario and keeps its results; `None` after an interrupt, because a part of a run cannot be compared. A run whose results
    /// cannot be written can still be compared.
    fn simulate(self, experiment: &Experiment) -> Result<Option<Simulated>, Failure> {
        let request = RunRequest {
            threads: self.arguments.threads,
            folder: self.folder.as_deref(),
            report: true,
            flow_rows: false,
            partial: false,
            command: None,
        };
        let mut watcher = DisplayedRun {
            run: &self,
            display: None,
        };
        let done = run(experiment, &request, &mut watcher)?;
        if done.record.status == Status::Interrupted {
            return Ok(None);
        }
        let kept = done.kept.map_err(|error| self.no_results(&error));
        let mut run = ComparedRun::from_record(done.record);
        let folder = self.folder.filter(|_| kept.is_ok());
        run.folder = folder.map(|folder| folder.display().to_string());
        Ok(Some(Simulated { run, kept }))
    }

    fn no_results(&self, error: &FolderError) -> Failure {
        let folder = self.folder.as_deref().unwrap_or(Path::new("")).display();
        Failure::new(format!("{folder}: {}\n  fix: {FIX}", with_causes(error)))
    }
}

/// Display of a run's progress.
struct DisplayedRun<'a> {
    run: &'a Run<'a>,
    display: Option<Display<'a>>,
}

impl RunWatcher for DisplayedRun<'_> {
    fn begin(&mut self, work: RunWork, _warnings: &[String]) {
        self.display = Some(Display::of_work(work, self.run.console).titled(&self.run.title));
    }

    fn progress(&mut self, progress: RunProgress) -> RunDecision {
        let display = self.display.as_mut();
        display.map_or(RunDecision::Continue, |display| {
            display.update(&progress, self.run.interrupt)
        })
    }

    fn end(&mut self) {
        self.display.take().into_iter().for_each(Display::finish);
    }
}

/// Destination of the results.
enum Target {
    /// `compare.html`, `compare.json`, and the results of all runs.
    Folder(PathBuf),
    /// The document alone.
    Json(PathBuf),
    /// The page alone.
    Page(PathBuf),
}

impl Target {
    fn from_arguments(arguments: &CompareArguments, planned: &[Planned]) -> Self {
        let Some(out) = arguments.out.clone() else {
            let name = format!("compare-{:08x}", fingerprint(planned));
            return Self::Folder(PathBuf::from("out").join(name));
        };
        match out.extension().and_then(|extension| extension.to_str()) {
            Some("json") => Self::Json(out),
            Some("html") => Self::Page(out),
            _ => Self::Folder(out),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Folder(path) | Self::Json(path) | Self::Page(path) => path,
        }
    }

    /// Fails if the outputs would overwrite a compared folder, or delete it with former results.
    fn refuse_inputs(&self, planned: &[Planned]) -> Result<(), Failure> {
        let inputs: Vec<Input> = planned.iter().flat_map(Planned::inputs).collect();
        let Self::Folder(folder) = self else {
            return refuse_input("--out", self.path(), &inputs);
        };
        for name in [DOCUMENT, COMPARISON_FILE_NAME] {
            refuse_input("--out", &folder.join(name), &inputs)?;
        }
        for (place, variant) in planned.iter().enumerate() {
            if let Source::Scenarios(scenarios) = &variant.source {
                for run in scenarios
                    .iter()
                    .filter_map(|run| self.folder_of(place, run.general().seed))
                {
                    refuse_input_in("--out", &run, &inputs)?;
                }
            }
        }
        Ok(())
    }

    /// Folder for the results of a run of the variant at `place`; `None` if results are not kept.
    fn folder_of(&self, place: usize, seed: u64) -> Option<PathBuf> {
        match self {
            Self::Json(_) | Self::Page(_) => None,
            Self::Folder(folder) => {
                let id = clearway_report::comparison::letters(place);
                Some(folder.join(format!("{id}-seed{seed}")))
            }
        }
    }
}

/// Number that is equal for comparisons of the same inputs.
fn fingerprint(planned: &[Planned]) -> u64 {
    let mut text = String::new();
    for variant in planned {
        text += &variant.label;
        let hashes: Vec<String> = match &variant.source {
            Source::Folders(runs) => runs
                .iter()
                .map(|run| run.summary.scenario.hash.clone())
                .collect(),
            Source::Scenarios(scenarios) => scenarios.iter().map(Experiment::hash).collect(),
        };
        text += &format!(" {}\n", hashes.join(" "));
    }
    let hash = text
        .bytes()
        .fold(0, |hash, byte| mix64(hash ^ u64::from(byte)));
    hash >> 32
}

/// The files of a comparison under construction.
struct Files {
    json: Option<AtomicFile>,
    page: Option<AtomicFile>,
}

impl Files {
    fn create(target: &Target) -> Result<Self, Failure> {
        let (json, page) = match target {
            Target::Folder(folder) => (
                Some(folder.join(DOCUMENT)),
                Some(folder.join(COMPARISON_FILE_NAME)),
            ),
            Target::Json(path) => (Some(path.clone()), None),
            Target::Page(path) => (None, Some(path.clone())),
        };
        let create = |path: Option<PathBuf>| {
            let file = path.map(|path| AtomicFile::create(&path, FIX));
            file.transpose()
        };
        Ok(Self {
            json: create(json)?,
            page: create(page)?,
        })
    }

    /// Publishes all files. A failure of one file does not stop the others.
    fn publish(self, json: &str, page: impl FnOnce() -> String) -> Result<(), Failure> {
        let json = self.json.map_or(Ok(()), |file| file.publish(json));
        let page = self.page.map_or(Ok(()), |file| file.publish(&page()));
        Failure::all([json, page])
    }
}

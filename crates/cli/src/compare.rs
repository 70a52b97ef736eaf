//! `clearway compare`.
//!
//! What is named is read and checked in full before the first run starts. Runs go seed by seed through all variants, so that
//! whoever interrupts them is left with a comparison over fewer seeds.

mod folders;
mod plan;

use crate::arguments::CompareArguments;
use crate::failure::{Failure, with_causes};
use crate::flow_rows::FlowRows;
use crate::measure::Stopwatch;
use crate::output::print;
use crate::progress::{Display, Interrupt};
use crate::record::{REVISION, command_line, record};
use crate::report_page;
use crate::run::Outputs;
use crate::watch::{self, Watchers};
use crate::whole_file::WholeFile;
use clearway_lab::{Assembly, Scenario};
use clearway_report::page::{COMPARISON_FILE_NAME, ComparisonPage, render_comparison};
use clearway_report::{
    ComparedRun, Comparison, FolderError, Origin, ResultFolder, RunRecord, Status, Variant,
};
use clearway_units::mix64;
use plan::{Planned, Source, plan};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What to do about results that cannot be written.
const FIX: &str = "choose another file or folder with --out";

pub(crate) fn compare(arguments: &CompareArguments) -> Result<ExitCode, Failure> {
    let planned = plan(arguments)?;
    for variant in &planned {
        check(variant, arguments)?;
    }
    let target = Target::of(arguments, &planned);
    let files = Files::create(&target)?;
    let total = planned.iter().map(Planned::runs_to_do).sum();
    let run = run_all(planned, arguments, &target, total)?;
    if run.variants.is_empty() {
        eprintln!("interrupted before a run was done: there is nothing to compare");
        return Ok(ExitCode::from(130));
    }
    let comparison = Comparison::of(&run.variants);
    let origin = Origin {
        version: env!("CARGO_PKG_VERSION").into(),
        revision: REVISION.into(),
        command: command_line(),
        complete: run.done == total,
    };
    let json = comparison.to_json(&origin);
    // Shown before it is written: a full disk must not cost the user the figures of long runs.
    if arguments.json {
        print(&json);
    } else if !arguments.quiet {
        print(&comparison.to_table());
    }
    let page = || {
        render_comparison(&ComparisonPage {
            comparison: &comparison,
            variants: &run.variants,
            origin: &origin,
        })
    };
    files.publish(&json, page)?;
    let place = target.path().display();
    if !arguments.json && !arguments.quiet {
        print(&format!("\nResults  {place}\n"));
    }
    if run.done < total {
        eprintln!(
            "interrupted: {} of {total} runs are done; the comparison of those is kept in {place}",
            run.done
        );
        return Ok(ExitCode::from(130));
    }
    Ok(match comparison.is_incomplete() {
        true => ExitCode::from(1),
        false => ExitCode::SUCCESS,
    })
}

/// Fails if the scenarios of a variant do not fit together, and passes on what they are warned of.
fn check(variant: &Planned, arguments: &CompareArguments) -> Result<(), Failure> {
    if let Source::Scenarios(scenarios) = &variant.source {
        // Its seeds differ in nothing that could be wrong.
        let first = scenarios.first().expect("there is a seed");
        let assembly = Assembly::streaming(first).map_err(|error| variant.refusal(&error))?;
        if !arguments.quiet {
            let warnings = assembly.warnings.iter();
            warnings.for_each(|warning| eprintln!("warning: {}: {warning}", variant.label));
        }
    }
    Ok(())
}

/// What has been run.
struct Ran {
    /// Those with runs, in the order in which they were named.
    variants: Vec<Variant>,
    /// How many runs were done.
    done: usize,
}

/// Runs what is not there yet, seed by seed, until all is done or the user interrupts.
fn run_all(
    planned: Vec<Planned>,
    arguments: &CompareArguments,
    target: &Target,
    total: usize,
) -> Result<Ran, Failure> {
    let interrupt = Interrupt::install();
    let most = planned.iter().map(Planned::runs_to_do).max().unwrap_or(0);
    let mut variants: Vec<Variant> = Vec::new();
    let mut to_do: Vec<Vec<Scenario>> = Vec::new();
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
    'all: for seed in 0..most {
        for (place, scenarios) in to_do.iter().enumerate() {
            let Some(scenario) = scenarios.get(seed) else {
                continue;
            };
            let run = Run {
                scenario,
                arguments,
                folder: target.folder_of(place, scenario),
                title: format!("run {} of {total}  ", done + 1),
            };
            let Some(run) = run.simulate(&interrupt)? else {
                break 'all;
            };
            variants[place].runs.push(run);
            done += 1;
        }
    }
    variants.retain(|variant| !variant.runs.is_empty());
    Ok(Ran { variants, done })
}

/// A run that is to be done.
struct Run<'a> {
    scenario: &'a Scenario,
    arguments: &'a CompareArguments,
    /// Where its results are kept, if they are.
    folder: Option<PathBuf>,
    title: String,
}

impl Run<'_> {
    /// Runs it and keeps its results; `None` if it was interrupted: a part of a run compares with nothing.
    fn simulate(self, interrupt: &Interrupt) -> Result<Option<ComparedRun>, Failure> {
        let stopwatch = Stopwatch::start();
        let assembly = Assembly::streaming(self.scenario)?;
        let mut outputs = match &self.folder {
            None => None,
            Some(path) => {
                let outputs = ResultFolder::create(path)
                    .and_then(|folder| Outputs::create(folder, self.scenario, &assembly));
                Some(outputs.map_err(|error| self.no_results(&error))?)
            }
        };
        let (quiet, threads) = (
            self.arguments.quiet || self.arguments.json,
            self.arguments.threads,
        );
        let mut display = Display::new(assembly.flow_count(), quiet).titled(&self.title);
        let folder = outputs.as_ref().map(|outputs| &outputs.folder);
        let rows = FlowRows::new(self.scenario, &assembly, folder);
        let mut rows = rows.map_err(|error| self.no_results(&error))?;
        let watchers = Watchers {
            on_progress: &mut |progress| display.update(&progress, interrupt),
            on_flow: &mut |id, flow, result| rows.add(id, flow, result),
            happenings: outputs.as_ref().is_some_and(|outputs| outputs.timeline),
            on_rows: &mut |rows| outputs.iter_mut().for_each(|outputs| outputs.add(rows)),
        };
        let watch = watch::simulate(&assembly, threads.into(), watchers);
        display.finish();
        let mut record: RunRecord = record(
            self.scenario,
            &assembly,
            &watch.finished,
            threads,
            &stopwatch,
        );
        let flows = rows.record(&mut record);
        record.observed = watch.observed;
        record.happenings = watch.happenings;
        if record.status == Status::Interrupted {
            return Ok(None);
        }
        if let Some(mut outputs) = outputs {
            outputs.flows = flows;
            let capture = watch.capture.as_ref();
            let written = capture
                .map_or(Ok(()), |capture| {
                    outputs.add_capture(self.scenario, &assembly, capture, &watch.finished)
                })
                .and_then(|()| report_page::write(&outputs.folder, self.scenario, &record));
            written
                .and_then(|()| outputs.publish(&record))
                .map_err(|error| self.no_results(&error))?;
        }
        let mut run = ComparedRun::of(record);
        run.folder = self.folder.map(|folder| folder.display().to_string());
        Ok(Some(run))
    }

    fn no_results(&self, error: &FolderError) -> Failure {
        let folder = self.folder.as_deref().unwrap_or(Path::new("")).display();
        Failure::new(format!("{folder}: {}\n  fix: {FIX}", with_causes(error)))
    }
}

/// Where the results go.
enum Target {
    /// `compare.html`, `compare.json`, and the results of all runs.
    Folder(PathBuf),
    /// The document alone.
    Json(PathBuf),
    /// The page alone.
    Page(PathBuf),
}

impl Target {
    fn of(arguments: &CompareArguments, planned: &[Planned]) -> Self {
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

    /// Where the results of a run of the variant at `place` are kept, if they are.
    fn folder_of(&self, place: usize, scenario: &Scenario) -> Option<PathBuf> {
        match self {
            Self::Json(_) | Self::Page(_) => None,
            Self::Folder(folder) => {
                let id = clearway_report::comparison::letters(place);
                Some(folder.join(format!("{id}-seed{}", scenario.general.seed)))
            }
        }
    }
}

/// Equal for comparisons of the same things.
fn fingerprint(planned: &[Planned]) -> u64 {
    let mut text = String::new();
    for variant in planned {
        text += &variant.label;
        let hashes: Vec<String> = match &variant.source {
            Source::Folders(runs) => runs
                .iter()
                .map(|run| run.summary.scenario.hash.clone())
                .collect(),
            Source::Scenarios(scenarios) => scenarios.iter().map(Scenario::hash).collect(),
        };
        text += &format!(" {}\n", hashes.join(" "));
    }
    let hash = text
        .bytes()
        .fold(0, |hash, byte| mix64(hash ^ u64::from(byte)));
    hash >> 32
}

/// The files of a comparison in the making.
struct Files {
    json: Option<WholeFile>,
    page: Option<WholeFile>,
}

impl Files {
    fn create(target: &Target) -> Result<Self, Failure> {
        let (json, page) = match target {
            Target::Folder(folder) => (
                Some(folder.join("compare.json")),
                Some(folder.join(COMPARISON_FILE_NAME)),
            ),
            Target::Json(path) => (Some(path.clone()), None),
            Target::Page(path) => (None, Some(path.clone())),
        };
        let create = |path: Option<PathBuf>| {
            let file = path.map(|path| WholeFile::create(&path, FIX));
            file.transpose()
        };
        Ok(Self {
            json: create(json)?,
            page: create(page)?,
        })
    }

    fn publish(self, json: &str, page: impl FnOnce() -> String) -> Result<(), Failure> {
        if let Some(file) = self.json {
            file.publish(json)?;
        }
        if let Some(file) = self.page {
            file.publish(&page())?;
        }
        Ok(())
    }
}

//! `clearway run`.

use crate::arguments::{RunArguments, ScenarioArguments};
use crate::capture_file;
use crate::failure::{Failure, with_causes};
use crate::flow_rows::{FlowRows, FlowsFile};
use crate::live::Live;
use crate::measure::Stopwatch;
use crate::output::print;
use crate::progress::{Display, Interrupt};
use crate::record::record;
use crate::report_page;
use crate::series_file::SeriesFile;
use crate::text_file::TextFiles;
use crate::threads;
use crate::timeline_file;
use crate::watch::{self, Watch, Watchers};
use clearway_lab::record::Capture;
use clearway_lab::scenario::Sampling;
use clearway_lab::{Assembly, Finished, Laboratory, Scenario, Verdict};
use clearway_report::{
    FolderError, ResultFolder, RunRecord, SeriesRow, Status, Summary, summary_table,
};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Loads the scenario that the arguments name.
pub(crate) fn load(
    laboratory: &Laboratory,
    arguments: &ScenarioArguments,
) -> Result<Scenario, Failure> {
    let overrides = arguments.all_overrides();
    Ok(match &arguments.scenario {
        Some(name) => laboratory.load(name, &overrides)?,
        None => laboratory.read(
            "the default scenario",
            "name = \"custom\"\n",
            None,
            &overrides,
        )?,
    })
}

pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let scenario = load(&Laboratory::new(), &arguments.scenario)?;
    let target = arguments
        .out
        .clone()
        .unwrap_or_else(|| default_folder(&scenario));
    let stopwatch = Stopwatch::start();
    // The formats of other simulators are made of a list of all flows.
    let assembly = match arguments.fct_txt.is_some() || arguments.htsim_txt.is_some() {
        true => Assembly::new(&scenario)?,
        false => Assembly::streaming(&scenario)?,
    };
    // Before the run, which may be long, but after everything that can be wrong with the scenario: that leaves nothing behind.
    let texts = TextFiles::prepare(arguments, &target, &assembly)?;
    let live = Live::start(arguments, &scenario, &assembly)?;
    let folder = ResultFolder::create(&target).map_err(|error| no_results(arguments, &error))?;
    if !arguments.quiet {
        assembly
            .warnings
            .iter()
            .for_each(|warning| eprintln!("warning: {warning}"));
    }
    let unwritten = |error: FolderError| no_results(arguments, &error);
    let mut outputs = Outputs::create(folder, &scenario, &assembly).map_err(unwritten)?;
    let rows = FlowRows::new(&scenario, &assembly, Some(&outputs.folder)).map_err(unwritten)?;
    let (watch, rows) = simulate(&assembly, arguments, &mut outputs, rows, live.as_ref());
    let finished = &watch.finished;
    let mut record = record(
        &scenario,
        &assembly,
        finished,
        arguments.threads,
        &stopwatch,
    );
    outputs.flows = rows.record(&mut record);
    record.observed = watch.observed;
    record.happenings = watch.happenings;
    // Shown before it is written: a full disk must not cost the user the figures of a long run.
    show(arguments, &Summary::of(&record));
    if !arguments.quiet
        && let Some(note) = threads::note(arguments.threads, finished.rounds, &assembly)
    {
        eprintln!("{note}");
    }
    if !arguments.no_report {
        report_page::write(&outputs.folder, &scenario, &record).map_err(unwritten)?;
    }
    texts
        .write(&outputs.folder, &assembly, finished)
        .map_err(unwritten)?;
    if let Some(capture) = &watch.capture {
        outputs
            .add_capture(&scenario, &assembly, capture, finished)
            .map_err(unwritten)?;
        if !arguments.quiet {
            capture_file::warn(capture);
        }
    }
    outputs.publish(&record).map_err(unwritten)?;
    texts.publish(&assembly, finished)?;
    if let Some(live) = live {
        live.conclude(&record, &target);
    }
    Ok(conclude(arguments, &target, &record.status))
}

/// The result folder in the making, and files in it that grow while the run goes on.
pub(crate) struct Outputs<'a> {
    pub(crate) folder: ResultFolder,
    /// If rows of flows are written while the run goes on.
    pub(crate) flows: Option<Box<FlowsFile>>,
    /// If anything is sampled.
    series: Option<SeriesFile<'a>>,
    /// A timeline is wanted.
    pub(crate) timeline: bool,
}

impl<'a> Outputs<'a> {
    pub(crate) fn create(
        folder: ResultFolder,
        scenario: &Scenario,
        assembly: &'a Assembly,
    ) -> Result<Self, FolderError> {
        folder.write("scenario.toml", scenario.resolved())?;
        let series = match scenario.observe.every {
            Sampling::Off => None,
            _ => Some(SeriesFile::create(&folder, scenario, assembly)?),
        };
        Ok(Self {
            folder,
            flows: None,
            series,
            timeline: scenario.observe.perfetto,
        })
    }

    /// Adds the rows of a sample.
    pub(crate) fn add(&mut self, rows: &[SeriesRow]) {
        if let Some(series) = &mut self.series {
            series.add(rows);
        }
    }

    /// Adds the frames that were captured.
    pub(crate) fn add_capture(
        &self,
        scenario: &Scenario,
        assembly: &Assembly,
        capture: &Capture,
        finished: &Finished,
    ) -> Result<(), FolderError> {
        capture_file::write(&self.folder, scenario, assembly, capture, finished)
    }

    /// Completes the files and puts the folder in place.
    pub(crate) fn publish(self, record: &RunRecord) -> Result<(), FolderError> {
        if let Some(flows) = self.flows {
            flows.finish(&self.folder)?;
        }
        if let Some(series) = self.series {
            series.finish(&self.folder)?;
        }
        if self.timeline {
            timeline_file::write(&self.folder, record)?;
        }
        self.folder.publish(record)?;
        Ok(())
    }
}

fn simulate(
    assembly: &Assembly,
    arguments: &RunArguments,
    outputs: &mut Outputs<'_>,
    mut flow_rows: FlowRows,
    live: Option<&Live<'_>>,
) -> (Watch, FlowRows) {
    let interrupt = Interrupt::install();
    let mut display = Display::new(assembly.flow_count(), arguments.quiet || arguments.json);
    if let Some(live) = live {
        live.announce();
    }
    let watchers = Watchers {
        on_progress: &mut |progress| match (display.update(&progress, &interrupt), live) {
            (Verdict::Continue, Some(live)) => live.on_round(progress, &interrupt),
            (verdict, _) => verdict,
        },
        on_flow: &mut |id, flow, result| flow_rows.add(id, flow, result),
        happenings: outputs.timeline,
        on_rows: &mut |rows| {
            outputs.add(rows);
            if let Some(live) = live {
                live.on_rows(rows);
            }
        },
    };
    let watch = watch::simulate(assembly, arguments.threads.into(), watchers);
    display.finish();
    if let Some(live) = live {
        live.on_simulated();
    }
    (watch, flow_rows)
}

/// Results that cannot be written.
fn no_results(arguments: &RunArguments, error: &dyn std::error::Error) -> Failure {
    let place = match &arguments.out {
        Some(folder) => format!("--out {}: ", folder.display()),
        None => String::new(),
    };
    Failure::new(format!(
        "{place}{}\n  fix: name a folder with `--out` that does not exist yet, or that holds earlier results",
        with_causes(error)
    ))
}

fn default_folder(scenario: &Scenario) -> PathBuf {
    let name: String = scenario
        .general
        .name
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || c == '-' || c == '_' {
                c
            } else {
                '-'
            }
        })
        .collect();
    PathBuf::from("out").join(format!("{name}-{}", scenario.hash()))
}

/// Prints the figures of a run.
fn show(arguments: &RunArguments, summary: &Summary) {
    if arguments.json {
        print(&format!("{}\n", summary.to_json().trim_end()));
    } else if !arguments.quiet {
        print(&format!("{}\n", summary_table(summary).trim_end()));
    }
}

/// Says where the results are, and what they are not.
fn conclude(arguments: &RunArguments, target: &Path, status: &Status) -> ExitCode {
    let folder = target.display();
    if !arguments.json && !arguments.quiet {
        print(&format!("Results    {folder}\n"));
    }
    match status {
        Status::Complete => ExitCode::SUCCESS,
        Status::Incomplete { reason } => {
            eprintln!("incomplete: {reason}; what was simulated is kept in {folder}");
            ExitCode::from(1)
        }
        Status::Interrupted => {
            eprintln!("interrupted: partial results are kept in {folder}");
            ExitCode::from(130)
        }
    }
}

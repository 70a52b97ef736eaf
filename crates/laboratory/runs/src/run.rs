//! A whole run in one call.

use crate::flow_rows::{FlowRows, FlowsFile};
use crate::outputs::{Outputs, Results};
use crate::process_usage::Stopwatch;
use crate::record::record;
use crate::scaleup::{self, ScaleupOutputs};
use crate::watch::{self, ObservedRun, Watchers};
use clearway_lab::{
    Assembly, Experiment, RunDecision, RunProgress, ScaleupScenario, Scenario, ScenarioError,
    Threads,
};
use clearway_report::{FolderError, ResultFolder, RunRecord, SeriesRow, Status};
use std::cell::RefCell;
use std::path::Path;

/// Request for a run.
#[derive(Debug, Clone, Copy)]
pub struct RunRequest<'a> {
    /// Worker threads.
    pub threads: Threads,
    /// Folder of the results, if they are kept.
    pub folder: Option<&'a Path>,
    /// True if the results include a report.
    pub report: bool,
    /// True if all rows of flows stay in the record. Otherwise only sizes and times stay, and rows go to the folder during the run.
    pub flow_rows: bool,
    /// True if the results of an interrupted run are also kept.
    pub partial: bool,
    /// Command to record with the results; `None` for the command that started the process.
    pub command: Option<&'a str>,
}

/// A finished run.
#[derive(Debug)]
pub struct CompletedRun {
    /// Record of the run.
    pub record: RunRecord,
    /// The scenario with every default written out.
    pub resolved: String,
    /// Error if the results could not be kept; the record is complete even then.
    pub kept: Result<(), FolderError>,
}

/// Amount of work of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunWork {
    /// Work of a packet fabric.
    Flows {
        /// Number of flows.
        flows: u64,
        /// Packet-hops without retransmissions.
        packet_hops: u64,
    },
    /// Number of operations of a scale-up fabric.
    Operations(u64),
}

/// Work of a run of packets.
pub fn work_of(assembly: &Assembly) -> RunWork {
    RunWork::Flows {
        flows: assembly.flow_count() as u64,
        packet_hops: assembly.expected_work().packet_hops,
    }
}

/// Watcher of a run.
pub trait RunWatcher {
    /// Called before the run, with the warnings about its scenario.
    fn begin(&mut self, work: RunWork, warnings: &[String]);

    /// Called after each round; the returned decision stops or continues the run.
    fn progress(&mut self, progress: RunProgress) -> RunDecision;

    /// Called with the rows of each sample.
    fn rows(&mut self, _rows: &[SeriesRow]) {}

    /// Called after the last round.
    fn end(&mut self) {}

    /// False if a dependency of the run has failed; its results are then invalid and are not kept.
    fn is_valid(&self) -> bool {
        true
    }
}

/// Runs a scenario and keeps its results. Results that cannot be kept do not prevent the run.
///
/// # Errors
/// If the parts of the scenario do not fit together.
pub fn run(
    experiment: &Experiment,
    request: &RunRequest<'_>,
    watcher: &mut dyn RunWatcher,
) -> Result<CompletedRun, ScenarioError> {
    match experiment {
        Experiment::Packets(scenario) => run_packets(scenario, request, watcher),
        Experiment::Scaleup(scenario) => run_scaleup(scenario, request, watcher),
    }
}

/// Assembles a scenario without a run, and returns its warnings.
///
/// # Errors
/// If its parts do not fit together.
pub fn check(experiment: &Experiment) -> Result<Vec<String>, ScenarioError> {
    Ok(match experiment {
        Experiment::Packets(scenario) => Assembly::streaming(scenario)?.warnings,
        Experiment::Scaleup(scenario) => scaleup::assemble(scenario)?.warnings,
    })
}

fn run_packets(
    scenario: &Scenario,
    request: &RunRequest<'_>,
    watcher: &mut dyn RunWatcher,
) -> Result<CompletedRun, ScenarioError> {
    let stopwatch = Stopwatch::start();
    let assembly = match request.flow_rows {
        true => Assembly::new(scenario)?,
        false => Assembly::streaming(scenario)?,
    };
    watcher.begin(work_of(&assembly), &assembly.warnings);
    let unkept = || FlowRows::unkept(&assembly);
    let (mut outputs, mut rows, prepared) = match outputs(scenario, &assembly, request) {
        Ok(Some((outputs, rows))) => (Some(outputs), rows, Ok(())),
        Ok(None) => (None, unkept(), Ok(())),
        Err(error) => (None, unkept(), Err(error)),
    };
    let watcher = RefCell::new(watcher);
    let watchers = Watchers {
        on_progress: &mut |progress| watcher.borrow_mut().progress(progress),
        on_flow: &mut |id, flow, result| rows.add(id, flow, result),
        events: outputs.as_ref().is_some_and(Outputs::wants_timeline),
        on_frames: &mut |_| (),
        on_rows: &mut |rows| {
            outputs.iter_mut().for_each(|outputs| outputs.add(rows));
            watcher.borrow_mut().rows(rows);
        },
    };
    let mut watch = watch::simulate(&assembly, request.threads, watchers);
    watcher.borrow_mut().end();
    let mut record = record(scenario, &assembly, &watch.finished, &stopwatch);
    name_command(&mut record, request);
    let flows = rows.record(&mut record);
    record.observed = watch.observed.take();
    record.events = watch.events.take();
    let is_kept = watcher.borrow().is_valid() && is_kept(&record, request);
    let wanted = outputs.filter(|_| is_kept);
    let kept = prepared.and_then(|()| {
        let publish = |outputs| publish(outputs, flows, &record, &watch);
        wanted.map_or(Ok(()), publish)
    });
    Ok(CompletedRun {
        resolved: assembly.resolved(scenario),
        record,
        kept,
    })
}

fn name_command(record: &mut RunRecord, request: &RunRequest<'_>) {
    if let Some(command) = request.command {
        record.command = command.into();
    }
}

/// The result folder, if results are kept.
fn outputs<'a>(
    scenario: &'a Scenario,
    assembly: &'a Assembly,
    request: &RunRequest<'_>,
) -> Result<Option<(Outputs<'a>, FlowRows)>, FolderError> {
    let Some(path) = request.folder else {
        return Ok(None);
    };
    let folder = ResultFolder::create(path)?;
    let outputs = Outputs::create(folder, scenario, assembly, request.report)?;
    let rows = FlowRows::new(scenario, assembly, &outputs.folder)?;
    Ok(Some((outputs, rows)))
}

fn publish(
    mut outputs: Outputs<'_>,
    flows: Option<Box<FlowsFile>>,
    record: &RunRecord,
    watch: &ObservedRun,
) -> Result<(), FolderError> {
    outputs.flows = flows;
    outputs.publish(&Results {
        record,
        finished: &watch.finished,
        capture: watch.capture.as_ref(),
        texts: &[],
    })
}

fn run_scaleup(
    scenario: &ScaleupScenario,
    request: &RunRequest<'_>,
    watcher: &mut dyn RunWatcher,
) -> Result<CompletedRun, ScenarioError> {
    let stopwatch = Stopwatch::start();
    let assembly = scaleup::assemble(scenario)?;
    watcher.begin(RunWork::Operations(assembly.operations), &assembly.warnings);
    let outputs = request.folder.map(|path| {
        let folder = ResultFolder::create(path);
        folder.and_then(|folder| ScaleupOutputs::create(folder, &assembly, request.report))
    });
    let (mut outputs, prepared) = match outputs.transpose() {
        Ok(outputs) => (outputs, Ok(())),
        Err(error) => (None, Err(error)),
    };
    let watcher = RefCell::new(watcher);
    let (finished, observed) = scaleup::simulate(
        &assembly,
        request.threads,
        &mut |progress| watcher.borrow_mut().progress(progress),
        &mut |rows| {
            outputs.iter_mut().for_each(|outputs| outputs.add(rows));
            watcher.borrow_mut().rows(rows);
        },
    );
    watcher.borrow_mut().end();
    let mut record = scaleup::record(&assembly, &finished, &stopwatch);
    name_command(&mut record, request);
    record.observed = observed;
    let is_kept = watcher.borrow().is_valid() && is_kept(&record, request);
    let wanted = outputs.filter(|_| is_kept);
    let kept = prepared.and_then(|()| {
        let publish = |outputs: ScaleupOutputs<'_>| outputs.publish(&record);
        wanted.map_or(Ok(()), publish)
    });
    Ok(CompletedRun {
        resolved: scenario.resolved(),
        record,
        kept,
    })
}

fn is_kept(record: &RunRecord, request: &RunRequest<'_>) -> bool {
    request.partial || record.status != Status::Interrupted
}

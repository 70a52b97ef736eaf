//! Runs of scale-up fabrics: from a scenario to its results.

use crate::arguments::RunArguments;
use crate::failure::Failure;
use crate::measure::{Stopwatch, peak_rss_bytes};
use crate::progress::{Display, Interrupt};
use crate::record::{REVISION, command_line};
use crate::report_page;
use crate::run::{conclude, default_folder, inputs, no_results, refuse_deleting, say_status, show};
use crate::timeline_file;
use clearway_lab::scaleup_fabric::{
    Finished, OperationKind as Kind, OperationRecord, Target, label_of,
};
use clearway_lab::{
    Progress, ScaleupAssembly, ScaleupFinished, ScaleupRunOptions, ScaleupScenario, Stopped,
    Verdict,
};
use clearway_report::{
    FabricUse, FolderError, OperationKind, OperationResults, OperationRow, OperationTotals,
    PacketCounts, ReductionTableUse, ResultFolder, RunRecord, ScenarioIdentity, Status, Summary,
    operations, page, timeline,
};
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
    let assembly = ScaleupAssembly::new(scenario)?;
    refuse_deleting(&target, &inputs(arguments, Vec::new()))?;
    let unwritten = |error: FolderError| no_results(arguments, &error);
    let folder = ResultFolder::create(&target).map_err(unwritten)?;
    let report = !arguments.no_report;
    let folder = reserved(folder, scenario, report).map_err(unwritten)?;
    let interrupt = Interrupt::install();
    let display = Display::of_operations(assembly.operations, arguments.quiet || arguments.json);
    let finished = simulate(&assembly, arguments.threads, display, &interrupt);
    let record = record(
        scenario,
        assembly.operations,
        &finished,
        arguments.threads,
        &stopwatch,
    );
    // Shown before it is written: a full disk must not cost the user the figures of a long run.
    let shown = show(arguments, &Summary::of(&record));
    let written = publish(folder, scenario, &record, report);
    let place = match &written {
        Ok(()) => Some(target.clone()),
        Err(FolderError::Partial { kept, .. }) => kept.as_ref().map(|(place, _)| place.clone()),
        Err(_) => None,
    };
    Failure::all([shown, written.map_err(unwritten)])
        .and_then(|()| conclude(arguments, &target, &record.status))
        .inspect_err(|_| say_status(&record.status, place.as_deref()))
}

/// Refuses what speaks of flows or packets.
fn refuse_options(arguments: &RunArguments) -> Result<(), Failure> {
    let options = [
        ("--fct-txt", arguments.fct_txt.is_some()),
        ("--htsim-txt", arguments.htsim_txt.is_some()),
        ("--live", arguments.live),
    ];
    match options.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::new(format!(
            "{option}: a scale-up fabric has operations and no flows\n  fix: leave it out; `operations.parquet` has a row for each operation"
        ))),
    }
}

/// The folder with the scenario, and with room for what a run leaves.
pub(crate) fn reserved(
    mut folder: ResultFolder,
    scenario: &ScaleupScenario,
    report: bool,
) -> Result<ResultFolder, FolderError> {
    folder.write("scenario.toml", scenario.resolved())?;
    folder.reserve(operations::FILE_NAME)?;
    if scenario.observe.perfetto {
        folder.reserve(timeline::FILE_NAME)?;
    }
    if report {
        folder.reserve(page::FILE_NAME)?;
    }
    Ok(folder)
}

/// Writes what a run left.
pub(crate) fn publish(
    mut folder: ResultFolder,
    scenario: &ScaleupScenario,
    record: &RunRecord,
    report: bool,
) -> Result<(), FolderError> {
    folder.add_tables(record);
    if scenario.observe.perfetto {
        timeline_file::write(&mut folder, record);
    }
    if report {
        let settings = scenario.settings();
        report_page::write(&mut folder, &scenario.resolved(), settings, record);
    }
    folder.finish()
}

/// Runs what was put together.
pub(crate) fn simulate(
    assembly: &ScaleupAssembly<'_>,
    threads: u16,
    mut display: Display,
    interrupt: &Interrupt,
) -> ScaleupFinished {
    let finished = assembly.run(ScaleupRunOptions {
        threads: threads.into(),
        on_progress: &mut |progress: Progress| -> Verdict { display.update(&progress, interrupt) },
    });
    display.finish();
    finished
}

/// Creates the record of a run in which programs posted `posted` operations in all.
pub(crate) fn record(
    scenario: &ScaleupScenario,
    posted: u64,
    finished: &ScaleupFinished,
    threads: u16,
    stopwatch: &Stopwatch,
) -> RunRecord {
    let fabric = &finished.fabric;
    RunRecord {
        version: env!("CARGO_PKG_VERSION").into(),
        revision: REVISION.into(),
        scenario: ScenarioIdentity {
            name: scenario.general.name.clone(),
            hash: scenario.hash(),
            seed: scenario.general.seed,
        },
        status: status(scenario, posted, finished),
        simulated: finished.simulated.since(clearway_units::Time::ZERO),
        flows: Vec::new(),
        written: None,
        packets: PacketCounts::default(),
        paused_links: Vec::new(),
        data_packet_hops: 0,
        packet_hops: fabric.packet_hops,
        digest: fabric.digest.to_string(),
        threads: threads.into(),
        cpu_seconds: stopwatch.cpu_seconds(),
        wall_seconds: stopwatch.wall_seconds(),
        peak_rss_bytes: peak_rss_bytes(),
        command: command_line(),
        observed: None,
        events: None,
        jobs: Vec::new(),
        operations: Some(results(scenario, posted, fabric)),
    }
}

fn results(scenario: &ScaleupScenario, posted: u64, fabric: &Finished) -> OperationResults {
    OperationResults {
        totals: OperationTotals {
            completed: fabric.operations.len() as u64,
            posted,
            gpus: fabric.gpus.into(),
            cycle_ps: scenario.fabric.configuration.cycle.as_ps(),
            cycles: fabric.cycles,
            effective_bandwidth: fabric.effective_bandwidth(),
        },
        reduction_table: ReductionTableUse {
            peak_entries: fabric.peak_entries.into(),
            mean_entries: fabric.mean_entries,
            waits: fabric.waits_for_entries,
        },
        fabric: FabricUse {
            peak_queue_flits: fabric.peak_queue.into(),
            peak_responses: fabric.peak_responses as u64,
            flit_hops: fabric.flit_hops,
            packet_hops: fabric.packet_hops,
        },
        sections: scenario.section_names(),
        rows: fabric.operations.iter().map(row).collect(),
    }
}

fn row(record: &OperationRecord) -> OperationRow {
    let (kind, target) = match (record.kind, record.target) {
        (Kind::Write, Target::Group(group)) => (OperationKind::MulticastWrite, group.0),
        (Kind::Read, Target::Group(group)) => (OperationKind::Reduction, group.0),
        (Kind::Write, Target::Gpu(gpu)) => (OperationKind::Write, gpu.0),
        (Kind::Read, Target::Gpu(gpu)) => (OperationKind::Read, gpu.0),
    };
    OperationRow {
        gpu: record.gpu.0,
        number: record.number,
        section: label_of(record.tag),
        target,
        kind,
        posted_cycle: record.posted,
        sent_cycle: record.sent,
        completed_cycle: record.completed,
    }
}

fn status(scenario: &ScaleupScenario, posted: u64, finished: &ScaleupFinished) -> Status {
    let left = posted.saturating_sub(finished.fabric.operations.len() as u64);
    match finished.stopped {
        None => Status::Complete,
        Some(Stopped::Interrupted) => Status::Interrupted,
        Some(_) => Status::Incomplete {
            reason: format!(
                "stopped at stop.at-most = {}; {left} of {posted} operations are not done",
                scenario.general.at_most
            ),
        },
    }
}

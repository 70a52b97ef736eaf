//! Runs of scale-up fabrics: from a scenario to its results.

use crate::arguments::RunArguments;
use crate::failure::Failure;
use crate::measure::{Stopwatch, peak_rss_bytes};
use crate::messages::warn;
use crate::progress::{Console, Display, Interrupt};
use crate::record::{REVISION, command_line, job, with_jobs};
use crate::report_page;
use crate::run::{conclude, default_folder, inputs, no_results, refuse_deleting, say_status, show};
use crate::series_file::{Names, SeriesFile};
use crate::timeline_file;
use clearway_lab::observe::{ScaleupTelemetry, Watched};
use clearway_lab::scaleup_fabric::{
    Finished, OperationKind as Kind, OperationRecord, Target, label_of,
};
use clearway_lab::scenario::Sampling;
use clearway_lab::{
    FLIT_BYTES, Progress, ScaleupAssembly, ScaleupFinished, ScaleupRunOptions, ScaleupScenario,
    ScenarioError, Stopped, Verdict,
};
use clearway_report::{
    FabricUse, FolderError, LinkRow, NodeRow, Observed, OperationKind, OperationResults,
    OperationRow, OperationTotals, PacketCounts, ReductionTableUse, ResultFolder, RunRecord,
    ScenarioIdentity, SeriesRow, Status, Subject, Summary, operations, page, timeline,
};
use clearway_units::Span;
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
    refuse_deleting(&target, &inputs(arguments, scenario.files()))?;
    let unwritten = |error: FolderError| no_results(arguments, &error);
    let folder = ResultFolder::create(&target).map_err(unwritten)?;
    if !arguments.quiet {
        assembly.warnings.iter().for_each(|warning| warn(warning));
    }
    let outputs = ScaleupOutputs::create(folder, &assembly, !arguments.no_report);
    let mut outputs = outputs.map_err(unwritten)?;
    let (interrupt, console) = (Interrupt::install(), Console::new(arguments.quiet));
    let display = Display::of_operations(assembly.operations, &console);
    let watching = (display, &interrupt);
    let (finished, observed) = simulate(&assembly, arguments.threads, watching, Some(&mut outputs));
    let mut record = record(&assembly, &finished, arguments.threads, &stopwatch);
    record.observed = observed;
    // Shown before it is written: a full disk must not cost the user the figures of a long run.
    let shown = show(arguments, &Summary::of(&record));
    let written = outputs.publish(&record);
    let place = match &written {
        Ok(()) => Some(target.clone()),
        Err(error) => error.kept().map(Path::to_owned),
    };
    Failure::all([shown, written.map_err(unwritten)])
        .and_then(|()| conclude(arguments, &target, &record.status))
        .inspect_err(|_| say_status(&record.status, place.as_deref()))
}

/// Puts a scenario together, and checks what it wants to be observed.
///
/// # Errors
/// If its parts do not fit together, or it names a link that does not exist.
pub(crate) fn assemble(scenario: &ScaleupScenario) -> Result<ScaleupAssembly<'_>, ScenarioError> {
    let assembly = ScaleupAssembly::new(scenario)?;
    ScaleupTelemetry::new(&assembly, None)?;
    Ok(assembly)
}

/// Refuses what speaks of flows or packets.
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
            "the report of the finished run has its operations",
        ),
    ];
    match options.iter().find(|(_, given, _)| *given) {
        None => Ok(()),
        Some((option, _, instead)) => Err(Failure::new(format!(
            "{option}: a scale-up fabric has operations and no flows\n  fix: leave it out; {instead}"
        ))),
    }
}

/// The result folder in the making.
pub(crate) struct ScaleupOutputs<'a> {
    folder: ResultFolder,
    scenario: &'a ScaleupScenario,
    /// If anything is sampled.
    series: Option<SeriesFile<'a>>,
    /// `report.html` is wanted.
    report: bool,
}

impl<'a> ScaleupOutputs<'a> {
    /// Puts the scenario into the folder, and makes room for what a run leaves.
    pub(crate) fn create(
        mut folder: ResultFolder,
        assembly: &ScaleupAssembly<'a>,
        report: bool,
    ) -> Result<Self, FolderError> {
        let scenario = assembly.scenario();
        folder.write("scenario.toml", scenario.resolved())?;
        for (name, wanted) in [
            (operations::FILE_NAME, true),
            (timeline::FILE_NAME, scenario.observe.perfetto),
            (page::FILE_NAME, report),
        ] {
            if wanted {
                folder.reserve(name)?;
            }
        }
        let series = match scenario.observe.every {
            Sampling::Off => None,
            _ => Some(SeriesFile::create(
                &folder,
                &identity(scenario),
                names(assembly),
            )?),
        };
        Ok(Self {
            folder,
            scenario,
            series,
            report,
        })
    }

    /// Completes the files and puts the folder in place.
    pub(crate) fn publish(mut self, record: &RunRecord) -> Result<(), FolderError> {
        let folder = &mut self.folder;
        folder.add_tables(record);
        if let Some(series) = self.series {
            series.finish(folder);
        }
        if self.scenario.observe.perfetto {
            timeline_file::write(folder, record);
        }
        if self.report {
            let settings = self.scenario.settings();
            report_page::write(folder, &self.scenario.resolved(), settings, record);
        }
        self.folder.finish()
    }
}

/// Names of what is in the fabric.
fn names<'a>(assembly: &ScaleupAssembly<'_>) -> Names<'a> {
    let links: Vec<String> = assembly.links().map(|link| link.name).collect();
    let nodes: Vec<String> = assembly.nodes().collect();
    Box::new(move |subject: Subject| {
        let link = |link: u32| links[link as usize].clone();
        subject.name(link, |node| nodes[node as usize].clone())
    })
}

/// Runs what was [put together](assemble). Returns what was observed, if anything was to be.
pub(crate) fn simulate(
    assembly: &ScaleupAssembly<'_>,
    threads: u16,
    (mut display, interrupt): (Display<'_>, &Interrupt),
    outputs: Option<&mut ScaleupOutputs<'_>>,
) -> (ScaleupFinished, Option<Observed>) {
    let mut series = outputs.and_then(|outputs| outputs.series.as_mut());
    let sink = Box::new(|rows: &[SeriesRow]| {
        if let Some(series) = &mut series {
            series.add(rows);
        }
    });
    let telemetry = ScaleupTelemetry::new(assembly, Some(sink));
    let mut telemetry = telemetry.expect("the names of links were checked before");
    let options = ScaleupRunOptions {
        threads: threads.into(),
        on_progress: &mut |progress: Progress| -> Verdict { display.update(&progress, interrupt) },
    };
    let finished = assembly.run(options, telemetry.as_mut());
    let watched = telemetry.map(ScaleupTelemetry::into_watched);
    display.finish();
    let observed = watched.map(|watched| observed(assembly, &finished, watched));
    (finished, observed)
}

fn observed(
    assembly: &ScaleupAssembly<'_>,
    finished: &ScaleupFinished,
    watched: Watched,
) -> Observed {
    let tree = assembly.scenario().fabric.nvlink.tree();
    let (first_leaf, first_spine) = (tree.gpus, tree.gpus + tree.leaves());
    let tier = |node: u32| match node {
        node if node < first_leaf => None,
        node if node < first_spine => Some(0),
        _ => Some(1),
    };
    let nodes = assembly.nodes().zip(0..).map(|(name, node)| NodeRow {
        name,
        tier: tier(node),
    });
    let links = assembly
        .links()
        .zip(&finished.fabric.links)
        .map(|(link, totals)| LinkRow {
            name: link.name,
            from: link.from,
            to: link.to,
            rate: assembly.link_rate(),
            bytes: totals.flits * FLIT_BYTES,
            packets: totals.packets,
            marks: 0,
            drops: 0,
            pauses: 0,
            paused: Span::ZERO,
            peak_queue: u64::from(totals.peak_queue) * FLIT_BYTES,
        });
    Observed {
        times: watched.times,
        curves: watched.curves,
        nodes: nodes.collect(),
        links: links.collect(),
        fairness: None,
    }
}

/// Creates the record of a run, without what was observed.
pub(crate) fn record(
    assembly: &ScaleupAssembly<'_>,
    finished: &ScaleupFinished,
    threads: u16,
    stopwatch: &Stopwatch,
) -> RunRecord {
    let (scenario, posted) = (assembly.scenario(), assembly.operations);
    let fabric = &finished.fabric;
    RunRecord {
        version: env!("CARGO_PKG_VERSION").into(),
        revision: REVISION.into(),
        scenario: identity(scenario),
        status: status(scenario, posted, finished),
        simulated: finished.simulated.since(clearway_units::Time::ZERO),
        flows: Vec::new(),
        written: None,
        sections: Vec::new(),
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
        jobs: finished.jobs.iter().map(job).collect(),
        operations: Some(results(scenario, posted, fabric)),
    }
}

fn identity(scenario: &ScaleupScenario) -> ScenarioIdentity {
    ScenarioIdentity {
        name: scenario.general.name.clone(),
        hash: scenario.hash(),
        seed: scenario.general.seed,
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
    let reason = match finished.stopped {
        None => return Status::Complete,
        Some(Stopped::Interrupted) => return Status::Interrupted,
        Some(Stopped::AtMost) => format!("stopped at stop.at-most = {}", scenario.general.at_most),
        Some(stopped) => stopped.to_string(),
    };
    let reason = match posted.saturating_sub(finished.fabric.operations.len() as u64) {
        0 => reason,
        left => format!("{reason}; {left} of {posted} operations are not done"),
    };
    Status::Incomplete {
        reason: with_jobs(reason, &finished.jobs),
    }
}

//! Runs of scale-up fabrics: from a scenario to its results.

use crate::outputs::reserve;
use crate::process_usage::Stopwatch;
use crate::record::{blank, given, job, with_jobs};
use crate::report_page;
use crate::series_file::{Names, SeriesFile};
use crate::timeline_file;
use clearway_lab::observe::{SampledSeries, ScaleupTelemetry};
use clearway_lab::scaleup_fabric::{
    Finished, OperationKind as Kind, OperationRecord, Target, label_of,
};
use clearway_lab::{
    FLIT_BYTES, RunDecision, RunProgress, ScaleupAssembly, ScaleupFinished, ScaleupRunOptions,
    ScaleupScenario, ScenarioError, Stopped, Threads,
};
use clearway_report::{
    FabricMap, FabricUse, FolderError, LinkRow, NodeRow, OperationClass, OperationResults,
    OperationRow, OperationTotals, ReductionTableUse, ResultFolder, RunObservations, RunRecord,
    ScenarioIdentity, SeriesRow, Status, Subject, operations, timeline,
};
use clearway_report_html as page;
use clearway_units::Time;

/// Assembles a scenario, and checks its observations.
///
/// # Errors
/// If the parts do not fit together, or the scenario names a link that does not exist.
pub fn assemble(scenario: &ScaleupScenario) -> Result<ScaleupAssembly<'_>, ScenarioError> {
    let assembly = ScaleupAssembly::new(scenario)?;
    ScaleupTelemetry::new(&assembly, None)?;
    Ok(assembly)
}

/// The unpublished result folder.
pub struct ScaleupOutputs<'a> {
    folder: ResultFolder,
    scenario: &'a ScaleupScenario,
    /// File for samples, if the run is sampled.
    series: Option<SeriesFile<'a>>,
    /// True if `report.html` is wanted.
    report: bool,
}

impl<'a> ScaleupOutputs<'a> {
    /// Writes the scenario into the folder, and reserves the files of the results.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn create(
        mut folder: ResultFolder,
        assembly: &ScaleupAssembly<'a>,
        report: bool,
    ) -> Result<Self, FolderError> {
        let scenario = assembly.scenario();
        folder.write("scenario.toml", scenario.resolved())?;
        let files = [
            (operations::FILE_NAME, true),
            (timeline::FILE_NAME, scenario.observe.perfetto),
            (page::FILE_NAME, report),
        ];
        reserve(&mut folder, &files)?;
        let sampling = (scenario.observe.every, identity(scenario));
        let series = SeriesFile::create(&folder, sampling, names(assembly))?;
        Ok(Self {
            folder,
            scenario,
            series,
            report,
        })
    }

    /// Adds the rows of a sample.
    pub fn add(&mut self, rows: &[SeriesRow]) {
        if let Some(series) = &mut self.series {
            series.add(rows);
        }
    }

    /// Completes the files and puts the folder in place.
    ///
    /// # Errors
    /// If a file could not be written; the written files are kept.
    pub fn publish(mut self, record: &RunRecord) -> Result<(), FolderError> {
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

/// Names of the parts of the fabric.
fn names<'a>(assembly: &ScaleupAssembly<'_>) -> Names<'a> {
    let links: Vec<String> = assembly.links().map(|link| link.name).collect();
    let nodes: Vec<String> = assembly.nodes().collect();
    Box::new(move |subject: Subject| {
        let link = |link: u32| links[link as usize].clone();
        subject.name(link, |node| nodes[node as usize].clone())
    })
}

/// Runs an [assembled](assemble) scenario; `on_progress` is called after each round, `on_rows` with the rows of each sample. Returns the
/// observations, if any were requested.
///
/// # Panics
/// If the scenario observes links that do not exist, which [`assemble`] rejects.
pub fn simulate(
    assembly: &ScaleupAssembly<'_>,
    threads: Threads,
    on_progress: &mut dyn FnMut(RunProgress) -> RunDecision,
    on_rows: &mut dyn FnMut(&[SeriesRow]),
) -> (ScaleupFinished, Option<RunObservations>) {
    let telemetry = ScaleupTelemetry::new(assembly, Some(Box::new(on_rows)));
    let telemetry = telemetry.expect("the names of links were checked before");
    let fabric = telemetry.is_some().then(|| fabric(assembly));
    let bundles = fabric.as_ref().map(|fabric| fabric.map.link_bundles());
    let mut telemetry = telemetry
        .zip(bundles)
        .map(|(telemetry, bundles)| telemetry.with_bundles(bundles));
    let options = ScaleupRunOptions {
        threads,
        on_progress,
    };
    let finished = assembly.run(options, telemetry.as_mut());
    let watched = telemetry.map(ScaleupTelemetry::into_watched);
    let observed = fabric
        .zip(watched)
        .map(|(fabric, watched)| observed(fabric, &finished, watched));
    (finished, observed)
}

/// Nodes and links of a fabric, and its map, without counts.
pub fn fabric(assembly: &ScaleupAssembly<'_>) -> RunObservations {
    let tree = assembly.scenario().fabric.nvlink.tree();
    let (first_leaf, first_spine) = (tree.gpus, tree.gpus + tree.leaves());
    let tier = |node: u32| match node {
        node if node < first_leaf => None,
        node if node < first_spine => Some(0),
        _ => Some(1),
    };
    let nodes = assembly.nodes().zip(0..);
    let nodes: Vec<NodeRow> = nodes
        .map(|(name, node)| NodeRow::new(name, tier(node)))
        .collect();
    let rate = assembly.link_rate();
    let links = assembly.links();
    let links = links.map(|link| LinkRow::new(link.name, (link.from, link.to), rate));
    let links: Vec<LinkRow> = links.collect();
    let ends: Vec<(u32, u32)> = links.iter().map(|link| (link.from, link.to)).collect();
    RunObservations {
        map: FabricMap::new(&nodes, &ends),
        nodes,
        links,
        ..RunObservations::default()
    }
}

fn observed(
    mut fabric: RunObservations,
    finished: &ScaleupFinished,
    watched: SampledSeries,
) -> RunObservations {
    for (link, totals) in fabric.links.iter_mut().zip(&finished.fabric.links) {
        link.bytes = totals.flits * FLIT_BYTES;
        link.packets = totals.packets;
        link.peak_queue = u64::from(totals.peak_queue) * FLIT_BYTES;
    }
    RunObservations {
        times: watched.times,
        curves: watched.curves,
        frames: watched.frames,
        ..fabric
    }
}

/// Creates the record of a run, without observations.
pub fn record(
    assembly: &ScaleupAssembly<'_>,
    finished: &ScaleupFinished,
    stopwatch: &Stopwatch,
) -> RunRecord {
    let (scenario, posted) = (assembly.scenario(), assembly.operations);
    let fabric = &finished.fabric;
    RunRecord {
        status: status(scenario, posted, finished),
        given: given(scenario.settings()),
        scenario_warnings: assembly.warnings.clone(),
        simulated: finished.simulated.since(Time::ZERO),
        packet_hops: fabric.packet_hops,
        digest: fabric.digest.to_string(),
        sections: scenario.section_names(),
        jobs: finished.jobs.iter().map(job).collect(),
        operations: Some(results(scenario, posted, fabric)),
        ..blank(identity(scenario), fabric.threads, stopwatch)
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
        (Kind::Write, Target::Group(group)) => (OperationClass::MulticastWrite, group.0),
        (Kind::Read, Target::Group(group)) => (OperationClass::Reduction, group.0),
        (Kind::Write, Target::Gpu(gpu)) => (OperationClass::Write, gpu.0),
        (Kind::Read, Target::Gpu(gpu)) => (OperationClass::Read, gpu.0),
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

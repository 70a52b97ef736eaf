//! `clearway run`.

use crate::arguments::{RunArguments, ScenarioArguments};
use crate::failure::{Failure, with_causes};
use crate::fct_file::FctFile;
use crate::measure::{Stopwatch, peak_rss_bytes};
use crate::output::print;
use crate::progress::{Display, Interrupt};
use clearway_lab::{Assembly, Finished, Laboratory, RunOptions, Scenario, Stopped};
use clearway_report::{
    FlowRow, FolderError, PacketCounts, PausedLink, ResultFolder, RunRecord, ScenarioIdentity,
    Status, Summary, summary_table,
};
use clearway_units::FlowId;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The revision that the program was built from.
pub(crate) const REVISION: &str = match option_env!("CLEARWAY_REVISION") {
    Some(revision) => revision,
    None => "unknown",
};

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
    let assembly = Assembly::new(&scenario)?;
    // Before the run, which may be long, but after everything that can be wrong with the scenario: that leaves nothing behind.
    let fct = FctFile::prepare(arguments.fct_txt.as_deref(), &target, &assembly)?;
    let folder = ResultFolder::create(&target).map_err(|error| no_results(arguments, &error))?;
    if !arguments.quiet {
        assembly
            .warnings
            .iter()
            .for_each(|warning| eprintln!("warning: {warning}"));
    }
    let finished = simulate(&assembly, arguments);
    let record = record(
        &scenario,
        &assembly,
        &finished,
        arguments.threads,
        &stopwatch,
    );
    // Shown before it is written: a full disk must not cost the user the figures of a long run.
    show(arguments, &Summary::of(&record));
    let unwritten = |error: FolderError| no_results(arguments, &error);
    folder
        .write("scenario.toml", scenario.resolved())
        .map_err(unwritten)?;
    fct.write(&folder, &assembly, &finished)
        .map_err(unwritten)?;
    folder.publish(&record).map_err(unwritten)?;
    fct.publish(&assembly, &finished)?;
    Ok(conclude(arguments, &target, &record.status))
}

fn simulate(assembly: &Assembly, arguments: &RunArguments) -> Finished {
    let interrupt = Interrupt::install();
    let mut display = Display::new(
        assembly.workload.flows.len(),
        arguments.quiet || arguments.json,
    );
    let mut on_progress = |progress| display.update(&progress, &interrupt);
    let options = RunOptions {
        threads: arguments.threads.into(),
        on_progress: &mut on_progress,
    };
    let finished = assembly.run(options, || ());
    display.finish();
    finished
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

/// Everything that the outputs say about a run.
pub(crate) fn record(
    scenario: &Scenario,
    assembly: &Assembly,
    finished: &Finished,
    threads: u16,
    stopwatch: &Stopwatch,
) -> RunRecord {
    let flows = finished.flows.iter().enumerate().map(|(id, result)| {
        let flow = assembly.workload.flow(FlowId(id as u32));
        FlowRow {
            flow: id as u32,
            label: flow.label,
            src: flow.src.0,
            dst: flow.dst.0,
            bytes: flow.bytes.as_u64(),
            start: result.started,
            finish: result.finished,
            ideal_fct: result.ideal,
            packets: result.statistics.packets,
            retransmits: result.statistics.retransmitted,
            marks: result.statistics.marked.into(),
            probes: result.statistics.probes.into(),
            timeouts: result.statistics.timeouts.into(),
        }
    });
    let (links, endpoints) = (&finished.links, &finished.endpoints);
    RunRecord {
        version: env!("CARGO_PKG_VERSION").into(),
        revision: REVISION.into(),
        scenario: ScenarioIdentity {
            name: scenario.general.name.clone(),
            hash: scenario.hash(),
            seed: scenario.general.seed,
        },
        status: status(scenario, finished.stopped),
        simulated: finished.simulated.since(clearway_units::Time::ZERO),
        flows: flows.collect(),
        packets: PacketCounts {
            data_sent: endpoints.data_sent,
            data_delivered: endpoints.data_received,
            retransmitted: endpoints.retransmitted,
            dropped: links.dropped,
            headroom_drops: links.headroom_drops,
            marked: links.marked,
            acks: endpoints.sacks_sent,
            probes: endpoints.probes_sent,
            cnps: endpoints.notifications_sent,
            pfc_pauses: finished.pauses.iter().map(|link| link.pauses).sum(),
            corrupted: links.corrupted,
            duplicates: endpoints.duplicates,
        },
        paused_links: finished
            .pauses
            .iter()
            .map(|paused| PausedLink {
                link: assembly.topology.link_name(paused.link),
                pauses: paused.pauses,
                paused_us: paused.time.as_us(),
            })
            .collect(),
        data_packet_hops: links.data_hops,
        packet_hops: links.hops,
        digest: finished.digest.to_string(),
        threads: threads.into(),
        cpu_seconds: stopwatch.cpu_seconds(),
        wall_seconds: stopwatch.wall_seconds(),
        peak_rss_bytes: peak_rss_bytes(),
        command: command_line(),
        observed: None,
        happenings: None,
    }
}

/// The command as it was typed, quoted for a shell.
fn command_line() -> String {
    let words = std::env::args().skip(1).map(|word| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,%+@".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    std::iter::once("clearway".to_string())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

fn status(scenario: &Scenario, stopped: Option<Stopped>) -> Status {
    match stopped {
        None => Status::Complete,
        Some(Stopped::Interrupted) => Status::Interrupted,
        Some(Stopped::AtMost) => Status::Incomplete {
            reason: format!("stopped at stop.at-most = {}", scenario.general.at_most),
        },
        Some(Stopped::Deadlocked) => Status::Incomplete {
            reason: "deadlock: paused links wait for each other".into(),
        },
        Some(Stopped::Stuck) => Status::Incomplete {
            reason: "nothing was left to happen although flows wait".into(),
        },
    }
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

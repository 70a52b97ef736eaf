//! Conversion of a finished run to the record from which all outputs are made.

use crate::process_usage::{Stopwatch, peak_rss_bytes};
use clearway_lab::scenario::Setting;
use clearway_lab::{
    Assembly, FastForwardReport, Finished, IterationTimes, JobResult, LinkChange, LinkEvent,
    LinkId, LinkPauses, RememberedCalls, Scenario, SkippedTime, Stopped,
};
use clearway_report::fast_forward::{CallSort, DeclinedJob, FastForwardSummary, SkippedStretches};
use clearway_report::{
    IterationRow, JobRow, LinkEventRow, PacketCounts, PausedLink, RunRecord, ScenarioIdentity,
    Status, TransportRow,
};
use clearway_units::{Span, Time};
use std::ffi::OsString;
use std::sync::{PoisonError, RwLock};

/// The source revision of the program.
pub const REVISION: &str = match option_env!("CLEARWAY_REVISION") {
    Some(revision) => revision,
    None => "unknown",
};

/// Creates the record of a run, without flows and observations.
pub fn record(
    scenario: &Scenario,
    assembly: &Assembly,
    finished: &Finished,
    stopwatch: &Stopwatch,
) -> RunRecord {
    let links = &finished.links;
    let tenants = scenario.tenants();
    RunRecord {
        status: status(scenario, finished),
        given: given(scenario.settings()),
        scenario_warnings: assembly.warnings.clone(),
        simulated: finished.simulated.since(Time::ZERO),
        sections: scenario.section_names(),
        tenants: tenants.of_section,
        tenant_names: tenants.names.into_iter().map(str::to_owned).collect(),
        transports: transports(scenario, finished),
        packets: packets(finished),
        paused_links: paused_links(assembly, finished),
        link_events: link_events(assembly),
        data_packet_hops: links.data_hops,
        packet_hops: links.hops,
        digest: finished.digest.to_string(),
        jobs: finished.jobs.iter().map(job).collect(),
        fast_forward: finished.fast_forward.as_ref().map(fast_forward),
        ..blank(identity(scenario), finished.threads, stopwatch)
    }
}

/// Record of a run that contains only its program, command and cost.
pub(crate) fn blank(
    scenario: ScenarioIdentity,
    threads: usize,
    stopwatch: &Stopwatch,
) -> RunRecord {
    RunRecord {
        version: env!("CARGO_PKG_VERSION").into(),
        revision: REVISION.into(),
        scenario,
        status: Status::Complete,
        given: Vec::new(),
        scenario_warnings: Vec::new(),
        simulated: Span::ZERO,
        flows: Vec::new(),
        written: None,
        sections: Vec::new(),
        tenants: Vec::new(),
        tenant_names: Vec::new(),
        packets: PacketCounts::default(),
        transports: Vec::new(),
        paused_links: Vec::new(),
        link_events: Vec::new(),
        data_packet_hops: 0,
        packet_hops: 0,
        digest: String::new(),
        threads: threads as u32,
        cpu_seconds: stopwatch.cpu_seconds(),
        wall_seconds: stopwatch.wall_seconds(),
        peak_rss_bytes: peak_rss_bytes(),
        command: command_line(),
        observed: None,
        events: None,
        jobs: Vec::new(),
        operations: None,
        fast_forward: None,
    }
}

/// Keys that are set by a file or an override.
pub(crate) fn given(settings: Vec<Setting>) -> Vec<String> {
    let given = settings.into_iter().filter(|setting| setting.given);
    given.map(|setting| setting.path()).collect()
}

/// The row of a job.
pub(crate) fn job(job: &JobResult) -> JobRow {
    let iteration = |times: &IterationTimes| IterationRow {
        begun: times.begun,
        sending: times.sending,
        over: times.over,
    };
    JobRow {
        label: job.label.clone(),
        hosts: job.hosts.iter().map(|host| host.0).collect(),
        section: job.section,
        flows: job.flows.clone(),
        iterations: job.iterations,
        bytes: job.volume.map(|volume| volume.bytes.as_u64()),
        bus_factor: job.volume.map(|volume| volume.bus_factor),
        times: job.times.iter().map(iteration).collect(),
    }
}

/// The simulated and remembered calls.
fn fast_forward(report: &FastForwardReport) -> FastForwardSummary {
    let sort = |calls: &RememberedCalls| CallSort {
        ranks: calls.ranks,
        messages: calls.messages,
        bytes: calls.bytes.as_u64(),
        kinds: calls.kinds,
        disagreeing: calls.declined,
        simulated: calls.simulated,
        remembered: calls.remembered,
        void: calls.void,
    };
    let declined = report.declined_jobs.iter();
    let declined = declined.map(|(label, reason)| DeclinedJob {
        label: label.clone(),
        reason: (*reason).into(),
    });
    FastForwardSummary {
        wanted: report.wanted,
        estimated: report.estimated,
        simulated_bytes: report.simulated_bytes.as_u64(),
        remembered_bytes: report.remembered_bytes.as_u64(),
        remembered_share: report.remembered_share(),
        calls: report.calls.iter().map(sort).collect(),
        verified: report.verified,
        found: (report.verified > 0).then_some(report.found),
        skipped: skipped(&report.skipped),
        no_skips: report.no_skips.map(str::to_owned),
        declined_jobs: declined.collect(),
    }
}

/// The skipped stretches.
fn skipped(own: &SkippedTime) -> SkippedStretches {
    let (bytes_share, time_share) = own.shares;
    SkippedStretches {
        stretches: own.stretches,
        time_us: own.time.as_us(),
        time_share,
        bytes: own.bytes.as_u64(),
        bytes_share,
        verified: own.verified,
        found: (own.verified > 0).then_some(own.found),
    }
}

/// The transports that flows use, if there are several.
fn transports(scenario: &Scenario, finished: &Finished) -> Vec<TransportRow> {
    let transports = scenario.transports();
    if !transports.are_several() {
        return Vec::new();
    }
    let names = transports.names(&scenario.section_names());
    let mut rows = Vec::new();
    for ((place, name), counters) in (0u8..).zip(names).zip(&finished.transports) {
        let sections = (0..).zip(&transports.of_section);
        let own = sections.filter(|(_, of)| **of == place);
        let sections: Vec<u32> = own.map(|(section, _)| section).collect();
        if !sections.is_empty() {
            rows.push(TransportRow {
                name,
                sections,
                data_sent: counters.data_sent,
                retransmitted: counters.retransmitted,
                timeouts: counters.timeouts,
            });
        }
    }
    rows
}

fn packets(finished: &Finished) -> PacketCounts {
    let (links, endpoints) = (&finished.links, &finished.endpoints);
    PacketCounts {
        data_sent: endpoints.data_sent,
        data_delivered: endpoints.data_received,
        retransmitted: endpoints.retransmitted,
        dropped: links.dropped,
        headroom_drops: links.headroom_drops,
        agent_drops: links.agent_drops,
        link_down_drops: links.link_down_drops,
        no_route_drops: links.no_route_drops,
        trimmed: links.trimmed,
        marked: links.marked,
        acks: endpoints.sacks_sent,
        probes: endpoints.probes_sent,
        cnps: endpoints.notifications_sent,
        pfc_pauses: finished.pauses.iter().map(|link| link.pauses).sum(),
        corrupted: links.corrupted,
        rate_controls: endpoints.rate_controls_sent,
        rate_controls_lost: endpoints.rate_controls_lost,
        speculative: endpoints.speculative_sent,
        nacks: endpoints.nacks_received,
        pulls: endpoints.pulls_sent,
        timeouts: endpoints.timeouts,
        duplicates: endpoints.duplicates,
    }
}

fn paused_links(assembly: &Assembly, finished: &Finished) -> Vec<PausedLink> {
    let link = |paused: &LinkPauses| PausedLink {
        link: assembly.topology.link_name(paused.link),
        pauses: paused.pauses,
        paused_us: paused.time.as_us(),
    };
    finished.pauses.iter().map(link).collect()
}

/// Link events in words; an event of both directions of a cable is listed once.
fn link_events(assembly: &Assembly) -> Vec<LinkEventRow> {
    let row = |event: &LinkEvent| {
        let id = LinkId::from_end(event.cable, 0);
        let link = assembly.topology.link_name(id);
        LinkEventRow {
            at: event.at,
            link: id.0,
            comes_up: match event.change {
                LinkChange::Down => Some(false),
                LinkChange::Up => Some(true),
                _ => None,
            },
            words: match event.change {
                LinkChange::Down => format!("{link} down"),
                LinkChange::Up => format!("{link} up"),
                LinkChange::Rate(rate) => format!("{link} at {rate}"),
                LinkChange::PacketLoss(loss) => format!("{link} loses {} %", loss * 100.0),
                LinkChange::PauseStorm(true) => format!("pause storm on {link}"),
                LinkChange::PauseStorm(false) => format!("end of the pause storm on {link}"),
            },
        }
    };
    assembly.link_events.events().iter().map(row).collect()
}

/// Identity of the scenario that a result belongs to.
pub fn identity(scenario: &Scenario) -> ScenarioIdentity {
    ScenarioIdentity {
        name: scenario.general.name.clone(),
        hash: scenario.hash(),
        seed: scenario.general.seed,
    }
}

/// Arguments that replace the arguments of the process; see [`set_arguments`].
static ARGUMENTS: RwLock<Option<Vec<OsString>>> = RwLock::new(None);

/// Sets the arguments that [`command_line`] reports, in a process other than the program `clearway`, such as an interpreter.
pub fn set_arguments(arguments: Vec<OsString>) {
    *ARGUMENTS.write().unwrap_or_else(PoisonError::into_inner) = Some(arguments);
}

/// The command as it was typed, quoted for a shell.
pub fn command_line() -> String {
    let set = ARGUMENTS.read().unwrap_or_else(PoisonError::into_inner);
    let own = || std::env::args_os().skip(1).collect();
    let words = set.clone().unwrap_or_else(own).into_iter().map(|word| {
        let word = word.to_string_lossy().into_owned();
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

/// Status of the run.
fn status(scenario: &Scenario, finished: &Finished) -> Status {
    let reason = match finished.stopped {
        None => return Status::Complete,
        Some(Stopped::Interrupted) => return Status::Interrupted,
        Some(Stopped::AtMost) => format!("stopped at stop.at-most = {}", scenario.general.at_most),
        Some(Stopped::Deadlocked) if has_storm(scenario) => {
            format!("{}, or for the end of a pause storm", Stopped::Deadlocked)
        }
        Some(stopped @ (Stopped::Deadlocked | Stopped::Stuck)) => stopped.to_string(),
    };
    Status::Incomplete {
        reason: with_jobs(reason, &finished.jobs),
    }
}

/// True if an event makes a host send pause frames without end; storms of attackers end.
fn has_storm(scenario: &Scenario) -> bool {
    let mut events = scenario.events.iter();
    events.any(|event| event.pause_storm == Some(true))
}

/// The reason why a run ended early, with the number of unfinished jobs. All flows or operations may be done while computations are not.
pub(crate) fn with_jobs(reason: String, jobs: &[JobResult]) -> String {
    let left = jobs.iter().filter(|job| !job.is_done()).count();
    match (left, jobs.len()) {
        (0, _) => reason,
        (1, 1) => format!("{reason}; the job is not done"),
        (left, jobs) => format!("{reason}; {left} of {jobs} jobs are not done"),
    }
}

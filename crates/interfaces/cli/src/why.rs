//! `clearway why`: why flows of a finished run were slow.
//!
//! The run is simulated again with a recorder that follows the slowest flows. The digest must be the same, or the explanation would not
//! apply to the stored results.

mod compared;
mod iteration;
mod request;

pub(crate) use request::WhyRequest;

use crate::arguments::WhyArguments;
use crate::atomic_file::AtomicFile;
use crate::failure::{Failure, with_causes};
use crate::output::print;
use crate::progress::{Console, Display, Interrupt};
use clearway_lab::why::{
    BoundCause, FlowDelays, FollowPlan, FollowRecorder, JobStep, JobWait, LowerBound,
    TooManyPackets,
};
use clearway_lab::{Assembly, Experiment, Laboratory, LinkId, NodeId, RankCause, Scenario};
use clearway_report::fast_forward::FastForwardSummary;
use clearway_report::quantity::count;
use clearway_report::summary::StatusName;
use clearway_report::why::{
    Awaited, Bound, DelayRow, FILE_NAME, JobWaitRow, Limit, SCHEMA, SlowFlow, SlowIteration,
    StepRow, WaitRow, WhyRecord, costly_links,
};
use clearway_report::{FlowRow, RunRecord, Summary, read_flows};
use clearway_report_html as page;
use clearway_report_text::why_text;
use clearway_runs::watch::{self, ObservedRun};
use clearway_runs::{Stopwatch, record, report_html};
use clearway_units::{FlowId, Span, Time};
use request::FIX;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Advice for a path that is not a result folder: a scenario, or a folder of several results.
fn other_folder(path: &Path) -> String {
    let name = path.to_string_lossy();
    let is_file = path
        .extension()
        .is_some_and(|extension| extension == "toml")
        && path.is_file();
    if is_file || clearway_lab::builtin_scenario(&name).is_some() {
        return format!(
            "`clearway run {name} --why` runs this scenario and says why its slowest flows were slow"
        );
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let below = entries.map(|entry| entry.path());
    let mut results: Vec<String> = below
        .filter(|below| below.join("summary.json").exists())
        .map(|below| format!("`{}`", below.display()))
        .collect();
    results.sort_unstable();
    match results.len() {
        0 => "name a result folder, such as `clearway run` writes".into(),
        count => {
            let more = if count > LISTED { ", …" } else { "" };
            results.truncate(LISTED);
            format!(
                "name one of the results in it: {}{more}",
                results.join(", ")
            )
        }
    }
}

/// Maximum number of names listed for a node set.
const LISTED: usize = 3;

/// Runs the command.
pub(crate) fn why(laboratory: &Laboratory, arguments: &WhyArguments) -> Result<ExitCode, Failure> {
    let question = WhyRequest {
        folder: &arguments.out,
        flows: &arguments.flows,
        slowest: arguments.slowest.into(),
        job: arguments.job.as_deref(),
        iteration: arguments.iteration,
        threads: arguments.threads,
        json: arguments.print.json,
        quiet: arguments.print.quiet,
    };
    explain(laboratory, &question)
}

/// Explains the flows of a run, or the runs of a comparison, on the terminal and in the folder.
pub(crate) fn explain(
    laboratory: &Laboratory,
    question: &WhyRequest<'_>,
) -> Result<ExitCode, Failure> {
    if compared::is_comparison(question.folder) {
        return compared::explain(question, |own| explain_run(laboratory, own, |_| Ok(())));
    }
    let show = |why: &WhyRecord| match (question.json, question.quiet) {
        (true, _) => print(&why.to_json()),
        (false, true) => Ok(()),
        (false, false) => print(&why_text(why)),
    };
    Ok(match explain_run(laboratory, question, show)? {
        Some(_) => ExitCode::SUCCESS,
        None => ExitCode::from(130),
    })
}

/// Explains a run, prints the explanation and writes it into the run's folder; `None` if the user interrupts it.
fn explain_run(
    laboratory: &Laboratory,
    question: &WhyRequest<'_>,
    show: impl FnOnce(&WhyRecord) -> Result<(), Failure>,
) -> Result<Option<WhyRecord>, Failure> {
    let results = Results::read(laboratory, question.folder)?;
    let flows = results.choose(question)?;
    let assembly = Assembly::new(&results.scenario)?;
    let document = AtomicFile::create(&question.folder.join(FILE_NAME), FIX)?;
    let report = question.folder.join(page::FILE_NAME);
    let report = report
        .exists()
        .then(|| AtomicFile::create(&report, FIX))
        .transpose()?;
    let stopwatch = Stopwatch::start();
    let plan = FollowPlan::new(&assembly, &flows);
    let Some((watch, recorder)) = follow(question, &assembly, &plan) else {
        return Ok(None);
    };
    results.check_digest(question.folder, &watch)?;
    let path = iteration::path(&assembly, &watch.finished, question)?;
    let longest_age = recorder.longest_age();
    let delays = assembly.flow_delays(&flows, recorder, &watch.finished);
    let delays = delays.map_err(|TooManyPackets| too_many_packets())?;
    let iteration = match &path {
        None => None,
        Some(path) => {
            let plan = FollowPlan::for_messages(&assembly, path.0.messages(), longest_age);
            let Some((_, recorder)) = follow(question, &assembly, &plan) else {
                return Ok(None);
            };
            let parts = assembly.message_delays(&path.0, recorder);
            let finished = &watch.finished;
            Some(iteration::slow_iteration(&assembly, finished, path, parts))
        }
    };
    let why = results.why(&assembly, &watch, &delays, iteration);
    let shown = show(&why);
    let written = document.publish(&why.to_json());
    let reported = report.map_or(Ok(()), |report| {
        report.publish(&results.page(question.folder, &assembly, watch, &why, &stopwatch))
    });
    Failure::all([shown, written, reported])?;
    Ok(Some(why))
}

/// Repeats the run and follows flows; `None` if the user interrupts it.
fn follow(
    question: &WhyRequest<'_>,
    assembly: &Assembly,
    plan: &Arc<FollowPlan>,
) -> Option<(ObservedRun, FollowRecorder)> {
    let interrupt = Interrupt::install();
    let console = Console::new(question.quiet);
    let mut display = Display::new(assembly.flow_count(), &console);
    let followed = watch::follow(assembly, question.threads, plan, &mut |progress| {
        display.update(&progress, &interrupt)
    });
    display.finish();
    (!interrupt.is_raised()).then_some(followed)
}

fn too_many_packets() -> Failure {
    Failure::new(
        "these flows have sent more packets than can be followed at once\n  fix: name fewer of them with `--flow`, or shorter ones",
    )
}

/// Results in a folder.
struct Results {
    scenario: Box<Scenario>,
    summary: Summary,
    rows: Vec<FlowRow>,
}

impl Results {
    fn read(laboratory: &Laboratory, folder: &Path) -> Result<Self, Failure> {
        let place = folder.display();
        let fault =
            |what: String, fix: &str| Failure::new(format!("{place}: {what}\n  fix: {fix}"));
        let missing = |name: &str| {
            let is_missing = !folder.join(name).exists();
            is_missing.then(|| fault(format!("there is no {name} in it"), &other_folder(folder)))
        };
        if let Some(failure) = missing("summary.json").or_else(|| missing("scenario.toml")) {
            return Err(failure);
        }
        let again =
            format!("run its scenario again: `clearway run {place}/scenario.toml --out {place}`");
        let resolved = folder.join("scenario.toml");
        let scenario = match laboratory.load_any(&resolved.to_string_lossy(), &[])? {
            Experiment::Packets(scenario) => scenario,
            Experiment::Scaleup(_) => return Err(no_scaleup(&place.to_string())),
        };
        let summary = Summary::read(folder).map_err(|error| fault(with_causes(&error), &again))?;
        if summary.status == StatusName::Interrupted {
            let what = "the run was interrupted by hand, at an instant that cannot be repeated";
            return Err(fault(what.into(), &again));
        }
        if summary.scenario.hash != scenario.hash() {
            let what = "scenario.toml is not the scenario of these results, or another version of clearway wrote it";
            return Err(fault(what.into(), &again));
        }
        let forward = summary.fast_forward.as_ref();
        if forward.is_some_and(FastForwardSummary::is_inexact) {
            let what = "calls of this run were remembered, or time was skipped: there are no packets that could be followed";
            let fix = "run its scenario without `fast-forward`, with another --out";
            return Err(fault(what.into(), fix));
        }
        let rows = read_flows(folder).map_err(|error| fault(with_causes(&error), &again))?;
        // Section numbers equal the numbers in the scenario.
        let names = scenario.section_names();
        let number = |name: &String| names.iter().position(|own| own == name).unwrap_or(0) as u32;
        let numbers: Vec<u32> = rows.sections.iter().map(number).collect();
        let rows = rows.flows.into_iter().map(|row| FlowRow {
            section: numbers[row.section as usize],
            ..row
        });
        Ok(Self {
            scenario,
            summary,
            rows: rows.collect(),
        })
    }

    /// The flows to follow: the requested flows, or the slowest.
    fn choose(&self, question: &WhyRequest<'_>) -> Result<Vec<FlowId>, Failure> {
        let row = |&number: &u32| {
            let found = self.rows.iter().find(|row| row.flow == number);
            let Some(row) = found else {
                let last = self.rows.len().saturating_sub(1);
                return Err(Failure::new(format!(
                    "--flow {number}: there is no such flow\n  fix: flows are 0 to {last}; `flow` in flows.parquet has their numbers"
                )));
            };
            match row.fct() {
                Some(_) => Ok(row),
                None => Err(Failure::new(format!(
                    "--flow {number}: the flow is not done\n  fix: name one that is, or give the run more time with `stop.at-most`"
                ))),
            }
        };
        let mut rows: Vec<&FlowRow> = match question.flows {
            [] => self.rows.iter().filter(|row| row.fct().is_some()).collect(),
            named => named.iter().map(row).collect::<Result<_, _>>()?,
        };
        // Flows without an ideal completion time come after the others, by completion time.
        let slowdown = |row: &FlowRow| row.slowdown().unwrap_or(0.0);
        rows.sort_by(|a, b| {
            let slower = slowdown(b).total_cmp(&slowdown(a));
            slower.then(b.fct().cmp(&a.fct())).then(a.flow.cmp(&b.flow))
        });
        rows.dedup_by_key(|row| row.flow);
        if question.flows.is_empty() {
            rows.truncate(question.slowest);
        }
        Ok(rows.into_iter().map(|row| FlowId(row.flow)).collect())
    }

    /// Fails if the repeated run has another digest.
    fn check_digest(&self, folder: &Path, watch: &ObservedRun) -> Result<(), Failure> {
        let digest = watch.finished.digest.to_string();
        if digest == self.summary.digest {
            return Ok(());
        }
        let place = folder.display();
        Err(Failure::new(format!(
            "{place}: the run has another outcome now: digest {digest} instead of {}; version {}, revision {} of clearway made these \
             results, or a file that the scenario names has changed since\n  fix: run its scenario again: \
             `clearway run {place}/scenario.toml --out {place}`",
            self.summary.digest, self.summary.version, self.summary.revision,
        )))
    }

    fn why(
        &self,
        assembly: &Assembly,
        watch: &ObservedRun,
        delays: &[FlowDelays],
        iteration: Option<SlowIteration>,
    ) -> WhyRecord {
        let row = |flow: FlowId| self.rows.iter().find(|row| row.flow == flow.0);
        let flows = delays
            .iter()
            .filter_map(|delays| Some(slow_flow(assembly, row(delays.flow)?, delays)));
        let flows: Vec<SlowFlow> = flows.collect();
        let bound = assembly.lower_bound();
        // A job may end with a computation, after its last flow.
        let iterations = watch.finished.jobs.iter().flat_map(|job| &job.times);
        let ends = self.rows.iter().filter_map(|row| row.finish);
        let last = ends.chain(iterations.filter_map(|times| times.over));
        let end = last.max().unwrap_or(watch.finished.simulated);
        let took = Span::from_ps(end.as_ps().saturating_sub(bound.from.as_ps()));
        let is_complete = self.summary.status == StatusName::Complete;
        WhyRecord {
            schema: SCHEMA,
            scenario: self.summary.scenario.clone(),
            digest: self.summary.digest.clone(),
            bound: bound_row(assembly, &bound, is_complete.then_some(took)),
            links: costly_links(&flows),
            flows,
            iteration,
        }
    }

    /// The report of the run, with the findings.
    fn page(
        &self,
        folder: &Path,
        assembly: &Assembly,
        watch: ObservedRun,
        why: &WhyRecord,
        stopwatch: &Stopwatch,
    ) -> String {
        let record = record(&self.scenario, assembly, &watch.finished, stopwatch);
        // Metadata of the original run, which made the results.
        let about_counts = record.packets.warnings();
        let warnings = self.summary.warnings.iter();
        let about_scenario = warnings.filter(|text| !about_counts.contains(text));
        let record = RunRecord {
            version: self.summary.version.clone(),
            revision: self.summary.revision.clone(),
            given: self.summary.given.clone(),
            scenario_warnings: about_scenario.cloned().collect(),
            flows: self.rows.clone(),
            cpu_seconds: self.summary.cpu_seconds,
            wall_seconds: self.summary.wall_seconds,
            peak_rss_bytes: self.summary.peak_rss_bytes,
            command: format!("clearway run {}", folder.join("scenario.toml").display()),
            observed: watch.observed,
            ..record
        };
        let text = assembly.resolved(&self.scenario);
        let mut settings = self.scenario.settings();
        // The resolved scenario sets every key. Summaries of earlier versions do not list the keys that the user set.
        let given = &self.summary.given;
        for setting in settings.iter_mut().filter(|_| !given.is_empty()) {
            setting.given = given.contains(&setting.path());
        }
        report_html(&text, settings, &record, Some(why))
    }
}

/// Rejects results of a scale-up fabric, which has no flows.
fn no_scaleup(place: &str) -> Failure {
    Failure::new(format!(
        "{place}: this is a scale-up fabric (topology.kind = \"nvlink\"), which has operations and no flows\n  \
         fix: see \"Operations\" in report.html for where their time went, and operations.parquet for when each was posted, sent and completed"
    ))
}

fn slow_flow(assembly: &Assembly, row: &FlowRow, delays: &FlowDelays) -> SlowFlow {
    let topology = &assembly.topology;
    let name = |link: LinkId| topology.link_name(link);
    let parts = delays.parts.iter().map(|delay| DelayRow {
        part: delay.part,
        link: delay.link.map(name),
        ps: delay.span.as_ps(),
    });
    let links = delays.links.iter().map(|wait| WaitRow {
        link: name(wait.link),
        packets: wait.packets,
        mean_wait_us: wait.waited.as_us() / wait.packets.max(1) as f64,
        sharers: wait.sharers,
        rate_bps: topology.cables[wait.link.cable()].rate.as_bps(),
    });
    let at_bottleneck = delays
        .links
        .iter()
        .find(|wait| Some(wait.link) == delays.bottleneck);
    let start = row.start.unwrap_or(Time::ZERO);
    let mut flow = SlowFlow {
        flow: row.flow,
        label: row.label,
        src: row.src,
        dst: row.dst,
        bytes: row.bytes,
        start_ps: start.as_ps(),
        completion_ps: delays.completion.as_ps(),
        ideal_ps: delays.ideal.as_ps(),
        path: path(assembly, delays),
        ways: delays.ways,
        bottleneck: delays.bottleneck.map(name),
        sharers: at_bottleneck.map_or(0, |wait| wait.sharers),
        parts: parts.collect(),
        waits: delays
            .waits
            .iter()
            .map(|wait| wait_row(assembly, row, wait))
            .collect(),
        links: links.collect(),
        sentence: String::new(),
    };
    flow.sentence = flow.say();
    flow
}

/// The waits of a job's connection; `row` is the row of the connection.
fn wait_row(assembly: &Assembly, row: &FlowRow, wait: &JobWait) -> JobWaitRow {
    let flow = |flow: FlowId| assembly.workload.flow(flow);
    let (what, host, of) = match wait.cause {
        RankCause::Start => (Awaited::Start, row.src, None),
        RankCause::Message(id) => (Awaited::Messages, flow(id).src.0, Some(id.0)),
        RankCause::Acknowledgement(id) => (Awaited::Acknowledgements, flow(id).dst.0, Some(id.0)),
        RankCause::Clock => (Awaited::Computations, row.src, None),
        RankCause::Turn => (Awaited::Turn, row.dst, None),
    };
    JobWaitRow {
        what,
        host,
        flow: of,
        ps: wait.span.as_ps(),
    }
}

/// The nodes of a flow's paths, hop by hop.
fn path(assembly: &Assembly, delays: &FlowDelays) -> String {
    let topology = &assembly.topology;
    let place = |nodes: &BTreeSet<NodeId>| {
        let names: Vec<String> = nodes.iter().map(|&node| topology.node_name(node)).collect();
        match names.len() {
            ..=LISTED => names.join("|"),
            several => format!("{}|...|{} ({several})", names[0], names[several - 1]),
        }
    };
    let places: Vec<String> = delays.nodes.iter().map(place).collect();
    let path = places.join(" > ");
    match delays.ways {
        ..=1 => path,
        ways => format!("{path}; {} ways", count(ways as u64)),
    }
}

fn bound_row(assembly: &Assembly, bound: &LowerBound, took: Option<Span>) -> Bound {
    let limit = match &bound.cause {
        BoundCause::Nothing => Limit::Nothing,
        BoundCause::Chain(flows) => Limit::Chain(flows.iter().map(|flow| flow.0).collect()),
        BoundCause::Job { label, steps } => Limit::Job {
            label: label.clone(),
            steps: steps.iter().map(|step| step_row(assembly, step)).collect(),
        },
        BoundCause::Cut {
            links, bytes, rate, ..
        } => Limit::Links {
            links: links
                .iter()
                .map(|&link| assembly.topology.link_name(link))
                .collect(),
            what: what_links(assembly, &bound.cause),
            bytes: bytes.as_u64(),
            rate_bps: rate.as_bps(),
        },
    };
    Bound::new(limit, bound.from.since(Time::ZERO), bound.span, took)
}

fn step_row(assembly: &Assembly, step: &JobStep) -> StepRow {
    match *step {
        JobStep::Message { flow, bytes, span } => StepRow {
            host: assembly.workload.flow(flow).src.0,
            flow: Some(flow.0),
            bytes: Some(bytes.as_u64()),
            ps: span.as_ps(),
        },
        JobStep::Computation { host, span } => StepRow {
            host: host.0,
            flow: None,
            bytes: None,
            ps: span.as_ps(),
        },
    }
}

/// Links of a cut as text: `host5's downlink`, `the 4 uplinks of leaf0`.
fn what_links(assembly: &Assembly, cause: &BoundCause) -> String {
    let BoundCause::Cut {
        links,
        hosts,
        switch,
        outwards,
        ..
    } = cause
    else {
        return String::new();
    };
    let topology = &assembly.topology;
    let ends = topology.link_ends(links[0]);
    let (near, direction) = match outwards {
        true => (ends.0, "uplink"),
        false => (ends.1, "downlink"),
    };
    match (switch, links.len()) {
        (None, 1) => format!("{}'s {direction}", topology.node_name(near)),
        (Some(switch), 1) => format!("The {direction} of {}", topology.node_name(*switch)),
        (Some(switch), several) => format!(
            "The {several} {direction}s of {}",
            topology.node_name(*switch)
        ),
        (None, several) => format!(
            "The {several} {direction}s between {} with {} hosts and the rest",
            topology.node_name(near),
            count((*hosts).into())
        ),
    }
}

//! Requests and answers as JSON.
//!
//! A request is `{"text": SCENARIO, "set": [KEY=VALUE]}`, with the assignments of options `--set`; `set` may be absent.
//!
//! | function | answer |
//! |---|---|
//! | [`describe`] | `version`, `revision`, `scenarios` (`name`, `about`, `text`), `transports` (`name`, `about`) |
//! | [`check`] | `warnings`, `hosts`, `work`, `settings` (`section`, `key`, `value`, `meaning`, `expected`, `words`); or `error` |
//! | [`run`] | `digest`, `tiles` (`name`, `value`, `under`), `summary` (as in `summary.json`), `report` (HTML), `resolved`, `command`, `warnings`; or `error` |
//!
//! `error` has the `text` that the program prints, and its parts: `line` (absent if the error is not about a line of the scenario),
//! `message` and `fix`. Errors call the scenario [`FILE`].

use clearway_lab::scenario::{Setting, builtin_scenarios, first_comment};
use clearway_lab::{
    Assembly, Experiment, Laboratory, RunDecision, RunProgress, ScenarioError, SourceLocation,
    Threads,
};
use clearway_report::summary::Summary;
use clearway_report_html::tiles;
use clearway_runs::{
    RunRequest, RunWatcher, RunWork, report_html, run as run_scenario, scaleup, work_of,
};
use clearway_units::ValueDomain;
use serde::Deserialize;
use serde_json::{Value, json};
use std::num::NonZeroUsize;

/// Name of the scenario in errors and commands.
pub const FILE: &str = "scenario.toml";

/// Limits of a run in a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrowserLimits {
    /// Maximum length of a scenario in bytes.
    pub text: usize,
    /// Maximum number of hosts or GPUs.
    pub hosts: u64,
    /// Maximum number of flows or operations.
    pub flows: u64,
    /// Maximum number of packet-hops before the run, without retransmissions.
    pub hops: u64,
}

impl BrowserLimits {
    /// The limits of the page: some minutes of one core, and less than 4 GB, which is what a module of 32-bit WebAssembly can have.
    pub const DEFAULT: Self = Self {
        text: 256 << 10,
        hosts: 16_384,
        flows: 200_000,
        hops: 500_000_000,
    };

    fn check_hosts(&self, hosts: u64) -> Result<(), ScenarioError> {
        at_most(hosts, "hosts", self.hosts)
    }

    fn check_work(&self, work: RunWork) -> Result<(), ScenarioError> {
        match work {
            RunWork::Operations(operations) => at_most(operations, "operations", self.flows),
            RunWork::Flows { flows, packet_hops } => {
                at_most(flows, "flows", self.flows)?;
                at_most(packet_hops, "packet-hops", self.hops)
            }
        }
    }
}

fn at_most(count: u64, what: &str, most: u64) -> Result<(), ScenarioError> {
    if count <= most {
        return Ok(());
    }
    let message = format!("{count} {what} are too many for a browser, which runs up to {most}");
    let fix = "run it with the program `clearway`";
    Err(ScenarioError::about(&[], message, fix))
}

/// Scenario of a request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Request {
    /// The text.
    pub text: String,
    /// Assignments of options `--set`.
    #[serde(default)]
    pub set: Vec<String>,
}

impl Request {
    fn from_json(text: &str) -> Result<Self, ScenarioError> {
        serde_json::from_str(text).map_err(|error| {
            let message = format!("not a request: {error}");
            ScenarioError::about(&[], message, "send {\"text\": SCENARIO, \"set\": []}")
        })
    }

    fn experiment(&self, limits: BrowserLimits) -> Result<Experiment, ScenarioError> {
        let length = self.text.len() + self.set.iter().map(String::len).sum::<usize>();
        if length > limits.text {
            let message = format!("the scenario has {length} bytes, more than {}", limits.text);
            return Err(ScenarioError::about(&[], message, "shorten it"));
        }
        Laboratory::new().read_any(FILE, &self.text, None, &self.set)
    }

    /// The command that repeats the run.
    fn command(&self) -> String {
        let mut command = format!("clearway run {FILE}");
        for assignment in &self.set {
            command += &format!(" --set {assignment}");
        }
        command
    }
}

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlaygroundProgress {
    /// Share of the flows that are done; zero if nothing is known.
    pub share: f64,
    /// Packet-hops so far.
    pub hops: u64,
    /// Simulated time in microseconds.
    pub simulated_us: f64,
}

/// Version, built-in scenarios and transports.
pub fn describe() -> String {
    let laboratory = Laboratory::new();
    let scenarios = builtin_scenarios()
        .iter()
        .map(|(name, text)| json!({ "name": name, "about": first_comment(text), "text": text }));
    let transports = clearway_lab::Catalogue::new(laboratory.registry())
        .group("transports")
        .unwrap_or_default();
    let transports = transports
        .into_iter()
        .map(|(name, about)| json!({ "name": name, "about": about }));
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "revision": clearway_runs::REVISION,
        "scenarios": scenarios.collect::<Vec<Value>>(),
        "transports": transports.collect::<Vec<Value>>(),
    })
    .to_string()
}

/// The answer for a defect of the program.
pub fn defect(message: &str) -> String {
    let text = format!("this is a defect of Clearway: {message}");
    json!({ "error": { "text": text, "message": text, "fix": "report it with the scenario" } })
        .to_string()
}

fn failure(error: &ScenarioError) -> Value {
    let line = match &error.place {
        Some(SourceLocation::Line { file, line }) if file == FILE => Some(*line),
        _ => None,
    };
    json!({ "error": {
        "text": format!("error: {error}"), "line": line, "message": error.message, "fix": error.fix,
    }})
}

/// Checks a scenario, and lists the keys that it can have.
pub fn check(request: &str) -> String {
    let answer = Request::from_json(request).and_then(|request| {
        let experiment = request.experiment(BrowserLimits::DEFAULT)?;
        let (hosts, work, warnings) = measure(&experiment, BrowserLimits::DEFAULT)?;
        let work = match work {
            RunWork::Flows { flows, packet_hops } => {
                json!({ "flows": flows, "packet_hops": packet_hops })
            }
            RunWork::Operations(operations) => json!({ "operations": operations }),
        };
        let settings: Vec<Value> = experiment.every_setting().iter().map(setting).collect();
        Ok(json!({ "warnings": warnings, "hosts": hosts, "work": work, "settings": settings }))
    });
    answer.unwrap_or_else(|error| failure(&error)).to_string()
}

fn setting(setting: &Setting) -> Value {
    let mut words = Vec::new();
    if let Some(domain) = &setting.domain {
        add_words(domain, &mut words);
    }
    json!({
        "section": setting.section,
        "key": setting.key,
        "value": setting.value.to_string(),
        "meaning": setting.meaning,
        "expected": setting.expected,
        "words": words,
    })
}

/// The fixed words that a key accepts.
fn add_words(domain: &ValueDomain, words: &mut Vec<&'static str>) {
    match domain {
        ValueDomain::Words(own) => words.extend(own),
        ValueDomain::Either(domains) => domains.iter().for_each(|domain| add_words(domain, words)),
        ValueDomain::List(domain) => add_words(domain, words),
        _ => {}
    }
}

/// Number of hosts, work and warnings of a scenario within the limits.
fn measure(
    experiment: &Experiment,
    limits: BrowserLimits,
) -> Result<(u64, RunWork, Vec<String>), ScenarioError> {
    let (hosts, work, warnings) = match experiment {
        Experiment::Packets(scenario) => {
            // Traffic is generated only for a fabric of a size that a browser holds.
            let hosts = u64::from(scenario.fabric()?.topology.machines());
            limits.check_hosts(hosts)?;
            // Flows are counted without keeping them; the run keeps them.
            let assembly = Assembly::streaming(scenario)?;
            (hosts, work_of(&assembly), assembly.warnings)
        }
        Experiment::Scaleup(scenario) => {
            let gpus = u64::from(scenario.fabric.nvlink.gpus);
            limits.check_hosts(gpus)?;
            let assembly = scaleup::assemble(scenario)?;
            (
                gpus,
                RunWork::Operations(assembly.operations),
                assembly.warnings,
            )
        }
    };
    limits.check_work(work)?;
    Ok((hosts, work, warnings))
}

/// Watcher that reports progress.
struct Watcher<'a> {
    on_progress: &'a mut dyn FnMut(PlaygroundProgress) -> bool,
    rounds: u32,
}

impl Watcher<'_> {
    /// Number of rounds from one report to the next.
    const ROUNDS: u32 = 64;
}

impl RunWatcher for Watcher<'_> {
    fn begin(&mut self, _work: RunWork, _warnings: &[String]) {}

    fn progress(&mut self, progress: RunProgress) -> RunDecision {
        self.rounds += 1;
        if !self.rounds.is_multiple_of(Self::ROUNDS) {
            return RunDecision::Continue;
        }
        let share = progress.flows_sent as f64 / progress.flows.max(1) as f64;
        let now = PlaygroundProgress {
            share: share.min(1.0),
            hops: progress.hops,
            simulated_us: progress.now.as_us(),
        };
        match (self.on_progress)(now) {
            true => RunDecision::Continue,
            false => RunDecision::Stop,
        }
    }
}

/// Runs a scenario. `on_progress` is called now and then; the run stops if it returns false, with the results so far.
pub fn run(
    request: &str,
    limits: BrowserLimits,
    on_progress: &mut dyn FnMut(PlaygroundProgress) -> bool,
) -> String {
    let answer = Request::from_json(request).and_then(|request| {
        let experiment = request.experiment(limits)?;
        let (_, _, warnings) = measure(&experiment, limits)?;
        let command = request.command();
        let options = RunRequest {
            threads: Threads::Exactly(NonZeroUsize::MIN),
            folder: None,
            report: false,
            flow_rows: true,
            partial: true,
            command: Some(&command),
        };
        let mut watcher = Watcher {
            on_progress,
            rounds: 0,
        };
        let done = run_scenario(&experiment, &options, &mut watcher)?;
        let report = report_html(&done.resolved, experiment.settings(), &done.record, None);
        Ok(json!({
            "digest": done.record.digest,
            "tiles": tiles(&done.record),
            "summary": Summary::from_record(&done.record),
            "report": report,
            "resolved": done.resolved,
            "command": command,
            "warnings": warnings,
        }))
    });
    answer.unwrap_or_else(|error| failure(&error)).to_string()
}

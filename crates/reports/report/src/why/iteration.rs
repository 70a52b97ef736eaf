//! `iteration` in `why.json`: the critical path of an iteration of a job, by kinds of time, links and hosts.

use super::path_step::{PathStepRow, StepName};
use super::ranks::RankTimeline;
use crate::quantity::{count, share, span};
use clearway_results::DelayPart;
use clearway_units::Span;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// Kind of time on a critical path of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathPart {
    /// Part of a message's time.
    Message(DelayPart),
    /// Computation of a rank.
    Computation,
    /// Wait for the slot in which communication may start.
    Slot,
    /// Wait for the turn at a receiver.
    Turn,
}

impl PathPart {
    /// The name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Message(part) => part.name(),
            Self::Computation => "computation",
            Self::Slot => "slot",
            Self::Turn => "turn",
        }
    }
}

impl Serialize for PathPart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Time of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathPartRow {
    /// Kind of time.
    pub part: PathPart,
    /// The time.
    pub ps: u64,
}

/// Contribution of a link to a critical path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathLinkRow {
    /// The link.
    pub link: String,
    /// Time behind packets of other flows in front of the link.
    pub queueing_us: f64,
    /// Time in which the link was paused.
    pub paused_us: f64,
    /// Time in which packets of the messages followed one another on the link.
    pub serialisation_us: f64,
    /// Number of messages that spent time at the link.
    pub messages: usize,
}

/// Contribution of a host to a critical path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathHostRow {
    /// The host.
    pub host: u32,
    /// Time of the host's computations.
    pub computing_us: f64,
    /// Time of the host's messages.
    pub messages_us: f64,
    /// Additional time of the messages compared with each message alone, and waits for slots and turns.
    pub excess_us: f64,
    /// Number of the host's messages.
    pub messages: usize,
}

/// Iteration of a job, and its critical path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlowIteration {
    /// Name of the job.
    pub job: String,
    /// Number of the iteration, from 0.
    pub iteration: u32,
    /// Begin of the first rank.
    pub from_us: f64,
    /// Time until the last rank finished.
    pub took_us: f64,
    /// Time of the same path if each message were alone.
    pub alone_us: f64,
    /// Messages of the path.
    pub messages: usize,
    /// Computations of the path.
    pub computations: usize,
    /// Kinds of time, the longest first; their sum is the time of the iteration.
    pub parts: Vec<PathPartRow>,
    /// Links that contribute, the costliest first.
    pub links: Vec<PathLinkRow>,
    /// Hosts that computed or sent, the costliest first.
    pub hosts: Vec<PathHostRow>,
    /// The first 1000 steps, in order.
    pub steps: Vec<PathStepRow>,
    /// What the hosts did, for the report.
    #[serde(skip)]
    pub ranks: RankTimeline,
    /// The iteration in words.
    pub sentence: String,
}

/// Maximum number of listed steps.
const MOST: usize = 1000;
impl SlowIteration {
    /// An iteration of `job` with the steps of its critical path. `choice` describes the choice of the iteration: `the longest of the run`.
    pub fn new(job: &str, iteration: u32, choice: &str, mut steps: Vec<PathStepRow>) -> Self {
        let from = steps.first().map_or(0, |step| step.from_ps);
        let took = steps.iter().map(|step| step.ps).sum();
        // A message that began before the iteration is cut.
        let alone = steps.iter().map(|step| step.ideal_ps.min(step.ps)).sum();
        let number = |what: StepName| steps.iter().filter(|step| step.what == what).count();
        let mut own = Self {
            job: job.into(),
            iteration,
            from_us: Span::from_ps(from).as_us(),
            took_us: Span::from_ps(took).as_us(),
            alone_us: Span::from_ps(alone).as_us(),
            messages: number(StepName::Message),
            computations: number(StepName::Computation),
            parts: parts(&steps),
            links: links(&steps),
            hosts: hosts(&steps),
            steps: Vec::new(),
            ranks: RankTimeline::default(),
            sentence: String::new(),
        };
        own.sentence = own.say(choice, (Span::from_ps(took), Span::from_ps(alone)));
        steps.truncate(MOST);
        own.steps = steps;
        own
    }

    /// Total time in picoseconds.
    pub fn took_ps(&self) -> u64 {
        self.parts.iter().map(|row| row.ps).sum()
    }

    fn say(&self, choice: &str, (took, alone): (Span, Span)) -> String {
        let numbered = |number: usize, one: &str| match number {
            1 => format!("1 {one}"),
            several => format!("{} {one}s", count(several as u64)),
        };
        let mut steps = vec![numbered(self.messages, "message")];
        if self.computations > 0 {
            steps.push(numbered(self.computations, "computation"));
        }
        let of = |row: &PathPartRow| share(row.ps, took.as_ps());
        let longest: Vec<String> = self
            .parts
            .iter()
            .take(3)
            .map(|row| format!("{} {}", of(row), row.part.name()))
            .collect();
        let cost = |row: &&PathHostRow| row.computing_us + row.excess_us > 0.0;
        let host = self.hosts.first().filter(cost);
        let host = host.map(|row| format!("host {}", row.host));
        let link = self.links.first().filter(|link| link.cost() > 0.0);
        let link = link.map(|row| format!("link {}", row.link));
        let costly: Vec<String> = host.into_iter().chain(link).collect();
        let costly = match costly.is_empty() {
            true => String::new(),
            false => format!(" Most of it cost {}.", costly.join(" and ")),
        };
        format!(
            "Iteration {} of {} took {}, {choice}: {} in a row, which take {} if each message is alone. It was {}.{costly}",
            self.iteration,
            self.job,
            span(took),
            steps.join(" and "),
            span(alone),
            longest.join(", "),
        )
    }
}

impl PathLinkRow {
    /// Delay by queueing and pauses at the link.
    pub(crate) fn cost(&self) -> f64 {
        self.queueing_us + self.paused_us
    }
}

/// Kinds of time, the longest first.
fn parts(steps: &[PathStepRow]) -> Vec<PathPartRow> {
    let mut times: BTreeMap<&'static str, PathPartRow> = BTreeMap::new();
    let mut add = |part: PathPart, ps: u64| {
        let row = times.entry(part.name());
        row.or_insert(PathPartRow { part, ps: 0 }).ps += ps;
    };
    for step in steps {
        match step.what {
            StepName::Computation => add(PathPart::Computation, step.ps),
            StepName::Slot => add(PathPart::Slot, step.ps),
            StepName::Turn => add(PathPart::Turn, step.ps),
            StepName::Message if step.parts.is_empty() => {
                add(PathPart::Message(DelayPart::Unexplained), step.ps);
            }
            StepName::Message => step
                .parts
                .iter()
                .for_each(|&(part, _, ps)| add(PathPart::Message(part), ps)),
        }
    }
    let mut rows: Vec<PathPartRow> = times.into_values().filter(|row| row.ps > 0).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.ps));
    rows
}

/// Links, the costliest first.
fn links(steps: &[PathStepRow]) -> Vec<PathLinkRow> {
    let mut links: BTreeMap<&str, PathLinkRow> = BTreeMap::new();
    for step in steps {
        let mut met: Vec<&str> = Vec::new();
        for (part, link, ps) in &step.parts {
            let Some(link) = link else { continue };
            let row = links.entry(link).or_insert_with(|| PathLinkRow {
                link: link.clone(),
                queueing_us: 0.0,
                paused_us: 0.0,
                serialisation_us: 0.0,
                messages: 0,
            });
            let us = Span::from_ps(*ps).as_us();
            match part {
                DelayPart::Queueing => row.queueing_us += us,
                DelayPart::Pause => row.paused_us += us,
                _ => row.serialisation_us += us,
            }
            if !met.contains(&link.as_str()) {
                met.push(link);
                row.messages += 1;
            }
        }
    }
    let mut links: Vec<PathLinkRow> = links.into_values().collect();
    links.sort_by(|a, b| {
        let costlier = b.cost().total_cmp(&a.cost());
        costlier.then(b.serialisation_us.total_cmp(&a.serialisation_us))
    });
    links
}

/// Hosts, ordered by the cost of computations and of the additional time of messages, the costliest first.
fn hosts(steps: &[PathStepRow]) -> Vec<PathHostRow> {
    let mut hosts: BTreeMap<u32, PathHostRow> = BTreeMap::new();
    for step in steps {
        let row = hosts.entry(step.host).or_insert(PathHostRow {
            host: step.host,
            computing_us: 0.0,
            messages_us: 0.0,
            excess_us: 0.0,
            messages: 0,
        });
        let us = Span::from_ps(step.ps).as_us();
        match step.what {
            StepName::Computation => row.computing_us += us,
            StepName::Message => {
                row.messages += 1;
                row.messages_us += us;
                row.excess_us += Span::from_ps(step.ps.saturating_sub(step.ideal_ps)).as_us();
            }
            StepName::Slot | StepName::Turn => row.excess_us += us,
        }
    }
    let mut hosts: Vec<PathHostRow> = hosts.into_values().collect();
    let cost = |row: &PathHostRow| row.computing_us + row.excess_us;
    hosts.sort_by(|a, b| cost(b).total_cmp(&cost(a)));
    hosts
}

//! `why.json`: reasons why the slowest flows of a run were slow, and a lower bound for every transport.
//!
//! | field | unit | meaning |
//! |---|---|---|
//! | `schema` | - | version of this file, 1 |
//! | `scenario`, `digest` | - | identity of the run, as in `summary.json` |
//! | `bound.from_us` | us | time at which the first flow was ready |
//! | `bound.least_us` | us | minimum time from then to the last completion, for any transport |
//! | `bound.took_us` | us | actual time; null if the run is not complete |
//! | `bound.ratio` | - | `took_us / least_us`; null if nothing bounds the run, or it is not complete |
//! | `bound.sentence` | - | the cause in words |
//! | `bound.links` | - | the links that limit the run, if the bound is a cut; `bytes` and `rate_bps` are their totals |
//! | `bound.flows` | - | the flows that start one another, if the bound is a chain |
//! | `bound.job` | - | the job of a chain of messages and computations; otherwise absent, like the next two fields |
//! | `bound.messages`, `bound.computations` | - | numbers of messages and computations in the chain |
//! | `bound.steps[]` | ps | its first 1000 steps: `host` that computes or sends, minimum time `ps`; for a message also `flow`, `bytes` |
//! | `flows[]` | - | the requested flows, or the slowest flows, the slowest first |
//! | `flow`, `label`, `src`, `dst`, `bytes` | - | as in `flows.parquet` |
//! | `start_ps`, `completion_ps`, `ideal_ps` | ps | time of being ready, completion time, completion time on an idle network (or 0) |
//! | `path`, `ways` | - | the nodes on the path of the flow's data, and the number of different paths |
//! | `bottleneck` | - | the link that delayed the flow most by queueing and pauses; null if no link did |
//! | `sharers` | - | number of other flows whose data the flow waited for at the bottleneck |
//! | `parts[]` | - | `part`, `link` (null if the part belongs to no link), `ps`: the completion time, without a remainder |
//! | `waits[]` | - | events that a connection of a job waited for, the longest waits first: `what`, `host` of the events, `flow` (the connection of a message, otherwise absent), `ps`; absent if the flow is not a connection |
//! | `links[]` | - | for each link that its data crossed: `packets`, `mean_wait_us` in front of it, `sharers`, `rate_bps` |
//! | `sentence` | - | the flow in words |
//! | `links[]` | - | total delays of these flows by link: `link`, `queueing_us`, `paused_us`, `flows` |
//! | `iteration.job`, `iteration.iteration` | - | the longest iteration of a job, or the requested iteration; absent without jobs |
//! | `iteration.from_us`, `took_us` | us | begin of its first rank, and the time until its last rank finished |
//! | `iteration.alone_us` | us | time of the same critical path if each message were alone |
//! | `iteration.messages`, `computations` | - | numbers of messages and computations on the path |
//! | `iteration.parts[]` | ps | kinds of time, `part` and `ps`: the parts of messages as above, `computation`, `slot`, `turn`; their sum is `took_us` |
//! | `iteration.links[]` | us | links of the path: `link`, `queueing_us`, `paused_us`, `serialisation_us`, number of `messages` |
//! | `iteration.hosts[]` | us | hosts of the path: `host`, `computing_us`, `messages`, `messages_us`, and `excess_us`, additional time of the messages compared with each message alone, and waits for slots and turns |
//! | `iteration.steps[]` | ps | the first 1000 steps: `what`, `host`, `from_ps`, `ps`, `ideal_ps`; for a message also `to`, `flow`, `bytes`, and `acknowledged` if the sender waited for the acknowledgement |
//! | `iteration.sentence` | - | the iteration in words |

mod compared;
mod iteration;
mod path_step;
mod ranks;
mod sentences;

pub use compared::{ExplainedVariant, PartTime, WhyComparison};
pub use iteration::{PathHostRow, PathLinkRow, PathPart, PathPartRow, SlowIteration};
pub use path_step::{PathStepRow, StepName};
pub use ranks::{RankRow, RankTimeline};

use crate::quantity::span;
use crate::record::ScenarioIdentity;
use clearway_results::DelayPart;
use clearway_units::Span;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

/// The name of the file in a result folder.
pub const FILE_NAME: &str = "why.json";

/// The version of the schema.
pub const SCHEMA: u32 = 1;

/// Contents of `why.json`; the [table of the module](self) describes the fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WhyRecord {
    /// Always [`SCHEMA`].
    pub schema: u32,
    /// Scenario of the run.
    pub scenario: ScenarioIdentity,
    /// Digest of the run.
    pub digest: String,
    /// Lower bound that holds for every transport.
    pub bound: Bound,
    /// The flows, the slowest first.
    pub flows: Vec<SlowFlow>,
    /// The links that cost these flows most.
    pub links: Vec<CostlyLink>,
    /// The longest iteration of a job, or the requested one; absent without jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<SlowIteration>,
}

/// Cause of a lower bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limit {
    /// The run has no traffic.
    Nothing,
    /// Flows that start one another.
    Chain(Vec<u32>),
    /// Messages and computations of a job that wait for one another.
    Job {
        /// Name of the job.
        label: String,
        /// Messages and computations, in order.
        steps: Vec<StepRow>,
    },
    /// Load of links.
    Links {
        /// Names of the links.
        links: Vec<String>,
        /// Description of the links, such as `host5's downlink`.
        what: String,
        /// Bytes on the wire.
        bytes: u64,
        /// Total rate of the links.
        rate_bps: u64,
    },
}

/// Message or computation of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StepRow {
    /// Host that computes or sends.
    pub host: u32,
    /// Connection of a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<u32>,
    /// Length of a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Minimum time of the step.
    pub ps: u64,
}

/// Lower bound of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bound {
    /// Time at which the first flow was ready.
    pub from_us: f64,
    /// Minimum duration of the run.
    pub least_us: f64,
    /// Actual duration of the run; `None` if the run is not complete.
    pub took_us: Option<f64>,
    /// Ratio of the actual to the minimum duration.
    pub ratio: Option<f64>,
    /// The cause in words.
    pub sentence: String,
    /// Links of a cut.
    pub links: Vec<String>,
    /// Bytes that cross these links.
    pub bytes: u64,
    /// Total rate of the links.
    pub rate_bps: u64,
    /// Flows of a chain.
    pub flows: Vec<u32>,
    /// Chain of a job.
    #[serde(flatten)]
    pub chain: Option<JobChain>,
}

/// Chain of messages and computations of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JobChain {
    /// Name of the job.
    pub job: String,
    /// Number of messages.
    pub messages: usize,
    /// Number of computations.
    pub computations: usize,
    /// The first messages and computations, in order.
    pub steps: Vec<StepRow>,
}

impl JobChain {
    fn from_steps(label: &str, steps: &[StepRow]) -> Self {
        /// Maximum number of listed steps.
        const MOST: usize = 1000;
        let messages = steps.iter().filter(|step| step.flow.is_some()).count();
        Self {
            job: label.into(),
            messages,
            computations: steps.len() - messages,
            steps: steps.iter().take(MOST).copied().collect(),
        }
    }
}

/// A flow and the parts of its time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlowFlow {
    /// Number of the flow.
    pub flow: u32,
    /// Number in the workload.
    pub label: u64,
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// Payload.
    pub bytes: u64,
    /// Time at which the flow was ready.
    pub start_ps: u64,
    /// Completion time.
    pub completion_ps: u64,
    /// Completion time alone on an idle network; zero if unknown.
    pub ideal_ps: u64,
    /// Nodes that the flow's data passed.
    pub path: String,
    /// Number of different paths of the data.
    pub ways: usize,
    /// The link that delayed the flow most.
    pub bottleneck: Option<String>,
    /// Other flows whose data the flow waited for at the bottleneck.
    pub sharers: usize,
    /// Parts of the completion time, the longest first.
    pub parts: Vec<DelayRow>,
    /// Events that a connection of a job waited for, the longest waits first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<JobWaitRow>,
    /// Links that the flow's data crossed.
    pub links: Vec<WaitRow>,
    /// The flow in words.
    pub sentence: String,
}

/// Kind of event that allows a rank of a job to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Awaited {
    /// The start of the job.
    Start,
    /// Messages from the host.
    Messages,
    /// Acknowledgements of messages to the host.
    Acknowledgements,
    /// Computations at the host.
    Computations,
    /// The turn at a receiver that takes a limited number of messages at a time.
    Turn,
}

/// Time that a connection of a job waited for events of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct JobWaitRow {
    /// Kind of the events.
    pub what: Awaited,
    /// Host at which the events happened.
    pub host: u32,
    /// Connection of the messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<u32>,
    /// Time on the critical path.
    pub ps: u64,
}

impl JobWaitRow {
    /// The events in words, with their time.
    pub fn say(&self) -> String {
        let host = self.host;
        let flow = self
            .flow
            .map_or(String::new(), |flow| format!(" (flow {flow})"));
        let what = match self.what {
            Awaited::Start => "the start of its job".into(),
            Awaited::Messages => format!("messages from host {host}{flow}"),
            Awaited::Acknowledgements => format!("acknowledgements from host {host}{flow}"),
            Awaited::Computations => format!("computations at host {host}"),
            Awaited::Turn => format!("its turn at host {host}"),
        };
        format!("{} for {what}", span(Span::from_ps(self.ps)))
    }
}

/// Part of a completion time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DelayRow {
    /// Kind of the part.
    #[serde(serialize_with = "part_name")]
    pub part: DelayPart,
    /// The link, if the part belongs to one.
    pub link: Option<String>,
    /// Length of the part.
    pub ps: u64,
}

/// Waits in front of a link.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WaitRow {
    /// The link.
    pub link: String,
    /// Packets that crossed the link.
    pub packets: u64,
    /// Mean waiting time in front of the link.
    pub mean_wait_us: f64,
    /// Other flows whose data waited in front of the link ahead of the flow.
    pub sharers: usize,
    /// Rate of the link.
    pub rate_bps: u64,
}

/// Delay that a link caused to several flows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostlyLink {
    /// The link.
    pub link: String,
    /// Time that the flows' critical paths spent behind other flows in front of the link.
    pub queueing_us: f64,
    /// Time that the flows' critical paths spent while the link was paused.
    pub paused_us: f64,
    /// Number of these flows.
    pub flows: usize,
}

fn part_name<S: Serializer>(part: &DelayPart, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(part.name())
}

/// Delays that links cause to the flows together, the costliest link first.
pub fn costly_links(flows: &[SlowFlow]) -> Vec<CostlyLink> {
    let mut costs: BTreeMap<&str, (u64, u64, BTreeSet<u32>)> = BTreeMap::new();
    for flow in flows {
        for row in &flow.parts {
            let Some(link) = &row.link else { continue };
            let (queueing, paused) = match row.part {
                DelayPart::Queueing => (row.ps, 0),
                DelayPart::Pause => (0, row.ps),
                _ => continue,
            };
            let cost = costs.entry(link).or_default();
            (cost.0, cost.1) = (cost.0 + queueing, cost.1 + paused);
            cost.2.insert(flow.flow);
        }
    }
    let mut links: Vec<_> = costs.into_iter().collect();
    links.sort_by_key(|(_, (queueing, paused, _))| std::cmp::Reverse(queueing + paused));
    let link = |(link, (queueing, paused, flows)): (&str, (u64, u64, BTreeSet<u32>))| CostlyLink {
        link: link.into(),
        queueing_us: Span::from_ps(queueing).as_us(),
        paused_us: Span::from_ps(paused).as_us(),
        flows: flows.len(),
    };
    links.into_iter().map(link).collect()
}

impl WhyRecord {
    /// The document as JSON.
    ///
    /// # Panics
    /// Never: all keys of its maps are texts.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("the document can be written") + "\n"
    }

    /// The parts that occur in any of the flows, in display order.
    pub fn parts(&self) -> Vec<DelayPart> {
        let has = |part: &DelayPart| self.flows.iter().any(|flow| !flow.total(*part).is_zero());
        DelayPart::ALL.into_iter().filter(has).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn flow(parts: &[(DelayPart, Option<&str>, u64)]) -> SlowFlow {
        let row = |&(part, link, us): &(DelayPart, Option<&str>, u64)| DelayRow {
            part,
            link: link.map(Into::into),
            ps: us * 1_000_000,
        };
        let wait = |(link, gbps): (&str, u64)| WaitRow {
            link: link.into(),
            packets: 10,
            mean_wait_us: 1.0,
            sharers: 15,
            rate_bps: gbps * 1_000_000_000,
        };
        let parts: Vec<DelayRow> = parts.iter().map(row).collect();
        let mut flow = SlowFlow {
            flow: 17,
            label: 17,
            src: 3,
            dst: 5,
            bytes: 1000,
            start_ps: 0,
            completion_ps: parts.iter().map(|row| row.ps).sum(),
            ideal_ps: 10_000_000,
            path: "host3 > leaf0 > host5".into(),
            ways: 1,
            bottleneck: Some("t-5".into()),
            sharers: 15,
            links: [("host3-leaf0", 400), ("t-5", 100)].map(wait).into(),
            parts,
            waits: Vec::new(),
            sentence: String::new(),
        };
        flow.sentence = flow.say();
        flow
    }

    #[test]
    fn each_cause_has_a_sentence() {
        use DelayPart::*;
        let said = |part, link| flow(&[(part, link, 71), (Propagation, None, 29)]).sentence;
        let link = Some("t-5");
        insta::assert_snapshot!(
            [
                said(Queueing, link),
                said(Pause, link),
                said(Serialisation, link),
                said(Serialisation, Some("host3-leaf0")),
                said(Window, None),
                said(Pacing, None),
                said(Recovery, None),
                said(Waiting, None),
                flow(&[(Propagation, None, 10)]).sentence,
            ]
            .join("\n"),
            @r"
            Flow 17: for 71 % of its 100.0 us it waited in the queue of t-5, which 15 other flows shared.
            Flow 17: for 71 % of its 100.0 us it waited for t-5, which pause frames (PFC) held back.
            Flow 17: for 71 % of its 100.0 us its packets followed one another on t-5, the slowest link of its way.
            Flow 17: its 100.0 us went into sending and flight.
            Flow 17: for 71 % of its 100.0 us its window held it back; its packets queued longest at t-5, which 15 other flows shared.
            Flow 17: for 71 % of its 100.0 us congestion control paced it; its packets queued longest at t-5, which 15 other flows shared.
            Flow 17: 71 % of its 100.0 us went into recovery: packets were taken for lost and sent again.
            Flow 17: for 71 % of its 100.0 us it had nothing to send: it waited for computations or for messages of others.
            Flow 17: nothing held it up: it took 10.00 us, 1.000x its ideal.
            "
        );
    }

    #[test]
    fn links_add_up_over_flows() {
        use DelayPart::*;
        let flows = [
            flow(&[(Queueing, Some("a"), 5), (Pause, Some("b"), 9)]),
            flow(&[(Queueing, Some("a"), 6), (Serialisation, Some("c"), 60)]),
        ];
        let links = costly_links(&flows);
        let names: Vec<_> = links.iter().map(|link| link.link.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!((links[0].queueing_us, links[1].paused_us), (11.0, 9.0));
    }
}

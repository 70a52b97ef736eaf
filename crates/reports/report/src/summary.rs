//! `summary.json`: the results of a run, in one small document.
//!
//! Within schema 1 fields are only ever added, at any level. A reader must skip unknown fields. The order of the fields is
//! fixed, and the same record gives the same bytes. A field without a value is `null`.
//!
//! | field | type, unit | meaning |
//! |---|---|---|
//! | `schema` | 1 | version of this table |
//! | `version`, `revision` | text | program and source revision that made the result |
//! | `scenario.name`, `.hash` | text | name, and hash of the resolved scenario |
//! | `scenario.seed` | integer | seed of all random streams |
//! | `status` | text | `complete`, `incomplete` (the run ended before all work was done) or `interrupted` (by the user) |
//! | `status_reason` | text or null | reason, if `incomplete`: a limit, or no events left |
//! | `given` | list of text, absent if empty | keys of the scenario that its file or overrides give, such as `topology.hosts`; all other keys have their defaults |
//! | `warnings` | list of text, absent if empty | about the scenario: settings that are probably not intended, and parts of files that a reader left out; about the run: counts that indicate a fault |
//! | `simulated_us` | us | simulated time that passed |
//! | `flows.total` | flows | all flows of the workload |
//! | `flows.completed` | flows | flows whose last byte was acknowledged |
//! | `flows.started` | flows | flows that became ready to send; the others still waited for a trigger |
//! | `fct_us` | us, or null | completion time of the completed flows: ready to last byte acknowledged at the sender |
//! | `ideal_fct_us` | us, or null | completion time of the completed flows alone on an idle network, a lower bound |
//! | `slowdown` | ratio, or null | FCT / ideal FCT of the completed flows |
//! | `goodput_bps` | bit/s, or null | payload of the completed flows, over the time from the first start to the last finish among them; null if none completed |
//! | `slowdown_by_size` | list | slowdown of completed flows by [size](crate::by_size): bins with equal numbers of flows, from the smallest flows on |
//! | `….smallest_bytes`, `.median_bytes`, `.largest_bytes` | bytes | flows of the bin |
//! | `….flows` | flows | number of flows in the bin |
//! | `….mean`, `.p50`, `.p95`, `.p99`, `.p999`, `.max` | ratio | their slowdown |
//! | `slowdown_by_class` | list | slowdown for size classes that all runs have in common; classes without flows are left out |
//! | `….above_bytes`, `.up_to_bytes` | bytes | flows of the class: more than the first, at most the second (null: any) |
//! | `sections` | list, absent if all flows belong to one section | the same figures [by section](crate::by_section) of the workload |
//! | `….name` | text | name of the section; sections of the same name count as one |
//! | `….flows`, `.completed` | flows | number of flows of the section, and of completed flows |
//! | `….fct_us`, `.slowdown` | as above, or null | figures of the completed flows |
//! | `….goodput_bps` | bit/s, or null | payload of the completed flows, over the time from the first start to the last finish among them |
//! | `….by_class` | list | the same figures for each size class that has flows, with `above_bytes` and `up_to_bytes` |
//! | `transports` | list, absent if all flows have one transport | [by transport](crate::by_transport): `name`, `sections` (names of the sections that use it), the figures of a section without `by_class`, and at its senders `data_sent`, `retransmitted` (packets) and `timeouts` |
//! | `parties` | absent without an attack | [both sides](crate::attack_sides) of an attack: `attackers` and `victims` with `users`, `messages`, `completed`, `flows`, `goodput_bps` over users, `fct_us`, `slowdown`; and `user_fairness`, Jain's index over the goodputs of all users |
//! | `operations` | absent in runs of packets | [figures and breakdown](crate::operation_summary) of a scale-up run |
//! | `start_finish` | or null | starts and finishes of the completed flows; null if no flow completed |
//! | `start_finish.spearman` | −1 to 1, or null | [rank correlation](crate::start_finish) of start and finish: 1 if flows finish in the order of their starts |
//! | `start_finish.start_spread_us`, `.finish_spread_us` | us | from the first start, or finish, to the last |
//! | `fairness` | or null | fairness within the last set of flows: from the last time that a flow started beside others until the first completion after that; null if the run was not sampled or there were never two flows at the same time |
//! | `fairness.from_us`, `.until_us` | us | start and end of this period; `until_us` is null if no flow completed after the last start |
//! | `fairness.flows` | flows | number of active flows |
//! | `fairness.goodput` | or null | Jain's index of goodput in windows of eight base round trips that lie in this period; null without such a window |
//! | `fairness.allowed_rate` | or null | Jain's index of the rates at which these flows may send, at each sample; null if no controller limits its flow |
//! | `….min`, `….last` | index | the minimum and the last value of the index |
//! | `….settled_us` | us, or null | time after the last start from which on the index stayed at 0.95 or more; null if the last value is less |
//! | `fast_forward` | absent without `fast-forward.error` | [simulated and remembered calls](crate::fast_forward) of a run that may remember calls |
//! | `fast_forward.wanted`, `.estimated` | fraction | error that the user allows, and estimated error of `simulated_us` |
//! | `fast_forward.simulated_bytes`, `.remembered_bytes`, `.remembered_share` | bytes, fraction | bytes of messages with packets and without, and the part without |
//! | `fast_forward.calls` | list | calls by sort: `ranks`, `messages` and `bytes` of a call; `kinds` and how many of them are `disagreeing`; calls `simulated` and `remembered`, and simulated calls beside remembered ones, `void` |
//! | `fast_forward.verified`, `.found` | calls, fraction or null | simulated calls that were compared with remembered ones, and the largest difference of a mean transfer time |
//! | `fast_forward.skipped` | object | steady stretches that were skipped: `stretches`, `time_us` and `time_share`, `bytes` and `bytes_share`; `verified` stretches, and the largest difference `found`, a fraction or null |
//! | `fast_forward.no_skips` | text or null | reason why no time may be skipped, in a run that remembers no calls |
//! | `fast_forward.declined_jobs` | list | jobs without remembered calls: `label`, `reason` |
//! | `jobs` | list | [the jobs of the run](crate::jobs): ranks that repeat a collective or a training iteration |
//! | `….label` | text | the user's name for the job |
//! | `….section` | text | name of the job's `[[workload]]` section |
//! | `….tenant` | text, absent without | the tenant that the job's section names |
//! | `….ranks`, `.iterations` | integer | number of ranks, and number of iterations that the job had to run |
//! | `….hosts` | list of hosts | the host of each rank |
//! | `….flows.first`, `.count` | integer | the job's connections are the flows with numbers from `first` to `first` + `count` - 1 in `flows.parquet` |
//! | `….completed` | iterations | iterations that ended before the run ended |
//! | `….iteration_us` | us, or null | times of these iterations, each from the begin of the first rank to the end of the last |
//! | `….start_us` | us, or null | start of the first iteration; null if no iteration began |
//! | `….end_us` | us, or null | end of the last iteration; null if some iterations did not end |
//! | `….bytes` | bytes, or null | size of the collective as nccl-tests count it; null if the job is not a single collective |
//! | `….algbw_gb_per_s` | 10⁹ bytes/s, or null | algorithm bandwidth: `bytes` / mean of `iteration_us` |
//! | `….busbw_gb_per_s` | 10⁹ bytes/s, or null | bus bandwidth of nccl-tests: `algbw_gb_per_s` times the factor of the collective |
//! | `….iterations_us` | list of us | time of each completed iteration, in order; if n exceeds 1000, only 1000 iterations: place i has number ⌊i·(n − 1)/999⌋, from zero; `iterations.parquet` has all |
//! | `jobs_us` | us, or null | the mean time of an iteration over all jobs that completed one: `mean` is the average job, `max` the slowest job; null if no job completed an iteration |
//! | `packets.…` | packets, frames | [totals over all hosts and switches](PacketCounts) |
//! | `paused_links` | links | number of links that flow control paused |
//! | `longest_paused` | list | up to 16 paused links, the longest paused first: `link`, `pauses` (number), `paused_us` (total time) |
//! | `data_packet_hops`, `packet_hops` | links | links crossed by data packets, by all packets |
//! | `digest` | text | digest of the outcome, equal for any number of threads |
//! | `threads` | integer | worker threads |
//! | `cpu_seconds`, `wall_seconds` | s | CPU time of all threads (0 if the system does not report it; Linux does), and wall time |
//! | `peak_rss_bytes` | bytes | maximum memory of the process; 0 if the system does not report it |
//!
//! `fct_us`, `ideal_fct_us`, `slowdown`, `iteration_us` and `jobs_us` are objects with `min`, `mean`, `p50`, `p99`, `p999` and `max`;
//! percentiles are nearest rank. The first three are null if no flow completed. Times are floating point numbers in microseconds;
//! `flows.parquet` has the exact picoseconds of flows.
//!
//! A connection on which a job posts many messages is a flow whose ideal completion time is zero. Such a flow counts in `flows`, but has
//! no meaningful completion time: `fct_us`, `ideal_fct_us`, `slowdown` and the figures derived from them, such as `start_finish`, leave it
//! out.

use crate::attack_sides::AttackSides;
use crate::by_section::{Goodput, SectionSummary, by_section};
use crate::by_size::{FlowsBySize, SizeBin, SizeClass};
use crate::by_transport::{TransportSummary, by_transport};
use crate::fast_forward::FastForwardSummary;
use crate::jobs::{self, JobSummary};
use crate::observed::Fairness;
use crate::operation_summary::OperationSummary;
use crate::record::{FlowTimes, PausedLink, RunRecord, ScenarioIdentity, Status};
use crate::start_finish::StartFinish;
use crate::statistics::Distribution;
use clearway_input::{InputError, InputKind};
use clearway_results::PacketCounts;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The name of the file in a result folder.
pub const FILE_NAME: &str = "summary.json";

/// The version of the schema that this crate writes and reads.
pub const SCHEMA: u32 = 1;

/// The contents of `summary.json`; the [table of the module](self) describes the fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Always [`SCHEMA`].
    pub schema: u32,
    /// Version of the program.
    pub version: String,
    /// Revision of the source.
    pub revision: String,
    /// Scenario of the run.
    pub scenario: ScenarioIdentity,
    /// Outcome of the run.
    pub status: StatusName,
    /// Reason why the run is incomplete; otherwise `None`.
    pub status_reason: Option<String>,
    /// Keys of the scenario that the user gave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<String>,
    /// Warnings about the scenario and the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Simulated time in microseconds.
    pub simulated_us: f64,
    /// Number of flows.
    pub flows: FlowCounts,
    /// Completion times in microseconds; `None` if no flow completed.
    pub fct_us: Option<Distribution>,
    /// Ideal completion times of the completed flows in microseconds.
    pub ideal_fct_us: Option<Distribution>,
    /// Completion times as multiples of the ideal ones.
    pub slowdown: Option<Distribution>,
    /// Payload of the completed flows over the time from the first start to the last finish among them, in bit/s; `None` if no flow
    /// completed.
    #[serde(default)]
    pub goodput_bps: Option<f64>,
    /// Slowdown by size, in bins with equal numbers of flows.
    #[serde(default)]
    pub slowdown_by_size: Vec<SizeBin>,
    /// Slowdown by size, in classes that are the same for all runs.
    #[serde(default)]
    pub slowdown_by_class: Vec<SizeClass>,
    /// Results by section of the workload; empty if all flows belong to one section.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<SectionSummary>,
    /// Results by transport; empty if all flows use the same transport.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transports: Vec<TransportSummary>,
    /// Order in which flows finish, compared with the order of their starts; `None` if no flow completed.
    #[serde(default)]
    pub start_finish: Option<StartFinish>,
    /// Results of attackers and victims; `None` if no flow is part of an attack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parties: Option<AttackSides>,
    /// Simulated and remembered calls, if calls may be remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_forward: Option<FastForwardSummary>,
    /// Operations of a scale-up run; `None` for a run of packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<OperationSummary>,
    /// Fairness within the last set of flows; `None` if the run was not sampled.
    #[serde(default)]
    pub fairness: Option<Fairness>,
    /// Jobs with the times of their iterations.
    #[serde(default)]
    pub jobs: Vec<JobSummary>,
    /// The mean time of an iteration in microseconds, over the jobs; `None` if no job completed one.
    #[serde(default)]
    pub jobs_us: Option<Distribution>,
    /// Packet counts.
    pub packets: PacketCounts,
    /// Links that flow control paused.
    #[serde(default)]
    pub paused_links: u64,
    /// Links that were paused longest.
    #[serde(default)]
    pub longest_paused: Vec<PausedLink>,
    /// Links that data packets crossed.
    pub data_packet_hops: u64,
    /// Links that packets of any kind crossed.
    pub packet_hops: u64,
    /// Digest of the outcome.
    pub digest: String,
    /// Worker threads.
    pub threads: u32,
    /// CPU time in seconds.
    pub cpu_seconds: f64,
    /// Wall time in seconds.
    pub wall_seconds: f64,
    /// The most memory held, in bytes.
    pub peak_rss_bytes: u64,
}

/// Outcome of a run, as one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StatusName {
    /// All work was done.
    Complete,
    /// The run ended before all work was done.
    Incomplete,
    /// The user interrupted the run.
    Interrupted,
}

/// Number of flows in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowCounts {
    /// All flows of the workload.
    pub total: u64,
    /// Flows that completed.
    pub completed: u64,
    /// Flows that became ready to send.
    pub started: u64,
}

impl FlowCounts {
    fn from_flows(flows: &[FlowTimes]) -> Self {
        let count =
            |holds: fn(&FlowTimes) -> bool| flows.iter().filter(|flow| holds(flow)).count() as u64;
        Self {
            total: flows.len() as u64,
            completed: count(|flow| flow.fct().is_some()),
            started: count(|flow| flow.start().is_some()),
        }
    }
}

impl Summary {
    /// Summarises `record`.
    pub fn from_record(record: &RunRecord) -> Self {
        let (status, status_reason) = match &record.status {
            Status::Complete => (StatusName::Complete, None),
            Status::Incomplete { reason } => (StatusName::Incomplete, Some(reason.clone())),
            Status::Interrupted => (StatusName::Interrupted, None),
        };
        let flows = record.flow_times();
        let completed = || flows.iter().filter_map(FlowTimes::fct_and_ideal);
        let fcts = completed().map(|(fct, _)| fct.as_ps());
        let ideals = completed().map(|(_, ideal)| ideal.as_ps());
        let mut summary = Self {
            schema: SCHEMA,
            version: record.version.clone(),
            revision: record.revision.clone(),
            scenario: record.scenario.clone(),
            status,
            status_reason,
            given: record.given.clone(),
            warnings: record.warnings(),
            simulated_us: record.simulated.as_us(),
            flows: FlowCounts::from_flows(&flows),
            fct_us: Distribution::of_picoseconds(fcts.collect()),
            ideal_fct_us: Distribution::of_picoseconds(ideals.collect()),
            slowdown: Distribution::of_ratios(
                flows.iter().filter_map(FlowTimes::slowdown).collect(),
            ),
            goodput_bps: None,
            slowdown_by_size: Vec::new(),
            slowdown_by_class: Vec::new(),
            sections: Vec::new(),
            transports: by_transport(&flows, &record.transports, &record.sections),
            start_finish: None,
            parties: AttackSides::from_flows(&record.flows, &record.tenants),
            operations: record
                .operations
                .as_ref()
                .map(OperationSummary::from_results),
            fast_forward: record.fast_forward.clone(),
            fairness: record
                .observed
                .as_ref()
                .and_then(|observed| observed.fairness),
            jobs: record
                .jobs
                .iter()
                .map(|job| JobSummary {
                    tenant: record.tenant_of(job.section).map(str::to_owned),
                    ..JobSummary::from_job(job, &record.sections)
                })
                .collect(),
            jobs_us: jobs::over_jobs(&record.jobs),
            packets: record.packets,
            paused_links: record.paused_links.len() as u64,
            longest_paused: longest_paused(&record.paused_links),
            data_packet_hops: record.data_packet_hops,
            packet_hops: record.packet_hops,
            digest: record.digest.clone(),
            threads: record.threads,
            cpu_seconds: record.cpu_seconds,
            wall_seconds: record.wall_seconds,
            peak_rss_bytes: record.peak_rss_bytes,
        };
        summary.analyse(&flows, &record.sections);
        summary
    }

    /// True if the results are about flows and packets; false for a scale-up run.
    pub fn is_of_flows(&self) -> bool {
        self.operations.is_none() || self.flows.total > 0
    }

    /// True if the system did not report the CPU time: it is zero although the run took a second or more.
    pub fn is_cpu_unknown(&self) -> bool {
        self.cpu_seconds == 0.0 && self.wall_seconds >= 1.0
    }

    /// Computes from `flows` the figures that summaries of older versions lack. `sections` are the names of the sections of the flows.
    pub fn analyse(&mut self, flows: &[FlowTimes], sections: &[String]) {
        let mut goodput = Goodput::default();
        flows.iter().for_each(|flow| goodput.add(flow));
        self.goodput_bps = goodput.bits_per_second();
        let by_size = FlowsBySize::from_flows(flows);
        self.slowdown_by_size = by_size.bins();
        self.slowdown_by_class = by_size.classes();
        self.sections = by_section(flows, sections);
        self.start_finish = StartFinish::from_flows(flows);
    }

    /// The summary as indented JSON with a final line break: the contents of `summary.json`.
    pub fn to_json(&self) -> String {
        let mut json =
            serde_json::to_string_pretty(self).expect("a summary holds text and numbers only");
        json.push('\n');
        json
    }

    /// Reads the contents of a `summary.json`; fields that are unknown to this version are skipped.
    pub fn from_json(json: &str) -> Result<Self, ReadSummaryError> {
        #[derive(Deserialize)]
        struct Version {
            schema: u32,
        }
        let Version { schema } = serde_json::from_str(json)?;
        if schema != SCHEMA {
            return Err(ReadSummaryError::Schema { found: schema });
        }
        Ok(serde_json::from_str(json)?)
    }

    /// Reads the summary at `path`, a result folder or a `summary.json`.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ReadSummaryError> {
        let mut path = path.as_ref().to_path_buf();
        if path.is_dir() {
            path.push(FILE_NAME);
        }
        match clearway_input::read_text(&path, InputKind::SUMMARY) {
            Ok(json) => Self::from_json(&json),
            Err(source) => Err(ReadSummaryError::Unreadable { path, source }),
        }
    }
}

/// The links that were paused longest.
fn longest_paused(links: &[PausedLink]) -> Vec<PausedLink> {
    const MOST: usize = 16;
    let mut links = links.to_vec();
    links.sort_by(|a, b| b.paused_us.total_cmp(&a.paused_us));
    links.truncate(MOST);
    links
}

/// A summary that could not be read.
#[derive(Debug, Error)]
pub enum ReadSummaryError {
    /// The file could not be read.
    #[error("failed to read the summary `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Reason.
        source: InputError,
    },
    /// The text is not JSON, or a field is missing or of the wrong type.
    #[error("not a Clearway summary")]
    Malformed(#[from] serde_json::Error),
    /// The schema of the summary has another version.
    #[error("a summary of schema {found}, where this version reads schema {SCHEMA}")]
    Schema {
        /// The schema of the summary.
        found: u32,
    },
}

#[cfg(test)]
mod tests;

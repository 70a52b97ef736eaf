//! The input of every output: one record of a run, which the caller fills.

use crate::fast_forward::FastForwardSummary;
use crate::observed::{EventLog, RunObservations};
use clearway_results::{
    FabricUse, OperationClass, OperationTotals, PacketCounts, ReductionTableUse,
};
use clearway_units::{Span, Time};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::Range;

/// One flow, or one message of a flow that carries several: a row of `flows.parquet`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowRow {
    /// Number of the flow in the run.
    pub flow: u32,
    /// Number of the flow or message in the workload, such as its line in an imported file.
    pub label: u64,
    /// Number of the sending host.
    pub src: u32,
    /// Number of the receiving host.
    pub dst: u32,
    /// Bytes of the message, without headers.
    pub bytes: u64,
    /// Time at which the message was ready to send; `None` if the event that it waits for never happened.
    pub start: Option<Time>,
    /// Time at which the last byte was acknowledged at the sender; `None` if that did not happen before the run ended.
    pub finish: Option<Time>,
    /// The completion time of the same message alone on an idle network: a lower bound. Zero for a connection on which a job posts many
    /// messages, because such a connection has no meaningful completion time.
    pub ideal_fct: Span,
    /// Data packets sent, retransmissions included.
    pub packets: u64,
    /// Data packets that were sent again.
    pub retransmits: u64,
    /// Acknowledgements that echoed a congestion mark to the sender.
    pub marks: u64,
    /// Probes sent to ask the receiver for its state.
    pub probes: u64,
    /// Retransmission timeouts that expired.
    pub timeouts: u64,
    /// Label of the attacker's message that the flow is a piece of, if the flow is part of an attack.
    pub attack: Option<u64>,
    /// Section of the workload that the flow belongs to: a place in [`RunRecord::sections`].
    pub section: u32,
}

impl FlowRow {
    /// The flow completion time: from the start to the last acknowledgement. `None` if the flow did not complete.
    ///
    /// # Panics
    /// If the flow finished before it started.
    pub fn fct(&self) -> Option<Span> {
        let (start, finish) = (self.start?, self.finish?);
        assert!(
            finish >= start,
            "flow {} finished at {finish}, before its start at {start}",
            self.flow
        );
        Some(finish.since(start))
    }

    /// The completion time as a multiple of the ideal one; `None` if the flow did not complete or its ideal is zero.
    pub fn slowdown(&self) -> Option<f64> {
        slowdown(self.fct()?, self.ideal_fct)
    }
}

fn slowdown(fct: Span, ideal: Span) -> Option<f64> {
    (!ideal.is_zero()).then(|| fct.as_ps() as f64 / ideal.as_ps() as f64)
}

/// Values of a flow that statistics need: much smaller than the row of the flow, because runs have millions of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowTimes {
    /// Number of the flow in the run.
    pub flow: u32,
    /// Section of the workload, as in [`FlowRow`].
    pub section: u32,
    /// Bytes of the message, without headers.
    pub bytes: u64,
    /// The completion time alone on an idle network; zero as in [`FlowRow`].
    pub ideal_fct: Span,
    /// Start of the flow; [`Time::NEVER`] if it never started.
    pub(crate) start: Time,
    pub(crate) finish: Time,
}

impl From<&FlowRow> for FlowTimes {
    fn from(row: &FlowRow) -> Self {
        Self {
            flow: row.flow,
            section: row.section,
            bytes: row.bytes,
            ideal_fct: row.ideal_fct,
            start: row.start.unwrap_or(Time::NEVER),
            finish: row.finish.unwrap_or(Time::NEVER),
        }
    }
}

impl FlowTimes {
    /// Time at which the message was ready to send, if ever.
    pub fn start(&self) -> Option<Time> {
        (!self.start.is_never()).then_some(self.start)
    }

    /// Time at which the last byte was acknowledged at the sender, if ever.
    pub fn finish(&self) -> Option<Time> {
        (!self.finish.is_never()).then_some(self.finish)
    }

    /// As [`FlowRow::fct`].
    ///
    /// # Panics
    /// If the flow finished before it started.
    pub fn fct(&self) -> Option<Span> {
        let (start, finish) = (self.start()?, self.finish()?);
        assert!(
            finish >= start,
            "flow {} finished at {finish}, before its start at {start}",
            self.flow
        );
        Some(finish.since(start))
    }

    /// The completion time, and the completion time alone on an idle network; `None` if the flow did not complete or its ideal is zero.
    pub fn fct_and_ideal(&self) -> Option<(Span, Span)> {
        let fct = self.fct()?;
        (!self.ideal_fct.is_zero()).then_some((fct, self.ideal_fct))
    }

    /// As [`FlowRow::slowdown`].
    pub fn slowdown(&self) -> Option<f64> {
        slowdown(self.fct()?, self.ideal_fct)
    }
}

/// A job of a run with the times of its iterations.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRow {
    /// The user's name for the job, such as `ring-all-reduce 3`.
    pub label: String,
    /// The hosts of the job's ranks.
    pub hosts: Vec<u32>,
    /// Number of the job's section of the workload, from zero.
    pub section: u32,
    /// The numbers of the flows that are the job's connections.
    pub flows: Range<u32>,
    /// Number of iterations that the job had to run.
    pub iterations: u32,
    /// The size of the job's collective in bytes as nccl-tests count it; `None` if the job is not a single collective.
    pub bytes: Option<u64>,
    /// Factor between bus bandwidth and algorithm bandwidth, such as 2·(n − 1)/n for an all-reduce of n ranks; finite.
    pub bus_factor: Option<f64>,
    /// The iterations that began, in order.
    pub times: Vec<IterationRow>,
}

/// Times of an iteration of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IterationRow {
    /// Time at which the first rank began.
    pub begun: Time,
    /// Time at which the first message was posted; `None` if no message was.
    pub sending: Option<Time>,
    /// Time at which the last rank finished; `None` if that did not happen before the run ended.
    pub over: Option<Time>,
}

impl IterationRow {
    /// Time from the begin of the first rank to the end of the last rank; `None` if the iteration did not end.
    ///
    /// # Panics
    /// If the iteration ended before it began.
    pub fn time(&self) -> Option<Span> {
        let over = self.over?;
        assert!(
            over >= self.begun,
            "an iteration was over at {over}, before it began at {}",
            self.begun
        );
        Some(over.since(self.begun))
    }
}

/// Operations of a scale-up run, in which GPUs read and write each other's memory.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationResults {
    /// Work of the run and its duration.
    pub totals: OperationTotals,
    /// Use of reduction tables.
    pub reduction_table: ReductionTableUse,
    /// Use of links and queues.
    pub fabric: FabricUse,
    /// Labels of the sections of the workload.
    pub sections: Vec<String>,
    /// Completed operations, in the order of writing.
    pub rows: Vec<OperationRow>,
}

/// A completed operation: a row of `operations.parquet`. Runs have millions of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationRow {
    /// Number of the GPU that initiated the operation.
    pub gpu: u32,
    /// Number of the operation at that GPU, in the order of sending.
    pub number: u32,
    /// Section of the workload that posted the operation: a place in [`OperationResults::sections`].
    pub section: u32,
    /// Number of the target group or GPU; the [kind](OperationClass::goes_to_group) tells which.
    pub target: u32,
    /// Kind of the operation.
    pub kind: OperationClass,
    /// Cycle in which the operation was posted.
    pub posted_cycle: u64,
    /// Cycle in which the operation's head flit left the GPU.
    pub sent_cycle: u64,
    /// Cycle in which the operation's response arrived.
    pub completed_cycle: u64,
}

impl OperationRow {
    /// Cycles from injection to response.
    ///
    /// # Panics
    /// If the operation completed before it was sent.
    pub fn latency_cycles(&self) -> u64 {
        assert!(
            self.completed_cycle >= self.sent_cycle,
            "operation {} of GPU {} completed before it was sent",
            self.number,
            self.gpu
        );
        self.completed_cycle - self.sent_cycle
    }
}

/// Outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// All work of the workload was done.
    Complete,
    /// The run ended before all work was done: it reached a limit, or no events were left.
    Incomplete {
        /// Reason, as a fragment such as `stopped at stop.at-most = 50ms`.
        reason: String,
    },
    /// The user interrupted the run; the figures cover the simulated time until then.
    Interrupted,
}

/// Identity of the scenario that a result belongs to. It is part of every output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioIdentity {
    /// The scenario's name.
    pub name: String,
    /// Hash of the resolved scenario: scenarios with equal hashes are equal.
    pub hash: String,
    /// The seed of all random streams.
    pub seed: u64,
}

/// Pauses of a link by flow control.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PausedLink {
    /// Name of the link: its two nodes, in the direction of the link.
    pub link: String,
    /// Number of pauses.
    pub pauses: u64,
    /// Total time of the pauses, in microseconds.
    pub paused_us: f64,
}

/// Event of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkEventRow {
    /// Time of the event.
    pub at: Time,
    /// Link and change, such as "leaf0-spine3 down".
    pub words: String,
    /// One direction of the cable: a place among the links of the run.
    pub link: u32,
    /// True if the cable comes up, false if it goes down; `None` for another change.
    pub comes_up: Option<bool>,
}

/// A transport of a run that has several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransportRow {
    /// Name of the transport.
    pub name: String,
    /// Sections of the workload whose flows use the transport: places in [`RunRecord::sections`].
    pub sections: Vec<u32>,
    /// Data packets sent, retransmissions included.
    pub data_sent: u64,
    /// Data packets that were sent again.
    pub retransmitted: u64,
    /// Retransmission timeouts that expired.
    pub timeouts: u64,
}

/// Record of a run: all data that the outputs show.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// Version of the program.
    pub version: String,
    /// Revision of the source that the program was built from.
    pub revision: String,
    /// Scenario of the run.
    pub scenario: ScenarioIdentity,
    /// Outcome of the run.
    pub status: Status,
    /// Keys of the scenario that its file or overrides give, such as `topology.hosts`; all other keys have their defaults.
    pub given: Vec<String>,
    /// Warnings about the scenario: settings that are consistent but probably not intended.
    pub scenario_warnings: Vec<String>,
    /// The simulated time that passed.
    pub simulated: Span,
    /// All flows, including flows that never started, in the order of writing; empty if they were [written](Self::written) during the run.
    pub flows: Vec<FlowRow>,
    /// Sizes and times of the flows whose rows are already in the result folder; see [`FlowsWriter`](crate::FlowsWriter).
    pub written: Option<Vec<FlowTimes>>,
    /// Names of the sections of the workload that flows belong to; sections of equal name count as one.
    pub sections: Vec<String>,
    /// Number of the tenant of each section; if it is missing or 0, the sending host is the user.
    pub tenants: Vec<u32>,
    /// Names of the tenants, from number 1 on.
    pub tenant_names: Vec<String>,
    /// The transports of flows; empty if all flows use the same one.
    pub transports: Vec<TransportRow>,
    /// Jobs: ranks that repeat a collective or a training iteration. `flows` has rows for the connections of jobs, not for the messages on
    /// them.
    pub jobs: Vec<JobRow>,
    /// Simulated and remembered calls, if calls may be remembered.
    pub fast_forward: Option<FastForwardSummary>,
    /// Operations of a scale-up run; `None` for a run of packets, which has flows.
    pub operations: Option<OperationResults>,
    /// Packet counts over all hosts and switches.
    pub packets: PacketCounts,
    /// The links that were paused.
    pub paused_links: Vec<PausedLink>,
    /// The events of links, in the order of time; some may be after the end of the run.
    pub link_events: Vec<LinkEventRow>,
    /// Links that data packets crossed, summed over packets.
    pub data_packet_hops: u64,
    /// Links that packets of any kind crossed, summed over packets.
    pub packet_hops: u64,
    /// Digest of the outcome: equal for any number of threads.
    pub digest: String,
    /// Worker threads.
    pub threads: u32,
    /// CPU time of the simulation in seconds, all threads together; finite.
    pub cpu_seconds: f64,
    /// Wall time of the simulation in seconds; finite.
    pub wall_seconds: f64,
    /// Maximum memory of the process, in bytes.
    pub peak_rss_bytes: u64,
    /// The command that reproduces the run.
    pub command: String,
    /// Curves and totals of links, if the run was sampled.
    pub observed: Option<RunObservations>,
    /// Single events, if they were recorded.
    pub events: Option<EventLog>,
}

impl RunRecord {
    /// Warnings about the scenario and about the outcome of the run.
    pub fn warnings(&self) -> Vec<String> {
        [&self.scenario_warnings[..], &self.packets.warnings()].concat()
    }

    /// Name of the tenant of a section, if it has one.
    pub fn tenant_of(&self, section: u32) -> Option<&str> {
        let number = *self.tenants.get(section as usize)?;
        let place = number.checked_sub(1)?;
        self.tenant_names.get(place as usize).map(String::as_str)
    }

    /// Sizes and times of all flows, for statistics.
    pub fn flow_times(&self) -> Cow<'_, [FlowTimes]> {
        match &self.written {
            Some(written) => written.into(),
            None => self.flows.iter().map(FlowTimes::from).collect(),
        }
    }
}

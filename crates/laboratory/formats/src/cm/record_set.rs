//! A connection matrix as a whole: counts, ids, triggers.

use super::matrix::CmConnection;
use super::records::{ENDLESS, FailureRecord, FlowRecord, Reference, StartRecord, TriggerRecord};
use super::{CmFile, LinkFailure, StartUnit};
use crate::text::Source;
use clearway_units::Time;
use clearway_workload::counted;
use clearway_workload::{
    ErrorSubject, FileError, FileWarning, FlowSpec, Start, TriggerIndex, TriggerKind, Workload,
};
use std::collections::{BTreeMap, BTreeSet};

/// First number that htsim assigns to flows without `id`.
const FIRST_AUTOMATIC_ID: u64 = 1_000_000_000;

/// All records of a file, before the checks of their consistency.
pub(super) struct CmRecords<'a> {
    source: Source<'a>,
    /// Keywords, each with its line and its number.
    pub(super) headers: BTreeMap<&'static str, (usize, u32)>,
    pub(super) flows: Vec<FlowRecord>,
    pub(super) triggers: Vec<TriggerRecord>,
    pub(super) failures: Vec<FailureRecord>,
    /// The last line that is not blank; 1 in an empty file.
    pub(super) last_line: usize,
}

impl<'a> CmRecords<'a> {
    pub(super) fn new(source: Source<'a>) -> Self {
        Self {
            source,
            headers: BTreeMap::new(),
            flows: Vec::new(),
            triggers: Vec::new(),
            failures: Vec::new(),
            last_line: 1,
        }
    }

    pub(super) fn has_body(&self) -> bool {
        !(self.flows.is_empty() && self.triggers.is_empty() && self.failures.is_empty())
    }

    pub(super) fn known_nodes(&self, line: usize) -> Result<u32, FileError> {
        let nodes = self.headers.get("Nodes").map(|&(_, nodes)| nodes);
        nodes.ok_or_else(|| {
            self.source
                .fault(line, None, "the header has no `Nodes` line")
                .fix("begin the file with the number of hosts, as in `Nodes 128`")
        })
    }

    pub(super) fn finish(mut self, unit: StartUnit) -> Result<CmFile, FileError> {
        let nodes = self.known_nodes(self.last_line)?;
        self.check_counts()?;
        let connections = self.take_connections()?;
        let workload = self.workload()?;
        workload.check(nodes).map_err(|error| {
            let line = match error.subject() {
                Some(ErrorSubject::Flow(flow)) => self.flows[flow.index()].line,
                Some(ErrorSubject::Trigger(trigger)) => self.triggers[trigger.index()].line,
                None => self.last_line,
            };
            let fault = self.source.fault(line, None, error.message());
            fault.fix(error.fix())
        })?;
        let failures: BTreeSet<LinkFailure> = self.failures.iter().map(|f| f.failure).collect();
        Ok(CmFile {
            nodes,
            warnings: self.warnings(&workload, unit),
            workload,
            connections,
            failures: failures.into_iter().collect(),
        })
    }

    /// Checks the counts of the header, so that a truncated file does not pass for a smaller one.
    fn check_counts(&self) -> Result<(), FileError> {
        let flow = self.flows.first().map(|record| record.line);
        let trigger = self.triggers.first().map(|record| record.line);
        let failure = self.failures.first().map(|record| record.line);
        self.check_count("Connections", "flow", self.flows.len(), flow)?;
        self.check_count("Triggers", "trigger", self.triggers.len(), trigger)?;
        self.check_count("Failures", "failure", self.failures.len(), failure)
    }

    fn check_count(
        &self,
        header: &'static str,
        noun: &str,
        found: usize,
        first: Option<usize>,
    ) -> Result<(), FileError> {
        let has = counted(found, noun);
        match (self.headers.get(header), first) {
            (None, Some(first)) => {
                let message = format!("the file has {has} from here on, but no `{header}` line");
                let fault = self.source.fault(first, None, message);
                Err(fault.fix(format!("add `{header} {found}` to the header")))
            }
            (Some(&(line, stated)), _) if stated as usize != found => {
                let message =
                    format!("the header says `{header} {stated}`, but the file has {has}");
                let restore = if stated as usize > found {
                    ", or restore the missing lines if the file was cut short"
                } else {
                    ""
                };
                let fault = self.source.fault(line, None, message);
                Err(fault.fix(format!("write `{header} {found}`{restore}")))
            }
            (None, None) | (Some(_), _) => Ok(()),
        }
    }

    fn trigger_indexes(&self) -> Result<BTreeMap<u64, TriggerIndex>, FileError> {
        let mut indexes = BTreeMap::new();
        for (index, record) in (0..).zip(&self.triggers) {
            let label = record.spec.label;
            if let Some(first) = indexes.insert(label, TriggerIndex(index)) {
                let first = self.triggers[first.index()].line;
                let message = format!("trigger {label} is declared twice, first on line {first}");
                let fault = self.source.fault(record.line, None, message);
                return Err(fault.fix("give one of them another id"));
            }
        }
        Ok(indexes)
    }

    /// Takes out the flows that are messages of connections: flows with `msg`, and the flow with the same id that began the connection.
    fn take_connections(&mut self) -> Result<Vec<CmConnection>, FileError> {
        let messages = self.flows.iter().filter(|flow| flow.is_message);
        let ids: BTreeSet<Option<u64>> = messages.map(|flow| flow.id).collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let of_connection = |flow: &FlowRecord| flow.id.is_some() && ids.contains(&flow.id);
        let all = std::mem::take(&mut self.flows);
        let (messages, flows): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|flow| flow.is_message || of_connection(flow));
        self.flows = flows;
        let mut connections: BTreeMap<u64, CmConnection> = BTreeMap::new();
        for flow in &messages {
            let fault = |message: String, fix: &str| {
                Err(self.source.fault(flow.line, None, message).fix(fix))
            };
            let Some(id) = flow.id else {
                let message = "a message without the `id` of its connection".to_string();
                return fault(message, "write `id` and the number of the connection");
            };
            let start = match (flow.start, flow.on_sent, flow.on_received) {
                (StartRecord::At(start), None, None) => start,
                _ => {
                    let message = format!("a message of connection {id} with a trigger");
                    return fault(message, "write it as a flow of its own, with its own `id`");
                }
            };
            let connection = connections.entry(id).or_insert_with(|| CmConnection {
                id,
                src: flow.src,
                dst: flow.dst,
                messages: Vec::new(),
            });
            if (connection.src, connection.dst) != (flow.src, flow.dst) {
                let message = format!(
                    "connection {id} goes from host {} to host {}",
                    connection.src, connection.dst
                );
                return fault(message, "give the messages of one connection the same ends");
            }
            connection.messages.push((start, flow.bytes));
        }
        let mut connections: Vec<CmConnection> = connections.into_values().collect();
        for connection in &mut connections {
            // A stable sort: messages that start together keep the order of the file.
            connection.messages.sort_by_key(|&(start, _)| start);
        }
        Ok(connections)
    }

    /// Id of each flow: the id in the file, or the next automatic id.
    fn labels(&self) -> Result<Vec<u64>, FileError> {
        let mut automatic = FIRST_AUTOMATIC_ID;
        let mut lines = BTreeMap::new();
        let mut labels = Vec::with_capacity(self.flows.len());
        for flow in &self.flows {
            let label = flow.id.unwrap_or(automatic);
            automatic += u64::from(flow.id.is_none());
            if let Some(first) = lines.insert(label, flow.line) {
                let message = format!("id {label} is already used by the flow on line {first}");
                let fault = self.source.fault(flow.line, None, message);
                return Err(fault.fix(format!(
                    "give each flow its own id; those without are numbered from {FIRST_AUTOMATIC_ID}"
                )));
            }
            labels.push(label);
        }
        Ok(labels)
    }

    fn workload(&self) -> Result<Workload, FileError> {
        let indexes = self.trigger_indexes()?;
        let resolve = |line: usize, named: Reference| {
            indexes.get(&named.label).copied().ok_or_else(|| {
                let label = named.label;
                let message = format!("trigger {label} is not declared");
                let fault = self.source.fault(line, Some(named.column), message);
                fault.fix(format!(
                    "add a line such as `trigger id {label} oneshot`, and count it in `Triggers`"
                ))
            })
        };
        let labels = self.labels()?;
        let mut flows = Vec::with_capacity(self.flows.len());
        for (record, &label) in self.flows.iter().zip(&labels) {
            let line = record.line;
            let optional = |named: Option<Reference>| named.map(|n| resolve(line, n)).transpose();
            let plain = FlowSpec::timed(label, record.src, record.dst, record.bytes, Time::ZERO);
            flows.push(FlowSpec {
                start: match record.start {
                    StartRecord::At(time) => Start::At(time),
                    StartRecord::On(named) => Start::On(resolve(line, named)?),
                },
                on_sent: optional(record.on_sent)?,
                on_received: optional(record.on_received)?,
                ..plain
            });
        }
        Ok(Workload {
            flows,
            triggers: self
                .triggers
                .iter()
                .map(|record| record.spec.clone())
                .collect(),
        })
    }

    /// Warnings about entries that run but are probably mistakes, in the order of the lines.
    fn warnings(&self, workload: &Workload, unit: StartUnit) -> Vec<FileWarning> {
        let mut warnings = Vec::new();
        let mut warn = |line, message| {
            warnings.push(FileWarning {
                file: self.source.file.into(),
                line,
                message,
            });
        };
        let mut prio = self.flows.iter().filter(|flow| flow.has_prio);
        if let Some(first) = prio.next() {
            let flows = counted(1 + prio.count(), "flow");
            warn(
                first.line,
                format!(
                    "`prio` is ignored ({flows}): flows of these files have no priorities here"
                ),
            );
        }
        if let Some((line, text)) = self.suspicious_start(unit) {
            warn(line, text);
        }
        let mut endless = self.flows.iter().filter(|flow| flow.bytes == ENDLESS);
        if let Some(first) = endless.next() {
            let flows = counted(1 + endless.count(), "flow");
            let message = format!(
                "`size 0` ({flows}): without end, as in the older programs of htsim (`htsim_uec` sends nothing); such a flow is not done when the run stops (`stop.at-most`)"
            );
            warn(first.line, message);
        }
        let mut waiting = vec![0usize; self.triggers.len()];
        let mut activations = waiting.clone();
        for flow in &workload.flows {
            if let Start::On(trigger) = flow.start {
                waiting[trigger.index()] += 1;
            }
            for trigger in [flow.on_sent, flow.on_received].into_iter().flatten() {
                activations[trigger.index()] += 1;
            }
        }
        let counts = waiting.into_iter().zip(activations);
        for (record, (waiting, activations)) in self.triggers.iter().zip(counts) {
            let label = record.spec.label;
            if waiting == 0 {
                warn(record.line, format!("no flow waits for trigger {label}"));
            } else if record.spec.kind == TriggerKind::Multishot && activations > waiting {
                let message = format!(
                    "trigger {label} is a multishot with {} for {}: the last {} start nothing, as in htsim",
                    counted(activations, "activation"),
                    counted(waiting, "waiting flow"),
                    activations - waiting
                );
                warn(record.line, message);
            }
            if record.stray_count {
                warn(
                    record.line,
                    format!("`count` is ignored: trigger {label} is not a barrier"),
                );
            }
        }
        let mut failed = BTreeSet::new();
        for record in &self.failures {
            if !failed.insert(record.failure) {
                warn(record.line, "this link has failed already".into());
            }
        }
        warnings.sort_by_key(|warning| warning.line);
        warnings
    }

    /// Line and text of a warning: a start of a second or more in microseconds was probably meant as picoseconds.
    fn suspicious_start(&self, unit: StartUnit) -> Option<(usize, String)> {
        let second = Time::from_us(1_000_000);
        let late = |flow: &&FlowRecord| matches!(flow.start, StartRecord::At(at) if at >= second);
        let flow = self.flows.iter().find(late)?;
        match (unit, &flow.start) {
            (StartUnit::Microseconds, StartRecord::At(start)) => Some((
                flow.line,
                format!(
                    "this start is read as {start}; if the file holds picoseconds, as scripts write them, choose start-unit \"ps\""
                ),
            )),
            _ => None,
        }
    }
}

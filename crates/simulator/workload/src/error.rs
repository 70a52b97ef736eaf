//! Errors and warnings of workloads, in the user's words; each error says how to fix it.

use clearway_units::{FlowId, HostId};
use std::fmt;

/// A flow as messages name it: `flow 5 (0->13)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowName {
    /// Index of the flow in the workload.
    pub id: FlowId,
    /// User's number for the flow.
    pub label: u64,
    /// Source host.
    pub src: HostId,
    /// Destination host.
    pub dst: HostId,
}

impl fmt::Display for FlowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flow {} ({}->{})", self.label, self.src, self.dst)
    }
}

/// Flow or trigger that a [`WorkloadError`] is about, for a reader that knows its line in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorSubject {
    /// A flow, by its index.
    Flow(FlowId),
    /// A trigger, by its index.
    Trigger(crate::TriggerIndex),
}

/// Reason for which a workload cannot run. `Display` gives the [`message`](Self::message) and, on a second line, the [`fix`](Self::fix).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkloadError {
    /// A flow from or to a host that does not exist.
    UnknownHost {
        /// The flow.
        flow: FlowName,
        /// The host that does not exist.
        host: HostId,
        /// Number of hosts.
        hosts: u32,
    },
    /// A flow from a host to itself.
    SameHost {
        /// The flow.
        flow: FlowName,
    },
    /// A flow that carries nothing.
    NoBytes {
        /// The flow.
        flow: FlowName,
    },
    /// A flow whose start is beyond any run.
    StartsNever {
        /// The flow.
        flow: FlowName,
    },
    /// A flow names a trigger that does not exist.
    UnknownTrigger {
        /// The flow.
        flow: FlowName,
        /// The index that it names.
        index: u32,
        /// Number of triggers.
        triggers: usize,
    },
    /// Flows wait for a trigger that nothing activates.
    NeverActivated {
        /// The trigger's label.
        trigger: u64,
        /// The first flow that waits for it.
        flow: FlowName,
    },
    /// A oneshot that is activated more than once.
    OneshotActivations {
        /// The trigger's label.
        trigger: u64,
        /// Index of the trigger.
        index: crate::TriggerIndex,
        /// The first two flows that activate it (one flow twice if it does so at both ends).
        flows: [FlowName; 2],
        /// Activations in all.
        activations: usize,
    },
    /// A barrier whose count is not the number of its activations.
    BarrierCount {
        /// The trigger's label.
        trigger: u64,
        /// Index of the trigger.
        index: crate::TriggerIndex,
        /// The count that it waits for.
        count: u32,
        /// Activations in all.
        activations: usize,
    },
    /// A multishot with more or fewer activations than flows that wait for it.
    MultishotActivations {
        /// The trigger's label.
        trigger: u64,
        /// Index of the trigger.
        index: crate::TriggerIndex,
        /// Activations in all.
        activations: usize,
        /// Flows that wait for it.
        waiting: usize,
    },
    /// Flows that wait for one another in a cycle.
    Cycle {
        /// The cycle: each waits for the next, the last for the first.
        flows: Vec<FlowName>,
    },
    /// More flows or triggers than numbers for them.
    TooMany {
        /// `flows` or `triggers`.
        what: &'static str,
    },
    /// Sizes whose sum does not fit in 64 bits.
    TooManyBytes {
        /// The flow with which the sum overflows.
        flow: FlowName,
    },
    /// A setting of a generator that does not fit the others.
    Setting {
        /// The generator.
        kind: &'static str,
        /// The setting's key.
        key: &'static str,
        /// Description of the fault.
        message: String,
        /// Suggested fix.
        fix: String,
    },
    /// A file that cannot be read.
    Unreadable {
        /// The file, as the user named it.
        file: String,
        /// Reason for which it cannot be read.
        reason: String,
        /// Suggested fix.
        fix: String,
    },
    /// A file with a fault in it.
    File(FileError),
}

impl WorkloadError {
    /// Flow or trigger at fault, if the error is about one.
    pub fn subject(&self) -> Option<ErrorSubject> {
        match self {
            Self::UnknownHost { flow, .. }
            | Self::SameHost { flow }
            | Self::NoBytes { flow }
            | Self::StartsNever { flow }
            | Self::UnknownTrigger { flow, .. }
            | Self::TooManyBytes { flow }
            | Self::NeverActivated { flow, .. } => Some(ErrorSubject::Flow(flow.id)),
            Self::OneshotActivations { index, .. }
            | Self::BarrierCount { index, .. }
            | Self::MultishotActivations { index, .. } => Some(ErrorSubject::Trigger(*index)),
            Self::Cycle { flows } => flows.first().map(|flow| ErrorSubject::Flow(flow.id)),
            Self::TooMany { .. }
            | Self::Setting { .. }
            | Self::Unreadable { .. }
            | Self::File(_) => None,
        }
    }

    /// Description of the fault, as a fragment of a sentence.
    pub fn message(&self) -> String {
        match self {
            Self::UnknownHost { flow, host, hosts } => {
                format!("{flow} names host {host}, but {}", known_hosts(*hosts))
            }
            Self::SameHost { flow } => format!("{flow} goes from a host to itself"),
            Self::NoBytes { flow } => format!("{flow} carries no bytes"),
            Self::StartsNever { flow } => format!("{flow} starts at the end of time"),
            Self::UnknownTrigger {
                flow,
                index,
                triggers,
            } => {
                let triggers = counted(*triggers, "trigger");
                format!("{flow} names trigger number {index}, but the workload has {triggers}")
            }
            Self::NeverActivated { trigger, flow } => {
                format!("{flow} waits for trigger {trigger}, which no flow activates")
            }
            Self::OneshotActivations {
                trigger,
                flows: [first, second],
                activations,
                ..
            } => {
                let by = if first.id == second.id {
                    format!("both ends of {first}")
                } else {
                    format!("{first} and {second}")
                };
                format!(
                    "trigger {trigger} is a oneshot but has {activations} activations, the first two by {by}"
                )
            }
            Self::BarrierCount {
                trigger,
                count,
                activations,
                ..
            } => format!(
                "trigger {trigger} is a barrier of count {count}, but has {}",
                counted(*activations, "activation")
            ),
            Self::MultishotActivations {
                trigger,
                activations,
                waiting,
                ..
            } => format!(
                "trigger {trigger} is a multishot with {} for {}",
                counted(*activations, "activation"),
                counted(*waiting, "waiting flow")
            ),
            Self::Cycle { flows } => cycle_message(flows),
            Self::TooMany { what } => format!("the workload has more than {} {what}", u32::MAX),
            Self::Setting {
                kind, key, message, ..
            } => format!("`{key}` of the {kind} workload: {message}"),
            Self::TooManyBytes { flow } => {
                format!("the sizes up to {flow} add up to more than 2^64 bytes")
            }
            Self::Unreadable { file, reason, .. } => format!("cannot read {file}: {reason}"),
            Self::File(error) => error.position_and_message(),
        }
    }

    /// Advice on how to fix it.
    pub fn fix(&self) -> String {
        match self {
            Self::UnknownHost { hosts: 0 | 1, .. } => "give the topology more hosts".into(),
            Self::UnknownHost { hosts, .. } => {
                format!(
                    "name a host from 0 to {}, or give the topology more",
                    hosts - 1
                )
            }
            Self::SameHost { .. } => "choose another destination".into(),
            Self::NoBytes { .. } => "give it a size of at least one byte".into(),
            Self::StartsNever { .. } => "give it a start within the run".into(),
            Self::UnknownTrigger { .. } => "declare the trigger, or name one that exists".into(),
            Self::NeverActivated { trigger, .. } => format!(
                "let a flow activate trigger {trigger} when it is sent or received, or start the flow by the clock"
            ),
            Self::OneshotActivations { activations, .. } => format!(
                "make it a barrier of count {activations} to wait for all of them, or a multishot to start one flow for each"
            ),
            Self::BarrierCount { activations: 0, .. } => {
                "let flows activate it, or remove the trigger".into()
            }
            Self::BarrierCount { activations, .. } => {
                format!("set the count to {activations}, or change the flows that activate it")
            }
            Self::MultishotActivations { .. } => {
                "let more flows activate it: each activation starts one flow, the rest never start"
                    .into()
            }
            Self::Cycle { .. } => "start one of them by the clock".into(),
            Self::TooMany { .. } => "split the run".into(),
            Self::Setting { fix, .. } => fix.clone(),
            Self::TooManyBytes { .. } => "give it a smaller size".into(),
            Self::Unreadable { fix, .. } => fix.clone(),
            Self::File(error) => error.fix.clone(),
        }
    }
}

/// `1 flow`, `2 flows`.
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// `there are 4 hosts, 0 to 3`.
fn known_hosts(hosts: u32) -> String {
    match hosts {
        0 => "there are no hosts".into(),
        1 => "there is only host 0".into(),
        _ => format!("there are {hosts} hosts, 0 to {}", hosts - 1),
    }
}

fn cycle_message(flows: &[FlowName]) -> String {
    const SHOWN: usize = 4;
    let mut circle: Vec<String> = flows.iter().take(SHOWN).map(FlowName::to_string).collect();
    if flows.len() > SHOWN {
        circle.push(format!("{} more", flows.len() - SHOWN));
    }
    match circle.as_slice() {
        [alone] => format!("{alone} waits for its own end"),
        _ => format!(
            "flows that start one another in a circle never start: {}, each waiting for the next and the last for the first",
            circle.join(", ")
        ),
    }
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  fix: {}", self.message(), self.fix())
    }
}

impl std::error::Error for WorkloadError {}

impl From<FileError> for WorkloadError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

/// Fault in a file, with its place and a fix.
///
/// Displays as `perm.cm:12:4: host 8192 does not exist …` and, on a second line, `fix: …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileError {
    /// The file, as the user named it.
    pub file: String,
    /// The line, counted from 1; 0 in a file without lines.
    pub line: usize,
    /// The column in characters, counted from 1, where one token is at fault.
    pub column: Option<usize>,
    /// Description of the fault, as a fragment of a sentence.
    pub message: String,
    /// Advice on how to fix it.
    pub fix: String,
}

impl FileError {
    fn position_and_message(&self) -> String {
        let column = self.column.map(|column| format!(":{column}"));
        format!(
            "{}{}{}: {}",
            self.file,
            line_suffix(self.line),
            column.unwrap_or_default(),
            self.message
        )
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  fix: {}", self.position_and_message(), self.fix)
    }
}

impl std::error::Error for FileError {}

/// `:12`, or nothing for a file without lines.
fn line_suffix(line: usize) -> String {
    match line {
        0 => String::new(),
        _ => format!(":{line}"),
    }
}

/// Warning about an entry of a file that can run, but that its author probably did not intend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWarning {
    /// The file, as the user named it.
    pub file: String,
    /// The line, counted from 1; 0 in a file without lines.
    pub line: usize,
    /// Text of the warning.
    pub message: String,
}

impl fmt::Display for FileWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{}: {}",
            self.file,
            line_suffix(self.line),
            self.message
        )
    }
}

//! Steps of critical paths and of hosts.

use clearway_results::DelayPart;
use serde::Serialize;

/// Kind of a step of a critical path, or of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StepName {
    /// A message.
    Message,
    /// A computation.
    Computation,
    /// The wait for a slot.
    Slot,
    /// The wait for the turn at a receiver.
    Turn,
}

/// Step of a critical path, or of a host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathStepRow {
    /// Kind of the step.
    pub what: StepName,
    /// Host that computes, sends or waits.
    pub host: u32,
    /// Receiver of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u32>,
    /// Connection of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<u32>,
    /// Length of a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// True if the sender of the message waited for the acknowledgement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<bool>,
    /// Start of the step, measured from the start of the run.
    pub from_ps: u64,
    /// Duration of the step.
    pub ps: u64,
    /// Time of a message alone on an idle network; for other steps, their actual time.
    pub ideal_ps: u64,
    /// Parts of the time of a message, the longest first; empty if its packets were not traced.
    #[serde(skip)]
    pub parts: Vec<(DelayPart, Option<String>, u64)>,
}

impl PathStepRow {
    /// A step of a host that begins at `from_ps` and takes `ps`; a message still needs its other fields.
    pub fn new(what: StepName, host: u32, from_ps: u64, ps: u64) -> Self {
        Self {
            what,
            host,
            to: None,
            flow: None,
            bytes: None,
            acknowledged: None,
            from_ps,
            ps,
            ideal_ps: ps,
            parts: Vec::new(),
        }
    }
}

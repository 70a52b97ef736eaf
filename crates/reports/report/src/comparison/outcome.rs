//! Outcomes of variants and their runs.

use crate::jobs::JobCounts;
use crate::record::ScenarioIdentity;
use crate::summary::{FlowCounts, StatusName};
use serde::{Deserialize, Serialize};

/// A variant and its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VariantOutcome {
    /// `A`, `B`, ….
    pub id: String,
    /// Label that tells the variant from the others.
    pub label: String,
    /// Runs of the variant.
    pub runs: Vec<RunOutcome>,
}

impl VariantOutcome {
    /// The run with a seed.
    pub fn run(&self, seed: u64) -> Option<&RunOutcome> {
        self.runs.iter().find(|run| run.scenario.seed == seed)
    }
}

/// Number of operations in a scale-up run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationCounts {
    /// Operations that were posted.
    pub total: u64,
    /// Operations that completed.
    pub completed: u64,
}

/// Identity and outcome of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOutcome {
    /// Scenario of the run.
    pub scenario: ScenarioIdentity,
    /// Outcome of the run.
    pub status: StatusName,
    /// Warnings about the scenario and the outcome of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Number of flows.
    pub flows: FlowCounts,
    /// Number of jobs.
    pub jobs: JobCounts,
    /// Number of operations; `None` unless it is a scale-up run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<OperationCounts>,
    /// Payload of all flows in bytes.
    pub bytes: u64,
    /// Digest of the run's outcome.
    pub digest: String,
    /// Version of the program that performed the run.
    pub version: String,
    /// Revision of the source that the program was built from.
    pub revision: String,
    /// Folder of the results, if they are kept.
    pub folder: Option<String>,
}

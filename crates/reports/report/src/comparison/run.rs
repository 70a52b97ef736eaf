//! Runs that are compared.

use super::run_curves::RunCurve;
use crate::record::{FlowTimes, RunRecord};
use crate::summary::Summary;

/// One of the runs that are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedRun {
    /// Summary of the run.
    pub summary: Summary,
    /// All flows of the run.
    pub flows: Vec<FlowTimes>,
    /// Curves over time, if the run was sampled.
    pub curves: Vec<RunCurve>,
    /// Folder of the results, if they are kept.
    pub folder: Option<String>,
}

impl ComparedRun {
    /// A run that has just ended.
    pub fn from_record(record: RunRecord) -> Self {
        Self {
            summary: Summary::from_record(&record),
            curves: record
                .observed
                .as_ref()
                .map(RunCurve::from_observed)
                .unwrap_or_default(),
            flows: record.flow_times().into_owned(),
            folder: None,
        }
    }

    /// Payload of all flows in bytes, including flows that did not complete.
    pub fn bytes(&self) -> u64 {
        let bytes = self.flows.iter().map(|flow| flow.bytes);
        bytes.fold(0, u64::saturating_add)
    }
}

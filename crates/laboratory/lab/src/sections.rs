//! Merged sections of a workload.

use crate::scenario::{Scenario, ScenarioError};
use clearway_workload::{Workload, WorkloadError};

/// The sections whose flows are numbered after all others, and the other sections.
pub(crate) fn split_posted(
    scenario: &Scenario,
    parts: Vec<Workload>,
) -> (Vec<Workload>, Vec<Workload>) {
    let sections = scenario.workloads.iter().zip(parts);
    let (posted, others): (Vec<_>, Vec<_>) = sections.partition(|(section, _)| section.is_posted());
    let parts = |sections: Vec<(_, Workload)>| sections.into_iter().map(|(_, part)| part).collect();
    (parts(posted), parts(others))
}

/// One workload from all sections, with flows numbered by their starts.
pub(crate) fn merge(scenario: &Scenario, parts: Vec<Workload>) -> Result<Workload, ScenarioError> {
    Workload::merge(parts).map_err(|error| placed(scenario, error))
}

/// Appends the sections whose flows are numbered after all others.
pub(crate) fn append(
    scenario: &Scenario,
    workload: &mut Workload,
    posted: Vec<Workload>,
) -> Result<(), ScenarioError> {
    let mut sections = posted.into_iter();
    let added = sections.try_for_each(|section| workload.append(section));
    added.map_err(|error| placed(scenario, error))
}

/// Error about the workload as a whole.
fn placed(scenario: &Scenario, error: WorkloadError) -> ScenarioError {
    ScenarioError::from(error).or_in(scenario.places(), "workload", 0)
}

//! Valid files that the user gave to the wrong command.

use clearway_input::STANDARD_INPUT;
use clearway_lab::{Laboratory, ScenarioError};
use clearway_plan::JobsFile;
use clearway_sweep::SweepPlan;
use std::fs;

/// Kind of a file that a user writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A scenario.
    Scenario,
    /// Jobs that share links.
    Jobs,
    /// A plan of a sweep.
    Sweep,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Scenario, Self::Jobs, Self::Sweep];

    /// True if the file or built-in name `name` is valid as this kind.
    fn has(self, laboratory: &Laboratory, name: &str) -> bool {
        match self {
            Self::Scenario => laboratory.load_any(name, &[]).is_ok(),
            Self::Jobs => JobsFile::load_with(laboratory.registry(), name).is_ok(),
            Self::Sweep => SweepPlan::load(name).is_ok(),
        }
    }

    /// Meaning of the kind, and its command.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Scenario => ("a scenario", "run"),
            Self::Jobs => ("a plan of jobs", "plan"),
            Self::Sweep => ("a plan of a sweep", "sweep"),
        }
    }

    /// Error for a `name` that is not of this kind, with the right command if the name is of another kind.
    pub(crate) fn explain(
        self,
        laboratory: &Laboratory,
        name: &str,
        mut error: ScenarioError,
    ) -> ScenarioError {
        // An empty file could be of several kinds.
        let is_empty = fs::metadata(name).is_ok_and(|file| file.len() == 0);
        let is_read_once = name == STANDARD_INPUT;
        let is_it = |kind: &Self| !is_empty && !is_read_once && kind.has(laboratory, name);
        let mut others = Self::ALL.into_iter().filter(|other| *other != self);
        if let Some(other) = others.find(is_it) {
            let (what, command) = other.words();
            error.fix = format!("{name} is {what}: `clearway {command} {name}`");
        }
        error
    }
}

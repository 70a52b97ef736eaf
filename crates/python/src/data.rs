//! Data of a run, which its results and their tables share.

use clearway_lab::SteppedEnd;
use clearway_lab::scenario::Setting;
use clearway_report::{RunRecord, RunTables, SeriesRow};

/// All that is left of a run.
pub(crate) struct RunData {
    pub(crate) record: RunRecord,
    pub(crate) samples: Vec<SeriesRow>,
    /// The scenario with every default written out.
    pub(crate) resolved: String,
    pub(crate) settings: Vec<Setting>,
}

impl RunData {
    /// A run that was driven in steps.
    pub(crate) fn of_steps(record: RunRecord, end: &SteppedEnd) -> Self {
        Self {
            record,
            samples: Vec::new(),
            resolved: end.assembly.resolved(&end.scenario),
            settings: end.scenario.settings(),
        }
    }

    pub(crate) fn tables(&self) -> RunTables<'_> {
        RunTables {
            record: &self.record,
            samples: &self.samples,
        }
    }
}

//! Data of a run, which its results and their tables share.

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
    pub(crate) fn tables(&self) -> RunTables<'_> {
        RunTables {
            record: &self.record,
            samples: &self.samples,
        }
    }
}

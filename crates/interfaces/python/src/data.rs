//! Data of runs and sweeps, shared by results and their tables.

use clearway_lab::SteppedEnd;
use clearway_lab::scenario::Setting;
use clearway_report::columns::ColumnInfo;
use clearway_report::{
    ColumnData, RunRecord, RunTables, SeriesRow, SweepRecord, TableDataError, TableName,
};
use std::ops::Range;
use std::sync::Arc;

/// Data of a finished run.
pub(crate) struct RunData {
    pub(crate) record: RunRecord,
    pub(crate) samples: Vec<SeriesRow>,
    /// The scenario with every default written out.
    pub(crate) resolved: String,
    pub(crate) settings: Vec<Setting>,
}

impl RunData {
    /// Data of a run that advanced in steps.
    pub(crate) fn of_steps(record: RunRecord, end: &SteppedEnd) -> Self {
        Self {
            record,
            samples: Vec::new(),
            resolved: end.assembly.resolved(&end.scenario),
            settings: end.scenario.settings(),
        }
    }

    fn tables(&self) -> RunTables<'_> {
        RunTables {
            record: &self.record,
            samples: &self.samples,
        }
    }
}

/// A table, and the run or the sweep that it belongs to.
#[derive(Clone)]
pub(crate) enum TableData {
    /// Table of a run.
    Run(Arc<RunData>, TableName),
    /// Runs of a sweep.
    Sweep(Arc<SweepRecord>),
}

impl TableData {
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Run(data, name) => data.tables().rows(*name),
            Self::Sweep(record) => record.runs.len(),
        }
    }

    pub(crate) fn columns(&self) -> Vec<ColumnInfo> {
        match self {
            Self::Run(_, name) => name.columns(),
            Self::Sweep(record) => record.columns(),
        }
    }

    /// The rows `range`, column by column.
    pub(crate) fn batch(&self, range: Range<usize>) -> Result<Vec<ColumnData>, TableDataError> {
        match self {
            Self::Run(data, name) => data.tables().batch(*name, range),
            Self::Sweep(record) => record.batch(range),
        }
    }
}

//! Rows of flows on their way to `flows.parquet`.

use crate::record::{REVISION, identity};
use clearway_lab::{Assembly, FlowResult, FlowSpec, Scenario};
use clearway_report::{
    FlowRow, FlowTimes, FlowsWriter, FolderError, ResultFolder, RunRecord, WriteFlowsError, flows,
};
use clearway_units::FlowId;
use std::fs::File;

/// Collector of the flows of a run.
pub enum FlowRows {
    /// All rows, in memory.
    Kept(Vec<FlowRow>),
    /// Sizes and times of the flows; the rows are already in the file, if there is one.
    Written {
        /// Sizes and times.
        times: Vec<FlowTimes>,
        /// The file of the rows.
        file: Option<Box<FlowsFile>>,
    },
}

/// `flows.parquet`, until a write fails.
pub struct FlowsFile(Result<FlowsWriter<File>, WriteFlowsError>);

impl FlowRows {
    /// Collector for a run of `assembly`, with the results in `folder`.
    pub fn new(
        scenario: &Scenario,
        assembly: &Assembly,
        folder: &ResultFolder,
    ) -> Result<Self, FolderError> {
        let mut rows = Self::unkept(assembly);
        if let Self::Written { file, .. } = &mut rows {
            let sink = folder.create_file(flows::FILE_NAME)?;
            let (version, identity) = (env!("CARGO_PKG_VERSION"), identity(scenario));
            let sections = scenario.section_names();
            let writer = FlowsWriter::new(sink, version, REVISION, &identity, &sections);
            *file = Some(Box::new(FlowsFile(writer)));
        }
        Ok(rows)
    }

    /// Collector for a run whose results are not kept.
    pub fn unkept(assembly: &Assembly) -> Self {
        match assembly.is_streaming() {
            false => Self::Kept(Vec::with_capacity(assembly.flow_count())),
            true => Self::Written {
                times: Vec::with_capacity(assembly.flow_count()),
                file: None,
            },
        }
    }

    /// Adds a flow. Errors are reported at the end, because they must not end the run.
    pub fn add(&mut self, id: FlowId, flow: &FlowSpec, result: &FlowResult) {
        let row = row(id, flow, result);
        match self {
            Self::Kept(rows) => rows.push(row),
            Self::Written { times, file } => {
                times.push(FlowTimes::from(&row));
                if let Some(file) = file {
                    file.add(row);
                }
            }
        }
    }

    /// Adds the flows to the record; gives back the file with their rows.
    pub fn record(self, record: &mut RunRecord) -> Option<Box<FlowsFile>> {
        match self {
            Self::Kept(rows) => {
                record.flows = rows;
                None
            }
            Self::Written { times, file } => {
                record.written = Some(times);
                file
            }
        }
    }
}

impl FlowsFile {
    fn add(&mut self, row: FlowRow) {
        if let Ok(writer) = &mut self.0
            && let Err(error) = writer.add(row)
        {
            self.0 = Err(error);
        }
    }

    /// True if the file could not be written.
    pub fn is_lost(&self) -> bool {
        self.0.is_err()
    }

    /// Completes the file.
    pub fn finish(self, folder: &mut ResultFolder) {
        let finished = self.0.and_then(FlowsWriter::finish);
        folder.complete(flows::FILE_NAME, finished.map_err(Into::into));
    }
}

/// Row of a flow.
pub fn row(id: FlowId, flow: &FlowSpec, result: &FlowResult) -> FlowRow {
    let statistics = &result.statistics;
    FlowRow {
        flow: id.0,
        label: flow.label,
        src: flow.src.0,
        dst: flow.dst.0,
        bytes: flow.bytes.as_u64(),
        start: result.started,
        finish: result.finished,
        ideal_fct: result.ideal,
        packets: statistics.packets,
        retransmits: statistics.retransmitted,
        marks: statistics.marked.into(),
        probes: statistics.probes.into(),
        timeouts: statistics.timeouts.into(),
        attack: flow.attack,
        section: flow.section,
    }
}

//! `series.parquet`, written while the run goes on.

use crate::record::{REVISION, identity};
use clearway_lab::{Assembly, LinkId, NodeId, Scenario};
use clearway_report::{
    FolderError, ResultFolder, SeriesRow, SeriesWriter, Subject, WriteFlowsError, series,
};
use std::fs::File;

/// The file, as long as it can be written.
pub(crate) struct SeriesFile<'a> {
    assembly: &'a Assembly,
    state: Result<SeriesWriter<File>, WriteFlowsError>,
}

impl<'a> SeriesFile<'a> {
    pub(crate) fn create(
        folder: &ResultFolder,
        scenario: &Scenario,
        assembly: &'a Assembly,
    ) -> Result<Self, FolderError> {
        let file = folder.create_file(series::FILE_NAME)?;
        let identity = identity(scenario);
        let version = env!("CARGO_PKG_VERSION");
        Ok(Self {
            assembly,
            state: SeriesWriter::new(file, version, REVISION, &identity),
        })
    }

    /// Adds the rows of a sample. What goes wrong is told at the end: it must not end the run.
    pub(crate) fn add(&mut self, rows: &[SeriesRow]) {
        let topology = &self.assembly.topology;
        let name = |subject: Subject| {
            let link = |link| topology.link_name(LinkId(link));
            subject.name(link, |node| topology.node_name(NodeId(node)))
        };
        if let Ok(writer) = &mut self.state
            && let Err(error) = writer.add(rows.iter().copied(), name)
        {
            self.state = Err(error);
        }
    }

    /// True if it could not be written.
    pub(crate) fn is_lost(&self) -> bool {
        self.state.is_err()
    }

    /// Completes the file.
    pub(crate) fn finish(self, folder: &mut ResultFolder) {
        let finished = self.state.and_then(SeriesWriter::finish);
        folder.complete(series::FILE_NAME, finished.map_err(Into::into));
    }
}

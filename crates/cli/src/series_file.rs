//! `series.parquet`, written while the run goes on.

use crate::failure::with_causes;
use crate::record::{REVISION, identity};
use clearway_lab::{Assembly, LinkId, Scenario};
use clearway_report::{
    FolderError, ResultFolder, SeriesRow, SeriesWriter, WriteFlowsError, series,
};
use std::fs::File;
use std::io::BufWriter;

/// The file, as long as it can be written.
pub(crate) struct SeriesFile<'a> {
    assembly: &'a Assembly,
    state: Result<SeriesWriter<BufWriter<File>>, WriteFlowsError>,
}

impl<'a> SeriesFile<'a> {
    pub(crate) fn create(
        folder: &ResultFolder,
        scenario: &Scenario,
        assembly: &'a Assembly,
    ) -> Result<Self, FolderError> {
        let file = BufWriter::new(folder.create_file(series::FILE_NAME)?);
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
        let name = |link| topology.link_name(LinkId(link));
        if let Ok(writer) = &mut self.state
            && let Err(error) = writer.add(rows.iter().copied(), name)
        {
            self.state = Err(error);
        }
    }

    /// Completes the file; if that cannot be, warns and takes it away, for the other results are still good.
    pub(crate) fn finish(self, folder: &ResultFolder) -> Result<(), FolderError> {
        match self.state.and_then(SeriesWriter::finish) {
            Ok(_) => Ok(()),
            Err(error) => {
                eprintln!("warning: the time series are lost: {}", with_causes(&error));
                folder.remove(series::FILE_NAME)
            }
        }
    }
}

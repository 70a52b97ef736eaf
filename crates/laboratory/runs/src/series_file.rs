//! `series.parquet`, written during the run.

use crate::record::REVISION;
use clearway_lab::scenario::Sampling;
use clearway_lab::{Assembly, LinkId, NodeId};
use clearway_report::{
    FolderError, ResultFolder, ScenarioIdentity, SeriesRow, SeriesWriter, Subject, WriteFlowsError,
    series,
};
use std::fs::File;

/// Names of subjects.
pub(crate) type Names<'a> = Box<dyn Fn(Subject) -> String + 'a>;

/// Names of the parts of a packet fabric.
pub(crate) fn names(assembly: &Assembly) -> Names<'_> {
    let topology = &assembly.topology;
    Box::new(|subject| {
        let link = |link| topology.link_name(LinkId(link));
        subject.name(link, |node| topology.node_name(NodeId(node)))
    })
}

/// The file, until a write fails.
pub(crate) struct SeriesFile<'a> {
    name: Names<'a>,
    state: Result<SeriesWriter<File>, WriteFlowsError>,
}

impl<'a> SeriesFile<'a> {
    /// The file of a sampled run; `None` if the run is not sampled.
    pub(crate) fn create(
        folder: &ResultFolder,
        (sampling, identity): (Sampling, ScenarioIdentity),
        name: Names<'a>,
    ) -> Result<Option<Self>, FolderError> {
        if matches!(sampling, Sampling::Off) {
            return Ok(None);
        }
        let file = folder.create_file(series::FILE_NAME)?;
        let version = env!("CARGO_PKG_VERSION");
        Ok(Some(Self {
            name,
            state: SeriesWriter::new(file, version, REVISION, &identity),
        }))
    }

    /// Adds the rows of a sample. Errors are reported at the end, because they must not end the run.
    pub(crate) fn add(&mut self, rows: &[SeriesRow]) {
        if let Ok(writer) = &mut self.state
            && let Err(error) = writer.add(rows.iter().copied(), &self.name)
        {
            self.state = Err(error);
        }
    }

    /// True if the file could not be written.
    pub(crate) fn is_lost(&self) -> bool {
        self.state.is_err()
    }

    /// Completes the file.
    pub(crate) fn finish(self, folder: &mut ResultFolder) {
        let finished = self.state.and_then(SeriesWriter::finish);
        folder.complete(series::FILE_NAME, finished.map_err(Into::into));
    }
}

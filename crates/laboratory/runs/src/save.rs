//! Result folders of finished runs that were not kept.

use crate::report_page;
use clearway_lab::scenario::Setting;
use clearway_report::{
    FolderError, ResultFolder, RunRecord, ScenarioIdentity, SeriesRow, SeriesWriter,
    WriteFlowsError, series,
};
use clearway_report_html as page;
use std::fs::File;
use std::path::Path;

/// A run that is completely in memory.
#[derive(Debug, Clone, Copy)]
pub struct Unsaved<'a> {
    /// The scenario with every default written out.
    pub resolved: &'a str,
    /// Keys of the scenario for the report; `None` omits the report.
    pub settings: Option<&'a [Setting]>,
    /// Record of the run, with the rows of its flows.
    pub record: &'a RunRecord,
    /// Samples, in order.
    pub samples: &'a [SeriesRow],
}

/// Writes the tables of a run into a result folder, with a report if the settings are given. A record does not contain captures and
/// timelines.
///
/// # Errors
/// If the folder cannot be written.
pub fn save(run: &Unsaved<'_>, path: &Path) -> Result<(), FolderError> {
    let mut folder = ResultFolder::create(path)?;
    folder.write("scenario.toml", run.resolved)?;
    if run.settings.is_some() {
        folder.reserve(page::FILE_NAME)?;
    }
    folder.add_tables(run.record);
    if run.record.observed.is_some() {
        let file = folder.create_file(series::FILE_NAME)?;
        let written = write_samples(file, run);
        folder.complete(series::FILE_NAME, written.map_err(Into::into));
    }
    if let Some(settings) = run.settings {
        report_page::write(&mut folder, run.resolved, settings.to_vec(), run.record);
    }
    folder.finish()
}

fn write_samples(file: File, run: &Unsaved<'_>) -> Result<File, WriteFlowsError> {
    let RunRecord {
        version,
        revision,
        scenario,
        observed,
        ..
    } = run.record;
    let scenario: &ScenarioIdentity = scenario;
    let mut writer = SeriesWriter::new(file, version, revision, scenario)?;
    if let Some(observed) = observed {
        writer.add(run.samples.iter().copied(), |subject| {
            observed.name_of(subject)
        })?;
    }
    writer.finish()
}

//! The files of a result folder, in order of importance.
//!
//! `summary.json` and `flows.parquet` come first, and `report.html`, which can be generated again, comes last. Files for which the disk has
//! no room are left out, and the other files are kept. Files are opened before the run, while descriptors are available.

use crate::capture_file;
use crate::flow_rows::FlowsFile;
use crate::record::identity;
use crate::report_page;
use crate::series_file::{SeriesFile, names};
use crate::timeline_file;
use clearway_lab::record::Capture;
use clearway_lab::{Assembly, Finished, Scenario};
use clearway_report::{
    FolderError, ResultFolder, RunRecord, SeriesRow, flows, iterations, pcapng, timeline,
};
use clearway_report_html as page;

/// The unpublished result folder, and its files that grow during the run.
pub struct Outputs<'a> {
    /// The folder.
    pub folder: ResultFolder,
    /// File for rows of flows, if they are written during the run.
    pub flows: Option<Box<FlowsFile>>,
    /// File for samples, if the run is sampled.
    series: Option<SeriesFile<'a>>,
    scenario: &'a Scenario,
    assembly: &'a Assembly,
    /// True if `report.html` is wanted.
    report: bool,
}

/// Results to write when a run is over.
pub struct Results<'a> {
    /// Record of the run.
    pub record: &'a RunRecord,
    /// Outcome of the fabric.
    pub finished: &'a Finished,
    /// Frames, if they were captured.
    pub capture: Option<&'a Capture>,
    /// Other requested files.
    pub texts: &'a [TextFile],
}

/// A text file of the results, such as a file in another simulator's format.
#[derive(Debug, Clone)]
pub struct TextFile {
    /// Name in the result folder.
    pub name: String,
    /// The text.
    pub text: fn(&Assembly, &Finished) -> String,
}

impl<'a> Outputs<'a> {
    /// Writes the resolved scenario into the folder, and reserves the files of the results.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn create(
        mut folder: ResultFolder,
        scenario: &'a Scenario,
        assembly: &'a Assembly,
        report: bool,
    ) -> Result<Self, FolderError> {
        folder.write("scenario.toml", assembly.resolved(scenario))?;
        let files = [
            (flows::FILE_NAME, !assembly.is_streaming()),
            // The file is deleted at the end if there are no jobs.
            (iterations::FILE_NAME, true),
            (pcapng::FILE_NAME, assembly.capture.is_some()),
            (timeline::FILE_NAME, scenario.observe.perfetto),
            (page::FILE_NAME, report),
        ];
        reserve(&mut folder, &files)?;
        let sampling = (scenario.observe.every, identity(scenario));
        let series = SeriesFile::create(&folder, sampling, names(assembly))?;
        Ok(Self {
            folder,
            flows: None,
            series,
            scenario,
            assembly,
            report,
        })
    }

    /// True if a timeline is wanted.
    pub fn wants_timeline(&self) -> bool {
        self.scenario.observe.perfetto
    }

    /// Adds the rows of a sample.
    pub fn add(&mut self, rows: &[SeriesRow]) {
        if let Some(series) = &mut self.series {
            series.add(rows);
        }
    }

    /// Completes the files and puts the folder in place.
    ///
    /// # Errors
    /// If a file could not be written; the written files are kept.
    pub fn publish(mut self, results: &Results<'_>) -> Result<(), FolderError> {
        let folder = &mut self.folder;
        // Files that are already lost make room for the other files.
        let mut series = self.series;
        if let Some(lost) = series.take_if(|series| series.is_lost()) {
            lost.finish(folder);
        }
        let mut flows = self.flows;
        if let Some(lost) = flows.take_if(|flows| flows.is_lost()) {
            lost.finish(folder);
        }
        folder.add_tables(results.record);
        if let Some(flows) = flows {
            flows.finish(folder);
        }
        if let Some(series) = series {
            series.finish(folder);
        }
        for file in results.texts {
            let text = (file.text)(self.assembly, results.finished);
            folder.add(&file.name, |file| file.write_all(text.as_bytes()));
        }
        if let Some(capture) = results.capture {
            let (scenario, assembly) = (self.scenario, self.assembly);
            capture_file::write(folder, scenario, assembly, capture, results.finished);
        }
        if self.scenario.observe.perfetto {
            timeline_file::write(folder, results.record);
        }
        if self.report {
            let (text, settings) = (
                self.assembly.resolved(self.scenario),
                self.scenario.settings(),
            );
            report_page::write(folder, &text, settings, results.record);
        }
        self.folder.finish()
    }
}

/// Reserves the wanted files.
pub(crate) fn reserve(
    folder: &mut ResultFolder,
    files: &[(&'static str, bool)],
) -> Result<(), FolderError> {
    let mut wanted = files.iter().filter(|(_, wanted)| *wanted);
    wanted.try_for_each(|(name, _)| folder.reserve(name))
}

//! `clearway run --fct-txt`.

use crate::failure::Failure;
use crate::whole_file::WholeFile;
use clearway_lab::{Assembly, Finished};
use clearway_report::fct::MOST_HOSTS;
use clearway_report::{FctRow, FolderError, ResultFolder, fct_txt};
use std::path::{Path, PathBuf};

const FIX: &str = "name a file that you may write with `--fct-txt`";

/// Where completed flows go, in the format of HPCC's simulator.
pub(crate) enum FctFile {
    /// Nowhere.
    None,
    /// A file of this name in the result folder, which would not suffer any other file.
    InResults(String),
    /// A file elsewhere.
    Elsewhere(WholeFile),
}

impl FctFile {
    /// Prepares the file `path` before the run: what is wrong with it must not cost the user the time.
    pub(crate) fn prepare(
        path: Option<&Path>,
        results: &Path,
        assembly: &Assembly,
    ) -> Result<Self, Failure> {
        let Some(path) = path else {
            return Ok(Self::None);
        };
        let hosts = assembly.topology.hosts;
        let place = path.display();
        if hosts > MOST_HOSTS {
            return Err(Failure::new(format!(
                "--fct-txt {place}: the format has addresses for {MOST_HOSTS} hosts, but the topology has {hosts}\n  \
                 fix: leave `--fct-txt` out and use flows.parquet"
            )));
        }
        let is_inside = path
            .parent()
            .is_some_and(|folder| full(folder) == full(results));
        let name = path.file_name().filter(|_| is_inside);
        let Some(name) = name.map(|name| name.to_string_lossy().into_owned()) else {
            return Ok(Self::Elsewhere(WholeFile::create(path, FIX)?));
        };
        if [
            "summary.json",
            "scenario.toml",
            "flows.parquet",
            "series.parquet",
            "report.html",
            "trace.pcapng",
            "trace.perfetto",
        ]
        .contains(&name.as_str())
        {
            return Err(Failure::new(format!(
                "--fct-txt {place}: this is another file of the results\n  fix: choose another name"
            )));
        }
        Ok(Self::InResults(name))
    }

    /// Adds it to the results.
    pub(crate) fn write(
        &self,
        results: &ResultFolder,
        assembly: &Assembly,
        finished: &Finished,
    ) -> Result<(), FolderError> {
        match self {
            Self::InResults(name) => results.write(name, text(assembly, finished)),
            Self::None | Self::Elsewhere(_) => Ok(()),
        }
    }

    /// Puts it in its place outside of the results.
    pub(crate) fn publish(self, assembly: &Assembly, finished: &Finished) -> Result<(), Failure> {
        match self {
            Self::Elsewhere(file) => file.publish(&text(assembly, finished)),
            Self::None | Self::InResults(_) => Ok(()),
        }
    }
}

/// A folder by its full name, whether it exists or not.
fn full(folder: &Path) -> Option<PathBuf> {
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let full = folder
        .canonicalize()
        .or_else(|_| std::path::absolute(folder));
    full.ok()
}

fn text(assembly: &Assembly, finished: &Finished) -> String {
    let records = assembly.fct_records(finished);
    fct_txt(records.into_iter().map(|record| FctRow {
        src: record.src.0,
        dst: record.dst.0,
        sport: record.sport,
        dport: record.dport,
        bytes: record.bytes.as_u64(),
        start: record.start,
        fct: record.fct,
        standalone_fct: record.standalone,
    }))
}

//! `trace.perfetto`.

use crate::failure::with_causes;
use clearway_report::{FolderError, ResultFolder, RunRecord, timeline, write_timeline};

/// Adds it to the results. If that cannot be, warns and takes it away, for the other results are still good.
pub(crate) fn write(folder: &ResultFolder, record: &RunRecord) -> Result<(), FolderError> {
    let file = folder.create_file(timeline::FILE_NAME)?;
    match write_timeline(file, record) {
        Ok(()) => Ok(()),
        Err(error) => {
            eprintln!("warning: the timeline is lost: {}", with_causes(&error));
            folder.remove(timeline::FILE_NAME)
        }
    }
}

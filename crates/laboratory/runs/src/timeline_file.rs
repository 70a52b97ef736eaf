//! `trace.perfetto`.

use clearway_report::{ResultFolder, RunRecord, timeline, write_timeline};

/// Adds the timeline to the results.
pub(crate) fn write(folder: &mut ResultFolder, record: &RunRecord) {
    folder.add(timeline::FILE_NAME, |file| write_timeline(file, record));
}

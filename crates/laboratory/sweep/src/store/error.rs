//! Errors of the folder of a sweep.

use clearway_report::ReadSummaryError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Error of the folder of a sweep.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The folder holds something else.
    #[error("{}: this folder is not empty, and holds no sweep\n  \
        fix: name a folder that does not exist yet with `--out`", folder.display())]
    NotASweep {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder holds the sweep of another plan.
    #[error(
        "{}: this folder holds {runs} of {name}, and none of them belongs to the {wanted} of this plan\n  \
        fix: name another folder with `--out`",
        folder.display()
    )]
    OtherPlan {
        /// The folder.
        folder: PathBuf,
        /// Plan that it is of, in words.
        name: String,
        /// Number of its runs, in words.
        runs: String,
        /// Number of the runs of this plan, in words.
        wanted: String,
    },
    /// What is to be merged is no folder of a sweep.
    #[error("{}: {what}, so there are no runs to merge\n  \
        fix: name folders that `clearway sweep --out` wrote for the same plan", folder.display())]
    NotAPart {
        /// The folder.
        folder: PathBuf,
        /// What is there instead.
        what: &'static str,
    },
    /// A folder that is to be merged has nothing for this plan.
    #[error(
        "{}: none of its {runs} belongs to this plan\n  \
        fix: merge folders of the same plan, made by the same version and revision of the program",
        folder.display()
    )]
    NothingToMerge {
        /// The folder.
        folder: PathBuf,
        /// Number of its runs, in words.
        runs: String,
    },
    /// The results of a run cannot be read.
    #[error("the results in {} cannot be read: {source}\n  \
        fix: delete that folder, and the run is done again", folder.display())]
    Summary {
        /// The folder of the run.
        folder: PathBuf,
        /// Reason.
        source: Box<ReadSummaryError>,
    },
    /// The table of all runs cannot be made.
    #[error(
        "the table of all runs cannot be made: {reason}\n  \
        fix: this is a defect of clearway; please report it with the plan"
    )]
    Table {
        /// Reason.
        reason: String,
    },
    /// A file or folder cannot be read or written.
    #[error("cannot {action} {}: {source}\n  \
        fix: make sure that the folder is writable and the disk has room, or name another with `--out`", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
}

impl StoreError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

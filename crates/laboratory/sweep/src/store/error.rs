//! Errors of the folder of a sweep.

use clearway_report::ReadSummaryError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Error of the folder of a sweep.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The folder holds other files.
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
        /// The sweep's plan, in words.
        name: String,
        /// Number of runs in the folder, in words.
        runs: String,
        /// Number of runs of this plan, in words.
        wanted: String,
    },
    /// The folder to merge is not a sweep folder.
    #[error("{}: {what}, so there are no runs to merge\n  \
        fix: name folders that `clearway sweep --out` wrote for the same plan", folder.display())]
    NotAPart {
        /// The folder.
        folder: PathBuf,
        /// Content found instead.
        what: &'static str,
    },
    /// The folder to merge has no runs of this plan.
    #[error(
        "{}: none of its {runs} belongs to this plan\n  \
        fix: merge folders of the same plan, made by the same version and revision of the program",
        folder.display()
    )]
    NothingToMerge {
        /// The folder.
        folder: PathBuf,
        /// Number of runs in the folder, in words.
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
    /// The table of all runs cannot be created.
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
        /// Attempted action.
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

//! Errors of result folders.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A file of a result that could not be written.
#[derive(Debug)]
pub struct MissingFile {
    /// Name of the file.
    pub name: String,
    /// Reason why it could not be written.
    pub source: Box<dyn Error + Send + Sync>,
}

/// Results that could not be put in place.
#[derive(Debug, Error)]
pub enum FolderError {
    /// A file has the same name as the result folder.
    #[error("`{}` is not a folder: choose another name for the results, or move it away", path.display())]
    NotAFolder {
        /// The file.
        path: PathBuf,
    },
    /// A folder with other contents has the name of the result folder.
    #[error(
        "the folder `{}` holds something other than Clearway results (no valid `summary.json`) and is left alone: \
         choose another folder for the results, or delete this one",
        path.display()
    )]
    NotAResult {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds another folder, which cannot be part of a result.
    #[error(
        "the folder `{}` holds the folder `{inner}`, which replacing the results would delete: \
         choose another folder for the results, or move `{inner}` away",
        path.display()
    )]
    HoldsFolder {
        /// The folder.
        path: PathBuf,
        /// The name of the folder in it.
        inner: String,
    },
    /// The path has no last name, such as `/`.
    #[error("`{}` cannot become a result folder: choose a folder with a name", path.display())]
    Unnamed {
        /// The path.
        path: PathBuf,
    },
    /// Some files could not be written.
    #[error(
        "the results are not whole: {}; {}",
        list_missing(missing),
        list_kept(kept)
    )]
    Partial {
        /// Path at which the result was to appear.
        path: PathBuf,
        /// The files that could not be written.
        missing: Vec<MissingFile>,
        /// Folder and names of the other files; `None` if none is worth keeping.
        kept: Option<(PathBuf, Vec<String>)>,
    },
    /// The results are complete, but not in their intended place: something else is there, or a program holds a file of the former results.
    #[error("the results are kept in `{}`", place.display())]
    Beside {
        /// Folder of the results.
        place: PathBuf,
        /// Error of the intended place.
        source: Box<FolderError>,
    },
    /// The file system refused something.
    #[error("failed to {action} `{}`", path.display())]
    Io {
        /// Action that failed.
        action: &'static str,
        /// File or folder of the action.
        path: PathBuf,
        /// Error of the file system.
        source: io::Error,
    },
    /// The new results could not be put in place, and the former ones could not be put back.
    #[error(
        "failed to put the former results back to `{}`: they are kept in `{}`",
        path.display(), former.display()
    )]
    NotRestored {
        /// Path at which the former results were.
        path: PathBuf,
        /// Path at which the former results are now.
        former: PathBuf,
        /// Error of the file system.
        source: io::Error,
    },
    /// The new results are in place, but the former ones could not be deleted.
    #[error(
        "the results are in `{}`, but failed to delete the former ones: delete `{}` yourself",
        path.display(), holder.display()
    )]
    NotDeleted {
        /// Path of the new results.
        path: PathBuf,
        /// Folder with the remaining files of the former results.
        holder: PathBuf,
        /// Error of the file system.
        source: io::Error,
    },
}

impl FolderError {
    /// Folder of the results, or of a part of them, if it is not the requested folder or the results are incomplete.
    pub fn kept(&self) -> Option<&Path> {
        match self {
            Self::Partial { kept, .. } => kept.as_ref().map(|(place, _)| &**place),
            Self::Beside { place, .. } => Some(place),
            _ => None,
        }
    }

    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

fn list_missing(missing: &[MissingFile]) -> String {
    let each = missing.iter().map(|file| {
        let mut text = format!("`{}` could not be written: {}", file.name, file.source);
        let mut cause = file.source.source();
        while let Some(error) = cause {
            text += &format!(": {error}");
            cause = error.source();
        }
        text
    });
    each.collect::<Vec<_>>().join("; ")
}

fn list_kept(kept: &Option<(PathBuf, Vec<String>)>) -> String {
    match kept {
        None => "nothing is kept".into(),
        Some((place, names)) => {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("{} are kept in `{}`", names.join(", "), place.display())
        }
    }
}

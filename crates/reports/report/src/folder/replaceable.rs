//! Folders that may be deleted to make room for a new result.

use super::error::FolderError;
use crate::summary;
use clearway_input::InputKind;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Succeeds if the folder at `path` may be deleted to make room for a new result; an error calls it `name`.
pub(super) fn check_replaceable(path: &Path, name: &Path) -> Result<(), FolderError> {
    let name = name.to_path_buf();
    let inspect = || FolderError::io("inspect", &name);
    // Checked first: a process that replaces a result meanwhile removes its summary before the folder.
    let is_result = is_result(path);
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            return Err(FolderError::NotAFolder { path: name });
        }
        entries => entries.map_err(inspect())?,
    };
    let mut empty = true;
    for entry in entries {
        let entry = entry.map_err(inspect())?;
        empty = false;
        if entry.file_type().map_err(inspect())?.is_dir() {
            let inner = entry.file_name().to_string_lossy().into_owned();
            return Err(FolderError::HoldsFolder { path: name, inner });
        }
    }
    if is_result || empty {
        return Ok(());
    }
    Err(FolderError::NotAResult { path: name })
}

/// True if the folder holds a summary of this program, in any schema.
fn is_result(folder: &Path) -> bool {
    #[derive(Deserialize)]
    struct Signature {
        #[serde(rename = "schema")]
        _schema: u32,
        #[serde(rename = "scenario")]
        _scenario: IgnoredAny,
        #[serde(rename = "digest")]
        _digest: String,
    }
    let json = clearway_input::read_text(&folder.join(summary::FILE_NAME), InputKind::SUMMARY);
    json.is_ok_and(|json| serde_json::from_str::<Signature>(&json).is_ok())
}

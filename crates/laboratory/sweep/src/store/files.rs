//! Files that appear with their full content.

use super::StoreError;
use clearway_report::Owner;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

/// Prefix of temporary files: `.clearway-OWNER-NUMBER`.
const PREFIX: &str = ".clearway-";

/// Writer of files, which gives each temporary file a unique name.
#[derive(Debug)]
pub(crate) struct Files {
    owner: Owner,
    number: AtomicU32,
}

impl Files {
    pub(crate) fn new(owner: Owner) -> Self {
        Self {
            owner,
            number: AtomicU32::new(0),
        }
    }

    /// A unique path beside `path`.
    pub(crate) fn beside(&self, path: &Path) -> PathBuf {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        path.with_file_name(format!("{PREFIX}{}-{number}", self.owner))
    }

    /// Writes `contents` to the file `path`, and replaces an existing file.
    pub(crate) fn write(&self, path: &Path, contents: &[u8]) -> Result<(), StoreError> {
        let temporary = self.prepare(path, contents, true)?;
        fs::rename(&temporary, path).map_err(|error| {
            let _ = fs::remove_file(&temporary);
            StoreError::io("write", path)(error)
        })
    }

    /// Writes `contents` to a file beside `path`, and gives back its path. Without `to_disk`, the content may be lost if the machine fails.
    pub(crate) fn prepare(
        &self,
        path: &Path,
        contents: &[u8],
        to_disk: bool,
    ) -> Result<PathBuf, StoreError> {
        let temporary = self.beside(path);
        let written = File::create(&temporary).and_then(|mut file| {
            file.write_all(contents)?;
            if to_disk { file.sync_all() } else { Ok(()) }
        });
        written.map_err(|error| {
            let _ = fs::remove_file(&temporary);
            StoreError::io("write", path)(error)
        })?;
        Ok(temporary)
    }

    /// The time by the clock of `folder`'s file system, which may be on another machine.
    pub(crate) fn time(&self, folder: &Path) -> Result<Option<SystemTime>, StoreError> {
        let path = self.prepare(&folder.join("time"), b"", false)?;
        let time = fs::metadata(&path).and_then(|metadata| metadata.modified());
        remove(&path)?;
        Ok(time.ok())
    }

    /// Deletes temporary files of ended processes.
    pub(crate) fn clear(&self, folder: &Path) {
        for name in names(folder).unwrap_or_default() {
            let owner = name.strip_prefix(PREFIX);
            let owner = owner.and_then(|rest| Owner::read(rest.rsplit_once('-')?.0));
            if owner.is_some_and(|owner| owner.is_gone() == Some(true)) {
                let _ = fs::remove_file(folder.join(name));
            }
        }
    }
}

/// True if `name` is the name of a temporary file.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Names of the entries of a folder; empty if the folder does not exist.
pub(crate) fn names(folder: &Path) -> Result<BTreeSet<String>, StoreError> {
    let fault = || StoreError::io("read the folder", folder);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(fault()(error)),
    };
    let mut names = BTreeSet::new();
    for entry in entries {
        let entry = entry.map_err(fault())?;
        names.insert(entry.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}

/// Deletes a file if it exists.
pub(crate) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(StoreError::io("delete", path)(error))
        }
        _ => Ok(()),
    }
}

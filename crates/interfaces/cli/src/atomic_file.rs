//! Files that are written completely or not at all.

use crate::failure::{Failure, with_causes};
use clearway_report::Owner;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A file under construction, beside its final place. Without [`publish`](Self::publish), drop deletes the temporary file.
pub(crate) struct AtomicFile {
    /// Path as the user wrote it.
    path: PathBuf,
    file: File,
    /// Temporary path and final path of the file; `None` if the file is a device or a pipe, which receives the output directly.
    renamed: Option<(PathBuf, PathBuf)>,
    /// Advice to the user if the file cannot be written.
    fix: &'static str,
}

impl AtomicFile {
    /// Prepares the file `path`, and its folder.
    pub(crate) fn create(path: &Path, fix: &'static str) -> Result<Self, Failure> {
        let name = path.file_name().filter(|_| !path.is_dir());
        let Some(name) = name else {
            let error = io::Error::from(io::ErrorKind::IsADirectory);
            return Err(fault("write", path, &error, fix));
        };
        let write = |error| fault("write", path, &error, fix);
        if path.exists() && !path.is_file() {
            let file = File::options().append(true).open(path).map_err(write)?;
            return Ok(Self {
                path: path.to_owned(),
                file,
                renamed: None,
                fix,
            });
        }
        // A symbolic link stays: the rename replaces the target of the link.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let name = target.file_name().unwrap_or(name).to_string_lossy();
        let folder = target.parent().unwrap_or(Path::new(""));
        if !folder.as_os_str().is_empty() {
            let created = fs::create_dir_all(folder);
            created.map_err(|error| fault("create the folder of", path, &error, fix))?;
        }
        let temporary = folder.join(format!(".{name}.{}", Owner::this()));
        let file = File::create(&temporary).map_err(write)?;
        clear(folder, &format!(".{name}."), &file);
        Ok(Self {
            path: path.to_owned(),
            file,
            renamed: Some((temporary, target)),
            fix,
        })
    }

    /// Writes `text` and moves the file to its final place.
    pub(crate) fn publish(mut self, text: &str) -> Result<(), Failure> {
        let written = self.file.write_all(text.as_bytes());
        let written = written.and_then(|()| match &self.renamed {
            None => self.file.flush(),
            Some((temporary, target)) => {
                // Sync before the rename: after a crash, the final name must not refer to incomplete data.
                self.file.sync_all()?;
                fs::rename(temporary, target)
            }
        });
        written.map_err(|error| fault("write", &self.path, &error, self.fix))
    }
}

/// A document and its page under construction, each written completely or not at all.
pub(crate) struct DocumentAndPage {
    document: AtomicFile,
    page: AtomicFile,
}

impl DocumentAndPage {
    /// Files of these names in a folder; `fix` tells the user how to make them writable.
    pub(crate) fn create(
        folder: &Path,
        [document, page]: [&str; 2],
        fix: &'static str,
    ) -> Result<Self, Failure> {
        Ok(Self {
            document: AtomicFile::create(&folder.join(document), fix)?,
            page: AtomicFile::create(&folder.join(page), fix)?,
        })
    }

    /// Publishes both files. A failure of one file does not stop the other.
    pub(crate) fn publish(self, document: &str, page: &str) -> Result<(), Failure> {
        let document = self.document.publish(document);
        let page = self.page.publish(page);
        Failure::all([document, page])
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some((temporary, _)) = &self.renamed {
            // After `publish` the file no longer exists. A destructor cannot report other errors.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Deletes files in `folder` that killed processes have left behind: files whose names begin with `prefix`.
fn clear(folder: &Path, prefix: &str, fresh: &File) {
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let (Ok(entries), Ok(fresh)) = (fs::read_dir(folder), fresh.metadata()) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(prefix));
        let owner = owner.and_then(Owner::read);
        if owner.is_some_and(|owner| owner.has_abandoned(&entry, &fresh)) {
            // Cleanup is optional, so a failure is ignored.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn fault(what: &str, path: &Path, error: &io::Error, fix: &str) -> Failure {
    let (path, error) = (path.display(), with_causes(error));
    Failure::new(format!("cannot {what} {path}: {error}\n  fix: {fix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_replaced_whole_or_left_alone() {
        let folder = clearway_testing::Folder::new("whole");
        let path = folder.join("x.jsonl");
        let create = || AtomicFile::create(&path, "mend it").unwrap();
        create().publish("old").unwrap();
        drop(create());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        create().publish("new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(AtomicFile::create(&folder, "mend it").is_err());
        // Files of other processes are deleted if these processes have ended.
        let this = Owner::this().to_string();
        let (process, start) = this.rsplit_once('-').unwrap();
        let gone = format!(".x.jsonl.{process}-{}", start.parse::<u64>().unwrap() + 1);
        for name in [gone.as_str(), ".x.jsonl.77", ".y.jsonl.1"] {
            fs::write(folder.join(name), "").unwrap();
        }
        drop(create());
        assert_eq!(folder.join(gone).exists(), !cfg!(target_os = "linux"));
        assert!(folder.join(".x.jsonl.77").exists() && folder.join(".y.jsonl.1").exists());
        #[cfg(unix)]
        {
            let link = folder.join("link");
            std::os::unix::fs::symlink(&path, &link).unwrap();
            let linked = AtomicFile::create(&link, "mend it").unwrap();
            linked.publish("through a link").unwrap();
            assert!(link.is_symlink());
            assert_eq!(fs::read_to_string(&path).unwrap(), "through a link");
            let null = AtomicFile::create(Path::new("/dev/null"), "mend it").unwrap();
            null.publish("x").unwrap();
            assert!(!Path::new("/dev/null").is_file());
        }
    }
}

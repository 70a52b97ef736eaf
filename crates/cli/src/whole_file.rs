//! Files that are either there in full or as they were before.

use crate::failure::{Failure, with_causes};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A file in the making, beside the place where it is to appear. Dropped without [`publish`](Self::publish) it leaves no trace.
pub(crate) struct WholeFile {
    path: PathBuf,
    temporary: PathBuf,
    file: File,
    /// What the user may do about a fault.
    fix: &'static str,
}

impl WholeFile {
    /// Prepares the file `path`, and its folder.
    pub(crate) fn create(path: &Path, fix: &'static str) -> Result<Self, Failure> {
        let name = path.file_name().filter(|_| !path.is_dir());
        let Some(name) = name else {
            let error = io::Error::from(io::ErrorKind::IsADirectory);
            return Err(fault("write", path, &error, fix));
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        if !folder.as_os_str().is_empty() {
            let created = fs::create_dir_all(folder);
            created.map_err(|error| fault("create the folder of", path, &error, fix))?;
        }
        let name = format!(".{}.{}", name.to_string_lossy(), std::process::id());
        let temporary = folder.join(name);
        let file = File::create(&temporary).map_err(|error| fault("write", path, &error, fix))?;
        Ok(Self {
            path: path.to_owned(),
            temporary,
            file,
            fix,
        })
    }

    /// Puts the file in its place with `text` in it.
    pub(crate) fn publish(mut self, text: &str) -> Result<(), Failure> {
        let written = self
            .file
            .write_all(text.as_bytes())
            .and_then(|()| self.file.sync_all())
            .and_then(|()| fs::rename(&self.temporary, &self.path));
        written.map_err(|error| fault("write", &self.path, &error, self.fix))
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        // Gone already if it was published; nobody is left to tell otherwise.
        let _ = fs::remove_file(&self.temporary);
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
        let folder = std::env::temp_dir().join(format!("clearway-whole-{}", std::process::id()));
        let path = folder.join("x.jsonl");
        let create = || WholeFile::create(&path, "mend it").unwrap();
        create().publish("old").unwrap();
        drop(create());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        create().publish("new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        assert!(WholeFile::create(&folder, "mend it").is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}

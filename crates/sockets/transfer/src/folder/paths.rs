//! Folders as paths, which check entries before they open them.

use super::Kind;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A folder.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Opens the folder at `path`, which the user has named: follows links in the path.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(path.canonicalize()?))
    }

    /// A folder in this one.
    pub(crate) fn folder(&self, name: &str) -> io::Result<Self> {
        match self.kind(name)? {
            Some(Kind::Folder) => Ok(Self(self.0.join(name))),
            Some(_) => Err(ErrorKind::NotADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    /// Creates a folder in this one, unless an entry has this name.
    pub(crate) fn make_folder(&self, name: &str) -> io::Result<()> {
        match fs::create_dir(self.0.join(name)) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    /// Kind of the entry with this name, if it exists.
    pub(crate) fn kind(&self, name: &str) -> io::Result<Option<Kind>> {
        let found = match fs::symlink_metadata(self.0.join(name)) {
            Ok(found) => found.file_type(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(
            match (found.is_symlink(), found.is_dir(), found.is_file()) {
                (true, _, _) => Kind::Link,
                (_, true, _) => Kind::Folder,
                (_, _, true) => Kind::File,
                _ => Kind::Other,
            },
        ))
    }

    /// Names of the entries of this folder that are valid text.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    /// Opens a file for reading and writing, and creates it if it does not exist.
    pub(crate) fn file(&self, name: &str) -> io::Result<File> {
        match self.kind(name)? {
            None => File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .open(self.0.join(name)),
            Some(Kind::File) => File::options()
                .read(true)
                .write(true)
                .open(self.0.join(name)),
            Some(_) => Err(ErrorKind::AlreadyExists.into()),
        }
    }

    /// Opens a file for reading.
    pub(crate) fn read(&self, name: &str) -> io::Result<File> {
        match self.kind(name)? {
            Some(Kind::File) => File::open(self.0.join(name)),
            _ => Err(ErrorKind::NotFound.into()),
        }
    }

    /// True if the file has this name. On this platform an open file keeps its name.
    pub(crate) fn has(&self, name: &str, _: &File) -> io::Result<bool> {
        Ok(self.kind(name)? == Some(Kind::File))
    }

    /// Takes the lock of a file; false if another process has it. This platform cannot tell.
    pub(crate) fn lock(_: &File) -> io::Result<bool> {
        Ok(true)
    }

    /// True if a file also has other names. This platform cannot tell, and moving a file creates no second name.
    pub(crate) fn is_shared(_: &File) -> io::Result<bool> {
        Ok(false)
    }

    /// Moves a file into another folder. Replaces an existing file only if `overwrite` is set.
    pub(crate) fn rename(
        &self,
        name: &str,
        to: &Self,
        new: &str,
        overwrite: bool,
    ) -> io::Result<()> {
        if !overwrite && to.kind(new)?.is_some() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        fs::rename(self.0.join(name), to.0.join(new))
    }

    /// Removes a file.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    /// Removes a folder if it is empty.
    pub(crate) fn remove_folder(&self, name: &str) -> io::Result<()> {
        fs::remove_dir(self.0.join(name))
    }

    /// Writes the names in this folder to the disk. On this platform only the system can do this.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

//! Folders as handles: nobody can put a link between two steps of a way.

use super::Kind;
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, RawMode, flock, fstat, fsync, linkat, mkdirat,
    openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

const NEW_FILE: RawMode = 0o666;
const NEW_FOLDER: RawMode = 0o777;

/// A folder.
#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

impl Folder {
    /// Opens the folder at `path`, which the user has named: links in it are followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::empty());
        Ok(Self(opened?))
    }

    /// A folder in this one.
    pub(crate) fn folder(&self, name: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(openat(&self.0, name, flags, Mode::empty())?))
    }

    /// Makes a folder in this one, unless there is something of this name.
    pub(crate) fn make_folder(&self, name: &str) -> io::Result<()> {
        match mkdirat(&self.0, name, Mode::from_raw_mode(NEW_FOLDER)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Kind of what has this name, if anything has.
    pub(crate) fn kind(&self, name: &str) -> io::Result<Option<Kind>> {
        let found = match statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok(Some(match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Folder,
            FileType::Symlink => Kind::Link,
            _ => Kind::Other,
        }))
    }

    /// Opens a file for reading and writing, and makes it if there is none.
    pub(crate) fn file(&self, name: &str) -> io::Result<File> {
        // A pipe would wait for its other end.
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.0, name, flags, Mode::from_raw_mode(NEW_FILE))?;
        Ok(File::from(file))
    }

    /// Opens a file for reading.
    pub(crate) fn read(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.0, name, flags, Mode::empty())?))
    }

    /// True if the file has this name.
    pub(crate) fn has(&self, name: &str, file: &File) -> io::Result<bool> {
        let named = match statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(named) => named,
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let open = fstat(file)?;
        Ok((named.st_dev, named.st_ino) == (open.st_dev, open.st_ino))
    }

    /// Takes the lock of a file; false if another process has it.
    pub(crate) fn lock(file: &File) -> io::Result<bool> {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            // Some file systems have no locks.
            Err(_) => Ok(true),
        }
    }

    /// Moves a file into another folder. What is there is replaced only if `overwrite` says so.
    pub(crate) fn rename(
        &self,
        name: &str,
        to: &Self,
        new: &str,
        overwrite: bool,
    ) -> io::Result<()> {
        if !overwrite {
            match linkat(&self.0, name, &to.0, new, AtFlags::empty()) {
                Ok(()) => return self.remove(name),
                Err(error @ (Errno::EXIST | Errno::XDEV | Errno::NOSPC)) => {
                    return Err(error.into());
                }
                // Some file systems have no hard links.
                Err(_) if to.kind(new)?.is_some() => return Err(Errno::EXIST.into()),
                Err(_) => {}
            }
        }
        Ok(renameat(&self.0, name, &to.0, new)?)
    }

    /// Removes a file.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes a folder if it is empty.
    pub(crate) fn remove_folder(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Has the names in this folder written to the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(fsync(&self.0)?)
    }
}

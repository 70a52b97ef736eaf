//! Folders as handles: nobody can insert a link between two steps of a lookup.

use super::Kind;
use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RawMode, flock, fstat, fsync, linkat,
    mkdirat, openat, renameat, statat, unlinkat,
};
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
use rustix::fs::{RenameFlags, renameat_with};
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
    /// Opens the folder at `path`, which the user has named: follows links in the path.
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

    /// Creates a folder in this one, unless an entry has this name.
    pub(crate) fn make_folder(&self, name: &str) -> io::Result<()> {
        match mkdirat(&self.0, name, Mode::from_raw_mode(NEW_FOLDER)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Kind of the entry with this name, if it exists.
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

    /// Names of the entries of this folder that are valid text.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let name = entry?.file_name().to_str().map(str::to_owned);
            names.extend(name.ok().filter(|name| name != "." && name != ".."));
        }
        Ok(names)
    }

    /// Opens a file for reading and writing, and creates it if it does not exist.
    pub(crate) fn file(&self, name: &str) -> io::Result<File> {
        // Opening a pipe would wait for its other end.
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

    /// True if a file also has other names.
    pub(crate) fn is_shared(file: &File) -> io::Result<bool> {
        Ok(fstat(file)?.st_nlink > 1)
    }

    /// Moves a file into another folder. Replaces an existing file only if `overwrite` is set.
    pub(crate) fn rename(
        &self,
        name: &str,
        to: &Self,
        new: &str,
        overwrite: bool,
    ) -> io::Result<()> {
        if overwrite {
            return Ok(renameat(&self.0, name, &to.0, new)?);
        }
        match rename_noreplace(&self.0, name, &to.0, new) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::PERM) => {
                self.link(name, to, new)
            }
            result => Ok(result?),
        }
    }

    /// Moves a file in two steps if one step could replace an existing file. Between the steps the file has two names.
    fn link(&self, name: &str, to: &Self, new: &str) -> io::Result<()> {
        match linkat(&self.0, name, &to.0, new, AtFlags::empty()) {
            Ok(()) => match unlinkat(&self.0, name, AtFlags::empty()) {
                // Another process found both names and removed this one.
                Err(Errno::NOENT) => Ok(()),
                result => Ok(result?),
            },
            Err(error @ (Errno::EXIST | Errno::XDEV | Errno::NOSPC)) => Err(error.into()),
            // Some file systems have no hard links.
            Err(_) if to.kind(new)?.is_some() => Err(Errno::EXIST.into()),
            Err(_) => Ok(renameat(&self.0, name, &to.0, new)?),
        }
    }

    /// Removes a file.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes a folder if it is empty.
    pub(crate) fn remove_folder(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Writes the names in this folder to the disk, if the file system supports this.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match fsync(&self.0) {
            Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
            result => Ok(result?),
        }
    }
}

/// Moves a file, unless an entry has the new name.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_noreplace(from: &OwnedFd, name: &str, to: &OwnedFd, new: &str) -> rustix::io::Result<()> {
    renameat_with(from, name, to, new, RenameFlags::NOREPLACE)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_noreplace(_: &OwnedFd, _: &str, _: &OwnedFd, _: &str) -> rustix::io::Result<()> {
    Err(Errno::NOSYS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_testing::Folder as TestFolder;
    use std::fs;
    use std::io::ErrorKind;

    type Move = fn(&Folder, &str, &Folder, &str) -> io::Result<()>;

    #[test]
    fn what_is_there_stays_and_a_file_that_was_moved_has_one_name() {
        let at_once: Move = |from, name, to, new| from.rename(name, to, new, false);
        for (number, rename) in [at_once, Folder::link].into_iter().enumerate() {
            let test = TestFolder::new(&format!("transfer-rename-{number}"));
            let folder = Folder::open(&test).unwrap();
            folder.make_folder("to").unwrap();
            let to = folder.folder("to").unwrap();
            fs::write(test.join("a"), "a").unwrap();
            fs::write(test.join("b"), "b").unwrap();
            rename(&folder, "a", &to, "x").unwrap();
            assert!(!test.join("a").exists());
            assert!(!Folder::is_shared(&to.read("x").unwrap()).unwrap());
            let error = rename(&folder, "b", &to, "x").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AlreadyExists);
            assert_eq!(fs::read(test.join("to/x")).unwrap(), b"a");
            assert_eq!(fs::read(test.join("b")).unwrap(), b"b");
        }
    }

    /// Folders of `/proc` are of a file system that writes to no disk.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_cannot_be_written_to_the_disk_is_no_error() {
        let folder = Folder::open(Path::new("/proc")).unwrap();
        assert_eq!(fsync(&folder.0), Err(Errno::INVAL));
        folder.sync().unwrap();
    }
}

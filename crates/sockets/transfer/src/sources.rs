//! The sender's disk: named files, and the contents of named folders.

use crate::blocks::{ContentHash, DIGEST};
use crate::name::{Name, PARTIAL_FOLDER};
use crate::positioned_io::read_exact_at;
use crate::reason::{Reason, ReasonKind};
use crate::sending::{Job, Outcome, Sending};
use crate::transfer_side::Disk;
use crate::wire::FileMetadata;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Most files of a transfer.
const MOST_FILES: usize = 10_000_000;

/// Files to be sent.
#[derive(Debug, Default)]
pub struct Sources {
    files: Vec<Source>,
    /// Folder entries that are not sent: links, devices, pipes, sockets.
    skipped: Vec<PathBuf>,
    /// Folders in which receivers keep partial files.
    partial_folders: Vec<PathBuf>,
    open: Mutex<BTreeMap<u32, Arc<Open>>>,
}

#[derive(Debug)]
struct Source {
    path: PathBuf,
    name: Name,
    size: u64,
}

#[derive(Debug)]
struct Open {
    file: File,
    facts: FileMetadata,
}

/// Reason why the sender cannot send a path.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A path that does not exist, or cannot be read.
    #[error("{path}: cannot read it: {error}")]
    Read {
        /// Path as the user gave it, or an entry below it.
        path: String,
        /// Error of the operating system.
        error: io::Error,
    },
    /// Neither a file nor a folder.
    #[error("{path}: this is a device, a pipe or a socket, and only files and folders are sent")]
    Kind {
        /// Path as the user gave it.
        path: String,
    },
    /// A name that no receiver accepts.
    #[error("{path}: its name cannot be sent: {fault}")]
    Name {
        /// Path as the user gave it, or an entry below it.
        path: String,
        /// The fault.
        fault: String,
    },
    /// A name in another encoding.
    #[error("{path:?}: its name cannot be sent: it is not UTF-8")]
    Encoding {
        /// Path as the user gave it, or an entry below it.
        path: PathBuf,
    },
    /// Two files would have one name.
    #[error("{first} and {second} would both be `{name}` at the receiver")]
    Twice {
        /// Path of the first file.
        first: String,
        /// Path of the second file.
        second: String,
        /// The common name.
        name: String,
    },
    /// More files than any receiver can accept.
    #[error("these are more than {MOST_FILES} files")]
    Many,
}

impl SourceError {
    /// Advice to the user.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Read { .. } => "name files and folders that are there and that you may read",
            Self::Kind { .. } => {
                "name a file or a folder; write the data of a pipe into a file first"
            }
            Self::Name { .. } => "rename it, or leave it out",
            Self::Encoding { .. } => {
                "rename it, or move it elsewhere meanwhile; `convmv` renames all files of a folder from another encoding to UTF-8"
            }
            Self::Twice { .. } => {
                "rename one of them, or send them by two commands to receivers with different `--out`"
            }
            Self::Many => "send folders one by one, or an archive of them",
        }
    }
}

impl Sources {
    /// Finds the named files, and all files in the named folders. The name of a folder precedes the names of its files, except for `.` and
    /// `..`.
    ///
    /// # Errors
    /// If a path does not exist, cannot be read or has an invalid name, or two files would have the same name.
    pub fn find(paths: &[PathBuf]) -> Result<Self, SourceError> {
        let mut sources = Self::default();
        for path in paths {
            // A link that the user names is followed.
            let found = fs::metadata(path).map_err(|error| cannot_read(path, error))?;
            let name = path.file_name();
            if found.is_dir() {
                let prefix = name.map(|name| text(path, name)).transpose()?;
                sources.add_folder(path, prefix.as_deref().unwrap_or(""))?;
            } else if let Some(name) = name.filter(|_| found.is_file()) {
                let name = text(path, name)?;
                sources.add_file(path.clone(), &name, found.len())?;
            } else {
                return Err(SourceError::Kind { path: shown(path) });
            }
        }
        sources.files.sort_by(|a, b| a.name.cmp(&b.name));
        let twice = sources
            .files
            .windows(2)
            .find(|pair| pair[0].name == pair[1].name);
        match twice {
            Some([first, second]) => Err(SourceError::Twice {
                first: shown(&first.path),
                second: shown(&second.path),
                name: first.name.to_string(),
            }),
            _ => Ok(sources),
        }
    }

    fn add_folder(&mut self, path: &Path, prefix: &str) -> Result<(), SourceError> {
        // An explicit stack, not recursion: only the checks of names limit the depth of folders.
        let mut folders = vec![(path.to_owned(), prefix.to_owned())];
        while let Some((folder, prefix)) = folders.pop() {
            let entries = fs::read_dir(&folder).map_err(|error| cannot_read(&folder, error))?;
            for entry in entries {
                let entry = entry.map_err(|error| cannot_read(&folder, error))?;
                let path = entry.path();
                let kind = entry
                    .file_type()
                    .map_err(|error| cannot_read(&path, error))?;
                if !kind.is_dir() && !kind.is_file() {
                    self.skipped.push(path);
                    continue;
                }
                if kind.is_dir() && entry.file_name().eq_ignore_ascii_case(PARTIAL_FOLDER) {
                    self.partial_folders.push(path);
                    continue;
                }
                let own = text(&path, &entry.file_name())?;
                let name = match prefix.as_str() {
                    "" => own,
                    prefix => format!("{prefix}/{own}"),
                };
                if kind.is_dir() {
                    // The check of names also ends loops in a file system.
                    check(&path, &name)?;
                    folders.push((path, name));
                } else {
                    let found = entry
                        .metadata()
                        .map_err(|error| cannot_read(&path, error))?;
                    self.add_file(path, &name, found.len())?;
                }
            }
        }
        Ok(())
    }

    fn add_file(&mut self, path: PathBuf, name: &str, size: u64) -> Result<(), SourceError> {
        if self.files.len() >= MOST_FILES {
            return Err(SourceError::Many);
        }
        let name = check(&path, name)?;
        self.files.push(Source { path, name, size });
        Ok(())
    }

    /// Names and sizes of the files, in order.
    pub fn files(&self) -> impl ExactSizeIterator<Item = (&Name, u64)> {
        self.files.iter().map(|source| (&source.name, source.size))
    }

    /// Folder entries that are not sent: links, devices, pipes, sockets.
    pub fn skipped(&self) -> &[PathBuf] {
        &self.skipped
    }

    /// Folders in which receivers keep partial files, which are not sent.
    pub fn partial_folders(&self) -> &[PathBuf] {
        &self.partial_folders
    }

    /// The sender of these files.
    pub fn sending(&self) -> Sending {
        Sending::new(
            self.files
                .iter()
                .map(|source| (source.name.clone(), source.size)),
        )
    }

    fn open(&self, number: u32) -> Result<FileMetadata, Reason> {
        let closed = || Reason::new(ReasonKind::Other, "");
        let source = self.files.get(number as usize).ok_or_else(closed)?;
        let read = |error: io::Error| Reason::new(ReasonKind::Read, &error.to_string());
        // If the file has become a pipe, opening it would wait for its other end.
        if !fs::metadata(&source.path).map_err(read)?.is_file() {
            return Err(Reason::new(
                ReasonKind::Changed,
                "it is not a file any more",
            ));
        }
        let file = File::open(&source.path).map_err(read)?;
        let facts = facts(&file.metadata().map_err(read)?);
        let open = Arc::new(Open { file, facts });
        self.lock().insert(number, open);
        Ok(facts)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u32, Arc<Open>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find_open(&self, number: u32) -> Result<Arc<Open>, Reason> {
        let open = self.lock().get(&number).cloned();
        open.ok_or_else(|| Reason::new(ReasonKind::Other, ""))
    }

    fn read(&self, number: u32, offset: u64, length: usize) -> Result<Bytes, Reason> {
        let open = self.find_open(number)?;
        let mut content = vec![0; DIGEST + length];
        let read = read_exact_at(&open.file, &mut content[DIGEST..], offset);
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                Reason::new(ReasonKind::Changed, "it has become shorter")
            }
            _ => Reason::new(ReasonKind::Read, &error.to_string()),
        })?;
        let digest = ContentHash::of_block(&content[DIGEST..]);
        content[..DIGEST].copy_from_slice(&digest.0);
        Ok(Bytes::from(content))
    }

    fn compare(&self, number: u32) -> Result<(), Reason> {
        let open = self.find_open(number)?;
        let found = open.file.metadata();
        let found = found.map_err(|error| Reason::new(ReasonKind::Read, &error.to_string()))?;
        match facts(&found) == open.facts {
            true => Ok(()),
            false => Err(Reason::new(
                ReasonKind::Changed,
                "its size or time is another",
            )),
        }
    }
}

impl Disk<Sending> for Sources {
    fn run(&self, job: Job) -> Outcome {
        match job {
            Job::Open(file) => Outcome::Opened {
                file,
                result: self.open(file),
            },
            Job::Read {
                file,
                block,
                offset,
                length,
            } => Outcome::Read {
                file,
                block,
                length,
                result: self.read(file, offset, length),
            },
            Job::Compare(file) => Outcome::Compared {
                file,
                result: self.compare(file),
            },
            Job::Close(file) => {
                self.lock().remove(&file);
                Outcome::Closed
            }
        }
    }
}

/// A path for messages: control characters, such as line breaks, are escaped.
pub fn shown(path: &Path) -> String {
    let mut text = String::new();
    for letter in path.display().to_string().chars() {
        match letter.is_control() {
            true => text.extend(letter.escape_default()),
            false => text.push(letter),
        }
    }
    text
}

fn cannot_read(path: &Path, error: io::Error) -> SourceError {
    let path = shown(path);
    SourceError::Read { path, error }
}

fn text(path: &Path, name: &OsStr) -> Result<String, SourceError> {
    let fault = || SourceError::Encoding { path: path.into() };
    name.to_str().map(str::to_owned).ok_or_else(fault)
}

fn check(path: &Path, name: &str) -> Result<Name, SourceError> {
    Name::new(name).map_err(|fault| SourceError::Name {
        path: shown(path),
        fault: fault.to_string(),
    })
}

fn facts(found: &Metadata) -> FileMetadata {
    #[cfg(unix)]
    let executable = {
        use std::os::unix::fs::PermissionsExt as _;
        found.permissions().mode() & 0o111 != 0
    };
    #[cfg(not(unix))]
    let executable = false;
    FileMetadata {
        size: found.len(),
        // Some file systems lack modification times.
        modified: found.modified().map_or((0, 0), since_1970),
        executable,
    }
}

fn since_1970(time: SystemTime) -> (i64, u32) {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => (since.as_secs() as i64, since.subsec_nanos()),
        Err(before) => {
            // Whole seconds round down, because nanoseconds count upwards.
            let before: Duration = before.duration();
            match before.subsec_nanos() {
                0 => (-(before.as_secs() as i64), 0),
                nanos => (-(before.as_secs() as i64) - 1, 1_000_000_000 - nanos),
            }
        }
    }
}

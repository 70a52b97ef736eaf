//! Result folders that appear complete, or, if the disk has no room, with the files that are complete.
//!
//! All files of a result are written into a hidden [holder] beside the final place. Once they are on disk, one rename moves them to the
//! final place. A former result is first moved into the same holder and deleted at the end. If the program is killed at any point, the
//! final name holds the former result, the new one, or (between two renames) nothing. In the last case the holder has both, and the next
//! run puts the new result in place. The final name never holds a part of a result.
//!
//! If a file cannot be written, the result is incomplete and lacks that file. The complete files go to the final place if nothing is
//! there, otherwise beside it. The error names these files, their place, and the missing files.

mod error;
mod replaceable;
mod staging;

use crate::flows::{self, write_flows};
use crate::iterations::{self, write_iterations};
use crate::operations::{self, write_operations};
use crate::record::RunRecord;
use crate::summary::{self, Summary};
pub use error::{FolderError, MissingFile};
use replaceable::check_replaceable;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Seek as _, Write};
use std::path::{Component, Path, PathBuf};

/// Maximum number of attempts to publish a result while other processes put their results at the same place.
const ATTEMPTS: u32 = 16;

/// The resolved scenario, which tells nothing about the run and is not a reason to keep a part of a result.
const SCENARIO: &str = "scenario.toml";

/// Bytes reserved for `summary.json`, the most important file and a small one, so that other files leave room for it.
const SUMMARY_ROOM: usize = 8 << 10;

/// A result folder in the making. Dropping it without [`finish`](Self::finish) leaves no trace.
#[derive(Debug)]
pub struct ResultFolder {
    target: PathBuf,
    holder: PathBuf,
    /// Files that are open but not yet written.
    reserved: BTreeMap<String, File>,
    /// Files that could not be written.
    missing: Vec<MissingFile>,
    /// False while the holder has a former result that could not be put back.
    disposable: bool,
}

impl ResultFolder {
    /// Prepares the folder that will appear at `target`, and its parents.
    ///
    /// The target may be a former result, an empty folder or missing. Anything else is left alone and refused here, before any time goes
    /// into a run. A former result is deleted with all its files when the new one is published. Holders of killed processes in the same
    /// folder are deleted.
    pub fn create(target: impl AsRef<Path>) -> Result<Self, FolderError> {
        let target = resolve(target.as_ref())?;
        check_replaceable(&target, &target)?;
        let (Some(parent), Some(_)) = (target.parent(), target.file_name()) else {
            return Err(FolderError::Unnamed { path: target });
        };
        fs::create_dir_all(parent).map_err(FolderError::io("create the folder", parent))?;
        let mut folder = Self {
            holder: staging::create(parent)?,
            target,
            reserved: BTreeMap::new(),
            missing: Vec::new(),
            disposable: true,
        };
        folder.reserve(summary::FILE_NAME)?;
        let room = folder.reserved.get_mut(summary::FILE_NAME);
        let filled = room.map_or(Ok(()), |file| file.write_all(&[b' '; SUMMARY_ROOM]));
        match filled {
            Err(error) if error.kind() == ErrorKind::StorageFull => {
                Err(FolderError::io("create a result in", &folder.target)(error))
            }
            _ => Ok(folder),
        }
    }

    /// The absolute path at which the folder will appear.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Opens the file `name`, to be [added](Self::add) later, while file descriptors are available.
    ///
    /// # Panics
    /// If `name` is not a plain file name: results do not contain folders.
    pub fn reserve(&mut self, name: &str) -> Result<(), FolderError> {
        let file = self.create_file(name)?;
        self.reserved.insert(name.into(), file);
        Ok(())
    }

    /// Creates the file `name`, which grows during the run and must be [completed](Self::complete); its final path is `target()/name`.
    ///
    /// # Panics
    /// If `name` is not a plain file name.
    pub fn create_file(&self, name: &str) -> Result<File, FolderError> {
        let path = self.file(name);
        File::create(&path).map_err(FolderError::io("create", &path))
    }

    /// Writes `contents` to the file `name`.
    ///
    /// # Panics
    /// If `name` is not a plain file name.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> Result<(), FolderError> {
        let path = self.file(name);
        fs::write(&path, contents).map_err(FolderError::io("write", &path))
    }

    /// Adds the file `name` with the output of `fill`. If that fails, the result continues without the file.
    ///
    /// # Panics
    /// If `name` is not a plain file name.
    pub fn add<E: Into<Box<dyn Error + Send + Sync>>>(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), E>,
    ) {
        let path = self.file(name);
        let file = match self.reserved.remove(name) {
            Some(file) => rewound(file),
            None => File::create(&path),
        };
        let written = file.map_err(Into::into).and_then(|file| {
            let mut writer = BufWriter::new(file);
            fill(&mut writer).map_err(Into::into)?;
            Ok(writer
                .into_inner()
                .map_err(io::IntoInnerError::into_error)?)
        });
        self.complete(name, written);
    }

    /// Completes the file `name`. If that fails, the result continues without the file.
    pub fn complete(&mut self, name: &str, file: Result<File, Box<dyn Error + Send + Sync>>) {
        let on_disk = file.and_then(|mut file| {
            // A reserved file may have been longer than the data written to it.
            let length = file.stream_position()?;
            file.set_len(length)?;
            Ok(file.sync_all()?)
        });
        if let Err(source) = on_disk {
            // Its room goes to the files that follow. If the removal fails, the file is still not counted as complete.
            let _ = fs::remove_file(self.file(name));
            self.missing.push(MissingFile {
                name: name.into(),
                source,
            });
        }
    }

    /// Adds the tables of `record`, and returns the summary. The tables are `summary.json`; `flows.parquet`, unless its rows were
    /// [written](RunRecord::written) before; `iterations.parquet` if there are jobs; and after a scale-up run `operations.parquet` in place
    /// of `flows.parquet`.
    pub fn add_tables(&mut self, record: &RunRecord) -> Summary {
        let summary = Summary::from_record(record);
        self.add(summary::FILE_NAME, |file| {
            file.write_all(summary.to_json().as_bytes())
        });
        if record.written.is_none() && summary.is_of_flows() {
            self.add(flows::FILE_NAME, |file| write_flows(file, record));
        }
        if !record.jobs.is_empty() {
            self.add(iterations::FILE_NAME, |file| write_iterations(file, record));
        }
        if let Some(results) = &record.operations {
            self.add(operations::FILE_NAME, |file| {
                write_operations(file, record, results)
            });
        }
        summary
    }

    /// Replaces the former result, if any, by the folder.
    ///
    /// A run that stopped early or was interrupted is published in the same way, with its status. If publishing fails, the former result
    /// is still in place, unless the error is [`FolderError::NotRestored`] or [`FolderError::NotDeleted`].
    pub fn finish(mut self) -> Result<(), FolderError> {
        for name in std::mem::take(&mut self.reserved).into_keys() {
            let path = self.file(&name);
            fs::remove_file(&path).map_err(FolderError::io("delete", &path))?;
        }
        if !self.missing.is_empty() {
            return Err(self.keep_part());
        }
        let has_former = match self.replace_target() {
            Ok(has_former) => has_former,
            Err(error) => return Err(self.keep_beside(error)),
        };
        self.disposable = false;
        let deleted = match has_former {
            true => fs::remove_dir_all(&self.holder),
            // Removing an empty folder needs no descriptor.
            false => fs::remove_dir(&self.holder),
        };
        deleted.map_err(|source| FolderError::NotDeleted {
            path: self.target.clone(),
            holder: self.holder.clone(),
            source,
        })
    }

    /// [Adds the tables](Self::add_tables) and [finishes](Self::finish); returns the summary.
    pub fn publish(mut self, record: &RunRecord) -> Result<Summary, FolderError> {
        let summary = self.add_tables(record);
        self.finish()?;
        Ok(summary)
    }

    /// Puts the complete files where they do no harm, and returns an error that lists them.
    fn keep_part(mut self) -> FolderError {
        let missing = std::mem::take(&mut self.missing);
        let kept = names(&self.staging());
        let place = match kept.iter().any(|name| name != SCENARIO) {
            true => self.place_part(&kept),
            false => None,
        };
        FolderError::Partial {
            path: self.target.clone(),
            missing,
            kept: place.map(|place| (place, kept)),
        }
    }

    /// Moves the complete files to the target, if nothing is there and later runs will recognise them as a result; else beside it.
    fn place_part(&self, kept: &[String]) -> Option<PathBuf> {
        let is_known = kept.iter().any(|name| name == summary::FILE_NAME);
        let target = is_known.then(|| self.target.clone());
        self.place(target.into_iter().chain(self.beside("partial")))
    }

    /// Keeps complete results beside their intended place, which `error` says is not available.
    fn keep_beside(&self, error: FolderError) -> FolderError {
        match self.place(self.beside("new")) {
            Some(place) => FolderError::Beside {
                place,
                source: Box::new(error),
            },
            None => error,
        }
    }

    /// Places beside the target: `NAME.WHAT`, `NAME.WHAT-2` and so on.
    fn beside<'a>(&'a self, what: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
        let name = self.target.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        (1..=u32::from(u16::MAX)).map(move |number| {
            let number = (number > 1).then(|| format!("-{number}"));
            let number = number.unwrap_or_default();
            self.target.with_file_name(format!("{name}.{what}{number}"))
        })
    }

    /// Moves the files to the first of `places` that is free: an empty folder, or nothing.
    fn place(&self, mut places: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
        let placed = places.find_map(|place| match fs::rename(self.staging(), &place) {
            Ok(()) => Some(Some(place)),
            Err(_) if fs::symlink_metadata(&place).is_ok() => None,
            Err(_) => Some(None),
        });
        placed.flatten()
    }

    fn staging(&self) -> PathBuf {
        staging::staging(&self.holder)
    }

    fn file(&self, name: &str) -> PathBuf {
        let mut components = Path::new(name).components();
        let plain = matches!(components.next(), Some(Component::Normal(_)));
        assert!(
            plain && components.next().is_none(),
            "`{name}` is not a plain file name"
        );
        self.staging().join(name)
    }

    /// True if a former result was moved into the holder.
    fn replace_target(&mut self) -> Result<bool, FolderError> {
        let mut attempt = 0;
        let mut has_former = false;
        loop {
            let former = self.move_former_aside(attempt)?;
            has_former |= former.is_some();
            let Err(source) = fs::rename(self.staging(), &self.target) else {
                return Ok(has_former);
            };
            attempt += 1;
            // Another process may have moved the obstacle aside in the meantime.
            let overtaken = matches!(
                source.kind(),
                ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists
            ) || fs::symlink_metadata(&self.target).is_ok();
            if overtaken && attempt < ATTEMPTS {
                continue;
            }
            if let Some(former) = former.filter(|_| !overtaken) {
                self.put_back(&former)?;
            }
            return Err(FolderError::io("put the results in place at", &self.target)(source));
        }
    }

    /// Moves the folder at the target into the holder; `None` if nothing is there.
    ///
    /// The folder is inspected once other processes cannot reach it, and put back if it is not a replaceable result.
    fn move_former_aside(&mut self, attempt: u32) -> Result<Option<PathBuf>, FolderError> {
        if fs::symlink_metadata(&self.target)
            .is_err_and(|error| error.kind() == ErrorKind::NotFound)
        {
            return Ok(None);
        }
        let folder = staging::former(&self.holder, attempt);
        fs::create_dir(&folder).map_err(FolderError::io("create the folder", &folder))?;
        // A process that finds the holder of a killed process reads the name of the result there.
        let former = folder.join(self.target.file_name().unwrap_or_default());
        match fs::rename(&self.target, &former) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::remove_dir(&folder).map_err(FolderError::io("delete", &folder))?;
                return Ok(None);
            }
            Err(error) => return Err(FolderError::io("replace", &self.target)(error)),
        }
        if let Err(error) = check_replaceable(&former, &self.target) {
            self.put_back(&former)?;
            return Err(error);
        }
        Ok(Some(former))
    }

    fn put_back(&mut self, former: &Path) -> Result<(), FolderError> {
        fs::rename(former, &self.target).map_err(|source| {
            self.disposable = false;
            FolderError::NotRestored {
                path: self.target.clone(),
                former: staging::keep(former),
                source,
            }
        })
    }
}

impl Drop for ResultFolder {
    fn drop(&mut self) {
        if self.disposable {
            // A failure cannot be reported any more, and the holder does no harm.
            let _ = fs::remove_dir_all(&self.holder);
        }
    }
}

/// The absolute path of `target`, with links followed, so that a link to a folder remains a link.
fn resolve(target: &Path) -> Result<PathBuf, FolderError> {
    let resolved = match fs::symlink_metadata(target) {
        Err(error) if error.kind() == ErrorKind::NotFound => std::path::absolute(target),
        _ => fs::canonicalize(target),
    };
    resolved.map_err(FolderError::io("find the folder", target))
}

/// The file, positioned at its beginning.
fn rewound(mut file: File) -> io::Result<File> {
    file.rewind()?;
    Ok(file)
}

/// The names in `folder`, sorted; empty if it cannot be read.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests;

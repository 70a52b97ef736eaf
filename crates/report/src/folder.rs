//! Result folders that are either there in full or not at all.
//!
//! All files of a result are written into a hidden *holder* beside the final place, `.clearway-PROCESS-NUMBER/new`, and moved from there
//! with one rename once they are on disk. A former result is first moved into the same holder (`…/former-N`) and deleted at the end. If
//! the program is killed at any point, the final name holds the former result, the new one, or (between two renames) nothing, in
//! which case the holder has both; never a part of one.

use crate::flows::{self, WriteFlowsError, write_flows};
use crate::iterations::{self, write_iterations};
use crate::record::RunRecord;
use crate::summary::{self, Summary};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::process;
use thiserror::Error;

/// How often publishing starts anew because another process put its result at the same place in the meantime.
const ATTEMPTS: u32 = 16;

/// A result folder in the making. Dropping it without [`publish`](Self::publish) leaves no trace.
#[derive(Debug)]
pub struct ResultFolder {
    target: PathBuf,
    holder: PathBuf,
    /// False while the holder has a former result that could not be put back.
    disposable: bool,
}

impl ResultFolder {
    /// Prepares the folder that is to appear at `target`, and its parents.
    ///
    /// A former result, an empty folder or nothing may be there now: what else is there is left alone, and refused here, before any time
    /// goes into a run. A former result is deleted with all the files in it when the new one is published.
    pub fn create(target: impl AsRef<Path>) -> Result<Self, FolderError> {
        let target = resolve(target.as_ref())?;
        check_replaceable(&target, &target)?;
        let (Some(parent), Some(_)) = (target.parent(), target.file_name()) else {
            return Err(FolderError::Unnamed { path: target });
        };
        fs::create_dir_all(parent).map_err(FolderError::io("create the folder", parent))?;
        let holder = create_holder(parent)?;
        let folder = Self {
            target,
            holder,
            disposable: true,
        };
        let staging = folder.staging();
        fs::create_dir(&staging).map_err(FolderError::io("create the folder", &staging))?;
        Ok(folder)
    }

    /// The absolute path at which the folder is to appear.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Creates the file `name`; `target()/name` is where it is to appear.
    ///
    /// # Panics
    /// If `name` is not a plain file name: results have no folders in them.
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

    /// Takes the file `name` away again.
    ///
    /// # Panics
    /// If `name` is not a plain file name.
    pub fn remove(&self, name: &str) -> Result<(), FolderError> {
        let path = self.file(name);
        fs::remove_file(&path).map_err(FolderError::io("delete", &path))
    }

    /// Adds `flows.parquet`, unless its rows were [written](RunRecord::written) before, `iterations.parquet` if there are jobs, and
    /// `summary.json`, and puts the folder in place of what was there; gives back the summary.
    ///
    /// A run that stopped early or was interrupted is published in the same way: its status says so. If this fails, what was there before
    /// is there still, unless the error is [`FolderError::NotRestored`] or [`FolderError::NotDeleted`].
    pub fn publish(mut self, record: &RunRecord) -> Result<Summary, FolderError> {
        if record.written.is_none() {
            let file = self.create_file(flows::FILE_NAME)?;
            write_flows(file, record).map_err(|source| self.no_flows(source))?;
        }
        if !record.jobs.is_empty() {
            let file = self.create_file(iterations::FILE_NAME)?;
            write_iterations(file, record)
                .map_err(|source| self.no_table(iterations::FILE_NAME, source))?;
        }
        let summary = Summary::of(record);
        self.write(summary::FILE_NAME, summary.to_json())?;
        sync(&self.staging())?;
        self.replace_target()?;
        self.disposable = false;
        fs::remove_dir_all(&self.holder).map_err(|source| FolderError::NotDeleted {
            path: self.target.clone(),
            holder: self.holder.clone(),
            source,
        })?;
        Ok(summary)
    }

    /// `flows.parquet` could not be written.
    pub fn no_flows(&self, source: WriteFlowsError) -> FolderError {
        self.no_table(flows::FILE_NAME, source)
    }

    fn no_table(&self, name: &str, source: WriteFlowsError) -> FolderError {
        FolderError::Table {
            path: self.target.join(name),
            source,
        }
    }

    fn staging(&self) -> PathBuf {
        self.holder.join("new")
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

    fn replace_target(&mut self) -> Result<(), FolderError> {
        let mut attempt = 0;
        loop {
            let former = self.move_former_aside(attempt)?;
            let Err(source) = fs::rename(self.staging(), &self.target) else {
                return Ok(());
            };
            attempt += 1;
            // Who was in the way may have been moved aside by yet another process since.
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

    /// Moves what is at the target into the holder; `None` if nothing is there.
    ///
    /// It is inspected once it is out of the reach of other processes, and put back if it is not ours.
    fn move_former_aside(&mut self, attempt: u32) -> Result<Option<PathBuf>, FolderError> {
        let former = self.holder.join(format!("former-{attempt}"));
        match fs::rename(&self.target, &former) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
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
                former: former.to_path_buf(),
                source,
            }
        })
    }
}

impl Drop for ResultFolder {
    fn drop(&mut self) {
        if self.disposable {
            // Nobody is left to tell if this fails, and the holder harms nothing.
            let _ = fs::remove_dir_all(&self.holder);
        }
    }
}

/// The absolute path of `target`, links followed, so that a link to a folder stays one.
fn resolve(target: &Path) -> Result<PathBuf, FolderError> {
    let resolved = match fs::symlink_metadata(target) {
        Err(error) if error.kind() == ErrorKind::NotFound => std::path::absolute(target),
        _ => fs::canonicalize(target),
    };
    resolved.map_err(FolderError::io("find the folder", target))
}

/// Succeeds if what is at `path` may be deleted in favour of a new result; an error calls it `name`.
fn check_replaceable(path: &Path, name: &Path) -> Result<(), FolderError> {
    let name = name.to_path_buf();
    let inspect = || FolderError::io("inspect", &name);
    // Looked for first: whoever replaces a result meanwhile takes its summary away before the folder.
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

/// True if the folder holds a summary of this program, of whatever schema.
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
    let json = fs::read_to_string(folder.join(summary::FILE_NAME));
    json.is_ok_and(|json| serde_json::from_str::<Signature>(&json).is_ok())
}

/// Creates a folder in `parent` that is certainly this process's own.
fn create_holder(parent: &Path) -> Result<PathBuf, FolderError> {
    for number in 0u32.. {
        let holder = parent.join(format!(".clearway-{}-{number}", process::id()));
        match fs::create_dir(&holder) {
            Ok(()) => return Ok(holder),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(FolderError::io("create the folder", &holder)(error)),
        }
    }
    unreachable!("no folder holds 2^32 others")
}

/// Waits until the files of `folder` are on disk, lest a power failure leave them empty under their final name.
fn sync(folder: &Path) -> Result<(), FolderError> {
    // Elsewhere a file must be open for writing to be synchronised.
    if cfg!(unix) {
        let failed = || FolderError::io("write to disk", folder);
        for entry in fs::read_dir(folder).map_err(failed())? {
            let file = entry.and_then(|entry| File::open(entry.path()));
            file.and_then(|file| file.sync_all()).map_err(failed())?;
        }
    }
    Ok(())
}

/// Results that could not be put in place.
#[derive(Debug, Error)]
pub enum FolderError {
    /// A file has the name of the result folder.
    #[error("`{}` is not a folder: choose another name for the results, or move it away", path.display())]
    NotAFolder {
        /// The file.
        path: PathBuf,
    },
    /// A folder of something else has the name of the result folder.
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
    /// A table could not be written.
    #[error("failed to write the table `{}`", path.display())]
    Table {
        /// The file that was to appear.
        path: PathBuf,
        /// Why.
        source: WriteFlowsError,
    },
    /// The file system refused something.
    #[error("failed to {action} `{}`", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The new results could not be put in place, nor the former ones back.
    #[error(
        "failed to put the former results back to `{}`: they are kept in `{}`",
        path.display(), former.display()
    )]
    NotRestored {
        /// Where they were.
        path: PathBuf,
        /// Where they are.
        former: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The new results are in place, but the former ones could not be deleted.
    #[error(
        "the results are in `{}`, but failed to delete the former ones: delete `{}` yourself",
        path.display(), holder.display()
    )]
    NotDeleted {
        /// Where the new results are.
        path: PathBuf,
        /// What is left of the former ones.
        holder: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl FolderError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Status;
    use crate::sample::{TestFolder, run};
    use crate::summary::StatusName;

    /// The names in `folder`, sorted.
    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn seeded(seed: u64) -> RunRecord {
        let mut record = run();
        record.scenario.seed = seed;
        record
    }

    #[test]
    fn a_result_appears_only_when_it_is_whole() {
        let test = TestFolder::new("appears");
        let target = test.path().join("out/deep/result");
        let folder = ResultFolder::create(&target).unwrap();
        folder.write("scenario.toml", "seed = 1\n").unwrap();
        assert!(!target.exists());
        let summary = folder.publish(&run()).unwrap();
        assert_eq!(summary, Summary::read(&target).unwrap());
        assert_eq!(
            names(&target),
            ["flows.parquet", "scenario.toml", "summary.json"]
        );
        assert_eq!(names(target.parent().unwrap()), ["result"]);
    }

    #[test]
    fn an_abandoned_result_leaves_no_trace_and_no_change() {
        let test = TestFolder::new("abandoned");
        let target = test.path().join("result");
        ResultFolder::create(&target)
            .unwrap()
            .publish(&seeded(1))
            .unwrap();
        let folder = ResultFolder::create(&target).unwrap();
        folder.write("scenario.toml", "").unwrap();
        drop(folder);
        assert_eq!(names(test.path()), ["result"]);
        assert_eq!(Summary::read(&target).unwrap().scenario.seed, 1);
    }

    #[test]
    fn a_former_result_is_replaced_with_all_its_files() {
        let test = TestFolder::new("replaced");
        let target = test.path().join("result");
        let first = ResultFolder::create(&target).unwrap();
        first.write("old-trace.json", "").unwrap();
        first.publish(&seeded(1)).unwrap();
        ResultFolder::create(&target)
            .unwrap()
            .publish(&seeded(2))
            .unwrap();
        assert_eq!(Summary::read(&target).unwrap().scenario.seed, 2);
        assert_eq!(names(&target), ["flows.parquet", "summary.json"]);
        assert_eq!(names(test.path()), ["result"]);
    }

    #[test]
    fn interrupted_runs_are_published_too() {
        let test = TestFolder::new("interrupted");
        let target = test.path().join("result");
        let mut record = run();
        record.status = Status::Interrupted;
        ResultFolder::create(&target)
            .unwrap()
            .publish(&record)
            .unwrap();
        assert_eq!(
            Summary::read(&target).unwrap().status,
            StatusName::Interrupted
        );
    }

    #[test]
    fn an_empty_folder_is_taken() {
        let test = TestFolder::new("empty");
        ResultFolder::create(test.path())
            .unwrap()
            .publish(&run())
            .unwrap();
        assert_eq!(names(test.path()), ["flows.parquet", "summary.json"]);
    }

    #[test]
    fn what_is_not_a_result_is_left_alone() {
        let test = TestFolder::new("refused");
        let thesis = test.path().join("thesis");
        fs::create_dir(&thesis).unwrap();
        let refused = |target: &Path| {
            let error = ResultFolder::create(target).unwrap_err();
            error.to_string().replace(test.path().to_str().unwrap(), "")
        };

        fs::write(thesis.join("chapter"), "").unwrap();
        let message = "the folder `/thesis` holds something other than Clearway results (no valid `summary.json`) and is left alone: \
                       choose another folder for the results, or delete this one";
        assert_eq!(refused(&thesis), message);
        for foreign in ["{}", "[1]", "{\"schema\": 1}", "schema"] {
            fs::write(thesis.join("summary.json"), foreign).unwrap();
            assert_eq!(refused(&thesis), message);
        }
        assert_eq!(
            refused(&thesis.join("chapter")),
            "`/thesis/chapter` is not a folder: choose another name for the results, or move it away"
        );
        assert_eq!(names(test.path()), ["thesis"]);
        assert_eq!(names(&thesis), ["chapter", "summary.json"]);
    }

    #[test]
    fn a_result_with_other_results_in_it_is_left_alone() {
        let test = TestFolder::new("nested");
        let target = test.path().join("out");
        ResultFolder::create(&target)
            .unwrap()
            .publish(&run())
            .unwrap();
        ResultFolder::create(target.join("inner"))
            .unwrap()
            .publish(&run())
            .unwrap();
        let error = ResultFolder::create(&target).unwrap_err();
        assert!(matches!(error, FolderError::HoldsFolder { inner, .. } if inner == "inner"));
        assert!(Summary::read(target.join("inner")).is_ok());
    }

    #[test]
    fn what_appears_during_the_run_is_left_alone() {
        let test = TestFolder::new("appeared");
        let target = test.path().join("result");
        let folder = ResultFolder::create(&target).unwrap();
        fs::create_dir(&target).unwrap();
        fs::write(target.join("notes"), "mine").unwrap();
        let error = folder.publish(&run()).unwrap_err();
        assert!(matches!(error, FolderError::NotAResult { .. }));
        assert_eq!(names(&target), ["notes"]);
        assert_eq!(names(test.path()), ["result"]);
    }

    #[test]
    fn the_former_result_is_back_if_the_new_one_cannot_be_put_in_place() {
        let test = TestFolder::new("restored");
        let target = test.path().join("result");
        ResultFolder::create(&target)
            .unwrap()
            .publish(&seeded(1))
            .unwrap();
        let mut folder = ResultFolder::create(&target).unwrap();
        fs::remove_dir(folder.staging()).unwrap();
        let error = folder.replace_target().unwrap_err();
        assert!(matches!(error, FolderError::Io { .. }));
        drop(folder);
        assert_eq!(Summary::read(&target).unwrap().scenario.seed, 1);
        assert_eq!(names(test.path()), ["result"]);
    }

    #[test]
    fn a_result_that_cannot_be_written_changes_nothing() {
        let test = TestFolder::new("unwritable");
        let target = test.path().join("result");
        ResultFolder::create(&target)
            .unwrap()
            .publish(&seeded(1))
            .unwrap();
        let mut record = seeded(2);
        record.flows[0].ideal_fct = clearway_units::Span::MAX;
        let error = ResultFolder::create(&target)
            .unwrap()
            .publish(&record)
            .unwrap_err();
        assert!(matches!(error, FolderError::Table { .. }));
        assert_eq!(Summary::read(&target).unwrap().scenario.seed, 1);
        assert_eq!(names(test.path()), ["result"]);
    }

    #[test]
    fn many_writers_of_one_folder_leave_one_whole_result() {
        let test = TestFolder::new("race");
        let target = test.path().join("result");
        for _ in 0..10 {
            let folders: Vec<ResultFolder> = (0..4)
                .map(|_| ResultFolder::create(&target).unwrap())
                .collect();
            std::thread::scope(|scope| {
                for (folder, seed) in folders.into_iter().zip(0..) {
                    scope.spawn(move || folder.publish(&seeded(seed)).unwrap());
                }
            });
        }
        assert!(Summary::read(&target).is_ok());
        assert_eq!(names(&target), ["flows.parquet", "summary.json"]);
        assert_eq!(names(test.path()), ["result"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_folder_stays_one() {
        let test = TestFolder::new("link");
        let (link, target) = (test.path().join("latest"), test.path().join("result"));
        fs::create_dir(&target).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        ResultFolder::create(&link)
            .unwrap()
            .publish(&run())
            .unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(Summary::read(&link).is_ok());
    }

    #[test]
    fn a_folder_without_a_name_is_refused() {
        let error = ResultFolder::create("/").unwrap_err();
        assert!(!error.to_string().is_empty());
        let test = TestFolder::new("unnamed");
        let error = ResultFolder::create(test.path().join("missing/..")).unwrap_err();
        assert!(matches!(error, FolderError::Unnamed { .. }));
    }

    #[test]
    #[should_panic(expected = "is not a plain file name")]
    fn files_stay_in_the_folder() {
        let test = TestFolder::new("escape");
        let folder = ResultFolder::create(test.path().join("result")).unwrap();
        let _ = folder.write("../escaped", "");
    }
}

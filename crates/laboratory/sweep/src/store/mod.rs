//! Folder of a sweep, which several processes may share.
//!
//! ```text
//! DIR/plan.toml           the plan
//! DIR/runs/KEY/           results of a run; whoever finds the folder finds all of it
//! DIR/claims/KEY          a process is at it
//! DIR/failed/KEY.txt      why a run failed last time
//! DIR/partial/OWNER/      what a process is making
//! DIR/sweep.parquet, sweep.json, report.html
//! ```
//!
//! Every file is written under another name and then renamed, so a killed process loses only its unfinished runs.

mod claim;
mod error;
mod files;
mod merge;

pub(crate) use claim::HEARTBEAT;
pub use claim::{Claim, Claimed};
pub use error::StoreError;
pub use merge::{Merged, check_part};

use crate::plan::{SweepPlan, counted};
use crate::points::{RunKey, Sweep};
use clearway_input::InputKind;
use clearway_report::{Owner, Summary};
use files::{Files, names};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

const PLAN: &str = "plan.toml";
const RUNS: &str = "runs";
const CLAIMS: &str = "claims";
const FAILED: &str = "failed";
const PARTIAL: &str = "partial";

/// Entries of a new folder.
const PARTS: [&str; 5] = [PLAN, RUNS, CLAIMS, FAILED, PARTIAL];

/// True if `found` are entries of a sweep folder. A plan alone is a user's file.
fn is_store(found: &BTreeSet<String>) -> bool {
    [PLAN, RUNS, CLAIMS]
        .iter()
        .all(|name| found.contains(*name))
}

/// Folder of a sweep.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    files: Files,
    owner: Owner,
    /// Number of the next claim of this process.
    claims: AtomicU32,
}

/// A run that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// Reason, for people.
    pub reason: String,
    /// Time of the failure, by the clock of the file system.
    pub at: Option<SystemTime>,
}

impl Store {
    /// Opens the folder of `sweep`, or creates it.
    ///
    /// # Errors
    /// If the folder holds other files, or cannot be written.
    pub fn open(folder: &Path, sweep: &Sweep) -> Result<Self, StoreError> {
        let store = Self::look(folder);
        store.check(sweep)?;
        let create = |path: &Path| {
            fs::create_dir_all(path).map_err(StoreError::io("create the folder", path))
        };
        create(folder)?;
        // The plan comes first, so that no process finds a folder without a plan.
        let plan = folder.join(PLAN);
        store.files.write(&plan, sweep.plan.text.as_bytes())?;
        for name in PARTS.into_iter().filter(|name| *name != PLAN) {
            create(&folder.join(name))?;
        }
        store.clear();
        Ok(store)
    }

    /// The folder of a sweep for reading; nothing is created.
    pub fn look(folder: &Path) -> Self {
        let owner = Owner::this();
        Self {
            folder: folder.to_path_buf(),
            files: Files::new(owner),
            owner,
            claims: AtomicU32::new(0),
        }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Rejects a folder of another plan and a folder that is not a sweep folder, because its files would be replaced.
    ///
    /// # Errors
    /// If the folder is either.
    pub fn check(&self, sweep: &Sweep) -> Result<(), StoreError> {
        let folder = &self.folder;
        let mut found = names(folder)?;
        found.retain(|name| !files::is_temporary(name));
        if found.is_empty() {
            return Ok(());
        }
        let text = clearway_input::read_text(&folder.join(PLAN), InputKind::PLAN);
        let is_same = text.as_ref().is_ok_and(|text| *text == sweep.plan.text);
        if !is_store(&found) {
            // A folder that is being created, or a folder with only the plan, which is replaced by the same plan.
            let is_begun = found.iter().all(|name| PARTS.contains(&name.as_str()));
            if is_same && is_begun {
                return Ok(());
            }
            return Err(StoreError::NotASweep {
                folder: folder.clone(),
            });
        }
        if is_same {
            return Ok(());
        }
        // A changed plan continues with the runs that it shares with the old plan.
        let there = self.finished()?;
        let common = sweep.runs.iter().any(|run| there.contains(&run.key));
        let other = text
            .ok()
            .and_then(|text| SweepPlan::read(PLAN, &text, None).ok());
        let name = other.map(|plan| plan.general.name);
        let same_name = name
            .as_ref()
            .is_none_or(|name| *name == sweep.plan.general.name || name == "unnamed");
        if common || (same_name && there.is_empty()) {
            return Ok(());
        }
        Err(StoreError::OtherPlan {
            folder: folder.clone(),
            name: match name {
                Some(name) if name != "unnamed" => format!("the plan `{name}`"),
                _ => "another plan".into(),
            },
            runs: counted(there.len() as u64, "run"),
            wanted: counted(sweep.runs.len() as u64, "run"),
        })
    }

    /// The keys of finished runs.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn finished(&self) -> Result<BTreeSet<RunKey>, StoreError> {
        let found = names(&self.folder.join(RUNS))?;
        Ok(found.iter().filter_map(|name| RunKey::read(name)).collect())
    }

    /// True if a run is finished.
    pub fn is_finished(&self, key: RunKey) -> bool {
        self.run_folder(key).is_dir()
    }

    /// The folder of a run.
    pub fn run_folder(&self, key: RunKey) -> PathBuf {
        self.folder.join(RUNS).join(key.to_string())
    }

    /// Summary of a finished run.
    ///
    /// # Errors
    /// If the summary cannot be read.
    pub fn summary(&self, key: RunKey) -> Result<Summary, StoreError> {
        let folder = self.run_folder(key);
        Summary::read(&folder).map_err(|source| StoreError::Summary {
            folder,
            source: Box::new(source),
        })
    }

    /// The failed runs, with reasons.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn failures(&self) -> Result<BTreeMap<RunKey, Failed>, StoreError> {
        let keys = names(&self.folder.join(FAILED))?;
        let keys = keys
            .iter()
            .filter_map(|name| RunKey::read(name.strip_suffix(".txt")?));
        Ok(keys
            .filter_map(|key| Some((key, self.failure(key)?)))
            .collect())
    }

    /// Failure of a run, if it failed.
    pub fn failure(&self, key: RunKey) -> Option<Failed> {
        let path = self.failure_file(key);
        let reason = clearway_input::read_text(&path, InputKind::SUMMARY).ok()?;
        let at = fs::metadata(&path).and_then(|metadata| metadata.modified());
        Some(Failed {
            reason: reason.trim_end().into(),
            at: at.ok(),
        })
    }

    fn failure_file(&self, key: RunKey) -> PathBuf {
        self.folder.join(FAILED).join(format!("{key}.txt"))
    }

    /// Records that a run failed.
    ///
    /// # Errors
    /// If the failure cannot be written.
    pub fn fail(&self, key: RunKey, reason: &str) -> Result<(), StoreError> {
        let text = format!("{}\n", reason.trim_end());
        self.files.write(&self.failure_file(key), text.as_bytes())
    }

    /// Publishes the results in `folder`, which is on the same file system, as the results of a run. If the run already has results,
    /// `folder` is deleted.
    ///
    /// # Errors
    /// If the results cannot be moved.
    pub fn publish(&self, key: RunKey, folder: &Path) -> Result<(), StoreError> {
        let target = self.run_folder(key);
        if let Err(error) = fs::rename(folder, &target) {
            // Another process may have published first; the same run has the same results.
            if !target.is_dir() {
                return Err(StoreError::io("put the results in place at", &target)(
                    error,
                ));
            }
            let _ = fs::remove_dir_all(folder);
        }
        files::remove(&self.failure_file(key))
    }

    /// Existing work folder of this process.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn work(&self) -> Result<PathBuf, StoreError> {
        let path = self.folder.join(PARTIAL).join(self.owner.to_string());
        fs::create_dir_all(&path).map_err(StoreError::io("create the folder", &path))?;
        // Children may have another working directory than this process.
        std::path::absolute(&path).map_err(StoreError::io("find the folder", &path))
    }

    /// Writes the file `name` of the sweep.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, name: &str, contents: &[u8]) -> Result<(), StoreError> {
        self.files.write(&self.folder.join(name), contents)
    }

    /// Claims a run for this process.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn claim(&self, key: RunKey) -> Result<Claimed, StoreError> {
        let number = self.claims.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(CLAIMS).join(key.to_string());
        claim::take(&self.files, &path, self.owner, number)
    }

    /// Runs claimed by any process.
    pub fn claims(&self) -> BTreeSet<RunKey> {
        let found = names(&self.folder.join(CLAIMS)).unwrap_or_default();
        found.iter().filter_map(|name| RunKey::read(name)).collect()
    }

    /// Deletes the remains of killed processes. Files that cannot be deleted do no harm.
    fn clear(&self) {
        let work = self.folder.join(PARTIAL);
        for name in names(&work).unwrap_or_default() {
            let owner = Owner::read(&name);
            if owner.is_some_and(|owner| owner.is_gone() == Some(true)) {
                let _ = fs::remove_dir_all(work.join(name));
            }
        }
        for folder in [
            self.folder.clone(),
            self.folder.join(CLAIMS),
            self.folder.join(FAILED),
        ] {
            self.files.clear(&folder);
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let work = self.folder.join(PARTIAL);
        let _ = fs::remove_dir_all(work.join(self.owner.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_testing::Folder;

    #[test]
    fn a_run_that_goes_well_after_a_failure_has_failed_no_more() {
        let folder = Folder::new("sweep-store-publish");
        let store = Store::look(folder.path());
        for name in [RUNS, FAILED] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        let keys = ["0000000000000001", "0000000000000002"].map(|key| RunKey::read(key).unwrap());
        for key in keys {
            store.fail(key, "out of memory").unwrap();
        }
        let results = store.work().unwrap().join("results");
        fs::create_dir(&results).unwrap();
        store.publish(keys[0], &results).unwrap();
        assert!(store.is_finished(keys[0]) && !results.exists());
        assert_eq!(store.failure(keys[0]), None);
        // Failures of other runs stay.
        let failures = store.failures().unwrap();
        assert_eq!(failures.into_keys().collect::<Vec<_>>(), [keys[1]]);
    }
}

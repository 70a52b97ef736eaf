//! Merges of stores.

use super::{Store, StoreError, is_store, names};
use crate::plan::counted;
use crate::points::{RunKey, Sweep};
use clearway_report::Summary;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Outcome of a merge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Merged {
    /// Runs that were copied.
    pub copied: u64,
    /// Runs that the store already had.
    pub known: u64,
    /// Runs that are not in the plan.
    pub foreign: u64,
}

impl Store {
    /// Copies runs of the sweep from the store in `folder`, and its records of failed runs.
    ///
    /// # Errors
    /// If the folder is not a store, has no run of the sweep, or cannot be copied.
    pub fn merge(&self, folder: &Path, sweep: &Sweep) -> Result<Merged, StoreError> {
        check_part(folder, sweep)?;
        let wanted = keys(sweep);
        let other = Self::look(folder);
        let (there, failures) = (other.finished()?, other.failures()?);
        let mut merged = Merged::default();
        let work = self.work()?;
        for key in there {
            if !wanted.contains(&key) {
                merged.foreign += 1;
                continue;
            }
            if self.is_finished(key) {
                merged.known += 1;
                continue;
            }
            let copy = work.join(key.to_string());
            copy_folder(&other.run_folder(key), &copy)?;
            // Unreadable results are not merged.
            Summary::read(&copy).map_err(|source| StoreError::Summary {
                folder: other.run_folder(key),
                source: Box::new(source),
            })?;
            self.publish(key, &copy)?;
            merged.copied += 1;
        }
        for (key, failed) in failures {
            if wanted.contains(&key) && !self.is_finished(key) {
                self.fail(key, &failed.reason)?;
            }
        }
        Ok(merged)
    }
}

/// Rejects folders without runs to merge into `sweep`.
///
/// # Errors
/// If `folder` is not a sweep folder, or has only runs of other plans.
pub fn check_part(folder: &Path, sweep: &Sweep) -> Result<(), StoreError> {
    if !is_store(&names(folder)?) {
        return Err(StoreError::NotAPart {
            folder: folder.to_path_buf(),
            what: match folder.exists() {
                true => "this folder holds no sweep",
                false => "there is no such folder",
            },
        });
    }
    let wanted = keys(sweep);
    let store = Store::look(folder);
    let (there, failures) = (store.finished()?, store.failures()?);
    let mut known = there.iter().chain(failures.keys());
    if !known.any(|key| wanted.contains(key)) && !there.is_empty() {
        return Err(StoreError::NothingToMerge {
            folder: folder.to_path_buf(),
            runs: counted(there.len() as u64, "run"),
        });
    }
    Ok(())
}

fn keys(sweep: &Sweep) -> BTreeSet<RunKey> {
    sweep.runs.iter().map(|run| run.key).collect()
}

/// Copies the files of a folder without subfolders.
fn copy_folder(from: &Path, to: &Path) -> Result<(), StoreError> {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).map_err(StoreError::io("create the folder", to))?;
    for name in names(from)? {
        let (from, to) = (from.join(&name), to.join(&name));
        let copied = fs::copy(&from, &to);
        copied.map_err(StoreError::io("copy", &from))?;
        let synced = fs::File::open(&to).and_then(|file| file.sync_all());
        synced.map_err(StoreError::io("write", &to))?;
    }
    Ok(())
}

//! Execution elsewhere: the dispatcher hands out runs, and results come back as files.

use super::estimate::Spent;
use super::progress::SweepProgress;
use super::queue::{HeldClaim, Queue, Setting};
use crate::points::Sweep;
use crate::store::{Store, StoreError};
use clearway_lab::Laboratory;
use clearway_report::{StatusName, Summary};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Runs of a sweep that another program carries out, for instance on another machine.
///
/// A dispatched run is claimed, so that no other process works on it. Its results go into a folder on the store's file system, and are
/// published when the run is [done](Self::done). Dropping the dispatcher releases all runs that are still dispatched.
pub struct Dispatcher {
    sweep: Sweep,
    laboratory: Laboratory,
    store: Store,
    queue: Queue,
    /// Dispatched runs, by place.
    handed_out: BTreeMap<usize, HeldClaim>,
}

/// A dispatched run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatched {
    /// Place of the run in the sweep.
    pub place: usize,
    /// The resolved scenario for `clearway run`.
    pub scenario: String,
    /// Expected memory of the run in bytes.
    pub memory: u64,
}

impl Dispatcher {
    /// Dispatcher of the unfinished runs at the places `chosen` of a sweep.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn new(
        sweep: Sweep,
        laboratory: Laboratory,
        store: Store,
        chosen: &[usize],
    ) -> Result<Self, StoreError> {
        Ok(Self {
            queue: Queue::new(&sweep, &store, chosen)?,
            sweep,
            laboratory,
            store,
            handed_out: BTreeMap::new(),
        })
    }

    /// The queue, and the setting of its runs.
    fn parts(&mut self) -> (&mut Queue, Setting<'_>) {
        let setting = Setting {
            sweep: &self.sweep,
            laboratory: &self.laboratory,
            store: &self.store,
            on_failure: &|_, _| {},
        };
        (&mut self.queue, setting)
    }

    /// Dispatches a run; `None` if no run is available now.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub fn take(&mut self) -> Result<Option<Dispatched>, StoreError> {
        loop {
            let (queue, setting) = self.parts();
            if queue.next().is_none() {
                return Ok(None);
            }
            let Some(run) = queue.claim_next(setting)? else {
                continue;
            };
            self.handed_out.insert(run.place, run.claim);
            return Ok(Some(Dispatched {
                place: run.place,
                scenario: run.text,
                memory: run.memory,
            }));
        }
    }

    /// True when every run is done or has failed.
    pub fn is_over(&self) -> bool {
        self.queue.is_empty() && self.handed_out.is_empty()
    }

    /// An empty folder for the results of a dispatched run.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn folder(&self, place: usize) -> Result<PathBuf, StoreError> {
        let key = self.sweep.runs[place].key;
        let folder = self.store.work()?.join(key.to_string());
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).map_err(StoreError::io("create the folder", &folder))?;
        Ok(folder)
    }

    /// Publishes the content of the [folder](Self::folder) of a run as its results. False if the run is not dispatched, or not any more.
    ///
    /// # Errors
    /// If the results cannot be moved into place.
    pub fn done(&mut self, place: usize) -> Result<bool, StoreError> {
        let Some(claim) = self.handed_out.remove(&place) else {
            return Ok(false);
        };
        let key = self.sweep.runs[place].key;
        let folder = self.store.work()?.join(key.to_string());
        let summary = Summary::read(&folder);
        let (queue, setting) = self.parts();
        match summary {
            Ok(summary) if summary.status != StatusName::Interrupted => {
                queue.publish(setting, (place, &folder), Spent::from_summary(&summary))?;
            }
            Ok(_) => queue.fail(setting, place, "the run was interrupted")?,
            Err(error) => {
                let reason = format!("the results that came back cannot be read: {error}");
                queue.fail(setting, place, &reason)?;
            }
        }
        // Release the claim only after the results are in place.
        drop(claim);
        Ok(true)
    }

    /// Records that a dispatched run failed.
    ///
    /// # Errors
    /// If the failure cannot be written.
    pub fn fail(&mut self, place: usize, reason: &str) -> Result<bool, StoreError> {
        let Some(claim) = self.handed_out.remove(&place) else {
            return Ok(false);
        };
        let (queue, setting) = self.parts();
        queue.fail(setting, place, reason)?;
        drop(claim);
        Ok(true)
    }

    /// Renews the claims of dispatched runs, and checks the runs of other processes. Call this every few seconds.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn tick(&mut self) -> Result<(), StoreError> {
        for claim in self.handed_out.values_mut() {
            claim.beat();
        }
        let is_idle = self.handed_out.is_empty();
        let (queue, setting) = self.parts();
        queue.look_elsewhere(setting, is_idle)
    }

    /// Progress of the sweep, if `at_once` runs are carried out concurrently.
    pub fn progress(&self, at_once: usize) -> SweepProgress {
        // Dispatched runs may wait at their worker, so their running time is unknown.
        let handed_out = self.handed_out.keys().map(|&place| (place, 0.0));
        self.queue
            .progress(&handed_out.collect::<Vec<_>>(), at_once)
    }

    /// Releases all dispatched runs, and gives back the store for the collection of results.
    pub fn end(self) -> Store {
        // No unfinished folder may be taken for results.
        drop(self.handed_out);
        self.store
    }
}

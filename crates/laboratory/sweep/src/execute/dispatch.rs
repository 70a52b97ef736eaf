//! Execution elsewhere: runs are handed out, and results come back as files.

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

/// Runs of a sweep that somebody else carries out, on another machine for instance.
///
/// A run that is handed out is claimed, so that no other process is at it. Its results have to be put into a folder of the store's file
/// system, and become those of the run when it is [done](Self::done). All that is still handed out is given free when this is dropped.
pub struct Dispatcher {
    sweep: Sweep,
    laboratory: Laboratory,
    store: Store,
    queue: Queue,
    /// Runs that are handed out, by place.
    handed_out: BTreeMap<usize, HeldClaim>,
}

/// A run that is handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatched {
    /// Place of the run in the sweep.
    pub place: usize,
    /// The resolved scenario, which `clearway run` carries out.
    pub scenario: String,
    /// Memory in bytes that it may come to take.
    pub memory: u64,
}

impl Dispatcher {
    /// The runs at the places `chosen` of a sweep that are not done yet.
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

    /// The queue, and what its runs are carried out with.
    fn parts(&mut self) -> (&mut Queue, Setting<'_>) {
        let setting = Setting {
            sweep: &self.sweep,
            laboratory: &self.laboratory,
            store: &self.store,
            on_failure: &|_, _| {},
        };
        (&mut self.queue, setting)
    }

    /// Hands out a run; `None` if there is none at the moment.
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

    /// An empty folder for the results of a run that is handed out.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn folder(&self, place: usize) -> Result<PathBuf, StoreError> {
        let key = self.sweep.runs[place].key;
        let folder = self.store.work()?.join(key.to_string());
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).map_err(StoreError::io("create the folder", &folder))?;
        Ok(folder)
    }

    /// Takes what is in the [folder](Self::folder) of a run as its results. Of a run that is not handed out, or not any more, nothing is
    /// taken: false.
    ///
    /// # Errors
    /// If they cannot be put in place.
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
                queue.publish(setting, (place, &folder), Spent::of(&summary))?;
            }
            Ok(_) => queue.fail(setting, place, "the run was interrupted")?,
            Err(error) => {
                let reason = format!("the results that came back cannot be read: {error}");
                queue.fail(setting, place, &reason)?;
            }
        }
        // The claim is given free when the results are there.
        drop(claim);
        Ok(true)
    }

    /// Records that a run that is handed out failed.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn fail(&mut self, place: usize, reason: &str) -> Result<bool, StoreError> {
        let Some(claim) = self.handed_out.remove(&place) else {
            return Ok(false);
        };
        let (queue, setting) = self.parts();
        queue.fail(setting, place, reason)?;
        drop(claim);
        Ok(true)
    }

    /// Says that what is handed out is still worked at, and looks at what other processes do. To be called every few seconds.
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

    /// How far it is, if `at_once` runs are carried out at once.
    pub fn progress(&self, at_once: usize) -> SweepProgress {
        // Runs that are handed out may wait there: nobody knows for how long they have been carried out.
        let handed_out = self.handed_out.keys().map(|&place| (place, 0.0));
        self.queue
            .progress(&handed_out.collect::<Vec<_>>(), at_once)
    }

    /// Gives all that is still handed out free, and gives back the store, where results are put together.
    pub fn end(self) -> Store {
        // Nothing that is left unfinished may be taken for results.
        drop(self.handed_out);
        self.store
    }
}

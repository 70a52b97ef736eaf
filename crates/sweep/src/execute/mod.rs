//! Execution: each run by a child process of its own, as many at once as there are cores and memory for.
//!
//! A child writes into the folder of what its parent is making; its results become those of the run by one rename. It ends when its
//! parent does, because its standard input ends then. A run that exceeds the memory, panics or is killed costs that run.

mod child;
mod control_groups;
mod estimate;
mod memory;
mod progress;

pub use progress::SweepProgress;

use crate::clock;
use crate::points::{RunKey, Sweep};
use crate::store::{Claim, Claimed, Failed, Store, StoreError};
use child::{Child, Ended};
use clearway_lab::Laboratory;
use clearway_report::{StatusName, Summary};
use estimate::{Estimates, Spent};
use memory::Memory;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Longest wait for something to happen.
const TICK: Duration = Duration::from_millis(100);
/// Time between two looks at runs that other processes are at.
const LOOK: Duration = Duration::from_millis(500);

/// How runs are carried out.
pub struct ExecuteOptions<'a> {
    /// The program and its first arguments, to which those of `clearway run` are added.
    pub command: Vec<OsString>,
    /// Most runs at once.
    pub jobs: usize,
    /// True once the user wants to end.
    pub interrupted: &'a dyn Fn() -> bool,
    /// Told now and then what is going on.
    pub on_progress: &'a dyn Fn(&SweepProgress),
    /// Told what went wrong with a run, when it did: its place in the sweep, and the reason.
    pub on_failure: &'a dyn Fn(usize, &str),
}

/// What came of an execution.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Execution {
    /// Runs that were there before.
    pub known: usize,
    /// Runs that were done by this process.
    pub done: usize,
    /// Runs that other processes did meanwhile.
    pub by_others: usize,
    /// Places of the runs that failed.
    pub failed: Vec<usize>,
    /// True if the user ended it.
    pub interrupted: bool,
}

/// Carries out the runs at the places `chosen` of a sweep that are not done yet.
///
/// # Errors
/// If the store cannot be read or written. What runs fail of is recorded, and no error.
pub fn execute<'a>(
    (sweep, laboratory): (&'a Sweep, &'a Laboratory),
    store: &'a Store,
    chosen: &[usize],
    options: ExecuteOptions<'a>,
) -> Result<Execution, StoreError> {
    let mut executor = Executor::new(sweep, laboratory, store, chosen, options)?;
    let ended = executor.carry_out();
    // Claims are given free, and children end, whatever happened.
    executor.stop();
    ended.map(|()| executor.outcome)
}

/// A run that a child of this process is at.
struct Running {
    place: usize,
    child: Child,
    claim: Claim,
    started: Instant,
    beaten: Instant,
    /// Memory that it may come to take.
    expected: u64,
    /// True if no other run was started beside it.
    alone: bool,
}

struct Executor<'a> {
    sweep: &'a Sweep,
    laboratory: &'a Laboratory,
    store: &'a Store,
    options: ExecuteOptions<'a>,
    /// Runs that nobody is known to be at, in order.
    pending: VecDeque<usize>,
    /// Runs that other processes are at.
    elsewhere: Vec<usize>,
    running: Vec<Running>,
    /// Runs that were killed, perhaps for want of memory, and are tried once more by themselves.
    alone: Vec<usize>,
    /// Failures of former executions, which are tried again.
    former: BTreeMap<RunKey, Failed>,
    estimates: Estimates,
    memory: Memory,
    events: (Sender<usize>, Receiver<usize>),
    started: Instant,
    looked: Instant,
    /// Runs of any process at the last look.
    at_once: usize,
    total: usize,
    outcome: Execution,
}

impl<'a> Executor<'a> {
    fn new(
        sweep: &'a Sweep,
        laboratory: &'a Laboratory,
        store: &'a Store,
        chosen: &[usize],
        options: ExecuteOptions<'a>,
    ) -> Result<Self, StoreError> {
        let finished = store.finished()?;
        let mut estimates = Estimates::new(sweep);
        let is_finished = |at: &usize| finished.contains(&sweep.runs[*at].key);
        let (known, pending): (Vec<usize>, Vec<usize>) =
            chosen.iter().partition(|at| is_finished(at));
        if !pending.is_empty() {
            for at in (0..sweep.runs.len()).filter(is_finished) {
                // What cannot be read teaches nothing here, and is an error where results are put together.
                if let Ok(summary) = store.summary(sweep.runs[at].key) {
                    estimates.learn(at, Spent::of(&summary));
                }
            }
        }
        let now = clock::now();
        Ok(Self {
            former: store.failures()?,
            sweep,
            laboratory,
            store,
            options,
            total: chosen.len(),
            outcome: Execution {
                known: known.len(),
                ..Execution::default()
            },
            pending: pending.into(),
            elsewhere: Vec::new(),
            running: Vec::new(),
            alone: Vec::new(),
            estimates,
            memory: Memory::new(),
            events: channel(),
            started: now,
            looked: now,
            at_once: 0,
        })
    }

    fn carry_out(&mut self) -> Result<(), StoreError> {
        loop {
            if (self.options.interrupted)() {
                self.outcome.interrupted = true;
                return Ok(());
            }
            self.start_runs()?;
            self.tell();
            if self.running.is_empty() && self.pending.is_empty() && self.elsewhere.is_empty() {
                return Ok(());
            }
            match self.events.1.recv_timeout(TICK) {
                Ok(place) => self.end(place)?,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.beat();
            self.look_elsewhere()?;
        }
    }

    /// Starts runs while there are cores and memory for them.
    fn start_runs(&mut self) -> Result<(), StoreError> {
        while self.running.len() < self.options.jobs {
            let Some(&place) = self.pending.front() else {
                return Ok(());
            };
            let wants_alone = self.alone.contains(&place) || self.is_unknown_and_large(place);
            let has_company = !self.running.is_empty();
            if has_company && (wants_alone || self.running.iter().any(|run| run.alone)) {
                return Ok(());
            }
            let expected = self.estimates.memory(place);
            let children = self
                .running
                .iter()
                .map(|run| (run.child.process(), run.expected));
            if has_company && !self.memory.has_room(expected, children) {
                return Ok(());
            }
            self.pending.pop_front();
            self.start(place, expected, wants_alone)?;
        }
        Ok(())
    }

    /// True of a first run of something that may not fit twice.
    fn is_unknown_and_large(&self, place: usize) -> bool {
        !self.estimates.knows_any() && self.estimates.is_large(self.sweep, self.laboratory, place)
    }

    /// Claims a run and starts it, or leaves it to whoever is at it.
    fn start(&mut self, place: usize, expected: u64, alone: bool) -> Result<(), StoreError> {
        let key = self.sweep.runs[place].key;
        if self.is_settled(place)? {
            return Ok(());
        }
        let claim = match self.store.claim(key)? {
            Claimed::Ours(claim) => claim,
            Claimed::Theirs { .. } => {
                self.elsewhere.push(place);
                return Ok(());
            }
        };
        // Whoever had the claim may have done it since.
        if self.is_settled(place)? {
            return Ok(());
        }
        let work = self.store.work()?;
        let experiment = self
            .sweep
            .experiment(self.laboratory, &self.sweep.runs[place]);
        let spawned = experiment
            .map_err(|error| error.to_string())
            .and_then(|experiment| {
                let text = experiment.resolved();
                Child::spawn(
                    &self.options.command,
                    &work,
                    &key.to_string(),
                    &text,
                    (place, self.events.0.clone()),
                )
            });
        let child = match spawned {
            Ok(child) => child,
            Err(reason) => return self.fail(place, &reason),
        };
        let now = clock::now();
        self.running.push(Running {
            place,
            child,
            claim,
            started: now,
            beaten: now,
            expected,
            alone,
        });
        Ok(())
    }

    /// True if another process did the run, or found that it fails, since this one began; counts it then.
    fn is_settled(&mut self, place: usize) -> Result<bool, StoreError> {
        let key = self.sweep.runs[place].key;
        if self.store.is_finished(key) {
            if let Ok(summary) = self.store.summary(key) {
                self.estimates.learn(place, Spent::of(&summary));
            }
            self.outcome.by_others += 1;
            return Ok(true);
        }
        let failure = self.store.failure(key);
        let is_new = failure
            .as_ref()
            .is_some_and(|failure| self.former.get(&key) != Some(failure));
        if let (true, Some(failure), false) = (is_new, failure, self.alone.contains(&place)) {
            (self.options.on_failure)(place, &failure.reason);
            self.outcome.failed.push(place);
            return Ok(true);
        }
        Ok(false)
    }

    /// A child has ended.
    fn end(&mut self, place: usize) -> Result<(), StoreError> {
        let Some(at) = self.running.iter().position(|run| run.place == place) else {
            return Ok(());
        };
        let run = self.running.swap_remove(at);
        let wall = run.started.elapsed().as_secs_f64();
        let key = self.sweep.runs[place].key;
        let folder = run.child.folder().to_path_buf();
        let ended = run.child.wait();
        let summary = Summary::read(&folder);
        let is_whole = summary
            .as_ref()
            .is_ok_and(|summary| summary.status != StatusName::Interrupted);
        match (ended, summary) {
            (Ended::Code(0 | 1), Ok(summary)) if is_whole => {
                self.store.publish(key, &folder)?;
                let spent = Spent {
                    wall_seconds: wall,
                    ..Spent::of(&summary)
                };
                self.estimates.learn(place, spent);
                self.outcome.done += 1;
                Ok(())
            }
            (Ended::Killed, _) if !run.alone && !self.alone.contains(&place) => {
                // Most likely the system had no memory left.
                self.alone.push(place);
                self.pending.push_back(place);
                Ok(())
            }
            (ended, _) => {
                let _ = std::fs::remove_dir_all(&folder);
                self.fail(place, &ended.reason())
            }
        }
        // The claim is given free here, when the results are there.
    }

    fn fail(&mut self, place: usize, reason: &str) -> Result<(), StoreError> {
        let run = &self.sweep.runs[place];
        let text = format!("{}\n{reason}", self.sweep.name_of(run));
        self.store.fail(run.key, &text)?;
        (self.options.on_failure)(place, &text);
        self.outcome.failed.push(place);
        Ok(())
    }

    fn beat(&mut self) {
        for run in &mut self.running {
            if run.beaten.elapsed() >= crate::store::HEARTBEAT {
                run.beaten = clock::now();
                run.claim.beat();
            }
        }
    }

    /// Looks at runs that other processes are at, and takes over what they have left.
    fn look_elsewhere(&mut self) -> Result<(), StoreError> {
        if self.looked.elapsed() < LOOK {
            return Ok(());
        }
        self.looked = clock::now();
        self.at_once = self.store.claim_count();
        let mut left = Vec::new();
        for place in std::mem::take(&mut self.elsewhere) {
            if self.is_settled(place)? {
                continue;
            }
            left.push(place);
        }
        // With nothing else to do, whatever has become free or stale is taken.
        match self.pending.is_empty() && self.running.len() < self.options.jobs {
            true => self.pending.extend(left),
            false => self.elsewhere = left,
        }
        Ok(())
    }

    fn tell(&mut self) {
        let spent = self
            .running
            .iter()
            .map(|run| (run.place, run.started.elapsed().as_secs_f64()));
        let spent: Vec<(usize, f64)> = spent.collect();
        let open = self.pending.iter().chain(&self.elsewhere).copied();
        let at_once = self.options.jobs.max(self.at_once);
        let outcome = &self.outcome;
        let progress = SweepProgress {
            total: self.total,
            done: outcome.known + outcome.done + outcome.by_others,
            failed: outcome.failed.len(),
            running: self.running.len(),
            elsewhere: self.elsewhere.len(),
            elapsed: self.started.elapsed().as_secs_f64(),
            left: self.estimates.time_left(open, &spent, at_once),
        };
        (self.options.on_progress)(&progress);
    }

    /// Ends all children, and leaves nothing of what they were making.
    fn stop(&mut self) {
        for run in &mut self.running {
            run.child.kill();
        }
        for run in self.running.drain(..) {
            let folder = run.child.folder().to_path_buf();
            run.child.wait();
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

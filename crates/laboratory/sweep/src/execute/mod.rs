//! Execution: each run in a child process, concurrently within the limits of cores and memory.
//!
//! A child writes into its parent's work folder; one rename publishes the results of the run. A child carries out successive small runs,
//! and ends after a large run. A child ends with its parent, because its standard input then ends. If a run exceeds the memory, panics or
//! is killed, only that run is lost.
//!
//! [`Dispatcher`] hands out the same runs to other machines, where [`carry_out`] carries out a run in the same way.

mod control_groups;
mod dispatch;
mod estimate;
mod memory;
mod progress;
mod queue;
mod worker;

pub use dispatch::{Dispatched, Dispatcher};
pub use progress::{SweepExecution, SweepProgress};
pub use worker::{RunAnswer, RunEnd, WORKER_COMMAND, carry_out};

use crate::points::Sweep;
use crate::store::{Store, StoreError};
use clearway_lab::Laboratory;
use estimate::Spent;
use memory::Memory;
use queue::{ClaimedRun, HeldClaim, Queue, Setting};
use std::ffi::OsString;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use worker::{Event, RunFiles, Worker};

/// Longest wait for an event.
const TICK: Duration = Duration::from_millis(100);

/// Reason for the missing results of a run that was killed twice.
const KILLED: &str =
    "killed by signal 9, though it ran alone: most likely the system had no memory left";

/// Options of an execution.
pub struct ExecuteOptions<'a> {
    /// The program and its first arguments, to which [`WORKER_COMMAND`] and a folder are added.
    pub command: Vec<OsString>,
    /// Largest number of concurrent runs.
    pub jobs: usize,
    /// Callback that is true once the user wants to stop.
    pub interrupted: &'a dyn Fn() -> bool,
    /// Callback that regularly receives the progress.
    pub on_progress: &'a dyn Fn(&SweepProgress),
    /// Callback for each failed run: its place in the sweep, and the reason.
    pub on_failure: &'a dyn Fn(usize, &str),
}

/// Carries out the unfinished runs at the places `chosen` of a sweep.
///
/// # Errors
/// If the store cannot be read or written. Failures of runs are recorded, and are not errors.
pub fn execute<'a>(
    (sweep, laboratory): (&'a Sweep, &'a Laboratory),
    store: &'a Store,
    chosen: &[usize],
    options: ExecuteOptions<'a>,
) -> Result<SweepExecution, StoreError> {
    let mut executor = Executor {
        queue: Queue::new(sweep, store, chosen)?,
        setting: Setting {
            sweep,
            laboratory,
            store,
            on_failure: options.on_failure,
        },
        options,
        running: Vec::new(),
        idle: Vec::new(),
        started: 0,
        memory: Memory::new(),
        events: channel(),
    };
    let ended = executor.carry_out();
    // Release claims and end children, even after an error.
    executor.stop();
    ended.map(|()| executor.queue.outcome)
}

/// A run in progress in a child of this process.
struct Running {
    place: usize,
    worker: Worker,
    files: RunFiles,
    claim: HeldClaim,
    /// Expected memory of the run.
    expected: u64,
    /// True if no other run was started beside this run.
    alone: bool,
}

struct Executor<'a> {
    queue: Queue,
    setting: Setting<'a>,
    options: ExecuteOptions<'a>,
    running: Vec<Running>,
    /// Children that wait for a run.
    idle: Vec<Worker>,
    /// Number of started children.
    started: usize,
    memory: Memory,
    events: (Sender<Event>, Receiver<Event>),
}

impl Executor<'_> {
    fn carry_out(&mut self) -> Result<(), StoreError> {
        loop {
            if (self.options.interrupted)() {
                self.queue.outcome.interrupted = true;
                return Ok(());
            }
            self.start_runs()?;
            self.tell();
            if self.running.is_empty() && self.queue.is_empty() {
                return Ok(());
            }
            match self.events.1.recv_timeout(TICK) {
                Ok((number, answer)) => self.end(number, answer)?,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.running.iter_mut().for_each(|run| run.claim.beat());
            let is_idle = self.running.len() < self.options.jobs;
            self.queue.look_elsewhere(self.setting, is_idle)?;
        }
    }

    /// Starts runs while there are cores and memory for them.
    fn start_runs(&mut self) -> Result<(), StoreError> {
        while self.running.len() < self.options.jobs {
            let Some(place) = self.queue.next() else {
                return Ok(());
            };
            // A killed run, perhaps killed for lack of memory, is retried alone.
            let wants_alone = self.queue.is_tried_again(place) || self.is_unknown_and_large(place);
            let has_company = !self.running.is_empty();
            if has_company && (wants_alone || self.running.iter().any(|run| run.alone)) {
                return Ok(());
            }
            let expected = self.queue.estimates.memory(place);
            let children = self
                .running
                .iter()
                .map(|run| (run.worker.process(), run.expected));
            if has_company && !self.memory.has_room(expected, children) {
                return Ok(());
            }
            if let Some(run) = self.queue.claim_next(self.setting)? {
                self.start(run, wants_alone)?;
            }
        }
        Ok(())
    }

    /// True if a run is large and no finished run gives an estimate, so two such runs may not fit.
    fn is_unknown_and_large(&self, place: usize) -> bool {
        let estimates = &self.queue.estimates;
        !estimates.knows_any()
            && estimates.is_large(self.setting.sweep, self.setting.laboratory, place)
    }

    /// Starts a run.
    fn start(&mut self, run: ClaimedRun, alone: bool) -> Result<(), StoreError> {
        let ClaimedRun {
            place,
            text,
            claim,
            memory,
        } = run;
        let work = self.setting.store.work()?;
        let name = self.setting.sweep.runs[place].key.to_string();
        match self.begin(&work, &name, &text) {
            Ok((worker, files)) => self.running.push(Running {
                place,
                worker,
                files,
                claim,
                expected: memory,
                alone,
            }),
            Err(reason) => self.queue.fail(self.setting, place, &reason)?,
        }
        Ok(())
    }

    /// Begins a run in a waiting child, or in a new child.
    fn begin(&mut self, work: &Path, name: &str, text: &str) -> Result<(Worker, RunFiles), String> {
        while let Some(mut worker) = self.idle.pop() {
            match worker.begin(name, text) {
                Ok(files) => return Ok((worker, files)),
                // The child ended while it waited.
                Err(_) => worker.dismiss(),
            }
        }
        self.started += 1;
        let told = (self.started, self.events.0.clone());
        Worker::start_with(&self.options.command, work, told, (name, text))
    }

    /// Handles the end of a run or of a child.
    fn end(&mut self, number: usize, answer: Option<RunAnswer>) -> Result<(), StoreError> {
        let mut running = self.running.iter();
        let Some(at) = running.position(|run| run.worker.number() == number) else {
            return Ok(());
        };
        let run = self.running.swap_remove(at);
        let (place, folder) = (run.place, &run.files.results);
        let wall_seconds = run.claim.seconds();
        let (end, worker) = run.worker.finish(&run.files, answer);
        self.idle.extend(worker);
        match end {
            RunEnd::Results(summary) => {
                let spent = Spent {
                    wall_seconds,
                    ..Spent::from_summary(&summary)
                };
                self.queue.publish(self.setting, (place, folder), spent)
            }
            RunEnd::Killed if !run.alone && !self.queue.is_tried_again(place) => {
                self.queue.try_again(place);
                Ok(())
            }
            RunEnd::Killed => self.queue.fail(self.setting, place, KILLED),
            RunEnd::Refused(reason) | RunEnd::Failed(reason) => {
                self.queue.fail(self.setting, place, &reason)
            }
        }
        // The claim is released here, after the results are in place.
    }

    fn tell(&self) {
        let spent = self
            .running
            .iter()
            .map(|run| (run.place, run.claim.seconds()));
        let spent: Vec<(usize, f64)> = spent.collect();
        (self.options.on_progress)(&self.queue.progress(&spent, self.options.jobs));
    }

    /// Ends all children, and deletes their unfinished results.
    fn stop(&mut self) {
        for run in &mut self.running {
            run.worker.kill();
        }
        for run in self.running.drain(..) {
            run.worker.finish(&run.files, None);
            let _ = std::fs::remove_dir_all(&run.files.results);
        }
        self.idle.drain(..).for_each(Worker::dismiss);
    }
}

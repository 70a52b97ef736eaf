//! Execution: each run by a child process, as many at once as there are cores and memory for.
//!
//! A child writes into the folder of what its parent is making; its results become those of the run by one rename. It carries out one
//! small run after the other, and a large one is its last. It ends when its parent does, because its standard input ends then. A run that
//! exceeds the memory, panics or is killed costs that run.
//!
//! [`Dispatcher`] hands the same runs out to be carried out elsewhere, where [`carry_out`] does one as it is done here.

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

/// Longest wait for something to happen.
const TICK: Duration = Duration::from_millis(100);

/// Why a run has no results that was killed twice.
const KILLED: &str =
    "killed by signal 9, though it ran alone: most likely the system had no memory left";

/// How runs are carried out.
pub struct ExecuteOptions<'a> {
    /// The program and its first arguments, to which [`WORKER_COMMAND`] and a folder are added.
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

/// Carries out the runs at the places `chosen` of a sweep that are not done yet.
///
/// # Errors
/// If the store cannot be read or written. What runs fail of is recorded, and no error.
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
    // Claims are given free, and children end, whatever happened.
    executor.stop();
    ended.map(|()| executor.queue.outcome)
}

/// A run that a child of this process is at.
struct Running {
    place: usize,
    worker: Worker,
    files: RunFiles,
    claim: HeldClaim,
    /// Memory that it may come to take.
    expected: u64,
    /// True if no other run was started beside it.
    alone: bool,
}

struct Executor<'a> {
    queue: Queue,
    setting: Setting<'a>,
    options: ExecuteOptions<'a>,
    running: Vec<Running>,
    /// Children that wait for another run.
    idle: Vec<Worker>,
    /// Number of children that were started.
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
            // What was killed, perhaps for want of memory, is tried once more by itself.
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

    /// True of a first run of something that may not fit twice.
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

    /// Lets a child that waits begin a run, or a new one.
    fn begin(&mut self, work: &Path, name: &str, text: &str) -> Result<(Worker, RunFiles), String> {
        while let Some(mut worker) = self.idle.pop() {
            match worker.begin(name, text) {
                Ok(files) => return Ok((worker, files)),
                // It has ended while it waited.
                Err(_) => worker.dismiss(),
            }
        }
        self.started += 1;
        let told = (self.started, self.events.0.clone());
        Worker::start_with(&self.options.command, work, told, (name, text))
    }

    /// A run is over, or a child has ended.
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
                    ..Spent::of(&summary)
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
        // The claim is given free here, when the results are there.
    }

    fn tell(&self) {
        let spent = self
            .running
            .iter()
            .map(|run| (run.place, run.claim.seconds()));
        let spent: Vec<(usize, f64)> = spent.collect();
        (self.options.on_progress)(&self.queue.progress(&spent, self.options.jobs));
    }

    /// Ends all children, and leaves nothing of what they were making.
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

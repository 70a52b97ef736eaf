//! Simulations that a Python program advances in steps.

use crate::data::RunData;
use crate::errors::{without_lock, wrong};
use crate::run::{Exception, Run};
use crate::run_controllers::{NamedClass, RunControllers};
use crate::scenario::{Source, laboratory};
use clearway_lab::scenario::Priority;
use clearway_lab::units::{Bytes, HostId, Span, Time};
use clearway_lab::{
    MessageEvent, MessageEventKind, PostedMessage, RunDecision, SteppedOptions, SteppedRun,
};
use clearway_runs::{Stopwatch, stepped_record};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Event of a message: its time in picoseconds, the number of the message, and true if the message is acknowledged, false if it is
/// received.
type Event = (u64, u32, bool);

/// A simulation that advances only on request.
#[pyclass(frozen, module = "clearway._clearway")]
pub(crate) struct NativeSimulation {
    /// `None` after the end of the simulation.
    run: Mutex<Option<SteppedRun>>,
    controllers: Arc<RunControllers>,
    /// Process that owns the threads of the simulation.
    process: u32,
    stopwatch: Stopwatch,
    command: String,
}

#[pymethods]
impl NativeSimulation {
    /// A simulation that stands at time zero. `traffic` says whether the scenario's workload runs, and has the priorities that messages may
    /// have, and the resolution in picoseconds.
    #[new]
    fn new(
        py: Python<'_>,
        source: Source,
        overrides: Vec<String>,
        threads: Option<usize>,
        traffic: (bool, Vec<u8>, Option<u64>),
        command: String,
        controller: Option<NamedClass>,
    ) -> PyResult<Self> {
        let stopwatch = Stopwatch::start();
        let (own_traffic, priorities, resolution) = traffic;
        let controllers = RunControllers::new(controller);
        let made = without_lock(py, || {
            let laboratory = laboratory();
            let scenario = controllers.reading(|| match &source {
                Source::Name(name) => laboratory.load(name, &overrides),
                Source::Text((name, text)) => laboratory.read(name, text, None, &overrides),
            })?;
            let options = SteppedOptions {
                threads: threads.into(),
                own_traffic,
                priorities: priorities.into_iter().map(Priority).collect(),
                resolution: resolution.map(Span::from_ps),
            };
            SteppedRun::new(scenario, options)
        })?;
        let simulation = Self {
            run: Mutex::new(Some(made.map_err(wrong)?)),
            controllers,
            process: std::process::id(),
            stopwatch,
            command,
        };
        simulation.controllers.raise()?;
        Ok(simulation)
    }

    /// Simulated time in picoseconds.
    fn now(&self) -> PyResult<u64> {
        self.with(|run| Ok(run.now().as_ps()))
    }

    /// True if nothing more can happen.
    fn is_over(&self) -> PyResult<bool> {
        Ok(self.lock()?.as_ref().is_none_or(SteppedRun::is_over))
    }

    /// The earliest time in picoseconds at which anything may happen; `None` if nothing is left.
    fn next_event(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        let next = self.with(|run| match run.is_over() {
            true => Ok(Ok(None)),
            false => without_lock(py, || run.next_event()),
        })?;
        self.controllers.raise()?;
        Ok(next.map_err(wrong)?.map(Time::as_ps))
    }

    fn hosts(&self) -> PyResult<u32> {
        self.with(|run| Ok(run.assembly().topology.machines()))
    }

    fn warnings(&self) -> PyResult<Vec<String>> {
        self.with(|run| Ok(run.assembly().warnings.clone()))
    }

    /// Posts a message, and returns its number.
    fn post(
        &self,
        src: u32,
        dst: u32,
        bytes: u64,
        tag: u64,
        priority: Option<u8>,
    ) -> PyResult<u32> {
        let message = PostedMessage {
            src: HostId(src),
            dst: HostId(dst),
            bytes: Bytes::new(bytes),
            tag,
            priority: priority.map(Priority),
        };
        self.with(|run| run.post(message).map(|flow| flow.0).map_err(wrong))
    }

    /// Simulates up to `picoseconds`, or until something happens to a message if `until_event`. Returns the events, and the exception
    /// that ended the simulation.
    fn advance(
        &self,
        py: Python<'_>,
        picoseconds: u64,
        until_event: bool,
    ) -> PyResult<(Vec<Event>, Exception)> {
        let mut exception = None;
        let stepped = self.with(|run| {
            without_lock(py, || {
                let mut wait = || look(&self.controllers, &mut exception);
                let time = Time::from_ps(picoseconds);
                match until_event {
                    true => run.run_until_event(time, &mut wait),
                    false => run.run_until(time, &mut wait),
                }
            })
        })?;
        if self.controllers.has_failed() {
            // Events after the failure are meaningless.
            self.close(py)?;
            self.controllers.raise()?;
        }
        let events = stepped.map_err(wrong)?;
        Ok((told(&events), exception.map(|error| error.into_value(py))))
    }

    /// Ends the simulation: after its last event if `to_the_end` is true, otherwise at the present time. Returns the run, its last events,
    /// and the exception that ended it.
    fn finish(&self, py: Python<'_>, to_the_end: bool) -> PyResult<(Run, Vec<Event>, Exception)> {
        let run = self.lock()?.take().ok_or_else(ended)?;
        let mut exception = None;
        let (mut record, end) = without_lock(py, || {
            let end = match to_the_end {
                true => run.run_to_end(&mut || look(&self.controllers, &mut exception)),
                false => run.finish(),
            };
            (stepped_record(&end, &self.stopwatch), end)
        })?;
        self.controllers.raise()?;
        record.command.clone_from(&self.command);
        let run = Run(Arc::new(RunData::of_steps(record, &end)));
        let exception = exception.map(|error| error.into_value(py));
        Ok((run, told(&end.events), exception))
    }

    /// Ends the simulation and discards its results.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if std::process::id() != self.process {
            return Ok(());
        }
        let run = self.lock()?.take();
        without_lock(py, || drop(run))
    }
}

impl Drop for NativeSimulation {
    fn drop(&mut self) {
        let run = self.run.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(run) = run.take() else { return };
        if std::process::id() != self.process {
            // A fork does not copy threads, so a drop here would wait for threads that do not exist.
            std::mem::forget(run);
            return;
        }
        // Controllers may wait for the interpreter's lock, so release it.
        Python::attach(|py| py.detach(|| drop(run)));
    }
}

impl NativeSimulation {
    fn lock(&self) -> PyResult<MutexGuard<'_, Option<SteppedRun>>> {
        if std::process::id() != self.process {
            return Err(wrong(
                "this simulation belongs to the process that this one was forked from\n  fix: begin it after the fork",
            ));
        }
        // Waiting would hold the interpreter's lock, which the other thread may need.
        let in_use = |_| {
            wrong(
                "another thread is using this simulation\n  fix: use it from one thread at a time",
            )
        };
        self.run.try_lock().map_err(in_use)
    }

    fn with<T>(&self, work: impl FnOnce(&mut SteppedRun) -> PyResult<T>) -> PyResult<T> {
        work(self.lock()?.as_mut().ok_or_else(ended)?)
    }
}

fn ended() -> PyErr {
    wrong("this simulation has ended\n  fix: begin another one")
}

/// Events in the form that the package expects.
fn told(events: &[MessageEvent]) -> Vec<Event> {
    let event = |event: &MessageEvent| {
        let is_acknowledged = event.kind == MessageEventKind::Acknowledged;
        (event.time.as_ps(), event.flow.0, is_acknowledged)
    };
    events.iter().map(event).collect()
}

/// Lets the interpreter handle signals, and stops the run after an exception or the failure of a controller.
fn look(controllers: &RunControllers, exception: &mut Option<PyErr>) -> RunDecision {
    if exception.is_none() {
        *exception = Python::attach(|py| py.check_signals()).err();
    }
    match exception.is_some() || controllers.has_failed() {
        true => RunDecision::Stop,
        false => RunDecision::Continue,
    }
}

/// A time such as `5us` in picoseconds.
#[pyfunction]
pub(crate) fn picoseconds(text: &str) -> PyResult<u64> {
    let time: Result<Time, _> = text.parse();
    time.map(Time::as_ps).map_err(|error| {
        wrong(format!(
            "`{text}` is not a time: {error}\n  fix: write it as \"5us\""
        ))
    })
}

/// A size such as `2MB` in bytes.
#[pyfunction]
pub(crate) fn length(text: &str) -> PyResult<u64> {
    let bytes: Result<Bytes, _> = text.parse();
    bytes.map(Bytes::as_u64).map_err(|error| {
        wrong(format!(
            "`{text}` is not a size: {error}\n  fix: write it as \"2MB\""
        ))
    })
}

//! Sweeps that dispatch their runs to other machines, and runs that this process executes for such a sweep.

use crate::errors::{unwritten, without_lock};
use crate::scenario::Source;
use crate::sweep::{NativeSweep, Part, open};
use clearway::{Failure, Laboratory, PreparedSweep};
use clearway_report::Owner;
use clearway_sweep::{Dispatched, Dispatcher, RunEnd, StoreError, SweepProgress};
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Prefix of the folders in which a process executes runs for a sweep on another machine: `clearway-OWNER`.
const PREFIX: &str = "clearway-";

/// A sweep that dispatches its runs.
#[pyclass(frozen, module = "clearway._clearway")]
pub(crate) struct NativeDispatcher {
    study: PreparedSweep,
    /// `None` after the end of the sweep.
    dispatcher: Mutex<Option<Dispatcher>>,
}

impl NativeDispatcher {
    /// Runs `work` without the interpreter's lock.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Dispatcher) -> Result<T, StoreError> + Send,
    ) -> PyResult<T> {
        let done = without_lock(py, || {
            let mut dispatcher = self
                .dispatcher
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            dispatcher.as_mut().map(work)
        })?;
        match done {
            Some(done) => done.map_err(|error| unwritten(&Failure::from(error))),
            None => Err(PyRuntimeError::new_err("the sweep is over")),
        }
    }
}

#[pymethods]
impl NativeDispatcher {
    #[new]
    fn new(
        py: Python<'_>,
        source: Source,
        out: Option<PathBuf>,
        shard: Part,
        confirmed: bool,
    ) -> PyResult<Self> {
        let (study, store) = open(py, &source, out, shard, confirmed)?;
        let dispatcher = without_lock(py, || {
            let sweep = study.sweep.clone();
            Dispatcher::new(sweep, Laboratory::new(), store, &study.chosen)
        })?;
        let dispatcher = dispatcher.map_err(|error| unwritten(&Failure::from(error)))?;
        Ok(Self {
            study,
            dispatcher: Mutex::new(Some(dispatcher)),
        })
    }

    /// Place, scenario and expected memory of the next run; `None` if no run is available now.
    fn take(&self, py: Python<'_>) -> PyResult<Option<(usize, String, u64)>> {
        let run = self.with(py, Dispatcher::take)?;
        Ok(run.map(|run| {
            let Dispatched {
                place,
                scenario,
                memory,
            } = run;
            (place, scenario, memory)
        }))
    }

    /// True when every run is done or has failed.
    fn is_over(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |dispatcher| Ok(dispatcher.is_over()))
    }

    /// An empty folder for the results of a run.
    fn folder(&self, py: Python<'_>, place: usize) -> PyResult<PathBuf> {
        self.with(py, |dispatcher| dispatcher.folder(place))
    }

    /// Publishes the content of the folder of a run as its results.
    fn done(&self, py: Python<'_>, place: usize) -> PyResult<bool> {
        self.with(py, |dispatcher| dispatcher.done(place))
    }

    /// Records that a run failed.
    fn fail(&self, py: Python<'_>, place: usize, reason: &str) -> PyResult<bool> {
        self.with(py, |dispatcher| dispatcher.fail(place, reason))
    }

    /// Renews the claims of dispatched runs, and checks the runs of other processes.
    fn tick(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Dispatcher::tick)
    }

    /// Number of finished runs, of all runs and of failed runs, and the remaining seconds with `at_once` concurrent runs.
    fn progress(
        &self,
        py: Python<'_>,
        at_once: usize,
    ) -> PyResult<(usize, usize, usize, Option<f64>)> {
        let SweepProgress {
            done,
            total,
            failed,
            left,
            ..
        } = self.with(py, |dispatcher| Ok(dispatcher.progress(at_once)))?;
        Ok((done, total, failed, left))
    }

    /// Releases all dispatched runs, and publishes the sweep with the runs that are done.
    fn end(&self, py: Python<'_>, command: &str) -> PyResult<NativeSweep> {
        let swept = without_lock(py, || {
            let mut dispatcher = self
                .dispatcher
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let store = dispatcher.take().map(Dispatcher::end);
            store.map(|store| NativeSweep::from_sweep(&self.study, &store, command))
        })?;
        match swept {
            Some(swept) => swept.map_err(|failure| unwritten(&failure)),
            None => Err(PyRuntimeError::new_err("the sweep is over")),
        }
    }
}

/// Runs a scenario in a separate process, like the runs of a sweep, with results in `NAME` of the `folder`. Returns "results", "killed",
/// "refused" or "failed", and the reason for missing results.
#[pyfunction]
pub(crate) fn carry_out(
    py: Python<'_>,
    program: Vec<OsString>,
    folder: PathBuf,
    name: &str,
    scenario: &str,
) -> PyResult<(&'static str, String)> {
    let (end, exception) = without_lock(py, || {
        let exception = std::cell::RefCell::new(None);
        let interrupted = || match Python::attach(|py| py.check_signals()) {
            Ok(()) => false,
            Err(error) => exception.replace(Some(error)).is_none(),
        };
        let end = clearway_sweep::carry_out(&program, (&folder, name), scenario, &interrupted);
        (end, exception.into_inner())
    })?;
    if let Some(exception) = exception {
        return Err(exception);
    }
    Ok(match end {
        Ok(Some(RunEnd::Results(_))) => ("results", String::new()),
        Ok(Some(RunEnd::Refused(reason))) => ("refused", reason),
        Ok(Some(RunEnd::Failed(reason))) | Err(reason) => ("failed", reason),
        Ok(Some(RunEnd::Killed) | None) => ("killed", String::new()),
    })
}

/// Creates the folder of this process in `parent`, and deletes folders of processes that have ended.
#[pyfunction]
pub(crate) fn own_folder(parent: PathBuf) -> PyResult<PathBuf> {
    clear(&parent);
    let folder = parent.join(format!("{PREFIX}{}", Owner::this()));
    let made = fs::create_dir_all(&folder);
    let fault = |error| PyOSError::new_err(format!("cannot make {}: {error}", folder.display()));
    made.map_err(fault)?;
    Ok(folder)
}

fn clear(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if owner.and_then(Owner::read).and_then(Owner::is_gone) == Some(true) {
            // Another process may delete the same folder.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

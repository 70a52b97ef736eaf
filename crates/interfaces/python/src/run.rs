//! Runs and their results.

use crate::data::{RunData, TableData};
use crate::errors::{unwritten, without_lock, wrong};
use crate::run_controllers::{NamedClass, RunControllers, is_interrupt};
use crate::scenario::{Source, load};
use crate::table::NativeTable;
use clearway_lab::{RunDecision, RunProgress};
use clearway_report::{SeriesRow, Summary, TableName};
use clearway_report_html::render_map;
use clearway_report_text::summary_table;
use clearway_runs::{RunRequest, RunWatcher, RunWork, Stopwatch, Unsaved, report_html, save};
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// Minimum wall seconds between two checks for signals of the interpreter.
const INTERVAL: f64 = 0.05;
/// Rounds between two readings of the clock.
const ROUNDS: u32 = 16;

/// A finished run.
#[pyclass(frozen, module = "clearway._clearway")]
pub(crate) struct Run(pub(crate) Arc<RunData>);

#[pymethods]
impl Run {
    /// `summary.json`.
    fn summary_json(&self, py: Python<'_>) -> PyResult<String> {
        without_lock(py, || Summary::from_record(&self.0.record).to_json())
    }

    /// Summary as the command line prints it.
    fn summary_table(&self, py: Python<'_>) -> PyResult<String> {
        without_lock(py, || summary_table(&Summary::from_record(&self.0.record)))
    }

    /// The scenario with every default written out.
    fn resolved(&self) -> &str {
        &self.0.resolved
    }

    fn warnings(&self) -> Vec<String> {
        self.0.record.warnings()
    }

    /// A table of the run: "flows", "iterations", "links", "operations" or "series".
    fn table(&self, name: &str) -> PyResult<NativeTable> {
        let name = TableName::ALL
            .into_iter()
            .find(|known| known.as_str() == name);
        let name = name.ok_or_else(|| wrong("there is no such table"))?;
        Ok(NativeTable(TableData::Run(Arc::clone(&self.0), name)))
    }

    /// `report.html`.
    fn report_html(&self, py: Python<'_>) -> PyResult<String> {
        let RunData {
            record,
            resolved,
            settings,
            ..
        } = &*self.0;
        without_lock(py, || report_html(resolved, settings.clone(), record, None))
    }

    /// A page with the map of the network alone; `None` if the run was not sampled.
    fn map_html(&self, py: Python<'_>) -> PyResult<Option<String>> {
        without_lock(py, || render_map(&self.0.record))
    }

    /// Puts the results into a folder.
    fn save(&self, py: Python<'_>, folder: PathBuf, report: bool) -> PyResult<()> {
        let data = &*self.0;
        let unsaved = Unsaved {
            resolved: &data.resolved,
            settings: report.then_some(data.settings.as_slice()),
            record: &data.record,
            samples: &data.samples,
        };
        let saved = without_lock(py, || save(&unsaved, &folder))?;
        saved.map_err(|error| unwritten(&error))
    }
}

/// Watches a run on behalf of the interpreter.
struct Watcher {
    samples: Vec<SeriesRow>,
    controllers: Arc<RunControllers>,
    /// Callable of the user.
    progress: Option<Py<PyAny>>,
    stopwatch: Stopwatch,
    countdown: u32,
    last_look: f64,
    /// Exception that ends the run: from a signal, or from the user's callable.
    exception: Option<PyErr>,
}

impl Watcher {
    /// Lets the interpreter handle signals, and reports the progress to the user's callable.
    fn look(&mut self, progress: &RunProgress) -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            if let Some(callable) = &self.progress {
                let (done, all) = (progress.flows_sent, progress.flows);
                callable.call1(py, (done, all, progress.now.as_us()))?;
            }
            Ok(())
        })
    }
}

impl RunWatcher for Watcher {
    fn begin(&mut self, _: RunWork, _: &[String]) {}

    fn progress(&mut self, progress: RunProgress) -> RunDecision {
        if self.controllers.has_failed() {
            self.exception = self.controllers.raise().err();
            return RunDecision::Stop;
        }
        if self.countdown > 0 {
            self.countdown -= 1;
            return RunDecision::Continue;
        }
        self.countdown = ROUNDS;
        let now = self.stopwatch.wall_seconds();
        if now - self.last_look < INTERVAL {
            return RunDecision::Continue;
        }
        self.last_look = now;
        match self.look(&progress) {
            Ok(()) => RunDecision::Continue,
            Err(exception) => {
                self.exception = Some(exception);
                RunDecision::Stop
            }
        }
    }

    fn rows(&mut self, rows: &[SeriesRow]) {
        self.samples.extend_from_slice(rows);
    }

    fn is_valid(&self) -> bool {
        // Ctrl-C in a controller interrupts the run like any other Ctrl-C, so the partial results are valid.
        !self.controllers.has_failed() || self.exception.as_ref().is_some_and(is_interrupt)
    }
}

/// Exception, if there is one.
pub(crate) type Exception = Option<Py<PyBaseException>>;

/// Runs a scenario. Returns the run, the exception that ended it early, and the exception from writing its results into the folder.
#[pyfunction]
#[pyo3(signature = (source, overrides, threads, folder, report, progress, command, controller))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn run(
    py: Python<'_>,
    source: Source,
    overrides: Vec<String>,
    threads: Option<usize>,
    folder: Option<PathBuf>,
    report: bool,
    progress: Option<Py<PyAny>>,
    command: &str,
    controller: Option<NamedClass>,
) -> PyResult<(Run, Exception, Exception)> {
    let controllers = RunControllers::new(controller);
    let mut watcher = Watcher {
        samples: Vec::new(),
        controllers: Arc::clone(&controllers),
        progress,
        stopwatch: Stopwatch::start(),
        countdown: 0,
        last_look: 0.0,
        exception: None,
    };
    let request = RunRequest {
        threads: threads.into(),
        folder: folder.as_deref(),
        report,
        flow_rows: true,
        partial: true,
        command: Some(command),
    };
    let ran = without_lock(py, || {
        let experiment = load(&source, &overrides, &controllers)?;
        let done = clearway_runs::run(&experiment, &request, &mut watcher)?;
        Ok::<_, clearway::Failure>((experiment.settings(), done))
    })?;
    let (settings, done) = ran.map_err(wrong)?;
    if watcher.exception.is_none() {
        watcher.exception = controllers.raise().err();
    }
    let data = RunData {
        record: done.record,
        samples: watcher.samples,
        resolved: done.resolved,
        settings,
    };
    let value = |error: PyErr| error.into_value(py);
    let unkept = done.kept.err().map(|error| value(unwritten(&error)));
    Ok((Run(Arc::new(data)), watcher.exception.map(value), unkept))
}

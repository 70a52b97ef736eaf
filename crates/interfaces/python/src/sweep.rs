//! Sweeps and their results.

use crate::data::TableData;
use crate::errors::{unwritten, without_lock, wrong};
use crate::scenario::Source;
use crate::table::NativeTable;
use clearway::{Failure, Laboratory, PlanSource, PreparedSweep, SweepRequest, jobs_or_cores};
use clearway_report::SweepRecord;
use clearway_report_text::sweep_table;
use clearway_sweep::{ExecuteOptions, Published, Shard, Store, SweepProgress, execute};
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// The finished runs of a sweep, and its published documents.
#[pyclass(frozen, module = "clearway._clearway")]
pub(crate) struct NativeSweep {
    record: Arc<SweepRecord>,
    published: Published,
    folder: PathBuf,
}

#[pymethods]
impl NativeSweep {
    /// `sweep.json`, the table of the command line and `report.html`.
    fn document(&self, py: Python<'_>) -> PyResult<(&str, String, &str)> {
        let table = without_lock(py, || sweep_table(&self.record, None))?;
        Ok((&self.published.json, table, &self.published.page))
    }

    /// Rows of `sweep.parquet`.
    fn table(&self) -> NativeTable {
        NativeTable(TableData::Sweep(Arc::clone(&self.record)))
    }

    fn folder(&self) -> PathBuf {
        self.folder.clone()
    }
}

impl NativeSweep {
    /// Collects the finished runs and publishes the sweep.
    pub(crate) fn from_sweep(
        study: &PreparedSweep,
        store: &Store,
        command: &str,
    ) -> Result<Self, Failure> {
        let (record, published) = study.publish(store, command)?;
        Ok(Self {
            record: Arc::new(record),
            published,
            folder: study.folder.clone(),
        })
    }
}

/// Part of a sweep in the form that the package passes on: number and count.
pub(crate) type Part = Option<(u32, u32)>;

fn shard_of(part: Part) -> PyResult<Option<Shard>> {
    let shard = part.map(|(number, of)| {
        let shard = Shard::new(number, of);
        shard.map_err(|reason| {
            let fix = "give the number of the part, from 1, and how many there are: shard=(3, 10)";
            wrong(format!("shard=({number}, {of}): {reason}\n  fix: {fix}"))
        })
    });
    shard.transpose()
}

/// Resolves the requested plan, and opens its folder.
pub(crate) fn open(
    py: Python<'_>,
    source: &Source,
    out: Option<PathBuf>,
    part: Part,
    confirmed: bool,
) -> PyResult<(PreparedSweep, Store)> {
    let shard = shard_of(part)?;
    let plan = match source {
        Source::Name(name) => PlanSource::Name(name),
        Source::Text((name, text)) => PlanSource::Text { name, text },
    };
    let request = SweepRequest {
        plan,
        out: out.as_deref(),
        shard,
        confirmed,
    };
    // Runs are separate processes, which know only the built-in parts.
    let opened = without_lock(py, || {
        let study = PreparedSweep::resolve(&Laboratory::new(), &request)?;
        let store = study.open()?;
        Ok::<_, Failure>((study, store))
    })?;
    opened.map_err(wrong)
}

/// Watches a sweep on behalf of the interpreter.
struct Watcher {
    /// Callable of the user.
    progress: Option<Py<PyAny>>,
    /// Exception that ends the sweep: from a signal, or from the user's callable.
    exception: RefCell<Option<PyErr>>,
}

impl Watcher {
    /// Runs `work` with the interpreter's lock, and keeps its exception.
    fn attach(&self, work: impl FnOnce(Python<'_>) -> PyResult<()>) {
        if self.exception.borrow().is_none()
            && let Err(exception) = Python::attach(work)
        {
            self.exception.replace(Some(exception));
        }
    }

    /// True if the sweep has to end.
    fn is_interrupted(&self) -> bool {
        self.attach(|py| py.check_signals());
        self.exception.borrow().is_some()
    }

    fn tell(&self, progress: &SweepProgress) {
        let Some(callable) = &self.progress else {
            return;
        };
        let SweepProgress {
            done,
            total,
            failed,
            left,
            ..
        } = *progress;
        self.attach(|py| callable.call1(py, (done, total, failed, left)).map(drop));
    }
}

/// Executes the missing runs of a plan, each by `program` with the arguments of `clearway run`. Returns the sweep with its finished runs,
/// and the exception that ended it early.
#[pyfunction]
#[pyo3(signature = (source, out, jobs, shard, confirmed, progress, program, command))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn sweep(
    py: Python<'_>,
    source: Source,
    out: Option<PathBuf>,
    jobs: Option<u16>,
    shard: Part,
    confirmed: bool,
    progress: Option<Py<PyAny>>,
    program: Vec<OsString>,
    command: &str,
) -> PyResult<(NativeSweep, Option<Py<PyBaseException>>)> {
    let (study, store) = open(py, &source, out, shard, confirmed)?;
    let swept = without_lock(py, || {
        let watcher = Watcher {
            progress,
            exception: RefCell::new(None),
        };
        let options = ExecuteOptions {
            command: program,
            jobs: jobs_or_cores(jobs),
            interrupted: &|| watcher.is_interrupted(),
            on_progress: &|progress| watcher.tell(progress),
            on_failure: &|_, _| {},
        };
        execute(
            (&study.sweep, &Laboratory::new()),
            &store,
            &study.chosen,
            options,
        )?;
        let swept = NativeSweep::from_sweep(&study, &store, command)?;
        Ok((swept, watcher.exception.into_inner()))
    })?;
    let (swept, exception) = swept.map_err(|failure: Failure| unwritten(&failure))?;
    Ok((swept, exception.map(|error| error.into_value(py))))
}

//! Plans for jobs that share links.

use crate::errors::{without_lock, wrong};
use clearway::{Laboratory, PlanRequest, planned};
use clearway_lab::RunDecision;
use clearway_report_html::render_plan;
use clearway_report_text::plan_table;
use pyo3::prelude::*;

/// Plans the jobs of a built-in plan or a file. Returns `plan.json`, the table of the command line and `report.html`.
#[pyfunction]
pub(crate) fn plan(
    py: Python<'_>,
    jobs: &str,
    profile: bool,
    simulate: bool,
    iterations: u32,
    threads: Option<usize>,
    command: &str,
) -> PyResult<(String, String, String)> {
    let mut stopped = None;
    let request = PlanRequest {
        jobs,
        profile,
        simulate,
        iterations,
        threads: threads.into(),
        command,
    };
    let mut on_progress = |_: &str, _| match Python::attach(|py| py.check_signals()) {
        Ok(()) => RunDecision::Continue,
        Err(exception) => {
            stopped = Some(exception);
            RunDecision::Stop
        }
    };
    let record = without_lock(py, || {
        planned(&Laboratory::new(), &request, &mut on_progress)
    })?;
    let record = record.map_err(wrong)?;
    match (stopped, record) {
        (None, Some(record)) => Ok((record.to_json(), plan_table(&record), render_plan(&record))),
        (Some(exception), _) => Err(exception),
        (None, None) => Err(wrong("nothing was planned")),
    }
}

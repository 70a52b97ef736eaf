//! Scenarios by name, path or text.

use crate::controller::PythonController;
use crate::errors::{without_lock, wrong};
use crate::run_controllers::RunControllers;
use clearway::Failure;
use clearway_lab::{Experiment, Laboratory};
use pyo3::prelude::*;
use std::sync::Arc;

/// Scenario in the form that the package passes on.
#[derive(FromPyObject)]
pub(crate) enum Source {
    /// Name in errors, and the text.
    #[pyo3(transparent)]
    Text((String, String)),
    /// Built-in name or path.
    #[pyo3(transparent)]
    Name(String),
}

/// The parts that scenarios may name, including controllers written in Python.
pub(crate) fn laboratory() -> Laboratory {
    Laboratory::new().with_controller::<PythonController>()
}

/// Loads a scenario with `overrides` of the form `KEY=VALUE`, for a run with these controllers.
pub(crate) fn load(
    source: &Source,
    overrides: &[String],
    controllers: &Arc<RunControllers>,
) -> Result<Experiment, Failure> {
    let laboratory = laboratory();
    Ok(controllers.reading(|| match source {
        Source::Name(name) => laboratory.load_any(name, overrides),
        Source::Text((name, text)) => laboratory.read_any(name, text, None, overrides),
    })?)
}

/// Warnings about a scenario whose parts fit together.
#[pyfunction]
pub(crate) fn check(
    py: Python<'_>,
    source: Source,
    overrides: Vec<String>,
) -> PyResult<Vec<String>> {
    let controllers = RunControllers::new(None);
    let checked = without_lock(py, || {
        let experiment = load(&source, &overrides, &controllers)?;
        clearway_runs::check(&experiment).map_err(Failure::from)
    })?;
    controllers.raise()?;
    checked.map_err(wrong)
}

/// A scenario with every default written out.
#[pyfunction]
pub(crate) fn resolve(source: Source, overrides: Vec<String>) -> PyResult<String> {
    let controllers = RunControllers::new(None);
    let experiment = load(&source, &overrides, &controllers).map_err(wrong)?;
    Ok(experiment.resolved())
}

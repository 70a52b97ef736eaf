//! Errors as exceptions of the package.

use clearway_runs::{defect_text, with_causes};
use pyo3::prelude::*;
use std::error::Error;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Exceptions that the package declares in Python.
mod exceptions {
    pyo3::import_exception!(clearway._errors, CollectiveError);
    pyo3::import_exception!(clearway._errors, Defect);
    pyo3::import_exception!(clearway._errors, ScenarioError);
    pyo3::import_exception!(clearway._errors, ResultError);
}

/// Exception for invalid input of the user.
pub(crate) fn wrong(error: impl Display) -> PyErr {
    exceptions::ScenarioError::new_err(error.to_string())
}

/// Exception for a group of ranks that has ended.
pub(crate) fn ended(error: impl Display) -> PyErr {
    exceptions::CollectiveError::new_err(error.to_string())
}

/// Exception for results that cannot be written.
pub(crate) fn unwritten(error: &dyn Error) -> PyErr {
    exceptions::ResultError::new_err(with_causes(error))
}

/// Runs `work` without the interpreter's lock. A panic becomes an exception.
pub(crate) fn without_lock<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    done.map_err(|panic| exceptions::Defect::new_err(defect_text(&*panic)))
}

/// Panics like a defect, so that tests can check the exception that follows.
#[pyfunction]
pub(crate) fn break_down(py: Python<'_>, message: &str) -> PyResult<()> {
    without_lock(py, || panic!("{message}"))
}

//! Explanations, lists, texts, and the whole command line.

use crate::errors::{without_lock, wrong};
use clearway::{Laboratory, catalogue, explained, main_from, shown};
use pyo3::prelude::*;
use std::ffi::OsString;
use std::process::ExitCode;

/// Name, role, summary and parameters of an entry. A parameter has a key, a default, a meaning, values and a source.
type Entry = (String, String, String, Vec<[String; 5]>);

/// All items named `name`, and the text that explains them.
#[pyfunction]
pub(crate) fn explain(name: &str) -> PyResult<(Vec<Entry>, String)> {
    let (found, text) = explained(&Laboratory::new(), name).map_err(wrong)?;
    let entries = found.into_iter().map(|entry| {
        let section = entry.section;
        let parameters = entry.parameters.into_iter().map(|parameter| {
            let key = match section {
                "" => parameter.key.to_string(),
                section => format!("{section}.{}", parameter.key),
            };
            [
                key,
                parameter.default.to_string(),
                parameter.meaning.to_string(),
                parameter.expected.to_string(),
                parameter.source.to_string(),
            ]
        });
        let parameters = parameters.collect();
        (entry.name, entry.role, entry.summary, parameters)
    });
    Ok((entries.collect(), text))
}

/// Names of all groups of names.
#[pyfunction]
pub(crate) fn groups() -> Vec<&'static str> {
    catalogue(&Laboratory::new()).groups()
}

/// Names of a group, each with a summary line.
#[pyfunction]
pub(crate) fn group(name: &str) -> PyResult<Vec<(String, String)>> {
    clearway::group(&Laboratory::new(), name).map_err(wrong)
}

/// Text of a scenario or of a plan of jobs.
#[pyfunction]
pub(crate) fn show(name: &str) -> PyResult<String> {
    shown(&Laboratory::new(), name, false, &[]).map_err(wrong)
}

/// Runs the command line with these arguments and returns the exit code. `program` is the command that starts the program again.
#[pyfunction]
pub(crate) fn main(
    py: Python<'_>,
    program: Vec<OsString>,
    arguments: Vec<OsString>,
) -> PyResult<u8> {
    let code = without_lock(py, || main_from(&Laboratory::new(), program, arguments))?;
    // `ExitCode` has no method that returns its number, but it can be compared.
    let number = (0..=u8::MAX).find(|number| ExitCode::from(*number) == code);
    Ok(number.unwrap_or(3))
}

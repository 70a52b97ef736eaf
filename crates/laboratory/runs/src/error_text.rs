//! Errors and defects in words, for programs in all languages.

use std::any::Any;
use std::error::Error;

/// An error and its causes on one line.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// Text of a caught panic, which is a defect of Clearway, and the request to report it.
pub fn defect_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("an invariant broke");
    format!("{text}\n  fix: this is a defect of clearway; please report it with the scenario")
}

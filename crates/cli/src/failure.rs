//! What can go wrong, and the exit code for it.

use clearway_lab::ScenarioError;
use std::error::Error;
use std::process::ExitCode;

/// A command that cannot do what it was asked.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// Says what is wrong; the user's to mend.
    pub(crate) fn report(self) -> ExitCode {
        eprintln!("error: {}", self.0);
        ExitCode::from(2)
    }
}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        Self(error.to_string())
    }
}

/// An error and its causes on one line.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

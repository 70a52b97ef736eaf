//! Failures of commands, and their exit code.

use crate::messages::say;
use clearway_lab::ScenarioError;
pub(crate) use clearway_runs::with_causes;
use std::error::Error;
use std::fmt;
use std::process::ExitCode;

/// Failure of a command: invalid input, or an output that cannot be written, for example because the disk is full. The user can fix both,
/// so the exit code is 2.
#[derive(Debug)]
pub struct Failure(Vec<String>);

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(vec![message.into()])
    }

    /// Fails with all failures among the results, if there are any.
    pub(crate) fn all(results: impl IntoIterator<Item = Result<(), Self>>) -> Result<(), Self> {
        let failed = results.into_iter().filter_map(Result::err);
        let messages: Vec<String> = failed.flat_map(|failure| failure.0).collect();
        match messages.is_empty() {
            true => Ok(()),
            false => Err(Self(messages)),
        }
    }

    /// The fault without the fix.
    pub(crate) fn first_line(&self) -> &str {
        let first = self.0.first().and_then(|message| message.lines().next());
        first.unwrap_or_default()
    }

    /// Text of the failure.
    pub(crate) fn errors(&self) -> String {
        let lines = self.0.iter().map(|message| format!("error: {message}"));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Prints the failure.
    pub(crate) fn report(self) -> ExitCode {
        say(&self.errors());
        ExitCode::from(2)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl Error for Failure {}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        Self::new(error.to_string())
    }
}

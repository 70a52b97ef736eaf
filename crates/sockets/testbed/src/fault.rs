//! Faults that the user can fix.

use std::fmt;

/// Fault: the problem and its fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Fault, and its place.
    pub what: String,
    /// Fix for the user.
    pub fix: String,
}

impl Fault {
    /// A fault with its fix.
    pub fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            fix: fix.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  fix: {}", self.what, self.fix)
    }
}

impl std::error::Error for Fault {}

impl From<clearway_lab::ScenarioError> for Fault {
    fn from(error: clearway_lab::ScenarioError) -> Self {
        let text = error.to_string();
        match text.split_once("\n  fix: ") {
            Some((what, fix)) => Self::new(what, fix),
            None => Self::new(text, "see `clearway explain scenario`"),
        }
    }
}

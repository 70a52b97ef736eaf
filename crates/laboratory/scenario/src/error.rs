//! Errors in the user's input.

use clearway_formats::{KnownFile, head};
use clearway_input::{InputError, STANDARD_INPUT};
use clearway_units::{nearest, suggestion};
use clearway_workload::{FileError, WorkloadError};
use std::fmt;
use std::path::Path;

/// Place in the user's input: a line, an override or the scenario as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceLocation {
    /// A line of a scenario file, counted from 1.
    Line {
        /// The file, as the user named it.
        file: String,
        /// The line.
        line: usize,
    },
    /// An option `--set KEY=VALUE`, as written.
    Override(String),
    /// The scenario as a whole.
    Whole {
        /// The file or built-in name.
        file: String,
    },
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(f, "{file}:{line}"),
            Self::Override(text) => write!(f, "--set {text}"),
            Self::Whole { file } => f.write_str(file),
        }
    }
}

/// Error of a scenario that cannot run and that the user has to fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    /// Place of the error, if the error has a single place.
    pub place: Option<SourceLocation>,
    /// Description of the error, the key included.
    pub message: String,
    /// Suggested fix.
    pub fix: String,
    /// The faulty keys. The scenario finds the place of the error from them if the error has none.
    pub keys: Vec<&'static str>,
    /// The unknown key, if the error is about one.
    pub(crate) unknown: Option<Box<UnknownKey>>,
}

/// A key that its section does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnknownKey {
    pub(crate) section: String,
    pub(crate) key: String,
}

impl ScenarioError {
    /// An error about the keys of a section, without its place.
    pub fn about(
        keys: &[&'static str],
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            place: None,
            message: message.into(),
            fix: fix.into(),
            keys: keys.to_vec(),
            unknown: None,
        }
    }

    /// An error about the unreadable file `name`.
    pub fn unreadable(name: &str, error: &InputError) -> Self {
        let file = match name {
            STANDARD_INPUT => "standard input".into(),
            name => name.into(),
        };
        match *error {
            InputError::NotText { line } => {
                let head = head(Path::new(name)).unwrap_or_default();
                if let Some(known) = KnownFile::named(name, &head) {
                    let what = format!("this is {}, and not TOML", known.what());
                    return Self::at(&SourceLocation::Whole { file }, what, known.fix(name));
                }
                let place = SourceLocation::Line { file, line };
                Self::at(&place, "this is not plain text (UTF-8)", error.fix())
            }
            _ => Self::at(
                &SourceLocation::Whole { file },
                error.to_string(),
                error.fix(),
            ),
        }
    }

    /// An error about the unreadable file `name`, where a built-in name is also valid; with the kind of built-in thing and all names.
    pub fn no_file<'a>(
        name: &str,
        error: &InputError,
        what: &str,
        builtin: impl Iterator<Item = &'a str> + Clone,
    ) -> Self {
        if !error.is_missing() {
            return Self::unreadable(name, error);
        }
        let known: Vec<&str> = builtin.clone().collect();
        let known = format!(
            "give the path of a TOML file or a built-in {what}: {}",
            known.join(", ")
        );
        Self::at(
            &SourceLocation::Whole { file: name.into() },
            format!("there is no such file or built-in {what}"),
            suggestion(nearest(name, builtin), &known),
        )
    }

    /// An error at a place.
    pub fn at(place: &SourceLocation, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            place: Some(place.clone()),
            message: message.into(),
            fix: fix.into(),
            keys: Vec::new(),
            unknown: None,
        }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        write!(f, "{}\n  fix: {}", self.message, self.fix)
    }
}

impl std::error::Error for ScenarioError {}

impl From<FileError> for ScenarioError {
    fn from(error: FileError) -> Self {
        Self {
            place: Some(match error.line {
                0 => SourceLocation::Whole { file: error.file },
                line => SourceLocation::Line {
                    file: error.file,
                    line,
                },
            }),
            message: error.message,
            fix: error.fix,
            keys: Vec::new(),
            unknown: None,
        }
    }
}

impl From<WorkloadError> for ScenarioError {
    fn from(error: WorkloadError) -> Self {
        match error {
            WorkloadError::File(error) => error.into(),
            other => {
                let keys: &[&'static str] = match &other {
                    WorkloadError::Setting { key, .. } => &[key],
                    _ => &[],
                };
                Self::about(keys, other.message(), other.fix())
            }
        }
    }
}

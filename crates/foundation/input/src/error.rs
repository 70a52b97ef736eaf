//! Errors of reading, each with its fix.

use clearway_units::Bytes;
use std::io;
use thiserror::Error;

/// Variable of the environment that replaces the limits of all kinds, such as `64GB`.
pub const LIMIT_VARIABLE: &str = "CLEARWAY_INPUT_LIMIT";

/// A file that cannot be read. `Display` is a fragment that completes "FILE: …".
#[derive(Debug, Error)]
pub enum InputError {
    /// The file system refuses the access.
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    /// A device, a pipe, a folder.
    #[error("this is {what}, and only regular files are read")]
    NotAFile {
        /// Type of the entry.
        what: &'static str,
    },
    /// More bytes than the limit of this kind.
    #[error("{}", too_long_text(*.length, *.most, .kind))]
    TooLong {
        /// Length of the file; `None` if it is unknown.
        length: Option<Bytes>,
        /// The limit.
        most: Bytes,
        /// Kind of file, as messages call it.
        kind: &'static str,
    },
    /// Bytes that are not text.
    #[error("line {line} is not plain text (UTF-8)")]
    NotText {
        /// The first line that is not text, counted from 1.
        line: usize,
    },
    /// A limit in the environment that is not a size.
    #[error("the variable {LIMIT_VARIABLE} is `{value}`, which is not a size")]
    NoLimit {
        /// Value of the variable.
        value: String,
    },
}

impl InputError {
    pub(crate) fn too_long(length: Option<u64>, most: Bytes, kind: &'static str) -> Self {
        Self::TooLong {
            length: length.map(Bytes::new),
            most,
            kind,
        }
    }

    /// True if there is no file of this name.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Unreadable(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// Advice on what to do.
    pub fn fix(&self) -> String {
        match self {
            Self::Unreadable(_) => "name a file that exists and that you may read".into(),
            Self::NotAFile { what: "a folder" } => "name a file in it".into(),
            Self::NotAFile { .. } => {
                "name a file; a scenario or a plan can come from standard input, which is called `-`"
                    .into()
            }
            Self::TooLong { .. } => format!(
                "name another file; if it is the right one, set the variable {LIMIT_VARIABLE} of the environment to a size such as `64GB`"
            ),
            Self::NotText { .. } => "name a text file; unpack a compressed one first".into(),
            Self::NoLimit { .. } => "set it to a size such as `64GB`, or unset it".into(),
        }
    }
}

fn too_long_text(length: Option<Bytes>, most: Bytes, kind: &str) -> String {
    match length {
        Some(length) => format!("{length} is more than the limit of {most} for {kind}"),
        None => format!("more bytes than the limit of {most} for {kind}"),
    }
}

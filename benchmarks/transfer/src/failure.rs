//! Failures of the comparison.

use std::fmt;
use std::io;

/// A failure, with what to do about it if that is known.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! failure_from {
    ($($error:ty),+ $(,)?) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self(error.to_string())
            }
        })+
    };
}

failure_from!(
    io::Error,
    serde_json::Error,
    quinn::ConnectionError,
    quinn::ReadError,
    quinn::WriteError,
    quinn::ClosedStream,
    clearway_udp::SendError,
    clearway_udp::net::ConnectError,
);

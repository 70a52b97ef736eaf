//! Ends of connections, and what to do about them.

use crate::wire::VERSION;
use std::fmt;

/// Reason why a connection ended or could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    /// This end closed it.
    #[error("the connection was closed at this end")]
    Here,
    /// The other end closed it, with the code of its application.
    #[error("the other end closed the connection (code {0})")]
    There(u64),
    /// The other end was silent for too long.
    #[error(
        "the other end has been silent for {0}: check that it runs, and that UDP passes in both directions"
    )]
    Silent(clearway_units::Span),
    /// Nobody has answered.
    #[error(
        "nobody answers at {0}: check address and port, that the other end runs, and that UDP passes in both directions"
    )]
    NoAnswer(std::net::SocketAddr),
    /// The other end has another key.
    #[error("the other end has another key: give both ends the same one")]
    Key,
    /// The other end has no version in common with this one.
    #[error(
        "the other end speaks {theirs} of STrack over UDP, this one version {VERSION}: use the same release at both ends"
    )]
    Version {
        /// Versions of the other end.
        theirs: Versions,
    },
    /// Encryption at one end only.
    #[error(
        "one end is insecure and the other is not: use a key at both ends, or `--insecure` at both"
    )]
    Security,
    /// The other end has too many connections.
    #[error("the other end has as many connections as it allows: close some, or raise its limits")]
    Busy,
    /// The other end asks for what does not exist here.
    #[error(
        "the ends do not agree on the parameters of a connection: use the same release at both ends"
    )]
    Parameters,
    /// The other end broke the protocol.
    #[error("the other end broke the protocol: {0}")]
    Violation(&'static str),
}

/// A list of versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versions(pub Vec<u32>);

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<_> = self.0.iter().map(u32::to_string).collect();
        let word = if numbers.len() == 1 {
            "version"
        } else {
            "versions"
        };
        write!(f, "{word} {}", numbers.join(", "))
    }
}

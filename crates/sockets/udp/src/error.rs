//! Reasons for the end of a connection, with advice.

use crate::wire::VERSION;
use clearway_units::Span;
use std::fmt;
use std::net::SocketAddr;

/// Reason why a connection ended or could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// Closed at this end.
    #[error("the connection was closed at this end")]
    Here,
    /// The other end closed it, with the code of its application.
    #[error("the other end closed the connection (code {0})")]
    There(u64),
    /// No packet from the other end for too long.
    #[error("the other end has been silent for {0}")]
    Silent(Span),
    /// No answer to the handshake.
    #[error("nobody answers at {0}")]
    NoAnswer(SocketAddr),
    /// The other end has another key or server name; the handshake does not tell which.
    #[error("the other end has another key or server name")]
    Key,
    /// The other end has no version in common with this one.
    #[error("the other end speaks {theirs} of STrack over UDP, and this one version {VERSION}")]
    Version {
        /// Versions of the other end.
        theirs: Versions,
    },
    /// Encryption at one end only.
    #[error("one end encrypts and the other does not")]
    Security,
    /// The other end has too many connections.
    #[error("the other end has as many connections as it allows")]
    Busy,
    /// The other end asks for a feature that does not exist here.
    #[error("the ends do not agree on the parameters of a connection")]
    Parameters,
    /// The path carries short datagrams but not long ones.
    #[error("datagrams of {bytes} bytes do not pass between the ends, and short ones do")]
    Datagram {
        /// Length of the longest datagrams, as UDP payload.
        bytes: u16,
    },
    /// The other end broke the protocol.
    #[error("the other end broke the protocol: {0}")]
    Violation(&'static str),
}

impl ConnectionError {
    /// True if a later attempt may succeed without a change at this end.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Silent(_) | Self::NoAnswer(_) | Self::Busy)
    }

    /// Advice to the user.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Here => "begin another connection",
            Self::There(_) => "see what the other end says",
            Self::Silent(_) => {
                "see that the other end runs, and that UDP passes in both directions"
            }
            Self::NoAnswer(_) => {
                "see that the other end runs there, and that UDP passes in both directions"
            }
            Self::Key => "give both ends the same key, and the same `--server-name` or none",
            Self::Version { .. } | Self::Parameters | Self::Violation(_) => {
                "use the same release at both ends"
            }
            Self::Datagram { .. } => {
                "give a shorter `--datagram`: the MTU less 28 bytes, or 48 with IPv6"
            }
            Self::Security => "give both ends a key, or neither",
            Self::Busy => "end some of its connections, or try again later",
        }
    }
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

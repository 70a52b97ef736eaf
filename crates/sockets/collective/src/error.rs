//! Errors of groups, with advice.

use crate::wire::CloseReason;
use clearway_udp::ConnectionError;
use clearway_units::Span;
use std::net::SocketAddr;

/// Buffers that do not fit a collective.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BufferError {
    /// One buffer instead of two, or two instead of one.
    #[error("an all-to-all takes two buffers, and everything else one: this is an {0}")]
    Kind(&'static str),
    /// Wrong lengths.
    #[error(
        "the buffers have {} and {} elements, and the collective {} and {}",
        given.0, given.1, wanted.0, wanted.1
    )]
    Length {
        /// Given elements to send, and elements to receive.
        given: (usize, usize),
        /// The lengths of the plan.
        wanted: (usize, usize),
    },
}

/// Reason why joining a group failed, or why a group has ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// The operating system does not give a socket.
    #[error("rank {rank} cannot listen at {address}: {error}")]
    Socket {
        /// The own rank.
        rank: u32,
        /// Address at which the rank should listen.
        address: SocketAddr,
        /// Error of the operating system.
        error: String,
    },
    /// The operating system does not give sockets for connections.
    #[error("rank {rank} cannot connect to rank {to}: {error}")]
    Sockets {
        /// The own rank.
        rank: u32,
        /// The other rank.
        to: u32,
        /// Error of the operating system.
        error: String,
    },
    /// A rank has not connected in time.
    #[error("rank {rank} at {address} has not come up within {wait}{}", others(*.more))]
    Absent {
        /// The first missing rank.
        rank: u32,
        /// Address of the rank.
        address: SocketAddr,
        /// Time for which this rank has waited.
        wait: Span,
        /// Number of further missing ranks.
        more: usize,
    },
    /// A rank refuses the connection.
    #[error("rank {rank} at {address} cannot be reached: {closed}")]
    Refused {
        /// The rank.
        rank: u32,
        /// Address of the rank.
        address: SocketAddr,
        /// Reason of the connection's end.
        closed: ConnectionError,
    },
    /// The connection to a rank has ended.
    #[error("rank {rank} at {address} is lost: {closed}")]
    Lost {
        /// The rank.
        rank: u32,
        /// Address of the rank.
        address: SocketAddr,
        /// Reason of the connection's end.
        closed: ConnectionError,
    },
    /// Another rank has ended the group.
    #[error("rank {by} has ended the group: {ending}")]
    Ended {
        /// The rank that reports the end.
        by: u32,
        /// Reason of the rank.
        ending: CloseReason,
    },
    /// A rank has left, but this rank still needs it.
    #[error("rank {rank} at {address} has left the group, and this rank still needs it")]
    Left {
        /// The rank.
        rank: u32,
        /// Address of the rank.
        address: SocketAddr,
    },
    /// Another rank has a different task.
    #[error("the ranks do not agree: rank {rank} has {theirs}, and rank {own} has {ours}")]
    Disagreement {
        /// The other rank.
        rank: u32,
        /// Value at the other rank.
        theirs: String,
        /// The own rank.
        own: u32,
        /// Value at this rank.
        ours: String,
    },
    /// Two processes claim the same rank.
    #[error("rank {rank} has come twice: from {first}, and from {second}")]
    Twice {
        /// The rank.
        rank: u32,
        /// Address of the first process.
        first: SocketAddr,
        /// Address of the second process.
        second: SocketAddr,
    },
    /// A rank violates the protocol.
    #[error("rank {rank} at {address} broke the protocol: {what}")]
    Violation {
        /// The rank.
        rank: u32,
        /// Address of the rank.
        address: SocketAddr,
        /// Description of the fault.
        what: String,
    },
    /// The list of ranks or this rank's number is wrong.
    #[error("{0}")]
    Members(String),
    /// The collective cannot be built.
    #[error("{message}")]
    Plan {
        /// Description of the fault.
        message: String,
        /// Suggested fix.
        fix: String,
    },
    /// The buffers do not fit. The group stays usable.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// The caller has stopped waiting.
    #[error("the collective was interrupted")]
    Interrupted,
}

fn others(more: usize) -> String {
    match more {
        0 => String::new(),
        1 => ", nor has one other".to_owned(),
        more => format!(", nor have {more} others"),
    }
}

impl GroupError {
    /// Advice to the user.
    pub fn fix(&self) -> String {
        match self {
            Self::Socket { .. } => {
                "give an address of this host and a port that is free, or end the program that uses it"
            }
            Self::Sockets { .. } => "allow more open files, or give connections fewer paths",
            Self::Absent { .. } => {
                "see that it runs there, with the same list of ranks and the same key, and that UDP passes in both directions"
            }
            Self::Refused { closed, .. } | Self::Lost { closed, .. } => closed.fix(),
            Self::Ended { by, .. } => return format!("see what rank {by} says"),
            Self::Left { .. } => "let all ranks call the same collectives in the same order",
            Self::Disagreement { .. } => {
                "give all ranks the same list of ranks and the same arguments, and let them call the same collectives in the same order"
            }
            Self::Twice { .. } => "give each process a rank of its own",
            Self::Violation { .. } => "use the same release at all ranks",
            Self::Members(_) => "give the addresses of all ranks, and one of their numbers",
            Self::Plan { fix, .. } => return fix.clone(),
            Self::Buffer(_) => "give buffers of these lengths",
            Self::Interrupted => "join the group again",
        }
        .to_owned()
    }

    /// Error for a connection that has ended. If the other rank only passes on a failure, the error names the rank that failed.
    pub(crate) fn of_end(rank: u32, address: SocketAddr, closed: ConnectionError) -> Self {
        let ending = match closed {
            ConnectionError::There(code) => CloseReason::from_code(code),
            _ => None,
        };
        match ending {
            Some(CloseReason::FailedElsewhere(by)) => Self::Ended {
                by,
                ending: CloseReason::Failed,
            },
            Some(ending) => Self::Ended { by: rank, ending },
            None => Self::Lost {
                rank,
                address,
                closed,
            },
        }
    }

    /// True if the connection ended because the rank has finished and left.
    pub(crate) fn is_leave(&self) -> bool {
        matches!(
            self,
            Self::Ended {
                ending: CloseReason::Done,
                ..
            }
        )
    }

    /// Reason to tell the other ranks.
    pub(crate) fn ending(&self) -> CloseReason {
        match self {
            Self::Lost { rank, .. } => CloseReason::Lost(*rank),
            Self::Absent { rank, .. } => CloseReason::Absent(*rank),
            Self::Refused { rank, .. } => CloseReason::Refused(*rank),
            Self::Left { rank, .. } => CloseReason::Left(*rank),
            Self::Ended {
                by,
                ending: CloseReason::Failed,
            } => CloseReason::FailedElsewhere(*by),
            Self::Ended { ending, .. } => *ending,
            Self::Disagreement { rank, .. } => CloseReason::Disagreement(*rank),
            Self::Twice { rank, .. } => CloseReason::Twice(*rank),
            Self::Violation { rank, .. } => CloseReason::Violation(*rank),
            _ => CloseReason::Failed,
        }
    }
}

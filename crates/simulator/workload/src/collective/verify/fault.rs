//! Faults of a collective.

use crate::{GraphError, Rank, TaskId};
use clearway_units::Bytes;
use std::fmt;
use std::ops::Range;

/// Fault by which a collective fails to achieve its operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CollectiveFault {
    /// The graph cannot run.
    Graph(GraphError),
    /// There are more or fewer moves than tasks.
    Moves {
        /// Number of moves.
        moves: usize,
        /// Number of tasks.
        tasks: usize,
    },
    /// The ranges of a message have not as many bytes as the message.
    Scattered {
        /// The message.
        message: TaskId,
    },
    /// The root or the server does not exist, there are no ranks or no bytes, or more than 64 bits can count.
    Operation,
    /// A message beyond the end of the buffer.
    Outside {
        /// The message.
        message: TaskId,
        /// Bytes that the message carries.
        range: Range<Bytes>,
        /// Bytes of the buffer.
        size: Bytes,
    },
    /// A message sends bytes that its sender does not have, or adds to bytes that its receiver does not have.
    Unset {
        /// The message.
        message: TaskId,
        /// The rank that does not have them.
        rank: Rank,
        /// The bytes.
        range: Range<Bytes>,
    },
    /// A message adds data that the sum already has.
    Twice {
        /// The message.
        message: TaskId,
        /// The rank to whose buffer it adds.
        rank: Rank,
        /// The bytes.
        range: Range<Bytes>,
        /// The rank whose data is counted twice.
        contributor: Rank,
    },
    /// Two messages that touch the same bytes of a rank, in an order that nothing fixes.
    Race {
        /// The rank.
        rank: Rank,
        /// The bytes.
        range: Range<Bytes>,
        /// The messages.
        messages: [TaskId; 2],
    },
    /// In the end a rank lacks data.
    Missing {
        /// The rank.
        rank: Rank,
        /// The bytes.
        range: Range<Bytes>,
        /// The rank whose data is missing.
        contributor: Rank,
    },
}

impl fmt::Display for CollectiveFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = |range: &Range<Bytes>| {
            format!("bytes {} to {}", range.start.as_u64(), range.end.as_u64())
        };
        match self {
            Self::Graph(error) => error.fmt(f),
            Self::Moves { moves, tasks } => write!(f, "{moves} moves for {tasks} tasks"),
            Self::Scattered { message } => {
                write!(f, "message {} has other bytes than its ranges", message.0)
            }
            Self::Operation => f.write_str("an operation that these ranks cannot do"),
            Self::Outside {
                message,
                range,
                size,
            } => {
                let bytes = bytes(range);
                let size = size.as_u64();
                write!(f, "message {} carries {bytes} of {size}", message.0)
            }
            Self::Unset {
                message,
                rank,
                range,
            } => {
                let bytes = bytes(range);
                write!(
                    f,
                    "message {} uses {bytes} of rank {rank}, which are not there yet",
                    message.0
                )
            }
            Self::Twice {
                message,
                rank,
                range,
                contributor,
            } => {
                let bytes = bytes(range);
                write!(
                    f,
                    "message {} adds the data of rank {contributor} again to {bytes} of rank {rank}",
                    message.0
                )
            }
            Self::Race {
                rank,
                range,
                messages: [first, second],
            } => {
                let bytes = bytes(range);
                write!(
                    f,
                    "messages {} and {} both touch {bytes} of rank {rank}, in any order",
                    first.0, second.0
                )
            }
            Self::Missing {
                rank,
                range,
                contributor,
            } => {
                let bytes = bytes(range);
                write!(
                    f,
                    "{bytes} of rank {rank} lack the data of rank {contributor}"
                )
            }
        }
    }
}

impl std::error::Error for CollectiveFault {}

/// A range as faults name it.
pub(super) fn named(range: &Range<u64>) -> Range<Bytes> {
    Bytes::new(range.start)..Bytes::new(range.end)
}

//! Messages between ranks outside the graph, tags, and close codes of connections.
//!
//! A tag has the kind of a message in its first 8 bits, the number of the collective in the group in the next 24, and the number of the
//! message in the graph in the last 32. Numbers of collectives wrap after 2^24.

use crate::plan::{Algorithm, BufferOperation, CollectivePlan, ELEMENT};
use std::fmt;

/// Version of the protocol between ranks.
const VERSION: u32 = 1;
/// Longest text about a task in a greeting.
pub(crate) const MOST_TEXT: usize = 1024;
/// Count of distinct collective numbers.
const NUMBERS: u32 = 1 << 24;

/// Number of a collective in its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sequence(u32);

impl Sequence {
    /// Number of a collective before the first.
    pub(crate) const START: Self = Self(0);

    pub(crate) fn next(self) -> Self {
        Self((self.0 + 1) % NUMBERS)
    }
}

/// Meaning of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    /// The first message in each direction of a connection.
    Greeting,
    /// A collective begins at the sender.
    Begin(Sequence),
    /// A message of the graph.
    Message(Sequence, u32),
}

impl Tag {
    pub(crate) fn code(self) -> u64 {
        let (kind, sequence, message) = match self {
            Self::Greeting => (1, 0, 0),
            Self::Begin(sequence) => (2, sequence.0, 0),
            Self::Message(sequence, message) => (3, sequence.0, message),
        };
        kind << 56 | u64::from(sequence) << 32 | u64::from(message)
    }

    pub(crate) fn from_code(code: u64) -> Option<Self> {
        let sequence = Sequence((code >> 32) as u32 & (NUMBERS - 1));
        match (code >> 56, code as u32) {
            (1, 0) if sequence.0 == 0 => Some(Self::Greeting),
            (2, 0) => Some(Self::Begin(sequence)),
            (3, message) => Some(Self::Message(sequence, message)),
            _ => None,
        }
    }
}

/// The first message in each direction of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Greeting {
    /// Rank of the sender.
    pub(crate) rank: u32,
    /// Number of ranks in its list.
    pub(crate) ranks: u32,
    /// Task of the sender, which must be equal at all ranks.
    pub(crate) task: String,
}

impl Greeting {
    pub(crate) fn write(&self) -> Vec<u8> {
        let numbers = [VERSION, self.rank, self.ranks];
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_be_bytes()).collect();
        bytes.extend_from_slice(self.task.as_bytes());
        bytes
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (numbers, task) = bytes.split_at_checked(12)?;
        let [version, rank, ranks] =
            [0, 4, 8].map(|at| u32::from_be_bytes(std::array::from_fn(|i| numbers[at + i])));
        let text = (task.len() <= MOST_TEXT).then_some(task)?;
        let task = std::str::from_utf8(text).ok()?.to_owned();
        (version == VERSION).then_some(Self { rank, ranks, task })
    }
}

/// The collective that begins at a rank; the other ranks compare it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Begin(Vec<u8>);

impl Begin {
    pub(crate) fn from_plan(plan: &CollectivePlan) -> Self {
        let algorithm = plan.algorithm();
        let numbers = [plan.count(), plan.chunk()].map(|number| number as u64);
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_be_bytes()).collect();
        bytes.extend_from_slice(algorithm.operation().name().as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(algorithm.name().as_bytes());
        Self(bytes)
    }

    pub(crate) fn read(bytes: Vec<u8>) -> Option<Self> {
        let (_, names) = bytes.split_at_checked(16)?;
        let (operation, algorithm) = std::str::from_utf8(names).ok()?.split_once(' ')?;
        Algorithm::named(BufferOperation::named(operation)?, algorithm).ok()?;
        Some(Self(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Begin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| self.0[at + i]));
        let names = String::from_utf8_lossy(&self.0[16..]);
        let (operation, algorithm) = names.split_once(' ').unwrap_or_default();
        let chunk = number(8).saturating_mul(ELEMENT as u64);
        write!(
            f,
            "an {operation} by {algorithm} of {} elements in messages of {chunk} bytes",
            number(0)
        )
    }
}

/// Reason why a rank closes its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// The rank has finished all collectives.
    Done,
    /// The rank itself has failed.
    Failed,
    /// The rank has lost the connection to another rank.
    Lost(u32),
    /// A rank has not connected.
    Absent(u32),
    /// A rank has refused its connection.
    Refused(u32),
    /// A rank has left too early.
    Left(u32),
    /// The rank does not agree with another rank.
    Disagreement(u32),
    /// A rank has connected twice.
    Twice(u32),
    /// A rank has broken the protocol.
    Violation(u32),
    /// Another rank has failed, and this rank passes it on.
    FailedElsewhere(u32),
}

impl CloseReason {
    /// First close code of ranks: a rank does not send other codes.
    const BASE: u64 = 0x636c_0000_0000_0000;

    pub(crate) fn code(self) -> u64 {
        let (kind, rank) = match self {
            Self::Done => (1, 0),
            Self::Failed => (2, 0),
            Self::Lost(rank) => (3, rank),
            Self::Absent(rank) => (4, rank),
            Self::Refused(rank) => (5, rank),
            Self::Left(rank) => (6, rank),
            Self::Disagreement(rank) => (7, rank),
            Self::Twice(rank) => (8, rank),
            Self::Violation(rank) => (9, rank),
            Self::FailedElsewhere(rank) => (10, rank),
        };
        Self::BASE | kind << 32 | u64::from(rank)
    }

    pub(crate) fn from_code(code: u64) -> Option<Self> {
        let rank = code as u32;
        let kind = (code ^ Self::BASE) >> 32;
        Some(match (kind, rank) {
            (1, 0) => Self::Done,
            (2, 0) => Self::Failed,
            (3, rank) => Self::Lost(rank),
            (4, rank) => Self::Absent(rank),
            (5, rank) => Self::Refused(rank),
            (6, rank) => Self::Left(rank),
            (7, rank) => Self::Disagreement(rank),
            (8, rank) => Self::Twice(rank),
            (9, rank) => Self::Violation(rank),
            (10, rank) => Self::FailedElsewhere(rank),
            _ => return None,
        })
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => write!(f, "it is through"),
            Self::Failed => write!(f, "it has failed"),
            Self::Lost(rank) => write!(f, "it has lost rank {rank}"),
            Self::Absent(rank) => write!(f, "rank {rank} has not come up"),
            Self::Refused(rank) => write!(f, "it cannot reach rank {rank}"),
            Self::Left(rank) => write!(f, "rank {rank} has left too early"),
            Self::Disagreement(rank) => write!(f, "it does not agree with rank {rank}"),
            Self::Twice(rank) => write!(f, "rank {rank} has come twice"),
            Self::Violation(rank) => write!(f, "rank {rank} broke the protocol"),
            Self::FailedElsewhere(rank) => write!(f, "rank {rank} has failed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn greetings_and_beginnings_are_read_as_they_are_written() {
        let greeting = Greeting {
            rank: 3,
            ranks: 8,
            task: "all-reduce".into(),
        };
        assert_eq!(Greeting::read(&greeting.write()), Some(greeting.clone()));
        let mut other = greeting.write();
        other[3] = 2;
        assert_eq!(Greeting::read(&other), None);
        let ring = Algorithm::default_of(BufferOperation::AllReduce);
        let begin = Begin::from_plan(&CollectivePlan::new(ring, 2, 100, Some(10)).unwrap());
        assert_eq!(Begin::read(begin.bytes().to_vec()), Some(begin.clone()));
        assert_eq!(
            begin.to_string(),
            "an all-reduce by ring of 100 elements in messages of 40 bytes"
        );
    }

    #[test]
    fn numbers_of_collectives_begin_again() {
        let last = Sequence(NUMBERS - 1);
        assert_eq!(last.next(), Sequence::START);
        assert_eq!(
            Tag::from_code(Tag::Begin(last).code()),
            Some(Tag::Begin(last))
        );
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..2000), code in any::<u64>()) {
            let _ = Greeting::read(&bytes);
            if let Some(begin) = Begin::read(bytes) {
                let _ = begin.to_string();
            }
            if let Some(tag) = Tag::from_code(code) {
                prop_assert_eq!(tag.code(), code);
            }
            if let Some(ending) = CloseReason::from_code(code) {
                prop_assert_eq!(ending.code(), code);
            }
        }

        #[test]
        fn tags_and_endings_come_back(sequence in 0..NUMBERS, message in any::<u32>(), kind in 1u64..11) {
            let tag = Tag::Message(Sequence(sequence), message);
            prop_assert_eq!(Tag::from_code(tag.code()), Some(tag));
            let rank = if kind < 3 { 0 } else { message };
            let code = CloseReason::BASE | kind << 32 | u64::from(rank);
            prop_assert_eq!(CloseReason::from_code(code).map(CloseReason::code), Some(code));
        }
    }
}

//! Operations of each rank of a job, as traces list them: sends and receives apart, and calls of collectives.
//!
//! A [`JobProgram`] becomes a [`Graph`] in three steps:
//!
//! 1. Each receive finds its send. A receive takes the first message that fits, by sender and tag, of those that no receive before it
//!    has taken; *before* means the order in which the rank lists its operations or, where they wait for later ones, the order with the
//!    lowest number first among those that can run. Messages of one sender keep their order. MPI matches so for a rank that begins its
//!    operations one after the other; operations of a rank that wait for nothing of each other may overtake in a run of MPI, and never
//!    do here. A receive from any sender is accepted if at its turn only one sender has a message for it: then every order of arrival
//!    gives the same. Otherwise it is refused, because the match would depend on the network.
//! 2. Each collective call is matched with the calls of the other ranks of its group: the first call of each rank on that group, the second
//!    call of each, and so on.
//! 3. The tasks are added in an order in which each comes after its dependencies: the next is the first possible operation of the lowest
//!    rank that has one.
//!
//! The operations become tasks in this way:
//!
//! * A send and its receive become one message. For the sender it is over when it is acknowledged. An operation that waits for the receive
//!   waits for the arrival of all bytes, and for the dependencies of the receive. The message does not wait for the receive: it finds a
//!   buffer.
//! * A receive has begun when all its dependencies are over.
//! * A message of a rank to itself takes no time.
//! * A message of no bytes carries one, as a message needs a packet.
//! * A collective call begins when all its dependencies are over; the caller's `expand` makes messages of it, for example by
//!   [embedding](CollectiveCall::embed) the graph of an algorithm. A call of no bytes (except a barrier) and a call in a group of one rank
//!   send nothing and do not wait.
//! * All ranks of a call bring in the same size. An all-to-all in which ranks bring in different sizes, as in a mixture of experts, is
//!   refused: the algorithms here cut equal arrays into equal parts.

mod collectives;
mod embed;
mod error;
mod graph;
mod longer;
mod matching;
#[cfg(test)]
mod tests;

use crate::graph::{Graph, Rank, TaskId};
use clearway_units::{Bytes, Span, choices};
use std::fmt;

pub use collectives::Collective;
pub use error::ProgramError;
pub use longer::LongerReceives;

choices! {
    /// Kind of a collective that the ranks of a group call together.
    pub enum CollectiveKind {
        /// Each has the sum of all arrays.
        AllReduce = "all-reduce",
        /// Each has the parts of all.
        AllGather = "all-gather",
        /// Each has its part of the sum of all arrays.
        ReduceScatter = "reduce-scatter",
        /// Each has a part of everyone's array.
        AllToAll = "all-to-all",
        /// Each has the first rank's array.
        Broadcast = "broadcast",
        /// The first rank has the sum of all arrays.
        Reduce = "reduce",
        /// The first rank has the parts of all.
        Gather = "gather",
        /// Each has its part of the first rank's array.
        Scatter = "scatter",
        /// No rank goes on before all have come.
        Barrier = "barrier",
    }
}

/// Operation of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Keeps a unit of the rank busy; without time, it joins its dependencies.
    Compute {
        /// Unit that computes.
        unit: u8,
        /// Time of the computation.
        span: Span,
    },
    /// Sends a message.
    Send {
        /// Receiving rank.
        to: Rank,
        /// Size of the message.
        bytes: Bytes,
        /// Tag by which the receiver tells the message from others.
        tag: u32,
    },
    /// Receives a message.
    Receive {
        /// Sending rank; nothing for any rank.
        from: Option<Rank>,
        /// Maximum size of the message.
        bytes: Bytes,
        /// Tag of the message; nothing for any.
        tag: Option<u32>,
    },
    /// Takes part in a collective.
    Collective {
        /// Kind of the collective.
        kind: CollectiveKind,
        /// Size of the collective; see [`CollectiveCall::bytes`].
        bytes: Bytes,
        /// Group of ranks that take part: an index into [`JobProgram::groups`].
        group: u32,
    },
}

/// Dependency of an operation on another one of its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperationDependency {
    /// Number of the other operation.
    pub operation: u32,
    /// True if the other operation need only have begun.
    pub is_begun: bool,
}

impl OperationDependency {
    /// Wait until `operation` is over.
    pub const fn over(operation: u32) -> Self {
        Self {
            operation,
            is_begun: false,
        }
    }

    /// Wait until `operation` has begun.
    pub const fn begun(operation: u32) -> Self {
        Self {
            operation,
            is_begun: true,
        }
    }
}

/// The operations of one rank, numbered from zero.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RankProgram {
    operations: Vec<Operation>,
    /// Index of the first wait of each operation, and one more.
    first_wait: Vec<u32>,
    waits: Vec<OperationDependency>,
}

impl RankProgram {
    /// Creates a program of `operations`. Each pair of `waits` names an operation and its dependency. A wait that is named twice counts
    /// once.
    ///
    /// # Panics
    /// If a wait names an operation that does not exist, or with 2^31 operations or 2^32 waits.
    pub fn new(operations: Vec<Operation>, mut waits: Vec<(u32, OperationDependency)>) -> Self {
        let count = operations.len();
        assert!(count < 1 << 31, "a rank has less than 2^31 operations");
        assert!(u32::try_from(waits.len()).is_ok(), "less than 2^32 waits");
        waits.sort_unstable();
        waits.dedup();
        let mut first_wait = vec![0u32; count + 1];
        for (who, wait) in &waits {
            assert!((wait.operation as usize) < count, "no such operation");
            first_wait[*who as usize + 1] += 1;
        }
        for index in 0..count {
            first_wait[index + 1] += first_wait[index];
        }
        Self {
            operations,
            first_wait,
            waits: waits.into_iter().map(|(_, wait)| wait).collect(),
        }
    }

    /// Operations of the rank.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Dependencies of `operation`, by number.
    ///
    /// # Panics
    /// If the rank has no such operation.
    pub fn waits(&self, operation: u32) -> &[OperationDependency] {
        let index = operation as usize;
        &self.waits[self.first_wait[index] as usize..self.first_wait[index + 1] as usize]
    }
}

/// Operations of the ranks of a job; see the [module](self).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobProgram {
    /// The operations of each rank.
    pub ranks: Vec<RankProgram>,
    /// The ranks of each group that collective calls name, in the order of their places in it.
    pub groups: Vec<Vec<Rank>>,
}

/// Identifier of an operation of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperationId {
    /// Rank of the operation.
    pub rank: Rank,
    /// Number of the operation in its rank.
    pub index: u32,
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "operation {} of rank {}", self.index, self.rank)
    }
}

impl JobProgram {
    /// The operation that `id` names.
    ///
    /// # Panics
    /// If the program has no such operation.
    pub fn operation(&self, id: OperationId) -> Operation {
        self.ranks[id.rank.index()].operations[id.index as usize]
    }

    /// Every operation with its place.
    pub fn numbered(&self) -> impl Iterator<Item = (OperationId, Operation)> + '_ {
        (0..).zip(&self.ranks).flat_map(|(rank, program)| {
            let rank = Rank(rank);
            let operations = (0..).zip(&program.operations);
            operations.map(move |(index, operation)| (OperationId { rank, index }, *operation))
        })
    }

    /// Number of operations.
    pub fn len(&self) -> usize {
        self.ranks.iter().map(|rank| rank.operations.len()).sum()
    }

    /// True if there are no operations.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One collective of all ranks of a group, for which messages are to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectiveCall<'a> {
    /// Kind of the collective.
    pub kind: CollectiveKind,
    /// The size of the whole array, as nccl-tests counts it: for an all-gather or gather the size of the result, for all others the size
    /// that a rank (for a scatter the first) brings in. Above zero except for a barrier.
    pub bytes: Bytes,
    /// The ranks, at least two.
    pub group: &'a [Rank],
    /// For each rank of the group the task after which it begins.
    pub starts: &'a [TaskId],
}

/// Error of a collective call that cannot become messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpansionFault {
    /// Description of the fault, as a fragment of a sentence.
    pub reason: String,
    /// Suggested fix.
    pub fix: String,
}

/// Makes the messages of a collective call: for each rank of the group, the tasks after which the call is over there, beside its start.
/// All of them are to be seen by that rank.
pub type Expand<'a> =
    dyn FnMut(&CollectiveCall<'_>, &mut Graph) -> Result<Vec<Vec<TaskId>>, ExpansionFault> + 'a;

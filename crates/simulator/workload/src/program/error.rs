//! Errors of programs.

use super::{ExpansionFault, OperationId};
use crate::graph::Rank;
use clearway_units::Bytes;
use std::fmt;

/// Error of a program that cannot run. A reader of traces says how its file calls the operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramError {
    /// An operation names a rank that does not exist.
    NoSuchRank {
        /// The operation.
        operation: OperationId,
        /// The rank.
        rank: Rank,
        /// Number of ranks.
        ranks: u32,
    },
    /// A send that no receive takes.
    NoReceive {
        /// The send.
        send: OperationId,
        /// Receiving rank.
        to: Rank,
        /// Tag of the send.
        tag: u32,
    },
    /// A receive for which no send is left.
    NoSend {
        /// The receive.
        receive: OperationId,
        /// Sending rank, if the receive names one.
        from: Option<Rank>,
        /// Tag of the receive, if it names one.
        tag: Option<u32>,
    },
    /// A receive that takes less than its message brings.
    TooSmall {
        /// The receive.
        receive: OperationId,
        /// Bytes that the receive takes at most.
        takes: Bytes,
        /// The send.
        send: OperationId,
        /// Bytes of the message.
        brings: Bytes,
    },
    /// A receive from any rank for which several have a message.
    Ambiguous {
        /// The receive.
        receive: OperationId,
        /// Two of the senders.
        senders: [Rank; 2],
    },
    /// More bytes from one rank than 64 bits hold.
    TooManyBytes {
        /// The send with which it happened.
        send: OperationId,
    },
    /// More operations than numbers for them.
    TooMany {
        /// The first one too many.
        operation: OperationId,
    },
    /// Operations that wait for one another in a cycle: each for the next, the last for the first.
    Circle {
        /// The operations, at least one.
        operations: Vec<OperationId>,
    },
    /// A collective call of a rank on a group that does not exist or has not that rank.
    NotInGroup {
        /// The call.
        call: OperationId,
    },
    /// A collective call that another rank of the group has no partner for.
    NoCall {
        /// The call.
        call: OperationId,
        /// The rank without a matching call.
        missing: Rank,
    },
    /// Two ranks call different things.
    Differ {
        /// The call of the first rank of the group.
        first: OperationId,
        /// The other call.
        other: OperationId,
        /// Kind and size of each call.
        calls: [String; 2],
    },
    /// An all-to-all into which two ranks bring different sizes.
    Uneven {
        /// The call of the first rank of the group.
        first: OperationId,
        /// The other call.
        other: OperationId,
        /// Bytes that each rank brings in.
        sizes: [Bytes; 2],
    },
    /// A collective of which no messages can be made.
    Expansion {
        /// The call of the first rank of the group.
        call: OperationId,
        /// Reason, and suggested fix.
        fault: ExpansionFault,
    },
}

impl ProgramError {
    /// The operation with which it is reported.
    pub fn operation(&self) -> OperationId {
        match self {
            Self::NoSuchRank { operation, .. } | Self::TooMany { operation } => *operation,
            Self::NoReceive { send, .. } | Self::TooManyBytes { send } => *send,
            Self::NoSend { receive, .. }
            | Self::TooSmall { receive, .. }
            | Self::Ambiguous { receive, .. } => *receive,
            Self::Circle { operations } => operations[0],
            Self::NotInGroup { call }
            | Self::NoCall { call, .. }
            | Self::Expansion { call, .. } => *call,
            Self::Differ { other, .. } | Self::Uneven { other, .. } => *other,
        }
    }

    /// Description of the fault, as a fragment of a sentence, with operations as `name` calls them.
    pub fn message(&self, name: &dyn Fn(OperationId) -> String) -> String {
        match self {
            Self::NoSuchRank {
                operation,
                rank,
                ranks,
            } => {
                let operation = name(*operation);
                format!("{operation} names rank {rank}, but there are {ranks} ranks")
            }
            Self::NoReceive { send, to, tag } => {
                let send = name(*send);
                format!(
                    "{send} sends to rank {to} with tag {tag}, but no receive is left there for it"
                )
            }
            Self::NoSend { receive, from, tag } => {
                let from = from.map_or("any rank".into(), |rank| format!("rank {rank}"));
                let tag = tag.map_or("any tag".into(), |tag| format!("tag {tag}"));
                let receive = name(*receive);
                format!("{receive} receives from {from} with {tag}, but no send is left for it")
            }
            Self::TooSmall {
                receive,
                takes,
                send,
                brings,
            } => too_small_message([name(*receive), name(*send)], [takes, brings]),
            Self::Ambiguous {
                receive,
                senders: [first, second],
            } => format!(
                "{} receives from any rank, and at its turn ranks {first} and {second} both have a message for it: which one comes depends on the network",
                name(*receive)
            ),
            Self::TooManyBytes { send } => {
                format!("with {} its rank sends more than 2^64 bytes", name(*send))
            }
            Self::TooMany { operation } => {
                format!("{} is one more than 2^31 operations", name(*operation))
            }
            Self::Circle { operations } => circle_message(operations, name),
            Self::NotInGroup { call } => {
                let call = name(*call);
                format!("{call} is a collective of a group without its rank")
            }
            Self::NoCall { call, missing } => format!(
                "{} is a collective in which rank {missing} takes no part: it has fewer calls on that group",
                name(*call)
            ),
            Self::Differ {
                first,
                other,
                calls: [called, differs],
            } => {
                let (other, first) = (name(*other), name(*first));
                format!("{other} calls {differs}, but its partner, {first}, {called}")
            }
            Self::Uneven {
                first,
                other,
                sizes,
            } => uneven_message(sizes.map(Bytes::as_u64), [name(*first), name(*other)]),
            Self::Expansion { call, fault } => format!("{}: {}", name(*call), fault.reason),
        }
    }

    /// Suggested fix.
    pub fn fix(&self) -> String {
        match self {
            Self::NoSuchRank { ranks: 0, .. } => "give the trace ranks".into(),
            Self::NoSuchRank { ranks, .. } => format!("name a rank from 0 to {}", ranks - 1),
            Self::NoReceive { to, .. } => {
                format!("add the receive at rank {to}, or remove the send")
            }
            Self::NoSend { .. } => "add the send, or remove the receive".into(),
            Self::TooSmall { brings, .. } => format!(
                "let it take {} B, or check the tags: messages of one rank with one tag come in their order",
                brings.as_u64()
            ),
            Self::Ambiguous { .. } => {
                "name the sender, or give the senders different tags".into()
            }
            Self::TooManyBytes { .. } => "write smaller sizes".into(),
            Self::TooMany { .. } => "split the trace".into(),
            Self::Circle { .. } => "remove one of the dependencies".into(),
            Self::NotInGroup { .. } => "name a group that has the rank".into(),
            Self::NoCall { missing, .. } => format!(
                "check that the trace of rank {missing} is complete and belongs to the same run"
            ),
            Self::Differ { .. } => {
                "check that the traces of all ranks belong to the same run: the calls on a group meet in their order".into()
            }
            Self::Uneven { .. } => {
                "give all ranks of the call one size, such as the mean, or write it as sends and receives".into()
            }
            Self::Expansion { fault, .. } => fault.fix.clone(),
        }
    }
}

fn too_small_message([receive, send]: [String; 2], sizes: [&Bytes; 2]) -> String {
    let [takes, brings] = sizes.map(|size| size.as_u64());
    format!("{receive} takes {takes} B, but the message that comes to it, {send}, has {brings} B")
}

fn uneven_message([size, differs]: [u64; 2], [first, other]: [String; 2]) -> String {
    format!(
        "{other} brings {differs} B into an all-to-all, but its partner, {first}, {size} B: an all-to-all of different sizes is not supported"
    )
}

fn circle_message(operations: &[OperationId], name: &dyn Fn(OperationId) -> String) -> String {
    const SHOWN: usize = 4;
    let mut circle: Vec<String> = operations.iter().take(SHOWN).map(|&id| name(id)).collect();
    if operations.len() > SHOWN {
        circle.push(format!("{} more", operations.len() - SHOWN));
    }
    match circle.as_slice() {
        [alone] => format!("{alone} waits for itself"),
        _ => format!(
            "operations wait for one another in a circle: {}, each for the next and the last for the first",
            circle.join(", ")
        ),
    }
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.message(&|operation| operation.to_string());
        write!(f, "{message}\n  fix: {}", self.fix())
    }
}

impl std::error::Error for ProgramError {}

//! A communication of PyTorch, and the operations that it becomes.

use crate::text::shown;
use clearway_units::Bytes;
use clearway_workload::counted;
use clearway_workload::graph::Rank;
use clearway_workload::program::{CollectiveKind, Operation};

/// Details of a communication, as `record_param_comms` has them.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) name: String,
    kind: Option<Kind>,
    /// Elements that the rank brings in and gets.
    elements: [Option<i64>; 2],
    element: Element,
    pub(super) group_size: Option<i64>,
    /// Name of the group.
    pub(super) group: Option<String>,
    /// Ranks of the group, if all of them are listed.
    pub(super) ranks: Option<Ranks>,
    /// Parts that the rank sends to and gets from each rank of the group.
    splits: [Splits; 2],
    /// The other rank of a send or receive.
    peer: Option<i64>,
    /// Place in the group of the root of a broadcast or reduce, or of the other rank of a send or receive.
    rank: Option<i64>,
}

/// Ranks of a group.
#[derive(Debug, Clone)]
pub(super) enum Ranks {
    Listed(Vec<i64>),
    /// So many ranks at equal distances.
    Regular {
        start: i64,
        stride: i64,
        size: i64,
    },
}

impl Ranks {
    /// The ranks as a list, in a job of `ranks` ranks; `None` for none, or for more than the job has.
    pub(super) fn listed(&self, ranks: u32) -> Option<Vec<i64>> {
        let list = match self {
            Self::Listed(list) => Some(list.clone()),
            &Self::Regular {
                start,
                stride,
                size,
            } => {
                let places = (0..=i64::from(ranks)).contains(&size).then_some(0..size)?;
                let rank = |place| start.checked_add(stride.checked_mul(place)?);
                places.map(rank).collect()
            }
        };
        list.filter(|list| !list.is_empty())
    }
}

/// Parts of an all-to-all.
#[derive(Debug, Clone, PartialEq)]
enum Splits {
    /// None are listed: the parts are equal.
    Equal,
    Listed(Vec<i64>),
    /// The list is cut off.
    CutOff,
}

/// Size of an element.
#[derive(Debug, Clone, PartialEq)]
enum Element {
    Bytes(u64),
    Unknown(String),
    Missing,
}

/// Fields of a [`Call`] as they are in the file.
pub(super) struct CallFields<'a> {
    pub(super) name: &'a str,
    pub(super) elements: [Option<i64>; 2],
    pub(super) element: Option<&'a str>,
    pub(super) group_size: Option<i64>,
    pub(super) group: Option<String>,
    pub(super) ranks: Option<Ranks>,
    /// For each list: nothing if there is none, and nothing within if it is cut off.
    pub(super) splits: [Option<Option<Vec<i64>>>; 2],
    pub(super) peer: Option<i64>,
    pub(super) rank: Option<i64>,
}

/// Kind of a communication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Collective(CollectiveKind),
    Send,
    Receive,
    Wait,
}

/// Fault of a communication, as a fragment of a sentence after its name, and the fix.
#[derive(Debug)]
pub(super) struct CallFault {
    pub(super) message: String,
    pub(super) fix: String,
}

/// Parts of a communication that are not simulated as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Approximation {
    /// The root is not known.
    Root,
    /// The parts of an all-to-all are cut off.
    Parts,
    /// A message of no bytes.
    Empty,
}

/// Names of communications in PyTorch, without all characters but letters.
const KINDS: [(&str, Kind); 27] = {
    use CollectiveKind::{
        AllGather, AllReduce, AllToAll, Barrier, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
    };
    [
        ("allreduce", Kind::Collective(AllReduce)),
        ("allreducecoalesced", Kind::Collective(AllReduce)),
        ("allreducesparse", Kind::Collective(AllReduce)),
        ("allgather", Kind::Collective(AllGather)),
        ("allgatherbase", Kind::Collective(AllGather)),
        ("allgatherv", Kind::Collective(AllGather)),
        ("allgathercoalesced", Kind::Collective(AllGather)),
        ("allgatherintotensor", Kind::Collective(AllGather)),
        ("allgatherintotensorcoalesced", Kind::Collective(AllGather)),
        ("reducescatter", Kind::Collective(ReduceScatter)),
        ("reducescatterbase", Kind::Collective(ReduceScatter)),
        ("reducescatterv", Kind::Collective(ReduceScatter)),
        ("reducescattertensor", Kind::Collective(ReduceScatter)),
        (
            "reducescattertensorcoalesced",
            Kind::Collective(ReduceScatter),
        ),
        ("alltoall", Kind::Collective(AllToAll)),
        ("alltoallv", Kind::Collective(AllToAll)),
        ("alltoallbase", Kind::Collective(AllToAll)),
        ("broadcast", Kind::Collective(Broadcast)),
        ("broadcastoop", Kind::Collective(Broadcast)),
        ("reduce", Kind::Collective(Reduce)),
        ("reduceoop", Kind::Collective(Reduce)),
        ("gather", Kind::Collective(Gather)),
        ("scatter", Kind::Collective(Scatter)),
        ("barrier", Kind::Collective(Barrier)),
        ("send", Kind::Send),
        ("recv", Kind::Receive),
        ("wait", Kind::Wait),
    ]
};

/// Sizes of elements by the name of their type in `c10::ScalarType`.
const ELEMENTS: [(&str, u64); 25] = [
    ("Byte", 1),
    ("Char", 1),
    ("Bool", 1),
    ("QInt8", 1),
    ("QUInt8", 1),
    ("Short", 2),
    ("UInt16", 2),
    ("Half", 2),
    ("BFloat16", 2),
    ("Int", 4),
    ("UInt32", 4),
    ("QInt32", 4),
    ("Float", 4),
    ("ComplexHalf", 4),
    ("Long", 8),
    ("UInt64", 8),
    ("Double", 8),
    ("ComplexFloat", 8),
    ("ComplexDouble", 16),
    ("Float8_e5m2", 1),
    ("Float8_e4m3fn", 1),
    ("Float8_e5m2fnuz", 1),
    ("Float8_e4m3fnuz", 1),
    ("Float8_e8m0fnu", 1),
    // Two values in a byte, which is the element.
    ("Float4_e2m1fn_x2", 1),
];

impl Call {
    pub(super) fn new(fields: CallFields<'_>) -> Self {
        let letters = fields.name.chars().filter(char::is_ascii_alphabetic);
        let letters: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
        let kind = KINDS.iter().find(|(name, _)| *name == letters);
        let known = |name: &str| ELEMENTS.iter().find(|(known, _)| *known == name);
        Self {
            name: fields.name.to_owned(),
            kind: kind.map(|(_, kind)| *kind),
            elements: fields.elements,
            element: match fields.element {
                None => Element::Missing,
                Some(name) => known(name).map_or_else(
                    || Element::Unknown(name.to_owned()),
                    |&(_, bytes)| Element::Bytes(bytes),
                ),
            },
            group_size: fields.group_size,
            group: fields.group,
            ranks: fields.ranks,
            splits: fields.splits.map(|splits| match splits {
                None => Splits::Equal,
                Some(None) => Splits::CutOff,
                Some(Some(list)) if list.is_empty() => Splits::Equal,
                Some(Some(list)) => Splits::Listed(list),
            }),
            peer: fields.peer,
            rank: fields.rank,
        }
    }

    /// True for a wait, which communicates nothing.
    pub(super) fn is_wait(&self) -> bool {
        self.kind == Some(Kind::Wait)
    }

    /// The place of the root in the group, if the call has a root that is known.
    pub(super) fn root(&self) -> Option<usize> {
        use CollectiveKind::{Broadcast, Reduce};
        match self.kind {
            Some(Kind::Collective(Broadcast | Reduce)) => usize::try_from(self.rank?).ok(),
            _ => None,
        }
    }

    /// Adds the operations of rank `own` to `operations`. The group has the number `group` and the ranks `members`, the root first.
    /// Returns the parts that differ from the call.
    pub(super) fn add_operations(
        &self,
        own: Rank,
        (group, members): (u32, &[Rank]),
        operations: &mut Vec<Operation>,
    ) -> Result<Option<Approximation>, CallFault> {
        let place = members.iter().position(|&member| member == own);
        let Some(place) = place else {
            return Err(CallFault {
                message: format!("is a call on a group without rank {own}"),
                fix: "check that each rank has its own file, and name the ranks of the group with `comm-groups`".into(),
            });
        };
        match self.kind {
            Some(Kind::Collective(kind)) => {
                if kind == CollectiveKind::AllToAll && self.has_parts() {
                    return self.add_parts((group, members, place), operations);
                }
                let bytes = match kind {
                    CollectiveKind::Barrier => 0,
                    _ => self.bytes()?,
                };
                let bytes = Bytes::new(bytes);
                operations.push(Operation::Collective { kind, bytes, group });
                Ok(self.lacks_root(kind, members).then_some(Approximation::Root))
            }
            Some(Kind::Send) => {
                let (to, tag) = (self.other(members)?, message_tag(group));
                let bytes = Bytes::new(self.bytes()?);
                operations.push(Operation::Send { to, bytes, tag });
                Ok((bytes == Bytes::ZERO).then_some(Approximation::Empty))
            }
            Some(Kind::Receive) => {
                let from = Some(self.other(members)?);
                let bytes = Bytes::new(self.bytes()?);
                let tag = Some(message_tag(group));
                operations.push(Operation::Receive { from, bytes, tag });
                Ok(None)
            }
            Some(Kind::Wait) => Ok(None),
            None => Err(CallFault {
                message: "is not a known communication".into(),
                fix: "leave it out of the trace, or write it as a collective that PyTorch has with NCCL".into(),
            }),
        }
    }

    /// True if a root matters and is not known.
    fn lacks_root(&self, kind: CollectiveKind, members: &[Rank]) -> bool {
        use CollectiveKind::{Broadcast, Gather, Reduce, Scatter};
        members.len() > 1
            && match kind {
                Broadcast | Reduce => self.root().is_none_or(|root| root >= members.len()),
                Gather | Scatter => true,
                _ => false,
            }
    }

    /// True if the parts of the ranks may differ.
    fn has_parts(&self) -> bool {
        self.splits.iter().any(|splits| *splits != Splits::Equal)
    }

    /// Bytes of an element.
    fn element(&self) -> Result<u64, CallFault> {
        let (message, fix) = match &self.element {
            Element::Bytes(bytes) => return Ok(*bytes),
            Element::Unknown(name) => (
                format!("has elements of the unknown type `{}`", shown(name)),
                "write one of PyTorch's types, such as `Float` or `BFloat16`".into(),
            ),
            Element::Missing => ("has no `dtype`".into(), RECORD_AGAIN.into()),
        };
        Err(CallFault { message, fix })
    }

    /// Elements that the rank brings in (0) or gets (1).
    fn count(&self, side: usize) -> Result<u64, CallFault> {
        const NAMES: [&str; 2] = ["In msg nelems", "Out msg nelems"];
        let number = self.elements[side];
        let count = number.and_then(|number| u64::try_from(number).ok());
        count.ok_or_else(|| CallFault {
            message: match number {
                Some(number) => format!("has {number} as `{}`", NAMES[side]),
                None => format!("has no `{}`", NAMES[side]),
            },
            fix: RECORD_AGAIN.into(),
        })
    }

    /// Bytes of the whole array: the larger of what the rank brings in and gets. These differ for a collective that cuts or joins the
    /// array, whose size is that of the whole.
    fn bytes(&self) -> Result<u64, CallFault> {
        let elements = self.count(0)?.max(self.count(1)?);
        self.product(elements)
    }

    fn product(&self, elements: u64) -> Result<u64, CallFault> {
        let bytes = elements.checked_mul(self.element()?);
        bytes.ok_or_else(|| CallFault {
            message: format!("has {elements} elements, more than 2^64 bytes"),
            fix: "restore the file if it was changed".into(),
        })
    }

    /// The other rank of a send or receive.
    fn other(&self, members: &[Rank]) -> Result<Rank, CallFault> {
        let by_place = self.rank.and_then(|place| usize::try_from(place).ok());
        let other = match self.peer {
            Some(peer) => u32::try_from(peer).ok().map(Rank),
            None => by_place.and_then(|place| members.get(place).copied()),
        };
        let other = other.filter(|other| members.contains(other));
        other.ok_or_else(|| CallFault {
            message: match (self.peer, self.rank) {
                (Some(peer), _) => format!("names rank {peer}, which is not in its group"),
                (None, Some(place)) => format!(
                    "names place {place} of its group of {}",
                    counted(members.len(), "rank")
                ),
                (None, None) => "does not name the other rank".into(),
            },
            fix: "record with PyTorch 2.6 or later, which writes `Dst Rank` and `Src Rank`".into(),
        })
    }

    /// Adds an all-to-all in which the parts may differ, as a message to and from each other rank.
    fn add_parts(
        &self,
        (group, members, place): (u32, &[Rank], usize),
        operations: &mut Vec<Operation>,
    ) -> Result<Option<Approximation>, CallFault> {
        let tag = parts_tag(group);
        let sent = self.parts(0, members.len())?;
        let received = self.parts(1, members.len())?;
        let is_cut_off = sent.is_none() || received.is_none();
        // The next rank of the group comes first, so that the ranks do not all send to the same one.
        let others = (1..members.len()).map(|distance| (place + distance) % members.len());
        for other in others {
            let bytes = match &sent {
                Some(parts) => parts[other],
                None => self.product(self.count(0)? / members.len() as u64)?,
            };
            if bytes > 0 || is_cut_off {
                let (to, bytes) = (members[other], Bytes::new(bytes));
                operations.push(Operation::Send { to, bytes, tag });
            }
        }
        let others =
            (1..members.len()).map(|distance| (place + members.len() - distance) % members.len());
        for other in others {
            let bytes = match &received {
                Some(parts) if !is_cut_off => parts[other],
                _ => u64::MAX,
            };
            if bytes > 0 {
                let (from, bytes, tag) = (Some(members[other]), Bytes::new(bytes), Some(tag));
                operations.push(Operation::Receive { from, bytes, tag });
            }
        }
        Ok(is_cut_off.then_some(Approximation::Parts))
    }

    /// Bytes that the rank sends to (0) or gets from (1) each place of a group of `size` ranks; `None` if the list is cut off.
    fn parts(&self, side: usize, size: usize) -> Result<Option<Vec<u64>>, CallFault> {
        const NAMES: [&str; 2] = ["In split size", "Out split size"];
        let count = self.count(side)?;
        let list = match &self.splits[side] {
            Splits::CutOff => return Ok(None),
            // Equal parts.
            Splits::Equal => vec![1; size],
            Splits::Listed(list) => list.clone(),
        };
        let fault = |message: String| CallFault {
            message,
            fix: "restore the file if it was changed".into(),
        };
        if list.len() != size {
            let message = format!(
                "has {} parts as `{}` in a group of {size} ranks",
                list.len(),
                NAMES[side]
            );
            return Err(fault(message));
        }
        let sum = list.iter().try_fold(0u64, |sum, &part| {
            sum.checked_add(u64::try_from(part).ok()?)
        });
        let Some(sum) = sum else {
            return Err(fault(format!("has a negative part in `{}`", NAMES[side])));
        };
        if sum == 0 {
            return Ok(Some(vec![0; size]));
        }
        // Parts count rows: elements of the first dimension.
        if !count.is_multiple_of(sum) {
            let message = format!(
                "has {count} elements, but the parts of `{}` sum up to {sum}",
                NAMES[side]
            );
            return Err(fault(message));
        }
        let row = count / sum;
        let parts = list
            .into_iter()
            .map(|part| self.product(row.saturating_mul(part as u64)));
        parts.collect::<Result<_, _>>().map(Some)
    }
}

/// Advice about a trace that lacks details.
pub(super) const RECORD_AGAIN: &str =
    "record with PyTorch 2.4 or later, with the activities CPU and CUDA and the backend NCCL";

/// Tag of the messages of sends and receives on a group. Calls on a group are in the same order on all ranks, so they need no other tag.
fn message_tag(group: u32) -> u32 {
    group.wrapping_mul(2)
}

/// Tag of the messages of all-to-alls with different parts on a group.
fn parts_tag(group: u32) -> u32 {
    group.wrapping_mul(2).wrapping_add(1)
}

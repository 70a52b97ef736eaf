//! Matching of the collective calls of all ranks.

use super::matching::{Numbers, order, partners};
use super::{CollectiveKind, JobProgram, Operation, OperationId, ProgramError};
use crate::graph::Rank;
use clearway_units::Bytes;

/// One collective of a program: the calls of all ranks of a group that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collective {
    /// Kind of the collective.
    pub kind: CollectiveKind,
    /// Size of the collective; see [`CollectiveCall::bytes`](super::CollectiveCall::bytes).
    pub bytes: Bytes,
    /// Group of ranks: an index into [`JobProgram::groups`].
    pub group: u32,
    /// Number of each rank's call among its operations, in the order of the group.
    pub calls: Vec<u32>,
}

impl Collective {
    /// True if nothing is sent, and no rank waits for another.
    pub fn is_silent(&self) -> bool {
        is_silent(self.kind, self.bytes, self.calls.len())
    }
}

impl JobProgram {
    /// Collectives of the program, group by group, within a group in the order in which its ranks call them.
    ///
    /// # Errors
    /// The first operation that cannot be matched.
    pub fn collectives(&self) -> Result<Vec<Collective>, ProgramError> {
        let numbers = Numbers::from_program(self)?;
        let orders: Vec<Vec<u32>> = self.ranks.iter().map(order).collect();
        let mut partner = partners(self, &numbers, &orders)?;
        let meetings = meetings(self, &numbers, &orders, &mut partner)?;
        let collective = |meeting: Meeting| Collective {
            kind: meeting.kind,
            bytes: meeting.bytes,
            group: meeting.group,
            calls: meeting
                .calls
                .iter()
                .map(|&number| numbers.id(number).index)
                .collect(),
        };
        Ok(meetings.into_iter().map(collective).collect())
    }
}

fn is_silent(kind: CollectiveKind, bytes: Bytes, ranks: usize) -> bool {
    let is_empty = bytes == Bytes::ZERO && kind != CollectiveKind::Barrier;
    ranks < 2 || is_empty
}

/// One collective: the calls of all ranks of a group.
pub(super) struct Meeting {
    pub(super) kind: CollectiveKind,
    pub(super) bytes: Bytes,
    pub(super) group: u32,
    /// The number of each rank's call, in the order of the group.
    pub(super) calls: Vec<u32>,
}

impl Meeting {
    /// True if nothing is sent, and no rank waits for another.
    pub(super) fn is_silent(&self) -> bool {
        is_silent(self.kind, self.bytes, self.calls.len())
    }
}

/// The collectives of `program`; for each call, `partner` gets the index of its collective.
pub(super) fn meetings(
    program: &JobProgram,
    numbers: &Numbers,
    orders: &[Vec<u32>],
    partner: &mut [u32],
) -> Result<Vec<Meeting>, ProgramError> {
    let mut meetings = Vec::new();
    for (group, calls) in calls(program, orders)?.into_iter().enumerate() {
        let ranks = &program.groups[group];
        let Some(firsts) = calls.first() else {
            continue;
        };
        for (&rank, others) in ranks.iter().zip(&calls) {
            if others.len() != firsts.len() {
                let shared = others.len().min(firsts.len());
                let (longer, missing) = match others.len() > shared {
                    true => (others, ranks[0]),
                    false => (firsts, rank),
                };
                let call = longer[shared];
                return Err(ProgramError::NoCall { call, missing });
            }
        }
        for (turn, &first) in firsts.iter().enumerate() {
            let (kind, bytes) = called(program, first);
            let index = meetings.len() as u32;
            let mut meeting = Meeting {
                kind,
                bytes,
                group: group as u32,
                calls: Vec::with_capacity(calls.len()),
            };
            for others in &calls {
                let other = others[turn];
                if called(program, other) != (kind, bytes) {
                    return Err(differ(program, first, other));
                }
                let number = numbers.number(other);
                partner[number as usize] = index;
                meeting.calls.push(number);
            }
            meetings.push(meeting);
        }
    }
    Ok(meetings)
}

/// The calls on each group, for each of its ranks in the order in which it makes them.
fn calls(
    program: &JobProgram,
    orders: &[Vec<u32>],
) -> Result<Vec<Vec<Vec<OperationId>>>, ProgramError> {
    let places: Vec<Vec<(Rank, usize)>> = program.groups.iter().map(|g| places(g)).collect();
    let mut calls: Vec<Vec<Vec<OperationId>>> = program
        .groups
        .iter()
        .map(|group| vec![Vec::new(); group.len()])
        .collect();
    for (rank, order) in (0..).map(Rank).zip(orders) {
        for &index in order {
            let call = OperationId { rank, index };
            let Operation::Collective { group, .. } = program.operation(call) else {
                continue;
            };
            let place = places.get(group as usize).and_then(|places| {
                let at = places.binary_search_by_key(&rank, |&(rank, _)| rank);
                Some(places[at.ok()?].1)
            });
            let place = place.ok_or(ProgramError::NotInGroup { call })?;
            calls[group as usize][place].push(call);
        }
    }
    Ok(calls)
}

/// The place of each rank in a group, by rank.
fn places(group: &[Rank]) -> Vec<(Rank, usize)> {
    let mut places: Vec<(Rank, usize)> = group.iter().copied().zip(0..).collect();
    places.sort_unstable();
    places
}

fn called(program: &JobProgram, call: OperationId) -> (CollectiveKind, Bytes) {
    match program.operation(call) {
        Operation::Collective { kind, bytes, .. } => (kind, bytes),
        _ => unreachable!("only collectives are called"),
    }
}

fn differ(program: &JobProgram, first: OperationId, other: OperationId) -> ProgramError {
    let [(kind, size), (other_kind, other_size)] = [first, other].map(|call| called(program, call));
    if (kind, other_kind) == (CollectiveKind::AllToAll, CollectiveKind::AllToAll) {
        return ProgramError::Uneven {
            first,
            other,
            sizes: [size, other_size],
        };
    }
    let words = |call| {
        let (kind, bytes) = called(program, call);
        format!("{} of {} B", kind.name(), bytes.as_u64())
    };
    ProgramError::Differ {
        first,
        other,
        calls: [words(first), words(other)],
    }
}

//! Writes schedules.

use super::ANY;
use super::binary::{CALC, MAGIC, RECV, SEND};
use clearway_workload::program::{JobProgram, Operation, OperationId, RankProgram};
use std::fmt::{self, Write as _};

/// Reason why a program cannot be written in GOAL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoalWriteError {
    /// The operation.
    pub operation: OperationId,
    /// Reason why GOAL cannot express the operation.
    pub reason: &'static str,
}

impl fmt::Display for GoalWriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.reason)
    }
}

impl std::error::Error for GoalWriteError {}

/// An operation as in both forms.
struct Record {
    kind: u8,
    /// Bytes, or nanoseconds.
    size: u64,
    peer: u32,
    tag: u32,
    cpu: u8,
}

fn record(operation: OperationId, program: &JobProgram) -> Result<Record, GoalWriteError> {
    let error = |reason| Err(GoalWriteError { operation, reason });
    let named = |number: Option<u32>| match number {
        Some(ANY) => Err(GoalWriteError {
            operation,
            reason: "the number 2^32 - 1 stands for any rank and any tag",
        }),
        number => Ok(number.unwrap_or(ANY)),
    };
    match program.operation(operation) {
        Operation::Compute { unit, span } if span.as_ps().is_multiple_of(1000) => Ok(Record {
            kind: CALC,
            size: span.as_ps() / 1000,
            peer: 0,
            tag: 0,
            cpu: unit,
        }),
        Operation::Compute { .. } => error("GOAL counts time in whole nanoseconds"),
        Operation::Send { to, bytes, tag } => Ok(Record {
            kind: SEND,
            size: bytes.as_u64(),
            peer: named(Some(to.0))?,
            tag: named(Some(tag))?,
            cpu: 0,
        }),
        Operation::Receive { from, bytes, tag } => Ok(Record {
            kind: RECV,
            size: bytes.as_u64(),
            peer: named(from.map(|rank| rank.0))?,
            tag: named(tag)?,
            cpu: 0,
        }),
        Operation::Collective { .. } => error("GOAL has no collectives"),
    }
}

fn records<'a>(
    program: &'a JobProgram,
    rank: usize,
) -> impl Iterator<Item = Result<Record, GoalWriteError>> + 'a {
    let count = program.ranks[rank].operations().len() as u32;
    let rank = clearway_workload::Rank(rank as u32);
    (0..count).map(move |index| record(OperationId { rank, index }, program))
}

/// `program` as a schedule in text. [`parse_goal`](super::parse_goal) reads the same program from the schedule.
///
/// # Errors
/// If GOAL cannot express an operation: a collective, or a time that is not whole nanoseconds.
pub fn write_goal(program: &JobProgram) -> Result<String, GoalWriteError> {
    let mut text = String::new();
    line(&mut text, format_args!("num_ranks {}", program.ranks.len()));
    for (number, rank) in program.ranks.iter().enumerate() {
        line(&mut text, format_args!("rank {number} {{"));
        for (index, record) in records(program, number).enumerate() {
            write_operation(&mut text, index, &record?);
        }
        for who in 0..rank.operations().len() as u32 {
            for wait in rank.waits(who) {
                let word = match wait.is_begun {
                    true => "irequires",
                    false => "requires",
                };
                line(&mut text, format_args!("l{who} {word} l{}", wait.operation));
            }
        }
        line(&mut text, format_args!("}}"));
    }
    Ok(text)
}

fn write_operation(text: &mut String, index: usize, record: &Record) {
    let number = |value| match value {
        ANY => "-1".to_owned(),
        value => value.to_string(),
    };
    let Record { size, cpu, .. } = *record;
    let (peer, tag) = (number(record.peer), number(record.tag));
    match record.kind {
        SEND => line(
            text,
            format_args!("l{index}: send {size}b to {peer} tag {tag}"),
        ),
        RECV => line(
            text,
            format_args!("l{index}: recv {size}b from {peer} tag {tag}"),
        ),
        _ => line(text, format_args!("l{index}: calc {size} cpu {cpu}")),
    }
}

fn line(text: &mut String, content: fmt::Arguments<'_>) {
    writeln!(text, "{content}").expect("a String takes all text");
}

/// `program` as a binary schedule. [`parse_goal_binary`](super::parse_goal_binary) reads the same program from the schedule.
///
/// # Errors
/// As [`write_goal`].
pub fn write_goal_binary(program: &JobProgram) -> Result<Vec<u8>, GoalWriteError> {
    let mut bytes = MAGIC.to_le_bytes().to_vec();
    bytes.extend((program.ranks.len() as u32).to_le_bytes());
    let cpus = program.numbered().map(|(_, operation)| match operation {
        Operation::Compute { unit, .. } => unit,
        _ => 0,
    });
    bytes.extend([cpus.max().unwrap_or(0), 0]);
    let table = bytes.len();
    bytes.resize(table + 16 * program.ranks.len(), 0);
    for (number, rank) in program.ranks.iter().enumerate() {
        // Offsets count from the end of the magic number.
        let start = bytes.len() as u64 - 8;
        let records = records(program, number).collect::<Result<Vec<_>, _>>()?;
        write_rank(&mut bytes, rank, &records);
        let end = bytes.len() as u64 - 8;
        let entry = table + 16 * number;
        bytes[entry..entry + 8].copy_from_slice(&start.to_le_bytes());
        bytes[entry + 8..entry + 16].copy_from_slice(&end.to_le_bytes());
    }
    Ok(bytes)
}

fn write_rank(bytes: &mut Vec<u8>, rank: &RankProgram, records: &[Record]) {
    let count = records.len() as u32;
    let roots: Vec<u32> = (0..count)
        .filter(|&who| rank.waits(who).is_empty())
        .collect();
    // Sorted by dependency, and for each dependency first the operations that wait for its end.
    let mut dependents: Vec<(u32, bool, u32)> = (0..count)
        .flat_map(|who| {
            let waits = rank.waits(who).iter();
            waits.map(move |wait| (wait.operation, wait.is_begun, who))
        })
        .collect();
    dependents.sort_unstable();
    let mut put = |value: u32| bytes.extend(value.to_le_bytes());
    put(count);
    put(roots.len() as u32);
    roots.into_iter().for_each(put);
    let mut place = 0;
    for (index, record) in (0..).zip(records) {
        let mut dependents_of = |is_begun| {
            let first = place;
            let of_it = |edge: &&(u32, bool, u32)| (edge.0, edge.1) == (index, is_begun);
            place += dependents[first..].iter().take_while(of_it).count();
            [(place - first) as u32, first as u32]
        };
        bytes.extend((rank.waits(index).len() as u32).to_le_bytes());
        bytes.push(record.kind);
        bytes.extend(record.peer.to_le_bytes());
        bytes.extend(record.size.to_le_bytes());
        bytes.extend(record.tag.to_le_bytes());
        bytes.extend([record.cpu, 0]);
        for number in [dependents_of(false), dependents_of(true)].concat() {
            bytes.extend(number.to_le_bytes());
        }
    }
    for (_, _, who) in dependents {
        bytes.extend(who.to_le_bytes());
    }
}

//! Writes traces.

use super::node::{COLL, COLLECTIVES, COMP, CPU, GPU, RECV, SEND};
use super::proto::{Attribute, GlobalMetadata, Node, Value};
use clearway_workload::graph::Rank;
use clearway_workload::program::{CollectiveKind, JobProgram, Operation, OperationId};
use prost::Message;
use std::fmt::{self, Write as _};

/// Reason why a program cannot be written as traces of Chakra.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChakraWriteError {
    /// The operation.
    pub operation: OperationId,
    /// Reason why Chakra cannot express the operation.
    pub reason: &'static str,
}

impl fmt::Display for ChakraWriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.reason)
    }
}

impl std::error::Error for ChakraWriteError {}

/// A program as files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChakraFiles {
    /// The content of the trace of each rank.
    pub traces: Vec<Vec<u8>>,
    /// The text of the comm-group file, in which group `n` of the program is called `n + 1`.
    pub groups: String,
}

/// `program` as traces. [`ChakraReader`](super::ChakraReader) reads the same operations from them. The ids of nodes count from 0.
///
/// # Errors
/// If Chakra cannot express an operation: receives from any rank or with any tag, dependencies on the start of an operation, units other
/// than 0 and 1, and times that are not whole microseconds.
pub fn write_chakra(program: &JobProgram) -> Result<ChakraFiles, ChakraWriteError> {
    let mut groups = String::from("{");
    for (index, group) in program.groups.iter().enumerate() {
        let ranks: Vec<String> = group.iter().map(Rank::to_string).collect();
        let comma = if index == 0 { "" } else { ", " };
        write!(groups, "{comma}\"{}\": [{}]", index + 1, ranks.join(", "))
            .expect("a String takes all text");
    }
    groups.push('}');
    let ranks = (0..program.ranks.len() as u32).map(Rank);
    let traces = ranks.map(|rank| trace(program, rank));
    Ok(ChakraFiles {
        traces: traces.collect::<Result<_, _>>()?,
        groups,
    })
}

fn trace(program: &JobProgram, rank: Rank) -> Result<Vec<u8>, ChakraWriteError> {
    let mut bytes = GlobalMetadata {
        version: "0.0.4".into(),
    }
    .encode_length_delimited_to_vec();
    let operations = &program.ranks[rank.index()];
    for index in 0..operations.operations().len() as u32 {
        let operation = OperationId { rank, index };
        let error = |reason| ChakraWriteError { operation, reason };
        let mut node = node(program, operation).map_err(error)?;
        node.id = index.into();
        for wait in operations.waits(index) {
            if wait.is_begun {
                return Err(error("Chakra waits for the end of nodes only"));
            }
            node.data_deps.push(wait.operation.into());
        }
        bytes.extend(node.encode_length_delimited_to_vec());
    }
    Ok(bytes)
}

fn node(program: &JobProgram, id: OperationId) -> Result<Node, &'static str> {
    let attribute = |name: &str, value: Value| Attribute {
        name: name.into(),
        value: Some(value),
    };
    let size = |bytes: u64| i64::try_from(bytes).map_err(|_| "Chakra counts up to 2^63 bytes");
    let rank = |rank: Rank| i32::try_from(rank.0).map_err(|_| "Chakra counts up to 2^31 ranks");
    let message = |kind: i32, src: Rank, dst: Rank, bytes: u64, tag: u32| {
        Ok(Node {
            kind,
            attr: vec![
                attribute("is_cpu_op", Value::Bool(false)),
                attribute("comm_size", Value::Int64(size(bytes)?)),
                attribute("comm_src", Value::Int32(rank(src)?)),
                attribute("comm_dst", Value::Int32(rank(dst)?)),
                attribute("comm_tag", Value::Int32(tag as i32)),
            ],
            ..Node::default()
        })
    };
    match program.operation(id) {
        Operation::Compute { unit, span } => {
            const PS_PER_US: u64 = 1_000_000;
            if unit != GPU && unit != CPU {
                return Err("Chakra has a GPU and a processor");
            }
            if !span.as_ps().is_multiple_of(PS_PER_US) {
                return Err("Chakra counts time in whole microseconds");
            }
            Ok(Node {
                kind: COMP,
                duration_micros: span.as_ps() / PS_PER_US,
                attr: vec![attribute("is_cpu_op", Value::Bool(unit == CPU))],
                ..Node::default()
            })
        }
        Operation::Send { to, bytes, tag } => message(SEND, id.rank, to, bytes.as_u64(), tag),
        Operation::Receive {
            from: Some(from),
            bytes,
            tag: Some(tag),
        } => message(RECV, from, id.rank, bytes.as_u64(), tag),
        Operation::Receive { .. } => Err("Chakra has no receives from any rank or with any tag"),
        Operation::Collective { kind, bytes, group } => {
            let number = COLLECTIVES.iter().position(|&other| other == kind);
            let number = number.ok_or("Chakra has no such collective")?;
            let members = program.groups.get(group as usize).map_or(0, Vec::len);
            let parts = match kind {
                CollectiveKind::AllGather | CollectiveKind::Gather => members.max(1) as u64,
                _ => 1,
            };
            if !bytes.as_u64().is_multiple_of(parts) {
                return Err("Chakra has parts of the same size");
            }
            Ok(Node {
                kind: COLL,
                attr: vec![
                    attribute("is_cpu_op", Value::Bool(false)),
                    attribute("comm_type", Value::Int64(number as i64)),
                    attribute("comm_size", Value::Int64(size(bytes.as_u64() / parts)?)),
                    attribute("pg_name", Value::String((group + 1).to_string())),
                ],
                ..Node::default()
            })
        }
    }
}

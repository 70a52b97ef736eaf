//! One collective among a number of ranks: its graph, and the elements that each message carries.

use clearway_units::{Bytes, Value};
use clearway_workload::collective::{Blocks, Effect, Move};
use clearway_workload::{
    CollectiveError, CollectiveSettings, Graph, PreparedGraph, Rank, Task, TaskId,
};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of an element.
pub(crate) const ELEMENT: usize = size_of::<f32>();
/// Most elements of a message: 4 MiB, so that a connection's memory holds several messages.
const MOST_CHUNK: usize = (4 << 20) / ELEMENT;
/// Most elements of a message by default: 256 KiB, so that the messages that a rank handles at a time stay in the processor cache.
const CHUNK: usize = (256 << 10) / ELEMENT;
/// Fewest elements of a message by default: below 16 KiB the cost per message outweighs the cost per byte.
const LEAST_CHUNK: usize = (16 << 10) / ELEMENT;
/// Messages into which the elements that pass a rank are cut, if each message stays long enough: one is copied, one is sent, one is in
/// flight and one is added.
const PIPELINE: usize = 4;

/// Operation on the buffers of the ranks. S is the number of elements of a plan; block r is the r-th part of the buffer, with one part for
/// each rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferOperation {
    /// Every rank has S elements to add up; in the end every rank has the sum over all ranks.
    AllReduce,
    /// Rank r has block r; in the end every rank has all blocks.
    AllGather,
    /// Every rank has S elements to add up; in the end rank r has block r of the sum.
    ReduceScatter,
    /// Every rank has S elements, of which block r is for rank r; in the end every rank has its block from each rank.
    AllToAll,
}

impl BufferOperation {
    /// All operations.
    pub const ALL: [Self; 4] = [
        Self::AllReduce,
        Self::AllGather,
        Self::ReduceScatter,
        Self::AllToAll,
    ];

    /// Name of the operation in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all-reduce",
            Self::AllGather => "all-gather",
            Self::ReduceScatter => "reduce-scatter",
            Self::AllToAll => "all-to-all",
        }
    }

    /// The operation of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|operation| operation.name() == name)
    }

    /// True if messages add up.
    pub const fn adds(self) -> bool {
        matches!(self, Self::AllReduce | Self::ReduceScatter)
    }
}

/// An operation and the algorithm that carries it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Algorithm {
    operation: BufferOperation,
    name: &'static str,
}

/// Error about an algorithm that an operation does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} has no algorithm `{name}`: it has {}", .operation.name(), Algorithm::names(*.operation).collect::<Vec<_>>().join(", "))]
pub struct UnknownAlgorithm {
    /// The operation.
    pub operation: BufferOperation,
    /// The requested name.
    pub name: String,
}

impl Algorithm {
    /// The algorithm of a name; `tree` is short for `double-binary-tree`.
    ///
    /// # Errors
    /// If the operation has no algorithm with this name.
    pub fn named(operation: BufferOperation, name: &str) -> Result<Self, UnknownAlgorithm> {
        let full = match name {
            "tree" => "double-binary-tree",
            name => name,
        };
        let found = Self::names(operation).find(|known| *known == full);
        let found = found.map(|name| Self { operation, name });
        found.ok_or_else(|| UnknownAlgorithm {
            operation,
            name: name.to_owned(),
        })
    }

    /// The first algorithm of an operation: the ring, or direct for an all-to-all.
    pub fn default_of(operation: BufferOperation) -> Self {
        let name = Self::names(operation).next().unwrap_or_default();
        Self { operation, name }
    }

    /// Names of the algorithms of an operation.
    pub fn names(operation: BufferOperation) -> impl Iterator<Item = &'static str> {
        let kinds = CollectiveSettings::KINDS.iter();
        // The server of one takes part without data, so it is a different operation. The other needs the dimensions of a network.
        const LEFT_OUT: [&str; 2] = ["parameter-server", "hierarchical"];
        let kinds = kinds.filter(|kind| !LEFT_OUT.contains(&kind.algorithm));
        let own = kinds.filter(move |kind| kind.operation == operation.name());
        own.map(|kind| kind.algorithm)
    }

    /// The operation.
    pub const fn operation(self) -> BufferOperation {
        self.operation
    }

    /// Name of the algorithm.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Default elements of a message: the buffer divided by its parts, by the ranks that a part passes before it comes back, and by the
    /// messages at a rank; within 16 KiB and 256 KiB.
    ///
    /// Ring-like algorithms have a block for each rank and send all blocks at the same time. Two trees have half of the buffer each, and
    /// messages follow each other from the leaves to the root.
    fn usual_chunk(self, ranks: u32, count: usize) -> usize {
        let ranks = ranks.max(1);
        let (parts, depth) = match self.name {
            "double-binary-tree" => (2, ranks.next_power_of_two().ilog2().max(1)),
            _ => (ranks, 1),
        };
        let pieces = parts as usize * depth as usize * PIPELINE;
        count.div_ceil(pieces).clamp(LEAST_CHUNK, CHUNK)
    }

    /// Settings of the graph. Sizes are counted in elements.
    fn settings(self, count: usize, chunk: usize) -> CollectiveSettings {
        let named = CollectiveSettings::named(self.operation.name(), self.name);
        let mut settings = named.expect("algorithms come from the list of collectives");
        let mut set = |key: &str, value: Value| {
            settings
                .set(key, &value)
                .expect("each of these collectives has the key");
        };
        let size = |elements: usize| Value::Text(format!("{elements}B"));
        set("size", size(count));
        set("chunk", size(chunk));
        if self.operation == BufferOperation::AllToAll {
            // No receiver grants: the credit of connections bounds the memory.
            set("receiver-limit", Value::Boolean(false));
        }
        settings
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", self.operation.name(), self.name)
    }
}

/// Elements of the block of a rank in a buffer of `count`: blocks differ by one at most.
///
/// # Panics
/// If there are no ranks.
pub fn block(ranks: u32, rank: u32, count: usize) -> Range<usize> {
    let range = Blocks::new(count as u64, ranks).range(rank);
    range.start as usize..range.end as usize
}

/// A collective among a number of ranks.
///
/// Its graph is the simulator's graph, counted in elements: one byte of the graph stands for one `f32`, because an element cannot be split.
/// [`graph_of_bytes`](Self::graph_of_bytes) is the same graph with message sizes in bytes, for the simulator.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectivePlan {
    algorithm: Algorithm,
    ranks: u32,
    count: usize,
    chunk: usize,
    /// None if nothing has to be sent: without elements, or with one rank.
    graph: Option<Arc<PreparedGraph>>,
    moves: Vec<Move>,
    bus_factor: f64,
}

impl CollectivePlan {
    /// The plan of an algorithm among `ranks` ranks with `count` elements, sent in messages of at most `chunk`.
    ///
    /// `count` is the size S of [`BufferOperation`]. A chunk has at most 1 Mi elements (4 MiB).
    ///
    /// # Errors
    /// If there are no ranks, or there would be too many messages.
    pub fn new(
        algorithm: Algorithm,
        ranks: u32,
        count: usize,
        chunk: Option<usize>,
    ) -> Result<Self, CollectiveError> {
        let chunk = chunk.unwrap_or_else(|| algorithm.usual_chunk(ranks, count));
        let fault = |key, message: String, fix: &str| CollectiveError {
            operation: algorithm.operation.name(),
            algorithm: algorithm.name,
            key,
            message,
            fix: fix.to_owned(),
        };
        if ranks == 0 {
            return Err(fault(
                None,
                "there are no ranks".into(),
                "take 1 rank or more",
            ));
        }
        if chunk == 0 || chunk > MOST_CHUNK {
            let message = format!("a message of {chunk} elements");
            return Err(fault(
                Some("chunk"),
                message,
                "write a chunk of 4 bytes to 4MiB",
            ));
        }
        let mut plan = Self {
            algorithm,
            ranks,
            count,
            chunk,
            graph: None,
            moves: Vec::new(),
            bus_factor: 0.0,
        };
        if ranks > 1 && count > 0 {
            let collective = algorithm.settings(count, chunk).build(ranks)?;
            plan.bus_factor = collective.bus_factor();
            plan.graph = Some(Arc::new(PreparedGraph::new(collective.graph)));
            plan.moves = collective.moves;
        }
        Ok(plan)
    }

    /// Operation and algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Number of elements, S of [`BufferOperation`].
    pub fn count(&self) -> usize {
        self.count
    }

    /// Most elements of a message.
    pub fn chunk(&self) -> usize {
        self.chunk
    }

    /// Factor by which nccl-tests multiplies size / time to get the rate at which an optimal algorithm would keep each rank busy, like
    /// [`bus_factor`](clearway_workload::Collective::bus_factor); zero if nothing is sent.
    pub fn bus_factor(&self) -> f64 {
        self.bus_factor
    }

    /// Elements of a block.
    pub fn block(&self, rank: u32) -> Range<usize> {
        block(self.ranks, rank, self.count)
    }

    /// The graph for the simulator, with message sizes in bytes.
    pub fn graph_of_bytes(&self) -> Graph {
        let Some(plan) = &self.graph else {
            return Graph::new(self.ranks);
        };
        let mut graph = Graph::new(self.ranks);
        for (id, task) in plan.graph().numbered() {
            let task = match task {
                Task::Message { src, dst, bytes } => Task::Message {
                    src,
                    dst,
                    bytes: Bytes::new(bytes.as_u64() * ELEMENT as u64),
                },
                task @ Task::Compute { .. } => task,
            };
            graph.add(task, plan.graph().needs(id).iter().copied());
        }
        graph.parallelism = plan.graph().parallelism;
        graph
    }

    /// The ranks to which `rank` sends or from which it gets messages, in ascending order.
    pub fn neighbours(&self, rank: u32) -> Vec<u32> {
        let mut speaks = vec![false; self.ranks as usize];
        for (src, dst) in self.messages().map(|(_, ends)| ends) {
            speaks[dst.index()] |= src.0 == rank;
            speaks[src.index()] |= dst.0 == rank;
        }
        (0..self.ranks)
            .filter(|&other| speaks[other as usize])
            .collect()
    }

    pub(crate) fn graph(&self) -> Option<&Arc<PreparedGraph>> {
        self.graph.as_ref()
    }

    /// Each message with its ends.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (TaskId, (Rank, Rank))> + '_ {
        let tasks = self.graph.iter().flat_map(|plan| plan.graph().numbered());
        tasks.filter_map(|(id, task)| match task {
            Task::Message { src, dst, .. } => Some((id, (src, dst))),
            Task::Compute { .. } => None,
        })
    }

    /// Ends of the message with this number, if it exists.
    pub(crate) fn ends(&self, message: u32) -> Option<(Rank, Rank)> {
        let graph = self.graph.as_ref()?.graph();
        let known = (message as usize) < graph.len();
        match graph.task(TaskId(if known { message } else { return None })) {
            Task::Message { src, dst, .. } => Some((src, dst)),
            Task::Compute { .. } => None,
        }
    }

    /// Elements that a message carries, by their place in the space of the operation, and their effect.
    fn moved(&self, message: u32) -> (Range<usize>, Effect) {
        let Move { offset, effect } = self.moves[message as usize];
        let task = self
            .graph
            .as_ref()
            .map(|plan| plan.graph().task(TaskId(message)));
        let length = match task {
            // A message that is only a signal carries no elements.
            Some(Task::Message { bytes, .. }) if effect != Effect::Nothing => bytes.as_u64(),
            _ => 0,
        };
        let offset = offset.as_u64() as usize;
        (offset..offset + length as usize, effect)
    }

    /// Elements of the sender's buffer that a message carries.
    pub(crate) fn source(&self, message: u32) -> Range<usize> {
        let (range, _) = self.moved(message);
        match self.algorithm.operation {
            BufferOperation::AllToAll => {
                let buffer = range.start / self.count * self.count;
                range.start - buffer..range.end - buffer
            }
            _ => range,
        }
    }

    /// Elements of the receiver's buffer to which a message goes, and its effect.
    pub(crate) fn target(&self, message: u32) -> (Range<usize>, Effect) {
        let (range, effect) = self.moved(message);
        let target = match (self.algorithm.operation, self.ends(message)) {
            (BufferOperation::AllToAll, Some((src, dst))) => {
                let block = self.block(dst.0);
                let from = range.start - src.index() * self.count - block.start;
                let start = src.index() * block.len() + from;
                start..start + range.len()
            }
            _ => range,
        };
        (target, effect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_follow_from_ranks_and_size() {
        let chunk = |name, ranks, kib: usize| {
            let algorithm = Algorithm::named(BufferOperation::AllReduce, name).unwrap();
            let plan = CollectivePlan::new(algorithm, ranks, (kib << 10) / ELEMENT, None).unwrap();
            (plan.chunk() * ELEMENT) >> 10
        };
        // A block of 256 KiB in four messages; none of less than 16 KiB, nor of more than 256 KiB.
        assert_eq!(chunk("ring", 4, 1024), 64);
        assert_eq!(chunk("ring", 8, 1024), 32);
        assert_eq!(chunk("ring", 64, 1024), 16);
        assert_eq!(chunk("ring", 4, 64 << 10), 256);
        // Half of the buffer in four messages for each of two, and of four ranks.
        assert_eq!(chunk("tree", 4, 1024), 64);
        assert_eq!(chunk("tree", 16, 1024), 32);
        assert_eq!(chunk("tree", 2, 0), 16);
        assert_eq!(chunk("tree", 1, 1024), 128);
    }
}

//! Collective operations as graphs of messages: sender, receiver and byte range of each message, and the tasks that it waits for.
//!
//! A collective is an *operation* (the required result: all-reduce, all-gather, …) and an *algorithm* (the messages that lead to it: ring,
//! double binary tree, …). Both are named apart, because jobs and traces know the operation and users choose the algorithm. A new one is
//! one file with a settings struct that implements [`CollectiveDefinition`], and one line in the `collectives!` list of `registry.rs`. That
//! line yields the variant of [`CollectiveSettings`], the keys, the row of [`CollectiveSettings::KINDS`] and the entry in the tests that
//! hold for all of them: [`Collective::verify`] on the graph, on every single fault in it, and the count of steps.
//!
//! Common to all of them:
//!
//! * A chunk is a separate message, and is sent as soon as the chunks that it depends on have arrived (STrack §4.3).
//! * Blocks (the parts of a buffer that belong to a rank) differ by at most one byte: the first `size mod ranks` have one more.
//!   A block or a half without bytes is not sent, and nothing waits for it.
//! * Messages of one rank that become ready together leave in the order of their numbers. Rings, halving and doubling and direct
//!   algorithms are numbered step by step, trees and broadcasts chunk by chunk.
//! * The job decides on which host a rank is, and by its [`Layout`] tells which ranks share a node. Rings, double binary trees and chains
//!   have a [channel](Channels) for each rank of a node.

mod all_to_all;
mod blocks;
mod broadcast;
mod builder;
mod definition;
mod direct;
mod direct_all_reduce;
mod double_binary_tree;
mod halving_doubling;
mod hierarchical;
mod layout;
mod options;
mod parameter_server;
mod registry;
mod ring;
mod verify;

#[cfg(test)]
mod tests;

use crate::{Graph, Rank, Task, TaskId};
use clearway_units::{Bytes, Rate, Span};
use std::collections::BTreeMap;
use std::ops::Range;

pub use all_to_all::AllToAllSettings;
pub use blocks::{BlockOwners, Blocks};
pub use broadcast::{ChainBroadcastSettings, TreeBroadcastSettings, TreeShape};
pub use definition::{CollectiveDefinition, CollectiveError};
pub use direct::{DirectAllGatherSettings, DirectReduceScatterSettings};
pub use direct_all_reduce::{Barrier, DirectAllReduceSettings};
pub use double_binary_tree::{BinaryTree, DoubleBinaryTreeSettings};
pub use halving_doubling::HalvingDoublingSettings;
pub use hierarchical::{
    DimensionAlgorithm, Dimensions, HierarchicalAllGatherSettings, HierarchicalAllReduceSettings,
    HierarchicalAllToAllSettings, HierarchicalReduceScatterSettings,
};
pub use layout::{Layout, sub_lattice};
pub use options::{
    Channels, DirectPipelining, FirstPartner, Pipelining, Reduction, StepPipelining,
};
pub use parameter_server::{ParameterServerSettings, ServerRole};
pub use registry::{CollectiveKind, CollectiveSettings};
pub use ring::{RingAllGatherSettings, RingAllReduceSettings, RingReduceScatterSettings};
pub use verify::CollectiveFault;

/// Data that the ranks hold before a collective, and data that they must hold after it.
///
/// S is [`Collective::size`], N the number of ranks. Block r is the r-th of N parts of a buffer of S, unless [`Collective::owners`] says
/// otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Every rank has S to add up; in the end every rank has the sum of all.
    AllReduce,
    /// Every rank has S to add up; in the end rank r has block r of the sum.
    ReduceScatter,
    /// Rank r has block r; in the end every rank has all blocks.
    AllGather,
    /// One rank has S; in the end every rank has it.
    Broadcast {
        /// The rank that has S.
        root: Rank,
    },
    /// Every rank has S bytes, of which block r is for rank r; in the end every rank has its block from each.
    ///
    /// The bytes that rank q sends lie from q S on in one common space of N S bytes, so that a place identifies a byte.
    AllToAll,
    /// Every rank but the server has S to add up; in the end each of them has the sum. The server begins with zeros.
    ParameterServer {
        /// The rank of the server.
        server: Rank,
    },
}

/// Effect of a message on the buffer of its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The bytes are added to the receiver's bytes.
    Reduce,
    /// The bytes replace the receiver's bytes.
    Copy,
    /// No effect: the message only says that something has happened. Computations also have this effect.
    Nothing,
}

/// Effect of a task of a collective on the buffers. The number of bytes is in the message itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// Offset of the bytes in the buffer, at the sender as at the receiver.
    pub offset: Bytes,
    /// Effect on the buffer of the receiver.
    pub effect: Effect,
}

/// A collective operation as a graph of messages, with the bytes that each of them carries; see the [module](self).
///
/// A message takes 48 bytes, of which 16 are its move: a caller that needs no proof any more can keep the graph alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collective {
    /// Operation that the collective must achieve.
    pub operation: Operation,
    /// S, the size of the buffer of a rank, as [`Operation`] defines it for each operation. The same as in nccl-tests.
    pub size: Bytes,
    /// Messages and computations.
    pub graph: Graph,
    /// Effect of each task of the graph on the buffers.
    pub moves: Vec<Move>,
    /// Byte ranges of the messages that carry several, in this order. The offset of their move is that of the first.
    pub scattered: BTreeMap<TaskId, Vec<Range<u64>>>,
    /// Order of the blocks of the ranks.
    pub owners: BlockOwners,
}

impl Collective {
    /// Payload of all messages to each rank.
    pub fn bytes_received(&self) -> Vec<Bytes> {
        let mut received = vec![Bytes::ZERO; self.graph.ranks() as usize];
        for (_, task) in self.graph.numbered() {
            if let Task::Message { dst, bytes, .. } = task {
                received[dst.index()] += bytes;
            }
        }
        received
    }

    /// Lower bound of the completion time in a network in which each rank sends at `rate` and receives at `rate`: the time of the payload
    /// which the busiest rank sends or receives.
    ///
    /// A double binary tree of 128 MB: 2 S, so 5.12 ms at 400 Gb/s; a ring of 32 ranks: 2 S 31/32, so 4.96 ms.
    pub fn lower_bound(&self, rate: Rate) -> Span {
        let sent = self.graph.bytes_sent().into_iter();
        let busiest = sent.chain(self.bytes_received()).max();
        rate.span_of(busiest.unwrap_or_default())
    }

    /// Factor by which nccl-tests multiplies S / time (`algbw`) to get the rate at which an optimal algorithm would keep each rank busy
    /// (`busbw`): 2 (N-1)/N for all-reduce, (N-1)/N for all-gather, reduce-scatter and all-to-all, 1 for broadcast.
    ///
    /// A parameter server counts as an all-reduce of the other ranks, so for two ranks, of which one is the server, it is zero.
    pub fn bus_factor(&self) -> f64 {
        let ranks = f64::from(self.graph.ranks());
        let others = |ranks: f64| (ranks - 1.0) / ranks;
        match self.operation {
            Operation::AllReduce => 2.0 * others(ranks),
            Operation::ReduceScatter | Operation::AllGather | Operation::AllToAll => others(ranks),
            Operation::Broadcast { .. } => 1.0,
            Operation::ParameterServer { .. } => 2.0 * others(ranks - 1.0),
        }
    }
}

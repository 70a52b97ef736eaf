//! Broadcast: the data of one rank goes to all others, along a chain or down a tree.

use super::builder::{Builder, Edge, Extent, chosen_rank, sound};
use super::options::Options;
use super::{
    Blocks, Channels, Collective, CollectiveDefinition, CollectiveError, Effect, Layout, Operation,
    Pipelining,
};
use crate::{Rank, TaskId};
use clearway_units::{Bytes, choices, parameters};

parameters! {
    /// Broadcast from the root to the next rank, from there to the one after it and so on, each chunk as soon as it has arrived: with
    /// many chunks every rank but the last sends at full rate.
    pub struct ChainBroadcastSettings {
        /// Size of the buffer of the root.
        pub size: Bytes = Bytes::new(128_000_000), "size", "as for an all-reduce";
        /// Rank whose buffer is broadcast.
        pub root: u32 = 0, "root", "any is as good";
        with {
            /// Parallel chains.
            pub channels: Channels,
            /// Chunk size and window of the messages.
            pub pipelining: Pipelining,
        }
    }
}

choices! {
    /// Shape of the tree: the ranks to which each rank forwards. Ranks are counted from the root.
    pub enum TreeShape {
        /// Rank r sends to the ranks 2 r + 1 and 2 r + 2: no rank sends more than twice the bytes that it receives.
        Binary = "binary",
        /// In each round every rank that has the data sends it to one that has not, to the farthest first: fewest rounds, but
        /// the root sends in each of them.
        Binomial = "binomial",
    }
}

parameters! {
    /// Broadcast down a tree, each chunk as soon as it has arrived.
    pub struct TreeBroadcastSettings {
        /// Size of the buffer of the root.
        pub size: Bytes = Bytes::new(128_000_000), "size", "as for an all-reduce";
        /// Rank whose buffer is broadcast.
        pub root: u32 = 0, "root", "any is as good";
        /// Shape of the tree.
        pub shape: TreeShape = TreeShape::Binary, "shape", "the faster one for messages of many chunks";
        with {
            /// Chunk size and window of the messages.
            pub pipelining: Pipelining,
        }
    }
}

/// Sends the root's buffer along `edges`, in places counted from the root: each from a place that has it to one that has not. Each channel
/// has its part of the buffer, and `order` the ranks at its places.
fn broadcast<D: CollectiveDefinition>(
    (ranks, root, channels): (u32, u32, u32),
    size: Bytes,
    order: impl Fn(u32) -> Vec<u32>,
    edges: impl FnOnce() -> Vec<(u32, u32)>,
    pipelining: &Pipelining,
) -> Result<Collective, CollectiveError> {
    let root = chosen_rank::<D>("root", Some(root), 0, ranks)?;
    let pieces = u128::from(ranks - 1) * u128::from(channels);
    let payload = u128::from(ranks - 1) * u128::from(size.as_u64());
    let operation = Operation::Broadcast { root: Rank(root) };
    let extent = Extent { pieces, payload };
    let options = Options::from(pipelining);
    let mut builder = Builder::new::<D>(operation, ranks, size, extent, options)?;
    let edges = edges();
    let parts = Blocks::new(size.as_u64(), channels);
    let mut all: Vec<_> = (0..channels)
        .map(|channel| {
            let mut order = order(channel);
            let first = order.iter().position(|rank| *rank == root);
            order.rotate_left(first.unwrap_or(0));
            (order, builder.chunks(parts.range(channel)))
        })
        .collect();
    // The next chunk of each channel in turn, until no channel has any.
    let mut is_left = true;
    while is_left {
        is_left = false;
        for (channel, (order, chunks)) in all.iter_mut().enumerate() {
            let Some(chunk) = chunks.next() else { continue };
            is_left = true;
            let mut arrived: Vec<Option<TaskId>> = vec![None; ranks as usize];
            for &(from, to) in &edges {
                let ends = (order[from as usize], order[to as usize]);
                let after = arrived[from as usize];
                let edge = Edge::of_channel(ends, channel);
                let message = builder.message(edge, chunk.clone(), Effect::Copy, after);
                arrived[to as usize] = Some(message);
            }
        }
    }
    Ok(builder.finish())
}

impl CollectiveDefinition for ChainBroadcastSettings {
    const OPERATION: &'static str = "broadcast";
    const ALGORITHM: &'static str = "chain";
    const SUMMARY: &'static str = "from each rank to the next";

    fn build(&self, ranks: u32) -> Result<Collective, CollectiveError> {
        self.build_on(&Layout::flat(ranks))
    }

    fn build_on(&self, layout: &Layout) -> Result<Collective, CollectiveError> {
        let ranks = layout.ranks();
        sound::<Self>(ranks, self.size)?;
        let edges = || (1..ranks).map(|place| (place - 1, place)).collect();
        let counts = (ranks, self.root, self.channels.resolve(layout, self.size));
        let order = |channel| layout.ring(channel);
        broadcast::<Self>(counts, self.size, order, edges, &self.pipelining)
    }

    fn steps(&self, ranks: u32) -> u32 {
        ranks - 1
    }
}

impl CollectiveDefinition for TreeBroadcastSettings {
    const OPERATION: &'static str = "broadcast";
    const ALGORITHM: &'static str = "tree";
    const SUMMARY: &'static str = "down a binary or binomial tree";

    fn build(&self, ranks: u32) -> Result<Collective, CollectiveError> {
        sound::<Self>(ranks, self.size)?;
        let edges = || match self.shape {
            TreeShape::Binary => (1..ranks).map(|rank| ((rank - 1) / 2, rank)).collect(),
            TreeShape::Binomial => binomial(ranks),
        };
        let counts = (ranks, self.root, 1);
        let order = |_| (0..ranks).collect();
        broadcast::<Self>(counts, self.size, order, edges, &self.pipelining)
    }

    fn steps(&self, ranks: u32) -> u32 {
        // Binary: the depth of the last rank. Binomial: a rank is as many edges away as it has bits, and this many are the most.
        ranks.ilog2()
    }
}

/// The edges round by round.
fn binomial(ranks: u32) -> Vec<(u32, u32)> {
    let rounds = (0..ranks.next_power_of_two().ilog2()).rev();
    let round = |bit: u32| {
        let senders = (0..ranks).step_by(2 << bit);
        senders.map(move |rank| (rank, rank + (1 << bit)))
    };
    let edges = rounds.flat_map(round);
    edges.filter(|&(_, to)| to < ranks).collect()
}

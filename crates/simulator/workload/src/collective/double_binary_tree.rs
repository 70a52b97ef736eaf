//! Two binary trees, each for half of the data, in which the leaves of one are inner nodes of the other, so that every rank sends and
//! receives the same amount (Sanders, Speck and Träff 2009; the trees as in NCCL, `src/graph/trees.cc`).

use super::builder::{Builder, Edge, Extent, Piece, sound};
use super::options::Options;
use super::{
    Blocks, Channels, Collective, CollectiveDefinition, CollectiveError, Effect, Layout, Operation,
    Pipelining, Reduction,
};
use crate::TaskId;
use clearway_units::{Bytes, parameters};
use std::ops::Range;

parameters! {
    /// All-reduce over two binary trees that carry alternate chunks. A rank sends a chunk up when its children have sent it; the root sends
    /// it down as soon as it has the sum, while later chunks are still on their way up.
    pub struct DoubleBinaryTreeSettings {
        /// Size of the buffer that each rank contributes to the sum.
        pub size: Bytes = Bytes::new(128_000_000), "size", "STrack §2.1: 128 MB";
        with {
            /// Parallel pairs of trees.
            pub channels: Channels,
            /// Chunk size and window of the messages.
            pub pipelining: Pipelining,
            /// Rate of the reduction.
            pub reduction: Reduction,
        }
    }
}

/// A tree of all ranks in which none has more than two children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinaryTree {
    /// The rank without parent.
    pub root: u32,
    /// For each rank its parent.
    pub parents: Vec<Option<u32>>,
    /// For each rank its children.
    pub children: Vec<[Option<u32>; 2]>,
}

impl BinaryTree {
    /// Both trees of `ranks` ranks, one or more. The second is the first mirrored if the number of ranks is even, else shifted by one.
    pub fn pair(ranks: u32) -> [Self; 2] {
        let first = Self::mapped(ranks, |rank| rank);
        let second = match ranks % 2 {
            0 => Self::mapped(ranks, |rank| ranks - 1 - rank),
            _ => Self::mapped(ranks, |rank| (rank + 1) % ranks),
        };
        [first, second]
    }

    /// NCCL's tree, with each rank called by another name.
    fn mapped(ranks: u32, name: impl Fn(u32) -> u32) -> Self {
        let mut tree = Self {
            root: name(0),
            parents: vec![None; ranks as usize],
            children: vec![[None; 2]; ranks as usize],
        };
        for rank in 0..ranks {
            let at = name(rank) as usize;
            tree.parents[at] = parent(ranks, rank).map(&name);
            tree.children[at] = children(ranks, rank).map(|child| child.map(&name));
        }
        tree
    }

    /// The ranks, each behind its parent.
    pub fn from_root(&self) -> Vec<u32> {
        let mut order = vec![self.root];
        let mut next = 0;
        while let Some(&rank) = order.get(next) {
            order.extend(self.children[rank as usize].iter().flatten());
            next += 1;
        }
        order
    }

    /// Edges from the root to the rank that is farthest away.
    pub fn depth(&self) -> u32 {
        let mut depths = vec![0; self.parents.len()];
        for rank in self.from_root() {
            if let Some(parent) = self.parents[rank as usize] {
                depths[rank as usize] = depths[parent as usize] + 1;
            }
        }
        depths.into_iter().max().unwrap_or(0)
    }
}

/// The lowest bit of `rank`, which is its height in the tree; for the root the lowest power of two that is not a rank.
fn height(ranks: u32, rank: u32) -> u32 {
    match rank {
        0 => ranks.next_power_of_two(),
        _ => rank & rank.wrapping_neg(),
    }
}

fn parent(ranks: u32, rank: u32) -> Option<u32> {
    if rank == 0 {
        return None;
    }
    let bit = height(ranks, rank);
    let below = rank ^ bit;
    let up = below | (bit << 1);
    Some(if up < ranks { up } else { below })
}

fn children(ranks: u32, rank: u32) -> [Option<u32>; 2] {
    let low = height(ranks, rank) / 2;
    let lower = (rank > 0 && low > 0).then(|| rank - low);
    let mut distances = std::iter::successors(Some(low), |low| Some(low / 2));
    let upper = distances
        .by_ref()
        .take_while(|&distance| distance > 0)
        .map(|distance| rank + distance)
        .find(|&child| child < ranks);
    [lower, upper]
}

impl CollectiveDefinition for DoubleBinaryTreeSettings {
    const OPERATION: &'static str = "all-reduce";
    const ALGORITHM: &'static str = "double-binary-tree";
    const SUMMARY: &'static str = "up and down two binary trees, half of the chunks on each";

    fn build(&self, ranks: u32) -> Result<Collective, CollectiveError> {
        self.build_on(&Layout::flat(ranks))
    }

    fn build_on(&self, layout: &Layout) -> Result<Collective, CollectiveError> {
        let ranks = layout.ranks();
        sound::<Self>(ranks, self.size)?;
        let channels = self.channels.resolve(layout, self.size);
        let options = Options::from(&self.pipelining).reducing(&self.reduction);
        let payload = 2 * u128::from(ranks - 1) * u128::from(self.size.as_u64());
        let pieces = 2 * u128::from(ranks - 1) * u128::from(channels);
        let extent = Extent { pieces, payload };
        let operation = Operation::AllReduce;
        let mut builder = Builder::new::<Self>(operation, ranks, self.size, extent, options)?;
        let parts = Blocks::new(self.size.as_u64(), channels);
        let mut pairs: Vec<_> = (0..channels)
            .map(|channel| {
                let order = layout.tree(channel);
                let pass = |tree| Pass::new(tree, order.clone());
                let chunks = builder.chunks(parts.range(channel));
                (BinaryTree::pair(ranks).map(pass), chunks)
            })
            .collect();
        // The next chunk of each pair in turn, until no pair has any.
        let (mut number, mut is_left) = (0, true);
        while is_left {
            is_left = false;
            for (channel, (passes, chunks)) in pairs.iter_mut().enumerate() {
                if let Some(chunk) = chunks.next() {
                    let tree = (number + channel) % 2;
                    passes[tree].send(&mut builder, 2 * channel + tree, &chunk, &[]);
                    is_left = true;
                }
            }
            number += 1;
        }
        Ok(builder.finish())
    }

    fn steps(&self, ranks: u32) -> u32 {
        let depths = BinaryTree::pair(ranks).map(|tree| tree.depth());
        2 * depths[0].max(depths[1])
    }
}

/// State of a tree while chunks go up and down in it.
pub(super) struct Pass {
    tree: BinaryTree,
    /// The rank at each place of the tree.
    ranks: Vec<u32>,
    /// The places, each behind its parent.
    order: Vec<u32>,
    /// For each place, the task for which its parent waits: the chunk has been sent up, and added.
    up: Vec<TaskId>,
    /// For each place, the message with the chunk from its parent.
    down: Vec<TaskId>,
}

impl Pass {
    pub(super) fn new(tree: BinaryTree, ranks: Vec<u32>) -> Self {
        Self {
            order: tree.from_root(),
            tree,
            up: vec![TaskId(0); ranks.len()],
            down: vec![TaskId(0); ranks.len()],
            ranks,
        }
    }

    /// Tasks after which the last chunk is summed up at a place: its arrival from the parent, or at the root those from the children.
    pub(super) fn arrived(&self, place: u32) -> impl Iterator<Item = TaskId> {
        let is_root = place == self.tree.root;
        let children = self.tree.children[place as usize].iter().flatten();
        let sums = children.filter(move |_| is_root);
        let sums = sums.map(|&child| self.up[child as usize]);
        sums.chain((!is_root).then(|| self.down[place as usize]))
    }

    /// Sends a chunk up and down. A rank adds its own data when the pieces of it that it `held` have arrived; none need to be given.
    pub(super) fn send(
        &mut self,
        builder: &mut Builder,
        channel: usize,
        chunk: &Range<u64>,
        held: &[Vec<Piece>],
    ) {
        let Self {
            tree,
            ranks,
            order,
            up,
            down,
        } = self;
        let at = |place: u32| ranks[place as usize];
        let own = |place: u32| {
            let pieces = held.get(at(place) as usize).into_iter().flatten();
            pieces.flat_map(|piece| piece.covering(chunk))
        };
        for &place in order.iter().rev() {
            if let Some(parent) = tree.parents[place as usize] {
                let children = tree.children[place as usize].iter().flatten();
                let arrived = children.map(|&child| up[child as usize]);
                let edge = Edge::of_channel((at(place), at(parent)), channel);
                up[place as usize] = builder.message(
                    edge,
                    chunk.clone(),
                    Effect::Reduce,
                    arrived.chain(own(place)),
                );
            }
        }
        for &place in order.iter() {
            if let Some(parent) = tree.parents[place as usize] {
                let children = tree.children[parent as usize].iter().flatten();
                let is_root = parent == tree.root;
                let sums = children
                    .filter(|_| is_root)
                    .map(|&child| up[child as usize]);
                let copy = (!is_root).then(|| down[parent as usize]);
                let edge = Edge::of_channel((at(parent), at(place)), channel);
                let own = own(parent).filter(|_| is_root);
                let after = sums.chain(copy).chain(own);
                down[place as usize] = builder.message(edge, chunk.clone(), Effect::Copy, after);
            }
        }
    }
}

//! Algorithms within a row of a dimension.

use super::algorithm::DimensionAlgorithm as Algorithm;
use super::lattice::place;
use crate::collective::blocks::Blocks;
use crate::collective::builder::{Builder, Piece};
use crate::collective::double_binary_tree::{BinaryTree, Pass};
use crate::collective::{Effect, FirstPartner};
use std::ops::Range;

/// For each rank, the pieces for which it waits before it sends bytes of their ranges.
pub(super) type Held = Vec<Vec<Piece>>;

/// Ranks that differ in one coordinate alone, and the bytes that they exchange.
pub(in crate::collective) struct Row {
    pub(super) algorithm: Algorithm,
    /// Most messages in flight from a member, if the algorithm is direct.
    pub(super) window: Option<usize>,
    /// Member with which a member exchanges the largest half, if the algorithm is halving and doubling.
    pub(super) first_partner: FirstPartner,
    /// The rank of each member.
    pub(super) ranks: Vec<u32>,
    /// The blocks, one behind the other, by their [place](Self::place).
    pub(super) blocks: Vec<Range<u64>>,
}

/// Edges from the root to the deepest rank of the trees among `size` ranks.
pub(super) fn depth_of_trees(size: u32) -> u32 {
    let depths = BinaryTree::pair(size).map(|tree| tree.depth());
    depths[0].max(depths[1])
}

impl Row {
    /// All of `ranks` ranks, each with the block of its number.
    pub(in crate::collective) fn of_ranks(
        algorithm: Algorithm,
        blocks: Blocks,
        ranks: u32,
    ) -> Self {
        Self {
            algorithm,
            window: None,
            first_partner: FirstPartner::Near,
            ranks: (0..ranks).collect(),
            blocks: (0..ranks).map(|rank| blocks.range(rank)).collect(),
        }
    }

    fn size(&self) -> usize {
        self.ranks.len()
    }

    fn held<'a>(&self, held: &'a Held, member: usize) -> &'a [Piece] {
        &held[self.ranks[member] as usize]
    }

    /// The block of a member after a scatter.
    fn place(&self, member: usize) -> usize {
        match self.first_partner {
            // Halves of halves end at the block of the member's number.
            FirstPartner::Far => member,
            FirstPartner::Near => place(self.algorithm, member as u32, self.size() as u32) as usize,
        }
    }

    /// Distances to the members with which a member exchanges halves, the largest half first.
    fn distances(&self) -> Vec<usize> {
        let near_first = (0..self.size().ilog2()).map(|bit| 1 << bit);
        match self.first_partner {
            FirstPartner::Far => near_first.rev().collect(),
            FirstPartner::Near => near_first.collect(),
        }
    }

    fn span(&self, blocks: &Range<usize>) -> Range<u64> {
        self.blocks[blocks.start].start..self.blocks[blocks.end - 1].end
    }

    fn ends(&self, from: usize, to: usize) -> (u32, u32) {
        (self.ranks[from], self.ranks[to])
    }

    /// The same with this partner first, for halving and doubling.
    pub(in crate::collective) fn with_first_partner(self, first_partner: FirstPartner) -> Self {
        Self {
            first_partner,
            ..self
        }
    }

    /// Reduce-scatter. In the end each rank holds the pieces of its own block alone: the other blocks were given away, and come back as
    /// copies.
    pub(in crate::collective) fn scatter(&self, builder: &mut Builder, held: &mut Held) {
        let arrived = match self.algorithm {
            Algorithm::Direct => self.scatter_directly(builder, held),
            Algorithm::HalvingDoubling => self.halve(builder, held),
            Algorithm::Ring | Algorithm::DoubleBinaryTree => self.scatter_around(builder, held),
        };
        self.keep(arrived, held);
        for (member, &rank) in self.ranks.iter().enumerate() {
            let own = &self.blocks[self.place(member)];
            held[rank as usize].retain_mut(|piece| piece.clip(own));
        }
    }

    /// All-gather of the blocks that the members hold. In the end they hold all of them, if that `is_needed`.
    pub(in crate::collective) fn gather(
        &self,
        builder: &mut Builder,
        held: &mut Held,
        is_needed: bool,
    ) {
        let arrived = match self.algorithm {
            Algorithm::Direct => self.gather_directly(builder, held, is_needed),
            Algorithm::HalvingDoubling => self.double(builder, held),
            Algorithm::Ring | Algorithm::DoubleBinaryTree => {
                self.gather_around(builder, held, is_needed)
            }
        };
        if is_needed {
            self.keep(arrived, held);
        }
    }

    /// All-reduce of all blocks, which the ranks hold in the end if that `is_needed`.
    pub(in crate::collective) fn reduce(
        &self,
        builder: &mut Builder,
        held: &mut Held,
        is_needed: bool,
    ) {
        if self.algorithm == Algorithm::DoubleBinaryTree {
            let arrived = self.pass_trees(builder, held);
            self.keep(arrived, held);
        } else {
            self.scatter(builder, held);
            self.gather(builder, held, is_needed);
        }
    }

    /// Adds the pieces that arrive at each member to those that its rank holds.
    pub(super) fn keep(&self, arrived: Vec<Vec<Piece>>, held: &mut Held) {
        for (&rank, mut pieces) in self.ranks.iter().zip(arrived) {
            held[rank as usize].append(&mut pieces);
        }
    }

    fn scatter_around(&self, builder: &mut Builder, held: &Held) -> Vec<Vec<Piece>> {
        let size = self.size();
        // By block: the piece that brought it where it is.
        let mut brought = vec![Piece::EMPTY; size];
        for step in 0..size - 1 {
            for member in 0..size {
                let block = (member + 2 * size - 1 - step) % size;
                let mut after = self.held(held, member).to_vec();
                after.push(brought[block].clone());
                let ends = self.ends(member, (member + 1) % size);
                let range = self.blocks[block].clone();
                brought[block] = builder.send(ends, range, Effect::Reduce, &after);
            }
        }
        brought.into_iter().map(|piece| vec![piece]).collect()
    }

    fn gather_around(
        &self,
        builder: &mut Builder,
        held: &Held,
        is_needed: bool,
    ) -> Vec<Vec<Piece>> {
        let size = self.size();
        let mut brought = vec![Piece::EMPTY; size];
        let mut arrived = vec![Vec::new(); size];
        for step in 0..size - 1 {
            for member in 0..size {
                let block = (member + size - step) % size;
                let after = match step {
                    0 => self.held(held, member),
                    _ => std::slice::from_ref(&brought[block]),
                };
                let next = (member + 1) % size;
                let (ends, range) = (self.ends(member, next), self.blocks[block].clone());
                let piece = builder.send(ends, range, Effect::Copy, after);
                if is_needed {
                    arrived[next].push(piece.clone());
                }
                brought[block] = piece;
            }
        }
        arrived
    }

    fn scatter_directly(&self, builder: &mut Builder, held: &Held) -> Vec<Vec<Piece>> {
        let block = |_, to: usize| self.blocks[to].clone();
        self.send_directly(builder, (held, true), Effect::Reduce, block)
    }

    fn gather_directly(
        &self,
        builder: &mut Builder,
        held: &Held,
        is_needed: bool,
    ) -> Vec<Vec<Piece>> {
        let block = |from: usize, _| self.blocks[from].clone();
        self.send_directly(builder, (held, is_needed), Effect::Copy, block)
    }

    /// Each member sends a block to each other, the next one first. Returns the pieces that arrive at each, if that `is_needed`.
    fn send_directly(
        &self,
        builder: &mut Builder,
        (held, is_needed): (&Held, bool),
        effect: Effect,
        block: impl Fn(usize, usize) -> Range<u64>,
    ) -> Vec<Vec<Piece>> {
        let size = self.size();
        let mut arrived = vec![Vec::new(); size];
        let mut sent: Vec<Vec<Piece>> = vec![Vec::new(); size];
        for distance in 1..size {
            for (from, sent) in sent.iter_mut().enumerate() {
                let to = (from + distance) % size;
                let mut after = self.held(held, from).to_vec();
                let before = self
                    .window
                    .and_then(|window| sent.len().checked_sub(window));
                after.extend(before.map(|place| sent[place].clone()));
                let piece = builder.send(self.ends(from, to), block(from, to), effect, &after);
                if self.window.is_some() {
                    sent.push(piece.clone().sent());
                }
                if is_needed {
                    arrived[to].push(piece);
                }
            }
        }
        arrived
    }

    fn halve(&self, builder: &mut Builder, held: &Held) -> Vec<Vec<Piece>> {
        let size = self.size();
        let mut kept = vec![0..size; size];
        let mut arrived = vec![Vec::new(); size];
        for distance in self.distances() {
            let mut sent = Vec::with_capacity(size);
            for (member, kept) in kept.iter_mut().enumerate() {
                let middle = kept.start.midpoint(kept.end);
                let (lower, upper) = (kept.start..middle, middle..kept.end);
                let (mine, given) = match member & distance == 0 {
                    true => (lower, upper),
                    false => (upper, lower),
                };
                *kept = mine;
                let after = [self.held(held, member), &arrived[member]].concat();
                let ends = self.ends(member, member ^ distance);
                sent.push(builder.send(ends, self.span(&given), Effect::Reduce, &after));
            }
            for (member, piece) in sent.into_iter().enumerate() {
                arrived[member ^ distance].push(piece);
            }
        }
        arrived
    }

    fn double(&self, builder: &mut Builder, held: &Held) -> Vec<Vec<Piece>> {
        let size = self.size();
        let own = |member| self.place(member)..self.place(member) + 1;
        let mut kept: Vec<Range<usize>> = (0..size).map(own).collect();
        let mut arrived: Vec<Vec<Piece>> = vec![Vec::new(); size];
        for distance in self.distances().into_iter().rev() {
            let before = kept.clone();
            let mut sent = Vec::with_capacity(size);
            for (member, kept) in kept.iter_mut().enumerate() {
                let after = [self.held(held, member), &arrived[member]].concat();
                let ends = self.ends(member, member ^ distance);
                sent.push(builder.send(ends, self.span(kept), Effect::Copy, &after));
                let got = &before[member ^ distance];
                *kept = kept.start.min(got.start)..kept.end.max(got.end);
            }
            for (member, piece) in sent.into_iter().enumerate() {
                arrived[member ^ distance].push(piece);
            }
        }
        arrived
    }

    fn pass_trees(&self, builder: &mut Builder, held: &Held) -> Vec<Vec<Piece>> {
        let all = self.span(&(0..self.size()));
        let halves = Blocks::new(all.end - all.start, 2);
        let half = |tree: u32| {
            let half = halves.range(tree);
            all.start + half.start..all.start + half.end
        };
        let mut arrived = vec![Vec::new(); self.size()];
        let mut chunks = [half(0), half(1)].map(|half| builder.chunks(half));
        let mut passes =
            BinaryTree::pair(self.size() as u32).map(|tree| Pass::new(tree, self.ranks.clone()));
        loop {
            let mut is_over = true;
            for (tree, (pass, chunks)) in passes.iter_mut().zip(&mut chunks).enumerate() {
                let Some(chunk) = chunks.next() else {
                    continue;
                };
                is_over = false;
                pass.send(builder, tree, &chunk, held);
                for (member, pieces) in arrived.iter_mut().enumerate() {
                    let tasks = pass.arrived(member as u32);
                    pieces.extend(tasks.map(|task| Piece::of_range(task, chunk.clone())));
                }
            }
            if is_over {
                return arrived;
            }
        }
    }
}

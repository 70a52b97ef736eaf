//! All-to-all in a row of a dimension.
//!
//! A rank that has come to a dimension holds, of each rank that differs from it in earlier dimensions alone, the blocks for all ranks with
//! its own coordinates there. It sends a member of its row those of them that are for ranks with the coordinate of that member, in one
//! message.

use super::algorithm::DimensionAlgorithm as Algorithm;
use super::lattice::Lattice;
use super::rows::{Held, Row};
use crate::collective::Effect;
use crate::collective::builder::{Builder, Piece};
use std::ops::Range;

/// The exchange of a row.
pub(super) struct Exchange<'a> {
    pub(super) lattice: &'a Lattice,
    pub(super) dimension: usize,
    /// Indices of the members in the order of coordinates.
    pub(super) members: &'a [u32],
    pub(super) row: &'a Row,
    /// Size of the buffer of a rank.
    pub(super) size: u64,
}

impl Exchange<'_> {
    /// Adds the messages.
    pub(super) fn run(&self, builder: &mut Builder, held: &mut Held) {
        let ranks = self.row.ranks.iter();
        let ready: Vec<Vec<Piece>> = ranks.map(|&rank| self.ready(builder, rank, held)).collect();
        let arrived = match self.row.algorithm {
            Algorithm::Ring => self.around(builder, &ready),
            _ => self.directly(builder, &ready),
        };
        self.row.keep(arrived, held);
    }

    /// All that a rank waits for, as one task if that is several.
    fn ready(&self, builder: &mut Builder, rank: u32, held: &Held) -> Vec<Piece> {
        let held = &held[rank as usize];
        match held.len() {
            0 | 1 => held.clone(),
            _ => vec![Piece::whole(builder.join(rank, held, []))],
        }
    }

    /// Bytes that the member `from` has at first for the member `to`, in the space of the operation.
    fn ranges(&self, from: usize, to: usize) -> Vec<Range<u64>> {
        let stride = self.lattice.stride(self.dimension);
        let first = self.members[from] / stride * stride;
        let block = &self.row.blocks[to];
        let source = |index| {
            let buffer = u64::from(self.lattice.rank(index)) * self.size;
            buffer + block.start..buffer + block.end
        };
        (first..first + stride).map(source).collect()
    }

    fn directly(&self, builder: &mut Builder, ready: &[Vec<Piece>]) -> Vec<Vec<Piece>> {
        let size = self.members.len();
        let mut arrived = vec![Vec::with_capacity(size - 1); size];
        let mut sent: Vec<Vec<Piece>> = vec![Vec::with_capacity(size - 1); size];
        for distance in 1..size {
            for (from, sent) in sent.iter_mut().enumerate() {
                let to = (from + distance) % size;
                let window = self.row.window;
                let before = window.and_then(|window| sent.len().checked_sub(window));
                let mut after = ready[from].clone();
                after.extend(before.map(|place| sent[place].clone()));
                let ends = (self.row.ranks[from], self.row.ranks[to]);
                let piece = builder.send_ranges(ends, &self.ranges(from, to), Effect::Copy, &after);
                sent.push(piece.clone().sent());
                arrived[to].push(piece);
            }
        }
        arrived
    }

    /// Blocks go from neighbour to neighbour: those for the next member first, then those for the one after it by way of the next, and so
    /// on. A member sends the next message when one has arrived.
    fn around(&self, builder: &mut Builder, ready: &[Vec<Piece>]) -> Vec<Vec<Piece>> {
        let size = self.members.len();
        let mut arrived = vec![Vec::new(); size];
        let mut last: Vec<Vec<Piece>> = vec![Vec::new(); size];
        for distance in 1..size {
            for hop in 0..distance {
                let mut next = vec![Vec::new(); size];
                for at in 0..size {
                    let from = (at + size - hop) % size;
                    let ranges = self.ranges(from, (from + distance) % size);
                    let to = (at + 1) % size;
                    let ends = (self.row.ranks[at], self.row.ranks[to]);
                    let mut after = last[at].clone();
                    if hop == 0 {
                        after.extend_from_slice(&ready[at]);
                    }
                    let piece = builder.send_ranges(ends, &ranges, Effect::Copy, &after);
                    arrived[to].push(piece.clone());
                    next[to] = vec![piece];
                }
                last = next;
            }
        }
        arrived
    }
}

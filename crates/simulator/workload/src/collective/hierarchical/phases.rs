//! Phases of the operations, split by split.

use super::algorithm::DimensionAlgorithm;
use super::dimensions::Dimensions;
use super::exchange::Exchange;
use super::lattice::Lattice;
use super::rows::{Held, Row};
use crate::collective::blocks::{BlockOwners, Blocks};
use crate::collective::builder::{Builder, Piece};
use crate::collective::{Collective, FirstPartner, Operation};
use crate::graph::TaskId;
use std::ops::Range;

/// What the rows of a dimension do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Scatter,
    Reduce,
    Gather,
    Exchange,
}

/// A hierarchical collective.
pub(super) struct Phases<'a> {
    pub(super) dimensions: &'a Dimensions,
    pub(super) lattice: Lattice,
    pub(super) algorithms: Vec<DimensionAlgorithm>,
}

impl Phases<'_> {
    /// Adds the messages of an operation on buffers of `size` bytes.
    pub(super) fn build(
        &self,
        mut builder: Builder,
        (operation, size): (Operation, u64),
    ) -> Collective {
        let delay = self.dimensions.endpoint_delay;
        let ranks = self.lattice.ranks();
        let phases = self.phases(operation);
        let active = self
            .dimensions
            .active_splits
            .map(|most| most.get() as usize);
        // For each phase, split and rank, the task that ends it.
        let mut ends: Vec<Vec<Vec<TaskId>>> = vec![Vec::new(); phases.len()];
        let splits = Blocks::new(size, self.dimensions.splits.get());
        let ranges = (0..self.dimensions.splits.get()).map(|split| splits.range(split));
        for range in ranges.filter(|range| !range.is_empty()) {
            let mut held: Held = vec![Vec::new(); ranks as usize];
            for (number, &phase) in phases.iter().enumerate() {
                let ends = &mut ends[number];
                let before = active.and_then(|active| ends.len().checked_sub(active));
                for (rank, held) in (0..ranks).zip(&mut held) {
                    held.extend(before.map(|split| Piece::whole(ends[split][rank as usize])));
                    if !delay.is_zero() {
                        *held = vec![Piece::whole(builder.wait(rank, held, delay))];
                    }
                }
                let is_needed = number + 1 < phases.len() || active.is_some();
                self.run(&mut builder, phase, (&range, size), (&mut held, is_needed));
                if active.is_some() {
                    let join = |(rank, pieces): (u32, &Vec<Piece>)| builder.join(rank, pieces, []);
                    ends.push((0..).zip(&held).map(join).collect());
                }
            }
        }
        let places = self.lattice.ranks_by_place(&self.algorithms);
        builder.finish_with(BlockOwners::new(self.dimensions.splits.get(), places))
    }

    /// Dimensions in the order in which they have their turn.
    fn phases(&self, operation: Operation) -> Vec<(Step, usize)> {
        let all = 0..self.lattice.sizes.len();
        let last = all.end.saturating_sub(1);
        let each = |step| move |dimension| (step, dimension);
        match operation {
            Operation::ReduceScatter => all.map(each(Step::Scatter)).collect(),
            Operation::AllGather => all.rev().map(each(Step::Gather)).collect(),
            Operation::AllToAll => all.map(each(Step::Exchange)).collect(),
            _ => {
                let down = (0..last).map(each(Step::Scatter));
                let up = (0..last).rev().map(each(Step::Gather));
                down.chain([(Step::Reduce, last)]).chain(up).collect()
            }
        }
    }

    /// Runs a phase in all rows of a dimension.
    fn run(
        &self,
        builder: &mut Builder,
        (step, dimension): (Step, usize),
        (range, size): (&Range<u64>, u64),
        (held, is_needed): (&mut Held, bool),
    ) {
        for members in self.lattice.rows(dimension) {
            let row = self.row(dimension, &members, range);
            match step {
                Step::Scatter => row.scatter(builder, held),
                Step::Reduce => row.reduce(builder, held, is_needed),
                Step::Gather => row.gather(builder, held, is_needed),
                Step::Exchange => {
                    let exchange = Exchange {
                        lattice: &self.lattice,
                        dimension,
                        members: &members,
                        row: &row,
                        size,
                    };
                    exchange.run(builder, held);
                }
            }
        }
    }

    fn row(&self, dimension: usize, members: &[u32], range: &Range<u64>) -> Row {
        let Self {
            lattice,
            algorithms,
            ..
        } = self;
        let blocks = Blocks::new(range.end - range.start, lattice.ranks());
        let first = lattice.first_block(algorithms, members[0], dimension);
        let width = lattice.width(dimension + 1);
        let block = |place: u32| {
            let from = first + place * width;
            let own = blocks.span(from..from + width);
            range.start + own.start..range.start + own.end
        };
        let window = self.dimensions.direct_window;
        Row {
            algorithm: algorithms[dimension],
            window: window.map(|most| most.get() as usize),
            first_partner: FirstPartner::Near,
            ranks: members.iter().map(|&index| lattice.rank(index)).collect(),
            blocks: (0..members.len() as u32).map(block).collect(),
        }
    }
}

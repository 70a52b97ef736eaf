//! Recursive halving and doubling: pairs of ranks exchange halves, then halves of halves, until each has the sum of one block; then
//! the same way back (Rabenseifner; Thakur, Rabenseifner and Gropp 2005).

use super::blocks::Blocks;
use super::builder::{Builder, Extent, Piece, sound};
use super::options::Options;
use super::{
    Collective, CollectiveDefinition, CollectiveError, Effect, Operation, Reduction, StepPipelining,
};
use clearway_units::{Bytes, choices, parameters};
use std::ops::Range;

choices! {
    /// Rank with which a rank exchanges the largest half.
    pub enum FirstPartner {
        /// The rank half of all ranks away, then a quarter, and so on: rank r gets block r.
        Far = "far",
        /// The next rank, then the one two away, and so on: the most bytes go the shortest way.
        Near = "near",
    }
}

parameters! {
    /// All-reduce by recursive halving and doubling. If the number of ranks is not a power of two, each rank beyond the largest power of
    /// two first sends its buffer to a lower rank, pauses, and receives the sum from there.
    pub struct HalvingDoublingSettings {
        /// Size of the buffer that each rank contributes to the sum.
        pub size: Bytes = Bytes::new(128_000_000), "size", "STrack §2.1: 128 MB";
        /// Rank with which a rank exchanges the largest half.
        pub first_partner: FirstPartner = FirstPartner::Far, "first-partner", "recursive halving as in Thakur, Rabenseifner and Gropp 2005";
        with {
            /// Chunk size and window of the messages.
            pub cut: StepPipelining,
            /// Rate of the reduction.
            pub reduction: Reduction,
        }
    }
}

impl CollectiveDefinition for HalvingDoublingSettings {
    const OPERATION: &'static str = "all-reduce";
    const ALGORITHM: &'static str = "halving-doubling";
    const SUMMARY: &'static str = "pairs of ranks exchange halves, then halves of halves, and back";

    fn build(&self, ranks: u32) -> Result<Collective, CollectiveError> {
        sound::<Self>(ranks, self.size)?;
        let whole = 0..self.size.as_u64();
        let extent = Extent {
            pieces: u128::from(ranks) * 2 * u128::from(ranks.ilog2() + 1),
            payload: u128::from(ranks) * 2 * u128::from(whole.end),
        };
        let options = Options::from(&self.cut).reducing(&self.reduction);
        let mut builder =
            Builder::new::<Self>(Operation::AllReduce, ranks, self.size, extent, options)?;
        let core = 1 << ranks.ilog2();
        let mut exchange = Exchange::new(whole.end, core);
        for rank in 0..ranks - core {
            let piece = builder.send((core + rank, rank), whole.clone(), Effect::Reduce, &[]);
            exchange.arrived[rank as usize].push(piece);
        }
        let distances = self.distances(core);
        for &distance in &distances {
            exchange.halve(&mut builder, distance);
        }
        exchange.forget_what_was_given_away();
        for &distance in distances.iter().rev() {
            exchange.double(&mut builder, distance);
        }
        for rank in 0..ranks - core {
            let arrived = &exchange.arrived[rank as usize];
            builder.send((rank, core + rank), whole.clone(), Effect::Copy, arrived);
        }
        Ok(builder.finish())
    }

    fn steps(&self, ranks: u32) -> u32 {
        2 * ranks.ilog2() + if ranks.is_power_of_two() { 0 } else { 2 }
    }
}

impl HalvingDoublingSettings {
    fn distances(&self, core: u32) -> Vec<u32> {
        let near_first = (0..core.ilog2()).map(|bit| 1 << bit);
        match self.first_partner {
            FirstPartner::Far => near_first.rev().collect(),
            FirstPartner::Near => near_first.collect(),
        }
    }
}

/// State of an exchange among a power of two of ranks.
struct Exchange {
    blocks: Blocks,
    /// For each rank, the blocks that it adds up, or of which it has the sum.
    kept: Vec<Range<u32>>,
    /// For each rank, the received pieces on which later messages depend.
    arrived: Vec<Vec<Piece>>,
}

impl Exchange {
    fn new(size: u64, ranks: u32) -> Self {
        Self {
            blocks: Blocks::new(size, ranks),
            kept: vec![0..ranks; ranks as usize],
            arrived: vec![Vec::new(); ranks as usize],
        }
    }

    /// Every rank gives half of its blocks to the one at `distance`.
    fn halve(&mut self, builder: &mut Builder, distance: u32) {
        let give = |(rank, kept): (u32, &mut Range<u32>)| {
            let middle = kept.start + (kept.end - kept.start) / 2;
            let (lower, upper) = (kept.start..middle, middle..kept.end);
            let (mine, given) = match rank & distance == 0 {
                true => (lower, upper),
                false => (upper, lower),
            };
            *kept = mine;
            given
        };
        let given: Vec<_> = (0..).zip(&mut self.kept).map(give).collect();
        self.exchange(builder, distance, &given, Effect::Reduce);
    }

    /// Every rank sends a copy of its blocks to the one at `distance`.
    fn double(&mut self, builder: &mut Builder, distance: u32) {
        let sent = self.kept.clone();
        self.exchange(builder, distance, &sent, Effect::Copy);
        for (rank, kept) in self.kept.iter_mut().enumerate() {
            let got = &sent[rank ^ distance as usize];
            *kept = kept.start.min(got.start)..kept.end.max(got.end);
        }
    }

    fn exchange(
        &mut self,
        builder: &mut Builder,
        distance: u32,
        sent: &[Range<u32>],
        effect: Effect,
    ) {
        let send = |(rank, blocks): (u32, &Range<u32>)| {
            let range = self.blocks.span(blocks.clone());
            let arrived = &self.arrived[rank as usize];
            builder.send((rank, rank ^ distance), range, effect, arrived)
        };
        let pieces: Vec<_> = (0..).zip(sent).map(send).collect();
        for (rank, piece) in pieces.into_iter().enumerate() {
            self.arrived[rank ^ distance as usize].push(piece);
        }
    }

    /// Clips the received pieces of each rank to the blocks that it keeps. The other blocks were passed on, and come back as copies.
    fn forget_what_was_given_away(&mut self) {
        for (kept, arrived) in self.kept.iter().zip(&mut self.arrived) {
            let range = self.blocks.span(kept.clone());
            for piece in arrived {
                *piece = piece.clone().clipped(&range);
            }
        }
    }
}

//! Recursive halving and doubling: pairs of ranks exchange halves, then halves of halves, until each has the sum of one block; then
//! the same way back (Rabenseifner; Thakur, Rabenseifner and Gropp 2005).

use super::blocks::Blocks;
use super::builder::{Builder, Extent, sound};
use super::hierarchical::Row;
use super::options::Options;
use super::{
    Collective, CollectiveDefinition, CollectiveError, DimensionAlgorithm, Effect, FirstPartner,
    Operation, Reduction, StepPipelining,
};
use clearway_units::{Bytes, parameters};

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
        let core: u32 = 1 << ranks.ilog2();
        let blocks = Blocks::new(whole.end, core);
        let row = Row::of_ranks(DimensionAlgorithm::HalvingDoubling, blocks, core)
            .with_first_partner(self.first_partner);
        let mut held = vec![Vec::new(); core as usize];
        for rank in 0..ranks - core {
            let piece = builder.send((core + rank, rank), whole.clone(), Effect::Reduce, &[]);
            held[rank as usize].push(piece);
        }
        row.reduce(&mut builder, &mut held, core < ranks);
        for rank in 0..ranks - core {
            builder.send(
                (rank, core + rank),
                whole.clone(),
                Effect::Copy,
                &held[rank as usize],
            );
        }
        Ok(builder.finish())
    }

    fn steps(&self, ranks: u32) -> u32 {
        2 * ranks.ilog2() + if ranks.is_power_of_two() { 0 } else { 2 }
    }
}

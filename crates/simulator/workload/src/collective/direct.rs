//! All-gather and reduce-scatter without detours: the halves of a direct all-reduce.

use super::blocks::Blocks;
use super::builder::{Builder, Extent, sound};
use super::hierarchical::Row;
use super::options::Options;
use super::{
    Collective, CollectiveDefinition, CollectiveError, DimensionAlgorithm, DirectPipelining,
    Operation, Reduction,
};
use clearway_units::{Bytes, parameters};

parameters! {
    /// All-gather in which every rank sends its block to every other, all at once, to the next rank first.
    pub struct DirectAllGatherSettings {
        /// Final size of the buffer of each rank: the blocks of all ranks together.
        pub size: Bytes = Bytes::new(128_000_000), "size", "as for an all-reduce";
        with {
            /// Chunk size and window of the messages.
            pub parts: DirectPipelining,
        }
    }
}

parameters! {
    /// Reduce-scatter in which every rank sends block r to rank r, all at once, to the next rank first.
    pub struct DirectReduceScatterSettings {
        /// Size of the buffer that each rank contributes to the sum.
        pub size: Bytes = Bytes::new(128_000_000), "size", "as for an all-reduce";
        with {
            /// Chunk size and window of the messages.
            pub parts: DirectPipelining,
            /// Rate of the reduction.
            pub reduction: Reduction,
        }
    }
}

fn extent(ranks: u32, size: Bytes) -> Extent {
    let others = u128::from(ranks - 1);
    Extent {
        pieces: u128::from(ranks) * others,
        payload: others * u128::from(size.as_u64()),
    }
}

impl CollectiveDefinition for DirectAllGatherSettings {
    const OPERATION: &'static str = "all-gather";
    const ALGORITHM: &'static str = "direct";
    const SUMMARY: &'static str = "every rank sends its block to all";

    fn build(&self, ranks: u32) -> Result<Collective, CollectiveError> {
        sound::<Self>(ranks, self.size)?;
        let (operation, options) = (Operation::AllGather, Options::from(&self.parts));
        let extent = extent(ranks, self.size);
        let mut builder = Builder::new::<Self>(operation, ranks, self.size, extent, options)?;
        let blocks = Blocks::new(self.size.as_u64(), ranks);
        let row = Row::of_ranks(DimensionAlgorithm::Direct, blocks, ranks);
        row.gather(&mut builder, &mut vec![Vec::new(); ranks as usize], false);
        Ok(builder.finish())
    }

    fn steps(&self, _ranks: u32) -> u32 {
        1
    }
}

impl CollectiveDefinition for DirectReduceScatterSettings {
    const OPERATION: &'static str = "reduce-scatter";
    const ALGORITHM: &'static str = "direct";
    const SUMMARY: &'static str = "every rank sends each other rank that rank's block";

    fn build(&self, ranks: u32) -> Result<Collective, CollectiveError> {
        sound::<Self>(ranks, self.size)?;
        let options = Options::from(&self.parts).reducing(&self.reduction);
        let operation = Operation::ReduceScatter;
        let extent = extent(ranks, self.size);
        let mut builder = Builder::new::<Self>(operation, ranks, self.size, extent, options)?;
        let blocks = Blocks::new(self.size.as_u64(), ranks);
        let row = Row::of_ranks(DimensionAlgorithm::Direct, blocks, ranks);
        row.scatter(&mut builder, &mut vec![Vec::new(); ranks as usize]);
        Ok(builder.finish())
    }

    fn steps(&self, _ranks: u32) -> u32 {
        1
    }
}

//! Scatter and gather without detours: every rank sends every other its part, adds up, and sends the sum of its part to all
//! (TMDML, §II).

use super::blocks::Blocks;
use super::builder::{Builder, Extent, Piece, sound};
use super::options::Options;
use super::{
    Collective, CollectiveDefinition, CollectiveError, Effect, Operation, Parts, Reduction,
};
use crate::TaskId;
use clearway_units::{Bytes, choices, parameters};

choices! {
    /// What a rank waits for before it sends the sum of its part.
    pub enum Barrier {
        /// All parts that are sent to this rank.
        Rank = "rank",
        /// All parts that are sent to any rank. News of that goes round in messages of one byte, of which each rank sends one to
        /// the rank 1, 2, 4, ... after it, each when it has the one before (a dissemination barrier).
        Global = "global",
    }
}

parameters! {
    /// All-reduce by scatter and gather: every rank sends block r to rank r, all at once; rank r adds them up and sends the sum to all,
    /// again all at once.
    pub struct DirectAllReduceSettings {
        /// What each rank has to add up.
        pub size: Bytes = Bytes::new(240_000_000), "size", "TMDML Table III: AlexNet";
        /// What a rank waits for before it sends the sum of its part.
        pub barrier: Barrier = Barrier::Rank, "barrier", "TMDML §II: a node sends its updated part, which needs no other";
        with {
            /// How it is cut into messages.
            pub parts: Parts,
            /// What adding up costs.
            pub reduction: Reduction,
        }
    }
}

impl CollectiveDefinition for DirectAllReduceSettings {
    const OPERATION: &'static str = "all-reduce";
    const ALGORITHM: &'static str = "direct";
    const SUMMARY: &'static str = "every rank adds up one block for all, and sends it to all";

    fn build(&self, ranks: u32) -> Result<Collective, CollectiveError> {
        sound::<Self>(ranks, self.size)?;
        let others = u128::from(ranks - 1);
        let extent = Extent {
            pieces: u128::from(ranks) * (2 * others + u128::from(self.rounds(ranks))),
            payload: 2 * others * u128::from(self.size.as_u64()),
        };
        let options = Options::from(&self.parts).reducing(&self.reduction);
        let operation = Operation::AllReduce;
        let mut builder = Builder::new::<Self>(operation, ranks, self.size, extent, options)?;
        let blocks = Blocks::new(self.size.as_u64(), ranks);
        let arrived = scatter(&mut builder, blocks, ranks);
        let join = |(rank, pieces): (u32, &Vec<Piece>)| builder.join(rank, pieces, []);
        let mut ready: Vec<TaskId> = (0..).zip(&arrived).map(join).collect();
        for round in 0..self.rounds(ranks) {
            ready = spread_news(&mut builder, 1 << round, &ready);
        }
        let after: Vec<Piece> = ready.into_iter().map(Piece::whole).collect();
        gather(&mut builder, blocks, ranks, &after);
        Ok(builder.finish())
    }

    fn steps(&self, ranks: u32) -> u32 {
        2 + self.rounds(ranks)
    }
}

impl DirectAllReduceSettings {
    /// Rounds of the global barrier: the news has reached twice as many ranks after each.
    fn rounds(&self, ranks: u32) -> u32 {
        match self.barrier {
            Barrier::Rank => 0,
            Barrier::Global => (ranks - 1).ilog2() + 1,
        }
    }
}

/// Every rank sends every other its block to add up. For each rank, what comes to it.
pub(super) fn scatter(builder: &mut Builder, blocks: Blocks, ranks: u32) -> Vec<Vec<Piece>> {
    let mut arrived = vec![Vec::with_capacity(ranks as usize); ranks as usize];
    for distance in 1..ranks {
        for rank in 0..ranks {
            let to = (rank + distance) % ranks;
            let piece = builder.send((rank, to), blocks.range(to), Effect::Reduce, &[]);
            arrived[to as usize].push(piece);
        }
    }
    arrived
}

/// Every rank sends its block to every other, after what `after` holds for it, if anything.
pub(super) fn gather(builder: &mut Builder, blocks: Blocks, ranks: u32, after: &[Piece]) {
    for distance in 1..ranks {
        for rank in 0..ranks {
            let to = (rank + distance) % ranks;
            let after = after
                .get(rank as usize)
                .map_or(&[][..], std::slice::from_ref);
            builder.send((rank, to), blocks.range(rank), Effect::Copy, after);
        }
    }
}

/// A round of the barrier: every rank that is `ready` says so to the one `distance` after it. For each rank, when it is ready and
/// knows that of the one before.
fn spread_news(builder: &mut Builder, distance: u32, ready: &[TaskId]) -> Vec<TaskId> {
    let ranks = ready.len() as u32;
    let tell = |(rank, &ready): (u32, &TaskId)| {
        builder.message(
            (rank, (rank + distance) % ranks),
            0..1,
            Effect::Nothing,
            [ready],
        )
    };
    let news: Vec<TaskId> = (0..).zip(ready).map(tell).collect();
    let join = |(rank, &ready): (u32, &TaskId)| {
        let from = (rank + ranks - distance) % ranks;
        builder.join(rank, &[], [ready, news[from as usize]])
    };
    (0..).zip(ready).map(join).collect()
}

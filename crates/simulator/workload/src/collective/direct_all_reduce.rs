//! Scatter and gather without detours: every rank sends every other its part, adds up, and sends the sum of its part to all
//! (TMDML, §II).
//!
//! Each pair of ranks has one connection, which carries the parts and then the sums: with a queue pair of RoCEv2, the gather inherits rate
//! and path of the scatter. `transport.qps = 2` with `transport.stripe = "message"` gives each phase a separate queue pair, as long as a
//! phase is one message for each pair (`chunk = "auto"`, `barrier = "rank"`).

use super::blocks::Blocks;
use super::builder::{Builder, Extent, Piece, sound};
use super::hierarchical::Row;
use super::options::Options;
use super::{
    Collective, CollectiveDefinition, CollectiveError, DimensionAlgorithm, DirectPipelining,
    Effect, Operation, Reduction,
};
use crate::TaskId;
use clearway_units::{Bytes, choices, parameters};

choices! {
    /// Barrier between scatter and gather: the messages that must arrive before a rank sends the sum of its part.
    pub enum Barrier {
        /// All parts that are sent to this rank.
        Rank = "rank",
        /// All parts that are sent to any rank. Ranks learn of this by a dissemination barrier: each sends messages of one byte to the
        /// ranks 1, 2, 4, ... after it, each when it has received the one before.
        Global = "global",
    }
}

parameters! {
    /// All-reduce by scatter and gather: every rank sends block r to rank r, all at once; rank r adds them up and sends the sum to all,
    /// again all at once.
    pub struct DirectAllReduceSettings {
        /// Size of the buffer that each rank contributes to the sum.
        pub size: Bytes = Bytes::new(240_000_000), "size", "TMDML Table III: AlexNet";
        /// Messages that must arrive before a rank sends the sum of its part.
        pub barrier: Barrier = Barrier::Rank, "barrier", "TMDML §II: a node sends its updated part, which needs no other";
        with {
            /// Chunk size and window of the messages.
            pub parts: DirectPipelining,
            /// Rate of the reduction.
            pub reduction: Reduction,
        }
    }
}

impl CollectiveDefinition for DirectAllReduceSettings {
    const OPERATION: &'static str = "all-reduce";
    const ALGORITHM: &'static str = "direct";
    const SUMMARY: &'static str = "every rank sums one block and sends it to all";

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
        let row = Row::of_ranks(DimensionAlgorithm::Direct, blocks, ranks);
        let mut held = vec![Vec::new(); ranks as usize];
        row.scatter(&mut builder, &mut held);
        let join = |(rank, pieces): (u32, &Vec<Piece>)| builder.join(rank, pieces, []);
        let mut ready: Vec<TaskId> = (0..).zip(&held).map(join).collect();
        for round in 0..self.rounds(ranks) {
            ready = spread_news(&mut builder, 1 << round, &ready);
        }
        let mut held = ready
            .into_iter()
            .map(|task| vec![Piece::whole(task)])
            .collect();
        row.gather(&mut builder, &mut held, false);
        Ok(builder.finish())
    }

    fn steps(&self, ranks: u32) -> u32 {
        2 + self.rounds(ranks)
    }
}

impl DirectAllReduceSettings {
    /// Rounds of the global barrier. After each of them the notification has reached twice as many ranks.
    fn rounds(&self, ranks: u32) -> u32 {
        match self.barrier {
            Barrier::Rank => 0,
            Barrier::Global => (ranks - 1).ilog2() + 1,
        }
    }
}

/// Adds a round of the dissemination barrier: when a rank is `ready`, it notifies the rank `distance` after it. Returns for each rank the
/// task that is over when the rank is ready and has been notified.
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

//! All-to-all: every rank has a different block for every other.

use super::blocks::Blocks;
use super::builder::{Builder, Extent, sound};
use super::options::Options;
use super::{Collective, CollectiveDefinition, CollectiveError, Effect, Operation, Parts};
use crate::Parallelism;
use clearway_units::{Bytes, parameters};

parameters! {
    /// All-to-all in which rank r sends to the ranks r + 1, r + 2, ... mod N in this order, a limited number at a time (STrack §4.3).
    /// Limits count messages: with "auto" for `chunk` those are connections.
    pub struct AllToAllSettings {
        /// Size of the buffer of a rank, with one block for each rank. The block for the rank itself stays where it is.
        pub size: Bytes = Bytes::new(128_000_000), "size", "STrack §2.1: 128 MB";
        /// Maximum number of messages in flight from a rank: the next is sent when one is acknowledged. "auto": no limit.
        pub parallelism: Option<u32> = Some(16), "parallelism", "STrack §4.3: 8, 16, 32 or 64";
        /// True if the same limit holds for the messages in flight to a rank.
        pub receiver_limit: bool = true, "receiver-limit", "STrack §4.3: sender and receiver";
        with {
            /// Chunk size and window of the messages.
            pub parts: Parts,
        }
    }
}

impl CollectiveDefinition for AllToAllSettings {
    const OPERATION: &'static str = "all-to-all";
    const ALGORITHM: &'static str = "direct";
    const SUMMARY: &'static str = "every rank sends to every other, a limited number at a time";

    fn build(&self, ranks: u32) -> Result<Collective, CollectiveError> {
        sound::<Self>(ranks, self.size)?;
        if self.parallelism == Some(0) {
            let fix = "write how many messages may be in flight, or \"auto\" for no limit";
            let message = "a parallelism of zero lets no message pass";
            return Err(Self::fault("parallelism", message, fix));
        }
        let size = self.size.as_u64();
        let extent = Extent {
            pieces: u128::from(ranks) * u128::from(ranks - 1),
            payload: u128::from(ranks) * u128::from(size),
        };
        let (operation, options) = (Operation::AllToAll, Options::from(&self.parts));
        let mut builder = Builder::new::<Self>(operation, ranks, self.size, extent, options)?;
        let blocks = Blocks::new(size, ranks);
        for distance in 1..ranks {
            for rank in 0..ranks {
                let to = (rank + distance) % ranks;
                let block = blocks.range(to);
                let buffer = u64::from(rank) * size;
                let range = buffer + block.start..buffer + block.end;
                builder.send((rank, to), range, Effect::Copy, &[]);
            }
        }
        let mut collective = builder.finish();
        collective.graph.parallelism = self.parallelism.map(|limit| Parallelism {
            from_sender: limit,
            to_receiver: self.receiver_limit.then_some(limit),
        });
        Ok(collective)
    }

    fn steps(&self, _ranks: u32) -> u32 {
        1
    }
}

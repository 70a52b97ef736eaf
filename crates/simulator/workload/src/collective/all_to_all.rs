//! All-to-all: every rank has a different block for every other.

use super::blocks::Blocks;
use super::builder::{Builder, Extent, sound};
use super::options::Options;
use super::{
    Collective, CollectiveDefinition, CollectiveError, DirectPipelining, Effect, Operation,
};
use crate::Parallelism;
use clearway_units::{Bytes, parameters};

parameters! {
    /// All-to-all in which rank r sends to the ranks r + 1, r + 2, ... mod N in this order, a limited number at a time (STrack §4.3).
    /// Limits count messages, which are connections if `chunk` is "auto".
    pub struct AllToAllSettings {
        /// Size of the buffer of a rank, with one block for each rank. A rank does not send its own block.
        pub size: Bytes = Bytes::new(128_000_000), "size", "STrack §2.1: 128 MB";
        /// Maximum number of messages in flight from a rank: the next is sent when one is acknowledged. "auto": no limit.
        pub parallelism: Option<u32> = Some(16), "parallelism", "STrack §4.3: 8, 16, 32 or 64";
        /// True if the same limit holds for the messages in flight to a rank.
        pub receiver_limit: bool = true, "receiver-limit", "STrack §4.3: sender and receiver";
        with {
            /// Chunk size and window of the messages.
            pub parts: DirectPipelining,
        }
    }
}

impl CollectiveDefinition for AllToAllSettings {
    const OPERATION: &'static str = "all-to-all";
    const ALGORITHM: &'static str = "direct";
    const SUMMARY: &'static str = "every rank sends to every other, a limited number at a time";

    fn build(&self, ranks: u32) -> Result<Collective, CollectiveError> {
        self.build_by_proxies(ranks, |_, _| None)
    }

    fn steps(&self, _ranks: u32) -> u32 {
        1
    }
}

impl AllToAllSettings {
    /// As [`build`](CollectiveDefinition::build), but the block of one rank (the first number) for another (the second) may go through a
    /// proxy, which `proxy_of` names: one message to the proxy and one from there.
    ///
    /// # Errors
    /// As `build`.
    ///
    /// # Panics
    /// If a proxy is not a rank, or is one of the two.
    pub fn build_by_proxies(
        &self,
        ranks: u32,
        proxy_of: impl Fn(u32, u32) -> Option<u32>,
    ) -> Result<Collective, CollectiveError> {
        sound::<Self>(ranks, self.size)?;
        if self.parallelism == Some(0) {
            let fix = "write how many messages may be in flight, or \"auto\" for no limit";
            let message = "a parallelism of zero lets no message pass";
            return Err(Self::fault("parallelism", message, fix));
        }
        let size = self.size.as_u64();
        let pairs = || (0..ranks).flat_map(|src| (0..ranks).map(move |dst| (src, dst)));
        let mut others = pairs().filter(|(src, dst)| src != dst);
        let most = 1 + u128::from(others.any(|(src, dst)| proxy_of(src, dst).is_some()));
        let extent = Extent {
            pieces: most * u128::from(ranks) * u128::from(ranks - 1),
            payload: most * u128::from(ranks) * u128::from(size),
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
                let Some(proxy) = proxy_of(rank, to) else {
                    builder.send((rank, to), range, Effect::Copy, &[]);
                    continue;
                };
                assert!(
                    proxy < ranks && proxy != rank && proxy != to,
                    "a third rank"
                );
                let there = builder.send((rank, proxy), range.clone(), Effect::Copy, &[]);
                builder.send((proxy, to), range, Effect::Copy, &[there]);
            }
        }
        let mut collective = builder.finish();
        collective.graph.parallelism = self.parallelism.map(|limit| Parallelism {
            from_sender: limit,
            to_receiver: self.receiver_limit.then_some(limit),
        });
        Ok(collective)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;

    /// Nodes of two ranks: a block for the other rank of another node goes through the neighbour.
    #[test]
    fn proxies_pass_on_what_they_get() {
        let settings = AllToAllSettings {
            size: Bytes::new(6_000),
            ..AllToAllSettings::default()
        };
        let proxy =
            |src: u32, dst: u32| (src / 2 != dst / 2 && src % 2 != dst % 2).then_some(src ^ 1);
        let collective = settings.build_by_proxies(6, proxy).unwrap();
        collective.verify().unwrap();
        let mut sent = [[0; 6]; 6];
        for (_, task) in collective.graph.numbered() {
            if let Task::Message { src, dst, bytes } = task {
                sent[src.index()][dst.index()] += bytes.as_u64();
            }
        }
        // To the neighbour its own block and two for others. To the same place of two other nodes two blocks: its own and its neighbour's.
        assert_eq!(sent[0], [0, 3_000, 2_000, 0, 2_000, 0]);
        assert_eq!(sent[3], [0, 2_000, 3_000, 0, 0, 2_000]);
    }

    #[test]
    fn messages_by_proxies_count_twice() {
        let settings = AllToAllSettings {
            size: Bytes::new(1 << 63),
            ..AllToAllSettings::default()
        };
        assert!(settings.build(2).is_err(), "2^64 bytes");
        let half = AllToAllSettings {
            size: Bytes::new(1 << 61),
            ..AllToAllSettings::default()
        };
        assert!(half.build(4).is_ok());
        let error = half.build_by_proxies(4, |src, dst| (src / 2 != dst / 2).then_some(src ^ 1));
        assert_eq!(error.unwrap_err().key, Some("size"));
    }
}

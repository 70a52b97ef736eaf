//! Ring algorithms: block by block from each rank to the next, N-1 steps to add up and N-1 to hand out.

use super::blocks::Blocks;
use super::builder::{Builder, Edge, Extent, Piece, sound};
use super::options::Options;
use super::{
    Channels, Collective, CollectiveDefinition, CollectiveError, Effect, Layout, Operation,
    Pipelining, Reduction,
};
use clearway_units::{Bytes, parameters};

parameters! {
    /// All-reduce around a ring: a reduce-scatter, then an all-gather, chunk by chunk without a pause between both (STrack §4.3).
    /// Rank r sends block r - s mod N to rank r + 1 in step s.
    pub struct RingAllReduceSettings {
        /// Size of the buffer that each rank contributes to the sum.
        pub size: Bytes = Bytes::new(128_000_000), "size", "STrack §2.1: 128 MB";
        with {
            /// Parallel rings.
            pub channels: Channels,
            /// Chunk size and window of the messages.
            pub pipelining: Pipelining,
            /// Rate of the reduction.
            pub reduction: Reduction,
        }
    }
}

parameters! {
    /// Reduce-scatter around a ring. Rank r sends block r - 1 - s mod N to rank r + 1 in step s, so that block r ends at rank r.
    pub struct RingReduceScatterSettings {
        /// Size of the buffer that each rank contributes to the sum.
        pub size: Bytes = Bytes::new(128_000_000), "size", "as for an all-reduce";
        with {
            /// Parallel rings.
            pub channels: Channels,
            /// Chunk size and window of the messages.
            pub pipelining: Pipelining,
            /// Rate of the reduction.
            pub reduction: Reduction,
        }
    }
}

parameters! {
    /// All-gather around a ring. Rank r sends block r - s mod N to rank r + 1 in step s.
    pub struct RingAllGatherSettings {
        /// Final size of the buffer of each rank: the blocks of all ranks together.
        pub size: Bytes = Bytes::new(128_000_000), "size", "as for an all-reduce";
        with {
            /// Parallel rings.
            pub channels: Channels,
            /// Chunk size and window of the messages.
            pub pipelining: Pipelining,
        }
    }
}

/// A way around a ring: the rank at place p sends the block of place p + `shift` - s in step s.
struct Way {
    operation: Operation,
    shift: u32,
    /// Steps that add up; those after them copy.
    reducing: u32,
    steps: u32,
}

/// One of the rings of a collective.
struct Ring {
    number: u32,
    /// The rank at each place.
    order: Vec<u32>,
    /// The message, by place of the rank that a block belongs to, that has brought it where it is: in one step each is sent by one rank, to
    /// the one that sends it in the next.
    arrived: Vec<Piece>,
}

impl Way {
    fn build<D: CollectiveDefinition>(
        &self,
        (layout, channels): (&Layout, u32),
        size: Bytes,
        options: Options,
    ) -> Result<Collective, CollectiveError> {
        let ranks = layout.ranks();
        let extent = Extent {
            pieces: u128::from(self.steps) * u128::from(ranks) * u128::from(channels),
            payload: u128::from(self.steps) * u128::from(size.as_u64()),
        };
        let mut builder = Builder::new::<D>(self.operation, ranks, size, extent, options)?;
        let blocks = Blocks::new(size.as_u64(), ranks);
        let ring = |number| Ring {
            number,
            order: layout.ring(number),
            arrived: vec![Piece::EMPTY; ranks as usize],
        };
        let mut rings: Vec<Ring> = (0..channels).map(ring).collect();
        for step in 0..self.steps {
            let effect = match step < self.reducing {
                true => Effect::Reduce,
                false => Effect::Copy,
            };
            for ring in &mut rings {
                for place in 0..ranks {
                    let of = (place + self.shift + ranks - step % ranks) % ranks;
                    let before = std::slice::from_ref(&ring.arrived[of as usize]);
                    let at = |place: u32| ring.order[place as usize];
                    let edge = Edge::of_channel(
                        (at(place), at((place + 1) % ranks)),
                        ring.number as usize,
                    );
                    let part = blocks.part(at(of), (ring.number, channels));
                    let piece = builder.send(edge, part, effect, before);
                    ring.arrived[of as usize] = piece;
                }
            }
        }
        Ok(builder.finish())
    }
}

impl CollectiveDefinition for RingAllReduceSettings {
    const OPERATION: &'static str = "all-reduce";
    const ALGORITHM: &'static str = "ring";
    const SUMMARY: &'static str = "blocks around a ring, once to sum and once to distribute";

    fn build(&self, ranks: u32) -> Result<Collective, CollectiveError> {
        self.build_on(&Layout::flat(ranks))
    }

    fn build_on(&self, layout: &Layout) -> Result<Collective, CollectiveError> {
        let ranks = layout.ranks();
        sound::<Self>(ranks, self.size)?;
        let rings = (layout, self.channels.resolve(layout, self.size));
        let way = Way {
            operation: Operation::AllReduce,
            shift: 0,
            reducing: ranks - 1,
            steps: self.steps(ranks),
        };
        let options = Options::from(&self.pipelining).reducing(&self.reduction);
        way.build::<Self>(rings, self.size, options)
    }

    fn steps(&self, ranks: u32) -> u32 {
        (ranks - 1).saturating_mul(2)
    }
}

impl CollectiveDefinition for RingReduceScatterSettings {
    const OPERATION: &'static str = "reduce-scatter";
    const ALGORITHM: &'static str = "ring";
    const SUMMARY: &'static str = "blocks around a ring; each rank adds its own block";

    fn build(&self, ranks: u32) -> Result<Collective, CollectiveError> {
        self.build_on(&Layout::flat(ranks))
    }

    fn build_on(&self, layout: &Layout) -> Result<Collective, CollectiveError> {
        let ranks = layout.ranks();
        sound::<Self>(ranks, self.size)?;
        let rings = (layout, self.channels.resolve(layout, self.size));
        let way = Way {
            operation: Operation::ReduceScatter,
            shift: ranks - 1,
            reducing: ranks - 1,
            steps: self.steps(ranks),
        };
        let options = Options::from(&self.pipelining).reducing(&self.reduction);
        way.build::<Self>(rings, self.size, options)
    }

    fn steps(&self, ranks: u32) -> u32 {
        ranks - 1
    }
}

impl CollectiveDefinition for RingAllGatherSettings {
    const OPERATION: &'static str = "all-gather";
    const ALGORITHM: &'static str = "ring";
    const SUMMARY: &'static str = "blocks around a ring; each rank keeps a copy";

    fn build(&self, ranks: u32) -> Result<Collective, CollectiveError> {
        self.build_on(&Layout::flat(ranks))
    }

    fn build_on(&self, layout: &Layout) -> Result<Collective, CollectiveError> {
        let ranks = layout.ranks();
        sound::<Self>(ranks, self.size)?;
        let rings = (layout, self.channels.resolve(layout, self.size));
        let way = Way {
            operation: Operation::AllGather,
            shift: 0,
            reducing: 0,
            steps: self.steps(ranks),
        };
        way.build::<Self>(rings, self.size, Options::from(&self.pipelining))
    }

    fn steps(&self, ranks: u32) -> u32 {
        ranks - 1
    }
}

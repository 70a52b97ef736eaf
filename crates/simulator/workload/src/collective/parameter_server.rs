//! All-reduce with a parameter server: one rank adds up for all.

use super::builder::{Builder, Extent, Piece, chosen_rank, sound};
use super::options::Options;
use super::{
    Collective, CollectiveDefinition, CollectiveError, DirectPipelining, Effect, Operation,
    Reduction,
};
use clearway_units::{Bytes, choices, parameters};

choices! {
    /// Role of the server.
    pub enum ServerRole {
        /// The server only adds up: the other ranks are the workers.
        Separate = "separate",
        /// The server is also a worker: it adds its data to the sum.
        Worker = "worker",
    }
}

parameters! {
    /// All-reduce at one rank, the parameter server: all workers send their buffers to it, and when it has all of them it sends the sum
    /// back to all (TMDML Fig. 2a).
    pub struct ParameterServerSettings {
        /// Size of the buffer that each worker contributes to the sum.
        pub size: Bytes = Bytes::new(527_800_000), "size", "TMDML Table III: VGG-16";
        /// Rank of the server. "auto": the last one.
        pub server: Option<u32> = None, "server", "TMDML Fig. 2a: server 8 of 8";
        /// Role of the server.
        pub server_role: ServerRole = ServerRole::Separate, "server-role", "TMDML Fig. 2a: 7 workers and a server";
        with {
            /// Chunk size and window of the messages.
            pub parts: DirectPipelining,
            /// Rate of the reduction.
            pub reduction: Reduction,
        }
    }
}

impl CollectiveDefinition for ParameterServerSettings {
    const OPERATION: &'static str = "all-reduce";
    const ALGORITHM: &'static str = "parameter-server";
    const SUMMARY: &'static str = "all ranks send to one, which sums and sends back";

    fn build(&self, ranks: u32) -> Result<Collective, CollectiveError> {
        sound::<Self>(ranks, self.size)?;
        let server = chosen_rank::<Self>("server", self.server, ranks - 1, ranks)?;
        let operation = match self.server_role {
            ServerRole::Worker => Operation::AllReduce,
            ServerRole::Separate => Operation::ParameterServer {
                server: crate::Rank(server),
            },
        };
        let pieces = 2 * u128::from(ranks - 1);
        let payload = pieces * u128::from(self.size.as_u64());
        let extent = Extent { pieces, payload };
        let options = Options::from(&self.parts).reducing(&self.reduction);
        let mut builder = Builder::new::<Self>(operation, ranks, self.size, extent, options)?;
        let whole = 0..self.size.as_u64();
        let others = (1..ranks).map(|distance| (server + distance) % ranks);
        let to_server = |rank| builder.send((rank, server), whole.clone(), Effect::Reduce, &[]);
        let arrived: Vec<Piece> = others.clone().map(to_server).collect();
        let sum = [Piece::whole(builder.join(server, &arrived, []))];
        for rank in others {
            builder.send((server, rank), whole.clone(), Effect::Copy, &sum);
        }
        Ok(builder.finish())
    }

    fn steps(&self, _ranks: u32) -> u32 {
        2
    }
}

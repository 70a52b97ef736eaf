//! Collective operations between processes: all-reduce, all-gather, reduce-scatter and all-to-all of `f32`.
//!
//! A [`CollectivePlan`] is one collective among some ranks: the graph of [`clearway_workload::collective`], which the simulator runs, with
//! what each of its messages carries. An [`Execution`] is the part of one rank in it, a state machine without IO: it says which messages
//! may be sent, and adds or copies what comes. A [`Group`] is a rank with its connections to others, one for each pair of ranks that
//! speak with each other, over which it drives executions; [`blocking::Group`] is one for programs without a runtime of their own.
//!
//! ```text
//!   workload::Collective ──► Plan ──► Execution ◄──► Group ◄──► clearway_udp::net::Channel
//!      graph, moves         of all     of a rank      of a rank     to each other rank
//! ```
//!
//! # Sums
//! The addition of `f32` is not associative, so its order is part of the result. Here it follows from operation, algorithm, number of
//! ranks, number of elements and chunk alone, and never from the time at which messages come:
//!
//! * A rank adds what comes to what it has: the sum is `own + received`.
//! * Around a ring each block is added up in the order of the ranks. In an all-reduce block b begins at rank b, and its sum is
//!   `x[b-1] + (… + (x[b+1] + x[b]))`, ranks modulo their number; in a reduce-scatter it begins at rank b + 1 and ends at rank b.
//! * Messages to a rank that add to the same elements are added in the order of their numbers in the graph. In a tree that is the child
//!   with the higher place in breadth-first order first; where every rank sends directly, the rank before comes first.
//!
//! In an all-reduce one rank completes the sum of an element and the others copy it, so that all ranks have the same bits.
//!
//! **Architecture invariant:** plans and executions have no clock, socket or thread. What a rank keeps of others is bounded: messages of
//! one collective beyond its own.

pub mod blocking;
mod error;
mod execution;
mod group;
mod join;
pub mod measure;
mod message_order;
mod peers;
mod plan;
mod wire;

pub use clearway_udp::net::new_key;
pub use clearway_udp::{PreSharedKey, Security};
pub use error::{BufferError, GroupError};
pub use execution::{Buffers, Execution, Outgoing, Unexpected};
pub use group::Group;
pub use join::{GroupSettings, Listening, Members, Pairs};
pub use plan::{Algorithm, BufferOperation, CollectivePlan, UnknownAlgorithm, block};
pub use wire::CloseReason;

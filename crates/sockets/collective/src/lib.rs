//! Collective operations between processes: all-reduce, all-gather, reduce-scatter and all-to-all of `f32`.
//!
//! A [`CollectivePlan`] is one collective among some ranks: the graph of [`clearway_workload::collective`], which the simulator also runs,
//! plus the elements that each message carries. An [`Execution`] is the part of one rank in a plan, a state machine without IO: it releases
//! messages to send, and adds or copies received messages. A [`Group`] is a rank with its connections, one for each pair of ranks that
//! exchange messages; it drives executions. [`blocking::Group`] is for programs without an async runtime.
//!
//! ```text
//!   workload::Collective ──► CollectivePlan ──► Execution ◄──► Group ◄──► clearway_udp::net::Channel
//!      graph, moves           of all ranks       of a rank      of a rank     to each other rank
//! ```
//!
//! # Sums
//! The addition of `f32` is not associative, so its order affects the result. Here the order depends only on operation, algorithm, number
//! of ranks, number of elements and chunk, and never on the time at which messages arrive:
//!
//! * A rank adds received elements to its own: the sum is `own + received`.
//! * A ring adds up each block in the order of the ranks. In an all-reduce, block b begins at rank b, and its sum is
//!   `x[b-1] + (… + (x[b+1] + x[b]))`, ranks modulo their number. In a reduce-scatter, block b begins at rank b + 1 and ends at rank b.
//! * A rank adds messages for the same elements in the order of their numbers in the graph. In a tree, the child with the higher place in
//!   breadth-first order comes first; in a direct algorithm, the preceding rank comes first.
//!
//! In an all-reduce, one rank completes the sum of an element and the others copy it, so all ranks have the same bits.
//!
//! **Architecture invariant:** plans and executions have no clock, socket or thread. A rank keeps bounded state of others: messages of at
//! most one collective beyond its own.

pub mod blocking;
mod buffer_pool;
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

//! STrack over UDP: connections that run the transport cores of the simulator between real hosts.
//!
//! A [`Connection`] carries messages in both directions, reliably and unordered across messages, over many paths: it sprays packets
//! over the sockets of the client, and each packet's payload is placed where it belongs when it comes. It is a state machine without
//! IO, as [`clearway_transport::Endpoint`] is, whose code it runs; a driver passes time and datagrams in and takes datagrams and events
//! out. A [`Listener`] decides who may begin one.
//!
//! ```text
//!      send(now, tag, data)   handle(now, from, marked, datagram)   on_deadline(now)
//!                          │
//!                          ▼
//!   ┌─ Connection ──────────────────────────────┐
//!   │ messages ── transport::Endpoint ── paths  │──► poll_transmit(now, out) -> Transmit
//!   │ credit         encryption, replay window  │──► poll_event() -> Event
//!   └───────────────────────────────────────────┘──► deadline() -> Time
//! ```
//!
//! The wire format, and what differs from the paper, is in the chapter "STrack over UDP" of the book, `docs/src/udp.md`.
//!
//! # Security
//! The handshake is Noise NNpsk0 by the crate `snow`, from a pre-shared key; every packet is encrypted by AES-256-GCM of `ring`, and
//! copies are recognised by a window of 32768 packet numbers. A server keeps nothing of an address that has not sent back a cookie,
//! and answers it with less than it has got. Keys change after 2^30 packets. What is not authentic changes nothing but counters.
//! Servers with the same key are told apart by a [`ServerName`].
//!
//! **Architecture invariant:** no clock, socket or thread; random bytes come from seeds that the caller gives. Nothing that comes makes
//! it panic or takes memory without bound.

mod client;
mod connection;
mod cookie;
mod error;
mod events;
mod incoming;
mod listener;
#[cfg(feature = "net")]
pub mod net;
mod noise;
mod outgoing;
mod paths;
mod pending;
mod protection;
mod random;
mod runs;
pub mod settings;
mod staged;
mod timers;
pub mod wire;

pub use connection::{Connection, Discarded, Transmit};
pub use error::{Closed, Versions};
pub use events::Event;
pub use incoming::{Acceptor, Allocate};
pub use listener::{Heard, Limits, Listener, ListenerCounters};
pub use outgoing::{SendError, SendId};
pub use paths::PathStatistics;
pub use settings::{MESSAGE_COST, PreSharedKey, Security, ServerName, Settings, Transport};
pub use wire::{ConnectionId, receiver_of};

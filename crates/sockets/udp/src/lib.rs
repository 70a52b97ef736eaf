//! STrack over UDP: encrypted multipath connections that run the transport cores of the simulator between real hosts.
//!
//! # Example
//!
//! A client sends a message to a server over the loopback interface, and the server answers.
//!
//! ```
//! # #[cfg(not(feature = "net"))] fn main() {}
//! # #[cfg(feature = "net")]
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     use bytes::Bytes;
//!     use clearway_udp::net::{Server, connect, new_key};
//!     use clearway_udp::{ConnectionError, Limits, Security, Settings};
//!
//!     let settings = Settings::new(Security::Key(new_key()?));
//!     // A driver reads its sockets best if the runtime looks at them in every turn.
//!     let runtime = tokio::runtime::Builder::new_current_thread().event_interval(1).enable_all().build()?;
//!     runtime.block_on(async {
//!         let server = Server::bind("127.0.0.1:0".parse()?, settings.clone(), Limits::default())?;
//!         let address = server.address();
//!         let serving = tokio::spawn(async move {
//!             let channel = server.accept().await;
//!             while let Ok(question) = channel.receive().await {
//!                 let answer = format!("{} bytes", question.data.len());
//!                 channel.send(question.tag, Bytes::from(answer)).await.expect("the client waits for it");
//!             }
//!         });
//!         let channel = connect(address, settings).await?;
//!         channel.send(7, Bytes::from(vec![0; 1_000_000])).await?;
//!         let answer = channel.receive().await.map_err(|closed| format!("{closed:?}"))?;
//!         assert_eq!((answer.tag, &answer.data[..]), (7, &b"1000000 bytes"[..]));
//!         for (_, path) in channel.snapshot().paths {
//!             println!("a path has carried {} packets", path.sent);
//!         }
//!         assert_eq!(channel.shut_down(0).await, ConnectionError::Here);
//!         serving.await?;
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # Stability
//!
//! In versions 0.x a minor release (0.2.0) may change the interface, and `CHANGELOG.md` names each change; a patch release (0.1.1) only
//! adds items. These are meant to stay stable: `net::Server`, `net::connect` and `net::Channel`, and the calls of [`Connection`] and
//! [`Listener`]. [`Settings`] gets further fields: begin with [`Settings::new`]. The wire format has a version that both ends check
//! ([`Versions`]). `net::perf` serves the command `clearway perf` and follows it. `docs/interfaces/clearway-udp.txt` lists all public
//! items.
//!
//! # Features
//!
//! * `net` (default): the module `net`, sockets and a driver on tokio. Without it the crate has no clock, socket or runtime.
//!
//! # Connections without IO
//!
//! A [`Connection`] carries messages in both directions over many paths, reliably, without order between messages. It sprays packets over
//! the sockets of the client and places each packet's payload on arrival. Like [`clearway_transport::Endpoint`], whose code it runs, it is
//! a state machine without IO: a driver passes time and datagrams in and takes datagrams and events out. A [`Listener`] decides which
//! clients may begin a connection.
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
//! The chapter "STrack over UDP" of the book, `docs/src/udp.md`, describes the wire format and the differences from the paper.
//!
//! # Security
//! The handshake is Noise NNpsk0 by the crate `snow`, from a pre-shared key. AES-256-GCM of `ring` encrypts every packet, and a window of
//! 32768 packet numbers detects copies. A server keeps no state for an address that has not returned a cookie, and its answer is shorter
//! than the client's datagram. Keys change after 2^30 packets. A datagram that is not authentic changes only counters. A [`ServerName`]
//! distinguishes servers with the same key.
//!
//! **Architecture invariant:** no clock, socket or thread; random bytes come from the caller's seeds. No datagram makes the crate panic or
//! use unbounded memory.

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
mod path_runs;
mod paths;
mod pending;
mod progress;
mod protection;
mod random;
pub mod settings;
mod staged;
mod timers;
pub mod wire;

pub use connection::{Connection, Discarded, Transmit};
pub use error::{ConnectionError, Versions};
pub use events::Event;
pub use incoming::{Acceptor, Allocate};
pub use listener::{DatagramOutcome, Limits, Listener, ListenerCounters};
pub use outgoing::{SendError, SendId};
pub use paths::PathStatistics;
pub use settings::{MESSAGE_COST, PreSharedKey, Security, ServerName, Settings, Transport};
pub use wire::{ConnectionId, receiver_of};

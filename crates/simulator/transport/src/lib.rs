//! Transport protocols of AI fabrics as sans-IO state machines: reliability, congestion control, path selection, receiver feedback.
//!
//! # Example
//!
//! Two endpoints over an in-memory pipe transfer one message. The loop below is all that a driver has to do.
//!
//! ```
//! use clearway_transport::{Class, Endpoint, Event, Opening, Profile, testing::network};
//! use clearway_units::{Bytes, FlowId, HostId, MessageId, Rate, Span, Time};
//! use std::{collections::VecDeque, sync::Arc};
//!
//! let (line_rate, delay) = (Rate::from_gbps(100), Span::from_us(5));
//! // Payloads of 4096 bytes, and a round trip of 10 us plus one packet.
//! let profile = Arc::new(Profile::strack(network(line_rate, delay * 2)));
//! let mut ends = [0, 1].map(|host| Endpoint::new(HostId(host), Arc::clone(&profile), 7));
//! let flow = FlowId(0);
//! ends[0].open(flow, HostId(1), &Opening::usual(Class::DATA, profile.network.path));
//! ends[0].post(Time::ZERO, flow, MessageId(0), Bytes::new(1_000_000));
//! ends[0].close(Time::ZERO, flow);
//!
//! // `wires[i]` has the packets that `ends[i]` has sent and their arrival times; its wire is free at `free[i]`.
//! let mut wires = [VecDeque::new(), VecDeque::new()];
//! let (mut free, mut now) = ([Time::ZERO; 2], Time::ZERO);
//! let statistics = 'run: loop {
//!     for end in 0..2 {
//!         while let Some(&(arrival, packet)) = wires[1 - end].front() && arrival <= now {
//!             ends[end].on_packet(now, &packet);
//!             wires[1 - end].pop_front();
//!         }
//!         ends[end].on_deadline(now);
//!         while free[end] <= now && let Some(packet) = ends[end].poll_transmit(now) {
//!             free[end] = now + line_rate.span_of(Bytes::new(packet.size.into()));
//!             wires[end].push_back((free[end] + delay, packet));
//!         }
//!         while let Some(event) = ends[end].poll_event() {
//!             match event {
//!                 Event::Received { bytes, .. } => println!("{now}: {bytes} have arrived"),
//!                 Event::Sent { statistics, .. } => break 'run statistics,
//!                 _ => {}
//!             }
//!         }
//!     }
//!     // On to the next arrival, deadline or end of a transmission.
//!     let arrivals = wires.iter().filter_map(|wire| wire.front()).map(|(arrival, _)| *arrival);
//!     let deadlines = ends.iter().map(Endpoint::deadline).chain(free).filter(|time| *time > now);
//!     now = arrivals.chain(deadlines).min().expect("something is left to happen");
//! };
//! println!("{now}: all is acknowledged, after {} packets", statistics.packets);
//! assert_eq!((statistics.packets, statistics.retransmitted), (245, 0));
//! assert!(now < Time::from_us(120));
//! ```
//!
//! `examples/transport-only` does the same between two UDP sockets, as a program outside the workspace.
//!
//! # Stability
//!
//! In versions 0.x a minor release (0.2.0) may change the interface, and `CHANGELOG.md` names each change; a patch release (0.1.1) only
//! adds items. Meant to stay as they are: the calls of [`Endpoint`], its [`Event`]s, [`Opening`], and the headers of [`wire::strack`],
//! which have their own version number. The parameters in a [`Profile`] grow with each protocol, and so do the traits of
//! [`congestion`], [`paths`] and [`congestion::feedback`]: construct parameters from their defaults.
//! `docs/interfaces/clearway-transport.txt` lists all public items.
//!
//! # Features
//!
//! There are no cargo features.
//!
//! # Endpoints and their drivers
//!
//! A transport is *reliability × congestion controller × path selector × feedback of receivers*, composed by a [`Profile`].
//! One [`Endpoint`] per host holds many flows. It has no clock, socket, thread, file or source of entropy: its driver (the
//! simulator, a test, a UDP socket) passes the time and the packets in and takes packets and events out. All drivers make the
//! same calls:
//!
//! ```text
//!      open(flow, peer, opening)   post(now, flow, message, bytes)   close(now, flow)
//!      on_packet(now, packet)      on_deadline(now)                  set_paused(classes)
//!                            │
//!                            ▼
//!   ┌─ Endpoint ─────────────────────────────────────────────┐
//!   │ senders: reliability ── Controller ── Selector         │──► poll_transmit(now) -> IntPacket
//!   │ receivers: reliability ── Feedback                     │──► poll_event() -> Event
//!   └────────────────────────────────────────────────────────┘──► deadline() -> Time
//! ```
//!
//! **Architecture invariant:** spurious calls are harmless. `on_deadline` before the deadline and `poll_*` without anything to
//! do change nothing.

pub mod congestion;
pub mod endpoint;
mod exact_push;
mod packet;
pub mod paths;
mod plugin;
mod profile;
mod registry;
pub mod reliability;
mod report;
pub mod testing;
pub mod wire;

pub use congestion::misbehaving_nic::MisbehaviourError;
pub use congestion::misbehaviour::{MisbehavingNic, Misbehaviour};
pub use congestion::scope::{Scope, ScopeParameters};
pub use endpoint::{
    Endpoint, EndpointCounters, Event, FlowProgress, FlowStatistics, OpenFlow, SendLimit,
};
pub use packet::{Class, ClassSet, DataFlags, Header, Packet, header_hash};
pub use profile::{Opening, Profile, Reliability};
pub use registry::Registry;

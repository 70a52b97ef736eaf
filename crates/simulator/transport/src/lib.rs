//! Transport protocols as sans-IO state machines.
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

mod breach;
pub mod cc;
pub mod credit;
mod disobedience;
pub mod endpoint;
pub mod feedback;
mod flow;
pub mod go_back_n;
mod packet;
pub mod perc;
mod plugin;
mod profile;
mod registry;
mod report;
mod scope;
pub mod selective_repeat;
mod sole;
pub mod spray;
pub mod telemetry;
pub mod testing;
pub mod wire;

pub use breach::{Breach, Disobedience};
pub use disobedience::BreachFault;
pub use endpoint::{
    Endpoint, EndpointCounters, Event, FlowProgress, FlowStatistics, OpenFlow, SendLimit,
};
pub use packet::{Class, ClassSet, DataFlags, Header, Packet, header_hash};
pub use profile::{Opening, Profile, Reliability};
pub use registry::Registry;
pub use scope::{Scope, ScopeParameters};

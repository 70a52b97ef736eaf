//! A fabric in user space: emulates switches and links between hosts in network namespaces, with features that the kernel lacks.
//!
//! A [`SoftSwitch`] is all switches and links of a scenario's fabric. IP packets of hosts go in and come out at their destination host,
//! after the delays, queues and rates of the links on the path. The rules of the simulated switches mark packets, and a hash spreads
//! packets over paths. [`Command`]s take links down, slow them, and make them lose, duplicate, reorder, corrupt or mark packets.
//!
//! ```text
//!   host h ── TUN device ──► on_packet(now, h, packet)
//!                                  │ uplink ─► switch ─► … ─► switch ─► host
//!                                  ▼         (a queue and a wire each)
//!   host g ◄─ TUN device ─── poll_delivery() ◄─ advance(now)
//! ```
//!
//! The fabric differs from the simulated fabric in three points. A switch has one queue for each link, because a real packet does not tell
//! whether it is control. Hosts have a queue in front of their link, because the link does not pace them. Hashes include the destination
//! port and the protocol.
//!
//! [`tun`] connects the fabric to TUN devices and real time, on Linux.
//!
//! **Architecture invariant:** everything except `tun` works without clock, thread, file and socket. No packet makes the crate panic or use
//! unbounded memory.

mod address;
mod command;
mod counters;
mod link;
mod packet;
mod pool;
mod switch;
#[cfg(test)]
mod testing;
#[cfg(target_os = "linux")]
pub mod tun;

pub use address::{PREFIX_LENGTH, PREFIX_LENGTH_V6, address_of, address_v6_of};
pub use command::{ActiveLinks, Change, Command, CommandError, Probability};
pub use counters::{ForwardedLinkCounters, Totals};
pub use switch::{Delivery, FabricPlan, SoftSwitch, UnfitFabric};

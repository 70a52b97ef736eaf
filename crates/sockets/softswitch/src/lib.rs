//! A fabric in user space: switches and links emulated between hosts in network namespaces, for what a kernel cannot do.
//!
//! A [`SoftSwitch`] is all switches and links of a scenario's fabric. IP packets of hosts go in and come out at the host that they are
//! for, after the delays, queues and rates of the links between, marked by the rules of the simulated switches and spread over paths by
//! their hash. [`Command`]s take links down, slow them, and let them lose, copy, reorder, corrupt or mark packets.
//!
//! ```text
//!   host h ── TUN device ──► on_packet(now, h, packet)
//!                                  │ uplink ─► switch ─► … ─► switch ─► host
//!                                  ▼         (a queue and a wire each)
//!   host g ◄─ TUN device ─── poll_delivery() ◄─ advance(now)
//! ```
//!
//! What differs from the simulated fabric: a switch has one queue for each link, as a real packet does not say whether it is control;
//! hosts have a queue in front of their link, as they are not paced by it; and hashes have the destination port and the protocol in them.
//!
//! [`tun`] connects it with TUN devices and real time, on Linux.
//!
//! **Architecture invariant:** everything but `tun` is without clock, thread, file and socket. Nothing that comes makes it panic or takes
//! memory without bound.

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

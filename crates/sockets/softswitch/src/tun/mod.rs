//! TUN devices in network namespaces, and real time.
//!
//! A [`Port`] is the device of a host; a [`Forwarder`] reads packets from all of them, hands them to a [`SoftSwitch`](crate::SoftSwitch),
//! and writes each one out when it has arrived. It is one thread that sleeps until a packet comes or is due. What is due is carried out
//! with the time for which it was foreseen, so a thread that wakes up late makes the last hop of a packet late, and nothing else. The
//! thread asks for the highest priority.

mod forwarder;
mod inbox;
mod lateness;
mod namespace;
mod port;

pub use forwarder::{Forwarder, Statistics};
pub use inbox::{ForwarderRequest, Inbox, Outbox, inbox};
pub use lateness::Lateness;
pub use namespace::{CreatedNamespaces, NamespaceError, within};
pub use port::{DEVICE, Port, PortError};

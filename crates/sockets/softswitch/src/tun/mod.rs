//! TUN devices in network namespaces, and real time.
//!
//! A [`Port`] is the device of a host; a [`Forwarder`] reads packets from all of them, hands them to a [`SoftSwitch`](crate::SoftSwitch),
//! and writes each packet when it reaches its host. The forwarder is one thread, which sleeps until a packet arrives or an event is due.
//! Each event runs with its scheduled time, so a late wake-up delays only the last hop of a packet. The thread asks for the highest
//! priority.

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

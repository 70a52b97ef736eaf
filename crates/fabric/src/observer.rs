//! Typed events for recorders. A simulation is compiled once for each observer; the empty one costs nothing.

use crate::topology::{LinkId, NodeId};
use clearway_transport::telemetry::Telemetry;
use clearway_transport::{ClassSet, Endpoint, Event, Packet};
use clearway_units::{HostId, Time};

/// Cause of the loss of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropCause {
    /// The queue was full, or the shared buffer had no room for its class.
    QueueFull,
    /// Not even the headroom of a lossless class had room.
    HeadroomFull,
    /// The agent of the link did not let a speculative packet through.
    Agent,
    /// The link was down, or went down while the packet was on it or in front of it.
    LinkDown,
    /// No way led to the destination; the link is the one that the packet would have taken were all links up.
    NoRoute,
    /// A bit arrived wrong, or the link loses packets.
    BitError,
}

/// Watches one domain. Each domain has its own, so no locks are needed; merge them when the run is over.
///
/// Events at one queue, and events at one host, come in the order of time. A switch handles a round port by port, so events of
/// its different queues interleave by rounds; recorders that mix them sort by time.
pub trait Observer: Send {
    /// True if the endpoints should report acknowledgements and losses through [`on_transport`](Self::on_transport).
    const TRACES_TRANSPORT: bool = false;
    /// True if links should [count](crate::LinkTotals) what they carry.
    const METERS_LINKS: bool = false;

    /// True if [`on_endpoint`](Self::on_endpoint) is called.
    const FOLLOWS_SENDERS: bool = false;

    /// A packet has arrived at a node, before the node does anything with it.
    #[inline]
    fn on_arrival(&mut self, now: Time, node: NodeId, packet: &Packet) {
        let _ = (now, node, packet);
    }
    /// The last bit of a packet leaves on `link` at `end`. What bit errors destroy on the way has left too.
    #[inline]
    fn on_departure(&mut self, end: Time, link: LinkId, packet: &Packet) {
        let _ = (end, link, packet);
    }
    /// A data queue in front of `link` has changed to `bytes`, the packet in transmission included.
    #[inline]
    fn on_queue(&mut self, now: Time, link: LinkId, bytes: u64) {
        let _ = (now, link, bytes);
    }
    /// As [`on_queue`](Self::on_queue), which this calls: a packet has joined, so it has become longer.
    #[inline]
    fn on_enqueue(&mut self, now: Time, link: LinkId, bytes: u64) {
        self.on_queue(now, link, bytes);
    }
    /// As [`on_queue`](Self::on_queue), which this calls: a packet has left, so it has become shorter.
    #[inline]
    fn on_dequeue(&mut self, now: Time, link: LinkId, bytes: u64) {
        self.on_queue(now, link, bytes);
    }
    /// A packet for `link` has vanished.
    #[inline]
    fn on_drop(&mut self, now: Time, link: LinkId, packet: &Packet, cause: DropCause) {
        let _ = (now, link, packet, cause);
    }
    /// The queue in front of `link` has no room for a data packet, and cuts its payload off. The packet is as it was before.
    #[inline]
    fn on_trim(&mut self, now: Time, link: LinkId, packet: &Packet) {
        let _ = (now, link, packet);
    }
    /// The queue in front of `link` has marked a packet, which leaves now (or has just joined, where marks are set on arrival).
    #[inline]
    fn on_mark(&mut self, now: Time, link: LinkId, packet: &Packet) {
        let _ = (now, link, packet);
    }
    /// The transmitter of `link` holds back `classes` from now on, and no others.
    #[inline]
    fn on_pause(&mut self, now: Time, link: LinkId, classes: ClassSet) {
        let _ = (now, link, classes);
    }
    /// An endpoint reports something.
    #[inline]
    fn on_transport(&mut self, now: Time, host: HostId, event: &Event) {
        let _ = (now, host, event);
    }
    /// An event of a host is over: this is what it has left in its endpoint.
    #[inline]
    fn on_endpoint<T: Telemetry>(&mut self, now: Time, endpoint: &Endpoint<T>) {
        let _ = (now, endpoint);
    }
}

impl Observer for () {}

/// An observer that may be there or not, decided at run time: it costs a test at each event, and what its kind asks for.
impl<O: Observer> Observer for Option<O> {
    const TRACES_TRANSPORT: bool = O::TRACES_TRANSPORT;
    const METERS_LINKS: bool = O::METERS_LINKS;
    const FOLLOWS_SENDERS: bool = O::FOLLOWS_SENDERS;

    #[inline]
    fn on_arrival(&mut self, now: Time, node: NodeId, packet: &Packet) {
        if let Some(observer) = self {
            observer.on_arrival(now, node, packet);
        }
    }
    #[inline]
    fn on_departure(&mut self, end: Time, link: LinkId, packet: &Packet) {
        if let Some(observer) = self {
            observer.on_departure(end, link, packet);
        }
    }
    #[inline]
    fn on_enqueue(&mut self, now: Time, link: LinkId, bytes: u64) {
        if let Some(observer) = self {
            observer.on_enqueue(now, link, bytes);
        }
    }
    #[inline]
    fn on_dequeue(&mut self, now: Time, link: LinkId, bytes: u64) {
        if let Some(observer) = self {
            observer.on_dequeue(now, link, bytes);
        }
    }
    #[inline]
    fn on_drop(&mut self, now: Time, link: LinkId, packet: &Packet, cause: DropCause) {
        if let Some(observer) = self {
            observer.on_drop(now, link, packet, cause);
        }
    }
    #[inline]
    fn on_trim(&mut self, now: Time, link: LinkId, packet: &Packet) {
        if let Some(observer) = self {
            observer.on_trim(now, link, packet);
        }
    }
    #[inline]
    fn on_mark(&mut self, now: Time, link: LinkId, packet: &Packet) {
        if let Some(observer) = self {
            observer.on_mark(now, link, packet);
        }
    }
    #[inline]
    fn on_pause(&mut self, now: Time, link: LinkId, classes: ClassSet) {
        if let Some(observer) = self {
            observer.on_pause(now, link, classes);
        }
    }
    #[inline]
    fn on_transport(&mut self, now: Time, host: HostId, event: &Event) {
        if let Some(observer) = self {
            observer.on_transport(now, host, event);
        }
    }
    #[inline]
    fn on_endpoint<T: Telemetry>(&mut self, now: Time, endpoint: &Endpoint<T>) {
        if let Some(observer) = self {
            observer.on_endpoint(now, endpoint);
        }
    }
}

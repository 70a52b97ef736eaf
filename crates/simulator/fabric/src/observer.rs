//! Typed events for recorders, and observers of a run.
//!
//! The packet loop is compiled in two forms: [`Unwatched`], in which nothing here costs an instruction, and [`Watched`], in which links
//! count their traffic and an [`Observer`] may be told of events. Observers are reached through `dyn`, so that a new one does not compile
//! another loop. They are told the frequent events in which they are [interested](Observer::interests). Without such interests, hosts and
//! lossy switches take the usual path through their code, which does not look for observers ([`Quiet`]). Else they take the path for rare
//! features, such as events of links.

use crate::topology::{LinkId, NodeId};
use clearway_transport::congestion::telemetry::Telemetry;
use clearway_transport::{ClassSet, Endpoint, Event, Packet, SendLimit};
use clearway_units::{FlowId, HostId, Time};

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

/// Frequent events of which an [`Observer`] is told. Each kind costs a call for each of its events. All observers are told of drops, trims,
/// marks and pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interests {
    /// [`Observer::on_arrival`].
    pub arrivals: bool,
    /// [`Observer::on_departure`].
    pub departures: bool,
    /// [`Observer::on_enqueue`], [`Observer::on_dequeue`] and [`Observer::on_queue`].
    pub queues: bool,
    /// Acknowledgements and detected losses, by [`Observer::on_transport`]. All observers are told of messages sent and received.
    pub transport: bool,
    /// [`Observer::on_endpoint`].
    pub senders: bool,
}

impl Interests {
    /// None of them.
    pub const NONE: Self = Self {
        arrivals: false,
        departures: false,
        queues: false,
        transport: false,
        senders: false,
    };
    /// Packets at nodes, on links and in queues.
    pub const PACKETS: Self = Self {
        arrivals: true,
        departures: true,
        queues: true,
        ..Self::NONE
    };

    /// True if it is any of packets at nodes, on links and in queues, or of senders.
    pub(crate) const fn are_frequent(self) -> bool {
        self.arrivals | self.departures | self.queues | self.senders
    }

    /// The interests of two observers.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            arrivals: self.arrivals | other.arrivals,
            departures: self.departures | other.departures,
            queues: self.queues | other.queues,
            transport: self.transport | other.transport,
            senders: self.senders | other.senders,
        }
    }
}

/// Watches one domain. Each domain has its own, so no locks are needed; merge them when the run is over.
///
/// Events at one queue, and events at one host, come in the order of time. A switch handles a round port by port, so events of
/// its different queues interleave by rounds; recorders that mix them sort by time.
pub trait Observer: Send {
    /// Frequent events that it wants to be told of. Asked once, when the fabric is put together.
    fn interests(&self) -> Interests {
        Interests::PACKETS
    }

    /// A packet has arrived at a node, before the node does anything with it.
    fn on_arrival(&mut self, now: Time, node: NodeId, packet: &Packet) {
        let _ = (now, node, packet);
    }
    /// The last bit of a packet leaves on `link` at `end`. Packets that bit errors destroy later have also left.
    fn on_departure(&mut self, end: Time, link: LinkId, packet: &Packet) {
        let _ = (end, link, packet);
    }
    /// A data queue in front of `link` has changed to `bytes`, the packet in transmission included.
    fn on_queue(&mut self, now: Time, link: LinkId, bytes: u64) {
        let _ = (now, link, bytes);
    }
    /// As [`on_queue`](Self::on_queue), which this calls: a packet has joined, so the queue has become longer.
    fn on_enqueue(&mut self, now: Time, link: LinkId, bytes: u64) {
        self.on_queue(now, link, bytes);
    }
    /// As [`on_queue`](Self::on_queue), which this calls: a packet has left, so it has become shorter.
    fn on_dequeue(&mut self, now: Time, link: LinkId, bytes: u64) {
        self.on_queue(now, link, bytes);
    }
    /// A packet for `link` has vanished.
    fn on_drop(&mut self, now: Time, link: LinkId, packet: &Packet, cause: DropCause) {
        let _ = (now, link, packet, cause);
    }
    /// The queue in front of `link` has no room for a data packet, and cuts its payload off. The packet is as it was before.
    fn on_trim(&mut self, now: Time, link: LinkId, packet: &Packet) {
        let _ = (now, link, packet);
    }
    /// The queue in front of `link` has marked a packet, which leaves now (or has just joined, where marks are set on arrival).
    fn on_mark(&mut self, now: Time, link: LinkId, packet: &Packet) {
        let _ = (now, link, packet);
    }
    /// The transmitter of `link` holds back `classes` from now on, and no others.
    fn on_pause(&mut self, now: Time, link: LinkId, classes: ClassSet) {
        let _ = (now, link, classes);
    }
    /// An endpoint reports something.
    fn on_transport(&mut self, now: Time, host: HostId, event: &Event) {
        let _ = (now, host, event);
    }
    /// An event of a host is over and has left its endpoint in this state.
    fn on_endpoint(&mut self, now: Time, endpoint: &dyn Senders) {
        let _ = (now, endpoint);
    }
}

/// Senders of an endpoint, with any kind of telemetry.
pub trait Senders {
    /// The host of the endpoint.
    fn host(&self) -> HostId;
    /// Shows, for each queue pair of a flow, its number and its limit at `now`: the reason why it does not send.
    fn for_each_limit(&self, now: Time, flow: FlowId, look: &mut dyn FnMut(u8, SendLimit));
}

impl<T: Telemetry> Senders for Endpoint<T> {
    fn host(&self) -> HostId {
        Self::host(self)
    }

    fn for_each_limit(&self, now: Time, flow: FlowId, look: &mut dyn FnMut(u8, SendLimit)) {
        for (queue_pair, limit) in self.send_limits(now, flow) {
            look(queue_pair, limit);
        }
    }
}

/// An observer that may be there or not, decided at run time.
impl<O: Observer> Observer for Option<O> {
    fn interests(&self) -> Interests {
        self.as_ref().map_or(Interests::NONE, O::interests)
    }
    fn on_arrival(&mut self, now: Time, node: NodeId, packet: &Packet) {
        if let Some(observer) = self {
            observer.on_arrival(now, node, packet);
        }
    }
    fn on_departure(&mut self, end: Time, link: LinkId, packet: &Packet) {
        if let Some(observer) = self {
            observer.on_departure(end, link, packet);
        }
    }
    fn on_queue(&mut self, now: Time, link: LinkId, bytes: u64) {
        if let Some(observer) = self {
            observer.on_queue(now, link, bytes);
        }
    }
    fn on_enqueue(&mut self, now: Time, link: LinkId, bytes: u64) {
        if let Some(observer) = self {
            observer.on_enqueue(now, link, bytes);
        }
    }
    fn on_dequeue(&mut self, now: Time, link: LinkId, bytes: u64) {
        if let Some(observer) = self {
            observer.on_dequeue(now, link, bytes);
        }
    }
    fn on_drop(&mut self, now: Time, link: LinkId, packet: &Packet, cause: DropCause) {
        if let Some(observer) = self {
            observer.on_drop(now, link, packet, cause);
        }
    }
    fn on_trim(&mut self, now: Time, link: LinkId, packet: &Packet) {
        if let Some(observer) = self {
            observer.on_trim(now, link, packet);
        }
    }
    fn on_mark(&mut self, now: Time, link: LinkId, packet: &Packet) {
        if let Some(observer) = self {
            observer.on_mark(now, link, packet);
        }
    }
    fn on_pause(&mut self, now: Time, link: LinkId, classes: ClassSet) {
        if let Some(observer) = self {
            observer.on_pause(now, link, classes);
        }
    }
    fn on_transport(&mut self, now: Time, host: HostId, event: &Event) {
        if let Some(observer) = self {
            observer.on_transport(now, host, event);
        }
    }
    fn on_endpoint(&mut self, now: Time, endpoint: &dyn Senders) {
        if let Some(observer) = self {
            observer.on_endpoint(now, endpoint);
        }
    }
}

/// Watch over a run.
#[derive(Default)]
pub enum Watch<'a> {
    /// No watch: only the outcome is known.
    #[default]
    Off,
    /// Links [count](crate::LinkTotals) their traffic.
    Links,
    /// Links count, and each domain has an observer; see [`Watch::by`].
    Observers(Vec<&'a mut dyn Observer>),
}

impl<'a> Watch<'a> {
    /// Watch by observers, one for each domain: [`Setup::per_domain`](crate::Setup::per_domain) makes so many.
    pub fn by<O: Observer>(observers: &'a mut [O]) -> Self {
        let observers = observers.iter_mut().map(|it| it as &mut dyn Observer);
        Self::Observers(observers.collect())
    }

    /// Frequent events of which somebody is told.
    pub fn interests(&self) -> Interests {
        let Self::Observers(observers) = self else {
            return Interests::NONE;
        };
        let interests = observers.iter().map(|observer| observer.interests());
        interests.fold(Interests::NONE, Interests::and)
    }
}

/// Events that the packet loop of a domain passes on: a type parameter of the loop.
pub(crate) trait Observation: Send {
    /// True if links [count](crate::LinkTotals) their traffic.
    const METERS_LINKS: bool;

    /// Frequent events of which somebody is told.
    fn interests(&self) -> Interests;
    fn on_arrival(&mut self, now: Time, node: NodeId, packet: &Packet);
    fn on_departure(&mut self, end: Time, link: LinkId, packet: &Packet);
    fn on_queue(&mut self, now: Time, link: LinkId, bytes: u64);
    fn on_enqueue(&mut self, now: Time, link: LinkId, bytes: u64);
    fn on_dequeue(&mut self, now: Time, link: LinkId, bytes: u64);
    fn on_endpoint(&mut self, now: Time, endpoint: &dyn Senders);
    /// Tells somebody of a rare event.
    fn tell(&mut self, tell: impl FnOnce(&mut dyn Observer));
}

/// Observation of a run without observers, in which nothing is counted.
#[derive(Debug)]
pub(crate) struct Unwatched;

/// Links count, and an observer may look.
pub(crate) struct Watched<'a> {
    interests: Interests,
    observer: Option<&'a mut dyn Observer>,
}

impl<'a> Watched<'a> {
    pub(crate) fn new(observer: Option<&'a mut dyn Observer>) -> Self {
        let interests = observer.as_ref().map(|observer| observer.interests());
        Self {
            interests: interests.unwrap_or(Interests::NONE),
            observer,
        }
    }
}

/// As `O`, where nobody is told of frequent events: they are not even looked for. Hosts and lossy switches decide once a round whether
/// that holds.
pub(crate) struct Quiet<'a, O>(pub(crate) &'a mut O);

impl Observation for Unwatched {
    const METERS_LINKS: bool = false;

    #[inline(always)]
    fn interests(&self) -> Interests {
        Interests::NONE
    }
    #[inline(always)]
    fn on_arrival(&mut self, _: Time, _: NodeId, _: &Packet) {}
    #[inline(always)]
    fn on_departure(&mut self, _: Time, _: LinkId, _: &Packet) {}
    #[inline(always)]
    fn on_queue(&mut self, _: Time, _: LinkId, _: u64) {}
    #[inline(always)]
    fn on_enqueue(&mut self, _: Time, _: LinkId, _: u64) {}
    #[inline(always)]
    fn on_dequeue(&mut self, _: Time, _: LinkId, _: u64) {}
    #[inline(always)]
    fn on_endpoint(&mut self, _: Time, _: &dyn Senders) {}
    #[inline(always)]
    fn tell(&mut self, _: impl FnOnce(&mut dyn Observer)) {}
}

impl Observation for Watched<'_> {
    const METERS_LINKS: bool = true;

    #[inline]
    fn interests(&self) -> Interests {
        self.interests
    }
    #[inline]
    fn on_arrival(&mut self, now: Time, node: NodeId, packet: &Packet) {
        if self.interests.arrivals {
            self.tell(|observer| observer.on_arrival(now, node, packet));
        }
    }
    #[inline]
    fn on_departure(&mut self, end: Time, link: LinkId, packet: &Packet) {
        if self.interests.departures {
            self.tell(|observer| observer.on_departure(end, link, packet));
        }
    }
    #[inline]
    fn on_queue(&mut self, now: Time, link: LinkId, bytes: u64) {
        if self.interests.queues {
            self.tell(|observer| observer.on_queue(now, link, bytes));
        }
    }
    #[inline]
    fn on_enqueue(&mut self, now: Time, link: LinkId, bytes: u64) {
        if self.interests.queues {
            self.tell(|observer| observer.on_enqueue(now, link, bytes));
        }
    }
    #[inline]
    fn on_dequeue(&mut self, now: Time, link: LinkId, bytes: u64) {
        if self.interests.queues {
            self.tell(|observer| observer.on_dequeue(now, link, bytes));
        }
    }
    #[inline]
    fn on_endpoint(&mut self, now: Time, endpoint: &dyn Senders) {
        if self.interests.senders {
            self.tell(|observer| observer.on_endpoint(now, endpoint));
        }
    }
    #[inline]
    fn tell(&mut self, tell: impl FnOnce(&mut dyn Observer)) {
        if let Some(observer) = &mut self.observer {
            tell(*observer);
        }
    }
}

impl<O: Observation> Observation for Quiet<'_, O> {
    const METERS_LINKS: bool = O::METERS_LINKS;

    #[inline(always)]
    fn interests(&self) -> Interests {
        Interests::NONE
    }
    #[inline(always)]
    fn on_arrival(&mut self, _: Time, _: NodeId, _: &Packet) {}
    #[inline(always)]
    fn on_departure(&mut self, _: Time, _: LinkId, _: &Packet) {}
    #[inline(always)]
    fn on_queue(&mut self, _: Time, _: LinkId, _: u64) {}
    #[inline(always)]
    fn on_enqueue(&mut self, _: Time, _: LinkId, _: u64) {}
    #[inline(always)]
    fn on_dequeue(&mut self, _: Time, _: LinkId, _: u64) {}
    #[inline(always)]
    fn on_endpoint(&mut self, _: Time, _: &dyn Senders) {}
    #[inline]
    fn tell(&mut self, tell: impl FnOnce(&mut dyn Observer)) {
        self.0.tell(tell);
    }
}

//! The ingress side of a switch: where packets come in and which egress port each one takes.

use super::bit_set::BitSet;
use super::detours::{Detours, via};
use super::ecmp;
use super::parameters::PathChoice;
use super::reroutes::Reroutes;
use crate::link::{Arrival, Frame};
use crate::prefetching::MOST_BYTES;
use crate::topology::{AttachmentPoint, LinkId, NextHops, NodeId, SwitchRoutes};
use clearway_engine::{BufferPool, Inlet, Round};
use clearway_prefetch::prefetch_first;
use clearway_transport::Packet;
use clearway_units::{HostId, Purpose, RandomStream, Time};
use std::sync::Arc;

/// Rule by which a switch selects one of several equal-cost next hops for a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NextHopSelector {
    /// By ECMP over the header, with the salt of this switch.
    Hash { salt: u64 },
    /// By the number of the destination.
    Destination,
}

impl NextHopSelector {
    /// Selector of the switch `index`, which has this rule, in a run with `seed`.
    pub(crate) fn new(rule: PathChoice, seed: u64, index: usize) -> Self {
        match rule {
            PathChoice::Destination => Self::Destination,
            // Rules that look at queues hash small packets.
            _ => Self::Hash {
                salt: RandomStream::new(seed, Purpose::Hashing, index as u64).next_u64(),
            },
        }
    }

    /// The port by which a switch with the table `routes` sends packets to the host `dst`, which is attached to `to`.
    #[inline(always)]
    pub(crate) fn port(
        self,
        routes: &SwitchRoutes,
        (dst, to): (HostId, AttachmentPoint),
        header_hash: u32,
    ) -> usize {
        match self {
            Self::Hash { salt } => routes.next_hop(to, |count| ecmp(header_hash, salt, count)),
            Self::Destination => match routes.next_hops(to) {
                NextHops::Host(port) => port.into(),
                NextHops::Ports(ports) => port_by_number(routes, dst, ports),
            },
        }
    }

    /// The one of several `ports` by which a switch with the table `routes` sends packets to the host `dst`.
    #[inline(always)]
    pub(crate) fn among(
        self,
        ports: &[u16],
        routes: &SwitchRoutes,
        dst: HostId,
        header_hash: u32,
    ) -> usize {
        match self {
            Self::Hash { salt } => ports[ecmp(header_hash, salt, ports.len())].into(),
            Self::Destination => port_by_number(routes, dst, ports),
        }
    }
}

/// The one of several ports that the number of the destination picks.
#[cold]
fn port_by_number(routes: &SwitchRoutes, dst: HostId, ports: &[u16]) -> usize {
    let stride = routes.strides[usize::from(ports[0])];
    ports[(dst.0 / stride) as usize % ports.len()].into()
}

#[derive(Debug)]
pub(crate) struct Ingress<T> {
    pub(super) node: NodeId,
    pick: NextHopSelector,
    /// Seed of the order of simultaneous arrivals.
    pub(super) tie_seed: u64,
    routes: SwitchRoutes,
    attachments: Arc<[AttachmentPoint]>,
    /// By port: the link over which packets come in.
    pub(super) links: Vec<LinkId>,
    /// By port: where they come in.
    inlets: Vec<Inlet<Arrival<T>>>,
    /// Inlets with unread messages.
    pending: BitSet,
    /// Routes that follow the first ones; none in a run without events of links.
    reroutes: Option<Arc<Reroutes>>,
    /// Detours of packets; none where they take minimal routes.
    detours: Option<Box<Detours>>,
}

impl<T> Ingress<T> {
    pub(crate) fn new(
        node: NodeId,
        (pick, tie_seed): (NextHopSelector, u64),
        routes: SwitchRoutes,
        attachments: Arc<[AttachmentPoint]>,
        inlets: Vec<(LinkId, Inlet<Arrival<T>>)>,
    ) -> Self {
        let (links, inlets): (Vec<_>, Vec<_>) = inlets.into_iter().unzip();
        Self {
            node,
            pick,
            tie_seed,
            routes,
            attachments,
            pending: BitSet::new(inlets.len()),
            links,
            inlets,
            reroutes: None,
            detours: None,
        }
    }

    /// Lets the routes of the switch change during the run.
    pub(crate) fn with_reroutes(self, reroutes: Option<Arc<Reroutes>>) -> Self {
        Self { reroutes, ..self }
    }

    /// Lets packets take detours.
    pub(crate) fn with_detours(self, detours: Option<Detours>) -> Self {
        let detours = detours.map(Box::new);
        Self { detours, ..self }
    }

    /// True if [`route`](Self::route) says all about egress ports: in a run without events of links and without detours.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.reroutes.is_none() && self.detours.is_none()
    }

    /// Decides about the detours of all packets that arrive within the round, before any is routed.
    #[inline(never)]
    pub(super) fn steer(&mut self, round: &Round) {
        let Some(detours) = &mut self.detours else {
            return;
        };
        let (inlets, reroutes) = (&mut self.inlets, &self.reroutes);
        self.pending.retain(|port| {
            for arrival in inlets[port].unread_mut() {
                if arrival.time >= round.end() {
                    break;
                }
                if let Frame::Packet(packet) = &mut arrival.frame {
                    let changed = reroutes.as_ref();
                    let changed = changed.and_then(|all| all.of_switch(self.node, arrival.time));
                    detours.steer(port, packet, changed.unwrap_or(&self.routes));
                }
            }
            true
        });
    }

    /// True if switches weigh detours by their queues.
    #[inline]
    pub(super) fn weighs_detours(&self) -> bool {
        self.detours
            .as_ref()
            .is_some_and(|detours| detours.is_weighed())
    }

    /// Decides about the detour of a packet that has just arrived; `bytes_at` returns the bytes that wait at a port. With `by_queue` the
    /// switch chooses among ports by their queues, else by the header.
    #[inline(never)]
    pub(super) fn weigh_detour(
        &mut self,
        (port, place): (usize, usize),
        by_queue: bool,
        mut bytes_at: impl FnMut(u16) -> u64,
    ) {
        let Some(detours) = &mut self.detours else {
            return;
        };
        let arrival = &mut self.inlets[port].unread_mut()[place];
        let Frame::Packet(packet) = &mut arrival.frame else {
            return;
        };
        let changed = self.reroutes.as_ref();
        let changed = changed.and_then(|all| all.of_switch(self.node, arrival.time));
        let routes = changed.unwrap_or(&self.routes);
        let to = self.attachments[packet.dst.index()];
        let pick = self.pick;
        detours.weigh(port, packet, (routes, to), |packet, ports| {
            if by_queue {
                return ports.iter().map(|&port| bytes_at(port)).min().unwrap_or(0);
            }
            bytes_at(pick.among(ports, routes, packet.dst, packet.header_hash) as u16)
        });
    }

    /// True in a run with events of links.
    #[inline]
    pub(super) fn has_events(&self) -> bool {
        self.reroutes.is_some()
    }

    /// Loads what [`collect`](Self::collect) will touch into the caches.
    #[inline]
    pub(super) fn prefetch_mailbox(&self, port: usize) {
        self.inlets[port].prefetch_mailbox();
    }

    /// New messages have come in at `port`; returns when the first of them arrives. If it `prefetches`, it loads the unread ones into the
    /// caches.
    pub(super) fn collect(
        &mut self,
        port: usize,
        round: &Round,
        buffers: &mut BufferPool<Arrival<T>>,
        prefetches: bool,
    ) -> Time {
        let inlet = &mut self.inlets[port];
        let first = inlet.collect(round, buffers);
        debug_assert!(inlet.unread().iter().any(|arrival| arrival.time == first));
        if prefetches {
            prefetch_first(inlet.unread(), MOST_BYTES);
        }
        self.pending.insert(port);
        first
    }

    /// Calls `visit` with port, place among the unread messages and message for everything that arrives within the round, port by port.
    #[inline]
    pub(super) fn for_each_arrival(
        &mut self,
        round: &Round,
        mut visit: impl FnMut(&Self, usize, usize, &Arrival<T>),
    ) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.retain(|port| {
            for (place, arrival) in self.inlets[port].unread().iter().enumerate() {
                if arrival.time >= round.end() {
                    break;
                }
                visit(self, port, place, arrival);
            }
            true
        });
        self.pending = pending;
    }

    /// Number of unread messages, those of later rounds included.
    #[inline]
    pub(super) fn unread(&mut self) -> u64 {
        let (inlets, mut count) = (&self.inlets, 0);
        self.pending.retain(|port| {
            count += inlets[port].unread().len() as u64;
            true
        });
        count
    }

    /// Calls `visit` with number and unread messages of each port that has any, messages of later rounds included.
    #[inline]
    pub(super) fn for_each_port_with_arrivals(
        &mut self,
        mut visit: impl FnMut(usize, &[Arrival<T>]),
    ) {
        let inlets = &self.inlets;
        self.pending.retain(|port| {
            visit(port, inlets[port].unread());
            true
        });
    }

    /// Moves the inlets past the arrivals of the round; returns the earliest arrival that is left.
    pub(super) fn discard_read(
        &mut self,
        round: &Round,
        buffers: &mut BufferPool<Arrival<T>>,
    ) -> Time {
        let mut next = Time::NEVER;
        let inlets = &mut self.inlets;
        self.pending.retain(|port| {
            let inlet = &mut inlets[port];
            let handled = inlet
                .unread()
                .partition_point(|arrival| arrival.time < round.end());
            inlet.advance(handled);
            inlet.tidy(buffers);
            match inlet.unread().first() {
                None => false,
                Some(arrival) => {
                    next = next.min(arrival.time);
                    true
                }
            }
        });
        next
    }

    /// An unread message by its place.
    #[inline]
    pub(super) fn arrival(&self, port: usize, place: usize) -> &Arrival<T> {
        self.inlets[port].unread_at(place)
    }

    /// As [`arrival`](Self::arrival), for a packet that moves on.
    #[inline]
    pub(super) fn arrival_mut(&mut self, port: usize, place: usize) -> &mut Arrival<T> {
        self.inlets[port].unread_at_mut(place)
    }

    /// The link behind a port, towards this switch.
    #[inline]
    pub(super) fn link(&self, port: usize) -> LinkId {
        self.links[port]
    }

    /// The egress port of a packet.
    #[inline(always)]
    pub(super) fn route(&self, packet: &Packet) -> usize {
        let to = self.attachments[packet.dst.index()];
        self.pick
            .port(&self.routes, (packet.dst, to), packet.header_hash)
    }

    /// As [`route_at`](Self::route_at), whether a way is left or not.
    #[cold]
    #[inline(never)]
    pub(super) fn egress_at(&self, now: Time, packet: &Packet) -> usize {
        let (Ok(port) | Err(port)) = self.route_at(now, packet);
        port
    }

    /// The egress port of a packet in a run with events or detours; where no way leads to its destination, the one that it would take were
    /// all links up.
    #[inline(never)]
    pub(super) fn route_at(&self, now: Time, packet: &Packet) -> Result<usize, usize> {
        match self.next_hops_at(now, packet)? {
            NextHops::Host(port) => Ok(port.into()),
            NextHops::Ports(ports) => Ok(self.pick_at(now, packet, ports)),
        }
    }

    /// The next hops of a packet at `now`; where no way leads to its destination, the port that it would take were all links up.
    pub(super) fn next_hops_at(&self, now: Time, packet: &Packet) -> Result<NextHops<'_>, usize> {
        if let Some(via) = via(packet) {
            // One to which no way leads has been forgotten.
            return Ok(NextHops::Ports(self.routes_at(now).towards_group(via)));
        }
        let to = self.attachments[packet.dst.index()];
        let next = self.routes_at(now).next_hops(to);
        let Some(reroutes) = &self.reroutes else {
            return Ok(next);
        };
        match next {
            NextHops::Host(port) => {
                let port = usize::from(port);
                // The link that leaves beside the one that comes in.
                let link = LinkId(self.link(port).0 ^ 1);
                match reroutes.is_dead_end(link, now) {
                    true => Err(port),
                    false => Ok(next),
                }
            }
            NextHops::Ports([]) => Err(self.route(packet)),
            NextHops::Ports(_) => Ok(next),
        }
    }

    /// The one of a packet's next hops at `now` that its header or its destination chooses.
    pub(super) fn pick_at(&self, now: Time, packet: &Packet, ports: &[u16]) -> usize {
        let routes = self.routes_at(now);
        self.pick
            .among(ports, routes, packet.dst, packet.header_hash)
    }

    /// The routes at `now`.
    fn routes_at(&self, now: Time) -> &SwitchRoutes {
        let reroutes = self.reroutes.as_ref();
        let later = reroutes.and_then(|reroutes| reroutes.of_switch(self.node, now));
        later.unwrap_or(&self.routes)
    }

    /// Messages on the wires towards this switch.
    pub(super) fn on_the_wire(&self) -> u64 {
        self.inlets
            .iter()
            .map(|inlet| inlet.in_transit() as u64)
            .sum()
    }
}

//! An output-queued, store-and-forward switch.

use crate::link::{Arrival, Ledger};
use crate::observer::Observer;
use crate::order::{self, Ticket};
use crate::port::Port;
use crate::topology::{Attachment, LinkId, NextHops, NodeId, SwitchRoutes};
use clearway_engine::{Bags, Inlet, Outlook, Round};
use clearway_transport::Packet;
use clearway_units::{Time, mix64};
use std::sync::Arc;

/// A set of small numbers that is cheap to walk through in order.
#[derive(Debug, Default)]
struct BitSet(Vec<u64>);

impl BitSet {
    fn new(size: usize) -> Self {
        Self(vec![0; size.div_ceil(64)])
    }
    #[inline]
    fn insert(&mut self, index: usize) {
        self.0[index / 64] |= 1 << (index % 64);
    }
    /// Calls `keep` for each member in ascending order; those for which it says no are removed.
    #[inline]
    fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        for (word, bits) in self.0.iter_mut().enumerate() {
            let mut left = *bits;
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                if !keep(word * 64 + bit as usize) {
                    *bits &= !(1 << bit);
                }
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Switch {
    node: NodeId,
    /// Salt of this switch's ECMP hash.
    salt: u64,
    routes: SwitchRoutes,
    attachments: Arc<[Attachment]>,
    ports: Vec<Port>,
    /// By port: where packets come in, and over which link.
    inlets: Vec<(LinkId, Inlet<Arrival>)>,
    /// Inlets with unread letters.
    pending: BitSet,
    /// Ports with packets.
    active: BitSet,
    next: Time,
    /// Seed of the order of simultaneous arrivals.
    tie_seed: u64,
}

/// Buffers that a thread lends to each switch that it runs.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// By egress port: the arrivals of the round.
    arrivals: Vec<Vec<Ticket>>,
}

/// What a switch is made of.
pub(crate) struct SwitchParts {
    pub(crate) node: NodeId,
    pub(crate) salt: u64,
    pub(crate) tie_seed: u64,
    pub(crate) routes: SwitchRoutes,
    pub(crate) attachments: Arc<[Attachment]>,
    pub(crate) ports: Vec<Port>,
    pub(crate) inlets: Vec<(LinkId, Inlet<Arrival>)>,
}

impl Switch {
    pub(crate) fn new(parts: SwitchParts) -> Self {
        let (ports, inlets) = (parts.ports.len(), parts.inlets.len());
        Self {
            node: parts.node,
            salt: parts.salt,
            routes: parts.routes,
            attachments: parts.attachments,
            ports: parts.ports,
            inlets: parts.inlets,
            pending: BitSet::new(inlets),
            active: BitSet::new(ports),
            next: Time::NEVER,
            tie_seed: parts.tie_seed,
        }
    }

    /// New packets have come in at `port`.
    pub(crate) fn collect(&mut self, port: usize, round: &Round, bags: &mut Bags<Arrival>) {
        let inlet = &mut self.inlets[port].1;
        inlet.collect(round, bags);
        self.pending.insert(port);
        self.next = inlet
            .unread()
            .first()
            .map_or(self.next, |arrival| self.next.min(arrival.time));
    }

    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// Runs all events of the round. Ports do not affect each other, so each one handles its whole round by itself while its
    /// queue is in the cache.
    pub(crate) fn run<O: Observer>(
        &mut self,
        round: &Round,
        desk: &mut Desk,
        ledger: &mut Ledger<'_, O>,
    ) -> Outlook {
        self.line_up(round, desk);
        let (mut next, mut sent) = (Time::NEVER, Time::NEVER);
        let mut active = std::mem::take(&mut self.active);
        active.retain(|port| {
            self.run_port(port, round, desk, ledger);
            let port = &mut self.ports[port];
            sent = sent.min(port.flush(round, ledger));
            let at = port.next();
            next = next.min(at.max(round.end()));
            !at.is_never()
        });
        self.active = active;
        self.next = next.min(self.discard_read(round, ledger.bags));
        Outlook {
            next: self.next,
            sent,
        }
    }

    /// Gives the arrivals of the round to their egress ports.
    fn line_up(&mut self, round: &Round, desk: &mut Desk) {
        if desk.arrivals.len() < self.ports.len() {
            desk.arrivals.resize_with(self.ports.len(), Vec::new);
        }
        let mut pending = std::mem::take(&mut self.pending);
        pending.retain(|from| {
            let (_, inlet) = &self.inlets[from];
            for (index, arrival) in inlet.unread().iter().enumerate() {
                if arrival.time >= round.end() {
                    break;
                }
                let port = self.route(&arrival.packet);
                let tickets = &mut desk.arrivals[port];
                if tickets.is_empty() {
                    self.active.insert(port);
                }
                tickets.push(Ticket::new(round.start(), arrival.time, from, index));
            }
            true
        });
        self.pending = pending;
    }

    /// Handles the arrivals of the round for one egress port.
    #[inline]
    fn run_port<O: Observer>(
        &mut self,
        port: usize,
        round: &Round,
        desk: &mut Desk,
        ledger: &mut Ledger<'_, O>,
    ) {
        let (tickets, inlets) = (&mut desk.arrivals[port], &self.inlets);
        order::sort(tickets, self.tie_seed, round.start(), |port| inlets[port].0);
        let port = &mut self.ports[port];
        for ticket in tickets.iter() {
            let arrival = &inlets[ticket.port()].1.unread()[ticket.index()];
            ledger
                .observer
                .on_arrival(arrival.time, self.node, &arrival.packet);
            port.enqueue(arrival.time, &arrival.packet, ledger);
        }
        tickets.clear();
    }

    /// Moves the inlets past what was handled; returns the earliest arrival that is left.
    fn discard_read(&mut self, round: &Round, bags: &mut Bags<Arrival>) -> Time {
        let mut next = Time::NEVER;
        let inlets = &mut self.inlets;
        self.pending.retain(|port| {
            let inlet = &mut inlets[port].1;
            let handled = inlet
                .unread()
                .partition_point(|arrival| arrival.time < round.end());
            inlet.advance(handled);
            inlet.tidy(bags);
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

    /// The egress port of a packet: ECMP over the header, salted by the switch.
    #[inline]
    fn route(&self, packet: &Packet) -> usize {
        match self.routes.next_hops(self.attachments[packet.dst.index()]) {
            NextHops::Host(port) => port.into(),
            NextHops::Ports(ports) => {
                ports[ecmp(packet.header_hash, self.salt, ports.len())].into()
            }
        }
    }

    /// Packets in queues.
    pub(crate) fn queued(&self) -> u64 {
        self.ports.iter().map(Port::queued).sum()
    }

    /// Packets on the wires towards this switch.
    pub(crate) fn on_the_wire(&self) -> u64 {
        self.inlets
            .iter()
            .map(|(_, inlet)| inlet.in_transit() as u64)
            .sum()
    }
}

/// Which of `choices` equal ways a packet takes.
#[inline]
pub(crate) fn ecmp(header_hash: u32, salt: u64, choices: usize) -> usize {
    let hash = mix64(salt ^ u64::from(header_hash)) >> 32;
    ((hash * choices as u64) >> 32) as usize
}

/// The digest of addressing that switches hash.
#[inline]
pub(crate) fn header_hash(packet: &Packet) -> u32 {
    let addresses = u64::from(packet.src.0) << 32 | u64::from(packet.dst.0);
    mix64(mix64(addresses) ^ u64::from(packet.source_port)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ecmp_is_even_and_switches_choose_independently() {
        let mut counts = [[0u32; 8]; 8];
        for hash in 0..64_000u32 {
            let hash = mix64(hash.into()) as u32;
            counts[ecmp(hash, mix64(1), 8)][ecmp(hash, mix64(2), 8)] += 1;
        }
        // Each pair of choices 1000 times; 5 sigma are 158.
        assert!(
            counts.iter().flatten().all(|&n| n.abs_diff(1000) < 158),
            "{counts:?}"
        );
    }

    #[test]
    fn bit_sets_walk_in_order_and_forget() {
        let mut set = BitSet::new(130);
        [129, 0, 64].into_iter().for_each(|index| set.insert(index));
        let mut seen = Vec::new();
        set.retain(|index| {
            seen.push(index);
            index != 64
        });
        set.retain(|index| {
            seen.push(index);
            true
        });
        assert_eq!(seen, [0, 64, 129, 0, 129]);
    }
}

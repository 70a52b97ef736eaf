//! A switch whose ports share one buffer, with priority flow control (IEEE 802.1Qbb).
//!
//! What a packet finds in the buffer depends on everything that has left it before, through whatever port, so events are handled
//! in the order of time: arrivals from the sorted letters of the round, ends of transmissions from a heap with at most one entry
//! for each port. At one instant: ends of transmissions by port, pause frames taking effect, arrivals, starts of transmissions.
//!
//! # Pause frames
//! The buffer says which classes of which ingress port should be held back. The port tells the other end of its cable with a
//! frame that carries the state of all classes, before anything else that waits, as soon as its wire is free: at most one packet
//! later. States that come and go while the wire is busy are not told. A frame takes effect when its last bit has arrived and
//! the receiver's reaction time has passed; a packet on the wire is finished. It holds until the next one, without a timer.
//! Frames are never lost to bit errors and count neither as packets nor as hops.

mod buffer;
mod port;

use super::Desk;
use super::ingress::Ingress;
use super::parameters::BufferRules;
use crate::link::{Arrival, Cargo, Ledger};
use crate::observer::{DropCause, Observer};
use crate::order::{self, Ticket};
use crate::pause::LinkPauses;
use buffer::Buffer;
use clearway_engine::{Bags, Outlook, Round};
use clearway_transport::{ClassSet, Packet};
use clearway_units::{Span, Time};
use port::Queued;
pub(crate) use port::SharedPort;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

#[derive(Debug)]
pub(crate) struct SharedSwitch {
    ingress: Ingress,
    ports: Vec<SharedPort>,
    buffer: Buffer,
    /// Ends of transmissions.
    ends: BinaryHeap<Reverse<(Time, u16)>>,
    /// Pause frames that have arrived and wait for the reaction time, with their ports.
    effects: VecDeque<(Time, u16, ClassSet)>,
    /// Ports that may start a transmission at this instant.
    starts: Vec<u16>,
    reaction: Span,
    /// Bytes of a pause frame.
    frame: u32,
    next: Time,
}

impl SharedSwitch {
    pub(crate) fn new(
        ingress: Ingress,
        ports: Vec<SharedPort>,
        rules: &BufferRules,
        (reaction, frame): (Span, u32),
    ) -> Self {
        Self {
            ingress,
            ports,
            buffer: Buffer::new(rules),
            ends: BinaryHeap::new(),
            effects: VecDeque::new(),
            starts: Vec::new(),
            reaction,
            frame,
            next: Time::NEVER,
        }
    }

    pub(super) fn collect(&mut self, port: usize, round: &Round, bags: &mut Bags<Arrival>) {
        self.next = self.next.min(self.ingress.collect(port, round, bags));
    }

    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// Runs all events of the round.
    pub(super) fn run<O: Observer>(
        &mut self,
        round: &Round,
        desk: &mut Desk,
        ledger: &mut Ledger<'_, O>,
    ) -> Outlook {
        let tickets = &mut desk.lines(1)[0];
        self.line_up(round, tickets);
        let mut waiting = tickets.iter().peekable();
        loop {
            let time_of = |ticket: &&Ticket| self.arrival(**ticket).time;
            let arrival = waiting.peek().map_or(Time::NEVER, time_of);
            let now = arrival.min(self.next_internal());
            if now >= round.end() {
                break;
            }
            self.complete_transmissions(now, ledger);
            self.react(now, ledger);
            while let Some(&&ticket) = waiting.peek()
                && self.arrival(ticket).time == now
            {
                waiting.next();
                self.receive(now, ticket, ledger);
            }
            self.start_transmissions(now);
        }
        tickets.clear();
        let left = self.ingress.discard_read(round, ledger.bags);
        self.next = left.min(self.next_internal());
        Outlook {
            next: self.next,
            sent: self.flush(round, ledger),
        }
    }

    /// Sorts the arrivals of the round.
    fn line_up(&mut self, round: &Round, tickets: &mut Vec<Ticket>) {
        self.ingress
            .for_each_arrival(round, |_, port, index, arrival| {
                tickets.push(Ticket::new(round.start(), arrival.time, port, index));
            });
        let ingress = &self.ingress;
        order::sort(tickets, ingress.tie_seed, round.start(), |port| {
            ingress.link(port)
        });
    }

    #[inline]
    fn arrival(&self, ticket: Ticket) -> &Arrival {
        self.ingress.arrival(ticket.port(), ticket.index())
    }

    /// The next end of a transmission or effect of a pause frame.
    #[inline]
    fn next_internal(&self) -> Time {
        let end = self
            .ends
            .peek()
            .map_or(Time::NEVER, |Reverse((end, _))| *end);
        let effect = self.effects.front().map_or(Time::NEVER, |effect| effect.0);
        end.min(effect)
    }

    #[inline]
    fn complete_transmissions<O: Observer>(&mut self, now: Time, ledger: &mut Ledger<'_, O>) {
        while let Some(&Reverse((end, port))) = self.ends.peek()
            && end <= now
        {
            self.ends.pop();
            self.starts.push(port);
            let Some((class, queued)) = self.ports[usize::from(port)].complete(now, ledger) else {
                continue;
            };
            let size = u64::from(queued.packet.size);
            if self.buffer.is_lossless(class) {
                let from = usize::from(queued.from);
                let before = self.buffer.paused(from);
                self.buffer.release(from, class, size);
                if self.buffer.paused(from) != before {
                    self.starts.push(queued.from);
                }
            } else if class.is_data() {
                self.buffer.release_lossy(size);
            }
        }
    }

    /// Pause frames take effect.
    #[inline]
    fn react<O: Observer>(&mut self, now: Time, ledger: &mut Ledger<'_, O>) {
        while let Some(&(at, port, classes)) = self.effects.front()
            && at <= now
        {
            self.effects.pop_front();
            self.obey(now, port, classes, ledger);
        }
    }

    fn obey<O: Observer>(
        &mut self,
        now: Time,
        port: u16,
        classes: ClassSet,
        ledger: &mut Ledger<'_, O>,
    ) {
        let transmitter = &mut self.ports[usize::from(port)];
        transmitter.pause.obey(now, classes);
        ledger.observer.on_pause(now, transmitter.link.id, classes);
        self.starts.push(port);
    }

    #[inline]
    fn receive<O: Observer>(&mut self, now: Time, ticket: Ticket, ledger: &mut Ledger<'_, O>) {
        match self.arrival(ticket).cargo {
            Cargo::Packet(packet) => self.forward(now, ticket.port(), &packet, ledger),
            Cargo::Pause(classes) => {
                ledger.counters.pause_frames_received += 1;
                let port = ticket.port() as u16;
                if self.reaction.is_zero() {
                    self.obey(now, port, classes, ledger);
                } else {
                    self.effects.push_back((now + self.reaction, port, classes));
                }
            }
        }
    }

    #[inline]
    fn forward<O: Observer>(
        &mut self,
        now: Time,
        from: usize,
        packet: &Packet,
        ledger: &mut Ledger<'_, O>,
    ) {
        ledger.observer.on_arrival(now, self.ingress.node, packet);
        let egress = self.ingress.route(packet);
        let port = &mut self.ports[egress];
        let (class, size) = (port.class_of(packet), u64::from(packet.size));
        let drop = if self.buffer.is_lossless(class) {
            let before = self.buffer.paused(from);
            let admitted = self.buffer.admit(from, class, size);
            if self.buffer.paused(from) != before {
                self.starts.push(from as u16);
            }
            (!admitted).then_some(DropCause::HeadroomFull)
        } else {
            let admitted = !class.is_data()
                || (port.takes_lossy(class, size) && self.buffer.admit_lossy(size));
            (!admitted).then_some(DropCause::QueueFull)
        };
        if let Some(cause) = drop {
            ledger.lose(now, port.link.id, packet, cause);
            return;
        }
        let queued = Queued {
            packet: *packet,
            from: from as u16,
        };
        port.enqueue(now, class, queued, ledger);
        self.starts.push(egress as u16);
    }

    /// Begins what can be sent now.
    #[inline]
    fn start_transmissions(&mut self, now: Time) {
        for index in self.starts.drain(..) {
            let port = &mut self.ports[usize::from(index)];
            let tell = self.buffer.paused(usize::from(index));
            if let Some(end) = port.start(now, tell, self.frame) {
                self.ends.push(Reverse((end, index)));
            }
        }
    }

    /// Hands over what has left; returns the earliest arrival handed over.
    fn flush<O: Observer>(&mut self, round: &Round, ledger: &mut Ledger<'_, O>) -> Time {
        let sent = self
            .ports
            .iter_mut()
            .map(|port| port.link.flush(round, ledger.counters));
        sent.min().unwrap_or(Time::NEVER)
    }

    /// Packets in queues.
    pub(super) fn queued(&self) -> u64 {
        self.ports.iter().map(SharedPort::queued).sum()
    }

    /// Letters on the wires towards this switch.
    pub(super) fn on_the_wire(&self) -> u64 {
        self.ingress.on_the_wire()
    }

    /// What became of the transmitters of this switch that were paused.
    pub(crate) fn pauses(&self, end: Time) -> impl Iterator<Item = LinkPauses> {
        let account = move |port: &SharedPort| port.pause.account(port.link.id, end);
        self.ports.iter().filter_map(account)
    }
}

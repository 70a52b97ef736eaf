//! Rounds of a switch with a shared buffer in which nobody's pauses change.
//!
//! Ports depend on each other through the buffer: it decides whether a packet is admitted, and whether a sender is paused or may go on. In
//! some rounds the switch pauses no sender, no pause frame for its own transmitters arrives or takes effect, and all arrivals would fit
//! below every threshold even if nothing left. In such a round the order of arrivals and departures decides nothing, and accounts are sums.
//! Then each port handles its whole round in one go, as ports of lossy switches do. Afterwards ports are in the same state as after a round
//! in the order of time.

use super::super::Scratch;
use super::super::prefetching::prefetch_next;
use super::SharedSwitch;
use super::buffer::{Buffer, Incoming};
use super::port::SharedPort;
use crate::link::{Frame, Sinks};
use crate::observer::{DropCause, Observation};
use crate::order::ArrivalKey;
use clearway_engine::{DomainHorizon, Round};
use clearway_transport::congestion::telemetry::{IntPacket, Telemetry};
use clearway_transport::{Class, ClassSet};
use clearway_units::Time;

impl<T: Telemetry> SharedSwitch<T> {
    /// Lines up the arrivals of the round by egress port. Returns false, with nothing lined up, unless nobody's pauses change within the
    /// round, headers alone choose ports and no packet changes its virtual channel.
    #[inline]
    pub(super) fn line_up_if_nobody_pauses(
        &mut self,
        round: &Round,
        scratch: &mut Scratch,
    ) -> bool {
        if !self.is_by_header() || self.buffer.pauses_any() {
            return false;
        }
        let reacts = self.effects.front();
        if reacts.is_some_and(|(at, ..)| *at < round.end()) {
            return false;
        }
        let most = self.ingress.unread() * u64::from(self.largest);
        (self.buffer.takes_any(most) || self.takes_all(round)) && self.line_up(round, scratch)
    }

    /// True if the buffer takes all packets of the round without a pause.
    #[inline(never)]
    fn takes_all(&mut self, round: &Round) -> bool {
        let all = &mut self.incoming;
        all.clear();
        self.ingress.for_each_port_with_arrivals(|port, arrivals| {
            let mut incoming = Incoming {
                port: port as u16,
                classes: ClassSet::EMPTY,
                bytes: 0,
            };
            for arrival in arrivals {
                // Arrivals of later rounds are among them.
                if arrival.time >= round.end() {
                    break;
                }
                if let Frame::Packet(packet) = &arrival.frame {
                    // Control without priority is in this class.
                    incoming.classes.insert(packet.class.max(Class::DATA));
                    incoming.bytes += u64::from(packet.size);
                }
            }
            all.push(incoming);
        });
        self.buffer.takes_without_pause(all)
    }

    /// Lines up the arrivals of the round by egress port. Returns false, with nothing lined up, if a pause frame is among them.
    #[inline]
    fn line_up(&mut self, round: &Round, scratch: &mut Scratch) -> bool {
        let (lines, largest) = (scratch.lines(self.ports.len()), self.largest);
        let (active, mut has_pauses) = (&mut self.wakes.active, false);
        self.ingress
            .for_each_arrival(round, |ingress, from, place, arrival| {
                let Frame::Packet(packet) = &arrival.frame else {
                    has_pauses = true;
                    return;
                };
                debug_assert!(packet.size <= largest);
                let port = ingress.route(packet);
                let arrival_keys = &mut lines[port];
                if arrival_keys.is_empty() {
                    active.insert(port);
                }
                arrival_keys.push(ArrivalKey::new(round.start(), arrival.time, from, place));
            });
        if has_pauses {
            lines.iter_mut().for_each(Vec::clear);
        }
        !has_pauses
    }

    /// Runs a round whose arrivals are [lined up](Self::line_up_if_nobody_pauses).
    pub(super) fn run_port_by_port<O: Observation>(
        &mut self,
        round: &Round,
        scratch: &mut Scratch,
        sinks: &mut Sinks<'_, O, T>,
    ) -> DomainHorizon {
        self.ends.clear();
        self.was_port_by_port = true;
        let (lines, sorter) = (&mut scratch.lines, &mut scratch.sorter);
        let prefetches = scratch.prefetches;
        let active = &mut self.wakes.active;
        let (ingress, ports, buffer) = (&mut self.ingress, &mut self.ports, &mut self.buffer);
        let node = ingress.node;
        let (frame, last) = (self.frame, Time::from_ps(round.end().as_ps() - 1));
        let (mut next, mut sent) = (Time::NEVER, Time::NEVER);
        active.retain_looking_ahead(|index, next_ports| {
            if prefetches {
                prefetch_next(ports, next_ports, SharedPort::prefetch_queues);
            }
            let (port, arrival_keys) = (&mut ports[index], &mut lines[index]);
            sorter.sort(arrival_keys, ingress.tie_seed, round, &ingress.links);
            let mut left = arrival_keys.iter();
            while let Some(arrival_key) = left.next() {
                // The key has the time, so that what follows does not wait for the packet, which may be in no cache.
                let now = arrival_key.time(round.start());
                let arrival = ingress.arrival_mut(arrival_key.port(), arrival_key.place());
                if let Frame::Packet(packet) = &mut arrival.frame {
                    sinks.observer.on_arrival(now, node, packet);
                    port.bring_up_to_date(now, frame, buffer, sinks);
                    let packet = (packet, arrival_key.port() as u16);
                    let next = || ArrivalKey::next(left.as_slice(), round);
                    port.take_in(now, next, packet, buffer, sinks);
                }
            }
            arrival_keys.clear();
            port.advance((last, round.end()), frame, buffer, sinks);
            sent = sent.min(port.link.flush(round, sinks.counters));
            next = next.min(port.end());
            !port.is_idle()
        });
        let effect = self.effects.front().map_or(Time::NEVER, |(at, ..)| *at);
        let left = self.ingress.discard_read(round, sinks.buffers);
        self.next = next.min(effect).min(left);
        DomainHorizon {
            next: self.next,
            sent,
        }
    }

    /// Puts the ends of transmissions in order after a round that was handled port by port.
    #[inline]
    pub(super) fn queue_ends(&mut self) {
        if !std::mem::take(&mut self.was_port_by_port) {
            return;
        }
        let (ports, ends) = (&self.ports, &mut self.ends);
        self.wakes.active.retain(|port| {
            let end = ports[port].end();
            if !end.is_never() {
                ends.push(end, port as u16);
            }
            true
        });
    }
}

impl<T: Telemetry> SharedPort<T> {
    /// A packet that pauses nobody has come in `from` a port. Nothing else happens here before `next()`: a packet that finds the port idle
    /// and leaves by then needs neither its queue nor an account at the buffer.
    #[inline(always)]
    fn take_in<O: Observation>(
        &mut self,
        now: Time,
        next: impl FnOnce() -> Time,
        (packet, from): (&mut IntPacket<T>, u16),
        buffer: &mut Buffer,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        if T::AGENTS && !self.link.admits(now, packet, sinks) {
            return;
        }
        let (class, size) = (self.class_of(packet), packet.size.into());
        let fits = !class.is_data() || buffer.is_lossless(class) || self.takes_lossy(class, size);
        if fits && self.is_free_for(class) {
            let end = now + self.link.clock.span_of(packet.size.into());
            if end <= next() && size <= self.largest_unmarked {
                return self.pass(now, end, class, packet, sinks);
            }
        }
        if class.is_data() {
            if buffer.is_lossless(class) {
                buffer.admit_without_pause(from.into(), class, size);
            } else if !fits || !buffer.admit_lossy(size) {
                return self.link.lose(now, packet, DropCause::QueueFull, sinks);
            }
        }
        self.enqueue(now, class, (packet, from), sinks);
    }
}

//! A switch whose ports have queues of their own, which drop what does not fit.

use super::Scratch;
use super::ingress::{BitSet, Ingress};
use super::lossy_port::LossyPort;
use crate::link::{Arrival, Frame, Sinks};
use crate::meter::LinkView;
use crate::observer::Observer;
use crate::order::{self, ArrivalKey};
use clearway_engine::{BufferPool, Outlook, Round};
use clearway_transport::telemetry::Telemetry;
use clearway_units::Time;

#[derive(Debug)]
pub(crate) struct LossySwitch<T, const QUEUES: usize> {
    ingress: Ingress<T>,
    ports: Vec<LossyPort<T, QUEUES>>,
    /// Ports with packets.
    active: BitSet,
    next: Time,
}

impl<T: Telemetry, const QUEUES: usize> LossySwitch<T, QUEUES> {
    pub(crate) fn new(ingress: Ingress<T>, ports: Vec<LossyPort<T, QUEUES>>) -> Self {
        Self {
            ingress,
            active: BitSet::new(ports.len()),
            ports,
            next: Time::NEVER,
        }
    }

    pub(super) fn collect(
        &mut self,
        port: usize,
        round: &Round,
        buffers: &mut BufferPool<Arrival<T>>,
    ) {
        self.next = self.next.min(self.ingress.collect(port, round, buffers));
    }

    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// Runs all events of the round. Ports do not affect each other, so each one handles its whole round by itself while its
    /// queue is in the cache.
    pub(super) fn run<O: Observer>(
        &mut self,
        round: &Round,
        scratch: &mut Scratch,
        sinks: &mut Sinks<'_, O, T>,
    ) -> Outlook {
        if self.ingress.has_events() {
            return self.run_with_events(round, scratch, sinks);
        }
        self.collect_arrivals(round, scratch);
        let (mut next, mut sent) = (Time::NEVER, Time::NEVER);
        let mut active = std::mem::take(&mut self.active);
        active.retain(|port| {
            self.run_port(port, round, scratch, sinks);
            let port = &mut self.ports[port];
            sent = sent.min(port.flush(round, sinks));
            let at = port.next();
            next = next.min(at.max(round.end()));
            !at.is_never()
        });
        self.active = active;
        self.next = next.min(self.ingress.discard_read(round, sinks.buffers));
        Outlook {
            next: self.next,
            sent,
        }
    }

    /// As [`run`](Self::run), where links have events.
    #[inline(never)]
    fn run_with_events<O: Observer>(
        &mut self,
        round: &Round,
        scratch: &mut Scratch,
        sinks: &mut Sinks<'_, O, T>,
    ) -> Outlook {
        self.collect_arrivals(round, scratch);
        let (mut next, mut sent) = (Time::NEVER, Time::NEVER);
        let mut active = std::mem::take(&mut self.active);
        active.retain(|port| {
            self.run_port_with_events(port, round, scratch, sinks);
            let port = &mut self.ports[port];
            sent = sent.min(port.flush(round, sinks));
            let at = port.next();
            if at.is_never() {
                // Its next event finds nothing to drop.
                return false;
            }
            next = next.min(at.min(port.next_change()).max(round.end()));
            true
        });
        self.active = active;
        self.next = next.min(self.ingress.discard_read(round, sinks.buffers));
        Outlook {
            next: self.next,
            sent,
        }
    }

    /// As [`run_port`](Self::run_port), where links have events: those of an instant come before its arrivals.
    fn run_port_with_events<O: Observer>(
        &mut self,
        port: usize,
        round: &Round,
        scratch: &mut Scratch,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        let (arrival_keys, ingress) = (&mut scratch.lines(0)[port], &self.ingress);
        order::sort(arrival_keys, ingress.tie_seed, round.start(), |port| {
            ingress.link(port)
        });
        let port = &mut self.ports[port];
        for arrival_key in arrival_keys.iter() {
            let arrival = ingress.arrival(arrival_key.port(), arrival_key.index());
            if let Frame::Packet(packet) = &arrival.frame {
                let now = arrival.time;
                sinks.observer.on_arrival(now, ingress.node, packet);
                port.pass_changes(now, sinks);
                match ingress.route_at(now, packet) {
                    Ok(_) => port.enqueue_if_up(now, packet, sinks),
                    Err(_) => port.refuse(now, packet, sinks),
                }
            }
        }
        arrival_keys.clear();
        port.pass_changes(Time::from_ps(round.end().as_ps() - 1), sinks);
    }

    /// Gives the arrivals of the round to the egress ports that `route` says.
    #[inline]
    fn collect_arrivals(&mut self, round: &Round, scratch: &mut Scratch) {
        let is_plain = self.ingress.is_plain();
        if !is_plain {
            self.ingress.steer(round);
        }
        let lines = scratch.lines(self.ports.len());
        let active = &mut self.active;
        self.ingress
            .for_each_arrival(round, |ingress, from, index, arrival| {
                // Nothing that this switch is connected to sends pause frames.
                let Frame::Packet(packet) = &arrival.frame else {
                    return;
                };
                let port = match is_plain {
                    true => ingress.route(packet),
                    false => ingress.egress_at(arrival.time, packet),
                };
                let arrival_keys = &mut lines[port];
                if arrival_keys.is_empty() {
                    active.insert(port);
                }
                arrival_keys.push(ArrivalKey::new(round.start(), arrival.time, from, index));
            });
    }

    /// Handles the arrivals of the round for one egress port.
    #[inline]
    fn run_port<O: Observer>(
        &mut self,
        port: usize,
        round: &Round,
        scratch: &mut Scratch,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        let (arrival_keys, ingress) = (&mut scratch.lines(0)[port], &self.ingress);
        order::sort(arrival_keys, ingress.tie_seed, round.start(), |port| {
            ingress.link(port)
        });
        let port = &mut self.ports[port];
        for arrival_key in arrival_keys.iter() {
            let arrival = ingress.arrival(arrival_key.port(), arrival_key.index());
            if let Frame::Packet(packet) = &arrival.frame {
                sinks
                    .observer
                    .on_arrival(arrival.time, ingress.node, packet);
                port.enqueue(arrival.time, packet, sinks);
            }
        }
        arrival_keys.clear();
    }

    /// Each link at `now`.
    pub(super) fn links(&mut self, now: Time) -> impl Iterator<Item = LinkView<'_>> {
        self.ports.iter_mut().map(move |port| port.view(now))
    }

    /// Packets in queues.
    pub(super) fn queued(&self) -> u64 {
        self.ports.iter().map(LossyPort::queued).sum()
    }

    /// Messages on the wires towards this switch.
    pub(super) fn on_the_wire(&self) -> u64 {
        self.ingress.on_the_wire()
    }
}

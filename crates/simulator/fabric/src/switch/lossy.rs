//! A switch whose ports have separate queues, which drop packets that do not fit.

use super::Scratch;
use super::adaptive_routing::AdaptiveRouting;
use super::bit_set::BitSet;
use super::ingress::Ingress;
use super::lossy_port::LossyPort;
use super::prefetching::prefetch_next;
use crate::link::{Arrival, Frame, Sinks};
use crate::meter::LinkView;
use crate::observer::Observation;
use crate::order::ArrivalKey;
use crate::topology::NextHops;
use clearway_engine::{BufferPool, DomainHorizon, Round};
use clearway_transport::Packet;
use clearway_transport::congestion::telemetry::Telemetry;
use clearway_units::Time;

#[derive(Debug)]
pub(crate) struct LossySwitch<T, const QUEUES: usize> {
    pub(super) ingress: Ingress<T>,
    ports: Vec<LossyPort<T, QUEUES>>,
    /// The rule by which ports are chosen, if it looks at queues.
    local: Option<Box<AdaptiveRouting>>,
    /// Ports with packets.
    active: BitSet,
    next: Time,
}

impl<T: Telemetry, const QUEUES: usize> LossySwitch<T, QUEUES> {
    pub(crate) fn new(
        ingress: Ingress<T>,
        ports: Vec<LossyPort<T, QUEUES>>,
        local: Option<Box<AdaptiveRouting>>,
    ) -> Self {
        Self {
            ingress,
            local,
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
        prefetches: bool,
    ) {
        let first = self.ingress.collect(port, round, buffers, prefetches);
        self.next = self.next.min(first);
    }

    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// Runs all events of the round. Ports do not affect each other, so each one handles its whole round in one go while its queue is in
    /// the cache.
    pub(super) fn run<O: Observation>(
        &mut self,
        round: &Round,
        scratch: &mut Scratch,
        sinks: &mut Sinks<'_, O, T>,
    ) -> DomainHorizon {
        let is_told = sinks.observer.interests().are_frequent();
        if is_told || !self.ingress.is_plain() || self.local.is_some() {
            return self.run_slow_path(round, scratch, sinks);
        }
        sinks.quietly(|mut sinks| self.run_fast_path(round, scratch, &mut sinks))
    }

    /// As [`run`](Self::run), where nothing is unusual.
    #[inline(always)]
    fn run_fast_path<O: Observation>(
        &mut self,
        round: &Round,
        scratch: &mut Scratch,
        sinks: &mut Sinks<'_, O, T>,
    ) -> DomainHorizon {
        self.collect_arrivals(round, scratch, |ingress, packet, _| ingress.route(packet));
        let (mut next, mut sent) = (Time::NEVER, Time::NEVER);
        let mut active = std::mem::take(&mut self.active);
        active.retain_looking_ahead(|port, next_ports| {
            if scratch.prefetches {
                prefetch_next(&self.ports, next_ports, LossyPort::prefetch_queues);
            }
            self.run_port(port, round, scratch, sinks);
            let port = &mut self.ports[port];
            sent = sent.min(port.flush(round, sinks));
            let at = port.next();
            next = next.min(at.max(round.end()));
            !at.is_never()
        });
        self.active = active;
        self.next = next.min(self.ingress.discard_read(round, sinks.buffers));
        DomainHorizon {
            next: self.next,
            sent,
        }
    }

    /// As [`run`](Self::run), where links have events, packets take detours, ports are chosen by their queues, or an observer is told of
    /// every packet.
    #[inline(never)]
    fn run_slow_path<O: Observation>(
        &mut self,
        round: &Round,
        scratch: &mut Scratch,
        sinks: &mut Sinks<'_, O, T>,
    ) -> DomainHorizon {
        let mut local = self.local.take();
        if local.is_none() && !self.ingress.weighs_detours() {
            return self.run_with_events(round, scratch, sinks);
        }
        self.enqueue_in_order(local.as_deref_mut(), round, scratch, sinks);
        self.local = local;
        self.finish_with_events(round, sinks)
    }

    /// Gives the arrivals of the round in the order of time to the egress ports that `local` chooses, or the header. All ports whose queues
    /// decide about a packet are up to date then.
    fn enqueue_in_order<O: Observation>(
        &mut self,
        mut local: Option<&mut AdaptiveRouting>,
        round: &Round,
        scratch: &mut Scratch,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        if !self.ingress.is_plain() {
            self.ingress.steer(round);
        }
        scratch.lines(1);
        let (arrival_keys, sorter) = (&mut scratch.lines[0], &mut scratch.sorter);
        self.ingress
            .for_each_arrival(round, |_, port, place, arrival| {
                arrival_keys.push(ArrivalKey::new(round.start(), arrival.time, port, place));
            });
        let (ingress, ports, active) = (&mut self.ingress, &mut self.ports, &mut self.active);
        let weighs_detours = ingress.weighs_detours();
        sorter.sort(arrival_keys, ingress.tie_seed, round, &ingress.links);
        for arrival_key in arrival_keys.drain(..) {
            let place = (arrival_key.port(), arrival_key.place());
            if weighs_detours {
                let now = arrival_key.time(round.start());
                ingress.weigh_detour(place, local.is_some(), |port| {
                    let port = &mut ports[usize::from(port)];
                    port.bring_up_to_date(now, sinks);
                    port.state().bytes
                });
            }
            let arrival = ingress.arrival(place.0, place.1);
            // Nothing that this switch is connected to sends pause frames.
            let Frame::Packet(packet) = &arrival.frame else {
                continue;
            };
            let now = arrival.time;
            sinks.observer.on_arrival(now, ingress.node, packet);
            let egress = match ingress.next_hops_at(now, packet) {
                Err(port) => Err(port),
                Ok(NextHops::Host(port)) => Ok(usize::from(port)),
                Ok(NextHops::Ports(next)) => match &mut local {
                    None => Ok(ingress.pick_at(now, packet, next)),
                    Some(local) => {
                        for &port in next {
                            ports[usize::from(port)].bring_up_to_date(now, sinks);
                        }
                        let state = |port: u16| ports[usize::from(port)].state();
                        Ok(local.choose(now, packet, next, state).into())
                    }
                },
            };
            let (Ok(index) | Err(index)) = egress;
            let port = &mut ports[index];
            active.insert(index);
            port.pass_changes(now, sinks);
            let Frame::Packet(packet) = &mut ingress.arrival_mut(place.0, place.1).frame else {
                continue;
            };
            match egress {
                Ok(_) => port.enqueue_if_up(now, packet, sinks),
                Err(_) => port.refuse(now, packet, sinks),
            }
        }
    }

    /// As [`run`](Self::run), where links have events or packets take detours.
    fn run_with_events<O: Observation>(
        &mut self,
        round: &Round,
        scratch: &mut Scratch,
        sinks: &mut Sinks<'_, O, T>,
    ) -> DomainHorizon {
        self.ingress.steer(round);
        self.collect_arrivals(round, scratch, |ingress, packet, now| {
            ingress.egress_at(now, packet)
        });
        let mut active = std::mem::take(&mut self.active);
        active.retain(|port| {
            self.run_port_with_events(port, round, scratch, sinks);
            true
        });
        self.active = active;
        self.finish_with_events(round, sinks)
    }

    /// Carries out the rest of the round at all ports with packets.
    fn finish_with_events<O: Observation>(
        &mut self,
        round: &Round,
        sinks: &mut Sinks<'_, O, T>,
    ) -> DomainHorizon {
        let (mut next, mut sent) = (Time::NEVER, Time::NEVER);
        let mut active = std::mem::take(&mut self.active);
        active.retain(|port| {
            let port = &mut self.ports[port];
            port.pass_changes(Time::from_ps(round.end().as_ps() - 1), sinks);
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
        DomainHorizon {
            next: self.next,
            sent,
        }
    }

    /// As [`run_port`](Self::run_port), where links have events: at one instant, events come before arrivals.
    fn run_port_with_events<O: Observation>(
        &mut self,
        port: usize,
        round: &Round,
        scratch: &mut Scratch,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        let (arrival_keys, sorter) = (&mut scratch.lines[port], &mut scratch.sorter);
        let ingress = &mut self.ingress;
        sorter.sort(arrival_keys, ingress.tie_seed, round, &ingress.links);
        let port = &mut self.ports[port];
        for arrival_key in arrival_keys.iter() {
            let place = (arrival_key.port(), arrival_key.place());
            let arrival = ingress.arrival(place.0, place.1);
            let Frame::Packet(packet) = &arrival.frame else {
                continue;
            };
            let now = arrival.time;
            sinks.observer.on_arrival(now, ingress.node, packet);
            port.pass_changes(now, sinks);
            let has_route = ingress.route_at(now, packet).is_ok();
            if let Frame::Packet(packet) = &mut ingress.arrival_mut(place.0, place.1).frame {
                match has_route {
                    true => port.enqueue_if_up(now, packet, sinks),
                    false => port.refuse(now, packet, sinks),
                }
            }
        }
        arrival_keys.clear();
    }

    /// Gives the arrivals of the round to the egress ports that `route` says.
    #[inline]
    fn collect_arrivals(
        &mut self,
        round: &Round,
        scratch: &mut Scratch,
        route: impl Fn(&Ingress<T>, &Packet, Time) -> usize,
    ) {
        let lines = scratch.lines(self.ports.len());
        let active = &mut self.active;
        self.ingress
            .for_each_arrival(round, |ingress, from, place, arrival| {
                // Nothing that this switch is connected to sends pause frames.
                let Frame::Packet(packet) = &arrival.frame else {
                    return;
                };
                let port = route(ingress, packet, arrival.time);
                let arrival_keys = &mut lines[port];
                if arrival_keys.is_empty() {
                    active.insert(port);
                }
                arrival_keys.push(ArrivalKey::new(round.start(), arrival.time, from, place));
            });
    }

    /// Handles the arrivals of the round for one egress port.
    #[inline]
    fn run_port<O: Observation>(
        &mut self,
        port: usize,
        round: &Round,
        scratch: &mut Scratch,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        let (arrival_keys, sorter) = (&mut scratch.lines[port], &mut scratch.sorter);
        let ingress = &mut self.ingress;
        sorter.sort(arrival_keys, ingress.tie_seed, round, &ingress.links);
        let (port, node) = (&mut self.ports[port], ingress.node);
        let mut left = arrival_keys.iter();
        while let Some(arrival_key) = left.next() {
            // The key has the time, so that what follows does not wait for the packet, which may be in no cache.
            let now = arrival_key.time(round.start());
            let arrival = ingress.arrival_mut(arrival_key.port(), arrival_key.place());
            if let Frame::Packet(packet) = &mut arrival.frame {
                sinks.observer.on_arrival(now, node, packet);
                let next = || ArrivalKey::next(left.as_slice(), round);
                port.pass_or_enqueue(now, next, packet, sinks);
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

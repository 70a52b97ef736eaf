//! A switch whose ports share one buffer, with priority flow control (IEEE 802.1Qbb).
//!
//! The buffer that a packet finds depends on all earlier departures, through any port. So events are handled in the order of time, except
//! in rounds [in which nobody's pauses can change](port_by_port): arrivals from the sorted messages of the round, ends of transmissions
//! from a queue with at most one entry for each port. At one instant: ends of transmissions by port, events of links, pause frames taking
//! effect, arrivals, starts of transmissions.
//!
//! # Pause frames
//! The buffer says which classes of which ingress port should be held back. The port tells the other end of its cable with a frame that
//! carries the state of all classes, before all waiting packets, as soon as its wire is free: at most one packet later. States that come
//! and go while the wire is busy are not sent. A frame takes effect when its last bit has arrived and the receiver's reaction time has
//! passed; a packet on the wire is finished. It holds until the next one, without a timer. Frames are never lost to bit errors and count
//! neither as packets nor as hops.
//!
//! Control with priority is never held back. Where it has none it waits in class 1, is accounted for there and is paused with it, at
//! switches and at hosts, so that headrooms need not reckon with it.

mod buffer;
mod changes;
mod egress;
mod link_events;
mod port;
mod port_by_port;
mod transmission_ends;

use super::Scratch;
use super::adaptive_routing::AdaptiveRouting;
use super::bit_set::BitSet;
use super::ingress::Ingress;
use super::parameters::BufferRules;
use crate::link::{Arrival, Frame, Sinks};
use crate::meter::LinkView;
use crate::observer::{DropCause, Observation};
use crate::order::{ArrivalKey, Sorter};
use crate::pause::LinkPauses;
use crate::topology::{ChannelPort, LinkId};
use buffer::{Admission, Buffer, Incoming};
use changes::Changes;
use clearway_engine::{BufferPool, DomainHorizon, Round};
use clearway_transport::congestion::telemetry::{IntPacket, Telemetry};
use clearway_transport::{Class, ClassSet};
use clearway_units::{Span, Time};
use egress::egress_at;
use port::DepartedPacket;
pub(crate) use port::SharedPort;
use std::collections::VecDeque;
use transmission_ends::TransmissionEnds;

#[derive(Debug)]
pub(crate) struct SharedSwitch<T> {
    pub(super) ingress: Ingress<T>,
    /// The rule by which ports are chosen, if it looks at queues.
    local: Option<Box<AdaptiveRouting>>,
    /// By port, if lossless classes have two virtual channels.
    channels: Option<Box<[ChannelPort]>>,
    ports: Vec<SharedPort<T>>,
    buffer: Buffer,
    /// TransmissionEnds of transmissions; empty after a round that was handled port by port.
    ends: TransmissionEnds,
    /// The last round was handled port by port.
    was_port_by_port: bool,
    /// Arrivals of a round.
    incoming: Vec<Incoming>,
    /// Pause frames that have arrived and wait for the reaction time, with their ports.
    effects: VecDeque<(Time, u16, ClassSet)>,
    wakes: Wakes,
    changes: Changes,
    reaction: Span,
    /// Bytes of a pause frame.
    frame: u32,
    /// Bytes of the largest packet.
    largest: u16,
    next: Time,
}

/// Ports with something to do.
#[derive(Debug)]
struct Wakes {
    /// Ports that may start a transmission at this instant.
    starts: Vec<u16>,
    /// Ports with something on the wire at some time of this round.
    active: BitSet,
}

impl Wakes {
    /// A port that was idle may have something to send.
    #[inline]
    fn wake(&mut self, port: u16) {
        self.starts.push(port);
        self.active.insert(port.into());
    }
}

/// Parts of a switch that take in a packet.
struct Admitting<'a, T> {
    ports: &'a mut [SharedPort<T>],
    buffer: &'a mut Buffer,
    wakes: &'a mut Wakes,
}

impl<T: Telemetry> Admitting<'_, T> {
    /// A packet has come in by one port for another.
    #[inline]
    fn admit<O: Observation>(
        &mut self,
        now: Time,
        (from, egress): (u16, usize),
        packet: &mut IntPacket<T>,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        let class = self.ports[egress].class_of(packet);
        self.admit_to(now, (from, class), (egress, class), packet, sinks);
    }

    /// As [`admit`](Self::admit), for a packet that may go on in another class than it came in.
    #[cold]
    #[inline(never)]
    fn admit_to_channel<O: Observation>(
        &mut self,
        now: Time,
        (from, egress): (u16, usize),
        packet: &mut IntPacket<T>,
        channels: &[ChannelPort],
        sinks: &mut Sinks<'_, O, T>,
    ) {
        let class = self.ports[egress].class_of(packet);
        let beyond = match self.buffer.is_lossless(packet.class) {
            true => channels[usize::from(from)].class_towards(channels[egress], class),
            false => class,
        };
        self.admit_to(now, (from, class), (egress, beyond), packet, sinks);
    }

    /// A packet has come in by one port in the class `account`, for the queue of another port and `class`.
    #[inline(always)]
    fn admit_to<O: Observation>(
        &mut self,
        now: Time,
        (from, account): (u16, Class),
        (egress, class): (usize, Class),
        packet: &mut IntPacket<T>,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        let port = &mut self.ports[egress];
        if T::AGENTS && !port.link.admits(now, packet, sinks) {
            return;
        }
        let size = packet.size.into();
        let drop = if !class.is_data() {
            None
        } else if !self.buffer.is_lossless(class) {
            let admitted = port.takes_lossy(class, size) && self.buffer.admit_lossy(size);
            (!admitted).then_some(DropCause::QueueFull)
        } else {
            match self.buffer.admit(from.into(), account, size) {
                Admission::Refused => Some(DropCause::HeadroomFull),
                Admission::Admitted => None,
                // The ingress port now has a pause frame to send, even if it has no packets.
                Admission::Pauses => {
                    self.wakes.wake(from);
                    None
                }
            }
        };
        if let Some(cause) = drop {
            port.link.lose(now, packet, cause, sinks);
            return;
        }
        port.enqueue(now, class, (packet, from), sinks);
        if port.is_idle() {
            self.wakes.wake(egress as u16);
        }
    }
}

impl<T: Telemetry> SharedSwitch<T> {
    pub(crate) fn new(
        ingress: Ingress<T>,
        ports: Vec<SharedPort<T>>,
        (rules, channels): (&BufferRules, Option<Box<[ChannelPort]>>),
        (reaction, frame, largest): (Span, u32, u16),
        local: Option<Box<AdaptiveRouting>>,
    ) -> Self {
        let changes = Changes::from_ports(&ports);
        Self {
            ingress,
            local,
            channels,
            wakes: Wakes {
                starts: Vec::new(),
                active: BitSet::new(ports.len()),
            },
            ends: TransmissionEnds::default(),
            was_port_by_port: false,
            incoming: Vec::new(),
            ports,
            buffer: Buffer::new(rules),
            effects: VecDeque::new(),
            reaction,
            frame,
            largest,
            next: changes.first_storm(),
            changes,
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

    /// Runs all events of the round.
    pub(super) fn run<O: Observation>(
        &mut self,
        round: &Round,
        scratch: &mut Scratch,
        sinks: &mut Sinks<'_, O, T>,
    ) -> DomainHorizon {
        if self.line_up_if_nobody_pauses(round, scratch) {
            return self.run_port_by_port(round, scratch, sinks);
        }
        self.queue_ends();
        // A test at each event, instead of a second copy of everything for runs with events of links: then nothing is in line any more.
        let events = self.ingress.has_events();
        if !self.ingress.is_plain() {
            self.ingress.steer(round);
        }
        let by_header = self.is_by_header();
        scratch.lines(1);
        let (arrival_keys, sorter) = (&mut scratch.lines[0], &mut scratch.sorter);
        self.collect_arrivals(round, arrival_keys, sorter);
        let time_of = |arrival_key: &ArrivalKey| arrival_key.time(round.start());
        let mut waiting = &arrival_keys[..];
        loop {
            let arrival = waiting.first().map_or(Time::NEVER, time_of);
            let mut now = arrival.min(self.next_internal());
            if events {
                now = now.min(self.changes.next());
            }
            if now >= round.end() {
                break;
            }
            self.complete_transmissions(now, sinks);
            if events {
                self.pass_changes(now, sinks);
            }
            self.react(now, sinks);
            while let Some((first, rest)) = waiting.split_first()
                && time_of(first) == now
            {
                waiting = rest;
                self.receive(now, *first, by_header, sinks);
            }
            self.start_transmissions(now);
        }
        arrival_keys.clear();
        let left = self.ingress.discard_read(round, sinks.buffers);
        self.next = left.min(self.next_internal());
        if events {
            self.next = self.next.min(self.next_change_of_note());
        }
        DomainHorizon {
            next: self.next,
            sent: self.flush(round, sinks),
        }
    }

    /// True if the header of a packet alone says how it goes on: in a run without events of links, detours and virtual channels, where
    /// ports are not chosen by their queues.
    #[inline]
    fn is_by_header(&self) -> bool {
        self.ingress.is_plain() && self.local.is_none() && self.channels.is_none()
    }

    /// Sorts the arrivals of the round.
    fn collect_arrivals(
        &mut self,
        round: &Round,
        arrival_keys: &mut Vec<ArrivalKey>,
        sorter: &mut Sorter,
    ) {
        self.ingress
            .for_each_arrival(round, |_, port, place, arrival| {
                arrival_keys.push(ArrivalKey::new(round.start(), arrival.time, port, place));
            });
        let ingress = &self.ingress;
        sorter.sort(arrival_keys, ingress.tie_seed, round, &ingress.links);
    }

    /// The next end of a transmission or effect of a pause frame.
    #[inline]
    fn next_internal(&self) -> Time {
        let end = self.ends.first();
        match self.effects.is_empty() {
            true => end,
            false => end.min(self.effects[0].0),
        }
    }

    #[inline]
    fn complete_transmissions<O: Observation>(&mut self, now: Time, sinks: &mut Sinks<'_, O, T>) {
        while let Some(index) = self.ends.pop_due(now) {
            self.wakes.starts.push(index);
            let port = &mut self.ports[usize::from(index)];
            let left = match self.channels {
                None => port.complete(now, sinks),
                Some(_) => port.complete_on_channel(now, sinks),
            };
            if let Some(left) = left
                && left.class.is_data()
            {
                self.release(left);
            }
        }
    }

    /// A data packet has left.
    #[inline]
    fn release(&mut self, DepartedPacket { class, from, size }: DepartedPacket) {
        if !self.buffer.is_lossless(class) {
            self.buffer.release_lossy(size);
        // The sender may go on: the ingress port tells it by a frame.
        } else if self.buffer.release(from.into(), class, size) {
            self.wakes.wake(from);
        }
    }

    /// Pause frames take effect.
    #[inline]
    fn react<O: Observation>(&mut self, now: Time, sinks: &mut Sinks<'_, O, T>) {
        while !self.effects.is_empty()
            && let (at, port, classes) = self.effects[0]
            && at <= now
        {
            self.effects.pop_front();
            self.obey(now, port, classes, sinks);
        }
    }

    fn obey<O: Observation>(
        &mut self,
        now: Time,
        port: u16,
        classes: ClassSet,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        let transmitter = &mut self.ports[usize::from(port)];
        transmitter.pause.obey(now, classes);
        transmitter.tell_pause(now, sinks);
        self.wakes.wake(port);
    }

    #[inline]
    fn receive<O: Observation>(
        &mut self,
        now: Time,
        arrival_key: ArrivalKey,
        by_header: bool,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        let place = (arrival_key.port(), arrival_key.place());
        if !by_header && self.ingress.weighs_detours() {
            let ports = &self.ports;
            let bytes_at = |port: u16| ports[usize::from(port)].state().bytes;
            let by_queue = self.local.is_some();
            self.ingress.weigh_detour(place, by_queue, bytes_at);
        }
        match &self.ingress.arrival(place.0, place.1).frame {
            Frame::Packet(packet) => {
                sinks.observer.on_arrival(now, self.ingress.node, packet);
                let egress = match by_header {
                    true => self.ingress.route(packet),
                    false => {
                        let switch = (&self.ingress, &self.ports[..]);
                        match egress_at(switch, &mut self.local, now, packet) {
                            Ok(egress) => egress,
                            Err((egress, cause)) => {
                                let link = &mut self.ports[egress].link;
                                return link.lose(now, packet, cause, sinks);
                            }
                        }
                    }
                };
                let from = arrival_key.port() as u16;
                let arrival = self.ingress.arrival_mut(place.0, place.1);
                let Frame::Packet(packet) = &mut arrival.frame else {
                    return;
                };
                let mut switch = Admitting {
                    ports: &mut self.ports,
                    buffer: &mut self.buffer,
                    wakes: &mut self.wakes,
                };
                match &self.channels {
                    Some(channels) if !by_header => {
                        switch.admit_to_channel(now, (from, egress), packet, channels, sinks);
                    }
                    _ => switch.admit(now, (from, egress), packet, sinks),
                }
            }
            &Frame::Pause(classes) => {
                sinks.counters.pause_frames_received += 1;
                let port = arrival_key.port() as u16;
                if self.reaction.is_zero() {
                    self.obey(now, port, classes, sinks);
                } else {
                    self.effects.push_back((now + self.reaction, port, classes));
                }
            }
        }
    }

    /// Begins the transmissions that can begin now.
    #[inline(always)]
    fn start_transmissions(&mut self, now: Time) {
        // In any order: ports do not look at each other.
        while let Some(index) = self.wakes.starts.pop() {
            let port = &mut self.ports[usize::from(index)];
            let tell = self.buffer.paused(usize::from(index));
            if let Some(end) = port.start(now, tell, self.frame) {
                self.ends.push(end, index);
            }
        }
    }

    /// Hands over the packets and frames that have left; returns the earliest arrival handed over.
    fn flush<O: Observation>(&mut self, round: &Round, sinks: &mut Sinks<'_, O, T>) -> Time {
        let (ports, mut sent) = (&mut self.ports, Time::NEVER);
        self.wakes.active.retain(|port| {
            let port = &mut ports[port];
            sent = sent.min(port.link.flush(round, sinks.counters));
            !port.is_idle()
        });
        sent
    }

    /// Each link at `now`.
    pub(super) fn links(&mut self, now: Time) -> impl Iterator<Item = LinkView<'_>> {
        self.ports.iter_mut().map(move |port| port.view(now))
    }

    /// Packets in queues.
    pub(super) fn queued(&self) -> u64 {
        self.ports.iter().map(SharedPort::queued).sum()
    }

    /// Messages on the wires towards this switch.
    pub(super) fn on_the_wire(&self) -> u64 {
        self.ingress.on_the_wire()
    }

    /// The links that flow control holds back now.
    pub(crate) fn paused(&self) -> impl Iterator<Item = LinkId> {
        let held = |port: &&SharedPort<T>| !port.pause.classes().is_empty();
        self.ports.iter().filter(held).map(|port| port.link.id)
    }

    /// Pauses until `end` of the transmitters of this switch, of those that were paused at all.
    pub(crate) fn pauses(&self, end: Time) -> impl Iterator<Item = LinkPauses> {
        let account = move |port: &SharedPort<T>| port.pause.account(port.link.id, end);
        self.ports.iter().filter_map(account)
    }
}

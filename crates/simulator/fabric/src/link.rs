//! One direction of a cable, at its sending end.

mod errors;

use crate::agent::Agent;
use crate::events::{LinkTimeline, PortChange};
use crate::meter::{LinkMeter, LinkView, bytes_left};
use crate::observer::{DropCause, Observation, Quiet};
use crate::topology::LinkId;
use clearway_engine::{BufferPool, Outlet, Round};
use clearway_transport::congestion::telemetry::{Hop, IntPacket, Telemetry};
use clearway_transport::{ClassSet, Header, Packet};
use clearway_units::{Digest, Span, Time, WireClock};
use std::collections::VecDeque;

pub use errors::LinkErrors;

/// Frame on a link: a packet or a pause frame.
#[derive(Debug)]
pub(crate) enum Frame<T> {
    Packet(IntPacket<T>),
    /// A pause frame (IEEE 802.1Qbb): the classes that its sender cannot take at present.
    Pause(ClassSet),
}

/// Frame on a link, and the time at which it stands at the next node. One cache line where there is no telemetry.
#[derive(Debug)]
pub(crate) struct Arrival<T> {
    pub(crate) time: Time,
    pub(crate) frame: Frame<T>,
}

/// Counters of the links and queues of a domain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets that crossed a link, counted once for each link.
    pub hops: u64,
    /// Packets of the data class among the hops.
    pub data_hops: u64,
    /// Packets dropped by queues and buffers, on links that were down, or without a route.
    pub dropped: u64,
    /// Dropped packets of lossless classes, for which not even the headroom had room.
    pub headroom_drops: u64,
    /// Dropped speculative packets that agents of links did not let through.
    pub agent_drops: u64,
    /// Dropped packets in front of a link that was down, or on it.
    pub link_down_drops: u64,
    /// Dropped packets to destinations without a route.
    pub no_route_drops: u64,
    /// Packets that vanished on links, through bit errors or as losses of the link.
    pub corrupted: u64,
    /// Packets marked by a queue, each counted once.
    pub marked: u64,
    /// Data packets that lost their payload to a full queue and went on without it. They are not dropped.
    pub trimmed: u64,
    /// Packets that hosts sent.
    pub injected: u64,
    /// Packets that reached their host.
    pub delivered: u64,
    /// Pause frames that switches sent; they count neither as packets nor as hops.
    pub pause_frames: u64,
    /// Pause frames that have arrived.
    pub pause_frames_received: u64,
    /// Pause frames that were lost on links that went down.
    pub pause_frames_lost: u64,
    /// All drops, trims and errors of links: time, link, flow and sequence number.
    pub losses: Digest,
}

impl LinkCounters {
    /// Adds the counts of another domain.
    pub fn merge(&mut self, other: &Self) {
        self.hops += other.hops;
        self.data_hops += other.data_hops;
        self.dropped += other.dropped;
        self.headroom_drops += other.headroom_drops;
        self.agent_drops += other.agent_drops;
        self.link_down_drops += other.link_down_drops;
        self.no_route_drops += other.no_route_drops;
        self.corrupted += other.corrupted;
        self.marked += other.marked;
        self.trimmed += other.trimmed;
        self.injected += other.injected;
        self.delivered += other.delivered;
        self.pause_frames += other.pause_frames;
        self.pause_frames_received += other.pause_frames_received;
        self.pause_frames_lost += other.pause_frames_lost;
        self.losses.merge(other.losses);
    }

    #[cold]
    fn note_loss(&mut self, now: Time, link: LinkId, packet: &Packet, cause: DropCause) {
        match cause {
            DropCause::QueueFull => self.dropped += 1,
            DropCause::HeadroomFull => {
                self.dropped += 1;
                self.headroom_drops += 1;
            }
            DropCause::Agent => {
                self.dropped += 1;
                self.agent_drops += 1;
            }
            DropCause::LinkDown => {
                self.dropped += 1;
                self.link_down_drops += 1;
            }
            DropCause::NoRoute => {
                self.dropped += 1;
                self.no_route_drops += 1;
            }
            DropCause::BitError => self.corrupted += 1,
        }
        self.add_to_digest(now, link, packet, 0);
    }

    fn note_trim(&mut self, now: Time, link: LinkId, packet: &Packet) {
        self.trimmed += 1;
        self.add_to_digest(now, link, packet, 7 << 32);
    }

    fn add_to_digest(&mut self, now: Time, link: LinkId, packet: &Packet, kind: u64) {
        let number = match packet.header {
            Header::Data { psn, .. } => u64::from(psn) | kind,
            Header::Sack { epsn, .. } => u64::from(epsn) | 1 << 32,
            Header::Probe { base, .. } => u64::from(base) | 2 << 32,
            Header::Ack { epsn, .. } => u64::from(epsn) | 3 << 32,
            Header::Notification => 4 << 32,
            Header::RateControl { sequence, .. } => u64::from(sequence) | 5 << 32,
            Header::Nack { psn, .. } => u64::from(psn) | 6 << 32,
            Header::Pull { pull } => u64::from(pull) | 8 << 32,
        };
        let number = number | u64::from(packet.queue_pair) << 40;
        self.losses
            .add(&[now.as_ps(), link.0.into(), packet.flow.0.into(), number]);
    }
}

/// Counters, buffers and observer to which the links of a domain write while they run.
pub(crate) struct Sinks<'a, O, T> {
    pub(crate) counters: &'a mut LinkCounters,
    pub(crate) buffers: &'a mut BufferPool<Arrival<T>>,
    pub(crate) observer: &'a mut O,
}

impl<O: Observation, T> Sinks<'_, O, T> {
    /// Calls `run` with the same sinks, of which the observer is not told of frequent events.
    #[inline(always)]
    pub(crate) fn quietly<R>(&mut self, run: impl FnOnce(Sinks<'_, Quiet<'_, O>, T>) -> R) -> R {
        run(Sinks {
            counters: self.counters,
            buffers: self.buffers,
            observer: &mut Quiet(self.observer),
        })
    }
}

/// The wire behind a port or NIC.
#[derive(Debug)]
pub(crate) struct Link<T> {
    pub(crate) id: LinkId,
    pub(crate) clock: WireClock,
    pub(crate) delay: Span,
    faults: Option<Box<LinkFaults>>,
    outlet: Outlet<Arrival<T>>,
    /// Messages posted that are pause frames.
    pause_frames: u64,
    /// Counted only in runs that somebody watches.
    pub(crate) meter: LinkMeter,
    /// Bytes that have left, modulo 2^32. Counted only for telemetry.
    sent: u32,
    /// Telemetry is rounded as in HPCC's header.
    coarse: bool,
    /// Only at switches, where the transport asks for it.
    agent: Option<Box<Agent>>,
}

/// Faults of a link: packets that it loses, and its events during the run.
#[derive(Debug, Default)]
pub(crate) struct LinkFaults {
    errors: Option<Box<LinkErrors>>,
    timeline: LinkTimeline,
    /// Changes at the port that are to come, the next one first.
    changes: VecDeque<(Time, PortChange)>,
    /// The port is down.
    is_down: bool,
}

impl LinkFaults {
    /// Faults of a link that has any.
    pub(crate) fn new(
        errors: Option<Box<LinkErrors>>,
        timeline: Option<LinkTimeline>,
    ) -> Option<Box<Self>> {
        if errors.is_none() && timeline.is_none() {
            return None;
        }
        let timeline = timeline.unwrap_or_default();
        Some(Box::new(Self {
            errors,
            changes: timeline.port_changes().into(),
            timeline,
            is_down: false,
        }))
    }

    /// Cause of the loss of a packet of `size` bytes that the link carries from `start`, whose last bit leaves at `end` and which would
    /// stand at the next node at `arrival`; `None` if it arrives.
    fn fate(&mut self, (start, end, arrival): (Time, Time, Time), size: u16) -> Option<DropCause> {
        if self.timeline.is_cut(start, arrival) {
            return Some(DropCause::LinkDown);
        }
        let hit = self
            .errors
            .as_mut()
            .is_some_and(|errors| errors.hit(end, size));
        hit.then_some(DropCause::BitError)
    }
}

impl<T: Telemetry> Link<T> {
    pub(crate) fn new(
        id: LinkId,
        clock: WireClock,
        delay: Span,
        faults: Option<Box<LinkFaults>>,
        outlet: Outlet<Arrival<T>>,
        coarse: bool,
    ) -> Self {
        Self {
            id,
            clock,
            delay,
            faults,
            outlet,
            pause_frames: 0,
            meter: LinkMeter::default(),
            sent: 0,
            coarse,
            agent: None,
        }
    }

    /// Moves a packet whose last bit leaves at `end` onto the wire. The cable has been up until `start`, or that does not matter.
    #[inline(always)]
    pub(crate) fn carry<O: Observation>(
        &mut self,
        start: Time,
        end: Time,
        packet: &mut IntPacket<T>,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        sinks.counters.data_hops += u64::from(packet.class.is_data());
        sinks.observer.on_departure(end, self.id, packet);
        if O::METERS_LINKS {
            self.meter.on_departure(packet.size);
        }
        if T::PRESENT {
            self.sent = self.sent.wrapping_add(packet.size.into());
        }
        if self.faults.is_some() && self.loses(start, end, packet, sinks) {
            return;
        }
        let time = end + self.delay;
        self.outlet.post_with(sinks.buffers, || Arrival {
            time,
            frame: Frame::Packet(packet.take()),
        });
    }

    /// Sends a packet that finds the port idle at `now` and leaves at `end`, before anything else happens there. Observers are told that it
    /// joins and leaves an empty queue, if that is for data.
    #[inline(always)]
    pub(crate) fn pass<O: Observation>(
        &mut self,
        (now, end): (Time, Time),
        is_data: bool,
        packet: &mut IntPacket<T>,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        if T::PRESENT {
            self.record(now, packet, 0);
        }
        if is_data {
            let size = packet.size.into();
            sinks.observer.on_enqueue(now, self.id, size);
            if O::METERS_LINKS {
                self.meter.on_enqueue(size);
            }
            sinks.observer.on_dequeue(end, self.id, 0);
        }
        self.carry(end, end, packet, sinks);
    }

    /// Loads what [`flush`](Self::flush) will touch into the caches.
    #[inline]
    pub(crate) fn prefetch_mailbox(&self) {
        self.outlet.prefetch_mailbox();
    }

    /// Gives the link an agent.
    pub(crate) fn with_agent(self, agent: Option<Agent>) -> Self {
        Self {
            agent: agent.map(Box::new),
            ..self
        }
    }

    /// Shows a packet that arrives for this link to its agent, if it has one. Returns false if that drops the packet.
    #[inline]
    pub(crate) fn admits<O: Observation>(
        &mut self,
        now: Time,
        packet: &mut IntPacket<T>,
        sinks: &mut Sinks<'_, O, T>,
    ) -> bool {
        let Some(agent) = &mut self.agent else {
            return true;
        };
        // Agents have no timers: a changed rate takes effect with the next packet.
        if let Some(faults) = &self.faults
            && let Some(rate) = faults.timeline.rate_at(now)
        {
            agent.set_rate(rate);
        }
        let admitted = agent.on_arrival(now, packet);
        if !admitted {
            self.lose(now, packet, DropCause::Agent, sinks);
        }
        admitted
    }

    /// Writes telemetry onto a data packet that a switch starts to transmit at `start` and behind which `queue` bytes wait.
    #[inline]
    pub(crate) fn record(&self, start: Time, packet: &mut IntPacket<T>, queue: u64) {
        if !packet.class.is_data() {
            return;
        }
        let hop = Hop {
            time: start,
            rate: self.clock.rate(),
            sent: self.sent,
            queue: u32::try_from(queue).unwrap_or(u32::MAX),
        };
        packet
            .telemetry
            .record(if self.coarse { hop.coarse() } else { hop });
    }

    /// The link at `now` with `queue` bytes in front of it. `on_wire` is a packet that is counted when its transmission ends: its size and
    /// that end.
    pub(crate) fn view(
        &mut self,
        now: Time,
        queue: u64,
        on_wire: Option<(u16, Time)>,
    ) -> LinkView<'_> {
        let rate = self.clock.rate();
        let sent = |(size, end): (u16, Time)| f64::from(size) - bytes_left(now, end, rate);
        LinkView {
            link: self.id,
            queue,
            ahead: on_wire.map_or(0.0, |packet| sent(packet).max(0.0)),
            meter: &mut self.meter,
        }
    }

    /// The same of a host, which counts packets when their transmissions begin; the last one ends at `end`.
    pub(crate) fn view_of_host(&mut self, now: Time, end: Time) -> LinkView<'_> {
        LinkView {
            link: self.id,
            queue: 0,
            ahead: -bytes_left(now, end, self.clock.rate()),
            meter: &mut self.meter,
        }
    }

    /// Sends a pause frame whose last bit leaves at `end`.
    pub(crate) fn carry_pause<O: Observation>(
        &mut self,
        end: Time,
        classes: ClassSet,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        sinks.counters.pause_frames += 1;
        if let Some(faults) = &self.faults
            && faults.timeline.is_cut(end, end + self.delay)
        {
            sinks.counters.pause_frames_lost += 1;
            return;
        }
        self.pause_frames += 1;
        let arrival = Arrival {
            time: end + self.delay,
            frame: Frame::Pause(classes),
        };
        self.outlet.post(arrival, sinks.buffers);
    }

    /// A packet for this link has vanished.
    #[cold]
    pub(crate) fn lose<O: Observation>(
        &mut self,
        now: Time,
        packet: &Packet,
        cause: DropCause,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        if O::METERS_LINKS {
            self.meter.on_drop();
        }
        sinks.counters.note_loss(now, self.id, packet, cause);
        let link = self.id;
        sinks
            .observer
            .tell(|observer| observer.on_drop(now, link, packet, cause));
    }

    /// The queue in front of this link is about to trim a data packet.
    pub(crate) fn note_trim<O: Observation>(
        &mut self,
        now: Time,
        packet: &Packet,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        if O::METERS_LINKS {
            self.meter.on_trim();
        }
        sinks.counters.note_trim(now, self.id, packet);
        let link = self.id;
        sinks
            .observer
            .tell(|observer| observer.on_trim(now, link, packet));
    }

    /// The queue in front of this link marks a packet, unless it is marked already.
    pub(crate) fn mark<O: Observation>(
        &mut self,
        now: Time,
        packet: &mut Packet,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        if !packet.ecn {
            packet.ecn = true;
            if O::METERS_LINKS {
                self.meter.on_mark();
            }
            sinks.counters.marked += 1;
            let link = self.id;
            sinks
                .observer
                .tell(|observer| observer.on_mark(now, link, packet));
        }
    }

    #[cold]
    fn loses<O: Observation>(
        &mut self,
        start: Time,
        end: Time,
        packet: &Packet,
        sinks: &mut Sinks<'_, O, T>,
    ) -> bool {
        let times = (start, end, end + self.delay);
        let faults = self.faults.as_mut();
        let Some(cause) = faults.and_then(|faults| faults.fate(times, packet.size)) else {
            return false;
        };
        sinks.counters.hops += 1;
        self.lose(end, packet, cause, sinks);
        true
    }

    /// Takes the rate that an event has given the link by `now`.
    #[cold]
    fn take_rate(&mut self, now: Time) {
        let faults = self.faults.as_ref();
        if let Some(rate) = faults.and_then(|faults| faults.timeline.rate_at(now)) {
            self.clock = WireClock::new(rate);
        }
    }

    /// Transmission time of a packet that a host begins to send at `now`.
    #[inline]
    pub(crate) fn transmission_from(&mut self, now: Time, size: u16) -> Span {
        if self.faults.is_some() {
            self.take_rate(now);
        }
        self.clock.span_of(size.into())
    }

    /// Time at which the cable next goes down after `now`.
    pub(crate) fn next_outage(&self, now: Time) -> Time {
        let faults = self.faults.as_ref();
        faults.map_or(Time::NEVER, |faults| faults.timeline.next_outage(now))
    }

    /// Times of the changes at the port of a switch.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (Time, PortChange)> {
        let faults = self.faults.iter();
        faults.flat_map(|faults| faults.changes.iter().copied())
    }

    /// The next change at the port of a switch.
    pub(crate) fn next_change(&self) -> Option<(Time, PortChange)> {
        self.faults.as_ref()?.changes.front().copied()
    }

    /// Carries out the next change at the port of a switch, as far as it concerns the link.
    pub(crate) fn pass_change(&mut self) {
        let Some(faults) = &mut self.faults else {
            return;
        };
        match faults.changes.pop_front() {
            Some((_, PortChange::Down)) => faults.is_down = true,
            Some((_, PortChange::Up)) => faults.is_down = false,
            Some((_, PortChange::Rate(rate))) => self.clock = WireClock::new(rate),
            Some((_, PortChange::PauseStorm(_))) | None => {}
        }
    }

    /// True if the port of a switch is down.
    pub(crate) fn is_down(&self) -> bool {
        self.faults.as_ref().is_some_and(|faults| faults.is_down)
    }

    /// Hands this round's packets over; returns the earliest arrival.
    #[inline]
    pub(crate) fn flush(&mut self, round: &Round, counters: &mut LinkCounters) -> Time {
        counters.hops += self.outlet.posted().len() as u64 - std::mem::take(&mut self.pause_frames);
        let first = self
            .outlet
            .posted()
            .first()
            .map_or(Time::NEVER, |arrival| arrival.time);
        self.outlet.send_with_time(round, first);
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_structs_keep_their_size() {
        assert_eq!(size_of::<Arrival<()>>(), 64);
    }
}

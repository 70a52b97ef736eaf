//! One direction of a cable, at its sending end.

use crate::agent::Agent;
use crate::meter::{LinkMeter, LinkView, bytes_left};
use crate::observer::{DropCause, Observer};
use crate::topology::{Cable, LinkId};
use clearway_engine::{BufferPool, Outlet, Round};
use clearway_transport::telemetry::{Hop, IntPacket, Telemetry};
use clearway_transport::{ClassSet, Header, Packet};
use clearway_units::{Digest, Purpose, RandomStream, Span, Time, WireClock};

/// Frame on a link: a packet or a pause frame.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Frame<T> {
    Packet(IntPacket<T>),
    /// A pause frame (IEEE 802.1Qbb): the classes that whoever sent it cannot take at present.
    Pause(ClassSet),
}

/// Frame on a link, and the time at which it stands at the next node. One cache line where there is no telemetry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival<T> {
    pub(crate) time: Time,
    pub(crate) frame: Frame<T>,
}

/// Counters of the links and queues of a domain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets that crossed a link, counted once for each link.
    pub hops: u64,
    /// Of these, packets of the data class.
    pub data_hops: u64,
    /// Packets dropped by full queues and buffers.
    pub dropped: u64,
    /// Of these, packets of lossless classes, for which not even the headroom had room.
    pub headroom_drops: u64,
    /// Of these, speculative packets that agents of links did not let through.
    pub agent_drops: u64,
    /// Packets that vanished on links, through bit errors or as losses of the link.
    pub corrupted: u64,
    /// Packets marked by a queue, each counted once.
    pub marked: u64,
    /// Packets that hosts sent.
    pub injected: u64,
    /// Packets that reached their host.
    pub delivered: u64,
    /// Pause frames that switches sent; they count neither as packets nor as hops.
    pub pause_frames: u64,
    /// Pause frames that have arrived.
    pub pause_frames_received: u64,
    /// All drops and errors of links: time, link, flow and sequence number.
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
        self.corrupted += other.corrupted;
        self.marked += other.marked;
        self.injected += other.injected;
        self.delivered += other.delivered;
        self.pause_frames += other.pause_frames;
        self.pause_frames_received += other.pause_frames_received;
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
            DropCause::BitError => self.corrupted += 1,
        }
        let number = match packet.header {
            Header::Data { psn, .. } => u64::from(psn),
            Header::Sack { epsn, .. } => u64::from(epsn) | 1 << 32,
            Header::Probe { base } => u64::from(base) | 2 << 32,
            Header::Ack { epsn, .. } => u64::from(epsn) | 3 << 32,
            Header::Notification => 4 << 32,
            Header::RateControl { sequence, .. } => u64::from(sequence) | 5 << 32,
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

/// The wire behind a port or NIC.
#[derive(Debug)]
pub(crate) struct Link<T> {
    pub(crate) id: LinkId,
    pub(crate) clock: WireClock,
    pub(crate) delay: Span,
    errors: Option<Box<LinkErrors>>,
    outlet: Outlet<Arrival<T>>,
    /// Of the messages posted, those that are no packets.
    pause_frames: u64,
    /// Only where observers ask for it.
    pub(crate) meter: LinkMeter,
    /// Bytes that have left, modulo 2^32. Counted only for telemetry.
    sent: u32,
    /// Telemetry is rounded as in HPCC's header.
    coarse: bool,
    /// Only at switches, where the transport asks for it.
    agent: Option<Box<Agent>>,
}

/// Loss model of a link: bit errors and packet loss.
#[derive(Debug)]
pub struct LinkErrors {
    /// Probability that one bit arrives right.
    bit_survives: f64,
    /// Probability that a packet arrives, were all bits right.
    packet_survives: f64,
    /// Time from which on nothing arrives.
    dead_from: Time,
    random: RandomStream,
}

impl LinkErrors {
    /// Loss model of a link of `cable`; `None` for a perfect one.
    pub fn new(cable: &Cable, seed: u64, link: LinkId) -> Option<Box<Self>> {
        let perfect = cable.bit_error_rate <= 0.0
            && cable.packet_loss <= 0.0
            && cable.dead_from == Time::NEVER;
        (!perfect).then(|| {
            Box::new(Self {
                bit_survives: 1.0 - cable.bit_error_rate,
                packet_survives: 1.0 - cable.packet_loss,
                dead_from: cable.dead_from,
                random: RandomStream::new(seed, Purpose::BitErrors, link.0.into()),
            })
        })
    }

    /// Decides whether a packet of `size` bytes whose last bit leaves at `end` is lost.
    pub fn hit(&mut self, end: Time, size: u16) -> bool {
        if end >= self.dead_from {
            return true;
        }
        let survives = power(self.bit_survives, u32::from(size) * 8) * self.packet_survives;
        self.random.unit() >= survives
    }
}

/// `base^exponent` by multiplications only, so that it is the same on every machine.
fn power(base: f64, mut exponent: u32) -> f64 {
    let (mut result, mut square) = (1.0, base);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= square;
        }
        square *= square;
        exponent >>= 1;
    }
    result
}

impl<T: Telemetry> Link<T> {
    pub(crate) fn new(
        id: LinkId,
        clock: WireClock,
        delay: Span,
        errors: Option<Box<LinkErrors>>,
        outlet: Outlet<Arrival<T>>,
        coarse: bool,
    ) -> Self {
        Self {
            id,
            clock,
            delay,
            errors,
            outlet,
            pause_frames: 0,
            meter: LinkMeter::default(),
            sent: 0,
            coarse,
            agent: None,
        }
    }

    /// Sends a packet whose last bit leaves at `end`.
    #[inline(always)]
    pub(crate) fn carry<O: Observer>(
        &mut self,
        end: Time,
        packet: &IntPacket<T>,
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
        if self.errors.is_some() && self.corrupts(end, packet, sinks) {
            return;
        }
        let arrival = Arrival {
            time: end + self.delay,
            frame: Frame::Packet(*packet),
        };
        self.outlet.post(arrival, sinks.buffers);
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
    pub(crate) fn admits<O: Observer>(
        &mut self,
        now: Time,
        packet: &mut IntPacket<T>,
        sinks: &mut Sinks<'_, O, T>,
    ) -> bool {
        let Some(agent) = &mut self.agent else {
            return true;
        };
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
    pub(crate) fn carry_pause<O: Observer>(
        &mut self,
        end: Time,
        classes: ClassSet,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        sinks.counters.pause_frames += 1;
        self.pause_frames += 1;
        let arrival = Arrival {
            time: end + self.delay,
            frame: Frame::Pause(classes),
        };
        self.outlet.post(arrival, sinks.buffers);
    }

    /// A packet for this link has vanished.
    #[cold]
    pub(crate) fn lose<O: Observer>(
        &mut self,
        now: Time,
        packet: &Packet,
        cause: DropCause,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        self.meter.on_drop();
        sinks.counters.note_loss(now, self.id, packet, cause);
        sinks.observer.on_drop(now, self.id, packet, cause);
    }

    /// The queue in front of this link marks a packet, unless it is marked already.
    pub(crate) fn mark<O: Observer>(
        &mut self,
        now: Time,
        packet: &mut Packet,
        sinks: &mut Sinks<'_, O, T>,
    ) {
        if !packet.ecn {
            packet.ecn = true;
            self.meter.on_mark();
            sinks.counters.marked += 1;
            sinks.observer.on_mark(now, self.id, packet);
        }
    }

    #[cold]
    fn corrupts<O: Observer>(
        &mut self,
        end: Time,
        packet: &Packet,
        sinks: &mut Sinks<'_, O, T>,
    ) -> bool {
        let hit = self
            .errors
            .as_mut()
            .is_some_and(|errors| errors.hit(end, packet.size));
        if hit {
            sinks.counters.hops += 1;
            self.lose(end, packet, DropCause::BitError, sinks);
        }
        hit
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
        self.outlet.send(round);
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

    #[test]
    fn powers_are_powers() {
        assert_eq!(power(2.0, 10), 1024.0);
        assert_eq!(power(0.5, 0), 1.0);
        assert!((power(1.0 - 1e-6, 33_200) - 0.967_345).abs() < 1e-6);
    }
}

//! Two endpoints and the wires between them, in virtual time: for the tests of this crate and of anyone who writes a
//! controller, a selector or a driver.
//!
//! ```
//! use clearway_transport::testing::{Pair, PipeSettings, network};
//! use clearway_transport::{Event, Profile};
//! use clearway_units::{Bytes, Rate, Span};
//!
//! let network = network(Rate::from_gbps(400), Span::from_us(8));
//! let mut pair = Pair::new(Profile::strack(network), PipeSettings::ideal(&network), 1);
//! let flow = pair.send(Bytes::new(1_000_000));
//! pair.run();
//! assert!(pair.finished(flow).is_some());
//! ```

use crate::congestion::telemetry::IntPacket;
use crate::congestion::{NetworkFacts, PathFacts};
use crate::endpoint::{Endpoint, EndpointCounters, Event};
use crate::packet::{Class, Packet};
use crate::profile::{Opening, Profile};
use clearway_units::{
    Bytes, FlowId, HostId, MessageId, Purpose, RandomStream, Rate, Span, Time, WireClock,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A network of two hosts with 4096-byte payloads and 64-byte headers.
pub fn network(line_rate: Rate, propagation_rtt: Span) -> NetworkFacts {
    let (payload, header) = (4096u32, 64u32);
    let bytes = Bytes::new(u64::from(payload + 2 * header));
    let base_rtt = propagation_rtt + line_rate.span_of(bytes);
    NetworkFacts {
        line_rate,
        base_rtt,
        propagation_rtt,
        bdp: line_rate.bytes_in(base_rtt),
        payload,
        header,
        ack: header,
        path: PathFacts {
            rtt: base_rtt,
            switches: 1,
        },
    }
}

/// A queue in the middle of a pipe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bottleneck {
    /// The rate at which it drains.
    pub rate: Rate,
    /// Arrivals that would make it longer are dropped.
    pub limit: Bytes,
    /// Arrivals that find so much are marked with a probability that rises from here …
    pub mark_from: Bytes,
    /// … to here, above which all are marked.
    pub mark_all: Bytes,
}

/// One direction between the endpoints.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PipeSettings {
    /// The rate at which the host puts packets on the wire.
    pub rate: Rate,
    /// Propagation, one way.
    pub delay: Span,
    /// A queue, if there is one.
    pub bottleneck: Option<Bottleneck>,
    /// Probability with which a data packet is lost.
    pub data_loss: f64,
    /// Probability with which an acknowledgement or a probe is lost.
    pub control_loss: f64,
    /// Probability with which a packet arrives twice.
    pub duplication: f64,
    /// Each packet takes up to so much longer, at random, so that packets overtake each other.
    pub jitter: Span,
    /// Probability with which a packet is replayed: a further copy comes later by up to [`replay_within`](Self::replay_within),
    /// and perhaps one more after that.
    pub replay: f64,
    /// The longest time by which a replayed packet comes later. Each order of magnitude from a microsecond on is as likely.
    pub replay_within: Span,
}

impl PipeSettings {
    /// A wire at line rate without queue, loss or disorder.
    pub fn ideal(network: &NetworkFacts) -> Self {
        Self {
            rate: network.line_rate,
            delay: network.propagation_rtt / 2,
            bottleneck: None,
            data_loss: 0.0,
            control_loss: 0.0,
            duplication: 0.0,
            jitter: Span::ZERO,
            replay: 0.0,
            replay_within: Span::ZERO,
        }
    }
}

/// Decides the fate of a packet by its number on the pipe, from zero, and its content.
pub type Filter = Box<dyn FnMut(u64, &Packet) -> bool>;

/// Counters of a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PipeCounters {
    /// Packets put on the wire.
    pub sent: u64,
    /// Packets dropped by chance, filter or queue.
    pub dropped: u64,
    /// Packets that the pipe added.
    pub duplicated: u64,
    /// Packets delivered.
    pub delivered: u64,
}

/// One direction between the endpoints, at work.
pub struct Pipe {
    settings: PipeSettings,
    clock: WireClock,
    free_at: Time,
    queue_free_at: Time,
    random: RandomStream,
    drop_if: Option<Filter>,
    mark_if: Option<Filter>,
    counters: PipeCounters,
}

impl Pipe {
    fn new(settings: PipeSettings, seed: u64, end: u64) -> Self {
        Self {
            settings,
            clock: WireClock::new(settings.rate),
            free_at: Time::ZERO,
            queue_free_at: Time::ZERO,
            random: RandomStream::new(seed, Purpose::Test, end),
            drop_if: None,
            mark_if: None,
            counters: PipeCounters::default(),
        }
    }

    /// Counters since the start.
    pub fn counters(&self) -> PipeCounters {
        self.counters
    }

    /// Drops the packets for which `filter` is true.
    pub fn drop_if(&mut self, filter: impl FnMut(u64, &Packet) -> bool + 'static) {
        self.drop_if = Some(Box::new(filter));
    }

    /// Marks the packets for which `filter` is true.
    pub fn mark_if(&mut self, filter: impl FnMut(u64, &Packet) -> bool + 'static) {
        self.mark_if = Some(Box::new(filter));
    }

    /// Replaces the settings from now on.
    pub fn set(&mut self, settings: PipeSettings) {
        self.settings = settings;
        self.clock = WireClock::new(settings.rate);
    }

    /// Puts a packet on the wire at `now` and returns the arrival time of each of its copies.
    fn carry(&mut self, now: Time, packet: &mut Packet) -> Vec<Time> {
        let number = self.counters.sent;
        self.counters.sent += 1;
        self.free_at = now + self.clock.span_of(u32::from(packet.size));
        if let Some(mark_if) = &mut self.mark_if {
            packet.ecn |= mark_if(number, packet);
        }
        let loss = match packet.class {
            Class::CONTROL => self.settings.control_loss,
            _ => self.settings.data_loss,
        };
        let filtered = self
            .drop_if
            .as_mut()
            .is_some_and(|drop| drop(number, packet));
        if filtered || self.random.chance(loss) {
            self.counters.dropped += 1;
            return Vec::new();
        }
        let Some(out) = self.pass_bottleneck(self.free_at, packet) else {
            self.counters.dropped += 1;
            return Vec::new();
        };
        let copies = 1 + u64::from(self.random.chance(self.settings.duplication));
        self.counters.duplicated += copies - 1;
        self.counters.delivered += copies;
        let mut arrivals: Vec<Time> = (0..copies)
            .map(|_| out + self.settings.delay + self.draw_jitter())
            .collect();
        while self.random.chance(self.settings.replay) {
            self.counters.duplicated += 1;
            self.counters.delivered += 1;
            arrivals.push(out + self.settings.delay + self.draw_replay());
        }
        arrivals
    }

    fn draw_replay(&mut self) -> Span {
        let doublings = (self.settings.replay_within.as_ps() / 1_000_000)
            .max(2)
            .ilog2();
        let base = 1 << self.random.below(doublings);
        Span::from_us(base + u64::from(self.random.below(base as u32)))
    }

    fn draw_jitter(&mut self) -> Span {
        Span::from_ps((self.random.unit() * self.settings.jitter.as_ps() as f64) as u64)
    }

    /// Instant at which the packet leaves the queue that it reaches at `now`; `None` if it is dropped.
    fn pass_bottleneck(&mut self, now: Time, packet: &mut Packet) -> Option<Time> {
        let Some(queue) = self.settings.bottleneck else {
            return Some(now);
        };
        let backlog = queue.rate.bytes_in(self.queue_free_at.since(now));
        let size = Bytes::new(u64::from(packet.size));
        if backlog + size > queue.limit {
            return None;
        }
        let excess = backlog.saturating_sub(queue.mark_from).as_f64();
        let range = queue.mark_all.saturating_sub(queue.mark_from).as_f64();
        packet.ecn |= packet.class.is_data() && self.random.chance(excess / range.max(1.0));
        self.queue_free_at = self.queue_free_at.max(now) + queue.rate.span_of(size);
        Some(self.queue_free_at)
    }
}

/// Future event in a [`Pair`].
#[derive(Debug, Clone, Copy)]
enum Occurrence {
    /// A packet reaches an end.
    Arrival(usize, IntPacket),
    /// The wire of an end may be free.
    WireFree(usize),
}

/// Two endpoints, 0 and 1, and the pipes from each to the other.
pub struct Pair {
    /// The endpoints.
    pub ends: [Endpoint; 2],
    /// Pipes; `pipes[i]` carries the packets of `ends[i]`.
    pub pipes: [Pipe; 2],
    now: Time,
    agenda: BTreeMap<(Time, u64), Occurrence>,
    sequence: u64,
    wire_free_due: [bool; 2],
    events: Vec<(Time, usize, Event)>,
    next_flow: u32,
    path: PathFacts,
}

impl Pair {
    /// Two endpoints with one profile, joined by two pipes with the same settings.
    pub fn new(profile: Profile, pipe: PipeSettings, seed: u64) -> Self {
        let path = profile.network.path;
        let profile = Arc::new(profile);
        let end = |host| Endpoint::new(HostId(host), Arc::clone(&profile), seed);
        Self {
            ends: [end(0), end(1)],
            pipes: [Pipe::new(pipe, seed, 0), Pipe::new(pipe, seed, 1)],
            now: Time::ZERO,
            agenda: BTreeMap::new(),
            sequence: 0,
            wire_free_due: [false; 2],
            events: Vec::new(),
            next_flow: 0,
            path,
        }
    }

    /// The present.
    pub fn now(&self) -> Time {
        self.now
    }

    /// All events so far: time, end and event.
    pub fn events(&self) -> &[(Time, usize, Event)] {
        &self.events
    }

    /// Counters of both endpoints, added up.
    pub fn counters(&self) -> EndpointCounters {
        let mut counters = *self.ends[0].counters();
        counters.merge(self.ends[1].counters());
        counters
    }

    /// Calls end `end` at the present, and lets it send as far as it may.
    pub fn call(&mut self, end: usize, call: impl FnOnce(&mut Endpoint, Time)) {
        call(&mut self.ends[end], self.now);
        self.pump(end);
    }

    /// Calls [`Endpoint::on_packet`] of end `end` at the present.
    pub fn on_packet(&mut self, end: usize, packet: Packet) {
        self.call(end, |endpoint, now| endpoint.on_packet(now, &packet.into()));
    }

    /// Calls [`Endpoint::on_deadline`] of end `end` at the present.
    pub fn on_deadline(&mut self, end: usize) {
        self.call(end, Endpoint::on_deadline);
    }

    /// Opens a new flow from end 0 to end 1.
    pub fn open(&mut self) -> FlowId {
        let flow = FlowId(self.next_flow);
        self.next_flow += 1;
        self.open_in(flow, Class::DATA);
        flow
    }

    /// Opens a flow of a class from end 0 to end 1.
    pub fn open_in(&mut self, flow: FlowId, class: Class) {
        let opening = Opening::usual(class, self.path);
        self.call(0, |endpoint, _| endpoint.open(flow, HostId(1), &opening));
    }

    /// Posts a message on a flow from end 0.
    pub fn post(&mut self, flow: FlowId, message: u32, bytes: Bytes) {
        let message = MessageId(message);
        self.call(0, |endpoint, now| endpoint.post(now, flow, message, bytes));
    }

    /// Closes a flow from end 0.
    pub fn close(&mut self, flow: FlowId) {
        self.call(0, |endpoint, now| endpoint.close(now, flow));
    }

    /// Opens a flow from end 0 to end 1 with one message, and closes it at once.
    pub fn send(&mut self, bytes: Bytes) -> FlowId {
        let flow = self.open();
        // All three at one instant: the wire is offered nothing before the flow is closed.
        self.ends[0].post(self.now, flow, MessageId(0), bytes);
        self.close(flow);
        flow
    }

    /// Instant at which the first message of a flow was acknowledged to its last packet.
    pub fn finished(&self, flow: FlowId) -> Option<Time> {
        self.events
            .iter()
            .find_map(|&(time, _, event)| match event {
                Event::Sent { flow: sent, .. } if sent == flow => Some(time),
                _ => None,
            })
    }

    /// Number of times that a message has been delivered.
    pub fn deliveries(&self, flow: FlowId, message: u32) -> usize {
        let wanted = (flow, MessageId(message));
        self.events
            .iter()
            .filter(|(_, _, event)| match event {
                Event::Received { flow, message, .. } => (*flow, *message) == wanted,
                _ => false,
            })
            .count()
    }

    /// Runs until nothing is left to happen.
    pub fn run(&mut self) {
        while self.step() {}
    }

    /// Runs until nothing is left to happen before `end`, and makes that the present.
    pub fn run_until(&mut self, end: Time) {
        while self.next_time() <= end && self.step() {}
        self.now = self.now.max(end);
    }

    /// Instant of the next event or deadline; [`Time::NEVER`] without either.
    pub fn next_time(&self) -> Time {
        let agenda = self
            .agenda
            .keys()
            .next()
            .map_or(Time::NEVER, |&(time, _)| time);
        self.ends
            .iter()
            .fold(agenda, |time, end| time.min(end.deadline()))
    }

    /// Carries out the next event or deadline; false if nothing is left.
    pub fn step(&mut self) -> bool {
        let time = self.next_time();
        if time.is_never() {
            return false;
        }
        self.now = self.now.max(time);
        for end in 0..2 {
            if self.ends[end].deadline() <= self.now {
                self.on_deadline(end);
            }
        }
        if let Some(entry) = self.agenda.first_entry()
            && entry.key().0 <= self.now
        {
            match entry.remove() {
                Occurrence::Arrival(end, packet) => {
                    self.call(end, |endpoint, now| endpoint.on_packet(now, &packet));
                }
                Occurrence::WireFree(end) => {
                    self.wire_free_due[end] = false;
                    self.pump(end);
                }
            }
        }
        true
    }

    /// Collects the reports of an end and lets it send while its wire is free.
    fn pump(&mut self, end: usize) {
        while self.pipes[end].free_at <= self.now {
            let Some(mut packet) = self.ends[end].poll_transmit(self.now) else {
                break;
            };
            for arrival in self.pipes[end].carry(self.now, &mut packet) {
                self.schedule(arrival, Occurrence::Arrival(1 - end, packet));
            }
        }
        if self.ends[end].ready() && !self.wire_free_due[end] {
            self.wire_free_due[end] = true;
            self.schedule(self.pipes[end].free_at, Occurrence::WireFree(end));
        }
        while let Some(event) = self.ends[end].poll_event() {
            self.events.push((self.now, end, event));
        }
    }

    fn schedule(&mut self, time: Time, occurrence: Occurrence) {
        self.agenda.insert((time, self.sequence), occurrence);
        self.sequence += 1;
    }
}

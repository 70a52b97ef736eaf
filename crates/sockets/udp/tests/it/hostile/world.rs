//! A client, a server and a hostile network between them, in virtual time.

use bytes::Bytes;
use clearway_udp::{
    Acceptor, Connection, DatagramOutcome, Event, Limits, Listener, PreSharedKey, Security,
};
use clearway_udp::{SendError, Settings};
use clearway_units::{Purpose, RandomStream, Rate, Span, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::SocketAddr;

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

/// Behaviour of the network.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weather {
    pub(crate) loss: f64,
    pub(crate) duplication: f64,
    pub(crate) corruption: f64,
    /// Datagrams of long ago that come again, per datagram.
    pub(crate) replay: f64,
    /// Datagrams that somebody else has made, per datagram.
    pub(crate) garbage: f64,
    /// One way, without jitter.
    pub(crate) delay_us: u64,
    pub(crate) jitter_us: u64,
    /// A path on which everything is lost from one millisecond to another: in direction 0, 1 or both (2).
    pub(crate) hole: Option<(u8, u64, u64, usize)>,
    /// A path on which all ECN-capable packets are marked.
    pub(crate) marked: Option<u8>,
}

/// A datagram under way.
#[derive(Debug, Clone)]
pub(crate) struct Flight {
    pub(crate) to: usize,
    /// Socket of the client.
    pub(crate) path: u8,
    pub(crate) marked: bool,
    pub(crate) bytes: Vec<u8>,
}

/// Tag of messages that are refused.
pub(crate) const REFUSED: u64 = u64::MAX;

fn acceptor() -> Box<dyn Acceptor> {
    Box::new(|tag, length| (tag != REFUSED).then(|| vec![0; length]))
}

/// A message: its tag, and its length.
pub(crate) type Post = (u64, usize);

/// Bytes of a message: nothing else has them.
pub(crate) fn content(tag: u64, length: usize) -> Vec<u8> {
    let mut state = tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state = state.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        bytes.extend(state.rotate_left(29).to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Messages of one end, and their fate.
#[derive(Default)]
pub(crate) struct Side {
    pub(crate) to_send: VecDeque<Post>,
    /// Messages that the other end has not received, by tag: their length.
    pub(crate) missing: BTreeMap<u64, usize>,
    pub(crate) sent: u64,
    pub(crate) acknowledged: u64,
    pub(crate) events: Vec<Event>,
    free_at: Time,
    pub(crate) most_memory: u64,
}

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) weather: Weather,
    pub(crate) settings: [Settings; 2],
    pub(crate) listener: Listener,
    pub(crate) ends: [Option<Connection>; 2],
    pub(crate) sides: [Side; 2],
    pub(crate) random: RandomStream,
    flights: BinaryHeap<Reverse<(Time, u64)>>,
    in_air: BTreeMap<u64, Flight>,
    sequence: u64,
    /// Copies of old datagrams.
    pub(crate) tape: Vec<Flight>,
    pub(crate) delivered: u64,
    pub(crate) datagrams: u64,
    pub(crate) bytes: u64,
    /// Rate of both directions.
    pub(crate) rate: Rate,
    /// Longest wait of a datagram for the wire.
    pub(crate) most_wait: Span,
    /// Longer datagrams from each end are lost.
    pub(crate) mtu: [usize; 2],
    /// Number that a NAT adds to the client's ports.
    pub(crate) rebinding: u16,
}

pub(crate) fn server_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 2], 4794))
}

pub(crate) fn client_address(path: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 40_000 + u16::from(path)))
}

pub(crate) fn settings() -> Settings {
    Settings::new(Security::Key(PreSharedKey([42; 32])))
}

impl World {
    pub(crate) fn new(settings: [Settings; 2], weather: Weather, seed: u64) -> Self {
        let mut random = RandomStream::new(seed, Purpose::Test, 0);
        let listener = Listener::new(
            settings[SERVER].clone(),
            Limits::default(),
            &bytes(&mut random),
        );
        let mut world = Self {
            now: Time::from_us(1),
            weather,
            settings,
            listener,
            ends: [None, None],
            sides: Default::default(),
            random,
            flights: BinaryHeap::new(),
            in_air: BTreeMap::new(),
            sequence: 0,
            tape: Vec::new(),
            delivered: 0,
            datagrams: 0,
            bytes: 0,
            rate: Rate::from_gbps(10),
            most_wait: Span::ZERO,
            mtu: [usize::MAX; 2],
            rebinding: 0,
        };
        world.connect();
        world
    }

    /// The client begins a connection; if it had one, it is forgotten.
    pub(crate) fn connect(&mut self) {
        let seed = bytes(&mut self.random);
        let settings = self.settings[CLIENT].clone();
        let client = Connection::connect(settings, &seed, self.now, server_address(), acceptor());
        self.ends[CLIENT] = Some(client);
    }

    /// The server's process is started anew.
    pub(crate) fn restart_server(&mut self) {
        let seed = bytes(&mut self.random);
        self.listener = Listener::new(self.settings[SERVER].clone(), Limits::default(), &seed);
        self.ends[SERVER] = None;
    }

    pub(crate) fn post(&mut self, end: usize, messages: &[Post]) {
        let side = &mut self.sides[end];
        side.to_send.extend(messages);
        side.missing.extend(messages.iter().copied());
    }

    /// Runs until `done`, or a span has passed; false if it has.
    pub(crate) fn run_until(&mut self, within: Span, mut done: impl FnMut(&Self) -> bool) -> bool {
        let end = self.now + within;
        loop {
            self.act();
            if done(self) {
                return true;
            }
            let ends = self.ends.iter().flatten().map(Connection::deadline);
            let flight = self
                .flights
                .peek()
                .map_or(Time::NEVER, |Reverse((time, _))| *time);
            let next = ends.min().unwrap_or(Time::NEVER).min(flight);
            if next > end {
                self.now = end;
                return false;
            }
            self.now = self.now.max(next);
            while let Some(&Reverse((time, number))) = self.flights.peek()
                && time <= self.now
            {
                self.flights.pop();
                let flight = self.in_air.remove(&number).expect("it is in the air");
                self.arrive(flight);
            }
            for connection in self.ends.iter_mut().flatten() {
                connection.on_deadline(self.now);
            }
        }
    }

    /// Runs until everything has arrived and is acknowledged.
    pub(crate) fn run(&mut self, within: Span) -> bool {
        self.run_until(within, Self::is_done)
    }

    pub(crate) fn is_done(&self) -> bool {
        let sides = self.sides.iter();
        let mut connections = self.ends.iter().flatten();
        sides
            .clone()
            .all(|side| side.missing.is_empty() && side.to_send.is_empty())
            && connections.all(Connection::is_idle)
            && self.ends[SERVER].is_some()
    }

    /// Lets both ends send and tell what has happened.
    fn act(&mut self) {
        for end in [CLIENT, SERVER] {
            if self.ends[end].is_none() {
                continue;
            }
            self.take_events(end);
            self.send(end);
            self.transmit(end);
        }
    }

    fn send(&mut self, end: usize) {
        let (side, Some(connection)) = (&mut self.sides[end], &mut self.ends[end]) else {
            return;
        };
        while connection.is_connected()
            && let Some(&(tag, length)) = side.to_send.front()
            && connection.has_room(length)
        {
            match connection.send(self.now, tag, Bytes::from(content(tag, length))) {
                Ok(_) => {
                    side.sent += 1;
                    side.to_send.pop_front();
                }
                Err(SendError::Full) => break,
                Err(error) => panic!("{error}"),
            }
        }
        side.most_memory = side.most_memory.max(connection.memory());
    }

    fn take_events(&mut self, end: usize) {
        let Some(connection) = &mut self.ends[end] else {
            return;
        };
        while let Some(event) = connection.poll_event() {
            match event {
                Event::Received { tag, data } => {
                    let length = self.sides[1 - end].missing.remove(&tag);
                    let length =
                        length.unwrap_or_else(|| panic!("{tag} came twice, or was never sent"));
                    assert!(data == content(tag, length), "message {tag} is damaged");
                    self.delivered += 1;
                }
                Event::Sent { .. } => self.sides[end].acknowledged += 1,
                event => {
                    if end == SERVER && event == Event::Connected {
                        self.listener.on_connected(connection.id());
                    }
                    self.sides[end].events.push(event);
                }
            }
        }
        if connection.is_closed() && end == SERVER {
            self.listener.on_closed(self.now, connection.id());
        }
    }

    fn transmit(&mut self, end: usize) {
        let mut out = Vec::new();
        while let Some(connection) = &mut self.ends[end]
            && let Some(transmit) = connection.poll_transmit(self.now, &mut out)
        {
            assert_eq!(transmit.length, out.len());
            let path = match end {
                CLIENT => {
                    assert_eq!(transmit.to, server_address());
                    transmit.path
                }
                _ => {
                    let port = transmit.to.port() - 40_000;
                    let Some(path) = port.checked_sub(self.rebinding) else {
                        // The NAT has forgotten this port.
                        out.clear();
                        continue;
                    };
                    path as u8
                }
            };
            let flight = Flight {
                to: 1 - end,
                path,
                marked: transmit.ecn_capable && self.weather.marked == Some(path),
                bytes: std::mem::take(&mut out),
            };
            self.put(end, flight);
        }
    }

    /// Puts a datagram on the wire.
    fn put(&mut self, end: usize, flight: Flight) {
        self.datagrams += 1;
        self.bytes += flight.bytes.len() as u64;
        let weather = self.weather;
        let size = clearway_units::Bytes::new(flight.bytes.len() as u64 + 42);
        let departure = self.now.max(self.sides[end].free_at) + self.rate.span_of(size);
        self.most_wait = self.most_wait.max(departure.since(self.now));
        self.sides[end].free_at = departure;
        let too_long = flight.bytes.len() > self.mtu[end];
        // What the path does not carry does not come again either.
        if self.datagrams.is_multiple_of(7) && !too_long {
            if self.tape.len() < 3_000 {
                self.tape.push(flight.clone());
            } else {
                let index = self.random.below(3_000) as usize;
                self.tape[index] = flight.clone();
            }
        }
        if self.random.chance(weather.replay) && !self.tape.is_empty() {
            let old = self.random.below(self.tape.len() as u32) as usize;
            let old = self.tape[old].clone();
            self.fly(departure, old);
        }
        if self.random.chance(weather.garbage) {
            let forged = self.forged(&flight);
            self.fly(departure, forged);
        }
        let ms = self.now.as_ps() / 1_000_000_000;
        let lost = weather.hole.is_some_and(|(path, from, until, direction)| {
            path == flight.path
                && (from..until).contains(&ms)
                && (direction == 2 || direction == end)
        });
        if lost || too_long || self.random.chance(weather.loss) {
            return;
        }
        if self.random.chance(weather.duplication) {
            self.fly(departure, flight.clone());
        }
        let mut flight = flight;
        if self.random.chance(weather.corruption) {
            let bit = self.random.below(flight.bytes.len() as u32 * 8) as usize;
            flight.bytes[bit / 8] ^= 1 << (bit % 8);
        }
        self.fly(departure, flight);
    }

    /// A forgery that looks like `flight`, more or less.
    fn forged(&mut self, flight: &Flight) -> Flight {
        let mut forged = flight.clone();
        match self.random.below(4) {
            0 => forged.bytes.truncate(self.random.below(60) as usize),
            1 => {
                forged.bytes = (0..self.random.below(1300))
                    .map(|_| self.random.next_u32() as u8)
                    .collect();
            }
            2 => {
                // A higher packet number.
                for byte in forged.bytes.iter_mut().skip(9).take(8) {
                    *byte = self.random.next_u32() as u8;
                }
            }
            _ => {
                for byte in forged.bytes.iter_mut().skip(17) {
                    *byte = self.random.next_u32() as u8;
                }
            }
        }
        forged.path = self.random.below(20) as u8;
        forged
    }

    pub(crate) fn fly(&mut self, departure: Time, flight: Flight) {
        let jitter = self.random.below(self.weather.jitter_us as u32 * 1000 + 1);
        let delay = Span::from_us(self.weather.delay_us) + Span::from_ns(jitter.into());
        self.flights
            .push(Reverse((departure + delay, self.sequence)));
        self.in_air.insert(self.sequence, flight);
        self.sequence += 1;
    }

    fn arrive(&mut self, mut flight: Flight) {
        let now = self.now;
        if flight.to == CLIENT {
            if let Some(client) = &mut self.ends[CLIENT] {
                client.handle(now, server_address(), flight.marked, &mut flight.bytes);
            }
            return;
        }
        let mut from = client_address(flight.path);
        from.set_port(from.port() + self.rebinding);
        let receiver = clearway_udp::receiver_of(&flight.bytes);
        if let Some(server) = &mut self.ends[SERVER]
            && receiver == Some(server.id())
        {
            server.handle(now, from, flight.marked, &mut flight.bytes);
            return;
        }
        let mut out = Vec::new();
        let heard = self
            .listener
            .handle(now, from, &flight.bytes, &mut out, acceptor);
        assert!(
            out.len() <= flight.bytes.len(),
            "an answer is longer than the question"
        );
        if let DatagramOutcome::Connection(connection) = heard
            && let Some(old) = self.ends[SERVER].replace(*connection)
        {
            self.listener.on_closed(self.now, old.id());
        }
        if !out.is_empty() {
            let answer = Flight {
                to: CLIENT,
                path: flight.path,
                marked: false,
                bytes: out,
            };
            self.put(SERVER, answer);
        }
    }
}

pub(crate) fn bytes(random: &mut RandomStream) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.fill_with(|| random.next_u32() as u8);
    bytes
}

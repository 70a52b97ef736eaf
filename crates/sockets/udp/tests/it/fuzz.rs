//! Mutations of real datagrams against both ends of a connection in mid-transfer: no panic, no memory without bound, and no effect on a
//! connection whose key the sender does not have.
//!
//! Without security a mutated packet passes for one of the other end, so that it reaches the decoders of contents and what stands behind
//! them. `CLEARWAY_FUZZ_ITERATIONS` sets how many datagrams are tried (20 000 unless given). The mutations are drawn from a fixed seed,
//! so a failure repeats; `CLEARWAY_FUZZ_SEED` is another one.

use bytes::Bytes;
use clearway_testing::{cases, number};
use clearway_udp::{Allocate, Connection, DatagramOutcome, Event, Limits, Listener};
use clearway_udp::{PreSharedKey, Security, Settings, receiver_of};
use clearway_units::{Purpose, RandomStream, Span, Time};
use std::net::SocketAddr;

const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 4794);
const MEMORY: u64 = 1 << 20;
/// Datagrams after which ends that are still well are made anew, so that mutations meet all of their states.
const LIFE: u64 = 400;

/// Both ends, and what has passed between them.
struct Pair {
    now: Time,
    random: RandomStream,
    client: Connection,
    listener: Listener,
    server: Option<Box<Connection>>,
    corpus: Vec<(bool, Vec<u8>)>,
    received: u64,
    /// One of the ends has told of the end.
    ended: bool,
}

fn client_address(path: u8) -> SocketAddr {
    ([192, 0, 2, 9], 40_000 + u16::from(path)).into()
}

impl Pair {
    fn new(security: Security, seed: u64) -> Self {
        let mut random = RandomStream::new(seed, Purpose::Test, 0);
        let settings = Settings {
            paths: 1 + random.below(4) as u8,
            receive_memory: MEMORY,
            send_memory: MEMORY,
            messages_per_flow: 1 + random.below(20),
            idle: Span::from_ms(500),
            ..Settings::new(security)
        };
        let now = Time::from_us(1_000);
        let listener = Listener::new(settings.clone(), Limits::default(), &bytes(&mut random));
        let seed = bytes(&mut random);
        let client = Connection::connect(settings, &seed, now, SERVER.into(), Box::new(Allocate));
        Self {
            now,
            random,
            client,
            listener,
            server: None,
            corpus: Vec::new(),
            received: 0,
            ended: false,
        }
    }

    /// Waits until both ends are connected; false if the client has given up, for what was lost.
    fn connect(&mut self) -> bool {
        for _ in 0..2_000 {
            let server = self.server.as_ref();
            if self.client.is_connected() && server.is_some_and(|server| server.is_connected()) {
                return true;
            }
            self.step();
        }
        false
    }

    /// Moves on by up to a millisecond: everything is delivered, but a tenth of it.
    fn step(&mut self) {
        self.now += Span::from_us(u64::from(self.random.below(1000)));
        self.client.on_deadline(self.now);
        if let Some(server) = &mut self.server {
            server.on_deadline(self.now);
        }
        self.post();
        for _ in 0..20 {
            let mut out = Vec::new();
            if let Some(transmit) = self.client.poll_transmit(self.now, &mut out) {
                self.deliver(true, transmit.path, out);
                continue;
            }
            let Some(server) = &mut self.server else {
                break;
            };
            let Some(transmit) = server.poll_transmit(self.now, &mut out) else {
                break;
            };
            let path = transmit.to.port().saturating_sub(40_000) as u8;
            self.deliver(false, path, out);
        }
        self.take_events();
    }

    /// Messages in both directions, now and then.
    fn post(&mut self) {
        let length = self.random.below(20_000) as usize;
        let data = Bytes::from(vec![7; length]);
        if self.random.chance(0.2) && self.client.is_connected() && self.client.has_room(length) {
            let _ = self.client.send(self.now, length as u64, data.clone());
        }
        if let Some(server) = &mut self.server
            && self.random.chance(0.2)
            && server.is_connected()
            && server.has_room(length)
        {
            let _ = server.send(self.now, length as u64, data);
        }
    }

    fn deliver(&mut self, to_server: bool, path: u8, datagram: Vec<u8>) {
        if self.corpus.len() < 200 {
            self.corpus.push((to_server, datagram.clone()));
        } else {
            let index = self.random.below(200) as usize;
            self.corpus[index] = (to_server, datagram.clone());
        }
        if !self.random.chance(0.1) {
            self.arrive(to_server, path, datagram);
        }
    }

    fn arrive(&mut self, to_server: bool, path: u8, mut datagram: Vec<u8>) {
        let marked = self.random.chance(0.1);
        if !to_server {
            self.client
                .handle(self.now, SERVER.into(), marked, &mut datagram);
            return;
        }
        let from = client_address(path);
        if let Some(server) = &mut self.server
            && receiver_of(&datagram) == Some(server.id())
        {
            return server.handle(self.now, from, marked, &mut datagram);
        }
        let mut answer = Vec::new();
        let acceptor = || -> Box<dyn clearway_udp::Acceptor> { Box::new(Allocate) };
        let heard = self
            .listener
            .handle(self.now, from, &datagram, &mut answer, acceptor);
        assert!(
            answer.len() <= datagram.len(),
            "an answer is longer than the question"
        );
        if let DatagramOutcome::Connection(connection) = heard
            && let Some(old) = self.server.replace(connection)
        {
            self.listener.on_closed(self.now, old.id());
        }
        if !answer.is_empty() {
            self.deliver(false, path, answer);
        }
    }

    fn take_events(&mut self) {
        let ends = [Some(&mut self.client), self.server.as_deref_mut()];
        for connection in ends.into_iter().flatten() {
            assert!(
                connection.memory() <= 2 * MEMORY + 20_512,
                "{} bytes",
                connection.memory()
            );
            while let Some(event) = connection.poll_event() {
                match event {
                    Event::Received { data, .. } => {
                        assert!(data.len() as u64 <= MEMORY);
                        self.received += 1;
                    }
                    Event::Closed { .. } => self.ended = true,
                    _ => {}
                }
            }
        }
    }

    /// A datagram that has passed, and where it goes, with some of its bytes changed.
    fn mutated(&mut self) -> (bool, Vec<u8>) {
        let random = &mut self.random;
        let index = random.below(self.corpus.len() as u32) as usize;
        let (to_server, mut datagram) = self.corpus[index].clone();
        for _ in 0..1 + random.below(4) {
            if datagram.is_empty() {
                break;
            }
            // Headers and contents of frames rather than payload.
            let most = datagram
                .len()
                .min(if random.chance(0.9) { 80 } else { 1500 });
            let at = random.below(most as u32) as usize;
            // A packet number far ahead makes all that follow too old.
            if (9..15).contains(&at) && random.chance(0.99) {
                continue;
            }
            match random.below(7) {
                0 => datagram[at] ^= 1 << random.below(8),
                1 => datagram[at] = random.next_u32() as u8,
                2 => datagram[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5) as usize],
                3 => datagram.truncate(at),
                4 => {
                    let (_, other) = &self.corpus[random.below(self.corpus.len() as u32) as usize];
                    let from = other.get(at..).unwrap_or_default();
                    datagram.truncate(at);
                    datagram.extend_from_slice(from);
                }
                5 => {
                    let end = (at + 8).min(datagram.len());
                    datagram[at..end].fill(if random.chance(0.5) { 0xff } else { 0 });
                }
                // The type of a content, and a number of a packet that has not come.
                _ => {
                    if datagram.len() > 19 && datagram[0] < 0x80 {
                        let number =
                            u64::from_be_bytes(datagram[9..17].try_into().expect("8 bytes"));
                        let number = number.wrapping_add(random.below(500).into());
                        datagram[9..17].copy_from_slice(&number.to_be_bytes());
                        datagram[18] = random.below(12) as u8;
                    }
                }
            }
        }
        datagram.truncate(65_535);
        (to_server, datagram)
    }
}

fn bytes(random: &mut RandomStream) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.fill_with(|| random.next_u32() as u8);
    bytes
}

fn iterations() -> u64 {
    number("CLEARWAY_FUZZ_ITERATIONS", cases(20_000, 100_000).into())
}

/// The first seed.
fn first() -> u64 {
    number("CLEARWAY_FUZZ_SEED", 0)
}

#[test]
fn ends_without_security_do_not_panic_whatever_the_other_end_says() {
    let (mut tried, mut connected, mut received, mut ended) = (0, 0, 0, 0);
    let mut life = first();
    while tried < iterations() {
        life += 1;
        let mut pair = Pair::new(Security::Insecure, life);
        connected += u64::from(pair.connect());
        for _ in 0..LIFE {
            tried += 1;
            let (to_server, datagram) = pair.mutated();
            let path = pair.random.below(5) as u8;
            pair.arrive(to_server, path, datagram);
            pair.step();
            if pair.ended {
                ended += 1;
                break;
            }
        }
        received += pair.received;
    }
    eprintln!(
        "{connected} of {} connected, {received} messages received, {ended} connections ended",
        life - first(),
    );
    // What is mutated is to reach a connection that works.
    assert!(connected * 2 > life - first(), "{connected} connected");
    assert!(received > connected, "{received} received, {ended} ended");
}

#[test]
fn what_strangers_send_has_no_effect_on_a_connection_with_a_key() {
    let key = Security::Key(PreSharedKey([9; 32]));
    let mut connected = 0;
    for life in first()..first() + iterations().div_ceil(10 * LIFE) {
        let mut pair = Pair::new(key.clone(), life);
        if !pair.connect() {
            continue;
        }
        connected += 1;
        for _ in 0..LIFE {
            let (to_server, datagram) = pair.mutated();
            let path = pair.random.below(5) as u8;
            pair.arrive(to_server, path, datagram);
            pair.step();
        }
        assert!(!pair.ended, "life {life}");
        let received = pair.received;
        assert!(received > 10, "life {life}: {received} received");
    }
    assert!(connected * 2 * 10 * LIFE > iterations());
}

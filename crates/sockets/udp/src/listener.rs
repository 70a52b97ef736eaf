//! The server's part of the handshake: admission of new connections.
//!
//! An unknown address gets a cookie and leaves no state. A client that returns the cookie from the same address may send a handshake
//! message. A client with the key gets a connection, which is half open until its first packet. Limits apply to the number of connections
//! in total, per address and half open, and to the memory that connections may fill.
//!
//! The handshake message is bound to the cookie, so a recorded Init is useless from another address or after the cookie expires. The
//! listener remembers the clients of ended connections until then, so a recorded Init does not begin another connection.

use crate::connection::Connection;
use crate::cookie::{Cookies, LIFETIME};
use crate::incoming::Acceptor;
use crate::noise;
use crate::random::Random;
use crate::settings::{NegotiatedSettings, Security, ServerName, Settings};
use crate::wire::{COOKIE, ConnectionId, Handshake, Init, Parameters, RefusalReason, VERSION};
use clearway_units::{Span, Time};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// Most clients that the listener remembers after their connections end.
const MOST_ENDED: usize = 4096;

/// Limits of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time, 256 by default.
    pub connections: usize,
    /// Connections of one IPv4 address or one IPv6 network of 64 bits, 32 by default.
    pub per_address: usize,
    /// Connections without a packet from the client since the handshake, 64 by default.
    pub half_open: usize,
    /// Memory for messages of all connections, 4 GiB by default: each connection counts with its
    /// [`receive_memory`](Settings::receive_memory).
    pub memory: u64,
    /// Time for which the listener keeps and counts a connection that ended before anybody accepted it, with its messages; 10 s by default.
    pub unaccepted: Span,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            per_address: 32,
            half_open: 64,
            memory: 4 << 30,
            unaccepted: Span::from_ms(10_000),
        }
    }
}

/// Outcome of a datagram.
pub enum DatagramOutcome {
    /// No effect: the datagram was malformed, or not for a listener.
    Nothing,
    /// An answer was written.
    Answer,
    /// An answer was written, and a new connection exists. Its application hears of it after the first packet from the client.
    Connection(Box<Connection>),
}

/// A client by its address, number and cookie: a client that restarts with another cookie cannot read answers to the old one.
type Asker = (SocketAddr, ConnectionId, [u8; COOKIE]);

/// A connection as its listener knows it.
struct ListenerConnection {
    client: Asker,
    confirmed: bool,
    /// The answer to the handshake, for a repetition if it is lost.
    response: Vec<u8>,
}

/// Counters of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListenerCounters {
    /// Cookies sent.
    pub cookies: u64,
    /// Connections refused because of limits.
    pub busy: u64,
    /// Handshakes with another key or server name, or without one.
    pub keyless: u64,
    /// Connections begun.
    pub accepted: u64,
}

/// A listener for new connections.
pub struct Listener {
    settings: Arc<Settings>,
    limits: Limits,
    cookies: Cookies,
    random: Random,
    known: FxHashMap<ConnectionId, ListenerConnection>,
    by_client: FxHashMap<Asker, ConnectionId>,
    per_address: FxHashMap<IpAddr, usize>,
    half_open: usize,
    /// Clients whose connections have ended, and the time of the end: their last Init may still be valid.
    ended: VecDeque<(Time, Asker)>,
    counters: ListenerCounters,
}

impl Listener {
    /// Creates a listener. `seed` is 32 bytes from a source of entropy, not used elsewhere.
    pub fn new(settings: Settings, limits: Limits, seed: &[u8; 32]) -> Self {
        let mut random = Random::new(seed);
        Self {
            settings: Arc::new(settings.bounded()),
            limits,
            cookies: Cookies::new(&random.block()),
            random,
            known: FxHashMap::default(),
            by_client: FxHashMap::default(),
            per_address: FxHashMap::default(),
            half_open: 0,
            ended: VecDeque::new(),
            counters: ListenerCounters::default(),
        }
    }

    /// Handles a restart of the clock. Invalidates all earlier cookies, even at equal times of the new clock.
    pub fn on_clock_restart(&mut self) {
        self.cookies = Cookies::new(&self.random.block());
        // The Inits of these clients are bound to invalid cookies.
        self.ended.clear();
    }

    /// Limits of this listener.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Counters since the start.
    pub fn counters(&self) -> ListenerCounters {
        self.counters
    }

    /// Connections that are not over.
    pub fn connections(&self) -> usize {
        self.known.len()
    }

    /// Processes a datagram that is [for no connection](crate::receiver_of) here. Appends an answer, if any, to `out`. The answer goes to
    /// the source of the datagram and is shorter than the datagram.
    pub fn handle(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &[u8],
        out: &mut Vec<u8>,
        acceptor: impl FnOnce() -> Box<dyn Acceptor>,
    ) -> DatagramOutcome {
        let Some(Handshake::Init(init)) = Handshake::read(datagram) else {
            return DatagramOutcome::Nothing;
        };
        match self.consider(now, from, &init) {
            Verdict::Nothing => DatagramOutcome::Nothing,
            Verdict::Refuse(reason) => {
                const OURS: [u8; 4] = VERSION.to_be_bytes();
                let refusal = Handshake::Refusal {
                    client: init.client,
                    reason,
                    versions: &OURS,
                };
                refusal.write(out);
                DatagramOutcome::Answer
            }
            Verdict::Cookie => {
                self.counters.cookies += 1;
                let client = init.client;
                let cookie = self.cookies.make(now, from, client);
                Handshake::Retry { client, cookie }.write(out);
                DatagramOutcome::Answer
            }
            Verdict::Again(id) => {
                out.extend_from_slice(&self.known[&id].response);
                DatagramOutcome::Answer
            }
            Verdict::Accept(begun) => {
                let connection = self.accept(now, from, *begun, acceptor());
                out.extend_from_slice(&self.known[&connection.id()].response);
                DatagramOutcome::Connection(Box::new(connection))
            }
        }
    }

    fn consider(&mut self, now: Time, from: SocketAddr, init: &Init<'_>) -> Verdict {
        if !init.versions().any(|version| version == VERSION) {
            return Verdict::Refuse(RefusalReason::Version);
        }
        if init.security != self.settings.security.code() {
            return Verdict::Refuse(RefusalReason::Security);
        }
        let age = init
            .cookie
            .and_then(|cookie| self.cookies.check(now, from, init.client, &cookie));
        let (Some(round_trip), Some(cookie)) = (age, init.cookie) else {
            return Verdict::Cookie;
        };
        let asker = (from, init.client, cookie);
        if let Some(&id) = self.by_client.get(&asker) {
            return match self.known[&id].confirmed {
                true => Verdict::Nothing,
                false => Verdict::Again(id),
            };
        }
        if self.has_ended(now, &asker) {
            return Verdict::Nothing;
        }
        if !self.has_room(from.ip()) {
            self.counters.busy += 1;
            return Verdict::Refuse(RefusalReason::Busy);
        }
        self.begin(init, cookie, round_trip)
    }

    fn has_room(&self, address: IpAddr) -> bool {
        let limits = &self.limits;
        let memory = (self.known.len() as u64 + 1).saturating_mul(self.settings.receive_memory);
        let of_address = self.per_address.get(&network(address));
        let of_address = of_address.copied().unwrap_or(0);
        self.known.len() < limits.connections
            && of_address < limits.per_address
            && self.half_open < limits.half_open
            && memory <= limits.memory
    }

    /// True if a client has had a connection with a cookie that may still be valid.
    fn has_ended(&mut self, now: Time, client: &Asker) -> bool {
        while let Some(&(at, _)) = self.ended.front()
            && at + LIFETIME < now
        {
            self.ended.pop_front();
        }
        self.ended.iter().any(|(_, known)| known == client)
    }

    /// Reads the handshake message of a client and answers it.
    fn begin(&mut self, init: &Init<'_>, cookie: [u8; COOKIE], round_trip: Span) -> Verdict {
        let mut id = ConnectionId(self.random.u64());
        while self.known.contains_key(&id) {
            id = ConnectionId(self.random.u64());
        }
        let ours = self.settings.parameters(id);
        let mut payload = Vec::new();
        ours.write(&mut payload);
        let (theirs, message, secrets) = match &self.settings.security {
            Security::Insecure => (init.message.to_vec(), payload, None),
            Security::Key(key) => {
                let random = self.random.block();
                let name = self.settings.server_name.as_ref();
                let prologue = init.prologue(name.map(ServerName::as_str));
                let answered = answer(key.0, &prologue, random, init.message, &payload);
                let Ok((theirs, message, secrets)) = answered else {
                    self.counters.keyless += 1;
                    return Verdict::Refuse(RefusalReason::Key);
                };
                (theirs, message, Some(secrets))
            }
        };
        let theirs = Parameters::read(&theirs);
        let Some(agreed) =
            theirs.and_then(|theirs| NegotiatedSettings::negotiate(&theirs, &ours, false))
        else {
            return Verdict::Refuse(RefusalReason::Parameters);
        };
        let mut response = Vec::new();
        Handshake::Response {
            client: init.client,
            version: VERSION,
            message: &message,
        }
        .write(&mut response);
        Verdict::Accept(Box::new(Begun {
            id,
            client: init.client,
            cookie,
            agreed,
            secrets,
            response,
            round_trip,
        }))
    }

    fn accept(
        &mut self,
        now: Time,
        from: SocketAddr,
        begun: Begun,
        acceptor: Box<dyn Acceptor>,
    ) -> Connection {
        let client = (from, begun.client, begun.cookie);
        let known = ListenerConnection {
            client,
            confirmed: false,
            response: begun.response,
        };
        self.known.insert(begun.id, known);
        self.by_client.insert(client, begun.id);
        *self.per_address.entry(network(from.ip())).or_default() += 1;
        self.half_open += 1;
        self.counters.accepted += 1;
        Connection::accept(
            Arc::clone(&self.settings),
            &self.random.block(),
            now,
            [begun.id, begun.client],
            from,
            begun.agreed,
            begun.secrets,
            begun.round_trip,
            acceptor,
        )
    }

    /// Records that a connection has reported [`Connected`](crate::Event::Connected).
    pub fn on_connected(&mut self, id: ConnectionId) {
        if let Some(known) = self.known.get_mut(&id)
            && !known.confirmed
        {
            known.confirmed = true;
            known.response = Vec::new();
            self.half_open -= 1;
        }
    }

    /// Records that a connection [is over](Connection::is_closed).
    pub fn on_closed(&mut self, now: Time, id: ConnectionId) {
        let Some(known) = self.known.remove(&id) else {
            return;
        };
        self.half_open -= usize::from(!known.confirmed);
        self.by_client.remove(&known.client);
        if self.ended.len() >= MOST_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back((now, known.client));
        let address = network(known.client.0.ip());
        if let Some(count) = self.per_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.per_address.remove(&address);
            }
        }
    }
}

/// Network that counts as one address: an IPv6 host owns a whole network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

/// Decision about an Init.
enum Verdict {
    Nothing,
    Refuse(RefusalReason),
    Cookie,
    /// The connection exists already; its answer may be lost.
    Again(ConnectionId),
    Accept(Box<Begun>),
}

/// A finished handshake.
struct Begun {
    id: ConnectionId,
    client: ConnectionId,
    cookie: [u8; COOKIE],
    agreed: NegotiatedSettings,
    secrets: Option<noise::Secrets>,
    response: Vec<u8>,
    round_trip: Span,
}

/// Payload of the client's handshake message, the answer to it, and the secrets.
fn answer(
    key: [u8; 32],
    prologue: &[u8],
    random: [u8; 32],
    message: &[u8],
    payload: &[u8],
) -> Result<(Vec<u8>, Vec<u8>, noise::Secrets), snow::Error> {
    let mut handshake = noise::Handshake::new(false, &key, prologue, random)?;
    let theirs = handshake.read(message)?;
    let answer = handshake.write(payload)?;
    Ok((theirs, answer, handshake.secrets()))
}

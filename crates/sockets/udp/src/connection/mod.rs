//! One connection: a pair of transport endpoints, one at each end, and the layers that protect them from a hostile network.
//!
//! ```text
//!   send(tag, data) ─► Outgoing ─► transport::Endpoint ─► paths ─► encryption ─► poll_transmit
//!   poll_event ◄───── Incoming ◄── transport::Endpoint ◄─────────── decryption ◄─ handle
//! ```
//!
//! **Architecture invariant:** no clock, no socket, and random bytes only from the caller's seed. Spurious calls are harmless. No datagram
//! makes the connection panic, and a datagram that is not authentic changes only counters.
//!
//! Each connection has its own endpoint, in which the peer is always the same host. Both ends number their flows in the same way. Sequence
//! numbers of packets wrap within a flow. Message numbers do not wrap, so the connection opens a new flow before they run out. On the wire,
//! the entropy field of the transport header is the number of the path.

mod deadline;
mod flight;
mod handshake;
mod pacing;
mod path_mtu;
mod receive;
mod transmit;

use crate::client::Client;
use crate::cookie;
use crate::error::ConnectionError;
use crate::events::{Event, Events};
use crate::incoming::{Acceptor, Incoming};
use crate::noise::Secrets;
use crate::outgoing::{Outgoing, SendError, SendId};
use crate::path_runs::PathRuns;
use crate::paths::{PathStatistics, Paths};
use crate::pending::Pending;
use crate::progress::Progress;
use crate::protection::Protection;
use crate::random::Random;
use crate::settings::{NegotiatedSettings, Settings, Transport, marking_round_trip, profile};
use crate::staged::Staged;
use crate::timers::Timers;
use crate::wire::{ConnectionId, Frame};
use bytes::Bytes;
use clearway_transport::congestion::PathFacts;
use clearway_transport::{Class, Endpoint, EndpointCounters, FlowProgress, Opening, Packet};
use clearway_units::{FlowId, HostId, Span, Time};
use flight::FlightBound;
use pacing::Pacing;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The two ends, as the endpoint of a connection names them.
const HERE: HostId = HostId(0);
const THERE: HostId = HostId(1);

/// A datagram to send: the last `length` bytes of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// The socket of a client; a server has one.
    pub path: u8,
    /// Destination.
    pub to: SocketAddr,
    /// Source address; `None` leaves the choice to the host.
    pub from: Option<IpAddr>,
    /// Send as ECN-capable, ECT(0).
    pub ecn_capable: bool,
    /// Length of the datagram.
    pub length: usize,
    /// Send with a system call of its own: the datagram may be too long for the interface, and then the call fails.
    pub alone: bool,
}

/// Counters of discarded datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Discarded {
    /// Not authentic: forged or damaged.
    pub forged: u64,
    /// Duplicates, or too old.
    pub replayed: u64,
    /// Authentic, and malformed or out of place.
    pub malformed: u64,
}

/// The transport of a connection.
struct Core {
    endpoint: Endpoint,
    /// Facts of the path for new flows.
    path: PathFacts,
    /// Bytes of messages in a full packet.
    payload: u64,
    /// Departures of packets, where the controller sets a rate.
    pacing: Option<Pacing>,
    /// Bound of the bytes in flight, where the window may exceed the capacity of the other end's sockets.
    bound: Option<FlightBound>,
    /// The flow on which messages are posted.
    flow: FlowId,
    /// The newest flow of the other end.
    peer_flow: FlowId,
    /// Round trip above which a packet counts as marked, where the network does not mark.
    marking: Option<Span>,
}

/// State of a connection.
enum State {
    /// A client that waits for the server.
    Connecting(Box<Client>),
    /// Keys are there.
    Open,
    /// Accepts no new messages; closes once all are acknowledged.
    ShuttingDown(u64),
    /// Waits until the other end knows of the close: sends at most `left` more close frames, until `until` at the latest.
    Closing { code: u64, left: u8, until: Time },
    /// The other end has closed; this end answers copies of its final frames for a while.
    Draining,
    /// Over.
    Closed,
}

/// A connection, at either end.
pub struct Connection {
    settings: Arc<Settings>,
    state: State,
    is_client: bool,
    /// An authentic packet has arrived since the keys exist.
    confirmed: bool,
    /// Address of this host to send from.
    source: Option<IpAddr>,
    local: ConnectionId,
    remote: ConnectionId,
    agreed: Option<NegotiatedSettings>,
    protection: Protection,
    core: Option<Core>,
    /// Packets of the transport on their way to the paths.
    staged: Staged,
    /// Least round trip measured before the core existed.
    round_trip: Option<Span>,
    paths: Paths,
    runs: PathRuns,
    outgoing: Outgoing,
    incoming: Incoming,
    acceptor: Box<dyn Acceptor>,
    pending: Pending,
    events: Events,
    timers: Timers,
    progress: Progress,
    random: Random,
    discarded: Discarded,
}

impl Connection {
    /// Begins a connection to `server`. `seed` is 32 bytes from a source of entropy, not used elsewhere.
    pub fn connect(
        settings: Settings,
        seed: &[u8; 32],
        now: Time,
        server: SocketAddr,
        acceptor: Box<dyn Acceptor>,
    ) -> Self {
        let settings = Arc::new(settings.bounded());
        let mut random = Random::new(seed);
        let local = ConnectionId(random.u64());
        let client = Client::new(&settings, local, random.block(), now, server);
        let paths = Paths::server(1, server);
        let state = State::Connecting(Box::new(client));
        let protection = Protection::new(None, u64::MAX);
        let mut connection = Self::new(settings, local, paths, protection, random, acceptor, now);
        (connection.state, connection.is_client) = (state, true);
        connection
    }

    /// The server's end of a connection after its handshake.
    #[expect(
        clippy::too_many_arguments,
        reason = "one caller, which has just these"
    )]
    pub(crate) fn accept(
        settings: Arc<Settings>,
        seed: &[u8; 32],
        now: Time,
        ids: [ConnectionId; 2],
        client: SocketAddr,
        agreed: NegotiatedSettings,
        secrets: Option<Secrets>,
        round_trip: Span,
        acceptor: Box<dyn Acceptor>,
    ) -> Self {
        let paths = Paths::server(agreed.paths, client);
        let protection = Protection::new(secrets, settings.key_update_after);
        let random = Random::new(seed);
        let mut connection = Self::new(settings, ids[0], paths, protection, random, acceptor, now);
        connection.remote = ids[1];
        connection.state = State::Open;
        connection.round_trip = Some(round_trip);
        connection.agree(agreed);
        // The client tries for this long with the cookie.
        connection.timers.confirm_by = Some(now + agreed.idle.min(cookie::LIFETIME));
        connection
    }

    fn new(
        settings: Arc<Settings>,
        local: ConnectionId,
        paths: Paths,
        protection: Protection,
        random: Random,
        acceptor: Box<dyn Acceptor>,
        now: Time,
    ) -> Self {
        let timers = Timers::new(now, settings.idle);
        Self {
            state: State::Closed,
            is_client: false,
            confirmed: false,
            source: None,
            local,
            remote: ConnectionId(0),
            agreed: None,
            protection,
            core: None,
            staged: Staged::default(),
            round_trip: None,
            paths,
            runs: PathRuns::default(),
            outgoing: Outgoing::new(settings.send_memory, 0),
            incoming: Incoming::new(settings.receive_memory, 1 << 15),
            acceptor,
            pending: Pending::default(),
            events: Events::default(),
            timers,
            progress: Progress::default(),
            random,
            discarded: Discarded::default(),
            settings,
        }
    }

    fn agree(&mut self, agreed: NegotiatedSettings) {
        self.outgoing = Outgoing::new(self.settings.send_memory, agreed.credit);
        self.timers.idle = agreed.idle;
        self.agreed = Some(agreed);
    }

    /// The number that identifies the connection at this end, and the [receiver](crate::receiver_of) of its datagrams.
    pub fn id(&self) -> ConnectionId {
        self.local
    }

    /// Sets the source address on a host with several addresses: the address that the client knows.
    pub fn send_from(&mut self, address: IpAddr) {
        self.source = Some(address);
    }

    /// True while messages may be in transit.
    fn is_open(&self) -> bool {
        matches!(self.state, State::Open | State::ShuttingDown(_))
    }

    /// True once an authentic packet has arrived from the other end, and the length of datagrams is known.
    pub fn is_connected(&self) -> bool {
        self.confirmed && !self.is_searching() && matches!(self.state, State::Open)
    }

    /// True once an authentic packet has arrived from the other end.
    #[cfg(feature = "net")]
    pub(crate) fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// True when the connection is over and sends and answers nothing more.
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// Paths that the ends agreed on: sockets of the client.
    pub fn paths(&self) -> u8 {
        self.agreed.map_or(1, |agreed| agreed.paths)
    }

    /// State of each path, true if it is up, and its counters.
    pub fn path_statistics(&self) -> impl Iterator<Item = (bool, PathStatistics)> + '_ {
        self.paths.statistics()
    }

    /// Counters of the transport.
    pub fn counters(&self) -> EndpointCounters {
        let core = self.core.as_ref();
        core.map_or_else(EndpointCounters::default, |core| *core.endpoint.counters())
    }

    /// Counters of discarded datagrams.
    pub fn discarded(&self) -> Discarded {
        self.discarded
    }

    /// State of the flow that carries the messages of this end; `None` before the first message.
    pub fn progress(&self) -> Option<FlowProgress> {
        let core = self.core.as_ref()?;
        core.endpoint.progress(core.flow)
    }

    /// Least round trip of the handshake.
    pub fn round_trip(&self) -> Option<Span> {
        self.round_trip
    }

    /// Memory of incoming and outgoing messages and of messages that the application has not taken: bytes, plus [`MESSAGE_COST`] for each.
    ///
    /// [`MESSAGE_COST`]: crate::MESSAGE_COST
    pub fn memory(&self) -> u64 {
        self.incoming.held() + self.outgoing.bytes()
    }

    /// Key phases: sending, receiving.
    pub fn key_phases(&self) -> (u64, u64) {
        self.protection.phases()
    }

    /// Switches to the next key. Has no effect while the other end has not followed the previous update.
    pub fn update_key(&mut self) {
        self.protection.update_key();
    }

    /// Sends a message. `tag` belongs to the application and travels with the message.
    ///
    /// # Errors
    /// If the connection cannot take the message, now or ever.
    pub fn send(&mut self, now: Time, tag: u64, data: Bytes) -> Result<SendId, SendError> {
        match self.state {
            State::Connecting(_) => return Err(SendError::Early),
            State::Open if !self.is_connected() => return Err(SendError::Early),
            State::Open => {}
            _ => return Err(SendError::Closed),
        }
        let id = self.outgoing.push(tag, data)?;
        self.post(now);
        Ok(id)
    }

    /// Length of the longest message that the other end accepts; `None` while it is unknown.
    pub fn longest_message(&self) -> Option<u64> {
        self.agreed.map(|_| self.outgoing.longest())
    }

    /// True if the connection would take a message of `length` bytes now.
    pub fn has_room(&self, length: usize) -> bool {
        self.outgoing.has_room(length as u64)
    }

    /// True if every sent message has arrived.
    pub fn is_idle(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// True if [`poll_event`](Self::poll_event) has an event.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Events that wait.
    #[cfg(feature = "net")]
    pub(crate) fn waiting_events(&self) -> usize {
        self.events.len()
    }

    /// True from the first message or packet of the transport to the end.
    pub fn has_transport(&self) -> bool {
        self.core.is_some()
    }

    /// The next event. If the event is a message, the connection may have new credit to send.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.next_event(true)
    }

    /// The next event that is not a message; messages stay, and count as memory.
    pub fn poll_event_but_received(&mut self) -> Option<Event> {
        self.next_event(false)
    }

    fn next_event(&mut self, takes_messages: bool) -> Option<Event> {
        let event = self.events.pop(takes_messages)?;
        if let Event::Received { data, .. } = &event {
            self.incoming.release(data.len() as u64);
            if let Some(limit) = self.incoming.poll_credit() {
                self.pending.push(Frame::Credit(limit));
            }
        }
        Some(event)
    }

    /// Closes the connection once all messages have arrived at the other end; `code` tells its application why. Accepts no more messages.
    pub fn shut_down(&mut self, now: Time, code: u64) {
        match self.state {
            State::Open => {
                self.state = State::ShuttingDown(code);
                self.close_if_done(now);
            }
            State::Connecting(_) => self.end(ConnectionError::Here),
            _ => {}
        }
    }

    /// Closes the connection immediately, whether or not all messages have arrived; `code` tells the other end's application why.
    pub fn close(&mut self, now: Time, code: u64) {
        match self.state {
            State::Open | State::ShuttingDown(_) => self.begin_close(now, code),
            State::Connecting(_) => self.end(ConnectionError::Here),
            _ => {}
        }
    }

    fn close_if_done(&mut self, now: Time) {
        if let State::ShuttingDown(code) = self.state
            && self.outgoing.is_empty()
        {
            self.begin_close(now, code);
        }
    }

    fn begin_close(&mut self, now: Time, code: u64) {
        self.state = State::Closing {
            code,
            left: 5,
            until: now + self.timers.idle,
        };
        self.timers.close_at = Some(now);
    }

    /// Ends the connection without a close frame.
    fn end(&mut self, reason: ConnectionError) {
        if !matches!(self.state, State::Closed) {
            self.state = State::Closed;
            self.pending.clear();
            self.core = None;
            self.events.closed(reason);
        }
    }

    /// The transport, created at its first use, so that the round trip is the least of several samples; `None` while the length of
    /// datagrams is unknown.
    fn core(&mut self) -> Option<&mut Core> {
        if self.core.is_none() {
            let agreed = self.agreed.filter(|_| !self.is_searching())?;
            let round_trip = self.round_trip.unwrap_or(Span::ZERO);
            let profile = Arc::new(profile(&self.settings, &agreed, round_trip));
            let path = profile.network.path;
            let marking = marking_round_trip(&self.settings, &profile);
            let payload = u64::from(profile.network.payload.max(1));
            let held = agreed.socket_datagrams;
            let bound = held.and_then(|datagrams| FlightBound::new(&profile.network, datagrams));
            let endpoint = Endpoint::new(HERE, profile, self.random.u64());
            let mut core = Core {
                endpoint,
                path,
                payload,
                pacing: (agreed.transport == Transport::GoBackN).then(Pacing::new),
                bound,
                flow: FlowId(0),
                peer_flow: FlowId(0),
                marking,
            };
            core.open(&mut self.outgoing);
            self.core = Some(core);
        }
        self.core.as_mut()
    }

    /// Hands the messages for which there is credit to the transport.
    fn post(&mut self, now: Time) {
        let most = self.settings.messages_per_flow;
        if self.core().is_none() {
            return;
        }
        let Some(core) = &mut self.core else { return };
        while let Some((flow, message, length)) = self.outgoing.next_post() {
            let bytes = clearway_units::Bytes::new(length);
            core.endpoint.post(now, flow, message, bytes);
            if self.outgoing.posted() >= most {
                core.endpoint.close(now, flow);
                core.flow = FlowId(flow.0 + 1);
                core.open(&mut self.outgoing);
            }
        }
        if self.outgoing.blocked().is_some() && self.timers.blocked_at.is_none() {
            self.timers.blocked_at = Some(now);
        }
    }

    fn note_round_trip(&mut self, sample: Span) {
        let least = self.round_trip.map_or(sample, |known| known.min(sample));
        self.round_trip = Some(least);
    }
}

impl Core {
    /// Opens the flow for the next messages.
    fn open(&mut self, outgoing: &mut Outgoing) {
        let opening = Opening::usual(Class::DATA, self.path);
        self.endpoint.open(self.flow, THERE, &opening);
        let salt = self.endpoint.path_salt(self.flow);
        outgoing.open(self.flow, salt.unwrap_or(0));
    }

    /// The next packet of the transport.
    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if let Some(bound) = &self.bound {
            bound.apply(&mut self.endpoint);
        }
        match &mut self.pacing {
            None => self.endpoint.poll_transmit(now).map(|packet| packet.packet),
            Some(pacing) => pacing.poll(&mut self.endpoint, self.flow, now),
        }
    }

    /// The window of the flow for new messages, in full packets.
    fn window_packets(&self) -> u64 {
        let progress = self.endpoint.progress(self.flow);
        progress.map_or(0, |progress| progress.window.as_u64() / self.payload)
    }
}

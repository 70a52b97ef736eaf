//! The task that moves datagrams between sockets and connections.

use super::clock::Clock;
use super::sender::Sender;
use super::shared::{Accepting, Acceptors, Channel, Ending, Message, Shared};
use super::sockets::{Arrival, Buffers, Socket};
use crate::connection::{Connection, Transmit};
use crate::events::Event;
use crate::listener::{DatagramOutcome, Listener};
use crate::wire::{ConnectionId, EXPIRED, receiver_of};
use clearway_units::{Span, Time};
use rustc_hash::FxHashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::time::{Instant, Sleep};

/// Packets that a connection sends before the driver reads sockets again: two of the longest runs.
const ROUND: usize = 90;
/// Rounds before the driver yields to other tasks.
const ROUNDS: usize = 16;
/// Age at which the driver renews a snapshot of an active connection.
const SNAPSHOT_AGE: Span = Span::from_ms(10);

/// Time after which the driver checks timers while a socket cannot be written.
const BLOCKED_LOOK: Span = Span::from_ms(10);

/// Age of a clock at which the driver ends connections: 64 bits hold 213 days of picoseconds.
const LONGEST_RUN: Time = Time::from_ps(200 * 86_400 * 1_000_000_000_000);

/// A connection and its application.
struct Entry {
    connection: Connection,
    shared: Arc<Shared>,
    /// Stage of the handover to the application.
    stage: Stage,
    /// Time until which the driver keeps a connection that ended before anybody accepted it.
    lapses: Option<Time>,
    /// The application can wake the driver.
    registered: bool,
    /// Length of the application's next message, which waits for room.
    waiting: Option<usize>,
    /// Number of events that the application was too slow to take; zero once the application acts.
    held: usize,
    snapshot_at: Time,
}

/// Stage of the handover of a connection to its application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The server's application gets the connection after the first packet from the client.
    Fresh,
    /// Waits until the application accepts it.
    Offered,
    /// An application holds the connection.
    Taken,
}

/// Events that the driver passed to an application: whether any, and whether the start of the connection.
#[derive(Default)]
struct ReportedEvents {
    any: bool,
    connected: bool,
}

impl Entry {
    /// Tells the application what has happened.
    fn tell(&mut self, now: Time) -> ReportedEvents {
        let mut told = ReportedEvents::default();
        // Events that wait because of a slow application are not news.
        if self.connection.waiting_events() <= self.held && self.snapshot_at > now {
            return told;
        }
        let mut state = self.shared.lock();
        let (mut received, mut progress) = (false, false);
        loop {
            let is_full = state.is_full();
            let event = match is_full {
                true => self.connection.poll_event_but_received(),
                false => self.connection.poll_event(),
            };
            let Some(event) = event else { break };
            told.any = true;
            match event {
                Event::Connected => {
                    state.connected = true;
                    state.longest = self.connection.longest_message();
                    (told.connected, progress) = (true, true);
                }
                Event::Received { tag, data } => {
                    state.push_received(Message { tag, data });
                    received = true;
                }
                Event::Sent { .. } | Event::Refused { .. } => {
                    state.arrived += 1;
                    progress = true;
                }
                Event::PathUp { .. } | Event::PathDown { .. } => {}
                Event::Closed { reason } => {
                    state.closed = Some(reason);
                    (received, progress) = (true, true);
                }
            }
        }
        self.held = self.connection.waiting_events();
        let waits = self.held > 0;
        // Tasks that wait for messages see the end after the last message.
        received |= state.waits && !waits;
        state.waits = waits;
        if progress && state.closed.is_some() || self.snapshot_at <= now {
            self.snapshot_at = now + SNAPSHOT_AGE;
            if state.closed.is_none() || self.connection.has_transport() {
                state.snapshot.take(&self.connection);
            }
        }
        drop(state);
        if received {
            self.shared.tell_received();
        }
        if progress {
            self.shared.tell_progress();
        }
        told
    }
}

/// Listening side of a server.
struct Listening {
    listener: Listener,
    acceptors: Acceptors,
    accepting: Arc<Accepting>,
}

impl Listening {
    /// True while somebody may still accept a connection that is over.
    fn keeps(&self, now: Time, entry: &mut Entry) -> bool {
        if entry.stage != Stage::Offered {
            return false;
        }
        let patience = self.listener.limits().unaccepted;
        let lapses = *entry.lapses.get_or_insert(now + patience);
        if lapses <= now {
            // Unless somebody accepts the connection just now, this drops it with its messages.
            drop(self.accepting.withdraw(&entry.shared));
        }
        let waits = self.accepting.offers(&entry.shared);
        if !waits {
            (entry.stage, entry.lapses) = (Stage::Taken, None);
        }
        waits
    }
}

/// Sockets, and the connections behind them.
pub(super) struct Driver {
    clock: Clock,
    sockets: Vec<Socket>,
    buffers: Buffers,
    sender: Sender,
    entries: Vec<Entry>,
    by_id: FxHashMap<ConnectionId, usize>,
    listening: Option<Listening>,
    datagram: Vec<u8>,
    waker: Option<Waker>,
    /// The connection that sends first.
    turn: usize,
}

impl Driver {
    pub(super) fn client(
        sockets: Vec<Socket>,
        clock: Clock,
        connection: Connection,
        shared: Arc<Shared>,
    ) -> Self {
        let mut driver = Self::new(sockets, clock, None);
        driver.add(connection, shared, Stage::Taken);
        driver
    }

    pub(super) fn server(
        socket: Socket,
        clock: Clock,
        listener: Listener,
        acceptors: Acceptors,
        accepting: Arc<Accepting>,
    ) -> Self {
        let listening = Listening {
            listener,
            acceptors,
            accepting,
        };
        Self::new(vec![socket], clock, Some(listening))
    }

    fn new(sockets: Vec<Socket>, clock: Clock, listening: Option<Listening>) -> Self {
        Self {
            clock,
            sockets,
            buffers: Buffers::default(),
            sender: Sender::default(),
            entries: Vec::new(),
            by_id: FxHashMap::default(),
            listening,
            datagram: Vec::new(),
            waker: None,
            turn: 0,
        }
    }

    fn add(&mut self, connection: Connection, shared: Arc<Shared>, stage: Stage) {
        self.by_id.insert(connection.id(), self.entries.len());
        // The application may act before this driver waits.
        let registered = self.waker.as_ref().is_some_and(|waker| {
            shared.register(waker);
            true
        });
        self.entries.push(Entry {
            connection,
            shared,
            stage,
            lapses: None,
            registered,
            waiting: None,
            held: 0,
            snapshot_at: Time::ZERO,
        });
    }

    /// Runs until the client's connection is over, or the server is dropped and all its connections are over.
    pub(super) async fn run(mut self) {
        let mut sleep = Box::pin(tokio::time::sleep_until(Instant::now()));
        poll_fn(|cx| self.poll(cx, sleep.as_mut())).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>, sleep: Pin<&mut Sleep>) -> Poll<()> {
        self.register(cx.waker());
        for _ in 0..ROUNDS {
            let now = self.now();
            let received = self.receive(now);
            self.take_commands(now);
            let sent = self.transmit(now);
            let told = self.tell(now);
            self.remove_closed_connections(now);
            if self.is_over() {
                return Poll::Ready(());
            }
            // Events that applications took may leave credit to send.
            if !received && !sent && !told {
                return self.wait(cx, sleep);
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Lets applications wake this driver. Takes no lock for applications that can already.
    fn register(&mut self, waker: &Waker) {
        let known = self.waker.as_ref();
        if !known.is_some_and(|known| known.will_wake(waker)) {
            self.waker = Some(waker.clone());
            self.entries
                .iter_mut()
                .for_each(|entry| entry.registered = false);
            if let Some(listening) = &self.listening {
                listening.accepting.register(waker);
            }
        }
        for entry in &mut self.entries {
            if !std::mem::replace(&mut entry.registered, true) {
                entry.shared.register(waker);
            }
        }
    }

    /// Present time. Shortly before the clock overflows, all connections end and none begins; then the clock restarts.
    fn now(&mut self) -> Time {
        let now = self.clock.now();
        if now < LONGEST_RUN {
            return now;
        }
        for entry in &mut self.entries {
            entry.connection.close(now, EXPIRED);
        }
        let is_over = |entry: &Entry| entry.connection.is_closed();
        if !self.entries.iter().all(is_over) {
            return now;
        }
        self.clock = Clock::start();
        for entry in &mut self.entries {
            // Messages that applications have not taken stay.
            (entry.snapshot_at, entry.lapses) = (Time::ZERO, None);
        }
        if let Some(listening) = &mut self.listening {
            listening.listener.on_clock_restart();
        }
        self.clock.now()
    }

    fn is_over(&self) -> bool {
        let listens = self
            .listening
            .as_ref()
            .is_some_and(|l| !l.accepting.is_stopped());
        self.entries.is_empty() && !listens
    }

    /// Registers for a wake-up on an incoming datagram, an expired timer or a writable socket.
    fn wait(&mut self, cx: &mut Context<'_>, mut sleep: Pin<&mut Sleep>) -> Poll<()> {
        // For connections that began in this call.
        self.register(cx.waker());
        let mut ready = self
            .sockets
            .iter()
            .any(|socket| socket.poll_readable(cx).is_ready());
        if let Some(index) = self.sender.blocked()
            && self.sockets[index].poll_writable(cx).is_ready()
        {
            self.sender.unblock();
            ready = true;
        }
        let deadline = |entry: &Entry| {
            let lapses = entry.lapses.unwrap_or(Time::NEVER);
            entry.connection.deadline().min(lapses)
        };
        let deadlines = self.entries.iter().map(deadline);
        let mut deadline = deadlines.min().unwrap_or(Time::NEVER);
        if self.sender.blocked().is_some() {
            // A due packet that waits for the socket would be due again immediately.
            deadline = deadline.max(self.clock.now() + BLOCKED_LOOK);
        }
        sleep.as_mut().reset(self.clock.instant(deadline).into());
        ready |= sleep.poll(cx).is_ready();
        if ready {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Reads incoming datagrams; false if none arrived.
    fn receive(&mut self, now: Time) -> bool {
        let mut any = false;
        // Connections need the rest of the driver while the buffers and sockets are in use.
        let mut buffers = std::mem::replace(&mut self.buffers, Buffers::none());
        let sockets = std::mem::take(&mut self.sockets);
        for socket in &sockets {
            any |= socket.receive(&mut buffers, |arrival, datagram| {
                self.on_datagram(now, &sockets, arrival, datagram);
            });
        }
        self.sockets = sockets;
        self.buffers = buffers;
        any
    }

    #[inline]
    fn on_datagram(
        &mut self,
        now: Time,
        sockets: &[Socket],
        arrival: Arrival,
        datagram: &mut [u8],
    ) {
        if let Some(id) = receiver_of(datagram)
            && let Some(&index) = self.by_id.get(&id)
        {
            let connection = &mut self.entries[index].connection;
            connection.handle(now, arrival.from, arrival.marked, datagram);
            return;
        }
        self.on_stranger(now, sockets, arrival, datagram);
    }

    #[cold]
    fn on_stranger(&mut self, now: Time, sockets: &[Socket], arrival: Arrival, datagram: &[u8]) {
        let Some(listening) = &mut self.listening else {
            return;
        };
        if listening.accepting.is_stopped() || now >= LONGEST_RUN {
            return;
        }
        let from = arrival.from;
        self.datagram.clear();
        let acceptors = &listening.acceptors;
        let heard = listening
            .listener
            .handle(now, from, datagram, &mut self.datagram, acceptors);
        if !self.datagram.is_empty() {
            let answer = Transmit {
                path: 0,
                to: from,
                from: arrival.to,
                ecn_capable: false,
                length: self.datagram.len(),
                alone: false,
            };
            sockets[0].send(&answer, &self.datagram);
        }
        if let DatagramOutcome::Connection(mut connection) = heard {
            if let Some(address) = arrival.to {
                connection.send_from(address);
            }
            self.add(*connection, Arc::new(Shared::new(from)), Stage::Fresh);
        }
    }

    /// Executes requests of applications, and expired timers.
    fn take_commands(&mut self, now: Time) {
        for entry in &mut self.entries {
            let (connection, shared) = (&mut entry.connection, &entry.shared);
            if connection.deadline() <= now {
                connection.on_deadline(now);
            }
            let may_go_on = entry
                .waiting
                .is_some_and(|length| connection.has_room(length));
            if shared.has_changed() {
                entry.held = 0;
            } else if !may_go_on {
                continue;
            }
            let mut state = shared.lock();
            let mut taken = false;
            if let Some(Ending::Close(_)) = state.ending {
                state.clear_outgoing();
            }
            while let Some(length) = state.next_outgoing()
                && connection.has_room(length)
                && connection.is_connected()
                && let Some((tag, data)) = state.pop_outgoing()
            {
                taken = true;
                // The connection is open, has room, and the length was checked: it fails only if it is over.
                let sent = connection.send(now, tag, data);
                debug_assert!(sent.is_ok(), "{sent:?}");
            }
            let ending = state
                .ending
                .filter(|_| state.next_outgoing().is_none() || !connection.is_connected());
            entry.waiting = state.next_outgoing();
            if ending.is_some() && connection.has_transport() {
                state.snapshot.take(connection);
            }
            drop(state);
            match ending {
                Some(Ending::ShutDown(code)) => connection.shut_down(now, code),
                Some(Ending::Close(code)) => connection.close(now, code),
                None => {}
            }
            if taken {
                shared.tell_progress();
            }
        }
    }

    /// Sends the datagrams of all connections; false if none had any.
    fn transmit(&mut self, now: Time) -> bool {
        if self.sender.blocked().is_some() {
            self.sender.unblock();
            if !self.sender.flush(&self.sockets) {
                return false;
            }
        }
        let mut any = false;
        let count = self.entries.len();
        for index in (self.turn..self.turn + count).map(|index| index % count) {
            let connection = &mut self.entries[index].connection;
            for _ in 0..ROUND {
                let write = |out: &mut Vec<u8>| connection.poll_transmit(now, out);
                if !self.sender.add(&self.sockets, write) {
                    break;
                }
                any = true;
                if self.sender.blocked().is_some() {
                    break;
                }
            }
            if !self.sender.flush(&self.sockets) {
                // When the socket can be written again, the next connection starts.
                self.turn = (index + 1) % count;
                break;
            }
        }
        any
    }

    /// Passes events to applications; false if there were none. Messages wait while the application does not take any.
    fn tell(&mut self, now: Time) -> bool {
        let mut any = false;
        for entry in &mut self.entries {
            let told = entry.tell(now);
            any |= told.any;
            if entry.stage == Stage::Fresh
                && entry.connection.is_confirmed()
                && let Some(listening) = &mut self.listening
            {
                listening.listener.on_connected(entry.connection.id());
            }
            if told.connected && entry.stage == Stage::Fresh {
                entry.stage = Stage::Offered;
                if let Some(listening) = &mut self.listening {
                    let channel = Channel::new(Arc::clone(&entry.shared));
                    listening.accepting.push(channel);
                }
            }
        }
        any
    }

    /// Removes connections that are over.
    fn remove_closed_connections(&mut self, now: Time) {
        if !self
            .entries
            .iter()
            .any(|entry| entry.connection.is_closed())
        {
            return;
        }
        let (count, listening) = (self.entries.len(), &mut self.listening);
        self.entries.retain_mut(|entry| {
            let over = entry.connection.is_closed()
                && !listening.as_ref().is_some_and(|l| l.keeps(now, entry))
                && !entry.connection.has_events();
            if over && let Some(listening) = listening {
                listening.listener.on_closed(now, entry.connection.id());
            }
            !over
        });
        if self.entries.len() == count {
            return;
        }
        let ids = self.entries.iter().map(|entry| entry.connection.id());
        self.by_id = ids.zip(0..).collect();
    }
}

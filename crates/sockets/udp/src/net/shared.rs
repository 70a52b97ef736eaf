//! State that applications and drivers share: queues of messages, and notifications.

use crate::connection::{Connection, Discarded};
use crate::error::ConnectionError;
use crate::incoming::Acceptor;
use crate::outgoing::SendError;
use crate::paths::PathStatistics;
use bytes::Bytes;
use clearway_transport::{EndpointCounters, FlowProgress};
use clearway_units::Span;
use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use tokio::sync::Notify;

/// Most messages in a queue between an application and its driver.
const QUEUED: usize = 256;
/// Bytes of messages at which such a queue is full.
const QUEUED_BYTES: usize = 4 << 20;

/// Source of acceptors: one for each connection.
pub type Acceptors = Box<dyn Fn() -> Box<dyn Acceptor> + Send>;

/// A received message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Tag from the sender.
    pub tag: u64,
    /// Bytes of the message.
    pub data: Vec<u8>,
}

/// State of a connection, as its driver saw it last.
#[derive(Debug, Clone, Default)]
pub struct ConnectionSnapshot {
    /// Counters of the transport.
    pub counters: EndpointCounters,
    /// Counters of discarded datagrams.
    pub discarded: Discarded,
    /// State of each path, true if it is up, and its counters.
    pub paths: Vec<(bool, PathStatistics)>,
    /// Longest datagram that this end sends, as UDP payload.
    pub datagram: u16,
    /// The sender's window, flight and statistics.
    pub progress: Option<FlowProgress>,
    /// Least round trip of the handshake.
    pub round_trip: Option<Span>,
}

impl ConnectionSnapshot {
    /// Takes the state of a connection.
    pub(super) fn take(&mut self, connection: &Connection) {
        self.counters = connection.counters();
        self.discarded = connection.discarded();
        self.paths.clear();
        self.paths.extend(connection.path_statistics());
        self.datagram = connection.datagram();
        self.progress = connection.progress();
        self.round_trip = connection.round_trip();
    }
}

/// Manner in which a connection is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// After all messages have arrived.
    ShutDown(u64),
    /// Immediately.
    Close(u64),
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) connected: bool,
    pub(super) closed: Option<ConnectionError>,
    /// Messages to send that the driver has not taken.
    outgoing: VecDeque<(u64, Bytes)>,
    outgoing_bytes: usize,
    /// Messages that the application has not taken.
    received: VecDeque<Message>,
    received_bytes: usize,
    /// More messages have arrived than the driver has handed over.
    pub(super) waits: bool,
    /// The application has dropped its end.
    abandoned: bool,
    /// Messages that the driver was given, and messages that have arrived or were refused.
    pub(super) given: u64,
    pub(super) arrived: u64,
    /// Length of the longest message that the other end accepts.
    pub(super) longest: Option<u64>,
    pub(super) ending: Option<Ending>,
    pub(super) snapshot: ConnectionSnapshot,
    driver: Option<Waker>,
}

/// A connection between its application and its driver.
pub(super) struct Shared {
    state: Mutex<State>,
    /// The application has acted.
    changed: AtomicBool,
    /// Notified when a message has arrived, or the connection has ended.
    received: Notify,
    /// Notified when a message has been taken or has arrived, or the connection has begun or ended.
    progress: Notify,
    pub(super) peer: SocketAddr,
}

impl Shared {
    pub(super) fn new(peer: SocketAddr) -> Self {
        Self {
            state: Mutex::default(),
            changed: AtomicBool::new(false),
            received: Notify::new(),
            progress: Notify::new(),
            peer,
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
    }

    /// True if the application has acted since the last call.
    pub(super) fn has_changed(&self) -> bool {
        self.changed.swap(false, Ordering::Acquire)
    }

    /// Lets the application wake a driver.
    pub(super) fn register(&self, driver: &Waker) {
        let mut state = self.lock();
        if !state
            .driver
            .as_ref()
            .is_some_and(|known| known.will_wake(driver))
        {
            state.driver = Some(driver.clone());
        }
    }

    fn tell_driver(&self, state: &mut State) {
        if !self.changed.swap(true, Ordering::Release)
            && let Some(driver) = &state.driver
        {
            driver.wake_by_ref();
        }
    }

    pub(super) fn tell_received(&self) {
        self.received.notify_waiters();
    }

    pub(super) fn tell_progress(&self) {
        self.progress.notify_waiters();
    }

    /// Waits until `look` returns a value; calls `look` again on each notification of `notify`.
    async fn wait<T>(&self, notify: &Notify, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            // Created before the look, so that no notification is missed.
            let notified = notify.notified();
            let found = look(&mut self.lock());
            if let Some(found) = found {
                return found;
            }
            notified.await;
        }
    }

    /// Waits until the handshake is done.
    pub(super) async fn connected(&self) -> Result<(), ConnectionError> {
        self.wait(&self.progress, |state| match &state.closed {
            Some(closed) => Some(Err(closed.clone())),
            None => state.connected.then_some(Ok(())),
        })
        .await
    }
}

impl State {
    /// True if the application has to take messages before the driver fetches more.
    pub(super) fn is_full(&self) -> bool {
        self.received.len() >= QUEUED || self.received_bytes >= QUEUED_BYTES
    }

    /// Hands a message over, unless the application has dropped its end.
    pub(super) fn push_received(&mut self, message: Message) {
        if !self.abandoned {
            self.received_bytes += message.data.len();
            self.received.push_back(message);
        }
    }

    /// True if the driver has to take messages before the application can send more.
    fn is_sending_enough(&self) -> bool {
        self.outgoing.len() >= QUEUED || self.outgoing_bytes >= QUEUED_BYTES
    }

    /// Length of the next message to send.
    pub(super) fn next_outgoing(&self) -> Option<usize> {
        self.outgoing.front().map(|(_, data)| data.len())
    }

    /// Takes the next message to send.
    pub(super) fn pop_outgoing(&mut self) -> Option<(u64, Bytes)> {
        let (tag, data) = self.outgoing.pop_front()?;
        self.outgoing_bytes -= data.len();
        Some((tag, data))
    }

    /// Drops the messages to send.
    pub(super) fn clear_outgoing(&mut self) {
        self.outgoing.clear();
        self.outgoing_bytes = 0;
    }

    fn refusal(&self) -> Option<SendError> {
        let ended = self.closed.is_some() || self.ending.is_some();
        ended.then_some(SendError::Closed)
    }

    fn refusal_of(&self, length: usize) -> Option<SendError> {
        let length = length as u64;
        let longest = self.longest.filter(|&longest| length > longest)?;
        Some(SendError::TooLong { length, longest })
    }
}

/// A connection as its application sees it. Dropping the channel ends the connection.
pub struct Channel {
    shared: Arc<Shared>,
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Channel({})", self.shared.peer)
    }
}

impl Channel {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Initial address of the other end.
    pub fn peer(&self) -> SocketAddr {
        let peer = self.shared.peer;
        // A dual-stack socket reports IPv4 addresses as IPv4-mapped IPv6 addresses.
        SocketAddr::new(peer.ip().to_canonical(), peer.port())
    }

    /// Sends a message, once the queues have room.
    ///
    /// # Errors
    /// If the connection has ended or is ending, or the message is too long for the other end.
    pub async fn send(&self, tag: u64, data: Bytes) -> Result<(), SendError> {
        let length = data.len();
        let mut data = Some(data);
        let shared = &self.shared;
        let push = |state: &mut State| {
            if let Some(error) = state.refusal().or_else(|| state.refusal_of(length)) {
                return Some(Err(error));
            }
            if state.is_sending_enough() {
                return None;
            }
            let data = data.take()?;
            state.outgoing_bytes += data.len();
            state.outgoing.push_back((tag, data));
            state.given += 1;
            shared.tell_driver(state);
            Some(Ok(()))
        };
        shared.wait(&shared.progress, push).await
    }

    /// Waits until all messages have arrived at the other end, or were refused.
    ///
    /// # Errors
    /// If the connection has ended or is ending.
    pub async fn flush(&self) -> Result<(), SendError> {
        let done = |state: &mut State| {
            if let Some(error) = state.refusal() {
                return Some(Err(error));
            }
            (state.arrived == state.given).then_some(Ok(()))
        };
        self.shared.wait(&self.shared.progress, done).await
    }

    /// Waits for the end of the connection and returns the reason. Messages that nobody has taken are lost.
    pub async fn ended(&self) -> ConnectionError {
        loop {
            if let Err(reason) = self.receive().await {
                return reason;
            }
        }
    }

    /// Messages that have arrived at the other end or were refused, since the beginning.
    pub fn arrived(&self) -> u64 {
        self.shared.lock().arrived
    }

    /// The next message.
    ///
    /// # Errors
    /// The reason, if the connection has ended.
    pub async fn receive(&self) -> Result<Message, ConnectionError> {
        let shared = &self.shared;
        let take = |state: &mut State| {
            let was_full = state.is_full();
            if let Some(message) = state.received.pop_front() {
                state.received_bytes -= message.data.len();
                if was_full {
                    shared.tell_driver(state);
                }
                return Some(Ok(message));
            }
            state.closed.clone().filter(|_| !state.waits).map(Err)
        };
        shared.wait(&shared.received, take).await
    }

    /// Closes the connection once all messages have arrived, and waits for the end.
    pub async fn shut_down(&self, code: u64) -> ConnectionError {
        self.end(Ending::ShutDown(code));
        let closed = |state: &mut State| state.closed.clone();
        self.shared.wait(&self.shared.progress, closed).await
    }

    /// Closes the connection immediately.
    pub fn close(&self, code: u64) {
        self.end(Ending::Close(code));
    }

    fn end(&self, ending: Ending) {
        let mut state = self.shared.lock();
        if !matches!(state.ending, Some(Ending::Close(_))) {
            state.ending = Some(ending);
            self.shared.tell_driver(&mut state);
        }
    }

    /// State of the connection, at most some milliseconds old while the connection is active.
    pub fn snapshot(&self) -> ConnectionSnapshot {
        self.shared.lock().snapshot.clone()
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if !matches!(state.ending, Some(Ending::Close(_))) {
            state.ending = Some(Ending::Close(0));
        }
        state.abandoned = true;
        state.received.clear();
        state.received_bytes = 0;
        self.shared.tell_driver(&mut state);
    }
}

/// New connections of a server.
#[derive(Debug, Default)]
pub(super) struct Accepting {
    waiting: Mutex<Vec<Channel>>,
    stopped: AtomicBool,
    driver: Mutex<Option<Waker>>,
    notify: Notify,
}

impl Accepting {
    pub(super) fn push(&self, channel: Channel) {
        let mut waiting = self.waiting();
        // Nobody accepts the connection any more; dropping it ends it.
        if !self.is_stopped() {
            waiting.insert(0, channel);
            self.notify.notify_one();
        }
    }

    pub(super) async fn next(&self) -> Channel {
        loop {
            let notified = self.notify.notified();
            if let Some(channel) = self.pop() {
                return channel;
            }
            notified.await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Channel>> {
        let waiting = self.waiting.lock();
        waiting.unwrap_or_else(|broken| broken.into_inner())
    }

    fn pop(&self) -> Option<Channel> {
        let channel = self.waiting().pop()?;
        if channel.shared.lock().closed.is_some() {
            // The driver need not keep the connection longer than its messages.
            self.wake_driver();
        }
        Some(channel)
    }

    /// True if a connection has not been accepted yet.
    pub(super) fn offers(&self, shared: &Arc<Shared>) -> bool {
        let waiting = self.waiting();
        let mut offered = waiting.iter().map(|channel| &channel.shared);
        offered.any(|offered| Arc::ptr_eq(offered, shared))
    }

    /// Takes back a connection that has not been accepted.
    pub(super) fn withdraw(&self, shared: &Arc<Shared>) -> Option<Channel> {
        let mut waiting = self.waiting();
        let is_it = |channel: &Channel| Arc::ptr_eq(&channel.shared, shared);
        let index = waiting.iter().position(is_it)?;
        Some(waiting.remove(index))
    }

    /// Connections that have not been accepted.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.waiting().len()
    }

    /// Ends the server: no connections begin any more.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        let waiting = std::mem::take(&mut *self.waiting());
        drop(waiting);
        self.wake_driver();
    }

    fn wake_driver(&self) {
        let driver = self.driver.lock();
        let driver = driver.unwrap_or_else(|broken| broken.into_inner());
        if let Some(driver) = &*driver {
            driver.wake_by_ref();
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub(super) fn register(&self, waker: &Waker) {
        let mut driver = self
            .driver
            .lock()
            .unwrap_or_else(|broken| broken.into_inner());
        *driver = Some(waker.clone());
    }
}

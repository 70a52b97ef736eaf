//! Connections to other ranks: each has a reader task and a writer task.

use crate::error::GroupError;
use crate::wire::{Begin, CloseReason, Sequence, Tag};
use bytes::Bytes;
use clearway_udp::net::{Channel, Message};
use clearway_udp::{ConnectionError, SendError};
use std::collections::VecDeque;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Most events that wait for the group; beyond them readers wait, and then connections.
const EVENTS: usize = 64;
/// Bytes of messages of the graph that a writer takes before it sends one: messages that are copied long before they are sent leave the
/// processor's cache.
const ROOM: usize = 256 << 10;

/// Event of a group.
pub(crate) enum Event {
    /// A rank has connected.
    Met {
        rank: u32,
        guest: Guest,
        /// Messages that overtook the greeting.
        early: Vec<Message>,
    },
    /// A rank cannot be reached.
    Unmet(GroupError),
    Received {
        rank: u32,
        message: Message,
    },
    /// A connection has taken a message.
    Sent {
        rank: u32,
        tag: Tag,
        length: usize,
    },
    /// A connection has refused a message of the graph, because it is ending.
    Refused {
        rank: u32,
    },
    /// A connection is over.
    Over {
        rank: u32,
        closed: ConnectionError,
    },
}

/// Close code for connections of ranks that have not joined, if there is a reason.
#[derive(Debug, Clone, Default)]
pub(crate) struct Farewell(Arc<OnceLock<u64>>);

impl Farewell {
    pub(crate) fn set(&self, ending: CloseReason) {
        // The first reason counts.
        let _ = self.0.set(ending.code());
    }
}

/// A connection to a rank that is joining. On drop, it tells the rank why this rank accepts nobody any more.
pub(crate) struct Guest {
    channel: Option<Channel>,
    farewell: Farewell,
}

impl Guest {
    pub(crate) fn new(channel: Channel, farewell: &Farewell) -> Self {
        Self {
            channel: Some(channel),
            farewell: farewell.clone(),
        }
    }

    pub(crate) fn channel(&self) -> &Channel {
        self.channel
            .as_ref()
            .expect("it is taken only when it is no guest any more")
    }

    /// The connection, for a rank that has joined.
    pub(crate) fn into_channel(mut self) -> Channel {
        self.channel
            .take()
            .expect("it is taken only when it is no guest any more")
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if let Some(channel) = &self.channel
            && let Some(code) = self.farewell.0.get()
        {
            channel.close(*code);
        }
    }
}

pub(crate) type Tell = mpsc::Sender<Event>;

/// The queue of events of a group.
pub(crate) fn events() -> (Tell, mpsc::Receiver<Event>) {
    mpsc::channel(EVENTS)
}

/// Another rank, as its group knows it.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) channel: Arc<Channel>,
    /// None once this rank leaves.
    outbox: Option<mpsc::UnboundedSender<(Tag, Bytes)>>,
    /// Task that moves messages from the outbox to the connection; taken when this rank leaves.
    writer: Option<JoinHandle<()>>,
    /// Bytes of messages of the graph in the writer.
    written: usize,
    /// Messages of the graph that are ready to send.
    pub(crate) ready: VecDeque<u32>,
    /// The rank has begun the present collective.
    pub(crate) has_begun: bool,
    /// The next collective, if the rank has begun it.
    pub(crate) next: Option<Begin>,
    /// Messages that arrived before the announcement of their collective: number of the collective, number of the message, content.
    pub(crate) held: Vec<(Sequence, u32, Vec<u8>)>,
    /// True if the rank has finished all collectives.
    pub(crate) has_left: bool,
    /// The rank no longer accepts messages of the graph.
    pub(crate) refuses: bool,
    /// The connection is over.
    pub(crate) is_over: bool,
}

impl Peer {
    /// Starts the reader and the writer.
    pub(crate) fn new(rank: u32, address: SocketAddr, channel: Channel, tell: &Tell) -> Self {
        let channel = Arc::new(channel);
        let (outbox, letters) = mpsc::unbounded_channel();
        tokio::spawn(read(rank, Arc::clone(&channel), tell.clone()));
        let writer = tokio::spawn(write(rank, Arc::clone(&channel), letters, tell.clone()));
        Self {
            address,
            channel,
            outbox: Some(outbox),
            writer: Some(writer),
            written: 0,
            ready: VecDeque::new(),
            has_begun: true,
            next: None,
            held: Vec::new(),
            has_left: false,
            refuses: false,
            is_over: false,
        }
    }

    /// The next ready message, if the writer has room for its `length`. It always has for one message.
    pub(crate) fn take_ready(&mut self, length: impl FnOnce(u32) -> usize) -> Option<u32> {
        let next = *self.ready.front()?;
        let written = self.written + length(next);
        if self.written > 0 && written > ROOM {
            return None;
        }
        self.written = written;
        self.ready.pop_front()
    }

    /// Gives the writer a message. If the connection is over, the reader reports it.
    pub(crate) fn send(&self, tag: Tag, data: Bytes) {
        if let Some(outbox) = &self.outbox {
            let _ = outbox.send((tag, data));
        }
    }

    /// Closes the connection when the other end has all messages from this rank. The caller has to take events meanwhile.
    pub(crate) fn shut_down(
        &mut self,
        ending: CloseReason,
    ) -> impl Future<Output = ConnectionError> + use<> {
        // Without an outbox the writer ends when the connection has all queued messages.
        self.outbox = None;
        let (writer, channel) = (self.writer.take(), Arc::clone(&self.channel));
        async move {
            if let Some(writer) = writer {
                let _ = writer.await;
            }
            channel.shut_down(ending.code()).await
        }
    }

    /// Records that the connection has taken a message of `length` bytes from the writer.
    pub(crate) fn on_sent(&mut self, length: usize) {
        self.written -= length;
    }
}

async fn read(rank: u32, channel: Arc<Channel>, tell: Tell) {
    loop {
        let event = match channel.receive().await {
            Ok(message) => Event::Received { rank, message },
            Err(closed) => {
                let _ = tell.send(Event::Over { rank, closed }).await;
                return;
            }
        };
        // Nobody listens after the group is dropped.
        if tell.send(event).await.is_err() {
            return;
        }
    }
}

async fn write(
    rank: u32,
    channel: Arc<Channel>,
    mut letters: mpsc::UnboundedReceiver<(Tag, Bytes)>,
    tell: Tell,
) {
    while let Some((tag, data)) = letters.recv().await {
        let length = data.len();
        let event = match channel.send(tag.code(), data).await {
            Ok(()) => Event::Sent { rank, tag, length },
            Err(SendError::TooLong { .. }) => {
                let closed = ConnectionError::Violation("it takes shorter messages only");
                Event::Over { rank, closed }
            }
            Err(_) if matches!(tag, Tag::Message(..)) => Event::Refused { rank },
            Err(_) => return,
        };
        if tell.send(event).await.is_err() {
            return;
        }
    }
}

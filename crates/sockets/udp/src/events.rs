//! Events that wait for the application. The memory for messages bounds the frequent events. Each of the others waits at most once.

use crate::error::ConnectionError;
use crate::outgoing::SendId;
use std::collections::VecDeque;

/// Event that a connection reports to its application.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// An authentic packet has arrived from the other end.
    Connected,
    /// A message has arrived.
    Received {
        /// Tag from the sender.
        tag: u64,
        /// Bytes of the message, in the buffer from the [`Acceptor`](crate::Acceptor).
        data: Vec<u8>,
    },
    /// A message has arrived at the other end.
    Sent {
        /// The message.
        id: SendId,
    },
    /// The other end refuses a message.
    Refused {
        /// The message.
        id: SendId,
    },
    /// A path is usable, for the first time or again.
    PathUp {
        /// Number of the path.
        path: u8,
    },
    /// A path is silent while others are not, and the connection avoids it.
    PathDown {
        /// Number of the path.
        path: u8,
    },
    /// The connection has ended.
    Closed {
        /// Reason for the end.
        reason: ConnectionError,
    },
}

/// Events that wait for the application.
#[derive(Debug, Default)]
pub(crate) struct Events {
    connected: bool,
    /// Paths that have come up or gone down since the application took the last event about them.
    paths: Vec<(u8, bool)>,
    /// Messages of this end that have arrived (true), or were refused (false).
    fates: VecDeque<(SendId, bool)>,
    received: VecDeque<(u64, Vec<u8>)>,
    closed: Option<ConnectionError>,
    was_closed: bool,
}

impl Events {
    pub(crate) fn connected(&mut self) {
        self.connected = true;
    }

    /// Reports that a path has come up or gone down; replaces an earlier report of the path.
    pub(crate) fn path(&mut self, path: u8, up: bool) {
        self.paths.retain(|&(known, _)| known != path);
        self.paths.push((path, up));
    }

    pub(crate) fn sent(&mut self, id: SendId) {
        self.fates.push_back((id, true));
    }

    pub(crate) fn refused(&mut self, id: SendId) {
        self.fates.push_back((id, false));
    }

    pub(crate) fn received(&mut self, tag: u64, data: Vec<u8>) {
        self.received.push_back((tag, data));
    }

    /// Reports the end of the connection: the first reason counts.
    pub(crate) fn closed(&mut self, reason: ConnectionError) {
        if !std::mem::replace(&mut self.was_closed, true) {
            self.closed = Some(reason);
        }
    }

    pub(crate) fn len(&self) -> usize {
        let single = usize::from(self.connected) + usize::from(self.closed.is_some());
        single + self.paths.len() + self.fates.len() + self.received.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next event; messages only if the application takes them now. The end comes after all events that can precede it.
    pub(crate) fn pop(&mut self, takes_messages: bool) -> Option<Event> {
        if std::mem::take(&mut self.connected) {
            return Some(Event::Connected);
        }
        if !self.paths.is_empty() {
            return Some(match self.paths.remove(0) {
                (path, true) => Event::PathUp { path },
                (path, false) => Event::PathDown { path },
            });
        }
        if let Some((id, arrived)) = self.fates.pop_front() {
            return Some(match arrived {
                true => Event::Sent { id },
                false => Event::Refused { id },
            });
        }
        if takes_messages && let Some((tag, data)) = self.received.pop_front() {
            return Some(Event::Received { tag, data });
        }
        let reason = self.closed.take()?;
        Some(Event::Closed { reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_once_and_the_end_comes_last() {
        let mut events = Events::default();
        events.closed(ConnectionError::Here);
        events.closed(ConnectionError::Busy);
        for round in 0..1_000u32 {
            events.path(3, round % 2 == 0);
        }
        events.path(4, true);
        events.received(7, vec![1]);
        events.sent(SendId(1));
        let without: Vec<_> = std::iter::from_fn(|| events.pop(false)).collect();
        let reason = ConnectionError::Here;
        let expected = [
            Event::PathDown { path: 3 },
            Event::PathUp { path: 4 },
            Event::Sent { id: SendId(1) },
            Event::Closed { reason },
        ];
        assert_eq!(without, expected);
        assert!(!events.is_empty());
        let data = vec![1];
        assert_eq!(events.pop(true), Some(Event::Received { tag: 7, data }));
        assert!(events.is_empty() && events.pop(true).is_none());
    }
}

//! Grants of messages by receivers that accept a limited number at a time.

use clearway_fabric::{FlowEvent, FlowMilestone};
use clearway_units::FlowId;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// A rank that accepts a limited number of messages at a time.
#[derive(Debug)]
struct Receiver {
    free: u32,
    /// Connections with waiting messages, one entry per message.
    waiting: VecDeque<FlowId>,
}

impl Receiver {
    fn new(limit: u32) -> Self {
        Self {
            free: limit,
            waiting: VecDeque::new(),
        }
    }
}

/// Limits the number of messages that receivers accept at a time (STrack §4.3 limits all-to-all at sender and receiver). Requests and
/// grants cost no bytes, but take the notification time between hosts.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    receivers: Vec<Receiver>,
    of_connection: FxHashMap<FlowId, usize>,
}

impl Grants {
    /// Adds a receiver that accepts `limit` messages at a time; returns its number.
    pub(crate) fn add_receiver(&mut self, limit: u32) -> usize {
        self.receivers.push(Receiver::new(limit));
        self.receivers.len() - 1
    }

    /// Adds a connection to a receiver.
    pub(crate) fn add_connection(&mut self, id: FlowId, receiver: usize) {
        self.of_connection.insert(id, receiver);
    }

    /// True if no receiver has a limit.
    pub(crate) fn is_empty(&self) -> bool {
        self.receivers.is_empty()
    }

    /// Handles a request of a rank, or a receiver that has room again. Pushes connections on which a message may now be posted to `start`.
    pub(crate) fn on_event(&mut self, event: FlowEvent, start: &mut Vec<FlowId>) {
        let Some(&index) = self.of_connection.get(&event.flow) else {
            return;
        };
        let receiver = &mut self.receivers[index];
        match event.milestone {
            FlowMilestone::CreditRequested => receiver.waiting.push_back(event.flow),
            FlowMilestone::CreditReturned => receiver.free += 1,
            FlowMilestone::Started | FlowMilestone::Received | FlowMilestone::Sent => return,
        }
        while receiver.free > 0
            && let Some(connection) = receiver.waiting.pop_front()
        {
            receiver.free -= 1;
            start.push(connection);
        }
    }
}

//! Grants of messages by receivers that take a limited number at a time.

use clearway_fabric::{FlowEvent, FlowMilestone};
use clearway_units::FlowId;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// A rank that takes a limited number of messages at a time.
#[derive(Debug)]
struct Receiver {
    free: u32,
    /// Connections on which a message waits, once for each.
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

/// Lets receivers take a limited number of messages at a time (STrack §4.3 limits all-to-all at sender and receiver). Words from and to
/// ranks cost no bytes, but the time that news take between hosts.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    receivers: Vec<Receiver>,
    of_connection: FxHashMap<FlowId, usize>,
}

impl Grants {
    /// Adds a receiver that takes `limit` messages at a time; returns its number.
    pub(crate) fn add_receiver(&mut self, limit: u32) -> usize {
        self.receivers.push(Receiver::new(limit));
        self.receivers.len() - 1
    }

    /// Adds a connection to a receiver.
    pub(crate) fn add_connection(&mut self, id: FlowId, receiver: usize) {
        self.of_connection.insert(id, receiver);
    }

    /// No receiver has a limit.
    pub(crate) fn is_empty(&self) -> bool {
        self.receivers.is_empty()
    }

    /// A rank asks, or has room again; connections on which a message may be posted now are pushed to `start`.
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

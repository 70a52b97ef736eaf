//! Messages that leave a NIC, with packets or without.

use super::memory::Handle;
use super::times::LastArrival;
use clearway_fabric::{KnownTransfer, Post};
use clearway_units::{Bytes, FlowId, MessageId, Time};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Messages that leave a NIC. Without a memory, all of them have packets.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) memory: Option<Handle>,
    posts: VecDeque<Post>,
    /// Messages without packets: their transfer times are remembered.
    known: VecDeque<KnownTransfer>,
    /// Messages with packets that are under way on each connection, if there is a memory.
    simulated: FxHashMap<FlowId, Vec<(MessageId, Bytes)>>,
    /// The last arrival of a message without packets on each connection.
    last_arrivals: FxHashMap<FlowId, LastArrival>,
}

impl Outbox {
    /// Posts a message, or transfers it without packets.
    pub(crate) fn post(&mut self, now: Time, post: Post) {
        let (connection, message) = (post.connection, post.message);
        let Some(memory) = &self.memory else {
            return self.posts.push_back(post);
        };
        let Some(times) = memory.on_post(now, (connection, message), post.bytes) else {
            let under_way = self.simulated.entry(connection).or_default();
            under_way.push((message, post.bytes));
            return self.posts.push_back(post);
        };
        let ahead = self.simulated.get(&connection);
        let ahead = ahead.map_or(0.0, |own| part_ahead(own, post.bytes));
        let last = self.last_arrivals.entry(connection).or_default();
        let (received, sent) = last.next(now, times, ahead);
        self.known.push_back(KnownTransfer {
            connection,
            message,
            received: received - now,
            sent: sent - now,
        });
    }

    /// A message from this NIC is acknowledged.
    pub(crate) fn on_sent(&mut self, now: Time, connection: FlowId, message: MessageId) {
        if let Some(memory) = &self.memory {
            memory.on_sent(now, connection, message);
            if let Some(under_way) = self.simulated.get_mut(&connection) {
                under_way.retain(|(other, _)| *other != message);
            }
        }
    }

    /// A message to this NIC has arrived.
    pub(crate) fn on_received(&self, now: Time, connection: FlowId, message: MessageId) {
        if let Some(memory) = &self.memory {
            memory.on_received(now, connection, message);
        }
    }

    /// The next message with packets.
    pub(crate) fn poll_post(&mut self) -> Option<Post> {
        self.posts.pop_front()
    }

    /// The next message without packets.
    pub(crate) fn poll_known(&mut self) -> Option<KnownTransfer> {
        self.known.pop_front()
    }
}

/// Bytes of messages under way as a multiple of `bytes`. The first of them is half sent, in the mean.
fn part_ahead(under_way: &[(MessageId, Bytes)], bytes: Bytes) -> f64 {
    let all: u64 = under_way.iter().map(|(_, own)| own.as_u64()).sum();
    let first = under_way.first().map_or(0, |(_, own)| own.as_u64());
    (all as f64 - first as f64 / 2.0) / bytes.as_u64() as f64
}

//! Messages that leave a NIC, with packets or without.

use super::memory::Handle;
use super::times::LastArrival;
use clearway_fabric::{KnownTransfer, Post};
use clearway_units::{Bytes, FlowId, MessageId, Time};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};

/// Messages that leave a NIC. Without a memory, all of them have packets.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) memory: Option<Handle>,
    posts: VecDeque<Post>,
    /// Messages without packets: their transfer times are remembered.
    known: VecDeque<KnownTransfer>,
    /// Messages with packets that are under way on each connection, with their families, if there is a memory.
    simulated: FxHashMap<FlowId, Vec<UnderWay>>,
    /// The last arrival of a message without packets on each connection, by family. Messages of other families are not waited for: times
    /// include what those took that were beside the simulated call.
    last_arrivals: FxHashMap<(FlowId, u32), LastArrival>,
    /// Time at which the last byte of the messages without packets has left, by connection.
    left: FxHashMap<FlowId, Time>,
    /// Messages with packets that wait for those without packets before them, by the time at which those have left, and in order.
    held: BTreeMap<(Time, u64), Post>,
    /// Number of messages that were held.
    count: u64,
}

/// A message with packets.
#[derive(Debug)]
struct UnderWay {
    message: MessageId,
    bytes: Bytes,
    family: u32,
}

impl Outbox {
    /// Posts a message, or transfers it without packets.
    pub(crate) fn post(&mut self, now: Time, post: Post) {
        let (connection, message) = (post.connection, post.message);
        let Some(memory) = &self.memory else {
            return self.posts.push_back(post);
        };
        let posted = memory.on_post(now, (connection, message), post.bytes);
        let Some((family, times)) = posted else {
            return self.posts.push_back(post);
        };
        let Some(times) = times else {
            let under_way = self.simulated.entry(connection).or_default();
            under_way.push(UnderWay {
                message,
                bytes: post.bytes,
                family,
            });
            // Those that can leave now are before it.
            self.on_deadline(now);
            let left = self.left.get(&connection);
            let Some(&left) = left.filter(|left| **left > now) else {
                return self.posts.push_back(post);
            };
            self.held.insert((left, self.count), post);
            self.count += 1;
            return;
        };
        let ahead = self.simulated.get(&connection);
        let ahead = ahead.map_or(0.0, |own| part_ahead(own, family, post.bytes));
        let last = self.last_arrivals.entry((connection, family)).or_default();
        let (received, sent) = last.next(now, times, ahead);
        let left = self.left.entry(connection).or_default();
        *left = times.left(received).max(*left);
        self.known.push_back(KnownTransfer {
            connection,
            message,
            bytes: post.bytes,
            received: received - now,
            sent: sent - now,
        });
    }

    /// A message from this NIC is acknowledged.
    pub(crate) fn on_sent(&mut self, now: Time, connection: FlowId, message: MessageId) {
        if let Some(memory) = &self.memory {
            memory.on_sent(now, connection, message);
            if let Some(under_way) = self.simulated.get_mut(&connection) {
                under_way.retain(|other| other.message != message);
            }
        }
    }

    /// A message to this NIC has arrived.
    pub(crate) fn on_received(&self, now: Time, connection: FlowId, message: MessageId) {
        if let Some(memory) = &self.memory {
            memory.on_received(now, connection, message);
        }
    }

    /// Time at which a message that is held can leave; [`Time::NEVER`] without one.
    pub(crate) fn deadline(&self) -> Time {
        let first = self.held.first_key_value();
        first.map_or(Time::NEVER, |((left, _), _)| *left)
    }

    /// Posts the messages that can leave now.
    pub(crate) fn on_deadline(&mut self, now: Time) {
        while let Some(entry) = self.held.first_entry()
            && entry.key().0 <= now
        {
            self.posts.push_back(entry.remove());
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

/// Bytes of the messages of a family under way as a multiple of `bytes`. The first of them is half sent, in the mean.
fn part_ahead(under_way: &[UnderWay], family: u32, bytes: Bytes) -> f64 {
    let own = under_way.iter().filter(|own| own.family == family);
    let lengths: Vec<u64> = own.map(|own| own.bytes.as_u64()).collect();
    let first = lengths.first().copied().unwrap_or(0);
    (lengths.iter().sum::<u64>() as f64 - first as f64 / 2.0) / bytes.as_u64() as f64
}

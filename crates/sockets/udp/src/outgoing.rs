//! Outgoing messages: messages that wait for credit, and messages in the transport.

use crate::settings::MESSAGE_COST;
use bytes::Bytes;
use clearway_units::{FlowId, MessageId};
use std::collections::VecDeque;

/// A sent message, by its number on its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SendId(pub u64);

/// Reason why the connection did not take a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Too many bytes wait; try again later.
    #[error("the send queue has reached `send_memory`: wait until messages are acknowledged")]
    Full,
    /// The message needs more memory than the other end has.
    #[error(
        "a message of {length} bytes exceeds the limit of the other end, {longest} bytes: send it in parts"
    )]
    TooLong {
        /// Length of the message.
        length: u64,
        /// Length of the longest possible message.
        longest: u64,
    },
    /// No packet from the other end has arrived yet.
    #[error("the connection has not begun: wait for `Event::Connected`")]
    Early,
    /// The connection is closed, or is being closed.
    #[error("the connection is closed")]
    Closed,
}

/// A message.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) id: SendId,
    pub(crate) tag: u64,
    /// Bytes of the message; none once it is refused.
    pub(crate) data: Bytes,
    pub(crate) length: u64,
    /// The other end refuses the message: its packets carry no payload.
    pub(crate) refused: bool,
}

impl Message {
    fn cost(&self) -> u64 {
        self.length + MESSAGE_COST
    }
}

/// Unacknowledged messages of one flow, by number.
#[derive(Debug)]
struct Flow {
    flow: FlowId,
    salt: u16,
    /// Number of the first of `messages`, and the total so far.
    first: u32,
    posted: u32,
    messages: VecDeque<Option<Message>>,
}

/// Outgoing messages.
#[derive(Debug)]
pub(crate) struct Outgoing {
    flows: VecDeque<Flow>,
    /// Messages that wait for credit.
    waiting: VecDeque<Message>,
    next: u64,
    /// Bytes of all messages here, and their limit.
    bytes: u64,
    memory: u64,
    /// Cost of all messages posted so far, and the limit that the other end grants.
    used: u64,
    granted: u64,
    longest: u64,
}

impl Outgoing {
    pub(crate) fn new(memory: u64, credit: u64) -> Self {
        Self {
            flows: VecDeque::new(),
            waiting: VecDeque::new(),
            next: 0,
            bytes: 0,
            memory,
            used: 0,
            granted: credit,
            longest: credit.saturating_sub(MESSAGE_COST),
        }
    }

    /// Takes a message.
    pub(crate) fn push(&mut self, tag: u64, data: Bytes) -> Result<SendId, SendError> {
        let length = data.len() as u64;
        if length > self.longest {
            let longest = self.longest;
            return Err(SendError::TooLong { length, longest });
        }
        let cost = length + MESSAGE_COST;
        if self.bytes > 0 && self.bytes + cost > self.memory {
            return Err(SendError::Full);
        }
        self.bytes += cost;
        let id = SendId(self.next);
        self.next += 1;
        self.waiting.push_back(Message {
            id,
            tag,
            data,
            length,
            refused: false,
        });
        Ok(id)
    }

    /// Length of the longest message that the other end accepts.
    pub(crate) fn longest(&self) -> u64 {
        self.longest
    }

    /// True if the connection would take a message of `length` bytes.
    pub(crate) fn has_room(&self, length: u64) -> bool {
        self.bytes == 0 || self.bytes + length + MESSAGE_COST <= self.memory
    }

    /// Opens a flow for the next messages.
    pub(crate) fn open(&mut self, flow: FlowId, salt: u16) {
        self.flows.push_back(Flow {
            flow,
            salt,
            first: 0,
            posted: 0,
            messages: VecDeque::new(),
        });
    }

    /// Takes the next message that credit allows, for the newest flow. Returns the message's flow, number and length.
    pub(crate) fn next_post(&mut self) -> Option<(FlowId, MessageId, u64)> {
        let message = self.waiting.front()?;
        let cost = message.cost();
        if self.used + cost > self.granted {
            return None;
        }
        let flow = self.flows.back_mut()?;
        self.used += cost;
        let number = MessageId(flow.posted);
        flow.posted += 1;
        let message = self.waiting.pop_front()?;
        let length = message.length;
        flow.messages.push_back(Some(message));
        Some((flow.flow, number, length))
    }

    /// Messages posted on the newest flow.
    pub(crate) fn posted(&self) -> u32 {
        self.flows.back().map_or(0, |flow| flow.posted)
    }

    /// The exhausted credit limit, while messages wait for more.
    pub(crate) fn blocked(&self) -> Option<u64> {
        (!self.waiting.is_empty()).then_some(self.granted)
    }

    /// Takes new credit; false if the limit does not grow.
    pub(crate) fn grant(&mut self, limit: u64) -> bool {
        let more = limit > self.granted;
        self.granted = self.granted.max(limit);
        more
    }

    /// True if every message has been acknowledged.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0 && self.waiting.is_empty()
    }

    /// Bytes that wait or are unacknowledged, plus the cost of their messages.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Salt of the paths of a flow.
    #[inline]
    pub(crate) fn salt(&self, flow: FlowId) -> Option<u16> {
        let mut flows = self.flows.iter().rev();
        flows
            .find(|known| known.flow == flow)
            .map(|known| known.salt)
    }

    fn flow(&mut self, flow: FlowId) -> Option<&mut Flow> {
        self.flows.iter_mut().rev().find(|known| known.flow == flow)
    }

    /// An unacknowledged message.
    #[inline]
    pub(crate) fn find(&mut self, flow: FlowId, message: MessageId) -> Option<&mut Message> {
        let flow = self.flow(flow)?;
        let index = message.0.checked_sub(flow.first)?;
        flow.messages.get_mut(index as usize)?.as_mut()
    }

    /// Frees an acknowledged message.
    pub(crate) fn finish(&mut self, flow: FlowId, message: MessageId) -> Option<Message> {
        let flow = self.flow(flow)?;
        let index = message.0.checked_sub(flow.first)?;
        let message = flow.messages.get_mut(index as usize)?.take()?;
        while flow.messages.front().is_some_and(Option::is_none) {
            flow.messages.pop_front();
            flow.first += 1;
        }
        self.bytes -= message.cost();
        // A closed flow ends with its last message; the newest flow stays.
        while self.flows.len() > 1 && self.flows[0].messages.is_empty() {
            self.flows.pop_front();
        }
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(length: usize) -> Bytes {
        Bytes::from(vec![1; length])
    }

    #[test]
    fn messages_wait_for_credit_and_for_room() {
        let mut outgoing = Outgoing::new(2_000, 1_000);
        outgoing.open(FlowId(0), 7);
        let too_long = Err(SendError::TooLong {
            length: 745,
            longest: 744,
        });
        assert_eq!(outgoing.push(1, data(745)), too_long);
        for number in 0..3 {
            assert_eq!(outgoing.push(1, data(344)), Ok(SendId(number)));
        }
        assert_eq!(outgoing.push(1, data(344)), Err(SendError::Full));
        let post = |number| Some((FlowId(0), MessageId(number), 344));
        assert_eq!(outgoing.next_post(), post(0));
        assert_eq!(outgoing.next_post(), None);
        assert_eq!(outgoing.blocked(), Some(1_000));
        assert!(outgoing.grant(2_000) && !outgoing.grant(1_500));
        assert_eq!(
            [outgoing.next_post(), outgoing.next_post()],
            [post(1), post(2)]
        );
        assert_eq!(outgoing.blocked(), None);
        for number in [1, 0, 2] {
            let message = outgoing.finish(FlowId(0), MessageId(number)).unwrap();
            assert_eq!(message.id, SendId(u64::from(number)));
            assert!(outgoing.finish(FlowId(0), MessageId(number)).is_none());
        }
        assert!(outgoing.is_empty());
    }

    #[test]
    fn old_flows_end_with_their_last_message() {
        let mut outgoing = Outgoing::new(1 << 20, 1 << 20);
        for flow in 0..3 {
            outgoing.open(FlowId(flow), flow as u16);
            outgoing.push(0, data(10)).unwrap();
            outgoing.next_post().unwrap();
        }
        assert_eq!(outgoing.salt(FlowId(1)), Some(1));
        outgoing.finish(FlowId(1), MessageId(0)).unwrap();
        outgoing.finish(FlowId(0), MessageId(0)).unwrap();
        assert_eq!(outgoing.salt(FlowId(1)), None);
        assert!(outgoing.find(FlowId(2), MessageId(0)).is_some());
    }
}

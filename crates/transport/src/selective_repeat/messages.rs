//! The messages of a sender: from a packet's number to what it carries, and from acknowledgements to finished messages.

use super::scoreboard::numbers;
use crate::packet::Header;
use clearway_units::{Bytes, MessageId};
use std::collections::VecDeque;

/// A message whose packets have numbers.
#[derive(Debug, Clone, Copy)]
struct Open {
    message: MessageId,
    bytes: u64,
    /// Its packets are `first..end`.
    first: u64,
    end: u64,
    unacknowledged: u64,
    /// Not a message of the user but the packet that closes a flow after everything was sent.
    closing: bool,
}

/// What is left of the message that is being sent.
#[derive(Debug, Clone, Copy, Default)]
struct Cursor {
    message: MessageId,
    psn: u64,
    offset: u64,
    /// Bytes that no packet has carried yet; an empty message has none but still a packet to send.
    left: u64,
    /// False when every message has been sent.
    active: bool,
    closing: bool,
}

/// The messages of one flow, sent back to back in one space of packet numbers.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    cursor: Cursor,
    /// Begun and not yet acknowledged, by packet number.
    open: VecDeque<Open>,
    /// Not begun.
    waiting: VecDeque<(MessageId, u64)>,
    closed: bool,
    /// The packet that ends the flow.
    last: Option<u64>,
}

impl Messages {
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        self.cursor.active
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Appends a message. `next` is the number of the flow's next new packet.
    ///
    /// # Panics
    /// If the flow is closed.
    pub(crate) fn post(&mut self, message: MessageId, bytes: Bytes, next: u64, payload: u64) {
        assert!(!self.closed, "a message was posted on a closed flow");
        if self.cursor.active {
            self.waiting.push_back((message, bytes.as_u64()));
        } else {
            self.begin(message, bytes.as_u64(), next, payload, false);
        }
    }

    /// No more messages will come. If everything has been sent, one more packet has to say so.
    pub(crate) fn close(&mut self, next: u64, payload: u64) {
        if self.closed {
            return;
        }
        self.closed = true;
        if !self.cursor.active && next > 0 {
            self.begin(MessageId(u32::MAX), 0, next, payload, true);
        }
    }

    fn begin(&mut self, message: MessageId, bytes: u64, first: u64, payload: u64, closing: bool) {
        let packets = bytes.div_ceil(payload).max(1);
        self.open.push_back(Open {
            message,
            bytes,
            first,
            end: first + packets,
            unacknowledged: packets,
            closing,
        });
        self.cursor = Cursor {
            message,
            psn: first,
            offset: 0,
            left: bytes,
            active: true,
            closing,
        };
    }

    /// The next new packet.
    #[inline]
    pub(crate) fn next_packet(&mut self, payload: u64) -> Header {
        let Cursor {
            message,
            psn,
            offset,
            left,
            closing,
            ..
        } = self.cursor;
        let length = left.min(payload);
        self.cursor.psn = psn + 1;
        self.cursor.offset = offset + length;
        self.cursor.left = left - length;
        let ends = length == left;
        let end_of_flow = ends && self.finish_message(psn, payload);
        Header::Data {
            psn: psn as u32,
            message,
            offset,
            payload: length as u16,
            ack_request: false,
            retransmission: false,
            end_of_message: ends && !closing,
            end_of_flow,
        }
    }

    /// Goes on to the next message after packet `psn`; true if there is none and the flow is closed.
    fn finish_message(&mut self, psn: u64, payload: u64) -> bool {
        if let Some((message, bytes)) = self.waiting.pop_front() {
            self.begin(message, bytes, psn + 1, payload, false);
            return false;
        }
        self.cursor.active = false;
        if self.closed {
            self.last = Some(psn);
        }
        self.closed
    }

    /// Packet `psn` once more.
    pub(crate) fn packet(&self, psn: u64, payload: u64) -> Header {
        let open = self.find(psn);
        let offset = (psn - open.first) * payload;
        Header::Data {
            psn: psn as u32,
            message: open.message,
            offset,
            payload: (open.bytes - offset).min(payload) as u16,
            ack_request: false,
            retransmission: true,
            end_of_message: psn + 1 == open.end && !open.closing,
            end_of_flow: self.last == Some(psn),
        }
    }

    /// Payload of packet `psn`.
    pub(crate) fn length(&self, psn: u64, payload: u64) -> u64 {
        let open = self.find(psn);
        (open.bytes - (psn - open.first) * payload).min(payload)
    }

    /// The message of packet `psn`, which must not be acknowledged yet.
    fn find(&self, psn: u64) -> &Open {
        &self.open[self.index(psn)]
    }

    fn index(&self, psn: u64) -> usize {
        self.open.partition_point(|open| open.end <= psn)
    }

    /// Counts the `packets` packets below `end` as acknowledged if they all belong to the oldest message and do not complete
    /// it, which is nearly always so; false if not.
    #[inline]
    pub(crate) fn acknowledge_oldest(&mut self, packets: u64, end: u64) -> bool {
        match self.open.front_mut() {
            Some(front) if end <= front.end && packets < front.unacknowledged => {
                front.unacknowledged -= packets;
                true
            }
            _ => false,
        }
    }

    /// Counts the packets `bits` of the block at `base` as acknowledged and calls `finished` for each message that has none
    /// left.
    pub(crate) fn acknowledge(
        &mut self,
        base: u64,
        bits: u64,
        mut finished: impl FnMut(MessageId, Bytes),
    ) {
        for psn in numbers(base, bits) {
            let index = self.index(psn);
            let open = &mut self.open[index];
            open.unacknowledged -= 1;
            if open.unacknowledged == 0 && !open.closing {
                finished(open.message, Bytes::new(open.bytes));
            }
        }
        while self
            .open
            .front()
            .is_some_and(|open| open.unacknowledged == 0)
        {
            self.open.pop_front();
        }
    }
}

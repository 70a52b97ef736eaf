//! The messages of a sender: a map from sequence numbers to payload, and from acknowledgements to finished messages.

use crate::packet::{DataFlags, Header};
use clearway_prefetch::{LINE, prefetch_first};
use clearway_units::{Bytes, MessageId};
use std::collections::VecDeque;

/// Part of a message that one sender carries: all of it, or the share of its queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) message: MessageId,
    pub(crate) bytes: u64,
    /// Offset of the part in the message.
    pub(crate) place: u64,
    /// Number of parts of the message.
    pub(crate) parts: u8,
}

impl Part {
    /// Creates the only part of a message.
    pub(crate) fn whole(message: MessageId, bytes: Bytes) -> Self {
        Self {
            message,
            bytes: bytes.as_u64(),
            place: 0,
            parts: 1,
        }
    }
}

/// A message whose packets have sequence numbers.
#[derive(Debug, Clone, Copy)]
struct Open {
    part: Part,
    /// Sequence number of the first packet; the message has the packets `first..end`.
    first: u64,
    end: u64,
    unacknowledged: u64,
    /// Bytes that were [skipped](Messages::skip); they are not in `part`.
    skipped: u64,
    /// True for the packet that closes a flow after all messages were sent; it is not a message of the user.
    closing: bool,
}

impl Open {
    /// Length of the part, with what was skipped.
    fn length(&self) -> Bytes {
        Bytes::new(self.part.bytes + self.skipped)
    }
}

/// Unsent rest of the message that is being sent.
#[derive(Debug, Clone, Copy, Default)]
struct Cursor {
    message: MessageId,
    psn: u64,
    /// Offset of the rest in the message.
    offset: u64,
    /// Bytes that no packet has carried yet. An empty message has none, but it has a packet to send.
    left: u64,
    /// False when every message has been sent.
    active: bool,
    closing: bool,
    parts: u8,
}

/// The messages of one flow, sent back to back in one space of packet numbers.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    cursor: Cursor,
    /// Messages that have begun and are not acknowledged yet, by sequence number.
    open: VecDeque<Open>,
    /// Messages that have not begun.
    waiting: VecDeque<Part>,
    closed: bool,
    /// Sequence number of the packet that ends the flow.
    last: Option<u64>,
    /// Bytes of all messages that were skipped.
    skipped: u64,
}

impl Messages {
    /// Loads the oldest message that is open into the caches.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch_first(self.open.as_slices().0, LINE);
    }

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
    pub(crate) fn post(&mut self, part: Part, next: u64, payload: u64) {
        assert!(!self.closed, "a message was posted on a closed flow");
        if self.cursor.active {
            self.waiting.push_back(part);
        } else {
            self.begin(part, next, payload, false);
        }
    }

    /// Bytes that no packet has carried yet; counting stops above `limit`.
    pub(crate) fn unsent(&self, limit: u64) -> u64 {
        let mut bytes = match self.cursor.active {
            true => self.cursor.left,
            false => 0,
        };
        for part in &self.waiting {
            if bytes > limit {
                break;
            }
            bytes = bytes.saturating_add(part.bytes);
        }
        bytes
    }

    /// Bytes of messages that are not acknowledged as a whole; counting stops above `limit`.
    pub(crate) fn backlog(&self, limit: u64) -> u64 {
        let mut bytes = 0u64;
        for open in &self.open {
            bytes = bytes.saturating_add(open.part.bytes);
            if bytes > limit {
                break;
            }
        }
        bytes
    }

    /// Bytes of the message that is being sent that no packet has carried yet; `None` if there is none.
    pub(crate) fn rest(&self) -> Option<(MessageId, u64)> {
        (self.cursor.active && !self.cursor.closing)
            .then_some((self.cursor.message, self.cursor.left))
    }

    /// Takes so many full packets out of the unsent rest of the message that is being sent. The packets after them take their numbers.
    ///
    /// # Panics
    /// If the message has no rest after them.
    pub(crate) fn skip(&mut self, packets: u64, payload: u64) {
        let bytes = packets * payload;
        let open = self.open.back_mut();
        let open = open.filter(|_| self.cursor.active && self.cursor.left > bytes);
        let open = open.expect("a message keeps its last packet");
        open.end -= packets;
        open.unacknowledged -= packets;
        open.part.bytes -= bytes;
        open.skipped += bytes;
        self.cursor.left -= bytes;
        self.skipped += bytes;
    }

    /// Bytes of all messages that were [skipped](Self::skip).
    pub(crate) fn skipped(&self) -> Bytes {
        Bytes::new(self.skipped)
    }

    /// Closes the flow: no more messages will come. If everything has been sent, one more packet tells the receiver.
    pub(crate) fn close(&mut self, next: u64, payload: u64) {
        if self.closed {
            return;
        }
        self.closed = true;
        if !self.cursor.active && next > 0 {
            let nothing = Part::whole(MessageId(u32::MAX), Bytes::ZERO);
            self.begin(nothing, next, payload, true);
        }
    }

    fn begin(&mut self, part: Part, first: u64, payload: u64, closing: bool) {
        let packets = part.bytes.div_ceil(payload).max(1);
        if self.open.capacity() == 0 {
            // Most flows have one message, and a queue takes room for four.
            self.open.reserve_exact(1);
        }
        self.open.push_back(Open {
            part,
            first,
            end: first + packets,
            unacknowledged: packets,
            skipped: 0,
            closing,
        });
        self.cursor = Cursor {
            message: part.message,
            psn: first,
            offset: part.place,
            left: part.bytes,
            active: true,
            closing,
            parts: part.parts,
        };
    }

    /// Header of the next new packet, which counts as sent.
    #[inline]
    pub(crate) fn next_packet(&mut self, payload: u64) -> Header {
        let Cursor {
            message,
            psn,
            offset,
            left,
            closing,
            parts,
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
            parts,
            pull_target: 0,
            flags: DataFlags::NONE
                .with(DataFlags::END_OF_MESSAGE, ends && !closing)
                .with(DataFlags::END_OF_FLOW, end_of_flow),
        }
    }

    /// Goes on to the next message after packet `psn`; true without a next message if the flow is closed.
    fn finish_message(&mut self, psn: u64, payload: u64) -> bool {
        if let Some(part) = self.waiting.pop_front() {
            self.begin(part, psn + 1, payload, false);
            return false;
        }
        self.cursor.active = false;
        if self.closed {
            self.last = Some(psn);
        }
        self.closed
    }

    /// Header of a retransmission of packet `psn`.
    pub(crate) fn packet(&self, psn: u64, payload: u64) -> Header {
        let open = self.find(psn);
        let offset = (psn - open.first) * payload;
        Header::Data {
            psn: psn as u32,
            message: open.part.message,
            offset: open.part.place + offset,
            payload: (open.part.bytes - offset).min(payload) as u16,
            parts: open.part.parts,
            pull_target: 0,
            flags: DataFlags::RETRANSMISSION
                .with(
                    DataFlags::END_OF_MESSAGE,
                    psn + 1 == open.end && !open.closing,
                )
                .with(DataFlags::END_OF_FLOW, self.last == Some(psn)),
        }
    }

    /// Payload of packet `psn`.
    pub(crate) fn length(&self, psn: u64, payload: u64) -> u64 {
        let open = self.find(psn);
        (open.part.bytes - (psn - open.first) * payload).min(payload)
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
    #[inline(always)]
    pub(crate) fn acknowledge_oldest(&mut self, packets: u64, end: u64) -> bool {
        match self.open.front_mut() {
            Some(front) if end <= front.end && packets < front.unacknowledged => {
                front.unacknowledged -= packets;
                true
            }
            _ => false,
        }
    }

    /// Counts the packets `psns` as acknowledged and calls `finished` for each message that has none left.
    pub(crate) fn acknowledge(
        &mut self,
        psns: impl Iterator<Item = u64>,
        mut finished: impl FnMut(MessageId, Bytes),
    ) {
        for psn in psns {
            let index = self.index(psn);
            let open = &mut self.open[index];
            open.unacknowledged -= 1;
            if open.unacknowledged == 0 && !open.closing {
                finished(open.part.message, open.length());
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

    /// Counts all packets of `from..to` as acknowledged, where everything below `from` is already, and calls `finished` for each
    /// message that has none left. Returns their payload.
    pub(crate) fn acknowledge_through(
        &mut self,
        from: u64,
        to: u64,
        payload: u64,
        mut finished: impl FnMut(MessageId, Bytes),
    ) -> u64 {
        let mut acknowledged = 0;
        let mut psn = from;
        while psn < to
            && let Some(front) = self.open.front_mut()
        {
            let end = front.end.min(to);
            let bytes_below = |psn: u64| ((psn - front.first) * payload).min(front.part.bytes);
            acknowledged += bytes_below(end) - bytes_below(psn);
            front.unacknowledged -= end - psn;
            psn = end;
            if front.unacknowledged == 0 {
                if !front.closing {
                    finished(front.part.message, front.length());
                }
                self.open.pop_front();
            }
        }
        acknowledged
    }
}

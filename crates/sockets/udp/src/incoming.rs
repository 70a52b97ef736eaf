//! Incoming messages: each packet's payload goes directly to its place in the message, in any order of arrival.
//!
//! Credit bounds the memory: the other end may begin messages up to the granted cost. The grant grows as the application takes messages.
//!
//! A refused message is complete once the other end acknowledges the refusal by a packet without payload. Until then the receiver does not
//! acknowledge the packet that would complete the message, and the packet comes again: an acknowledgement would say that the message has
//! arrived.

use crate::settings::MESSAGE_COST;
use clearway_units::{FlowId, MessageId};
use rustc_hash::FxHashMap;

/// Source of the buffers for messages that arrive.
pub trait Acceptor: Send {
    /// The buffer for a message with this tag and length, which the connection resizes to this length; `None` refuses the message.
    fn accept(&mut self, tag: u64, length: usize) -> Option<Vec<u8>>;
}

/// An acceptor of every message, with new buffers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allocate;

impl Acceptor for Allocate {
    fn accept(&mut self, _tag: u64, length: usize) -> Option<Vec<u8>> {
        Some(vec![0; length])
    }
}

impl<F: FnMut(u64, usize) -> Option<Vec<u8>> + Send> Acceptor for F {
    fn accept(&mut self, tag: u64, length: usize) -> Option<Vec<u8>> {
        self(tag, length)
    }
}

/// Place of a data packet's payload, as the packet says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) flow: FlowId,
    pub(crate) message: MessageId,
    pub(crate) tag: u64,
    /// Length of the message.
    pub(crate) length: u64,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) ends_message: bool,
}

/// Fate of a packet's payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PayloadOutcome {
    /// Placed, or part of a refused message whose refusal the other end knows.
    Taken,
    /// Part of a refused message; tell the other end of the refusal.
    Refused,
    /// As [`Refused`](Self::Refused), but do not acknowledge the packet, because it would complete the message.
    Withheld,
    /// The other end violates the protocol.
    Violation(&'static str),
}

struct Arriving {
    tag: u64,
    length: u64,
    /// None if the message is refused.
    buffer: Option<Vec<u8>>,
    /// Acknowledged bytes of a refused message, and whether the other end knows of the refusal.
    passed: u64,
    is_known: bool,
    /// Packets since this end last told the other end of the refusal.
    untold: u32,
}

impl Arriving {
    /// Takes a packet of a refused message.
    fn pass(&mut self, bytes: u64, is_known: bool) -> PayloadOutcome {
        self.is_known |= is_known;
        if !self.is_known && self.passed + bytes == self.length {
            return PayloadOutcome::Withheld;
        }
        self.passed += bytes;
        match self.is_known {
            true => PayloadOutcome::Taken,
            false => PayloadOutcome::Refused,
        }
    }
}

/// Packets of a refused message after which this end repeats the refusal.
const TELL_AGAIN: u32 = 32;

/// Incoming messages.
pub(crate) struct Incoming {
    messages: FxHashMap<(FlowId, MessageId), Arriving>,
    /// Most unfinished messages at a time: packets of the window.
    most: usize,
    /// Total cost of all begun messages, and its limit.
    begun: u64,
    granted: u64,
    /// The last grant that this end sent.
    told: u64,
    /// The other end waits for more credit.
    wanted: bool,
    memory: u64,
}

impl Incoming {
    pub(crate) fn new(memory: u64, most: usize) -> Self {
        Self {
            messages: FxHashMap::default(),
            most,
            begun: 0,
            granted: memory,
            told: memory,
            wanted: false,
            memory,
        }
    }

    /// Cost of begun messages that the application has not taken.
    pub(crate) fn held(&self) -> u64 {
        self.memory - (self.granted - self.begun)
    }

    /// Places the payload of a packet that was not acknowledged before; `None` is an omitted payload.
    pub(crate) fn place(
        &mut self,
        place: &Place,
        payload: Option<&[u8]>,
        acceptor: &mut dyn Acceptor,
    ) -> PayloadOutcome {
        let end = place.offset.checked_add(place.bytes);
        let Some(end) = end.filter(|&end| end <= place.length) else {
            return PayloadOutcome::Violation("a packet lies beyond the end of its message");
        };
        if place.ends_message != (end == place.length) {
            return PayloadOutcome::Violation("the end of a message is not at its end");
        }
        let key = (place.flow, place.message);
        if !self.messages.contains_key(&key)
            && let Err(violation) = self.begin(place, acceptor)
        {
            return PayloadOutcome::Violation(violation);
        }
        let Some(arriving) = self.messages.get_mut(&key) else {
            return PayloadOutcome::Violation("a message has not begun");
        };
        if (arriving.tag, arriving.length) != (place.tag, place.length) {
            return PayloadOutcome::Violation("packets of a message differ in its tag or length");
        }
        match (&mut arriving.buffer, payload) {
            (Some(buffer), Some(payload)) => {
                buffer[place.offset as usize..end as usize].copy_from_slice(payload);
                PayloadOutcome::Taken
            }
            (Some(_), None) => {
                PayloadOutcome::Violation("payload is missing of a message that is wanted")
            }
            (None, payload) => arriving.pass(place.bytes, payload.is_none()),
        }
    }

    /// Begins a message.
    fn begin(&mut self, place: &Place, acceptor: &mut dyn Acceptor) -> Result<(), &'static str> {
        let cost = place.length.saturating_add(MESSAGE_COST);
        if self.begun.saturating_add(cost) > self.granted {
            return Err("a message goes beyond the credit");
        }
        if self.messages.len() >= self.most {
            return Err("more messages have begun than there are packets in the window");
        }
        self.begun += cost;
        let length = place.length as usize;
        let buffer = acceptor.accept(place.tag, length).map(|mut buffer| {
            buffer.resize(length, 0);
            buffer
        });
        let arriving = Arriving {
            tag: place.tag,
            length: place.length,
            buffer,
            passed: 0,
            is_known: false,
            untold: TELL_AGAIN,
        };
        self.messages.insert((place.flow, place.message), arriving);
        Ok(())
    }

    /// True if this end must tell the other end now that it refuses a message.
    pub(crate) fn tell_refused(&mut self, flow: FlowId, message: MessageId) -> bool {
        let Some(arriving) = self.messages.get_mut(&(flow, message)) else {
            return false;
        };
        arriving.untold += 1;
        let tell = arriving.untold > TELL_AGAIN;
        if tell {
            arriving.untold = 0;
        }
        tell
    }

    /// Takes a complete message: its tag and its buffer, or nothing if it was refused. The message counts as memory until
    /// [`release`](Self::release).
    pub(crate) fn finish(&mut self, flow: FlowId, message: MessageId) -> Option<(u64, Vec<u8>)> {
        let arriving = self.messages.remove(&(flow, message))?;
        if arriving.buffer.is_none() {
            self.release(arriving.length);
        }
        Some((arriving.tag, arriving.buffer?))
    }

    /// Records that the application has taken a message of `length` bytes.
    pub(crate) fn release(&mut self, length: u64) {
        self.granted += length + MESSAGE_COST;
    }

    /// Records that the other end waits for credit and knows of `known`. Returns the limit to send.
    pub(crate) fn on_blocked(&mut self, known: u64) -> Option<u64> {
        self.wanted = known >= self.granted;
        (known < self.granted).then_some(self.granted)
    }

    /// Credit to send, if the other end waits for credit or the limit has grown much.
    pub(crate) fn poll_credit(&mut self) -> Option<u64> {
        let more = self.granted - self.told;
        if more < self.memory / 4 && !(self.wanted && more > 0) {
            return None;
        }
        self.wanted = false;
        self.told = self.granted;
        Some(self.granted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(message: u32, length: u64, offset: u64, bytes: u64) -> Place {
        Place {
            flow: FlowId(0),
            message: MessageId(message),
            tag: 9,
            length,
            offset,
            bytes,
            ends_message: offset.checked_add(bytes) == Some(length),
        }
    }

    #[test]
    fn packets_are_placed_in_any_order() {
        let mut incoming = Incoming::new(10_000, 100);
        for (offset, payload) in [(4, "45"), (0, "0123")] {
            let place = place(0, 6, offset, payload.len() as u64);
            let placed = incoming.place(&place, Some(payload.as_bytes()), &mut Allocate);
            assert_eq!(placed, PayloadOutcome::Taken);
        }
        assert_eq!(incoming.held(), 6 + MESSAGE_COST);
        let (tag, buffer) = incoming.finish(FlowId(0), MessageId(0)).unwrap();
        assert_eq!((tag, &buffer[..]), (9, &b"012345"[..]));
        incoming.release(6);
        assert_eq!(incoming.held(), 0);
        assert_eq!(incoming.finish(FlowId(0), MessageId(0)), None);
    }

    #[test]
    fn what_a_peer_must_not_do_is_told() {
        let mut incoming = Incoming::new(1_000, 2);
        let mut go = |place: &Place| incoming.place(place, Some(&[0; 10]), &mut Allocate);
        let wrong = |placed| matches!(placed, PayloadOutcome::Violation(_));
        assert!(wrong(go(&place(0, 9, 0, 10))));
        assert!(wrong(go(&place(0, 5, u64::MAX, 10))));
        assert!(wrong(go(&place(0, 745, 0, 10))));
        assert!(wrong(go(&Place {
            ends_message: true,
            ..place(0, 20, 0, 10)
        })));
        assert_eq!(go(&place(0, 20, 0, 10)), PayloadOutcome::Taken);
        assert!(wrong(go(&place(0, 21, 0, 10))));
        assert!(wrong(go(&Place {
            tag: 8,
            ..place(0, 20, 0, 10)
        })));
        assert_eq!(go(&place(1, 20, 0, 10)), PayloadOutcome::Taken);
        assert!(wrong(go(&place(2, 20, 0, 10))));
    }

    #[test]
    fn refused_messages_hold_nothing_and_the_other_end_is_told_now_and_then() {
        let mut incoming = Incoming::new(1_000, 100);
        let mut refuse = |_, _| None;
        let packet = place(0, 20, 0, 10);
        assert_eq!(
            incoming.place(&packet, Some(&[0; 10]), &mut refuse),
            PayloadOutcome::Refused
        );
        let last = place(0, 20, 10, 10);
        for _ in 0..3 {
            let withheld = incoming.place(&last, Some(&[0; 10]), &mut refuse);
            assert_eq!(withheld, PayloadOutcome::Withheld);
        }
        assert_eq!(
            incoming.place(&last, None, &mut refuse),
            PayloadOutcome::Taken
        );
        let told = (0..100).filter(|_| incoming.tell_refused(FlowId(0), MessageId(0)));
        assert_eq!(told.count(), 4);
        assert_eq!(incoming.finish(FlowId(0), MessageId(0)), None);
        assert_eq!(incoming.held(), 0);
        // Empty messages also count.
        let empty = place(1, 0, 0, 0);
        let mut refuse = |_, _| None;
        assert_eq!(
            incoming.place(&empty, Some(&[]), &mut refuse),
            PayloadOutcome::Withheld
        );
        assert_eq!(
            incoming.place(&empty, None, &mut refuse),
            PayloadOutcome::Taken
        );
        assert_eq!(incoming.finish(FlowId(0), MessageId(1)), None);
        assert_eq!(incoming.poll_credit(), Some(1_000 + 276 + 256));
        assert_eq!(incoming.poll_credit(), None);
        assert_eq!(incoming.on_blocked(1_000), Some(1_532));
        assert_eq!(incoming.on_blocked(1_532), None);
        incoming.release(0);
        assert_eq!(incoming.poll_credit(), Some(1_532 + MESSAGE_COST));
    }
}

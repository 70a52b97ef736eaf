//! Reports of a sender to its enforcement scope and to the allocation of rates.

use super::Sender;
use crate::congestion::scope::{Account, Shared};
use crate::packet::{Class, Header, Packet};
use crate::reliability::selective_repeat::Rules;
use clearway_units::Time;

impl Sender {
    /// True if nothing waits to be sent, though it may have to be sent again.
    pub(crate) fn has_sent_all(&self) -> bool {
        !self.messages.has_unsent() && self.lost == 0
    }

    /// Bytes of messages that are not acknowledged as a whole; counting stops above `limit`.
    pub(crate) fn backlog(&self, limit: u64) -> u64 {
        self.messages.backlog(limit)
    }

    /// Payload that waits to be sent, for the first time or again, a packet of the latter for a full one; counting stops above `limit`.
    pub(crate) fn waiting(&self, limit: u64, rules: &Rules) -> u64 {
        let again = u64::from(self.lost) * rules.payload;
        again.saturating_add(self.messages.unsent(limit))
    }

    /// The window in bytes, as it was last allowed.
    pub(crate) fn window(&self) -> f64 {
        self.window
    }

    pub(crate) fn queue_pair(&self) -> u8 {
        self.ends.queue_pair
    }

    /// The next packet that was never sent.
    pub(crate) fn sent_end(&self) -> u64 {
        self.next
    }

    /// Creates a control packet of `size` bytes.
    pub(crate) fn control_packet(&mut self, now: Time, size: u16, header: Header) -> Packet {
        let port = self.paths.next_port(&self.send_state(now));
        let mut packet = self.ends.packet(now, port, header);
        (packet.size, packet.class) = (size, Class::CONTROL);
        packet
    }

    /// True if something waits to be sent or acknowledged.
    pub(crate) fn is_busy(&self) -> bool {
        self.messages.has_unsent() || self.acknowledged != self.next
    }

    /// Payload in flight and delivered.
    pub(crate) fn account(&self) -> Account {
        Account {
            in_flight: self.in_flight,
            delivered: self.received,
        }
    }

    /// Access to the part of the state that a scope shares.
    pub(crate) fn shared(&mut self) -> Shared<'_> {
        Shared {
            others: &mut self.others,
            pacer: &mut self.pacer,
        }
    }
}

//! Progress of a sender, with the packets that it has skipped.

use super::Sender;
use crate::reliability::selective_repeat::Rules;
use crate::report::FlowProgress;
use clearway_units::{Bytes, MessageId, Time};

impl Sender {
    /// Payload that the receiver has reported, and that was [skipped](Self::skip).
    pub(crate) fn progressed(&self) -> Bytes {
        self.acknowledged() + Bytes::new(self.skipped)
    }

    /// Departure time of the last packet.
    pub(crate) fn last_departure(&self) -> Time {
        self.last_departure
    }

    /// Unsent rest of the message that is being sent, with its number.
    pub(crate) fn rest(&self) -> Option<(MessageId, u64)> {
        self.messages.rest()
    }

    /// Takes so many full packets of the message that is being sent for sent, delivered and acknowledged.
    pub(crate) fn skip(&mut self, packets: u64, rules: &Rules) {
        self.messages.skip(packets, rules.payload);
        self.skipped += packets * rules.payload;
    }

    /// The state of the sender, for observers.
    pub(crate) fn progress(&self) -> FlowProgress {
        FlowProgress {
            window: Bytes::new(self.window as u64),
            rate: self.pacer.rate(),
            in_flight: self.in_flight_bytes(),
            acknowledged: self.progressed(),
            unacknowledged_packets: self.next - self.acknowledged,
            lost_packets: self.lost,
            recovering: self.recovering,
            statistics: self.statistics,
        }
    }
}

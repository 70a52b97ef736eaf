//! State of a sender, for observers and for skipping packets.

use super::Sender;
use crate::endpoint::flow::{Messages, Pacer};
use crate::report::FlowProgress;
use clearway_units::Bytes;

impl Sender {
    pub(crate) fn messages(&self) -> &Messages {
        &self.messages
    }

    pub(crate) fn messages_mut(&mut self) -> &mut Messages {
        &mut self.messages
    }

    pub(crate) fn pacer(&self) -> &Pacer {
        &self.pacer
    }

    /// The state of the sender, for observers.
    pub(crate) fn progress(&self) -> FlowProgress {
        FlowProgress {
            window: Bytes::new(self.window as u64),
            rate: self.pacer.rate(),
            in_flight: self.in_flight_bytes(),
            acknowledged: self.acknowledged() + self.messages.skipped(),
            unacknowledged_packets: self.next - self.acknowledged,
            lost_packets: self.lost,
            recovering: self.recovering,
            statistics: self.statistics,
        }
    }
}

//! Data packets that arrive trimmed.

use super::Endpoint;
use crate::congestion::telemetry::Telemetry;
use crate::endpoint::flow::Reports;
use crate::packet::Packet;
use clearway_units::Time;

impl<T: Telemetry> Endpoint<T> {
    /// Processes a data packet without its payload: its receiver answers with a negative acknowledgement, or with a selective one if the
    /// packet has arrived as a whole before. The first packet of a flow may come so.
    #[cold]
    pub(super) fn on_trimmed(&mut self, now: Time, packet: &Packet, psn: u32, telemetry: T) {
        self.counters.trimmed_received += 1;
        let rules = &self.rules;
        let Some(receiving) = self.receivers.find_or_create(now, packet, psn, rules) else {
            let key = super::Key::from_packet(packet);
            let Some(last) = self.receivers.final_ack(key) else {
                self.counters.overflow += 1;
                return;
            };
            if let Some(packet) = last.answer(packet, rules) {
                self.outbox
                    .push(crate::congestion::telemetry::IntPacket { packet, telemetry });
            }
            return;
        };
        let mut reports = Reports {
            outbox: &mut self.outbox,
            events: &mut self.events,
            counters: &mut self.counters,
            telemetry,
        };
        receiving
            .receiver
            .on_trimmed(now, packet, rules, &mut reports);
    }
}

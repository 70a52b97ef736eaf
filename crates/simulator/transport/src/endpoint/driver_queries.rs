//! Queries of a driver of sockets. The simulator, whose packets have no payload and no sockets, does not use them.

use super::Endpoint;
use super::key::Key;
use super::reliability_scheme::Sender;
use crate::congestion::telemetry::Telemetry;
use crate::packet::{Header, Packet};
use clearway_units::FlowId;

impl<T: Telemetry> Endpoint<T> {
    /// True if [`on_packet`](Self::on_packet) would take this packet for payload that has not arrived before. A driver asks before it
    /// places the payload, so that no copy is written into a buffer that its user has got back.
    pub fn accepts(&mut self, packet: &Packet) -> bool {
        let Header::Data { psn, .. } = packet.header else {
            return false;
        };
        match self.receivers.find(Key::from_packet(packet)) {
            Some(receiver) => receiver.accepts(psn, &self.rules),
            None => self.receivers.begins_flow(packet, psn, &self.rules),
        }
    }

    /// Salt of the first queue pair of an open flow: the source port of a packet is its path XOR the salt.
    pub fn path_salt(&self, flow: FlowId) -> Option<u16> {
        self.queue_pairs(flow).next().map(Sender::path_salt)
    }

    /// Payload bytes in flight on all flows, with their sign.
    #[cfg(test)]
    pub(super) fn in_flight_exact(&self) -> i64 {
        let senders = self.slots.iter().filter_map(|slot| slot.sender.as_ref());
        senders.map(Sender::in_flight_exact).sum()
    }

    /// The rule of the receivers here.
    #[cfg(test)]
    pub(crate) fn feedback(&self) -> &crate::congestion::feedback::Feedback {
        self.receivers.feedback()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Pair, PipeSettings, network};
    use crate::{Header, Profile};
    use clearway_units::{Bytes, Rate, Span};
    use std::cell::RefCell;
    use std::rc::Rc;

    #[test]
    fn packets_are_accepted_once_and_paths_follow_from_ports() {
        let network = network(Rate::from_gbps(400), Span::from_us(8));
        let mut pair = Pair::new(Profile::strack(network), PipeSettings::ideal(&network), 1);
        let sent = Rc::new(RefCell::new(Vec::new()));
        let tape = Rc::clone(&sent);
        pair.pipes[1].drop_if(move |_, packet| {
            tape.borrow_mut().push(*packet);
            false
        });
        let flow = pair.send(Bytes::new(100_000));
        assert!(pair.ends[0].path_salt(flow).is_some());
        pair.run();
        let sent = sent.borrow().clone();
        let mut fresh = Pair::new(Profile::strack(network), PipeSettings::ideal(&network), 1);
        for packet in sent {
            let data = matches!(packet.header, Header::Data { .. });
            let end = packet.dst.index();
            assert!(!pair.ends[end].accepts(&packet));
            assert_eq!(fresh.ends[end].accepts(&packet), data);
            fresh.on_packet(end, packet);
            assert!(!fresh.ends[end].accepts(&packet));
        }
    }
}

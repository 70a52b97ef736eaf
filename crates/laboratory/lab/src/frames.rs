//! Frames of a capture as bytes.

use crate::assemble::Assembly;
use crate::record::CapturedFrame;
use clearway_transport::wire::Format;
use clearway_transport::{Header, Packet, Reliability};

impl Assembly {
    /// Writes the beginning of a frame in place of what is in `bytes`, as much as the plan keeps; returns the length of all of it.
    ///
    /// # Panics
    /// If the scenario asks for no capture, so that there can be no frame of it.
    pub fn frame(&self, frame: &CapturedFrame, bytes: &mut Vec<u8>) -> usize {
        let plan = self.capture.as_deref().expect("a frame was captured");
        let format = |packet: &Packet| Format::of(self.reliability_of(packet.flow));
        plan.encode(frame, format, |packet| self.completed(packet), bytes)
    }

    /// The messages that the sender of an acknowledgement has received in full: of its flow's one message, the part of its queue
    /// pair.
    fn completed(&self, packet: &Packet) -> u32 {
        match (packet.header, self.reliability_of(packet.flow)) {
            (Header::Ack { epsn, .. }, Reliability::GoBackN(parameters)) => {
                let flow = self.workload.flow(packet.flow);
                let network = &self.transports.of(flow).profile.network;
                let packets = parameters.packets_of(flow.bytes, packet.queue_pair, network);
                (packets > 0 && u64::from(epsn) >= packets).into()
            }
            _ => 0,
        }
    }
}

//! Frames of a capture as bytes.

use crate::assemble::Assembly;
use crate::record::CapturedFrame;
use clearway_transport::wire::Format;
use clearway_transport::{Header, Packet, Reliability};

impl Assembly {
    /// Replaces the content of `bytes` with the beginning of a frame, as much as the plan keeps; returns the length of the whole frame.
    ///
    /// # Panics
    /// If the scenario does not ask for a capture.
    pub fn frame(&self, frame: &CapturedFrame, bytes: &mut Vec<u8>) -> usize {
        let plan = self.capture.as_deref().expect("a frame was captured");
        let format = |packet: &Packet| Format::for_reliability(self.reliability_of(packet.flow));
        plan.encode(frame, format, |packet| self.completed(packet), bytes)
    }

    /// Number of messages that the sender of an acknowledgement has received in full. Each queue pair carries one part of the flow's only
    /// message.
    fn completed(&self, packet: &Packet) -> u32 {
        match (packet.header, self.reliability_of(packet.flow)) {
            (Header::Ack { epsn, .. }, Reliability::GoBackN(parameters)) => {
                let flow = self.workload.flow(packet.flow);
                let network = &self.transports.flow_transport(flow).profile.network;
                let packets = parameters.packets_of(flow.bytes, packet.queue_pair, network);
                (packets > 0 && u64::from(epsn) >= packets).into()
            }
            _ => 0,
        }
    }
}

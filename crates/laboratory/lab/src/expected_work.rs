//! Lower bound of the work of a run: its flows on their shortest paths, without losses and retransmissions.

use crate::assemble::Assembly;
use clearway_transport::Reliability;
use clearway_units::FlowId;
use clearway_workload::{FlowSpec, Start};

/// Lower bound of the work of a run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ExpectedWork {
    /// Flows, including the connections of jobs.
    pub flows: u64,
    /// Payload of all flows, in bytes.
    pub payload: u64,
    /// Data packets.
    pub data_packets: u64,
    /// Link crossings of data packets and their acknowledgements.
    pub packet_hops: u64,
}

impl Assembly {
    /// Work of the run. Of the packets of a message, all but one count as full. Acknowledgements count as the transport groups them.
    pub fn expected_work(&self) -> ExpectedWork {
        let mut work = ExpectedWork::default();
        let listed = self.workload.flows.iter().cloned();
        let streamed = self.arrivals.iter().cloned().flatten();
        for (number, flow) in (0..).zip(listed.chain(streamed)) {
            self.add(FlowId(number), &flow, &mut work);
        }
        work
    }

    fn add(&self, id: FlowId, flow: &FlowSpec, work: &mut ExpectedWork) {
        let profile = &self.transports.flow_transport(flow).profile;
        let payload = u64::from(profile.network.payload);
        let bytes = flow.bytes.as_u64();
        let messages = match flow.start {
            Start::Posted(messages) => u64::from(messages),
            _ => 1,
        };
        // Each message may end with a packet that is not full.
        let packets = bytes.div_ceil(payload).max(messages);
        let (from, to) = self.ends(id, flow);
        let links = u64::from(self.routes.paths.between(from, to).hops);
        let of_one_ack = match &profile.reliability {
            Reliability::GoBackN(settings) => f64::from(settings.ack_interval.get()),
            Reliability::SelectiveRepeat(settings) => settings
                .ack_bytes
                .map_or(1.0, |bytes| bytes.as_f64() / payload as f64),
        };
        let acks = packets as f64 / of_one_ack.max(1.0);
        work.flows += 1;
        work.payload += bytes;
        work.data_packets += packets;
        work.packet_hops += links * (packets + acks as u64);
    }
}

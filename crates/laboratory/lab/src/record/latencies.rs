//! Largest packet latency of each flow.

use super::Merge;
use clearway_fabric::topology::NodeId;
use clearway_fabric::{Interests, Observer};
use clearway_transport::Packet;
use clearway_units::{FlowId, Span, Time};

/// Records the largest latency of the data packets of each flow, from the instant at which the sender puts a packet on the wire until it
/// arrives at the receiver. Dropped packets do not count; retransmitted packets do.
#[derive(Debug, Clone, Default)]
pub struct PacketLatencyRecorder(Vec<Span>);

impl PacketLatencyRecorder {
    /// The largest latency of a flow's packets; zero if no packet has arrived.
    pub fn largest(&self, flow: FlowId) -> Span {
        self.0.get(flow.index()).copied().unwrap_or(Span::ZERO)
    }
}

impl Observer for PacketLatencyRecorder {
    fn interests(&self) -> Interests {
        Interests {
            arrivals: true,
            ..Interests::NONE
        }
    }

    fn on_arrival(&mut self, now: Time, node: NodeId, packet: &Packet) {
        if node.0 != packet.dst.0 || !packet.can_be_trimmed() {
            return;
        }
        let flow = packet.flow.index();
        if flow >= self.0.len() {
            self.0.resize(flow + 1, Span::ZERO);
        }
        self.0[flow] = self.0[flow].max(now.since(packet.stamp));
    }
}

impl Merge for PacketLatencyRecorder {
    fn merge(&mut self, other: Self) {
        if other.0.len() > self.0.len() {
            self.0.resize(other.0.len(), Span::ZERO);
        }
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own = (*own).max(other);
        }
    }
}

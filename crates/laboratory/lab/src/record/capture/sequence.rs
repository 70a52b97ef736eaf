//! Time-sequence graphs from captured frames.

use super::{Capture, CapturePlan, Content};
use clearway_fabric::topology::{NodeId, Topology};
use clearway_results::{FlowSequence, SequenceKind, SequencePoint};
use clearway_transport::{DataFlags, Header, Packet};
use clearway_units::FlowId;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Maximum number of queue pairs with a graph.
pub(super) const MOST_GRAPHS: usize = 4;

impl Capture {
    /// Time-sequence graphs of the queue pairs with most frames at captured hosts, the fullest first: data packets as they leave their
    /// sender and reach their receiver, and acknowledgements as they reach the sender.
    pub fn sequences(&self, plan: &CapturePlan, topology: &Topology) -> Vec<FlowSequence> {
        let ends: Vec<(NodeId, NodeId)> = plan
            .places
            .iter()
            .map(|place| topology.link_ends(place.link))
            .collect();
        let mut graphs: BTreeMap<(FlowId, u8), FlowSequence> = BTreeMap::new();
        for frame in &self.frames {
            let Content::Packet(packet) = &frame.content else {
                continue;
            };
            let (from, to) = ends[frame.place];
            let leaves = from == Topology::host_node(packet.src);
            let arrives = to == Topology::host_node(packet.dst);
            let Some((kind, psn)) = kind(packet, leaves, arrives) else {
                continue;
            };
            let is_data = matches!(packet.header, Header::Data { .. });
            let (src, dst) = match is_data {
                true => (packet.src.0, packet.dst.0),
                false => (packet.dst.0, packet.src.0),
            };
            let graph = graphs
                .entry((packet.flow, packet.queue_pair))
                .or_insert_with(|| FlowSequence {
                    flow: packet.flow.0,
                    queue_pair: packet.queue_pair,
                    src,
                    dst,
                    points: Vec::new(),
                });
            graph.points.push(SequencePoint {
                time: frame.time,
                kind,
                psn,
            });
        }
        let mut graphs: Vec<FlowSequence> = graphs.into_values().collect();
        graphs.sort_by_key(|graph| Reverse(graph.points.len()));
        graphs.truncate(MOST_GRAPHS);
        graphs
    }
}

/// Kind and sequence number of a packet that leaves or reaches a host; `None` for others, and for packets without a sequence number.
fn kind(packet: &Packet, leaves: bool, arrives: bool) -> Option<(SequenceKind, u32)> {
    Some(match packet.header {
        Header::Data { psn, flags, .. } if leaves => {
            match flags.contains(DataFlags::RETRANSMISSION) {
                true => (SequenceKind::Retransmitted, psn),
                false => (SequenceKind::Sent, psn),
            }
        }
        Header::Data { psn, flags, .. } if arrives => match (flags, packet.ecn) {
            (flags, _) if flags.contains(DataFlags::TRIMMED) => (SequenceKind::Trimmed, psn),
            (_, true) => (SequenceKind::Marked, psn),
            (_, false) => (SequenceKind::Received, psn),
        },
        Header::Sack { epsn, .. } if arrives => match packet.ecn {
            true => (SequenceKind::MarkEchoed, epsn),
            false => (SequenceKind::Acknowledged, epsn),
        },
        Header::Ack {
            epsn, nack: true, ..
        } if arrives => (SequenceKind::NegativelyAcknowledged, epsn),
        Header::Ack { epsn, marked, .. } if arrives => match marked {
            true => (SequenceKind::MarkEchoed, epsn),
            false => (SequenceKind::Acknowledged, epsn),
        },
        Header::Nack { psn, .. } if arrives => (SequenceKind::NegativelyAcknowledged, psn),
        _ => return None,
    })
}

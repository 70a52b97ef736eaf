//! What an endpoint reports: events, counters, the state of a flow.

use crate::cc::LossCause;
use crate::spray::PathId;
use clearway_units::{Bytes, FlowId, MessageId, Rate, Span, Time};

/// Something that the user of an endpoint wants to know.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    /// Every packet of a message has been acknowledged.
    Sent {
        /// The flow.
        flow: FlowId,
        /// The message, as posted.
        message: MessageId,
        /// Its length.
        bytes: Bytes,
        /// The flow so far, all of its messages together.
        statistics: FlowStatistics,
    },
    /// Every packet of a message has arrived.
    Received {
        /// The flow.
        flow: FlowId,
        /// The message, as posted at the other end.
        message: MessageId,
        /// Its length.
        bytes: Bytes,
    },
    /// An acknowledgement was processed. Only with [tracing](crate::Endpoint::set_tracing).
    Ack {
        /// The flow.
        flow: FlowId,
        /// The present.
        now: Time,
        /// Round-trip time of the packet that was acknowledged.
        rtt: Span,
        /// It was marked.
        ecn: bool,
        /// The window, after this acknowledgement.
        window: Bytes,
        /// In flight, after this acknowledgement.
        in_flight: Bytes,
        /// The path of the packet that was acknowledged.
        path: PathId,
    },
    /// Packets were declared lost. Only with [tracing](crate::Endpoint::set_tracing).
    Loss {
        /// The flow.
        flow: FlowId,
        /// The present.
        now: Time,
        /// How it was found.
        cause: LossCause,
        /// How many.
        packets: u32,
    },
}

/// What a flow has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowStatistics {
    /// Data packets sent, retransmissions included.
    pub packets: u64,
    /// Of these, retransmissions.
    pub retransmitted: u64,
    /// Acknowledgements that echoed a mark.
    pub marked: u32,
    /// Probes sent.
    pub probes: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// When the first packet left.
    pub first_send: Time,
}

/// The state of a flow's sender, for observers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowProgress {
    /// The congestion window.
    pub window: Bytes,
    /// The pacing rate, if it is paced.
    pub rate: Option<Rate>,
    /// Payload bytes in flight.
    pub in_flight: Bytes,
    /// Payload bytes that the receiver has reported.
    pub acknowledged: Bytes,
    /// Packets from the first that is not acknowledged to the last that was sent.
    pub unacknowledged_packets: u64,
    /// Packets that were declared lost and wait to be sent again.
    pub lost_packets: u32,
    /// In loss recovery.
    pub recovering: bool,
    /// What it has done so far.
    pub statistics: FlowStatistics,
}

/// What an endpoint has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointCounters {
    /// Data packets sent, retransmissions included.
    pub data_sent: u64,
    /// Of these, retransmissions.
    pub retransmitted: u64,
    /// Data packets that arrived, duplicates included.
    pub data_received: u64,
    /// Of these, packets that had arrived before.
    pub duplicates: u64,
    /// Data packets dropped because they lay beyond the receiver's bitmap.
    pub overflow: u64,
    /// Data packets that arrived marked.
    pub marked: u64,
    /// Acknowledgements sent.
    pub sacks_sent: u64,
    /// Acknowledgements that arrived.
    pub sacks_received: u64,
    /// Of these, for flows that are not (or no longer) open here.
    pub stray: u64,
    /// Of these, that acknowledge what was never sent.
    pub invalid: u64,
    /// Probes sent.
    pub probes_sent: u64,
    /// Probes that arrived.
    pub probes_received: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Packets declared lost because too many overtook them.
    pub lost_out_of_order: u64,
    /// Packets declared lost by a probe.
    pub lost_probe: u64,
    /// Packets declared lost by a timeout.
    pub lost_timeout: u64,
}

impl EndpointCounters {
    /// Adds what another endpoint has counted.
    pub fn merge(&mut self, other: &Self) {
        self.data_sent += other.data_sent;
        self.retransmitted += other.retransmitted;
        self.data_received += other.data_received;
        self.duplicates += other.duplicates;
        self.overflow += other.overflow;
        self.marked += other.marked;
        self.sacks_sent += other.sacks_sent;
        self.sacks_received += other.sacks_received;
        self.stray += other.stray;
        self.invalid += other.invalid;
        self.probes_sent += other.probes_sent;
        self.probes_received += other.probes_received;
        self.timeouts += other.timeouts;
        self.lost_out_of_order += other.lost_out_of_order;
        self.lost_probe += other.lost_probe;
        self.lost_timeout += other.lost_timeout;
    }
}

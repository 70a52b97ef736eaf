//! Reports of an endpoint: events, counters, the state of a flow.

use crate::congestion::LossCause;
use crate::paths::PathId;
use clearway_units::{Bytes, FlowId, MessageId, Rate, Span, Time};

/// Event that an endpoint reports to its user.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    /// Every packet of a message has been acknowledged.
    Sent {
        /// The flow.
        flow: FlowId,
        /// The message, as posted.
        message: MessageId,
        /// Length of the message.
        bytes: Bytes,
        /// Statistics of the flow so far, all of its messages together.
        statistics: FlowStatistics,
    },
    /// Every packet of a message has arrived.
    Received {
        /// The flow.
        flow: FlowId,
        /// The message, as posted at the other end.
        message: MessageId,
        /// Length of the message.
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
        /// True if that packet was marked.
        ecn: bool,
        /// The window, after this acknowledgement.
        window: Bytes,
        /// Bytes in flight, after this acknowledgement.
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
        /// Signal by which the loss was detected.
        cause: LossCause,
        /// Number of packets declared lost.
        packets: u32,
    },
}

/// Statistics of a flow so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowStatistics {
    /// Data packets sent, retransmissions included.
    pub packets: u64,
    /// Retransmissions among these packets.
    pub retransmitted: u64,
    /// Acknowledgements that echoed a mark.
    pub marked: u32,
    /// Probes sent.
    pub probes: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Negative acknowledgements: requests to go back, and answers to trimmed packets.
    pub nacks: u32,
    /// Congestion notifications that came.
    pub notifications: u32,
    /// Departure time of the first packet.
    pub first_send: Time,
}

impl FlowStatistics {
    /// Adds the statistics of another queue pair of the flow.
    pub fn merge(&mut self, other: &Self) {
        if self.packets == 0 || (other.packets > 0 && other.first_send < self.first_send) {
            self.first_send = other.first_send;
        }
        self.packets += other.packets;
        self.retransmitted += other.retransmitted;
        self.marked += other.marked;
        self.probes += other.probes;
        self.timeouts += other.timeouts;
        self.nacks += other.nacks;
        self.notifications += other.notifications;
    }
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
    /// True during loss recovery.
    pub recovering: bool,
    /// Statistics of the flow so far.
    pub statistics: FlowStatistics,
}

impl FlowProgress {
    /// Adds the state of another queue pair of the flow.
    pub fn merge(&mut self, other: &Self) {
        let sum = |a: Bytes, b: Bytes| Bytes::new(a.as_u64().saturating_add(b.as_u64()));
        self.window = sum(self.window, other.window);
        self.rate = match (self.rate, other.rate) {
            (Some(a), Some(b)) => Some(Rate::from_bps(a.as_bps() + b.as_bps())),
            _ => None,
        };
        self.in_flight = sum(self.in_flight, other.in_flight);
        self.acknowledged = sum(self.acknowledged, other.acknowledged);
        self.unacknowledged_packets += other.unacknowledged_packets;
        self.lost_packets += other.lost_packets;
        self.recovering |= other.recovering;
        self.statistics.merge(&other.statistics);
    }
}

/// Limit that keeps a queue pair from sending its next packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SendLimit {
    /// Only the wire: it sends as soon as its turn comes.
    Wire,
    /// Pacing.
    Pacing,
    /// The window, of congestion control or of the receiver's bitmap.
    Window,
    /// Credit from the receiver.
    Credit,
    /// The application: everything that was posted has been sent, and nothing waits for retransmission.
    Application,
}

/// Counters of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointCounters {
    /// Data packets sent, retransmissions included.
    pub data_sent: u64,
    /// Retransmissions among the data packets sent.
    pub retransmitted: u64,
    /// Data packets that arrived, duplicates included.
    pub data_received: u64,
    /// Data packets that had arrived before.
    pub duplicates: u64,
    /// Data packets dropped because they lay beyond the receiver's bitmap, or had no receiver and did not begin a flow.
    pub overflow: u64,
    /// Data packets that a go-back-N receiver discarded because an earlier one was missing.
    pub discarded: u64,
    /// Data packets that arrived marked.
    pub marked: u64,
    /// Acknowledgements sent, selective or cumulative.
    pub sacks_sent: u64,
    /// Acknowledgements that arrived.
    pub sacks_received: u64,
    /// Negative acknowledgements queued: requests to go back, and answers to trimmed packets.
    pub nacks_sent: u64,
    /// Negative acknowledgements of open flows.
    pub nacks_received: u64,
    /// Congestion notifications sent.
    pub notifications_sent: u64,
    /// Congestion notifications that arrived.
    pub notifications_received: u64,
    /// Acknowledgements and notifications for flows that are not (or no longer) open here.
    pub stray: u64,
    /// Acknowledgements of packets that were never sent, or of another reliability scheme.
    pub invalid: u64,
    /// Control packets of s-PERC or 1RC sent.
    pub rate_controls_sent: u64,
    /// Control packets that a receiver has reflected.
    pub rate_controls_reflected: u64,
    /// Control packets that have come back.
    pub rate_controls_received: u64,
    /// Control packets that were taken for lost.
    pub rate_controls_lost: u64,
    /// Speculative data packets sent (1RC).
    pub speculative_sent: u64,
    /// Speculative data packets that links did not let through.
    pub speculative_dropped: u64,
    /// Pulls sent: credit for senders.
    pub pulls_sent: u64,
    /// Pulls that arrived.
    pub pulls_received: u64,
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
    /// Packets sent again because a NACK asked for them or for one before them.
    pub lost_go_back: u64,
    /// Packets sent again because they have arrived trimmed.
    pub lost_trimmed: u64,
    /// Data packets that arrived trimmed, without their payload; not among `data_received`.
    pub trimmed_received: u64,
}

impl EndpointCounters {
    /// Adds the counters of another endpoint.
    pub fn merge(&mut self, other: &Self) {
        self.data_sent += other.data_sent;
        self.retransmitted += other.retransmitted;
        self.data_received += other.data_received;
        self.duplicates += other.duplicates;
        self.overflow += other.overflow;
        self.discarded += other.discarded;
        self.marked += other.marked;
        self.nacks_sent += other.nacks_sent;
        self.nacks_received += other.nacks_received;
        self.notifications_sent += other.notifications_sent;
        self.notifications_received += other.notifications_received;
        self.sacks_sent += other.sacks_sent;
        self.sacks_received += other.sacks_received;
        self.stray += other.stray;
        self.invalid += other.invalid;
        self.rate_controls_sent += other.rate_controls_sent;
        self.rate_controls_reflected += other.rate_controls_reflected;
        self.rate_controls_received += other.rate_controls_received;
        self.rate_controls_lost += other.rate_controls_lost;
        self.speculative_sent += other.speculative_sent;
        self.speculative_dropped += other.speculative_dropped;
        self.pulls_sent += other.pulls_sent;
        self.pulls_received += other.pulls_received;
        self.probes_sent += other.probes_sent;
        self.probes_received += other.probes_received;
        self.timeouts += other.timeouts;
        self.lost_out_of_order += other.lost_out_of_order;
        self.lost_probe += other.lost_probe;
        self.lost_timeout += other.lost_timeout;
        self.lost_go_back += other.lost_go_back;
        self.lost_trimmed += other.lost_trimmed;
        self.trimmed_received += other.trimmed_received;
    }

    pub(crate) fn note_loss(&mut self, cause: LossCause, packets: u32) {
        let count = match cause {
            LossCause::OutOfOrder => &mut self.lost_out_of_order,
            LossCause::Probe => &mut self.lost_probe,
            LossCause::Timeout => &mut self.lost_timeout,
            LossCause::GoBack => &mut self.lost_go_back,
            LossCause::Trimmed { .. } => &mut self.lost_trimmed,
        };
        *count += u64::from(packets);
    }
}

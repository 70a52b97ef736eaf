//! Packets of a flow by time and sequence number, as in a time-sequence graph.

use clearway_units::Time;

/// Kind of a packet in a time-sequence graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SequenceKind {
    /// The sender sends a data packet for the first time.
    Sent,
    /// The sender sends a data packet again.
    Retransmitted,
    /// A data packet reaches its receiver.
    Received,
    /// A data packet with a congestion mark reaches its receiver.
    Marked,
    /// A data packet without its payload reaches its receiver.
    Trimmed,
    /// An acknowledgement reaches the sender: the number of the packet that the receiver expects next.
    Acknowledged,
    /// An acknowledgement that says a packet was marked reaches the sender.
    MarkEchoed,
    /// A negative acknowledgement reaches the sender: the number of the missing packet.
    NegativelyAcknowledged,
}

impl SequenceKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Sent,
        Self::Retransmitted,
        Self::Received,
        Self::Marked,
        Self::Trimmed,
        Self::Acknowledged,
        Self::MarkEchoed,
        Self::NegativelyAcknowledged,
    ];

    /// Name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Retransmitted => "sent again",
            Self::Received => "received",
            Self::Marked => "received, marked",
            Self::Trimmed => "received, trimmed",
            Self::Acknowledged => "acknowledged",
            Self::MarkEchoed => "acknowledged, with a mark",
            Self::NegativelyAcknowledged => "negatively acknowledged",
        }
    }
}

/// A packet in a time-sequence graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequencePoint {
    /// Time at which the last bit of the packet leaves for the host, or the host.
    pub time: Time,
    /// Kind of the packet.
    pub kind: SequenceKind,
    /// Packet sequence number.
    pub psn: u32,
}

/// Packets of a queue pair of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowSequence {
    /// Number of the flow.
    pub flow: u32,
    /// Number of the queue pair within the flow, from zero.
    pub queue_pair: u8,
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// The packets in the order of time.
    pub points: Vec<SequencePoint>,
}

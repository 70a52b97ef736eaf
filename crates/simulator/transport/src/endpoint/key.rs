//! Number of a queue pair in an endpoint.

use crate::packet::Packet;
use clearway_units::FlowId;

/// A queue pair of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key(u64);

impl Key {
    #[inline]
    pub(crate) fn new(flow: FlowId, queue_pair: u8) -> Self {
        Self(u64::from(flow.0) | u64::from(queue_pair) << 32)
    }

    /// The key as a number.
    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// The queue pair that a packet is for.
    #[inline]
    pub(crate) fn from_packet(packet: &Packet) -> Self {
        Self::new(packet.flow, packet.queue_pair)
    }
}

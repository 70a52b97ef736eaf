//! Counters of links and of the whole fabric.

/// Counters of a directed link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ForwardedLinkCounters {
    /// Packets that have left the queue, whatever their fate.
    pub packets: u64,
    /// Bytes of these packets, with IP headers.
    pub bytes: u64,
    /// Packets that this link has marked.
    pub marked: u64,
    /// Packets that found the queue full.
    pub queue_full: u64,
    /// Packets lost because the link was down.
    pub down: u64,
    /// Packets lost by the impairment `loss`, and by the scenario's packet loss and bit errors.
    pub lost: u64,
    /// Copies that the impairment `duplicate` has made.
    pub duplicated: u64,
    /// Packets that the impairment `reorder` has held back.
    pub reordered: u64,
    /// Packets in which the impairment `corrupt` has changed a bit.
    pub corrupted: u64,
    /// Most bytes in the queue at any time, including the packet in transmission.
    pub largest_queue: u64,
}

impl ForwardedLinkCounters {
    /// Packets that have not reached the far end.
    pub fn dropped(&self) -> u64 {
        self.queue_full + self.down + self.lost
    }
}

/// Counters of packets at the edge of the fabric.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets that hosts have sent.
    pub received: u64,
    /// Packets handed to hosts.
    pub delivered: u64,
    /// Packets without a valid IP header.
    pub malformed: u64,
    /// Packets whose destination is not a host of the fabric, such as multicast.
    pub no_route: u64,
    /// Packets dropped for lack of memory, or longer than the fabric accepts.
    pub no_memory: u64,
}

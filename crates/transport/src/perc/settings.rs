//! Settings of a network that allocates rates, as its hosts and links share them.

use super::link::{EpochParameters, LinkParameters};
use crate::cc::NetworkFacts;
use clearway_units::{Bytes, Rate, Span};

/// Rounds are so many of the longest unloaded round trips long: the time between two control packets of a flow, with some queueing.
const ROUND: u64 = 2;

/// Settings of rate allocation by s-PERC, or 1RC.
#[derive(Debug, Clone, PartialEq)]
pub struct RateAllocation {
    /// Messages of at most so many bytes are exempt: they are sent at line rate without control packets.
    pub exempt: Bytes,
    /// Part of the capacity of each link that is given to flows.
    pub headroom: f64,
    /// A flow has the weight 1/k, with k open connections at its host; else 1.
    pub weights: bool,
    /// Bytes of a control packet on the wire.
    pub control: u32,
    /// 1RC: flows send before they have a rate.
    pub speculation: Option<Speculation>,
}

/// Settings of 1RC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speculation {
    /// Length of an epoch.
    pub epoch: Span,
    /// The clocks of two hosts differ by at most so much.
    pub clock_skew: Span,
}

impl RateAllocation {
    /// Settings of the agent of a link.
    pub fn link(&self, network: &NetworkFacts, capacity: Rate) -> LinkParameters {
        LinkParameters {
            capacity,
            headroom: self.headroom,
            round: network.base_rtt * ROUND,
            epochs: self.speculation.map(|speculation| EpochParameters {
                length: speculation.epoch,
                max_rtt: network.base_rtt,
                packet: Bytes::new(u64::from(network.payload + network.header)),
                bdp_packets: bdp_packets(network),
            }),
        }
    }
}

/// Bandwidth-delay product of a host in full packets, rounded down, at least one.
pub(crate) fn bdp_packets(network: &NetworkFacts) -> u32 {
    let packet = u64::from(network.payload + network.header).max(1);
    let packets = network.bdp.as_u64() / packet;
    packets.clamp(1, u32::MAX.into()) as u32
}

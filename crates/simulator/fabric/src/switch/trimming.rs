//! Packet trimming: a full data queue cuts the payload off a packet instead of dropping it (NDP, UEC).

use super::parameters::{QueueRules, TrimVictim};
use clearway_transport::Packet;
use clearway_units::{Purpose, RandomStream};

/// Trimming at one egress port.
#[derive(Debug)]
pub(super) struct Trimming {
    size: u16,
    victim: TrimVictim,
    /// The link leads to a host.
    last_hop: bool,
    /// Bytes in the queue of control above which its packets are dropped: twice the limit of the data queue, as trimmed packets are there.
    pub(super) control_limit: u64,
    random: RandomStream,
}

impl Trimming {
    /// Trimming before the link with the number `link`; `None` if packets that do not fit are dropped.
    pub(super) fn new(
        rules: &QueueRules,
        seed: u64,
        link: u32,
        last_hop: bool,
    ) -> Option<Box<Self>> {
        let size = rules.trim_size?;
        Some(Box::new(Self {
            size,
            victim: rules.trim_victim,
            last_hop,
            control_limit: rules.limit.saturating_mul(2),
            random: RandomStream::new(seed, Purpose::Trimming, link.into()),
        }))
    }

    /// Decides whether the arriving packet is trimmed itself, or the youngest that waits if it can take its place.
    pub(super) fn takes_arriving(&mut self) -> bool {
        match self.victim {
            TrimVictim::Arriving => true,
            TrimVictim::Random => self.random.next_u32() & 1 == 0,
        }
    }

    /// Cuts the payload off a packet.
    pub(super) fn trim(&self, packet: &mut Packet) {
        packet.trim(self.size, self.last_hop);
    }
}

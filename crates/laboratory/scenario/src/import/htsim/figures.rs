//! Figures that `htsim_uec` computes from the fabric.

use super::inputs::Inputs;
use crate::limits::LONGEST;
use clearway_formats::{HtsimCommand, HtsimOption, TopoFile};
use clearway_units::{Bytes, Rate, Span};

/// Source of a figure that no option sets.
pub(super) const DEFAULT: &str = "htsim's default";

/// Size of an acknowledgement.
const ACK: u64 = 64;

/// Figures of the fabric, as `htsim_uec` computes them.
#[derive(Debug)]
pub(super) struct Network {
    /// Bytes of a full packet, headers included.
    pub(super) mtu: u64,
    /// Rate of the NICs.
    pub(super) line_rate: Rate,
    /// Source of the rate.
    pub(super) rate_source: String,
    /// Delay from a host to the farthest host, and links on the way; `None` if the topology's file is not here.
    path: Option<(Span, u64)>,
}

impl Network {
    pub(super) fn new(command: &HtsimCommand, inputs: &Inputs) -> Self {
        let whole = |name, default| {
            let option = command.last(name);
            option.and_then(|option| option.whole(0)).unwrap_or(default)
        };
        let span = |name, default| {
            let option = command.last(name);
            option.and_then(HtsimOption::duration).unwrap_or(default)
        };
        let rate = command.last("-linkspeed");
        let path = match (command.has("-topo"), &inputs.topo) {
            (true, None) => None,
            (true, Some(topo)) => Some(longest_path(topo)),
            (false, _) => {
                let tiers = whole("-tiers", 3);
                let links = span("-hop_latency", Span::from_us(1)).as_ps();
                let links = links.saturating_mul(2 * tiers);
                let switches = span("-switch_latency", Span::ZERO).as_ps();
                let switches = switches.saturating_mul(2 * tiers - 1);
                Some((Span::from_ps(links.saturating_add(switches)), 2 * tiers))
            }
        };
        Self {
            mtu: whole("-mtu", 4150),
            line_rate: rate
                .and_then(HtsimOption::rate)
                .unwrap_or(Rate::from_gbps(100)),
            rate_source: rate.map_or_else(|| DEFAULT.into(), ToString::to_string),
            path,
        }
    }

    /// Bandwidth-delay product in packets: the round trip with the serialisation of a packet and an acknowledgement on each link.
    pub(super) fn bdp_packets(&self) -> Option<u64> {
        let bits = u128::from(self.round_trip()?.as_ps()) * u128::from(self.line_rate.as_bps());
        let packet = u128::from(self.mtu) * 8 * 1_000_000_000_000;
        u64::try_from(bits.div_ceil(packet)).ok()
    }

    /// Bandwidth-delay product in bytes, rounded down.
    pub(super) fn bdp(&self) -> Option<u64> {
        let bits = u128::from(self.round_trip()?.as_ps()) * u128::from(self.line_rate.as_bps());
        u64::try_from(bits / 8_000_000_000_000).ok()
    }

    fn round_trip(&self) -> Option<Span> {
        let (delay, links) = self.path?;
        let bits = u128::from((self.mtu + ACK) * 8 * links);
        let sending = bits * 1_000_000_000_000 / u128::from(self.line_rate.as_bps());
        let sending = u64::try_from(sending).ok()?;
        let whole = delay.as_ps().checked_mul(2)?.checked_add(sending)?;
        Some(Span::from_ps(whole))
    }

    /// Bytes of so many packets.
    pub(super) fn packets(&self, count: u64) -> Bytes {
        Bytes::new(count.saturating_mul(self.mtu))
    }

    /// Timeout with queues of this size: 15 us and the time to send six of them.
    pub(super) fn timeout(&self, queue: Bytes) -> Span {
        let bits = u128::from(queue.as_u64()) * 6 * 8 * 1_000_000_000_000;
        let sending = bits / u128::from(self.line_rate.as_bps());
        let sending = u64::try_from(sending).unwrap_or(u64::MAX);
        Span::from_ps(sending.saturating_add(15_000_000)).min(LONGEST)
    }
}

/// Delay and links between the hosts that are farthest apart.
fn longest_path(topo: &TopoFile) -> (Span, u64) {
    let tiers = &topo.tiers;
    let up_and_down = tiers.iter().enumerate().map(|(tier, spec)| {
        let passes = if tier + 1 == tiers.len() { 1 } else { 2 };
        let links = spec.downlink_latency.as_ps().saturating_mul(2);
        links.saturating_add(spec.switch_latency.as_ps().saturating_mul(passes))
    });
    let delay = up_and_down.fold(0u64, u64::saturating_add);
    (Span::from_ps(delay), 2 * tiers.len() as u64)
}

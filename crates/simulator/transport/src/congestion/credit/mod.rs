//! RCCC, receiver credits (Ultra Ethernet 1.0): a receiver shares out the rate of its host by credit, and senders send while they have any.
//!
//! Every data packet and probe tells the receiver up to where its sender could use credit: the *pull target*, in quanta since the beginning
//! of the flow. All receivers of a host have one *pacer*. It takes the flows that want credit in turn and grants each a few packets' worth
//! by a pull packet, at the rate at which the host's link carries the granted packets. Pulls are cumulative, so that the next one makes up
//! for a lost one. A sender begins with the credit of its first window and may spend it before the first answer (it *speculates*); the rest
//! of that credit is void after the first answer.
//!
//! Credit is a gate beside the window of the [controller](crate::congestion): a packet needs both. It counts bytes on the wire,
//! retransmitted packets included.
//!
//! The source is the UEC reference simulator; the idea comes from EQDS. Other settings turn it into EQDS (a quantum of 512 B, eight of them
//! a pull) or into the pulls of NDP (one packet a pull, a first credit of 15 packets).
//!
//! # Decisions
//! * A pull grants four full packets whatever their size (U11). Targets are worked out with their sign and rounded up (U12).
//! * The RTS of the reference is a probe here, without a sequence number (U10): it carries the target, at most once per retransmission
//!   timeout and flow, when a sender waits for credit without having heard anything, or when a timeout finds no credit or no window (U33).
//!   The receiver answers with an acknowledgement, and remembers the flow even if no data has come.
//! * A pull takes the path of the last packet of its flow; the reference counts through 128 paths (U31).
//! * A flow that has nothing outstanding and is given a new message begins anew: it speculates with a first window.
//! * Flows that have received all are granted nothing more.

mod pacer;
mod sender;
#[cfg(test)]
mod tests;

pub(crate) use pacer::Pacer;
pub(crate) use sender::{Demand, SenderCredit};

use crate::congestion::NetworkFacts;
use clearway_units::{Bytes, Rate, Span};

clearway_units::choices! {
    /// Rule by which receivers grant credit.
    pub enum CreditScheme {
        /// No credit is needed.
        None = "none",
        /// As RCCC of Ultra Ethernet has it.
        Rccc = "rccc",
    }
}

clearway_units::parameters! {
    /// Settings of receiver credits.
    pub struct CreditParameters {
        /// Receiver credits, which senders need in addition to the controller's window: "none" or "rccc". They need selective repeat.
        pub scheme: CreditScheme = CreditScheme::None, "credit.kind", "STrack has none; UEC 1.0: optional";
        /// Unit of credit.
        pub quantum: Bytes = Bytes::new(256), "credit.quantum", "UEC 1.0: 256 B";
        /// Credit of one pull; `"auto"` is four full packets.
        pub pull: Option<Bytes> = None, "credit.pull", "UEC reference simulator: 16 KiB (U11)";
        /// Rate at which a host grants credit, as a share of its line rate.
        pub rate: f64 = 0.99, "credit.rate", "UEC reference simulator";
        /// Initial and largest credit of a flow, in bandwidth-delay products on the wire.
        pub window_bdps: f64 = 1.5, "credit.window-bdps", "UEC reference simulator";
        /// Grant a flow credit beyond its request while no other flow wants any, up to its largest credit.
        pub idle_pulls: bool = true, "credit.idle-pulls", "UEC reference simulator";
    }
}

/// [`CreditParameters`] resolved for one host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CreditRules {
    /// Bytes of a quantum.
    pub(crate) quantum: i64,
    /// Quanta of a pull.
    pub(crate) pull: u16,
    /// Quanta that a flow may have been granted beyond its target.
    pub(crate) most_idle: u16,
    pub(crate) idle_pulls: bool,
    /// Bytes that a flow begins with, and the most that it has.
    pub(crate) window: i64,
    /// Bytes of a full packet on the wire, and of its headers.
    pub(crate) packet: i64,
    pub(crate) header: i64,
    rate: Rate,
}

impl CreditRules {
    /// The most quanta by which a counter modulo 2^16 can be ahead without looking behind.
    const MOST_QUANTA: i64 = (1 << 15) - 1;

    pub(crate) fn new(parameters: &CreditParameters, network: &NetworkFacts) -> Self {
        let packet = i64::from(network.payload + network.header);
        let quantum = (parameters.quantum.as_u64().max(1)).min(u32::MAX.into()) as i64;
        let pull = parameters
            .pull
            .map_or(4 * i64::from(network.payload), |pull| {
                pull.as_u64().min(u32::MAX.into()) as i64
            });
        let window = parameters.window_bdps.max(0.0) * network.bdp.as_f64();
        let most = Self::MOST_QUANTA / 2 * quantum;
        let window = (window as i64).clamp(packet.min(most), most);
        Self {
            quantum,
            pull: ((pull + quantum - 1) / quantum).clamp(1, Self::MOST_QUANTA / 2) as u16,
            most_idle: (window / quantum) as u16,
            idle_pulls: parameters.idle_pulls,
            window,
            packet,
            header: i64::from(network.header),
            rate: share(network.line_rate, parameters.rate),
        }
    }

    /// Time in which the link of the host carries the bytes of so many quanta.
    pub(crate) fn span_of(&self, quanta: u16) -> Span {
        let bytes = i64::from(quanta) * self.quantum;
        let span = self.rate.span_of(Bytes::new(bytes as u64));
        span.max(Span::from_ps(1))
    }
}

/// A share of a rate, at least a bit per second.
fn share(rate: Rate, share: f64) -> Rate {
    let bps = rate.as_bps() as f64 * share.clamp(0.0, 1.0);
    Rate::from_bps((bps as u64).max(1))
}

/// Signed distance from `from` to `to` on a counter modulo 2^16.
pub(crate) fn distance(from: u16, to: u16) -> i16 {
    to.wrapping_sub(from) as i16
}

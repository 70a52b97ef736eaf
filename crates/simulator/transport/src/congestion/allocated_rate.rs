//! s-PERC and 1RC: the rate that the links of the path have allocated (Snyder chapter 5).
//!
//! The controller decides nothing. It allows nothing until the flow's control packet has come back, and then the rate that it brought;
//! with 1RC, line rate until then. [`crate::congestion::perc`] has the algorithms, and the endpoint sends the control packets.
//!
//! # Decisions
//! * No window: rates add up to less than the capacity of each link, so that queues stay short.
//! * Rates are of whole packets, with headers. Acknowledgements and control packets share the part of the capacity that `headroom` leaves
//!   over. 0.98 lets a queue grow without bound where a host sends and receives as much as it
//!   can, since acknowledgements of 46 B for packets of 1048 B alone take 4.4 %. With `auto` they are within it. Messages that are exempt
//!   are not: they are in no sum.
//! * `exempt` is the bandwidth-delay product, as §5.1.2 has it; 153 KB in the network of 1.6 Tb/s of §5.5.1.
//! * Without weights each flow counts as its host's only one, and with 1RC each flow numbers its speculative packets separately.

use super::{AckSample, Allowance, CongestionControl, ControllerDefinition, NetworkFacts};
use crate::congestion::misbehaviour::MisbehavingNic;
use crate::congestion::perc::{
    EpochParameters, HostLimit, LinkParameters, RateAllocation, Speculation,
};
use clearway_units::{Bytes, Rate, RelativeSize, Span};
use std::num::NonZero;

clearway_units::parameters! {
    /// Settings of [`SPerc`].
    pub struct SPercParameters {
        /// Size up to which messages are exempt: they are sent at once, at line rate.
        pub exempt: RelativeSize = RelativeSize::percent_of_bdp(100), "exempt", "Snyder §5.1.2: one bandwidth-delay product";
        with {
            /// Settings that links and hosts share.
            pub common: PercParameters,
        }
    }
}

clearway_units::parameters! {
    /// Settings of s-PERC and of 1RC.
    pub struct PercParameters {
        /// Share of a link's capacity for flows, above 0 and at most 1. `"auto"` is 0.96 minus the bytes of acknowledgements per byte of
        /// data.
        pub headroom: Option<f64> = None, "headroom", "decision: control packets and acknowledgements take the rest";
        /// Rate that a host states as its limit of a flow: the rate of its link, or the demand of the flow if that is less.
        pub host_limit: HostLimit = HostLimit::Demand, "host-limit", "Snyder §5.1.1: no bandwidth that a flow will not use";
        /// Weights of flows: 1/k, with k open connections at the host.
        pub weights: bool = false, "weights", "Snyder §5.3 adds them";
        /// Size of a control packet on the wire; `"auto"` is an acknowledgement and 64 B for the state of seven links.
        pub control: Option<Bytes> = None, "control-size", "decision: 8 B for each link of a path, and what an acknowledgement has";
        /// Longest time between two control packets of a flow, in unloaded round trips. Otherwise they take 2 % of its rate, or the share
        /// that `headroom` leaves if that is more.
        pub control_gap: NonZero<u32> = NonZero::new(16).expect("not zero"), "control-gap", "decision: a flow with next to no rate must soon hear when there is more";
        with {
            /// Rule that the NIC of the flow breaks.
            pub misbehaviour: MisbehavingNic,
        }
    }
}

clearway_units::parameters! {
    /// Settings of [`OneRc`].
    pub struct OneRcParameters {
        /// Length of an epoch; `"auto"` is the longest unloaded round trip of the network.
        pub epoch: Option<Span> = None, "epoch", "Snyder §5.2: the longest uncongested round trip";
        /// Greatest difference between the clocks of two hosts.
        pub clock_skew: Span = Span::ZERO, "clock-skew", "Snyder §5.2 assumes synchronised clocks";
        /// Flows of a host share the numbers of an epoch's speculative packets; `"auto"`: if `weights` is on.
        pub shared_numbers: Option<bool> = None, "shared-numbers", "Snyder §5.3.1 introduces both; §5.2 is without";
        with {
            /// Settings that links and hosts share.
            pub common: PercParameters,
        }
    }
}

/// Rate that the network has allocated.
#[derive(Debug, Clone)]
struct Allocated {
    rate: Option<Rate>,
    settings: Box<RateAllocation>,
}

impl Allocated {
    fn new(
        common: &PercParameters,
        network: &NetworkFacts,
        exempt: Bytes,
        speculation: Option<Speculation>,
    ) -> Self {
        let usual = u64::from(network.ack) + 64;
        let control = common.control.map_or(usual, Bytes::as_u64);
        Self {
            rate: None,
            settings: Box::new(RateAllocation {
                exempt,
                headroom: common.headroom,
                host_limit: common.host_limit,
                weights: common.weights,
                control: control.clamp(1, u16::MAX.into()) as u32,
                control_gap: common.control_gap.get(),
                speculation,
                misbehaviour: common.misbehaviour.0,
            }),
        }
    }

    fn allowance(&self) -> Allowance {
        let window = match self.rate {
            Some(_) => f64::INFINITY,
            None => 0.0,
        };
        Allowance {
            window,
            rate: self.rate,
        }
    }
}

/// Controllers that do as their links say.
macro_rules! allocated {
    ($type:ident) => {
        impl CongestionControl for $type {
            fn on_ack(&mut self, _: &AckSample<'_>) {}
            fn allowance(&self) -> Allowance {
                self.0.allowance()
            }
            fn largest_window(&self) -> f64 {
                f64::INFINITY
            }
            fn allocation(&self) -> Option<&RateAllocation> {
                Some(&self.0.settings)
            }
            fn on_allocation(&mut self, rate: Option<Rate>) {
                self.0.rate = rate;
            }
        }
    };
}

/// s-PERC.
#[derive(Debug, Clone)]
pub struct SPerc(Allocated);

impl ControllerDefinition for SPerc {
    const NAME: &'static str = "s-perc";
    const SUMMARY: &'static str = "s-PERC: max-min fair rates allocated by agents of the links";
    type Parameters = SPercParameters;

    fn new(parameters: &SPercParameters, network: &NetworkFacts) -> Self {
        let exempt = network.size(parameters.exempt);
        Self(Allocated::new(&parameters.common, network, exempt, None))
    }
}

allocated!(SPerc);

/// 1RC.
#[derive(Debug, Clone)]
pub struct OneRc(Allocated);

impl ControllerDefinition for OneRc {
    const NAME: &'static str = "1rc";
    const SUMMARY: &'static str =
        "1RC: s-PERC with speculative packets in the first round trip, as far as links admit them";
    type Parameters = OneRcParameters;

    fn new(parameters: &OneRcParameters, network: &NetworkFacts) -> Self {
        let epoch = parameters.epoch.unwrap_or(network.base_rtt);
        let speculation = Speculation {
            epoch: epoch.max(Span::from_ps(1)),
            shared_numbers: parameters
                .shared_numbers
                .unwrap_or(parameters.common.weights),
            clock_skew: parameters.clock_skew,
        };
        Self(Allocated::new(
            &parameters.common,
            network,
            Bytes::ZERO,
            Some(speculation),
        ))
    }
}

allocated!(OneRc);

/// Rounds are at least so many of the longest unloaded round trips long: the time between two control packets of a flow, with some
/// queueing.
const ROUND: u64 = 2;

/// Longest unloaded round trips that a control packet may be late, as the one before it was lost: four until that is noticed, and as
/// many for queues.
const LATE: u64 = 8;

impl RateAllocation {
    /// Settings of the agent of a link, where receivers send so many bytes of acknowledgements for each byte of data on the wire.
    pub fn link(
        &self,
        network: &NetworkFacts,
        capacity: Rate,
        acknowledgements: f64,
    ) -> LinkParameters {
        LinkParameters {
            capacity,
            headroom: self.part_of_flows(acknowledgements),
            round: network.base_rtt * ROUND,
            period: network.base_rtt * (u64::from(self.control_gap) + LATE),
            epochs: self.speculation.map(|speculation| EpochParameters {
                length: speculation.epoch,
                max_rtt: network.base_rtt,
                packet: Bytes::new(u64::from(network.payload + network.header)),
                bdp_packets: packets(capacity.bytes_in(network.base_rtt), network),
            }),
        }
    }
}

/// Bandwidth-delay product of a host in full packets, rounded down, at least one.
pub(crate) fn bdp_packets(network: &NetworkFacts) -> u32 {
    packets(network.bdp, network)
}

/// Full packets in so many bytes, rounded down, at least one.
fn packets(bytes: Bytes, network: &NetworkFacts) -> u32 {
    let packet = u64::from(network.payload + network.header).max(1);
    let packets = bytes.as_u64() / packet;
    packets.clamp(1, u32::MAX.into()) as u32
}

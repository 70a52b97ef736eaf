//! Settings of a network that allocates rates, as its hosts and links share them.

use crate::congestion::misbehaviour::Misbehaviour;
use clearway_units::{Bytes, Rate, Span};

/// Part of a flow's rate that its control packets may take.
const CONTROL: f64 = 0.02;

/// Least part of a link's capacity that is given to flows.
pub const LEAST_HEADROOM: f64 = 1e-3;

clearway_units::choices! {
    /// Rate that a host gives as its own limit of a flow (link 0 of a control packet).
    pub enum HostLimit {
        /// Rate of the host's link: links count each flow as one that would take all it gets.
        LineRate = "line-rate",
        /// The demand of the flow, if that is less: the messages that it has posted and not completed, over an unloaded round trip. A
        /// flow that is shorter than a round trip then takes no full share of a link for as long. Messages count as a whole: a long
        /// one keeps its rate to the end.
        Demand = "demand",
    }
}

/// Settings of rate allocation by s-PERC, or 1RC.
#[derive(Debug, Clone, PartialEq)]
pub struct RateAllocation {
    /// Messages of at most so many bytes are exempt: they are sent at line rate without control packets.
    pub exempt: Bytes,
    /// Part of the capacity of each link that is given to flows; `None` is [the rest after acknowledgements and control
    /// packets](Self::part_of_flows).
    pub headroom: Option<f64>,
    /// Limit of a flow at its own host.
    pub host_limit: HostLimit,
    /// A flow has the weight 1/k, with k open connections at its host; else 1.
    pub weights: bool,
    /// Bytes of a control packet on the wire.
    pub control: u32,
    /// Most unloaded round trips between two control packets of a flow.
    pub control_gap: u32,
    /// 1RC: flows send before they have a rate.
    pub speculation: Option<Speculation>,
    /// Rule that the NIC of the flow breaks.
    pub misbehaviour: Option<Misbehaviour>,
}

impl RateAllocation {
    /// Part of the capacity of each link that is given to flows, where receivers send so many bytes of acknowledgements for each byte
    /// of data on the wire.
    ///
    /// Without a `headroom` it is 0.96 less the acknowledgements. A link that has as much data in one direction as in the other then
    /// carries the part `p` of its capacity as data, `p * acknowledgements` that answer the other direction, and 2 % of `p` twice as
    /// control packets, of its own flows and returning ones of the other direction: `p * (1.04 + acknowledgements)`, which is less than 1.
    pub fn part_of_flows(&self, acknowledgements: f64) -> f64 {
        let part = self
            .headroom
            .unwrap_or(1.0 - 2.0 * CONTROL - acknowledgements);
        // A link that gives nothing would never let a flow finish.
        part.clamp(LEAST_HEADROOM, 1.0)
    }

    /// Least time between two control packets of a flow with a rate, so that they take no more of it than links keep free for them.
    pub fn gap(&self, rate: Rate) -> Span {
        // Where nothing is kept free, as much as usually.
        let free = self
            .headroom
            .map_or(CONTROL, |headroom| (1.0 - headroom).max(CONTROL));
        let share = Rate::from_bps(((rate.as_bps() as f64 * free) as u64).max(1));
        share.span_of(Bytes::new(u64::from(self.control)))
    }
}

/// Settings of 1RC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speculation {
    /// Length of an epoch.
    pub epoch: Span,
    /// Flows of a host share the numbers of the speculative packets of an epoch.
    pub shared_numbers: bool,
    /// The clocks of two hosts differ by at most so much.
    pub clock_skew: Span,
}

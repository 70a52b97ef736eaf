//! Settings of a network that allocates rates, as its hosts and links share them.

use clearway_units::{Bytes, Rate, Span};

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

impl RateAllocation {
    /// Least time between two control packets of a flow with a rate, so that they take no more of it than links keep free.
    pub fn gap(&self, rate: Rate) -> Span {
        // Where nothing is kept free, as much as usually.
        let free = (1.0 - self.headroom).max(0.02);
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

//! Settings of a network that allocates rates, as its hosts and links share them.

use clearway_units::{Bytes, Span};

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

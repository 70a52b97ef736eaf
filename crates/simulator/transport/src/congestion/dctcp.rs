//! DCTCP (SIGCOMM 2010, RFC 8257): the window shrinks in proportion to the share of marked packets.
//!
//! `alpha` averages that share over windows of data. The first mark in a window cuts it by half of `alpha`; otherwise it
//! grows by one packet per round trip. Acknowledgements echo the mark of each packet.

use super::additive_window::AdditiveWindow;
use super::{
    AckSample, Allowance, CongestionControl, ControllerDefinition, LossSample, NetworkFacts,
};
use clearway_units::RelativeSize;

clearway_units::parameters! {
    /// Settings of [`Dctcp`].
    pub struct DctcpParameters {
        /// Weight of the newest window in `alpha`, 0 to 1.
        pub g: f64 = 0.0625, "g", "DCTCP: 1/16";
        /// `alpha` of a new flow, at most 1.
        pub initial_alpha: f64 = 1.0, "initial-alpha", "RFC 8257 §4.2";
        /// Largest window, in payload bytes.
        pub max_window: RelativeSize = RelativeSize::percent_of_bdp(100), "max-window", "decision: what fills an idle path";
        /// Window of a new flow; `"auto"` is one full packet.
        pub initial_window: Option<RelativeSize> = None, "initial-window", "decision: reproduces DCTCP's completion times beside TCP's";
        /// Packets added per round trip.
        pub increase: f64 = 1.0, "increase", "DCTCP §3.1: as TCP";
        /// Slow start: the window doubles each round trip until the first mark or loss.
        pub slow_start: bool = false, "slow-start", "decision: as in the comparison with TCP";
    }
}

/// DCTCP.
#[derive(Debug, Clone)]
pub struct Dctcp {
    window: AdditiveWindow,
    alpha: f64,
    g: f64,
    /// The present window of data ends when more than this is acknowledged; `None` before the first acknowledgement.
    observed_until: Option<u64>,
    /// Bytes acknowledged in it, and of these those whose packets were marked.
    observed: u64,
    marked: u64,
}

impl ControllerDefinition for Dctcp {
    const NAME: &'static str = "dctcp";
    const SUMMARY: &'static str = "DCTCP: the window shrinks in proportion to the share of marks";
    type Parameters = DctcpParameters;

    fn new(parameters: &DctcpParameters, network: &NetworkFacts) -> Self {
        Self {
            window: AdditiveWindow::new(
                network,
                parameters.initial_window,
                parameters.max_window,
                parameters.increase,
                parameters.slow_start,
            ),
            alpha: parameters.initial_alpha.min(1.0),
            g: parameters.g.min(1.0),
            observed_until: None,
            observed: 0,
            marked: 0,
        }
    }
}

impl Dctcp {
    /// Counts marks, and at the end of a window of data updates `alpha`.
    #[inline]
    fn observe(&mut self, sample: &AckSample<'_>) {
        let acked = sample.acked.as_u64();
        self.observed += acked;
        self.marked += if sample.ecn { acked } else { 0 };
        let (acknowledged, end) = (self.window.acknowledged(), self.observed_until);
        if end.is_some_and(|end| acknowledged <= end) {
            return;
        }
        if end.is_some() && self.observed > 0 {
            let share = self.marked as f64 / self.observed as f64;
            self.alpha = (1.0 - self.g) * self.alpha + self.g * share;
            (self.observed, self.marked) = (0, 0);
        }
        self.observed_until = Some(acknowledged + sample.in_flight.as_u64());
    }
}

impl CongestionControl for Dctcp {
    #[inline(never)]
    fn on_ack(&mut self, sample: &AckSample<'_>) {
        self.window.advance(sample);
        self.observe(sample);
        if self.window.is_reduced() {
            return;
        }
        if sample.ecn {
            self.window.cut(1.0 - self.alpha / 2.0, sample.in_flight);
        } else {
            self.window.grow(sample.acked);
        }
    }

    fn on_loss(&mut self, loss: &LossSample) {
        self.window.on_loss(loss);
    }

    #[inline(never)]
    fn allowance(&self) -> Allowance {
        Allowance {
            window: self.window.window(),
            rate: None,
        }
    }

    fn largest_window(&self) -> f64 {
        self.window.max()
    }
}

#[cfg(test)]
mod tests;

//! A window that never moves: the baseline against which congestion control has to show its worth.

use super::{AckSample, Allowance, CongestionControl, ControllerDefinition, NetworkFacts};
use clearway_units::{Rate, RelativeSize};

clearway_units::parameters! {
    /// Settings of [`Constant`].
    pub struct ConstantParameters {
        /// Payload bytes in flight, at least one full packet.
        pub window: RelativeSize = RelativeSize::percent_of_bdp(100), "window", "one bandwidth-delay product fills an idle path";
        /// Pacing rate; `"auto"` does not pace.
        pub rate: Option<Rate> = None, "rate", "a window alone";
    }
}

/// A fixed window and, if wanted, a fixed rate.
#[derive(Debug, Clone)]
pub struct Constant {
    allowance: Allowance,
}

impl ControllerDefinition for Constant {
    const NAME: &'static str = "constant";
    const SUMMARY: &'static str = "a fixed window, optionally paced: no congestion control";
    type Parameters = ConstantParameters;

    fn new(parameters: &ConstantParameters, network: &NetworkFacts) -> Self {
        let window = network.size(parameters.window).as_f64();
        Self {
            allowance: Allowance {
                window: window.max(f64::from(network.payload)),
                rate: parameters.rate,
            },
        }
    }
}

impl CongestionControl for Constant {
    #[inline]
    fn on_ack(&mut self, _: &AckSample<'_>) {}

    #[inline]
    fn allowance(&self) -> Allowance {
        self.allowance
    }
}

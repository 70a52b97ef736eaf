//! The settings of TMDML's optimisation.

use super::problem::{BottleneckRule, Problem};
use clearway_units::{Rate, Span};
use std::fmt;

clearway_units::choices! {
    /// Source of the rates of a slot.
    pub enum Solver {
        /// The closed form, each flow with the least rate that the optimum needs.
        Least = "least",
        /// The fairest optimum: no link that a flow could use is left idle.
        Filled = "filled",
        /// Algorithm 1, the gradient-based one.
        Gradient = "gradient",
    }
}

clearway_units::parameters! {
    /// Settings of [`Optimizer`](super::Optimizer) and [`completion`](super::completion).
    pub struct TmdmlParameters {
        /// Length of a time slot, in which rates do not change.
        pub slot: Span = Span::from_ms(1), "slot", "decision: much shorter than a synchronisation, much longer than a round trip";
        /// Dimensionless weight of the objective against the queues (V). The objective counts in units of its optimum in the first slot, a
        /// queue in the bytes that its link carries in a slot, a rate in capacities of its link. This weight times capacity² and slot,
        /// divided by that optimum, is the paper's V. It has no effect if `service` is 1. Below about a quarter, rates swing from slot to
        /// slot.
        pub v: f64 = 1.0, "v", "decision: the queue that balances it is about one slot's worth";
        /// Largest share of a flow's rate that a gradient step changes (epsilon 1), below 1.
        pub rate_step: f64 = 0.5, "rate-step", "decision: 0.9 for all three takes half the iterations but is near the edge";
        /// Step of the multipliers of `f(r) <= phi` (epsilon 2), relative to the multiplier.
        pub time_step: f64 = 0.5, "time-step", "decision: as rate-step";
        /// Step of the multipliers of the capacities (epsilon 3), relative to the multiplier.
        pub capacity_step: f64 = 0.5, "capacity-step", "decision: as rate-step";
        /// Lower bound of the rates of the gradient, before they are scaled down to fit the links.
        pub min_rate: Rate = Rate::from_bps(1_000), "min-rate", "decision: nothing beside any capacity, but above zero";
        /// Proven relative distance from the optimum at which the gradient stops.
        pub tolerance: f64 = 0.001, "tolerance", "decision: a tenth of a percent";
        /// Maximum number of iterations of the gradient in a slot.
        pub iterations: u32 = 10_000, "iterations", "decision: far more than usually needed";
        /// Service rate of a queue as a share of its link's capacity, at most 1.
        pub service: f64 = 1.0, "service", "decision: a port sends with the rate of its link";
        /// Rule that decides which links are bottlenecks of a flow.
        pub bottlenecks: BottleneckRule = BottleneckRule::NicShare, "bottlenecks", "decision: agrees with TMDML §II";
    }
}

/// Error in the settings, alone or for a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingError {
    /// A value is out of range.
    OutOfRange {
        /// The key.
        key: &'static str,
        /// Completes "expected …".
        expected: &'static str,
    },
    /// The flows of a link do not fit into it even at the lowest rate.
    MinRateTooHigh {
        /// The link.
        link: usize,
        /// Number of flows on the link.
        flows: u32,
    },
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { key, expected } => write!(f, "`{key}`: expected {expected}"),
            Self::MinRateTooHigh { link, flows } => write!(
                f,
                "`min-rate`: the {flows} flows of link {link} exceed its capacity even at this rate"
            ),
        }
    }
}

impl std::error::Error for SettingError {}

impl TmdmlParameters {
    /// Checks that the settings make sense and fit `problem`.
    ///
    /// # Errors
    /// If a setting is invalid; the error names the setting.
    pub fn check(&self, problem: &Problem) -> Result<(), SettingError> {
        let above_zero = "a number above zero";
        let open = "a number above 0 and below 1";
        let between = |value: f64| value > 0.0 && value < 1.0;
        for (key, fits, expected) in [
            ("slot", !self.slot.is_zero(), "a duration above zero"),
            ("v", self.v > 0.0 && self.v.is_finite(), above_zero),
            ("rate-step", between(self.rate_step), open),
            ("time-step", between(self.time_step), open),
            ("capacity-step", between(self.capacity_step), open),
            ("tolerance", between(self.tolerance), open),
            (
                "iterations",
                self.iterations > 0,
                "a whole number above zero",
            ),
            (
                "service",
                self.service > 0.0 && self.service <= 1.0,
                "a number above 0, at most 1",
            ),
        ] {
            if !fits {
                return Err(SettingError::OutOfRange { key, expected });
            }
        }
        let flows = problem.sums(&vec![1.0; problem.flow_count()]);
        let min_rate = self.min_rate.as_bps() as f64;
        let links = flows.iter().zip(problem.capacities()).enumerate();
        for (link, (&flows, &capacity)) in links {
            if flows * min_rate > capacity {
                return Err(SettingError::MinRateTooHigh {
                    link,
                    flows: flows as u32,
                });
            }
        }
        Ok(())
    }
}

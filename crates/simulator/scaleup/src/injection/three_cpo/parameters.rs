//! Settings of 3CPO.

use super::super::{InvalidSetting, LatencyParameters, TokenParameters};
use crate::Cycle;

clearway_units::parameters! {
    /// Settings of [`ThreeCpo`](super::ThreeCpo).
    pub struct ThreeCpoParameters {
        /// Tokens that each matched flit costs while the latency is at most `remote-scaling-from`, 0 to 1; 1 turns scaling off.
        pub remote_scaling: f64 = 0.8, "remote-scaling", "Dissertation §6.2.2";
        /// Latency of a collective operation, in cycles, above which the cost of matched flits grows.
        pub remote_scaling_from: u64 = 1000, "remote-scaling-from", "Dissertation §6.2.2";
        /// Latency in cycles from which a matched flit costs a whole token, above `remote-scaling-from`.
        pub remote_scaling_to: u64 = 2000, "remote-scaling-to", "Dissertation §6.2.2";
        /// Scaling also applies when an operation that the GPU sends matches earlier operations of others.
        pub scale_sends: bool = true, "scale-sends", "decision: Dissertation §6.2.2 says \"remote operations\"";
        /// Throttling by multicast counts only the matches of operations that the GPU sends. Otherwise it also counts the matches of
        /// arrivals.
        pub equivalent_of_sends: bool = true, "equivalent-of-sends", "Dissertation §6.2.4: \"how many extra tokens it consumed when sending multicast packets\"";
        /// A watermark grows by the cost that collective traffic has newly begun to take, as in line 14 of Algorithm 6.
        pub handover: bool = true, "handover", "Dissertation, Algorithm 6";
        /// Extra tokens of a class count more if few operations use the class, as in lines 5 to 8 of Algorithm 6.
        pub skew_correction: bool = true, "skew-correction", "Dissertation, Algorithm 6";
        /// Limit of the tokens that are carried over to the next probe, as a multiple of the tokens that a probe's round trip could bring.
        pub carry_cap: f64 = 4.0, "carry-cap", "decision: Dissertation does not define `calculate_carry_over`";
        /// Round trip in cycles before the first measurement.
        pub initial_rtt: u64 = 1000, "initial-rtt", "decision: Dissertation §6.1.4, an idle network";
        with {
            /// Tokens and watermarks.
            pub tokens: TokenParameters,
            /// Response of the watermarks to latency.
            pub latency: LatencyParameters,
        }
    }
}

impl ThreeCpoParameters {
    /// Checks the limits of these settings.
    ///
    /// # Errors
    /// If a setting is out of range, or two settings contradict each other.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        self.tokens.check()?;
        self.latency.check()?;
        let part = (0.0..=1.0).contains(&self.remote_scaling);
        InvalidSetting::unless(part, "remote-scaling", "has to be from 0 to 1")?;
        InvalidSetting::unless(
            self.remote_scaling_from < self.remote_scaling_to,
            "remote-scaling-to",
            "has to exceed `remote-scaling-from`",
        )?;
        let carry = (0.0..=1e6).contains(&self.carry_cap);
        InvalidSetting::unless(carry, "carry-cap", "has to be from 0 to 1e6")
    }

    /// Part of a token that a matched flit costs after a collective operation of this latency.
    pub(super) fn scale(&self, latency: Option<Cycle>) -> f64 {
        let Some(latency) = latency else {
            return 1.0;
        };
        let excess = latency.saturating_sub(self.remote_scaling_from) as f64;
        let range = (self.remote_scaling_to - self.remote_scaling_from) as f64;
        self.remote_scaling + (1.0 - self.remote_scaling) * (excess / range).min(1.0)
    }
}

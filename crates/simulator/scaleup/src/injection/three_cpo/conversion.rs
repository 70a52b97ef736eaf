//! Conversion of collective throttling into watermarks, and the cut of watermarks: Algorithm 6 (§6.2.4).
//!
//! `N` extra tokens in a round trip of `L` cycles throttle as much as a watermark that is lower by `WM_MAX * N / L`: the *watermark
//! equivalent*. As long as it grows by more than a cut would take, the watermark is not cut.

use super::super::{LatencyParameters, Tokens};
use super::parameters::ThreeCpoParameters;
use crate::{Cycle, FlitSizes, OperationKind, PacketClass};

/// Constants of Algorithm 6.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    latency: LatencyParameters,
    most: f64,
    least: f64,
    /// Difference in flits between a packet with data and one without (`size_diff`).
    size_difference: f64,
    /// Scaling by rate, as Swift's scaling by flows: `α` and `β`. `None` if the watermark has no range.
    rate_scaling: Option<(f64, f64)>,
    handover: bool,
    skew_correction: bool,
    carry_cap: f64,
}

impl Rules {
    pub(super) fn new(parameters: &ThreeCpoParameters, sizes: FlitSizes) -> Self {
        let (least, most) = (
            parameters.tokens.watermark_min,
            parameters.tokens.watermark_max,
        );
        let rate_scaling = (least < most).then(|| {
            let alpha = 1.0 / (1.0 / least.sqrt() - 1.0 / most.sqrt());
            (alpha, alpha / most.sqrt())
        });
        let large = sizes.flits(OperationKind::Write, PacketClass::Request);
        let small = sizes.flits(OperationKind::Write, PacketClass::Response);
        Self {
            latency: parameters.latency.clone(),
            most,
            least,
            size_difference: f64::from(large) - f64::from(small),
            rate_scaling,
            handover: parameters.handover,
            skew_correction: parameters.skew_correction,
            carry_cap: parameters.carry_cap,
        }
    }

    /// Factor of a cut of `rate`, the watermark that is left of the equivalent (`fbs`, lines 16 and 19): small for small rates.
    pub(super) fn rate_scaling(&self, rate: f64) -> f64 {
        let Some((alpha, beta)) = self.rate_scaling else {
            return 1.0;
        };
        (1.0 - (alpha / rate.max(self.least).sqrt() - beta)).max(0.05)
    }

    /// Watermark after a cut by the part `decrease` of the watermark less the equivalent (lines 17 and 20).
    fn cut(&self, watermark: f64, equivalent: f64, decrease: f64) -> f64 {
        let rate = watermark - equivalent;
        watermark - self.rate_scaling(rate) * decrease * rate
    }

    /// Extra tokens, multiplied where few operations use the class (lines 5 to 8).
    fn correct_skew(&self, tokens: f64, share: Option<f64>) -> f64 {
        match share {
            Some(share) if self.skew_correction && share <= 0.5 => {
                tokens + self.size_difference * tokens * (2.0 * (1.0 - share) - 1.0)
            }
            _ => tokens,
        }
    }
}

/// State of Algorithm 6 for one class of tokens.
#[derive(Debug, Clone, Default)]
pub(super) struct Conversion {
    /// Extra tokens since the last probe (`global_dec`).
    extra: f64,
    carry_over: f64,
    /// Watermark equivalent of the last probe (`last_wm_eq`).
    last: f64,
}

impl Conversion {
    /// Counts tokens that matched flits cost.
    pub(super) fn on_extra(&mut self, tokens: Tokens) {
        self.extra += tokens.as_f64();
    }

    /// Watermark after a probe of this latency. `share` is the part of collective operations with large packets of the class.
    pub(super) fn on_probe(
        &mut self,
        rules: &Rules,
        latency: Cycle,
        watermark: f64,
        share: Option<f64>,
    ) -> f64 {
        let equivalent = self.equivalent(rules, latency, watermark, share);
        let growth = equivalent - self.last;
        self.last = equivalent;
        let decrease = rules.latency.decrease(latency);
        let congested = latency > rules.latency.threshold;
        let mut watermark = watermark;
        if growth > 0.0 && rules.handover {
            watermark = (watermark + growth).min(rules.most);
        }
        // One condition serves two branches: growth less than the cut (lines 15 to 17) and an equivalent that shrank (lines 18 to 20).
        if congested && growth < watermark * decrease {
            watermark = rules.cut(watermark, equivalent, decrease);
        }
        (watermark + rules.latency.growth(latency))
            .max(rules.least)
            .min(rules.most)
    }

    /// Watermark equivalent of the extra tokens since the last probe; tokens beyond the arrivals of a round trip are carried over (C4).
    fn equivalent(
        &mut self,
        rules: &Rules,
        latency: Cycle,
        watermark: f64,
        share: Option<f64>,
    ) -> f64 {
        let latency = latency.max(1) as f64;
        let total = rules.correct_skew(self.extra, share) + self.carry_over;
        let possible = watermark / rules.most * latency;
        let effective = total.min(possible);
        self.carry_over = (total - effective).min(rules.carry_cap * possible);
        self.extra = 0.0;
        (rules.most * effective / latency).min(watermark)
    }
}

#[cfg(test)]
mod tests;

//! TIMELY (SIGCOMM 2015): a rate that follows the gradient of the round-trip time.
//!
//! Once per round trip the difference to the last one is averaged and divided by the unloaded round trip: the gradient `g`. Below `T_low`
//! the rate rises with any gradient, so that bursts of short queues do no harm; above `T_high` it falls with any gradient, so that queues
//! stay bounded. In between it rises while round trips do not grow, and falls in proportion to how fast they do. After five increases in a
//! row the step is larger (hyperactive increase).
//!
//! It ignores marks and notifications, and switches need not be configured: the NIC's time stamps are all it needs. The paper runs it over
//! RDMA with go-back-N and pause frames, as does the preset.
//!
//! # Decisions
//! * The form follows the ns-3 module published with HPCC: the rate changes once per round trip, with the first acknowledgement of a packet
//!   sent after the last change. The paper does so for each segment of 16 to 64 KB.
//! * The first acknowledgement gives a round trip to compare with and changes nothing.
//! * The thresholds of the paper are for 10 Gb/s and for round trips of 20 us. By default they are multiples of the base round trip:
//!   `T_low` one and a half, `T_high` five, and the least round trip, by which the gradient is normalised, is the base round trip itself.
//!   `scaled = false` has the thresholds of the module: 50, 500 and 20 us. The base is the network's, for thresholds are one for all.
//! * The step of 10 Mb/s is for 10 Gb/s and scales with the line rate.
//! * A gradient above `1 / beta` would make the rate negative; it falls to the least rate.
//! * Losses change nothing: go-back-N sends lost packets again, and the fabric should not lose any.
//! * There is no fixed point: between the thresholds any queue that does not grow is as good as any other (Zhu et al., CoNEXT 2016), and
//!   shares remain as unequal as they happen to be.

use super::base_rtt::BaseRtt;
use super::rate::{RateLimits, WindowLimit};
use super::round_trip::RoundTrip;
use super::{AckSample, Allowance, CongestionControl, ControllerDefinition, NetworkFacts};
use clearway_units::{Rate, Span};

clearway_units::parameters! {
    /// Settings of [`Timely`].
    pub struct TimelyParameters {
        /// Weight of the newest difference of round trips in their average, 0 to 1.
        pub ewma: f64 = 0.875, "ewma", "HPCC artifact: TMLY_ALPHA 0.875";
        /// Gain of multiplicative decrease (`beta`).
        pub beta: f64 = 0.8, "beta", "TIMELY §5; HPCC artifact: TMLY_BETA 0.8";
        /// `"auto"` values of `t-low`, `t-high` and `min-rtt` are multiples of the base round trip; otherwise they are 50, 500 and 20 us.
        pub scaled: bool = true, "scaled", "decision: those of the paper are for 10 Gb/s";
        /// Unloaded round trip, the unit of the thresholds: `"network"`, the longest in the fabric; `"path"`, the flow's round trip; or a
        /// duration.
        pub base_rtt: BaseRtt = BaseRtt::Network, "base-rtt", "decision: thresholds are the same for all flows";
        /// Round trip below which the rate rises (`T_low`); `"auto"` is 1.5 base round trips.
        pub low_threshold: Option<Span> = None, "t-low", "HPCC artifact: TMLY_TLOW 50 us";
        /// Round trip above which the rate falls (`T_high`), at least `t-low`; `"auto"` is 5 base round trips.
        pub high_threshold: Option<Span> = None, "t-high", "HPCC artifact: TMLY_THIGH 500 us";
        /// Round trip by which gradients are normalised; `"auto"` is the base round trip.
        pub min_rtt: Option<Span> = None, "min-rtt", "HPCC artifact: TMLY_MINRTT 20 us";
        /// Step of additive increase; `"auto"` is a thousandth of the line rate.
        pub rate_ai: Option<Rate> = None, "rate-ai", "TIMELY §5: 10 Mb/s at 10 Gb/s";
        /// Step after five increases in a row (hyperactive increase); `"auto"` is five times `rate-ai`.
        pub rate_hai: Option<Rate> = None, "rate-hai", "TIMELY Algorithm 1: N = 5; a parameter of its own in the HPCC artifact";
        /// Minimum rate.
        pub min_rate: Rate = Rate::from_bps(100_000_000), "min-rate", "HPCC artifact: MIN_RATE 100 Mb/s";
        /// Rate of a new flow; `"auto"` is the line rate.
        pub initial_rate: Option<Rate> = None, "initial-rate", "HPCC artifact: line rate";
        /// Window that limits the bytes in flight in addition to the rate.
        pub window: WindowLimit = WindowLimit::None, "window", "TIMELY §4: a rate instead of a window";
    }
}

/// Increases in a row after which the step is the larger one (TIMELY §4.3).
const HYPERACTIVE_AFTER: u32 = 5;

/// TIMELY. Rates are in bits per second, times in picoseconds.
#[derive(Debug, Clone)]
pub struct Timely {
    limits: RateLimits,
    rate: f64,
    /// Round trip of the last update; `None` before the first acknowledgement.
    last_rtt: Option<f64>,
    /// Average difference of round trips (`rtt_diff`).
    difference: f64,
    /// Increases in a row.
    stage: u32,
    round_trip: RoundTrip,
    low_threshold: f64,
    high_threshold: f64,
    min_rtt: f64,
    ewma: f64,
    beta: f64,
    rate_ai: f64,
    rate_hai: f64,
}

impl ControllerDefinition for Timely {
    const NAME: &'static str = "timely";
    const SUMMARY: &'static str = "TIMELY: a rate that follows the gradient of the round-trip time";
    type Parameters = TimelyParameters;

    fn new(parameters: &TimelyParameters, network: &NetworkFacts) -> Self {
        let limits = RateLimits::new(network, parameters.min_rate, parameters.window);
        let bps = |rate: Option<Rate>| rate.map(|rate| rate.as_bps() as f64);
        let base = parameters.base_rtt.resolve(network).as_ps() as f64;
        let threshold = |own: Option<Span>, scaled: f64, absolute: Span| match own {
            Some(span) => span.as_ps() as f64,
            None if parameters.scaled => scaled * base,
            None => absolute.as_ps() as f64,
        };
        let low_threshold = threshold(parameters.low_threshold, 1.5, Span::from_us(50));
        let high_threshold = threshold(parameters.high_threshold, 5.0, Span::from_us(500));
        let min_rtt = threshold(parameters.min_rtt, 1.0, Span::from_us(20));
        let rate_ai = bps(parameters.rate_ai).unwrap_or(limits.line / 1000.0);
        Self {
            limits,
            rate: limits.clamp(bps(parameters.initial_rate).unwrap_or(limits.line)),
            last_rtt: None,
            difference: 0.0,
            stage: 0,
            round_trip: RoundTrip::default(),
            low_threshold,
            high_threshold: high_threshold.max(low_threshold),
            // It is divided by.
            min_rtt: min_rtt.max(1.0),
            ewma: parameters.ewma.min(1.0),
            beta: parameters.beta,
            rate_ai,
            rate_hai: bps(parameters.rate_hai).unwrap_or(5.0 * rate_ai),
        }
    }
}

impl Timely {
    /// Changes the rate for a round trip of `rtt` after one of `last` (TIMELY Algorithm 1).
    fn update(&mut self, rtt: f64, last: f64) {
        self.difference = (1.0 - self.ewma) * self.difference + self.ewma * (rtt - last);
        let gradient = self.difference / self.min_rtt;
        if rtt < self.low_threshold || (rtt <= self.high_threshold && gradient <= 0.0) {
            self.increase();
        } else if rtt > self.high_threshold {
            self.decrease(1.0 - self.high_threshold / rtt);
        } else {
            self.decrease(gradient);
        }
    }

    fn increase(&mut self) {
        let step = if self.stage < HYPERACTIVE_AFTER {
            self.rate_ai
        } else {
            self.rate_hai
        };
        self.stage = self.stage.saturating_add(1);
        self.rate = self.limits.clamp(self.rate + step);
    }

    /// Multiplicative decrease by `beta` times `excess`.
    fn decrease(&mut self, excess: f64) {
        self.stage = 0;
        self.rate = self.limits.clamp(self.rate * (1.0 - self.beta * excess));
    }
}

impl CongestionControl for Timely {
    #[inline(never)]
    fn on_ack(&mut self, sample: &AckSample<'_>) {
        // A probe is not a data packet, and may overtake data.
        if sample.probe {
            return;
        }
        let rtt = sample.rtt.as_ps() as f64;
        let Some(last) = self.last_rtt else {
            self.last_rtt = Some(rtt);
            self.round_trip.restart(sample);
            return;
        };
        if self.round_trip.is_over(sample) {
            self.update(rtt, last);
            self.last_rtt = Some(rtt);
            self.round_trip.restart(sample);
        }
    }

    #[inline(never)]
    fn allowance(&self) -> Allowance {
        self.limits.allowance(self.rate)
    }

    fn largest_window(&self) -> f64 {
        self.limits.largest_window()
    }
}

#[cfg(test)]
mod tests;

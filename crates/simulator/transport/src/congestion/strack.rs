//! STrack's congestion control (STrack §3.2, Algorithms 2 and 4, Table 1).
//!
//! One window governs all paths of a flow. An unmarked acknowledgement with little queueing delay opens it in proportion to how far the
//! delay is below the target; a marked one with a high *average* delay shrinks it, at most once per base round trip; with a very high delay
//! and few bytes delivered in the last period it falls at once to the delivered bytes.
//!
//! # Units
//! Table 1 is consistent only if the window is counted in packets inside the formulas: `beta/cwnd` for each acknowledged packet
//! adds `beta` packets per window. Here the window is in bytes of payload, and an acknowledgement of `acked` bytes adds
//! `payload × beta × acked / window`, which also makes coalesced acknowledgements and short packets right (Q13). Queueing
//! delays are in picoseconds.
//!
//! # Decisions where the paper is silent or contradicts itself
//! * Q1: the target is the network's propagation round trip (8 us in §4.2); the 12 us of Table 1 only scale `bdp_sf`, `delay_sf`.
//! * Q4: printed, the third branch asks for no mark. §3 (scenarios 3 and 4) shrinks only on a mark: `md-requires-ecn`.
//! * Q5: `target_Qhigh` is three times the target (Table 1), not twice (§3.2 prose), which never settles with 128 senders.
//! * Q8: "roughly the BDP" for the largest window: 1.25 times the product with the unloaded round trip, serialisation included.
//!   The `BDP` in `bdp_sf` is the line rate times the propagation round trip (400 KB at 400 Gb/s and 8 us).
//! * Q9: a flow starts with the largest window. Q10: the window never falls below one packet, counted after the
//!   fairness step: bounded before it, the least window would be a packet and `eta`, and allow two packets in flight.
//! * Q17: the period of the achieved bandwidth-delay product is base round trip plus target (Algorithm 2), not one base round
//!   trip (§3). It is updated once per acknowledgement, though both Algorithms 1 and 4 print the call.
//! * Q18: nothing achieved, or nothing measured yet, must not give a window of zero: the fall needs a positive value.
//! * Q19: the flow's base round trip starts at the network's and is the least ever seen; all gains use the network's.
//! * Q22: the average delay is a plain average over all acknowledgements of data, marked or not.
//! * A timeout takes the lost bytes off the window, as in the UEC reference simulator; the other two ways of finding a loss do
//!   not touch it, for the delay has already done so. The paper says nothing of either.
//!
//! # Without variable additive increase and Sampling Frequency
//! Snyder's parts (§4.1) were tried: tokens for the step `eta` by the average queueing delay, and shrinking after so many acknowledged
//! packets. The problem that they solve is small here: marks already hit the largest senders most, and `eta` is added at any delay. In the
//! staggered incast of Snyder §3.3.4 (100 Gb/s, 1000-byte packets, means of six seeds, two with 96 senders) they help here and harm there,
//! while a larger constant `eta` helps everywhere; so they are left out. Milliseconds from the first to the last completion:
//!
//! | | 16 × 1 MB | 16 × 4 MB | 96 × 1 MB |
//! |---|---|---|---|
//! | as it is | 0.36 | 0.41 | 1.6 |
//! | tokens | 0.37 | 0.56 | 1.9 |
//! | 30 packets | 0.47 | 0.99 | 2.2 |
//! | 60 packets | 0.20 | 0.31 | 2.0 |
//! | tokens and 30 packets | 0.25 | 0.55 | 1.9 |
//! | `eta` 3.0 instead of 0.15 | 0.10 | 0.10 | 1.5 |

use super::phase_increase::{PhaseIncreaseParameters, Phased};
use super::{
    AckSample, Allowance, CongestionControl, ControllerDefinition, LossCause, LossSample,
    NetworkFacts,
};
use clearway_units::{Bytes, Rate, RelativeSize, Span, Time};

clearway_units::parameters! {
    /// Settings of [`Strack`].
    pub struct StrackParameters {
        /// Queueing delay at which the window should settle; `"auto"` is the network's propagation round trip.
        pub target_queue_delay: Option<Span> = None, "target-qdelay", "STrack Table 1 and §4.2 (Q1)";
        /// `target_Qhigh` as a multiple of the target. Above this delay the window may fall to the delivered bytes (`achievedBDP`), and
        /// unmarked acknowledgements raise it.
        pub high_delay_factor: f64 = 3.0, "target-qhigh-factor", "STrack Table 1 (Q5)";
        /// Weight of the newest queueing delay in the average, above 0 and at most 1.
        pub ewma: f64 = 0.125, "ewma", "STrack Table 1 (Q22)";
        /// Packets added per round trip when an unmarked packet was delayed beyond `target_Qhigh`, times `bdp_sf`.
        pub beta: f64 = 5.0, "beta", "STrack Table 1, Algorithm 4 line 7";
        /// Packets added once per base round trip for fairness, times `bdp_sf`.
        pub eta: f64 = 0.15, "eta", "STrack Table 1, Algorithm 4 line 20";
        /// Packets added per round trip at zero queueing delay, times `bdp_sf` and `delay_sf`.
        pub alpha: f64 = 4.0, "alpha", "STrack Table 1, Algorithm 4 line 9";
        /// Gain of multiplicative decrease. A decrease removes the share gain × (average delay - target) / average delay of the window.
        pub gamma: f64 = 0.8, "gamma", "STrack Table 1, Algorithm 4 line 15";
        /// Smallest factor of one decrease, at most 1.
        pub max_decrease: f64 = 0.5, "max-decrease", "STrack Algorithm 4 line 15";
        /// Shrink only on marked acknowledgements.
        pub decrease_requires_ecn: bool = true, "md-requires-ecn", "STrack §3, scenarios 3 and 4 (Q4)";
        /// Largest window, in payload bytes.
        pub max_window: RelativeSize = RelativeSize::percent_of_bdp(125), "max-cwnd", "STrack §3: roughly the BDP (Q8)";
        /// Window of a new flow; `"auto"` is the largest.
        pub initial_window: Option<RelativeSize> = None, "init-cwnd", "implied by the drops of the first round trip in STrack §4.2 (Q9)";
        /// Smallest window; `"auto"` is one full packet.
        pub min_window: Option<RelativeSize> = None, "min-cwnd", "implied by one or two packets in flight in STrack §4.2 (Q10)";
        /// Divisor of the largest window: the window falls to the delivered bytes only if they are below the quotient.
        pub quick_adapt_fraction: f64 = 8.0, "quick-adapt-fraction", "STrack Algorithm 4 line 11 (Q18)";
        /// Rate for which the gains of Table 1 are stated.
        pub reference_rate: Rate = Rate::from_gbps(100), "reference-rate", "STrack Table 1, bdp_sf";
        /// Round trip for which the gains of Table 1 are stated.
        pub reference_rtt: Span = Span::from_us(12), "reference-rtt", "STrack Table 1, bdp_sf and delay_sf (Q1)";
        with {
            /// Adaptive unfairness of all increases of the window.
            pub phase: PhaseIncreaseParameters,
        }
    }
}

/// Table 1 for one network, in packets and picoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Gains {
    /// Packets per window of unmarked, much delayed acknowledgements.
    beta: f64,
    /// Packets per base round trip.
    eta: f64,
    /// Packets per window and picosecond below the target.
    alpha: f64,
}

impl Gains {
    fn new(parameters: &StrackParameters, network: &NetworkFacts) -> Self {
        let reference_rtt = (parameters.reference_rtt.as_ps() as f64).max(1.0);
        let propagation = network.propagation_rtt.as_ps() as f64;
        let bdp_scale = network.line_rate.as_bps() as f64 * propagation
            / (parameters.reference_rate.as_bps() as f64 * reference_rtt);
        Self {
            beta: parameters.beta * bdp_scale,
            eta: parameters.eta * bdp_scale,
            // 4.0 × bdp_sf × delay_sf / base_rtt, with delay_sf = base_rtt / reference_rtt.
            alpha: parameters.alpha * bdp_scale / reference_rtt,
        }
    }

    fn times(self, factor: f64) -> Self {
        Self {
            beta: self.beta * factor,
            eta: self.eta * factor,
            alpha: self.alpha * factor,
        }
    }
}

/// The congestion controller of STrack.
#[derive(Debug, Clone)]
pub struct Strack {
    /// The window in payload bytes (`cwnd`).
    window: f64,
    min_window: f64,
    max_window: f64,
    /// Average queueing delay in picoseconds (`avg_delay`).
    average_delay: f64,
    /// `target_Qdelay` in picoseconds.
    target: f64,
    /// `target_Qhigh` in picoseconds.
    high_delay: f64,
    /// Least round trip seen (`base_rtt`).
    base_rtt: Span,
    /// `base_rtt` + `target_Qdelay`.
    achieved_period: Span,
    last_decrease: Time,
    last_fairness: Time,
    /// Start of the present period of `received` (`rxcount_clear_ts`).
    period_start: Time,
    last_ack: Time,
    /// Bytes acknowledged in the present period (`rx_count`).
    received: u64,
    /// Bytes acknowledged in the last period (`achievedBDP`); zero is unknown.
    achieved: u64,
    /// The achieved bytes below which the window falls to them.
    quick_adapt_limit: f64,
    ewma: f64,
    gamma: f64,
    max_decrease: f64,
    /// In bytes instead of packets.
    gains: Gains,
    phased: Option<Box<Phased<Gains>>>,
    decrease_requires_ecn: bool,
    started: bool,
}

impl ControllerDefinition for Strack {
    const NAME: &'static str = "strack";
    const SUMMARY: &'static str =
        "STrack: one window for all paths, driven by queueing delay, marks and the achieved BDP";
    type Parameters = StrackParameters;

    fn new(parameters: &StrackParameters, network: &NetworkFacts) -> Self {
        let payload = f64::from(network.payload);
        let gains = Gains::new(parameters, network).times(payload);
        let resolve = |size: RelativeSize| network.size(size).as_f64();
        let min_window = parameters.min_window.map_or(payload, resolve).max(1.0);
        let max_window = resolve(parameters.max_window).max(min_window);
        let initial = parameters.initial_window.map_or(max_window, resolve);
        let target = parameters
            .target_queue_delay
            .unwrap_or(network.propagation_rtt);
        let target_ps = target.as_ps() as f64;
        Self {
            window: initial.clamp(min_window, max_window),
            min_window,
            max_window,
            average_delay: 0.0,
            target: target_ps,
            high_delay: target_ps * parameters.high_delay_factor,
            base_rtt: network.propagation_rtt,
            achieved_period: network.propagation_rtt + target,
            last_decrease: Time::ZERO,
            last_fairness: Time::ZERO,
            period_start: Time::ZERO,
            last_ack: Time::ZERO,
            received: 0,
            achieved: 0,
            quick_adapt_limit: max_window / parameters.quick_adapt_fraction.max(1.0),
            ewma: parameters.ewma.clamp(0.0, 1.0),
            gamma: parameters.gamma,
            max_decrease: parameters.max_decrease.min(1.0),
            gains,
            phased: Phased::new(&parameters.phase, gains),
            decrease_requires_ecn: parameters.decrease_requires_ecn,
            started: false,
        }
    }
}

impl Strack {
    /// Lowers the base round trip to the least seen (Algorithm 1 lines 5 to 7).
    #[inline]
    fn observe_base_rtt(&mut self, rtt: Span) {
        if rtt < self.base_rtt {
            let target = self.achieved_period.saturating_sub(self.base_rtt);
            self.base_rtt = rtt;
            self.achieved_period = rtt + target;
        }
    }

    /// Counts acknowledged bytes and updates the achieved bandwidth-delay product (Algorithm 2).
    #[inline]
    fn update_achieved(&mut self, sample: &AckSample<'_>) {
        if !sample.probe {
            self.received += sample.acked.as_u64();
        }
        if sample.now.since(self.period_start) > self.achieved_period {
            self.achieved = self.received;
            self.received = 0;
            self.period_start = sample.now;
        }
    }

    /// Adjusts the window (Algorithm 4).
    #[inline]
    fn adjust_window(&mut self, sample: &AckSample<'_>, delay: f64) {
        let mut decreased = false;
        self.average_delay += self.ewma * (delay - self.average_delay);
        if !sample.ecn && delay > self.high_delay {
            self.increase(self.gains.beta, sample.acked);
        } else if !sample.ecn && delay < self.target {
            self.increase(self.gains.alpha * (self.target - delay), sample.acked);
        } else if (sample.ecn || !self.decrease_requires_ecn) && self.average_delay > self.target {
            decreased = self.decrease(sample.now, delay);
        }
        if sample.now.since(self.last_fairness) > self.base_rtt {
            self.last_fairness = sample.now;
            self.set_window(self.window + self.gains.eta);
            // Once per round trip is often enough for that, and costs nothing else.
            if let Some(phased) = &mut self.phased {
                let (usual, factor) = phased.on_ack(sample);
                self.gains = usual.times(factor);
            }
        } else if decreased {
            self.set_window(self.window);
        }
    }

    /// Adds `per_window` bytes for each window of acknowledged bytes.
    #[inline]
    fn increase(&mut self, per_window: f64, acked: Bytes) {
        // At the limit nothing would come of it but a division.
        if self.window < self.max_window {
            self.set_window(self.window + per_window * acked.as_u64() as i64 as f64 / self.window);
        }
    }

    /// Shrinks the window, at most once per base round trip (Algorithm 4 lines 10 to 18).
    fn decrease(&mut self, now: Time, delay: f64) -> bool {
        if now.since(self.last_decrease) <= self.base_rtt {
            return false;
        }
        let achieved = self.achieved as f64;
        if delay > self.high_delay && achieved > 0.0 && achieved < self.quick_adapt_limit {
            self.window = achieved;
        } else if delay > self.target {
            let excess = (self.average_delay - self.target) / self.average_delay;
            let factor = (1.0 - self.gamma * excess).max(self.max_decrease);
            self.window *= factor;
        } else {
            return false;
        }
        self.last_decrease = now;
        true
    }

    #[inline]
    fn set_window(&mut self, window: f64) {
        self.window = window.clamp(self.min_window, self.max_window);
    }
}

impl CongestionControl for Strack {
    #[inline(always)]
    fn on_ack(&mut self, sample: &AckSample<'_>) {
        self.observe_base_rtt(sample.rtt);
        self.last_ack = sample.now;
        self.update_achieved(sample);
        if !sample.probe {
            // Signed, because that conversion is one instruction and the unsigned one eight.
            let delay = (sample.rtt.as_ps() - self.base_rtt.as_ps()) as i64 as f64;
            self.adjust_window(sample, delay);
        }
    }

    fn on_loss(&mut self, loss: &LossSample) {
        if loss.cause == LossCause::Timeout {
            self.set_window(self.window - loss.lost.as_f64());
        }
    }

    fn on_restart(&mut self, now: Time) {
        if !self.started {
            self.started = true;
            self.last_decrease = now;
            self.last_fairness = now;
        } else if now.since(self.last_ack) <= self.achieved_period {
            return;
        }
        // Bytes delivered before a pause say nothing about the present.
        self.received = 0;
        self.achieved = 0;
        self.period_start = now;
    }

    #[inline(always)]
    fn allowance(&self) -> Allowance {
        Allowance {
            window: self.window,
            rate: None,
        }
    }

    fn largest_window(&self) -> f64 {
        self.max_window
    }

    fn take_phase(&mut self, phase: Bytes) {
        if let Some(phased) = &mut self.phased {
            phased.set_phase(phase);
        }
    }

    fn counts_progress(&self) -> bool {
        self.phased.is_some()
    }
}

#[cfg(test)]
mod tests;

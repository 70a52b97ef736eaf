//! DCQCN (SIGCOMM 2015): the reaction point of RoCEv2 NICs.
//!
//! A notification (CNP) cuts the rate by half of `alpha`, the estimate of how congested the path is. Afterwards a timer and a
//! byte counter each raise it again: first half way back to the rate before the cut (fast recovery), then past it by a small
//! step (additive increase), and when both have come far by a large one (hyper increase).
//!
//! Timers run only after the first notification; the sender starts at line rate.
//!
//! # Variable additive increase
//! `variable-increase = true` multiplies both steps as Snyder §4.1.1 does for HPCC and Swift. The measure is the queueing delay that
//! acknowledgements bring. Notifications would not do: the flow that sends most gets most of them, and would be paid most tokens. Tokens
//! wait until recovery is over and are spent by the increases that follow. Sampling Frequency has no place here, for receivers notify at
//! fixed intervals, not once per round trip.
//!
//! In the staggered incast of Snyder §3.3.4 (16 senders, 100 Gb/s, marks from 50 to 200 KB at up to 10 %, six seeds) it brings
//! completions somewhat closer together: from 2.1 to 1.9 ms with 1 MB each, from 1.6 to 1.0 ms with 4 MB. A constant `rate-ai` of four
//! times the default does more for throughput there (the last of the 4 MB at 6.6 instead of 8.2 ms, with tokens 7.4 ms) and less for
//! fairness (1.5 ms). With 96 senders, whose rates lie at the minimum, it changes nothing.
//!
//! # Adaptive unfairness
//! `phase-increase = 1` multiplies the step of additive increase by [one plus the share of the communication phase that is
//! done](super::PhaseIncrease); `phase-hyper` also multiplies the step of hyper increase, which the paper does not mention.
//!
//! # As in htsim
//! `reaction-point = "htsim"` is `dcqcn.cpp` as published with that simulator, which the authors of STrack use:
//! * Steps are 1/20 and 1/10 of the line rate, the i-th hyper increase adds i of them, and the byte counter is 10 MB at any rate.
//! * Fast recovery lasts until timer or byte counter have been through more than `F` steps, not as many.
//! * `alpha` decays with *each packet* that the flow sends, and not by a timer.
//!
//! There `alpha` is one variable for the flows of all hosts, and decays with every packet of any flow that has not been notified for 55 us,
//! because the time of the last decay is not kept. No NIC could do so, and the outcome would depend on the order of simultaneous events.
//! The packets of the flow itself stand in for the packets of all flows: in a network of many flows some are without congestion at any
//! time, and let `alpha` decay for the others. Between two notifications of a flow at 400 Gb/s it falls to a tenth.
//!
//! # Decisions
//! * Rates in the paper are for 40 Gb/s. `rate-ai`, `rate-hai` and `byte-counter` scale with the line rate, timers do not.
//! * The step of hyper increase: the paper multiplies it by the number of steps beyond fast recovery, which overshoots on fast
//!   links. By default it is a single step, as in the HPCC artifact; `hai-multiplies` is the other reading.
//! * `alpha` is brought up to date when a notification needs it, and timers that cannot change the rate any more wake nobody: the results
//!   are the same as with timers that fire one by one.

use super::phase_increase::{PhaseIncrease, PhaseIncreaseParameters};
use super::rate::{RateLimits, Ticker, WindowLimit, decay};
use super::variable_increase::{DelayTokenParameters, VariableIncrease};
use super::{AckSample, Allowance, CongestionControl, ControllerDefinition, NetworkFacts};
use clearway_units::{Bytes, Rate, Span, Time, choices};

choices! {
    /// Source of a reaction point's rules, and of the settings that are `"auto"`.
    pub enum ReactionPoint {
        /// The paper.
        Sigcomm = "sigcomm",
        /// `dcqcn.cpp` as published with htsim.
        Htsim = "htsim",
    }
}

/// The byte counter for a line rate of [`BYTE_COUNTER_RATE`].
const BYTE_COUNTER: f64 = 10e6;
const BYTE_COUNTER_RATE: f64 = 40e9;

clearway_units::parameters! {
    /// Settings of [`Dcqcn`].
    pub struct DcqcnParameters {
        /// Source of the rules and of the `"auto"` values.
        pub reaction_point: ReactionPoint = ReactionPoint::Sigcomm, "reaction-point", "DCQCN; \"htsim\" is the source file published with that simulator";
        /// Weight of the newest observation in `alpha`, 0 to 1.
        pub g: f64 = 0.003_906_25, "g", "DCQCN: 1/256";
        /// Period of the decay of `alpha` while no notification arrives.
        pub alpha_timer: Span = Span::from_us(55), "alpha-timer", "DCQCN: 55 us";
        /// Time between two increases.
        pub rate_timer: Span = Span::from_us(55), "rate-timer", "DCQCN: 55 us; NICs of 2022 have 125 us or, aggressive, 100 us";
        /// Bytes sent between two increases. `"auto"` is 10 MB for each 40 Gb/s of the line rate, or 10 MB with `reaction-point = "htsim"`.
        pub byte_counter: Option<Bytes> = None, "byte-counter", "DCQCN: 10 MB at 40 Gb/s";
        /// Increases by timer or byte counter that only recover the rate.
        pub fast_recovery_steps: u32 = 5, "fast-recovery-steps", "DCQCN: F = 5";
        /// Step of additive increase. `"auto"` is a thousandth of the line rate, or a twentieth with `reaction-point = "htsim"`.
        pub rate_ai: Option<Rate> = None, "rate-ai", "DCQCN: 40 Mb/s at 40 Gb/s";
        /// Step of hyper increase. `"auto"` is a hundredth of the line rate, or a tenth with `reaction-point = "htsim"`.
        pub rate_hai: Option<Rate> = None, "rate-hai", "decision: ten times rate-ai, 400 Mb/s at 40 Gb/s";
        /// The i-th hyper increase adds i steps.
        pub hai_multiplies: bool = false, "hai-multiplies", "decision: one step each time, as in the HPCC artifact";
        /// Minimum rate.
        pub min_rate: Rate = Rate::from_bps(100_000_000), "min-rate", "HPCC artifact: 100 Mb/s";
        /// Rate of a new flow; `"auto"` is the line rate.
        pub initial_rate: Option<Rate> = None, "initial-rate", "DCQCN: no slow start";
        /// Window that limits the bytes in flight in addition to the rate.
        pub window: WindowLimit = WindowLimit::None, "window", "DCQCN is purely rate based; the HPCC artifact scales a window";
        /// Apply `phase-increase` also to the step of hyper increase.
        pub phase_hyper: bool = false, "phase-hyper", "HotNets '22 §4 speaks of R_AI alone";
        with {
            /// Variable additive increase of both steps.
            pub increase: DelayTokenParameters,
            /// Adaptive unfairness.
            pub phase: PhaseIncreaseParameters,
        }
    }
}

/// The reaction point of one queue pair.
#[derive(Debug, Clone)]
pub struct Dcqcn {
    limits: RateLimits,
    /// The present rate (`R_C`) and the one to recover to (`R_T`), in bits per second.
    rate: f64,
    target: f64,
    alpha: f64,
    alpha_timer: Ticker,
    rate_timer: Ticker,
    /// Increases since the last notification, by timer and by byte counter.
    timer_steps: u32,
    byte_steps: u32,
    bytes: u64,
    byte_counter: u64,
    fast_recovery_steps: u32,
    rate_ai: f64,
    rate_hai: f64,
    hai_multiplies: bool,
    /// True for the rules of htsim.
    htsim: bool,
    g: f64,
    /// True once a notification has come.
    active: bool,
    /// Parts that change the steps of additive and hyper increase; `None` if the steps are constant.
    steps: Option<Box<Steps>>,
    base_rtt: Span,
}

/// Steps that are not always the same.
#[derive(Debug, Clone)]
struct Steps {
    variable: Option<VariableIncrease>,
    phase: Option<PhaseIncrease>,
    phase_hyper: bool,
}

impl Steps {
    fn new(parameters: &DcqcnParameters, network: &NetworkFacts) -> Option<Box<Self>> {
        let variable = parameters.increase.build(Span::ZERO, network);
        let phase = PhaseIncrease::new(&parameters.phase);
        let is_needed = variable.is_some() || phase.is_some();
        is_needed.then(|| {
            Box::new(Self {
                variable,
                phase,
                phase_hyper: parameters.phase_hyper,
            })
        })
    }

    /// The factor of a step that is taken now.
    fn take(&mut self, is_hyper: bool) -> f64 {
        let phase = match &self.phase {
            Some(phase) if !is_hyper || self.phase_hyper => phase.factor(),
            _ => 1.0,
        };
        let Some(variable) = &mut self.variable else {
            return phase;
        };
        let factor = variable.factor();
        variable.spend();
        factor * phase
    }
}

impl ControllerDefinition for Dcqcn {
    const NAME: &'static str = "dcqcn";
    const SUMMARY: &'static str =
        "DCQCN of RoCEv2 NICs: a rate, cut by notifications, raised by timer and byte counter";
    type Parameters = DcqcnParameters;

    fn new(parameters: &DcqcnParameters, network: &NetworkFacts) -> Self {
        let limits = RateLimits::new(network, parameters.min_rate, parameters.window);
        let bps = |rate: Option<Rate>| rate.map(|rate| rate.as_bps() as f64);
        let rate = limits.clamp(bps(parameters.initial_rate).unwrap_or(limits.line));
        let htsim = parameters.reaction_point == ReactionPoint::Htsim;
        let (scale, additive, hyper) = match htsim {
            true => (1.0, 20.0, 10.0),
            false => (limits.line / BYTE_COUNTER_RATE, 1000.0, 100.0),
        };
        let byte_counter = (BYTE_COUNTER * scale) as u64;
        let byte_counter = parameters.byte_counter.map_or(byte_counter, Bytes::as_u64);
        Self {
            limits,
            rate,
            target: rate,
            alpha: 1.0,
            alpha_timer: Ticker::new(parameters.alpha_timer),
            rate_timer: Ticker::new(parameters.rate_timer),
            timer_steps: 0,
            byte_steps: 0,
            bytes: 0,
            byte_counter: byte_counter.max(1),
            fast_recovery_steps: parameters.fast_recovery_steps,
            rate_ai: bps(parameters.rate_ai).unwrap_or(limits.line / additive),
            rate_hai: bps(parameters.rate_hai).unwrap_or(limits.line / hyper),
            hai_multiplies: parameters.hai_multiplies || htsim,
            htsim,
            g: parameters.g.min(1.0),
            active: false,
            steps: Steps::new(parameters, network),
            base_rtt: network.path.rtt,
        }
    }
}

impl Dcqcn {
    /// Raises the rate after a step of the timer or the byte counter.
    fn increase(&mut self) {
        let steps = (self.timer_steps, self.byte_steps);
        let (least, most) = (steps.0.min(steps.1), steps.0.max(steps.1));
        let is_hyper = least > self.fast_recovery_steps;
        let recovers = match self.htsim {
            true => most <= self.fast_recovery_steps,
            false => most < self.fast_recovery_steps,
        };
        let step = if recovers {
            0.0
        } else if is_hyper {
            let times = if self.hai_multiplies {
                least - self.fast_recovery_steps
            } else {
                1
            };
            f64::from(times) * self.rate_hai
        } else {
            self.rate_ai
        };
        let step = match &mut self.steps {
            Some(steps) if step > 0.0 => step * steps.take(is_hyper),
            _ => step,
        };
        self.target = (self.target + step).min(self.limits.line);
        self.rate = (self.rate + self.target) / 2.0;
    }

    /// Takes the queueing delay and the acknowledged bytes, on which the steps depend.
    #[cold]
    fn observe(&mut self, sample: &AckSample<'_>) {
        // Timers that were due before this sample spend only the tokens from before it.
        self.run_timer(sample.now);
        let delay = sample.rtt.saturating_sub(self.base_rtt).as_ps() as f64;
        let Some(steps) = &mut self.steps else {
            return;
        };
        if let Some(increase) = &mut steps.variable {
            increase.observe(delay, false);
            increase.on_ack(sample);
        }
        if let Some(phase) = &mut steps.phase {
            phase.on_ack(sample);
        }
    }

    /// True if no increase changes the rate or the target any more.
    fn is_settled(&self) -> bool {
        self.target >= self.limits.line && (self.rate + self.target) / 2.0 == self.rate
    }

    /// Carries out the increases of the timer before `limit`.
    #[inline]
    fn run_timer(&mut self, limit: Time) {
        while self.active && self.rate_timer.next() < limit && !self.is_settled() {
            self.rate_timer.fire();
            self.timer_steps = self.timer_steps.saturating_add(1);
            self.increase();
        }
    }

    /// Brings `alpha` up to date, as it is just before `limit`.
    fn update_alpha(&mut self, limit: Time) {
        if self.htsim {
            return;
        }
        let times = self.alpha_timer.fire_before(limit);
        self.alpha = decay(self.alpha, 1.0 - self.g, times);
    }
}

impl CongestionControl for Dcqcn {
    #[inline]
    fn on_ack(&mut self, sample: &AckSample<'_>) {
        if self.steps.is_some() {
            self.observe(sample);
        }
    }

    fn on_notification(&mut self, now: Time) {
        // Arrivals come before timers of the same instant.
        self.run_timer(now);
        self.update_alpha(now);
        let variable = self
            .steps
            .as_mut()
            .and_then(|steps| steps.variable.as_mut());
        if let Some(increase) = variable {
            increase.observe(0.0, true);
        }
        self.active = true;
        self.target = self.rate;
        self.rate = self.limits.clamp(self.rate * (1.0 - self.alpha / 2.0));
        self.alpha = (1.0 - self.g) * self.alpha + self.g;
        (self.timer_steps, self.byte_steps, self.bytes) = (0, 0, 0);
        self.alpha_timer.restart(now);
        self.rate_timer.restart(now);
    }

    #[inline(never)]
    fn on_sent(&mut self, now: Time, wire: Bytes) {
        if self.htsim {
            self.alpha *= 1.0 - self.g;
        }
        if !self.active {
            return;
        }
        self.run_timer(now);
        self.bytes += wire.as_u64();
        while self.bytes >= self.byte_counter {
            self.bytes -= self.byte_counter;
            self.byte_steps = self.byte_steps.saturating_add(1);
            self.increase();
        }
    }

    #[inline(never)]
    fn allowance(&self) -> Allowance {
        self.limits.allowance(self.rate)
    }

    fn largest_window(&self) -> f64 {
        self.limits.largest_window()
    }

    fn deadline(&self) -> Time {
        if self.active && !self.is_settled() {
            self.rate_timer.next()
        } else {
            Time::NEVER
        }
    }

    fn on_deadline(&mut self, now: Time) {
        self.run_timer(now.saturating_add(Span::from_ps(1)));
    }

    fn take_phase(&mut self, phase: Bytes) {
        let own = self.steps.as_mut().and_then(|steps| steps.phase.as_mut());
        if let Some(increase) = own {
            increase.set_phase(phase);
        }
    }

    fn counts_progress(&self) -> bool {
        let steps = self.steps.as_ref();
        steps.is_some_and(|steps| steps.phase.is_some())
    }
}

#[cfg(test)]
mod tests;

//! DCQCN as the HPCC artifact implements it ("Mellanox version"): driven by timers alone.
//!
//! There are no notifications: every marked packet marks its acknowledgement, which sets two flags. A fast timer feeds one of
//! them to `alpha`; another timer cuts the rate if the other is set; a third, slow one, restarted by each cut, raises the rate
//! again. There is no byte counter.
//!
//! # Decisions
//! * Nothing runs before the first mark; the first cut comes one period of the cut's timer and 1 ns after it, so that `alpha` has
//!   been updated before.
//! * Consecutive cuts without an increase in between keep the target of the first, unless `clamp-target`.
//! * `alpha` is brought up to date when a cut needs it, and a timer wakes somebody only if a cut or an increase is due: the results are the
//!   same as with timers that fire one by one.
//! * A cut and an increase that fall on one instant: the cut goes first, and restarts the other timer.

use super::rate::{RateLimits, Ticker, WindowLimit, decay};
use super::{AckSample, Allowance, CongestionControl, ControllerDefinition, NetworkFacts};
use clearway_units::{Rate, Span, Time};

clearway_units::parameters! {
    /// Settings of [`DcqcnTimer`].
    pub struct DcqcnTimerParameters {
        /// Weight of the newest observation in `alpha`, 0 to 1.
        pub g: f64 = 0.003_906_25, "g", "HPCC artifact: 1/256";
        /// Time between two updates of `alpha`.
        pub alpha_timer: Span = Span::from_us(1), "alpha-timer", "HPCC artifact: ALPHA_RESUME_INTERVAL 1 us";
        /// Time between two cuts.
        pub decrease_timer: Span = Span::from_us(4), "decrease-timer", "HPCC artifact: RATE_DECREASE_INTERVAL 4 us";
        /// Time between two increases.
        pub rate_timer: Span = Span::from_us(900), "rate-timer", "HPCC artifact: RP_TIMER 900 us";
        /// Increases that only recover the rate.
        pub fast_recovery_steps: u32 = 1, "fast-recovery-steps", "HPCC artifact: FAST_RECOVERY_TIMES 1";
        /// Step of the additive increase that follows.
        pub rate_ai: Rate = Rate::from_bps(50_000_000), "rate-ai", "HPCC artifact: RATE_AI 50 Mb/s";
        /// Step of the hyper increases after that.
        pub rate_hai: Rate = Rate::from_bps(100_000_000), "rate-hai", "HPCC artifact: RATE_HAI 100 Mb/s";
        /// Minimum rate.
        pub min_rate: Rate = Rate::from_bps(100_000_000), "min-rate", "HPCC artifact: MIN_RATE 100 Mb/s";
        /// Rate of a new flow; `"auto"` is the line rate.
        pub initial_rate: Option<Rate> = None, "initial-rate", "HPCC artifact: line rate";
        /// Each cut sets the target to the rate before the cut.
        pub clamp_target: bool = false, "clamp-target", "HPCC artifact: CLAMP_TARGET_RATE 0";
        /// Factor by which the first mark multiplies the rate, before the first cut; at most 1.
        pub rate_on_first_mark: f64 = 1.0, "rate-on-first-mark", "HPCC artifact: RateOnFirstCnp 1.0";
        /// Window that limits the bytes in flight in addition to the rate.
        pub window: WindowLimit = WindowLimit::Scaled, "window", "HPCC artifact: HAS_WIN 1, VAR_WIN 1";
    }
}

/// The artifact's reaction point of one flow.
#[derive(Debug, Clone)]
pub struct DcqcnTimer {
    limits: RateLimits,
    /// The present rate and the one to recover to, in bits per second.
    rate: f64,
    target: f64,
    alpha: f64,
    /// Increases since the last cut.
    stage: u32,
    /// A mark has come since the last update of `alpha`, and since the last cut.
    alpha_flag: bool,
    cut_flag: bool,
    alpha_timer: Ticker,
    cut_timer: Ticker,
    /// Started by the first cut.
    rate_timer: Ticker,
    g: f64,
    fast_recovery_steps: u32,
    rate_ai: f64,
    rate_hai: f64,
    clamp_target: bool,
    rate_on_first_mark: f64,
    active: bool,
}

impl ControllerDefinition for DcqcnTimer {
    const NAME: &'static str = "dcqcn-timer";
    const SUMMARY: &'static str =
        "DCQCN of the HPCC artifact: timers only, marks echoed on acknowledgements";
    type Parameters = DcqcnTimerParameters;

    fn new(parameters: &DcqcnTimerParameters, network: &NetworkFacts) -> Self {
        let limits = RateLimits::new(network, parameters.min_rate, parameters.window);
        let initial = parameters.initial_rate.map(|rate| rate.as_bps() as f64);
        let rate = limits.clamp(initial.unwrap_or(limits.line));
        Self {
            limits,
            rate,
            target: rate,
            alpha: 1.0,
            stage: 0,
            alpha_flag: false,
            cut_flag: false,
            alpha_timer: Ticker::new(parameters.alpha_timer),
            cut_timer: Ticker::new(parameters.decrease_timer),
            rate_timer: Ticker::new(parameters.rate_timer),
            g: parameters.g.min(1.0),
            fast_recovery_steps: parameters.fast_recovery_steps,
            rate_ai: parameters.rate_ai.as_bps() as f64,
            rate_hai: parameters.rate_hai.as_bps() as f64,
            clamp_target: parameters.clamp_target,
            rate_on_first_mark: parameters.rate_on_first_mark.min(1.0),
            active: false,
        }
    }
}

impl DcqcnTimer {
    fn on_mark(&mut self, now: Time) {
        // Arrivals come before timers of the same instant.
        self.run_timers(now);
        if !self.active {
            self.active = true;
            self.rate = self.limits.clamp(self.rate * self.rate_on_first_mark);
            self.target = self.rate;
            self.alpha_timer.restart(now);
            self.cut_timer.restart(now + Span::from_ns(1));
        } else {
            self.update_alpha(now);
            self.alpha_flag = true;
            // Until now there was nothing to cut.
            self.cut_timer.fire_before(now);
        }
        self.cut_flag = true;
    }

    /// Brings `alpha` to what it is just before `limit`.
    fn update_alpha(&mut self, limit: Time) {
        let mut times = self.alpha_timer.fire_before(limit);
        if times > 0 && self.alpha_flag {
            self.alpha_flag = false;
            self.alpha = (1.0 - self.g) * self.alpha + self.g;
            times -= 1;
        }
        self.alpha = decay(self.alpha, 1.0 - self.g, times);
    }

    fn next_cut(&self) -> Time {
        if self.cut_flag {
            self.cut_timer.next()
        } else {
            Time::NEVER
        }
    }

    fn next_increase(&self) -> Time {
        let settled =
            self.target >= self.limits.line && (self.rate + self.target) / 2.0 == self.rate;
        if settled {
            Time::NEVER
        } else {
            self.rate_timer.next()
        }
    }

    /// Carries out the cuts and increases before `limit`.
    #[inline]
    fn run_timers(&mut self, limit: Time) {
        while self.active {
            let (cut, increase) = (self.next_cut(), self.next_increase());
            if cut.min(increase) >= limit {
                return;
            }
            if cut <= increase {
                self.cut_timer.fire();
                self.cut(cut);
            } else {
                self.rate_timer.fire();
                self.increase();
            }
        }
    }

    fn cut(&mut self, now: Time) {
        self.update_alpha(now.saturating_add(Span::from_ps(1)));
        self.cut_flag = false;
        if self.clamp_target || self.stage != 0 {
            self.target = self.rate;
        }
        self.rate = self.limits.clamp(self.rate * (1.0 - self.alpha / 2.0));
        self.stage = 0;
        self.rate_timer.restart(now);
    }

    fn increase(&mut self) {
        let step = match self.stage.cmp(&self.fast_recovery_steps) {
            std::cmp::Ordering::Less => 0.0,
            std::cmp::Ordering::Equal => self.rate_ai,
            std::cmp::Ordering::Greater => self.rate_hai,
        };
        self.target = (self.target + step).min(self.limits.line);
        self.rate = (self.rate + self.target) / 2.0;
        self.stage = self.stage.saturating_add(1);
    }
}

impl CongestionControl for DcqcnTimer {
    #[inline(never)]
    fn on_ack(&mut self, sample: &AckSample<'_>) {
        if sample.ecn {
            self.on_mark(sample.now);
        }
    }

    fn on_notification(&mut self, now: Time) {
        self.on_mark(now);
    }

    #[inline(never)]
    fn allowance(&self) -> Allowance {
        self.limits.allowance(self.rate)
    }

    fn largest_window(&self) -> f64 {
        self.limits.largest_window()
    }

    fn deadline(&self) -> Time {
        if self.active {
            self.next_cut().min(self.next_increase())
        } else {
            Time::NEVER
        }
    }

    fn on_deadline(&mut self, now: Time) {
        self.run_timers(now.saturating_add(Span::from_ps(1)));
    }
}

#[cfg(test)]
mod tests;

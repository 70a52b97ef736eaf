//! Parts that rate-based controllers share: bounds of the rate, an optional window, and timers that are evaluated on demand.

use super::{Allowance, NetworkFacts};
use clearway_units::{Rate, Span, Time};

clearway_units::choices! {
    /// Window by which a rate-based controller also limits the bytes in flight.
    pub enum WindowLimit {
        /// The rate alone decides.
        None = "none",
        /// One bandwidth-delay product.
        Fixed = "fixed",
        /// The bandwidth-delay product at the present rate.
        Scaled = "scaled",
    }
}

/// The bounds of a rate in bits per second, and the window that goes with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct RateLimits {
    pub(super) line: f64,
    pub(super) min: f64,
    bdp: f64,
    window: WindowLimit,
}

impl RateLimits {
    pub(super) fn new(network: &NetworkFacts, min: Rate, window: WindowLimit) -> Self {
        let line = network.line_rate.as_bps() as f64;
        Self {
            line,
            // A rate of nothing would never end.
            min: (min.as_bps() as f64).clamp(1.0, line.max(1.0)),
            bdp: network.bdp.as_f64(),
            window,
        }
    }

    pub(super) fn clamp(&self, rate: f64) -> f64 {
        rate.clamp(self.min, self.line)
    }

    #[inline]
    pub(super) fn allowance(&self, rate: f64) -> Allowance {
        let window = match self.window {
            WindowLimit::None => f64::INFINITY,
            WindowLimit::Fixed => self.bdp,
            WindowLimit::Scaled => (self.bdp * rate / self.line).max(1.0),
        };
        Allowance {
            window,
            rate: Some(Rate::from_bps(rate as u64)),
        }
    }

    pub(super) fn largest_window(&self) -> f64 {
        match self.window {
            WindowLimit::None => f64::INFINITY,
            WindowLimit::Fixed | WindowLimit::Scaled => self.bdp,
        }
    }
}

/// Periodic timer that is evaluated on demand. It needs no call when it fires: code that reads the state it drives asks how often
/// it has fired in the meantime.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticker {
    period: Span,
    /// Instant at which the timer last fired or was started; [`Time::NEVER`] if it was not started.
    last: Time,
}

impl Ticker {
    /// Creates a timer that has not been started.
    pub(super) fn new(period: Span) -> Self {
        Self {
            // A timer of no length would fire for ever.
            period: period.max(Span::from_ns(1)),
            last: Time::NEVER,
        }
    }

    pub(super) fn restart(&mut self, now: Time) {
        self.last = now;
    }

    /// Instant at which the timer fires next; [`Time::NEVER`] if it was not started.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.last.saturating_add(self.period)
    }

    /// Fires the timer once.
    pub(super) fn fire(&mut self) {
        self.last = self.next();
    }

    /// Fires the timer as often as it is due before `limit`, and returns how often.
    pub(super) fn fire_before(&mut self, limit: Time) -> u64 {
        if self.next() >= limit {
            return 0;
        }
        let times = (limit.since(self.last).as_ps() - 1) / self.period.as_ps();
        self.last += self.period * times;
        times
    }
}

/// `value × factor`, `times` over: exactly the result of as many ticks.
pub(super) fn decay(mut value: f64, factor: f64, times: u64) -> f64 {
    for _ in 0..times {
        let next = factor * value;
        if next == value {
            break;
        }
        value = next;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticker_counts_what_it_has_missed() {
        let mut ticker = Ticker::new(Span::from_us(5));
        assert_eq!(ticker.fire_before(Time::from_us(100)), 0, "not started");
        ticker.restart(Time::from_us(10));
        assert_eq!(ticker.next(), Time::from_us(15));
        assert_eq!(ticker.fire_before(Time::from_us(15)), 0);
        assert_eq!(ticker.fire_before(Time::from_us(31)), 4);
        assert_eq!(ticker.next(), Time::from_us(35));
        ticker.fire();
        assert_eq!(ticker.next(), Time::from_us(40));
    }

    #[test]
    fn decay_is_repeated_multiplication_and_ends() {
        let factor = 1.0 - 1.0 / 256.0;
        let by_hand = (0..1000).fold(1.0, |value, _| factor * value);
        assert_eq!(decay(1.0, factor, 1000), by_hand);
        assert_eq!(decay(0.0, factor, u64::MAX), 0.0);
        assert!(decay(1.0, factor, u64::MAX) < 1e-300);
    }
}

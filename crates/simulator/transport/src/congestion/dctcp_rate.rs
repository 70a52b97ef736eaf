//! DCTCP as the HPCC artifact implements it: a rate instead of a window, from line rate on.
//!
//! Once per round trip `alpha` takes in the share of marked acknowledgements, and the rate rises by a step unless it was cut
//! in that time. The first mark in a round trip cuts the rate by half of `alpha`.

use super::rate::{RateLimits, WindowLimit};
use super::{AckSample, Allowance, CongestionControl, ControllerDefinition, NetworkFacts};
use clearway_units::Rate;

clearway_units::parameters! {
    /// Settings of [`DctcpRate`].
    pub struct DctcpRateParameters {
        /// Weight of the newest round trip in `alpha`, 0 to 1.
        pub g: f64 = 0.003_906_25, "g", "HPCC artifact: 1/256";
        /// Rate added once per round trip.
        pub rate_ai: Rate = Rate::from_gbps(1), "rate-ai", "HPCC artifact: DCTCP_RATE_AI 1000 Mb/s";
        /// Minimum rate.
        pub min_rate: Rate = Rate::from_bps(100_000_000), "min-rate", "HPCC artifact: MIN_RATE 100 Mb/s";
        /// Rate of a new flow; `"auto"` is the line rate.
        pub initial_rate: Option<Rate> = None, "initial-rate", "HPCC artifact: line rate";
        /// Window that limits the bytes in flight in addition to the rate.
        pub window: WindowLimit = WindowLimit::Scaled, "window", "HPCC artifact: HAS_WIN 1, VAR_WIN 1";
    }
}

/// A round trip that is being observed.
#[derive(Debug, Clone, Copy)]
struct Batch {
    /// Acknowledged bytes that must be exceeded for the round trip to be over.
    end: u64,
    /// Acknowledgements that the round trip will bring.
    size: u64,
}

/// The artifact's DCTCP. Sequence numbers are bytes of payload.
#[derive(Debug, Clone)]
pub struct DctcpRate {
    limits: RateLimits,
    /// In bits per second.
    rate: f64,
    alpha: f64,
    g: f64,
    rate_ai: f64,
    payload: u64,
    acknowledged: u64,
    marks: u64,
    batch: Option<Batch>,
    /// After a cut: until more than this is acknowledged, the rate neither rises nor is cut again.
    reduced_until: Option<u64>,
}

impl ControllerDefinition for DctcpRate {
    const NAME: &'static str = "dctcp-rate";
    const SUMMARY: &'static str = "DCTCP of the HPCC artifact: a rate instead of a window";
    type Parameters = DctcpRateParameters;

    fn new(parameters: &DctcpRateParameters, network: &NetworkFacts) -> Self {
        let limits = RateLimits::new(network, parameters.min_rate, parameters.window);
        let initial = parameters.initial_rate.map(|rate| rate.as_bps() as f64);
        Self {
            limits,
            rate: limits.clamp(initial.unwrap_or(limits.line)),
            alpha: 1.0,
            g: parameters.g.min(1.0),
            rate_ai: parameters.rate_ai.as_bps() as f64,
            payload: u64::from(network.payload),
            acknowledged: 0,
            marks: 0,
            batch: None,
            reduced_until: None,
        }
    }
}

impl DctcpRate {
    /// True if a round trip is over.
    fn observe(&mut self, sample: &AckSample<'_>) -> bool {
        self.marks += u64::from(sample.ecn);
        if self
            .batch
            .is_some_and(|batch| self.acknowledged <= batch.end)
        {
            return false;
        }
        if let Some(batch) = self.batch {
            let share = (self.marks as f64 / batch.size as f64).min(1.0);
            self.alpha = (1.0 - self.g) * self.alpha + self.g * share;
            self.marks = 0;
        }
        let in_flight = sample.in_flight.as_u64();
        self.batch = Some(Batch {
            end: self.acknowledged + in_flight,
            size: in_flight / self.payload + 1,
        });
        true
    }
}

impl CongestionControl for DctcpRate {
    #[inline(never)]
    fn on_ack(&mut self, sample: &AckSample<'_>) {
        self.acknowledged += sample.acked.as_u64();
        let new_batch = self.observe(sample);
        if self
            .reduced_until
            .is_some_and(|end| self.acknowledged > end)
        {
            self.reduced_until = None;
        }
        if self.reduced_until.is_some() {
            return;
        }
        if sample.ecn {
            self.rate = self.limits.clamp(self.rate * (1.0 - self.alpha / 2.0));
            self.reduced_until = Some(self.acknowledged + sample.in_flight.as_u64());
        } else if new_batch {
            self.rate = self.limits.clamp(self.rate + self.rate_ai);
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

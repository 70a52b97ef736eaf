//! Fairness of the rates at which flows may send, over time.

use crate::assemble::Assembly;
use crate::observe::AllowedRates;
use clearway_fabric::{Flow, FlowEvent, Sampler, Snapshot};
use clearway_units::{Span, Time};

/// Samples Jain's index over the rates at which all open flows may send: see [`RateFairness`](crate::observe::Metric::RateFairness). At the
/// limit, the sampler drops every other sample and doubles the interval.
#[derive(Debug)]
pub struct RateFairnessSampler {
    every: Span,
    limit: usize,
    due: Time,
    last: Option<Time>,
    rates: AllowedRates,
    samples: Vec<(Time, f64)>,
}

impl RateFairnessSampler {
    /// Samples `assembly` at the interval `every`, at most once per round, and keeps at most `limit` samples.
    ///
    /// # Panics
    /// If `every` is zero or `limit` below 2.
    pub fn new(assembly: &Assembly, every: Span, limit: usize) -> Self {
        assert!(
            !every.is_zero() && limit >= 2,
            "samples are some time apart"
        );
        Self {
            every,
            limit,
            due: Time::ZERO + every,
            last: None,
            rates: AllowedRates::new(assembly),
            samples: Vec::new(),
        }
    }

    /// Time and index of each sample with at least two flows.
    pub fn into_samples(self) -> Vec<(Time, f64)> {
        self.samples
    }
}

impl Sampler for RateFairnessSampler {
    fn due(&self) -> Time {
        self.due
    }

    fn on_flow(&mut self, event: FlowEvent, flow: &Flow) {
        self.rates.on_flow(event, flow);
    }

    fn on_sample(&mut self, now: Time, snapshot: &mut Snapshot<'_>) {
        if self.last.is_some_and(|last| now <= last) {
            return;
        }
        self.last = Some(now);
        let rates = &mut self.rates;
        snapshot.for_each_open_flow(|queue_pair| rates.add(queue_pair));
        self.samples
            .extend(rates.take_jain().map(|index| (now, index)));
        if self.samples.len() >= self.limit {
            let mut place = 0;
            self.samples.retain(|_| {
                place += 1;
                place % 2 == 0
            });
            self.every = self.every * 2;
        }
        let every = self.every.as_ps();
        self.due = Time::from_ps((now.as_ps() / every + 1).saturating_mul(every));
    }
}

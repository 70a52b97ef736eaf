//! Congestion controllers and path selectors compared with small models of them, step by step.
//!
//! A model is written from the papers and from decisions on open points, not from the code that it checks, and shares no arithmetic with
//! it. Model and controller are given the same random acknowledgements, in episodes with more and less congestion, and must allow the same
//! windows and rates after each. A model counts the branches that it takes; a test fails if one was never taken.

use clearway_transport::congestion::{AckSample, Allowance, LossCause, LossSample};
use clearway_units::{Bytes, Purpose, RandomStream, Span, Time};
use std::collections::BTreeMap;

mod dcqcn;
mod fairness;
mod hpcc;
mod spray;
mod strack;
mod swift;

/// Branches that a model has taken, by name.
#[derive(Default)]
struct Branches(BTreeMap<&'static str, u64>);

impl Branches {
    fn take(&mut self, name: &'static str) {
        *self.0.entry(name).or_default() += 1;
    }

    fn take_if(&mut self, condition: bool, name: &'static str) {
        if condition {
            self.take(name);
        }
    }

    fn either(&mut self, condition: bool, yes: &'static str, no: &'static str) {
        self.take(if condition { yes } else { no });
    }

    fn add(&mut self, other: &Self) {
        for (name, count) in &other.0 {
            *self.0.entry(name).or_default() += count;
        }
    }

    /// Asserts that each of the branches, separated by commas, was taken a few times, and that there are no others.
    #[track_caller]
    fn assert_all(&self, names: &str) {
        let mut names: Vec<&str> = names.split(", ").collect();
        names.sort_unstable();
        let taken: Vec<&str> = self.0.keys().copied().collect();
        assert_eq!(taken, names);
        assert!(self.0.values().all(|&count| count >= 5), "{:?}", self.0);
    }
}

/// Compares a window in bytes: both sides compute with floating-point numbers, in different orders.
#[track_caller]
fn assert_window(allowance: Allowance, model: f64, step: impl std::fmt::Debug) {
    let window = allowance.window;
    assert!(
        (window - model).abs() <= 1e-9 * model,
        "window {window}, model {model}, at {step:?}"
    );
}

/// Compares a rate in bit/s, which a controller allows as a whole number.
#[track_caller]
fn assert_rate(allowance: Allowance, model: f64, step: impl std::fmt::Debug) {
    let rate = allowance.rate.expect("a rate").as_bps() as f64;
    assert!(
        (rate - model).abs() <= 1.0 + 1e-9 * model,
        "rate {rate}, model {model}, at {step:?}"
    );
}

/// A random sequence of acknowledgements as one sender could see them.
struct Acks {
    random: RandomStream,
    payload: u64,
    base_rtt: u64,
    now: u64,
    delivered: u64,
    sent: u64,
    /// Acknowledgements until conditions change.
    left: u32,
    /// Mean queueing delay and mean time between two acknowledgements, in base round trips; probability of a mark.
    conditions: [f64; 3],
}

impl Acks {
    fn new(seed: u64, payload: u32, base_rtt: Span) -> Self {
        Self {
            random: RandomStream::new(seed, Purpose::Test, 0),
            payload: payload.into(),
            base_rtt: base_rtt.as_ps(),
            now: 100 * base_rtt.as_ps(),
            delivered: 0,
            sent: 0,
            left: 0,
            conditions: [0.0; 3],
        }
    }

    /// One of the numbers, with even chances.
    fn pick(&mut self, from: &[f64]) -> f64 {
        from[self.random.below(from.len() as u32) as usize]
    }

    fn begin_episode(&mut self) {
        self.left = (5.0 + self.pick(&[60.0, 150.0, 600.0]) * self.random.unit()) as u32;
        self.conditions = [
            self.pick(&[0.0, 0.1, 0.5, 1.0, 2.0, 5.0]),
            self.pick(&[0.002, 0.02, 0.2, 0.7]),
            self.pick(&[0.0, 0.1, 0.9, 1.0]),
        ];
    }

    /// A random number of picoseconds, so many base round trips on average and at least `least` times that.
    fn span(&mut self, round_trips: f64, least: f64) -> u64 {
        let factor = least + 2.0 * (1.0 - least) * self.random.unit();
        (round_trips * self.base_rtt as f64 * factor) as u64
    }

    /// The next acknowledgement, of a sender that keeps up to about a window of bytes in flight.
    fn next(&mut self, window: f64) -> AckSample<'static> {
        if self.left == 0 {
            self.begin_episode();
        }
        self.left -= 1;
        let [delay, gap, marked] = self.conditions;
        self.now += 1 + self.span(gap, 0.0);
        let delay = self.span(delay, 0.5);
        // Most acknowledge one packet; some none (a duplicate), a short one, or several at once.
        let acked = match self.random.below(20) {
            0 => 0,
            1 => 1 + u64::from(self.random.below(self.payload as u32)),
            2 => self.payload * u64::from(2 + self.random.below(4)),
            _ => self.payload,
        };
        self.delivered += acked;
        let in_flight = (window * self.random.unit()) as u64;
        self.sent = self.sent.max(self.delivered + in_flight);
        AckSample {
            now: Time::from_ps(self.now),
            rtt: Span::from_ps(self.base_rtt + delay),
            ecn: self.random.chance(marked),
            acked: Bytes::new(acked),
            in_flight: Bytes::new(self.sent - self.delivered),
            probe: false,
            delivered: Bytes::new(self.delivered),
            hops: &[],
        }
    }

    /// Perhaps a loss.
    fn loss(&mut self, probability: f64) -> Option<LossSample> {
        let causes = [LossCause::OutOfOrder, LossCause::Probe, LossCause::Timeout];
        self.random.chance(probability).then(|| LossSample {
            now: Time::from_ps(self.now),
            cause: causes[self.random.below(3) as usize],
            lost: Bytes::new(self.payload * u64::from(self.random.below(20))),
            in_flight: Bytes::ZERO,
        })
    }
}

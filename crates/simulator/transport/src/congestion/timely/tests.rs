use super::*;
use crate::congestion::tests::ack;
use crate::testing::network;
use clearway_units::Bytes;

const LINE: Rate = Rate::from_gbps(10);

/// With the thresholds of the ns-3 module: 50, 500 and 20 us.
fn timely(change: impl FnOnce(&mut TimelyParameters)) -> Fed {
    let mut parameters = TimelyParameters {
        scaled: false,
        initial_rate: Some(Rate::from_gbps(1)),
        ..Default::default()
    };
    change(&mut parameters);
    Fed {
        timely: Timely::new(&parameters, &network(LINE, Span::from_us(20))),
        delivered: Bytes::ZERO,
    }
}

/// A controller and the bytes acknowledged to it so far.
struct Fed {
    timely: Timely,
    delivered: Bytes,
}

impl Fed {
    /// Feeds acknowledgements of these round trips in microseconds, each of which ends one, and returns the rate in Gb/s.
    fn feed(&mut self, round_trips: &[u64]) -> f64 {
        for &us in round_trips {
            // With nothing in flight the next acknowledgement is of a packet that was sent later.
            self.delivered += Bytes::new(1000);
            self.timely.on_ack(&AckSample {
                rtt: Span::from_us(us),
                delivered: self.delivered,
                ..ack(1, 0)
            });
        }
        self.rate()
    }

    /// Rate in Gb/s.
    fn rate(&self) -> f64 {
        self.timely.rate / 1e9
    }
}

#[track_caller]
fn near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 5e-6, "{value} {expected}");
}

/// From 100 to 110 us: an average difference of 8.75 us, a gradient of 0.4375.
#[test]
fn a_growing_round_trip_cuts_by_its_gradient() {
    let mut timely = timely(|_| {});
    near(timely.feed(&[100]), 1.0);
    near(timely.feed(&[110]), 0.65);
    near(timely.timely.difference / timely.timely.min_rtt, 0.4375);
    // The average forgets an eighth at a time: (8.75 / 8 + 8.75) / 20 = 0.492.
    near(timely.feed(&[120]), 0.65 * (1.0 - 0.8 * 0.492_187_5));
}

#[test]
fn above_the_high_threshold_the_round_trip_itself_cuts() {
    let mut growing = timely(|_| {});
    near(growing.feed(&[100, 600]), 0.866_667);
    let mut falling = timely(|_| {});
    near(falling.feed(&[900, 600]), 0.866_667);
    let mut at_the_threshold = timely(|_| {});
    near(at_the_threshold.feed(&[500, 500]), 1.01);
}

#[test]
fn below_the_low_threshold_the_rate_rises_whatever_the_gradient() {
    let mut growing = timely(|_| {});
    near(growing.feed(&[20, 49]), 1.01);
    let mut at_the_threshold = timely(|_| {});
    assert!(at_the_threshold.feed(&[20, 50]) < 1.0);
}

#[test]
fn steps_are_larger_after_five_in_a_row() {
    let mut timely = timely(|_| {});
    near(timely.feed(&[100; 6]), 1.05);
    near(timely.feed(&[100; 2]), 1.15);
    // A cut begins the count anew: 2 us more are a gradient of 0.0875.
    near(timely.feed(&[102]), 1.15 * 0.93);
    // The average difference is positive for a while unless round trips fall.
    near(timely.feed(&[90]), 1.15 * 0.93 + 0.01);
}

/// A gradient of 13: the factor would be negative.
#[test]
fn a_steep_gradient_leaves_the_least_rate() {
    let mut timely = timely(|_| {});
    near(timely.feed(&[100, 400]), 0.1);
    near(timely.feed(&[30; 300]), 10.0);
}

#[test]
fn the_rate_changes_once_per_round_trip() {
    let mut timely = timely(|_| {});
    // The first acknowledgement of all, with ten packets in flight: theirs change nothing.
    for number in 1..=11 {
        timely.timely.on_ack(&ack(number, 10));
        near(timely.rate(), 1.0);
    }
    timely.timely.on_ack(&ack(12, 10));
    near(timely.rate(), 1.01);
}

/// At 400 Gb/s with a base round trip of 8 us: 12, 40 and 8 us.
#[test]
fn thresholds_scale_with_the_base_round_trip_and_steps_with_the_rate() {
    let facts = network(Rate::from_gbps(400), Span::from_us(8));
    let scaled = Timely::new(&TimelyParameters::default(), &facts);
    let base = facts.base_rtt.as_ps() as f64;
    assert_eq!(scaled.low_threshold, 1.5 * base);
    assert_eq!(scaled.high_threshold, 5.0 * base);
    assert_eq!(scaled.min_rtt, base);
    assert_eq!((scaled.rate_ai, scaled.rate_hai), (4e8, 2e9));
    assert_eq!(scaled.rate, 4e11);
    let own = timely(|p| {
        p.low_threshold = Some(Span::from_us(30));
        p.high_threshold = Some(Span::from_us(10));
    });
    let own = own.timely;
    assert_eq!((own.low_threshold, own.high_threshold), (3e7, 3e7));
}

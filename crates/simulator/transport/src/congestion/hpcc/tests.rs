use super::*;
use crate::congestion::closed_loop::star;
use clearway_units::{ParameterSet, Purpose, Span, Time, Value};

/// HPCC at 100 Gb/s with a base round trip of 4 us: a bandwidth-delay product of 50 KB.
fn hpcc(change: impl FnOnce(&mut HpccParameters)) -> Hpcc {
    let mut parameters = HpccParameters {
        base_rtt: BaseRtt::Fixed(Span::from_us(4)),
        ..Default::default()
    };
    change(&mut parameters);
    Hpcc::new(&parameters, &star())
}

fn hop(ns: u64, sent: u32, queue: u32) -> Hop {
    Hop {
        time: Time::from_ps(ns * 1000),
        rate: Rate::from_gbps(100),
        sent,
        queue,
    }
}

/// The acknowledgement of packet `number` with `window` packets in flight.
fn feed(hpcc: &mut Hpcc, number: u64, window: u64, hops: &[Hop]) {
    hpcc.on_ack(&AckSample {
        hops,
        ..crate::congestion::tests::ack(number, window)
    });
}

/// Round trips of one packet each through a port that is as busy as that, behind a queue of so many bytes.
fn round_trips(hpcc: &mut Hpcc, numbers: std::ops::RangeInclusive<u64>, busy: f64, queue: u32) {
    for n in numbers {
        // 4 us at 100 Gb/s are 50000 bytes.
        let sent = (busy * 50_000.0) as u32 * n as u32;
        feed(hpcc, n, 0, &[hop(4000 * n, sent, queue)]);
    }
}

#[track_caller]
fn near(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 1e-9, "{value} {expected}");
}

#[test]
fn the_step_grows_with_the_phase() {
    let mut hpcc = hpcc(|p| p.phase.phase_increase = 1.0);
    hpcc.take_phase(Bytes::new(4000));
    for (number, factor) in [(1, 1.25), (2, 1.5), (4, 1.0), (5, 1.25)] {
        feed(&mut hpcc, number, 100, &[hop(10_000, 0, 0)]);
        near(hpcc.rate_ai, 50e6 * factor);
    }
}

#[test]
fn three_differences_by_hand() {
    let mut hpcc = hpcc(|_| {});
    let (rate, window) = (|h: &Hpcc| h.rate, |h: &Hpcc| h.allowance().window);
    feed(&mut hpcc, 1, 100, &[hop(10_000, 0, 0)]);
    assert_eq!((hpcc.utilisation, rate(&hpcc)), (1.0, 100e9));
    // 9000 bytes in 1 us are 72 %, no queue at first: U = 3/4 × 1 + 1/4 × 0.72.
    feed(&mut hpcc, 2, 100, &[hop(11_000, 9000, 5000)]);
    near(hpcc.utilisation, 0.93);
    assert_eq!((rate(&hpcc), window(&hpcc)), (100e9, 50_000.0));
    // Busy all the time, and the smaller queue is a tenth of the product: U = 3/4 × 0.93 + 1/4 × 1.1.
    feed(&mut hpcc, 3, 100, &[hop(12_000, 21_500, 10_000)]);
    near(hpcc.utilisation, 0.9725);
    near(rate(&hpcc), 100e9 / (0.9725 / 0.95) + 50e6);
    near(window(&hpcc), 50_000.0 * rate(&hpcc) / 100e9);
    // More than a round trip later the past does not count.
    feed(&mut hpcc, 4, 100, &[hop(20_000, 71_500, 0)]);
    near(hpcc.utilisation, 0.5);
    assert_eq!(rate(&hpcc), 100e9, "the reference has not moved");
}

#[test]
fn the_fullest_link_counts_with_its_own_time() {
    let mut hpcc = hpcc(|_| {});
    let slow = |ns, sent| Hop {
        rate: Rate::from_gbps(50),
        ..hop(ns, sent, 0)
    };
    feed(&mut hpcc, 1, 100, &[hop(0, 0, 0), slow(0, 0)]);
    // 5000 bytes are 40 % in 1 us at 100 Gb/s, and 40 % in 2 us at 50 Gb/s; one byte more decides.
    feed(&mut hpcc, 2, 100, &[hop(1000, 5000, 0), slow(2000, 5001)]);
    near(hpcc.utilisation, 0.5 + 0.5 * 5001.0 / 12_500.0);
}

#[test]
fn five_small_steps_then_a_large_one() {
    let mut hpcc = hpcc(|_| {});
    round_trips(&mut hpcc, 1..=1, 0.5, 0);
    hpcc.reference.value = 10e9;
    for n in 2..=6 {
        round_trips(&mut hpcc, n..=n, 0.5, 0);
        near(hpcc.rate, 10e9 + (n - 1) as f64 * 50e6);
        assert_eq!(hpcc.stage, n as u16 - 1);
    }
    round_trips(&mut hpcc, 7..=7, 0.5, 0);
    near(hpcc.rate, 10.25e9 / (0.5 / 0.95) + 50e6);
    assert_eq!(hpcc.stage, 0);
}

#[test]
fn the_rate_stays_within_its_bounds() {
    let mut hpcc = hpcc(|_| {});
    round_trips(&mut hpcc, 1..=20, 1.0, 10_000_000);
    // U is about 201: once the least rate is reached, each candidate is that.
    assert_eq!(hpcc.rate, 100e6);
    near(hpcc.allowance().window, 50.0);
    round_trips(&mut hpcc, 21..=1000, 0.1, 0);
    assert_eq!(hpcc.rate, 100e9);
}

/// An acknowledgement acts at once, but a second one with the same news does not act again before a round trip is over.
#[test]
fn one_event_is_answered_once_per_round_trip() {
    for fast_react in [true, false] {
        let mut hpcc = hpcc(|p| p.fast_react = fast_react);
        hpcc.utilisation = 1.9;
        let full = |n: u64| [hop(4000 * n, 50_000 * n as u32, 45_000)];
        feed(&mut hpcc, 1, 10, &full(1));
        // U is 1.9 from the start: C = 2.
        for n in 2..=11 {
            feed(&mut hpcc, n, 10, &full(n));
            let expected = if fast_react { 50.05e9 } else { 100e9 };
            near(hpcc.rate, expected);
            assert_eq!(hpcc.reference.value, 100e9);
        }
        feed(&mut hpcc, 12, 10, &full(12));
        near(hpcc.reference.value, 50.05e9);
        near(hpcc.rate, 50.05e9);
        feed(&mut hpcc, 13, 10, &full(13));
        near(hpcc.rate, if fast_react { 25.075e9 } else { 50.05e9 });
    }
}

#[test]
fn sampling_lowers_the_reference_within_a_round_trip() {
    let mut hpcc = hpcc(|p| p.sampling.sampling_acks = Some(3));
    hpcc.utilisation = 1.9;
    let mut rates = Vec::new();
    for n in 1..=10 {
        let full = hop(4000 * n, 50_000 * n as u32, 45_000);
        feed(&mut hpcc, n, 1000, &[full]);
        rates.push(hpcc.reference.value / 1e9);
    }
    // The first acknowledgement is only recorded.
    let expected = [
        100.0, 100.0, 100.0, 50.05, 50.05, 50.05, 25.075, 25.075, 25.075,
    ];
    rates.iter().zip(expected).for_each(|(&a, b)| near(a, b));
    near(rates[9], 12.5875);
}

#[test]
fn a_deep_queue_makes_tokens_for_the_step() {
    let mut hpcc = hpcc(|p| p.increase.variable_increase = true);
    // The first round trip that is seen ends with the second acknowledgement.
    round_trips(&mut hpcc, 1..=2, 1.0, 500_000);
    near(hpcc.reference.factor(), 100.0 / (10.0 / 8.0 + 1.0));
    let reference = hpcc.reference.value;
    feed(&mut hpcc, 3, 0, &[hop(12_000, 125_000, 0)]);
    near(hpcc.utilisation, 0.5);
    near(hpcc.rate, reference + 50e6 * 100.0 / 2.25);
}

#[test]
fn random_feedback_keeps_a_slow_flow_from_slowing_down() {
    let mut hpcc = hpcc(|p| p.random_feedback.random_feedback = true);
    hpcc.take_random(RandomStream::new(1, Purpose::Test, 9));
    let mut reactions = 0;
    for n in 1..=4000 {
        hpcc.reference.value = 25e9;
        hpcc.utilisation = 1.9;
        let full = hop(4000 * n, (50_000 * n) as u32, 45_000);
        feed(&mut hpcc, n, 0, &[full]);
        if n > 1 {
            near(hpcc.rate, 12.55e9);
        }
        reactions += u32::from(hpcc.reference.value < 25e9);
    }
    assert!(reactions.abs_diff(1000) < 110, "{reactions}");
}

#[test]
fn without_records_nothing_is_known() {
    let mut hpcc = hpcc(|_| {});
    (1..=100).for_each(|n| feed(&mut hpcc, n, 10, &[]));
    assert_eq!((hpcc.rate, hpcc.utilisation), (100e9, 1.0));
    assert!(hpcc.uses_telemetry());
}

#[test]
fn another_path_starts_a_new_difference() {
    let mut hpcc = hpcc(|_| {});
    feed(&mut hpcc, 1, 0, &[hop(1000, 0, 0), hop(2000, 0, 0)]);
    feed(&mut hpcc, 2, 0, &[hop(3000, 900_000, 900_000)]);
    assert_eq!(hpcc.utilisation, 1.0, "another number of hops");
    // A hop of another rate, and one that has gone back in time.
    let other = Hop {
        rate: Rate::from_gbps(400),
        ..hop(9000, 900_000, 900_000)
    };
    feed(&mut hpcc, 3, 0, &[other]);
    feed(
        &mut hpcc,
        4,
        0,
        &[Hop {
            time: Time::from_us(8),
            ..other
        }],
    );
    assert_eq!(hpcc.utilisation, 1.0);
    // The counter of another port: it would have sent 4 GB in 4 us.
    feed(
        &mut hpcc,
        5,
        0,
        &[Hop {
            queue: 0,
            sent: 5,
            time: Time::from_us(12),
            ..other
        }],
    );
    assert_eq!(hpcc.utilisation, 1.0);
}

#[test]
fn defaults_are_those_of_the_tables() {
    let defaults: Vec<(&str, String)> = HpccParameters::default()
        .entries()
        .into_iter()
        .map(|(key, value)| (key, value.to_string()))
        .collect();
    let expected = [
        ("target-utilisation", "0.95"),
        ("max-stage", "5"),
        ("rate-ai", "\"auto\""),
        ("min-rate", "\"100Mbps\""),
        ("base-rtt", "\"network\""),
        ("fast-react", "true"),
        ("token-threshold", "\"50KB\""),
        ("ai-div", "\"1KB\""),
        ("variable-increase", "false"),
        ("ai-cap", "100.0"),
        ("bank-cap", "1000.0"),
        ("dampener-constant", "8.0"),
        ("damp-decay-needs-empty-bank", "false"),
        ("sampling-acks", "\"auto\""),
        ("random-feedback", "false"),
        ("phase-increase", "0.0"),
        ("phase-base", "1.0"),
    ];
    assert_eq!(defaults, expected.map(|(key, value)| (key, value.into())));
    let mut hpcc = HpccParameters::default();
    hpcc.set("sampling-acks", &Value::Integer(30)).unwrap();
    assert_eq!(hpcc.sampling.sampling_acks, Some(30));
}

#[test]
fn records_of_one_sender_are_not_compared_with_those_of_another() {
    let mut hpcc = hpcc(|_| {});
    hpcc.select_sender(7);
    feed(&mut hpcc, 1, 100, &[hop(10_000, 0, 0)]);
    // The first record of another sender, on another path, says nothing.
    hpcc.select_sender(8);
    feed(&mut hpcc, 2, 100, &[hop(10_500, 900_000, 0)]);
    assert_eq!(hpcc.utilisation, 1.0);
    // As by hand above: 9000 bytes in the microsecond since the sender's own record.
    hpcc.select_sender(7);
    feed(&mut hpcc, 3, 100, &[hop(11_000, 9000, 5000)]);
    near(hpcc.utilisation, 0.93);
    // More senders than are kept push out the oldest, and nothing else happens.
    (100..5000).for_each(|sender| hpcc.select_sender(sender));
    assert_eq!(hpcc.records.others.len(), Records::MOST);
}

/// Additive increase of Snyder Table 3.1 at 100 Gb/s, and in proportion elsewhere.
#[test]
fn the_step_is_a_share_of_the_line_rate() {
    let rate_ai = |gbps| {
        let network = star().at_rate(Rate::from_gbps(gbps));
        Hpcc::new(&HpccParameters::default(), &network).rate_ai
    };
    assert_eq!([25, 100, 400].map(rate_ai), [12.5e6, 50e6, 200e6]);
    assert_eq!(hpcc(|p| p.rate_ai = Some(Rate::from_gbps(1))).rate_ai, 1e9);
}

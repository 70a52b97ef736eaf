use super::*;
use crate::congestion::LossCause;
use crate::congestion::closed_loop::star;
use clearway_units::{Bytes, ParameterSet, Purpose};

fn swift(change: impl FnOnce(&mut SwiftParameters)) -> Swift {
    let mut parameters = SwiftParameters::default();
    change(&mut parameters);
    Swift::new(&parameters, &star())
}

/// Without flow scaling: a target of 7 us.
fn plain() -> Swift {
    swift(|p| p.flow_scaling = false)
}

/// The acknowledgement of packet `number` at `now` us after a round trip of `ns`, with `window` packets in flight.
fn feed(swift: &mut Swift, number: u64, now: f64, ns: u64, window: u64) {
    swift.on_ack(&AckSample {
        now: Time::from_ps((now * 1e6) as u64),
        rtt: Span::from_ns(ns),
        ..crate::congestion::tests::ack(number, window)
    });
}

#[track_caller]
fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() < tolerance, "{value} {expected}");
}

#[test]
fn the_step_grows_with_the_phase() {
    let grown = |delivered: u64, gain, base| {
        let mut swift = swift(|p| {
            p.flow_scaling = false;
            (p.phase.phase_increase, p.phase.phase_base) = (gain, base);
        });
        swift.take_phase(Bytes::new(1_000_000));
        swift.window = 5.0;
        feed(&mut swift, delivered / 1000, 10.0, 5000, 5);
        (swift.window - 5.0) / plain().step * 5.0
    };
    for (delivered, factor) in [(0, 1.0), (500_000, 1.5), (1_250_000, 1.25)] {
        near(grown(delivered, 1.0, 1.0), factor, 1e-9);
    }
    // MLTCP.
    for (delivered, factor) in [(0, 0.25), (500_000, 1.125), (1_250_000, 0.6875)] {
        near(grown(delivered, 1.75, 0.25), factor, 1e-9);
    }
}

#[test]
fn target_delays_by_window() {
    let us = |swift: &Swift, window| swift.target.at(window) / 1e6;
    for (largest, slope, offset) in [(50.0, 8.276, -1.170), (100.0, 8.164, -0.816)] {
        let swift = swift(|p| p.fs_max_window = largest);
        near(swift.target.slope / 1e6, slope, 6e-4);
        near(swift.target.offset / 1e6, offset, 6e-4);
        near(us(&swift, largest), 7.0, 1e-9);
        near(us(&swift, 2.0 * largest), 7.0, 1e-9);
        near(us(&swift, 0.1), 32.0, 1e-9);
        near(us(&swift, 0.01), 32.0, 1e-9);
    }
    let swift = swift(|_| {});
    near(us(&swift, 1.0), 7.0 + 7.106, 1e-3);
    near(us(&swift, 10.0), 7.0 + 1.447, 1e-3);
    assert_eq!(us(&plain(), 0.1), 7.0);
}

#[test]
fn targets_grow_with_the_path() {
    let target = |hops, switches| {
        let mut network = star();
        network.path.switches = switches;
        let parameters = SwiftParameters {
            hops,
            flow_scaling: false,
            ..Default::default()
        };
        Swift::new(&parameters, &network).target.at(1.0) / 1e6
    };
    let of = |hops| [1, 3, 5].map(|switches| target(hops, switches));
    assert_eq!(of(HopCount::Switches), [7.0, 11.0, 15.0]);
    assert_eq!(of(HopCount::Links), [9.0, 13.0, 17.0]);
}

#[test]
fn it_starts_at_line_rate_with_room_for_the_target() {
    let swift = plain();
    let facts = star();
    near(swift.allowance().window, facts.bdp.as_f64(), 1.0);
    assert_eq!(swift.allowance().rate, None);
    near(swift.largest_window(), 12.5 * 7000.0, 1e-6);
    let scaled = super::tests::swift(|_| {});
    near(scaled.largest_window(), 12.5 * 32_000.0, 1e-6);
    // 50 Mb/s times 4.175 us over 8000 bits.
    near(swift.step, 0.026_096, 1e-9);
}

#[test]
fn below_the_target_a_window_of_packets_adds_a_step() {
    let mut swift = plain();
    swift.set_window(10.0);
    (1..=10).for_each(|n| feed(&mut swift, n, 10.0, 6999, 9));
    near(swift.window, 10.0 + swift.step, 1e-3);
    swift.set_window(0.5);
    feed(&mut swift, 11, 10.0, 6999, 0);
    near(swift.window, 0.5 + swift.step, 1e-12);
}

#[test]
fn above_it_the_excess_decides_up_to_the_largest_cut() {
    for (ns, factor) in [
        (7000, 1.0),
        (8000, 0.9),
        (14_000, 0.6),
        (28_000, 0.5),
        (700_000, 0.5),
    ] {
        let mut swift = plain();
        feed(&mut swift, 1, 1000.0, ns, 9);
        near(swift.window, swift.initial_window * factor, 1e-9);
    }
}

#[test]
fn one_cut_per_round_trip() {
    let mut swift = plain();
    let windows: Vec<f64> = [100.0, 101.0, 107.9, 108.0, 115.9, 116.0]
        .into_iter()
        .zip(1..)
        .map(|(now, n)| {
            feed(&mut swift, n, now, 8000, 9);
            swift.window / swift.initial_window
        })
        .collect();
    for (window, cuts) in windows.iter().zip([1, 1, 1, 2, 2, 3]) {
        near(*window, (0..cuts).fold(1.0, |left, _| left * 0.9), 1e-9);
    }
}

#[test]
fn less_than_a_packet_is_paced() {
    let mut swift = plain();
    feed(&mut swift, 1, 10.0, 6000, 9);
    swift.set_window(0.25);
    // One packet of 1048 bytes in 24 us.
    let rate = swift.allowance().rate.unwrap().as_gbps();
    near(rate, 1048.0 * 8.0 / 24_000.0, 1e-6);
    assert_eq!(swift.allowance().window, 250.0);
    swift.set_window(1.0);
    assert_eq!(swift.allowance().rate, None);
    // Never nothing.
    (0..100).for_each(|n| feed(&mut swift, n, n as f64 * 1000.0, 700_000, 9));
    assert_eq!(swift.window, 0.01);
    assert!(swift.allowance().rate.is_some());
}

/// The example of Snyder §4.2.2: halved once, however many acknowledgements say so, until the reference follows.
#[test]
fn the_reference_halves_once_per_round_trip() {
    let mut swift = swift(|p| {
        p.flow_scaling = false;
        p.reference_window = true;
        p.rate_ai = Some(Rate::from_bps(1));
    });
    let full = swift.initial_window;
    for n in 1..=11 {
        feed(&mut swift, n, 10.0, 700_000, 10);
        near(swift.window, full / 2.0, 1e-6);
    }
    // The first packet sent after the first acknowledgement comes back.
    feed(&mut swift, 12, 10.0, 700_000, 10);
    near(swift.window, full / 2.0, 1e-6);
    feed(&mut swift, 13, 10.0, 700_000, 10);
    near(swift.window, full / 4.0, 1e-6);
    // The delay is gone: back to the reference at once.
    feed(&mut swift, 14, 10.0, 5000, 10);
    near(swift.window, full / 2.0, 1e-6);
}

#[test]
fn the_step_is_added_to_the_reference_whatever_the_delay() {
    let mut swift = swift(|p| {
        p.flow_scaling = false;
        p.reference_window = true;
    });
    swift.set_window(10.0);
    if let Form::Reference(reference) = &mut swift.form {
        reference.value = 10.0;
    }
    feed(&mut swift, 1, 10.0, 8000, 5);
    near(swift.window, 9.0 + swift.step, 1e-9);
    feed(&mut swift, 2, 10.0, 6000, 5);
    near(swift.window, 10.0 + swift.step, 1e-9);
}

/// 4 us above the target make no tokens, more does: one for each 30 ns beyond the unloaded round trip.
#[test]
fn delay_makes_tokens() {
    for (ns, has_tokens) in [(11_000, false), (11_001, true)] {
        let mut swift = swift(|p| {
            p.flow_scaling = false;
            p.increase.variable_increase = true;
        });
        feed(&mut swift, 1, 10.0, ns, 0);
        feed(&mut swift, 2, 20.0, 6000, 0);
        let Form::Reference(reference) = &swift.form else {
            panic!("tokens need a reference");
        };
        // min(6826 / 30, 100) tokens at a dampener of just over 1.
        let expected = if has_tokens {
            100.0 / (1.0 / 8.0 + 1.0)
        } else {
            1.0
        };
        near(reference.factor(), expected, 0.01);
    }
}

#[test]
fn random_feedback_keeps_a_small_window_from_shrinking() {
    let mut swift = swift(|p| {
        p.flow_scaling = false;
        p.random_feedback.random_feedback = true;
    });
    swift.take_random(RandomStream::new(1, Purpose::Test, 3));
    let quarter = swift.initial_window / 4.0;
    let mut reactions = 0;
    for n in 1..=4000 {
        swift.set_window(quarter);
        feed(&mut swift, n, n as f64 * 10.0, 8000, 9);
        reactions += u32::from(swift.window < quarter);
    }
    assert!(reactions.abs_diff(1000) < 110, "{reactions}");
}

#[test]
fn losses_cut_once_per_round_trip() {
    for reference_window in [false, true] {
        let mut swift = swift(|p| p.reference_window = reference_window);
        let full = swift.initial_window;
        for (us, left) in [(100, 0.5), (102, 0.5), (105, 0.25)] {
            swift.on_loss(&LossSample {
                now: Time::from_us(us),
                cause: LossCause::GoBack,
                lost: Bytes::new(1000),
                in_flight: Bytes::ZERO,
            });
            near(swift.window, full * left, 1e-9);
        }
    }
}

#[test]
fn defaults_are_those_of_the_tables() {
    let defaults: Vec<(&str, String)> = SwiftParameters::default()
        .entries()
        .into_iter()
        .map(|(key, value)| (key, value.to_string()))
        .collect();
    let expected = [
        ("rate-ai", "\"auto\""),
        ("beta", "0.8"),
        ("max-mdf", "0.5"),
        ("base-delay", "\"5us\""),
        ("hop-delay", "\"2us\""),
        ("hops", "\"switches\""),
        ("flow-scaling", "true"),
        ("fs-range", "\"auto\""),
        ("fs-max-window", "50.0"),
        ("fs-min-window", "0.1"),
        ("base-rtt", "\"path\""),
        ("min-window", "0.01"),
        ("max-window", "\"auto\""),
        ("initial-window", "\"auto\""),
        ("reference-window", "false"),
        ("token-threshold", "\"4us\""),
        ("ai-div", "\"30ns\""),
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
}

/// Growth of the reference over round trips with this delay, with random feedback.
fn reference_growth(ns: u64) -> f64 {
    let mut swift = swift(|p| {
        p.flow_scaling = false;
        p.reference_window = true;
        p.random_feedback.random_feedback = true;
    });
    swift.take_random(RandomStream::new(1, Purpose::Test, 1));
    let reference = |swift: &Swift| match &swift.form {
        Form::Reference(reference) => reference.value,
        Form::Plain(_) => panic!("a reference window was asked for"),
    };
    let before = reference(&swift);
    for number in 1..=400 {
        feed(&mut swift, number, 10.0 * number as f64, ns, 10);
    }
    reference(&swift) - before
}

#[test]
fn a_delay_that_meets_the_target_is_no_congestion() {
    // The reference never skips a round trip at random.
    assert_eq!(reference_growth(7000), reference_growth(6999));
    assert!(reference_growth(7001) < reference_growth(7000) * 0.8);
    // Without a reference the window stays: it grows below the target, and falls above.
    let mut swift = plain();
    swift.window = 5.0;
    feed(&mut swift, 1, 100.0, 7000, 5);
    assert_eq!(swift.window, 5.0);
}

/// Additive increase of Snyder Table 3.1 at 100 Gb/s, as packets in a round trip, and in proportion elsewhere.
#[test]
fn the_step_is_a_share_of_the_line_rate() {
    let step = |gbps| {
        let network = star().at_rate(Rate::from_gbps(gbps));
        Swift::new(&SwiftParameters::default(), &network).step
    };
    near(step(100), 50e6 * 4.16e-6 / 8.0 / 1000.0, 1e-3);
    near(step(400) / step(100), 4.0, 1e-9);
}

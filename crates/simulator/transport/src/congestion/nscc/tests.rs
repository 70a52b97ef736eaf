use super::*;
use crate::testing::network;

const PACKET: u64 = 4160;
const NOW: Time = Time::from_us(1000);

/// Four links of 1 us at 400 Gb/s, store and forward: the fabric for which the specification gives its values.
fn facts() -> NetworkFacts {
    let mut facts = network(Rate::from_gbps(400), Span::from_us(8));
    facts.base_rtt = Span::from_ps(8_337_920);
    facts.bdp = facts.line_rate.bytes_in(facts.base_rtt);
    facts
}

/// A controller with this window, whose last adjustment was just now and for which no quick adaptation is due.
fn at(window: f64) -> Nscc {
    with(window, |_| {})
}

fn with(window: f64, change: impl FnOnce(&mut NsccParameters)) -> Nscc {
    let mut parameters = NsccParameters::default();
    change(&mut parameters);
    let mut nscc = Nscc::new(&parameters, &facts());
    nscc.on_restart(NOW);
    nscc.last_decrease = Time::ZERO;
    nscc.period_end = Some(NOW + Span::from_ms(1));
    nscc.window = window;
    nscc
}

/// An acknowledgement of so many bytes, this queueing delay (in us) above the base round trip.
fn ack(acked: u64, delay: f64, ecn: bool) -> AckSample<'static> {
    AckSample {
        now: NOW,
        rtt: Span::from_ps(8_337_920 + (delay * 1e6) as u64),
        ecn,
        acked: Bytes::new(acked),
        in_flight: Bytes::new(77_000),
        probe: false,
        delivered: Bytes::ZERO,
        hops: &[],
    }
}

fn trim(lost: u64) -> LossSample {
    LossSample {
        now: NOW,
        cause: LossCause::Trimmed {
            last_hop: false,
            rtt: Span::from_ps(8_337_920),
        },
        lost: Bytes::new(lost),
        in_flight: Bytes::new(77_000),
    }
}

#[track_caller]
fn close(value: f64, expected: f64) {
    let error = (value - expected).abs();
    assert!(
        error <= expected.abs() * 1e-6 + 5e-3,
        "{value} instead of {expected}"
    );
}

#[test]
fn constants_are_those_of_the_table() {
    let nscc = at(100_000.0);
    close(facts().bdp.as_f64(), 416_896.0);
    close(nscc.constants.target / 1e6, 6.253_44);
    close(nscc.constants.proportional * 1e6, 3794.68);
    assert!(
        (nscc.steps.fair - 56_920.0).abs() < 1.0,
        "{}",
        nscc.steps.fair
    );
    close(nscc.steps.fairness, 1707.6);
    assert!((nscc.constants.fast_increase - 0.694_83).abs() < 1e-5);
    close(nscc.max_window, 625_344.0);
    close(nscc.max_window * nscc.constants.quick_adapt_share, 78_168.0);
    assert_eq!(nscc.constants.min_window, 4160.0);
}

/// Window after acknowledgements that begin with a window of 100,000 bytes.
fn after(sample: AckSample<'_>) -> f64 {
    let mut nscc = at(100_000.0);
    nscc.on_ack(&sample);
    nscc.window
}

#[test]
fn each_quadrant_moves_the_window_as_the_reference_does() {
    close(after(ack(9 * PACKET, 2.0, false)), 106_042.98);
    close(after(ack(9 * PACKET, 7.0, false)), 121_310.92);
    close(after(ack(9 * PACKET, 2.0, true)), 100_000.0);
}

#[test]
fn increases_wait_for_more_than_eight_packets() {
    close(after(ack(8 * PACKET, 2.0, false)), 100_000.0);
    let mut nscc = at(100_000.0);
    for _ in 0..9 {
        nscc.on_ack(&ack(PACKET, 2.0, false));
    }
    close(nscc.window, 106_042.98);
}

#[test]
fn marks_with_a_long_average_delay_shrink_the_window_once_per_round_trip() {
    for (average, expected) in [(10.0, 70_027.52), (30.0, 50_000.0)] {
        let mut nscc = at(100_000.0);
        nscc.average = average * 1e6;
        nscc.on_ack(&ack(PACKET, average, true));
        close(nscc.window, expected);
        nscc.on_ack(&ack(PACKET, average, true));
        close(nscc.window, expected);
    }
}

#[test]
fn a_short_average_does_not_shrink_it() {
    let mut nscc = at(100_000.0);
    nscc.on_ack(&ack(PACKET, 10.0, true));
    close(nscc.window, 100_000.0);
}

#[test]
fn a_trimmed_packet_takes_its_size_off() {
    let mut nscc = at(100_000.0);
    nscc.on_loss(&trim(PACKET));
    close(nscc.window, 95_840.0);
    assert!((nscc.average / 1e6 - 0.104_22).abs() < 1e-5);
}

#[test]
fn with_receiver_credits_the_last_hop_does_not() {
    let cause = LossCause::Trimmed {
        last_hop: true,
        rtt: Span::from_us(8),
    };
    let loss = LossSample {
        cause,
        ..trim(PACKET)
    };
    let mut nscc = with(100_000.0, |parameters| parameters.last_hop_cut = false);
    nscc.on_loss(&loss);
    close(nscc.window, 100_000.0);
    nscc.on_loss(&trim(PACKET));
    close(nscc.window, 95_840.0);
}

#[test]
fn no_delay_at_all_makes_it_grow_fast_after_a_window() {
    let mut nscc = at(12_480.0);
    let windows: Vec<f64> = std::iter::repeat_with(|| {
        nscc.on_ack(&ack(PACKET, 0.0, false));
        nscc.window
    })
    .take(5)
    .collect();
    for (window, expected) in windows
        .iter()
        .zip([12_480.0, 12_480.0, 12_480.0, 15_370.5, 18_261.0])
    {
        assert!((window - expected).abs() < 0.05, "{windows:?}");
    }
}

#[test]
fn little_achieved_with_a_trim_before_makes_the_window_fall_to_it() {
    let due = |achieved: f64| {
        let mut nscc = at(100_000.0);
        nscc.period_end = Some(NOW - Span::from_ps(1));
        nscc.achieved = achieved;
        nscc.trigger = true;
        nscc.on_ack(&ack(PACKET, 3.0, false));
        nscc
    };
    let little = due(15_840.0);
    close(little.window, 20_000.0);
    assert_eq!((little.to_ignore, little.trigger), (77_000.0, false));
    let much = due(90_000.0);
    close(much.window, 100_000.0);
    assert!(much.trigger);
}

#[test]
fn signals_from_before_the_fall_are_ignored() {
    let mut nscc = at(20_000.0);
    nscc.to_ignore = 77_000.0;
    nscc.average = 30e6;
    nscc.on_loss(&trim(PACKET));
    nscc.on_ack(&ack(PACKET, 30.0, true));
    close(nscc.window, 20_000.0);
    nscc.on_ack(&ack(70_000, 30.0, true));
    close(nscc.window, 10_000.0);
}

#[test]
fn without_trimming_a_long_delay_is_reason_enough() {
    let window = |limit| {
        let mut nscc = with(100_000.0, |parameters| parameters.quick_adapt_delay = limit);
        nscc.period_end = Some(NOW - Span::from_ps(1));
        nscc.achieved = 15_840.0;
        nscc.on_ack(&ack(PACKET, 26.0, true));
        nscc.window
    };
    close(window(Some(4.0)), 20_000.0);
    assert!(window(None) > 40_000.0);
}

#[test]
fn the_fairness_step_comes_once_per_round_trip() {
    let mut nscc = at(100_000.0);
    nscc.last_adjustment = NOW - Span::from_us(9);
    nscc.on_ack(&ack(PACKET, 2.0, true));
    close(nscc.window, 101_707.6);
    nscc.on_ack(&ack(PACKET, 2.0, true));
    close(nscc.window, 101_707.6);
}

#[test]
fn the_largest_window_follows_the_base_round_trip() {
    let mut nscc = at(600_000.0);
    nscc.on_loss(&LossSample {
        cause: LossCause::Timeout,
        ..trim(PACKET)
    });
    close(nscc.window, 595_840.0);
    let mut sample = ack(PACKET, 0.0, true);
    sample.rtt = Span::from_us(4);
    nscc.on_ack(&sample);
    close(nscc.max_window, 300_000.0);
    close(nscc.window, 300_000.0);
}

#[test]
fn the_average_may_be_one_over_the_last_round_trip() {
    let mut nscc = with(100_000.0, |parameters| parameters.average_over_rtt = true);
    nscc.last_sample = NOW - Span::from_ps(4_168_960);
    nscc.on_ack(&ack(PACKET, 2.0, false));
    close(nscc.average / 1e6, 1.0);
}

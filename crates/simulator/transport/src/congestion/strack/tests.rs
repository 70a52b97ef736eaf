use super::*;
use crate::testing::network;

const MTU: f64 = 4096.0;

fn facts(gbps: u64) -> NetworkFacts {
    network(Rate::from_gbps(gbps), Span::from_us(8))
}

/// A controller at 400 Gb/s whose window is `packets`, started at 1 ms and past its first fairness step.
fn at(packets: f64) -> Strack {
    with(packets, |_| {})
}

fn with(packets: f64, change: impl FnOnce(&mut StrackParameters)) -> Strack {
    let mut parameters = StrackParameters::default();
    change(&mut parameters);
    let mut controller = Strack::new(&parameters, &facts(400));
    controller.on_restart(START);
    controller.last_fairness = NOW;
    controller.window = packets * MTU;
    controller
}

const START: Time = Time::from_us(1000);
const NOW: Time = Time::from_us(1100);

/// An acknowledgement of one packet at [`NOW`] after `delay` us in queues.
fn ack(delay: u64, ecn: bool) -> AckSample<'static> {
    AckSample {
        now: NOW,
        rtt: Span::from_us(8 + delay),
        ecn,
        acked: Bytes::new(4096),
        in_flight: Bytes::ZERO,
        probe: false,
        delivered: Bytes::ZERO,
        hops: &[],
    }
}

fn packets(controller: &Strack) -> f64 {
    controller.window / MTU
}

#[track_caller]
fn assert_near(value: f64, expected: f64) {
    assert!(
        (value - expected).abs() <= 1e-9 * expected.abs(),
        "{value} instead of {expected}"
    );
}

#[test]
fn table_1_at_three_speeds() {
    // Speed, then beta and eta in packets, alpha in packets per microsecond, most packets per round trip.
    for (gbps, beta, eta, alpha, most) in [
        (200, 20.0 / 3.0, 0.2, 4.0 / 9.0, 32.0 / 9.0),
        (400, 40.0 / 3.0, 0.4, 8.0 / 9.0, 64.0 / 9.0),
        (800, 80.0 / 3.0, 0.8, 16.0 / 9.0, 128.0 / 9.0),
    ] {
        let gains = Gains::new(&StrackParameters::default(), &facts(gbps));
        assert_near(gains.beta, beta);
        assert_near(gains.eta, eta);
        assert_near(gains.alpha * 1e6, alpha);
        assert_near(gains.alpha * 8e6, most);
    }
}

#[test]
fn thresholds_and_limits_at_400g() {
    let controller = Strack::new(&StrackParameters::default(), &facts(400));
    assert_near(controller.target, 8e6);
    assert_near(controller.high_delay, 24e6);
    // 8 us and the serialisation of 4224 bytes at 20 ps: 8.08448 us, or 404 224 bytes.
    assert_near(controller.max_window, 505_280.0);
    assert_near(controller.window, controller.max_window);
    assert_near(controller.min_window, MTU);
    assert_eq!(controller.achieved_period, Span::from_us(16));
}

#[test]
fn scenario_1_opens_the_window_by_the_distance_to_the_target() {
    for delay in [0, 2, 7] {
        let mut controller = at(50.0);
        controller.on_ack(&ack(delay, false));
        assert_near(
            packets(&controller),
            50.0 + 8.0 / 9.0 * (8 - delay) as f64 / 50.0,
        );
    }
}

#[test]
fn gains_grow_with_the_phase_once_per_round_trip() {
    let mut controller = with(50.0, |p| p.phase.phase_increase = 1.0);
    controller.take_phase(Bytes::new(1_000_000));
    let half = AckSample {
        delivered: Bytes::new(2_500_000),
        ..ack(8, false)
    };
    controller.on_ack(&half);
    assert_near(packets(&controller), 50.0);
    let later = AckSample {
        now: NOW + Span::from_us(9),
        ..half
    };
    controller.on_ack(&later);
    assert_near(packets(&controller), 50.4);
    assert_near(controller.gains.eta / MTU, 0.6);
    assert_near(controller.gains.beta / MTU, 20.0);
    controller.on_ack(&ack(25, false));
    assert_near(packets(&controller), 50.4 + 20.0 / 50.4);
}

#[test]
fn unmarked_between_target_and_high_holds() {
    for delay in [8, 16, 24] {
        let mut controller = at(50.0);
        controller.average_delay = 20e6;
        controller.on_ack(&ack(delay, false));
        assert_near(packets(&controller), 50.0);
    }
}

#[test]
fn scenario_4_adds_beta_per_window() {
    let mut controller = at(50.0);
    controller.on_ack(&ack(25, false));
    assert_near(packets(&controller), 50.0 + 40.0 / 3.0 / 50.0);
}

#[test]
fn scenario_2_leaves_the_window_alone() {
    let mut controller = at(50.0);
    controller.on_ack(&ack(7, true));
    assert_near(packets(&controller), 50.0);
    // Even when the average is high: this packet's own delay is not.
    controller.average_delay = 20e6;
    controller.on_ack(&ack(7, true));
    assert_near(packets(&controller), 50.0);
}

#[test]
fn scenario_3_shrinks_with_the_average_delay_once_per_base_round_trip() {
    let mut controller = at(50.0);
    controller.average_delay = 10e6;
    controller.on_ack(&ack(10, true));
    assert_near(packets(&controller), 50.0 * (1.0 - 0.8 * 2.0 / 10.0));
    let after = controller.window;
    let again = AckSample {
        now: NOW + Span::from_us(8),
        ..ack(10, true)
    };
    controller.last_fairness = again.now;
    controller.on_ack(&again);
    assert_near(controller.window, after);
    controller.on_ack(&AckSample {
        now: again.now + Span::from_ps(1),
        ..again
    });
    assert!(controller.window < after);
}

#[test]
fn one_decrease_at_most_halves() {
    let mut controller = at(50.0);
    controller.average_delay = 1e9;
    controller.on_ack(&ack(20, true));
    assert_near(packets(&controller), 25.0);
}

#[test]
fn only_marks_shrink_unless_told_otherwise() {
    let run = |requires| {
        let mut controller = with(50.0, |p| p.decrease_requires_ecn = requires);
        controller.average_delay = 10e6;
        controller.on_ack(&ack(10, false));
        packets(&controller)
    };
    assert_near(run(true), 50.0);
    assert_near(run(false), 42.0);
}

#[test]
fn a_very_high_delay_falls_to_what_was_achieved() {
    let run = |achieved| {
        let mut controller = at(50.0);
        controller.average_delay = 30e6;
        controller.achieved = achieved;
        controller.period_start = NOW;
        controller.on_ack(&ack(30, true));
        packets(&controller)
    };
    let shrunk = 50.0 * (1.0 - 0.8 * 22.0 / 30.0_f64).max(0.5);
    assert_near(run(5 * 4096), 5.0);
    assert_near(run(100), 1.0);
    // Nothing known, or more than an eighth of the largest window (63 160 bytes).
    assert_near(run(0), shrunk);
    assert_near(run(63_200), shrunk);
}

#[test]
fn the_achieved_bytes_are_counted_over_base_round_trip_plus_target() {
    let mut controller = at(50.0);
    let ack_at = |us: u64, probe| AckSample {
        now: START + Span::from_us(us),
        probe,
        ..ack(0, true)
    };
    for us in 1..=16 {
        controller.on_ack(&ack_at(us, us == 5));
    }
    assert_eq!((controller.achieved, controller.received), (0, 15 * 4096));
    controller.on_ack(&ack_at(17, false));
    assert_eq!((controller.achieved, controller.received), (16 * 4096, 0));
}

#[test]
fn a_pause_makes_the_achieved_bytes_invalid() {
    let mut controller = at(50.0);
    controller.on_ack(&ack(0, true));
    (controller.achieved, controller.received) = (77, 88);
    controller.on_restart(NOW + Span::from_us(16));
    assert_eq!((controller.achieved, controller.received), (77, 88));
    let later = NOW + Span::from_us(17);
    controller.on_restart(later);
    assert_eq!((controller.achieved, controller.received), (0, 0));
    assert_eq!(controller.period_start, later);
}

#[test]
fn fairness_adds_eta_once_per_base_round_trip() {
    let mut controller = at(50.0);
    for us in 0..=80 {
        controller.on_ack(&AckSample {
            now: NOW + Span::from_us(us),
            ..ack(7, true)
        });
    }
    // Strictly more than 8 us apart, looked at every microsecond: every 9 us.
    assert_near(packets(&controller), 50.0 + 8.0 * 0.4);
}

#[test]
fn increments_follow_the_acknowledged_bytes() {
    let opened = |acked, probe| {
        let mut controller = at(50.0);
        controller.on_ack(&AckSample {
            acked: Bytes::new(acked),
            probe,
            ..ack(0, false)
        });
        packets(&controller) - 50.0
    };
    assert_near(opened(4 * 4096, false), 4.0 * opened(4096, false));
    assert_near(opened(1024, false), 0.25 * opened(4096, false));
    assert_near(opened(0, false), 0.0);
    assert_near(opened(4096, true), 0.0);
}

#[test]
fn the_base_round_trip_is_the_least_seen() {
    let mut controller = at(50.0);
    controller.on_ack(&AckSample {
        rtt: Span::from_us(4),
        ..ack(0, false)
    });
    assert_eq!(controller.base_rtt, Span::from_us(4));
    assert_eq!(controller.achieved_period, Span::from_us(12));
    // 8 us are now 4 us of queueing.
    let before = packets(&controller);
    controller.on_ack(&ack(0, false));
    assert_near(packets(&controller), before + 8.0 / 9.0 * 4.0 / before);
}

#[test]
fn only_a_timeout_costs_window() {
    let loss = |cause, lost| LossSample {
        now: NOW,
        cause,
        lost: Bytes::new(lost),
        in_flight: Bytes::ZERO,
    };
    let mut controller = at(50.0);
    controller.on_loss(&loss(LossCause::OutOfOrder, 40_960));
    controller.on_loss(&loss(LossCause::Probe, 40_960));
    assert_near(packets(&controller), 50.0);
    controller.on_loss(&loss(LossCause::Timeout, 40_960));
    assert_near(packets(&controller), 40.0);
    controller.on_loss(&loss(LossCause::Timeout, 1_000_000));
    assert_near(packets(&controller), 1.0);
}

#[test]
fn the_window_stays_within_its_limits() {
    let mut controller = with(1.0, |p| {
        p.max_window = RelativeSize::Absolute(Bytes::new(8192));
    });
    for us in 0..1000 {
        controller.on_ack(&AckSample {
            now: NOW + Span::from_us(us),
            ..ack(0, false)
        });
    }
    assert_near(packets(&controller), 2.0);
    let inverted = with(3.0, |p| {
        p.max_window = RelativeSize::Absolute(Bytes::new(10));
        p.initial_window = Some(RelativeSize::percent_of_bdp(500));
    });
    assert_near(inverted.max_window, MTU);
}

/// N senders in step at one 400 Gb/s link: the queue settles where one fairness step undoes one decrease,
/// `eta = gamma × w × (q - T) / q` with `w = C × (base + q) / (N × packet)`.
#[test]
fn the_queue_settles_where_fairness_and_decrease_cancel() {
    for (senders, expected_us) in [(8.0, 8.2), (32.0, 8.7), (64.0, 9.4), (128.0, 11.1)] {
        let (bytes_per_us, wire, base) = (50_000.0, 4160.0, 8.0);
        let mut controller = at(97.0);
        controller.last_fairness = START;
        let mut now = START;
        let (mut sum, mut count) = (0.0, 0.0);
        for step in 0..60_000 {
            let window = packets(&controller);
            let queue = (senders * window * wire / bytes_per_us - base).max(0.0);
            let rtt = Span::from_ps(((base + queue) * 1e6) as u64);
            now += Span::from_ps((rtt.as_ps() as f64 / window) as u64);
            // Above Kmax = 75 % of 400 KB every packet is marked.
            let ecn = queue * bytes_per_us > 300_000.0;
            controller.on_ack(&AckSample {
                now,
                rtt,
                ecn,
                ..ack(0, ecn)
            });
            if step >= 30_000 {
                (sum, count) = (sum + queue, count + 1.0);
            }
        }
        let mean: f64 = sum / count;
        assert!(
            (mean - expected_us).abs() < 0.35,
            "{senders} senders: {mean:.2} us instead of {expected_us} us"
        );
    }
}

#[test]
fn the_largest_window_bounds_the_fall_to_what_was_achieved_however_small_the_fraction() {
    for fraction in [1.0, 0.5, 0.0, -1.0] {
        let mut strack = with(50.0, |p| p.quick_adapt_fraction = fraction);
        assert_eq!(strack.quick_adapt_limit, strack.max_window, "{fraction}");
        // More was achieved than that, so the window falls by its usual factor instead.
        strack.achieved = (strack.max_window * 1.5) as u64;
        strack.average_delay = 20e6;
        strack.decrease(NOW, 60e6);
        assert!(packets(&strack) < 50.0, "{fraction}: {}", packets(&strack));
    }
}

/// Algorithm 4 line 15 needs a delay above the target, with any average.
#[test]
fn a_delay_of_the_target_itself_decreases_nothing() {
    let mut strack = at(100.0);
    strack.average_delay = 4.0 * strack.target;
    strack.decrease(NOW, strack.target);
    assert_near(packets(&strack), 100.0);
    strack.decrease(NOW, strack.target * 1.001);
    assert!(packets(&strack) < 100.0);
}

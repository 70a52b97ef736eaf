use super::*;
use crate::congestion::LossCause;
use crate::testing::network;
use clearway_units::{Bytes, Rate, Span, Time};

const MSS: f64 = 4096.0;

fn reno(change: impl FnOnce(&mut RenoParameters)) -> Reno {
    let mut parameters = RenoParameters::default();
    change(&mut parameters);
    let facts = network(Rate::from_gbps(400), Span::from_us(80));
    Reno::new(&parameters, &facts)
}

/// Acknowledges one packet while `in_flight` packets are left in flight.
fn ack(reno: &mut Reno, ecn: bool, in_flight: u64) {
    reno.on_ack(&AckSample {
        now: Time::ZERO,
        rtt: Span::from_us(80),
        ecn,
        acked: Bytes::new(4096),
        in_flight: Bytes::new(in_flight * 4096),
        probe: false,
        delivered: Bytes::ZERO,
        hops: &[],
    });
}

fn packets(reno: &Reno) -> f64 {
    reno.allowance().window / MSS
}

#[test]
fn the_window_grows_by_a_packet_per_round_trip() {
    let mut reno = reno(|_| {});
    assert_eq!(packets(&reno), 1.0);
    // A packet per round trip: each acknowledgement adds about two to the square of the window.
    for (acks, expected) in [(1, 2.0), (5_000, 100.0), (15_000, 200.0)] {
        (0..acks).for_each(|_| ack(&mut reno, false, 10));
        assert!(
            (packets(&reno) - expected).abs() < 0.2,
            "{}",
            packets(&reno)
        );
    }
    (0..1_000_000).for_each(|_| ack(&mut reno, false, 10));
    assert_eq!(reno.allowance().window, reno.largest_window());
}

#[test]
fn marks_halve_once_per_window() {
    let mut reno = reno(|p| p.initial_window = Some(RelativeSize::Absolute(Bytes::new(409_600))));
    assert_eq!(packets(&reno), 100.0);
    ack(&mut reno, true, 99);
    assert_eq!(packets(&reno), 50.0);
    // Acknowledgements of packets sent with the old window neither cut nor grow.
    for _ in 0..99 {
        ack(&mut reno, true, 49);
        assert_eq!(packets(&reno), 50.0);
    }
    ack(&mut reno, false, 49);
    assert!((packets(&reno) - 50.02).abs() < 1e-9);
    ack(&mut reno, true, 49);
    assert!((packets(&reno) - 25.01).abs() < 1e-9);
    for _ in 0..500 {
        ack(&mut reno, true, 0);
    }
    assert_eq!(packets(&reno), 1.0);
}

#[test]
fn losses_halve_and_timeouts_start_over() {
    let mut reno = reno(|p| p.initial_window = Some(RelativeSize::Absolute(Bytes::new(409_600))));
    let loss = |cause| LossSample {
        now: Time::ZERO,
        cause,
        lost: Bytes::new(40_960),
        in_flight: Bytes::ZERO,
    };
    reno.on_loss(&loss(LossCause::GoBack));
    assert_eq!(packets(&reno), 50.0);
    reno.on_loss(&loss(LossCause::GoBack));
    assert_eq!(packets(&reno), 50.0, "the same window");
    reno.on_loss(&loss(LossCause::Timeout));
    assert_eq!(packets(&reno), 1.0);
    ack(&mut reno, false, 0);
    assert_eq!(packets(&reno), 2.0);
}

#[test]
fn slow_start_doubles_until_the_first_mark() {
    let mut reno = reno(|p| p.slow_start = true);
    for round in 0..5 {
        assert_eq!(packets(&reno), f64::from(1 << round));
        (0..1 << round).for_each(|_| ack(&mut reno, false, 31));
    }
    ack(&mut reno, true, 31);
    assert_eq!(packets(&reno), 16.0);
    (0..31).for_each(|_| ack(&mut reno, false, 15));
    assert_eq!(packets(&reno), 16.0);
    ack(&mut reno, false, 15);
    assert_eq!(packets(&reno), 16.0 + 1.0 / 16.0);
}

/// MLTCP with phases of 100 packets.
fn mltcp(change: impl FnOnce(&mut RenoParameters)) -> Reno {
    let mut reno = reno(|p| {
        p.initial_window = Some(RelativeSize::Absolute(Bytes::new(10 * 4096)));
        (p.phase.phase_increase, p.phase.phase_base) = (1.75, 0.25);
        change(p);
    });
    reno.take_phase(Bytes::new(409_600));
    reno
}

/// Acknowledges the `number`-th packet of all, and returns by how much the window has grown, in packets times the window.
fn growth(reno: &mut Reno, number: u64) -> f64 {
    let before = packets(reno);
    reno.on_ack(&AckSample {
        acked: Bytes::new(4096),
        delivered: Bytes::new(number * 4096),
        ..crate::congestion::tests::ack(number, 10)
    });
    (packets(reno) - before) * before
}

/// MLTCP: the step is a quarter of a packet at the beginning of a phase and grows to two at its end.
#[test]
fn the_step_grows_with_the_phase() {
    let mut reno = mltcp(|_| {});
    for (number, factor) in [
        (0, 0.25),
        (50, 1.125),
        (99, 1.9825),
        (100, 0.25),
        (350, 1.125),
    ] {
        let growth = growth(&mut reno, number);
        assert!((growth - factor).abs() < 1e-9, "{number}: {growth}");
    }
}

#[test]
fn slow_start_and_halving_are_those_of_reno() {
    let mut reno = mltcp(|p| p.slow_start = true);
    assert!((growth(&mut reno, 1) - 10.0).abs() < 1e-9);
    assert!((growth(&mut reno, 99) - 11.0).abs() < 1e-9);
    ack(&mut reno, true, 11);
    assert_eq!(packets(&reno), 6.0);
}

#[test]
fn a_phase_may_begin_with_a_window_of_its_own() {
    for (phase_window, expected) in [(None, 50.0), (Some(10.0), 10.0)] {
        let mut reno = mltcp(|p| {
            p.initial_window = Some(RelativeSize::Absolute(Bytes::new(409_600)));
            p.phase_window = phase_window;
        });
        reno.on_restart(Time::ZERO);
        assert_eq!(packets(&reno), 100.0, "the first phase");
        ack(&mut reno, true, 0);
        // Half a phase: the flow only waits for its next message.
        growth(&mut reno, 50);
        let within = packets(&reno);
        reno.on_restart(Time::ZERO);
        assert_eq!(packets(&reno), within);
        growth(&mut reno, 100);
        reno.on_restart(Time::ZERO);
        assert!((packets(&reno) - expected).abs() < 0.1, "{expected}");
    }
}

use super::*;
use crate::cc::LossCause;
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
    // What was in flight with the old window neither cuts nor grows.
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

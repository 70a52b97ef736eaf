use super::*;
use crate::testing::network;
use clearway_units::{Bytes, Span, Time};

const G: f64 = 1.0 / 256.0;

fn controller() -> DctcpRate {
    let facts = network(Rate::from_gbps(100), Span::from_us(8));
    DctcpRate::new(&DctcpRateParameters::default(), &facts)
}

fn ack(controller: &mut DctcpRate, ecn: bool) {
    controller.on_ack(&AckSample {
        now: Time::ZERO,
        rtt: Span::from_us(8),
        ecn,
        acked: Bytes::new(4096),
        in_flight: Bytes::new(9 * 4096),
        probe: false,
        delivered: Bytes::ZERO,
        hops: &[],
    });
}

#[test]
fn it_starts_at_line_rate_with_a_window_to_match() {
    let controller = controller();
    let allowance = controller.allowance();
    assert_eq!(allowance.rate, Some(Rate::from_gbps(100)));
    assert_eq!(allowance.window, controller.largest_window());
}

#[test]
fn a_round_trip_without_marks_adds_a_step() {
    let mut controller = controller();
    controller.rate = 10e9;
    ack(&mut controller, false);
    assert_eq!(controller.rate, 11e9);
    let mut rates = Vec::new();
    for _ in 0..3 {
        (0..10).for_each(|_| ack(&mut controller, false));
        rates.push(controller.rate);
    }
    assert_eq!(rates, [12e9, 13e9, 14e9]);
    (0..10_000).for_each(|_| ack(&mut controller, false));
    assert_eq!(controller.rate, 100e9);
}

#[test]
fn the_first_mark_in_a_round_trip_cuts_by_half_of_alpha() {
    let mut controller = controller();
    ack(&mut controller, true);
    assert_eq!(controller.rate, 50e9);
    (0..9).for_each(|_| ack(&mut controller, true));
    assert_eq!(controller.rate, 50e9);
    // Eleven marks, the first before the batch of ten began: no more than all were marked.
    ack(&mut controller, true);
    assert_eq!(controller.alpha, (1.0 - G) + G);
    assert_eq!(controller.rate, 25e9);
    (0..10).for_each(|_| ack(&mut controller, false));
    // The marks of the round trip were those that came after its beginning.
    assert_eq!(controller.alpha, (1.0 - G) * 1.0);
    assert_eq!(controller.rate, 26e9);
    (0..1000).for_each(|_| ack(&mut controller, true));
    assert_eq!(controller.rate, 100e6);
}

use super::*;
use crate::testing::network;
use clearway_units::{Bytes, Rate, Span, Time};

const G: f64 = 1.0 / 16.0;

fn dctcp() -> Dctcp {
    let parameters = DctcpParameters {
        initial_window: Some(RelativeSize::Absolute(Bytes::new(409_600))),
        ..Default::default()
    };
    let facts = network(Rate::from_gbps(400), Span::from_us(80));
    Dctcp::new(&parameters, &facts)
}

fn ack(dctcp: &mut Dctcp, ecn: bool, in_flight: u64) {
    dctcp.on_ack(&AckSample {
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

fn packets(dctcp: &Dctcp) -> f64 {
    dctcp.allowance().window / 4096.0
}

#[test]
fn alpha_averages_the_share_of_marks_over_windows() {
    let mut dctcp = dctcp();
    // The first acknowledgement begins a window that ends with the hundredth after it, and that is one of 101 counted.
    let mut alpha = 1.0;
    ack(&mut dctcp, false, 99);
    for (window, (marks, acks)) in [(0u64, 101.0), (25, 100.0), (100, 100.0)]
        .into_iter()
        .enumerate()
    {
        assert_eq!(dctcp.alpha, alpha, "window {window}");
        (0..100).for_each(|k| ack(&mut dctcp, k < marks, 99));
        alpha = (1.0 - G) * alpha + G * (marks as f64 / acks);
        assert!((dctcp.alpha - alpha).abs() < 1e-12, "window {window}");
        alpha = dctcp.alpha;
    }
}

#[test]
fn the_first_mark_of_a_window_cuts_by_half_of_alpha() {
    let mut dctcp = dctcp();
    dctcp.alpha = 0.2;
    ack(&mut dctcp, true, 99);
    assert!((packets(&dctcp) - 90.0).abs() < 1e-9);
    (0..99).for_each(|_| ack(&mut dctcp, true, 89));
    assert!((packets(&dctcp) - 90.0).abs() < 1e-9, "once per window");
    // All of a window was marked, so alpha has grown.
    ack(&mut dctcp, true, 89);
    let alpha: f64 = (1.0 - G) * 0.2 + G;
    assert!((dctcp.alpha - alpha).abs() < 1e-12);
    assert!((packets(&dctcp) - 90.0 * (1.0 - alpha / 2.0)).abs() < 1e-9);
}

#[test]
fn without_marks_it_grows_like_tcp_and_alpha_fades() {
    let mut dctcp = dctcp();
    for _ in 0..10_000 {
        ack(&mut dctcp, false, 99);
    }
    // About 82 round trips of growing length.
    assert!((packets(&dctcp) - 173.0).abs() < 1.0, "{}", packets(&dctcp));
    assert!(dctcp.alpha < 0.01, "{}", dctcp.alpha);
}

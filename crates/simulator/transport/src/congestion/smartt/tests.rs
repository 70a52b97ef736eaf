use super::*;
use crate::congestion::LossCause;
use crate::testing::network;
use clearway_units::Rate;

/// 400 Gb/s and a base round trip of about 8 us, of which the target is 7 us more.
fn smartt(window: f64, change: impl FnOnce(&mut SmarttParameters)) -> Smartt {
    let mut parameters = SmarttParameters {
        base_rtt: BaseRtt::Fixed(Span::from_us(8)),
        max_window: RelativeSize::Absolute(Bytes::new(409_600)),
        ..Default::default()
    };
    change(&mut parameters);
    let facts = network(Rate::from_gbps(400), Span::from_us(8));
    let mut smartt = Smartt::new(&parameters, &facts);
    smartt.window = window;
    smartt
}

/// One packet, at `now` and after `rtt` microseconds, with `in_flight` packets left; returns the change of the window in packets.
fn ack_at(smartt: &mut Smartt, now: u64, rtt: u64, ecn: bool, in_flight: u64) -> f64 {
    let before = smartt.window;
    smartt.on_ack(&AckSample {
        rtt: Span::from_us(rtt),
        ecn,
        acked: Bytes::new(4096),
        in_flight: Bytes::new(4096 * in_flight),
        ..crate::congestion::tests::ack(now, 0)
    });
    (smartt.window - before) / 4096.0
}

fn ack(smartt: &mut Smartt, rtt: u64, ecn: bool) -> f64 {
    ack_at(smartt, 100, rtt, ecn, 50)
}

/// So many packets are lost, with ten left in flight.
fn lose(smartt: &mut Smartt, now: u64, cause: LossCause, packets: u64) {
    smartt.on_loss(&LossSample {
        now: Time::from_us(now),
        cause,
        lost: Bytes::new(4096 * packets),
        in_flight: Bytes::new(4096 * 10),
    });
}

#[track_caller]
fn near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-9, "{value} {expected}");
}

/// A window of 50 packets, half of the largest; the target is 15 us.
const HALF: f64 = 50.0 * 4096.0;

#[test]
fn without_a_mark_above_the_target_the_window_grows_by_a_share_of_a_packet() {
    near(ack(&mut smartt(HALF, |_| {}), 20, false), 0.25 / 50.0);
    near(ack(&mut smartt(HALF, |_| {}), 15, false), 0.25 / 50.0);
}

/// At 10 us the round trip is half of itself below the target.
#[test]
fn without_a_mark_below_the_target_it_grows_with_the_distance() {
    let expected = (2.0 * 0.5 + 0.25) / 50.0;
    near(ack(&mut smartt(HALF, |_| {}), 10, false), expected);
    // At most a packet for each packet, though it is two windows away.
    let mut far = smartt(4096.0, |_| {});
    near(ack(&mut far, 9, false), 1.0 + 0.25);
}

#[test]
fn with_a_mark_it_shrinks_in_proportion_and_by_the_excess() {
    near(ack(&mut smartt(HALF, |_| {}), 10, true), -0.8 * 0.5);
    near(ack(&mut smartt(HALF, |_| {}), 20, true), -0.25 - 0.4);
    let mut least = smartt(4096.0, |_| {});
    near(ack(&mut least, 20, true), 0.0);
}

#[test]
fn gains_are_settings() {
    let uno = |p: &mut SmarttParameters| {
        (p.fi, p.mi, p.md, p.fd) = (0.15, 1.0, 1.0, 1.0);
        p.target_queue_delay = Span::from_us(4);
    };
    near(ack(&mut smartt(HALF, uno), 20, false), 0.15 / 50.0);
    near(ack(&mut smartt(HALF, uno), 10, false), (0.2 + 0.15) / 50.0);
    near(ack(&mut smartt(HALF, uno), 20, true), -0.4 - 0.5);
}

/// Three acknowledgements are not more than a window of three packets; the fourth leaps, until one has waited or is marked.
#[test]
fn a_window_without_a_queue_makes_it_leap() {
    let mut smartt = smartt(3.0 * 4096.0, |p| (p.fi, p.mi) = (0.0, 0.0));
    let changes = [8; 5].map(|rtt| ack(&mut smartt, rtt, false));
    assert_eq!(changes, [0.0, 0.0, 0.0, 4.0, 4.0]);
    near(ack(&mut smartt, 9, false), 0.0);
    near(ack(&mut smartt, 8, false), 0.0);
    let mut marked = self::smartt(3.0 * 4096.0, |p| (p.fi, p.mi, p.fd) = (0.0, 0.0, 0.0));
    let changes = [false, false, false, true, false].map(|ecn| ack(&mut marked, 8, ecn));
    assert_eq!(changes, [0.0; 5]);
}

/// Periods are of 15 us: from 100 to 115. Ten packets arrive in one, and its end is noticed at 120.
#[test]
fn a_loss_sets_the_window_to_what_has_arrived_in_the_period() {
    let mut smartt = smartt(HALF, |p| (p.fi, p.mi) = (0.0, 0.0));
    for now in 100..110 {
        ack_at(&mut smartt, now, 20, false, 40);
    }
    near(smartt.window / 4096.0, 50.0);
    lose(&mut smartt, 112, LossCause::OutOfOrder, 2);
    near(smartt.window / 4096.0, 48.0);
    // The eleventh: of 20 us there are 15 in a period.
    ack_at(&mut smartt, 120, 20, false, 30);
    near(smartt.window / 4096.0, 11.0 * 15.0 / 20.0);
    // Packets in flight then are ignored: 30 packets, five of them lost.
    let adapted = smartt.window;
    for number in 0..25 {
        near(ack_at(&mut smartt, 121, 30, true, 29 - number), 0.0);
    }
    lose(&mut smartt, 122, LossCause::OutOfOrder, 5);
    near(smartt.window, adapted);
    assert!(ack_at(&mut smartt, 123, 30, true, 0) < 0.0);
    // The loss does not cause an adaptation at the end of the period.
    let before = smartt.window;
    ack_at(&mut smartt, 140, 20, false, 10);
    near(smartt.window, before);
}

/// However a loss is found.
#[test]
fn every_loss_takes_its_bytes_off_the_window() {
    for cause in [
        LossCause::OutOfOrder,
        LossCause::Probe,
        LossCause::Timeout,
        LossCause::GoBack,
        LossCause::Trimmed {
            last_hop: true,
            rtt: Span::from_us(9),
        },
    ] {
        let mut smartt = smartt(HALF, |_| {});
        lose(&mut smartt, 100, cause, 1);
        near(smartt.window / 4096.0, 49.0);
        lose(&mut smartt, 101, cause, 1000);
        near(smartt.window / 4096.0, 1.0);
    }
}

/// A timeout long after the last acknowledgement: nothing has arrived.
#[test]
fn a_timeout_leaves_one_packet() {
    let mut smartt = smartt(HALF, |_| {});
    ack_at(&mut smartt, 100, 20, false, 50);
    lose(&mut smartt, 400, LossCause::Timeout, 10);
    near(smartt.window / 4096.0, 1.0);
}

#[test]
fn after_a_pause_the_period_begins_anew() {
    let mut smartt = smartt(HALF, |p| (p.fi, p.mi) = (0.0, 0.0));
    ack_at(&mut smartt, 100, 20, false, 1);
    lose(&mut smartt, 101, LossCause::OutOfOrder, 1);
    smartt.on_restart(Time::from_us(1000));
    ack_at(&mut smartt, 1014, 20, false, 9);
    near(smartt.window / 4096.0, 49.0);
    ack_at(&mut smartt, 1015, 20, false, 8);
    near(smartt.window / 4096.0, 2.0);
}

/// Within the period it goes on: a window of one packet restarts with each.
#[test]
fn a_short_pause_does_not_prolong_the_period() {
    let mut smartt = smartt(HALF, |p| (p.fi, p.mi) = (0.0, 0.0));
    ack_at(&mut smartt, 100, 20, false, 0);
    lose(&mut smartt, 101, LossCause::OutOfOrder, 1);
    for now in [105, 110, 114, 120] {
        smartt.on_restart(Time::from_us(now));
    }
    ack_at(&mut smartt, 120, 20, false, 0);
    near(smartt.window / 4096.0, 2.0 * 15.0 / 20.0);
}

#[test]
fn a_loss_after_the_period_adapts_at_once() {
    let mut smartt = smartt(HALF, |_| {});
    ack_at(&mut smartt, 100, 20, false, 10);
    lose(&mut smartt, 130, LossCause::OutOfOrder, 4);
    near(smartt.window / 4096.0, 1.0);
    assert_eq!(smartt.ignored, 10 * 4096);
}

/// With a gain of an eighth three marks in a row average 0.33, two 0.23.
#[test]
fn it_may_wait_for_marks_to_last() {
    let mut smartt = smartt(HALF, |p| p.decrease_above = Some(0.25));
    let changes = [20; 3].map(|rtt| ack(&mut smartt, rtt, true));
    assert_eq!(changes[..2], [0.0, 0.0]);
    near(changes[2], -0.65);
}

#[test]
fn the_largest_window_is_the_first() {
    let facts = network(Rate::from_gbps(400), Span::from_us(8));
    let smartt = Smartt::new(&SmarttParameters::default(), &facts);
    assert!((smartt.window - 1.25 * facts.bdp.as_f64()).abs() < 1.0);
    assert_eq!(smartt.window, smartt.largest_window());
    let target = facts.path.rtt + Span::from_us(7);
    assert_eq!(smartt.target_rtt, target.as_ps() as f64);
}

use super::*;
use crate::injection::tests::{GROUP, completed, facts, remote, sent};
use OperationKind::{Read, Write};

fn control(payload: u32) -> ThreeCpo {
    ThreeCpo::new(&ThreeCpoParameters::default(), &facts(payload))
}

fn tokens(control: &mut ThreeCpo, now: Cycle) -> [f64; 2] {
    control.gauges(now).tokens.expect("tokens")
}

#[test]
fn figure_6_4() {
    // Without other senders, packets of 5 flits leave each 5 cycles.
    let mut alone = control(4);
    for k in 0..4 {
        assert_eq!(tokens(&mut alone, 5 * k)[0], 1.0);
        alone.on_sent(&sent(5 * k, k, Write, Some(GROUP)));
        assert_eq!(tokens(&mut alone, 5 * k + 1)[0], -3.0);
        let consent = alone.consent(5 * k + 1, Write, Some(GROUP));
        assert_eq!(consent, InjectionDecision::NotBefore(5 * (k + 1)));
    }
    // With three others that do the same, each 20.
    let mut shared = control(4);
    let mut trace = Vec::new();
    for now in 0..=21 {
        if now % 20 == 0 {
            (0..3).for_each(|rank| shared.on_remote(&remote(now, Write, rank)));
        }
        trace.push(tokens(&mut shared, now)[0]);
        let consent = shared.consent(now, Write, Some(GROUP));
        assert_eq!(consent == InjectionDecision::Now, now % 20 == 0, "{now}");
        if consent == InjectionDecision::Now {
            shared.on_sent(&sent(now, now, Write, Some(GROUP)));
        } else {
            assert_eq!(
                consent,
                InjectionDecision::NotBefore(now.next_multiple_of(20))
            );
        }
    }
    // Rows 0, 1, 2-4, 5, 6-9, 10, 11-14, 15, 16-19 and 20, of several cycles the last.
    let rows = [0, 1, 4, 5, 9, 10, 14, 15, 19, 20, 21].map(|cycle: usize| trace[cycle]);
    assert_eq!(
        rows,
        [
            1.0, -18.0, -15.0, -14.0, -10.0, -9.0, -5.0, -4.0, 0.0, 1.0, -18.0
        ]
    );
}

#[test]
fn figure_6_5() {
    let mut control = control(0);
    (0..3).for_each(|rank| control.on_remote(&remote(0, Read, rank)));
    assert_eq!(tokens(&mut control, 0), [1.0, 1.0]);
    control.on_sent(&sent(0, 0, Read, Some(GROUP)));
    assert_eq!(tokens(&mut control, 0), [-3.0, -3.0], "costs 4");
    control.on_sent(&sent(4, 1, Read, Some(GROUP)));
    assert_eq!(tokens(&mut control, 4), [0.0, 0.0], "costs 1");
    for rank in 0..3 {
        assert_eq!(tokens(&mut control, 5), [1.0 - f64::from(rank); 2]);
        control.on_remote(&remote(5, Read, rank));
    }
    assert_eq!(tokens(&mut control, 5), [-2.0, -2.0]);
    control.on_remote(&remote(5, Read, 0));
    assert_eq!(tokens(&mut control, 5), [-2.0, -2.0], "unmatched");
}

#[test]
fn matches_cost_less_while_latency_is_small() {
    let parameters = ThreeCpoParameters::default();
    for (latency, scale) in [
        (None, 1.0),
        (Some(300), 0.8),
        (Some(1000), 0.8),
        (Some(1500), 0.9),
        (Some(2000), 1.0),
        (Some(9000), 1.0),
    ] {
        assert_eq!(parameters.scale(latency), scale, "{latency:?}");
    }
    // The scale applies to matches of own operations as to matches of remote ones (C12).
    for scale_sends in [true, false] {
        let parameters = ThreeCpoParameters {
            scale_sends,
            ..Default::default()
        };
        let mut control = ThreeCpo::new(&parameters, &facts(0));
        let first = sent(0, 0, Read, Some(GROUP));
        control.on_sent(&first);
        control.on_completed(&completed(&first, 500));
        control.on_remote(&remote(600, Read, 0));
        control.on_sent(&sent(600, 1, Read, Some(GROUP)));
        let scale = if scale_sends { 0.8 } else { 1.0 };
        let left = 1.0 - (1.0 + Tokens::scaled(1, scale).as_f64());
        assert_eq!(tokens(&mut control, 600), [left, left]);
        control.on_remote(&remote(700, Read, 1));
        let left = 1.0 - Tokens::scaled(1, 0.8).as_f64();
        assert_eq!(tokens(&mut control, 700), [left, left]);
    }
}

#[test]
fn arrivals_count_for_a_round_trip_and_the_delay_between_packets() {
    let matched_at = |now: Cycle, waited: Cycle| {
        let mut control = control(0);
        let first = Sent {
            waited,
            ..sent(0, 0, Read, Some(GROUP))
        };
        control.on_sent(&first);
        control.on_completed(&completed(&first, 400));
        control.on_remote(&remote(500, Read, 0));
        control.on_sent(&sent(now, 1, Read, Some(GROUP)));
        tokens(&mut control, now)[0] < 0.0
    };
    assert!(matched_at(899, 0) && !matched_at(900, 0));
    assert!(matched_at(959, 60) && !matched_at(960, 60));
}

#[test]
fn unicast_operations_do_not_match() {
    let mut control = control(8);
    (0..3).for_each(|rank| control.on_remote(&remote(0, Write, rank)));
    control.on_sent(&sent(0, 0, Write, None));
    assert_eq!(tokens(&mut control, 0), [-8.0, 0.0]);
    control.on_remote(&remote(0, Write, 0));
    assert_eq!(tokens(&mut control, 0), [-8.0, 0.0]);
}

#[test]
fn a_probe_adjusts_both_watermarks_by_what_its_round_trip_has_seen() {
    let mut control = control(8);
    let watermarks = |control: &mut ThreeCpo, now| control.gauges(now).watermarks.expect("some");
    let first = sent(0, 0, Read, Some(GROUP));
    // Reads alone: 27 response tokens and 3 request tokens.
    (0..3).for_each(|rank| control.on_remote(&remote(0, Read, rank)));
    control.on_sent(&first);
    control.on_completed(&completed(&first, 5000));
    // Response tokens convert to 13.3 of 2468; the request tokens count for nine each (C7), which makes the same.
    let [request, response] = watermarks(&mut control, 5000);
    assert_eq!(request, response);
    let equivalent = 2468.0 * 27.0 / 5000.0;
    let rate = 2468.0 - equivalent;
    let expected = 2468.0 - control.rules.rate_scaling(rate) * 0.5 * rate;
    assert!((response - expected).abs() < 1e-9, "{response} {expected}");
    // The next round trip starts anew.
    assert_eq!(control.sent, [0, 0]);
    let second = sent(5000, 1, Read, None);
    control.on_sent(&second);
    control.on_completed(&completed(&second, 900));
    assert_eq!(
        watermarks(&mut control, 5900),
        [request + 50.0, response + 50.0]
    );
    assert_eq!((control.rtt, control.collective), (900, Some(5000)));
}

#[test]
fn what_arrivals_cost_is_part_of_the_equivalent_if_asked_for() {
    let cut_with = |equivalent_of_sends| {
        let parameters = ThreeCpoParameters {
            equivalent_of_sends,
            ..Default::default()
        };
        let mut control = ThreeCpo::new(&parameters, &facts(8));
        let first = sent(0, 0, Read, Some(GROUP));
        control.on_sent(&first);
        for now in 0..300 {
            control.on_remote(&remote(now, Read, (now % 3) as u32));
        }
        control.on_completed(&completed(&first, 5000));
        2468.0 - control.gauges(5000).watermarks.expect("some")[1]
    };
    // Each of three others matches the one read, 27 flits in all.
    let equivalent = 2468.0 * 27.0 / 5000.0;
    assert!((cut_with(true) - 0.5 * 2468.0).abs() < 1e-9);
    assert!(cut_with(false) < 0.5 * (2468.0 - equivalent) + 1e-9);
}

#[test]
fn the_remote_queue_holds_a_round_trip_of_arrivals_though_nobody_asks() {
    let mut control = control(8);
    for now in 0..100_000 {
        control.on_remote(&remote(now, Read, (now % 3) as u32));
    }
    assert_eq!(control.matching.arrivals(), 1000);
}

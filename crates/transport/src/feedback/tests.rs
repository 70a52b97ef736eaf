use super::*;
use crate::testing::network;
use clearway_units::{Rate, Span};

fn arrival(now: Time, marked: bool) -> DataArrival {
    DataArrival {
        now,
        marked,
        bytes: Bytes::new(4096),
        message: MessageId(0),
        offset: 0,
        ends_message: false,
    }
}

fn rule(name: &str) -> Feedback {
    let facts = network(Rate::from_gbps(400), Span::from_us(8));
    FeedbackSettings::named(name).unwrap().build(&facts)
}

#[test]
fn one_notification_per_interval_however_many_marks() {
    let mut rule = rule("interval");
    let mut sent = Vec::new();
    for ns in (0..200_000u64).step_by(100) {
        let now = Time::ZERO + Span::from_ns(ns);
        // Marked from 20 us on.
        if rule.on_data(&arrival(now, ns >= 20_000)) {
            sent.push(ns / 1000);
        }
    }
    assert_eq!(sent, [20, 70, 120, 170]);
}

#[test]
fn a_mark_after_a_long_silence_is_answered_at_once() {
    let mut rule = rule("interval");
    assert!(rule.on_data(&arrival(Time::from_us(1), true)));
    assert!(!rule.on_data(&arrival(Time::from_us(50), true)));
    assert!(!rule.on_data(&arrival(Time::from_us(60), false)));
    assert!(rule.on_data(&arrival(Time::from_us(61), true)));
    assert!(!rule.on_data(&arrival(Time::from_us(62), true)));
}

#[test]
fn none_says_nothing() {
    let mut rule = rule("none");
    assert!(!rule.on_data(&arrival(Time::from_us(1), true)));
    assert!(!FeedbackSettings::default().notifies());
    assert!(FeedbackSettings::named("interval").unwrap().notifies());
}

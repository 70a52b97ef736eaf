use super::*;
use crate::reliability::go_back_n::GoBackNParameters;
use crate::testing::network;
use crate::testing::{Pair, PipeSettings};
use crate::{Event, Profile, Registry, Reliability};
use clearway_units::{FlowId, Rate, Span};
use std::num::NonZero;

fn arrival(now: Time, marked: bool) -> DataArrival {
    DataArrival {
        now,
        marked,
        bytes: Bytes::new(4096),
        message: MessageId(0),
        offset: 0,
        ends_message: false,
        accepted: true,
    }
}

/// A rule with one receiver.
fn rule(settings: &FeedbackSettings) -> Feedback {
    let facts = network(Rate::from_gbps(400), Span::from_us(8));
    let mut rule = settings.build(&facts);
    rule.open(0);
    rule
}

fn named(name: &str) -> Feedback {
    rule(&FeedbackSettings::named(name).unwrap())
}

#[test]
fn one_notification_per_interval_however_many_marks() {
    let mut rule = named("interval");
    let mut sent = Vec::new();
    for ns in (0..200_000u64).step_by(100) {
        let now = Time::ZERO + Span::from_ns(ns);
        // Marked from 20 us on.
        if rule.on_data(0, &arrival(now, ns >= 20_000)) == Notify::Now {
            sent.push(ns / 1000);
        }
    }
    assert_eq!(sent, [20, 70, 120, 170]);
}

#[test]
fn a_mark_after_a_long_silence_is_answered_at_once() {
    let mut rule = named("interval");
    assert_eq!(
        rule.on_data(0, &arrival(Time::from_us(1), true)),
        Notify::Now
    );
    assert_ne!(
        rule.on_data(0, &arrival(Time::from_us(50), true)),
        Notify::Now
    );
    assert_ne!(
        rule.on_data(0, &arrival(Time::from_us(60), false)),
        Notify::Now
    );
    assert_eq!(
        rule.on_data(0, &arrival(Time::from_us(61), true)),
        Notify::Now
    );
    assert_ne!(
        rule.on_data(0, &arrival(Time::from_us(62), true)),
        Notify::Now
    );
}

/// DCQCN §3.1: if any packet that arrives within the window is marked, a notification follows at its end, and opens the next.
#[test]
fn a_mark_within_a_window_is_answered_at_its_end() {
    let mut dcqcn = named("interval");
    let on_data =
        |rule: &mut Feedback, us, marked| rule.on_data(0, &arrival(Time::from_us(us), marked));
    assert_eq!(on_data(&mut dcqcn, 10, true), Notify::Now);
    assert_eq!(on_data(&mut dcqcn, 20, false), Notify::No);
    assert_eq!(on_data(&mut dcqcn, 30, true), Notify::At(Time::from_us(60)));
    assert_eq!(on_data(&mut dcqcn, 40, true), Notify::No);
    assert_eq!(dcqcn.on_deadline(0, Time::from_us(60)), Notify::Now);
    // The next window, from 60 us on, also has a mark; the window from 110 us on has no mark.
    assert_eq!(
        on_data(&mut dcqcn, 100, true),
        Notify::At(Time::from_us(110))
    );
    assert_eq!(dcqcn.on_deadline(0, Time::from_us(110)), Notify::Now);
    assert_eq!(on_data(&mut dcqcn, 120, false), Notify::No);
    assert_eq!(on_data(&mut dcqcn, 160, true), Notify::Now);

    let mut settings = FeedbackSettings::named("interval").unwrap();
    settings
        .set("cnp-window-end", &Value::Boolean(false))
        .unwrap();
    let mut forgets = rule(&settings);
    assert_eq!(on_data(&mut forgets, 10, true), Notify::Now);
    assert_eq!(on_data(&mut forgets, 30, true), Notify::No);
    assert_eq!(on_data(&mut forgets, 60, false), Notify::No);
    assert_eq!(on_data(&mut forgets, 61, true), Notify::Now);
}

/// The notification point of the ns-3 simulator of 2016: windows run from the first packet on, and a mark waits for the end of its window.
#[test]
fn a_periodic_schedule_notifies_at_ends_of_windows_only() {
    for name in ["interval", "progress"] {
        let mut settings = FeedbackSettings::named(name).unwrap();
        settings
            .set("cnp-schedule", &Value::Text("periodic".into()))
            .unwrap();
        let mut rule = rule(&settings);
        let mut on_data = |us, marked| rule.on_data(0, &arrival(Time::from_us(us), marked));
        // The first packet, without a mark, begins the windows: 10, 60, 110, ...
        assert_eq!(on_data(10, false), Notify::No);
        assert_eq!(on_data(30, true), Notify::At(Time::from_us(60)));
        assert_eq!(on_data(40, true), Notify::No);
        assert_eq!(rule.on_deadline(0, Time::from_us(60)), Notify::Now);
        assert_eq!(rule.on_deadline(0, Time::from_us(60)), Notify::No);
        let mut on_data = |us, marked| rule.on_data(0, &arrival(Time::from_us(us), marked));
        // A mark at the very beginning of a window, and one after windows without any.
        assert_eq!(on_data(60, true), Notify::At(Time::from_us(110)));
        assert_eq!(rule.on_deadline(0, Time::from_us(110)), Notify::Now);
        let mut on_data = |us, marked| rule.on_data(0, &arrival(Time::from_us(us), marked));
        assert_eq!(on_data(290, false), Notify::No);
        assert_eq!(on_data(295, true), Notify::At(Time::from_us(310)));
    }
}

/// Two marked packets, the second within the window of the first, and nothing after them: the endpoint asks the rule at the end of the
/// window, though no packet comes.
#[test]
fn an_endpoint_notifies_at_the_end_of_a_window() {
    for (window_end, notified) in [(true, 2), (false, 1)] {
        let facts = network(Rate::from_gbps(400), Span::from_us(8));
        let mut profile = Profile::strack(facts);
        profile.reliability = Reliability::GoBackN(GoBackNParameters::default());
        profile.feedback = FeedbackSettings::named("interval").unwrap();
        profile
            .feedback
            .set("cnp-window-end", &Value::Boolean(window_end))
            .unwrap();
        let mut pair = Pair::new(profile, PipeSettings::ideal(&facts), 7);
        pair.pipes[0].mark_if(|number, _| number < 2);
        let flow = pair.open();
        pair.post(flow, 0, Bytes::new(20_000));
        pair.run_until(Time::from_us(40));
        assert_eq!(pair.counters().notifications_sent, 1);
        pair.run_until(Time::from_us(200));
        assert_eq!(pair.counters().notifications_sent, notified);
        assert_eq!(pair.counters().notifications_received, notified);
    }
}

#[test]
fn none_says_nothing() {
    let mut rule = named("none");
    assert_ne!(
        rule.on_data(0, &arrival(Time::from_us(1), true)),
        Notify::Now
    );
    assert!(!FeedbackSettings::default().notifies());
    assert!(FeedbackSettings::named("interval").unwrap().notifies());
}

/// A rule of another crate whose receivers share state: after every few packets to a host it notifies the sender of the next packet.
struct Toll;

clearway_units::parameters! {
    /// Settings of [`Toll`].
    pub struct TollParameters {
        /// Packets between two notifications.
        pub every: u32 = 3, "every", "the test";
    }
}

impl FeedbackDefinition for Toll {
    const NAME: &'static str = "toll";
    const SUMMARY: &'static str = "for tests";
    type Parameters = TollParameters;

    fn new(_: &TollParameters, _: &NetworkFacts) -> Self {
        Self
    }
}

impl CongestionFeedback for Toll {
    type Shared = u32;

    fn on_data(&mut self, seen: &mut u32, _: &DataArrival) -> Notify {
        *seen += 1;
        match seen.is_multiple_of(3) {
            true => Notify::Now,
            false => Notify::No,
        }
    }
    fn on_complete(&mut self, seen: &mut u32) {
        *seen = 0;
    }
}

#[test]
fn rules_of_other_crates_share_their_state_at_an_endpoint_and_not_beyond() {
    let settings = FeedbackSettings::custom::<Toll>();
    let (mut here, mut there) = (rule(&settings), rule(&settings));
    here.open(1);
    let packet = arrival(Time::ZERO, false);
    let mut answers = Vec::new();
    for slot in [0, 0, 1, 0, 1, 1, 0] {
        answers.push(here.on_data(slot, &packet) == Notify::Now);
    }
    assert_eq!(answers, [false, false, true, false, false, true, false]);
    assert_ne!(there.on_data(0, &packet), Notify::Now);
    here.on_complete(1);
    assert_eq!(
        [0, 1, 0].map(|slot| here.on_data(slot, &packet) == Notify::Now),
        [false, false, true]
    );
}

#[test]
fn a_slot_that_is_used_again_starts_anew() {
    let mut rule = named("interval");
    assert_eq!(
        rule.on_data(0, &arrival(Time::from_us(1), true)),
        Notify::Now
    );
    assert_ne!(
        rule.on_data(0, &arrival(Time::from_us(2), true)),
        Notify::Now
    );
    rule.open(0);
    assert_eq!(
        rule.on_data(0, &arrival(Time::from_us(3), true)),
        Notify::Now
    );
}

fn with_every_rule(mut check: impl FnMut(&str, FeedbackSettings)) {
    let registry = Registry::builtin().with_feedback::<Toll>();
    let names: Vec<_> = registry.feedback_rules().map(|(name, _)| name).collect();
    assert_eq!(names, ["none", "interval", "progress", "toll"]);
    for name in names {
        check(name, registry.feedback_rule(name).unwrap());
    }
}

/// Every rule under every reliability scheme, with loss, copies and, where the scheme bears it, disorder.
#[test]
fn every_rule_goes_with_every_reliability_scheme_and_delivers() {
    with_every_rule(|name, feedback| {
        for (scheme, _) in Reliability::ALL {
            let facts = network(Rate::from_gbps(400), Span::from_us(8));
            let mut profile = Profile::strack(facts);
            profile.reliability = Reliability::named(scheme).unwrap();
            profile.feedback = feedback.clone();
            let in_order = matches!(profile.reliability, Reliability::GoBackN(_));
            let pipe = PipeSettings {
                data_loss: 0.005,
                control_loss: 0.005,
                duplication: 0.01,
                jitter: if in_order {
                    Span::ZERO
                } else {
                    Span::from_us(3)
                },
                ..PipeSettings::ideal(&facts)
            };
            let mut pair = Pair::new(profile, pipe, 7);
            pair.pipes[0].mark_if(|number, _| number % 3 == 0);
            let flows: Vec<FlowId> = (0..4).map(|_| pair.open()).collect();
            for message in 0..6 {
                for &flow in &flows {
                    let bytes = Bytes::new(u64::from(message) * 100_000);
                    pair.post(flow, message, bytes);
                }
            }
            flows.iter().for_each(|&flow| pair.close(flow));
            pair.run_until(Time::from_us(1_000_000));
            for &flow in &flows {
                let all_once = (0..6).all(|message| pair.deliveries(flow, message) == 1);
                assert!(all_once, "{name} with {scheme}: {flow}");
            }
            let counters = pair.counters();
            assert!(counters.marked > 100);
            assert_eq!(counters.notifications_sent > 0, name != "none", "{name}");
            if let Feedback::Progress(rule) = pair.ends[1].feedback() {
                // With any losses, copies and overtaking, a flow that has everything has left the average.
                assert_eq!(*rule.shared(), HostProgress::default(), "{scheme}");
            }
        }
    });
}

#[test]
fn every_rule_works_with_several_queue_pairs() {
    with_every_rule(|name, feedback| {
        let facts = network(Rate::from_gbps(400), Span::from_us(8));
        let mut profile = Profile::strack(facts);
        profile.reliability = Reliability::GoBackN(GoBackNParameters {
            queue_pairs: NonZero::new(4).unwrap(),
            ..GoBackNParameters::default()
        });
        profile.feedback = feedback;
        let mut pair = Pair::new(profile, PipeSettings::ideal(&facts), 7);
        pair.pipes[0].mark_if(|_, _| true);
        let flow = pair.open();
        pair.post(flow, 0, Bytes::new(4_000_000));
        pair.run();
        let received = |event: &Event| matches!(event, Event::Received { .. });
        let events = pair.events().iter();
        assert_eq!(events.filter(|(_, _, event)| received(event)).count(), 1);
        // 4 MB take 82 us: each queue pair is notified at its first packet, after 50 us for the packets until then, and at the end of that
        // window for the rest. All are within a packet or two of their average.
        let notified = pair.counters().notifications_sent;
        match name {
            "none" => assert_eq!(notified, 0),
            "toll" => assert!((250..330).contains(&notified), "{notified}"),
            _ => assert_eq!(notified, 12, "{name}"),
        }
        if let Feedback::Progress(rule) = pair.ends[1].feedback() {
            assert_eq!(*rule.shared(), HostProgress::default());
        }
    });
}

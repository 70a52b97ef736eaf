use super::*;
use crate::go_back_n::GoBackNParameters;
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
        if rule.on_data(0, &arrival(now, ns >= 20_000)) {
            sent.push(ns / 1000);
        }
    }
    assert_eq!(sent, [20, 70, 120, 170]);
}

#[test]
fn a_mark_after_a_long_silence_is_answered_at_once() {
    let mut rule = named("interval");
    assert!(rule.on_data(0, &arrival(Time::from_us(1), true)));
    assert!(!rule.on_data(0, &arrival(Time::from_us(50), true)));
    assert!(!rule.on_data(0, &arrival(Time::from_us(60), false)));
    assert!(rule.on_data(0, &arrival(Time::from_us(61), true)));
    assert!(!rule.on_data(0, &arrival(Time::from_us(62), true)));
}

#[test]
fn none_says_nothing() {
    let mut rule = named("none");
    assert!(!rule.on_data(0, &arrival(Time::from_us(1), true)));
    assert!(!FeedbackSettings::default().notifies());
    assert!(FeedbackSettings::named("interval").unwrap().notifies());
}

/// A rule of another crate whose receivers share something: every so many packets to a host it notifies whoever comes.
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

    fn on_data(&mut self, seen: &mut u32, _: &DataArrival) -> bool {
        *seen += 1;
        seen.is_multiple_of(3)
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
        answers.push(here.on_data(slot, &packet));
    }
    assert_eq!(answers, [false, false, true, false, false, true, false]);
    assert!(!there.on_data(0, &packet));
    here.on_complete(1);
    assert_eq!(
        [0, 1, 0].map(|slot| here.on_data(slot, &packet)),
        [false, false, true]
    );
}

#[test]
fn a_slot_that_is_used_again_starts_anew() {
    let mut rule = named("interval");
    assert!(rule.on_data(0, &arrival(Time::from_us(1), true)));
    assert!(!rule.on_data(0, &arrival(Time::from_us(2), true)));
    rule.open(0);
    assert!(rule.on_data(0, &arrival(Time::from_us(3), true)));
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
                // Whatever was lost, copied or overtaken: who has everything has left the average.
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
        // 4 MB take 82 us: each queue pair is notified at its first packet, and again after 50 us. All are at their average but
        // for a packet or two, so that the second notification comes a packet later to some.
        let notified = pair.counters().notifications_sent;
        match name {
            "none" => assert_eq!(notified, 0),
            "toll" => assert!((250..330).contains(&notified), "{notified}"),
            _ => assert_eq!(notified, 8, "{name}"),
        }
        if let Feedback::Progress(rule) = pair.ends[1].feedback() {
            assert_eq!(*rule.shared(), HostProgress::default());
        }
    });
}

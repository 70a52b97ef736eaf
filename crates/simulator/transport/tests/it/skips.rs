//! Skipped packets: sent, delivered and acknowledged move by the same bytes, nothing is sent again for it, and all else goes on as if they
//! had been sent. With every controller and reliability scheme.

use super::hostile::{facts, profiles};
use clearway_transport::congestion::{CongestionControl, ControllerSettings};
use clearway_transport::paths::SelectorSettings;
use clearway_transport::testing::{Pair, PipeSettings};
use clearway_transport::{Event, OpenFlow, Profile};
use clearway_units::{Bytes, FlowId, Span, Time, Value};

const MESSAGE: Bytes = Bytes::new(8_000_001);

/// Queue pairs of end 0 that may skip packets, with how many.
fn skippable(pair: &Pair) -> Vec<(FlowId, u8, u64)> {
    let mut found = Vec::new();
    pair.ends[0].for_each_open(|open: &OpenFlow<'_>| {
        if let Some((_, packets)) = open.skippable() {
            found.push((open.flow(), open.queue_pair(), packets));
        }
    });
    found
}

/// Payload that is acknowledged at end 0, and in flight.
fn progress(pair: &Pair) -> (u64, u64) {
    let (mut acknowledged, mut in_flight) = (0, 0);
    pair.ends[0].for_each_open(|open| {
        acknowledged += open.acknowledged().as_u64();
        in_flight += open.progress().in_flight.as_u64();
    });
    (acknowledged, in_flight)
}

/// Sends a message and, after `until`, skips so many packets of each queue pair; returns the pair at the end, and the packets.
fn run(profile: Profile, pipe: PipeSettings, until: Time, packets: u64) -> (Pair, u64) {
    let mut pair = Pair::new(profile, pipe, 1);
    let flow = pair.send(MESSAGE);
    pair.run_until(until);
    let mut skipped = 0;
    let before = progress(&pair);
    for (flow, queue_pair, most) in skippable(&pair) {
        let own = packets.min(most);
        pair.ends[0].skip(flow, queue_pair, own);
        skipped += own;
    }
    let after = progress(&pair);
    assert_eq!(after.0 - before.0, skipped * 4096);
    assert_eq!(after.1, before.1, "what is in flight stays in flight");
    pair.run();
    assert_eq!(pair.deliveries(flow, 0), 1);
    assert!(pair.finished(flow).is_some());
    assert_eq!(pair.ends[0].open_senders(), 0);
    (pair, skipped)
}

/// Bytes that the sender says it has sent.
fn sent_bytes(pair: &Pair) -> Vec<Bytes> {
    let events = pair.events().iter();
    let sent = events.filter_map(|(_, _, event)| match event {
        Event::Sent { bytes, .. } => Some(*bytes),
        _ => None,
    });
    sent.collect()
}

/// Profiles of every controller that needs no switches, with both reliability schemes.
fn all() -> Vec<Profile> {
    let mut all = profiles(None);
    let of_scheme = all.clone();
    for (name, _) in ControllerSettings::BUILTIN {
        let controller = ControllerSettings::named(name).unwrap();
        if controller.build(&facts()).allocation().is_some() {
            continue;
        }
        for base in &of_scheme {
            all.push(Profile {
                controller: controller.clone(),
                ..base.clone()
            });
        }
    }
    for (name, _) in SelectorSettings::BUILTIN {
        all.push(Profile {
            selector: SelectorSettings::named(name).unwrap(),
            ..of_scheme[0].clone()
        });
    }
    all
}

#[test]
fn nothing_is_sent_again_and_the_message_keeps_its_length() {
    let profiles = all();
    assert!(profiles.len() > 60, "{}", profiles.len());
    for profile in profiles {
        let name = format!("{:?}", profile.controller);
        let pipe = PipeSettings::ideal(&facts());
        let (exact, none) = run(profile.clone(), pipe, Time::from_us(60), 0);
        assert_eq!(none, 0);
        for packets in [1, 7, 300, u64::MAX] {
            let (pair, skipped) = run(profile.clone(), pipe, Time::from_us(60), packets);
            assert!(skipped > 0, "{name}");
            assert_eq!(sent_bytes(&pair), [MESSAGE], "{name}");
            let (own, all) = (pair.counters(), exact.counters());
            assert_eq!(own.retransmitted, all.retransmitted, "{name}");
            assert_eq!((own.timeouts, own.duplicates), (0, 0), "{name}");
            assert_eq!(
                own.data_sent + skipped,
                all.data_sent,
                "{name}: {packets} packets"
            );
        }
    }
}

#[test]
fn a_full_wire_is_through_so_much_earlier_to_the_picosecond() {
    let pipe = PipeSettings::ideal(&facts());
    let finish = |packets| {
        let profile = profiles(None).swap_remove(0);
        let (pair, skipped) = run(profile, pipe, Time::from_us(60), packets);
        (pair.finished(FlowId(0)).unwrap(), skipped)
    };
    let (exact, _) = finish(0);
    for packets in [1, 500, 1000] {
        let (early, skipped) = finish(packets);
        assert_eq!(skipped, packets);
        // 4160 bytes of 20 ps each.
        assert_eq!(early + Span::from_ps(packets * 83_200), exact);
    }
}

#[test]
fn packets_are_skipped_among_losses_and_copies() {
    for (number, profile) in profiles(None).into_iter().enumerate() {
        for packets in [1, 400, u64::MAX] {
            let pipe = PipeSettings {
                data_loss: 0.01,
                control_loss: 0.01,
                duplication: 0.05,
                jitter: Span::from_us(2),
                ..PipeSettings::ideal(&facts())
            };
            let (pair, _) = run(profile.clone(), pipe, Time::from_us(40), packets);
            assert_eq!(sent_bytes(&pair), [MESSAGE], "profile {number}");
        }
    }
}

#[test]
fn controllers_that_count_what_is_sent_skip_nothing() {
    for name in ["strack", "hpcc", "swift", "nscc", "reno", "dcqcn"] {
        let mut controller = ControllerSettings::named(name).unwrap();
        let plain = controller.build(&facts());
        assert!(!plain.counts_progress(), "{name}");
        controller
            .set("phase-increase", &Value::Float(1.0))
            .unwrap();
        assert!(controller.build(&facts()).counts_progress(), "{name}");
        let profile = Profile {
            controller,
            ..profiles(None).swap_remove(0)
        };
        let mut pair = Pair::new(profile, PipeSettings::ideal(&facts()), 1);
        pair.send(MESSAGE);
        pair.run_until(Time::from_us(60));
        assert_eq!(skippable(&pair), []);
    }
}

//! A hostile network between two endpoints: packets are lost, overtake each other by seconds, and come again long after every timer.
//! Each message is delivered once all the same, with every reliability scheme, and each sender hears of it.

use clearway_transport::congestion::ControllerSettings;
use clearway_transport::paths::SelectorSettings;
use clearway_transport::reliability::go_back_n::{GoBackNParameters, Stripe};
use clearway_transport::testing::{Pair, PipeSettings, network};
use clearway_transport::{Event, Profile, Reliability};
use clearway_units::{Bytes, FlowId, MessageId, Rate, Span, Time};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::rc::Rc;

pub(super) fn facts() -> clearway_transport::congestion::NetworkFacts {
    network(Rate::from_gbps(400), Span::from_us(8))
}

/// One of each reliability scheme; receivers of finished flows linger for `linger`.
pub(super) fn profiles(linger: Option<Span>) -> Vec<Profile> {
    let strack = Profile::strack(facts());
    let go_back_n = |queue_pairs, stripe| Profile {
        reliability: Reliability::GoBackN(GoBackNParameters {
            queue_pairs: NonZero::new(queue_pairs).expect("not zero"),
            stripe,
            stripe_chunk: Bytes::new(4096),
            linger,
            ..GoBackNParameters::default()
        }),
        controller: ControllerSettings::named("dcqcn").expect("built in"),
        selector: SelectorSettings::named("single").expect("built in"),
        ..Profile::strack(facts())
    };
    let mut profiles = vec![
        strack,
        go_back_n(1, Stripe::Split),
        go_back_n(3, Stripe::Split),
        go_back_n(2, Stripe::RoundRobin),
        go_back_n(2, Stripe::Message),
    ];
    if let Some(parameters) = profiles[0].reliability.selective_repeat_mut() {
        parameters.linger = linger;
    }
    profiles
}

/// Number of times that each message was delivered to end 1, and acknowledged to end 0.
fn counts(pair: &Pair) -> BTreeMap<(FlowId, MessageId), (u32, u32)> {
    let mut counts: BTreeMap<_, (u32, u32)> = BTreeMap::new();
    for (_, end, event) in pair.events() {
        match (*end, *event) {
            (1, Event::Received { flow, message, .. }) => {
                counts.entry((flow, message)).or_default().0 += 1;
            }
            (0, Event::Sent { flow, message, .. }) => {
                counts.entry((flow, message)).or_default().1 += 1;
            }
            (end, event) => panic!("{event:?} at end {end}"),
        }
    }
    counts
}

/// A bad network: probabilities of loss and copies, and delays of packets.
#[derive(Debug, Clone, Copy)]
struct Weather {
    loss: f64,
    duplication: f64,
    replay: f64,
    /// Largest extra delay of all packets, as a power of two in microseconds.
    jitter: u32,
    /// Largest extra delay of replayed packets, likewise.
    replay_within: u32,
}

fn weather() -> impl Strategy<Value = Weather> {
    (0.0..0.3, 0.0..0.5, 0.0..0.6, 0u32..15, 2u32..24).prop_map(
        |(loss, duplication, replay, jitter, replay_within)| Weather {
            loss,
            duplication,
            replay,
            jitter,
            replay_within,
        },
    )
}

fn pipe(weather: Weather) -> PipeSettings {
    PipeSettings {
        data_loss: weather.loss,
        control_loss: weather.loss,
        duplication: weather.duplication,
        replay: weather.replay,
        jitter: Span::from_us((1 << weather.jitter) - 1),
        replay_within: Span::from_us(1 << weather.replay_within),
        ..PipeSettings::ideal(&facts())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn each_message_is_delivered_once(
        weather in weather(),
        flows in prop::collection::vec(prop::collection::vec(0u64..60_000, 1..4), 1..6),
        gaps in prop::collection::vec(0u64..3_000, 6),
        linger in prop::option::of(0u64..2_000),
        seed in any::<u64>(),
    ) {
        for profile in profiles(linger.map(Span::from_us)) {
            let mut pair = Pair::new(profile, pipe(weather), seed);
            let mut expected = BTreeMap::new();
            for (messages, gap) in flows.iter().zip(&gaps) {
                let flow = pair.open();
                for (number, &bytes) in (0u32..).zip(messages) {
                    pair.post(flow, number, Bytes::new(bytes));
                    expected.insert((flow, MessageId(number)), (1, 1));
                }
                pair.close(flow);
                pair.run_until(pair.now() + Span::from_us(*gap));
            }
            // Until the last copy has come: retransmissions of packets that are only late make many.
            pair.run();
            prop_assert_eq!(counts(&pair), expected);
            prop_assert_eq!(pair.ends[0].open_senders(), 0);
        }
    }
}

#[test]
fn a_recording_played_again_does_nothing_in_either_direction() {
    for profile in profiles(Some(Span::ZERO)) {
        let mut pair = Pair::new(profile, PipeSettings::ideal(&facts()), 1);
        let recording = Rc::new(RefCell::new([Vec::new(), Vec::new()]));
        for end in [0, 1] {
            let tape = Rc::clone(&recording);
            pair.pipes[end].drop_if(move |_, packet| {
                tape.borrow_mut()[1 - end].push(*packet);
                false
            });
        }
        for bytes in [0, 1, 4096, 100_000] {
            pair.send(Bytes::new(bytes));
        }
        pair.run();
        let before = pair.events().len();
        let tape = recording.borrow().clone();
        for end in [1, 0, 1] {
            // Flows of the recording are over; one more begins, so that their receivers are gone.
            pair.run_until(pair.now() + Span::from_us(5_000_000));
            pair.send(Bytes::new(1));
            pair.run();
            for packet in &tape[end] {
                pair.on_packet(end, *packet);
            }
            pair.run();
        }
        // One message of each of the three flows: delivered, and acknowledged.
        assert_eq!(pair.events().len(), before + 6);
        assert!(pair.now() > Time::from_us(15_000_000));
        assert_eq!(pair.ends[0].open_senders(), 0);
    }
}

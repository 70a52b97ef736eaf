use super::*;
use crate::congestion::feedback::FeedbackSettings;
use crate::congestion::telemetry::IntPacket;
use crate::congestion::{ControllerSettings, NetworkFacts};
use crate::endpoint::{Endpoint, Event};
use crate::packet::{Class, ClassSet, DataFlags, Header, Packet};
use crate::paths::SelectorSettings;
use crate::profile::{Opening, Profile, Reliability};
use crate::testing::{Pair, PipeSettings, network};
use clearway_units::{Bytes, FlowId, HostId, MessageId, Rate, Span, Time, Value};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::num::NonZero;
use std::rc::Rc;
use std::sync::Arc;

const MTU: u64 = 4096;
/// A full packet and an acknowledgement on a wire of 400 Gb/s.
const PACKET: Span = Span::from_ps(83_200);
const ACK: Span = Span::from_ps(1_280);
const ONE_WAY: Span = Span::from_us(4);

fn facts() -> NetworkFacts {
    network(Rate::from_gbps(400), Span::from_us(8))
}

/// Go-back-N over one path with a fixed window.
fn profile(window: &str, change: impl FnOnce(&mut GoBackNParameters)) -> Profile {
    let mut parameters = GoBackNParameters::default();
    change(&mut parameters);
    let mut controller = ControllerSettings::named("constant").unwrap();
    controller
        .set("window", &Value::Text(window.into()))
        .unwrap();
    Profile {
        network: facts(),
        reliability: Reliability::GoBackN(parameters),
        controller,
        variants: Vec::new(),
        selector: SelectorSettings::named("single").unwrap(),
        feedback: FeedbackSettings::default(),
        scope: Default::default(),
        credit: crate::congestion::credit::CreditParameters::default(),
        strict_priority: false,
    }
}

fn pair_with(profile: Profile) -> Pair {
    Pair::new(profile, PipeSettings::ideal(&facts()), 1)
}

fn pair() -> Pair {
    pair_with(profile("1MB", |_| {}))
}

fn psn_of(packet: &Packet) -> Option<(u32, bool)> {
    match packet.header {
        Header::Data { psn, flags, .. } => Some((psn, flags.contains(DataFlags::RETRANSMISSION))),
        _ => None,
    }
}

fn is_nack(packet: &Packet) -> bool {
    matches!(packet.header, Header::Ack { nack: true, .. })
}

#[test]
fn completion_times_on_an_ideal_wire_are_exact() {
    for packets in [1u32, 2, 10, 200] {
        let mut pair = pair();
        let flow = pair.send(Bytes::new(u64::from(packets) * MTU));
        pair.run();
        let wire = PACKET * u64::from(packets) + ACK + ONE_WAY * 2;
        assert_eq!(pair.finished(flow), Some(Time::ZERO + wire));
        let counters = pair.counters();
        assert_eq!(counters.data_sent, u64::from(packets));
        assert_eq!(counters.sacks_sent, u64::from(packets));
        assert_eq!(counters.retransmitted + counters.nacks_sent, 0);
        assert_eq!(pair.ends[0].open_senders(), 0);
    }
}

#[test]
fn one_lost_packet_costs_exactly_the_tail() {
    let mut pair = pair();
    pair.pipes[0].drop_if(|_, packet| psn_of(packet) == Some((10, false)));
    let flow = pair.send(Bytes::new(25 * MTU));
    pair.run();
    let counters = pair.counters();
    assert_eq!((counters.retransmitted, counters.discarded), (15, 14));
    assert_eq!((counters.nacks_sent, counters.nacks_received), (1, 1));
    assert_eq!((counters.lost_go_back, counters.timeouts), (15, 0));
    assert_eq!(counters.duplicates, 0);
    // The packet after the lost one brings the NACK; then the tail is sent again.
    let nacked = PACKET * 12 + ONE_WAY + ACK + ONE_WAY;
    let tail = PACKET * 15 + ONE_WAY + ACK + ONE_WAY;
    assert_eq!(pair.finished(flow), Some(Time::ZERO + nacked + tail));
    assert_eq!(pair.deliveries(flow, 0), 1);
}

#[test]
fn every_packet_lost_once_is_sent_again_after_one_timeout() {
    let mut pair = pair();
    pair.pipes[0].drop_if(|_, packet| psn_of(packet).is_some_and(|(_, again)| !again));
    let flow = pair.send(Bytes::new(40 * MTU));
    pair.run();
    let counters = pair.counters();
    assert_eq!((counters.timeouts, counters.retransmitted), (1, 40));
    assert_eq!(counters.lost_timeout, 40);
    let again = Span::from_ms(1) + PACKET * 40 + ONE_WAY + ACK + ONE_WAY;
    assert_eq!(pair.finished(flow), Some(Time::ZERO + again));
}

#[test]
fn a_lost_last_packet_is_found_by_the_timeout() {
    let mut pair = pair();
    pair.pipes[0].drop_if(|_, packet| psn_of(packet) == Some((24, false)));
    let flow = pair.send(Bytes::new(25 * MTU));
    pair.run();
    let counters = pair.counters();
    assert_eq!((counters.timeouts, counters.retransmitted), (1, 1));
    // The timer started with the last acknowledgement that moved on.
    let acknowledged = PACKET * 24 + ONE_WAY + ACK + ONE_WAY;
    let again = Span::from_ms(1) + PACKET + ONE_WAY + ACK + ONE_WAY;
    assert_eq!(pair.finished(flow), Some(Time::ZERO + acknowledged + again));
}

#[test]
fn lost_acknowledgements_do_no_harm_but_the_last() {
    let mut pair = pair();
    pair.pipes[1].drop_if(|number, _| number % 3 != 0 && number != 99);
    let flow = pair.send(Bytes::new(100 * MTU));
    pair.run();
    assert_eq!(pair.counters().retransmitted, 0);
    assert!(pair.finished(flow).is_some());

    let mut pair = self::pair();
    pair.pipes[1].drop_if(|number, _| number < 100);
    let flow = pair.send(Bytes::new(100 * MTU));
    pair.run();
    let counters = pair.counters();
    // The first duplicate is acknowledged for all, which takes a round trip.
    assert_eq!((counters.timeouts, counters.retransmitted), (1, 98));
    assert_eq!(counters.duplicates, 98);
    let again = Span::from_ms(1) + PACKET + ONE_WAY + ACK + ONE_WAY;
    assert_eq!(pair.finished(flow), Some(Time::ZERO + again));
}

#[test]
fn timeouts_double_up_to_the_longest_and_start_afresh_with_progress() {
    let silent = |p: &mut GoBackNParameters| p.ack_duplicates = false;
    let mut pair = pair_with(profile("1MB", silent));
    pair.ends[0].set_tracing(true);
    // No acknowledgement comes through until 40 ms.
    let open = Rc::new(RefCell::new(false));
    let is_open = Rc::clone(&open);
    pair.pipes[0].drop_if(move |_, _| !*is_open.borrow());
    let flow = pair.send(Bytes::new(2 * MTU));
    pair.run_until(Time::from_us(24_500));
    let timeouts: Vec<_> = pair
        .events()
        .iter()
        .filter_map(|(time, _, event)| match event {
            Event::Loss { .. } => Some(time.as_us().round() as u64),
            _ => None,
        })
        .collect();
    assert_eq!(timeouts, [1000, 3000, 7000, 15_000, 23_000]);
    *open.borrow_mut() = true;
    pair.run();
    assert!(pair.finished(flow).unwrap() > Time::from_us(31_000));
    assert_eq!(pair.counters().timeouts, 6);
}

#[test]
fn progress_sets_the_timeout_back_to_its_start() {
    let mut pair = pair();
    pair.ends[0].set_tracing(true);
    let open = Rc::new(RefCell::new(false));
    let is_open = Rc::clone(&open);
    pair.pipes[0].drop_if(move |_, _| !*is_open.borrow());
    let timeouts = |pair: &Pair, after: Time| -> Vec<u64> {
        let events = pair.events().iter();
        let lost = events.filter(|(_, _, event)| matches!(event, Event::Loss { .. }));
        lost.filter(|(time, ..)| *time > after)
            .map(|(time, ..)| time.since(after).as_us().round() as u64)
            .collect()
    };
    let flow = pair.open();
    pair.post(flow, 0, Bytes::new(2 * MTU));
    pair.run_until(Time::from_us(3500));
    assert_eq!(timeouts(&pair, Time::ZERO), [1000, 3000]);
    *open.borrow_mut() = true;
    pair.run_until(Time::from_us(10_000));
    assert_eq!(pair.deliveries(flow, 0), 1);
    // The third timeout came at 7 ms; after it everything arrived.
    *open.borrow_mut() = false;
    pair.post(flow, 1, Bytes::new(2 * MTU));
    pair.run_until(Time::from_us(14_000));
    assert_eq!(timeouts(&pair, Time::from_us(10_000)), [1000, 3000]);
}

#[test]
fn a_lost_nack_is_repeated_after_the_interval() {
    let mut pair = pair_with(profile("100MB", |_| {}));
    pair.pipes[0].drop_if(|_, packet| psn_of(packet) == Some((10, false)));
    let nacks = Rc::new(RefCell::new(0));
    let seen = Rc::clone(&nacks);
    pair.pipes[1].drop_if(move |_, packet| {
        *seen.borrow_mut() += u32::from(is_nack(packet));
        is_nack(packet) && *seen.borrow() == 1
    });
    let flow = pair.send(Bytes::new(12_000 * MTU));
    pair.run();
    let counters = pair.counters();
    assert_eq!(counters.timeouts, 0);
    assert_eq!((counters.nacks_sent, *nacks.borrow()), (2, 2));
    // In 500 us 6010 packets arrive; packets of the round trip come on top.
    assert!(
        (6000..6200).contains(&counters.retransmitted),
        "{}",
        counters.retransmitted
    );
    assert!(pair.finished(flow).is_some());
}

#[test]
fn acknowledgements_are_coalesced_but_for_the_last() {
    let acks = |interval, packets: u64| {
        let mut pair = pair_with(profile("1MB", |p| {
            p.ack_interval = NonZero::new(interval).unwrap();
        }));
        let flow = pair.send(Bytes::new(packets * MTU));
        pair.run();
        assert!(pair.finished(flow).is_some());
        assert_eq!(pair.counters().retransmitted, 0);
        pair.counters().sacks_sent
    };
    assert_eq!((acks(1, 100), acks(4, 100), acks(4, 99)), (100, 25, 25));
    assert_eq!(acks(1000, 100), 1);
}

#[test]
fn a_window_smaller_than_the_interval_does_not_stall() {
    let mut pair = pair_with(profile("20000B", |p| {
        p.ack_interval = NonZero::new(64).unwrap();
    }));
    let flow = pair.send(Bytes::new(50 * MTU));
    pair.run();
    assert!(pair.finished(flow).is_some());
    assert_eq!(
        (pair.counters().timeouts, pair.counters().sacks_sent),
        (0, 10)
    );
}

fn endpoint(host: u32, profile: &Arc<Profile>) -> Endpoint {
    Endpoint::new(HostId(host), Arc::clone(profile), 1)
}

fn open_and_post(endpoint: &mut Endpoint, flow: u32, class: Class, bytes: u64) {
    let flow = FlowId(flow);
    let peer = HostId(1);
    endpoint.open(flow, peer, &Opening::usual(class, facts().path));
    endpoint.post(Time::ZERO, flow, MessageId(0), Bytes::new(bytes));
}

#[test]
fn acknowledgements_in_the_class_of_data_are_paused_with_it() {
    let class = Class::new(3).unwrap();
    for ack_class in [AckClass::Control, AckClass::Data] {
        let profile = Arc::new(profile("1MB", |p| p.ack_class = ack_class));
        let mut sender = endpoint(0, &profile);
        let mut receiver = endpoint(1, &profile);
        open_and_post(&mut sender, 1, class, 2 * MTU);
        let data = sender.poll_transmit(Time::ZERO).unwrap();
        assert_eq!(data.class, class);
        receiver.on_packet(Time::from_us(4), &data);
        let mut paused = ClassSet::EMPTY;
        paused.insert(class);
        receiver.set_paused(paused);
        let acknowledged = receiver.poll_transmit(Time::from_us(5));
        if ack_class == AckClass::Control {
            assert_eq!(acknowledged.unwrap().class, Class::CONTROL);
            continue;
        }
        assert_eq!((acknowledged, receiver.ready()), (None, false));
        receiver.set_paused(ClassSet::EMPTY);
        assert_eq!(
            receiver.poll_transmit(Time::from_us(6)).unwrap().class,
            class
        );
    }
}

#[test]
fn acknowledgements_echo_stamp_and_mark_in_the_header() {
    let profile = Arc::new(profile("1MB", |_| {}));
    let mut sender = endpoint(0, &profile);
    let mut receiver = endpoint(1, &profile);
    open_and_post(&mut sender, 1, Class::DATA, 3 * MTU);
    let mut data: Vec<_> = std::iter::from_fn(|| sender.poll_transmit(Time::from_us(3))).collect();
    data[0].ecn = true;
    // The second is lost.
    receiver.on_packet(Time::from_us(7), &data[0]);
    receiver.on_packet(Time::from_us(7), &data[2]);
    let ack = receiver.poll_transmit(Time::from_us(8)).unwrap();
    let nack = receiver.poll_transmit(Time::from_us(8)).unwrap();
    let expected = |nack, marked| Header::Ack {
        epsn: 1,
        nack,
        marked,
    };
    assert_eq!(ack.header, expected(false, true));
    assert_eq!(nack.header, expected(true, false));
    assert_eq!((ack.stamp, ack.ecn), (Time::from_us(3), false));
    assert_eq!(ack.source_port, data[0].source_port);
    sender.on_packet(Time::from_us(12), &ack);
    sender.on_packet(Time::from_us(12), &nack);
    let progress = sender.progress(FlowId(1)).unwrap();
    assert_eq!((progress.lost_packets, progress.recovering), (2, true));
    assert_eq!(progress.in_flight, Bytes::ZERO);
    let statistics = progress.statistics;
    assert_eq!((statistics.nacks, statistics.marked), (1, 1));
}

#[test]
fn an_old_nack_does_not_send_the_sender_back() {
    let profile = Arc::new(profile("1MB", |_| {}));
    let mut sender = endpoint(0, &profile);
    open_and_post(&mut sender, 1, Class::DATA, 5 * MTU);
    let data: Vec<_> = std::iter::from_fn(|| sender.poll_transmit(Time::ZERO)).collect();
    let answer = |epsn, nack| {
        let header = Header::Ack {
            epsn,
            nack,
            marked: false,
        };
        IntPacket::from(Packet { header, ..*data[0] })
    };
    sender.on_packet(Time::from_us(8), &answer(4, false));
    sender.on_packet(Time::from_us(9), &answer(2, true));
    assert!(!sender.ready());
    sender.on_packet(Time::from_us(10), &answer(4, true));
    assert_eq!(
        psn_of(&sender.poll_transmit(Time::from_us(10)).unwrap()),
        Some((4, true))
    );
    sender.on_packet(Time::from_us(11), &answer(6, false));
    assert_eq!(sender.counters().invalid, 1);
}

#[test]
fn what_went_back_and_had_arrived_is_not_sent_again() {
    let profile = Arc::new(profile("1MB", |_| {}));
    let mut sender = endpoint(0, &profile);
    open_and_post(&mut sender, 1, Class::DATA, 5 * MTU);
    let data: Vec<_> = std::iter::from_fn(|| sender.poll_transmit(Time::ZERO)).collect();
    sender.on_deadline(Time::from_us(1000));
    assert!(sender.ready());
    assert_eq!(
        psn_of(&sender.poll_transmit(Time::from_us(1000)).unwrap()),
        Some((0, true))
    );
    // The acknowledgement of the third of the first round was only late.
    let late = Packet {
        header: Header::Ack {
            epsn: 3,
            nack: false,
            marked: false,
        },
        ..*data[2]
    };
    sender.on_packet(Time::from_us(1001), &late.into());
    assert_eq!(
        psn_of(&sender.poll_transmit(Time::from_us(1001)).unwrap()),
        Some((3, true))
    );
    assert_eq!(
        sender.progress(FlowId(1)).unwrap().in_flight,
        Bytes::new(MTU)
    );
}

#[test]
fn an_idle_flow_has_no_deadline() {
    let mut pair = pair();
    let flow = pair.open();
    pair.post(flow, 0, Bytes::new(10 * MTU));
    pair.run();
    assert!(pair.ends[0].deadline().is_never());
    pair.run_until(Time::from_us(50_000));
    pair.post(flow, 1, Bytes::new(10 * MTU));
    pair.run();
    assert_eq!((pair.deliveries(flow, 1), pair.counters().timeouts), (1, 0));
}

/// Byte ranges of payload in the message, each with the queue pair and the source port of its packet.
type Seen = Rc<RefCell<BTreeSet<(u64, u64, u8, u16)>>>;

fn watch(pair: &mut Pair) -> Seen {
    let seen = Seen::default();
    let log = Rc::clone(&seen);
    pair.pipes[0].drop_if(move |_, packet| {
        if let Header::Data {
            offset, payload, ..
        } = packet.header
        {
            let end = offset + u64::from(payload);
            let entry = (offset, end, packet.queue_pair, packet.source_port);
            log.borrow_mut().insert(entry);
        }
        false
    });
    seen
}

#[test]
fn whole_messages_take_turns_on_queue_pairs() {
    let mut pair = pair_with(profile("1MB", |p| {
        (p.queue_pairs, p.stripe) = (NonZero::new(2).unwrap(), Stripe::Message);
    }));
    let carriers = Rc::new(RefCell::new(BTreeSet::new()));
    let seen = Rc::clone(&carriers);
    pair.pipes[0].drop_if(move |_, packet| {
        if let Header::Data { message, .. } = packet.header {
            seen.borrow_mut().insert((message.0, packet.queue_pair));
        }
        false
    });
    let flow = pair.open();
    for (message, bytes) in [(0, 100_000), (1, 50_000), (2, 0), (3, 0), (4, 1)] {
        pair.post(flow, message, Bytes::new(bytes));
    }
    pair.close(flow);
    pair.run();
    assert!((0..5).all(|message| pair.deliveries(flow, message) == 1));
    let in_turn = [(0, 0), (1, 1), (2, 0), (3, 1), (4, 0)];
    assert_eq!(*carriers.borrow(), BTreeSet::from(in_turn));
}

#[test]
fn queue_pairs_share_a_message_and_finish_it_once() {
    for stripe in [Stripe::Split, Stripe::RoundRobin, Stripe::Message] {
        for bytes in [0, 1, 4, 10_000, 65_536, 65_537, 1_000_003, 300_000] {
            let mut pair = pair_with(profile("1MB", |p| {
                (p.queue_pairs, p.stripe) = (NonZero::new(4).unwrap(), stripe);
                p.stripe_chunk = Bytes::new(10_000);
            }));
            let seen = watch(&mut pair);
            let flow = pair.send(Bytes::new(bytes));
            pair.run();
            let what = format!("{stripe:?} {bytes}");
            assert_eq!(pair.deliveries(flow, 0), 1, "{what}");
            let sent = pair
                .events()
                .iter()
                .filter_map(|(_, end, event)| match event {
                    Event::Sent {
                        bytes, statistics, ..
                    } => Some((*end, *bytes, statistics.packets)),
                    _ => None,
                });
            let packets = pair.counters().data_sent;
            let parameters = GoBackNParameters {
                queue_pairs: NonZero::new(4).unwrap(),
                stripe,
                stripe_chunk: Bytes::new(10_000),
                ..Default::default()
            };
            let of = |pair| parameters.packets_of(Bytes::new(bytes), pair, &facts());
            assert_eq!((0..4).map(of).sum::<u64>(), packets, "{what}");
            assert_eq!(
                sent.collect::<Vec<_>>(),
                [(0, Bytes::new(bytes), packets)],
                "{what}"
            );
            assert!(pair.events().iter().all(|(_, _, event)| match event {
                Event::Received { bytes: whole, .. } => whole.as_u64() == bytes,
                _ => true,
            }));
            // Each byte once, in order of its place.
            let mut place = 0;
            for &(from, to, ..) in seen.borrow().iter() {
                assert_eq!(from, place, "{what}");
                place = to;
            }
            assert_eq!(place, bytes, "{what}");
            assert_eq!(pair.ends[0].open_senders(), 0, "{what}");
            if bytes > 50_000 {
                let ports: BTreeSet<_> = seen.borrow().iter().map(|s| (s.2, s.3)).collect();
                let used = if stripe == Stripe::Message { 1 } else { 4 };
                assert_eq!(ports.len(), used, "{what}");
            }
        }
    }
}

#[test]
fn a_split_message_has_contiguous_parts_and_the_rest_goes_first() {
    let parameters = GoBackNParameters {
        queue_pairs: NonZero::new(4).unwrap(),
        ..Default::default()
    };
    let rules = Rules::new(&parameters, &facts());
    let part = |bytes, queue_pair| {
        let part = rules.part(MessageId(0), Bytes::new(bytes), queue_pair);
        part.map(|part| (part.place, part.bytes, part.parts))
    };
    let of = |bytes| [0, 1, 2, 3].map(|queue_pair| part(bytes, queue_pair));
    let four = |parts: [(u64, u64); 4]| parts.map(|(place, bytes)| Some((place, bytes, 4)));
    assert_eq!(
        of(4_003),
        four([(0, 1003), (1003, 1000), (2003, 1000), (3003, 1000)])
    );
    assert_eq!(of(3), [Some((0, 3, 1)), None, None, None]);
    assert_eq!(of(0), [Some((0, 0, 1)), None, None, None]);
}

#[test]
fn a_loss_on_one_queue_pair_leaves_the_others_alone() {
    let mut pair = pair_with(profile("1MB", |p| p.queue_pairs = NonZero::new(4).unwrap()));
    pair.pipes[0].drop_if(|_, packet| packet.queue_pair == 2 && psn_of(packet) == Some((5, false)));
    let flow = pair.send(Bytes::new(100 * MTU));
    pair.run();
    assert_eq!(pair.counters().retransmitted, 20);
    assert!(pair.finished(flow).is_some());
}

#[test]
fn memory_is_that_of_the_living_flows() {
    let mut pair = pair_with(profile("1MB", |p| p.queue_pairs = NonZero::new(2).unwrap()));
    for round in 0..300u64 {
        for _ in 0..3 {
            pair.send(Bytes::new(round * 1000));
        }
        pair.run();
        assert_eq!(pair.ends[0].open_senders(), 0);
        let next = pair.now() + Span::from_ms(1);
        pair.run_until(next);
    }
    // Receivers linger for four of the longest timeouts, 32 ms.
    assert!(
        pair.ends[1].open_receivers() <= 2 * 3 * 34,
        "{}",
        pair.ends[1].open_receivers()
    );
    let later = pair.now() + Span::from_ms(100);
    pair.run_until(later);
    pair.on_deadline(1);
    assert_eq!(pair.ends[1].open_receivers(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_message_is_delivered_exactly_once(
        (data_loss, control_loss, jitter) in (0.0..0.1f64, 0.0..0.3f64, 0u64..3),
        (queue_pairs, round_robin, ack_interval) in (1u8..5, any::<bool>(), 1u32..6),
        flows in prop::collection::vec(prop::collection::vec(0u64..300_000, 1..4), 1..4),
        seed in any::<u64>(),
    ) {
        let pipe = PipeSettings {
            data_loss,
            control_loss,
            jitter: Span::from_us(jitter),
            ..PipeSettings::ideal(&facts())
        };
        let profile = profile("1MB", |p| {
            p.queue_pairs = NonZero::new(queue_pairs).unwrap();
            p.ack_interval = NonZero::new(ack_interval).unwrap();
            if round_robin {
                p.stripe = Stripe::RoundRobin;
                p.stripe_chunk = Bytes::new(16_384);
            }
        });
        let mut pair = Pair::new(profile, pipe, seed);
        let ids: Vec<_> = flows.iter().map(|_| pair.open()).collect();
        for (flow, messages) in ids.iter().zip(&flows) {
            for (message, bytes) in messages.iter().enumerate() {
                pair.post(*flow, message as u32, Bytes::new(*bytes));
            }
        }
        let mut steps = 0u64;
        while pair.step() {
            steps += 1;
            prop_assert!(steps < 3_000_000, "no end in sight at {}", pair.now());
        }
        for (flow, messages) in ids.iter().zip(&flows) {
            for message in 0..messages.len() as u32 {
                prop_assert_eq!(pair.deliveries(*flow, message), 1);
            }
            pair.close(*flow);
        }
        pair.run();
        let sent = |event: &&(Time, usize, Event)| matches!(event.2, Event::Sent { .. });
        let messages: usize = flows.iter().map(Vec::len).sum();
        prop_assert_eq!(pair.events().iter().filter(sent).count(), messages);
        prop_assert_eq!(pair.ends[0].open_senders(), 0);
        let later = pair.now() + Span::from_ms(100);
        pair.run_until(later);
        pair.on_deadline(1);
        prop_assert_eq!(pair.ends[1].open_receivers(), 0);
        let counters = pair.counters();
        prop_assert_eq!((counters.overflow, counters.invalid), (0, 0));
    }
}

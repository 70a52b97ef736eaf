use super::*;
use crate::congestion::telemetry::{Hop, HopRecords, Telemetry};
use crate::congestion::{ControllerSettings, LossCause, NetworkFacts};
use crate::packet::{Class, DataFlags, header_hash};
use crate::paths::SelectorSettings;
use crate::profile::{Opening, Reliability};
use crate::reliability::go_back_n::GoBackNParameters;
use crate::reliability::selective_repeat::SelectiveRepeatParameters;
use crate::testing::{Bottleneck, Pair, PipeSettings, network};
use clearway_units::{Rate, Value};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::num::NonZero;
use std::rc::Rc;

fn facts() -> NetworkFacts {
    network(Rate::from_gbps(400), Span::from_us(8))
}

fn ideal_pair() -> Pair {
    Pair::new(Profile::strack(facts()), PipeSettings::ideal(&facts()), 1)
}

/// Completion time of a message alone on an ideal wire of 400 Gb/s, 20 ps a byte, and 8 us round trip.
fn ideal_time(bytes: u64) -> Time {
    let packets = bytes.div_ceil(4096).max(1);
    let wire_bytes = bytes + 64 * packets;
    Time::from_ps(20 * (wire_bytes + 64) + 8_000_000)
}

fn selective_repeat(profile: &mut Profile) -> &mut SelectiveRepeatParameters {
    profile.reliability.selective_repeat_mut().unwrap()
}

fn first_transmission(packet: &Packet, wanted: u32) -> bool {
    matches!(packet.header, Header::Data { psn, flags, .. } if psn == wanted && !flags.contains(DataFlags::RETRANSMISSION))
}

fn is_probe(packet: &Packet) -> bool {
    matches!(packet.header, Header::Probe { .. })
}

/// Times at which losses of the cause `wanted` were detected at the sender.
fn losses(pair: &Pair, wanted: LossCause) -> Vec<Time> {
    let found = |&(time, _, event): &(Time, usize, Event)| match event {
        Event::Loss { cause, .. } if cause == wanted => Some(time),
        _ => None,
    };
    pair.events().iter().filter_map(found).collect()
}

#[test]
fn completion_times_on_an_ideal_wire_are_exact() {
    for (bytes, expected_ps) in [
        (0, 8_002_560),
        (1, 8_002_580),
        (4096, 8_084_480),
        (40_960, 8_833_280),
        (2_000_000, 48_627_200),
        (10_000_000, 211_127_040),
    ] {
        let mut pair = ideal_pair();
        let flow = pair.send(Bytes::new(bytes));
        pair.run();
        assert_eq!(pair.finished(flow), Some(ideal_time(bytes)), "{bytes} B");
        assert_eq!(ideal_time(bytes), Time::from_ps(expected_ps));
        let counters = pair.counters();
        assert_eq!(counters.retransmitted + counters.probes_sent, 0);
        assert_eq!(counters.sacks_sent, counters.data_sent);
        assert_eq!(pair.ends[0].open_senders(), 0);
    }
}

#[test]
fn a_flow_has_the_controller_of_its_variant() {
    let with_window = |bytes: &str| {
        let mut controller = ControllerSettings::named("constant").unwrap();
        controller
            .set("window", &Value::Text(bytes.into()))
            .unwrap();
        controller
    };
    let mut profile = Profile::strack(facts());
    profile.controller = with_window("8KB");
    profile.variants = vec![with_window("16KB"), with_window("1MB")];
    let mut endpoint: Endpoint = Endpoint::new(HostId(0), Arc::new(profile), 1);
    let mut window = |number: u16| {
        let flow = FlowId(number.into());
        let opening = Opening {
            variant: number,
            ..Opening::usual(Class::DATA, facts().path)
        };
        endpoint.open(flow, HostId(1), &opening);
        endpoint.progress(flow).unwrap().window.as_u64()
    };
    assert_eq!([0, 1, 2].map(&mut window), [8000, 16_000, 1_000_000]);
    // Every window fits into the numbers that receivers keep.
    assert!(u64::from(endpoint.window_limit().unwrap()) * 4096 > 1_000_000);
}

#[test]
fn a_single_drop_costs_one_retransmission_and_is_found_by_overtaking() {
    let mut pair = ideal_pair();
    pair.ends[0].set_tracing(true);
    pair.pipes[0].drop_if(|_, packet| first_transmission(packet, 98));
    let flow = pair.send(Bytes::new(4_000_000));
    pair.run();
    assert!(pair.finished(flow).is_some());
    let counters = pair.counters();
    assert_eq!((counters.retransmitted, counters.lost_out_of_order), (1, 1));
    assert_eq!((counters.duplicates, counters.timeouts), (0, 0));
    // Sent at 98 × 83.2 ns; its acknowledgement was due a round trip later.
    let due = Time::from_ps(98 * 83_200) + facts().base_rtt;
    let late = losses(&pair, LossCause::OutOfOrder)[0] - due;
    assert!(
        facts().base_rtt < late && late < facts().base_rtt * 2,
        "{late}"
    );
}

#[test]
fn a_lost_tail_is_found_by_a_probe() {
    let mut pair = ideal_pair();
    pair.pipes[0].drop_if(|_, packet| first_transmission(packet, 24));
    let flow = pair.send(Bytes::new(25 * 4096));
    pair.run();
    let late = pair.finished(flow).unwrap() - ideal_time(25 * 4096);
    // Three round trips to the probe, one for it, one for the packet.
    assert!(
        late > facts().propagation_rtt * 4 && late < facts().propagation_rtt * 6,
        "{late}"
    );
    let counters = pair.counters();
    assert_eq!(
        (
            counters.lost_probe,
            counters.retransmitted,
            counters.timeouts
        ),
        (1, 1, 0)
    );
}

#[test]
fn a_lost_window_and_a_lost_probe_are_survived_by_the_second_probe() {
    let mut pair = ideal_pair();
    let probes = Rc::new(RefCell::new(0));
    let seen = Rc::clone(&probes);
    pair.pipes[0].drop_if(move |number, packet| {
        *seen.borrow_mut() += u32::from(is_probe(packet));
        number < 100 || (is_probe(packet) && *seen.borrow() == 1)
    });
    let flow = pair.send(Bytes::new(100 * 4096));
    pair.run();
    let counters = pair.counters();
    assert_eq!((*probes.borrow(), counters.timeouts), (2, 0));
    assert_eq!((counters.lost_probe, counters.retransmitted), (100, 100));
    // Probes at 24 and 48 us, the answer at 56 us, then the message.
    let late = pair.finished(flow).unwrap() - ideal_time(100 * 4096);
    assert!(
        late > Span::from_us(55) && late < Span::from_us(58),
        "{late}"
    );
}

#[test]
fn a_slow_probe_says_nothing_and_the_timeout_recovers() {
    let mut pair = ideal_pair();
    pair.pipes[0].drop_if(|_, packet| first_transmission(packet, 24));
    let flow = pair.send(Bytes::new(25 * 4096));
    pair.run_until(Time::from_us(20));
    for pipe in &mut pair.pipes {
        let slow = PipeSettings {
            delay: Span::from_us(8),
            ..PipeSettings::ideal(&facts())
        };
        pipe.set(slow);
    }
    pair.run();
    let counters = pair.counters();
    assert!(counters.probes_sent > 1);
    assert_eq!(
        (
            counters.lost_probe,
            counters.lost_timeout,
            counters.timeouts
        ),
        (0, 1, 1)
    );
    assert!(pair.finished(flow).is_some());
}

#[test]
fn lost_and_reordered_acknowledgements_do_no_harm() {
    let mut pair = ideal_pair();
    let settings = PipeSettings {
        control_loss: 0.3,
        jitter: Span::from_us(20),
        ..PipeSettings::ideal(&facts())
    };
    pair.pipes[1].set(settings);
    let flow = pair.open();
    pair.post(flow, 0, Bytes::new(3_000_000));
    let mut acknowledged = Bytes::ZERO;
    while pair.step() {
        let progress = pair.ends[0].progress(flow).unwrap();
        assert!(progress.acknowledged >= acknowledged);
        acknowledged = progress.acknowledged;
    }
    assert_eq!(acknowledged, Bytes::new(3_000_000));
    assert!(pair.finished(flow).is_some());
    assert_eq!(pair.ends[0].in_flight_exact(), 0);
    assert_eq!(pair.deliveries(flow, 0), 1);
}

#[test]
fn flows_take_turns_packet_by_packet() {
    let mut endpoint = Endpoint::new(HostId(0), Arc::new(Profile::strack(facts())), 1);
    for flow in 0..3 {
        open_and_post(&mut endpoint, flow, 10 * 4096);
    }
    let order: Vec<_> = std::iter::from_fn(|| endpoint.poll_transmit(Time::ZERO))
        .map(|packet| packet.flow.0)
        .collect();
    assert_eq!(order.len(), 30);
    assert!(order.chunks(3).all(|chunk| chunk == [0, 1, 2]), "{order:?}");
    assert!(!endpoint.ready());
}

fn open_and_post(endpoint: &mut Endpoint, flow: u32, bytes: u64) {
    let flow = FlowId(flow);
    let opening = Opening::usual(Class::DATA, facts().path);
    endpoint.open(flow, HostId(1), &opening);
    endpoint.post(Time::ZERO, flow, MessageId(0), Bytes::new(bytes));
}

#[test]
fn paused_classes_wait_and_control_goes_on() {
    let profile = Arc::new(Profile::strack(facts()));
    let mut peer = Endpoint::new(HostId(1), Arc::clone(&profile), 1);
    open_and_post(&mut peer, 9, 4096);
    let mut endpoint = Endpoint::new(HostId(0), profile, 1);
    open_and_post(&mut endpoint, 1, 2 * 4096);
    endpoint.on_packet(Time::ZERO, &peer.poll_transmit(Time::ZERO).unwrap());
    let mut paused = ClassSet::EMPTY;
    paused.insert(Class::DATA);
    endpoint.set_paused(paused);
    let classes = |endpoint: &mut Endpoint| -> Vec<Class> {
        std::iter::from_fn(|| endpoint.poll_transmit(Time::ZERO))
            .map(|packet| packet.class)
            .collect()
    };
    assert_eq!(classes(&mut endpoint), [Class::CONTROL]);
    assert!(!endpoint.ready());
    endpoint.set_paused(ClassSet::EMPTY);
    assert!(endpoint.ready());
    assert_eq!(classes(&mut endpoint), [Class::DATA; 2]);
}

fn open_in_class(endpoint: &mut Endpoint, flow: u32, class: Class, packets: u64) {
    let (flow, peer) = (FlowId(flow), HostId(1));
    endpoint.open(flow, peer, &Opening::usual(class, facts().path));
    endpoint.post(Time::ZERO, flow, MessageId(0), Bytes::new(packets * 4096));
}

fn polled_classes(endpoint: &mut Endpoint, now: Time) -> Vec<usize> {
    std::iter::from_fn(|| endpoint.poll_transmit(now))
        .map(|packet| packet.class.index())
        .collect()
}

#[test]
fn classes_take_turns_and_a_paused_one_blocks_no_other() {
    let three = Class::new(3).unwrap();
    let mut endpoint = Endpoint::new(HostId(0), Arc::new(Profile::strack(facts())), 1);
    open_in_class(&mut endpoint, 1, Class::DATA, 4);
    open_in_class(&mut endpoint, 2, Class::DATA, 4);
    open_in_class(&mut endpoint, 3, three, 4);
    let mut next = || endpoint.poll_transmit(Time::ZERO).unwrap().flow.0;
    // Classes take turns, and flows within a class.
    assert_eq!([next(), next(), next(), next()], [1, 3, 2, 3]);
    let mut paused = ClassSet::EMPTY;
    paused.insert(three);
    endpoint.set_paused(paused);
    assert_eq!(polled_classes(&mut endpoint, Time::ZERO), [1; 6]);
    assert!(!endpoint.ready());
    endpoint.set_paused(ClassSet::EMPTY);
    assert!(endpoint.ready());
    assert_eq!(polled_classes(&mut endpoint, Time::ZERO), [3; 2]);
}

#[test]
fn with_strict_priority_the_highest_class_that_is_not_paused_goes_first() {
    let three = Class::new(3).unwrap();
    let mut profile = Profile::strack(facts());
    profile.strict_priority = true;
    let mut endpoint = Endpoint::new(HostId(0), Arc::new(profile), 1);
    open_in_class(&mut endpoint, 1, Class::DATA, 4);
    open_in_class(&mut endpoint, 2, three, 2);
    open_in_class(&mut endpoint, 3, three, 1);
    let mut next = || endpoint.poll_transmit(Time::ZERO).unwrap().flow.0;
    assert_eq!([next(), next()], [2, 3]);
    let mut paused = ClassSet::EMPTY;
    paused.insert(three);
    endpoint.set_paused(paused);
    assert_eq!(
        endpoint
            .poll_transmit(Time::ZERO)
            .map(|packet| packet.flow.0),
        Some(1)
    );
    endpoint.set_paused(ClassSet::EMPTY);
    assert_eq!(polled_classes(&mut endpoint, Time::ZERO), [3, 1, 1, 1]);
}

#[test]
fn control_that_is_paused_waits_and_lets_other_classes_go() {
    let profile = Arc::new(Profile::strack(facts()));
    let three = Class::new(3).unwrap();
    let mut endpoint = Endpoint::new(HostId(0), Arc::clone(&profile), 1);
    let mut peer = Endpoint::new(HostId(1), profile, 1);
    open_in_class(&mut peer, 9, Class::DATA, 1);
    // An acknowledgement, then a probe in class 3 that would go after it.
    endpoint.on_packet(Time::ZERO, &peer.poll_transmit(Time::ZERO).unwrap());
    open_in_class(&mut endpoint, 1, three, 1);
    let mut paused = ClassSet::EMPTY;
    paused.insert(Class::CONTROL);
    paused.insert(Class::DATA);
    endpoint.set_paused(paused);
    assert_eq!(polled_classes(&mut endpoint, Time::ZERO), [3], "the data");
    let now = Time::from_us(24);
    endpoint.on_deadline(now);
    assert_eq!(polled_classes(&mut endpoint, now), [3], "the probe");
    assert!(!endpoint.ready());
    assert_eq!(endpoint.poll_transmit(now), None);
    endpoint.set_paused(ClassSet::EMPTY);
    assert_eq!(polled_classes(&mut endpoint, now), [0]);
}

#[test]
fn a_paused_probe_holds_back_neither_control_nor_other_classes() {
    let profile = Arc::new(Profile::strack(facts()));
    let three = Class::new(3).unwrap();
    let mut endpoint = Endpoint::new(HostId(0), Arc::clone(&profile), 1);
    open_in_class(&mut endpoint, 1, three, 1);
    open_in_class(&mut endpoint, 2, Class::DATA, 1);
    assert_eq!(polled_classes(&mut endpoint, Time::ZERO), [3, 1]);
    // Both flows want to probe.
    let now = Time::from_us(24);
    endpoint.on_deadline(now);
    let mut peer = Endpoint::new(HostId(1), profile, 1);
    open_in_class(&mut peer, 9, Class::DATA, 1);
    endpoint.on_packet(now, &peer.poll_transmit(Time::ZERO).unwrap());
    let mut paused = ClassSet::EMPTY;
    paused.insert(three);
    endpoint.set_paused(paused);
    assert_eq!(polled_classes(&mut endpoint, now), [1, 0]);
    assert!(!endpoint.ready());
    endpoint.set_paused(ClassSet::EMPTY);
    assert_eq!(polled_classes(&mut endpoint, now), [3]);
    assert_eq!(endpoint.counters().probes_sent, 2);
}

#[test]
fn probes_and_acknowledgements_leave_in_the_order_in_which_they_were_queued() {
    let profile = Arc::new(Profile::strack(facts()));
    let mut peer = Endpoint::new(HostId(1), Arc::clone(&profile), 1);
    open_in_class(&mut peer, 9, Class::DATA, 2);
    let mut endpoint = Endpoint::new(HostId(0), profile, 1);
    open_in_class(&mut endpoint, 1, Class::DATA, 1);
    endpoint.poll_transmit(Time::ZERO);
    let now = Time::from_us(24);
    endpoint.on_packet(now, &peer.poll_transmit(Time::ZERO).unwrap());
    endpoint.on_deadline(now);
    endpoint.on_packet(now, &peer.poll_transmit(Time::ZERO).unwrap());
    assert_eq!(polled_classes(&mut endpoint, now), [0, 1, 0]);
}

#[test]
fn control_goes_first_or_takes_turns() {
    for (control_first, packets, expected) in [
        (true, 4, "ccccdddd"),
        (false, 4, "cdcdcdcd"),
        (false, 2, "cdcdcc"),
        (false, 0, "cccc"),
    ] {
        let mut profile = Profile::strack(facts());
        selective_repeat(&mut profile).control_first = control_first;
        let profile = Arc::new(profile);
        let mut peer = Endpoint::new(HostId(1), Arc::clone(&profile), 1);
        open_and_post(&mut peer, 9, 4 * 4096);
        let mut endpoint = Endpoint::new(HostId(0), profile, 1);
        if packets > 0 {
            open_and_post(&mut endpoint, 1, packets * 4096);
        }
        while let Some(packet) = peer.poll_transmit(Time::ZERO) {
            endpoint.on_packet(Time::ZERO, &packet);
        }
        let order: String = std::iter::from_fn(|| endpoint.poll_transmit(Time::ZERO))
            .map(|packet| match packet.class {
                Class::CONTROL => 'c',
                _ => 'd',
            })
            .collect();
        assert_eq!(order, expected);
    }
}

#[test]
fn spurious_calls_change_nothing() {
    let mut pair = ideal_pair();
    let flow = pair.send(Bytes::new(2_000_000));
    while pair.step() {
        let now = pair.now();
        for end in &mut pair.ends {
            if end.deadline() > now {
                end.on_deadline(now);
            }
            assert_eq!(end.poll_event(), None);
        }
    }
    assert_eq!(pair.finished(flow), Some(ideal_time(2_000_000)));
    assert_eq!(pair.counters().probes_sent, 0);
}

#[test]
fn acknowledgements_echo_stamp_port_and_mark() {
    let profile = Arc::new(Profile::strack(facts()));
    let mut sender = Endpoint::new(HostId(0), Arc::clone(&profile), 1);
    let mut receiver = Endpoint::new(HostId(1), profile, 1);
    open_and_post(&mut sender, 5, 4096);
    let mut data = sender.poll_transmit(Time::from_us(3)).unwrap();
    assert_eq!(
        (data.stamp, data.src, data.dst),
        (Time::from_us(3), HostId(0), HostId(1))
    );
    assert_eq!(
        (data.size, data.header_hash),
        (4160, header_hash(HostId(0), HostId(1), data.source_port))
    );
    data.ecn = true;
    receiver.on_packet(Time::from_us(7), &data);
    let sack = receiver.poll_transmit(Time::from_us(9)).unwrap();
    assert_eq!(
        (sack.stamp, sack.src, sack.dst),
        (Time::from_us(3), HostId(1), HostId(0))
    );
    assert_eq!((sack.source_port, sack.ecn), (data.source_port, true));
    assert_eq!((sack.class, sack.size), (Class::CONTROL, 64));
    assert_eq!(receiver.poll_transmit(Time::from_us(9)), None);
}

#[test]
fn flows_and_packets_spread_over_ports() {
    let mut endpoint = Endpoint::new(HostId(0), Arc::new(Profile::strack(facts())), 1);
    let mut ports = |flow| {
        open_and_post(&mut endpoint, flow, 100 * 4096);
        let mut ports: Vec<_> = std::iter::from_fn(|| endpoint.poll_transmit(Time::ZERO))
            .map(|packet| packet.source_port)
            .collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    };
    let (first, second) = (ports(1), ports(2));
    assert_eq!((first.len(), second.len()), (100, 100));
    assert_ne!(first, second);
}

#[test]
fn the_ports_of_a_profile_are_those_of_the_packets() {
    for profile in each_reliability(None) {
        let profile = Arc::new(profile);
        let mut endpoint = Endpoint::new(HostId(0), Arc::clone(&profile), 5);
        open_and_post(&mut endpoint, 3, 60 * 4096);
        let mut sent: Vec<Vec<u16>> = Vec::new();
        let mut now = Time::ZERO;
        while sent.iter().map(Vec::len).sum::<usize>() < 60 {
            endpoint.on_deadline(now);
            if let Some(packet) = endpoint.poll_transmit(now) {
                let queue_pair = usize::from(packet.queue_pair);
                sent.resize(sent.len().max(queue_pair + 1), Vec::new());
                sent[queue_pair].push(packet.source_port);
            }
            now += Span::from_ns(100);
        }
        let foretold = profile.source_ports(FlowId(3), 5, 60 / sent.len());
        assert_eq!(sent, foretold);
    }
}

#[test]
fn the_parts_of_a_profile_are_what_queue_pairs_carry() {
    for profile in each_reliability(None) {
        let mut pair = Pair::new(profile.clone(), PipeSettings::ideal(&facts()), 1);
        let carried = Rc::new(RefCell::new(BTreeMap::<u8, u64>::new()));
        let sum = Rc::clone(&carried);
        pair.pipes[0].mark_if(move |_, packet| {
            if let Header::Data { payload, .. } = packet.header {
                *sum.borrow_mut().entry(packet.queue_pair).or_default() += u64::from(payload);
            }
            false
        });
        let bytes = Bytes::new(100_001);
        pair.send(bytes);
        pair.run();
        let carried: Vec<Bytes> = carried.borrow().values().copied().map(Bytes::new).collect();
        assert_eq!(profile.parts(bytes), carried);
    }
}

#[test]
fn memory_is_that_of_the_living_flows() {
    let mut pair = ideal_pair();
    for round in 0..200u64 {
        for _ in 0..5 {
            pair.send(Bytes::new(round * 1000));
        }
        pair.run();
        assert_eq!(pair.ends[0].open_senders(), 0);
        let next = pair.now() + Span::from_us(100);
        pair.run_until(next);
    }
    assert_eq!(pair.ends[0].slots.len(), 5);
    // Receivers linger for a millisecond: ten rounds or so.
    assert!(
        pair.ends[1].open_receivers() <= 60,
        "{}",
        pair.ends[1].open_receivers()
    );
    pair.run_until(Time::from_us(1_000_000));
    pair.on_deadline(1);
    assert_eq!(pair.ends[1].open_receivers(), 0);
    let delivered = |event: &&(Time, usize, Event)| matches!(event.2, Event::Received { .. });
    assert_eq!(pair.events().iter().filter(delivered).count(), 1000);
}

#[test]
fn a_copy_that_comes_when_its_receiver_is_gone_is_answered_and_delivers_nothing() {
    let profile = Arc::new(Profile::strack(facts()));
    let mut sender = Endpoint::new(HostId(0), Arc::clone(&profile), 1);
    let mut receiver = Endpoint::new(HostId(1), profile, 1);
    for flow in [1, 2] {
        open_and_post(&mut sender, flow, 4096);
        let flow = FlowId(flow);
        sender.close(Time::ZERO, flow);
    }
    let packets: Vec<_> = std::iter::from_fn(|| sender.poll_transmit(Time::ZERO)).collect();
    receiver.on_packet(Time::from_us(1), &packets[0]);
    receiver.on_packet(Time::from_us(2000), &packets[1]);
    assert_eq!(receiver.open_receivers(), 1);
    while receiver.poll_transmit(Time::from_us(2000)).is_some() {}
    receiver.on_packet(Time::from_us(2000), &packets[0]);
    assert_eq!(receiver.open_receivers(), 1);
    assert_eq!(receiver.counters().duplicates, 1);
    let answer = receiver.poll_transmit(Time::from_us(2000)).unwrap();
    assert_eq!((answer.flow, answer.stamp), (FlowId(1), packets[0].stamp));
    assert!(matches!(
        answer.header,
        Header::Sack {
            epsn: 1,
            bytes_received: 4096,
            bitmap: 0,
            out_of_order: 0,
            ..
        }
    ));
    let flows: Vec<_> = std::iter::from_fn(|| receiver.poll_event())
        .map(|event| match event {
            Event::Received { flow, .. } => flow.0,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(flows, [1, 2]);
}

/// Profiles of each reliability scheme, go-back-N with one and with three queue pairs; receivers linger for `linger`.
fn each_reliability(linger: Option<Span>) -> Vec<Profile> {
    let mut strack = Profile::strack(facts());
    selective_repeat(&mut strack).linger = linger;
    let go_back_n = |queue_pairs| Profile {
        reliability: Reliability::GoBackN(GoBackNParameters {
            queue_pairs: NonZero::new(queue_pairs).unwrap(),
            stripe_chunk: Bytes::new(4096),
            linger,
            ..GoBackNParameters::default()
        }),
        controller: ControllerSettings::named("dcqcn").unwrap(),
        selector: SelectorSettings::named("single").unwrap(),
        ..Profile::strack(facts())
    };
    vec![strack, go_back_n(1), go_back_n(3)]
}

/// Packets of a flow that its receiver gets once, then once more when `after` has passed and another flow has begun.
fn replay(profile: &Arc<Profile>, bytes: u64, after: Span) -> (Endpoint, Vec<IntPacket>) {
    let mut sender = Endpoint::new(HostId(0), Arc::clone(profile), 1);
    let mut receiver = Endpoint::new(HostId(1), Arc::clone(profile), 1);
    let mut send = |flow: u32, bytes: u64| -> Vec<IntPacket> {
        open_and_post(&mut sender, flow, bytes);
        let flow = FlowId(flow);
        sender.close(Time::ZERO, flow);
        // Pacing lets one go at a time.
        let mut packets = Vec::new();
        for now in (0..10_000).map(|ns| Time::ZERO + Span::from_ns(ns)) {
            sender.on_deadline(now);
            packets.extend(sender.poll_transmit(now));
        }
        packets
    };
    let (packets, other) = (send(1, bytes), send(2, 1));
    let first = Time::from_us(1);
    packets.iter().for_each(|p| receiver.on_packet(first, p));
    let later = first + after;
    other.iter().for_each(|p| receiver.on_packet(later, p));
    while receiver.poll_transmit(later).is_some() {}
    packets.iter().for_each(|p| receiver.on_packet(later, p));
    let answers = std::iter::from_fn(|| receiver.poll_transmit(later)).collect();
    (receiver, answers)
}

#[test]
fn a_replayed_flow_is_delivered_once_with_every_reliability_and_any_number_of_queue_pairs() {
    for profile in each_reliability(None).into_iter().map(Arc::new) {
        // While it lingers, long after, and ages after.
        for after in [1, 100_000, 3_600_000_000].map(Span::from_us) {
            let (mut receiver, answers) = replay(&profile, 12 * 4096, after);
            let received: Vec<u32> = std::iter::from_fn(|| receiver.poll_event())
                .map(|event| match event {
                    Event::Received { flow, .. } => flow.0,
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(received, [1, 2], "{after}");
            assert_eq!(
                (answers.len(), receiver.counters().duplicates),
                (12, 12),
                "{after}"
            );
        }
    }
}

#[test]
fn a_sender_whose_last_acknowledgements_are_lost_hears_them_however_late_it_asks() {
    for profile in each_reliability(Some(Span::ZERO)) {
        let mut pair = Pair::new(profile, PipeSettings::ideal(&facts()), 1);
        // Nothing comes back for a second; other flows begin meanwhile, so that the receiver of the first is gone.
        let blocked = Rc::new(Cell::new(true));
        let blocks = Rc::clone(&blocked);
        pair.pipes[1].drop_if(move |_, _| blocks.get());
        let flow = pair.send(Bytes::new(100 * 4096));
        let other = pair.send(Bytes::new(1));
        pair.run_until(Time::from_us(1_000_000));
        blocked.set(false);
        let last = pair.send(Bytes::new(1));
        pair.run_until(Time::from_us(3_000_000));
        for flow in [flow, other, last] {
            assert!(pair.finished(flow).is_some(), "{flow}");
            assert_eq!(pair.deliveries(flow, 0), 1, "{flow}");
        }
    }
}

#[test]
fn a_flow_closed_late_tells_its_receiver() {
    let mut pair = ideal_pair();
    let flow = pair.open();
    pair.post(flow, 0, Bytes::new(10_000));
    pair.run();
    assert_eq!(
        (pair.ends[0].open_senders(), pair.deliveries(flow, 0)),
        (1, 1)
    );
    pair.close(flow);
    // Once more does no harm.
    pair.close(flow);
    pair.run();
    assert_eq!(pair.ends[0].open_senders(), 0);
    pair.run_until(Time::from_us(5000));
    pair.on_deadline(1);
    assert_eq!(pair.ends[1].open_receivers(), 0);
    // The closing packet is not a message.
    assert_eq!(pair.events().len(), 2);
}

#[test]
fn an_idle_flow_starts_again() {
    let mut pair = ideal_pair();
    let flow = pair.open();
    for message in 0..5u32 {
        let start = Time::from_us(u64::from(message) * 1000);
        pair.run_until(start);
        pair.post(flow, message, Bytes::new(400_000));
        pair.run();
        let sent = pair.events().last().unwrap();
        let took = sent.0 - start;
        assert_eq!(Time::ZERO + took, ideal_time(400_000), "message {message}");
    }
    assert_eq!(pair.counters().probes_sent + pair.counters().timeouts, 0);
}

#[test]
fn tracing_shows_every_acknowledgement_and_is_off_by_default() {
    let count = |tracing| {
        let mut pair = ideal_pair();
        pair.ends[0].set_tracing(tracing);
        pair.send(Bytes::new(100 * 4096));
        pair.run();
        let acks = |event: &&(Time, usize, Event)| matches!(event.2, Event::Ack { .. });
        pair.events().iter().filter(acks).count()
    };
    assert_eq!((count(false), count(true)), (0, 100));
}

#[test]
fn statistics_of_a_flow() {
    let mut pair = ideal_pair();
    pair.pipes[0].drop_if(|_, packet| first_transmission(packet, 24));
    pair.pipes[0].mark_if(|number, _| number < 7);
    pair.run_until(Time::from_us(3));
    let _flow = pair.send(Bytes::new(25 * 4096));
    pair.run();
    let Some((_, 0, Event::Sent { statistics, .. })) = pair.events().last() else {
        panic!("not sent");
    };
    let expected = FlowStatistics {
        packets: 26,
        retransmitted: 1,
        marked: 7,
        probes: 1,
        timeouts: 0,
        nacks: 0,
        notifications: 0,
        first_send: Time::from_us(3),
    };
    assert_eq!(*statistics, expected);
}

#[test]
fn strays_are_counted_and_probes_of_unknown_flows_begin_nothing() {
    let mut endpoint = Endpoint::new(HostId(1), Arc::new(Profile::strack(facts())), 1);
    let mut peer = Endpoint::new(HostId(0), Arc::new(Profile::strack(facts())), 1);
    open_and_post(&mut peer, 4, 4096);
    let data = peer.poll_transmit(Time::ZERO).unwrap();
    let probe = Packet {
        header: Header::Probe {
            base: 0,
            pull_target: None,
        },
        class: Class::CONTROL,
        ..*data
    };
    endpoint.on_packet(Time::ZERO, &probe.into());
    let sack = endpoint.poll_transmit(Time::ZERO).unwrap();
    assert!(matches!(
        sack.header,
        Header::Sack {
            probe: true,
            epsn: 0,
            ..
        }
    ));
    assert_eq!(endpoint.open_receivers(), 0);
    endpoint.on_packet(Time::ZERO, &sack);
    assert_eq!(endpoint.counters().stray, 1);
    let mut beyond = data;
    if let Header::Data { psn, .. } = &mut beyond.header {
        *psn = 100_000;
    }
    endpoint.on_packet(Time::ZERO, &beyond);
    assert_eq!(
        (endpoint.counters().overflow, endpoint.open_receivers()),
        (1, 0)
    );
}

/// The rate of an HPCC flow after some packets through one port with so many bytes in its queue.
fn rate_behind(queue: u32, reliability: Reliability) -> Rate {
    let profile = Arc::new(Profile {
        controller: ControllerSettings::named("hpcc").unwrap(),
        reliability,
        ..Profile::strack(facts())
    });
    let [mut sender, mut receiver] = [0, 1]
        .map(|host| Endpoint::<HopRecords>::with_telemetry(HostId(host), Arc::clone(&profile), 1));
    let flow = FlowId(1);
    let (peer, class) = (HostId(1), Class::DATA);
    sender.open(flow, peer, &Opening::usual(class, facts().path));
    let (message, bytes) = (MessageId(0), Bytes::new(10_000_000));
    sender.post(Time::ZERO, flow, message, bytes);
    let mut sent = 0;
    for step in 1..400 {
        let now = Time::from_ps(200_000 * step);
        sender.on_deadline(now);
        if let Some(mut data) = sender.poll_transmit(now) {
            sent += u32::from(data.size);
            let rate = Rate::from_gbps(400);
            data.telemetry.record(Hop {
                time: now,
                rate,
                sent,
                queue,
            });
            receiver.on_packet(now, &data);
        }
        if let Some(ack) = receiver.poll_transmit(now) {
            sender.on_packet(now, &ack);
        }
    }
    sender.progress(flow).unwrap().rate.unwrap()
}

#[test]
fn what_switches_write_on_data_reaches_the_controller_of_the_sender() {
    for reliability in [
        Reliability::default(),
        Reliability::named("go-back-n").unwrap(),
    ] {
        let (free, full) = (
            rate_behind(0, reliability.clone()),
            rate_behind(2_000_000, reliability),
        );
        assert!(
            full.as_bps() * 2 < free.as_bps(),
            "{full} behind a queue, {free} without"
        );
    }
}

#[test]
fn an_endpoint_knows_its_host_and_its_open_flows() {
    let mut endpoint: Endpoint = Endpoint::new(HostId(3), Arc::new(Profile::strack(facts())), 1);
    assert_eq!(endpoint.host(), HostId(3));
    open_and_post(&mut endpoint, 4, 4096);
    open_and_post(&mut endpoint, 7, 4096);
    let mut open = Vec::new();
    endpoint.for_each_open(|flow| open.push((flow.flow(), flow.acknowledged())));
    assert_eq!(open, [(FlowId(4), Bytes::ZERO), (FlowId(7), Bytes::ZERO)]);
}

#[test]
#[should_panic(expected = "flow 3 is not open")]
fn posting_on_a_flow_that_is_not_open_is_a_defect() {
    let mut pair = ideal_pair();
    pair.post(FlowId(3), 0, Bytes::new(1));
}

#[test]
fn hot_structs_keep_their_size() {
    assert!(size_of::<Event>() <= 72, "{}", size_of::<Event>());
    assert!(size_of::<Slot>() <= 832, "{}", size_of::<Slot>());
    assert!(size_of::<Receiver>() <= 136, "{}", size_of::<Receiver>());
}

/// A congested path: the window settles, nothing is lost, the queue stays near the target.
#[test]
fn strack_tames_a_bottleneck() {
    let bottleneck = Bottleneck {
        rate: Rate::from_gbps(100),
        limit: Bytes::new(500_000),
        mark_from: Bytes::new(25_000),
        mark_all: Bytes::new(75_000),
    };
    let pipe = PipeSettings {
        bottleneck: Some(bottleneck),
        ..PipeSettings::ideal(&facts())
    };
    let mut pair = Pair::new(Profile::strack(facts()), pipe, 1);
    let flow = pair.send(Bytes::new(10_000_000));
    pair.run();
    // 10 MB in 2442 packets at 100 Gb/s are 812.5 us.
    let finished = pair.finished(flow).unwrap().as_us();
    assert!((812.0..860.0).contains(&finished), "{finished}");
    assert_eq!(pair.pipes[0].counters().dropped, 0);
}

/// Faults and settings that a property test gives a pair.
#[derive(Debug, Clone)]
struct Weather {
    data_loss: f64,
    control_loss: f64,
    duplication: f64,
    jitter_us: u64,
    bottleneck: bool,
    coalesce: bool,
    strict: bool,
    control_first: bool,
    controller: usize,
    selector: usize,
    seed: u64,
}

fn weather() -> impl Strategy<Value = Weather> {
    let faults = (0.0..0.2f64, 0.0..0.4f64, 0.0..0.1f64, 0u64..40);
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let choices = (0usize..2, 0usize..3, any::<u64>());
    (faults, switches, choices).prop_map(|(faults, switches, choices)| Weather {
        data_loss: faults.0,
        control_loss: faults.1,
        duplication: faults.2,
        jitter_us: faults.3,
        bottleneck: switches.0,
        coalesce: switches.1,
        strict: switches.2,
        control_first: switches.3,
        controller: choices.0,
        selector: choices.1,
        seed: choices.2,
    })
}

impl Weather {
    fn pair(&self) -> Pair {
        let network = facts();
        let mut profile = Profile::strack(network);
        let (controller, _) = ControllerSettings::BUILTIN[self.controller];
        profile.controller = ControllerSettings::named(controller).unwrap();
        let (selector, _) = SelectorSettings::BUILTIN[self.selector];
        profile.selector = SelectorSettings::named(selector).unwrap();
        let reliability = selective_repeat(&mut profile);
        reliability.strict_window = self.strict;
        reliability.control_first = self.control_first;
        if self.coalesce {
            reliability.ack_bytes = Some(Bytes::new(16 * 1024));
        }
        let bottleneck = self.bottleneck.then_some(Bottleneck {
            rate: Rate::from_gbps(50),
            limit: Bytes::new(100_000),
            mark_from: Bytes::new(20_000),
            mark_all: Bytes::new(60_000),
        });
        let pipe = PipeSettings {
            bottleneck,
            data_loss: self.data_loss,
            control_loss: self.control_loss,
            duplication: self.duplication,
            jitter: Span::from_us(self.jitter_us),
            ..PipeSettings::ideal(&network)
        };
        Pair::new(profile, pipe, self.seed)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_message_is_delivered_exactly_once(
        weather in weather(),
        flows in prop::collection::vec(prop::collection::vec(0u64..600_000, 1..5), 1..5),
        pause_us in 0u64..200,
    ) {
        let mut pair = weather.pair();
        let ids: Vec<_> = flows.iter().map(|_| pair.open()).collect();
        for round in 0..5 {
            for (flow, messages) in ids.iter().zip(&flows) {
                if let Some(&bytes) = messages.get(round) {
                    pair.post(*flow, round as u32, Bytes::new(bytes));
                }
            }
            let until = pair.now() + Span::from_us(pause_us);
            pair.run_until(until);
        }
        let limit = u64::from(pair.ends[0].window_limit().unwrap());
        let mut steps = 0u64;
        while pair.step() {
            for flow in &ids {
                let progress = pair.ends[0].progress(*flow).unwrap();
                prop_assert!(progress.unacknowledged_packets <= limit);
            }
            steps += 1;
            prop_assert!(steps < 2_000_000, "no end in sight at {}", pair.now());
        }
        prop_assert_eq!(pair.ends[0].in_flight_exact(), 0);
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
        let later = pair.now() + Span::from_ms(10);
        pair.run_until(later);
        pair.on_deadline(1);
        prop_assert_eq!(pair.ends[1].open_receivers(), 0);
        let counters = pair.counters();
        prop_assert_eq!((counters.overflow, counters.invalid), (0, 0));
        let pipes = [pair.pipes[0].counters(), pair.pipes[1].counters()];
        for pipe in pipes {
            prop_assert_eq!(pipe.sent + pipe.duplicated, pipe.delivered + pipe.dropped);
        }
    }

    #[test]
    fn arbitrary_packets_never_panic(
        go_back_n in any::<bool>(),
        credits in any::<bool>(),
        packets in prop::collection::vec((0u8..6, any::<[u32; 6]>(), any::<u64>(), any::<u8>()), 1..300),
    ) {
        let mut profile = Profile::strack(facts());
        if credits {
            profile.credit.scheme = crate::congestion::credit::CreditScheme::Rccc;
        }
        if go_back_n {
            let two = Reliability::GoBackN(GoBackNParameters { queue_pairs: NonZero::new(2).unwrap(), ..Default::default() });
            profile.reliability = two;
        }
        let mut endpoint = Endpoint::new(HostId(0), Arc::new(profile), 1);
        open_and_post(&mut endpoint, 0, 100 * 4096);
        let template = endpoint.poll_transmit(Time::ZERO).unwrap();
        for (step, (kind, words, wide, flags)) in packets.into_iter().enumerate() {
            let now = Time::from_us(step as u64);
            while endpoint.poll_transmit(now).is_some() {}
            let near = |word: u32| if word & 1 == 0 { word } else { (word >> 1) % 300 };
            let header = match kind {
                0 => Header::Data {
                    psn: near(words[0]),
                    message: MessageId(words[1]),
                    offset: wide,
                    payload: words[2] as u16,
                    parts: words[3] as u8,
                    flags: DataFlags::from_bits_truncate(flags),
                    pull_target: words[4] as u16,
                },
                1 => Header::Sack {
                    bitmap: wide,
                    bytes_received: near(words[0]),
                    epsn: near(words[1]),
                    base_offset: words[2] as u16,
                    out_of_order: words[3] as u16,
                    probe: flags & 1 == 1,
                },
                2 => Header::Probe {
                    base: near(words[0]),
                    pull_target: (flags & 1 == 1).then_some(words[1] as u16),
                },
                5 => Header::Pull {
                    pull: words[0] as u16,
                },
                3 => Header::Notification,
                _ => Header::Ack { epsn: near(words[1]), nack: flags & 1 == 1, marked: flags & 2 == 2 },
            };
            let source_port = words[4] as u16;
            let queue_pair = (words[5] >> 8) as u8 % 3;
            let flow = FlowId(words[5] % 4);
            let packet = Packet { flow, source_port, queue_pair, header, ..*template };
            endpoint.on_packet(now, &packet.into());
            endpoint.on_deadline(now);
            while endpoint.poll_event().is_some() {}
        }
    }
}

#[test]
fn a_profile_with_data_class_probes_sends_them_so() {
    let mut profile = Profile::strack(facts());
    let class = Value::Text("data".into());
    profile.reliability.set("probe-class", &class).unwrap();
    let mut endpoint = Endpoint::new(HostId(0), Arc::new(profile), 1);
    open_and_post(&mut endpoint, 0, 4096);
    endpoint.poll_transmit(Time::ZERO);
    endpoint.on_deadline(Time::from_us(24));
    let probe = endpoint.poll_transmit(Time::from_us(24)).unwrap();
    assert!(is_probe(&probe));
    assert_eq!((probe.class, probe.stamp), (Class::DATA, Time::from_us(24)));
}

#[test]
fn probes_do_not_pile_up_before_a_slow_wire() {
    let profile = Arc::new(Profile::strack(facts()));
    let mut endpoint = Endpoint::new(HostId(0), profile, 1);
    open_and_post(&mut endpoint, 0, 4096);
    endpoint.poll_transmit(Time::ZERO);
    let mut probes = |from: u64, to: u64| {
        for us in from..to {
            endpoint.on_deadline(Time::from_us(us));
        }
        let now = Time::from_us(to);
        let packets: Vec<_> = std::iter::from_fn(|| endpoint.poll_transmit(now)).collect();
        packets.iter().filter(|packet| is_probe(packet)).count()
    };
    // Eight periods of 24 us in which the wire takes nothing, and then one more.
    assert_eq!(probes(0, 200), 1);
    assert_eq!(probes(200, 230), 1);
}

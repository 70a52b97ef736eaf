//! The rules of Ultra Ethernet: acknowledgements, trimmed packets, timeouts of single packets, SLEEK.

use super::*;
use crate::reliability::selective_repeat::parameters::Recovery;

/// A window of `packets` under the rules of UEC.
fn uec(packets: u64, change: impl FnOnce(&mut SelectiveRepeatParameters)) -> Bench {
    Bench::with(packets, |parameters| {
        parameters.ack_in_order = false;
        parameters.ack_bytes = Some(Bytes::new(16_384));
        parameters.ack_on_ecn = true;
        parameters.strict_window = true;
        parameters.timeout_per_packet = true;
        parameters.timeout = Span::from_us(65);
        parameters.recovery = Recovery::None;
        change(parameters);
    })
}

fn trimmed(packet: &Packet, last_hop: bool) -> Packet {
    let mut packet = *packet;
    packet.trim(64, last_hop);
    packet
}

/// Delivers a trimmed packet; its answer.
fn deliver_trimmed(bench: &mut Bench, packet: &Packet) -> Packet {
    let mut outbox = Outbox::new(false);
    let mut reports = Reports {
        outbox: &mut outbox,
        events: &mut bench.events,
        counters: &mut bench.counters,
        telemetry: (),
    };
    let packet = trimmed(packet, true);
    bench
        .receiver
        .on_trimmed(bench.now, &packet, &bench.rules, &mut reports);
    *outbox.pop(ClassSet::EMPTY).unwrap()
}

fn nack(bench: &mut Bench, packet: &Packet) {
    let mut cx = Context {
        now: bench.now,
        controller: &mut bench.controller,
        events: &mut bench.events,
        counters: &mut bench.counters,
        tracing: false,
        hops: &[],
    };
    bench.sender.on_nack(packet, &mut cx, &bench.rules);
}

#[test]
fn expected_packets_are_acknowledged_for_16_kib_the_first_at_once() {
    let mut bench = uec(100, |_| {});
    bench.post(0, 18 * MTU);
    let packets = bench.transmit();
    let answered: Vec<u32> = packets
        .iter()
        .filter(|packet| bench.deliver(packet).is_some())
        .map(psn)
        .collect();
    // The first, every fourth after it, and the last, which asks for it.
    assert_eq!(answered, [0, 4, 8, 12, 16, 17]);
}

#[test]
fn the_packet_before_a_full_window_asks_for_an_acknowledgement() {
    let asks = |bench: &mut Bench| -> Vec<bool> {
        bench.post(0, 20 * MTU);
        let asks = |packet: &Packet| matches!(packet.header, Header::Data { flags, .. } if flags.contains(DataFlags::ACK_REQUEST));
        bench.transmit().iter().map(asks).collect()
    };
    // A window of three packets: after the second, one more would reach it.
    assert_eq!(asks(&mut uec(3, |_| {})), [false, true, true]);
    let strack = asks(&mut Bench::with(3, |parameters| {
        parameters.strict_window = true;
    }));
    assert_eq!(strack, [false, false, true]);
}

#[test]
fn marks_are_acknowledged_at_once() {
    let mut bench = uec(100, |_| {});
    bench.post(0, 18 * MTU);
    let packets = bench.transmit();
    bench.deliver(&packets[0]);
    assert!(bench.deliver(&packets[1]).is_none());
    let marked = Packet {
        ecn: true,
        ..packets[2]
    };
    assert!(bench.deliver(&marked).is_some());
}

#[test]
fn after_a_request_the_last_gap_to_close_is_acknowledged() {
    let mut bench = uec(100, |_| {});
    bench.post(0, 4 * MTU);
    let packets = bench.transmit();
    bench.deliver(&packets[0]);
    assert!(bench.deliver(&packets[3]).is_some(), "the last asks for it");
    assert!(bench.deliver(&packets[1]).is_none());
    assert!(
        bench.deliver(&packets[2]).is_some(),
        "nothing is missing any more"
    );
}

#[test]
fn a_trimmed_packet_is_answered_by_a_nack_and_sent_again_before_anything_new() {
    let mut bench = uec(4, |_| {});
    bench.post(0, 20 * MTU);
    let packets = bench.transmit();
    assert_eq!(psns(&packets), [0, 1, 2, 3]);
    let answer = deliver_trimmed(&mut bench, &packets[2]);
    let expected = Header::Nack {
        psn: 2,
        last_hop: true,
    };
    assert_eq!((answer.header, answer.class), (expected, Class::CONTROL));
    assert_eq!(answer.source_port, packets[2].source_port);
    nack(&mut bench, &answer);
    assert_eq!(bench.in_flight_packets(), 3);
    nack(&mut bench, &answer);
    assert_eq!(bench.in_flight_packets(), 3, "a copy changes nothing");
    let again = bench.transmit();
    assert_eq!(psns(&again), [2]);
    assert!(
        matches!(again[0].header, Header::Data { flags, .. } if flags.contains(DataFlags::RETRANSMISSION))
    );
    assert_eq!(bench.counters.lost_trimmed, 1);
}

#[test]
fn a_nack_of_what_has_arrived_meanwhile_changes_nothing() {
    let mut bench = uec(4, |_| {});
    bench.post(0, 4 * MTU);
    let packets = bench.transmit();
    let late = deliver_trimmed(&mut bench, &packets[3]);
    bench.exchange(&packets);
    assert_eq!(bench.sender.in_flight_exact(), 0);
    nack(&mut bench, &late);
    assert_eq!(bench.sender.in_flight_exact(), 0);
    assert!(bench.transmit().is_empty());
    let never_sent = Packet {
        header: Header::Nack {
            psn: 77,
            last_hop: false,
        },
        ..late
    };
    nack(&mut bench, &never_sent);
    assert_eq!(bench.counters.invalid, 1);
}

#[test]
fn a_trimmed_copy_of_what_has_arrived_is_answered_as_a_duplicate() {
    let mut bench = uec(4, |_| {});
    bench.post(0, 4 * MTU);
    let packets = bench.transmit();
    bench.deliver(&packets[0]);
    let answer = deliver_trimmed(&mut bench, &packets[0]);
    assert!(matches!(answer.header, Header::Sack { epsn: 1, .. }));
}

#[test]
fn only_packets_that_have_waited_for_a_timeout_are_sent_again() {
    let mut bench = uec(100, |_| {});
    bench.post(0, 2 * MTU);
    let first = bench.transmit();
    bench.wait(40);
    bench.post(1, MTU);
    assert_eq!(bench.transmit().len(), 1);
    bench.wait(25);
    assert_eq!(
        (bench.counters.timeouts, bench.counters.lost_timeout),
        (1, 2)
    );
    assert_eq!(psns(&bench.transmit()), [0, 1]);
    // The third packet is due 40 us after that, and the others 65 us.
    bench.wait(40);
    assert_eq!(psns(&bench.transmit()), [2]);
    bench.exchange(&first);
    bench.wait(25);
    assert_eq!(bench.counters.timeouts, 2, "what has arrived does not wait");
    bench.wait(40);
    assert_eq!(psns(&bench.transmit()), [2]);
}

/// Source ports stand for paths. Of four paths one loses its packet: the next fifteen sweeps are over the other three.
#[test]
fn the_path_of_a_packet_that_has_timed_out_is_left_out() {
    let mut profile = Profile::strack(facts());
    profile.selector = SelectorSettings::named("bitmap").unwrap();
    profile
        .selector
        .set("max-paths", &Value::Integer(4))
        .unwrap();
    let parameters = profile.reliability.selective_repeat_mut().unwrap();
    parameters.timeout_per_packet = true;
    parameters.timeout = Span::from_us(65);
    parameters.recovery = Recovery::None;
    let mut bench = Bench::seeded(profile, 4, 1);
    bench.post(0, 50 * MTU);
    let first = bench.transmit();
    let ports: BTreeSet<u16> = first.iter().map(|packet| packet.source_port).collect();
    assert_eq!(ports.len(), 4);
    let lost = first[2];
    for packet in first.iter().filter(|packet| psn(packet) != psn(&lost)) {
        let sack = bench.deliver(packet).unwrap();
        bench.sack(&sack);
    }
    bench.wait(65);
    assert_eq!(bench.counters.lost_timeout, 1);
    let mut later = BTreeSet::new();
    for _ in 0..10 {
        let packets = bench.transmit();
        later.extend(packets.iter().map(|packet| packet.source_port));
        bench.exchange(&packets);
    }
    let others: BTreeSet<u16> = ports
        .into_iter()
        .filter(|port| *port != lost.source_port)
        .collect();
    assert_eq!(later, others);
}

#[test]
fn sleek_waits_for_one_and_a_half_windows_out_of_order() {
    let lost = |late: usize| {
        let mut bench = uec(10, |parameters| parameters.recovery = Recovery::Sleek);
        // The largest window, which bounds the threshold, is wide.
        bench.rules.sleek.as_mut().unwrap().largest_window = 1e9;
        bench.post(0, 40 * MTU);
        let mut packets = bench.transmit();
        let missing = packets.remove(0);
        assert_eq!(psn(&missing), 0);
        let mut arrived = 0;
        while arrived < late {
            let packet = packets.remove(0);
            bench.exchange(&[packet]);
            arrived += 1;
            packets.extend(bench.transmit());
        }
        bench.counters.lost_out_of_order
    };
    assert_eq!(lost(14), 0);
    assert!(lost(16) > 0);
}

#[test]
fn sleek_sends_again_though_the_window_is_full() {
    let mut bench = uec(10, |parameters| parameters.recovery = Recovery::Sleek);
    bench.post(0, 40 * MTU);
    let packets = bench.transmit();
    bench.exchange(&packets[1..]);
    let more = bench.transmit();
    bench.exchange(&more);
    assert_eq!(bench.counters.lost_out_of_order, 1);
    let next = bench.transmit();
    assert_eq!(psn(&next[0]), 0);
    assert_eq!(bench.counters.lost_out_of_order, 1, "once per recovery");
}

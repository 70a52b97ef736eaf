use super::*;
use crate::congestion::{Controller, ControllerSettings, NetworkFacts};
use crate::endpoint::flow::{Context, Due, Outbox, Reports, SenderIdentity};
use crate::endpoint::{EndpointCounters, Event};
use crate::packet::{AddressHash, Class, ClassSet, DataFlags, Header, Packet};
use crate::paths::SelectorSettings;
use crate::profile::Profile;
use crate::testing::network;
use clearway_units::{Bytes, FlowId, HostId, MessageId, Rate, RelativeSize, Span, Time, Value};
use std::collections::{BTreeSet, VecDeque};

mod irn;
mod uec;

const MTU: u64 = 4096;
const FLOW: FlowId = FlowId(7);

fn facts() -> NetworkFacts {
    network(Rate::from_gbps(400), Span::from_us(8))
}

/// A sender and a receiver whose packets the test carries by hand.
struct Bench {
    now: Time,
    rules: Rules,
    sender: Sender,
    controller: Controller,
    receiver: Receiver,
    events: VecDeque<Event>,
    counters: EndpointCounters,
}

impl Bench {
    /// A fixed window of `packets`.
    fn new(packets: u64) -> Self {
        Self::with(packets, |_| {})
    }

    fn with(packets: u64, change: impl FnOnce(&mut SelectiveRepeatParameters)) -> Self {
        let mut profile = Profile::strack(facts());
        change(profile.reliability.selective_repeat_mut().unwrap());
        Self::seeded(profile, packets, 1)
    }

    /// A fixed window of `packets`, and a flow whose paths are drawn from `seed`.
    fn seeded(mut profile: Profile, packets: u64, seed: u64) -> Self {
        let mut controller = ControllerSettings::named("constant").unwrap();
        let window = RelativeSize::Absolute(Bytes::new(packets * MTU)).to_string();
        controller.set("window", &Value::Text(window)).unwrap();
        profile.controller = controller;
        let parameters = profile.reliability.selective_repeat_mut().unwrap();
        let rules = Rules::new(parameters, &facts(), (packets * MTU) as f64);
        let controller = profile.controller.build(&facts());
        let ends = SenderIdentity {
            flow: FLOW,
            source: HostId(0),
            peer: HostId(1),
            queue_pair: 0,
            class: Class::DATA,
            addresses: AddressHash::new(HostId(0), HostId(1)),
        };
        let paths = profile.paths(&facts(), ends.entity(), seed);
        Self {
            now: Time::from_us(100),
            sender: Sender::new(ends, paths, &controller, &rules),
            controller,
            receiver: Receiver::new(FLOW, &rules),
            rules,
            events: VecDeque::new(),
            counters: EndpointCounters::default(),
        }
    }

    fn post(&mut self, message: u32, bytes: u64) {
        self.sender
            .post(MessageId(message), Bytes::new(bytes), &self.rules);
    }

    /// Sends all packets that the sender may send now.
    fn transmit(&mut self) -> Vec<Packet> {
        let mut packets = Vec::new();
        while self.sender.may_send(&self.rules) {
            let mut cx = Context {
                now: self.now,
                controller: &mut self.controller,
                events: &mut self.events,
                counters: &mut self.counters,
                tracing: false,
                hops: &[],
            };
            packets.push(self.sender.transmit(&mut cx, &self.rules));
        }
        packets
    }

    fn deliver(&mut self, packet: &Packet) -> Option<Packet> {
        let mut outbox = Outbox::new(false);
        let mut reports = Reports {
            outbox: &mut outbox,
            events: &mut self.events,
            counters: &mut self.counters,
            telemetry: (),
        };
        self.receiver
            .on_data(self.now, packet, &self.rules, &mut reports);
        outbox.pop(ClassSet::EMPTY).map(|packet| *packet)
    }

    fn sack(&mut self, packet: &Packet) {
        let mut cx = Context {
            now: self.now,
            controller: &mut self.controller,
            events: &mut self.events,
            counters: &mut self.counters,
            tracing: false,
            hops: &[],
        };
        self.sender.on_sack(packet, &mut cx, &self.rules);
    }

    /// Delivers packets and their acknowledgements.
    fn exchange(&mut self, packets: &[Packet]) {
        for packet in packets {
            if let Some(sack) = self.deliver(packet) {
                self.sack(&sack);
            }
        }
    }

    fn wait(&mut self, us: u64) -> Due {
        self.now += Span::from_us(us);
        let mut cx = Context {
            now: self.now,
            controller: &mut self.controller,
            events: &mut self.events,
            counters: &mut self.counters,
            tracing: false,
            hops: &[],
        };
        self.sender.on_deadline(&mut cx, &self.rules)
    }

    fn in_flight_packets(&self) -> i64 {
        self.sender.in_flight_exact() / MTU as i64
    }

    fn sent_messages(&mut self) -> Vec<u32> {
        let events = std::mem::take(&mut self.events);
        let sent = |event| match event {
            Event::Sent { message, .. } => Some(message.0),
            _ => None,
        };
        events.into_iter().filter_map(sent).collect()
    }
}

fn psn(packet: &Packet) -> u32 {
    match packet.header {
        Header::Data { psn, .. } => psn,
        _ => panic!("not data"),
    }
}

fn psns(packets: &[Packet]) -> Vec<u32> {
    packets.iter().map(psn).collect()
}

/// Base offset, bitmap and count of an acknowledgement.
fn segment(packet: &Packet) -> (u32, u16, u64, u16) {
    match packet.header {
        Header::Sack {
            epsn,
            base_offset,
            bitmap,
            out_of_order,
            ..
        } => (epsn, base_offset, bitmap, out_of_order),
        _ => panic!("not an acknowledgement"),
    }
}

#[test]
fn a_window_is_sent_and_acknowledged() {
    let mut bench = Bench::new(10);
    bench.post(0, 25 * MTU);
    let first = bench.transmit();
    assert_eq!(psns(&first), (0..10).collect::<Vec<_>>());
    assert_eq!(bench.in_flight_packets(), 10);
    bench.exchange(&first[..4]);
    assert_eq!(bench.in_flight_packets(), 6);
    let second = bench.transmit();
    assert_eq!(psns(&second), [10, 11, 12, 13]);
    bench.exchange(&first[4..]);
    bench.exchange(&second);
    let rest = bench.transmit();
    bench.exchange(&rest);
    let rest = bench.transmit();
    bench.exchange(&rest);
    assert_eq!(bench.sent_messages(), [0]);
    assert_eq!(bench.sender.in_flight_exact(), 0);
}

#[test]
fn the_window_may_be_overshot_by_less_than_a_packet_unless_strict() {
    let sent = |strict| {
        let mut bench = Bench::with(10, |p| p.strict_window = strict);
        bench.post(0, 25 * MTU + 1);
        let first = bench.transmit();
        bench.exchange(&first);
        let second = bench.transmit();
        bench.exchange(&second);
        // Five full packets and one of a single byte.
        bench.post(1, 20 * MTU);
        bench.transmit().len()
    };
    assert_eq!((sent(false), sent(true)), (6 + 5, 6 + 4));
}

#[test]
fn corner_case_1_a_claimed_packet_is_acknowledged_before_it_is_sent_again() {
    let mut bench = Bench::new(4);
    bench.post(0, 4 * MTU);
    let packets = bench.transmit();
    let sacks: Vec<_> = packets.iter().filter_map(|p| bench.deliver(p)).collect();
    bench.wait(250);
    assert_eq!(bench.counters.lost_timeout, 4);
    assert_eq!(bench.in_flight_packets(), 0);
    bench.sack(&sacks[1]);
    // Two received, two that were claimed are not claimed any more.
    assert_eq!(bench.in_flight_packets(), 0);
    assert_eq!(psns(&bench.transmit()), [2, 3]);
    assert_eq!(bench.in_flight_packets(), 2);
    bench.sack(&sacks[3]);
    assert_eq!(bench.sender.in_flight_exact(), 0);
    assert_eq!(bench.counters.retransmitted, 2);
}

#[test]
fn corner_case_2_both_copies_arrive() {
    let mut bench = Bench::new(4);
    bench.post(0, 4 * MTU);
    let originals = bench.transmit();
    bench.wait(250);
    let copies = bench.transmit();
    assert_eq!(psns(&copies), [0, 1, 2, 3]);
    assert_eq!(bench.in_flight_packets(), 4);
    bench.exchange(&originals);
    assert_eq!(bench.sender.in_flight_exact(), 0);
    assert_eq!(bench.sent_messages(), [0]);
    bench.exchange(&copies);
    assert_eq!(bench.sender.in_flight_exact(), 0);
    assert_eq!(bench.counters.duplicates, 4);
}

#[test]
fn corner_case_3_a_retransmission_is_lost_again() {
    let mut bench = Bench::new(4);
    bench.post(0, 4 * MTU);
    bench.transmit();
    bench.wait(250);
    bench.transmit();
    bench.wait(250);
    assert_eq!(
        (bench.counters.lost_timeout, bench.counters.timeouts),
        (8, 2)
    );
    assert_eq!(bench.in_flight_packets(), 0);
    let third = bench.transmit();
    bench.exchange(&third);
    assert_eq!(bench.sender.in_flight_exact(), 0);
    assert_eq!(bench.sent_messages(), [0]);
}

#[test]
fn corner_case_4_claims_beyond_what_is_missing_may_make_the_sum_negative_but_it_ends_at_zero() {
    let mut bench = Bench::new(4);
    bench.post(0, 8 * MTU);
    let packets = bench.transmit();
    let sacks: Vec<_> = packets.iter().filter_map(|p| bench.deliver(p)).collect();
    // The acknowledgement of the third says that three have arrived; remove the information which ones.
    let mut vague = sacks[2];
    if let Header::Sack { epsn, .. } = &mut vague.header {
        *epsn = 0;
    }
    bench.sack(&vague);
    assert_eq!(bench.in_flight_packets(), 1);
    bench.wait(250);
    assert_eq!(bench.in_flight_packets(), 1 - 4);
    let again = bench.transmit();
    assert_eq!(psns(&again), [0, 1, 2, 3, 4, 5, 6]);
    bench.exchange(&again);
    let rest = bench.transmit();
    bench.exchange(&rest);
    assert_eq!(bench.sender.in_flight_exact(), 0);
    assert_eq!(bench.sent_messages(), [0]);
}

#[test]
fn overtaking_beyond_the_window_is_a_loss_exactly_once() {
    // A window of 8: nine packets must overtake.
    let mut bench = Bench::new(8);
    bench.post(0, 100 * MTU);
    let mut lost_once = Vec::new();
    for round in 0..3 {
        let packets = bench.transmit();
        let arriving: Vec<_> = packets.iter().filter(|p| psn(p) != 0).copied().collect();
        bench.exchange(&arriving);
        lost_once.push((round, bench.counters.lost_out_of_order));
    }
    // 7 arrive in the first round, 7 more in the second.
    assert_eq!(lost_once, [(0, 0), (1, 1), (2, 1)]);
    assert_eq!(bench.counters.retransmitted, 1);
    assert!(bench.sender.progress().recovering);
}

#[test]
fn few_packets_out_of_order_are_no_loss_however_small_the_window() {
    let mut bench = Bench::new(1);
    bench.post(0, MTU);
    bench.post(1, 100 * MTU);
    let lost = bench.transmit();
    assert_eq!(psns(&lost), [0]);
    // Acknowledgements as from a receiver that has got `n` later ones.
    let claim = |n: u16| Packet {
        header: Header::Sack {
            bitmap: 0,
            bytes_received: u32::from(n) * 4096,
            epsn: 0,
            base_offset: 0,
            out_of_order: n,
            probe: false,
        },
        ..lost[0]
    };
    bench.sack(&claim(5));
    assert!(!bench.sender.progress().recovering);
    let mut later = claim(6);
    if let Header::Sack { bitmap, .. } = &mut later.header {
        *bitmap = 0b10;
    }
    bench.transmit();
    bench.sack(&later);
    assert!(bench.sender.progress().recovering);
    assert_eq!(bench.counters.lost_out_of_order, 1);
}

#[test]
fn retransmissions_come_first_and_lowest_first() {
    let mut bench = Bench::new(10);
    bench.post(0, 100 * MTU);
    let first = bench.transmit();
    let arriving = |packets: &[Packet]| -> Vec<Packet> {
        let lost = [2, 5, 6];
        packets
            .iter()
            .filter(|p| !lost.contains(&psn(p)))
            .copied()
            .collect()
    };
    bench.exchange(&arriving(&first));
    let second = bench.transmit();
    bench.exchange(&second);
    let third = bench.transmit();
    let again = psns(&third)[..3].to_vec();
    assert_eq!(again, [2, 5, 6]);
    let again = DataFlags::RETRANSMISSION.union(DataFlags::ACK_REQUEST);
    assert!(third.iter().take(3).all(|packet| matches!(
        packet.header,
        Header::Data { flags, .. } if flags.contains(again)
    )));
}

#[test]
fn a_probe_recovers_what_was_sent_before_it_only() {
    let mut bench = Bench::new(4);
    bench.post(0, 2 * MTU);
    bench.transmit();
    assert_eq!(bench.wait(23), Due::Nothing);
    assert_eq!(bench.wait(1), Due::Probe);
    let mut probe = bench.sender.probe(bench.now, &bench.rules);
    probe.stamp = bench.now;
    bench.sender.on_probe_sent(bench.now, &bench.rules);
    bench.post(1, MTU);
    assert_eq!(psns(&bench.transmit()), [2]);
    bench.now += Span::from_us(9);
    let answer = bench
        .receiver
        .on_probe(bench.now, &probe, &bench.rules)
        .unwrap();
    bench.sack(&answer);
    assert_eq!(bench.counters.lost_probe, 2);
    assert_eq!(psns(&bench.transmit()), [0, 1]);
    // The same answer once more must not claim packets that have just been sent again.
    bench.sack(&answer);
    assert_eq!(bench.counters.lost_probe, 2);
}

#[test]
fn a_probe_during_recovery_claims_the_lost_retransmissions() {
    let mut bench = Bench::new(4);
    bench.post(0, 4 * MTU);
    bench.transmit();
    for round in 1..=3 {
        assert_eq!(bench.wait(24), Due::Probe);
        let mut probe = bench.sender.probe(bench.now, &bench.rules);
        probe.stamp = bench.now;
        bench.sender.on_probe_sent(bench.now, &bench.rules);
        bench.now += Span::from_us(9);
        let answer = bench
            .receiver
            .on_probe(bench.now, &probe, &bench.rules)
            .unwrap();
        bench.sack(&answer);
        assert_eq!(bench.counters.lost_probe, 4 * round);
        assert_eq!(psns(&bench.transmit()), [0, 1, 2, 3]);
        assert_eq!(bench.in_flight_packets(), 4);
    }
}

#[test]
fn a_probe_says_nothing_if_it_was_slow_or_data_was_acknowledged() {
    for (rtt_ns, data, lost) in [(15_999, false, 2), (16_000, false, 0), (9_000, true, 0)] {
        let mut bench = Bench::new(4);
        bench.post(0, 3 * MTU);
        let packets = bench.transmit();
        bench.wait(24);
        let mut probe = bench.sender.probe(bench.now, &bench.rules);
        probe.stamp = bench.now;
        bench.sender.on_probe_sent(bench.now, &bench.rules);
        bench.now += Span::from_ns(rtt_ns);
        let sack = bench.deliver(&packets[0]).unwrap();
        if data {
            bench.sack(&sack);
        }
        let answer = bench
            .receiver
            .on_probe(bench.now, &probe, &bench.rules)
            .unwrap();
        bench.sack(&answer);
        assert_eq!(bench.counters.lost_probe, lost, "{rtt_ns} ns, data {data}");
    }
}

#[test]
fn the_timeout_counts_from_the_last_progress() {
    let mut bench = Bench::new(4);
    bench.post(0, 4 * MTU);
    let packets = bench.transmit();
    bench.now += Span::from_us(200);
    bench.exchange(&packets[..1]);
    bench.wait(249);
    assert_eq!(bench.counters.timeouts, 0);
    bench.wait(1);
    assert_eq!(
        (bench.counters.timeouts, bench.counters.lost_timeout),
        (1, 3)
    );
}

#[test]
fn out_of_order_arrivals_alone_do_not_put_the_timeout_off() {
    let mut bench = Bench::new(4);
    bench.post(0, 4 * MTU);
    let packets = bench.transmit();
    bench.now += Span::from_us(200);
    bench.exchange(&packets[1..]);
    bench.wait(50);
    assert_eq!(
        (bench.counters.timeouts, bench.counters.lost_timeout),
        (1, 1)
    );
}

#[test]
fn the_bitmap_limits_what_is_on_its_way() {
    let mut bench = Bench::with(10_000, |p| p.bitmap = Some(256));
    bench.post(0, 10_000 * MTU);
    let packets = bench.transmit();
    assert_eq!(packets.len(), 256);
    bench.exchange(&packets[1..]);
    // The first is missing: it alone may be sent again, with any window.
    assert!(bench.transmit().is_empty());
    bench.wait(250);
    assert_eq!(psns(&bench.transmit()), [0]);
    assert_eq!(bench.counters.overflow, 0);
}

#[test]
fn four_conditions_make_an_acknowledgement_due() {
    let mut bench = Bench::with(100, |p| p.ack_bytes = Some(Bytes::new(4 * MTU)));
    bench.post(0, 50 * MTU);
    let packets = bench.transmit();
    // The expected packet (2), though only one packet has come.
    assert!(bench.deliver(&packets[0]).is_some());
    // Enough bytes (1): the fourth out of order.
    for psn in [2, 3, 4] {
        assert!(bench.deliver(&packets[psn]).is_none());
    }
    assert!(bench.deliver(&packets[5]).is_some());
    // Enough bytes count from the last acknowledgement.
    assert!(bench.deliver(&packets[6]).is_none());
    // A probe (3) is answered and starts the count anew.
    let probe = bench.sender.probe(bench.now, &bench.rules);
    assert!(
        bench
            .receiver
            .on_probe(bench.now, &probe, &bench.rules)
            .is_some()
    );
    for psn in [7, 8, 9] {
        assert!(bench.deliver(&packets[psn]).is_none());
    }
    // The last packet of the message asks for one (4).
    assert!(bench.deliver(&packets[49]).is_some());
    // A duplicate.
    assert!(bench.deliver(&packets[7]).is_some());
}

#[test]
fn a_mark_makes_an_acknowledgement_due_only_if_told_so() {
    for ack_on_ecn in [false, true] {
        let mut bench = Bench::with(100, |p| {
            p.ack_bytes = Some(Bytes::new(16 * 1024));
            p.ack_on_ecn = ack_on_ecn;
        });
        bench.post(0, 50 * MTU);
        let mut packets = bench.transmit();
        packets[3].ecn = true;
        assert_eq!(bench.deliver(&packets[3]).is_some(), ack_on_ecn);
    }
}

#[test]
fn the_segment_holds_the_lowest_arrival_since_the_last_acknowledgement() {
    let mut bench = Bench::with(256, |p| p.ack_bytes = Some(Bytes::new(3 * MTU)));
    bench.post(0, 300 * MTU);
    let packets = bench.transmit();
    let sack = bench.deliver(&packets[0]).unwrap();
    assert_eq!(segment(&sack), (1, 0, 0, 0));
    assert!(bench.deliver(&packets[200]).is_none());
    assert!(bench.deliver(&packets[70]).is_none());
    let sack = bench.deliver(&packets[133]).unwrap();
    // 70 lies 69 above the expected 1: second segment, 65..129.
    assert_eq!(segment(&sack), (1, 64, 1 << (70 - 65), 3));
    assert!(bench.deliver(&packets[201]).is_none());
    assert!(bench.deliver(&packets[210]).is_none());
    let sack = bench.deliver(&packets[199]).unwrap();
    // 199 lies 198 above: fourth segment, 193..257.
    let bits = [199, 200, 201, 210]
        .iter()
        .fold(0, |bits, psn| bits | 1u64 << (psn - 193));
    assert_eq!(segment(&sack), (1, 192, bits, 6));
    // The expected packet: back to the first segment.
    let sack = bench.deliver(&packets[1]).unwrap();
    assert_eq!(segment(&sack), (2, 0, 0, 6));
}

#[test]
fn a_probe_chooses_its_segment_within_the_bitmap() {
    let mut bench = Bench::new(256);
    bench.post(0, 300 * MTU);
    let packets = bench.transmit();
    bench.deliver(&packets[0]);
    bench.deliver(&packets[100]);
    let mut probe = bench.sender.probe(bench.now, &bench.rules);
    for (base, expected) in [
        (0, (1, 0, 0, 1)),
        (90, (1, 89, 1 << 10, 1)),
        (5000, (1, bench.rules.window as u16 - 64, 0, 1)),
        (u32::MAX, (1, 0, 0, 1)),
    ] {
        probe.header = Header::Probe {
            base,
            pull_target: None,
        };
        let answer = bench
            .receiver
            .on_probe(bench.now, &probe, &bench.rules)
            .unwrap();
        assert_eq!(segment(&answer), expected, "base {base}");
    }
}

#[test]
fn what_lies_beyond_the_bitmap_is_dropped_and_counted() {
    let mut bench = Bench::with(300, |p| p.bitmap = Some(256));
    bench.post(0, 300 * MTU);
    let mut packet = bench.transmit()[0];
    for (wire, overflows) in [(255, 0), (256, 1), (1 << 30, 2)] {
        if let Header::Data { psn, .. } = &mut packet.header {
            *psn = wire;
        }
        assert_eq!(bench.deliver(&packet).is_none(), overflows > 0);
        assert_eq!(bench.counters.overflow, overflows);
    }
}

#[test]
fn acknowledgements_of_what_was_never_sent_are_dropped_and_counted() {
    let mut bench = Bench::new(8);
    bench.post(0, 100 * MTU);
    let packets = bench.transmit();
    let mut sack = bench.deliver(&packets[0]).unwrap();
    for (wire, invalid) in [(9, 1), (1 << 31, 2), (u32::MAX, 3), (8, 3)] {
        if let Header::Sack { epsn, bitmap, .. } = &mut sack.header {
            (*epsn, *bitmap) = (wire, u64::MAX);
        }
        bench.sack(&sack);
        assert_eq!(bench.counters.invalid, invalid);
    }
    assert_eq!(bench.sender.progress().unacknowledged_packets, 0);
}

#[test]
fn messages_share_the_number_space_and_finish_on_their_own() {
    let mut bench = Bench::new(100);
    bench.post(0, 3 * MTU);
    bench.post(1, 0);
    bench.post(2, 1);
    bench.post(3, 2 * MTU);
    let packets = bench.transmit();
    assert_eq!(psns(&packets), [0, 1, 2, 3, 4, 5, 6]);
    let carried: Vec<_> = packets
        .iter()
        .map(|packet| match packet.header {
            Header::Data {
                message,
                offset,
                payload,
                flags,
                ..
            } => {
                let ends = flags.contains(DataFlags::END_OF_MESSAGE);
                (message.0, offset, payload, ends, packet.size)
            }
            _ => panic!("not data"),
        })
        .collect();
    assert_eq!(
        carried,
        [
            (0, 0, 4096, false, 4160),
            (0, 4096, 4096, false, 4160),
            (0, 8192, 4096, true, 4160),
            (1, 0, 0, true, 64),
            (2, 0, 1, true, 65),
            (3, 0, 4096, false, 4160),
            (3, 4096, 4096, true, 4160),
        ]
    );
    bench.exchange(&packets[5..]);
    assert_eq!(bench.sent_messages(), [3]);
    bench.exchange(&packets[3..5]);
    assert_eq!(bench.sent_messages(), [1, 2]);
    bench.exchange(&packets[..3]);
    assert_eq!(bench.sent_messages(), [0]);
    assert_eq!(bench.sender.in_flight_exact(), 0);
}

#[test]
fn numbers_wrap_on_the_wire() {
    let mut bench = Bench::new(64);
    let start = u64::from(u32::MAX) - 100;
    bench.sender.start_at(start);
    bench.receiver.start_at(start);
    bench.post(0, 300 * MTU);
    for round in 0.. {
        let packets = bench.transmit();
        if packets.is_empty() {
            break;
        }
        // Every seventh packet of the first rounds is lost.
        let lucky = |p: &&Packet| round > 3 || !psn(p).is_multiple_of(7);
        let arriving: Vec<_> = packets.iter().filter(lucky).copied().collect();
        bench.exchange(&arriving);
        bench.wait(250);
    }
    assert_eq!(bench.sent_messages(), [0]);
    assert_eq!(bench.sender.in_flight_exact(), 0);
    assert_eq!((bench.counters.overflow, bench.counters.invalid), (0, 0));
}

#[test]
fn the_last_packet_of_a_closed_flow_says_so() {
    let ends = |packets: &[Packet]| -> Vec<bool> {
        let end = |packet: &Packet| {
            matches!(
                packet.header,
                Header::Data { flags, .. } if flags.contains(DataFlags::END_OF_FLOW)
            )
        };
        packets.iter().map(end).collect()
    };
    let mut bench = Bench::new(10);
    bench.post(0, 2 * MTU);
    bench.sender.close(&bench.rules);
    let packets = bench.transmit();
    assert_eq!(ends(&packets), [false, true]);
    bench.exchange(&packets[1..]);
    assert!(!bench.receiver.is_finished());
    bench.exchange(&packets[..1]);
    assert!(bench.receiver.is_finished() && bench.sender.is_finished());

    let mut late = Bench::new(10);
    late.post(0, MTU);
    let packets = late.transmit();
    assert_eq!(ends(&packets), [false]);
    late.sender.close(&late.rules);
    let closing = late.transmit();
    assert_eq!(ends(&closing), [true]);
    late.exchange(&packets);
    assert!(!late.sender.is_finished());
    late.exchange(&closing);
    assert!(late.receiver.is_finished() && late.sender.is_finished());
    assert_eq!(late.sent_messages(), [0]);

    let mut unused = Bench::new(10);
    unused.sender.close(&unused.rules);
    assert!(unused.transmit().is_empty() && unused.sender.is_finished());
}

#[test]
fn bitmaps_are_sized_by_the_largest_window() {
    let window = |gbps, change: fn(&mut SelectiveRepeatParameters)| {
        let network = network(Rate::from_gbps(gbps), Span::from_us(8));
        let mut profile = Profile::strack(network);
        let parameters = profile.reliability.selective_repeat_mut().unwrap();
        change(parameters);
        let controller = profile.controller.build(&network);
        use crate::congestion::CongestionControl;
        Rules::new(parameters, &network, controller.largest_window()).window
    };
    // 1.25 BDP at 400G are 123.4 packets, twice that 247.
    assert_eq!(window(200, |_| {}), 256);
    assert_eq!(window(400, |_| {}), 256);
    assert_eq!(window(800, |_| {}), 512);
    assert_eq!(window(400, |p| p.bitmap = Some(300)), 512);
    assert_eq!(window(400, |p| p.bitmap = Some(0)), 256);
    assert_eq!(window(400, |p| p.bitmap = Some(u32::MAX)), 32_768);
}

#[test]
fn a_receiver_that_has_lost_its_state_does_not_leave_the_sender_waiting() {
    for news_first in [true, false] {
        let mut bench = Bench::new(4);
        bench.post(0, 2 * MTU);
        bench.sender.close(&bench.rules);
        let packets = bench.transmit();
        let news_of_the_second = bench.deliver(&packets[1]).unwrap();
        // The first packet arrives, its acknowledgement is lost, and the receiver is restarted; then comes a copy.
        bench.deliver(&packets[0]).unwrap();
        bench.receiver = Receiver::new(FLOW, &bench.rules);
        let of_the_first = bench.deliver(&packets[0]).unwrap();
        assert_eq!(segment(&of_the_first).0, 1);
        let mut sacks = [news_of_the_second, of_the_first];
        if !news_first {
            sacks.reverse();
        }
        sacks.iter().for_each(|sack| bench.sack(sack));
        assert!(bench.sender.is_finished(), "{news_first}");
        assert_eq!(bench.sent_messages(), [0]);
    }
}

/// Number of distinct source ports from `count` calls of `send`.
fn distinct_ports(count: usize, mut send: impl FnMut() -> u16) -> usize {
    let ports: BTreeSet<u16> = (0..count).map(|_| send()).collect();
    ports.len()
}

#[test]
fn probes_use_every_path_of_the_selector() {
    // The port identifies the path, with any salt of the flow.
    for seed in 1..=8 {
        let mut profile = Profile::strack(facts());
        profile.selector = SelectorSettings::named("oblivious").unwrap();
        let paths = Value::Integer(16);
        profile.selector.set("max-paths", &paths).unwrap();
        let mut bench = Bench::seeded(profile, 100, seed);
        let rules = bench.rules;
        let ports = distinct_ports(64, || bench.sender.probe(Time::ZERO, &rules).source_port);
        assert_eq!(ports, 16, "seed {seed}");
    }
}

#[test]
fn a_window_of_four_packets_sprays_over_eight_paths() {
    // Twice the window in packets (Algorithm 3), however many bytes it has.
    let mut profile = Profile::strack(facts());
    profile
        .selector
        .set("min-paths", &Value::Integer(1))
        .unwrap();
    let mut bench = Bench::seeded(profile, 4, 1);
    bench.post(0, 400 * MTU);
    let mut ports = BTreeSet::new();
    for _ in 0..100 {
        let packets = bench.transmit();
        // Marked, so that no acknowledgement offers a path.
        for packet in &packets {
            ports.insert(packet.source_port);
            if let Some(sack) = bench.deliver(&Packet {
                ecn: true,
                ..*packet
            }) {
                bench.sack(&sack);
            }
        }
    }
    assert_eq!(ports.len(), 8);
}

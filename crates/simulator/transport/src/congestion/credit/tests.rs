use super::*;
use crate::congestion::PathFacts;
use crate::packet::{Class, Header, Packet};
use clearway_units::{FlowId, HostId, Time};
use proptest::prelude::*;

const PACKET: u16 = 4160;

/// 400 Gb/s and a round trip of 8.33792 us.
fn rules() -> CreditRules {
    let line_rate = Rate::from_gbps(400);
    let base_rtt = Span::from_ps(8_337_920);
    let network = NetworkFacts {
        line_rate,
        base_rtt,
        propagation_rtt: Span::from_us(8),
        bdp: line_rate.bytes_in(base_rtt),
        payload: 4096,
        header: 64,
        ack: 64,
        path: PathFacts {
            rtt: base_rtt,
            switches: 3,
        },
    };
    CreditRules::new(&CreditParameters::default(), &network)
}

fn template() -> Packet {
    Packet {
        stamp: Time::ZERO,
        flow: FlowId(1),
        src: HostId(0),
        dst: HostId(1),
        header_hash: 0,
        source_port: 7,
        size: 64,
        class: Class::CONTROL,
        ecn: false,
        queue_pair: 0,
        via: 0,
        header: Header::Pull { pull: 0 },
    }
}

fn demand(payload: u64) -> Demand {
    Demand {
        payload,
        packets: payload.div_ceil(4096),
        window: f64::INFINITY,
        flows: 1,
    }
}

fn pull_of(packet: Option<Packet>) -> Option<u16> {
    match packet?.header {
        Header::Pull { pull } => Some(pull),
        _ => None,
    }
}

#[test]
fn constants_are_those_of_the_reference() {
    let rules = rules();
    assert_eq!((rules.quantum, rules.pull), (256, 64));
    // 1.5 times 416 896 B.
    assert_eq!(rules.window, 625_344);
    assert_eq!(rules.most_idle, 2442);
    // 64 quanta at 396 Gb/s.
    assert_eq!(rules.span_of(64), Span::from_ps(330_990));
}

#[test]
fn a_sender_speculates_with_a_window_and_what_is_left_is_void() {
    let rules = rules();
    let mut sender = SenderCredit::new(&rules);
    let mut sent = 0;
    while sender.may_send() {
        sender.on_sent(Time::ZERO, PACKET);
        sent += 1;
    }
    // 625 344 bytes, and the rest of one packet.
    assert_eq!((sent, sender.credit()), (151, 625_344 - 151 * 4160));
    let mut short = SenderCredit::new(&rules);
    short.on_sent(Time::ZERO, PACKET);
    short.on_answer(Time::from_us(8));
    assert_eq!(short.credit(), 0);
    short.on_answer(Time::from_us(9));
    assert_eq!(short.credit(), 0);
}

#[test]
fn pulls_are_cumulative() {
    let rules = rules();
    let mut sender = SenderCredit::new(&rules);
    sender.on_answer(Time::ZERO);
    assert!(sender.on_pull(Time::ZERO, 64, &rules));
    assert_eq!(sender.credit(), 64 * 256);
    // The one with 128 is lost.
    assert!(sender.on_pull(Time::ZERO, 192, &rules));
    assert_eq!(sender.credit(), 192 * 256);
    // It comes late.
    assert!(!sender.on_pull(Time::ZERO, 128, &rules));
    assert_eq!(sender.credit(), 192 * 256);
    assert!(sender.on_pull(Time::ZERO, 192 + 20_000, &rules));
    assert_eq!(sender.credit(), rules.window, "no more than a window");
}

#[test]
fn targets_count_from_what_was_pulled() {
    let rules = rules();
    let mut sender = SenderCredit::new(&rules);
    // Speculating: at least a packet, 16.25 quanta.
    assert_eq!(sender.target(&demand(4096), &rules), 17);
    assert_eq!(sender.target(&demand(0), &rules), (-2442i16) as u16);
    sender.on_answer(Time::ZERO);
    assert_eq!(sender.target(&demand(4096), &rules), 17);
    assert_eq!(sender.target(&demand(10 * 4096), &rules), 163);
    assert_eq!(sender.target(&demand(100 << 20), &rules), 2443);
    sender.on_pull(Time::ZERO, 100, &rules);
    // A hundred quanta are there already.
    assert_eq!(sender.target(&demand(10 * 4096), &rules), 163);
    let shared = Demand {
        flows: 3,
        ..demand(10 * 4096)
    };
    // (41 600 - 25 600) / 3 bytes are 20.83 quanta.
    assert_eq!(sender.target(&shared, &rules), 121);
    let windowed = Demand {
        window: 8192.0,
        ..demand(100 << 20)
    };
    sender.on_sent(Time::ZERO, 25_600);
    // Two packets of the window and one more.
    assert_eq!(sender.target(&windowed, &rules), 100 + 49);
}

#[test]
fn a_restart_speculates_again() {
    let rules = rules();
    let mut sender = SenderCredit::new(&rules);
    sender.on_answer(Time::ZERO);
    sender.on_pull(Time::ZERO, 64, &rules);
    sender.restart(&rules);
    assert_eq!(sender.credit(), rules.window);
    sender.on_answer(Time::ZERO);
    assert_eq!(sender.credit(), 0);
}

#[test]
fn active_flows_take_turns() {
    let rules = rules();
    let mut pacer = Pacer::new();
    let begin = Time::from_us(5);
    assert_eq!(
        pacer.on_target(begin, 1, 200, false, &template),
        Some(begin)
    );
    assert_eq!(pacer.on_target(begin, 2, 70, false, &template), None);
    let mut turns = Vec::new();
    while let Some(now) = pacer.next()
        && turns.len() < 6
    {
        turns.push((now - begin, pull_of(pacer.take_turn(now, &rules))));
    }
    let pull = rules.span_of(64);
    let part = rules.span_of(6);
    assert_eq!(
        turns,
        [
            (Span::ZERO, Some(64)),
            (pull, Some(64)),
            (pull * 2, Some(128)),
            (pull * 3, Some(70)),
            (pull * 3 + part, Some(192)),
            (pull * 4 + part, Some(200)),
        ]
    );
}

#[test]
fn a_flow_that_waits_for_credit_keeps_its_place_while_packets_come() {
    let rules = rules();
    let mut pacer = Pacer::new();
    let mut now = Time::ZERO;
    pacer.on_target(now, 1, 400, false, &template);
    pacer.on_target(now, 2, 400, false, &template);
    let granted = |pacer: &Pacer<u32>| [1, 2].map(|flow| pacer.granted(flow).unwrap().0);
    // Two packets of the first flow come before each turn, with a new target and with a request for credit.
    for turn in 0..6u16 {
        pacer.on_target(now, 1, 401 + turn, false, &template);
        pacer.on_target(now, 1, 401 + turn, true, &template);
        now = pacer.next().unwrap();
        pacer.take_turn(now, &rules);
        let pulls = [turn / 2 + 1, turn.div_ceil(2)];
        assert_eq!(
            granted(&pacer),
            pulls.map(|pulls| pulls * 64),
            "turn {turn}"
        );
    }
}

#[test]
fn idle_flows_are_granted_as_far_as_a_window() {
    let rules = rules();
    let mut pacer = Pacer::new();
    pacer.on_target(Time::ZERO, 1, 10, false, &template);
    let mut turns = 0;
    while let Some(now) = pacer.next() {
        pacer.take_turn(now, &rules);
        turns += 1;
    }
    let (latest, target) = pacer.granted(1).unwrap();
    assert_eq!(target, 10);
    assert!((latest - target) >= rules.most_idle && latest - target < rules.most_idle + 64);
    assert_eq!(turns, 1 + rules.most_idle.div_ceil(64));
    // A new request begins a new turn, but not before the pause after the last one is over.
    let more = pacer.on_target(Time::ZERO, 1, latest + 1, false, &template);
    assert!(more > Some(Time::ZERO));
    assert!(
        pacer
            .on_target(Time::ZERO, 2, 0, false, &template)
            .is_none()
    );
}

#[test]
fn trimmed_packets_and_probes_insist() {
    let rules = rules();
    let mut pacer = Pacer::new();
    assert_eq!(pacer.on_target(Time::ZERO, 1, 0, false, &template), None);
    let at = pacer.on_target(Time::ZERO, 1, 0, true, &template);
    assert_eq!(at, Some(Time::ZERO));
    // It wants nothing, and the pull repeats its credit; the turn is short.
    assert_eq!(pull_of(pacer.take_turn(Time::ZERO, &rules)), Some(0));
    assert_eq!(pacer.next(), Some(Time::ZERO + rules.span_of(4)));
}

#[test]
fn flows_that_are_done_are_forgotten() {
    let rules = rules();
    let mut pacer = Pacer::new();
    pacer.on_target(Time::ZERO, 1, 500, false, &template);
    pacer.on_target(Time::ZERO, 2, 500, false, &template);
    pacer.remove(1);
    let mut flows = 0;
    while let Some(now) = pacer.next() {
        flows += u32::from(pacer.take_turn(now, &rules).is_some());
        if flows == 3 {
            pacer.remove(2);
        }
    }
    assert_eq!(flows, 3);
    assert!(pacer.granted(1).is_none() && pacer.granted(2).is_none());
}

#[derive(Debug, Clone)]
enum Step {
    Target { flow: u8, more: i16, insists: bool },
    Turn { late: u64 },
    Remove { flow: u8 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let flow = 0u8..6;
    let step = prop_oneof![
        4 => (flow.clone(), -300i16..3000, any::<bool>())
            .prop_map(|(flow, more, insists)| Step::Target { flow, more, insists }),
        6 => (0u64..400_000).prop_map(|late| Step::Turn { late }),
        1 => flow.prop_map(|flow| Step::Remove { flow }),
    ];
    prop::collection::vec(step, 0..400)
}

proptest! {
    /// Grants never exceed the rate by more than a pull, nor a flow's target by more than a window and a pull; and every flow that wants
    /// credit gets it.
    #[test]
    fn grants_are_bounded(steps in steps()) {
        let rules = rules();
        let mut pacer = Pacer::new();
        let mut now = Time::from_us(1);
        let begin = now;
        let mut granted: u64 = 0;
        let mut latest = [0u16; 6];
        for step in steps {
            match step {
                Step::Target { flow, more, insists } => {
                    let target = pacer.granted(flow).map_or(0, |(latest, _)| latest).wrapping_add(more as u16);
                    pacer.on_target(now, flow, target, insists, &template);
                }
                Step::Turn { late } => {
                    let Some(next) = pacer.next() else { continue };
                    now = now.max(next) + Span::from_ps(late);
                    pacer.take_turn(now, &rules);
                    for flow in 0..6u8 {
                        let Some((new, target)) = pacer.granted(flow) else { continue };
                        let before = std::mem::replace(&mut latest[usize::from(flow)], new);
                        granted += u64::from(new.wrapping_sub(before));
                        let ahead = distance(target, new);
                        prop_assert!(i32::from(ahead) <= i32::from(rules.most_idle + rules.pull));
                    }
                }
                Step::Remove { flow } => {
                    pacer.remove(flow);
                    latest[usize::from(flow)] = 0;
                }
            }
            let most = rules.rate.bytes_in(now.since(begin)).as_u64() / 256 + u64::from(rules.pull) + 2;
            prop_assert!(granted <= most, "{granted} {most}");
        }
        // Nobody who wants credit is left without.
        let mut turns = 0;
        while let Some(next) = pacer.next() {
            pacer.take_turn(next, &rules);
            turns += 1;
            prop_assert!(turns < 100_000);
        }
        for flow in 0..6u8 {
            if let Some((latest, target)) = pacer.granted(flow) {
                prop_assert!(distance(latest, target) <= 0);
            }
        }
    }

    #[test]
    fn credit_never_exceeds_a_window(steps in prop::collection::vec((0u8..4, any::<u16>()), 0..300)) {
        let rules = rules();
        let mut sender = SenderCredit::new(&rules);
        for (kind, value) in steps {
            match kind {
                0 if sender.may_send() => sender.on_sent(Time::ZERO, 1 + value % PACKET),
                1 => sender.on_answer(Time::ZERO),
                2 => { sender.on_pull(Time::ZERO, value, &rules); }
                3 => sender.restart(&rules),
                _ => {}
            }
            prop_assert!(sender.credit() <= rules.window);
            prop_assert!(sender.credit() > -i64::from(PACKET));
        }
    }
}

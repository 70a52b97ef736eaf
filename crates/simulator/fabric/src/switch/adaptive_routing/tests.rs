use super::*;
use crate::topology::PortChoice;
use clearway_transport::{Class, Header};
use clearway_units::Bytes;

fn parameters(
    routing: PathChoice,
    change: impl Fn(&mut AdaptiveRoutingParameters),
) -> SwitchParameters {
    let mut parameters = SwitchParameters {
        routing,
        ..SwitchParameters::default()
    };
    change(&mut parameters.adaptive.0);
    parameters
}

fn choice(
    routing: PathChoice,
    change: impl Fn(&mut AdaptiveRoutingParameters),
) -> Box<AdaptiveRouting> {
    AdaptiveRouting::new(&parameters(routing, change), SwitchRole::Network, 1, 0)
        .expect("the rule is local")
}

fn packet(flow: u32, size: u16) -> Packet {
    Packet {
        stamp: Time::ZERO,
        flow: FlowId(flow),
        src: HostId(0),
        dst: HostId(1),
        header_hash: flow.wrapping_mul(0x9E37_79B9),
        source_port: 0,
        size,
        class: Class::DATA,
        ecn: false,
        queue_pair: 0,
        via: 0,
        header: Header::Notification,
    }
}

/// States of ports by their bytes; a limit of 1000 bytes.
fn waiting(bytes: &[u64]) -> impl Fn(u16) -> PortState + '_ {
    |port| PortState {
        bytes: bytes[usize::from(port)],
        limit: 1000,
        is_down: false,
    }
}

#[test]
fn headers_and_destinations_need_no_state() {
    for routing in [PathChoice::Ecmp, PathChoice::Destination] {
        assert!(
            AdaptiveRouting::new(&parameters(routing, |_| {}), SwitchRole::Network, 1, 0).is_none()
        );
    }
}

/// Independent of the settings of switches, and also for small packets.
#[test]
fn nics_have_a_rule_of_their_own() {
    let of_nic = |routing, ports| {
        let parameters = parameters(routing, |adaptive| adaptive.levels = vec![0.9]);
        AdaptiveRouting::new(&parameters, SwitchRole::Nic(ports), 1, 0)
    };
    for routing in [
        PathChoice::Ecmp,
        PathChoice::Flowlet,
        PathChoice::RoundRobin,
    ] {
        assert!(of_nic(routing, PortChoice::Hash).is_none());
        let mut nic = of_nic(routing, PortChoice::LeastQueue).expect("the rule is local");
        for flow in 0..100 {
            let port = nic.choose(Time::ZERO, &packet(flow, 64), &[0, 1], waiting(&[10, 9]));
            assert_eq!(port, 1);
        }
    }
}

/// UEC: two ports with queues of 0 and 10: always the first.
#[test]
fn the_shortest_queue_is_taken() {
    let mut adaptive = choice(PathChoice::Adaptive, |_| {});
    for flow in 0..100 {
        let packet = packet(flow, 4160);
        let port = adaptive.choose(Time::ZERO, &packet, &[0, 1], waiting(&[0, 10]));
        assert_eq!(port, 0);
    }
}

#[test]
fn ties_are_even() {
    let mut adaptive = choice(PathChoice::Adaptive, |_| {});
    let mut counts = [0u32; 4];
    for flow in 0..30_000 {
        let packet = packet(flow, 4160);
        let state = waiting(&[5, 5, 7, 5]);
        let port = adaptive.choose(Time::ZERO, &packet, &[0, 1, 2, 3], state);
        counts[usize::from(port)] += 1;
    }
    assert_eq!(counts[2], 0);
    // 5 sigma of a binomial(30000, 1/3) are 408.
    let even = |count: &u32| count.abs_diff(10_000) < 408;
    assert_eq!(counts.iter().filter(|count| even(count)).count(), 3);
}

#[test]
fn levels_tell_only_classes_of_queues_apart() {
    let change = |own: &mut AdaptiveRoutingParameters| own.levels = vec![0.05, 0.1, 0.2];
    let mut adaptive = choice(PathChoice::Adaptive, change);
    let grades = [0, 49, 50, 99, 100, 199, 200, 900].map(|bytes| {
        let state = waiting(&[bytes])(0);
        adaptive.grades.grade_at(Time::ZERO, 0, state)
    });
    assert_eq!(grades, [0, 0, 1, 1, 2, 2, 3, 3]);
    let mut seen = [false; 2];
    for flow in 0..100 {
        let packet = packet(flow, 4160);
        let port = adaptive.choose(Time::ZERO, &packet, &[0, 1], waiting(&[1, 49]));
        seen[usize::from(port)] = true;
    }
    assert_eq!(seen, [true; 2]);
}

#[test]
fn what_was_seen_holds_for_the_refresh_time() {
    let change = |own: &mut AdaptiveRoutingParameters| own.refresh = Span::from_ns(100);
    let mut adaptive = choice(PathChoice::Adaptive, change);
    let mut at = |ns: u64, bytes: &[u64]| {
        adaptive.choose(
            Time::from_ps(ns * 1000),
            &packet(7, 4160),
            &[0, 1],
            waiting(bytes),
        )
    };
    assert_eq!(at(5, &[0, 10]), 0);
    assert_eq!(
        at(104, &[99, 10]),
        0,
        "the first port is still taken for empty"
    );
    assert_eq!(at(105, &[99, 10]), 1);
}

#[test]
fn small_packets_are_hashed() {
    let mut adaptive = choice(PathChoice::Adaptive, |_| {});
    let mut counts = [0u32; 2];
    for flow in 0..1000 {
        let packet = packet(flow, 64);
        let port =
            |own: &mut AdaptiveRouting| own.choose(Time::ZERO, &packet, &[0, 1], waiting(&[0, 10]));
        let chosen = port(&mut adaptive);
        assert_eq!(port(&mut adaptive), chosen);
        counts[usize::from(chosen)] += 1;
    }
    assert!(counts.iter().all(|&count| count > 400), "{counts:?}");
}

#[test]
fn links_that_are_down_are_left_out_while_another_is_up() {
    for routing in [
        PathChoice::Adaptive,
        PathChoice::RoundRobin,
        PathChoice::Flowlet,
    ] {
        let mut local = choice(routing, |_| {});
        let state = |down: &'static [u16]| {
            move |port: u16| PortState {
                bytes: 10 * u64::from(port == 1),
                limit: 1000,
                is_down: down.contains(&port),
            }
        };
        for flow in 0..50 {
            for size in [64, 4160] {
                let packet = packet(flow, size);
                let port = local.choose(Time::ZERO, &packet, &[0, 1], state(&[0]));
                assert_eq!(port, 1, "{routing:?}");
                // Any port will do, but there is an answer.
                local.choose(Time::ZERO, &packet, &[0, 1], state(&[0, 1]));
            }
        }
    }
}

#[test]
fn each_sweep_deals_each_port_once() {
    let mut local = choice(PathChoice::RoundRobin, |_| {});
    let ports = [2, 3, 5, 7];
    let mut orders = Vec::new();
    for _ in 0..20 {
        let mut deal =
            |flow| local.choose(Time::ZERO, &packet(flow, 4160), &ports, waiting(&[0; 8]));
        let mut sweep: Vec<u16> = (0..4).map(&mut deal).collect();
        orders.push(sweep.clone());
        sweep.sort_unstable();
        assert_eq!(sweep, ports);
    }
    orders.sort();
    orders.dedup();
    assert!(orders.len() > 5, "sweeps have orders of their own");
}

#[test]
fn flowlets_keep_their_port_within_bursts_and_leave_long_queues_between_them() {
    let mut local = choice(PathChoice::Flowlet, |_| {});
    let mut at = |us: u64, bytes: &[u64]| {
        local.choose(Time::from_us(us), &packet(7, 4160), &[0, 1], waiting(bytes))
    };
    assert_eq!(at(0, &[0, 10]), 0);
    let within = (1..50).map(|n| at(9 * n, &[500, 10]));
    assert!(within.into_iter().all(|port| port == 0));
    // Every second gap is taken, on average.
    let mut moves = 0;
    for n in 0..200 {
        let start = 1000 + 100 * n;
        let before = at(start, &[0, 0]);
        let mut bytes = [0, 0];
        bytes[usize::from(before)] = 500;
        moves += u32::from(at(start + 11, &bytes) != before);
    }
    assert!((70..130).contains(&moves), "{moves}");
}

#[test]
fn flows_that_have_ended_are_forgotten() {
    let mut local = choice(PathChoice::Flowlet, |_| {});
    for flow in 0..100_000 {
        let now = Time::from_us(u64::from(flow) * 20);
        local.choose(now, &packet(flow, 4160), &[0, 1], waiting(&[0, 0]));
    }
    let Rule::Flowlet(flowlets) = &local.rule else {
        panic!("flowlets");
    };
    assert!(
        flowlets.flows.len() <= 2 * LEAST_FLOWS,
        "{}",
        flowlets.flows.len()
    );
    assert_eq!(
        parameters(PathChoice::Flowlet, |_| {}).adaptive.hash_below,
        Bytes::new(100)
    );
}

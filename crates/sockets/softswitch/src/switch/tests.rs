use super::*;
use crate::command::ActiveLinks;
use crate::packet::{Version, is_markable};
use crate::testing::{udp_v4, udp_v6};
use clearway_fabric::PathChoice;
use clearway_fabric::topology::{NodeId, PortChoice, SwitchRole, leaf_spine, single_switch};
use clearway_testing::{cases, number};
use clearway_units::{ParameterSet, Purpose, RandomStream, Rate, Value};
use proptest::prelude::*;
use std::collections::BTreeSet;

const RATE: Rate = Rate::from_bps(100_000_000);
const DELAY: Span = Span::from_us(50);
/// A packet of 1000 bytes at 100 Mb/s.
const WIRE: Span = Span::from_us(80);

struct World {
    switch: SoftSwitch,
    names: ActiveLinks,
    topology: Topology,
}

fn parameters(settings: &[(&str, &str)]) -> SwitchParameters {
    let mut parameters = SwitchParameters::default();
    for (key, value) in settings {
        parameters.set(key, &Value::Text((*value).into())).unwrap();
    }
    parameters
}

fn world(topology: Topology, settings: &[(&str, &str)], seed: u64) -> World {
    let parameters = parameters(settings);
    let plan = FabricPlan {
        topology: &topology,
        routes: Routes::compute(&topology).unwrap(),
        switch: &parameters,
        propagation_rtt: DELAY * 8,
        host_queue: Bytes::new(10_000_000),
        longest_packet: 1500,
        seed,
    };
    World {
        switch: SoftSwitch::new(&plan).unwrap(),
        names: ActiveLinks::from_topology(&topology),
        topology,
    }
}

/// Three hosts on a switch.
fn star(settings: &[(&str, &str)]) -> World {
    world(single_switch(3, RATE, DELAY).unwrap(), settings, 1)
}

/// Four hosts on two leaves with four spines.
fn tiers(seed: u64) -> World {
    let wire = (RATE, DELAY);
    let topology = leaf_spine(4, 2, 4, 1, wire, wire).unwrap();
    world(topology, &[("queue", "100KB")], seed)
}

impl World {
    fn command(&mut self, now: Time, line: &str) {
        let command = self.names.read(line).unwrap().unwrap();
        self.switch.apply(now, &command);
    }

    /// A packet of 1000 bytes, numbered in its payload.
    fn send(&mut self, now: Time, (from, to): (u32, u32), ports: (u16, u16), number: u32) {
        self.send_marked(now, (from, to), ports, number, 2);
    }

    fn send_marked(
        &mut self,
        now: Time,
        (from, to): (u32, u32),
        ports: (u16, u16),
        number: u32,
        ecn: u8,
    ) {
        let mut packet = udp_v4(HostId(from), HostId(to), ports, ecn, 972);
        packet[28..32].copy_from_slice(&number.to_be_bytes());
        self.switch.on_packet(now, HostId(from), &packet);
    }

    /// All deliveries until `end`: host, time, number, mark.
    fn deliveries(&mut self, end: Time) -> Vec<(u32, Time, u32, bool)> {
        let mut found = Vec::new();
        while self.switch.deadline() <= end {
            self.switch.advance(self.switch.deadline());
            while let Some(delivery) = self.switch.poll_delivery() {
                let number = delivery.packet[28..32].try_into().unwrap();
                found.push((
                    delivery.host.0,
                    delivery.at,
                    u32::from_be_bytes(number),
                    delivery.packet[1] & 3 == 3,
                ));
            }
        }
        self.switch.advance(end);
        found
    }

    fn link(&self, name: &str) -> ForwardedLinkCounters {
        let mut links = self.switch.links();
        links
            .find(|(id, _)| self.topology.link_name(*id) == name)
            .unwrap()
            .1
    }

    /// Every packet that was received or duplicated is delivered, lost or in flight.
    fn check_conservation(&self) {
        let totals = self.switch.totals();
        let made: u64 = self.switch.links().map(|(_, link)| link.duplicated).sum();
        let dropped: u64 = self.switch.links().map(|(_, link)| link.dropped()).sum();
        let refused = totals.malformed + totals.no_route + totals.no_memory;
        assert_eq!(
            totals.received + made,
            totals.delivered + dropped + refused + self.switch.in_flight()
        );
    }
}

#[test]
fn rate_and_delay_are_exact() {
    let mut world = star(&[]);
    for number in 0..100 {
        world.send(Time::ZERO, (0, 1), (1, 2), number);
    }
    let deliveries = world.deliveries(Time::from_us(1_000_000));
    for (index, (host, at, number, _)) in deliveries.iter().enumerate() {
        // The switch stores and forwards the first packet; then packets follow back to back.
        let expected = Time::ZERO + WIRE * (index as u64 + 2) + DELAY * 2;
        assert_eq!(
            (*host, *at, *number as usize),
            (1, expected, index),
            "{deliveries:?}"
        );
    }
    assert_eq!(deliveries.len(), 100);
    assert_eq!(world.link("host0-switch").largest_queue, 100_000);
    assert_eq!(world.link("switch-host1").bytes, 100_000);
    world.check_conservation();
}

#[test]
fn late_calls_do_not_make_packets_late() {
    let mut world = star(&[]);
    world.send(Time::from_us(5), (0, 1), (1, 2), 7);
    world.switch.advance(Time::from_us(900_000));
    let delivery = world.switch.poll_delivery().unwrap();
    assert_eq!(delivery.at, Time::from_us(5) + (WIRE + DELAY) * 2);
    assert_eq!(world.switch.poll_delivery(), None);
    assert_eq!(world.switch.poll_delivery(), None);
    assert_eq!(world.switch.in_flight(), 0);
    assert!(world.switch.deadline().is_never());
}

#[test]
fn changes_of_rate_and_delay_keep_the_order() {
    let mut world = star(&[]);
    world.command(
        Time::ZERO,
        "link switch>host1 delay 10ms rate 50Mbps # half",
    );
    for number in 0..10 {
        world.send(Time::ZERO, (0, 1), (1, 2), number);
    }
    let half = Time::ZERO + (WIRE + DELAY) + WIRE * 2 * 5 + Span::from_us(1);
    let mut deliveries = world.deliveries(half);
    world.command(half, "link switch>host1 reset");
    deliveries.extend(world.deliveries(Time::from_us(1_000_000)));
    assert!(deliveries.is_sorted(), "{deliveries:?}");
    let first = Time::ZERO + WIRE + DELAY + WIRE * 2 + Span::from_ms(10);
    assert_eq!(deliveries[0].1, first);
    assert_eq!(deliveries.len(), 10);
    // A packet that leaves later with a shorter delay waits for earlier packets.
    assert_eq!(deliveries[9].1, deliveries[5].1);
}

#[test]
fn queues_drop_what_does_not_fit() {
    let mut world = star(&[("queue", "20KB")]);
    for number in 0..100 {
        world.send(Time::ZERO, (0, 1), (1, 2), number);
        world.send(Time::ZERO, (2, 1), (1, 2), number);
    }
    let deliveries = world.deliveries(Time::from_us(1_000_000));
    let link = world.link("switch-host1");
    // Two packets arrive while one leaves.
    assert!(link.queue_full > 70 && link.queue_full < 82, "{link:?}");
    assert_eq!(deliveries.len() as u64 + link.queue_full, 200);
    assert_eq!(link.largest_queue, 20_000);
    world.check_conservation();
}

#[test]
fn queues_mark_between_the_thresholds() {
    let thresholds = [("queue", "1MB"), ("ecn.kmin", "20KB"), ("ecn.kmax", "40KB")];
    for (ecn, markable) in [(0, false), (1, true), (2, true)] {
        let mut world = star(&thresholds);
        for number in 0..100 {
            world.send_marked(Time::ZERO, (0, 1), (1, 2), number, ecn);
            world.send_marked(Time::ZERO, (2, 1), (1, 2), 1000 + number, ecn);
        }
        let deliveries = world.deliveries(Time::from_us(1_000_000));
        assert_eq!(deliveries.len(), 200);
        let marks: Vec<bool> = deliveries.iter().map(|delivery| delivery.3).collect();
        if !markable {
            assert!(!marks.contains(&true));
            continue;
        }
        // The queue grows by one packet with each departure, up to 100 packets, and shrinks again.
        assert!(!marks[..20].contains(&true), "below kmin: {marks:?}");
        assert!(!marks[41..159].contains(&false), "above kmax: {marks:?}");
        assert!(!marks[180..].contains(&true), "below kmin: {marks:?}");
        assert!(marks[20..41].contains(&true) && marks[20..41].contains(&false));
        let marked = marks.iter().filter(|marked| **marked).count() as u64;
        assert_eq!(world.link("switch-host1").marked, marked);
        assert_eq!(world.link("host0-switch").marked, 0, "hosts do not mark");
    }
}

#[test]
fn ports_spread_packets_over_spines_as_the_simulated_switches_do() {
    let mut world = tiers(7);
    for port in 0..400 {
        world.send(Time::from_us(100 * u64::from(port)), (0, 2), (port, 9), 0);
    }
    assert_eq!(world.deliveries(Time::from_us(1_000_000)).len(), 400);
    let topology = &world.topology;
    let forwarding = Forwarding::new(
        topology,
        Routes::compute(topology).unwrap(),
        &SwitchParameters::default(),
        7,
    );
    for spine in 0..4 {
        let name = format!("leaf0-spine{spine}");
        let crosses = |port: &u16| {
            let packet = udp_v4(HostId(0), HostId(2), (*port, 9), 0, 0);
            let hash = Headers::parse(&packet).unwrap().hash(HostId(0));
            topology.link_name(forwarding.next_link(0, HostId(2), hash)) == name
        };
        let expected = (0..400).filter(crosses).count() as u64;
        assert_eq!(world.link(&name).packets, expected);
        // The expectation is 100 each; 5 sigma are 43.
        assert!(expected.abs_diff(100) < 43, "{expected}");
    }
    let leaf = topology.switch_node(0);
    assert_eq!(topology.link_ends(forwarding.uplink(HostId(0))).1, leaf);
    assert_eq!(leaf, NodeId(4));
}

#[test]
fn one_flow_keeps_its_order() {
    let mut world = tiers(3);
    for number in 0..1000 {
        let now = Time::from_us(u64::from(number) * 30);
        world.send(now, (0, 2), (5, 6), number);
        world.send(now, (1, 3), (number as u16, 6), 5000);
    }
    let deliveries = world.deliveries(Time::from_us(10_000_000));
    let own: Vec<u32> = deliveries
        .iter()
        .filter(|delivery| delivery.0 == 2)
        .map(|d| d.2)
        .collect();
    assert_eq!(own, (0..1000).collect::<Vec<_>>());
}

#[test]
fn links_that_are_down_lose_all_until_they_are_up() {
    let mut world = star(&[]);
    let down = world.names.read("link switch-host1 down").unwrap().unwrap();
    let up = world.names.read("link switch-host1 up").unwrap().unwrap();
    world.switch.schedule(Time::from_us(20_000), up);
    world.switch.schedule(Time::from_us(10_000), down);
    for number in 0..30 {
        let now = Time::from_us(1000 * u64::from(number));
        world.deliveries(now);
        world.send(now, (0, 1), (1, 2), number);
        world.send(now, (1, 0), (1, 2), 100 + number);
        world.send(now, (1, 2), (1, 2), 200 + number);
    }
    let totals = world.switch.totals();
    assert_eq!(
        totals.delivered, 57,
        "each of the last ones is under way: {totals:?}"
    );
    assert_eq!(world.switch.in_flight(), 3);
    assert_eq!(world.link("switch-host1").down, 10);
    assert_eq!(world.link("host1-switch").down, 20);
    world.check_conservation();
}

#[test]
fn impairments_happen_as_often_as_they_should() {
    let mut world = star(&[]);
    let all = "link host0>switch loss 10% duplicate 5% reorder 20% 1ms corrupt 2% mark 30%";
    world.command(Time::ZERO, all);
    let count = 20_000;
    let mut deliveries = Vec::new();
    for number in 0..count {
        let now = Time::from_us(100 * u64::from(number));
        world.send(now, (0, 1), (1, 2), number);
        deliveries.extend(world.deliveries(now));
    }
    deliveries.extend(world.deliveries(Time::from_us(10_000_000)));
    let link = world.link("host0-switch");
    // Each count is within 5 sigma. All impairments except loss apply only to packets that are not lost.
    let near = |count: u64, expected: u64, sigma: u64| count.abs_diff(expected) < 5 * sigma;
    assert!(near(link.lost, 2000, 43), "{link:?}");
    assert!(near(link.duplicated, 900, 30), "{link:?}");
    assert!(near(link.reordered, 3600, 54), "{link:?}");
    assert!(near(link.corrupted, 360, 19), "{link:?}");
    assert!(near(link.marked, 5400, 62), "{link:?}");
    let numbers: Vec<u32> = deliveries.iter().map(|delivery| delivery.2).collect();
    let distinct: BTreeSet<u32> = numbers.iter().copied().collect();
    let unharmed = distinct.iter().filter(|number| **number < count).count() as u64;
    let arrived = u64::from(count) - link.lost;
    assert!(
        arrived - link.corrupted <= unharmed && unharmed <= arrived,
        "{unharmed} of {arrived}"
    );
    assert_eq!(numbers.len() as u64, arrived + link.duplicated);
    let inversions = numbers.windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert!(inversions > 2000, "{inversions}");
    world.check_conservation();
}

#[test]
fn losses_of_the_scenario_are_there() {
    let mut topology = single_switch(3, RATE, DELAY).unwrap();
    topology.cables[0].packet_loss = 0.5;
    let mut world = world(topology, &[], 1);
    for number in 0..1000 {
        world.send(
            Time::from_us(80 * u64::from(number)),
            (0, 1),
            (1, 2),
            number,
        );
    }
    let delivered = world.deliveries(Time::from_us(1_000_000)).len() as u64;
    assert_eq!(delivered + world.link("host0-switch").lost, 1000);
    // The expectation is 500; 5 sigma are 80.
    assert!(delivered.abs_diff(500) < 80, "{delivered}");
}

#[test]
fn packets_to_nobody_and_packets_that_are_none_are_counted() {
    let mut world = star(&[]);
    let mut send = |packet: &[u8]| world.switch.on_packet(Time::ZERO, HostId(0), packet);
    send(&[]);
    send(&[0x45; 19]);
    send(&[0x00; 64]);
    send(&udp_v4(HostId(0), HostId(3), (1, 2), 0, 10));
    send(&udp_v6(HostId(0), HostId(77), (1, 2), 0, 10));
    send(&udp_v6(HostId(0), HostId(2), (1, 2), 0, 10));
    send(&udp_v4(HostId(0), HostId(1), (1, 2), 0, 2000));
    let totals = world.switch.totals();
    assert_eq!((totals.malformed, totals.no_route), (3, 2));
    assert_eq!(totals.no_memory, 1, "too long");
    assert_eq!(world.switch.in_flight(), 1);
    world.check_conservation();
}

#[test]
fn hosts_with_several_nics_are_refused() {
    let mut topology = single_switch(3, RATE, DELAY).unwrap();
    topology.further_nics = vec![HostId(0)];
    let parameters = SwitchParameters::default();
    let plan = FabricPlan {
        routes: Routes::compute(&topology).unwrap(),
        topology: &topology,
        switch: &parameters,
        propagation_rtt: DELAY,
        host_queue: Bytes::new(1),
        longest_packet: 1500,
        seed: 1,
    };
    assert_eq!(
        SoftSwitch::new(&plan).unwrap_err(),
        UnfitFabric::SeveralNics
    );
}

/// Choices by queue length, set for all switches or for the NICs of the fabric.
#[test]
fn choices_by_what_waits_are_refused() {
    for (routing, role, fits) in [
        (PathChoice::Ecmp, SwitchRole::Network, true),
        (PathChoice::Adaptive, SwitchRole::Network, false),
        (
            PathChoice::Adaptive,
            SwitchRole::Nic(PortChoice::Hash),
            true,
        ),
        (
            PathChoice::Ecmp,
            SwitchRole::Nic(PortChoice::LeastQueue),
            false,
        ),
    ] {
        let mut topology = single_switch(2, RATE, DELAY).unwrap();
        topology.switches[0].role = role;
        let parameters = SwitchParameters {
            routing,
            ..SwitchParameters::default()
        };
        let plan = FabricPlan {
            topology: &topology,
            routes: Routes::compute(&topology).unwrap(),
            switch: &parameters,
            propagation_rtt: DELAY,
            host_queue: Bytes::new(1_000_000),
            longest_packet: 1500,
            seed: 1,
        };
        match SoftSwitch::new(&plan) {
            Ok(_) => assert!(fits, "{routing:?} {role:?}"),
            Err(error) => {
                assert!(!fits && error == UnfitFabric::LocalChoice);
                assert!(error.fix().contains("port-choice"));
            }
        }
    }
}

/// Delivered packets: host, time and bytes.
type Delivered = Vec<(u32, Time, Vec<u8>)>;

/// Random traffic and commands, with mutated packets. The result has the deliveries and all counters.
fn random_run(seed: u64, steps: u32) -> (Delivered, Vec<ForwardedLinkCounters>, Totals) {
    const LINES: [&str; 8] = [
        "link leaf0-spine1 down",
        "link leaf*-spine1 up",
        "link * loss 3% duplicate 2%",
        "link *spine2 reorder 10% 500us",
        "link host1-leaf0 rate 10Mbps delay 3ms",
        "link *spine3 corrupt 5% mark 50%",
        "link *host* reset",
        "link * reset",
    ];
    let mut world = tiers(seed);
    let mut random = RandomStream::new(seed, Purpose::Test, 0);
    let (mut now, mut seen) = (Time::ZERO, Vec::new());
    for step in 0..steps {
        now += Span::from_ns(random.below(60_000).into());
        if random.chance(0.01) {
            let line = LINES[random.below(LINES.len() as u32) as usize];
            world.command(now, line);
        }
        let (from, to) = (random.below(4), random.below(5));
        let udp = if random.chance(0.5) { udp_v4 } else { udp_v6 };
        let ports = (random.below(8) as u16, random.below(8) as u16);
        let ecn = random.below(4) as u8;
        let length = random.below(1400) as usize;
        let mut packet = udp(HostId(from), HostId(to), ports, ecn, length);
        while random.chance(0.3) {
            let at = random.below(packet.len().min(48) as u32) as usize;
            packet[at] = random.next_u32() as u8;
        }
        if random.chance(0.1) {
            packet.truncate(random.below(packet.len() as u32 + 1) as usize);
        }
        world.switch.on_packet(now, HostId(from), &packet);
        if step % 3 == 0 {
            while let Some(delivery) = world.switch.poll_delivery() {
                seen.push((delivery.host.0, delivery.at, delivery.packet.to_vec()));
            }
            world.check_conservation();
        }
    }
    world.switch.advance(now + Span::from_ms(60_000));
    while let Some(delivery) = world.switch.poll_delivery() {
        seen.push((delivery.host.0, delivery.at, delivery.packet.to_vec()));
    }
    world.check_conservation();
    assert_eq!((world.switch.in_flight(), world.switch.queued()), (0, 0));
    let links = world.switch.links().map(|(_, link)| link).collect();
    (seen, links, world.switch.totals())
}

#[test]
fn the_same_seed_gives_the_same_outcome() {
    let first = random_run(5, 3000);
    assert_eq!(first, random_run(5, 3000));
    assert_ne!(first.0, random_run(6, 3000).0);
    assert!(first.2.malformed > 0 && first.2.no_route > 0 && first.2.delivered > 500);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn nothing_is_lost_uncounted_whatever_comes(seed in any::<u64>()) {
        random_run(seed, 400);
    }
}

/// `CLEARWAY_FUZZ_ITERATIONS` sets the number of packets (20 000 by default), all of them mutations of valid packets.
#[test]
fn no_packet_makes_the_switch_panic() {
    let iterations = number("CLEARWAY_FUZZ_ITERATIONS", cases(20_000, 100_000).into());
    for part in 0..=iterations / 20_000 {
        random_run(1_000_000 + part, iterations.min(20_000) as u32);
    }
}

#[test]
fn buffers_are_used_again() {
    let mut world = star(&[]);
    for number in 0..1000 {
        let now = Time::from_us(u64::from(number) * 1000);
        world.send(now, (0, 1), (1, 2), number);
        assert_eq!(world.deliveries(now + Span::from_us(900)).len(), 1);
    }
    assert!(world.switch.pool.in_use() <= 1);
    let packet = udp_v4(HostId(0), HostId(1), (1, 2), 2, 10);
    assert!(is_markable(Version::V4, &packet));
}

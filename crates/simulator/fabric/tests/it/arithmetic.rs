//! Completion times that can be worked out by hand, to the picosecond.

use clearway_fabric::topology::{
    CoreWiring, FatTree, PacketSizes, PathUse, Routes, Striped, Tier, Topology, dumbbell, fat_tree,
    leaf_spine, single_switch,
};
use clearway_fabric::{
    Flow, Outcome, RunControl, RunDecision, Setup, SharedBufferParameters, Simulation,
    SwitchParameters, Watch,
};
use clearway_transport::congestion::ControllerSettings;
use clearway_transport::congestion::feedback::FeedbackSettings;
use clearway_transport::paths::SelectorSettings;
use clearway_transport::{ClassSet, Profile, Reliability};
use clearway_units::{Bytes, HostId, Rate, Span, Time};
use std::sync::Arc;

const SIZES: PacketSizes = PacketSizes {
    payload: 4086,
    header: 64,
    ack: 64,
};

/// The ideal of a message of one queue pair, on one path or sprayed over 256.
fn ideal(routes: &Routes, to: u32, bytes: u64, paths: u32, sizes: PacketSizes) -> Span {
    let message = Striped {
        parts: &[Bytes::new(bytes)],
        paths: PathUse::PerQueuePair(paths),
    };
    let paths = &routes.paths;
    paths.ideal_completion(HostId(0), HostId(to), message, sizes)
}

fn run(topology: &Topology, flows: &[(u32, u32, u64)]) -> Outcome {
    run_with(topology, flows, "adaptive")
}

fn run_with(topology: &Topology, flows: &[(u32, u32, u64)], selector: &str) -> Outcome {
    let routes = Routes::compute(topology).unwrap();
    let mut profile = Profile::strack(routes.paths.network_facts(SIZES));
    profile.selector = SelectorSettings::named(selector).unwrap();
    let flow =
        |&(src, dst, bytes)| Flow::timed(HostId(src), HostId(dst), Bytes::new(bytes), Time::ZERO);
    let setup = Setup {
        topology,
        routes,
        flows: flows.iter().map(flow).collect(),
        further_classes: ClassSet::EMPTY,
        profile: Arc::new(profile),
        further_transports: Default::default(),
        switch: SwitchParameters::default(),
        buffer: None,
        link_events: Arc::default(),
        seed: 1,
    };
    run_setup(&setup)
}

fn run_setup(setup: &Setup<'_>) -> Outcome {
    let outcome = Simulation::new(setup, |_| None, Watch::Off).run(RunControl {
        threads: 1.into(),
        at_most: Time::from_us(100_000),
        coordinator: None,
        traffic: None,
        coordination_delay: None,
        on_progress: &mut |_| RunDecision::Continue,
    });
    outcome.check_conservation().unwrap();
    outcome
}

fn four_links_at_400g() -> Topology {
    let link = (Rate::from_gbps(400), Span::from_us(1));
    leaf_spine(16, 4, 4, 1, link, link).unwrap()
}

/// 400 Gb/s, four links of 1 us each way, 4086 B payload and 64 B header, 64 B acknowledgements, alone in the network: one
/// packet spends 4 x 83 ns on the wires there, 4 x 1.28 ns back and 8 us in flight; each further one adds 83 ns.
#[test]
fn a_lone_flow_takes_what_the_wires_take() {
    let topology = four_links_at_400g();
    for (bytes, ps) in [
        (4086, 8_337_120),
        (10 * 4086, 9_084_120),
        (2_000_000, 48_881_320),
    ] {
        let outcome = run(&topology, &[(0, 15, bytes)]);
        let finish = outcome.flows[0].sent.expect("finished");
        assert_eq!(finish.as_ps(), ps, "{bytes} bytes");
        let routes = Routes::compute(&topology).unwrap();
        for paths in [1, 256] {
            let ideal = ideal(&routes, 15, bytes, paths, SIZES);
            assert_eq!(ideal.as_ps(), ps, "ideal of {bytes} bytes, {paths} paths");
        }
    }
}

#[test]
fn the_fabric_knows_its_round_trip_and_bandwidth_delay_product() {
    let facts = Routes::compute(&four_links_at_400g())
        .unwrap()
        .paths
        .network_facts(SIZES);
    assert_eq!(facts.base_rtt, Span::from_ps(8_337_120));
    assert_eq!(facts.propagation_rtt, Span::from_us(8));
    assert_eq!(facts.bdp, Bytes::new(416_856));
}

/// Two links of 1 us at 100 Gb/s: 2 x 332 ns there, 2 x 5.12 ns back, 4 us in flight.
#[test]
fn hosts_on_one_switch() {
    let topology = single_switch(3, Rate::from_gbps(100), Span::from_us(1)).unwrap();
    let outcome = run(&topology, &[(0, 2, 4086)]);
    assert_eq!(outcome.flows[0].sent, Some(Time::from_ps(4_674_240)));
    assert_eq!(outcome.links.hops, 4);
    assert_eq!(outcome.links.data_hops, 2);
}

/// Two equal flows into one host: the last packet of one leaves after 2 x 10 packets have passed the last link.
#[test]
fn two_flows_share_a_link() {
    let topology = single_switch(3, Rate::from_gbps(100), Span::from_us(1)).unwrap();
    let outcome = run(&topology, &[(0, 2, 40_860), (1, 2, 40_860)]);
    let last = outcome
        .flows
        .iter()
        .map(|flow| flow.sent.unwrap())
        .max()
        .unwrap();
    // The first packet reaches the switch after 1.332 us, then 20 packets of 332 ns, 1 us to the host; the acknowledgement
    // takes 2 x 5.12 ns and 2 us.
    assert_eq!(
        last.as_ps(),
        1_332_000 + 20 * 332_000 + 1_000_000 + 2 * 5_120 + 2_000_000
    );
}

/// Messages whose windows never fill: one packet, two with a short or long second, several.
const MESSAGES: [u64; 7] = [1, 4086, 4087, 4986, 8172, 8173, 10 * 4086 + 77];

fn completion(topology: &Topology, to: u32, bytes: u64) -> (Span, Span) {
    let routes = Routes::compute(topology).unwrap();
    let ideal = ideal(&routes, to, bytes, 1, SIZES);
    // On several paths a short packet may overtake a long one.
    let outcome = run_with(topology, &[(0, to, bytes)], "single");
    (outcome.flows[0].sent.unwrap() - Time::ZERO, ideal)
}

#[test]
fn the_ideal_is_exact_but_for_acknowledgements_when_the_ends_of_a_path_are_alike() {
    // On a slower link in the middle an acknowledgement may wait for the one before it.
    let none = Span::ZERO;
    let one = Rate::from_gbps(100).span_of(Bytes::new(64));
    for (hosts, between, wait) in [
        (100, 400, none),
        (100, 200, none),
        (50, 50, none),
        (400, 100, one),
        (200, 100, one),
    ] {
        let link = |gbps| (Rate::from_gbps(gbps), Span::from_ns(500));
        let topology = dumbbell(1, 1, link(hosts), link(between)).unwrap();
        for bytes in MESSAGES {
            let (fct, ideal) = completion(&topology, 1, bytes);
            assert!(
                ideal <= fct && fct <= ideal + wait,
                "{hosts} and {between} Gb/s, {bytes} bytes: {fct} {ideal}"
            );
        }
    }
}

#[test]
fn the_ideal_is_never_too_long() {
    for rates in [
        [100, 400, 800],
        [400, 100, 100],
        [100, 100, 400],
        [400, 200, 100],
    ] {
        let tier = |down_ports, up_ports, gbps| Tier {
            down_ports,
            up_ports,
            link_rate: Rate::from_gbps(gbps),
            link_delay: Span::from_us(1),
            switch_latency: Span::ZERO,
            bundle: 1,
        };
        let topology = fat_tree(&FatTree {
            hosts: 8,
            hosts_per_pod: 4,
            tiers: vec![
                tier(2, 2, rates[0]),
                tier(2, 2, rates[1]),
                tier(2, 0, rates[2]),
            ],
            cores: CoreWiring::Interleaved,
        })
        .unwrap();
        for bytes in MESSAGES {
            let (fct, ideal) = completion(&topology, 7, bytes);
            assert!(
                ideal <= fct && fct < ideal + Span::from_us(1),
                "{rates:?}, {bytes} bytes: {fct} {ideal}"
            );
        }
    }
}

/// 100 Gb/s through one switch with a shared buffer, links of 1 us, 1000 B payload and 48 B headers, acknowledgements of 60 B:
/// 100,000 packets of 83.84 ns, 83.84 ns on the second link, 4 us in flight, and the last acknowledgement 2 x 4.8 ns on the
/// wires.
#[test]
fn a_lone_roce_flow_takes_what_the_wires_take() {
    let sizes = PacketSizes {
        payload: 1000,
        header: 48,
        ack: 60,
    };
    let topology = single_switch(2, Rate::from_gbps(100), Span::from_us(1)).unwrap();
    let routes = Routes::compute(&topology).unwrap();
    let mut profile = Profile::strack(routes.paths.network_facts(sizes));
    assert_eq!(profile.network.ack, 60);
    profile.reliability = Reliability::named("go-back-n").unwrap();
    profile.controller = ControllerSettings::named("dcqcn").unwrap();
    profile.feedback = FeedbackSettings::named("interval").unwrap();
    profile.selector = SelectorSettings::named("single").unwrap();
    let bytes = Bytes::new(100_000_000);
    let expected = Span::from_ps(8_388_093_440);
    let ideal = ideal(&routes, 1, bytes.as_u64(), 1, sizes);
    let outcome = run_setup(&Setup {
        topology: &topology,
        routes,
        flows: [Flow::timed(HostId(0), HostId(1), bytes, Time::ZERO)].into(),
        further_classes: ClassSet::EMPTY,
        profile: Arc::new(profile),
        further_transports: Default::default(),
        switch: SwitchParameters::default(),
        buffer: Some(SharedBufferParameters::default()),
        link_events: Arc::default(),
        seed: 1,
    });
    assert_eq!(outcome.flows[0].sent, Some(Time::ZERO + expected));
    assert_eq!(ideal, expected);
    assert_eq!(outcome.links.marked, 0);
    assert_eq!(outcome.links.pause_frames, 0);
}

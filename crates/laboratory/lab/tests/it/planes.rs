//! Multi-plane fabrics against one plane of the same rate.

use clearway_lab::{Assembly, Finished, Laboratory, Scenario};
use clearway_units::{FlowId, Span, Time};

const PLANES: [&str; 3] = [
    "topology.kind=multi-plane",
    "topology.planes=4",
    "topology.hosts=64",
];
const ONE_PLANE: [&str; 2] = ["topology.kind=leaf-spine", "topology.hosts=64"];

/// With no congestion control in the way, over as many paths as can be.
fn read(topology: &[&str], settings: &[&str]) -> Scenario {
    let common = [
        "switch.queue=100MB",
        "switch.ecn.enabled=false",
        "transport.controller=constant",
    ];
    let all_paths = ["transport.spray=oblivious", "transport.max-paths=16384"];
    let sprays = !settings.contains(&"transport.spray=single");
    let all_paths = all_paths.iter().filter(|_| sprays);
    let settings = topology
        .iter()
        .chain(&common)
        .chain(all_paths)
        .chain(settings);
    let settings: Vec<String> = settings.map(|text| (*text).into()).collect();
    let read = Laboratory::new().read("test", "", None, &settings);
    read.unwrap_or_else(|error| panic!("{error}"))
}

fn run(topology: &[&str], settings: &[&str]) -> Finished {
    let finished = Laboratory::new().run(&read(topology, settings)).unwrap();
    assert_eq!(finished.stopped, None, "{settings:?}");
    finished
}

const fn flow(flows: &'static str) -> [&'static str; 2] {
    ["workload.kind=flows", flows]
}

/// 4150 B take 83 ns at 400 Gb/s, 332 ns at 100 Gb/s; an acknowledgement of 64 B takes 1.28 ns and 5.12 ns.
#[test]
fn a_packet_alone_is_serialised_at_the_rate_of_ports() {
    let one_packet = flow(r#"workload.flows=["0->63 4086B"]"#);
    let packet_size = [
        "transport.payload=4086B",
        "transport.header=64B",
        "transport.ack-size=64B",
    ];
    let settings = [&one_packet[..], &packet_size].concat();
    let time = |topology: &[&str]| {
        let assembly = Assembly::new(&read(topology, &settings)).unwrap();
        let finished = run(topology, &settings).flows[0].finished.unwrap();
        assert_eq!(
            finished.since(Time::ZERO),
            assembly.ideal_completion(FlowId(0))
        );
        finished.since(Time::ZERO)
    };
    let (ps, us) = (Span::from_ps, Span::from_us);
    assert_eq!(time(&ONE_PLANE), us(8) + ps(4 * (83_000 + 1_280)));
    let planes = us(8) + ps(2 * (83_000 + 1_280) + 4 * (332_000 + 5_120));
    assert_eq!(time(&PLANES), planes);
}

/// A packet takes 332 ns at 100 Gb/s, and 83 ns at 400 Gb/s: so is each wait for another packet four times as long. Where neither NICs nor
/// switches leave the choice of links to a hash, there are about ten of these waits; a hash gives some links more than others.
#[test]
fn a_permutation_takes_little_longer_than_in_one_plane() {
    let time = |topology: &[&str], routing: &str| {
        let permutation = ["workload.kind=permutation", "workload.message=2MB", routing];
        let finished = run(topology, &permutation);
        finished.longest_completion().unwrap()
    };
    let (adaptive, ecmp) = ("switch.routing=adaptive", "switch.routing=ecmp");
    let (planes, one) = (time(&PLANES, adaptive), time(&ONE_PLANE, adaptive));
    assert!(
        planes > one && planes < one + Span::from_us(6),
        "{planes} {one}"
    );
    let hashed = [&PLANES[..], &["topology.port-choice=hash"]].concat();
    let one = time(&ONE_PLANE, ecmp).as_us();
    for (topology, most) in [(&PLANES[..], 1.2), (&hashed, 1.3)] {
        let ratio = time(topology, ecmp).as_us() / one;
        assert!((1.0..most).contains(&ratio), "{topology:?}: {ratio}");
    }
}

/// Packets of 4150 B take 332 ns at a port: the last of four comes so much later than at the whole rate.
#[test]
fn a_message_alone_is_shared_out_over_all_ports() {
    let message = flow(r#"workload.flows=["0->63 2MB"]"#);
    let time = |topology: &[&str], more: &str| {
        let finished = run(topology, &[&message[..], &[more]].concat());
        finished.longest_completion().unwrap()
    };
    for spray in ["transport.spray=single", "transport.spray=oblivious"] {
        let (planes, one) = (time(&PLANES, spray), time(&ONE_PLANE, spray));
        assert!(
            planes > one && planes < one + Span::from_us(3),
            "{spray}: {planes} {one}"
        );
    }
    let hashed = [&PLANES[..], &["topology.port-choice=hash"]].concat();
    let single = time(&hashed, "transport.spray=single");
    assert!(
        single > Span::from_us(160),
        "one port of 100 Gb/s: {single}"
    );
}

#[test]
fn a_dead_port_costs_its_share_of_the_rate() {
    let settings = flow(r#"workload.flows=["0->63 16MB"]"#);
    let time = |links: &str| {
        let settings = [&settings[..], &[links]].concat();
        run(&PLANES, &settings)
            .longest_completion()
            .unwrap()
            .as_us()
    };
    let whole = time("topology.links=[]");
    // 16 MB in packets of 4150 B at 400 Gb/s take 325 us.
    assert!((325.0..370.0).contains(&whole), "{whole}");
    for dead in ["nic0-leaf2.0", "nic63-leaf1.3"] {
        let time = time(&format!("topology.links=[\"{dead} down\"]"));
        // Three of four ports take 433 us.
        assert!((433.0..493.0).contains(&time), "{dead}: {time}");
    }
}

#[test]
fn what_makes_no_planes_is_refused() {
    let refused = |settings: &[&str]| {
        let settings = PLANES.iter().chain(settings);
        let settings: Vec<String> = settings.map(|text| (*text).into()).collect();
        let read = Laboratory::new().read("test", "", None, &settings);
        let built = read.and_then(|scenario| Assembly::new(&scenario).map(|_| ()));
        built.unwrap_err().to_string()
    };
    let errors = [
        refused(&["topology.planes=0"]),
        refused(&["topology.planes=3"]),
        refused(&["topology.hosts-per-leaf=5"]),
        refused(&["topology.oversubscription=3"]),
        refused(&["topology.spines=4", "topology.oversubscription=2"]),
        refused(&["topology.nic-delay=1us"]),
        refused(&["topology.link-delay=1ps"]),
        refused(&["topology.link-delay=1ns"]),
        refused(&["topology.port-choice=ecmp"]),
        refused(&["transport.kind=1rc"]),
    ];
    insta::assert_snapshot!(errors.join("\n"));
}

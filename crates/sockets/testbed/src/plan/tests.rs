use super::*;
use crate::setup::BedSetup;
use clearway_lab::Laboratory;

/// Keys of a fabric of four hosts, and `keys`.
fn small(keys: &[&str]) -> Vec<String> {
    let small = [
        "topology.kind=\"leaf-spine\"",
        "topology.hosts=4",
        "topology.hosts-per-leaf=2",
        "topology.spines=2",
        "topology.link-rate=\"100Mbps\"",
    ];
    small.iter().chain(keys).map(ToString::to_string).collect()
}

fn setup(keys: &[&str], switches: Switches) -> Result<BedSetup, Fault> {
    BedSetup::new(&Laboratory::new(), "quickstart", &small(keys), switches)
}

fn plan(keys: &[&str], switches: Switches) -> Result<BedPlan, Fault> {
    let setup = setup(keys, switches)?;
    let name = BedName::new("x").unwrap();
    BedPlan::new(&name, &setup.assembly, &setup.ports(), switches)
}

#[test]
fn a_leaf_spine_fabric_becomes_namespaces() {
    let plan = plan(&[], Switches::Kernel).unwrap();
    assert!(!plan.needs_netem);
    insta::assert_snapshot!(plan.to_text());
}

#[test]
fn hosts_alone_are_made_for_switches_in_user_space() {
    let plan = plan(&[], Switches::Soft).unwrap();
    insta::assert_snapshot!(plan.to_text());
}

#[test]
fn packets_of_connections_carry_the_payload_of_the_scenario() {
    for payload in [900, 1000, 1357, 4096] {
        let key = format!("transport.payload=\"{payload}B\"");
        let setup = setup(&[&key], Switches::Soft).unwrap();
        let network = setup.settings.profile(clearway_units::Span::ZERO).network;
        assert_eq!(network.payload, payload);
    }
}

/// Devices of a bed of kernel switches that delay or lose packets, with their settings.
fn impaired(keys: &[&str]) -> Vec<String> {
    let plan = plan(keys, Switches::Kernel).unwrap();
    let text = plan.to_text();
    let found = text.lines().filter(|line| line.contains("netem"));
    let found: Vec<String> = found
        .map(|line| line.replace(" tc: qdisc replace dev ", " "))
        .map(|line| line.replace(" root handle 1: netem limit 100000", ""))
        .collect();
    assert_eq!(plan.needs_netem, !found.is_empty());
    found
}

#[test]
fn delays_and_losses_that_the_scenario_gives_are_made_once_for_each_link() {
    let all = impaired(&["topology.link-delay=\"2ms\""]);
    assert_eq!(all.len(), 16);
    assert!(
        all.iter()
            .all(|line| line.ends_with(" delay 2000us loss 0%")),
        "{all:?}"
    );
    let fabric = impaired(&["topology.fabric-link-delay=\"2ms\""]);
    assert_eq!(fabric.len(), 8);
    assert_eq!(fabric[0], "cw-x-leaf0 p2 delay 2000us loss 0%");
    let one = impaired(&["topology.links=[\"leaf0-spine1 delay=3ms packet-loss=0.25\"]"]);
    let expected = [
        "cw-x-leaf0 p3 delay 3000us loss 25%",
        "cw-x-spine1 p0 delay 3000us loss 25%",
    ];
    assert_eq!(one, expected);
    // 12 kbit of a full frame, with an error rate of one in a million.
    let errors = impaired(&["topology.bit-error-rate=1e-6"]);
    assert_eq!(errors.len(), 16);
    assert!(
        errors[0].starts_with("cw-x-h0 cw0 delay 0us loss 1.18"),
        "{errors:?}"
    );
}

#[test]
fn a_link_that_dies_is_whole_again_by_the_steps_that_made_it() {
    for (keys, parent) in [
        (&[][..], "root"),
        (&["topology.link-delay=\"2ms\""], "parent 1: handle 2:"),
    ] {
        let plan = plan(keys, Switches::Kernel).unwrap();
        let setup = setup(keys, Switches::Kernel).unwrap();
        let topology = &setup.assembly.topology;
        let is_uplink = |link: &LinkId| topology.link_name(*link) == "leaf0-spine1";
        let cable = topology.links_up().find(is_uplink).unwrap().cable();
        let death = plan.death(&setup.assembly, &setup.ports(), cable);
        let death: Vec<_> = death
            .iter()
            .map(|step| (step.namespace.as_deref(), step.batch.as_str()))
            .collect();
        let bucket =
            |device: &str, rest: &str| format!("qdisc replace dev {device} {parent} tbf {rest}\n");
        let dead = "rate 8bit burst 1 limit 1";
        assert_eq!(
            death,
            [
                (Some("cw-x-leaf0"), bucket("p3", dead).as_str()),
                (Some("cw-x-spine1"), bucket("p0", dead).as_str()),
            ]
        );
        let alive = bucket("p3", "rate 100000000bit burst 1514 limit 95616");
        let shapes: Vec<&CommandBatch> = plan.shapes().collect();
        assert_eq!(shapes.len(), 8);
        let leaf = shapes
            .iter()
            .find(|step| step.namespace.as_deref() == Some("cw-x-leaf0"));
        assert!(leaf.unwrap().batch.contains(&alive), "{leaf:?}");
    }
}

#[test]
fn what_no_bed_can_be_is_refused_with_a_fix() {
    let fault = |keys: &[&str]| plan(keys, Switches::Kernel).unwrap_err();
    let faults = [
        (&["topology.hosts=128"][..], "has 194 hosts and switches"),
        (
            &["topology.link-rate=\"400Gbps\""],
            "one machine cannot carry",
        ),
        (&["switch.kind=\"shared-buffer\""], "lossless switches"),
        (&["switch.routing=\"adaptive\""], "by their queues"),
        (
            &["topology.kind=\"multi-plane\"", "topology.planes=2"],
            "by their queues",
        ),
        (
            &["transport.kind=\"dctcp\""],
            "no transport of go-back-n, dctcp",
        ),
        (&["transport.max-paths=256"], "256 paths"),
        (&["workload.kind=\"ring-all-reduce\""], "belong to jobs"),
        (&["switch.queue=\"100B\""], "too little for a packet"),
        (&["workload.message=\"1GB\""], "at most 268435456"),
    ];
    for (keys, expected) in faults {
        let fault = fault(keys);
        assert!(fault.what.contains(expected), "{keys:?}: {fault}");
        assert!(!fault.fix.is_empty());
    }
}

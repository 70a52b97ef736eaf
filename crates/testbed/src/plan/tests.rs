use super::*;
use crate::setup::Setup;
use clearway_lab::Laboratory;

fn plan(keys: &[&str], switches: Switches) -> Result<Plan, Fault> {
    let mut all = vec![
        "topology.kind=\"leaf-spine\"".to_owned(),
        "topology.hosts=4".into(),
        "topology.hosts-per-leaf=2".into(),
        "topology.spines=2".into(),
        "topology.link-rate=\"100Mbps\"".into(),
    ];
    all.extend(keys.iter().map(ToString::to_string));
    let setup = Setup::new(&Laboratory::new(), "quickstart", &all, switches)?;
    let name = BedName::new("x").unwrap();
    Plan::new(&name, &setup.assembly, setup.ports(), switches)
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
fn delays_that_the_scenario_gives_need_netem() {
    let plan = plan(&["topology.link-delay=\"2ms\""], Switches::Kernel).unwrap();
    assert!(plan.needs_netem);
    let text = plan.to_text();
    assert!(text.contains("netem limit 100000 delay 2000us"), "{text}");
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

//! Flows know the section of the scenario that they belong to, whatever makes them.

use clearway_lab::{Assembly, Laboratory, Scenario};
use std::collections::BTreeMap;

const MIX: &str = r#"
    topology = { kind = "leaf-spine", hosts = 32, hosts-per-leaf = 8 }
    [[workload]]
    kind = "permutation"
    hosts = 16
    [[workload]]
    kind = "ring-all-reduce"
    name = "training"
    ranks = 4
    [[workload]]
    kind = "incast"
    senders = 8
    [[workload]]
    kind = "incast"
    name = "burst"
    senders = 4
"#;

fn scenario(settings: &[&str]) -> Scenario {
    let settings: Vec<String> = settings.iter().map(|text| (*text).to_owned()).collect();
    Laboratory::new()
        .read("test", MIX, None, &settings)
        .unwrap()
}

/// Number of flows of each section.
fn flows(scenario: &Scenario) -> BTreeMap<String, usize> {
    let names = scenario.section_names();
    let assembly = Assembly::new(scenario).unwrap();
    let mut counts = BTreeMap::new();
    for flow in &assembly.workload.flows {
        *counts
            .entry(names[flow.section as usize].clone())
            .or_default() += 1;
    }
    counts
}

fn expected(counts: &[(&str, usize)]) -> BTreeMap<String, usize> {
    let counts = counts.iter();
    counts.map(|&(name, count)| (name.into(), count)).collect()
}

#[test]
fn flows_and_connections_of_jobs_know_their_section() {
    let counts = [
        ("burst", 4),
        ("incast", 8),
        ("permutation", 16),
        ("training", 4),
    ];
    assert_eq!(flows(&scenario(&[])), expected(&counts));
}

#[test]
fn pieces_of_an_attack_stay_in_their_section() {
    let attack = [
        "workload[2].attack.kind=parallel",
        "workload[2].attack.qps=3",
        "workload[2].attack.hosts=0-31",
    ];
    let counts = [
        ("burst", 4),
        ("incast", 24),
        ("permutation", 16),
        ("training", 4),
    ];
    assert_eq!(flows(&scenario(&attack)), expected(&counts));
}

#[test]
fn sections_of_one_name_count_as_one() {
    let counts = [("burst", 12), ("permutation", 16), ("training", 4)];
    assert_eq!(
        flows(&scenario(&["workload[2].name=burst"])),
        expected(&counts)
    );
}

#[test]
fn names_and_tenants_are_in_the_resolved_scenario_only_where_they_are_given() {
    let resolved = scenario(&[]).resolved();
    let sections: Vec<&str> = resolved.split("[[workload]]").collect();
    assert!(sections[2].contains("name = \"training\""), "{resolved}");
    assert!(!sections[1].contains("name ="), "{resolved}");
    let again = Laboratory::new()
        .read("again", &resolved, None, &[])
        .unwrap();
    assert_eq!(again.resolved(), resolved);
    assert!(!resolved.contains("tenant ="), "{resolved}");
    let owned = scenario(&["workload[2].tenant=lab"]);
    let sections = owned.resolved();
    let sections: Vec<&str> = sections.split("[[workload]]").collect();
    let of_tenant = sections
        .iter()
        .map(|text| text.contains("tenant = \"lab\""));
    let of_tenant: Vec<bool> = of_tenant.collect();
    assert_eq!(of_tenant, [false, false, false, true, false]);
    assert_eq!(owned.tenants().of_section, [0, 0, 1, 0]);
    let auto = scenario(&["workload[1].name=auto"]);
    assert!(!auto.resolved().contains("training"));
    assert_eq!(auto.section_names()[1], "ring-all-reduce");
}

#[test]
fn names_and_tenants_change_no_result() {
    let digest = |scenario: &Scenario| {
        let assembly = Assembly::new(scenario).unwrap();
        let options = clearway_lab::RunOptions {
            threads: 1.into(),
            on_progress: &mut |_| clearway_lab::RunDecision::Continue,
            on_flow: &mut |_, _, _| (),
        };
        assembly.run(options, clearway_lab::Watch::Off).digest
    };
    assert_eq!(
        digest(&scenario(&[])),
        digest(&scenario(&["workload[0].name=x", "workload[3].name=x"]))
    );
    assert_eq!(
        digest(&scenario(&[])),
        digest(&scenario(&["workload[0].tenant=x", "workload[3].tenant=y"]))
    );
}

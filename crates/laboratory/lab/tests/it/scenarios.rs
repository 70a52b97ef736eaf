//! Scenarios that are read, assembled and run.

use clearway_lab::scenario::TransportSettings;
use clearway_lab::{Assembly, Laboratory, Registry, Scenario, ScenarioError};

fn read_with(text: &str, overrides: &[&str]) -> Result<Scenario, ScenarioError> {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    Scenario::read(&Registry::builtin(), "s.toml", text, None, &overrides)
}

fn read(text: &str) -> Scenario {
    read_with(text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn impossible_transports_say_why() {
    let error = |text: &str| match read_with(text, &[]) {
        Err(error) => error.to_string(),
        Ok(scenario) => match Assembly::new(&scenario) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{text} is taken"),
        },
    };
    for (text, expected) in [
        ("transport.kind = \"roce\"\n", "there is no \"roce\""),
        (
            "transport.reliability = \"go-back\"\n",
            "there is no \"go-back\"",
        ),
        (
            "transport.feedback = \"intervall\"\n",
            "there is no \"intervall\"",
        ),
        ("transport.qps = 4\n", "has no key `qps`"),
        (
            "[transport]\nkind = \"rocev2\"\nqps = 33\n",
            "`transport.qps` = 33",
        ),
        (
            "[transport]\nkind = \"rocev2\"\nqps = 0\n",
            "`transport.qps` cannot be 0",
        ),
        (
            "[transport]\nkind = \"rocev2\"\nack-interval = 0\n",
            "`transport.ack-interval` cannot be 0",
        ),
        (
            "[transport]\nkind = \"rocev2\"\nrto = \"1us\"\n",
            "less than the unloaded round trip",
        ),
        (
            "[transport]\nkind = \"rocev2\"\nrto-max = \"10000000s\"\n",
            "too long",
        ),
        ("[transport]\nack-size = 0\n", "`transport.ack-size` = 0B"),
        ("[transport]\nack-size = 70000\n", "`transport.ack-size`"),
    ] {
        let error = error(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_controller_without_notifications_is_warned_of() {
    let warnings = |text: &str| Assembly::new(&read(text)).unwrap().warnings;
    assert_eq!(
        warnings("switch.kind = \"shared-buffer\"\ntransport.kind = \"rocev2\"\n"),
        [""; 0]
    );
    let deaf = warnings(
        "switch.kind = \"shared-buffer\"\n[transport]\nkind = \"rocev2\"\nfeedback = \"none\"\n",
    );
    assert!(
        deaf.len() == 1 && deaf[0].contains("notifications"),
        "{deaf:?}"
    );
    assert_eq!(warnings("transport.kind = \"swift\"\n"), [""; 0]);
    let far = warnings("transport.kind = \"swift\"\ntopology.link-delay = \"5us\"\n");
    assert!(
        far.len() == 1 && far[0].contains("target of 11us"),
        "{far:?}"
    );
}

/// Every preset carries a small permutation to its end, on the fabric that it is meant for and on a lossy one.
#[test]
fn every_preset_finishes_a_permutation() {
    for (kind, _) in TransportSettings::presets() {
        for switch in ["lossy", "shared-buffer"] {
            let text = format!(
                "[topology]\nkind = \"leaf-spine\"\nhosts = 16\nhosts-per-leaf = 4\nspines = 2\n[switch]\nkind = \"{switch}\"\n[transport]\nkind = \"{kind}\"\n[[workload]]\nkind = \"permutation\"\nmessage = \"500KB\"\n"
            );
            let finished = Laboratory::new().run(&read(&text)).unwrap();
            let what = format!("{kind} over {switch}");
            assert_eq!(finished.stopped, None, "{what}");
            assert!(finished.longest_completion().is_some(), "{what}");
            if switch == "shared-buffer" {
                assert_eq!(finished.endpoints.retransmitted, 0, "{what}");
            }
        }
    }
}

#[test]
fn faults_point_at_the_key_that_was_changed_last() {
    let text = "[topology]\nhosts-per-leaf = 16\nhosts = 130\n";
    let place = |overrides: &[&str]| {
        let scenario = read_with(text, overrides).unwrap();
        let error = Assembly::new(&scenario).expect_err("it does not come out even");
        error.place.expect("a place").to_string()
    };
    assert_eq!(place(&[]), "s.toml:3");
    assert_eq!(
        place(&["topology.hosts-per-leaf=9", "seed=2"]),
        "--set topology.hosts-per-leaf=9"
    );
    assert_eq!(
        place(&["topology.hosts-per-leaf=9", "topology.hosts=131"]),
        "--set topology.hosts=131"
    );
}

#[test]
fn every_line_of_the_resolved_scenario_is_a_setting_with_a_meaning() {
    for name in ["quickstart", "incast-32"] {
        let changes = ["seed=7".into(), "workload[1].kind=one-to-one".into()];
        let scenario = Laboratory::new().load(name, &changes).unwrap();
        let settings = scenario.settings();
        let resolved = scenario.resolved();
        let lines = resolved.lines().filter(|line| line.contains(" = "));
        let written: Vec<String> = settings
            .iter()
            .map(|setting| format!("{} = {}", setting.key, setting.value))
            .collect();
        assert_eq!(written, lines.collect::<Vec<_>>());
        for setting in &settings {
            assert!(!setting.meaning.is_empty(), "{setting:?}");
            assert!(!setting.source.is_empty(), "{setting:?}");
        }
        let given: Vec<String> = settings
            .iter()
            .filter(|setting| setting.given)
            .map(|setting| format!("{}.{}", setting.section, setting.key))
            .collect();
        let common = [".name", ".seed", "topology.kind", "topology.hosts"];
        assert_eq!(given[..4], common);
        assert!(given.contains(&"workload[0].message".into()), "{given:?}");
        assert!(given.contains(&"workload[1].kind".into()), "{given:?}");
    }
}

/// A link that dies in mid-run and that no routing knows of: spraying gets round it, a single path that crosses it does not.
#[test]
fn a_link_that_dies_is_avoided_by_spraying_alone() {
    let run = |transport: &str| {
        let mut keys: Vec<String> = [
            "topology.hosts=8",
            "topology.hosts-per-leaf=4",
            "topology.spines=2",
            "topology.links=[\"leaf0-spine1 dead-from=20us\", \"leaf1-spine1 dead-from=20us\"]",
            "workload.message=\"4MB\"",
            "stop.at-most=\"20ms\"",
        ]
        .map(String::from)
        .to_vec();
        keys.push(format!("transport.kind=\"{transport}\""));
        let laboratory = Laboratory::new();
        let scenario = laboratory.load("quickstart", &keys).unwrap();
        laboratory.run(&scenario).unwrap()
    };
    let (sprayed, single) = (run("strack"), run("rocev2"));
    let done = |finished: &clearway_lab::Finished| {
        let done = finished.flows.iter().filter(|flow| flow.finished.is_some());
        done.count()
    };
    assert!(sprayed.links.corrupted > 0 && single.links.corrupted > 0);
    assert_eq!(done(&sprayed), sprayed.flows.len(), "{:?}", sprayed.links);
    assert!(done(&single) < single.flows.len(), "{:?}", single.links);
}

use super::*;
use crate::plan::Switches;
use crate::setup::BedSetup;
use std::collections::BTreeMap;

/// Flows from leaf to leaf.
const SOURCE: &str = "testbed-dead-path";

fn keys(more: &[&str]) -> Vec<String> {
    let keys = ["topology.spines=2", "topology.links=[]"];
    keys.iter().chain(more).map(ToString::to_string).collect()
}

/// Delays that a scenario gives, in microseconds by link; other links are omitted.
fn given(more: &[&str]) -> BTreeMap<String, f64> {
    let keys = keys(more);
    let laboratory = Laboratory::new();
    let delays = LinkDelays::read(&laboratory, SOURCE, &keys).unwrap();
    let topology = fabric(&laboratory.load(SOURCE, &keys).unwrap()).unwrap();
    let named = |link| (topology.link_name(link), delays.given(link).as_us());
    let named = topology.links_up().map(named);
    named.filter(|(_, us)| *us > 0.0).collect()
}

#[test]
fn a_link_has_the_delay_that_is_given_to_it_by_whichever_key() {
    assert_eq!(given(&[]), BTreeMap::new());
    let all = given(&["topology.link-delay=\"3us\""]);
    assert_eq!(all.len(), 2 * (4 + 4));
    assert!(all.values().all(|us| *us == 3.0), "{all:?}");
    let fabric = given(&["topology.fabric-link-delay=\"2ms\""]);
    assert_eq!(fabric.len(), 2 * 4);
    assert!(
        fabric
            .iter()
            .all(|(name, us)| name.contains("spine") && *us == 2000.0)
    );
    let one = given(&["topology.links=[\"leaf0-spine1 delay=5ms\"]"]);
    let expected = [("leaf0-spine1", 5000.0), ("spine1-leaf0", 5000.0)];
    assert_eq!(one, expected.map(|(name, us)| (name.to_owned(), us)).into());
    // Equal to the default, but given by the scenario.
    let usual = given(&["topology.fabric-link-delay=\"1us\""]);
    assert_eq!(usual.len(), 2 * 4);
    let both = given(&[
        "topology.link-delay=\"3us\"",
        "topology.fabric-link-delay=\"2ms\"",
    ]);
    assert_eq!((both["host0-leaf0"], both["leaf0-spine0"]), (3.0, 2000.0));
}

/// Simulated round trip of a handshake after a calibration to a number of microseconds, and the calibrated delay.
fn calibrated(more: &[&str], switches: Switches, us: u64) -> (f64, Option<String>) {
    let laboratory = Laboratory::new();
    let setup = BedSetup::new(&laboratory, SOURCE, &keys(more), switches).unwrap();
    let (assembly, software) = setup.simulated(&laboratory, Span::from_us(us)).unwrap();
    let key = software.into_iter().find(|key| key.starts_with(LINK_DELAY));
    (simulated_handshake(&assembly).as_us(), key)
}

#[test]
fn what_the_scenario_gives_is_not_put_down_to_other_links() {
    for more in [
        &[][..],
        &["topology.fabric-link-delay=\"1ms\""],
        // The key sets only one of two paths; the other path is the fastest.
        &["topology.links=[\"leaf0-spine1 delay=5ms\"]"],
        &["topology.links=[\"host0-leaf0 delay=1ms\", \"leaf0-spine1 delay=1ms\"]"],
        &["topology.links=[\"leaf1-spine0 delay=700us\", \"leaf1-spine1 delay=800us\"]"],
    ] {
        let (us, key) = calibrated(more, Switches::Soft, 9_000);
        assert!((us - 9_000.0).abs() < 0.01, "{more:?}: {us}");
        assert!(key.is_some(), "{more:?}");
    }
    let (_, key) = calibrated(&["topology.link-delay=\"1ms\""], Switches::Soft, 9_000);
    assert_eq!(key, None);
    // The calibrated delay has a lower bound, even for the fastest bed.
    let (_, key) = calibrated(&[], Switches::Kernel, 1);
    assert_eq!(key.as_deref(), Some("topology.link-delay=\"1000000ps\""));
    // Ports of the kernel pass a packet immediately: 8 links there and back.
    let (_, key) = calibrated(&[], Switches::Kernel, 80);
    assert_eq!(key.as_deref(), Some("topology.link-delay=\"10000000ps\""));
}

#[test]
fn flows_under_one_leaf_have_the_round_trip_of_two_links_each_way() {
    let more = ["workload.flows=[\"0->1 10KB at 0s\"]"];
    let (_, key) = calibrated(&more, Switches::Kernel, 80);
    assert_eq!(key.as_deref(), Some("topology.link-delay=\"20000000ps\""));
}

#[test]
fn fabrics_from_files_have_the_delays_of_their_files() {
    let folder = clearway_testing::Folder::new("delays");
    let tier = |number: u32, up: &str| {
        format!(
            "\nTier {number}\nDownlink_speed_Gbps 1\nRadix_Down 2\n{up}Downlink_Latency_ns 40000\nSwitch_Latency_ns 5000\n"
        )
    };
    let text = format!(
        "Nodes 4\nTiers 2\nPodsize 4\n{}{}",
        tier(0, "Radix_Up 2\n"),
        tier(1, "")
    );
    std::fs::write(folder.join("bed.topo"), text).unwrap();
    let file = format!("topology.file=\"{}\"", folder.join("bed.topo").display());
    let keys = vec!["topology.kind=\"file\"".to_owned(), file];
    let laboratory = Laboratory::new();
    for switches in [Switches::Kernel, Switches::Soft] {
        let setup = BedSetup::new(&laboratory, "quickstart", &keys, switches).unwrap();
        let (assembly, software) = setup.simulated(&laboratory, Span::from_us(900)).unwrap();
        assert!(!software.iter().any(|key| key.starts_with(LINK_DELAY)));
        let delay = |name: &str| {
            let topology = &assembly.topology;
            let link = topology
                .links_up()
                .find(|link| topology.link_name(*link) == name);
            let bed = setup.ports().impairments[link.unwrap().0 as usize].delay;
            (bed, topology.link_delay(link.unwrap()))
        };
        let expected = Span::from_us(45);
        assert_eq!(delay("host0-leaf0"), (expected, expected));
        assert_eq!(delay("leaf0-host0").0, Span::from_us(40));
    }
    assert_eq!(
        Switches::read(&laboratory, "quickstart", &keys).unwrap(),
        Switches::Soft
    );
}

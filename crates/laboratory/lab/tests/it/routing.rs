//! Routing by the destination's number, as InfiniBand's fat trees have it.

use clearway_lab::{Laboratory, Scenario};

/// The fat tree of TMDML's Figure 1: 8 servers in two pods, two aggregation switches each, two cores that all of these share.
fn fat_tree(settings: &[&str]) -> Scenario {
    let common = [
        "topology.kind=pods",
        "topology.pods=2",
        "topology.leaves-per-pod=2",
        "topology.hosts-per-leaf=2",
        "topology.aggs-per-pod=2",
        "topology.cores-per-agg=2",
        "topology.core-wiring=all",
        "topology.link-rate=10Gbps",
        "topology.fabric-link-rate=10Gbps",
        "switch.queue=100MB",
        "switch.ecn.enabled=false",
        "transport.controller=constant",
        "transport.spray=single",
        "transport.payload=1000B",
        "workload.kind=direct-all-gather",
        "workload.size=8MB",
    ];
    let settings = common.iter().chain(settings);
    let settings: Vec<String> = settings.map(|text| (*text).into()).collect();
    Laboratory::new().read("test", "", None, &settings).unwrap()
}

/// The time of the all-gather as a multiple of its bytes on the wire of a host.
fn ratio(settings: &[&str]) -> f64 {
    let finished = Laboratory::new().run(&fat_tree(settings)).unwrap();
    assert_eq!(finished.stopped, None);
    let time = finished.jobs[0].times[0].span().unwrap();
    time.as_us() / (7e6 * 8.0 / 10e3 * 1.064)
}

#[test]
fn the_fat_tree_of_eight_servers_has_the_switches_of_the_paper() {
    let assembly = clearway_lab::Assembly::new(&fat_tree(&[])).unwrap();
    let report = assembly.topology_report();
    assert_eq!(
        (report.hosts, report.switches, report.cables),
        (8, vec![4, 4, 2], (24, 24))
    );
    let lengths: Vec<(u32, u64)> = report.path_lengths.into_iter().collect();
    assert_eq!(lengths, [(2, 8), (4, 16), (6, 32)]);
}

#[test]
fn an_exchange_of_all_with_all_fills_a_fat_tree_that_is_routed_by_destination() {
    let by_destination = ratio(&["switch.routing=d-mod-k"]);
    assert!((1.0..1.1).contains(&by_destination), "{by_destination}");
    // By chance, some link carries half as much again.
    let by_hash = ratio(&[]);
    assert!(by_hash > 1.2 * by_destination, "{by_hash}");
}

#[test]
fn spraying_over_routes_by_destination_is_warned_of() {
    let warnings = |settings: &[&str]| {
        let assembly = clearway_lab::Assembly::new(&fat_tree(settings)).unwrap();
        assembly
            .warnings
            .iter()
            .filter(|w| w.contains("spreads nothing"))
            .count()
    };
    let by_destination = "switch.routing=d-mod-k";
    assert_eq!(warnings(&[by_destination]), 0);
    assert_eq!(warnings(&[by_destination, "transport.spray=oblivious"]), 1);
    assert_eq!(warnings(&["transport.spray=oblivious"]), 0);
}

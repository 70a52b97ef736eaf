//! Fabrics of scenarios against files of the same.

use clearway_fabric::topology::{Cable, NodeId};
use clearway_lab::{Assembly, Laboratory, Scenario};
use clearway_units::{Bytes, Rate, Span};

fn read(text: &str, changes: &[&str]) -> Scenario {
    let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
    let read = Laboratory::new().read("s.toml", text, None, &changes);
    read.unwrap_or_else(|error| panic!("{error}"))
}

fn assembly(scenario: &Scenario) -> Assembly {
    Assembly::new(scenario).unwrap_or_else(|error| panic!("{error}"))
}

const PODS: &str =
    "[topology]\nkind = \"pods\"\n[transport]\npayload = \"1000B\"\nheader = \"48B\"\n";

/// 15 other hosts on the leaf, 48 in the pod, 256 beyond.
#[test]
fn pods_are_the_fabric_of_hpcc() {
    let report = assembly(&read(PODS, &[])).topology_report();
    assert_eq!((report.hosts, report.switches), (320, vec![20, 20, 16]));
    let pairs = [(2, 320 * 15), (4, 320 * 48), (6, 320 * 256)];
    assert_eq!(report.path_lengths, pairs.into());
    assert_eq!(report.nic_rates, [Rate::from_gbps(100)]);
    assert_eq!(report.network.propagation_rtt, Span::from_us(12));
    assert_eq!(report.queue_bdp, Bytes::new(150_000));
}

#[test]
fn pods_are_as_large_as_one_says() {
    let changes = [
        "topology.pods=3",
        "topology.leaves-per-pod=2",
        "topology.hosts-per-leaf=5",
        "topology.aggs-per-pod=7",
        "topology.cores-per-agg=2",
        "topology.fabric-link-rate=auto",
        "topology.fabric-link-delay=2us",
    ];
    let report = assembly(&read(PODS, &changes)).topology_report();
    assert_eq!((report.hosts, report.switches), (30, vec![6, 21, 14]));
    assert_eq!(report.cables, (30 + 42 + 42, 30 + 42 + 42));
    assert_eq!(report.network.propagation_rtt, Span::from_us(20));
}

#[test]
fn pods_are_wired_as_hpccs_file() {
    let Some(inputs) = clearway_testing::inputs() else {
        return;
    };
    let file = format!(
        "topology.file={}",
        inputs.join("hpcc_fat_topology.txt").display()
    );
    let traffic = [
        "workload.kind=poisson",
        "workload.duration=50us",
        "workload.sizes=ali-storage",
    ];
    let own = read(PODS, &traffic);
    let theirs = read(PODS, &[&[file.as_str()], &traffic[..]].concat());
    let (a, b) = (assembly(&own), assembly(&theirs));
    let sorted = |cables: &[Cable]| -> Vec<([NodeId; 2], Rate, Span)> {
        let mut cables: Vec<_> = cables
            .iter()
            .map(|cable| (cable.ends, cable.rate, cable.delay))
            .collect();
        cables.sort_unstable();
        cables
    };
    assert_eq!(sorted(&a.topology.cables), sorted(&b.topology.cables));
    let (a, b) = (a.topology_report(), b.topology_report());
    assert_eq!(a.path_lengths, b.path_lengths);
    assert_eq!((a.switches, a.nic_rates), (b.switches, b.nic_rates));
    assert_eq!(a.network, b.network);
    let run = |scenario| Laboratory::new().run(scenario).unwrap();
    let (a, b) = (run(&own), run(&theirs));
    assert!(a.flows.len() > 200);
    assert_eq!(a.digest, b.digest);
}

/// A search for each name over all links would take minutes.
#[test]
fn thousands_of_links_are_named() {
    const HOSTS: usize = 8192;
    let list = |item: &dyn Fn(usize) -> String| {
        let items: Vec<String> = (0..HOSTS)
            .map(|host| format!("\"{}\"", item(host)))
            .collect();
        items.join(",")
    };
    let name = |host: usize| format!("host{host}-leaf{}", host / 64);
    let slower = list(&|host| match host % 2 {
        0 => format!("{} rate=25Gbps", name(host)),
        _ => format!("leaf{}-host{host} delay=3us", host / 64),
    });
    let curves: Vec<String> = (0..1024)
        .map(|host| format!("\"{}\"", name(host)))
        .collect();
    let text = format!(
        "[topology]\nkind = \"leaf-spine\"\nhosts = {HOSTS}\nhosts-per-leaf = 64\nspines = 1\nlinks = [{slower}]\n\
        [observe]\nseries.links = [{}]\ntrace.pcap = [{}, {}]\n[[workload]]\nkind = \"one-to-one\"\n",
        curves.join(","),
        list(&|host| format!("host:{host}")),
        list(&|host| format!("link:{}", name(host))),
    );
    let assembly = assembly(&read(&text, &[]));
    for host in 0..HOSTS {
        let cable = &assembly.topology.cables[host];
        assert_eq!(cable.ends[0], NodeId(host as u32));
        let is_slow = host % 2 == 0;
        assert_eq!(cable.rate == Rate::from_gbps(25), is_slow, "{host}");
        assert_eq!(cable.delay == Span::from_us(3), !is_slow, "{host}");
    }
    // Both directions of each cable, each once.
    let capture = assembly.capture.expect("places are named");
    assert_eq!(capture.places.len(), 2 * HOSTS);
}

//! Rail-optimised fabrics: nodes with NVLink, and PXN.

use crate::metered::run;
use clearway_lab::{Assembly, Finished, Laboratory, LinkId, Scenario, ScenarioError};
use clearway_units::{HostId, Rate};

/// Four nodes of four GPUs.
const RAILS: [&str; 3] = [
    "topology.kind=rail-optimised",
    "topology.nodes=4",
    "topology.gpus-per-node=4",
];

fn read(settings: &[&str]) -> Result<Scenario, ScenarioError> {
    let settings = RAILS.iter().chain(settings);
    let settings: Vec<String> = settings.map(|text| (*text).into()).collect();
    Laboratory::new().read("test", "", None, &settings)
}

fn assembly(settings: &[&str]) -> Assembly {
    let assembly = read(settings).and_then(|scenario| Assembly::new(&scenario));
    assembly.unwrap_or_else(|error| panic!("{error}"))
}

/// Bytes on all links that lead to nodes whose names begin so.
fn bytes_to(assembly: &Assembly, finished: &Finished, name: &str) -> u64 {
    let topology = &assembly.topology;
    let links = (0..).map(LinkId).zip(&finished.meters);
    let there = links.filter(|(link, _)| {
        let (_, to) = topology.link_ends(*link);
        topology.node_name(to).starts_with(name)
    });
    there.map(|(_, totals)| totals.bytes).sum()
}

const ALL_TO_ALL: [&str; 2] = ["workload.kind=all-to-all", "workload.size=1600KB"];

#[test]
fn an_all_to_all_with_pxn_loads_no_spine() {
    let plain = assembly(&ALL_TO_ALL);
    let finished = run(&plain);
    // Of each rank's 15 blocks of 100 KB, 9 are for other rails of other nodes; acknowledgements pass spines, too.
    let payload = 16 * 9 * 100_000;
    assert!(bytes_to(&plain, &finished, "spine") > payload);
    assert!(bytes_to(&plain, &finished, "nvlink") > 16 * 3 * 100_000);
    assert!(bytes_to(&plain, &finished, "nvlink") < 16 * 3 * 110_000);

    let pxn = assembly(&[&ALL_TO_ALL[..], &["workload.pxn=true"]].concat());
    let finished = run(&pxn);
    assert_eq!(bytes_to(&pxn, &finished, "spine"), 0);
    // Over NVLink 3 blocks for the node and 9 for others, over the rail 3 and 9.
    let nvlink = bytes_to(&pxn, &finished, "nvlink");
    assert!(
        (16 * 12 * 100_000..16 * 12 * 110_000).contains(&nvlink),
        "{nvlink}"
    );
}

#[test]
fn rails_without_spines_need_pxn() {
    let apart = [&ALL_TO_ALL[..], &["topology.spines=0"]].concat();
    let scenario = read(&apart).unwrap();
    let error = Assembly::new(&scenario).unwrap_err().to_string();
    assert!(
        error.contains("no path leads from host") && error.contains("pxn"),
        "{error}"
    );
    let pxn = assembly(&[&apart[..], &["workload.pxn=true"]].concat());
    assert_eq!(run(&pxn).jobs[0].times.len(), 1);
}

/// GPUs 1, 2 and 3 of a node send to GPU 0 over NVLink at once; over the rails nobody does.
#[test]
fn nvlink_neither_drops_nor_marks() {
    for kind in ["lossy", "shared-buffer"] {
        let settings = [
            "workload.kind=flows",
            r#"workload.flows=["1->0 2MB", "2->0 2MB", "3->0 2MB"]"#,
            &format!("switch.kind={kind}"),
            "switch.queue=20KB",
            "switch.ecn.kmin=5KB",
            "switch.ecn.kmax=10KB",
        ];
        let incast = assembly(&settings);
        let finished = run(&incast);
        let links = &finished.links;
        assert_eq!(
            (links.dropped, links.marked, links.pause_frames),
            (0, 0, 0),
            "{kind}"
        );
        let queue = finished.meters.iter().map(|totals| totals.peak_queue).max();
        assert!(
            queue > Some(100_000),
            "{kind}: more than queues of the network hold"
        );
        assert_eq!(bytes_to(&incast, &finished, "leaf"), 0);
    }
}

#[test]
fn flows_take_nvlink_the_rail_or_a_spine() {
    let flows = r#"workload.flows=["0->3 100KB", "0->4 100KB", "0->5 100KB"]"#;
    let assembly = assembly(&["workload.kind=flows", flows]);
    let topology = &assembly.topology;
    let nics = (0..3).map(|flow| assembly.nics(clearway_units::FlowId(flow)));
    let names: Vec<String> = nics
        .map(|(from, to)| {
            let name = |nic: HostId| topology.node_name(clearway_lab::NodeId(nic.0));
            format!("{} {}", name(from), name(to))
        })
        .collect();
    assert_eq!(names, ["host0.1 host3.1", "host0 host4", "host0 host5"]);
    let report = assembly.topology_report();
    assert_eq!((report.hosts, report.nics), (16, 32));
    // To 3 of the node and 3 of the rail over one switch, to 9 over spines.
    assert_eq!(report.path_lengths, [(2, 16 * 6), (4, 16 * 9)].into());
    assert_eq!(
        report.network.line_rate,
        Rate::from_gbps(400),
        "of the network"
    );
}

#[test]
fn loads_are_those_of_the_network() {
    let poisson = [
        "workload.kind=poisson",
        "workload.load=0.5",
        "workload.duration=2ms",
        "workload.sizes=websearch",
    ];
    let assembly = assembly(&poisson);
    let bytes: u64 = assembly
        .workload
        .flows
        .iter()
        .map(|f| f.bytes.as_u64())
        .sum();
    // 16 hosts at half of 400 Gb/s for 2 ms: 800 MB.
    assert!((500e6..1100e6).contains(&(bytes as f64)), "{bytes}");
}

#[test]
fn what_has_no_nodes_or_uneven_rails_is_refused() {
    let refused = |settings: &[&str]| {
        let scenario = read(settings).and_then(|scenario| Assembly::new(&scenario).map(|_| ()));
        scenario.unwrap_err().to_string()
    };
    let pxn = [&ALL_TO_ALL[..], &["workload.pxn=true"]].concat();
    let errors = [
        refused(&[&pxn[..], &["topology.gpus-per-node=1"]].concat()),
        refused(&["topology.leaves-per-rail=3"]),
        refused(&["topology.oversubscription=3"]),
        refused(&["topology.spines=2", "topology.oversubscription=2"]),
        refused(&["topology.nodes=4000000", "topology.gpus-per-node=4000000"]),
        refused(&["topology.nvlink-rate=0bps"]),
        refused(&["topology.nvlink-delay=0ns"]),
        refused(&["workload.kind=ring-all-reduce", "workload.pxn=true"]),
    ];
    insta::assert_snapshot!(errors.join("\n"));
}

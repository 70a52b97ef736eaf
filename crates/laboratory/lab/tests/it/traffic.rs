//! Data-centre traffic in scenarios: mixes, rates of NICs, files of sizes.

use clearway_lab::{Assembly, Laboratory, Scenario};
use clearway_units::{Bytes, HostId, Time};
use clearway_workload::{FlowSpec, Start};
use std::path::{Path, PathBuf};

const FABRIC: &str = "\
[topology]
kind = \"leaf-spine\"
hosts = 16
hosts-per-leaf = 8
link-rate = \"100Gbps\"
[transport]
kind = \"rocev2\"
";

fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn scenario(traffic: &str, base_dir: Option<&Path>) -> Scenario {
    let text = format!("{FABRIC}{traffic}");
    let read = Laboratory::new().read("s.toml", &text, base_dir, &[]);
    read.unwrap_or_else(|error| panic!("{error}"))
}

fn flows(traffic: &str) -> Vec<FlowSpec> {
    let assembly = Assembly::new(&scenario(traffic, None)).unwrap();
    assembly.workload.flows
}

fn start(flow: &FlowSpec) -> Time {
    match flow.start {
        Start::At(time) => time,
        Start::On(_) | Start::Posted(_) => unreachable!("an arrival waits for nothing"),
    }
}

const WEB: &str =
    "[[workload]]\nkind = \"poisson\"\nsizes = \"websearch\"\nload = 0.25\nduration = \"20ms\"\n";
const STORAGE: &str =
    "[[workload]]\nkind = \"poisson\"\nsizes = \"ali-storage\"\nload = 0.25\nduration = \"20ms\"\n";

#[test]
fn sections_of_a_mix_add_up_in_order_of_start() {
    let (web, mix) = (flows(WEB), flows(&format!("{WEB}{STORAGE}")));
    // 16 hosts x 25 Gb/s x 20 ms / 8 are 1 GB of each: 584 and 24467 flows.
    assert!(web.len().abs_diff(584) < 4 * 24);
    let storage = mix.len() - web.len();
    assert!(storage.abs_diff(24_467) < 4 * 156, "{storage}");
    assert!(mix.is_sorted_by_key(start));
    // A further section leaves the first as it is.
    let mut rest = mix.iter();
    assert!(web.iter().all(|flow| rest.any(|other| other == flow)));
}

#[test]
fn loads_are_relative_to_the_nic_of_each_host() {
    let text = format!("{FABRIC}{STORAGE}");
    let changes = ["topology.links=[\"host3-leaf0 rate=25Gbps\"]".to_owned()];
    let scenario = Laboratory::new()
        .read("s.toml", &text, None, &changes)
        .unwrap();
    let flows = Assembly::new(&scenario).unwrap().workload.flows;
    let of = |host| flows.iter().filter(|flow| flow.src == HostId(host)).count();
    assert!(of(2).abs_diff(1529) < 4 * 39, "{}", of(2));
    assert!(of(3).abs_diff(382) < 4 * 20, "{}", of(3));
}

#[test]
fn a_file_of_sizes_belongs_to_the_scenario() {
    const SIZED: &str =
        "[[workload]]\nkind = \"poisson\"\nsizes = \"sizes.txt\"\nduration = \"100us\"\n";
    let (here, there) = (folder("sizes-here"), folder("sizes-there"));
    for folder in [&here, &there] {
        std::fs::write(folder.join("sizes.txt"), "999 0\n1000 100\n").unwrap();
    }
    let own = scenario(SIZED, Some(&here));
    assert_eq!(own.hash(), scenario(SIZED, Some(&there)).hash());
    let resolved = own.resolved();
    let again = Laboratory::new()
        .read("resolved.toml", &resolved, None, &[])
        .unwrap();
    let built = Assembly::new(&own).unwrap().workload;
    assert!(built.flows.iter().all(|flow| flow.bytes == Bytes::new(999)));
    assert_eq!(Assembly::new(&again).unwrap().workload, built);
    assert_eq!(again.hash(), own.hash());
    std::fs::write(there.join("sizes.txt"), "0 0\n1000 100\n").unwrap();
    assert_ne!(own.hash(), scenario(SIZED, Some(&there)).hash());
}

#[test]
fn all_flows_arrive() {
    let traffic = STORAGE.replace("20ms", "200us");
    let finished = Laboratory::new().run(&scenario(&traffic, None)).unwrap();
    assert!(finished.flows.len() > 150);
    assert!(
        finished
            .flows
            .iter()
            .all(|flow| flow.completion().is_some())
    );
}

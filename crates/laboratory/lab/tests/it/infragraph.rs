//! Fabrics that are written as InfraGraph and read again: the same nodes and cables, and runs with the same digest.

use clearway_fabric::topology::TierQueues;
use clearway_lab::scenario::{InfragraphForm, infragraph_text};
use clearway_lab::{Assembly, Finished, Laboratory, RunDecision, RunOptions, Watch};
use std::path::{Path, PathBuf};

fn assembly(folder: &Path, keys: &[String]) -> Assembly {
    let read = Laboratory::new().read("s.toml", "seed = 1\n", Some(folder), keys);
    Assembly::new(&read.unwrap()).unwrap_or_else(|error| panic!("{keys:?}: {error}"))
}

fn run(assembly: &Assembly) -> Finished {
    let options = RunOptions {
        threads: 1.into(),
        on_progress: &mut |_| RunDecision::Continue,
        on_flow: &mut |_, _, _| (),
    };
    assembly.run(options, Watch::Off)
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Writes the fabric of `keys`, reads it, and compares both; `repeated` are keys that the file does not hold.
fn check(name: &str, keys: &[&str], repeated: &[&str], files: &[(&str, &str)]) {
    let folder = folder(&format!("infragraph-{name}"));
    for (file, text) in files {
        std::fs::write(folder.join(file), text).unwrap();
    }
    let traffic = [
        "workload.kind=permutation",
        "workload.message=64KB",
        "stop.at-most=5ms",
    ];
    let all = |parts: &[&[&str]]| -> Vec<String> {
        let keys = parts.iter().flat_map(|part| part.iter());
        keys.map(ToString::to_string).collect()
    };
    let keys = all(&[&traffic, keys]);
    let scenario = Laboratory::new().read("s.toml", "seed = 1\n", Some(&folder), &keys);
    let gpus = scenario.unwrap().fabric().unwrap().gpus_per_node;
    let original = assembly(&folder, &keys);
    for (form, file) in [
        (InfragraphForm::Yaml, "fabric.yaml"),
        (InfragraphForm::Json, "fabric.json"),
    ] {
        let text = infragraph_text(name, &original.topology, gpus, form);
        std::fs::write(folder.join(file), &text).unwrap();
        let key = format!("topology.file={file}");
        let keys = all(&[&traffic, &[&key], repeated]);
        let scenario = Laboratory::new().read("s.toml", "seed = 1\n", Some(&folder), &keys);
        assert_eq!(
            scenario.unwrap().fabric().unwrap().gpus_per_node,
            gpus,
            "{name}"
        );
        let again = assembly(&folder, &keys);
        let of_files = |warning: &&String| !warning.contains(".txt:");
        let warnings: Vec<&String> = original.warnings.iter().filter(of_files).collect();
        assert_eq!(
            again.warnings.iter().collect::<Vec<_>>(),
            warnings,
            "{name}"
        );
        let (old, new) = (&original.topology, &again.topology);
        assert_eq!(new.switches, old.switches, "{name}");
        assert_eq!(new.cables, old.cables, "{name}");
        let some = |queues: &[TierQueues]| {
            let given = queues.iter().rposition(|own| *own != TierQueues::default());
            queues[..given.map_or(0, |last| last + 1)].to_vec()
        };
        assert_eq!(some(&new.queues), some(&old.queues), "{name}");
        assert_eq!(new.groups, old.groups, "{name}");
        assert_eq!(
            (new.hosts, &new.further_nics),
            (old.hosts, &old.further_nics),
            "{name}"
        );
        let (first, second) = (run(&original), run(&again));
        assert_eq!(second.digest, first.digest, "{name}");
        assert!(first.links.hops > 0, "{name}");
    }
}

#[test]
fn every_kind_of_fabric_comes_back_as_it_was() {
    for (name, keys) in [
        (
            "leaf-spine",
            &["topology.hosts=16", "topology.hosts-per-leaf=4"][..],
        ),
        (
            "one-spine",
            &[
                "topology.hosts=8",
                "topology.hosts-per-leaf=4",
                "topology.spines=1",
            ],
        ),
        ("fat-tree", &["topology.kind=fat-tree", "topology.radix=4"]),
        ("pods", &["topology.kind=pods"]),
        (
            "single",
            &[
                "topology.kind=single-switch",
                "topology.hosts=5",
                "topology.link-rate=12.5Gbps",
            ],
        ),
        (
            "dumbbell",
            &[
                "topology.kind=dumbbell",
                "topology.bottleneck-delay=1234567ps",
            ],
        ),
        (
            "rails",
            &[
                "topology.kind=rail-optimised",
                "topology.nodes=4",
                "topology.gpus-per-node=4",
            ],
        ),
        (
            "planes",
            &[
                "topology.kind=multi-plane",
                "topology.hosts=8",
                "topology.hosts-per-leaf=4",
            ],
        ),
        (
            "bcube",
            &["topology.kind=bcube", "topology.first-digit=in-turn"],
        ),
        ("dragonfly", &["topology.kind=dragonfly"]),
        ("dragonfly-plus", &["topology.kind=dragonfly-plus"]),
    ] {
        check(name, keys, &[], &[]);
    }
}

#[test]
fn rules_that_are_no_part_of_a_file_are_repeated() {
    let ugal = ["topology.routing=ugal"];
    check("ugal", &["topology.kind=dragonfly", ugal[0]], &ugal, &[]);
}

/// A `.topo` with queues and latencies of switches, and links with faults.
#[test]
fn annotations_hold_what_infragraph_has_no_words_for() {
    let topo = "Nodes 16\nTiers 2\nPodsize 16\n\nTier 0\nDownlink_speed_Gbps 100\nRadix_Up 4\nRadix_Down 4\n\
        Downlink_Latency_ns 1000\nSwitch_Latency_ns 300\nQueue_Down 200000\n\nTier 1\nDownlink_speed_Gbps 100\n\
        Radix_Down 4\nDownlink_Latency_ns 1000\n";
    check("topo", &["topology.file=x.topo"], &[], &[("x.topo", topo)]);
    let faults = [
        "topology.hosts=16",
        "topology.hosts-per-leaf=4",
        "topology.links=[\"leaf0-spine0 down\", \"leaf1-spine1 rate=100Gbps\", \"host3-leaf0 packet-loss=0.01\", \
         \"leaf2-spine2 dead-from=100us bit-error-rate=1e-9\"]",
    ];
    check("faults", &faults, &[], &[]);
}

/// Hosts with several links, which have two equal NICs that are ports of one or separate, and switches with the lowest numbers.
#[test]
fn hosts_with_several_links_keep_them() {
    let graph = "8 4 12\n0 1 2 3\n4 0 100Gbps 1us 0\n4 1 100Gbps 1us 0\n5 0 100Gbps 1us 0\n5 1 100Gbps 1us 0\n\
        6 2 100Gbps 1us 0\n6 3 100Gbps 1us 0.001\n7 2 100Gbps 1us 0\n7 3 50Gbps 1us 0\n\
        0 2 400Gbps 2us 0\n1 3 400Gbps 2us 0\n0 3 400Gbps 2us 0\n1 2 400Gbps 2us 0\n";
    let files = [("g.txt", graph)];
    for nics in ["auto", "hash", "in-turn"] {
        let nics = format!("topology.nics={nics}");
        check("graph", &["topology.file=g.txt", &nics], &[], &files);
    }
    // NVSwitches of SimAI are switches of the network.
    let simai = "7 2 1 2 8 A100\n4\n5 6\n0 4 1Tbps 1us 0\n1 4 1Tbps 1us 0\n2 4 1Tbps 1us 0\n3 4 1Tbps 1us 0\n\
        0 5 1Gbps 1us 0\n1 5 1Gbps 1us 0\n2 6 1Gbps 1us 0\n3 6 1Gbps 1us 0\n";
    let simai = format!("{simai}5 6 1Gbps 1us 0\n").replacen("8 A100", "9 A100", 1);
    check("simai", &["topology.file=s.txt"], &[], &[("s.txt", &simai)]);
}

//! Fabrics that are written as InfraGraph and read again: the same nodes and cables, and runs with the same digest.

use clearway_fabric::topology::TierQueues;
use clearway_lab::scenario::{InfragraphForm, infragraph_text};
use clearway_lab::{Assembly, Finished, Laboratory, RunDecision, RunOptions, Watch};
use clearway_units::Span;
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
        ("ring", &["topology.kind=ring", "topology.hosts=5"]),
        (
            "torus",
            &["topology.kind=torus", "topology.dimensions=[4, 3]"],
        ),
        (
            "dimension-order",
            &[
                "topology.kind=mesh",
                "topology.dimensions=[3, 3]",
                "topology.routing=dimension-order",
            ],
        ),
        (
            "fully-connected",
            &["topology.kind=fully-connected", "topology.hosts=4"],
        ),
    ] {
        check(name, keys, &[], &[]);
    }
}

#[test]
fn rules_that_are_no_part_of_a_file_are_repeated() {
    let ugal = ["topology.routing=ugal"];
    check("ugal", &["topology.kind=dragonfly", ugal[0]], &ugal, &[]);
}

#[test]
fn virtual_channels_are_part_of_a_file() {
    let lossless = ["switch.kind=shared-buffer"];
    let keys = [
        "topology.kind=torus",
        "topology.dimensions=[4, 3]",
        "topology.routing=dimension-order",
        "topology.virtual-channels=2",
        lossless[0],
    ];
    check("channels", &keys, &lossless, &[]);
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
    // Hosts in a row, which forward, and one on a switch.
    let row =
        "5 1 4\n4\n0 1 100Gbps 1us 0\n1 2 100Gbps 2us 0\n2 4 200Gbps 1us 0\n3 4 100Gbps 1us 0\n";
    check("row", &["topology.file=r.txt"], &[], &[("r.txt", row)]);
}

/// Devices of one xpu, joined at their NICs.
fn joined_directly(hosts: u32, edges: &str) -> String {
    format!(
        "devices:\n- name: node\n  components:\n  - {{name: tpu, count: 1, choice: xpu}}\n  - {{name: nic, count: 4, choice: nic}}\n\
         instances: [{{name: node, device: node, count: {hosts}}}]\n\
         links: [{{name: l, physical: {{bandwidth: {{gigabits_per_second: 400}}, latency: {{us: 1}}}}}}]\nedges:\n{edges}"
    )
}

/// A ring, and a torus of 3 x 4 whose cables are in the order of the built one: rows, then columns.
#[test]
fn graphs_of_joined_hosts_are_the_fabrics_of_the_same_shape() {
    let nic = |at: &str| format!("{{instance: 'node[{at}]', component: 'nic[0]'}}");
    let edge = |ends: &str, scheme: &str| {
        let end = nic(ends);
        format!("- {{ep1: {end}, ep2: {end}, scheme: {scheme}, link: l}}\n")
    };
    let ring = joined_directly(8, &edge(":", "ring"));
    let rows = (0..4).map(|row| edge(&format!("{}:{}", row * 3, row * 3 + 3), "ring"));
    let columns = (0..3).map(|column| edge(&format!("{column}::3"), "ring"));
    let torus = joined_directly(12, &rows.chain(columns).collect::<String>());
    let folder = folder("infragraph-direct");
    for (name, text, keys) in [
        ("ring", &ring, &["topology.kind=ring", "topology.hosts=8"]),
        (
            "torus",
            &torus,
            &["topology.kind=torus", "topology.dimensions=[3, 4]"],
        ),
    ] {
        let file = format!("{name}.yaml");
        std::fs::write(folder.join(&file), text).unwrap();
        let with = |keys: &[&str]| {
            let traffic = ["workload.kind=all-to-all", "workload.size=240KB"];
            let keys = traffic.iter().chain(keys);
            assembly(&folder, &keys.map(ToString::to_string).collect::<Vec<_>>())
        };
        let (built, read) = (with(keys), with(&[&format!("topology.file={file}")]));
        assert_eq!(read.topology.cables, built.topology.cables, "{name}");
        assert_eq!(read.topology.switches, built.topology.switches, "{name}");
        assert!(
            read.warnings
                .iter()
                .any(|warning| warning.contains("hosts with links to other hosts forward packets")),
            "{:?}",
            read.warnings
        );
        assert_eq!(run(&read).digest, run(&built).digest, "{name}");
    }
}

/// Servers of three xpus in a row, each with a NIC: packets to xpus of the server pass xpus, packets to the other server do not.
#[test]
fn xpus_forward_within_their_server_alone() {
    let text = "devices:\n- name: server\n  components:\n  - {name: xpu, count: 3, choice: xpu}\n  - {name: nic, count: 3, choice: nic}\n\
        \x20 links:\n  - {name: pcie}\n  - {name: ici, physical: {bandwidth: {gigabits_per_second: 800}, latency: {ns: 500}}}\n  edges:\n\
        \x20 - {ep1: {component: xpu}, ep2: {component: nic}, scheme: one2one, link: pcie}\n\
        \x20 - {ep1: {component: 'xpu[0:2]'}, ep2: {component: 'xpu[1:3]'}, scheme: one2one, link: ici}\n\
        - name: switch\n  components: [{name: port, count: 8, choice: port}]\n\
        instances:\n- {name: host, device: server, count: 2}\n- {name: leaf, device: switch, count: 1}\n\
        links: [{name: eth, physical: {bandwidth: {gigabits_per_second: 100}, latency: {us: 1}}}]\n\
        edges:\n- {ep1: {instance: host, component: nic}, ep2: {instance: leaf, component: port}, scheme: one2one, link: eth}\n";
    let folder = folder("infragraph-xpus");
    std::fs::write(folder.join("row.yaml"), text).unwrap();
    let taken = |flow: &str| {
        let keys = [
            "topology.file=row.yaml".to_owned(),
            "transport.payload=4086B".to_owned(),
            "workload.kind=flows".to_owned(),
            format!("workload.flows=[\"{flow} 4086B\"]"),
        ];
        let finished = run(&assembly(&folder, &keys));
        finished.flows[0].completion().unwrap()
    };
    // A packet of 4150 B and its acknowledgement of 64 B, over links that take so many picoseconds for a byte, and so much delay.
    let expected = |ps_per_byte: u64, delay: Span| {
        let span = Span::from_ps((4150 + 64) * ps_per_byte) + delay + delay;
        move |taken: Span| {
            let apart = taken.saturating_sub(span).max(span.saturating_sub(taken));
            assert!(apart <= Span::from_ps(10), "{taken}, not {span}");
        }
    };
    // Xpu 1 has two links, so its router is twice as near. A link of 800 Gb/s is between routers.
    expected(10 + 10 + 5, Span::from_ns(500))(taken("0->1"));
    // Over as many links as by the leaf, and faster. The xpu on the way keeps 50 ns of each link within it.
    expected(10 + 10 + 10 + 10, Span::from_ns(900))(taken("0->2"));
    expected(80 + 80, Span::from_us(2))(taken("0->5"));
    expected(80 + 80, Span::from_us(2))(taken("2->3"));
}

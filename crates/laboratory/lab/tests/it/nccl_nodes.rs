//! Nodes that a file of NCCL describes.

use crate::metered::run;
use clearway_lab::scenario::NicNearness;
use clearway_lab::{Assembly, Finished, Laboratory, LinkId, ScenarioError};
use clearway_units::Span;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A file with a CPU for each item: its PCI switches, each with the numbers of its GPUs and of its NICs.
fn node(cpus: &[&[(&[u32], &[u32])]]) -> String {
    let mut text = String::from("<system version=\"1\">\n");
    for (numa, switches) in cpus.iter().enumerate() {
        writeln!(text, "<cpu numaid=\"{numa}\" arch=\"x86_64\">").unwrap();
        for (gpus, nics) in *switches {
            text += "<pci class=\"0x060400\">\n";
            for gpu in *gpus {
                writeln!(
                    text,
                    "<pci busid=\"0000:{gpu:02x}:00.0\" class=\"0x030200\"><gpu dev=\"{gpu}\" sm=\"90\" rank=\"{gpu}\" gdr=\"1\">\n\
                     <nvlink target=\"0000:f0:00.0\" count=\"10\" tclass=\"0x068000\"/>\n\
                     <nvlink target=\"0000:f1:00.0\" count=\"8\" tclass=\"0x068000\"/>\n</gpu></pci>"
                )
                .unwrap();
            }
            for nic in *nics {
                writeln!(
                    text,
                    "<pci busid=\"0001:{nic:02x}:00.0\" class=\"0x020700\"><nic>\n\
                     <net name=\"mlx5_{nic}\" dev=\"{nic}\" speed=\"400000\" latency=\"0.000000\" gdr=\"1\"/>\n</nic></pci>"
                )
                .unwrap();
            }
            text += "</pci>\n";
        }
        text += "</cpu>\n";
    }
    text + "</system>\n"
}

/// As a DGX H100: a PCI switch with a NIC for each of eight GPUs, four for each CPU, and a slow NIC for storage.
fn dgx() -> String {
    let storage = "<nic><net name=\"storage\" dev=\"8\" speed=\"100000\"/></nic></cpu>\n</system>";
    node(&[
        &[(&[0], &[0]), (&[1], &[1]), (&[2], &[2]), (&[3], &[3])],
        &[(&[4], &[4]), (&[5], &[5]), (&[6], &[6]), (&[7], &[7])],
    ])
    .replace("</cpu>\n</system>", storage)
}

fn folder(name: &str, text: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("nccl")
        .join(name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("node.xml"), text).unwrap();
    folder
}

fn try_assembly(folder: &Path, settings: &[&str]) -> Result<Assembly, ScenarioError> {
    let settings: Vec<String> = settings.iter().map(|text| (*text).into()).collect();
    let scenario = Laboratory::new().read("test", "seed = 1\n", Some(folder), &settings)?;
    Assembly::new(&scenario)
}

fn assembly(folder: &Path, settings: &[&str]) -> Assembly {
    let node = [&["topology.file=node.xml"], settings].concat();
    try_assembly(folder, &node).unwrap_or_else(|error| panic!("{error}"))
}

/// Bytes on each link between nodes whose names begin so.
fn bytes(assembly: &Assembly, finished: &Finished, from: &str, to: &str) -> Vec<u64> {
    let topology = &assembly.topology;
    let links = (0..).map(LinkId).zip(&finished.meters);
    let between = links.filter(|(link, _)| {
        let (begin, end) = topology.link_ends(*link);
        topology.node_name(begin).starts_with(from) && topology.node_name(end).starts_with(to)
    });
    between.map(|(_, totals)| totals.bytes).collect()
}

/// Both the fabric and what happens in it are those of the kind `rail-optimised`.
#[test]
fn a_node_with_a_nic_for_each_gpu_is_rail_optimised() {
    let folder = folder("dgx", &dgx());
    let rails = [
        "topology.kind=rail-optimised",
        "topology.gpus-per-node=8",
        "topology.nvlink-rate=2966.4Gbps",
    ];
    let cases: [&[&str]; 4] = [
        &[
            "topology.nodes=2",
            "workload.kind=all-to-all",
            "workload.size=320KB",
        ],
        &[
            "topology.nodes=2",
            "workload.kind=all-to-all",
            "workload.size=320KB",
            "workload.pxn=true",
        ],
        &[
            "topology.nodes=3",
            "transport.kind=rocev2",
            "workload.kind=ring-all-reduce",
            "workload.size=240KB",
        ],
        &[
            "topology.nodes=4",
            "topology.leaves-per-rail=2",
            "topology.spines=3",
            "topology.link-delay=2us",
            "topology.fabric-link-rate=200Gbps",
            "topology.nvlink-delay=300ns",
            "workload.message=50KB",
        ],
    ];
    for case in cases {
        let from_file = assembly(&folder, case);
        let named = try_assembly(&folder, &[&rails[..], case].concat()).unwrap();
        assert_eq!(from_file.topology.cables, named.topology.cables, "{case:?}");
        assert_eq!(from_file.topology.switches, named.topology.switches);
        let (finished, other) = (run(&from_file), run(&named));
        assert_eq!(finished.digest, other.digest, "{case:?}");
    }
}

#[test]
fn gpus_share_a_nic() {
    let folder = folder("shared", &node(&[&[(&[0, 1], &[0]), (&[2, 3], &[1])]]));
    // Each GPU of the first node sends to its counterpart.
    let flows = |pairs: &[(u32, u32)]| -> Vec<String> {
        let list = pairs
            .iter()
            .map(|(from, to)| format!("\"{from}->{to} 1MB\""));
        let list: Vec<String> = list.collect();
        vec![
            "topology.nodes=2".into(),
            "workload.kind=flows".into(),
            format!("workload.flows=[{}]", list.join(",")),
        ]
    };
    for transport in ["strack", "rocev2", "dcqcn-2016"] {
        let longest = |pairs: &[(u32, u32)]| {
            let kind = format!("transport.kind={transport}");
            let flows = flows(pairs);
            let settings: Vec<&str> = flows.iter().map(String::as_str).chain([&*kind]).collect();
            let assembly = assembly(&folder, &settings);
            assert_eq!(assembly.topology.switches.len(), 2 + 2 + 2 + 4);
            let finished = run(&assembly);
            let ends = finished.flows.iter().map(|flow| flow.finished.unwrap());
            ends.max().unwrap().as_us()
        };
        let (alone, apart, shared) = (
            longest(&[(0, 4)]),
            longest(&[(0, 4), (2, 6)]),
            longest(&[(0, 4), (1, 5)]),
        );
        // A megabyte takes 20 us at 400 Gb/s.
        assert!(
            alone > 20.0 && apart < alone * 1.01,
            "{transport}: {alone}, {apart}"
        );
        assert!(
            shared > 40.0 && shared < alone + 60.0,
            "{transport}: {alone}, {shared}"
        );
    }
}

/// A load of random traffic is a part of the rate of the NICs, however many GPUs use one.
#[test]
fn the_load_of_shared_nics_counts_them_once() {
    let bytes = |name: &str, text: &str| {
        let folder = folder(name, text);
        let keys = [
            "topology.nodes=4",
            "workload.kind=poisson",
            "workload.duration=200us",
        ];
        let assembly = assembly(&folder, &keys);
        let flows = assembly.workload.flows.iter();
        flows.map(|flow| flow.bytes.as_u64()).sum::<u64>() as f64
    };
    let apart = bytes("load-apart", &node(&[&[(&[0], &[0]), (&[1], &[1])]]));
    let shared = bytes("load-shared", &node(&[&[(&[0, 1], &[0])]]));
    assert!(
        (0.3..0.7).contains(&(shared / apart)),
        "{shared} of {apart}"
    );
}

#[test]
fn a_gpu_has_several_nics() {
    let folder = folder("several", &node(&[&[(&[0], &[0, 1]), (&[1], &[2, 3])]]));
    let keys = [
        "topology.nodes=2",
        "workload.kind=ring-all-reduce",
        "workload.size=4MB",
    ];
    for nics in ["auto", "hash", "in-turn"] {
        let sharing = format!("topology.nics={nics}");
        let assembly = assembly(&folder, &[&keys[..], &[&sharing]].concat());
        let finished = run(&assembly);
        let port = if nics == "in-turn" { "host" } else { "nic" };
        let of_leaves: Vec<Vec<u64>> = (0..4)
            .map(|leaf| bytes(&assembly, &finished, port, &format!("leaf{leaf}")))
            .collect();
        assert!(
            of_leaves.iter().all(|links| links.len() == 2),
            "{nics}: {of_leaves:?}"
        );
        let used = of_leaves
            .iter()
            .filter(|links| links.iter().all(|bytes| *bytes > 100_000));
        assert_eq!(used.count(), 4, "{nics}: {of_leaves:?}");
    }
}

#[test]
fn a_domain_of_several_hosts_shares_its_rails() {
    let hosts = node(&[&[(&[0], &[0]), (&[1], &[1])], &[(&[0], &[0]), (&[1], &[1])]])
        .replace("numaid=\"0\"", "host_hash=\"0xa\" numaid=\"0\"")
        .replace("numaid=\"1\"", "host_hash=\"0xb\" numaid=\"0\"");
    let folder = folder("domain", &hosts);
    let assembly = assembly(
        &folder,
        &["topology.nodes=2", "topology.oversubscription=2"],
    );
    let report = assembly.topology_report();
    assert_eq!(
        report.summary,
        "node.xml: 2 nodes of 4 GPUs and 4 NICs, 2 spines"
    );
    // Two leaves, two spines, two NVLink domains of four GPUs.
    assert_eq!((report.hosts, report.switches), (8, vec![4, 2]));
    assert_eq!(report.path_lengths[&2], 8 * 3 + 8 * 2);
}

/// Two GPUs and a NIC, of which only the classes are known, as in files for NCCL_TOPO_FILE.
const PLAIN: &str = "<system version=\"1\"><cpu numaid=\"0\"><pci class=\"0x060400\">\n\
        <pci busid=\"1\" class=\"0x030200\"/><pci busid=\"2\" class=\"0x030200\"/><pci busid=\"3\" class=\"0x020700\"/>\n\
        </pci></cpu></system>";

#[test]
fn rates_that_the_file_lacks_are_settings() {
    let folder = folder("plain", PLAIN);
    let keys = [
        "topology.file=node.xml",
        "topology.nodes=3",
        "topology.nvlink-rate=1920Gbps",
        "topology.link-rate=200Gbps",
    ];
    let settings: Vec<String> = keys.iter().map(|key| (*key).into()).collect();
    let scenario = Laboratory::new()
        .read("test", "", Some(&folder), &settings)
        .unwrap();
    let gpus = scenario.fabric().unwrap().node_gpus;
    let shown: Vec<(String, String, u32, Option<NicNearness>)> = gpus
        .iter()
        .map(|gpu| {
            let nic = &gpu.nics[0];
            let rate = gpu.scale_up.unwrap().to_string();
            (
                rate,
                format!("{} {}", nic.name, nic.rate),
                nic.gpus,
                gpu.nearness,
            )
        })
        .collect();
    let expected = |gpu: &str| {
        (
            gpu.into(),
            "3 200Gbps".into(),
            2,
            Some(NicNearness::PciSwitch),
        )
    };
    assert_eq!(shown, [expected("1.92Tbps"), expected("1.92Tbps")]);
    let assembly = Assembly::new(&scenario).unwrap();
    let digest = run(&assembly).digest;
    // What the resolved scenario says is the same fabric.
    let resolved = assembly.resolved(&scenario);
    let again = Laboratory::new()
        .read("again", &resolved, Some(&folder), &[])
        .unwrap();
    let again = Assembly::new(&again).unwrap();
    assert_eq!(run(&again).digest, digest);
}

#[test]
fn what_cannot_be_built_has_a_place_and_a_fix() {
    let refusal = |text: &str, settings: &[&str]| {
        let folder = folder("refused", text);
        let settings = [&["topology.file=node.xml"], settings].concat();
        match try_assembly(&folder, &settings) {
            Ok(_) => format!("{settings:?} is no error:\n{text}"),
            Err(error) => error.to_string(),
        }
    };
    let two = node(&[&[(&[0, 1], &[0])]]);
    let change = |from: &str, to: &str| {
        assert!(two.contains(from), "{from}");
        refusal(&two.replace(from, to), &["topology.nodes=2"])
    };
    let errors = [
        change("tclass=\"0x068000\"", "tclass=\"0x030200\""),
        change("sm=\"90\"", "sm=\"30\""),
        change("nvlink target", "c2c bw=\"1\" target"),
        refusal(PLAIN, &["topology.nodes=2"]),
        refusal(
            PLAIN,
            &["topology.nodes=2", "topology.nvlink-rate=1920Gbps"],
        ),
        change(" speed=\"400000\"", ""),
        change("net name", "gin name"),
        refusal(
            &node(&[&[(&[0, 1], &[0, 1])]]).replacen(
                "dev=\"0\" speed",
                "dev=\"0\" rail=\"1\" speed",
                1,
            ),
            &[],
        ),
        refusal(&two, &["topology.nodes=0"]),
        refusal(&two, &["topology.nodes=3", "topology.leaves-per-rail=2"]),
        refusal(&two, &["topology.nodes=3", "topology.oversubscription=2"]),
        refusal(
            &two,
            &[
                "topology.nodes=2",
                "topology.oversubscription=2",
                "topology.spines=1",
            ],
        ),
        refusal(&two, &["topology.nodes=1000000000"]),
        refusal(&two, &["topology.format=htsim"]),
        refusal(&two, &["topology.format=hpcc"]),
        refusal("Nodes 2\n", &["topology.format=nccl"]),
        refusal("<graphs version=\"1\"/>", &[]),
    ];
    insta::assert_snapshot!(errors.join("\n"), @r#"
    node.xml:4: GPU 0 has no NVLink to an NVSwitch or another GPU: links over PCI are not simulated
      fix: `topology.nvlink-rate` joins the GPUs of each node by a switch: 192Gbps stands for PCIe 4.0
    node.xml:4: GPU 0 has NVLinks, but no `sm` of a generation with NVLink
      fix: write `sm`, such as 90 for Hopper, or give the rate as `topology.nvlink-rate`
    node.xml:4: GPU 0 has no NVLink to an NVSwitch or another GPU: links over PCI are not simulated
      fix: `topology.nvlink-rate` joins the GPUs of each node by a switch: 192Gbps stands for PCIe 4.0
    node.xml:2: the file has no `gpu` elements, so the NVLinks of the GPUs are not known
      fix: `topology.nvlink-rate` joins the GPUs of each node by a switch: 1920Gbps stands for 12 NVLinks of `sm` 80, 2966.4Gbps for 18 of `sm` 90; or write the file with NCCL_TOPO_DUMP_FILE
    node.xml:2: NIC 3 has no `speed` above zero
      fix: write its rate in Mb/s, or give the rate of all NICs as `topology.link-rate`
    node.xml:13: NIC mlx5_0 has no `speed` above zero
      fix: write its rate in Mb/s, or give the rate of all NICs as `topology.link-rate`
    --set topology.nodes=2: impossible topology: 2 nodes as in node.xml, which has no NICs
      fix: use a file that NCCL wrote on a node with NICs, or `nodes = 1`
    node.xml:16: NIC mlx5_1 has no `rail`, but others do
      fix: write `rail` at each NIC, or at none
    --set topology.nodes=0: impossible topology: no hosts
      fix: use at least two hosts
    --set topology.leaves-per-rail=2: impossible topology: 3 nodes on 2 leaves of each rail
      fix: use a number of leaves that divides the nodes
    --set topology.oversubscription=2: impossible topology: leaves with 3 nodes cannot be oversubscribed 2:1 over 1 parallel links
      fix: make the nodes of a leaf a multiple of `oversubscription` times `parallel-links`, or give `spines`
    --set topology.spines=1: impossible topology: both `spines` and `oversubscription` are given
      fix: give one of them: `spines = "auto"` or `oversubscription = 1` leaves the other to it
    --set topology.nodes=1000000000: impossible topology: 2000000000 hosts
      fix: use at most 1048576
    node.xml:1: unknown word `<system`
      fix: use `Nodes`, `Tiers`, `Podsize` or `Tier`
    node.xml:1: the first line has 3 words, or 6 with GPUs, but it has 2
      fix: write `node_num switch_num link_num`, or `node_num gpus_per_server nvswitch_num switch_num link_num gpu_type`
    node.xml:1: this is not well-formed XML: unknown token
      fix: correct the XML, or write the file again with NCCL_TOPO_DUMP_FILE
    --set topology.file=node.xml: node.xml is a graph of NCCL; topologies are files of htsim (`.topo`), HPCC, SimAI, ASTRA-sim and NCCL, and InfraGraphs
      fix: it is not read: write the topology with NCCL_TOPO_DUMP_FILE, and choose rings or trees by the algorithm of the workload
    "#);
}

#[test]
fn what_is_not_used_is_a_warning() {
    let direct = node(&[&[(&[0, 1], &[0, 1, 2])]])
        .replace(
            "target=\"0000:f1:00.0\" count=\"8\" tclass=\"0x068000\"",
            "target=\"0000:01:00.0\" count=\"8\" tclass=\"0x030200\"",
        )
        .replace("dev=\"2\" speed=\"400000\"", "dev=\"2\" speed=\"100000\"")
        .replace("dev=\"0\" speed", "dev=\"0\" plane=\"1\" speed");
    let folder = folder("warnings", &direct);
    std::fs::write(
        folder.join("hpcc.txt"),
        "3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n",
    )
    .unwrap();
    let other = try_assembly(
        &folder,
        &[
            "topology.file=hpcc.txt",
            "topology.nodes=2",
            "topology.spines=1",
        ],
    );
    let found = [
        assembly(&folder, &["topology.nvlink-rate=1Tbps"]).warnings,
        other.unwrap().warnings,
    ];
    insta::assert_snapshot!(found.concat().join("\n"), @r"
    node.xml:10: a link to a GPU that the file does not have, or from a GPU to itself, is not used
    node.xml: NICs that are nearest to no GPU, or slower than others as near, are not used: mlx5_2
    node.xml:6: links from GPU to GPU are not used: `topology.nvlink-rate` puts a switch in their place
    node.xml: `plane` is not used: spines join the planes, unless `topology.spines` is 0
    `topology.nodes`, `topology.spines` are not used: hpcc.txt is not a topology of NCCL
    ");
}

/// Nodes without NVSwitch: links of GPUs, each pair with the number of links between them, and a NIC for so many GPUs. All on one PCI
/// switch for each NIC.
fn joined(gpus: u32, generation: &str, links: &[(u32, u32, u32)], per_nic: u32) -> String {
    let mut text = String::from("<system version=\"2\">\n<cpu numaid=\"0\" arch=\"x86_64\">\n");
    for gpu in 0..gpus {
        if per_nic > 0 && gpu % per_nic == 0 {
            let nic = gpu / per_nic;
            writeln!(
                text,
                "<pci class=\"0x060400\"><pci busid=\"0001:{nic:02x}:00.0\"><nic><net name=\"mlx5_{nic}\" dev=\"{nic}\" speed=\"100000\"/></nic></pci>"
            )
            .unwrap();
        }
        writeln!(
            text,
            "<pci busid=\"0000:{gpu:02x}:00.0\" class=\"0x030200\"><gpu dev=\"{gpu}\" {generation} rank=\"{gpu}\" gdr=\"1\">"
        )
        .unwrap();
        for (a, b, count) in links.iter().filter(|(a, b, _)| *a == gpu || *b == gpu) {
            let other = a + b - gpu;
            writeln!(
                text,
                "<nvlink target=\"0000:{other:02x}:00.0\" count=\"{count}\" tclass=\"0x030200\"/>"
            )
            .unwrap();
        }
        text += "</gpu></pci>\n";
        if per_nic > 0 && gpu % per_nic == per_nic - 1 {
            text += "</pci>\n";
        }
    }
    text + "</cpu>\n</system>\n"
}

/// Eight GPUs with six links each, as in a DGX-1 with V100: two groups of four, all joined in each, and each GPU to one of the other group.
const CUBE: [(u32, u32, u32); 16] = [
    (0, 1, 1),
    (0, 2, 1),
    (0, 3, 2),
    (0, 4, 2),
    (1, 2, 2),
    (1, 3, 1),
    (1, 5, 2),
    (2, 3, 2),
    (2, 6, 1),
    (3, 7, 1),
    (4, 5, 1),
    (4, 6, 1),
    (4, 7, 2),
    (5, 6, 2),
    (5, 7, 1),
    (6, 7, 2),
];

/// Time of a flow of one packet of 4150 B, with an acknowledgement of 64 B.
fn one_packet(folder: &Path, topology: &[&str], flow: &str) -> Span {
    let flows = format!("workload.flows=[\"{flow} 4086B\"]");
    let traffic = ["workload.kind=flows", "transport.payload=4086B", &flows];
    let assembly = try_assembly(folder, &[topology, &traffic].concat()).unwrap();
    run(&assembly).flows[0].completion().unwrap()
}

/// Three GPUs in a row, two links of 20 GB/s between each two.
#[test]
fn packets_pass_the_gpus_between() {
    let row = joined(3, "sm=\"70\"", &[(0, 1, 2), (1, 2, 2)], 0);
    let folder = folder("row", &row);
    let file = ["topology.file=node.xml", "topology.nvlink-delay=500ns"];
    // Halves of a picosecond for each byte, and the delay.
    let expected = |halves: u64, delay: Span| {
        let span = Span::from_ps((4150 + 64) * halves / 2) + delay + delay;
        move |taken: Span| {
            let apart = taken.saturating_sub(span).max(span.saturating_sub(taken));
            assert!(apart <= Span::from_ps(10), "{taken}, not {span}");
        }
    };
    // 320 Gb/s from GPU to GPU and at the ends, 640 Gb/s inside the one with twice the links.
    let one_link = expected(50 + 50 + 25, Span::from_ns(500));
    one_link(one_packet(&folder, &file, "0->1"));
    one_link(one_packet(&folder, &file, "1->2"));
    // A tenth of each delay lies inside the GPU on the way, where the packet does not go.
    let two_links = expected(50 + 50 + 50 + 50, Span::from_ns(900));
    two_links(one_packet(&folder, &file, "0->2"));
    let warnings = assembly(&folder, &[]).warnings.join("\n");
    assert_eq!(
        warnings,
        "node.xml:4: GPUs without a link to each other send over one GPU of their node, as in NCCL: set `topology.nvlink-rate` if a switch joins them"
    );
}

#[test]
fn a_cube_mesh_reduces() {
    let folder = folder("cube", &joined(8, "sm=\"70\"", &CUBE, 2));
    let keys = [
        "topology.nodes=2",
        "workload.kind=ring-all-reduce",
        "workload.size=1MB",
    ];
    let assembly = assembly(&folder, &keys);
    let report = assembly.topology_report();
    assert_eq!(
        report.summary,
        "node.xml: 2 nodes of 8 GPUs and 4 NICs, 2 spines"
    );
    // A leaf for each NIC, spines, a router in each GPU, and a switch for each NIC that two GPUs share.
    assert_eq!(assembly.topology.switches.len(), 4 + 2 + 16 + 8);
    // In each node 16 links join GPUs over 3 links with those inside GPUs, the other pairs over one GPU between; other nodes are farther.
    assert_eq!(report.path_lengths[&3], 2 * 2 * 16);
    assert_eq!(report.path_lengths[&4] - 2 * 8 * 2, 2 * (8 * 7 - 2 * 16));
    let finished = run(&assembly);
    let sum = |from: &str, to: &str| -> u64 { bytes(&assembly, &finished, from, to).iter().sum() };
    // In a ring of 16, each GPU sends 30 parts of a sixteenth, and two of the 16 ways lead to the other node.
    let part = 1_000_000 / 16 * 30;
    assert!(sum("router", "router") >= part * 14);
    assert!(sum("hca", "leaf") >= part * 2 && sum("hca", "leaf") < part * 3);
    assert!(bytes(&assembly, &finished, "router", "leaf").is_empty());
}

/// A full mesh has no warning, and the times of hosts that are joined alike.
#[test]
fn a_full_mesh_of_xgmi_is_fully_connected() {
    let pairs = [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)];
    let links = pairs.map(|(a, b)| (a, b, 1));
    let mesh = joined(4, "gcn=\"gfx942\" sm=\"304\"", &links, 1)
        .replace("<nvlink", "<xgmi")
        .replace(" tclass=\"0x030200\"/", "/");
    let folder = folder("mesh", &mesh);
    let assembly = assembly(&folder, &["topology.nodes=2"]);
    assert_eq!(assembly.warnings, [] as [String; 0]);
    let alike = [
        "topology.kind=fully-connected",
        "topology.hosts=4",
        "topology.link-rate=384Gbps",
        "topology.link-delay=700ns",
    ];
    let file = [
        "topology.file=node.xml",
        "topology.nodes=2",
        "topology.nvlink-delay=700ns",
    ];
    for flow in ["0->1", "3->0", "2->1"] {
        let times = [&alike[..], &file].map(|topology| one_packet(&folder, topology, flow));
        assert_eq!(times[0], times[1], "{flow}");
    }
    let finished = run(&assembly);
    assert!(finished.flows.iter().all(|flow| flow.finished.is_some()));
}

/// The NICs of two GPUs are on one leaf, which is nearer than three links, and the links between the others are preferred.
#[test]
fn nics_carry_what_links_do_not() {
    let row = joined(4, "sm=\"70\"", &[(0, 1, 1), (1, 2, 1), (2, 3, 1)], 1)
        .replace("speed=", "rail=\"0\" speed=");
    let folder = folder("near", &row);
    let on_leaf = |flow: &str| {
        let flows = format!("workload.flows=[\"{flow} 100KB\"]");
        let assembly = assembly(&folder, &["workload.kind=flows", &flows]);
        let finished = run(&assembly);
        let of_leaf: u64 = bytes(&assembly, &finished, "host", "leaf").iter().sum();
        of_leaf > 0
    };
    let ways = ["0->1", "0->2", "0->3"].map(on_leaf);
    assert_eq!(ways, [false, false, true]);
    let warnings = assembly(&folder, &[]).warnings.join("\n");
    assert!(
        warnings.contains(
            "send over up to 2 GPUs of their node, while NCCL sends over one GPU at most"
        ),
        "{warnings}"
    );
}

#[test]
fn links_that_do_not_fit_have_a_place_and_a_fix() {
    let pair = joined(2, "sm=\"70\"", &[(0, 1, 2)], 0);
    let refusal = |text: String| {
        let folder = folder("misfits", &text);
        match try_assembly(&folder, &["topology.file=node.xml"]) {
            Ok(_) => format!("no error:\n{text}"),
            Err(error) => error.to_string(),
        }
    };
    let to_switch = "<nvlink target=\"0000:f0:00.0\" count=\"1\" tclass=\"0x068000\"/></gpu>";
    let errors = [
        refusal(joined(4, "sm=\"70\"", &[(0, 1, 2), (2, 3, 2)], 0)),
        refusal(pair.replacen("count=\"2\"", "count=\"3\"", 1)),
        refusal(pair.replacen("target=\"0000:00:00.0\"", "target=\"0000:07:00.0\"", 1)),
        refusal(pair.replacen("</gpu>", to_switch, 1)),
        refusal(pair.replacen(" sm=\"70\"", "", 1)),
    ];
    insta::assert_snapshot!(errors.join("\n"), @"
    node.xml:9: no links lead from GPU 0 to GPU 2, not even over other GPUs
      fix: `topology.nvlink-rate` joins the GPUs of each node by a switch instead: give the rate of all links of a GPU together, such as 1200Gbps
    node.xml:4: the links of GPU 0 to GPU 1 have 480Gbps, those of GPU 1 to GPU 0 have 320Gbps
      fix: write the same `count` at both GPUs, and the same `sm` or `gcn`
    node.xml:4: GPU 0 has links to GPU 1, which has none to GPU 0
      fix: write the same `count` at both GPUs, and the same `sm` or `gcn`
    node.xml:5: GPU 0 has links to an NVSwitch, and a GPU of the file has links to others: both together are not simulated
      fix: `topology.nvlink-rate` joins the GPUs of each node by a switch instead: give the rate of all links of a GPU together, such as 1200Gbps
    node.xml:3: GPU 0 has NVLinks, but no `sm` of a generation with NVLink
      fix: write `sm`, such as 90 for Hopper, or give the rate as `topology.nvlink-rate`
    ");
}

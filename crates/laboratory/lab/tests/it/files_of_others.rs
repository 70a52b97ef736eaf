//! Files of htsim and HPCC that their own programs take: what they say of queues, delays and numbers of nodes.

use clearway_lab::{Assembly, Finished, Laboratory, RunDecision, RunOptions, Watch};
use clearway_units::Bytes;
use std::path::{Path, PathBuf};

const TOPO: &str = "Nodes 16\nTiers 2\nPodsize 16\n\nTier 0\nDownlink_speed_Gbps 100\nRadix_Up 4\nRadix_Down 4\n\
    Downlink_Latency_ns 1000\n\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down 4\nDownlink_Latency_ns 1000\n";

fn folder(test: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
    folder
}

fn assembly(folder: &Path, keys: &[&str]) -> Assembly {
    let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
    let read = Laboratory::new().read("s.toml", "seed = 1\n", Some(folder), &keys);
    Assembly::new(&read.unwrap()).unwrap()
}

fn run(assembly: &Assembly, threads: usize) -> Finished {
    let options = RunOptions {
        threads: threads.into(),
        on_progress: &mut |_| RunDecision::Continue,
        on_flow: &mut |_, _, _| (),
    };
    assembly.run(options, Watch::Off)
}

/// 15 hosts send to one, whose leaf has queues as the file says.
#[test]
fn queues_of_a_topo_are_those_of_its_ports() {
    let senders = (1..16).map(|src| format!("{src}->0 id {src} start 0 size 200000\n"));
    let flows = format!("Nodes 16\nConnections 15\n{}", senders.collect::<String>());
    let down = TOPO.replacen(
        "Downlink_Latency_ns 1000\n",
        "Downlink_Latency_ns 1000\nQueue_Down 20000\n",
        1,
    );
    let up = down.replace("Queue_Down 20000", "Queue_Up 20000");
    let small = down.replace("20000", "1000");
    let all = TOPO.replace(
        "Downlink_Latency_ns 1000\n",
        "Downlink_Latency_ns 1000\nQueue_Down 20000\n",
    );
    let all = all.replacen(
        "Queue_Down 20000\n",
        "Queue_Down 20000\nQueue_Up 20000\n",
        1,
    );
    let folder = folder(
        "topo-queues",
        &[
            ("plain.topo", TOPO),
            ("down.topo", &down),
            ("up.topo", &up),
            ("all.topo", &all),
            ("small.topo", &small),
            ("incast.cm", &flows),
        ],
    );
    let of = |file: &str, more: &[&str]| {
        let file = format!("topology.file={file}");
        assembly(
            &folder,
            &[&[&file, "workload.file=incast.cm"], more].concat(),
        )
    };
    let plain = run(&of("plain.topo", &[]), 1);
    let assembly = of("down.topo", &[]);
    assert_eq!(assembly.warnings, Vec::<String>::new());
    let down = run(&assembly, 1);
    assert!(down.links.dropped > plain.links.dropped + 100);
    assert_eq!(run(&assembly, 3).digest, down.digest);
    // On all ports of the file it is what the key does.
    let everywhere = run(&of("all.topo", &[]), 1);
    let key = run(&of("plain.topo", &["switch.queue=20000B"]), 1);
    assert_eq!(everywhere.digest, key.digest);
    assert!(key.links.dropped != down.links.dropped, "spines drop, too");
    let up = run(&of("up.topo", &[]), 1);
    assert!(up.links.dropped < down.links.dropped / 2);

    let left_out = of("down.topo", &["topology.port-queues=switch"]);
    assert_eq!(run(&left_out, 1).digest, plain.digest);
    let twice = of("down.topo", &["switch.queue=1MB"]);
    assert!(
        twice.warnings[0].starts_with(
            "`switch.queue` = 1MB is not used at ports whose queue length `Queue_Up` and `Queue_Down`"
        ),
        "{:?}",
        twice.warnings
    );
    let shared = of("down.topo", &["switch.kind=shared-buffer"]);
    assert!(shared.warnings[0].contains("all ports share a buffer"));
    let keys = ["topology.file=small.topo".to_string()];
    let read = Laboratory::new().read("s.toml", "", Some(&folder), &keys);
    let error = Assembly::new(&read.unwrap()).unwrap_err().to_string();
    assert!(
        error.contains("too little for a packet of 4160B"),
        "{error}"
    );
    assert!(error.contains("topology.file"), "{error}");
    let shared = of("small.topo", &["switch.kind=shared-buffer"]);
    assert!(shared.warnings[0].contains("all ports share a buffer"));
}

/// Links of a nanosecond have no bandwidth-delay product to speak of, and those between sites are longer than a default timeout.
#[test]
fn defaults_follow_links_of_any_length() {
    let short = TOPO.replace("_ns 1000", "_ns 1");
    let far = "4 2 3\n2 3\n0 2 100Gbps 5us 0\n2 3 10Gbps 30ms 0\n3 1 100Gbps 5us 0\n";
    let folder = folder(
        "any-length",
        &[
            ("short.topo", &short),
            ("far.txt", far),
            ("far.flow", "1\n0 1 3 100 1000000 0\n"),
        ],
    );
    let assembly_of_short = assembly(
        &folder,
        &["topology.file=short.topo", "workload.message=40KB"],
    );
    let report = assembly_of_short.topology_report();
    assert_eq!(report.queue_bdp, Bytes::new(4 * 4160));
    let finished = run(&assembly_of_short, 1);
    assert!(finished.flows.iter().all(|flow| flow.finished.is_some()));
    assert_eq!(finished.links.dropped, 0);
    for kind in ["strack", "rocev2", "irn", "uet", "dctcp", "swift"] {
        let kind = format!("transport.kind={kind}");
        let keys = [
            "topology.file=far.txt",
            "workload.file=far.flow",
            &kind,
            "stop.at-most=10s",
        ];
        let far = assembly(&folder, &keys);
        let finished = run(&far, 1);
        let flow = &finished.flows[0];
        assert!(flow.finished.is_some(), "{kind}");
        assert_eq!(finished.endpoints.retransmitted, 0, "{kind}");
    }
}

/// HPCC's own topology begins with its switch, and its flows have the numbers of its nodes.
#[test]
fn hosts_after_a_switch_are_counted_from_0() {
    let first = "4 1 3\n0\n0 1 100Gbps 1us 0\n0 2 100Gbps 2us 0\n0 3 100Gbps 3us 0\n";
    let last = "4 1 3\n3\n0 3 100Gbps 1us 0\n1 3 100Gbps 2us 0\n2 3 100Gbps 3us 0\n";
    let folder = folder(
        "switch-first",
        &[
            ("first.txt", first),
            ("last.txt", last),
            ("first.flow", "2\n1 3 3 100 50000 0\n2 3 3 100 9000 0\n"),
            ("last.flow", "2\n0 2 3 100 50000 0\n1 2 3 100 9000 0\n"),
        ],
    );
    let of = |name: &str| {
        let keys = [
            format!("topology.file={name}.txt"),
            format!("workload.file={name}.flow"),
        ];
        assembly(&folder, &[&keys[0], &keys[1]])
    };
    let (own, usual) = (of("first"), of("last"));
    assert_eq!(run(&own, 1).digest, run(&usual, 1).digest);
    assert_eq!(own.warnings.len(), 1, "{:?}", own.warnings);
    let records = own.fct_records(&run(&own, 1));
    let hosts: Vec<(u32, u32)> = records.iter().map(|r| (r.src.0, r.dst.0)).collect();
    assert_eq!(hosts, [(2, 3), (1, 3)], "numbers of the file");
    assert_eq!(
        own.topology.node_name(own.topology.switch_node(0)),
        "switch0"
    );
}

/// GPUs of a server have a ring each over its NICs, as on rails.
#[test]
fn rings_of_simai_have_a_channel_for_each_gpu() {
    let fabric = |header: &str| {
        let links: Vec<String> = (0..8)
            .map(|gpu| {
                format!(
                    "{gpu} {} 2400Gbps 100ns 0\n{gpu} 10 200Gbps 1us 0\n",
                    8 + gpu / 4
                )
            })
            .collect();
        format!("{header}\n8 9 10\n{}", links.concat())
    };
    let folder = folder(
        "simai-servers",
        &[
            ("servers.txt", &fabric("11 4 2 1 16 H100")),
            ("plain.txt", &fabric("11 3 16")),
        ],
    );
    let time = |file: &str| {
        let file = format!("topology.file={file}");
        let keys = [&file, "workload.kind=ring-all-reduce", "workload.size=16MB"];
        let finished = run(&assembly(&folder, &keys), 1);
        finished.jobs[0].times[0].span().unwrap().as_us()
    };
    let (servers, plain) = (time("servers.txt"), time("plain.txt"));
    assert!(plain > 3.0 * servers, "{plain} {servers}");
}

/// Messages of one connection share its window, whether they start together or not, and flows without end send until the run stops.
#[test]
fn connections_of_several_messages_and_flows_without_end() {
    let messages = "Nodes 16\nConnections 4\n0->9 id 1 msg 1 start 0 size 400000\n0->9 id 1 msg 2 start 0 size 400000\n\
        0->9 id 1 msg 3 start 200 size 4086\n3->4 id 2 start 0 size 4086\n";
    let endless = "Nodes 16\nConnections 2\n0->9 start 0 size 0\n1->9 start 0 size 0\n";
    let folder = folder(
        "messages",
        &[
            ("plain.topo", TOPO),
            ("messages.cm", messages),
            ("endless.cm", endless),
        ],
    );
    let keys = [
        "topology.file=plain.topo",
        "workload.file=messages.cm",
        "transport.payload=4086B",
    ];
    let of_messages = assembly(&folder, &keys);
    let finished = run(&of_messages, 1);
    assert_eq!(run(&of_messages, 3).digest, finished.digest);
    assert_eq!(
        finished.flows.len(),
        2,
        "a flow, and a connection of three messages"
    );
    let job = &finished.jobs[0];
    assert_eq!(job.label, "connection 1");
    // Four links of 1 us there and back; the last message begins at 200 us.
    let span = job.times[0].span().unwrap().as_us();
    assert!((208.0..210.0).contains(&span), "{span}");

    let keys = [
        "topology.file=plain.topo",
        "workload.file=endless.cm",
        "stop.at-most=200us",
    ];
    let without_end = assembly(&folder, &keys);
    assert!(without_end.warnings[0].contains("`size 0` (2 flows): without end"));
    let finished = run(&without_end, 1);
    assert!(finished.flows.iter().all(|flow| flow.finished.is_none()));
    // Both together fill the last link.
    let delivered = finished.endpoints.data_received as f64 * 4160.0 * 8.0;
    let share = delivered / (100e9 * 200e-6);
    assert!((0.9..=1.0).contains(&share), "{share}");
}

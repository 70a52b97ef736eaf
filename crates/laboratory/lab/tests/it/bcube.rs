//! Jobs on hosts with several NICs: BCube's relaying servers, and servers with an NVSwitch beside the network.

use clearway_lab::{
    Assembly, Finished, Laboratory, RunDecision, RunOptions, Scenario, Stopped, Watch,
};
use clearway_units::{FlowId, HostId, Span};
use std::collections::BTreeSet;
use std::path::Path;

fn scenario(settings: &[&str]) -> Scenario {
    let common = [
        "topology.kind=bcube",
        "switch.queue=100MB",
        "switch.ecn.enabled=false",
        "transport.controller=constant",
        "transport.payload=1000B",
    ];
    let settings = common.iter().chain(settings);
    let settings: Vec<String> = settings.map(|text| (*text).into()).collect();
    Laboratory::new().read("test", "", None, &settings).unwrap()
}

fn run(assembly: &Assembly, threads: usize) -> Finished {
    let finished = assembly.run(
        RunOptions {
            threads: threads.into(),
            on_progress: &mut |_| RunDecision::Continue,
            on_flow: &mut |_, _, _| (),
        },
        Watch::Off,
    );
    assert_eq!(finished.stopped, None);
    finished
}

fn time(finished: &Finished) -> Span {
    finished.jobs[0].times[0].span().unwrap()
}

#[test]
fn flows_begin_at_the_port_of_the_digit_that_they_correct_first() {
    for (order, with_lower) in [
        ("random", 10..=26),
        ("in-turn", 10..=26),
        ("lowest", 36..=36),
    ] {
        let order = format!("topology.first-digit={order}");
        let settings = ["workload.kind=all-to-all", "workload.size=9KB", &order];
        let assembly = Assembly::new(&scenario(&settings)).unwrap();
        let mut first_digits = [0, 0];
        for (id, flow) in assembly.workload.numbered() {
            let (src, dst) = (flow.src.0, flow.dst.0);
            let differs = [src % 3 != dst % 3, src / 3 != dst / 3];
            // NIC 1 of server s is node 9 + s.
            let (from, to) = assembly.nics(id);
            let port = |nic: HostId| usize::from(nic.0 >= 9);
            assert!(differs[port(from)] && differs[port(to)], "{src}->{dst}");
            if differs == [true, true] {
                assert_ne!(port(from), port(to));
                first_digits[port(from)] += 1;
            }
        }
        assert_eq!(first_digits.iter().sum::<i32>(), 36);
        assert!(with_lower.contains(&first_digits[0]), "{order}");
    }
}

/// Flows that correct digits in either order close a cycle of links that pause each other; in one order they cannot.
#[test]
fn one_order_of_digits_keeps_flow_control_from_a_deadlock() {
    let stopped = |order: &str| {
        let order = format!("topology.first-digit={order}");
        let settings = [
            "topology.kind=bcube",
            "topology.switch-ports=4",
            &order,
            "switch.kind=shared-buffer",
            "switch.buffer=50KB",
            "switch.ecn.enabled=false",
            "transport.kind=rocev2",
            "transport.controller=constant",
            "transport.payload=1000B",
            "workload.kind=direct-all-reduce",
            "workload.size=2MB",
        ];
        let settings = settings.map(String::from);
        let lab = Laboratory::new();
        let scenario = lab.read("test", "", None, &settings).unwrap();
        lab.run(&scenario).unwrap().stopped
    };
    assert_eq!(stopped("random"), Some(Stopped::Deadlocked));
    assert_eq!(stopped("lowest"), None);
}

/// In each stage nine servers send 1 MB to four neighbours over two cables, and to four servers by way of another over four cables: 6 MB
/// on each cable and in each direction. Flows over two servers share two cables with others and come last, so the bound is not met.
#[test]
fn an_all_reduce_on_bcube_takes_at_least_what_its_cables_carry() {
    let settings = ["workload.kind=direct-all-reduce", "workload.size=9MB"];
    let even = [&settings[..], &["topology.first-digit=in-turn"]].concat();
    let assembly = Assembly::new(&scenario(&even)).unwrap();
    let finished = run(&assembly, 1);
    let wire = 1064.0 / 1000.0;
    let bound_us = 2.0 * 6e6 * 8.0 / 10e3 * wire;
    let ratio = time(&finished).as_us() / bound_us;
    assert!((1.0..2.0).contains(&ratio), "{ratio}");
    let again = run(&Assembly::new(&scenario(&even)).unwrap(), 3);
    assert_eq!(again.digest, finished.digest);
    assert_eq!(again.jobs, finished.jobs);
}

/// Events at the other NIC of a host reach the rank a microsecond late. A chain of messages that changes NICs therefore takes a little
/// longer than on hosts with one NIC, and never less.
#[test]
fn collectives_with_chains_and_limits_end_on_hosts_with_several_nics() {
    for settings in [
        &["workload.kind=ring-all-reduce"][..],
        &["workload.kind=double-binary-tree"],
        &["workload.kind=all-to-all", "workload.parallelism=2"],
        &[
            "workload.kind=halving-doubling",
            "workload.iterations=3",
            "workload.compute=50us",
        ],
    ] {
        let settings = [settings, &["workload.size=900KB"]].concat();
        let finished = run(&Assembly::new(&scenario(&settings)).unwrap(), 1);
        let all_over = finished.jobs[0].times.iter().all(|t| t.over.is_some());
        assert!(all_over, "{settings:?}");
        let again = run(&Assembly::new(&scenario(&settings)).unwrap(), 2);
        assert_eq!(again.digest, finished.digest, "{settings:?}");
    }
}

/// Two servers of two GPUs: NVSwitches (nodes 4 and 5) inside, a leaf (node 6) between them.
const SERVERS: &str = "\
7 2 2 1 8 H100
4 5 6
0 4 1600Gbps 500ns 0
1 4 1600Gbps 500ns 0
2 5 1600Gbps 500ns 0
3 5 1600Gbps 500ns 0
0 6 200Gbps 1us 0
1 6 200Gbps 1us 0
2 6 200Gbps 1us 0
3 6 200Gbps 1us 0
";

#[test]
fn a_ring_over_servers_uses_nvswitches_inside_and_the_leaf_between() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ring-over-servers");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("graph.txt"), SERVERS).unwrap();
    let text = "[topology]\nfile = \"graph.txt\"\n[switch]\nqueue = \"100MB\"\n[transport]\ncontroller = \"constant\"\n\
                [[workload]]\nkind = \"ring-all-reduce\"\nsize = \"16MB\"\n";
    let assembly = |keys: &[String]| {
        let read = Laboratory::new().read("s.toml", text, Some(&folder), keys);
        Assembly::new(&read.unwrap()).unwrap()
    };
    let both = run(&assembly(&[]), 1);
    let assembly = assembly(&["workload.channels=1".to_string()]);
    let nics: BTreeSet<(u32, u32)> = (0..4)
        .map(|flow| assembly.nics(FlowId(flow)))
        .map(|(from, to)| (from.0, to.0))
        .collect();
    // 0 -> 1 and 3 -> 2 inside, 1 -> 3 and 2 -> 0 over the second NICs, which are nodes 4 to 7.
    assert_eq!(nics, BTreeSet::from([(0, 1), (3, 2), (5, 7), (6, 4)]));
    let finished = run(&assembly, 1);
    // The links between servers are the slow ones: 3/4 of the size, twice, at 200 Gb/s.
    let bound_us = 2.0 * 0.75 * 16e6 * 8.0 / 200e3;
    let ratio = time(&finished).as_us() / bound_us;
    assert!((1.0..1.1).contains(&ratio), "{ratio}");
    // Without the key each GPU of a server has a ring, and both links between the servers carry half.
    let ratio = time(&both).as_us() / bound_us;
    assert!((0.5..0.6).contains(&ratio), "{ratio}");
}

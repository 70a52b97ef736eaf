//! Hosts with several NICs: servers with an NVSwitch, and hosts on several leaves.

use clearway_lab::{Assembly, Finished, Laboratory, RunDecision, RunOptions, Scenario, Watch};
use clearway_units::{FlowId, HostId, Span, Time};
use std::path::{Path, PathBuf};

/// Two servers of two GPUs, each server with an NVSwitch (nodes 4 and 5) at 1.6 Tb/s and 100 ns, all GPUs on one leaf (node 6) at
/// 200 Gb/s and 1 us.
const SERVERS: &str = "\
7 2 2 1 8 H100
4 5 6
0 4 1600Gbps 100ns 0
1 4 1600Gbps 100ns 0
2 5 1600Gbps 100ns 0
3 5 1600Gbps 100ns 0
0 6 200Gbps 1us 0
1 6 200Gbps 1us 0
2 6 200Gbps 1us 0
3 6 200Gbps 1us 0
";

/// Four hosts with a NIC on each of two leaves, which nothing joins.
const RAILS: &str = "\
6 2 8
4 5
0 4 100Gbps 1us 0
0 5 100Gbps 1us 0
1 4 100Gbps 1us 0
1 5 100Gbps 1us 0
2 4 100Gbps 1us 0
2 5 100Gbps 1us 0
3 4 100Gbps 1us 0
3 5 100Gbps 1us 0
";

/// Hosts 0 and 1 on one switch, 1 and 2 on another.
const CHAIN: &str =
    "5 2 4\n3 4\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n1 4 100Gbps 1us 0\n2 4 100Gbps 1us 0\n";

fn folder(test: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
    folder
}

fn scenario(test: &str, graph: &str, traffic: &str, overrides: &[&str]) -> Scenario {
    let folder = folder(test, &[("graph.txt", graph), ("traffic.cm", traffic)]);
    let text = "[topology]\nfile = \"graph.txt\"\n[transport]\npayload = \"1000B\"\n[[workload]]\nfile = \"traffic.cm\"\n";
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let read = Laboratory::new().read("s.toml", text, Some(&folder), &overrides);
    read.unwrap()
}

fn run(assembly: &Assembly, threads: usize) -> Finished {
    let options = RunOptions {
        threads: threads.into(),
        on_progress: &mut |_| RunDecision::Continue,
        on_flow: &mut |_, _, _| (),
    };
    assembly.run(options, Watch::Off)
}

/// Messages of ten packets of 1000 B + 64 B.
fn connections(pairs: &[(u32, u32)]) -> String {
    let mut text = format!("Nodes 4\nConnections {}\n", pairs.len());
    for (index, (src, dst)) in pairs.iter().enumerate() {
        text += &format!("{src}->{dst} id {} start 0 size 10000\n", index + 1);
    }
    text
}

/// Ten packets and one more on the second link, an acknowledgement of 64 B on two, and four times the delay.
fn completion(ps_per_byte: u64, delay: Span) -> Span {
    delay * 4 + Span::from_ps(ps_per_byte) * (11 * 1064 + 2 * 64)
}

#[test]
fn flows_within_a_server_take_its_nvswitch_and_others_the_network() {
    let traffic = connections(&[(0, 1), (3, 2), (0, 2), (3, 1)]);
    let assembly = Assembly::new(&scenario("servers", SERVERS, &traffic, &[])).unwrap();
    let report = assembly.topology_report();
    assert_eq!((report.hosts, report.nics), (4, 8));
    assert_eq!(
        report.path_lengths.into_iter().collect::<Vec<_>>(),
        [(2, 12)]
    );
    // Each GPU's first link leads to its NVSwitch, the second to the leaf.
    let nics = |flow| assembly.nics(FlowId(flow));
    assert_eq!(nics(0), (HostId(0), HostId(1)));
    assert_eq!(nics(2), (HostId(4), HostId(6)));
    assert_eq!(
        assembly.workload.flows[2].dst,
        HostId(2),
        "users speak of hosts"
    );

    let finished = run(&assembly, 1);
    let inside = completion(5, Span::from_ns(100));
    let across = completion(40, Span::from_us(1));
    let times: Vec<_> = finished
        .flows
        .iter()
        .map(|flow| flow.completion())
        .collect();
    assert_eq!(times, [inside, inside, across, across].map(Some));
    let ideal: Vec<Span> = finished.flows.iter().map(|flow| flow.ideal).collect();
    assert_eq!(ideal, [inside, inside, across, across]);

    let records = assembly.fct_records(&finished);
    let hosts: Vec<(u32, u32)> = records.iter().map(|r| (r.src.0, r.dst.0)).collect();
    assert_eq!(hosts, [(0, 1), (3, 2), (0, 2), (3, 1)]);
    // 2 x 2 us, 2 x 40 ns for a payload, and 10640 B at 200 Gb/s, in whole nanoseconds.
    assert_eq!(records[2].standalone, Span::from_ns(4000 + 80 + 425));
    assert_eq!(run(&assembly, 3).digest, finished.digest);
}

#[test]
fn a_sender_knows_the_rate_of_its_own_nic() {
    // DCQCN begins at line rate: a sender that took the NVSwitch's rate for the network's would not be told apart by its
    // completion time, but one that took the network's for the NVSwitch's would be eight times slower.
    let reversed: Vec<&str> = SERVERS.lines().skip(2).collect();
    let (nvlinks, links) = reversed.split_at(4);
    let mut graph: Vec<&str> = SERVERS.lines().take(2).collect();
    graph.extend(links.iter().chain(nvlinks));
    let traffic = connections(&[(0, 1)]);
    let rocev2 = [
        "transport.kind=rocev2",
        "transport.header=64B",
        "transport.ack-size=64B",
    ];
    let scenario = scenario("reversed", &(graph.join("\n") + "\n"), &traffic, &rocev2);
    let assembly = Assembly::new(&scenario).unwrap();
    assert_eq!(assembly.nics(FlowId(0)), (HostId(4), HostId(5)));
    let completion = run(&assembly, 1).flows[0].completion();
    assert_eq!(completion, Some(self::completion(5, Span::from_ns(100))));
}

/// NVSwitches in SimAI's files have 2.88 Tb/s, at which a byte takes 25/9 ps.
#[test]
fn no_flow_is_faster_than_alone_at_rates_without_whole_picoseconds() {
    let graph = SERVERS.replace("1600Gbps", "2880Gbps");
    let traffic = connections(&[(0, 1), (3, 2)]);
    let assembly = Assembly::new(&scenario("odd", &graph, &traffic, &[])).unwrap();
    for flow in run(&assembly, 1).flows {
        let (completion, ideal) = (flow.completion().unwrap(), flow.ideal);
        assert!(ideal <= completion, "{ideal} {completion}");
        // Each transmission is rounded up to a picosecond.
        assert!(
            completion - ideal < Span::from_ps(20),
            "{ideal} {completion}"
        );
    }
}

#[test]
fn equal_nics_share_the_flows_of_a_host() {
    let traffic = connections(&[(0, 1), (0, 1), (2, 3), (2, 3)]);
    let in_turn = ["topology.nics=in-turn"];
    let assembly = Assembly::new(&scenario("rails", RAILS, &traffic, &in_turn)).unwrap();
    // Further NICs are numbered after the four hosts.
    let nics: Vec<(u32, u32)> = (0..4)
        .map(|flow| assembly.nics(FlowId(flow)))
        .map(|(src, dst)| (src.0, dst.0))
        .collect();
    assert_eq!(nics, [(0, 1), (4, 5), (2, 3), (6, 7)]);
    let finished = run(&assembly, 1);
    let alone = completion(80, Span::from_us(1));
    let times: Vec<_> = finished
        .flows
        .iter()
        .map(|flow| flow.completion())
        .collect();
    assert_eq!(times, [Some(alone); 4], "no wire is shared");
    let topology = &assembly.topology;
    assert_eq!(
        topology.link_name(clearway_lab::LinkId::from_end(1, 0)),
        "host0.1-switch5"
    );
}

#[test]
fn news_from_one_nic_to_another_takes_a_link_delay() {
    let traffic = "Nodes 4\nConnections 3\nTriggers 2\n\
        0->1 id 1 start 0 size 1000 send_done_trigger 1\n\
        0->2 id 2 trigger 1 size 1000 send_done_trigger 2\n\
        0->3 id 3 trigger 2 size 1000\n\
        trigger id 1 oneshot\ntrigger id 2 oneshot\n";
    let assembly = Assembly::new(&scenario("news", SERVERS, traffic, &[])).unwrap();
    let flows = run(&assembly, 1).flows;
    let waited = |first: usize, second: usize| {
        let end = flows[first].finished.unwrap();
        flows[second].started.unwrap() - end
    };
    assert_eq!(waited(0, 1), Span::from_ns(100), "from the NVSwitch's NIC");
    assert_eq!(waited(1, 2), Span::ZERO, "on the same NIC");
}

#[test]
fn hosts_do_not_forward() {
    let traffic = connections(&[(0, 1), (1, 2)]).replace("Nodes 4", "Nodes 3");
    let assembly = Assembly::new(&scenario("chain", CHAIN, &traffic, &[])).unwrap();
    let lengths = assembly.topology_report().path_lengths;
    // The links of host 1 are ports of one NIC, which is a link more.
    assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [(3, 4)]);
    let finished = run(&assembly, 1);
    assert!(finished.simulated < Time::from_us(20) && finished.stopped.is_none());

    let traffic = connections(&[(0, 1), (0, 2)]).replace("Nodes 4", "Nodes 3");
    let error = Assembly::new(&scenario("broken-chain", CHAIN, &traffic, &[])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "s.toml:2: flow 2 (0->2): no path leads from host 0 to host 2, and hosts do not forward\n  \
         fix: add links between the switches of the two (of rails: `spines`, or `pxn` for an all-to-all), or leave the flow out"
    );
}

/// A message of 2 MB on two links of 100 Gb/s takes half of the time that it takes on one.
#[test]
fn a_message_takes_all_equal_links_of_its_host() {
    let traffic = "Nodes 4\nConnections 1\n0->1 id 1 start 0 size 2000000\n";
    let time = |nics: &str, transport: &str| {
        let overrides = [
            format!("topology.nics={nics}"),
            format!("transport.kind={transport}"),
        ];
        let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
        let name = format!("striped-{nics}-{transport}");
        let assembly = Assembly::new(&scenario(&name, RAILS, traffic, &overrides)).unwrap();
        let finished = run(&assembly, 1);
        let flow = &finished.flows[0];
        assert_eq!(run(&assembly, 3).digest, finished.digest);
        (flow.completion().unwrap().as_us(), flow.ideal.as_us())
    };
    let (one, ideal_of_one) = time("first", "strack");
    // 2 MB in packets of 1064 B at 100 Gb/s.
    assert!((170.0..180.0).contains(&one), "{one}");
    assert!(one / ideal_of_one < 1.05);
    for nics in ["auto", "stripe", "hash"] {
        let (both, ideal) = time(nics, "strack");
        assert!(both < 0.6 * one, "{nics}: {both} {one}");
        assert!(
            ideal < 0.6 * ideal_of_one && ideal <= both,
            "{nics}: {ideal} {both}"
        );
    }
    // Go-back-N would take what comes out of order for lost.
    let (in_order, _) = time("auto", "rocev2");
    assert!((in_order / one - 1.0).abs() < 0.1, "{in_order} {one}");
}

/// Eight NICs of a node carry what one did.
#[test]
fn rings_have_a_channel_for_each_rank_of_a_node() {
    let text = "[topology]\nkind = \"rail-optimised\"\nnodes = 2\ngpus-per-node = 8\n\
        [[workload]]\nkind = \"ring-all-reduce\"\nsize = \"32MB\"\n";
    let assembly = |overrides: &[&str]| {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        let read = Laboratory::new().read("s.toml", text, None, &overrides);
        Assembly::new(&read.unwrap()).unwrap()
    };
    let time = |assembly: &Assembly| {
        let jobs = run(assembly, 1).jobs;
        jobs[0].times[0].span().unwrap().as_us()
    };
    let (all, one) = (assembly(&[]), assembly(&["workload.channels=1"]));
    assert_eq!(all.warnings, Vec::<String>::new());
    assert!(
        one.warnings[0].starts_with("12 of the 16 NICs of the hosts of job"),
        "{:?}",
        one.warnings
    );
    let (fast, slow) = (time(&all), time(&one));
    assert!(slow > 4.0 * fast, "{slow} {fast}");
    // 2 x 15/16 of 32 MB over the eight NICs of a node, at 400 Gb/s with headers.
    let least = 2.0 * 15.0 / 16.0 * 32e6 / 8.0 * 8.0 / 400e3 * 4160.0 / 4096.0;
    assert!(fast > least && fast < 2.5 * least, "{fast} {least}");
}

/// Ranks whose transport takes overtaken packets for lost ones have a connection for each NIC, and use all of them.
#[test]
fn messages_of_a_job_take_the_nics_of_their_hosts_in_turn() {
    let folder = folder("lanes", &[("graph.txt", RAILS)]);
    let assembly = |kind: &str, nics: &str| {
        let text = format!(
            "[topology]\nfile = \"graph.txt\"\nnics = \"{nics}\"\n[transport]\nkind = \"rocev2\"\n\
             [[workload]]\nkind = \"{kind}\"\nsize = \"8MB\"\nchunk = \"500KB\"\n"
        );
        let read = Laboratory::new().read("s.toml", &text, Some(&folder), &[]);
        Assembly::new(&read.unwrap()).unwrap()
    };
    for (kind, connections) in [
        ("ring-all-reduce", 8),
        ("all-to-all", 24),
        ("double-binary-tree", 20),
    ] {
        let (both, first) = (assembly(kind, "auto"), assembly(kind, "first"));
        assert_eq!(both.warnings, Vec::<String>::new(), "{kind}");
        assert_eq!(both.flow_count(), connections, "{kind}");
        let [fast, slow] = [&both, &first].map(|assembly| {
            let finished = run(assembly, 1);
            assert_eq!(run(assembly, 3).digest, finished.digest, "{kind}");
            assert!(finished.flows.iter().all(|flow| flow.finished.is_some()));
            finished.jobs[0].times[0].span().unwrap().as_us()
        });
        assert!(fast < 0.6 * slow, "{kind}: {fast} {slow}");
        // Further NICs are numbered after the four hosts.
        let mut sent = [0u64; 8];
        for id in (0..connections as u32).map(FlowId) {
            sent[both.nics(id).0.index()] += both.workload.flow(id).bytes.as_u64();
        }
        for host in 0..4 {
            assert_eq!(sent[host], sent[host + 4], "{kind}: {sent:?}");
        }
    }
}

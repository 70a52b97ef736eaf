use super::*;
use clearway_units::{Bytes, HostId, Rate, Span, Time};
use clearway_workload::{FileWarning, Start};
use insta::assert_snapshot;

/// Two switches with two hosts each.
const FABRIC: &str = "\
6 2 5
4 5
0 4 100Gbps 1000ns 0.000000
1 4 100Gbps 1us 0
2 5 25000000000bps 0.001ms 0
3 5 100Gbps 1000ns 0.001
4 5 400Gbps 2000ns 0
";

const FLOWS: &str = "\
3
0 3 3 100 2000000 2
1 3 1 200 5000000000 2.000000025
3 0 7 0 1 1.9
";

fn fabric(text: &str) -> Result<HpccTopology, FileError> {
    parse_hpcc_topology("t.txt", text)
}

fn flows(text: &str) -> Result<clearway_workload::Workload, FileError> {
    parse_hpcc_flows("f.txt", text, hosts(4)).map(|read| read.0)
}

/// The error of [`FABRIC`] with `old` replaced.
fn wrong_fabric(old: &str, new: &str) -> String {
    assert!(FABRIC.contains(old), "{old}");
    fabric(&FABRIC.replace(old, new)).unwrap_err().to_string()
}

/// The error of one flow, on line 2.
fn wrong_flow(line: &str) -> String {
    flows(&format!("1\n{line}\n")).unwrap_err().to_string()
}

#[test]
fn reads_a_fabric() {
    let file = fabric(FABRIC).unwrap();
    assert_eq!((file.hosts, file.switches.len()), (4, 2));
    assert_eq!(file.links.len(), 5);
    assert_eq!(
        file.links[2],
        HpccLink {
            ends: [2, 5],
            rate: Rate::from_gbps(25),
            delay: Span::from_us(1),
            loss: 0.0,
        }
    );
    assert_eq!(file.links[3].loss, 0.001);
    assert_eq!(file.links[4].delay, Span::from_us(2));
    assert_eq!(file.warnings, []);
}

#[test]
fn comments_blanks_and_lists_of_switches_over_lines_are_free() {
    let loose = "\u{feff}# a fabric\r\n6  2\t5 # nodes\r\n\r\n 4\r\n5\r\n".to_owned()
        + FABRIC.split_once("4 5\n").unwrap().1;
    assert_eq!(fabric(&loose).unwrap(), fabric(FABRIC).unwrap());
}

#[test]
fn reads_a_fabric_of_simai_without_nvswitches() {
    let simai = FABRIC.replacen("6 2 5", "6 8 0 2 5 H100", 1);
    let read = fabric(&simai).unwrap();
    assert_eq!(read.links, fabric(FABRIC).unwrap().links);
    assert_eq!((read.hosts, read.gpus_per_server), (4, 1));
}

#[test]
fn parallel_links_are_taken_with_a_word() {
    let twice = format!("{}5 4 400Gbps 2000ns 0\n", FABRIC.replace("6 2 5", "6 2 6"));
    let file = fabric(&twice).unwrap();
    assert_eq!(file.links.len(), 6);
    let [warning] = <[FileWarning; 1]>::try_from(file.warnings).unwrap();
    assert_snapshot!(warning, @"t.txt:8: nodes 4 and 5 are joined again, first on line 7: all links are used here, the HPCC simulator uses only the last");
    let thrice = format!("{}4 5 1Gbps 1us 0\n", twice.replace("6 2 6", "6 2 7"));
    assert_snapshot!(fabric(&thrice).unwrap().warnings[0], @"t.txt:8: nodes 4 and 5 are joined again, first on line 7, as on one more line: all links are used here, the HPCC simulator uses only the last");
}

#[test]
fn faults_of_the_first_lines_of_a_fabric() {
    assert_snapshot!(fabric("").unwrap_err(), @"
    t.txt:1: the file is empty
      fix: begin it with the numbers of nodes, switches and links
    ");
    assert_snapshot!(wrong_fabric("6 2 5", "6 2"), @"
    t.txt:1: the first line has 3 words, or 6 with GPUs, but it has 2
      fix: write `node_num switch_num link_num`, or `node_num gpus_per_server nvswitch_num switch_num link_num gpu_type`
    ");
    assert_snapshot!(wrong_fabric("6 2 5", "6 8 2 5 5"), @"
    t.txt:1: the first line has 3 words, or 6 with GPUs, but it has 5
      fix: write `node_num switch_num link_num`, or `node_num gpus_per_server nvswitch_num switch_num link_num gpu_type`
    ");
    assert_snapshot!(wrong_fabric("6 2 5", "six 2 5"), @"
    t.txt:1:1: `six` is not a valid value for `node_num`
      fix: write a whole number from 1 to 16777216
    ");
    assert_snapshot!(wrong_fabric("6 2 5", "99999999 2 5"), @"
    t.txt:1:1: `99999999` is not a valid value for `node_num`
      fix: write a whole number from 1 to 16777216
    ");
    assert_snapshot!(wrong_fabric("6 2 5", "2 2 5"), @"
    t.txt:1:1: 2 of 2 nodes are switches, so there are no hosts
      fix: write all nodes as `node_num`: hosts and switches
    ");
    assert_snapshot!(wrong_fabric("4 5\n", "4 4\n"), @"
    t.txt:2:3: switch 4 is listed twice
      fix: name each switch once
    ");
    assert_snapshot!(wrong_fabric("4 5\n", "4 6\n"), @"
    t.txt:2:3: `6` is not a node; expected the number of a switch
      fix: name 2 switches from 0 to 5
    ");
    assert_snapshot!(wrong_fabric("4 5\n", "4 5 3\n"), @"
    t.txt:2:5: line 1 announces 2 switches, but more are named
      fix: correct the number of switches on the first line
    ");
    assert_snapshot!(wrong_fabric("4 5\n", "4\n"), @"
    t.txt:2: line 1 announces 2 switches, but the file names 1
      fix: write the numbers of all switches on the second line
    ");
    assert_snapshot!(fabric("6 2 5\n4\n").unwrap_err(), @"
    t.txt:2: line 1 announces 2 switches, but the file names 1
      fix: write the numbers of all switches on the second line
    ");
}

#[test]
fn counts_of_links_must_match() {
    assert_snapshot!(wrong_fabric("6 2 5", "6 2 4"), @"
    t.txt:1: no path leads from host 0 to host 2
      fix: add the links that join them, or correct `link_num`: the lines from 7 on are not used
    ");
    assert_snapshot!(wrong_fabric("6 2 5", "6 2 6"), @"
    t.txt:7: line 1 announces 6 links, but the file has 5
      fix: write 5 as `link_num`, or restore the missing lines if the file was cut short
    ");
    // HPCC's files end with a description.
    let described = fabric(&format!("{FABRIC}First line: nodes\n")).unwrap();
    assert_snapshot!(described.warnings[0], @"t.txt:8: line 1 announces 5 links: 1 line from here on is not used, as in the HPCC simulator; correct `link_num` if they should be");
}

#[test]
fn faults_of_links() {
    let last = "4 5 400Gbps 2000ns 0";
    assert_snapshot!(wrong_fabric(last, "4 5 400Gbps 2000ns"), @"
    t.txt:7: a link has 5 words, but this line has 4
      fix: write `src dst rate delay error_rate`, each on a separate line
    ");
    assert_snapshot!(wrong_fabric(last, "4 5 400Gbps 2000ns 0 0"), @"
    t.txt:7:22: a link has 5 words, but this line has 6
      fix: write `src dst rate delay error_rate`, each on a separate line
    ");
    assert_snapshot!(wrong_fabric(last, "4 6 400Gbps 2000ns 0"), @"
    t.txt:7:3: node 6 does not exist
      fix: name a node from 0 to 5, or correct `node_num`
    ");
    assert_snapshot!(wrong_fabric(last, "-4 5 400Gbps 2000ns 0"), @"
    t.txt:7:1: `-4` is not a valid value for `src`
      fix: write a whole number from 0 to 4294967295
    ");
    assert_snapshot!(wrong_fabric(last, "5 5 400Gbps 2000ns 0"), @"
    t.txt:7:3: a link from node 5 to itself
      fix: name two nodes
    ");
    assert_snapshot!(wrong_fabric(last, "4 5 400 Gbps 2000ns"), @"
    t.txt:7:9: `Gbps` is not a valid value for `delay`
      fix: write a whole number of picoseconds, as in `1000ns` or `0.001ms`
    ");
    assert_snapshot!(wrong_fabric(last, "4 5 400G 2000ns 0"), @"
    t.txt:7:5: `400G` is not a valid value for `rate`
      fix: write a whole number of bit/s above zero, as in `100Gbps` or `25000000000bps`
    ");
    assert_snapshot!(wrong_fabric(last, "4 5 0Gbps 2000ns 0"), @"
    t.txt:7:5: `0Gbps` is not a valid value for `rate`
      fix: write a whole number of bit/s above zero, as in `100Gbps` or `25000000000bps`
    ");
    assert_snapshot!(wrong_fabric(last, "4 5 400Gbps 2000 0"), @"
    t.txt:7:13: a delay of 2000s
      fix: write 1ns to 1s; a number without unit is in seconds
    ");
    assert_snapshot!(wrong_fabric(last, "4 5 400Gbps 2min 0"), @"
    t.txt:7:13: `2min` is not a valid value for `delay`
      fix: write a whole number of picoseconds, as in `1000ns` or `0.001ms`
    ");
    assert_snapshot!(wrong_fabric(last, "4 5 400Gbps 999ps 0"), @"
    t.txt:7:13: a delay of 999ps
      fix: write 1ns to 1s; a number without unit is in seconds
    ");
    assert_snapshot!(wrong_fabric(last, "4 5 400Gbps 2000ns 1"), @"
    t.txt:7:20: `1` is not a valid value for `error_rate`
      fix: write the probability that a packet is lost, from 0 to below 1
    ");
}

#[test]
fn hosts_may_be_joined() {
    let ring = "4 0 4\n\n0 1 1Gbps 1us 0\n1 2 1Gbps 1us 0\n2 3 1Gbps 1us 0\n3 0 1Gbps 1us 0\n";
    let file = fabric(ring).unwrap();
    assert_eq!(
        (file.hosts, file.switches.len(), file.links.len()),
        (4, 0, 4)
    );
    assert_snapshot!(file.warnings[0], @"t.txt:3: a link joins the hosts 0 and 1, and 3 more links such as this: hosts with links to other hosts forward packets; list a node as a switch if it is one");
}

#[test]
fn faults_of_the_graph() {
    assert_snapshot!(wrong_fabric("3 5 100", "2 5 100"), @"
    t.txt:1: host 3 has no link
      fix: join each host to a switch or to another host, or list the node as a switch
    ");
    assert_snapshot!(fabric("4 2 2\n2 3\n0 2 1Gbps 1us 0\n1 3 1Gbps 1us 0\n").unwrap_err(), @"
    t.txt:1: no path leads from host 0 to host 1
      fix: add the links that join them
    ");
}

#[test]
fn hosts_may_have_several_links() {
    let servers = "7 2 1 2 8 A100\n4\n5 6\n0 4 1Tbps 1us 0\n1 4 1Tbps 1us 0\n2 4 1Tbps 1us 0\n\
        0 5 1Gbps 1us 0\n1 5 1Gbps 1us 0\n2 5 1Gbps 1us 0\n3 6 1Gbps 1us 0\n5 6 1Gbps 1us 0\n";
    let file = fabric(servers).unwrap();
    assert_eq!((file.hosts, file.switches.len()), (4, 3));
    assert_eq!(file.links.len(), 8);
    // Host 0 joins the two parts.
    let joined = fabric("4 2 3\n2 3\n0 2 1Gbps 1us 0\n1 3 1Gbps 1us 0\n0 3 1Gbps 1us 0\n");
    assert_eq!(joined.unwrap().links.len(), 3);
}

#[test]
fn reads_flows() {
    let workload = flows(FLOWS).unwrap();
    let second = workload.flow(clearway_units::FlowId(1));
    assert_eq!((second.src, second.dst), (HostId(1), HostId(3)));
    assert_eq!(second.label, 2);
    assert_eq!((second.priority, second.dport), (Some(1), Some(200)));
    assert_eq!(second.start, Start::At(Time::from_ps(2_000_000_025_000)));
    assert_eq!(second.bytes, Bytes::new(5_000_000_000), "beyond 32 bits");
    let last = workload.flow(clearway_units::FlowId(2));
    assert_eq!(last.start, Start::At(Time::from_ps(1_900_000_000_000)));
    workload.check(4).unwrap();
    assert_eq!(flows("0\n").unwrap().flows, []);
}

#[test]
fn counts_of_flows_must_match() {
    assert_snapshot!(flows("").unwrap_err(), @"
    f.txt:1: the file is empty
      fix: begin it with the number of flows
    ");
    assert_snapshot!(flows("0 1 3 100 5 2\n").unwrap_err(), @"
    f.txt:1:3: the first line is the number of flows and nothing else
      fix: write the number on a separate line above the flows
    ");
    assert_eq!(flows(&FLOWS.replacen('3', "2", 1)).unwrap().flows.len(), 2);
    assert_snapshot!(flows(&FLOWS.replacen('3', "4", 1)).unwrap_err(), @"
    f.txt:4: line 1 announces 4 flows, but the file has 3
      fix: write 3 as `flow_num`, or restore the missing lines if the file was cut short
    ");
    assert_snapshot!(flows("many\n").unwrap_err(), @"
    f.txt:1:1: `many` is not a valid value for `flow_num`
      fix: write a whole number from 0 to 4294967295
    ");
}

#[test]
fn faults_of_flows() {
    assert_snapshot!(wrong_flow("0 1 3 100 5"), @"
    f.txt:2: a flow has 6 words, but this line has 5
      fix: write `src dst pg dport size start`, each on a separate line
    ");
    assert_snapshot!(wrong_flow("0 1 3 100 5 2 2"), @"
    f.txt:2:15: a flow has 6 words, but this line has 7
      fix: write `src dst pg dport size start`, each on a separate line
    ");
    assert_snapshot!(wrong_flow("0 4 3 100 5 2"), @"
    f.txt:2:3: node 4 is not a host of the topology, which has 4
      fix: name a host from 0 to 3, or choose the topology that belongs to the file
    ");
    assert_snapshot!(wrong_flow("0 x 3 100 5 2"), @"
    f.txt:2:3: `x` is not a valid value for `dst`
      fix: write a whole number from 0 to 4294967295
    ");
    assert_snapshot!(wrong_flow("1 1 3 100 5 2"), @"
    f.txt:2:3: host 1 sends to itself
      fix: choose another destination
    ");
    assert_snapshot!(wrong_flow("0 1 0 100 5 2"), @"
    f.txt:2:5: `pg` 0 is the class of acknowledgements and other control packets, which is neither marked nor paused
      fix: write a priority from 1 to 7; 3 is usual
    ");
    assert_snapshot!(wrong_flow("0 1 8 100 5 2"), @"
    f.txt:2:5: `8` is not a valid value for `pg`
      fix: write a priority from 1 to 7; 3 is usual
    ");
    assert_snapshot!(wrong_flow("0 1 3 65536 5 2"), @"
    f.txt:2:7: `65536` is not a valid value for `dport`
      fix: write a whole number from 0 to 65535
    ");
    assert_snapshot!(wrong_flow("0 1 3 100 0 2"), @"
    f.txt:2:11: `0` is not a valid value for `size`
      fix: write a whole number from 1 to 18446744073709551615
    ");
    assert_snapshot!(wrong_flow("0 1 3 100 18446744073709551616 2"), @"
    f.txt:2:11: `18446744073709551616` is not a valid value for `size`
      fix: write a whole number from 1 to 18446744073709551615
    ");
    assert_snapshot!(wrong_flow("0 1 3 100 5 -2"), @"
    f.txt:2:13: `-2` is not a valid value for `start`
      fix: write a number of seconds, as in 2.000000025
    ");
    assert_snapshot!(wrong_flow("0 1 3 100 5 2s"), @"
    f.txt:2:13: `2s` is not a valid value for `start`
      fix: write a number of seconds, as in 2.000000025
    ");
    assert_snapshot!(wrong_flow("0 1 3 100 5 2.0000000000001"), @"
    f.txt:2:13: a start at 2.0000000000001 s is finer than a picosecond
      fix: round it to 12 decimals
    ");
    assert_snapshot!(wrong_flow("0 1 3 100 5 20000000"), @"
    f.txt:2:13: a start at 20000000 s is beyond the longest run of 213 days
      fix: write an earlier start, in seconds
    ");
    let both = "2\n0 1 3 100 18446744073709551615 2\n0 1 3 100 1 2\n";
    assert_snapshot!(flows(both).unwrap_err(), @"
    f.txt:3: the sizes up to this flow add up to more than 2^64 bytes
      fix: write smaller sizes
    ");
    assert_snapshot!(parse_hpcc_flows("f.txt", FLOWS, hosts(0)).unwrap_err(), @"
    f.txt:2:1: node 0 is not a host of the topology, which has 0
      fix: choose the topology that belongs to the file
    ");
}

fn hosts(count: u32) -> HpccHosts<'static> {
    HpccHosts {
        count,
        numbers: None,
    }
}

/// HPCC's own default files: more links and flows than are announced, and a switch before the hosts.
#[test]
fn files_that_hpcc_runs_are_read_as_it_reads_them() {
    let star = |header: &str| {
        format!("{header}\n0\n0 1 100Gbps 1us 0\n2 0 100Gbps 1us 0\n0 3 100Gbps 1us 0\n")
    };
    let warnings = |text: &str| {
        let file = parse_hpcc_topology("t.txt", text).unwrap();
        let warnings: Vec<String> = file.warnings.iter().map(ToString::to_string).collect();
        (file, warnings.join("\n"))
    };
    let (file, said) = warnings(&star("4 1 3"));
    assert_eq!(file.hosts, 3);
    assert_eq!(file.host_numbers.as_deref(), Some(&[1, 2, 3][..]));
    assert_eq!(file.switches, [0]);
    let ends: Vec<[u32; 2]> = file.links.iter().map(|link| link.ends).collect();
    assert_eq!(ends, [[3, 0], [1, 3], [3, 2]]);
    assert_snapshot!(said, @"t.txt:1: hosts are counted from 0 here, in the order of their numbers, so that node 1 is host 0; switches keep their numbers, and files of flows have those of this file");
    let numbers = HpccHosts {
        count: 3,
        numbers: file.host_numbers.as_deref(),
    };
    let (flows, said) = parse_hpcc_flows(
        "f.txt",
        "1\n1 3 3 100 5 2\n2 3 3 100 5 2\n1 2 3 100 5 2\n",
        numbers,
    )
    .unwrap();
    assert_eq!((flows.flows[0].src.0, flows.flows[0].dst.0), (0, 2));
    assert_snapshot!(said[0], @"f.txt:3: line 1 announces 1 flow: 2 lines from here on are not used, as in the HPCC simulator; correct `flow_num` if they should be");
    let error = parse_hpcc_flows("f.txt", "1\n0 3 3 100 5 2\n", numbers).unwrap_err();
    assert_snapshot!(error, @r"
    f.txt:2:1: node 0 is not a host of the topology, which has 3
      fix: name a host from 1 to 3, or choose the topology that belongs to the file
    ");

    // PowerTCP's header, and one with four words more.
    let (of_four, said) = warnings(&star("4 1 1 3"));
    assert_eq!(of_four.links, file.links);
    assert_snapshot!(said.lines().next().unwrap(), @"t.txt:1: `tor_num` 1 is not used: the links say which switch is where");
    let (of_seven, said) = warnings(&star("4 1 3 1 0 1 1"));
    assert_eq!(of_seven.links, file.links);
    assert_snapshot!(said.lines().next().unwrap(), @"t.txt:1: the words after `link_num` are not used: the links say which switch is where");
    let (of_two, said) = warnings(&star("3 1 2").replace("0 3", "0 2"));
    assert_eq!(of_two.links.len(), 2);
    assert_snapshot!(said.lines().last().unwrap(), @"t.txt:5: line 1 announces 2 links: 1 line from here on is not used, as in the HPCC simulator; correct `link_num` if they should be");
}

#[test]
fn not_all_hosts_are_left_out() {
    let text = "3 1 0\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n";
    let error = parse_hpcc_topology("t.txt", text).unwrap_err();
    assert_snapshot!(error, @"
    t.txt:1: host 0 has no link
      fix: join each host to a switch or to another host, or list the node as a switch, or correct `link_num`: the lines from 3 on are not used
    ");
}

/// GPUs of a server belong to one node if the server has NVSwitches.
#[test]
fn simai_says_how_many_gpus_a_server_has() {
    let file = |header: &str| {
        let links = "4 5 6\n0 4 1600Gbps 100ns 0\n1 4 1600Gbps 100ns 0\n2 5 1600Gbps 100ns 0\n3 5 1600Gbps 100ns 0\n\
            0 6 200Gbps 1us 0\n1 6 200Gbps 1us 0\n2 6 200Gbps 1us 0\n3 6 200Gbps 1us 0\n";
        parse_hpcc_topology("t.txt", &format!("{header}\n{links}")).unwrap()
    };
    assert_eq!(file("7 2 2 1 8 H100").gpus_per_server, 2);
    assert_eq!(file("7 2 2 1 8 H100").warnings, []);
    let unused = file("7 2 0 3 8 H100");
    assert_eq!(unused.gpus_per_server, 1);
    assert_snapshot!(unused.warnings[0], @"t.txt:1: `gpus_per_server` 2 is not used, each host is a server: no NVSwitch joins them");
    assert_eq!(
        file("7 3 2 1 8 H100").gpus_per_server,
        1,
        "4 are not whole servers"
    );
}

//! Mutations of sound and nearly sound files: no reader panics, and every error has a line and a fix.
//!
//! `CLEARWAY_FUZZ_ITERATIONS` sets how many files are tried (20 000 unless given). The mutations are drawn from fixed seeds, so a
//! failure repeats; its number and text are printed.

use clearway_formats::{
    AstraDimension, ChakraOptions, ChakraReader, FileFormat, HpccHosts, HpccLink, HpccValue,
    InfragraphForm, InfragraphOptions, NcclGpuLink, NcclLinkTarget, PytorchReader, StartUnit,
    parse_astra_network, parse_astra_system, parse_cm, parse_goal, parse_goal_binary,
    parse_hpcc_config, parse_hpcc_flows, parse_hpcc_topology, parse_htsim_command,
    parse_infragraph, parse_nccl_topology, parse_simai, parse_sizes, parse_topo, write_chakra,
    write_cm, write_goal, write_goal_binary, write_infragraph, write_simai,
};
use clearway_testing::{cases, number};
use clearway_units::{Bytes, Purpose, RandomStream};
use clearway_workload::{
    CollectiveCall, CollectiveKind, ExpansionFault, FileError, Graph, GraphError, Operation,
    OperationDependency, Rank, RankProgram, TaskId,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::panic::catch_unwind;

const CONNECTIONS: [&str; 4] = [
    "Nodes 16\nConnections 4\nTriggers 1\n0->13 id 1 start 0 size 2000000 send_done_trigger 1\n\
     1->12 id 2 start 5 size 4086 send_done_trigger 1\n13->0 id 3 trigger 1 size 2000000\n\
     12->1 id 4 trigger 1 size 2000000\ntrigger id 1 barrier count 2\n",
    "# ring\nNodes 3\nConnections 3\nTriggers 2\n0->1 id 1 start 0.5 size 10 recv_done_trigger 1\n\
     1->2 id 2 trigger 1 size 10 recv_done_trigger 2\n2->0 id 3 trigger 2 size 10 prio 3\n\
     trigger id 1 oneshot\ntrigger id 2 multishot\n",
    "Nodes 4\nConnections 2\nFailures 1\n0->1 start 1e-3 size 18446744073709551615\n3->2 start 16777217 size 1\n\
     failure switch_type AGG switch_id 0 link_id 1\n",
    "Nodes 4\nConnections 2\nTriggers 1\n0->1 id 1 trigger 1 size 1 send_done_trigger 1\n\
     2->1 id 1 start 0 size 1 msg addon\ntrigger id 1 oneshot\n",
];

const FABRICS: [&str; 3] = [
    "Nodes 1024\nTiers 2\nPodsize 1024\n\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 32\nRadix_Up 32\n\
     Downlink_Latency_ns 1000\nSwitch_Latency_ns 0\n\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down 32\n\
     Downlink_Latency_ns 1000\n",
    "# three tiers\nNodes 128\nTiers 3\nPodsize 16\nTier 0\nOversubscribed 1\nDownlink_speed_Gbps 100\nRadix_Down 4\n\
     Radix_Up 4\nDownlink_Latency_ns 1000\nTier 1\nOversubscribed 1\nDownlink_speed_Gbps 100\nRadix_Down 8\nRadix_Up 8\n\
     Bundle 2\nDownlink_Latency_ns 1000\nTier 2\nDownlink_speed_Gbps 100\nRadix_Down 16\nBundle 2\nDownlink_Latency_ns 1000\n",
    "Nodes 64\nTiers 2\nTier 0\nDownlink_speed_Gbps 200\nRadix_Down 16\nRadix_Up 8\nDownlink_Latency_ns 1\nQueue_Up 1\n\
     Tier 1\nRadix_Up 3\nDownlink_speed_Gbps 400\nRadix_Down 4\nDownlink_Latency_ns 1\nOversubscribed 9\n",
];

const HPCC_FABRICS: [&str; 3] = [
    "6 2 5\n4 5\n0 4 100Gbps 1000ns 0.000000\n1 4 100Gbps 1us 0\n2 5 25000000000bps 0.001ms 0\n\
     3 5 100Gbps 1000ns 0\n4 5 400Gbps 2000ns 0\n",
    "# SimAI\n7 2 0 3 7 H100\n4 5\n6\n0 4 1GB/s 1us 0\n1 4 100Gb/s 1e-6 0\n2 5 10kbps 0.001ms 0\n\
     3 5 100Gbps 1000ns 0\n4 6 400Gbps 2000ns 0\n5 6 1bps 1ns 0\n6 4 1bps 1ns 0e9\n",
    "7 2 1 2 8 A100\n4\n5 6\n0 4 1Tbps 1us 0\n1 4 1Tbps 1us 0.5\n2 4 1Tbps 1us 1\n0 5 1Gbps 1us 0\n\
     1 5 1Gbps 1us 0\n2 5 1Gbps 1us 0\n3 6 1Gbps 1us 0\n5 6 1Gbps 1us 0\n",
];

const INFRASTRUCTURES: [&str; 4] = [
    "name: x\ndevices:\n- name: server\n  components:\n  - name: xpu\n    count: 2\n    choice: xpu\n  - name: nic\n    count: 2\n    \
     choice: nic\n  - name: nv\n    count: 1\n    choice: switch\n  links:\n  - name: pcie\n  - name: nvlink\n    physical:\n      \
     bandwidth:\n        gigabytes_per_second: 450\n  edges:\n  - ep1:\n      component: xpu\n    ep2:\n      component: nic\n    \
     scheme: one2one\n    link: pcie\n  - ep1:\n      component: xpu\n    ep2:\n      component: nv\n    scheme: many2many\n    \
     link: nvlink\n- name: switch\n  components:\n  - name: port\n    count: 4\n    choice: port\ninstances:\n- name: host\n  \
     device: server\n  count: 2\n- name: leaf\n  device: switch\n  count: 2\nlinks:\n- name: eth\n  physical:\n    bandwidth:\n      \
     gigabits_per_second: 400\n    latency:\n      ns: 500\nedges:\n- ep1:\n    instance: host\n    component: nic[0]\n  ep2:\n    \
     instance: leaf[0]\n    component: port[0:2]\n  scheme: one2one\n  link: eth\n- ep1:\n    instance: host[:]\n    component: nic[1]\n  \
     ep2:\n    instance: leaf[1]\n    component: port[0:2]\n  scheme: one2one\n  link: eth\n",
    "infrastructure:\n  name: x\n  devices:\n  - name: h\n    components:\n    - {name: nic, count: 1, choice: nic}\n  - name: s\n    \
     components:\n    - {name: port, count: 8, choice: port}\n  instances:\n  - {name: h, device: h, count: 4}\n  - {name: s, device: s, \
     count: 2}\n  links:\n  - name: l\n    physical: {bandwidth: {gigabits_per_second: 12.5}, latency: {us: 0.25}}\n  edges:\n  - ep1: \
     {instance: h, component: nic}\n    ep2: {instance: s, component: 'port[::4]'}\n    scheme: one2one\n    link: l\n  - ep1: {instance: \
     's[0]', component: 'port[1:4]'}\n    ep2: {instance: 's[1]', component: 'port[-3:]'}\n    scheme: many2many\n    link: l\n\
     annotations:\n  nodes:\n  - name: s[0:2]\n    attributes:\n    - attribute: clearway-latency\n      value: 5ns\n  edges:\n  - ep1: \
     h.0.nic.0\n    ep2: s.0.port.0\n    attributes:\n    - attribute: clearway-packet-loss\n      value: \"0.5\"\n",
    "{\n \"devices\": [\n  {\"name\": \"h\", \"components\": [ {\"name\": \"c\", \"count\": 2, \"choice\": \"device\"},\n   {\"name\": \"x\", \
     \"count\": 1, \"choice\": \"xpu\"} ] },\n  {\"name\": \"c\", \"components\": [ {\"name\": \"p\", \"count\": 1, \"choice\": \"port\"} ] },\n  \
     {\"name\": \"s\", \"components\": [ {\"name\": \"p\", \"count\": 8, \"choice\": \"port\"} ] }\n ],\n \"instances\": [\n  {\"name\": \"h\", \
     \"device\": \"h\", \"count\": 3},\n  {\"name\": \"s\", \"device\": \"s\", \"count\": 3}\n ],\n \"links\": [ {\"name\": \"l\", \"physical\": \
     {\"bandwidth\": {\"gigabits_per_second\": 1}}} ],\n \"edges\": [\n  {\"ep1\": {\"instance\": \"h\", \"component\": \"c[0:2].p[0]\"},\n   \
     \"ep2\": {\"instance\": \"s\", \"component\": \"p[0:2]\"}, \"scheme\": \"one2one\", \"link\": \"l\"},\n  {\"ep1\": {\"instance\": \"s\", \
     \"component\": \"p[7]\"},\n   \"ep2\": {\"instance\": \"s\", \"component\": \"p[7]\"}, \"scheme\": \"ring\", \"link\": \"l\"}\n ]\n}\n",
    // Xpus joined within servers, and servers in a ring.
    "devices:\n- name: h\n  components:\n  - {name: x, count: 2, choice: xpu}\n  - {name: nic, count: 4, choice: nic}\n  links:\n  \
     - {name: ici, physical: {bandwidth: {gigabits_per_second: 200}, latency: {ns: 3}}}\n  edges:\n  - {ep1: {component: x}, ep2: \
     {component: x}, scheme: ring, link: ici}\ninstances:\n- {name: h, device: h, count: 3}\nlinks:\n- {name: l, physical: {bandwidth: \
     {gigabits_per_second: 100}, latency: {us: 1}}}\nedges:\n- {ep1: {instance: h, component: 'nic[0]'}, ep2: {instance: h, component: \
     'nic[0]'}, scheme: ring, link: l}\n- {ep1: {instance: h, component: 'x[1]'}, ep2: {instance: 'h[::-1]', component: 'x[1]'}, \
     scheme: one2one, link: l}\n- {ep1: {instance: h, component: 'nic[1]'}, ep2: {instance: h, component: 'nic[1]'}, scheme: ring, \
     link: l}\nannotations:\n  edges:\n  - ep1: h.0.nic.0\n    ep2: h.1.nic.0\n    attributes:\n    - attribute: clearway-order\n      \
     value: \"1\"\n",
];

const HPCC_FLOWS: [&str; 2] = [
    "3\n0 3 3 100 2000000 2\n1 3 1 200 5000000000 2.000000025\n3 0 7 0 1 1.9\n",
    "2 # flows\n\n0 1 0 100 18446744073709551615 2\n2 1 3 65535 1 1e-12\n3 2 3 1 1 0\n",
];

const CONFIGURATIONS: [&str; 2] = [
    "ENABLE_QCN 1 {0: off}\nCC_MODE 3\nPACKET_PAYLOAD_SIZE 1000\nTOPOLOGY_FILE mix/t.txt\nSIMULATOR_STOP_TIME 4.00\n\
     RP_TIMER 900 \nRATE_AI 50Mb/s\nKMAX_MAP 2 25000000000 400 100000000000 1600\nPMAX_MAP 1 25000000000 0.2\n",
    "# SimAI\nEWMA_GAIN 0.00390625\nERROR_RATE_PER_LINK 0.0000\nLINK_DOWN 0 0 0\nU_TARGET 0.95\nHAS_WIN 1\nMON_END 20000\n\
     SIMULATOR_STOP_TIME 40000000000000.00\nKMIN_MAP 1 25000000000 100\nHAS_WIN 0\n",
];

/// Command lines, a word on each line.
const COMMANDS: [&str; 2] = [
    "htsim_uec\n-topo\na.topo\n-tm\nb.cm\n-linkspeed\n400000\n-ecn\n20\n80\n-q\n35\n-sleek\n-seed\n13",
    "-nodes\n16\n-tiers\n2\n-hop_latency\n0.5\n-sender_cc_algo\nnscc\n-load_balancing_algo\nreps\n-strat\necmp_ar\n-pcie\n1.1",
];

const SIZES: [&str; 3] = [
    "0 0\n10000 15\n1000000 70.5\n30000000 100\n",
    "# a step\n\n64 0.0\n65\t99.5 # most\n1000000000000 1e2\n",
    "0 0\n1 0.5\n2 1\n",
];

const SCHEDULES: [&str; 3] = [
    "num_ranks 2\nrank 0 {\nl1: calc 1500 cpu 1\nl2: send 4096b to 1 tag 7\nl2 requires l1\nl3: recv 8b from 1\n}\n\
     rank 1 {\nl1: recv 4096b from 0 tag 7\nl2: calc 100\nl2 irequires l1\nl3: send 8b to 0\nl3 requires l2\n\
     l3 requires l1\n}\n",
    "num_ranks 3 // a ring\nrank 0 {\nl1: send 9b to 1\nl2: recv 9b from -1 tag -1 cpu 3 nic 1\n}\nrank 1 {\n\
     l1: recv 9b from 0\nl2: send 9b to 2 tag 5\nl2 requires l1\n}\nrank 2 { l1: recv 9b from 1 tag -1\n\
     l2: send 0b to 0 tag 1 nic 2\nl2 irequires l1\n/* self */ send 1b to 2\nl4: recv 1b from 2\nl4 requires l1\n}\n",
    "num_ranks 2\nrank 0 {\nsend 1b to 1 tag 1\nsend 2b to 1 tag 2\nsend 3b to 1 tag 1\n}\nrank 1 {\n\
     b: recv 9b from 0 tag 2\na: recv 9b from 0 tag -1\nc: recv 9b from -1 tag 1\nd: calc 5\nb requires d\nc requires a\n}\n",
];

const LAYERS: [&str; 2] = [
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 1 ga: 1 all_gpus: 8 checkpoints: 0 \
     checkpoint_initiates: 0 pp_comm: 0.0\n2\na -1 11 ALLREDUCE 1000 21 ALLGATHER 2000 31 ALLREDUCE_DP_EP 500 200\n\
     b -1 12 ALLTOALL_EP 800 22 NONE 0 0 REDUCESCATTER 64 1\n",
    "DATA x: 1 2\n1\na -1 1.5 BROADCAST 9 1 NONE 0 1 ALLREDUCE 4096.0 1\n",
];

const NCCL_NODES: [&str; 3] = [
    "<system version=\"1\">\n <cpu host_hash=\"0x1\" numaid=\"0\" arch=\"x86_64\">\n  <pci busid=\"0000:01:00.0\" class=\"0x060400\">\n\
     <pci busid=\"0000:02:00.0\" class=\"0x030200\" link_width=\"16\">\n<gpu dev=\"0\" sm=\"90\" rank=\"0\" gdr=\"1\">\n\
     <nvlink target=\"0000:09:00.0\" count=\"18\" tclass=\"0x068000\"/>\n<c2c bw=\"1\" count=\"1\"/>\n</gpu>\n</pci>\n\
     <pci busid=\"0000:03:00.0\" class=\"0x020700\">\n<nic>\n<net name=\"mlx5_0\" dev=\"0\" speed=\"400000\" latency=\"0.5\" rail=\"0\"/>\n\
     </nic>\n</pci>\n</pci>\n</cpu>\n <cpu host_hash=\"0x1\" numaid=\"1\">\n<pci busid=\"0000:04:00.0\">\n<gpu dev=\"1\" sm=\"90\">\n\
     <nvlink target=\"0000:02:00.0\" count=\"2\" />\n</gpu>\n</pci>\n<nic>\n<net dev=\"1\" speed=\"-1\" />\n</nic>\n</cpu>\n</system>\n",
    "<?xml version=\"1.0\"?>\n<!-- a cloud's -->\n<system version=\"1\">\n<cpu numaid=\"-1\">\n<pci class=\"0x060400\">\n\
     <pci busid=\"1\" class=\"0x030200\" />\n<pci busid=\"2\" class=\"0x020000\" />\n<pcilink target=\"3\" />\n</pci>\n</cpu>\n</system>\n",
    "<system version=\"2\">\n<cpu numaid=\"0\">\n<pci busid=\"0:1:0.0\">\n<gpu dev=\"1\" gcn=\"gfx942\" sm=\"304\">\n\
     <xgmi target=\"0:2:0.0\" count=\"1\" />\n<xgmi target=\"0:3:0.0\" count=\"1\" />\n</gpu>\n</pci>\n<pci busid=\"0:2:0.0\">\n\
     <gpu dev=\"0\" gcn=\"910\">\n<xgmi target=\"0:1:0.0\" count=\"1\" />\n</gpu>\n</pci>\n</cpu>\n</system>\n",
];

/// Words that fit somewhere, and words that fit nowhere.
const WORDS: [&str; 47] = [
    "0",
    "1",
    "65536",
    "65535",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999",
    "-1",
    "0.5",
    "1e9",
    "1e-9999",
    "",
    "#",
    "->",
    "0->1",
    "start",
    "size",
    "trigger",
    "id",
    "send_done_trigger",
    "recv_done_trigger",
    "barrier",
    "count",
    "multishot",
    "Nodes",
    "Tier",
    "Radix_Up",
    "Bundle",
    "\u{feff}é\0",
    "Oversubscribed",
    "0.5Gbps",
    "1e99s",
    "9999999999GB/s",
    "0.0000000000001",
    "num_ranks",
    "rank",
    "send",
    "recv",
    "calc",
    "requires",
    "l1:",
    "l2",
    "tag",
    "{",
    "/*",
];

fn pick<'a, T>(random: &mut RandomStream, items: &'a [T]) -> &'a T {
    &items[random.below(items.len() as u32) as usize]
}

/// `text` with one change: to a line, to a word, to a digit or to a byte.
fn mutated(text: &str, random: &mut RandomStream) -> String {
    let mut lines: Vec<Vec<String>> = text
        .split('\n')
        .map(|line| line.split(' ').map(str::to_owned).collect())
        .collect();
    let line = random.below(lines.len() as u32) as usize;
    let other = random.below(lines.len() as u32) as usize;
    let word = random.below(lines[line].len() as u32) as usize;
    match random.below(10) {
        0 => drop(lines.remove(line)),
        1 => lines.insert(other, lines[line].clone()),
        2 => lines.swap(line, other),
        3 => drop(lines[line].remove(word)),
        4 => {
            let copy = lines[line][word].clone();
            lines[other].push(copy);
        }
        5 => {
            let end = lines[line].len() - 1;
            lines[line].swap(word, end);
        }
        6 => lines[line][word] = (*pick(random, &WORDS)).to_owned(),
        7 => lines[line].insert(word, (*pick(random, &WORDS)).to_owned()),
        8 => lines.truncate(line),
        _ => lines[line][word] = other_digit(&lines[line][word], random),
    }
    let joined: Vec<String> = lines.iter().map(|line| line.join(" ")).collect();
    joined.join("\n")
}

/// `word` with one of its characters made a digit.
fn other_digit(word: &str, random: &mut RandomStream) -> String {
    let count = word.chars().count().max(1) as u32;
    let (place, digit) = (random.below(count), random.below(10));
    let digit = char::from_digit(digit, 10).unwrap_or('0');
    let replaced = |(index, character)| if index == place { digit } else { character };
    (0..).zip(word.chars()).map(replaced).collect()
}

fn iterations() -> u64 {
    number("CLEARWAY_FUZZ_ITERATIONS", cases(20_000, 100_000).into())
}

/// Tries `check` on mutations of `corpus` and returns how many of them were sound.
fn fuzz(
    corpus: &[&str],
    entity: u64,
    check: impl Fn(&str) -> Result<(), FileError> + std::panic::RefUnwindSafe,
) -> u64 {
    let mut sound = 0;
    for iteration in 0..iterations() {
        let mut random = RandomStream::new(iteration, Purpose::Test, entity);
        let mut text = (*pick(&mut random, corpus)).to_owned();
        for _ in 0..random.below(4) {
            text = mutated(&text, &mut random);
        }
        match catch_unwind(|| check(&text)) {
            Ok(Ok(())) => sound += 1,
            Ok(Err(error)) => assert!(
                error.line >= 1
                    && error.line <= text.lines().count().max(1)
                    && error.column != Some(0)
                    && !error.message.is_empty()
                    && !error.fix.is_empty(),
                "iteration {iteration}: {error:?}\n{text}"
            ),
            Err(_) => panic!("iteration {iteration} panicked on:\n{text}"),
        }
    }
    sound
}

/// Checks that the mutations are neither all sound nor all broken, once there are enough of them to tell.
fn assert_mixed(sound: u64) {
    let tried = iterations();
    assert!(
        tried < 1000 || (sound > 0 && sound < tried),
        "{sound} of {tried} were sound"
    );
}

#[test]
fn connection_matrices() {
    let sound = fuzz(&CONNECTIONS, 1, |text| {
        let file = parse_cm("fuzz.cm", text, StartUnit::Microseconds)?;
        // What is accepted can run, and survives being written.
        file.workload.check(file.nodes).unwrap();
        let again = parse_cm(
            "again.cm",
            &write_cm(&file.workload, file.nodes),
            StartUnit::Microseconds,
        );
        assert_eq!(again.unwrap().workload, file.workload);
        Ok(())
    });
    assert_mixed(sound);
}

#[test]
fn fabrics() {
    let sound = fuzz(&FABRICS, 2, |text| {
        let file = parse_topo("fuzz.topo", text)?;
        assert_eq!(file.leaves() * file.tiers[0].radix_down, file.nodes);
        assert_eq!(file.leaves_per_pod() * file.pods(), file.leaves());
        assert!(file.aggregations() > 0 && (file.cores() > 0) == (file.tiers.len() == 3));
        Ok(())
    });
    assert_mixed(sound);
}

#[test]
fn hpcc_fabrics() {
    let sound = fuzz(&HPCC_FABRICS, 3, |text| {
        let file = parse_hpcc_topology("fuzz.txt", text)?;
        let nodes = file.hosts + file.switches.len() as u32;
        let mut links_of_host = vec![0; file.hosts as usize];
        for link in &file.links {
            assert!(link.ends.iter().all(|&end| end < nodes));
            for &end in link.ends.iter().filter(|&&end| end < file.hosts) {
                links_of_host[end as usize] += 1;
            }
        }
        assert!(links_of_host.iter().all(|&links| links >= 1));
        let probability = |link: &HpccLink| (0.0..1.0).contains(&link.loss);
        assert!(file.links.iter().all(probability));
        assert!(FileFormat::Auto.is_hpcc(text) && parse_topo("x", text).is_err());
        Ok(())
    });
    assert_mixed(sound);
}

const NETWORKS: [&str; 2] = [
    "topology: [ Ring, FullyConnected, Switch ]\nnpus_count: [ 4, 2, 65536 ]\nbandwidth: [ 50.0, 1e2, 1 ]  # GB/s\nlatency: [ 500.0, 0, 9.5 ]\n",
    "{\"topology\": \"Switch\", \"npus_count\": 1, \"bandwidth\": [400], \"latency\": 65535, \"0\": 1}",
];

#[test]
fn networks_of_astra_sim() {
    let sound = fuzz(&NETWORKS, 14, |text| {
        let file = parse_astra_network("fuzz.yml", text)?;
        assert!(!file.dimensions.is_empty());
        let is_sound = |one: &AstraDimension| one.npus > 0 && one.bandwidth.as_bps() > 0;
        assert!(file.dimensions.iter().all(is_sound));
        Ok(())
    });
    assert_mixed(sound);
}

const SYSTEMS: [&str; 2] = [
    "{\"scheduling-policy\": \"LIFO\", \"endpoint-delay\": 10, \"active-chunks-per-dimension\": 1,\n \"preferred-dataset-splits\": 4, \"all-reduce-implementation\": [\"ring\", \"direct4\"],\n \"all-to-all-implementation\": [\"oneDirect\"], \"local-mem-bw\": 1600}\n",
    "{\"collective-optimization\": \"localBWAware\", \"roofline-enabled\": 1, \"peak-perf\": 312,\n \"all-gather-implementation\": [\"halvingDoubling\", \"doubleBinaryTree\"]}\n",
];

#[test]
fn systems_of_astra_sim() {
    let sound = fuzz(&SYSTEMS, 16, |text| {
        let system = parse_astra_system("fuzz.json", text)?;
        assert!(system.memory_bandwidth.is_none_or(|rate| rate.as_bps() > 0));
        Ok(())
    });
    assert_mixed(sound);
}

#[test]
fn infrastructures() {
    let options = InfragraphOptions::default();
    let sound = fuzz(&INFRASTRUCTURES, 10, |text| {
        let file = parse_infragraph("fuzz.yaml", text, &options)?;
        let fabric = &file.fabric;
        let nodes = fabric.hosts + fabric.switches.len() as u32;
        let mut is_linked = vec![false; nodes as usize];
        for link in &fabric.links {
            assert_ne!(link.ends[0], link.ends[1]);
            link.ends
                .iter()
                .for_each(|end| is_linked[*end as usize] = true);
        }
        assert!(
            is_linked[..fabric.hosts as usize]
                .iter()
                .all(|is_linked| *is_linked)
        );
        // What is accepted survives being written, unless some switch has no link, or hosts are joined.
        let is_written = !fabric.links.iter().any(|link| fabric.joins_hosts(link));
        if is_written && is_linked.iter().all(|is_linked| *is_linked) {
            for form in [InfragraphForm::Yaml, InfragraphForm::Json] {
                let text = write_infragraph(fabric, form);
                let again = parse_infragraph("again", &text, &options);
                let again = again.unwrap_or_else(|error| panic!("{error}\n{text}"));
                assert_eq!(&again.fabric, fabric, "{text}");
            }
        }
        Ok(())
    });
    assert_mixed(sound);
}

#[test]
fn hpcc_flows() {
    const HOSTS: u32 = 4;
    let sound = fuzz(&HPCC_FLOWS, 4, |text| {
        let (workload, _) = parse_hpcc_flows(
            "fuzz.txt",
            text,
            HpccHosts {
                count: HOSTS,
                numbers: None,
            },
        )?;
        // What is accepted can run.
        workload.check(HOSTS).unwrap();
        let priorities = workload.flows.iter().map(|flow| flow.priority);
        assert!(priorities.into_iter().all(|pg| matches!(pg, Some(1..=7))));
        assert!(FileFormat::Auto.is_hpcc(text));
        assert!(parse_cm("x", text, StartUnit::Seconds).is_err());
        Ok(())
    });
    assert_mixed(sound);
}

#[test]
fn hpcc_configurations() {
    let sound = fuzz(&CONFIGURATIONS, 10, |text| {
        let config = parse_hpcc_config("fuzz.txt", text)?;
        for setting in &config.settings {
            // Each key occurs once, and its text and value agree.
            assert_eq!(config.get(setting.key), Some(setting));
            let again =
                parse_hpcc_config("again.txt", &format!("{} {}", setting.key, setting.text));
            let is_short = setting.text.chars().count() < 40 && !text.contains('\0');
            assert!(!is_short || again.unwrap().settings[0].value == setting.value);
            if let HpccValue::Fraction(value) = setting.value {
                assert!(value.is_finite() && value >= 0.0);
            }
        }
        Ok(())
    });
    assert_mixed(sound);
}

#[test]
fn htsim_commands() {
    let words = |text: &str| -> Vec<String> { text.split('\n').map(str::to_owned).collect() };
    let sound = fuzz(&COMMANDS, 11, |text| {
        let command = parse_htsim_command(&words(text)).map_err(|error| FileError {
            file: "command".into(),
            line: 1,
            column: None,
            message: error.message,
            fix: error.fix,
        })?;
        for option in &command.options {
            assert!(command.has(option.name));
            let shown: Vec<String> = option.to_string().split(' ').map(str::to_owned).collect();
            let again = parse_htsim_command(&shown);
            let is_plain = shown.len() == 1 + option.values.len() && !text.contains('\0');
            assert!(
                !is_plain || again.unwrap().options[0] == *option,
                "{option}"
            );
        }
        Ok(())
    });
    assert_mixed(sound);
}

#[test]
fn nccl_nodes() {
    let sound = fuzz(&NCCL_NODES, 20, |text| {
        let node = parse_nccl_topology("fuzz.xml", text)?;
        assert!(!node.gpus.is_empty());
        for (own, place) in (0..).zip(&node.places) {
            assert!(place.parent.is_none_or(|parent| parent < own));
        }
        for (own, gpu) in (0..).zip(&node.gpus) {
            let to_itself_or_none = |link: &NcclGpuLink| match link.target {
                NcclLinkTarget::Switch => false,
                NcclLinkTarget::Gpu(other) => other == own || other as usize >= node.gpus.len(),
            };
            assert!(!gpu.links.iter().any(to_itself_or_none));
        }
        let places = node.places.len();
        let gpus = node.gpus.iter().map(|gpu| (gpu.place, gpu.dev));
        let nics = node.nics.iter().map(|nic| (nic.place, nic.dev));
        for devices in [gpus.collect::<Vec<_>>(), nics.collect()] {
            let numbers = devices.iter().map(|(place, dev)| {
                assert!((*place as usize) < places);
                (node.host_of(*place), *dev)
            });
            assert!(numbers.is_sorted_by(|a, b| a < b));
        }
        Ok(())
    });
    assert_mixed(sound);
}

#[test]
fn sizes() {
    let sound = fuzz(&SIZES, 5, |text| {
        let sizes = parse_sizes("fuzz.txt", text)?;
        let (first, last) = (sizes.points()[0], sizes.points()[sizes.points().len() - 1]);
        let (least, most) = (first.bytes.max(Bytes::new(1)), last.bytes);
        assert!(first.bytes.as_f64() < sizes.mean() && sizes.mean() < most.as_f64());
        let mut before = least;
        for percent in (0..=1000).map(|tenth| f64::from(tenth) / 10.0) {
            let size = sizes.quantile(percent);
            assert!(
                before <= size && size <= most,
                "{percent}: {before}, {size}"
            );
            before = size;
        }
        let mut random = RandomStream::new(1, Purpose::Test, 0);
        let drawn = sizes.sample(&mut random);
        assert!(least <= drawn && drawn <= most);
        Ok(())
    });
    assert_mixed(sound);
}

#[test]
fn schedules() {
    let sound = fuzz(&SCHEDULES, 6, |text| {
        let file = parse_goal("fuzz.goal", text)?;
        let graph = file.graph()?;
        // What is accepted can run, and survives being written in both forms.
        graph.check().unwrap();
        let written = write_goal(&file.program).unwrap();
        let again = parse_goal("again.goal", &written).unwrap();
        assert_eq!(again.program, file.program);
        let written = write_goal_binary(&file.program).unwrap();
        let again = parse_goal_binary("again.bin", &written).unwrap();
        assert_eq!(again.program, file.program);
        assert_eq!(again.graph().unwrap(), graph);
        Ok(())
    });
    assert_mixed(sound);
}

/// Checks that a graph can run, unless its collectives have more bytes than 64 bits hold, which is known only where they are expanded.
fn assert_runs(graph: &Graph) {
    let checked = graph.check();
    assert!(
        matches!(checked, Ok(()) | Err(GraphError::TooManyBytes { .. })),
        "{checked:?}"
    );
}

#[test]
fn layers() {
    let sound = fuzz(&LAYERS, 9, |text| {
        let workload = parse_simai("fuzz.txt", text)?.workload;
        // What is accepted survives being written, but for parts of nanoseconds.
        if let Ok(written) = write_simai(&workload) {
            let again = parse_simai("again.txt", &written).unwrap();
            assert_eq!(again.workload, workload);
        }
        if let Ok(program) = workload.program(8, 2) {
            assert_runs(&program.graph(&mut around).unwrap());
        }
        Ok(())
    });
    assert_mixed(sound);
}

#[test]
fn binary_schedules() {
    let corpus = SCHEDULES.map(|text| {
        let program = parse_goal("fuzz.goal", text).unwrap().program;
        write_goal_binary(&program).unwrap()
    });
    let sound = fuzz_bytes(&corpus, 7, |bytes| {
        let file = parse_goal_binary("fuzz.bin", bytes)?;
        file.graph()?.check().unwrap();
        Ok(())
    });
    assert_mixed(sound);
}

/// Sends from every rank of a group to the next one.
fn around(
    call: &CollectiveCall<'_>,
    graph: &mut Graph,
) -> Result<Vec<Vec<TaskId>>, ExpansionFault> {
    let next = call.group.iter().cycle().skip(1);
    let mut ends: Vec<Vec<TaskId>> = Vec::new();
    for ((&src, &dst), &start) in call.group.iter().zip(next).zip(call.starts) {
        let bytes = call.bytes.max(Bytes::new(1));
        ends.push(vec![graph.message((src, dst), bytes, [start])]);
    }
    Ok(ends)
}

#[test]
fn execution_traces() {
    let text = "num_ranks 2\nrank 0 {\na: calc 2000 cpu 1\nb: send 4096b to 1 tag 7\nb requires a\n}\n\
                rank 1 {\na: recv 4096b from 0 tag 7\nb: calc 1000\nb requires a\n}\n";
    let mut program = parse_goal("job.goal", text).unwrap().program;
    for rank in &mut program.ranks {
        let mut operations = rank.operations().to_vec();
        for kind in [CollectiveKind::AllReduce, CollectiveKind::AllGather] {
            let (bytes, group) = (Bytes::new(1 << 20), 0);
            operations.push(Operation::Collective { kind, bytes, group });
        }
        let waits = (1..4).map(|index| (index, OperationDependency::over(index - 1)));
        *rank = RankProgram::new(operations, waits.collect());
    }
    program.groups = vec![vec![Rank(1), Rank(0)]];
    let files = write_chakra(&program).unwrap();
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&files.traces[0]).unwrap();
    let corpus = [files.traces[0].clone(), packed.finish().unwrap()];
    let sound = fuzz_bytes(&corpus, 8, |bytes| {
        let mut reader = ChakraReader::new(2, ChakraOptions::default());
        reader.groups("fuzz.json", &files.groups)?;
        reader.rank("fuzz.0.et", bytes)?;
        reader.rank("fuzz.1.et", files.traces[1].as_slice())?;
        assert_runs(&reader.finish().graph(&mut around)?);
        Ok(())
    });
    assert_mixed(sound);
}

/// Profiles and execution traces, one value on a line and one word for each part, so that mutations change values.
const PROFILES: [&str; 3] = [
    r#"{ "distributedInfo" : { "rank" : 0 , "world_size" : 2 , "pg_config" : [ { "pg_name" : "0" , "ranks" : [ 0 , 1 ] } ] } ,
"traceEvents" : [
{ "cat" : "user_annotation" , "name" : "ProfilerStep#0" , "ts" : 0 , "dur" : 50 } ,
{ "cat" : "cuda_runtime" , "name" : "cudaLaunchKernel" , "ts" : 1 , "dur" : 1 , "tid" : 9 , "args" : { "correlation" : 1 } } ,
{ "cat" : "kernel" , "name" : "gemm" , "ts" : 2.5 , "dur" : 10 , "pid" : 0 , "args" : { "stream" : 7 , "correlation" : 1 } } ,
{ "cat" : "cpu_op" , "name" : "record_param_comms" , "ts" : 2 , "dur" : 3 , "tid" : 9 , "args" : { "External id" : 5 , "Rank" : 1 ,
"Collective name" : "broadcast" , "In msg nelems" : 8 , "Out msg nelems" : 8 , "dtype" : "Int" , "Process Group Name" : "0" } } ,
{ "cat" : "cuda_runtime" , "name" : "cudaLaunchKernel" , "ts" : 3 , "dur" : 1 , "tid" : 9 , "args" : { "correlation" : 2 } } ,
{ "cat" : "kernel" , "name" : "ncclKernel" , "ts" : 12.5 , "dur" : 5 , "pid" : 0 , "args" : { "stream" : 8 , "correlation" : 2 ,
"External id" : 5 } } ,
{ "cat" : "cuda_runtime" , "name" : "cudaStreamWaitEvent" , "ts" : 6 , "dur" : 1 , "tid" : 9 } ,
{ "cat" : "cuda_runtime" , "name" : "cudaDeviceSynchronize" , "ts" : 7 , "dur" : 20 , "tid" : 9 } ,
{ "cat" : "kernel" , "name" : "ncclKernel" , "ts" : 30 , "dur" : 5 , "pid" : 0 , "args" : { "stream" : 8 , "External id" : 6 ,
"Collective name" : "all_to_allv" , "In msg nelems" : 8 , "Out msg nelems" : 8 , "dtype" : "Int" , "Process Group Name" : "0" ,
"In split size" : "[1, 3]" , "Out split size" : [ 2 , 2 ] , "Process Group Ranks" : "[0, 1]" } } ] }
"#,
    r#"{ "traceEvents" : [
{ "cat" : "cpu_op" , "name" : "record_param_comms" , "ts" : 1 , "dur" : 1 , "tid" : 9 , "args" : { "External id" : 5 ,
"Collective name" : "send" , "In msg nelems" : 8 , "Out msg nelems" : 8 , "dtype" : "Half" , "Group size" : 2 , "Dst Rank" : 0 } } ,
{ "cat" : "cuda_runtime" , "name" : "cudaLaunchKernel" , "ts" : 3 , "dur" : 1 , "tid" : 9 , "args" : { "correlation" : 2 } } ,
{ "cat" : "kernel" , "name" : "ncclDevKernel_SendRecv" , "ts" : 12 , "dur" : 5 , "args" : { "correlation" : 2 } } ] }
"#,
    r###"{ "schema" : "1.1.1" , "nodes" : [
{ "id" : 3 , "name" : "## process_group:init ##" , "inputs" : { "values" : [ "[{\"pg_name\": \"0\", \"ranks\": []}]" ] } } ,
{ "id" : 4 , "name" : "record_param_comms" , "ctrl_deps" : 2 , "inputs" : { "values" : [ 1 , 2 , 0 , "allreduce" , [] ] } , "ts" : 1 ,
"dur" : 2 , "attrs" : [ { "name" : "dtype" , "value" : "Float" } , { "name" : "in_msg_nelems" , "value" : 9 } ,
{ "name" : "out_msg_nelems" , "value" : 9 } , { "name" : "pg_name" , "value" : "0" } , { "name" : "pg_size" , "value" : 2 } ,
{ "name" : "global_rank_start" , "value" : 0 } , { "name" : "global_rank_stride" , "value" : 1 } ] } ,
{ "id" : 5 , "name" : "gemm" , "ctrl_deps" : 2 , "cat" : "kernel" , "ts" : 3 , "inclusive_dur" : 5 , "stream" : 7 } ,
{ "id" : 6 , "name" : "ncclDevKernel" , "ctrl_deps" : 4 , "cat" : "kernel" , "ts" : 8 , "inclusive_dur" : 5 , "stream" : 8 } ] }
"###,
];

#[test]
fn profiles() {
    let mut sound = 0;
    for iteration in 0..iterations() {
        let mut random = RandomStream::new(iteration, Purpose::Test, 10);
        let mut texts = [0, 1].map(|_| (*pick(&mut random, &PROFILES)).to_owned());
        texts[1] = texts[1].replacen("\"rank\" : 0", "\"rank\" : 1", 1);
        for _ in 0..random.below(4) {
            texts[0] = mutated(&texts[0], &mut random);
        }
        let read = || {
            let mut reader = PytorchReader::new(2);
            reader.read("fuzz.0.json", Some(0), texts[0].as_bytes())?;
            reader.read("fuzz.1.json", Some(1), texts[1].as_bytes())?;
            assert_runs(&reader.finish().graph(&mut around)?);
            Ok::<_, FileError>(())
        };
        match catch_unwind(read) {
            Ok(Ok(())) => sound += 1,
            Ok(Err(error)) => assert!(
                !error.message.is_empty() && !error.fix.is_empty(),
                "iteration {iteration}: {error:?}\n{texts:?}"
            ),
            Err(_) => panic!(
                "iteration {iteration} panicked on:\n{}\n{}",
                texts[0], texts[1]
            ),
        }
    }
    assert_mixed(sound);
}

/// As [`fuzz`], for files without lines.
fn fuzz_bytes(
    corpus: &[Vec<u8>],
    entity: u64,
    check: impl Fn(&[u8]) -> Result<(), FileError> + std::panic::RefUnwindSafe,
) -> u64 {
    let mut sound = 0;
    for iteration in 0..iterations() {
        let mut random = RandomStream::new(iteration, Purpose::Test, entity);
        let mut bytes = pick(&mut random, corpus).clone();
        for _ in 0..random.below(4) {
            mutate(&mut bytes, &mut random);
        }
        match catch_unwind(|| check(&bytes)) {
            Ok(Ok(())) => sound += 1,
            Ok(Err(error)) => assert!(
                error.line == 0 && !error.message.is_empty() && !error.fix.is_empty(),
                "iteration {iteration}: {error:?}\n{bytes:?}"
            ),
            Err(_) => panic!("iteration {iteration} panicked on:\n{bytes:?}"),
        }
    }
    sound
}

/// Changes a byte, a number of four bytes, or the length.
fn mutate(bytes: &mut Vec<u8>, random: &mut RandomStream) {
    const NUMBERS: [u32; 6] = [0, 1, 2, 255, u32::MAX - 1, u32::MAX];
    let at = random.below(bytes.len().max(1) as u32) as usize;
    match random.below(8) {
        0 => bytes.truncate(at),
        1 => bytes.insert(at, random.below(256) as u8),
        2 if at < bytes.len() => drop(bytes.remove(at)),
        3 | 4 if at + 4 <= bytes.len() => {
            let number = pick(random, &NUMBERS).to_le_bytes();
            bytes[at..at + 4].copy_from_slice(&number);
        }
        5 if at < bytes.len() => bytes[at] = random.below(256) as u8,
        _ if at < bytes.len() => bytes[at] = bytes[at].wrapping_add(1),
        _ => bytes.push(0),
    }
}

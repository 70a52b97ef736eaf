//! Scenarios from the settings of other simulators.

use clearway_scenario::{
    Imported, Scenario, ScenarioError, SimaiFiles, htsim_options, import_hpcc, import_htsim,
    import_simai,
};
use clearway_testing::{Folder, inputs};
use clearway_transport::Registry;
use insta::assert_snapshot;
use std::fs;
use std::path::Path;

/// The keys of HPCC's configuration, `mode` and `rest` replaced.
fn hpcc_config(mode: u32, rest: &str) -> String {
    format!(
        "ENABLE_QCN 1\nUSE_DYNAMIC_PFC_THRESHOLD 1\nPACKET_PAYLOAD_SIZE 1000\nTOPOLOGY_FILE tests/it/import/topology.txt\n\
         FLOW_FILE tests/it/import/flow.txt\nFCT_OUTPUT_FILE mix/fct.txt\nPFC_OUTPUT_FILE mix/pfc.txt\nSIMULATOR_STOP_TIME 4.00\n\
         CC_MODE {mode}\nALPHA_RESUME_INTERVAL 1\nRATE_DECREASE_INTERVAL 4\nCLAMP_TARGET_RATE 0\nRP_TIMER 900\n\
         EWMA_GAIN 0.00390625\nFAST_RECOVERY_TIMES 1\nRATE_AI 50Mb/s\nRATE_HAI 100Mb/s\nMIN_RATE 100Mb/s\n\
         DCTCP_RATE_AI 1000Mb/s\nERROR_RATE_PER_LINK 0.0000\nL2_CHUNK_SIZE 4000\nL2_ACK_INTERVAL 1\nL2_BACK_TO_ZERO 0\n\
         HAS_WIN 1\nGLOBAL_T 1\nVAR_WIN 1\nFAST_REACT 1\nU_TARGET 0.95\nMI_THRESH 0\nINT_MULTI 1\nMULTI_RATE 0\n\
         SAMPLE_FEEDBACK 0\nPINT_LOG_BASE 1.05\nPINT_PROB 1.0\nRATE_BOUND 1\nACK_HIGH_PRIO 0\nLINK_DOWN 0 0 0\n\
         ENABLE_TRACE 1\nKMAX_MAP 3 25000000000 400 100000000000 1600 400000000000 6400\n\
         KMIN_MAP 3 25000000000 100 100000000000 400 400000000000 1600\n\
         PMAX_MAP 3 25000000000 0.2 100000000000 0.2 400000000000 0.2\nBUFFER_SIZE 32\nQLEN_MON_FILE mix/qlen.txt\n{rest}"
    )
}

/// Folder of the tests' files, from the current folder.
const FILES: &str = "tests/it/import/";

/// Words of a command line, with `@` for the folder of the files.
fn words(line: &str) -> Vec<String> {
    let words = line.split_whitespace();
    words.map(|word| word.replace('@', FILES)).collect()
}

fn htsim(line: &str) -> Result<Imported, ScenarioError> {
    import_htsim(&words(line), None)
}

/// A folder for configurations.
struct Bench(Folder);

impl Bench {
    fn new(name: &str) -> Self {
        Self(Folder::new(&format!("import-{name}")))
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn hpcc(&self, config: &str) -> Result<Imported, ScenarioError> {
        import_hpcc(&self.write("config.txt", config), None)
    }

    fn simai(&self, config: &str) -> Result<Imported, ScenarioError> {
        let path = self.write("SimAI.conf", config);
        let [topology, workload] = ["simai.txt", "layers.txt"].map(|name| format!("{FILES}{name}"));
        let files = SimaiFiles {
            topology: &topology,
            workload: &workload,
        };
        import_simai(&path, files, None)
    }

    /// The text without the name of the folder.
    fn shown(&self, text: &str) -> String {
        let folder = self.0.join("");
        text.replace(folder.to_str().unwrap(), "")
    }
}

/// The scenario of an import. All its keys exist, and its fabric and traffic can be built.
fn read(imported: &Imported) -> Scenario {
    let read = Scenario::read(&Registry::builtin(), "imported", &imported.text, None, &[]);
    let scenario = read.unwrap_or_else(|error| panic!("{error}\n{}", imported.text));
    let fabric = scenario.fabric();
    fabric.unwrap_or_else(|error| panic!("{error}\n{}", imported.text));
    scenario
}

fn manual(overrides: &[String]) -> Scenario {
    Scenario::read(&Registry::builtin(), "manual", "", None, overrides).unwrap()
}

/// The text without the comments at its top and its end, and without blank lines.
fn keys(text: &str) -> String {
    let keys = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    keys.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_command_line_of_htsim_sets_what_it_says_and_what_htsim_defaults_to() {
    let line = "htsim_uec -topo @leaf-spine.topo -tm @triggers.cm -linkspeed 400000 -sender_cc_algo nscc -qa_gate 2 -o log.dat";
    let imported = htsim(line).unwrap();
    read(&imported);
    let body = imported.text.split_once("\n\n").unwrap().1;
    assert_snapshot!(body.trim_end(), @r#"
    name = "triggers"       # -tm tests/it/import/triggers.cm
    seed = 13               # htsim's default
    stop.at-most = "995us"  # htsim's default, less the first start at 5us

    [topology]
    file = "tests/it/import/leaf-spine.topo"  # -topo tests/it/import/leaf-spine.topo
    port-queues = "switch"                    # htsim's default: it replaces Queue_Up and Queue_Down

    [switch]
    queue = "419150B"     # htsim's default: 1 BDP, 101 packets of 4150 B
    ecn.kmin = "87150B"   # htsim's default: 20 % of a BDP, 21 packets
    ecn.kmax = "336150B"  # htsim's default: 80 % of a BDP, 81 packets

    [transport]
    kind = "uet"                # htsim's default
    controller = "nscc"         # -sender_cc_algo nscc
    quick-adapt-fraction = 4.0  # -qa_gate 2: 2^2
    payload = "4086B"           # htsim's default: packets of 4150 B with headers of 64 B
    max-paths = 64              # htsim's default
    rto = "65.298us"            # htsim's default: 15 us, and the time to send six full queues
    rto-rtts = 0.0              # part of the above

    [[workload]]
    file = "tests/it/import/triggers.cm"  # -tm tests/it/import/triggers.cm

    # Without a counterpart, so that results differ:
    # * `recv_done_trigger` of the matrix: `htsim_uec` never fires it without `-conn_reuse`, and the flows that wait for it
    #   never start; here they start

    # Output:
    # * `-o log.dat`: results are in the folder of `clearway run --out DIR`, and `[observe]` has curves, timelines and
    #   captures
    "#);
    assert_eq!(imported.warnings.len(), 1, "{:?}", imported.warnings);
}

/// The translation by hand: the settings of the page "Coming from htsim …".
#[test]
fn an_import_equals_the_translation_by_hand() {
    let line = "-topo @leaf-spine.topo -tm @plain.cm -linkspeed 400000 -q 35 -ecn 7 28 -mtu 2112 -paths 128 -end 500 -seed 7 \
                -load_balancing_algo reps -sack_threshold 8192 -target_q_delay 3.5 -strat ecmp_ar -ar_granularity flow \
                -ar_sticky_delta 20 -paths 32";
    let imported = htsim(line).unwrap();
    assert_eq!(imported.warnings, [""; 0]);
    let by_hand = [
        "name=plain",
        "seed=7",
        "stop.at-most=500us",
        "topology.file=@leaf-spine.topo",
        "topology.port-queues=switch",
        "workload.file=@plain.cm",
        "transport.kind=uet",
        "transport.payload=2048B",
        "transport.spray=reps",
        "transport.max-paths=32",
        "transport.ack-bytes=8192B",
        "transport.target-qdelay=3.5us",
        // 15 us, and six queues of 35 packets at 400 Gb/s: 35 x 2112 x 8 x 6 / 400 ns.
        "transport.rto=23.8704us",
        "transport.rto-rtts=0",
        "switch.queue=73920B",
        "switch.ecn.kmin=14784B",
        "switch.ecn.kmax=59136B",
        "switch.routing=flowlet",
        "switch.adaptive.levels=[0.05, 0.1, 0.2]",
        "switch.adaptive.refresh=100ns",
        "switch.adaptive.flowlet-gap=20us",
    ];
    let by_hand: Vec<String> = by_hand.iter().map(|s| s.replace('@', FILES)).collect();
    assert_eq!(read(&imported).resolved(), manual(&by_hand).resolved());
}

#[test]
fn figures_are_those_that_htsim_prints() {
    // Printed by htsim_uec for the same command lines: marks, and the timeout.
    for (line, low, high, timeout) in [
        (
            "-topo @leaf-spine.topo -linkspeed 400000",
            "87150B",
            "336150B",
            "65.298us",
        ),
        ("-topo @leaf-spine.topo", "24.9KB", "99.6KB", "72.768us"),
        ("-linkspeed 400000", "128650B", "502150B", "90.198us"),
        ("-hop_latency 0.5", "20750B", "83KB", "64.8us"),
        (
            "-topo @leaf-spine.topo -linkspeed 400000 -disable_trim",
            "87150B",
            "336150B",
            "266.49us",
        ),
        (
            "-topo @leaf-spine.topo -linkspeed 400000 -q 20 -ecn 4 16 -mtu 2048",
            "8192B",
            "32768B",
            "19.9152us",
        ),
    ] {
        let imported = htsim(&format!("{line} -tm @plain.cm")).unwrap();
        read(&imported);
        for key in [
            format!("ecn.kmin = \"{low}\""),
            format!("ecn.kmax = \"{high}\""),
            format!("rto = \"{timeout}\""),
        ] {
            assert!(
                imported.text.contains(&key),
                "{line}: {key}\n{}",
                imported.text
            );
        }
    }
}

#[test]
fn congestion_control_follows_the_order_of_options() {
    for (options, kind, controller) in [
        ("", "uet", "nscc"),
        ("-sender_cc_only", "uet", "nscc"),
        ("-receiver_cc_only", "uet-rccc", "constant"),
        ("-receiver_cc_only -sender_cc_only", "uet", "nscc"),
        ("-receiver_cc", "uet-rccc", "nscc"),
        (
            "-sender_cc -receiver_cc -sender_cc_algo dctcp",
            "uet-rccc",
            "dctcp",
        ),
        (
            "-receiver_cc_only -sender_cc_algo constant",
            "uet-rccc",
            "constant",
        ),
        ("-disable_trim", "uet-no-trim", "nscc"),
        ("-disable_trim -receiver_cc", "uet-rccc", "nscc"),
        ("-sender_cc_algo constant -cwnd 10", "uet", "constant"),
    ] {
        let line = format!("-topo @leaf-spine.topo -tm @plain.cm -linkspeed 400000 {options}");
        let resolved = read(&htsim(&line).unwrap()).resolved();
        for key in [
            format!("kind = \"{kind}\""),
            format!("controller = \"{controller}\""),
            format!("trimming = {}", !options.contains("-disable_trim")),
        ] {
            assert!(resolved.contains(&key), "{options}: {key}\n{resolved}");
        }
    }
}

#[test]
fn no_option_of_htsim_is_dropped() {
    let values = [
        ("-tiers", "3"),
        ("-nodes", "16"),
        ("-planes", "1"),
        ("-linkspeed", "400000"),
        ("-hop_latency", "2"),
        ("-switch_latency", "0.3"),
        ("-failed", "1"),
        ("-end", "900"),
        ("-seed", "3"),
        ("-mtu", "4000"),
        ("-q", "200"),
        ("-queue_size_bdp_factor", "2"),
        ("-queue_type", "aeolus"),
        ("-host_queue_type", "swift"),
        ("-ecn", "10 20"),
        ("-trimsize", "70"),
        ("-strat", "rr_ecmp"),
        ("-ar_method", "pqb"),
        ("-ar_granularity", "flow"),
        ("-ar_sticky_delta", "7"),
        ("-sender_cc_algo", "dctcp"),
        ("-Ai", "1.5"),
        ("-Md", "0.5"),
        ("-alpha", "0.1"),
        ("-cwnd", "9"),
        ("-target_q_delay", "4"),
        ("-qa_gate", "2"),
        ("-sack_threshold", "9000"),
        ("-load_balancing_algo", "reps_legacy"),
        ("-paths", "32"),
        ("-pcie", "1.1"),
        ("-o", "x.dat"),
        ("-log", "sink"),
        ("-logtime", "1"),
        ("-logtime_us", "1"),
    ];
    for option in htsim_options() {
        let value = values.iter().find(|(name, _)| *name == option);
        let value = value.map_or("", |(_, value)| value);
        for topology in ["-topo @leaf-spine.topo -linkspeed 400000", ""] {
            if ["-topo", "-tm"].contains(&option) {
                continue;
            }
            let line = format!("{topology} -tm @plain.cm {option} {value}");
            let imported = htsim(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
            read(&imported);
            let (_, body) = imported.text.split_once("\n\n").unwrap();
            // A comment may be wrapped between an option and its value.
            let body = body.replace("\n#", "").replace("  ", " ");
            let given = format!("{option} {value}");
            let accounted = body.contains(given.trim());
            // These say what the file says as well, or what is the default.
            let is_silent = match option {
                "-linkspeed" => !topology.is_empty(),
                "-nodes" => !topology.is_empty(),
                "-planes" => true,
                _ => false,
            };
            assert!(accounted || is_silent, "{line}\n{}", imported.text);
        }
    }
}

/// Numbers at the ends of what the readers take give a scenario, which may be refused in turn, or an error.
#[test]
fn extreme_numbers_end_in_a_scenario_or_an_error() {
    let numbers = [
        "0",
        "1",
        "64",
        "65535",
        "2147483647",
        "0.000001",
        "18446744073709.551615",
        "1e-9",
    ];
    let mut scenarios = 0;
    let mut check = |imported: Result<Imported, ScenarioError>| {
        let Ok(imported) = imported else { return };
        scenarios += 1;
        // No number leaves the text of a scenario.
        let read = Scenario::read(&Registry::builtin(), "x", &imported.text, None, &[]);
        let not_toml = |error: &ScenarioError| error.message.contains("TOML");
        assert!(!read.as_ref().is_err_and(not_toml), "{}", imported.text);
    };
    for option in htsim_options() {
        for number in numbers {
            for rest in [
                "-topo @leaf-spine.topo",
                "-nodes 16",
                "-tiers 2 -nodes 8 -failed 1",
            ] {
                check(htsim(&format!(
                    "{rest} -tm gone.cm {option} {number} {number}"
                )));
                check(htsim(&format!(
                    "{rest} -tm gone.cm -disable_trim {option} {number}"
                )));
            }
        }
    }
    let bench = Bench::new("extremes");
    for key in hpcc_config(1, "")
        .lines()
        .filter_map(|line| line.split(' ').next())
    {
        for number in [
            "0",
            "1",
            "4294967295",
            "18446744073709551615",
            "1e300",
            "4294967295Tbps",
        ] {
            for mode in [1, 3, 8] {
                check(bench.hpcc(&hpcc_config(mode, &format!("{key} {number}\n"))));
            }
        }
    }
    check(bench.hpcc(&hpcc_config(1, "LINK_DOWN 18446744073709 4 5\n")));
    assert!(scenarios > 500, "{scenarios}");
}

#[test]
fn mistakes_in_a_command_line_are_named() {
    let bench = Bench::new("mistakes");
    let small = bench.write("small.cm", "Nodes 8\nConnections 1\n0->1 start 0 size 5\n");
    let bad = bench.write("bad.cm", "Nodes 16\nConnections 1\n0->99 start 0 size 5\n");
    let refused = [
        "-topo @leaf-spine.topo",
        "-topo @leaf-spine.topo -tm @triggers.cm -paths many",
        "-topo @leaf-spine.topo -tm BAD",
        "-topo @leaf-spine.topo -tm SMALL",
        "-topo @leaf-spine.topo -tm @triggers.cm -nodes 8",
        "-topo @leaf-spine.topo -tm @triggers.cm -end 5",
        "-topo @leaf-spine.topo -tm @triggers.cm -linkspeed 400000 -q 60",
        "-topo @leaf-spine.topo -tm @triggers.cm -ecn 50 20",
        "-topo @leaf-spine.topo -tm @triggers.cm -planes 2",
        "-tm SMALL",
        "-tm nowhere.cm",
    ];
    let errors = refused.map(|line| {
        let line = line.replace("BAD", &bad).replace("SMALL", &small);
        htsim(&line).unwrap_err().to_string()
    });
    assert_snapshot!(bench.shown(&errors.join("\n")), @r#"
    `-tm` is missing
      fix: name the connection matrix: `-tm FILE.cm`; a scenario cannot read it from standard input
    `-paths many`: not a valid value
      fix: write a whole number from 1 to 10000 after `-paths`
    bad.cm:3: host 99 does not exist (the file says `Nodes 16`, so hosts are 0 to 15)
      fix: correct the host number, or `Nodes`
    the topology has 16 hosts, and the connection matrix 8: `htsim_uec` stops
      fix: name the matrix that belongs to the topology; `clearway run` takes a smaller one
    `-nodes 8`, but the connection matrix has 16 hosts: `htsim_uec` stops
      fix: write `-nodes 16`, or leave it out
    `htsim_uec` ends at 5us, before the first flow of tests/it/import/triggers.cm
      fix: write a later `-end`, in microseconds
    marks end at 81 packets, above the queue of 60: `htsim_uec` stops
      fix: write a larger `-q`, or smaller thresholds with `-ecn LOW HIGH`, in packets
    marks begin at 50 packets and end at 20: `htsim_uec` stops
      fix: write the smaller number of `-ecn` first
    `-planes 2`: `htsim_uec` stops with more than one plane
      fix: leave it out; `topology.kind = "multi-plane"` has `planes`
    a fat tree of 3 tiers cannot have 8 hosts: `htsim_uec` stops
      fix: name a topology with `-topo`, or take 2 or 16 hosts
    the number of hosts is not known
      fix: write `-nodes N`, or run the command where the connection matrix is
    "#);
}

#[test]
fn files_that_are_elsewhere_leave_a_scenario_with_notes() {
    let imported = htsim("-topo gone.topo -tm gone.cm -failed 3").unwrap();
    assert_snapshot!(keys(&imported.text), @r#"
    name = "gone"         # -tm gone.cm
    seed = 13             # htsim's default
    stop.at-most = "1ms"  # htsim's default
    [topology]
    file = "gone.topo"      # -topo gone.topo
    port-queues = "switch"  # htsim's default: it replaces Queue_Up and Queue_Down
    [switch]
    queue = "1bdp"       # htsim's default: 1 BDP
    ecn.kmin = "20%bdp"  # htsim's default
    ecn.kmax = "80%bdp"  # htsim's default
    [transport]
    kind = "uet"       # htsim's default
    payload = "4086B"  # htsim's default: packets of 4150 B with headers of 64 B
    max-paths = 64     # htsim's default
    rto = "15us"       # htsim's default
    rto-rtts = 6.0     # htsim's default
    [[workload]]
    file = "gone.cm"  # -tm gone.cm
    "#);
    assert_snapshot!(imported.warnings.join("\n"), @r#"
    `-tm gone.cm`: there is no such file here, so that `stop.at-most` counts from a first start at 0 us
    `-topo gone.topo`: there is no such file here, so that limits of queues and marks are shares of a bandwidth-delay product without the serialisation of packets, which htsim adds
    `-failed 3`: htsim slows so many links from core to aggregation switches to a quarter, in this direction alone; here a link has one rate for both: `topology.links = ["agg0-core0 rate=25Gbps"]`
    "#);
}

#[test]
fn slower_links_have_smaller_queues() {
    let imported =
        htsim("-topo @leaf-spine.topo -tm @plain.cm -linkspeed 400000 -failed 1").unwrap();
    read(&imported);
    assert_eq!(imported.warnings, [""; 0]);
    let wanted = ["queue = \"8.383us\"", "\"leaf3-spine0 rate=100Gbps\"]"];
    assert!(
        wanted.iter().all(|key| imported.text.contains(key)),
        "{}",
        imported.text
    );
}

#[test]
fn a_configuration_of_hpcc_sets_what_it_says() {
    let bench = Bench::new("hpcc");
    let imported = bench.hpcc(&hpcc_config(1, "LINK_DOWN 100 5 4\n")).unwrap();
    read(&imported);
    let body = imported.text.split_once("\n\n").unwrap().1;
    assert_snapshot!(body.trim_end(), @r#"
    name = "flow"        # FLOW_FILE
    stop.at-most = "2s"  # config.txt:8 SIMULATOR_STOP_TIME 4.00, less the first start at 2s

    [topology]
    file = "tests/it/import/topology.txt"  # config.txt:4 TOPOLOGY_FILE tests/it/import/topology.txt
    reroute-delay = "0s"                   # as in HPCC's simulator: at once

    [switch]
    kind = "shared-buffer"  # as in HPCC's simulator: pause frames
    buffer = "33554432B"    # config.txt:42 BUFFER_SIZE 32 MiB
    ecn.enabled = true      # config.txt:1 ENABLE_QCN 1
    ecn.kmin = "32us"       # config.txt:40 KMIN_MAP, rows that scale with the rate
    ecn.kmax = "128us"      # config.txt:39 KMAX_MAP, rows that scale with the rate
    ecn.pmax = 0.2          # config.txt:41 PMAX_MAP, rows that scale with the rate

    [transport]
    kind = "rocev2"             # config.txt:9 CC_MODE 1
    controller = "dcqcn-timer"  # its form as in HPCC's simulator
    feedback = "none"           # as in HPCC's simulator: marks on acknowledgements
    payload = "1KB"             # config.txt:3 PACKET_PAYLOAD_SIZE 1000
    header = "48B"              # as in HPCC's simulator
    ack-size = "60B"            # as in HPCC's simulator, padded
    ack-interval = 1            # config.txt:22 L2_ACK_INTERVAL 1: bytes, in packets
    ack-class = "data"          # config.txt:36 ACK_HIGH_PRIO 0
    g = 0.00390625              # config.txt:14 EWMA_GAIN 0.00390625
    alpha-timer = "1us"         # config.txt:10 ALPHA_RESUME_INTERVAL 1
    decrease-timer = "4us"      # config.txt:11 RATE_DECREASE_INTERVAL 4
    rate-timer = "900us"        # config.txt:13 RP_TIMER 900
    fast-recovery-steps = 1     # config.txt:15 FAST_RECOVERY_TIMES 1
    rate-ai = "50Mbps"          # config.txt:16 RATE_AI 50Mb/s
    rate-hai = "100Mbps"        # config.txt:17 RATE_HAI 100Mb/s
    min-rate = "100Mbps"        # config.txt:18 MIN_RATE 100Mb/s
    clamp-target = false        # config.txt:12 CLAMP_TARGET_RATE 0
    window = "scaled"           # HAS_WIN 1; config.txt:26 VAR_WIN 1

    [[workload]]
    file = "tests/it/import/flow.txt"  # config.txt:5 FLOW_FILE tests/it/import/flow.txt

    [[event]]
    at = "2.0001s"            # config.txt:44 LINK_DOWN 100 5 4: microseconds after 2 s
    link = "switch4-switch5"  # config.txt:44 LINK_DOWN 100 5 4
    state = "down"            # config.txt:44 LINK_DOWN 100 5 4

    # Output:
    # * FCT_OUTPUT_FILE: `--fct-txt FILE`
    # * PFC_OUTPUT_FILE: `observe.trace.perfetto` has the pauses of each link on a timeline
    # * ENABLE_TRACE: `observe.trace.pcap` captures packets for Wireshark
    # * QLEN_MON_FILE: `[observe]` samples queues, links and flows during the whole run (series.parquet)

    # Without a key, and without effect on results:
    # * config.txt:37: `LINK_DOWN` is also on line 44, whose value counts
    # * config.txt:23 L2_BACK_TO_ZERO 0: the sender goes back to the missing packet
    # * config.txt:21 L2_CHUNK_SIZE 4000: for `L2_BACK_TO_ZERO` 1 only
    # * config.txt:25 GLOBAL_T 1: windows are those of the longest round trip
    # * config.txt:35 RATE_BOUND 1: senders always pace at the controller's rate
    # * config.txt:20 ERROR_RATE_PER_LINK 0.0000: no packets are lost
    # * config.txt:2 USE_DYNAMIC_PFC_THRESHOLD 1: thresholds of pauses are always dynamic, there and here
    # * DCTCP_RATE_AI, FAST_REACT, U_TARGET, MI_THRESH, INT_MULTI, MULTI_RATE, SAMPLE_FEEDBACK, PINT_LOG_BASE, PINT_PROB:
    #   `CC_MODE` 1 has no use for them, there or here
    "#);
    assert_eq!(imported.warnings, [""; 0]);
}

#[test]
fn acknowledgements_are_queued_with_data_as_in_hpccs_switches() {
    let bench = Bench::new("ack-class");
    let imported = bench.hpcc(&hpcc_config(1, "ACK_HIGH_PRIO 1\n")).unwrap();
    let lines = imported.text.lines();
    let own: Vec<&str> = lines.filter(|line| line.starts_with("ack-class")).collect();
    assert_snapshot!(own.join("\n"), @r#"ack-class = "data"          # config.txt:44 ACK_HIGH_PRIO 1: at hosts alone, switches queue them with data"#);
}

#[test]
fn each_mode_of_hpcc_is_its_transport() {
    let bench = Bench::new("modes");
    let mut all = String::new();
    for mode in [3, 7, 8] {
        let imported = bench.hpcc(&hpcc_config(mode, "")).unwrap();
        read(&imported);
        assert_eq!(imported.warnings, [""; 0], "{mode}");
        let transport = keys(&imported.text);
        let transport = transport.lines().skip_while(|line| *line != "[transport]");
        let transport: Vec<&str> = transport
            .take_while(|line| *line != "[[workload]]")
            .collect();
        all += &format!("{}\n", transport.join("\n"));
    }
    assert_snapshot!(all, @r#"
    [transport]
    kind = "hpcc"              # config.txt:9 CC_MODE 3
    payload = "1KB"            # config.txt:3 PACKET_PAYLOAD_SIZE 1000
    header = "48B"             # as in HPCC's simulator
    ack-size = "46B"           # as in HPCC's simulator, without its telemetry
    ack-interval = 1           # config.txt:22 L2_ACK_INTERVAL 1: bytes, in packets
    ack-class = "data"         # config.txt:36 ACK_HIGH_PRIO 0
    target-utilisation = 0.95  # config.txt:28 U_TARGET 0.95
    max-stage = 0              # config.txt:29 MI_THRESH 0
    rate-ai = "50Mbps"         # config.txt:16 RATE_AI 50Mb/s
    min-rate = "100Mbps"       # config.txt:18 MIN_RATE 100Mb/s
    base-rtt = "network"       # config.txt:25 GLOBAL_T 1
    fast-react = true          # config.txt:27 FAST_REACT 1
    [transport]
    kind = "timely"       # config.txt:9 CC_MODE 7
    payload = "1KB"       # config.txt:3 PACKET_PAYLOAD_SIZE 1000
    header = "56B"        # as in HPCC's simulator, with a time stamp of 8 B
    ack-size = "60B"      # as in HPCC's simulator, padded
    ack-interval = 1      # config.txt:22 L2_ACK_INTERVAL 1: bytes, in packets
    ack-class = "data"    # config.txt:36 ACK_HIGH_PRIO 0
    scaled = false        # as in HPCC's simulator: thresholds of 50 and 500 us
    rate-ai = "50Mbps"    # config.txt:16 RATE_AI 50Mb/s
    rate-hai = "100Mbps"  # config.txt:17 RATE_HAI 100Mb/s
    min-rate = "100Mbps"  # config.txt:18 MIN_RATE 100Mb/s
    window = "scaled"     # HAS_WIN 1; config.txt:26 VAR_WIN 1
    [transport]
    kind = "dctcp"             # config.txt:9 CC_MODE 8
    controller = "dctcp-rate"  # its form as in HPCC's simulator
    payload = "1KB"            # config.txt:3 PACKET_PAYLOAD_SIZE 1000
    header = "48B"             # as in HPCC's simulator
    ack-size = "60B"           # as in HPCC's simulator, padded
    ack-interval = 1           # config.txt:22 L2_ACK_INTERVAL 1: bytes, in packets
    ack-class = "data"         # config.txt:36 ACK_HIGH_PRIO 0
    g = 0.00390625             # config.txt:14 EWMA_GAIN 0.00390625
    rate-ai = "1Gbps"          # config.txt:19 DCTCP_RATE_AI 1000Mb/s
    min-rate = "100Mbps"       # config.txt:18 MIN_RATE 100Mb/s
    window = "scaled"          # HAS_WIN 1; config.txt:26 VAR_WIN 1
    "#);
}

#[test]
fn defaults_and_features_that_are_not_here_are_named() {
    let bench = Bench::new("defaults");
    let few = "TOPOLOGY_FILE tests/it/import/topology.txt\nFLOW_FILE tests/it/import/flow.txt\nCC_MODE 3\nRATE_AI 50Mb/s\nENABLE_QCN 0\n";
    let imported = bench.hpcc(few).unwrap();
    read(&imported);
    assert_snapshot!(keys(&imported.text), @r#"
    name = "flow"           # FLOW_FILE
    stop.at-most = "1.01s"  # default of HPCC's simulator, less the first start at 2s
    [topology]
    file = "tests/it/import/topology.txt"  # config.txt:1 TOPOLOGY_FILE tests/it/import/topology.txt
    [switch]
    kind = "shared-buffer"  # as in HPCC's simulator: pause frames
    buffer = "16777216B"    # default of HPCC's simulator: 16 MiB
    ecn.enabled = false     # config.txt:5 ENABLE_QCN 0
    telemetry = "hpcc"      # as in HPCC's simulator: fields of the telemetry
    [transport]
    kind = "hpcc"              # config.txt:3 CC_MODE 3
    payload = "1KB"            # default of HPCC's simulator
    header = "48B"             # as in HPCC's simulator
    ack-size = "46B"           # as in HPCC's simulator, without its telemetry
    ack-interval = 1           # default of HPCC's simulator: bytes, in packets
    ack-class = "data"         # default of HPCC's simulator
    target-utilisation = 0.95  # default of HPCC's simulator
    max-stage = 5              # default of HPCC's simulator
    rate-ai = "50Mbps"         # config.txt:4 RATE_AI 50Mb/s
    min-rate = "100Mbps"       # default of HPCC's simulator
    base-rtt = "network"       # default of HPCC's simulator
    fast-react = true          # default of HPCC's simulator
    [[workload]]
    file = "tests/it/import/flow.txt"  # config.txt:2 FLOW_FILE tests/it/import/flow.txt
    "#);
    let odd = "HAS_WIN 0\nERROR_RATE_PER_LINK 0.001\nL2_BACK_TO_ZERO 1\nRATE_BOUND 0\nSAMPLE_FEEDBACK 1\nINT_MULTI 4\n\
               NIC_TOTAL_PAUSE_TIME 5\nLINK_DOWN 5 0 1\n";
    let odd = bench.hpcc(&hpcc_config(3, odd)).unwrap();
    read(&odd);
    let warnings = [imported.warnings, vec![String::new()], odd.warnings].concat();
    assert_snapshot!(warnings.join("\n"), @r#"
    VAR_WIN 0 (default of HPCC's simulator): HPCC here always has a window that scales with the rate, as with `HAS_WIN` 1 and `VAR_WIN` 1
    MULTI_RATE 1 (default of HPCC's simulator): one rate for all hops, as with 0; a rate for each hop is not available

    config.txt:49 INT_MULTI 4: the units of bytes in the telemetry are not multiplied: `switch.telemetry = "hpcc"` has those of 1
    config.txt:46 L2_BACK_TO_ZERO 1: after a loss the sender goes back to the missing packet, not to the start of its chunk
    config.txt:44 HAS_WIN 0: HPCC here always has a window that scales with the rate, as with `HAS_WIN` 1 and `VAR_WIN` 1
    config.txt:48 SAMPLE_FEEDBACK 1: telemetry of some packets alone is not available: all packets have it, as with 0
    config.txt:47 RATE_BOUND 0: senders always pace at the controller's rate; pacing at the line rate alone is not available
    config.txt:51 LINK_DOWN 5 0 1: the topology has no such link, or is not here; an `[[event]]` with `at`, `link` and `state = "down"` takes one down
    config.txt:45 ERROR_RATE_PER_LINK 0.001: there is no key for all links: write it as the last word of each link in the topology
    config.txt:50 NIC_TOTAL_PAUSE_TIME 5: NICs do not pause by themselves
    "#);
}

#[test]
fn no_key_of_a_configuration_is_dropped() {
    let bench = Bench::new("all-keys");
    for mode in [1, 3, 7, 8] {
        let config = hpcc_config(
            mode,
            "PAUSE_TIME 5\nDATA_RATE 1Gbps\nLINK_DELAY 1us\nMON_END 5\n",
        );
        for imported in [bench.hpcc(&config).unwrap(), bench.simai(&config).unwrap()] {
            for line in config.lines() {
                let key = line.split(' ').next().unwrap();
                assert!(
                    imported.text.contains(key),
                    "{mode}: {key}\n{}",
                    imported.text
                );
            }
        }
    }
}

#[test]
fn mistakes_in_a_configuration_are_named() {
    let bench = Bench::new("hpcc-mistakes");
    let config = |rest: &str| hpcc_config(1, rest);
    let refused = [
        config("CC_MODE 10\n"),
        config("CC_MODE 4\n"),
        config("COLOUR red\n"),
        config("SIMULATOR_STOP_TIME 2\n"),
        config("KMAX_MAP 1 25000000000 400\n"),
        config("KMIN_MAP 2 25000000000 500 100000000000 400\n"),
        config("BUFFER_SIZE 0\n"),
        config("PACKET_PAYLOAD_SIZE 0\n"),
        config("RP_TIMER 0\n"),
        config("").replace("RATE_HAI 100Mb/s\n", ""),
        config("").replace("FLOW_FILE", "#"),
        config("").replace("KMAX_MAP", "#"),
        config("TOPOLOGY_FILE mix/gone.txt\nKMAX_MAP 2 25000000000 400 100000000000 800\n"),
    ];
    let errors = refused.map(|text| bench.hpcc(&text).unwrap_err().to_string());
    assert_snapshot!(bench.shown(&errors.join("\n")), @"
    config.txt:44: `CC_MODE` 10, HPCC-PINT, is not available
      fix: choose 3, HPCC with telemetry of each hop, or another mode: 1 DCQCN, 7 TIMELY, 8 DCTCP
    config.txt:44: `CC_MODE` 4 is no mode of HPCC's simulator
      fix: write 1 for DCQCN, 3 for HPCC, 7 for TIMELY or 8 for DCTCP
    config.txt:44: there is no key `COLOUR`
      fix: remove the line, or put a `#` before it: HPCC's simulator and SimAI ignore it
    config.txt:44: HPCC's simulator stops at 2s, before the first flow at 2s
      fix: write a later `SIMULATOR_STOP_TIME`, in seconds
    config.txt:44: `KMAX_MAP` has no row for 100Gbps, the rate of a switch port
      fix: add a row that begins with 100000000000
    config.txt:44: at 25Gbps, 500 KB is above the 400 KB of `KMAX_MAP`
      fix: write a smaller number, or a larger one in `KMAX_MAP`
    config.txt:44: a buffer of 0 MiB is not possible
      fix: write `BUFFER_SIZE` in MiB, such as 32
    config.txt:44: packets without payload carry nothing
      fix: write `PACKET_PAYLOAD_SIZE` in bytes, such as 1000
    config.txt:44: `RP_TIMER` is 0, so that the rate rises without a pause
      fix: write a period in microseconds, such as `RP_TIMER 900`
    config.txt: `RATE_HAI` is missing, and the simulator has no default for it
      fix: write it, such as `RATE_HAI 50Mb/s`
    config.txt: there is no `FLOW_FILE`
      fix: write `FLOW_FILE` into config.txt; for SimAI's files use `clearway import simai`
    config.txt: `KMAX_MAP` has no row for 25Gbps, the rate of a switch port
      fix: add a row that begins with 25000000000
    config.txt:45: the rows do not scale with the rate, and the topology is not here to say which of them count
      fix: run the command where the topology can be found
    ");
}

#[test]
fn a_configuration_of_simai_needs_its_command_line() {
    let bench = Bench::new("simai");
    let config = hpcc_config(
        1,
        "GLOBAL_T 0\nPACKET_PAYLOAD_SIZE 9000\nSIMULATOR_STOP_TIME 40000000000000.00\n\
                                 KMAX_MAP 2 100000000000 1600 400000000000 3200\n\
                                 KMIN_MAP 2 100000000000 400 400000000000 800\n\
                                 PMAX_MAP 2 100000000000 0.2 400000000000 0.2\n",
    );
    let imported = bench.simai(&config).unwrap();
    read(&imported);
    assert_snapshot!(keys(&imported.text), @r#"
    name = "layers"            # -w tests/it/import/layers.txt
    stop.at-most = "2592000s"  # SimAI runs until the workload is done
    [topology]
    file = "tests/it/import/simai.txt"  # -n tests/it/import/simai.txt
    [switch]
    kind = "shared-buffer"  # as in SimAI: pause frames
    buffer = "33554432B"    # SimAI.conf:42 BUFFER_SIZE 32 MiB
    ecn.enabled = true      # SimAI.conf:1 ENABLE_QCN 1
    ecn.kmin = "400KB"      # SimAI.conf:48 KMIN_MAP, row of 100Gbps
    ecn.kmax = "1.6MB"      # SimAI.conf:47 KMAX_MAP, row of 100Gbps
    ecn.pmax = 0.2          # SimAI.conf:49 PMAX_MAP, row of 100Gbps
    [transport]
    kind = "rocev2"             # SimAI.conf:9 CC_MODE 1
    controller = "dcqcn-timer"  # its form as in SimAI
    feedback = "none"           # as in SimAI: marks on acknowledgements
    payload = "9KB"             # SimAI.conf:45 PACKET_PAYLOAD_SIZE 9000
    header = "52B"              # as in SimAI
    ack-size = "60B"            # as in SimAI, padded
    ack-interval = 1            # SimAI.conf:22 L2_ACK_INTERVAL 1: bytes, in packets
    ack-class = "data"          # SimAI.conf:36 ACK_HIGH_PRIO 0
    g = 0.00390625              # SimAI.conf:14 EWMA_GAIN 0.00390625
    alpha-timer = "1us"         # SimAI.conf:10 ALPHA_RESUME_INTERVAL 1
    decrease-timer = "4us"      # SimAI.conf:11 RATE_DECREASE_INTERVAL 4
    rate-timer = "900us"        # SimAI.conf:13 RP_TIMER 900
    fast-recovery-steps = 1     # SimAI.conf:15 FAST_RECOVERY_TIMES 1
    rate-ai = "50Mbps"          # SimAI.conf:16 RATE_AI 50Mb/s
    rate-hai = "100Mbps"        # SimAI.conf:17 RATE_HAI 100Mb/s
    min-rate = "100Mbps"        # SimAI.conf:18 MIN_RATE 100Mb/s
    clamp-target = false        # SimAI.conf:12 CLAMP_TARGET_RATE 0
    window = "scaled"           # HAS_WIN 1; SimAI.conf:26 VAR_WIN 1
    [[workload]]
    kind = "trace"                       # -w tests/it/import/layers.txt
    file = "tests/it/import/layers.txt"  # -w tests/it/import/layers.txt
    "#);
    assert_snapshot!(imported.warnings.join("\n"), @"
    KMIN_MAP, KMAX_MAP, PMAX_MAP: the rows do not scale with the rate, and all ports have the thresholds of 100Gbps, the rate of most ports; the other simulator has 800 KB, 3200 KB and 0.2 at 400Gbps
    NVSwitches: SimAI's NVSwitches mark no packets; here they are switches like all others, with the same thresholds
    Latency of a send: SimAI waits before each send, 6 us and more by its tables or `AS_SEND_LAT`; here a send takes no time to post
    Queue pairs: SimAI opens one for each message, at the line rate; here two ranks have a connection for all messages between them
    ");
}

#[test]
fn a_scenario_finds_its_files_from_its_own_folder() {
    let line = words("-topo @leaf-spine.topo -tm @plain.cm");
    let imported = import_htsim(&line, Some(Path::new("tests/it/snapshots"))).unwrap();
    let file = |name: &str| format!("file = \"../import/{name}\"");
    let files = [file("leaf-spine.topo"), file("plain.cm")];
    assert!(
        files.iter().all(|file| imported.text.contains(file)),
        "{}",
        imported.text
    );
}

/// HPCC's simulator looks in its current folder, which is usually the one above the configuration.
#[test]
fn files_of_a_configuration_lie_above_it() {
    let bench = Bench::new("above");
    fs::create_dir(bench.0.join("mix")).unwrap();
    for name in ["topology.txt", "flow.txt"] {
        fs::copy(format!("{FILES}{name}"), bench.0.join("mix").join(name)).unwrap();
    }
    let config = hpcc_config(
        1,
        "TOPOLOGY_FILE mix/topology.txt\nFLOW_FILE mix/flow.txt\n",
    );
    let path = bench.write("mix/config.txt", &config);
    let imported = import_hpcc(&path, None).unwrap();
    assert_eq!(imported.warnings, [""; 0]);
    let found = bench.0.join("mix").join("flow.txt");
    assert!(
        imported.text.contains(found.to_str().unwrap()),
        "{}",
        imported.text
    );
}

#[test]
fn files_of_the_field_are_imported() {
    let Some(inputs) = inputs() else {
        return;
    };
    let (topo, matrix) = (
        inputs.join("leaf_spine_128_400g.topo"),
        inputs.join("perm_128n_128c_2MB.cm"),
    );
    let words = [
        "-topo",
        topo.to_str().unwrap(),
        "-tm",
        matrix.to_str().unwrap(),
        "-linkspeed",
        "400000",
    ];
    let imported = import_htsim(&words.map(str::to_owned), None).unwrap();
    assert_eq!(read(&imported).fabric().unwrap().topology.hosts, 128);
}

//! Results of a run, and their reproduction.

use crate::common::{Bench, matrix_scenario};
use clearway_report::{StatusName, Summary};
use std::io::Read as _;
use std::process::Stdio;

const SMALL: [&str; 7] = [
    "quickstart",
    "--set",
    "topology.hosts=32",
    "--set",
    "topology.hosts-per-leaf=8",
    "--set",
    "workload.message=200KB",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SMALL.iter().copied().chain(more.iter().copied()).collect()
}

#[test]
fn the_results_of_a_run() {
    let bench = Bench::new("results");
    let summary = bench.summary(&with(&[]));
    assert_eq!(summary.status, StatusName::Complete);
    assert_eq!((summary.flows.total, summary.flows.completed), (32, 32));
    assert_eq!(summary.scenario.name, "quickstart");
    assert_eq!(summary.threads, 1);
    // 200 000 bytes in packets of 4096 are 49.
    assert_eq!(summary.packets.data_sent, 32 * 49);
    assert_eq!(summary.packets.data_delivered, 32 * 49);
    assert!(summary.packet_hops > summary.data_packet_hops);
    let slowdown = summary.slowdown.expect("flows are done");
    assert!(slowdown.min >= 1.0 && slowdown.max < 3.0, "{slowdown:?}");

    // Check the documented fields by name: readers in other languages rely on the names.
    let json = bench.read("results/summary.json");
    for field in [
        "schema",
        "version",
        "revision",
        "scenario",
        "name",
        "hash",
        "seed",
        "status",
        "simulated_us",
        "flows",
        "total",
        "completed",
        "fct_us",
        "min",
        "mean",
        "p50",
        "p99",
        "p999",
        "max",
        "slowdown",
        "packets",
        "data_sent",
        "data_delivered",
        "retransmitted",
        "dropped",
        "marked",
        "acks",
        "probes",
        "cnps",
        "pfc_pauses",
        "data_packet_hops",
        "packet_hops",
        "digest",
        "threads",
        "cpu_seconds",
        "wall_seconds",
        "peak_rss_bytes",
    ] {
        assert!(
            json.contains(&format!("\"{field}\": ")),
            "no {field} in {json}"
        );
    }
    for name in ["flows.parquet", "scenario.toml"] {
        assert!(bench.path("results").join(name).exists(), "{name}");
    }
    let parquet = std::fs::read(bench.path("results/flows.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
}

#[test]
fn json_on_the_terminal_is_the_summary_in_the_folder() {
    let bench = Bench::new("json");
    let run = with(&["--json", "--out", "results"]);
    let printed = bench.succeed(&[&["run"], run.as_slice()].concat());
    assert_eq!(printed, bench.read("results/summary.json"));
    assert!(Summary::from_json(&printed).is_ok());
    // Without `--out`, the folder is printed on standard error.
    for (scenario, quiet) in [
        (&with(&["--json"])[..], false),
        (&with(&["--json", "--quiet"]), true),
        (
            &["nvlink-64", "--set", "workload.transactions=64", "--json"],
            false,
        ),
    ] {
        let output = bench.output(&[&["run"], scenario].concat());
        let [printed, said] =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text"));
        let identity = Summary::from_json(&printed).expect("the summary").scenario;
        let folder = format!("out/{}-{}", identity.name, identity.hash);
        assert_eq!(bench.read(&format!("{folder}/summary.json")), printed);
        assert_eq!(
            said.contains(&format!("results in {folder}\n")),
            !quiet,
            "{said}"
        );
    }
}

#[test]
fn results_go_to_a_folder_named_after_the_scenario() {
    let bench = Bench::new("default-folder");
    let printed = bench.succeed(&[&["run"], with(&["--set", "name=../a b"]).as_slice()].concat());
    let folders: Vec<_> = std::fs::read_dir(bench.path("out")).unwrap().collect();
    assert_eq!(folders.len(), 1);
    let name = folders[0].as_ref().unwrap().file_name();
    let name = name.to_string_lossy();
    assert!(name.starts_with("---a-b-"), "{name}");
    assert!(printed.contains(&*name), "{printed}");
    // Running again replaces the results.
    bench.succeed(&[&["run"], with(&["--set", "name=../a b"]).as_slice()].concat());
    assert_eq!(std::fs::read_dir(bench.path("out")).unwrap().count(), 1);
}

#[test]
fn the_resolved_scenario_reproduces_the_run() {
    let bench = Bench::new("again");
    let changes = [
        "--set",
        "transport.spray=oblivious",
        "--set",
        "switch.ecn.mark=enqueue",
        "--seed",
        "9",
        "--set",
        "topology.links=[\"leaf0-spine1 rate=200Gbps\", \"leaf1-spine0 down\"]",
    ];
    let first = bench.summary(&with(&changes));
    std::fs::copy(
        bench.path("results/scenario.toml"),
        bench.path("again.toml"),
    )
    .unwrap();
    let second = bench.summary(&["again.toml"]);
    assert_eq!(second.digest, first.digest);
    assert_eq!(second.scenario, first.scenario);
    assert_eq!(
        bench.read("results/scenario.toml"),
        bench.read("again.toml")
    );
    assert_ne!(bench.summary(&with(&[])).digest, first.digest);
}

#[test]
fn files_of_a_scenario_are_found_wherever_its_resolved_form_lies() {
    let bench = Bench::new("elsewhere");
    std::fs::create_dir(bench.path("sub")).unwrap();
    bench.write(
        "sub/x.cm",
        "Nodes 16\nConnections 1\n0->9 id 1 start 0 size 20000\n",
    );
    bench.write("sub/s.toml", &crate::common::matrix_scenario("x.cm"));
    let first = bench.summary(&["sub/s.toml"]);
    std::fs::copy(
        bench.path("results/scenario.toml"),
        bench.path("again.toml"),
    )
    .unwrap();
    assert_eq!(bench.summary(&["again.toml"]).digest, first.digest);
}

#[test]
fn digests_do_not_depend_on_threads_or_processes() {
    let bench = Bench::new("threads");
    let lossy = [
        "--set",
        "workload.kind=incast",
        "--set",
        "workload.senders=24",
        "--set",
        "switch.queue=60KB",
        "--set",
        "topology.bit-error-rate=1e-6",
    ];
    let base = bench.summary(&with(&lossy));
    assert!(base.packets.dropped > 0 && base.packets.corrupted > 0);
    for threads in ["1", "2", "4"] {
        let other = bench.summary(&with(&[&lossy[..], &["--threads", threads]].concat()));
        assert_eq!(other.digest, base.digest, "{threads} threads");
        assert_eq!(other.packets, base.packets);
    }
    let other_seed = bench.summary(&with(&[&lossy[..], &["--seed", "2"]].concat()));
    assert_ne!(other_seed.digest, base.digest);
}

#[test]
fn sizes_beyond_32_bits_work() {
    let bench = Bench::new("large");
    bench.write("x.cm", "Nodes 16\nConnections 2\n0->9 id 1 start 0 size 4294967297\n1->10 id 2 start 0 size 3000000000000\n");
    bench.write("s.toml", &crate::common::matrix_scenario("x.cm"));
    let (_, summary) = bench.unfinished(&["s.toml", "--set", "stop.at-most=20us"]);
    assert_eq!(summary.status, StatusName::Incomplete);
    assert_eq!((summary.flows.started, summary.flows.completed), (2, 0));
    assert!(summary.packets.data_delivered > 100);
}

#[test]
fn the_outermost_values_that_are_allowed_run() {
    let bench = Bench::new("outermost");
    for overrides in [
        vec![
            "topology.link-delay=1s",
            "transport.rto=100s",
            "stop.at-most=20s",
        ],
        vec!["topology.link-delay=1ns", "switch.queue=1MB"],
        vec![
            "topology.link-rate=1Mbps",
            "transport.rto=10s",
            "switch.queue=1MB",
            "workload.message=1KB",
            "stop.at-most=20s",
        ],
        vec!["topology.link-rate=100Tbps"],
        vec!["topology.bit-error-rate=0.5", "stop.at-most=1ms"],
        vec!["switch.queue=18446744073709551615B"],
        vec!["transport.payload=1B", "workload.message=2KB"],
        vec!["transport.payload=65471B"],
        vec!["transport.max-cwnd=18446744073709551615B"],
        vec!["transport.max-cwnd=1B"],
        vec!["transport.max-paths=1", "transport.min-paths=1"],
        vec!["transport.max-paths=65535", "transport.min-paths=65535"],
        vec!["transport.bitmap=4294967295"],
        vec![
            "transport.ewma=1e300",
            "transport.alpha=1e300",
            "transport.gamma=1e300",
            "transport.ooo-factor=1e300",
        ],
        vec![
            "transport.reference-rtt=0s",
            "transport.quick-adapt-fraction=0",
        ],
        vec!["transport.target-qdelay=18446744s"],
        vec![
            "transport.controller=constant",
            "transport.rate=1bps",
            "stop.at-most=1ms",
        ],
        vec!["seed=9223372036854775807"],
        vec!["workload.message=1B"],
    ] {
        let pairs = overrides.iter().flat_map(|pair| ["--set", *pair]);
        let pairs: Vec<&str> = pairs.collect();
        let output = bench.output(
            &[
                &["run"],
                with(&["--quiet", "--out", "o"]).as_slice(),
                &pairs,
            ]
            .concat(),
        );
        let errors = String::from_utf8_lossy(&output.stderr);
        // Some settings let no flow finish, but that is not an error.
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1)), "{overrides:?}: {errors}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let bench = Bench::new("head");
    for arguments in [
        vec!["explain", "strack"],
        vec!["list"],
        vec!["topology", "quickstart", "--links"],
        [&["run"], with(&["--out", "o"]).as_slice()].concat(),
    ] {
        let mut child = bench
            .command(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Close the pipe before reading.
        drop(child.stdout.take());
        let mut errors = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut errors)
            .unwrap();
        assert!(child.wait().unwrap().success(), "{arguments:?}: {errors}");
        assert_eq!(errors, "", "{arguments:?}");
    }
}

/// Two hosts on each of two switches, joined at four times the rate.
const GRAPH: &str = "6 2 5\n4 5\n0 4 100Gbps 1000ns 0\n1 4 100Gbps 1000ns 0\n2 5 100Gbps 1000ns 0\n3 5 100Gbps 1000ns 0\n4 5 400Gbps 1000ns 0\n";

/// The expected lines are computed by hand, with a payload of 1000 B and a header of 48 B as in HPCC's simulator.
#[test]
fn completed_flows_as_hpcc_records_them() {
    let bench = Bench::new("fct-txt");
    bench.write("graph.txt", GRAPH);
    // The second pair has two flows, not in order of start: ports are numbered in order of start.
    bench.write(
        "flows.txt",
        "3\n1 3 3 200 1500 2.5\n0 1 3 100 1000000 2\n1 3 3 100 1 2.4\n",
    );
    let run = [
        "run",
        "--set",
        "topology.file=graph.txt",
        "--set",
        "workload.file=flows.txt",
        "--set",
        "transport.payload=1000B",
        "--set",
        "transport.header=48B",
        "--fct-txt",
        "new/fct.txt",
        "--out",
        "results",
        "--quiet",
    ];
    bench.succeed(&run);
    let text = bench.read("new/fct.txt");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(rows.len(), 3, "{text}");
    // The example of the format: two links, 2 x 2 x 1000 + 80 + 80 + (1000000 + 1000 x 48) x 8 / 100.
    let fct = rows[0][6];
    assert_eq!(
        rows[0],
        [
            "0b000001",
            "0b000101",
            "10000",
            "100",
            "1000000",
            "2000000000",
            fct,
            "88000"
        ]
    );
    assert!(fct.parse::<u64>().unwrap() > 87_000, "{fct}");
    // One byte over three links, 49 B there and 48 B back: 6000 + 3.92 + 0.98 + 3.92 + 3.84 + 0.96 + 3.84.
    // Alone: 2 x 3 x 1000 + 80 + 20 + 80 + 49 x 8 / 100, with whole ns.
    assert_eq!(
        rows[1],
        [
            "0b000101",
            "0b000301",
            "10000",
            "100",
            "1",
            "2400000000",
            "6017",
            "6183"
        ]
    );
    // Two packets of 1048 and 548 B: the second waits for the first at the last switch, 6000 + 83.84 + 20.96 + 83.84 + 43.84 + 8.64.
    // Alone: 6180 + (1500 + 2 x 48) x 8 / 100.
    assert_eq!(
        rows[2],
        [
            "0b000101",
            "0b000301",
            "10001",
            "200",
            "1500",
            "2500000000",
            "6241",
            "6307"
        ]
    );
    assert_eq!(std::fs::read_dir(bench.path("new")).unwrap().count(), 1);
    // The file may also be a part of the results. Run twice, because the second run replaces the former results.
    let place = run.iter().position(|word| *word == "new/fct.txt").unwrap();
    let mut inside = run;
    inside[place] = "./results/fct.txt";
    bench.succeed(&inside);
    bench.succeed(&inside);
    assert_eq!(bench.read("results/fct.txt"), text);
}

#[test]
fn flows_are_told_in_the_words_of_htsim() {
    let bench = Bench::new("htsim-txt");
    bench.write(
        "x.cm",
        "Nodes 16\nConnections 2\nTriggers 1\n0->13 id 4 start 5 size 10 send_done_trigger 1\n\
         0->9 id 9 trigger 1 size 40860\ntrigger id 1 oneshot\n",
    );
    bench.write("s.toml", &matrix_scenario("x.cm"));
    let run = [
        "run",
        "s.toml",
        "--set",
        "transport.payload=4086B",
        "--quiet",
        "--htsim-txt",
        "-",
        "--out",
        "results",
    ];
    // Four links of 1 us: 74 B there and 64 B back take 8.01104 us, ten packets of 4150 B 9.08412 us.
    let text = "Flow Uec_0_13 flowId 4 uecSrc 0 starting at 5\n\
        Flow Uec_0_13 flowId 4 uecSrc 0 finished at 13.011 total messages 1 total packets 1 RTS 0 total bytes 4086 in_flight now 0\n\
        Flow Uec_0_9 flowId 9 uecSrc 1 starting at 13.011\n\
        Flow Uec_0_9 flowId 9 uecSrc 1 finished at 22.0952 total messages 1 total packets 10 RTS 0 total bytes 40860 in_flight now 0\n";
    let printed = bench.succeed(&run);
    let totals = printed.strip_prefix(text).expect(&printed);
    let acks = totals.strip_prefix("New: 11 Rtx: 0 RTS: 0 Bounced: 0 ACKs: ");
    let acks = acks.and_then(|rest| rest.strip_suffix(" NACKs: 0 Pulls: 0\n"));
    assert!(acks.unwrap().parse::<u32>().unwrap() >= 2, "{totals}");
    let mut inside = run;
    inside[6] = "results/htsim.txt";
    assert_eq!(bench.succeed(&inside), "");
    assert_eq!(bench.read("results/htsim.txt"), printed);
}

#[test]
fn a_flow_beyond_32_bits_keeps_its_size() {
    let bench = Bench::new("beyond-32-bits");
    bench.write("graph.txt", GRAPH);
    bench.write("flows.txt", "1\n0 1 3 100 5000000000 2\n");
    let (_, summary) = bench.unfinished(&[
        "--set",
        "topology.file=graph.txt",
        "--set",
        "workload.file=flows.txt",
        "--set",
        "stop.at-most=100us",
    ]);
    // The limit counts from the start of the flow.
    assert!(summary.packets.data_sent > 100, "{summary:?}");
    assert!(summary.simulated_us >= 2_000_100.0, "{summary:?}");
    let flows = std::fs::read(bench.path("results/flows.parquet")).unwrap();
    let size = 5_000_000_000_u64.to_le_bytes();
    assert!(
        flows.windows(8).any(|window| window == size),
        "the column of sizes"
    );
}

#[test]
fn threads_that_do_not_help_are_said() {
    let bench = Bench::new("threads_that_do_not_help");
    let run = |threads: &str, settings: &[&str]| {
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        let mut arguments = vec![
            "run",
            "quickstart",
            "--threads",
            threads,
            "--out",
            "results",
        ];
        arguments.extend(settings);
        let output = bench.output(&arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let short = r#"topology.links=["host3-leaf0 delay=1ns"]"#;
    let small = "workload.message=100KB";
    let errors = run("2", &[short, small]);
    let note = errors.lines().find(|line| line.starts_with("note: "));
    let note = note.unwrap_or_else(|| panic!("no note in {errors:?}"));
    for part in [
        "`--threads 2` did not help",
        "ran on one thread",
        "is 1ns (host3-leaf0)",
    ] {
        assert!(note.contains(part), "{note}");
    }
    assert!(!run("1", &[short, small]).contains("note: "));
    assert!(!run("2", &[]).contains("note: "), "these carry enough");
}

#[test]
fn warnings_stay_with_the_results() {
    let bench = Bench::new("warnings-kept");
    let narrow = "transport.max-cwnd=50%bdp";
    let summary = bench.summary(&with(&["--set", narrow, "--why"]));
    let [warning] = &summary.warnings[..] else {
        panic!("{:?}", summary.warnings);
    };
    assert!(
        warning.starts_with("`transport.max-cwnd` = 50%bdp is "),
        "{warning}"
    );
    let top = |page: &str| {
        let page = bench.read(page);
        page[..page.find("<main>").expect("a body")].to_owned()
    };
    // The page that `why` rewrites also has the warning.
    let mut shown = warning.clone();
    while shown.contains('`') {
        shown = shown.replacen('`', "<code>", 1).replacen('`', "</code>", 1);
    }
    assert!(top("results/report.html").contains(&shown));
    let compared = [
        &["compare"][..],
        &with(&[]),
        &["--vary", "transport.max-cwnd=50%bdp,2bdp", "--out", "both"],
    ];
    let output = bench.output(&compared.concat());
    let [table, errors] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text"));
    assert!(errors.contains(warning), "before the runs: {errors}");
    assert!(
        table.contains(&format!("\nwarning: A: {warning}\n")),
        "{table}"
    );
    assert!(!table.contains("warning: B:"), "{table}");
    assert!(top("both/compare.html").contains(&shown));

    let calm = bench.summary(&with(&[]));
    assert!(calm.warnings.is_empty());
    assert!(!bench.read("results/summary.json").contains("warnings"));
    assert!(!top("results/report.html").contains("class=\"warning\" role"));
}

//! `clearway run --fast-forward`.

use crate::common::Bench;
use insta::assert_snapshot;

const RING: [&str; 6] = [
    "--set",
    "topology.hosts=16",
    "--set",
    "workload.kind=ring-all-reduce",
    "--set",
    "workload.iterations=10",
];

#[test]
fn a_run_says_what_it_remembers() {
    let bench = Bench::new("fast-forward");
    let exact = bench.summary(&RING);
    assert_eq!(exact.fast_forward, None);
    let forward = |threads| {
        let more = ["--fast-forward", "1%", "--threads", threads];
        bench.summary(&[&RING[..], &more].concat())
    };
    let one = forward("1");
    let own = one.fast_forward.clone().unwrap();
    assert!(own.remembered_share > 0.5, "{own:?}");
    assert_eq!(own.wanted, 0.01);
    // A check has found that calls still take as long.
    assert!(own.found.is_some_and(|found| found < 0.001), "{own:?}");
    assert!((one.simulated_us / exact.simulated_us - 1.0).abs() < 0.01);
    assert_ne!(one.digest, exact.digest);
    assert_ne!(one.scenario.hash, exact.scenario.hash);
    let report = bench.read("results/report.html");
    assert!(report.contains("Fast-forward"));
    let two = forward("2");
    assert_eq!((two.digest, two.fast_forward), (one.digest, Some(own)));
    let more = ["--fast-forward", "1%", "--out", "f"];
    let said = bench.succeed(&[&["run"][..], &RING, &more].concat());
    assert!(said.contains("of the bytes remembered"), "{said}");
    assert_snapshot!(bench.refuse(&["why", "f"]), @"
    f: calls of this run were remembered, or time was skipped: there are no packets that could be followed
      fix: run its scenario without `fast-forward`, with another --out
    ");
}

#[test]
fn settings_that_have_no_meaning_are_refused() {
    let bench = Bench::new("fast-forward-settings");
    assert_snapshot!(bench.refuse_overrides(&[
        &["fast-forward.error=150%"],
        &["fast-forward.error=60%"],
        &["fast-forward.error=0%"],
        &["fast-forward.verify=5%"],
        &["fast-forward.speed=2"],
    ]), @r#"
    --set fast-forward.error=150%: `fast-forward.error` cannot be "150%"
      fix: expected a share of 0 to 1, such as "1%" or `0.01`, or "auto"
    --set fast-forward.error=60%: an error of "60%"
      fix: write "0.0001%" to "50%", or leave it out to simulate every packet
    --set fast-forward.error=0%: an error of "0%"
      fix: write "0.0001%" to "50%", or leave it out to simulate every packet
    --set fast-forward.verify=5%: nothing is remembered that could be verified
      fix: write an error as well, as in `fast-forward.error = "1%"`
    --set fast-forward.speed=2: [fast-forward] has no key `speed`
      fix: the keys are: error, verify
    "#);
    assert_snapshot!(bench.refuse(&["run", "nvlink-64", "--fast-forward", "1%"]), @"
    --set fast-forward.error=1%: `error` has no meaning in a scale-up fabric
      fix: leave it out
    ");
}

#[test]
fn a_long_flow_is_skipped_through() {
    let bench = Bench::new("fast-forward-flow");
    let flow = [
        "--set",
        "workload.kind=flows",
        "--set",
        "workload.flows=[\"0->13 200MB\"]",
    ];
    let run = ["run", "--fast-forward", "1%", "--out", "f"];
    let said = bench.succeed(&[&run[..], &flow].concat());
    assert!(said.contains("of the bytes skipped, in"), "{said}");
    assert!(
        said.contains("estimated error of the time 0.50 % (1.00 % allowed)"),
        "{said}"
    );
    assert!(bench.read("f/report.html").contains("steady stretches"));
    let summary = bench.read("f/summary.json");
    assert!(summary.contains("\"stretches\""));
    let refused = bench.refuse(&["why", "f"]);
    assert!(refused.contains("time was skipped"), "{refused}");
    // Single packets are wanted.
    let pcap = "observe.trace.pcap=[\"host:0\"]";
    let run = ["run", "--fast-forward", "1%", "--out", "t", "--set", pcap];
    let said = bench.succeed(&[&run[..], &flow].concat());
    assert!(
        said.contains("every packet simulated: single packets are recorded"),
        "{said}"
    );
}

#[test]
fn a_comparison_says_which_variant_remembers() {
    let bench = Bench::new("fast-forward-compare");
    let variant = ":fast-forward.error=2%";
    let named = ["compare", "quickstart", variant, "--out", "c"];
    let compared = bench.output(&[&named[..], &RING].concat());
    let said = String::from_utf8_lossy(&compared.stderr);
    assert!(
        said.contains("calls are remembered, or time is skipped: times may be off by an estimated"),
        "{said}"
    );
    assert!(!String::from_utf8_lossy(&compared.stdout).contains("clearway why"));
}

#[test]
fn a_run_that_remembers_nothing_is_like_any_other() {
    let bench = Bench::new("fast-forward-nothing");
    let key = ["--set", "fast-forward.error=1%"];
    // No job, and no flow that is long enough.
    let compared = bench.output(&[
        "compare",
        "quickstart",
        ":fast-forward.error=1%",
        "--out",
        "c",
    ]);
    assert!(!String::from_utf8_lossy(&compared.stderr).contains("calls are remembered"));
    assert!(String::from_utf8_lossy(&compared.stdout).contains("clearway why"));
    let run = ["run", "quickstart", "--out", "r"];
    bench.succeed(&[&run[..], &key].concat());
    assert!(bench.read("r/report.html").contains("clearway why"));
    bench.succeed(&["why", "r"]);
}

#[test]
fn attacks_on_remembered_calls_are_refused() {
    let bench = Bench::new("fast-forward-isolate");
    let attackers = ["isolate", "quickstart", "--attackers", "0-3", "--quiet"];
    let key = [&attackers[..], &["--set", "fast-forward.error=2%"]].concat();
    assert_snapshot!(bench.refuse(&key), @"
    `fast-forward`: remembered calls and skipped time do not feel an attack
      fix: leave it out; every packet is simulated then
    ");
}

/// Two transports with two seeds, half of them now and the rest later.
const PLAN: &str = r#"name = "forward"
scenario = "quickstart"
seeds = 2

[set]
"topology.hosts" = 16
"workload.kind" = "ring-all-reduce"
"workload.iterations" = 10
"fast-forward.error" = "1%"

[axes]
"transport.kind" = ["strack", "dctcp"]

[[assert]]
measure = "fast_forward.estimated"
below = 0.1
"#;

#[test]
fn a_sweep_goes_on_and_says_what_its_assertions_are_judged_by() {
    let bench = Bench::new("fast-forward-sweep");
    bench.write("plan.toml", PLAN);
    let sweep = |more: &[&str]| {
        let output = bench.output(&[&["sweep", "plan.toml"], more].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        said
    };
    sweep(&["--out", "parts", "--shard", "1/2"]);
    let said = sweep(&["--out", "parts"]);
    assert!(said.contains("2 runs done now, 4 of 4 in all"), "{said}");
    let warning =
        "warning: calls are remembered, or time is skipped: times may be off by an estimated";
    assert!(said.contains(warning), "{said}");
    assert!(said.contains("%; assertions are judged by them"), "{said}");
    sweep(&["--out", "whole"]);
    let document = |folder: &str| {
        let text = bench.read(&format!("{folder}/sweep.json"));
        let lines = text.lines().filter(|line| !line.contains("\"command\""));
        lines.collect::<Vec<_>>().join("\n")
    };
    assert!(document("parts").contains("fast_forward.estimated"));
    assert_eq!(document("parts"), document("whole"));
}

//! Scenarios to begin from: `clearway show` and `clearway init`; bursts and fat trees of a requested size.

use crate::common::Bench;
use insta::assert_snapshot;

#[test]
fn built_in_scenarios_and_plans_are_shown_as_they_stand() {
    let bench = Bench::new("show");
    for (name, text) in clearway::lab::builtin_scenarios() {
        assert_eq!(bench.succeed(&["show", name]), *text);
    }
    let plan = bench.succeed(&["show", "vgg-pair"]);
    assert!(plan.contains("[[job]]"), "{plan}");
    bench.write("mine.toml", &bench.succeed(&["show", "quickstart"]));
    let mine = bench.succeed(&["show", "mine.toml"]);
    assert_eq!(mine, bench.read("mine.toml"));
    // A run writes the same resolved scenario beside its results, with comments.
    let change = [
        "--set",
        "topology.hosts=32",
        "--set",
        "workload.message=1KB",
    ];
    let resolved = bench.succeed(&[&["show", "mine.toml", "--resolved"][..], &change].concat());
    bench.succeed(&[&["run", "mine.toml", "--quiet", "--out", "o"][..], &change].concat());
    assert_eq!(
        resolved,
        clearway_lab::without_bdp_comments(&bench.read("o/scenario.toml"))
    );
    let nvlink = bench.succeed(&["show", "nvlink-64", "--resolved"]);
    assert!(
        nvlink.contains("[injection]\nkind = \"3cpo\"\n"),
        "{nvlink}"
    );
}

#[test]
fn a_scenario_is_written_and_runs() {
    let bench = Bench::new("init");
    let said = bench.succeed(&["init"]);
    assert_eq!(
        said,
        "Wrote scenario.toml; `clearway run scenario.toml` runs it.\n"
    );
    let first = bench.read("scenario.toml");
    bench.succeed(&["run", "scenario.toml", "--quiet", "--out", "o"]);
    let refused = bench.output(&["init", "--workload", "incast"]);
    assert_eq!(refused.status.code(), Some(2));
    assert_snapshot!(String::from_utf8_lossy(&refused.stderr), @"
    error: scenario.toml: there is such a file already
      fix: name another one, or replace it with `--force`
    ");
    assert_eq!(bench.read("scenario.toml"), first, "nothing is overwritten");
    bench.succeed(&["init", "--workload", "incast", "--force"]);
    let second = bench.read("scenario.toml");
    assert!(second.contains("kind = \"incast\""), "{second}");
    // The last part of a path names the scenario, and its folder is created.
    bench.succeed(&["init", "studies/one.toml", "--topology", "fat-tree"]);
    assert!(bench.read("studies/one.toml").contains("name = \"one\"\n"));
    assert!(
        bench
            .succeed(&["init", "-"])
            .contains("name = \"my-scenario\"\n")
    );
}

#[test]
fn an_incast_every_millisecond() {
    let bench = Bench::new("bursts");
    let small = ["incast-32", "--set", "workload.message=20KB"];
    let bursts = ["--set", "workload.period=1ms", "--set", "workload.count=20"];
    let redraw = [
        "--set",
        "workload.redraw=true",
        "--set",
        "workload.receiver=random",
    ];
    let repeated = [&small[..], &bursts, &redraw].concat();
    let summary = bench.summary(&repeated);
    assert_eq!(summary.flows.completed, 20 * 32);
    assert!(summary.simulated_us > 19_000.0 && summary.simulated_us < 20_000.0);
    let again = bench.summary(&[&repeated[..], &["--threads", "2"]].concat());
    assert_eq!(again.digest, summary.digest);
    let resolved = bench.read("results/scenario.toml");
    assert!(
        resolved.contains("count = 20\nperiod = \"1ms\"\n"),
        "{resolved}"
    );
    // The resolved scenario gives the same run.
    bench.write("again.toml", &resolved);
    assert_eq!(bench.summary(&["again.toml"]).digest, summary.digest);
}

#[test]
fn a_fat_tree_of_1024_hosts_at_two_to_one() {
    let bench = Bench::new("fat-tree");
    let tree = [
        "--set",
        "topology.kind=fat-tree",
        "--set",
        "topology.oversubscription=2",
    ];
    let asked = [&["topology"][..], &tree, &["--set", "topology.hosts=1024"]].concat();
    let text = bench.succeed(&asked);
    assert!(
        text.contains("1024 hosts, 16 pods, 128 leaves, 64"),
        "{text}"
    );
    let with_radix = [&["topology"][..], &tree, &["--set", "topology.radix=16"]].concat();
    assert_snapshot!(bench.refuse(&with_radix), @"
    --set topology.radix=16: impossible topology: switches of radix 16 with 2:1 oversubscription
      fix: use an even radix up to 1024 that is a multiple of 3, or write `hosts = 1024`, which take half of each leaf's ports
    ");
}

#[test]
fn wrong_words_are_refused() {
    let bench = Bench::new("begin-wrong");
    bench.write("wrong.toml", "[topology]\nhots = 3\n");
    let mut text = String::new();
    for arguments in [
        &["show", "quickstrat"][..],
        &["show", "no/such.toml"],
        &["show", "vgg-pair", "--resolved"],
        &["show", "wrong.toml", "--resolved"],
        &["init", "x.toml", "--transport", "rocev3"],
        &["init", "x.toml", "--workload", "trace"],
        &["init", "x.toml", "--set", "topology.hots=3"],
    ] {
        text += &bench.refuse(arguments);
        text += "\n";
    }
    assert_snapshot!(text, @r#"
    quickstrat: there is no such file or built-in scenario
      fix: did you mean `quickstart`? Give the path of a TOML file or a built-in scenario: quickstart, permutation-1k, permutation-8k, permutation-64k, permutation-256k, incast-32, mix-64, tenants-mixed, training-256, gpt-13b-128, gpt-175b-1024, moe-64, moe-128, moe-512, serving-64, checkpoint-64, hadoop-320, websearch-1k, link-flap, rail-64, planes-64, dragonfly-72, nvlink-64, testbed-permutation, testbed-incast, testbed-dead-path
    no/such.toml: there is no such file or built-in scenario
      fix: give the path of a TOML file or a built-in scenario: quickstart, permutation-1k, permutation-8k, permutation-64k, permutation-256k, incast-32, mix-64, tenants-mixed, training-256, gpt-13b-128, gpt-175b-1024, moe-64, moe-128, moe-512, serving-64, checkpoint-64, hadoop-320, websearch-1k, link-flap, rail-64, planes-64, dragonfly-72, nvlink-64, testbed-permutation, testbed-incast, testbed-dead-path
    --resolved: `vgg-pair` is a plan, and no scenario
      fix: leave it out, and see `clearway explain plan` for defaults
    wrong.toml:2: a topology of kind "leaf-spine" has no key `hots`
      fix: did you mean `hosts`? The keys are: bit-error-rate, fabric-link-delay, fabric-link-rate, failed-uplinks.leaves, failed-uplinks.per-leaf, hosts, hosts-per-leaf, link-delay, link-rate, links, oversubscription, parallel-links, reroute-delay, spines
    --transport rocev3: there is no such kind
      fix: did you mean `rocev2`? Use one of: strack, rocev2, dcqcn-2016, tmdml, dctcp, tcp, mltcp, hpcc, swift, timely, irn, s-perc, 1rc, uet, uet-rccc, uet-no-trim
    the scenario would not run: `file` of the trace workload: no file is named
      fix: name it, as in `file = "training.goal"`; `--set KEY=VALUE` sets any key
    --set topology.hots=3: a topology of kind "leaf-spine" has no key `hots`
      fix: did you mean `hosts`? The keys are: bit-error-rate, fabric-link-delay, fabric-link-rate, failed-uplinks.leaves, failed-uplinks.per-leaf, hosts, hosts-per-leaf, link-delay, link-rate, links, oversubscription, parallel-links, reroute-delay, spines
    "#);
    assert!(!bench.path("x.toml").exists());
}

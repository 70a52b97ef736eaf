//! `clearway plan`: printed tables, written files and exit codes.

use crate::common::Bench;
use insta::assert_snapshot;

#[test]
fn compatible_jobs_end_with_0_and_have_a_document_and_a_page() {
    let bench = Bench::new("plan-compatible");
    let printed = bench.succeed(&["plan", "vgg-pair", "--out", "here"]);
    assert_snapshot!(printed, @"
    job      iteration  communicates     shift   angle  priority
    -------  ---------  ------------  --------  ------  --------
    VGG16-a   255.0 ms        44.7 %       0 s      0°         0
    VGG16-b   255.0 ms        44.7 %  114.0 ms  160.9°         1

    link    load  score  before  collide  jobs
    ----  ------  -----  ------  -------  ----------------
    L1    89.4 %      1   0.553      0 s  VGG16-a, VGG16-b

    Compatible: on 1 link with several jobs none collide.

    Results  here
    ");
    let json = bench.read("here/plan.json");
    let plan: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(plan["schema"], 1);
    assert_eq!(plan["verdict"], "compatible");
    assert_eq!(plan["jobs"][1]["shift_us"], 114_000.0);
    assert_eq!(plan["circles"][0]["sectors"], 255);
    let page = bench.read("here/report.html");
    assert!(page.contains("class=\"arc c0\"") && page.contains("<title>vgg-pair"));
    let again = bench.succeed(&["plan", "vgg-pair", "--out", "here", "--json"]);
    assert_eq!(again, bench.read("here/plan.json"));
    assert_eq!(bench.succeed(&["plan", "vgg-pair", "--quiet"]), "");
}

#[test]
fn incompatible_jobs_end_with_1() {
    let bench = Bench::new("plan-incompatible");
    let output = bench.output(&["plan", "table-1", "--out", "here"]);
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8_lossy(&output.stdout);
    let links: Vec<&str> = printed
        .lines()
        .filter(|line| line.starts_with("group-"))
        .collect();
    assert_snapshot!(links.join("\n"), @"
    group-1  123.4 %  0.618   0.616  647.0 ms  BERT-8, VGG19-1200
    group-2   58.9 %      1   0.723       0 s  DLRM-a, DLRM-b
    group-3  183.8 %  0.155   0.023  511.0 ms  BERT-8-b, VGG19-1400, WideResNet-800
    group-4   16.1 %      1   0.923       0 s  WideResNet-800-b, VGG16-1400
    group-5   39.4 %      1   0.806       0 s  VGG19-1400-b, VGG16-1700,
    ");
    assert!(printed.contains("Incompatible: jobs collide on 2 of 5 links whatever the rotations"));
}

#[test]
fn wrong_files_end_with_2() {
    let bench = Bench::new("plan-wrong");
    bench.write("jobs.toml", "[[job]]\nname = \"A\"\ncompute = \"5s\"\n");
    let output = bench.output(&["plan", "jobs.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert_snapshot!(String::from_utf8_lossy(&output.stderr), @r#"
    error: jobs.toml:3: job `A` has only one of `compute` and `communication`
      fix: give both: an iteration is one after the other
    "#);
}

#[test]
fn threads_are_those_of_a_simulation() {
    let bench = Bench::new("plan-threads");
    let error = bench.refuse(&["plan", "dumbbell-pair", "--threads", "2"]);
    assert!(error.contains("<--profile|--simulate>"), "{error}");
}

#[test]
fn jobs_on_a_network_are_simulated() {
    let bench = Bench::new("plan-simulate");
    let arguments = [
        "plan",
        "dumbbell-pair",
        "--simulate",
        "--iterations",
        "3",
        "--out",
        "here",
    ];
    let printed = bench.succeed(&arguments);
    assert!(
        printed.contains("simulated   job      predicted    median      mean  to fair\n"),
        "{printed}"
    );
    let plan: serde_json::Value =
        serde_json::from_str(&bench.read("here/plan.json")).expect("JSON");
    let names = plan["trials"]["trials"].as_array().expect("trials").iter();
    let names: Vec<&str> = names
        .filter_map(|trial| trial["mechanism"].as_str())
        .collect();
    assert_eq!(
        names,
        ["fair", "shifted", "timers", "adaptive", "priorities"]
    );
    assert!(bench.read("here/report.html").contains("id=\"trials\""));
    let threads = [&arguments[..], &["--threads", "2", "--json"]].concat();
    let again: serde_json::Value = serde_json::from_str(&bench.succeed(&threads)).expect("JSON");
    assert_eq!(again["trials"], plan["trials"], "the same on two threads");
    let output = bench.output(&["plan", "vgg-pair", "--profile"]);
    assert_eq!(output.status.code(), Some(2));
    assert_snapshot!(String::from_utf8_lossy(&output.stderr), @"
    error: vgg-pair: no network to simulate the jobs on
      fix: describe it under `[topology]`, and give each job `hosts` instead of `links`
    ");
}

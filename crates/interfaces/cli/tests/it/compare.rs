//! `clearway compare`: variants that are run, results that are read, and errors in both.

use crate::common::Bench;
use clearway_report::{StatusName, Summary};
use insta::assert_snapshot;
use serde_json::Value;
#[cfg(unix)]
use std::process::Stdio;

const SMALL: [&str; 6] = [
    "--set",
    "topology.hosts=16",
    "--set",
    "topology.hosts-per-leaf=4",
    "--set",
    "workload.message=100KB",
];

fn small<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["compare"], arguments, &SMALL].concat()
}

/// The printed comparison.
fn json(bench: &Bench, arguments: &[&str]) -> Value {
    let printed = bench.succeed(&[arguments, &["--json"]].concat());
    serde_json::from_str(&printed).expect("a document")
}

/// The values of one measure, one for each variant.
fn values<'a>(document: &'a Value, name: &str) -> &'a [Value] {
    let measures = document["measures"].as_array().expect("a list");
    let measure = measures.iter().find(|measure| measure["name"] == name);
    measure.expect(name)["values"].as_array().expect("a list")
}

fn labels(document: &Value) -> Vec<&str> {
    let variants = document["variants"].as_array().expect("a list");
    variants
        .iter()
        .map(|variant| variant["label"].as_str().expect("text"))
        .collect()
}

#[test]
fn two_scenarios_with_seeds() {
    let bench = Bench::new("compare-two");
    let arguments = small(&["quickstart", "incast-32", "--seeds", "2", "--out", "both"]);
    let arguments = [
        arguments.as_slice(),
        &["--set", "workload.kind=permutation"],
    ]
    .concat();
    let text = bench.succeed(&arguments);
    let heading: Vec<&str> = text.lines().take(6).collect();
    assert_snapshot!(heading.join("\n"), @"
    incast-32 is equal to quickstart, by the p99 slowdown of flows.

       flows  payload   seeds  what
    -  -----  -------  ------  ----------
    A     16   1.6 MB  1 to 2  quickstart
    B     16   1.6 MB  1 to 2  incast-32
    ");
    assert!(text.contains("\nFCT max "), "{text}");
    assert!(text.contains("~: within the spread of seeds"), "{text}");
    assert!(
        text.ends_with("\nResults  both\nWhy      clearway why both\n"),
        "{text}"
    );
    // Each run is a separate result, equal to the result of `run`.
    let summary = Summary::read(bench.path("both/B-seed2")).unwrap();
    assert_eq!(summary.status, StatusName::Complete);
    assert_eq!(
        (summary.scenario.name.as_str(), summary.scenario.seed),
        ("incast-32", 2)
    );
    let again = bench.summary(&["both/B-seed2/scenario.toml"]);
    assert_eq!(again.digest, summary.digest);
    let page = bench.read("both/compare.html");
    assert!(page.contains("<h1>quickstart, incast-32</h1>"));
    // The page of stored results shows the same plots as the page of the runs.
    bench.succeed(&["compare", "both/A-seed1", "--quiet", "--out", "x.html"]);
    for plot in ["id=\"fct\"", "id=\"goodput\""] {
        assert!(
            page.contains(plot) && bench.read("x.html").contains(plot),
            "{plot}"
        );
    }
}

#[test]
fn the_document_holds_what_the_runs_came_to() {
    let bench = Bench::new("compare-json");
    let arguments = small(&[
        "quickstart",
        ":transport.spray=single",
        "--seeds",
        "3",
        "--out",
        "x.json",
    ]);
    let document = json(&bench, &arguments);
    let written: Value = serde_json::from_str(&bench.read("x.json")).unwrap();
    assert_eq!(written, document);
    assert_eq!(document["kind"], "comparison");
    assert_eq!(
        (&document["schema"], &document["complete"]),
        (&1.into(), &true.into())
    );
    assert_eq!(
        labels(&document),
        ["transport.spray=adaptive", "transport.spray=single"]
    );
    let spread = &values(&document, "fct_us.max")[1];
    let single = |seed: &str| {
        let set = ["--set", "transport.spray=single", "--seed", seed];
        let arguments = [&["quickstart"], &SMALL[..], &set[..]].concat();
        bench.summary(&arguments).fct_us.unwrap().max
    };
    let mut expected = ["1", "2", "3"].map(single);
    assert_eq!(spread["per_seed"], Value::from(expected.to_vec()));
    expected.sort_by(f64::total_cmp);
    assert_eq!(spread["median"], expected[1]);
    assert_eq!(
        (&spread["min"], &spread["max"]),
        (&expected[0].into(), &expected[2].into())
    );
    let first = &values(&document, "fct_us.max")[0];
    let ratio = expected[1] / first["median"].as_f64().unwrap();
    assert_eq!(spread["ratio"], ratio);
    assert_eq!(first["ratio"], 1.0);
    assert_eq!(first["within_spread"], true);
    assert!(
        !bench.path("out").exists(),
        "a file is all that was asked for"
    );
}

#[test]
fn each_value_is_a_variant() {
    let bench = Bench::new("compare-vary");
    let vary = [
        "--vary",
        "transport.spray=adaptive,single",
        "--vary",
        "seed=1,2",
    ];
    let document = json(&bench, &[small(&["quickstart"]).as_slice(), &vary].concat());
    assert_eq!(
        labels(&document),
        [
            "transport.spray=adaptive, seed=1",
            "transport.spray=adaptive, seed=2",
            "transport.spray=single, seed=1",
            "transport.spray=single, seed=2",
        ]
    );
    assert_eq!(document["variants"][3]["runs"][0]["scenario"]["seed"], 2);
    // One seed gives no verdict on the spread.
    let spreads = values(&document, "fct_us.p99");
    assert!(
        spreads
            .iter()
            .all(|spread| spread["within_spread"].is_null())
    );
}

#[test]
fn results_against_a_scenario() {
    let bench = Bench::new("compare-folder");
    let run = |seed: &str, out: &str| {
        let arguments = [
            &["run", "quickstart"],
            &SMALL[..],
            &["--seed", seed, "--out", out],
        ];
        bench.succeed(&arguments.concat());
    };
    run("1", "one");
    run("2", "two");
    let document = json(
        &bench,
        &small(&["one", "quickstart", "two", "--seeds", "2"]),
    );
    // Two results that differ only in their seeds are one variant.
    assert_eq!(labels(&document), ["one and 1 more", "quickstart"]);
    for measure in document["measures"].as_array().unwrap() {
        let values = measure["values"].as_array().unwrap();
        assert_eq!(values[0]["per_seed"], values[1]["per_seed"], "{measure}");
        // A measure that no run has, has no spread.
        let has = !values[0]["median"].is_null();
        let within = if has { Value::Bool(true) } else { Value::Null };
        assert_eq!(values[1]["within_spread"], within, "{measure}");
    }
    let same = "B came to the same as A, packet for packet (equal digests)";
    assert_eq!(document["warnings"], Value::from(vec![same]));
    // The same result twice does not count as a second seed.
    let twice = json(&bench, &["compare", "one", "one/summary.json"]);
    assert_eq!(labels(&twice), ["one", "one"]);
    assert_eq!(values(&twice, "fct_us.mean")[1]["ratio"], 1.0);
    let text = bench.succeed(&["compare", "one", "one"]);
    assert!(text.contains("One seed each: "), "{text}");
}

#[test]
fn results_are_named_by_what_they_were_given() {
    let bench = Bench::new("compare-given");
    for spray in ["adaptive", "single"] {
        let set = format!("transport.spray={spray}");
        let own = ["--set", &set, "--out", spray];
        bench.succeed(&[&["run", "quickstart"], &SMALL[..], &own].concat());
    }
    let document = json(&bench, &["compare", "adaptive", "mine=single"]);
    assert_eq!(
        labels(&document),
        ["adaptive: transport.spray=adaptive", "mine"]
    );
    let document = json(&bench, &["compare", "adaptive", "single"]);
    let answer = document["answer"].as_str().unwrap();
    assert!(answer.starts_with("single is "), "{answer}");
    assert!(answer.contains(" as adaptive, by "), "{answer}");
}

#[test]
fn different_work_is_pointed_out() {
    let bench = Bench::new("compare-work");
    let text = bench.succeed(&small(&["quickstart", ":workload.hosts=8"]));
    assert!(
        text.contains(
            "warning: A and B do different work: 16 flows of 1.6 MB in all against 8 flows of 800 KB in all with seed 1\n"
        ),
        "{text}"
    );
}

#[test]
fn unfinished_flows_end_with_one() {
    let bench = Bench::new("compare-unfinished");
    let output = bench.output(&small(&["quickstart", ":stop.at-most=5us", "--json"]));
    assert_eq!(output.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let warning = document["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("B is incomplete (seed 1: 0 of 16 flows"),
        "{warning}"
    );
    assert!(values(&document, "fct_us.max")[1]["ratio"].is_null());
}

#[test]
fn wrong_input() {
    let bench = Bench::new("compare-wrong");
    std::fs::create_dir(bench.path("empty")).unwrap();
    bench.succeed(
        &[
            &["run", "quickstart"],
            &SMALL[..],
            &["--quiet", "--out", "good"],
        ]
        .concat(),
    );
    for name in ["damaged", "other", "foreign"] {
        std::fs::create_dir(bench.path(name)).unwrap();
        std::fs::copy(
            bench.path("good/summary.json"),
            bench.path(name).join("summary.json"),
        )
        .unwrap();
    }
    let flows = std::fs::read(bench.path("good/flows.parquet")).unwrap();
    std::fs::write(
        bench.path("damaged/flows.parquet"),
        &flows[..flows.len() / 2],
    )
    .unwrap();
    bench.write("foreign/summary.json", "{\"schema\": 7}");
    let refuse = |arguments: &[&str]| bench.refuse(&[&["compare"], arguments].concat());
    let errors = [
        refuse(&["quickstart:transport.spary=single"]),
        refuse(&["quickstart", ":transport.spray=singel,seed=2"]),
        refuse(&["quickstart", "--vary", "transport.spray=single,adaptiv"]),
        refuse(&["quickstart", "--vary", "transport.spray"]),
        refuse(&["quickstart", "--vary", "seed=1,"]),
        refuse(&["quickstart", "--set", "seeed=1"]),
        refuse(&["quikstart"]),
        refuse(&[":seed=2"]),
        refuse(&["quickstart", "seed=2"]),
        refuse(&["quickstart:topology.hosts=1"]),
        refuse(&["empty"]),
        refuse(&["good:seed=2"]),
        refuse(&["good", "--seeds", "2"]),
        refuse(&["good", "damaged"]),
        refuse(&["good", "other"]),
        refuse(&["good", "foreign"]),
        refuse(&["good", "--out", "good/summary.json/x"]),
    ];
    for error in &errors {
        assert!(error.contains("\n  fix: "), "no way out: {error}");
    }
    let short: Vec<String> = errors
        .iter()
        .map(|error| error.split(" The keys are").next().unwrap().to_owned())
        .collect();
    assert_snapshot!(short.join("\n"), @r#"
    quickstart:transport.spary=single: a transport of reliability "selective-repeat", controller "strack", spray "adaptive" and feedback "none" has no key `spary`
      fix: did you mean `spray`?
    :transport.spray=singel,seed=2: transport.spray=singel: `transport.spray`: there is no "singel"
      fix: did you mean `single`? Use one of: adaptive, oblivious, bitmap, reps, mixed, plb, flowlet, single
    --vary transport.spray=adaptiv: `transport.spray`: there is no "adaptiv"
      fix: did you mean `adaptive`? Use one of: adaptive, oblivious, bitmap, reps, mixed, plb, flowlet, single
    --vary transport.spray: no `=` in it
      fix: write KEY=VALUE,VALUE, for instance `--vary transport.spray=adaptive,oblivious`
    --vary seed=1,: a value is missing
      fix: write KEY=VALUE,VALUE, for instance `--vary transport.spray=adaptive,oblivious`
    --set seeed=1: the scenario has no key `seeed`
      fix: did you mean `seed`?
    quikstart: there is no such file or built-in scenario
      fix: did you mean `quickstart`? Give the path of a TOML file or a built-in scenario: quickstart, permutation-1k, permutation-8k, permutation-64k, permutation-256k, incast-32, mix-64, tenants-mixed, training-256, gpt-13b-128, gpt-175b-1024, moe-64, moe-128, moe-512, serving-64, checkpoint-64, hadoop-320, websearch-1k, link-flap, rail-64, planes-64, dragonfly-72, nvlink-64, testbed-permutation, testbed-incast, testbed-dead-path
    :seed=2: no scenario is named before it
      fix: name one, for instance `quickstart:seed=2`
    seed=2: not a scenario or result folder
      fix: write `:seed=2` for the scenario before it with this setting, or `--set seed=2` for all
    quickstart:topology.hosts=1: impossible topology: `hosts` = 1 is not a multiple of `hosts-per-leaf` = 16
      fix: use whole leaves, for instance `hosts` = 16, or another `hosts-per-leaf`
    empty: there is no summary.json in it
      fix: name a result folder, such as those in it: `empty/*`
    good:seed=2: the results in good cannot be changed
      fix: change its scenario: `good/scenario.toml:seed=2`
    --seeds: all arguments are result folders, so nothing is run
      fix: name a scenario, or leave out --seeds
    damaged: `damaged/flows.parquet` is damaged or not Parquet: Parquet error: Invalid Parquet file. Corrupt footer
      fix: run its scenario again: `clearway run damaged/scenario.toml --out damaged`
    other: failed to read `other/flows.parquet`: No such file or directory (os error 2)
      fix: run its scenario again: `clearway run other/scenario.toml --out other`
    foreign: a summary of schema 7, where this version reads schema 1
      fix: run its scenario again: `clearway run foreign/scenario.toml --out foreign`
    cannot create the folder of good/summary.json/x/compare.json: Not a directory (os error 20)
      fix: choose another file or folder with --out
    "#);
}

#[test]
#[cfg(unix)]
fn an_interrupted_comparison_keeps_the_runs_that_are_done() {
    let bench = Bench::new("compare-interrupt");
    // The second run would take days without an interrupt.
    let arguments = [
        "compare",
        "quickstart:workload.message=10KB",
        "permutation-1k:workload.message=1TB",
        "--seeds",
        "2",
        "--quiet",
        "--out",
        "partial",
    ];
    let mut child = bench
        .command(&arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !bench.path("partial/A-seed1/summary.json").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let id = child.id().to_string();
    let mut kill = std::process::Command::new("kill");
    assert!(kill.args(["-INT", &id]).status().unwrap().success());
    let status = child.wait().unwrap();
    let mut errors = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut errors).unwrap();
    assert_eq!(status.code(), Some(130), "{errors}");
    assert_eq!(
        errors,
        "interrupted: 1 of 4 runs are done; the comparison of those is kept in partial\n"
    );
    let document: Value = serde_json::from_str(&bench.read("partial/compare.json")).unwrap();
    assert_eq!(document["complete"], false);
    assert_eq!(document["variants"].as_array().unwrap().len(), 1);
    assert!(!bench.path("partial/B-seed1").exists());
}

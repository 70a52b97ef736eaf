//! `clearway why`: on the terminal, in `why.json` and in the report.

use crate::common::Bench;

const INCAST: [&str; 8] = [
    "run",
    "incast-32",
    "--set",
    "workload.message=200KB",
    "--set",
    "workload.senders=16",
    "--out",
    "out",
];

fn run(bench: &Bench, more: &[&str]) {
    bench.succeed(&[&INCAST[..], &["--quiet"], more].concat());
}

fn document(bench: &Bench) -> serde_json::Value {
    serde_json::from_str(&bench.read("out/why.json")).expect("JSON")
}

#[test]
fn an_incast_is_explained_by_the_downlink_of_its_receiver() {
    let bench = Bench::new("why-incast");
    run(&bench, &[]);
    let before = bench.read("out/report.html");
    assert!(!before.contains("Why flows were slow"));
    let said = bench.succeed(&["why", "out"]);
    assert!(said.contains("host0's downlink carries"), "{said}");
    assert!(
        said.contains("leaf0-host0") || said.contains("switch0-host0"),
        "{said}"
    );
    let why = document(&bench);
    let flows = why["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 5);
    for flow in flows {
        let parts = flow["parts"].as_array().unwrap();
        let sum: u64 = parts.iter().map(|part| part["ps"].as_u64().unwrap()).sum();
        assert_eq!(sum, flow["completion_ps"].as_u64().unwrap());
        let bottleneck = flow["bottleneck"].as_str().unwrap();
        assert!(bottleneck.ends_with("-host0"), "{bottleneck}");
        assert_eq!(flow["sharers"], 15);
    }
    assert!(why["bound"]["ratio"].as_f64().unwrap() >= 1.0);
    let report = bench.read("out/report.html");
    assert!(report.contains("Why flows were slow"));
    // The report before this section does not change. Without `why`, the section names the command.
    let after = report.find("<section id=\"why\"").unwrap();
    assert_eq!(before[..after], report[..after]);
    assert!(before[after..].contains("<code>clearway why</code>"));
    let settings = |page: &str| {
        let table = &page[page.find("<section id=\"scenario\"").unwrap()..];
        table[..table.find("</section>").unwrap()].to_owned()
    };
    assert_eq!(settings(&before), settings(&report));
    assert!(settings(&report).contains("of them set by the user"));
    assert_eq!(
        bench.succeed(&["why", "out", "--json"]),
        bench.read("out/why.json")
    );
    assert_eq!(
        bench.succeed(&["why", "out", "--quiet", "--threads", "2"]),
        ""
    );
}

#[test]
fn chosen_flows_are_explained_and_a_run_may_do_both() {
    let bench = Bench::new("why-chosen");
    run(&bench, &["--why"]);
    assert_eq!(document(&bench)["flows"].as_array().unwrap().len(), 5);
    assert!(
        bench
            .read("out/report.html")
            .contains("Why flows were slow")
    );
    bench.succeed(&["why", "out", "--flow", "3", "--flow", "7", "--flow", "3"]);
    let why = document(&bench);
    let flows = why["flows"].as_array().unwrap();
    let mut numbers: Vec<u64> = flows
        .iter()
        .map(|flow| flow["flow"].as_u64().unwrap())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [3, 7]);
}

fn refused(bench: &Bench, arguments: &[&str]) -> String {
    let output = bench.output(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn what_cannot_be_explained_is_refused() {
    let bench = Bench::new("why-refused");
    run(&bench, &[]);
    let said = refused(&bench, &["why", "out", "--flow", "16"]);
    assert!(
        said.contains("--flow 16: there is no such flow") && said.contains("0 to 15"),
        "{said}"
    );
    let said = refused(&bench, &["why", "nowhere"]);
    assert!(said.contains("there is no summary.json in it"), "{said}");
    // Results of another outcome.
    let summary = bench.read("out/summary.json");
    let why: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let digest = why["digest"].as_str().unwrap();
    bench.write(
        "out/summary.json",
        &summary.replace(digest, &"0".repeat(digest.len())),
    );
    let said = refused(&bench, &["why", "out"]);
    assert!(
        said.contains("another outcome now") && said.contains("fix: run its scenario again"),
        "{said}"
    );
    assert!(!bench.path("out/why.json").exists());
    // A changed scenario.
    let scenario = bench.read("out/scenario.toml");
    bench.write(
        "out/scenario.toml",
        &(scenario + "\n# seed\n").replace("seed = 1\n", "seed = 2\n"),
    );
    let said = refused(&bench, &["why", "out"]);
    assert!(
        said.contains("is not the scenario of these results"),
        "{said}"
    );
}

#[test]
fn scale_up_fabrics_are_refused() {
    let bench = Bench::new("why-scale-up");
    let few = ["nvlink-64", "--set", "workload.transactions=64"];
    bench.succeed(&[&["run", "--quiet", "--out", "out"], &few[..]].concat());
    let said = refused(&bench, &["why", "out"]);
    assert!(said.contains("operations and no flows"), "{said}");
    // The error names the places where a scale-up run has its results.
    assert!(
        said.contains("\"Operations\" in report.html") && said.contains("operations.parquet"),
        "{said}"
    );
    assert!(bench.read("out/report.html").contains(">Operations</h2>"));
    assert!(bench.path("out/operations.parquet").exists());
    let said = refused(&bench, &["run", "nvlink-64", "--why", "--out", "out"]);
    assert!(said.contains("--why: a scale-up fabric"), "{said}");
}

#[test]
fn flows_that_come_one_by_one_and_jobs_are_explained() {
    let bench = Bench::new("why-others");
    bench.succeed(&[
        "run",
        "hadoop-320",
        "--quiet",
        "--out",
        "out",
        "--set",
        "workload.duration=100us",
    ]);
    bench.succeed(&["why", "out", "--quiet"]);
    assert_eq!(document(&bench)["flows"].as_array().unwrap().len(), 5);
    let training = ["training-256", "--set", "workload.iterations=2"];
    bench.succeed(&[&["run", "--quiet", "--out", "out"], &training[..]].concat());
    let said = bench.succeed(&["why", "out"]);
    assert!(said.contains("waiting"), "{said}");
}

#[test]
fn a_job_is_bound_by_its_chain_and_its_connections_say_what_they_waited_for() {
    let bench = Bench::new("why-job");
    bench.write(
        "ask.goal",
        "num_ranks 2\nrank 0 {\nl1: calc 50000\nl2: send 4086b to 1 tag 1\nl3: recv 4086b from 1 tag 2\nl2 requires l1\n}\n\
         rank 1 {\nl1: recv 4086b from 0 tag 1\nl2: send 4086b to 0 tag 2\nl2 requires l1\n}\n",
    );
    bench.write(
        "ask.toml",
        "topology = { kind = \"single-switch\", hosts = 4 }\nworkload = { kind = \"trace\", file = \"ask.goal\", iterations = 3 }\n",
    );
    bench.succeed(&["run", "ask.toml", "--quiet", "--out", "out"]);
    let said = bench.succeed(&["why", "out"]);
    assert!(
        said.contains("In ask, 6 messages of ")
            && said.contains("and 3 computations of 150.0 us wait for one another"),
        "{said}"
    );
    assert!(
        said.contains("it waited ") && said.contains(" for messages from host 0 (flow 0)."),
        "{said}"
    );
    assert!(said.contains(" for computations at host 0."), "{said}");
    let why = document(&bench);
    let bound = &why["bound"];
    assert_eq!(
        (bound["job"].as_str(), bound["messages"].as_u64()),
        (Some("ask"), Some(6))
    );
    assert_eq!(bound["computations"], 3);
    let steps = bound["steps"].as_array().unwrap();
    assert_eq!(steps[0], serde_json::json!({ "host": 0, "ps": 50_000_000 }));
    assert_eq!(
        (&steps[1]["flow"], &steps[2]["flow"]),
        (&0.into(), &1.into())
    );
    let ratio = bound["ratio"].as_f64().unwrap();
    assert!((1.0..1.01).contains(&ratio), "{ratio}");
    let waits = |number: u64| {
        let mut flows = why["flows"].as_array().unwrap().iter();
        let flow = flows.find(|flow| flow["flow"] == number).unwrap();
        flow["waits"][0].clone()
    };
    assert_eq!(waits(0)["what"], "computations");
    assert_eq!(
        (&waits(1)["what"], &waits(1)["host"], &waits(1)["flow"]),
        (&"messages".into(), &0.into(), &0.into())
    );
    let report = bench.read("out/report.html");
    assert!(
        report.contains(" for messages from host 0 (flow 0).")
            && report.contains("wait for one another")
    );
}

const RING: [&str; 12] = [
    "run",
    "quickstart",
    "--set",
    "topology.hosts=32",
    "--set",
    "workload.kind=ring-all-reduce",
    "--set",
    "workload.size=256KB",
    "--set",
    "workload.jobs=2",
    "--set",
    "workload.iterations=2",
];

#[test]
fn a_job_is_explained_by_the_critical_path_of_its_longest_iteration() {
    let bench = Bench::new("why-iteration");
    let computing = ["--set", "workload.compute=3us", "--out", "out", "--quiet"];
    bench.succeed(&[&RING[..], &computing].concat());
    let said = bench.succeed(&["why", "out", "--slowest", "1"]);
    assert!(
        said.contains("the longest of the run: 30 messages and"),
        "{said}"
    );
    let why = document(&bench);
    let iteration = &why["iteration"];
    let sum = |rows: &serde_json::Value| -> u64 {
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| row["ps"].as_u64().unwrap()).sum()
    };
    let took = (iteration["took_us"].as_f64().unwrap() * 1e6).round() as u64;
    assert_eq!(sum(&iteration["parts"]), took);
    assert_eq!(sum(&iteration["steps"]), took);
    assert!(iteration["alone_us"].as_f64().unwrap() * 1e6 <= took as f64);
    let parts = iteration["parts"].as_array().unwrap();
    assert!(parts.iter().any(|row| row["part"] == "computation"));
    assert!(
        parts.iter().all(|row| row["part"] != "unexplained"),
        "{parts:?}"
    );
    let page = bench.read("out/report.html");
    assert!(page.contains("The critical path of an iteration"));
    // The messages of all 16 ranks, and those of the path once more.
    let messages = page.matches("<title>message of ").count();
    assert_eq!(messages, 16 * 30 + 30);

    let job = [
        "why",
        "out",
        "--job",
        "ring-all-reduce 1",
        "--iteration",
        "1",
        "--json",
    ];
    let asked: serde_json::Value = serde_json::from_str(&bench.succeed(&job)).unwrap();
    assert_eq!(asked["iteration"]["job"], "ring-all-reduce 1");
    assert_eq!(asked["iteration"]["iteration"], 1);
    insta::assert_snapshot!(refused(&bench, &["why", "out", "--job", "ring"]), @r#"
        error: --job "ring": this iteration does not exist or is not over
          fix: the jobs are "ring-all-reduce 0" (iterations 0 to 1), "ring-all-reduce 1" (iterations 0 to 1)
    "#);
    insta::assert_snapshot!(refused(&bench, &["why", "out", "--iteration", "2"]), @r#"
        error: --iteration 2: this iteration does not exist or is not over
          fix: the jobs are "ring-all-reduce 0" (iterations 0 to 1), "ring-all-reduce 1" (iterations 0 to 1)
    "#);
}

#[test]
fn runs_without_jobs_have_no_iteration_to_explain() {
    let bench = Bench::new("why-no-job");
    run(&bench, &[]);
    insta::assert_snapshot!(refused(&bench, &["why", "out", "--iteration", "0"]), @r#"
        error: --iteration 0: this iteration does not exist or is not over
          fix: this run has no jobs: ask about a flow with `--flow`
    "#);
    bench.succeed(&["why", "out", "--quiet"]);
    assert!(document(&bench).get("iteration").is_none());
}

#[test]
fn a_comparison_is_explained_by_the_kinds_of_time_that_differ() {
    let bench = Bench::new("why-comparison");
    let set = [
        "--set",
        "topology.hosts=16",
        "--set",
        "topology.hosts-per-leaf=4",
    ];
    let compare = [
        &[
            "compare",
            "quickstart",
            ":transport.spray=single",
            "--quiet",
        ],
        &set[..],
        &["--seeds", "2", "--out", "both"],
    ];
    bench.succeed(&compare.concat());
    std::fs::rename(bench.path("both"), bench.path("moved")).unwrap();
    let said = bench.succeed(&["why", "moved"]);
    assert!(said.starts_with("With adaptive flow "), "{said}");
    for text in [
        "\nWith single ",
        "\npart ",
        "\ntogether ",
        "\nRuns with seed 1.",
    ] {
        assert!(said.contains(text), "{said}");
    }
    let why: serde_json::Value = serde_json::from_str(&bench.read("moved/why.json")).unwrap();
    for (variant, id) in why["variants"].as_array().unwrap().iter().zip(["A", "B"]) {
        assert_eq!(variant["id"], id);
        let own = bench.read(&format!("moved/{id}-seed1/why.json"));
        let own: serde_json::Value = serde_json::from_str(&own).unwrap();
        assert_eq!(variant["sentence"], own["flows"][0]["sentence"]);
        let parts = variant["parts"].as_array().unwrap();
        let sum: f64 = parts.iter().map(|part| part["us"].as_f64().unwrap()).sum();
        let took = own["flows"][0]["completion_ps"].as_f64().unwrap() / 1e6;
        assert!((sum - took).abs() < 1e-6, "{sum} {took}");
    }
    assert!(!bench.path("moved/A-seed2/why.json").exists());
    std::fs::remove_dir_all(bench.path("moved/B-seed1")).unwrap();
    let error = bench.refuse(&["why", "moved"]);
    assert!(
        error.contains("the results of transport.spray=single with seed 1 are not there"),
        "{error}"
    );
}

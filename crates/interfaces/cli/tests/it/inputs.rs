//! Inputs without end, without a writer or with too much content: each reader rejects them immediately, with exit code 2.

#![cfg(unix)]

use crate::common::Bench;
use insta::assert_snapshot;
use std::fs::{self, File};
use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A folder with a pipe without a writer, and a sparse file of 1 TiB.
fn bench(name: &str) -> Bench {
    let bench = Bench::new(name);
    let made = Command::new("mkfifo").arg(bench.path("pipe")).status();
    assert!(made.expect("mkfifo runs").success());
    let sparse = File::create(bench.path("sparse")).expect("the test's folder can be written");
    sparse.set_len(1 << 40).expect("a sparse file");
    fs::create_dir(bench.path("folder")).expect("the test's folder can be written");
    bench
}

/// Output of a program that has to end without a signal.
fn ends(bench: &Bench, arguments: &[&str]) -> Output {
    let mut command = bench.command(arguments);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program can be started");
    #[expect(clippy::disallowed_methods, reason = "a test that waits for a program")]
    let (started, limit) = (Instant::now(), Duration::from_secs(30));
    while child.try_wait().expect("a child").is_none() {
        if started.elapsed() > limit {
            child.kill().expect("it runs");
            panic!("{arguments:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("a child")
}

/// The errors for each of the four inputs, which replace `INPUT` in the arguments.
fn refusals(bench: &Bench, arguments: &[&str]) -> String {
    let mut text = String::new();
    for input in ["/dev/zero", "pipe", "sparse", "folder"] {
        let own: Vec<String> = arguments
            .iter()
            .map(|argument| argument.replace("INPUT", input))
            .collect();
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let output = ends(bench, &own);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{own:?}: {errors}");
        assert!(errors.contains("\n  fix: "), "no way out: {errors}");
        text += &errors;
    }
    text
}

#[test]
fn scenarios_and_plans() {
    let bench = bench("inputs-scenarios");
    assert_snapshot!(refusals(&bench, &["run", "INPUT"]), @r"
    error: /dev/zero: this is a device, and only regular files are read
      fix: name a file; a scenario or a plan can come from standard input, which is called `-`
    error: pipe: this is a pipe, and only regular files are read
      fix: name a file; a scenario or a plan can come from standard input, which is called `-`
    error: sparse: 1099511627776B is more than the limit of 16MB for a scenario
      fix: name another file; if it is the right one, set the variable CLEARWAY_INPUT_LIMIT of the environment to a size such as `64GB`
    error: folder: this is a folder, and only regular files are read
      fix: name a file in it
    ");
    assert_snapshot!(refusals(&bench, &["plan", "INPUT"]), @r"
    error: /dev/zero: this is a device, and only regular files are read
      fix: name a file; a scenario or a plan can come from standard input, which is called `-`
    error: pipe: this is a pipe, and only regular files are read
      fix: name a file; a scenario or a plan can come from standard input, which is called `-`
    error: sparse: 1099511627776B is more than the limit of 16MB for a plan
      fix: name another file; if it is the right one, set the variable CLEARWAY_INPUT_LIMIT of the environment to a size such as `64GB`
    error: folder: this is a folder, and only regular files are read
      fix: name a file in it
    ");
    let run = refusals(&bench, &["run", "INPUT"]);
    for command in ["isolate", "topology"] {
        assert_eq!(refusals(&bench, &[command, "INPUT"]), run, "{command}");
    }
}

#[test]
fn files_of_scenarios() {
    let bench = bench("inputs-files");
    let set = |key: &'static str| ["run", "--set", key];
    assert_snapshot!(refusals(&bench, &set("topology.file=INPUT")), @r"
    error: --set topology.file=/dev/zero: cannot read /dev/zero: this is a device, and only regular files are read
      fix: name a file; a scenario or a plan can come from standard input, which is called `-`
    error: --set topology.file=pipe: cannot read pipe: this is a pipe, and only regular files are read
      fix: name a file; a scenario or a plan can come from standard input, which is called `-`
    error: --set topology.file=sparse: cannot read sparse: 1099511627776B is more than the limit of 1GB for a topology
      fix: name another file; if it is the right one, set the variable CLEARWAY_INPUT_LIMIT of the environment to a size such as `64GB`
    error: --set topology.file=folder: cannot read folder: this is a folder, and only regular files are read
      fix: name a file in it
    ");
    assert_snapshot!(refusals(&bench, &set("workload.file=INPUT")), @r"
    error: --set workload.file=/dev/zero: cannot read /dev/zero: this is a device, and only regular files are read
      fix: name a file; a scenario or a plan can come from standard input, which is called `-`
    error: --set workload.file=pipe: cannot read pipe: this is a pipe, and only regular files are read
      fix: name a file; a scenario or a plan can come from standard input, which is called `-`
    error: --set workload.file=sparse: cannot read sparse: 1099511627776B is more than the limit of 4GB for a file of flows
      fix: name another file; if it is the right one, set the variable CLEARWAY_INPUT_LIMIT of the environment to a size such as `64GB`
    error: --set workload.file=folder: cannot read folder: this is a folder, and only regular files are read
      fix: name a file in it
    ");
    let sizes = ["run", "hadoop-320", "--set", "workload.sizes=INPUT"];
    assert_snapshot!(refusals(&bench, &sizes), @r"
    error: --set workload.sizes=/dev/zero: cannot read /dev/zero: this is a device, and only regular files are read
      fix: name a file; a scenario or a plan can come from standard input, which is called `-`
    error: --set workload.sizes=pipe: cannot read pipe: this is a pipe, and only regular files are read
      fix: name a file; a scenario or a plan can come from standard input, which is called `-`
    error: --set workload.sizes=sparse: cannot read sparse: 1099511627776B is more than the limit of 16MB for a size distribution
      fix: name another file; if it is the right one, set the variable CLEARWAY_INPUT_LIMIT of the environment to a size such as `64GB`
    error: --set workload.sizes=folder: cannot read folder: this is a folder, and only regular files are read
      fix: name a file in it
    ");
    let trace = [
        "run",
        "--set",
        "workload.kind=trace",
        "--set",
        "workload.file=INPUT",
    ];
    assert_snapshot!(refusals(&bench, &trace), @r"
    error: --set workload.file=/dev/zero: cannot read /dev/zero: this is a device, and only regular files are read
      fix: name a file; a scenario or a plan can come from standard input, which is called `-`
    error: --set workload.file=pipe: cannot read pipe: this is a pipe, and only regular files are read
      fix: name a file; a scenario or a plan can come from standard input, which is called `-`
    error: --set workload.file=sparse: cannot read sparse: 1099511627776B is more than the limit of 16GB for a trace
      fix: name another file; if it is the right one, set the variable CLEARWAY_INPUT_LIMIT of the environment to a size such as `64GB`
    error: --set workload.file=folder: cannot read folder: the folder has no traces of PyTorch, whose names end with `.json` or `.json.gz`
      fix: name a file or a folder that you may read and that has such traces
    ");
}

#[test]
fn result_folders() {
    let bench = bench("inputs-results");
    bench.succeed(&[
        "run",
        "--set",
        "topology.hosts=4",
        "--set",
        "topology.hosts-per-leaf=2",
        "--set",
        "workload.message=4KB",
        "--set",
        "observe.series.every=1us",
        "--out",
        "good",
        "--quiet",
    ]);
    let mut text = String::new();
    for file in ["summary.json", "flows.parquet", "series.parquet"] {
        for input in ["/dev/zero", "pipe", "sparse"] {
            let _ = fs::remove_dir_all(bench.path("bad"));
            fs::create_dir(bench.path("bad")).expect("the test's folder can be written");
            for good in fs::read_dir(bench.path("good")).expect("results") {
                let good = good.expect("an entry");
                fs::copy(good.path(), bench.path("bad").join(good.file_name())).expect("a copy");
            }
            let path = bench.path("bad").join(file);
            fs::remove_file(&path).expect("it is there");
            std::os::unix::fs::symlink(bench.path(input), &path).expect("a link");
            let output = ends(&bench, &["compare", "good", "bad"]);
            assert_eq!(output.status.code(), Some(2), "{file} {input}");
            text += &String::from_utf8_lossy(&output.stderr);
            // The folder may be an earlier result that would be replaced.
            if file == "summary.json" {
                let output = ends(&bench, &["run", "quickstart", "--out", "bad"]);
                assert_eq!(output.status.code(), Some(2), "{input}");
            }
        }
    }
    assert_snapshot!(text, @r"
    error: bad: failed to read the summary `bad/summary.json`: this is a device, and only regular files are read
      fix: run its scenario again: `clearway run bad/scenario.toml --out bad`
    error: bad: failed to read the summary `bad/summary.json`: this is a pipe, and only regular files are read
      fix: run its scenario again: `clearway run bad/scenario.toml --out bad`
    error: bad: failed to read the summary `bad/summary.json`: 1099511627776B is more than the limit of 256MB for a summary
      fix: run its scenario again: `clearway run bad/scenario.toml --out bad`
    error: bad: failed to read `bad/flows.parquet`: this is a device, and only regular files are read
      fix: run its scenario again: `clearway run bad/scenario.toml --out bad`
    error: bad: failed to read `bad/flows.parquet`: this is a pipe, and only regular files are read
      fix: run its scenario again: `clearway run bad/scenario.toml --out bad`
    error: bad: failed to read `bad/flows.parquet`: 1099511627776B is more than the limit of 64GB for a table
      fix: run its scenario again: `clearway run bad/scenario.toml --out bad`
    error: bad: failed to read `bad/series.parquet`: this is a device, and only regular files are read
      fix: run its scenario again: `clearway run bad/scenario.toml --out bad`
    error: bad: failed to read `bad/series.parquet`: this is a pipe, and only regular files are read
      fix: run its scenario again: `clearway run bad/scenario.toml --out bad`
    error: bad: failed to read `bad/series.parquet`: 1099511627776B is more than the limit of 64GB for a table
      fix: run its scenario again: `clearway run bad/scenario.toml --out bad`
    ");
}

#[test]
fn the_limits_are_the_users() {
    let bench = Bench::new("inputs-limits");
    bench.write(
        "s.toml",
        &format!("seed = 1 # {}\n[topology]\nhosts = 16\n", "x".repeat(2000)),
    );
    let run = |limit: &str| {
        let mut command = bench.command(&["run", "s.toml", "--quiet"]);
        let output = command.env("CLEARWAY_INPUT_LIMIT", limit).output();
        let output = output.expect("the program can be started");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (code, errors) = run("1KB");
    assert_eq!(code, Some(2));
    assert_snapshot!(errors, @r"
    error: s.toml: 2034B is more than the limit of 1KB for a scenario
      fix: name another file; if it is the right one, set the variable CLEARWAY_INPUT_LIMIT of the environment to a size such as `64GB`
    ");
    let (code, errors) = run("1000000");
    assert_eq!(code, Some(2));
    assert_snapshot!(errors, @r"
    error: s.toml: the variable CLEARWAY_INPUT_LIMIT is `1000000`, which is not a size
      fix: set it to a size such as `64GB`, or unset it
    ");
    assert_eq!(run("1MB"), (Some(0), String::new()));
}

#[test]
fn scenarios_from_standard_input() {
    let bench = Bench::new("inputs-standard");
    let pipe = |arguments: &[&str], text: &str| {
        let mut command = bench.command(arguments);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let mut input = child.stdin.take().expect("piped");
        // A program that rejects its options reads no input.
        let _ = input.write_all(text.as_bytes());
        drop(input);
        let output = child.wait_with_output().expect("a child");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), errors)
    };
    let small = "[topology]\nhosts = 8\nhosts-per-leaf = 4\n[[workload]]\nkind = \"permutation\"\nmessage = \"4KB\"\n";
    bench.write("unnamed.toml", small);
    bench.succeed(&["run", "unnamed.toml", "--quiet", "--out", "file"]);
    assert_eq!(
        pipe(&["run", "-", "--quiet", "--out", "piped"], small),
        (Some(0), String::new())
    );
    assert_eq!(
        bench.read("piped/scenario.toml"),
        bench.read("file/scenario.toml")
    );
    // Results of a scenario from standard input can be read again.
    bench.succeed(&["why", "piped"]);
    let compared = pipe(
        &["compare", "-", ":seed=2", "--quiet", "--out", "both"],
        small,
    );
    assert_eq!(compared, (Some(0), String::new()));
    let (code, errors) = pipe(&["run", "-"], "seed = \"x\"\n");
    assert_eq!(code, Some(2));
    assert_snapshot!(errors, @r#"
    error: standard input:1: `seed` cannot be "x"
      fix: expected a whole number from 0 to 9223372036854775807
    "#);
}

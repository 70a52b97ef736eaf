//! Processes that execute runs of a sweep in sequence.

#![cfg(target_os = "linux")]

use crate::common::Bench;
use clearway_report::Summary;
use clearway_sweep::{RunAnswer, WORKER_COMMAND};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

const SMALL: &str = "name = \"small\"\nseed = 3\n\n[topology]\nhosts = 16\nhosts-per-leaf = 4\n\n[[workload]]\nkind = \"permutation\"\nmessage = \"64KB\"\n";

#[test]
fn one_process_carries_out_one_run_after_the_other() {
    let bench = Bench::new("carry-out");
    let write = |name: &str, text: &str| bench.write(&format!("work/{name}.toml"), text);
    fs::create_dir(bench.path("work")).unwrap();
    write("first", SMALL);
    write("wrong", &SMALL.replace("16", "0"));
    write("second", &SMALL.replace("64KB", "1MB"));
    let mut worker = bench
        .command(&[WORKER_COMMAND, "work"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = worker.stdin.take().unwrap();
    let mut answers = BufReader::new(worker.stdout.take().unwrap()).lines();
    let mut carry_out = |name: &str| -> RunAnswer {
        writeln!(input, "{name}").unwrap();
        assert_eq!(answers.next().unwrap().unwrap(), "", "a line of its own");
        serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap()
    };
    let well = RunAnswer {
        code: 0,
        errors: String::new(),
    };
    assert_eq!(carry_out("first"), well);
    let wrong = carry_out("wrong");
    assert_eq!(wrong.code, 2);
    assert!(wrong.errors.starts_with("error: "), "{wrong:?}");
    assert!(wrong.errors.contains("\n  fix: "), "{wrong:?}");
    assert_eq!(carry_out("second"), well);
    for name in ["first", "second"] {
        let summary = Summary::read(bench.path(&format!("work/{name}"))).unwrap();
        let alone = bench.summary(&[&format!("work/{name}.toml")]);
        assert_eq!(summary.digest, alone.digest, "{name}");
    }
    // The process ends when its input ends, because no process waits for the results any more.
    drop(input);
    assert_eq!(worker.wait().unwrap().code(), Some(130));
}

#[test]
fn small_runs_of_a_sweep_have_one_process() {
    let bench = Bench::new("carry-out-sweep");
    bench.write("small.toml", SMALL);
    let plan = "name = \"many\"\nscenario = \"small.toml\"\nseeds = 40\n\n[axes]\n\"workload.message\" = [\"4KB\"]\n";
    bench.write("plan.toml", plan);
    let mut sweep = bench
        .command(&["sweep", "plan.toml", "--jobs", "1", "--out", "s", "--quiet"])
        .spawn()
        .unwrap();
    let partial = bench.path("s/partial").to_string_lossy().into_owned();
    let mut seen = BTreeSet::new();
    let status = loop {
        if let Some(status) = sweep.try_wait().unwrap() {
            break status;
        }
        seen.extend(crate::common::processes_with(&partial));
    };
    assert_eq!(status.code(), Some(0));
    assert_eq!(
        fs::read_dir(bench.path("s/runs")).unwrap().count(),
        40,
        "all runs"
    );
    assert_eq!(seen.len(), 1, "processes");
}

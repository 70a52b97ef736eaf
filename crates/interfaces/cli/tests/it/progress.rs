//! Progress of long commands in a log: standard error is not a terminal.

#![cfg(unix)]

use crate::common::Bench;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// A command that would take minutes or days, and the form of its progress lines.
struct Long {
    name: &'static str,
    arguments: &'static [&'static str],
    /// Parts of a line after the time, in this order.
    parts: &'static [&'static str],
}

const LONG: [Long; 7] = [
    Long {
        name: "run",
        arguments: &["run", "permutation-1k", "--set", "workload.message=1TB"],
        parts: &["0 of 1024 flows done, at ", "s, ", " packet-hops/s"],
    },
    Long {
        name: "scale-up",
        arguments: &["run", "nvlink-64", "--set", "workload.transactions=20000"],
        parts: &[" operations done, at ", " flit-hops/s"],
    },
    Long {
        name: "compare",
        arguments: &[
            "compare",
            "permutation-1k:workload.message=1TB",
            "--seeds",
            "3",
            "--json",
        ],
        parts: &["run 1 of 3: 0 of 1024 flows done, at "],
    },
    Long {
        name: "isolate",
        arguments: &[
            "isolate",
            "incast-32",
            "--attackers",
            "5",
            "--set",
            "workload.message=1TB",
            "--set",
            "workload.attack.bytes=10GB",
        ],
        parts: &["run 1 of ", ": 0 of 32 flows done, at "],
    },
    Long {
        name: "plan",
        arguments: &[
            "plan",
            "dumbbell-pair",
            "--simulate",
            "--iterations",
            "100000",
        ],
        parts: &[" of ", " flows done, at "],
    },
    Long {
        name: "reproduce",
        arguments: &["reproduce", "strack/fig9", "--scale", "full"],
        parts: &["strack/fig9: ", " runs done, one at ", " flows done"],
    },
    Long {
        name: "sweep",
        arguments: &["sweep", "plan.toml", "--jobs", "1"],
        parts: &["1 of 2 runs done, 1 running, ", " to go"],
    },
];

/// A sweep of a short run and an endless run.
const PLAN: &str = r#"name = "long"
scenario = "quickstart"
seeds = 1

[axes]
"workload.message" = ["64KB", "1TB"]
"#;

fn start(bench: &Bench, long: &Long) -> Child {
    let mut command = bench.command(long.arguments);
    command.args(["--out", long.name]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// True if a line has all parts, in their order.
fn has_parts(line: &str, parts: &[&str]) -> bool {
    let mut parts = parts.iter();
    let rest = parts.try_fold(line, |left, part| Some(left.split_once(part)?.1));
    rest.is_some()
}

/// Reads progress lines until one has all parts, at most six lines, then interrupts the command and reads the rest. Returns the progress
/// lines and the later messages. On a slow machine the first line of a sweep may lack parts, because no run is done yet.
fn first_lines(mut child: Child, parts: &[&str]) -> (Vec<String>, String) {
    let errors = BufReader::new(child.stderr.take().unwrap());
    let mut lines = errors.lines().map(Result::unwrap);
    let mut progress = Vec::new();
    while progress.len() < 6
        && let Some(line) = lines.find(|line| line.starts_with("after "))
    {
        let is_it = has_parts(&line, parts);
        progress.push(line);
        if is_it {
            break;
        }
    }
    let interrupt = ["-INT", &child.id().to_string()];
    assert!(
        Command::new("kill")
            .args(interrupt)
            .status()
            .unwrap()
            .success()
    );
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    (progress, rest.join("\n"))
}

#[test]
fn long_commands_say_how_far_they_are() {
    let bench = Bench::new("progress");
    bench.write("plan.toml", PLAN);
    let children = LONG.iter().map(|long| start(&bench, long));
    let children: Vec<Child> = children.collect();
    for (long, child) in LONG.iter().zip(children) {
        let (lines, rest) = first_lines(child, long.parts);
        let found = lines.last().is_some_and(|line| has_parts(line, long.parts));
        assert!(found, "{}: no {:?} in {lines:?}", long.name, long.parts);
        assert!(rest.contains("interrupted"), "{}: {rest}", long.name);
    }
}

#[test]
fn short_and_quiet_runs_say_nothing() {
    let bench = Bench::new("progress-quiet");
    let short = ["run", "quickstart", "--set", "workload.message=10KB"];
    for more in [&[][..], &["--quiet"], &["--json"]] {
        let output = bench.output(&[&short[..], more, &["--out", "short"]].concat());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{more:?}");
    }
}

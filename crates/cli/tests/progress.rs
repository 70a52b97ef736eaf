//! Progress of long commands in a log, where standard error is no terminal.

#![cfg(unix)]

mod common;

use common::Bench;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// A command that would take minutes, and what its lines of progress look like.
struct Long {
    name: &'static str,
    arguments: &'static [&'static str],
    /// Parts of a line after its time, in this order.
    parts: &'static [&'static str],
}

const LONG: [Long; 7] = [
    Long {
        name: "run",
        arguments: &["run", "permutation-1k", "--set", "workload.message=1GB"],
        parts: &["0 of 1024 flows done, at ", " us, ", " packet-hops/s"],
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
            "permutation-1k:workload.message=1GB",
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
            "workload.message=1GB",
        ],
        parts: &["run 1 of ", " of 32 flows done, at "],
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
        arguments: &["sweep", "spray-study", "--jobs", "1"],
        parts: &[" of 150 runs done, 1 running, ", " to go"],
    },
];

fn start(bench: &Bench, long: &Long) -> Child {
    let mut command = bench.command(long.arguments);
    command.args(["--out", long.name]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Reads up to the first line of progress, interrupts the command and reads the rest; the line, and what was said after it.
fn first_line(mut child: Child) -> (String, String) {
    let errors = BufReader::new(child.stderr.take().unwrap());
    let mut lines = errors.lines().map(Result::unwrap);
    let line = lines.find(|line| line.starts_with("after "));
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
    (line.expect("a line of progress"), rest.join("\n"))
}

#[test]
fn long_commands_say_how_far_they_are() {
    let bench = Bench::new("progress");
    let children = LONG.iter().map(|long| start(&bench, long));
    let children: Vec<Child> = children.collect();
    for (long, child) in LONG.iter().zip(children) {
        let (line, rest) = first_line(child);
        let mut left = line.as_str();
        for part in long.parts {
            let found = left.split_once(part);
            left = found.unwrap_or_else(|| panic!("no `{part}` in {line}")).1;
        }
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

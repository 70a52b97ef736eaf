//! Full disks, limits of the process and killed runs: complete files are kept, losses are reported, and files of the user are not
//! overwritten.

use crate::common::Bench;
use clearway_report::Summary;
use std::fs::{File, OpenOptions};
use std::process::Output;
#[cfg(unix)]
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

const SMALL: [&str; 8] = [
    "run",
    "quickstart",
    "--set",
    "topology.hosts=32",
    "--set",
    "topology.hosts-per-leaf=8",
    "--set",
    "workload.message=20KB",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SMALL.iter().copied().chain(more.iter().copied()).collect()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A file that is always full; `None` if the system has no such file.
fn full() -> Option<File> {
    let full = OpenOptions::new().write(true).open("/dev/full").ok();
    if full.is_none() {
        eprintln!("SKIPPED: there is no /dev/full");
    }
    full
}

#[test]
fn output_that_cannot_be_printed_is_a_failure() {
    if full().is_none() {
        return;
    }
    let bench = Bench::new("full-stdout");
    bench.write("jobs.toml", JOBS);
    let compare = ["compare", "quickstart", "--set", "workload.message=1KB"];
    for arguments in [
        &with(&["--out", "table"])[..],
        &with(&["--json", "--out", "json"]),
        &with(&["--quiet", "--fct-txt", "-", "--out", "fct"]),
        &["list"],
        &["explain", "strack"],
        &["topology", "quickstart"],
        &[&compare[..], &["--vary", "seed=1,2", "--out", "c"]].concat(),
        &["plan", "jobs.toml", "--out", "plan"],
        &["reproduce"],
        &["--help"],
    ] {
        let output = bench
            .command(arguments)
            .stdout(full().unwrap())
            .output()
            .unwrap();
        let errors = errors(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        if arguments != ["--help"] {
            let start = "error: cannot write to standard output: ";
            assert!(errors.starts_with(start), "{arguments:?}: {errors}");
        }
    }
    for name in [
        "table/report.html",
        "json/summary.json",
        "fct/flows.parquet",
        "c/compare.json",
        "c/B-seed2/summary.json",
        "plan/plan.json",
    ] {
        assert!(bench.path(name).exists(), "{name} is kept all the same");
    }
}

const JOBS: &str = "[[link]]\nname = \"L\"\n[[job]]\nname = \"A\"\ncompute = \"5ms\"\ncommunication = \"2ms\"\nlinks = [\"L\"]\n";

#[test]
#[cfg(unix)]
fn a_closed_pipe_is_harmless() {
    let bench = Bench::new("closed-pipe");
    for arguments in [&["list"][..], &with(&["--json", "--out", "results"])] {
        let mut child = bench
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), errors(&output)),
            (Some(0), "".into())
        );
    }
}

#[test]
fn a_full_log_does_not_end_a_run() {
    let Some(log) = full() else { return };
    let bench = Bench::new("full-stderr");
    let arguments = with(&["--set", "stop.at-most=1us", "--quiet", "--out", "results"]);
    let status = bench.command(&arguments).stderr(log).status().unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(Summary::read(bench.path("results")).is_ok());
}

/// Runs under a limit of 50 or 100 KB for each file, which a report exceeds: shells count blocks of 512 or 1024 bytes.
#[cfg(unix)]
fn limited(bench: &Bench, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_clearway");
    Command::new("sh")
        .args(["-c", "ulimit -f 120 && exec \"$0\" \"$@\"", program])
        .args(arguments)
        .current_dir(bench.path(""))
        .output()
        .unwrap()
}

#[test]
#[cfg(unix)]
fn what_there_is_room_for_is_kept() {
    let bench = Bench::new("no-room");
    let off = ["--set", "observe.series.every=off"];
    let arguments = with(&[&off[..], &["--fct-txt", "flows.txt", "--out", "results"]].concat());
    let output = limited(&bench, &arguments);
    let message = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    let start =
        "error: --out results: the results are not whole: `report.html` could not be written: ";
    assert!(message.starts_with(start), "{message}");
    let kept = format!(
        "; `flows.parquet`, `scenario.toml`, `summary.json` are kept in `{}`\n  fix: ",
        bench.path("results").canonicalize().unwrap().display()
    );
    assert!(message.contains(&kept), "{message}");
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("Slowdown"), "{table}");
    assert!(!table.contains("Results  "), "{table}");
    assert!(!bench.path("results/report.html").exists());
    let flows = clearway_report::read_flows(bench.path("results"))
        .unwrap()
        .flows;
    assert_eq!(flows.len(), 32);
    assert_eq!(bench.read("flows.txt").lines().count(), 32);
    // A part of another result does not replace a complete result.
    bench.succeed(&arguments);
    let whole = bench.read("results/report.html");
    let output = limited(&bench, &arguments);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(bench.read("results/report.html"), whole);
    assert!(Summary::read(bench.path("results.partial")).is_ok());
    assert_eq!(holders(&bench.path("")), [""; 0]);
}

#[test]
#[cfg(unix)]
fn a_comparison_outlives_results_that_cannot_be_kept() {
    let bench = Bench::new("no-room-compare");
    let arguments = [
        &["compare", "quickstart"][..],
        &SMALL[2..],
        &["--vary", "seed=1,2", "--out", "c.json"],
    ];
    bench.succeed(&arguments.concat());
    let arguments = [
        &arguments[..2],
        &[&["--vary", "seed=1,2", "--out", "c"][..]],
    ]
    .concat();
    let output = limited(&bench, &arguments.concat());
    let message = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    for name in ["c/A-seed1", "c/B-seed2"] {
        assert!(message.contains(&format!("error: {name}: the results are not whole")));
        assert!(Summary::read(bench.path(name)).is_ok(), "{name}");
    }
    assert!(bench.path("c/compare.json").exists());
}

#[test]
fn reproductions_that_cannot_be_written_are_not_begun() {
    let bench = Bench::new("reproduce-out");
    bench.write("file", "mine");
    // The setting is also invalid, but only the first run would detect that.
    let error = bench.refuse(&[
        "reproduce",
        "strack/fig9",
        "--set",
        "transport.kind=none",
        "--out",
        "file",
    ]);
    assert!(error.contains("file"), "{error}");
    assert!(error.ends_with("fix: choose another folder with --out"));
    assert_eq!(bench.read("file"), "mine");
}

/// A process that ends when this value is dropped, also after a failed test.
#[cfg(target_os = "linux")]
struct Guarded(std::process::Child);

#[cfg(target_os = "linux")]
impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Names of the hidden folders in `folder` in which results are written.
#[cfg(unix)]
fn holders(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| name.starts_with(".clearway-"))
        .collect()
}

#[test]
#[cfg(target_os = "linux")]
fn folders_of_killed_runs_are_cleared_away_and_those_of_others_are_not() {
    let bench = Bench::new("killed");
    let start = |out: &str| {
        let long = [
            "run",
            "incast-32",
            "--set",
            "workload.message=1TB",
            "--quiet",
        ];
        let known = holders(&bench.path("")).len();
        let mut command = bench.command(&[&long[..], &["--out", out]].concat());
        let child = Guarded(command.spawn().unwrap());
        for _ in 0..6000 {
            if holders(&bench.path("")).len() > known {
                return child;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("it makes no folder");
    };
    let killed = start("killed");
    let alive = start("alive");
    let both = holders(&bench.path(""));
    assert_eq!(both.len(), 2);
    drop(killed);
    bench.succeed(&with(&["--out", "later"]));
    let left = holders(&bench.path(""));
    assert_eq!(left.len(), 1, "{both:?}: {left:?}");
    assert!(left[0].contains(&format!("-{}-", alive.0.id())), "{left:?}");
    drop(alive);
    bench.succeed(&with(&["--out", "later"]));
    assert_eq!(holders(&bench.path("")), [""; 0]);
}

#[test]
fn inputs_are_not_overwritten() {
    let bench = Bench::new("inputs");
    let scenario = "name = \"x\"\n[topology]\nfile = \"x.topo\"\n[[workload]]\nfile = \"x.cm\"\n";
    bench.write("s.toml", scenario);
    bench.write("x.topo", TOPOLOGY);
    bench.write("x.cm", "Nodes 2\nConnections 1\n0->1 start 0 size 1000\n");
    bench.succeed(&["run", "s.toml", "--quiet", "--out", "ok"]);
    let cases = [
        ("s.toml", "the scenario"),
        ("./s.toml", "the scenario"),
        ("x.topo", "`topology.file`"),
        ("ok/../x.cm", "`workload[0].file`"),
        #[cfg(unix)]
        ("link", "the scenario"),
        #[cfg(unix)]
        ("hard", "`workload[0].file`"),
    ];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("s.toml", bench.path("link")).unwrap();
        fs::hard_link(bench.path("x.cm"), bench.path("hard")).unwrap();
    }
    for (path, what) in cases {
        for option in ["--fct-txt", "--htsim-txt"] {
            let error = bench.refuse(&["run", "s.toml", option, path, "--out", "new"]);
            let start = format!("{option} {path}: this is {what} (");
            assert!(error.starts_with(&start), "{error}");
        }
    }
    assert_eq!(bench.read("s.toml"), scenario);
    assert!(!bench.path("new").exists());

    let both = |one, other| {
        let error = bench.refuse(&["run", "s.toml", "--fct-txt", one, "--htsim-txt", other]);
        assert!(error.contains("`--fct-txt` also writes there"), "{error}");
    };
    both("t", "./t");
    both("no/t", "no/x/../t");
    #[cfg(unix)]
    {
        bench.write("t", "");
        std::os::unix::fs::symlink("t", bench.path("t-link")).unwrap();
        both("t", "t-link");
    }
}

const TOPOLOGY: &str = "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n";

#[test]
fn inputs_are_not_deleted_with_former_results() {
    let bench = Bench::new("inputs-inside");
    bench.succeed(&with(&["--quiet", "--out", "results"]));
    // The resolved scenario among the results may be run again.
    bench.succeed(&[
        "run",
        "results/scenario.toml",
        "--quiet",
        "--out",
        "results",
    ]);
    let text = bench.read("results/scenario.toml");
    bench.write("results/mine.toml", &text);
    let error = bench.refuse(&["run", "results/mine.toml", "--out", "results"]);
    assert!(error.starts_with("--out results: the scenario (results/mine.toml) is in this folder"));
    assert!(bench.path("results/mine.toml").exists());

    let two = ["--vary", "seed=1,2", "--out", "c"];
    bench.succeed(&[&["compare", "results/scenario.toml", "--quiet"], &two[..]].concat());
    let again = ["compare", "results/scenario.toml", "c/A-seed1"];
    let error = bench.refuse(&[&again[..], &two[..]].concat());
    assert!(
        error.starts_with("--out c/A-seed1: a result that is compared"),
        "{error}"
    );
    bench.write("my.json", &text);
    let error = bench.refuse(&["compare", "my.json", "quickstart", "--out", "my.json"]);
    assert!(
        error.starts_with("--out my.json: this is a scenario"),
        "{error}"
    );
    bench.write("plan.json", JOBS);
    let error = bench.refuse(&["plan", "plan.json", "--out", "."]);
    assert!(
        error.starts_with("--out ./plan.json: this is the file of jobs"),
        "{error}"
    );
    assert_eq!(bench.read("plan.json"), JOBS);
}

/// A process that runs out of memory reports it, and leaves nothing at the place of its results.
#[test]
#[cfg(target_os = "linux")]
fn running_out_of_memory_ends_with_a_message_and_an_exit_code() {
    let bench = Bench::new("no-memory");
    let large = "run quickstart --threads 1 --set topology.hosts=65536 --no-report --out r";
    let limited = format!("ulimit -v 200000; exec \"$0\" {large}");
    let program = bench.command(&[]).get_program().to_owned();
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg(limited).arg(program);
    let output = shell.current_dir(bench.path(".")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("error: no memory left: "), "{said}");
    assert!(said.contains("  fix: run a smaller scenario"), "{said}");
    assert_eq!(output.status.code(), Some(4));
    assert!(!bench.path("r").exists());
}

//! Runs that end early: by a limit, by Ctrl-C, by a batch system.

use crate::common::Bench;
use clearway_report::StatusName;
#[cfg(unix)]
use clearway_report::Summary;
#[cfg(unix)]
use std::{
    process::{Command, Stdio},
    time::Duration,
};

#[test]
fn a_limit_of_simulated_time() {
    let bench = Bench::new("at-most");
    let (errors, summary) = bench.unfinished(&["quickstart", "--set", "stop.at-most=30us"]);
    assert_eq!(
        errors,
        "incomplete: stopped at stop.at-most = 30us; what was simulated is kept in results\n"
    );
    assert_eq!(summary.status, StatusName::Incomplete);
    let reason = summary.status_reason.expect("a limit was reached");
    assert_eq!(reason, "stopped at stop.at-most = 30us");
    assert!(summary.flows.completed < summary.flows.total);
    assert!((30.0..33.0).contains(&summary.simulated_us));
}

#[test]
fn a_limit_within_the_last_computation() {
    let bench = Bench::new("at-most-computation");
    bench.write(
        "t.goal",
        "num_ranks 2\nrank 0 {\ns: send 1000b to 1\nc: calc 500000\nc requires s\n}\nrank 1 {\nrecv 1000b from 0\n}\n",
    );
    let small = [
        "--set",
        "topology.hosts=4",
        "--set",
        "topology.hosts-per-leaf=2",
    ];
    let cut = ["--set", "stop.at-most=100us"];
    let reduction = [
        "--set",
        "workload.kind=ring-reduce-scatter",
        "--set",
        "workload.ranks=2",
        "--set",
        "workload.size=100KB",
        "--set",
        "workload.reduction-rate=1Gbps",
    ];
    let trace = [
        "--set",
        "workload.kind=trace",
        "--set",
        "workload.file=t.goal",
    ];
    for job in [&reduction[..], &trace] {
        let whole = [&small[..], job].concat();
        let (errors, summary) = bench.unfinished(&[&whole[..], &cut].concat());
        let reason = "stopped at stop.at-most = 100us; the job is not done";
        assert_eq!(
            errors,
            format!("incomplete: {reason}; what was simulated is kept in results\n")
        );
        assert_eq!(summary.status, StatusName::Incomplete);
        assert_eq!(summary.status_reason.as_deref(), Some(reason));
        assert_eq!(summary.flows.completed, summary.flows.total);
        assert_eq!(summary.jobs[0].completed, 0);
        assert!((summary.simulated_us - 100.0).abs() < 3.0);

        let summary = bench.summary(&whole);
        assert_eq!(summary.status, StatusName::Complete);
        assert_eq!(summary.jobs[0].end_us, Some(summary.simulated_us));
    }
    let two = [&["s.toml"][..], &small, &cut].concat();
    bench.write(
        "s.toml",
        "[[workload]]\nkind = \"trace\"\nfile = \"t.goal\"\n\n[[workload]]\nkind = \"chain-broadcast\"\nranks = 2\nsize = \"1KB\"\n",
    );
    let (errors, _) = bench.unfinished(&two);
    assert!(errors.contains("; 1 of 2 jobs are not done; "), "{errors}");
}

#[test]
#[cfg(unix)]
fn an_interrupted_run_keeps_what_it_has() {
    end_early("-INT");
}

/// SIGTERM, as batch systems send it before SIGKILL.
#[test]
#[cfg(unix)]
fn a_terminated_run_keeps_what_it_has() {
    end_early("-TERM");
}

/// True if a process catches SIGINT and SIGTERM. Always true without `/proc`: there the caller has to wait long enough.
#[cfg(unix)]
fn catches_signals(process: &str) -> bool {
    // Signals 2 and 15; the lowest bit stands for signal 1.
    const BOTH: u64 = 0x4002;
    let Ok(status) = std::fs::read_to_string(format!("/proc/{process}/status")) else {
        return true;
    };
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = u64::from_str_radix(caught.unwrap_or_default().trim(), 16).unwrap_or(0);
    caught & BOTH == BOTH
}

#[cfg(unix)]
fn end_early(signal: &str) {
    let bench = Bench::new(&format!("interrupt{signal}"));
    // A run that takes days without an interrupt.
    let run = [
        "run",
        "permutation-1k",
        "--set",
        "workload.message=1TB",
        "--quiet",
        "--out",
        "partial",
    ];
    let mut child = bench
        .command(&run)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let id = child.id().to_string();
    // Wait until the run has started: then the working folder has files, and the process catches the signals.
    let started = || {
        let names = std::fs::read_dir(bench.path("")).unwrap();
        names.count() > 0 && catches_signals(&id)
    };
    while !started() {
        assert_eq!(child.try_wait().unwrap(), None, "it has ended");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(700));
    assert!(
        Command::new("kill")
            .args([signal, &id])
            .status()
            .unwrap()
            .success()
    );
    let status = child.wait().unwrap();
    let mut errors = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut errors).unwrap();
    assert_eq!(status.code(), Some(130), "{errors}");
    assert_eq!(errors, "interrupted: partial results are kept in partial\n");
    let summary = Summary::read(bench.path("partial")).unwrap();
    assert_eq!(summary.status, StatusName::Interrupted);
    assert_eq!((summary.flows.total, summary.flows.completed), (1024, 0));
}

//! `clearway testbed`: a scenario over network namespaces, and what cannot be one.

mod common;

use clearway_testing::skip;
use common::Bench;
use serde_json::Value;
use std::process::Command;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicU32, Ordering};

/// True if namespaces can be made here; a loud skip otherwise.
#[cfg(target_os = "linux")]
fn has_namespaces() -> bool {
    // Tests of one process run side by side.
    static PROBES: AtomicU32 = AtomicU32::new(0);
    let number = PROBES.fetch_add(1, Ordering::Relaxed);
    let probe = format!("cw-probe{}-h{number}", std::process::id());
    let runs = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        output.is_ok_and(|output| output.status.success())
    };
    let link = "link add cwp0 type veth peer name cwp1";
    let shape = "qdisc add dev cwp0 root tbf rate 1mbit burst 32kb latency 10ms";
    let inside = |program: &str, words: &str| {
        let place = ["-n", probe.as_str()];
        let words: Vec<&str> = place.into_iter().chain(words.split(' ')).collect();
        runs(program, &words)
    };
    let can = runs("ip", &["netns", "add", &probe]) && inside("ip", link) && inside("tc", shape);
    let _ = runs("ip", &["netns", "del", &probe]);
    if !can {
        skip(
            "namespaces",
            "network namespaces need root, `ip` and `tc`: no test bed was made",
        );
    }
    can
}

#[cfg(target_os = "linux")]
fn namespaces(name: &str) -> Vec<String> {
    let output = Command::new("ip").args(["netns", "list"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let own = text
        .lines()
        .filter(|line| line.starts_with(&format!("cw-{name}-")));
    own.map(String::from).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn flows_cross_a_bed_of_the_kernel_and_nothing_is_left() {
    if !has_namespaces() {
        return;
    }
    let bench = Bench::new("testbed-kernel");
    let name = format!("k{}", std::process::id());
    let keys = [
        "testbed",
        "run",
        "testbed-permutation",
        "--set",
        "workload.message=200KB",
        "--switches",
        "kernel",
        "--name",
        &name,
        "--out",
        "out",
        "--json",
        "--quiet",
    ];
    let results: Value = serde_json::from_str(&bench.succeed(&keys)).unwrap();
    assert_eq!(namespaces(&name), [""; 0]);
    assert_eq!(results["sound"], true, "{results}");
    let flows = results["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 4);
    for flow in flows {
        assert!(flow["simulated_us"].as_f64().unwrap() > 0.0, "{flow}");
        assert!(flow["measured_us"].as_f64().unwrap() > 0.0, "{flow}");
        assert_eq!(flow["deliveries"], 1);
    }
    // Everything crosses spines, on both sides.
    for side in ["simulated_bytes", "measured_bytes"] {
        let links = results["links"].as_array().unwrap();
        let bytes: u64 = links.iter().filter_map(|link| link[side].as_u64()).sum();
        assert!(bytes > 2 * 4 * 200_000, "{side}: {bytes}");
    }
    assert!(
        bench
            .read("out/report.html")
            .contains("Where they differ, and why")
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_bed_is_up_once_and_down_takes_all_of_it() {
    if !has_namespaces() {
        return;
    }
    let bench = Bench::new("testbed-up");
    let name = format!("u{}", std::process::id());
    let up = ["testbed", "up", "--switches", "kernel", "--name", &name];
    bench.succeed(&up);
    assert_eq!(namespaces(&name).len(), 10);
    let again = bench.output(&up);
    assert_eq!(again.status.code(), Some(2));
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(said.contains("is up already"), "{said}");
    bench.succeed(&["testbed", "down", "--name", &name]);
    assert_eq!(namespaces(&name), [""; 0]);
    // Twice is no fault.
    bench.succeed(&["testbed", "down", "--name", &name]);
}

#[test]
#[cfg(target_os = "linux")]
fn what_is_no_test_bed_is_refused_with_a_fix() {
    let bench = Bench::new("testbed-refused");
    let refused = [
        (&["testbed", "up", "permutation-8k"][..], "8192 flows"),
        (&["testbed", "up", "--name", "a-b"], "cannot be called"),
        (&["testbed", "up", "hadoop-320"], "lossless switches"),
        (&["testbed", "up", "nvlink-64"], "nvlink"),
    ];
    for (arguments, expected) in refused {
        let output = bench.output(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert!(said.contains("fix: "), "{said}");
    }
    // Planning needs no privileges.
    let plan = bench.succeed(&["testbed", "up", "--switches", "kernel", "--dry-run"]);
    assert!(
        plan.contains("cw-bed-leaf0 tc: qdisc add dev p0 root tbf rate 100000000bit"),
        "{plan}"
    );
}

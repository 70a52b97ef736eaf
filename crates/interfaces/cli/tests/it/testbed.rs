//! `clearway testbed`: a scenario over network namespaces, and scenarios that cannot run there.

use crate::common::Bench;
use clearway_testing::skip;
use serde_json::Value;
use std::process::Command;
#[cfg(target_os = "linux")]
use std::{
    fs,
    path::PathBuf,
    process::{Child, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

/// True if namespaces can be created here; otherwise a skip with a message.
#[cfg(target_os = "linux")]
fn has_namespaces() -> bool {
    // Tests of one process run concurrently.
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
    // A second `down` is not an error.
    bench.succeed(&["testbed", "down", "--name", &name]);
}

/// Record of a test bed that root created.
#[cfg(target_os = "linux")]
fn record(name: &str, ending: &str) -> PathBuf {
    PathBuf::from(format!("/run/clearway/testbed-{name}.{ending}"))
}

#[test]
#[cfg(target_os = "linux")]
fn half_a_bed_is_none() {
    if !has_namespaces() {
        return;
    }
    let bench = Bench::new("testbed-half");
    let name = format!("p{}", std::process::id());
    let up = ["testbed", "up", "--switches", "kernel", "--name", &name];
    bench.succeed(&up);
    // Rewrite the record as a command leaves it if it is killed before the last step.
    let text = fs::read_to_string(record(&name, "json")).unwrap();
    let half = text.replace("\"complete\": true", "\"complete\": false");
    assert_ne!(half, text);
    fs::write(record(&name, "json"), half).unwrap();
    let run = ["testbed", "run", "--switches", "kernel", "--name", &name];
    for arguments in [&up, &run] {
        let said = bench.refuse(arguments);
        assert!(said.contains("is half made"), "{said}");
        assert!(said.contains("clearway testbed down --name p"), "{said}");
    }
    bench.succeed(&["testbed", "down", "--name", &name]);
    assert_eq!(namespaces(&name), [""; 0]);
}

/// Recorded processes of a test bed that still run.
#[cfg(target_os = "linux")]
fn running(processes: &[u64]) -> Vec<u64> {
    let runs = |pid: &&u64| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')')
            .is_some_and(|(_, rest)| !rest.starts_with(" Z"))
    };
    processes.iter().filter(runs).copied().collect()
}

/// Waits until a command has recorded `count` processes.
#[cfg(target_os = "linux")]
fn recorded(name: &str, count: usize, command: &mut Child) -> Vec<u64> {
    for _ in 0..12_000 {
        let text = fs::read_to_string(record(name, "json")).unwrap_or_default();
        let record: Value = serde_json::from_str(&text).unwrap_or_default();
        let children = record["children"].as_array().cloned().unwrap_or_default();
        if children.len() == count {
            let pids = children.iter().map(|child| child["pid"].as_u64());
            return pids.map(Option::unwrap).collect();
        }
        assert_eq!(command.try_wait().unwrap(), None, "it has ended early");
        thread::sleep(Duration::from_millis(10));
    }
    panic!("no {count} processes within two minutes")
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_outlives_a_command_that_is_killed() {
    if !has_namespaces() {
        return;
    }
    let bench = Bench::new("testbed-killed");
    let name = format!("x{}", std::process::id());
    let long = [
        "--set",
        "workload.message=20MB",
        "--set",
        "topology.link-rate=10Mbps",
    ];
    let run = ["testbed", "run", "--switches", "soft", "--quiet", "--name"];
    let run: Vec<&str> = run.into_iter().chain([name.as_str()]).chain(long).collect();
    let soak = [
        "testbed",
        "soak",
        "--messages",
        "100000000",
        "--quiet",
        "--name",
        &name,
    ];
    for arguments in [&run[..], &soak] {
        let mut command = bench.command(arguments);
        let mut command = command.stderr(Stdio::null()).spawn().unwrap();
        // The process of the switches, and the processes of four hosts.
        let processes = recorded(&name, 5, &mut command);
        thread::sleep(Duration::from_millis(700));
        assert_eq!(running(&processes), processes);
        command.kill().unwrap();
        command.wait().unwrap();
        for _ in 0..3000 {
            if running(&processes).is_empty() {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(running(&processes), [0; 0], "{arguments:?}");
        assert_eq!(namespaces(&name).len(), 4);
        bench.succeed(&["testbed", "down", "--name", &name]);
        assert_eq!(namespaces(&name), [""; 0]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_end_of_a_bed_is_the_end_of_its_switches_and_files() {
    if !has_namespaces() {
        return;
    }
    let bench = Bench::new("testbed-soft-up");
    let name = format!("s{}", std::process::id());
    bench.succeed(&["testbed", "up", "--switches", "soft", "--name", &name]);
    let text = fs::read_to_string(record(&name, "json")).unwrap();
    let state: Value = serde_json::from_str(&text).unwrap();
    let switch = [state["switch"]["pid"].as_u64().unwrap()];
    assert_eq!(running(&switch), switch);
    assert!(record(&name, "log").exists());
    bench.succeed(&["testbed", "down", "--name", &name]);
    assert_eq!(running(&switch), [0; 0]);
    for ending in ["json", "toml", "log"] {
        assert!(!record(&name, ending).exists(), "{ending}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn links_that_died_are_whole_in_the_next_run_on_a_bed_that_is_kept() {
    if !has_namespaces() {
        return;
    }
    let bench = Bench::new("testbed-kept");
    let name = format!("d{}", std::process::id());
    bench.write("bed.toml", DYING);
    let run = [
        "testbed",
        "run",
        "bed.toml",
        "--switches",
        "kernel",
        "--keep",
        "--json",
    ];
    let run: Vec<&str> = run
        .into_iter()
        .chain(["--quiet", "--name", &name])
        .collect();
    for turn in 0..2 {
        let output = bench.output(&run);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "turn {turn}: {said}");
        let results: Value = serde_json::from_slice(&output.stdout).unwrap();
        let done = |flow: usize| results["flows"][flow]["measured_us"].is_number();
        assert_eq!([done(0), done(1)], [true, false], "turn {turn}: {results}");
    }
    bench.succeed(&["testbed", "down", "--name", &name]);
}

/// The first flow ends before all links between the leaves die; the second flow never ends.
#[cfg(target_os = "linux")]
const DYING: &str = r#"
name = "dying"
stop.at-most = "3800ms"

[topology]
kind = "leaf-spine"
hosts = 4
hosts-per-leaf = 2
spines = 1
link-rate = "100Mbps"
links = ["leaf0-spine0 dead-from=3s"]

[switch]
queue = "100KB"

[[workload]]
kind = "flows"
flows = ["0->2 500KB at 0s", "1->3 500KB at 3100ms"]
"#;

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
        plan.contains("cw-bed-leaf0 tc: qdisc replace dev p0 root tbf rate 100000000bit"),
        "{plan}"
    );
}

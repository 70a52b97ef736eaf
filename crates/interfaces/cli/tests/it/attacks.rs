//! Kinds of attacks, each with `clearway isolate`.

use crate::common::Bench;

/// Hosts 0 to 3 attack, and host 0 sends to host 1; two victims send to each of the hosts 1 to 3.
const FAN_OUT: &str = r#"
name = "fan-out"
topology = { kind = "single-switch", hosts = 16, link-rate = "100Gbps" }
switch.kind = "shared-buffer"

[[workload]]
kind = "flows"
flows = ["0->1 8MB"]
attack = { kind = "fan-out", hosts = "0-3" }

[[workload]]
kind = "flows"
flows = ["8->1 8MB", "9->1 8MB", "10->2 8MB", "11->2 8MB", "12->3 8MB", "13->3 8MB"]
"#;

/// Attack, median gain and median loss of each row.
fn medians(bench: &Bench, command: &[&str]) -> Vec<(String, f64, f64)> {
    let output = bench.output(&[&["isolate"], command, &["--out", "here"]].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let study: serde_json::Value =
        serde_json::from_str(&bench.read("here/isolation.json")).expect(&said);
    let cells = study["cells"].as_array().unwrap().iter();
    cells
        .map(|cell| {
            assert_eq!(cell["incomplete"], 0, "{cell}");
            let median = |field: &str| cell[field]["median"].as_f64().unwrap();
            let attack = cell["attack"].as_str().unwrap().to_owned();
            (attack, median("gain"), median("loss"))
        })
        .collect()
}

#[test]
fn weights_do_not_stop_a_fan_out() {
    let bench = Bench::new("attacks-fan-out");
    bench.write("fan-out.toml", FAN_OUT);
    let all = "parallel,parallel-overlay,fan-out,short-flows";
    let command = [
        "fan-out.toml",
        "--attacks",
        all,
        "--transport",
        "1rc",
        "--scope",
        "host",
    ];
    let rows = medians(&bench, &command);
    let names: Vec<&str> = rows.iter().map(|row| row.0.as_str()).collect();
    assert_eq!(names.join(","), all);
    let gains: Vec<f64> = rows.iter().map(|row| row.1).collect();
    // Each of three links gives a share of (1/3)/(2 + 1/3) instead of one link that gives 1/3: a gain of 9/7 (Eq. 5.2).
    assert!((gains[2] - 9.0 / 7.0).abs() < 0.05, "{gains:?}");
    assert!(gains[1] < gains[2] && gains[1] > 1.1, "{gains:?}");
    assert!(gains[0] < 1.05 && gains[3] < 1.15, "{gains:?}");
    // Without weights all of them gain.
    let rows = medians(&bench, &command[..5]);
    assert!(rows.iter().all(|row| row.1 > 2.0), "{rows:?}");
}

#[test]
fn coalitions_harm_the_receiver_of_others() {
    let bench = Bench::new("attacks-incast");
    bench.write("fan-out.toml", FAN_OUT);
    let ring = "workload[0].flows=[\"0->4 8MB\",\"1->5 8MB\",\"2->6 8MB\",\"3->7 8MB at 20us\"]";
    let run = |threads: &str| {
        let command = [
            "fan-out.toml",
            "--attacks",
            "incast",
            "--transport",
            "strack",
            "--set",
            ring,
        ];
        let rows = medians(&bench, &[&command[..], &["--threads", threads]].concat());
        let [(_, gain, loss)] = &rows[..] else {
            panic!("{rows:?}");
        };
        (*gain, *loss)
    };
    // The attack chooses host 1 among hosts 1 to 3, which have two messages of victims each. Six senders share its link instead of two.
    let (gain, loss) = run("1");
    assert!(gain < 0.5 && loss < 0.85, "{gain} {loss}");
    assert_eq!(run("2"), (gain, loss), "on any number of threads");
}

#[test]
fn only_the_usual_attacks_run_unasked() {
    let bench = Bench::new("attacks-usual");
    bench.write("fan-out.toml", FAN_OUT);
    let output = bench.output(&["isolate", "fan-out.toml", "--out", "here"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.starts_with("4 runs: 1 transport x 1 seed x (1 + 3 attacks)\n"),
        "{said}"
    );
    let unknown = bench.output(&["isolate", "fan-out.toml", "--attacks", "flood"]);
    assert_eq!(unknown.status.code(), Some(2));
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(
        said.contains("parallel-overlay, fan-out, short-flows, incast, disobey"),
        "{said}"
    );
}

/// Two attacking hosts and three others, each with two concurrent messages.
const PAIRS: &str = r#"
name = "pairs"
topology = { kind = "single-switch", hosts = 8, link-rate = "100Gbps" }
switch.kind = "shared-buffer"

[[workload]]
kind = "flows"
flows = ["0->7 8MB", "0->7 8MB", "1->7 8MB", "1->7 8MB"]
attack = { kind = "disobey", hosts = "0-1" }

[[workload]]
kind = "flows"
flows = ["2->7 8MB", "2->7 8MB", "3->7 8MB", "3->7 8MB", "4->7 8MB"]
"#;

#[test]
fn nics_that_disobey_gain_what_the_rule_took() {
    let bench = Bench::new("attacks-disobey");
    bench.write("pairs.toml", PAIRS);
    let run = |transport: &str, breaks: &str, more: &[&str]| {
        let breaks = format!("workload[0].attack.breaks={breaks}");
        let command = [
            "pairs.toml",
            "--attacks",
            "disobey",
            "--transport",
            transport,
        ];
        let rows = medians(&bench, &[&command[..], &["--set", &breaks], more].concat());
        let [(_, gain, loss)] = &rows[..] else {
            panic!("{rows:?}");
        };
        (*gain, *loss)
    };
    // The attackers have 4/7 of the weight instead of 2/5, until all attackers are done.
    let (gain, loss) = run("1rc", "weight", &["--scope", "host"]);
    assert!((1.25..1.43).contains(&gain) && loss < 0.9, "{gain} {loss}");
    // No other flow is left that could use the bandwidth that the attackers keep.
    let (gain, loss) = run("1rc", "leaving", &["--scope", "host"]);
    assert!(
        (gain - 1.0).abs() < 0.01 && (loss - 1.0).abs() < 0.01,
        "{gain} {loss}"
    );
    let (gain, _) = run("s-perc", "auto", &[]);
    assert!(gain > 1.1, "{gain}");
    for (transport, harms) in [
        ("strack", false),
        ("rocev2", true),
        ("hpcc", false),
        ("swift", true),
    ] {
        let (gain, loss) = run(transport, "marks", &[]);
        assert!(
            gain > 1.2 && (loss < 0.85) == harms,
            "{transport}: {gain} {loss}"
        );
        let threads = run(transport, "auto", &["--threads", "2"]);
        assert_eq!(threads, (gain, loss), "{transport}");
    }
}

#[test]
fn rules_that_a_transport_does_not_have_are_refused() {
    let bench = Bench::new("attacks-no-rule");
    bench.write("pairs.toml", PAIRS);
    let command = [
        "isolate",
        "pairs.toml",
        "--attacks",
        "parallel,disobey",
        "--transport",
        "1rc,strack",
        "--set",
        "workload[0].attack.breaks=leaving",
    ];
    let output = bench.output(&command);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("has no such rule, since links allocate no rates"),
        "{said}"
    );
}

#[test]
fn a_matrix_leaves_out_transports_without_the_rule() {
    let bench = Bench::new("attacks-matrix");
    bench.write("pairs.toml", PAIRS);
    let command = [
        "isolate",
        "pairs.toml",
        "--attacks",
        "disobey",
        "--matrix",
        "--set",
        "workload[0].attack.breaks=leaving",
        "--out",
        "here",
    ];
    let output = bench.output(&command);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("left out: strack: `attack.breaks` = \"leaving\""),
        "{said}"
    );
    let rows = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows = rows.lines().filter(|line| line.contains("  host "));
    let names: Vec<&str> = rows
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(names, ["s-perc", "1rc"], "{said}");
}

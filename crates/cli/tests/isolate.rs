//! `clearway isolate`: who gains, what is written, and how it ends.

mod common;

use common::Bench;

/// Sixteen hosts to one, a small incast.
const SMALL: [&str; 4] = ["isolate", "incast-32", "--set", "workload.senders=16"];

fn isolate(more: &[&str]) -> Vec<String> {
    let words = SMALL.iter().chain(more);
    words.map(|word| (*word).to_owned()).collect()
}

#[test]
fn more_queue_pairs_take_more_than_their_share() {
    let bench = Bench::new("isolate-gain");
    let command = isolate(&[
        "--set",
        "workload.message=2MB",
        "--attackers",
        "3",
        "--attacks",
        "parallel",
        "--out",
        "here",
    ]);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let output = bench.output(&command);
    assert_eq!(output.status.code(), Some(1), "an attack that gains");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.contains("VULNERABLE"), "{printed}");
    let json = bench.read("here/isolation.json");
    let study: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&study["schema"], &study["attackers"]),
        (&1.into(), &"3".into())
    );
    let cell = &study["cells"][0];
    assert_eq!(cell["incomplete"], 0);
    // Five pieces of a bandwidth-delay product at once against fifteen flows.
    assert!(cell["gain"]["median"].as_f64().unwrap() > 1.5, "{cell}");
    assert!(cell["loss"]["median"].as_f64().unwrap() < 1.0, "{cell}");
    let page = bench.read("here/isolation.html");
    assert!(page.contains("<h1>incast-32 under attack</h1>"));
    let again = bench.output(&[&command[..], &["--json"]].concat());
    assert_eq!(
        String::from_utf8_lossy(&again.stdout).replace(" --json", ""),
        json
    );
}

#[test]
fn an_attack_of_one_piece_gains_nothing() {
    let bench = Bench::new("isolate-nothing");
    let command = isolate(&[
        "--attackers",
        "3",
        "--attacks",
        "staggered",
        "--set",
        "workload.attack.bytes=1GB",
    ]);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let printed = bench.succeed(&command);
    assert!(
        printed.contains("secure") && printed.contains("1.00"),
        "{printed}"
    );
}

#[test]
fn what_cannot_be_studied_is_refused() {
    let bench = Bench::new("isolate-refused");
    let refused = |more: &[&str]| {
        let command = isolate(more);
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let output = bench.output(&command);
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (more, message) in [
        (&[][..], "nobody attacks in this scenario"),
        (&["--attackers", "x"], "these are no hosts"),
        (&["--attackers", "all"], "all of the"),
        (&["--attackers", "0-9999"], "there is no host 9999"),
        (
            &["--attackers", "3", "--attacks", "none"],
            "expected one of parallel",
        ),
        (
            &["--attackers", "3-5", "--attacks", "overlay"],
            "none of their flows leads to another",
        ),
        (
            &["--attackers", "3", "--transport", "quic"],
            "there is no \"quic\"",
        ),
    ] {
        let error = refused(more);
        assert!(error.contains(message), "{more:?}: {error}");
    }
}

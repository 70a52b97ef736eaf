//! `clearway isolate`: who gains, what is written, and how it ends.

use crate::common::Bench;

/// Sixteen hosts to one, a small incast.
const SMALL: [&str; 4] = ["isolate", "incast-32", "--set", "workload.senders=16"];

fn isolate<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL[..], more].concat()
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
fn a_matrix_has_every_scope_that_a_transport_can_have() {
    let bench = Bench::new("isolate-matrix");
    let transports = ["--transport", "dctcp,s-perc", "--matrix"];
    let attack = ["--attackers", "3", "--attacks", "parallel", "--out", "here"];
    let output = bench.output(&isolate(&[&transports[..], &attack].concat()));
    assert_eq!(output.status.code(), Some(1), "an attack that gains");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let verdict = |transport: &str, scope: &str| {
        let row = format!("{transport:<9}  {scope:<13}  ");
        let line = printed.lines().find(|line| line.starts_with(&row));
        let line = line.unwrap_or_else(|| panic!("{row}: {printed}"));
        line.split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!(verdict("dctcp", "queue-pair"), "VULNERABLE");
    assert_eq!(verdict("dctcp", "destination"), "VULNERABLE");
    // Connections with weights start anew all the same: what an attack gains by that depends on the scenario.
    verdict("dctcp", "host");
    for scope in ["pair", "service-level"] {
        assert_eq!(verdict("dctcp", scope), "secure");
    }
    assert_eq!(verdict("s-perc", "queue-pair"), "secure");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        said.matches("links allocate a rate to each flow").count(),
        3,
        "{said}"
    );
    assert!(bench.read("here/isolation.html").contains("service-level"));
}

#[test]
fn what_cannot_be_studied_is_refused() {
    let bench = Bench::new("isolate-refused");
    let refused = |more: &[&str]| {
        let command = isolate(more);
        let output = bench.output(&command);
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (more, message) in [
        (&[][..], "nobody attacks in this scenario"),
        (&["--attackers", "x"], "these are no hosts"),
        (&["--attackers", "all"], "all hosts that send"),
        (&["--attackers", "0-9999"], "there is no host 9999"),
        (
            &["--attackers", "3", "--attacks", "none"],
            "expected one of parallel",
        ),
        (
            &["--attackers", "3-5", "--attacks", "overlay"],
            "no message is part of the attack",
        ),
        (
            // Nothing attacks: that is not the same as secure.
            &["--attackers", "3", "--set", "workload.attack.bytes=1GB"],
            "no message is part of the attack",
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

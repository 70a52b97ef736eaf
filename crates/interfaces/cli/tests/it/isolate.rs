//! `clearway isolate`: gains, written files and exit codes.

use crate::common::Bench;

/// A small incast of sixteen hosts to one.
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
    // Five concurrent pieces of a bandwidth-delay product compete with fifteen flows.
    assert!(cell["gain"]["median"].as_f64().unwrap() > 1.5, "{cell}");
    assert!(cell["loss"]["median"].as_f64().unwrap() < 1.0, "{cell}");
    let page = bench.read("here/isolation.html");
    assert!(page.contains("<h1>incast-32 under attack</h1>"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said, "2 runs: 1 transport x 1 seed x (1 + 1 attack)\n");
    let quiet = bench.output(&[&command[..], &["--quiet"]].concat());
    assert!(quiet.stderr.is_empty(), "{quiet:?}");
    let again = bench.output(&[&command[..], &["--json"]].concat());
    assert_eq!(
        String::from_utf8_lossy(&again.stdout).replace(" --json", ""),
        json
    );
}

/// Eight hosts that send to one host, and six that send to its neighbours: the storm of the book.
const STORM: &str = r#"
name = "storm"
stop.at-most = "50ms"

transport.kind = "hpcc"

[topology]
kind = "leaf-spine"
hosts = 32
hosts-per-leaf = 8
spines = 2
link-rate = "100Gbps"
fabric-link-rate = "400Gbps"

[switch]
kind = "shared-buffer"
buffer = "2MB"

[[workload]]
kind = "flows"
flows = ["0->31 4MB", "1->31 4MB", "2->31 4MB", "3->31 4MB", "8->31 4MB", "9->31 4MB", "10->31 4MB", "11->31 4MB"]
attack = { kind = "staggered", hosts = "0-3,8-11" }

[[workload]]
kind = "flows"
flows = ["4->24 1MB at 20us", "5->25 1MB at 20us", "12->26 1MB at 20us", "13->27 1MB at 20us", "16->28 1MB at 20us", "17->29 1MB at 20us"]
"#;

#[test]
fn attackers_that_gain_nothing_can_do_harm() {
    let bench = Bench::new("isolate-harm");
    bench.write("storm.toml", STORM);
    let command = [
        "isolate",
        "storm.toml",
        "--attacks",
        "staggered",
        "--out",
        "here",
    ];
    let output = bench.output(
        &[
            &command[..],
            &["--matrix", "--transport", "hpcc", "--scope", "queue-pair"],
        ]
        .concat(),
    );
    assert_eq!(output.status.code(), Some(1), "an attack that harms");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.contains(" secure, "), "{printed}");
    assert!(printed.contains(" HARMFUL"), "{printed}");
    let study: serde_json::Value =
        serde_json::from_str(&bench.read("here/isolation.json")).expect("JSON");
    let cell = &study["cells"][0];
    assert_eq!(
        (&cell["verdict"], &cell["harm"]),
        (&"secure".into(), &"harmful".into())
    );
    assert_eq!(cell["harmed_seeds"], 1);
    let median = |field: &str| cell[field]["median"].as_f64().unwrap();
    assert!(
        median("loss") < 0.3 && median("p99_slowdown_ratio") > 3.0,
        "{cell}"
    );
    assert!(
        median("user_fairness") > median("user_fairness_before"),
        "{cell}"
    );
    assert!(bench.read("here/isolation.html").contains("poorer"));
}

#[test]
fn a_network_without_contention_is_not_secure() {
    let bench = Bench::new("isolate-idle");
    let idle = [
        "isolate",
        "--set",
        "topology.kind=single-switch",
        "--set",
        "topology.hosts=8",
        "--set",
        "workload.kind=permutation",
        "--set",
        "workload.message=4MB",
        "--set",
        "switch.kind=shared-buffer",
        "--attackers",
        "0-1",
        "--transport",
        "rocev2",
        "--attacks",
        "parallel",
        "--out",
        "here",
    ];
    let output = bench.output(&idle);
    assert_eq!(output.status.code(), Some(1), "nothing was tested");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let row = printed.lines().find(|line| line.starts_with("rocev2"));
    insta::assert_snapshot!(
        row.unwrap(),
        @"rocev2     queue-pair  parallel  1.00  353 Gbit/s -> 353 Gbit/s  353 Gbit/s -> 353 Gbit/s  1.013x -> 1.013x         1.013x -> 1.013x  1.000 -> 1.000     not tested: nothing was contended  1.00 unharmed"
    );
    assert!(
        bench
            .read("here/isolation.json")
            .contains("\"verdict\": \"not-tested\"")
    );
}

#[test]
fn links_that_allocate_rates_are_not_for_lossy_switches() {
    let bench = Bench::new("isolate-lossy");
    let more = [
        "--attackers",
        "5-6",
        "--attacks",
        "parallel",
        "--out",
        "here",
    ];
    for transport in ["s-perc", "1rc", "rocev2"] {
        let lossy = ["--set", "switch.kind=lossy", "--transport", transport];
        let output = bench.output(&isolate(&[&more[..], &lossy].concat()));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            said.contains("is made for lossless networks"),
            "{transport}: {said}"
        );
        // The default switches are of the kind that the transport needs.
        let lossless = ["--transport", transport];
        let output = bench.output(&isolate(&[&more[..], &lossless].concat()));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("lossless networks"), "{transport}: {said}");
    }
}

/// Tenants `a` and `b` on one host, and hosts without a tenant: the shared NIC of the book.
const SHARED_NIC: &str = r#"
name = "shared-nic"
topology = { kind = "single-switch", hosts = 8, link-rate = "100Gbps" }
switch.kind = "shared-buffer"
transport.kind = "1rc"

[[workload]]
kind = "flows"
tenant = "a"
flows = ["0->7 4MB"]

[[workload]]
kind = "flows"
tenant = "b"
flows = ["0->6 20MB"]

[[workload]]
kind = "flows"
flows = ["1->7 20MB", "2->7 20MB", "3->6 20MB"]
"#;

#[test]
fn tenants_of_one_nic_are_told_apart() {
    let bench = Bench::new("isolate-tenants");
    bench.write("shared-nic.toml", SHARED_NIC);
    let verdicts = |attackers: &str, section: &str, tenants: &[&str]| {
        let command = [
            "isolate",
            "shared-nic.toml",
            "--attackers",
            attackers,
            "--attacks",
            "parallel",
            "--scope",
            "queue-pair,host",
            "--set",
            section,
            "--out",
            "here",
        ];
        let output = bench.output(&[&command[..], tenants].concat());
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let json = bench.read("here/isolation.json");
        let study: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let cells = study["cells"].as_array().unwrap().iter();
        let verdicts = cells.map(|cell| format!("{}, {}", cell["verdict"], cell["harm"]));
        (
            printed.lines().next().unwrap().to_owned(),
            verdicts.collect::<Vec<_>>().join("; ").replace('"', ""),
        )
    };
    let qps = "workload[1].attack.qps=50";
    assert_eq!(
        verdicts("tenant:b", qps, &[]),
        (
            "shared-nic attacked by tenant b, 1 seed".into(),
            "vulnerable, harmful; secure, harmful".into()
        )
    );
    // The tenant has only host 0.
    assert_eq!(
        verdicts("tenant:b:0-3", qps, &[]).0,
        "shared-nic attacked by tenant b on hosts 0-3, 1 seed"
    );
    // If the host is the user, its other tenant belongs to the attacker.
    let untold = [
        "--set",
        "workload[0].tenant=auto",
        "--set",
        "workload[1].tenant=auto",
    ];
    let attack = "workload[1].attack={kind=\"parallel\",qps=50}";
    assert_eq!(
        verdicts("0", attack, &untold),
        (
            "shared-nic attacked by hosts 0, 1 seed".into(),
            "secure, unharmed; secure, unharmed".into()
        )
    );
}

#[test]
fn a_mix_of_transports_is_named_as_it_is() {
    let bench = Bench::new("isolate-mix");
    let mixed = |more: &[&str]| {
        let command = [
            "isolate",
            "tenants-mixed",
            "--attacks",
            "parallel",
            "--out",
            "here",
        ];
        let output = bench.output(&[&command[..], more].concat());
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let row = |printed: String| {
        let line = printed.lines().nth(4).unwrap();
        line.split_whitespace()
            .take(4)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let storage = row(mixed(&["--attackers", "tenant:storage:0-3"]));
    assert_eq!(storage, "rocev2+strack queue-pair parallel 1.50");
    // Hosts attack for the tenants whose sections attack.
    let by_hosts = [
        "--attackers",
        "0-3",
        "--set",
        "workload[0].attack.kind=parallel",
    ];
    assert_eq!(row(mixed(&by_hosts)), storage);
    let swift = mixed(&["--attackers", "tenant:training", "--transport", "swift"]);
    assert!(row(swift).starts_with("swift+strack queue-pair "));
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
        let gain = line.strip_prefix(&row).unwrap().split(',').next();
        gain.and_then(|gain| gain.split_whitespace().last())
            .unwrap()
            .to_owned()
    };
    assert_eq!(verdict("dctcp", "queue-pair"), "VULNERABLE");
    assert_eq!(verdict("dctcp", "destination"), "VULNERABLE");
    // Weighted connections also restart, and the gain of an attack from these restarts depends on the scenario.
    verdict("dctcp", "host");
    for scope in ["pair", "service-level"] {
        assert_eq!(verdict("dctcp", scope), "secure");
    }
    assert_eq!(verdict("s-perc", "queue-pair"), "VULNERABLE");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        said.matches("links allocate a rate to each flow").count(),
        3,
        "{said}"
    );
    let announced = "\n14 runs: 7 pairs of transport and scope x 1 seed x (1 + 1 attack)\n";
    assert!(said.contains(announced), "{said}");
    assert_eq!(said.matches("warning: s-perc: ").count(), 0, "{said}");
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
        (&["--attackers", "x"], "these are not hosts"),
        (
            &["--attackers", "tenant:x"],
            "no section of the workload has this tenant",
        ),
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
            // Without an attacking message the verdict is an error, not "secure".
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
    let tenants = |attackers: &str| {
        let command = ["isolate", "tenants-mixed", "--attackers", attackers];
        let output = bench.output(&command);
        assert_eq!(output.status.code(), Some(2), "{attackers}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    insta::assert_snapshot!(tenants("tenant:stor") + &tenants("tenant:storage:x") + &tenants("0-63"), @r#"
    error: --attackers tenant:stor: no section of the workload has this tenant
      fix: the tenants are: storage, training
    error: --attackers tenant:storage:x: these are not hosts
      fix: expected hosts such as "0-3,8", or a tenant such as "tenant:NAME" or "tenant:NAME:0-3,8"
    error: --attackers 0-63: all hosts that send in this workload attack
      fix: leave others as victims, or tell tenants apart by `tenant` in the sections of the workload
    "#);
}

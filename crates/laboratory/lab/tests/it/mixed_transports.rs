//! Sections of a workload with transports of their own, in one run.

use clearway_lab::units::Span;
use clearway_lab::{Assembly, Finished, Laboratory, RunDecision, RunOptions, Scenario, Watch};

const FABRIC: &str =
    "[topology]\nkind = \"leaf-spine\"\nhosts = 16\nhosts-per-leaf = 4\nlink-rate = \"100Gbps\"\n";

fn scenario(text: &str, overrides: &[&str]) -> Scenario {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let text = format!("{FABRIC}{text}");
    let read = Laboratory::new().read("mixed.toml", &text, None, &overrides);
    read.unwrap_or_else(|error| panic!("{error}"))
}

fn run_assembly(assembly: &Assembly, threads: usize) -> Finished {
    let options = RunOptions {
        threads: threads.into(),
        on_progress: &mut |_| RunDecision::Continue,
        on_flow: &mut |_, _, _| (),
    };
    assembly.run(options, Watch::Off)
}

fn run(text: &str, overrides: &[&str]) -> Finished {
    run_assembly(&Assembly::new(&scenario(text, overrides)).unwrap(), 1)
}

const PERMUTATION: &str = "[[workload]]\nkind = \"permutation\"\nmessage = \"200KB\"\n";

/// A transport is the same one, whether it is the usual one or a section has it and nobody the usual one.
#[test]
fn a_transport_of_a_section_is_the_transport_itself() {
    for (kind, usual) in [
        ("strack", "rocev2"),
        ("rocev2", "strack"),
        ("hpcc", "strack"),
        ("strack", "hpcc"),
        ("swift", "rocev2"),
        ("dctcp", "irn"),
        ("tmdml", "strack"),
    ] {
        let switches = [
            "switch.kind=lossy",
            "switch.queue=5bdp",
            "switch.ecn={kmin=\"25%bdp\",kmax=\"75%bdp\",pmax=1.0,mark=\"dequeue\"}",
        ];
        let own = format!("workload.transport.kind={kind}");
        let usual_kind = format!("transport.kind={usual}");
        let alone = format!("transport.kind={kind}");
        let alone = run(PERMUTATION, &[&switches[..], &[&alone]].concat());
        let beside = run(PERMUTATION, &[&switches[..], &[&usual_kind, &own]].concat());
        assert_eq!(alone.stopped, None);
        assert_eq!(alone.flows, beside.flows, "{kind} beside {usual}");
        assert_eq!(alone.digest, beside.digest, "{kind} beside {usual}");
        assert_eq!(alone.endpoints, beside.endpoints);
        assert_eq!(beside.transports[0].data_sent, 0);
        assert_eq!(beside.transports[1], alone.endpoints);
    }
}

/// RoCEv2 and STrack, with packets of different sizes.
const TENANTS: &str = "[transport]\nkind = \"rocev2\"\npayload = \"1000B\"\n\
    [[workload]]\nname = \"storage\"\nkind = \"permutation\"\nmessage = \"100KB\"\n\
    [[workload]]\nname = \"training\"\nkind = \"permutation\"\nmessage = \"819200B\"\ntransport.kind = \"strack\"\n";

#[test]
fn flows_of_several_transports_end_in_one_run() {
    let text = TENANTS;
    let assembly = Assembly::new(&scenario(text, &[])).unwrap();
    let finished = run_assembly(&assembly, 1);
    assert_eq!(finished.stopped, None);
    let [rocev2, strack] = finished.transports[..] else {
        panic!("two transports");
    };
    // 16 flows of 100 packets of 1000 B, and 16 of 200 of 4096 B.
    assert_eq!(rocev2.data_sent - rocev2.retransmitted, 1600);
    assert_eq!(strack.data_sent - strack.retransmitted, 3200);
    let all = rocev2.data_sent + strack.data_sent;
    assert_eq!(finished.endpoints.data_sent, all);
    let other = run_assembly(&assembly, 3);
    assert_eq!(finished.digest, other.digest);
    assert_eq!(finished.flows, other.flows);
}

#[test]
fn ideal_completion_times_are_those_of_the_flow_s_transport() {
    let mixed = run(TENANTS, &[]);
    let same = |kind: &str, payload: &str| {
        let usual = [
            format!("transport.kind={kind}"),
            format!("transport.payload={payload}"),
        ];
        let own = [
            format!("workload[1].transport.kind={kind}"),
            format!("workload[1].transport.payload={payload}"),
        ];
        let all: Vec<&str> = usual.iter().chain(&own).map(String::as_str).collect();
        run(TENANTS, &all)
    };
    let ideals = |finished: &Finished, from: usize| -> Vec<Span> {
        let flows = finished.flows[from..from + 16].iter();
        flows.map(|flow| flow.ideal).collect()
    };
    assert_eq!(ideals(&mixed, 0), ideals(&same("rocev2", "1000B"), 0));
    assert_eq!(ideals(&mixed, 16), ideals(&same("strack", "4096B"), 16));
    assert_ne!(ideals(&mixed, 16), ideals(&same("rocev2", "1000B"), 16));
}

#[test]
fn jobs_run_on_the_transport_of_their_section() {
    let text = "[transport]\nkind = \"rocev2\"\n[[workload]]\nkind = \"permutation\"\nmessage = \"400KB\"\n\
        [[workload]]\nkind = \"ring-all-reduce\"\njobs = 2\nranks = 8\nsize = \"4096000B\"\niterations = 2\n\
        transport = { kind = \"strack\", max-cwnd = [\"1bdp\", \"2bdp\"] }\npriority = 2\n";
    for switch in ["lossy", "shared-buffer"] {
        let finished = run(text, &[&format!("switch.kind={switch}")]);
        assert_eq!(finished.stopped, None, "{switch}");
        assert!(finished.jobs.iter().all(clearway_lab::JobResult::is_done));
        let jobs = &finished.transports[1];
        // Each rank sends 2 * 7 / 8 of its data in each iteration, in whole packets of 4096 B or shorter ones.
        let packets = 2 * 2 * 8 * (14 * 4_096_000 / 8 / 4096);
        assert_eq!(jobs.data_sent - jobs.retransmitted, packets);
    }
}

#[test]
fn traffic_that_comes_one_by_one_has_the_transport_of_its_section() {
    let text = "[transport]\nkind = \"dctcp\"\n\
        [[workload]]\nkind = \"poisson\"\nload = 0.3\nduration = \"300us\"\n\
        [[workload]]\nkind = \"poisson\"\nload = 0.3\nduration = \"300us\"\ntransport.kind = \"strack\"\n\
        [[workload]]\nkind = \"poisson\"\nload = 0.1\nduration = \"200us\"\ntransport.kind = \"hpcc\"\n";
    let scenario = scenario(text, &[]);
    let streaming = Assembly::streaming(&scenario).unwrap();
    assert!(streaming.is_streaming());
    let listed = run_assembly(&Assembly::new(&scenario).unwrap(), 1);
    let streamed = run_assembly(&streaming, 2);
    assert_eq!(listed.stopped, None);
    assert_eq!(listed.digest, streamed.digest);
    assert_eq!(listed.transports, streamed.transports);
    assert_eq!(listed.transports.len(), 3);
    let sent = listed.transports.iter().map(|own| own.data_sent);
    assert!(
        sent.clone().all(|sent| sent > 500),
        "{:?}",
        sent.collect::<Vec<_>>()
    );
}

#[test]
fn an_error_about_a_section_s_transport_names_it() {
    let refused = |overrides: &[&str]| {
        let scenario = scenario(TENANTS, overrides);
        Assembly::new(&scenario).unwrap_err().to_string()
    };
    assert_eq!(
        refused(&["workload[1].transport.rto=1us"])
            .split(", which")
            .next(),
        Some(
            "--set workload[1].transport.rto=1us: `workload[1].transport`: `transport.rto` = 1us is less than the unloaded round trip of 9.35168us: every packet would be retransmitted before its acknowledgement arrives\n  fix: set `transport.rto` to several round trips"
        )
    );
    let too_long = refused(&["workload[1].transport.payload=70000B"]);
    assert!(
        too_long.starts_with("--set workload[1].transport.payload=70000B: `workload[1].transport`: `transport.payload` = 70KB"),
        "{too_long}"
    );
}

#[test]
fn a_transport_made_for_other_switches_is_warned_about() {
    let warnings = |overrides: &[&str]| {
        Assembly::new(&scenario(TENANTS, overrides))
            .unwrap()
            .warnings
    };
    let strack = warnings(&[]);
    assert_eq!(strack.len(), 1, "{strack:?}");
    assert!(
        strack[0].contains(
            "\"strack\" was designed with `switch.kind` = \"lossy\", `switch.ecn.kmin` = \"25%bdp\""
        ) && strack[0].contains("`switch.ecn.classes`"),
        "{strack:?}"
    );
    // With marks of its own class the pauses are left.
    let own = [
        "workload[1].priority=2",
        "switch.ecn.classes=[\"2: kmin=25%bdp kmax=75%bdp pmax=1.0\"]",
    ];
    let own = warnings(&own);
    assert_eq!(own.len(), 1, "{own:?}");
    assert!(
        !own[0].contains("ecn") && own[0].contains("`switch.kind`"),
        "{own:?}"
    );
    let lossless = "switch.kind=shared-buffer";
    let all = [lossless, "workload[1].transport.kind=rocev2"];
    assert_eq!(warnings(&all), Vec::<String>::new());
    let uet = warnings(&["transport.kind=strack", "workload[1].transport.kind=uet"]);
    assert_eq!(uet.len(), 2, "{uet:?}");
    assert!(
        uet[0].starts_with("`workload[1].transport`: `transport.recovery` = \"none\""),
        "{uet:?}"
    );
    assert!(
        uet[1].starts_with("`workload[1].transport`: \"uet\" was designed with `switch.trimming` = true, `switch.queue` = \"1bdp\""),
        "{uet:?}"
    );
}

//! Figures of scale-up fabrics.

use super::figure_run_data::RunKind;
use super::tests::{Quiet, small};
use super::*;
use clearway_lab::{Experiment, Laboratory};

/// An idle fabric with one operation at a time; two groups side by side; a run that is cut off.
const FABRIC: &str = r#"
title = "A fabric of 16 GPUs"
source = "nowhere"
setup = "four leaves"

[base]
topology.kind = "nvlink"
topology.gpus = 16
topology.gpus-per-leaf = 4
topology.spines = 2
topology.links-per-spine = 2
injection.kind = "none"
workload = { kind = "collective", transactions = 4 }

[small]
seeds = 1
[full]

[[axes]]
name = "case"

[[axes.values]]
label = "idle"
set.workload.transactions = 1
set.workload.initiators = 1

[[axes.values]]
label = "all"

[[axes.values]]
label = "two"
set.workload.members = "0-7"
set."workload[1]" = { kind = "collective", operation = "all-gather", transactions = 8, members = "8-15" }

[[axes.values]]
label = "cut"
set.stop.at-most = "1us"

[[claims]]
id = "true"
paper = "what follows from the arithmetic"
source = "arithmetic"
expect = "RULE"
"#;

fn figure_of(rule: &str) -> Result<Figure, String> {
    Figure::read("test/fabric", &FABRIC.replace("RULE", rule))
}

fn outcome(rule: &str) -> FigureOutcome {
    let mut reproducer = Reproducer::new(Laboratory::new(), 2);
    let figure = figure_of(rule).unwrap();
    let quiet = Quiet::with_limit(u32::MAX);
    reproducer.reproduce(&figure, &small(None), &quiet).unwrap()
}

#[test]
fn fabrics_are_measured() {
    for rule in [
        // Three links of 150 cycles and 9 flits into memory, three and 1 flit back; data: 1 flit there, 180 in memory, 9 flits back.
        "operation_latency_max(idle, kind=write) in [910, 910]",
        "operation_latency_max(idle, kind=read) in [1090, 1090]",
        "operation_latency_mean(idle) in [1000, 1000]",
        "operation_latency_of_gpus_mean(idle) in [1000, 1000]",
        "reduction_entries_peak(idle) in [1, 1]",
        // The read and then the write: 16 GPUs get 10 flits each of both.
        "effective_bandwidth(idle) * 2000 in [20, 20]",
        "effective_bandwidth(all) - effective_bandwidth(all, section=0) in [0, 0]",
        "operation_latency_mean(all) - operation_latency_of_gpus_mean(all) in [-0.001, 0.001]",
        "operation_latency_max(all, kind=write) < operation_latency_max(all, kind=read)",
        "effective_bandwidth(two, section=0) > 0 and effective_bandwidth(two, section=1) > 0",
        "operation_latency_mean(two, section=1) - operation_latency_mean(two, section=1, kind=write) in [0, 0]",
        "flit_hops(two) > 0",
        "table_waits(two) in [0, 0]",
        "unfinished_operations(two) in [0, 0]",
        "unfinished_operations(cut) > 0",
    ] {
        let claim = &outcome(rule).claims[0];
        assert_eq!(claim.verdict, ClaimVerdict::Pass, "{:?}", claim.judgements);
    }
}

#[test]
fn what_is_not_known_of_a_fabric_says_why() {
    for (rule, message) in [
        (
            "effective_bandwidth(all, section=1) > 0",
            "effective_bandwidth: there is no section 1",
        ),
        (
            "operation_latency_mean(two, section=1, kind=read) > 0",
            "operation_latency_mean: there are no such operations",
        ),
        (
            "effective_bandwidth(cut) > 0",
            "effective_bandwidth: 64 operations are not finished",
        ),
    ] {
        let outcome = outcome(rule);
        let judgement = &outcome.claims[0].judgements[0];
        assert_eq!(judgement.reason.as_deref(), Some(message));
    }
}

#[test]
fn a_run_of_a_fabric_says_what_it_is() {
    let outcome = outcome("flit_hops(all) > 0");
    let of = |label: &str| {
        let mut runs = outcome.runs.iter();
        runs.find(|run| run.labels["case"] == label).unwrap()
    };
    assert_eq!(of("idle").measures["operation-latency-mean"], 1000.0);
    assert_eq!(of("all").measures.get("effective-bandwidth(0)"), None);
    assert!(of("two").measures["effective-bandwidth(1)"] > 0.0);
    assert!(!of("cut").measures.contains_key("effective-bandwidth"));
    assert_ne!(of("all").digest, of("idle").digest);
}

#[test]
fn fabrics_and_networks_are_told_apart() {
    for (rule, message) in [
        ("max_fct(all) > 0", "`max_fct` is not of scale-up fabrics"),
        ("score(all) > 0", "`score` is of plans only"),
        (
            "flit_hops(all, section=0) > 0",
            "`flit_hops` has no option `section`; it has: ",
        ),
        (
            "operation_latency_mean(all, kind=atomic) > 0",
            "option `kind` of `operation_latency_mean` cannot be `atomic`",
        ),
    ] {
        let error = figure_of(rule).unwrap_err();
        assert_eq!(error, format!("test/fabric.toml: claim `true`: {message}"));
    }
    let packets = FABRIC
        .replace("RULE", "flit_hops(all) > 0")
        .replace("nvlink", "leaf-spine");
    let error = Figure::read("test/fabric", &packets).unwrap_err();
    assert!(
        error.contains("`flit_hops` is of scale-up fabrics only"),
        "{error}"
    );
    let recorded = FABRIC
        .replace("RULE", "flit_hops(all) > 0")
        .replace("[small]", "[record]\nlosses = \"1us\"\n[small]");
    let error = Figure::read("test/fabric", &recorded).unwrap_err();
    assert!(
        error.contains("`record`: nothing of it is kept of scale-up fabrics"),
        "{error}"
    );
}

#[test]
fn a_fabric_is_changed_and_interrupted() {
    let figure = figure_of("flit_hops(all) > 0").unwrap();
    let request = FigureRequest {
        changes: vec!["switch.latency=100".into()],
        ..small(Some(1))
    };
    let mut reproducer = Reproducer::new(Laboratory::new(), 1);
    let quiet = Quiet::with_limit(u32::MAX);
    let outcome = reproducer.reproduce(&figure, &request, &quiet).unwrap();
    assert_eq!(
        outcome.runs[0].measures["operation-latency-mean"],
        1000.0 - 6.0 * 50.0
    );
    let mut reproducer = Reproducer::new(Laboratory::new(), 1);
    let impatient = Quiet::with_limit(3);
    let request = small(Some(1));
    let outcome = reproducer.reproduce(&figure, &request, &impatient).unwrap();
    assert!(!outcome.complete);
    let useless = FigureRequest {
        changes: vec!["injection.windw=3".into()],
        ..request
    };
    let error = reproducer.reproduce(&figure, &useless, &quiet).unwrap_err();
    assert!(error.to_string().contains("windw"), "{error}");
}

#[test]
fn a_null_subject_replaces_the_injection_control() {
    let figure = figure_of("flit_hops(all) > 0").unwrap();
    for run in figure.runs(Scale::Small) {
        let settings = figure.settings_of(Scale::Small, &run, 1);
        for (subject, kind) in NullSubject::ALL.into_iter().zip(["window", "none"]) {
            let replaced = subject.replace(&figure, RunKind::Scaleup, &settings);
            let read = Laboratory::new().read_any("null", "", None, &replaced);
            let Ok(Experiment::Scaleup(scenario)) = read else {
                panic!("{read:?}");
            };
            assert_eq!(scenario.injection.name(), kind);
        }
    }
}

//! Results by section of the workload: in files, on the terminal, in the report and in comparisons.

use crate::common::Bench;
use clearway_report::{SectionSummary, Summary, read_flows};
use serde_json::Value;

/// Background traffic and a burst into one host.
const MIX: &str = r#"
name = "mix"
topology = { kind = "leaf-spine", hosts = 32, hosts-per-leaf = 8, link-rate = "100Gbps" }

[[workload]]
name = "background"
kind = "poisson"
load = 0.3
duration = "300us"

[[workload]]
name = "burst"
kind = "incast"
senders = 8
message = "500KB"
start = "100us"
"#;

fn named<'a>(summary: &'a Summary, name: &str) -> &'a SectionSummary {
    let mut sections = summary.sections.iter();
    sections.find(|section| section.name == name).expect(name)
}

#[test]
fn percentiles_over_a_mix_mislead_and_those_of_sections_do_not() {
    let bench = Bench::new("sections-mix");
    bench.write("mix.toml", MIX);
    let printed = bench.succeed(&["run", "mix.toml", "--out", "results"]);
    for text in [
        "FCT by section",
        "Slowdown by section",
        "\nbackground ",
        "\nburst ",
    ] {
        assert!(printed.contains(text), "no {text:?} in\n{printed}");
    }
    let summary = Summary::read(bench.path("results")).unwrap();
    let [background, burst] = ["background", "burst"].map(|name| named(&summary, name));
    assert_eq!(burst.figures.flows, 8);
    let all = background.figures.flows + burst.figures.flows;
    assert_eq!(all, summary.flows.total);
    // Every flow of the burst is slow, but the median over all flows does not show that.
    let p50 = |section: &SectionSummary| section.figures.slowdown.unwrap().p50;
    assert!(p50(burst) > 3.0 * p50(background));
    assert!(summary.slowdown.unwrap().p50 < 1.2 * p50(background));
    assert!(background.by_class.len() > 2 && burst.by_class.len() == 1);
    // The rows of `flows.parquet` agree.
    let table = read_flows(bench.path("results")).unwrap();
    let of_burst = table
        .sections
        .iter()
        .position(|name| name == "burst")
        .unwrap();
    let rows = table
        .flows
        .iter()
        .filter(|row| row.section as usize == of_burst);
    assert!(rows.clone().all(|row| row.bytes == 500_000));
    assert_eq!(rows.count(), 8);
    let page = bench.read("results/report.html");
    assert!(page.contains("By section of the workload"));
}

#[test]
fn a_run_of_one_section_says_nothing_of_sections() {
    let bench = Bench::new("sections-one");
    let arguments = [
        "run",
        "quickstart",
        "--set",
        "workload.message=10KB",
        "--out",
        "results",
    ];
    let printed = bench.succeed(&arguments);
    assert!(!printed.contains("by section"), "{printed}");
    assert!(!bench.read("results/summary.json").contains("sections"));
    let table = read_flows(bench.path("results")).unwrap();
    assert_eq!(table.sections, ["permutation"]);
}

#[test]
fn sections_are_compared_run_or_read() {
    let bench = Bench::new("sections-compared");
    bench.write("mix.toml", MIX);
    let vary = ["--vary", "transport.spray=adaptive,single", "--json"];
    let arguments = [&["compare", "mix.toml"], &vary[..], &["--out", "both"]].concat();
    let run: Value = serde_json::from_str(&bench.succeed(&arguments)).unwrap();
    let folders = ["both/A-seed1", "both/B-seed1"];
    let arguments = [&["compare"], &folders[..], &["--json", "--out", "again"]].concat();
    let read: Value = serde_json::from_str(&bench.succeed(&arguments)).unwrap();
    let sections = |document: &Value| -> Vec<Value> {
        let measures = document["measures"].as_array().unwrap().iter();
        let is_of_section = |measure: &&Value| {
            let name = measure["name"].as_str().unwrap();
            name.starts_with("sections.")
        };
        measures.filter(is_of_section).cloned().collect()
    };
    let measures = sections(&run);
    let names: Vec<&str> = measures
        .iter()
        .map(|measure| measure["name"].as_str().unwrap())
        .collect();
    for name in [
        "sections.background.slowdown.p999",
        "sections.background.up_to_1KB.slowdown.p50",
        "sections.burst.fct_us.p99",
        "sections.burst.goodput_bps",
    ] {
        assert!(names.contains(&name), "no {name} in {names:?}");
    }
    assert_eq!(measures, sections(&read));
    let table = bench.succeed(&["compare", "both/A-seed1", "both/B-seed1", "--out", "c.json"]);
    assert!(table.contains("burst: FCT p99"), "{table}");
    assert!(bench.read("both/compare.html").contains("burst: FCT p99"));
}

#[test]
fn names_that_cannot_be() {
    let bench = Bench::new("sections-names");
    let cases: &[&[&str]] = &[&["workload.name="], &["workload.name=3"]];
    insta::assert_snapshot!(bench.refuse_overrides(cases), @r#"
    --set workload.name=: `workload.name` cannot be ""
      fix: expected a name of 1 to 40 characters without line breaks, or "auto"
    --set workload.name=3: `workload.name` cannot be 3
      fix: expected a name of 1 to 40 characters without line breaks, or "auto"
    "#);
}

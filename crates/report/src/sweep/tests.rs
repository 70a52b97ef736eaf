use super::*;
use crate::sample::{Folder, incomplete_run, run, sweep};
use clearway_statistics::{Estimate, Interval};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use std::fs::File;

#[test]
fn measures_are_those_of_a_comparison_that_some_run_has() {
    let sweep = sweep();
    let names: Vec<&str> = sweep
        .measures
        .iter()
        .map(|measure| &*measure.name)
        .collect();
    assert!(names.contains(&"slowdown.p99") && names.contains(&"goodput_bps"));
    assert!(names.contains(&"packets.dropped"));
    assert!(!names.contains(&"parties.user_fairness"), "no run has any");
    assert!(!names.iter().any(|name| name.starts_with("operations.")));
    for run in &sweep.runs {
        assert_eq!(run.values.len(), names.len());
    }
    let p99 = names.iter().position(|&name| name == "slowdown.p99");
    let summary = Summary::of(&run());
    let value = summary.slowdown.unwrap().p99;
    assert_eq!(sweep.runs[0].values[p99.unwrap()], Some(value));
}

#[test]
fn a_measure_that_one_run_has_is_a_measure_of_all() {
    let mut record = run();
    record.sections = vec!["bulk".into(), "burst".into()];
    record.flows[0].section = 1;
    let mut sweep = sweep();
    let runs = [Some(Summary::of(&run())), Some(Summary::of(&record)), None];
    let runs = (0..).zip(runs).map(|(seed, summary)| SweptRun {
        key: format!("{seed}"),
        place: vec![0, 0],
        seed,
        summary,
    });
    sweep.measure(&runs.collect::<Vec<_>>());
    let mut measures = sweep.measures.iter();
    let place = measures.position(|measure| measure.name == "sections.burst.slowdown.p99");
    let values = sweep
        .runs
        .iter()
        .map(|run| run.values[place.unwrap()].is_some());
    assert_eq!(values.collect::<Vec<_>>(), [false, true, false]);
    assert!(is_measure("sections.burst.slowdown.p99") && is_measure("slowdown.p99"));
    assert!(is_measure("operations.latency_cycles.p99") && !is_measure("slowdown.p98"));
}

#[test]
fn points_are_in_the_order_of_the_plan_whoever_is_missing() {
    let mut sweep = sweep();
    let points = |sweep: &SweepRecord| {
        let points = sweep.points().into_iter();
        let points = points.map(|point| (sweep.name_of(&point.place), point.runs.len()));
        points.collect::<Vec<_>>()
    };
    let all = [
        ("transport.spray=single workload.message=64kB".to_owned(), 2),
        ("transport.spray=single workload.message=1MB".to_owned(), 2),
        (
            "transport.spray=adaptive workload.message=64kB".to_owned(),
            2,
        ),
        (
            "transport.spray=adaptive workload.message=1MB".to_owned(),
            2,
        ),
    ];
    assert_eq!(points(&sweep), all);
    sweep.runs.remove(1);
    sweep.runs.remove(1);
    assert_eq!(points(&sweep)[1], (all[1].0.clone(), 1));
}

#[test]
fn the_document_tells_points_runs_and_assertions() {
    let mut sweep = sweep();
    sweep.assertions = vec![AssertionOutcome {
        text: "slowdown.p99 below 1.5".into(),
        measure: "slowdown.p99".into(),
        statistic: Statistic::Mean,
        confidence: 0.95,
        cases: vec![AssertionCase {
            place: vec![1, 0],
            other: Some(vec![0, 0]),
            estimate: Some(Estimate {
                value: -0.5,
                interval: Some(Interval {
                    low: -1.0,
                    high: 0.25,
                }),
                seeds: 2,
            }),
            ratio: None,
            verdict: AssertionVerdict::Undecided,
            reason: "0 lies in the interval".into(),
        }],
        verdict: AssertionVerdict::Undecided,
        reason: "1 of 1 points undecided".into(),
    }];
    let json = sweep.to_json();
    assert!(json.starts_with("{\n  \"kind\": \"sweep\",\n  \"schema\": 1,\n"));
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["axes"][1]["unit"], "bytes");
    assert_eq!(document["axes"][1]["numbers"][1], 1_000_000.0);
    assert!(document["axes"][0]["numbers"].is_null());
    let point = &document["points"][3];
    assert_eq!(point["values"]["transport.spray"], "adaptive");
    assert_eq!(point["runs"][1]["status"], "failed");
    assert_eq!(point["runs"][0]["status"], "incomplete");
    let values = &point["measures"]["slowdown.p99"]["per_seed"];
    assert!(values[0].is_number() && values[1].is_null());
    assert_eq!(document["failures"][0]["values"]["workload.message"], "1MB");
    let case = &document["assertions"][0]["cases"][0];
    assert_eq!(case["interval"], serde_json::json!([-1.0, 0.25]));
    assert_eq!(case["other"]["transport.spray"], "single");
    assert_eq!(case["seeds"], 2);
    // Neither time nor memory of a run is in it.
    assert!(!json.contains("seconds") && !json.contains("rss"));
}

#[test]
fn the_table_has_axes_measures_and_timings() {
    let sweep = sweep();
    let folder = Folder::new("report-sweep");
    let path = folder.path().join(TABLE_NAME);
    write_sweep(File::create(&path).unwrap(), &sweep).unwrap();
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    let metadata = reader.metadata().file_metadata().clone();
    let names: Vec<&str> = metadata
        .schema_descr()
        .columns()
        .iter()
        .map(|column| column.name())
        .collect();
    let first = [
        "transport.spray",
        "workload.message",
        "workload.message.text",
        "seed",
        "key",
        "status",
    ];
    assert_eq!(names[..6], first);
    let last = ["wall_seconds", "cpu_seconds", "peak_rss_bytes"];
    assert_eq!(names[names.len() - 3..], last);
    let measures: Vec<&str> = sweep
        .measures
        .iter()
        .map(|measure| &*measure.name)
        .collect();
    assert_eq!(names[6..names.len() - 3], measures);
    let rows: Vec<_> = reader.into_iter().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 8);
    assert_eq!(rows[2].get_string(0).unwrap(), "single");
    assert_eq!(rows[2].get_double(1).unwrap(), 1_000_000.0);
    assert_eq!(rows[2].get_string(2).unwrap(), "1MB");
    assert_eq!(rows[3].get_ulong(3).unwrap(), 2);
    assert_eq!(rows[7].get_string(5).unwrap(), "failed");
    let p99 = names
        .iter()
        .position(|&name| name == "slowdown.p99")
        .unwrap();
    assert_eq!(rows[0].get_double(p99).ok(), sweep.runs[0].values[p99 - 6]);
    assert!(
        rows[7].get_double(p99).is_err(),
        "a failed run has no values"
    );
    let pairs = metadata.key_value_metadata().unwrap();
    let value = |key: &str| {
        let pair = pairs.iter().find(|pair| pair.key == key).expect(key);
        pair.value.clone().unwrap()
    };
    assert_eq!(value("clearway.unit.workload.message"), "bytes");
    assert_eq!(value("clearway.unit.fct_us.p99"), "us");
    assert_eq!(value("clearway.unit.packets.dropped"), "packets");
    assert_eq!(value("clearway.sweep.name"), "spray-study");
}

#[test]
fn a_sweep_without_runs_is_a_table_without_rows() {
    let mut sweep = sweep();
    sweep.measure(&[]);
    sweep.missing = 8;
    let mut file = Vec::new();
    write_sweep(&mut file, &sweep).unwrap();
    assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
    assert!(sweep.points().is_empty());
    assert!(sweep.to_json().contains("\"missing\": 8"));
}

#[test]
fn status_of_a_run_that_ended_early() {
    let summary = Summary::of(&incomplete_run());
    assert_eq!(SweepStatus::from(summary.status).name(), "incomplete");
}

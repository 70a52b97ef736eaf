use super::*;
use crate::sample::sweep::{VALUES, measured};
use crate::sample::{incomplete_run, run, sweep};
use crate::sample_tables::points::{CROSSED, of_given_messages, spray, two_points};
use clearway_statistics::{Estimate, Interval};
use clearway_testing::Folder;
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
    let summary = Summary::from_record(&run());
    let value = summary.slowdown.unwrap().p99;
    assert_eq!(sweep.runs[0].values[p99.unwrap()], Some(value));
}

#[test]
fn a_measure_that_one_run_has_is_a_measure_of_all() {
    let mut record = run();
    record.sections = vec!["bulk".into(), "burst".into()];
    record.flows[0].section = 1;
    let mut sweep = sweep();
    let runs = [
        Some(Summary::from_record(&run())),
        Some(Summary::from_record(&record)),
        None,
    ];
    let runs = (0..).zip(runs).map(|(seed, summary)| SummarizedRun {
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
    // The document does not contain the time or memory of a run.
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
    let summary = Summary::from_record(&incomplete_run());
    assert_eq!(SweepStatus::from(summary.status).name(), "incomplete");
}

fn judged(
    sweep: &mut SweepRecord,
    of: &[(String, String)],
    bound: Bound,
    statistic: Statistic,
) -> AssertionOutcome {
    sweep.judge(&[Assertion {
        measure: "slowdown.p99".into(),
        statistic,
        of: of.to_vec(),
        bound,
        confidence: 0.95,
    }]);
    sweep.assertions[0].clone()
}

#[test]
fn assertions_compare_points_over_common_seeds() {
    let mut sweep = measured(VALUES);
    let single = Limit::Points {
        of: spray("single"),
        factor: 1.0,
    };
    let outcome = judged(
        &mut sweep,
        &spray("adaptive"),
        Bound::Below(single),
        Statistic::Mean,
    );
    assert_eq!(
        outcome.verdict,
        AssertionVerdict::Pass,
        "{}",
        outcome.reason
    );
    assert_eq!(outcome.cases.len(), 2);
    // The difference and the ratio of the crate for statistics, for the same numbers.
    let case = &outcome.cases[0];
    let difference = case.estimate.unwrap().interval.unwrap();
    assert!((difference.low + 0.3556938929105919).abs() < 1e-9);
    let ratio = case.ratio.unwrap().interval.unwrap();
    assert!((ratio.high - 0.8390879004250841).abs() < 1e-9);
    assert_eq!(
        case.reason,
        "1.286x against 1.588x: 0.810x (0.781..0.839x), 5 seeds"
    );
    assert_eq!(outcome.reason, "passes at 2 of 2 points");
    assert_eq!(
        outcome.text,
        "slowdown.p99 of transport.spray=adaptive below that of transport.spray=single, 95 % sure"
    );
    let half = Limit::Points {
        of: spray("single"),
        factor: 0.4,
    };
    let outcome = judged(
        &mut sweep,
        &spray("adaptive"),
        Bound::Below(half.clone()),
        Statistic::Mean,
    );
    assert_eq!(outcome.verdict, AssertionVerdict::Fail);
    assert!(
        outcome.reason.starts_with(
            "passes at 0 of 2 points; transport.spray=adaptive workload.message=64kB: "
        )
    );
    let outcome = judged(
        &mut sweep,
        &spray("adaptive"),
        Bound::Above(half),
        Statistic::Median,
    );
    assert_eq!(
        outcome.verdict,
        AssertionVerdict::Pass,
        "{}",
        outcome.reason
    );
}

#[test]
fn what_the_seeds_do_not_tell_is_undecided() {
    let mut sweep = measured(VALUES);
    let verdict = |sweep: &mut SweepRecord, bound| {
        let outcome = judged(sweep, &spray("adaptive"), bound, Statistic::Mean);
        (outcome.verdict, outcome.reason)
    };
    let pass = AssertionVerdict::Pass;
    assert_eq!(
        verdict(&mut sweep, Bound::Below(Limit::Number(1.5))).0,
        pass
    );
    assert_eq!(verdict(&mut sweep, Bound::Between(1.1, 1.5)).0, pass);
    let (open, reason) = verdict(&mut sweep, Bound::Below(Limit::Number(1.3)));
    assert_eq!(open, AssertionVerdict::Undecided);
    assert!(
        reason.contains("1.286x (1.169..1.403x, 5 seeds)"),
        "{reason}"
    );
    let near = |tolerance| Bound::Near {
        of: vec![("workload.message".into(), "64kB".into())],
        tolerance,
    };
    assert_eq!(verdict(&mut sweep, near(0.05)).0, pass);
    assert_eq!(
        verdict(&mut sweep, near(0.001)).0,
        AssertionVerdict::Undecided
    );
    // Failed runs and single seeds tell nothing.
    let mut short = sweep.clone();
    short.runs.retain(|run| run.seed == 1);
    let (open, reason) = verdict(&mut short, Bound::Below(Limit::Number(1.5)));
    assert_eq!(open, AssertionVerdict::Undecided);
    assert!(reason.contains("1 seed has no interval"), "{reason}");
    sweep.runs[19].status = SweepStatus::Failed;
    let (open, reason) = verdict(&mut sweep, Bound::Below(Limit::Number(1.5)));
    assert_eq!(open, AssertionVerdict::Undecided);
    assert!(
        reason.contains("1 of 5 runs of transport.spray=adaptive workload.message=1MB failed"),
        "{reason}"
    );
    sweep.runs[19].status = SweepStatus::Complete;
    sweep.missing = 3;
    sweep.assertions.clear();
    sweep.judge(&[Assertion {
        measure: "slowdown.p99".into(),
        statistic: Statistic::Mean,
        of: Vec::new(),
        bound: Bound::Below(Limit::Number(1.5)),
        confidence: 0.95,
    }]);
    assert!(sweep.assertions.is_empty(), "of a part nothing is said");
    sweep.missing = 0;
    let nobody = judged(
        &mut sweep,
        &spray("none"),
        Bound::Below(Limit::Number(1.5)),
        Statistic::Mean,
    );
    assert_eq!(nobody.verdict, AssertionVerdict::Undecided);
    assert_eq!(nobody.reason, "no run is of transport.spray=none");
}

#[test]
fn the_best_point_and_those_that_cannot_be_told_apart() {
    let sweep = measured(VALUES);
    let best = sweep.best(0, Statistic::Mean).unwrap();
    assert_eq!(
        (
            best.point,
            best.alike.clone(),
            best.left_out + best.fewer_seeds
        ),
        (3, vec![2], 0)
    );
    let shares: Vec<f64> = best.shares.unwrap().into_values().collect();
    assert_eq!(shares[..2], [0.0, 0.0]);
    assert!(shares[3] > 0.5 && shares[2] > 0.0 && (shares[2] + shares[3] - 1.0).abs() < 1e-9);
    // More goodput is better.
    assert_eq!(sweep.best(1, Statistic::Median).unwrap().point, 1);
}

#[test]
fn the_best_median_is_told_apart_as_an_assertion_of_medians_is_judged() {
    let mut sweep = two_points(CROSSED);
    let best = sweep.best(0, Statistic::Median).unwrap();
    assert_eq!((best.point, best.estimate.value), (0, 5.0));
    assert_eq!(best.alike, [1], "its interval reaches to the better side");
    let sentence = sweep.best_sentence(0, Statistic::Median);
    assert!(
        sentence.contains("cannot be told apart from it"),
        "{sentence}"
    );
    let size = |size: &str| vec![("workload.message".to_owned(), size.to_owned())];
    let bound = Bound::Below(Limit::Points {
        of: size("1MB"),
        factor: 1.0,
    });
    let outcome = judged(&mut sweep, &size("64kB"), bound, Statistic::Median);
    assert_eq!(outcome.verdict, AssertionVerdict::Undecided);
    // For the other measure, which is the negated first one, more is better.
    assert_eq!(sweep.best(1, Statistic::Median).unwrap().alike, [1]);
}

/// An interval entirely on the better side is not evidence against a point.
#[test]
fn only_points_that_are_worse_are_told_apart() {
    let worse = CROSSED[0].map(|value| value + 0.5);
    for measure in [0, 1] {
        let best = two_points([CROSSED[0], worse]).best(measure, Statistic::Median);
        assert_eq!(best.unwrap().alike, Vec::<usize>::new());
    }
    let sentence = two_points([CROSSED[0], worse]).best_sentence(0, Statistic::Mean);
    let expected = "samples of the seeds; told apart from every other point at 95 %.";
    assert!(sentence.ends_with(expected), "{sentence}");
    let same = two_points([CROSSED[0], CROSSED[0]]).best(0, Statistic::Mean);
    assert_eq!(
        same.unwrap().alike,
        [1],
        "an interval of zero length at zero"
    );
}

#[test]
fn points_with_fewer_seeds_are_told_from_runs_that_are_not_complete() {
    let mut sweep = measured(VALUES);
    sweep.runs[3].status = SweepStatus::Incomplete;
    sweep
        .runs
        .retain(|run| run.place != [1, 0] || run.seed == 1);
    let best = sweep.best(0, Statistic::Mean).unwrap();
    assert_eq!((best.left_out, best.fewer_seeds), (1, 1));
    let sentence = sweep.best_sentence(0, Statistic::Mean);
    let expected = " Left out of 4 points: 1 that have runs that are not complete or have no value, 1 that have fewer seeds.";
    assert!(sentence.ends_with(expected), "{sentence}");
    sweep.runs[3].status = SweepStatus::Complete;
    let sentence = sweep.best_sentence(0, Statistic::Mean);
    assert!(
        sentence.ends_with(" Left out of 4 points: 1 that have fewer seeds."),
        "{sentence}"
    );
}

#[test]
fn points_compete_with_those_of_the_same_message() {
    let sweep = of_given_messages();
    let groups = sweep.groups();
    let points: Vec<&[usize]> = groups.iter().map(|group| &group.points[..]).collect();
    let of = |message: u32| -> Vec<usize> {
        let points = sweep.points();
        let own = points.iter().enumerate();
        own.filter(|(_, point)| point.place[1] == message)
            .map(|(number, _)| number)
            .collect()
    };
    assert_eq!(points, [of(0), of(1)]);
    let document: serde_json::Value = serde_json::from_str(&sweep.to_json()).unwrap();
    assert_eq!(document["axes"][1]["given"], true);
    let groups = document["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    assert_eq!(groups[0]["values"]["workload.message"], "64kB");
    for (group, points) in groups.iter().zip(points) {
        let best = group["best"]["slowdown.p99"]["point"].as_u64().unwrap();
        assert!(points.contains(&(best as usize)), "{group}");
    }
}

#[test]
fn where_nothing_can_be_chosen_nothing_is_best() {
    let mut sweep = of_given_messages();
    sweep.axes[0].given = true;
    assert_eq!(sweep.answer(0, Statistic::Mean), "");
    let order: Vec<usize> = (0..sweep.points().len()).collect();
    assert_eq!(sweep.ranked(0), order);
    // One group for each point would leave no choice either, as with randomly drawn points.
    sweep.axes[0].given = false;
    sweep.runs.retain(|run| run.place[0] == run.place[1]);
    assert_eq!(sweep.groups().len(), 1);
}

#[test]
fn intervals_that_cannot_be_are_not_shown() {
    let mut noisy = CROSSED[0];
    noisy[0] = 50.0;
    let sweep = two_points([CROSSED[0], noisy]);
    let best = sweep.best_sentence(0, Statistic::Mean);
    assert!(
        best.contains("workload.message=1MB (seeds differ 25.00x)."),
        "{best}"
    );
}

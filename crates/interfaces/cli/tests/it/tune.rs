//! Tuning finds the best point with fewer runs than a sweep.

use crate::common::Bench;
use insta::assert_snapshot;
use serde_json::Value;

/// Eight windows and nine seeds: the first windows starve the flows, the last windows fill queues without a gain.
const PLAN: &str = r#"name = "windows"
scenario = "quickstart"
seeds = 9

[set]
"topology.hosts" = 16
"topology.hosts-per-leaf" = 4
"workload.message" = "64KB"
"transport.controller" = "constant"

[axes]
"transport.window" = ["2%bdp", "5%bdp", "10%bdp", "20%bdp", "40%bdp", "60%bdp", "80%bdp", "100%bdp"]

[tune]
measure = "fct_us.mean"
"#;

fn output(bench: &Bench, words: &[&str]) -> (Option<i32>, String, String) {
    let output = bench.output(words);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn the_best_point_is_found_and_runs_are_kept() {
    let bench = Bench::new("tune");
    bench.write("plan.toml", PLAN);
    let (code, stdout, stderr) = output(&bench, &["tune", "plan.toml", "--out", "t"]);
    assert_eq!(code, Some(0), "{stderr}");
    // 8 points with 1 seed, 3 with 3, 2 with 9.
    assert!(
        stderr.contains("26 runs done now; all of them, with a report, are in t"),
        "{stderr}"
    );
    let rungs: Vec<Vec<&str>> = stdout
        .lines()
        .skip(2)
        .take(3)
        .map(|line| line.split_whitespace().take(4).collect())
        .collect();
    assert_eq!(
        rungs,
        [
            ["1", "8", "1", "0"],
            ["2", "3", "3", "0"],
            ["3", "2", "9", "0"]
        ]
    );
    assert!(
        stdout.contains("Best FCT mean: transport.window="),
        "{stdout}"
    );
    assert!(!stdout.contains("transport.window=2%bdp"), "{stdout}");
    // A sweep of the grid agrees, and executes only the missing runs.
    let (code, _, stderr) = output(&bench, &["sweep", "plan.toml", "--out", "t"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stderr.contains("46 runs done now, 72 of 72 in all"),
        "{stderr}"
    );
    let named = stdout.lines().nth(4).unwrap();
    let named = named.split_whitespace().last().unwrap();
    // With the measure of an assertion, the sweep names the best point, and the points that cannot be distinguished from it.
    bench.write(
        "judged.toml",
        &format!("{PLAN}[[assert]]\nmeasure = \"fct_us.mean\"\nabove = 0\n"),
    );
    let (code, swept, stderr) = output(&bench, &["sweep", "judged.toml", "--out", "t"]);
    assert_eq!(code, Some(0), "{stderr}");
    let verdict = swept.lines().find(|line| line.starts_with("Best FCT mean"));
    assert!(verdict.unwrap().contains(named), "{swept}\n{stdout}");
    let (_, again, stderr) = output(&bench, &["tune", "plan.toml", "--out", "t"]);
    assert!(stderr.contains("0 runs done now"), "{stderr}");
    assert_eq!(again, stdout);
    // Another measure may have another best point.
    let (code, slowest, _) = output(
        &bench,
        &[
            "tune",
            "plan.toml",
            "--out",
            "t",
            "--measure",
            "packets.marked",
        ],
    );
    assert_eq!(code, Some(0), "{slowest}");
}

#[test]
fn a_budget_decides_how_many_points_are_drawn() {
    let bench = Bench::new("tune-budget");
    let drawn = PLAN.replace(
        "[axes]\n\"transport.window\" = [\"2%bdp\", \"5%bdp\", \"10%bdp\", \"20%bdp\", \"40%bdp\", \"60%bdp\", \"80%bdp\", \"100%bdp\"]",
        "[sample]\npoints = 3\n[sample.ranges]\n\"transport.window\" = { from = \"2KB\", to = \"60KB\" }",
    );
    bench.write("plan.toml", &drawn);
    let (code, stdout, stderr) = output(
        &bench,
        &["tune", "plan.toml", "--out", "t", "--budget", "30"],
    );
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("30 runs done now"), "{stderr}\n{stdout}");
}

#[test]
fn of_windows_that_are_as_good_the_least_latency_is_chosen_for_each_group_size() {
    const WINDOWS: &str = r#"scenario = "nvlink-64"
[set]
"injection.kind" = "window"
"workload.transactions" = 64
[axes]
"workload.initiators" = [4, 16]
"injection.window" = [2, 4, 8, 16, 32, 64]
[tune]
measure = "operations.effective_bandwidth"
each = ["workload.initiators"]
within = 0.01
then = "operations.latency_cycles.mean"
"#;
    let bench = Bench::new("tune-each");
    bench.write("plan.toml", WINDOWS);
    let (code, stdout, stderr) = output(&bench, &["tune", "plan.toml", "--out", "t"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("Chosen: the best latency mean"), "{stdout}");
    let document: Value = serde_json::from_str(&bench.read("t/sweep.json")).unwrap();
    let points = document["points"].as_array().unwrap();
    let mean = |point: &Value, measure: &str| point["measures"][measure]["mean"].as_f64().unwrap();
    let best = document["tuning"]["best"].as_array().unwrap();
    assert_eq!(best.len(), 2);
    for chosen in best {
        // The grid is small enough to check every point.
        let initiators = &chosen["workload.initiators"];
        let group = points
            .iter()
            .filter(|point| point["values"]["workload.initiators"] == *initiators);
        let bandwidth = |point: &Value| mean(point, "operations.effective_bandwidth");
        let most = group.clone().map(bandwidth).fold(0.0, f64::max);
        let as_good = group.filter(|point| bandwidth(point) >= 0.99 * most);
        let latency = |point: &&Value| mean(point, "operations.latency_cycles.mean");
        let expected = as_good.min_by(|a, b| latency(a).total_cmp(&latency(b)));
        assert_eq!(expected.unwrap()["values"], *chosen, "{stdout}");
        // Table 6.1 of the dissertation has windows of 12 for 16 initiators and of 48 for 4 initiators, with 128 transactions.
        let window: f64 = chosen["injection.window"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        let paper = if initiators == "16" { 12.0 } else { 48.0 };
        assert!((0.5..=2.0).contains(&(window / paper)), "{stdout}");
    }
    assert!(
        bench
            .read("t/report.html")
            .contains("What the tuning chose")
    );
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let bench = Bench::new("tune-wrong");
    bench.write("plan.toml", PLAN);
    bench.write("none.toml", PLAN.split("[tune]").next().unwrap());
    bench.write("keep.toml", &format!("{PLAN}keep = 1\n"));
    bench.write("unknown.toml", &PLAN.replace("fct_us.mean", "fct.mean"));
    let more = [
        ("alone.toml", "within = 0.1"),
        ("share.toml", "within = 5\nthen = \"fct_us.max\""),
        ("then.toml", "within = 0.1\nthen = \"fct_us.mx\""),
        ("each.toml", "each = [\"transport.windw\"]"),
        ("all.toml", "each = [\"transport.window\"]"),
        (
            "point.toml",
            "each = [\"transport.window\"]\n[[point]]\n\"transport.spray\" = \"single\"",
        ),
    ];
    for (name, lines) in more {
        bench.write(name, &format!("{PLAN}{lines}\n"));
    }
    let mut refused = String::new();
    for words in [
        &["tune", "none.toml"][..],
        &["tune", "keep.toml"],
        &["tune", "unknown.toml"],
        &["tune", "alone.toml"],
        &["tune", "share.toml"],
        &["tune", "then.toml"],
        &["tune", "each.toml"],
        &["tune", "all.toml"],
        &["tune", "point.toml"],
        &["tune", "plan.toml", "--measure", "slowdwn.p99"],
        &["tune", "plan.toml", "--budget", "20"],
        &["tune", "plan.toml", "--budget", "3"],
    ] {
        let (code, _, stderr) = output(&bench, words);
        assert_eq!(code, Some(2), "{words:?}: {stderr}");
        refused += &stderr;
    }
    assert_snapshot!(refused, @r#"
    error: none.toml: the plan has no measure to tune
      fix: give `--measure NAME`, or write `[tune]` with `measure = "slowdown.p99"` into the plan
    error: keep.toml:16: `keep` = 1: no rung would have fewer points
      fix: one of `keep` points goes on to the next rung: give at least 2; the default is 3
    error: unknown.toml:15: there is no measure `fct.mean`
      fix: the measures are those of `compare.json`, such as `fct_us.p99`, `slowdown.p99`, `goodput_bps`
    error: alone.toml:16: `within` and `then` belong together: points within that share of the best one are as good, and `then` chooses among them
      fix: give both, such as `within = 0.01` and `then = "packets.sent"`, or neither
    error: share.toml:16: `within` = 5
      fix: give a share from 0 to below 1, such as 0.01
    error: then.toml:17: there is no measure `fct_us.mx`
      fix: did you mean `fct_us.max`? The measures are those of `compare.json`, such as `fct_us.p99`, `slowdown.p99`, `goodput_bps`
    error: each.toml:16: `transport.windw` is not an axis of the plan
      fix: did you mean `transport.window`? The axes are: transport.window
    error: all.toml:16: `each` names every axis, so no axis is left to tune
      fix: leave one out, or add an axis to `[axes]`
    error: point.toml:16: `each` wants a grid, and this plan has points that are drawn or written out
      fix: give all axes in `[axes]`
    error: --measure slowdwn.p99: there is no measure `slowdwn.p99`
      fix: did you mean `slowdown.p99`? The measures are those of `compare.json`, such as `fct_us.p99`, `slowdown.p99`, `goodput_bps`
    error: plan.toml: a budget of 20 runs suffices for 4 points of the plan (a grid of 8, 9 seeds)
      fix: raise `budget`, or use fewer seeds
    error: plan.toml: a budget of 3 runs does not even suffice for a point with 9 seeds
      fix: raise `budget`, or use fewer seeds
    "#);
}

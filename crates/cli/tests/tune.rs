//! Tuning: the best point is found with fewer runs than a sweep has.

mod common;

use common::Bench;
use insta::assert_snapshot;

/// Eight windows, of which the first ones starve the flows and the last ones fill queues that nobody needs; nine seeds.
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
    // A sweep of the grid agrees, and does only what is left.
    let (code, _, stderr) = output(&bench, &["sweep", "plan.toml", "--out", "t"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stderr.contains("46 runs done now, 72 of 72 in all"),
        "{stderr}"
    );
    let named = stdout.lines().nth(4).unwrap();
    let named = named.split_whitespace().last().unwrap();
    // With the measure of an assertion the sweep says which point is the best, and which cannot be told apart from it.
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
    // With another measure the best may be another one.
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
fn what_cannot_be_meant_is_refused() {
    let bench = Bench::new("tune-wrong");
    bench.write("plan.toml", PLAN);
    bench.write("none.toml", PLAN.split("[tune]").next().unwrap());
    bench.write("keep.toml", &format!("{PLAN}keep = 1\n"));
    bench.write("unknown.toml", &PLAN.replace("fct_us.mean", "fct.mean"));
    let mut refused = String::new();
    for words in [
        &["tune", "none.toml"][..],
        &["tune", "keep.toml"],
        &["tune", "unknown.toml"],
        &["tune", "plan.toml", "--measure", "slowdwn.p99"],
        &["tune", "plan.toml", "--budget", "20"],
        &["tune", "plan.toml", "--budget", "3"],
    ] {
        let (code, _, stderr) = output(&bench, words);
        assert_eq!(code, Some(2), "{words:?}: {stderr}");
        refused += &stderr;
    }
    assert_snapshot!(refused, @r#"
    error: none.toml: the plan does not say what is to be tuned
      fix: give `--measure NAME`, or write `[tune]` with `measure = "slowdown.p99"` into the plan
    error: keep.toml:16: `keep` = 1: no rung would have fewer points
      fix: of so many points one goes on: 2 at least, 3 by default
    error: unknown.toml:15: there is no measure `fct.mean`
      fix: use one of those of `compare.json`, such as `slowdown.p99`
    error: --measure slowdwn.p99: there is no measure `slowdwn.p99`
      fix: did you mean `slowdown.p99`? Use one of those of `compare.json`, such as `slowdown.p99`
    error: plan.toml: a budget of 20 runs suffices for 4 points of the plan (a grid of 8, 9 seeds)
      fix: raise `budget`, or use fewer seeds
    error: plan.toml: a budget of 3 runs does not even suffice for a point with 9 seeds
      fix: raise `budget`, or use fewer seeds
    "#);
}

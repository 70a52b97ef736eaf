//! Wrong plans of sweeps: each is rejected with place, reason and fix, before any run.

use crate::common::Bench;
use insta::assert_snapshot;
use std::fmt::Write as _;

const AXES: &str = "[axes]\n\"transport.spray\" = [\"single\", \"adaptive\"]\n";

fn refusals(name: &str, plans: &[&str]) -> String {
    let bench = Bench::new(name);
    let mut text = String::new();
    for plan in plans {
        bench.write("p.toml", plan);
        let error = bench.refuse(&["sweep", "p.toml"]);
        assert!(error.contains("\n  fix: "), "no way out: {error}");
        let _ = writeln!(text, "{error}");
    }
    text
}

fn on_quickstart(rest: &str) -> String {
    format!("scenario = \"quickstart\"\n{rest}")
}

#[test]
fn keys_that_nobody_knows() {
    assert_snapshot!(refusals("plan-keys", &[
        "",
        "scenario = \"quikstart\"\nseeds = 2\n",
        &on_quickstart("repetitions = 3\n"),
        &on_quickstart("[axis]\n\"transport.spray\" = [\"single\"]\n"),
        &on_quickstart("[axes]\n\"transport.sprai\" = [\"single\", \"adaptive\"]\n"),
        &on_quickstart("[axes]\n\"transport.spray\" = [\"single\",\n \"sideways\"]\n"),
        &on_quickstart("[set]\n\"workload.mesage\" = \"2MB\"\n[axes]\n\"transport.spray\" = [\"single\", \"adaptive\"]\n"),
        &on_quickstart("[[point]]\n\"workload.message\" = \"2MB\"\n[[point]]\n\"workload.message\" = \"2MX\"\n"),
    ]), @r#"
    p.toml: the plan names no scenario
      fix: write `scenario = "quickstart"` or the path of a scenario file at its top
    p.toml:1: `scenario` = "quikstart": there is no such file or built-in scenario
      fix: did you mean `quickstart`? Give the path of a TOML file or a built-in scenario: quickstart, permutation-1k, permutation-8k, permutation-64k, permutation-256k, incast-32, mix-64, tenants-mixed, training-256, gpt-13b-128, gpt-175b-1024, moe-64, moe-128, moe-512, serving-64, checkpoint-64, hadoop-320, websearch-1k, link-flap, rail-64, planes-64, dragonfly-72, nvlink-64, testbed-permutation, testbed-incast, testbed-dead-path
    p.toml:2: a plan has no key `repetitions`
      fix: the keys are: name, scenario, seeds; the sections are: set, axes, point, sample, tune, assert; keys of the scenario go into `[set]` or `[axes]`
    p.toml:2: there is no section `axis`
      fix: did you mean `axes`? The sections are: set, axes, point, sample, tune, assert
    p.toml:3: transport.sprai="single": a transport of reliability "selective-repeat", controller "strack", spray "adaptive" and feedback "none" has no key `sprai`
      fix: did you mean `spray`? The keys are: ack-bytes, ack-in-order, ack-on-ecn, ack-size, alpha, beta, bitmap, control-first, controller, credit.idle-pulls, credit.kind, credit.pull, credit.quantum, credit.rate, credit.window-bdps, dead-path, eta, ewma, feedback, gamma, header, init-cwnd, kind, linger, max-cwnd, max-decrease, max-paths, md-requires-ecn, min-cwnd, min-paths, ooo-factor, ooo-min, payload, phase-base, phase-increase, probe-after, probe-class, probe-rtt-limit, quick-adapt-fraction, recovery, reference-rate, reference-rtt, reliability, rto, rto-low, rto-low-packets, rto-per-packet, rto-rtts, scope, scope-idle, spray, strict-window, target-qdelay, target-qhigh-factor, telemetry-size
    p.toml:3: transport.spray="sideways": `transport.spray`: there is no "sideways"
      fix: use one of: adaptive, oblivious, bitmap, reps, mixed, plb, flowlet, single
    p.toml:3: workload.mesage="2MB": a workload of kind "permutation" has no key `mesage`
      fix: did you mean `message`? The keys are: attack.above, attack.breaks, attack.bytes, attack.from, attack.gap, attack.hosts, attack.kind, attack.lasts, attack.qps, attack.share, attack.target, count, hosts, message, name, period, period-jitter, priority, redraw, start, tenant
    p.toml:5: workload.message="2MX": `workload.message` cannot be "2MX"
      fix: expected a size such as "2MB", "64KiB" or "4096B"; there is no unit `MX` of a size; the units are B, KB, kB, MB, GB, TB, KiB, MiB, GiB, TiB
    "#);
}

#[test]
fn grids_that_are_none() {
    let many = |count| {
        let values: Vec<String> = (1..=count)
            .map(|value: u32| format!("\"{value}KB\""))
            .collect();
        on_quickstart(&format!(
            "seeds = 1000\n{AXES}\"workload.message\" = [{}]\n",
            values.join(", ")
        ))
    };
    assert_snapshot!(refusals("plan-grids", &[
        &on_quickstart(""),
        &on_quickstart("[axes]\n\"transport.spray\" = []\n"),
        &on_quickstart("[axes]\n\"transport.spray\" = \"single\"\n"),
        &on_quickstart("[axes]\n\"transport.spray\" = [\"single\", \"single\"]\n"),
        &on_quickstart(&format!("seeds = 0\n{AXES}")),
        &many(500),
    ]), @r#"
    p.toml: the grid is empty: the plan varies nothing, and has 1 run
      fix: give `[axes]`, `[[point]]`, `[sample]` or `seeds`; a single run is `clearway run`
    p.toml:3: the grid is empty: `transport.spray` has no values, and the plan 0 runs
      fix: give it values, or remove it
    p.toml:3: the axis `transport.spray` has no list of values
      fix: write `"transport.spray" = ["single"]`, or move it to `[set]`
    p.toml:3: `transport.spray` has the value "single" twice
      fix: name each once; `seeds` repeats runs
    p.toml:2: `seeds` cannot be 0
      fix: expected a number of seeds from 1 to 100000, a range such as "1-5", or a list such as [1, 2, 7] without repetitions
    p.toml: the plan has 1000000 runs (a grid of 2 x 500, 1000 seeds), which is more than 10000
      fix: add `--yes` if that is meant; `[sample]` draws a few points of a large space
    "#);
}

#[test]
fn axes_without_effect() {
    assert_snapshot!(refusals("plan-effect", &[
        &on_quickstart(&format!("[set]\n\"transport.spray\" = \"single\"\n{AXES}")),
        &on_quickstart("[axes]\n\"workload.message\" = [\"1MB\"]\n\"workload[0].message\" = [\"2MB\"]\n"),
        &on_quickstart("[axes]\n\"workload.message\" = [\"1MB\", \"1000KB\"]\n"),
        &on_quickstart("[axes]\nseed = [1, 2]\n"),
        &on_quickstart(&format!("{AXES}[[point]]\n\"transport.spray\" = \"adaptive\"\n")),
        &on_quickstart(&format!("{AXES}[sample]\npoints = 3\n[sample.ranges]\n\"workload.message\" = [\"1MB\"]\n")),
    ]), @r#"
    p.toml:5: `transport.spray` is given here and in `[set]`: one of them would have no effect
      fix: remove one of the two
    p.toml:4: `workload[0].message` is given already: `workload.message` is the same key
      fix: remove one of the two
    p.toml:3: `workload.message` has no effect: "1MB" and "1000KB" give the same scenario, and the plan would run it twice (2 runs in all)
      fix: leave one of the values out, or the axis; `clearway show SCENARIO --resolved --set KEY=VALUE` shows what a value does
    p.toml:3: `[axes]` gives the seed
      fix: write `seeds = 3`, `seeds = "1-5"` or `seeds = [1, 2, 7]` at the top of the plan
    p.toml:5: this point is there already: the plan would run it twice (3 runs in all)
      fix: remove one of the two; `seeds` repeats runs
    p.toml:3: a plan has a grid or drawn points, and this one has both
      fix: give each axis as a list of `[sample.ranges]`, or leave `[sample]` out
    "#);
}

#[test]
fn samples_that_cannot_be_drawn() {
    let sample = |rest: &str| on_quickstart(&format!("[sample]\n{rest}"));
    assert_snapshot!(refusals("plan-samples", &[
        &sample("points = 0\n[sample.ranges]\n\"workload.message\" = [\"1MB\"]\n"),
        &sample("points = 3\n"),
        &sample("points = 3\nmethod = \"sobol\"\n[sample.ranges]\n\"workload.message\" = [\"1MB\"]\n"),
        &sample("points = 3\n[sample.ranges]\n\"workload.message\" = { from = \"2MB\" }\n"),
        &sample("points = 3\n[sample.ranges]\n\"workload.message\" = { from = \"2MB\", to = \"1MB\" }\n"),
        &sample("points = 3\n[sample.ranges]\n\"workload.message\" = { from = \"2MB\", to = \"1us\" }\n"),
        &sample("points = 3\n[sample.ranges]\n\"workload.message\" = { from = \"0B\", to = \"1MB\", scale = \"log\" }\n"),
        &sample("points = 3\n[sample.ranges]\n\"workload.message\" = { from = \"1KB\", to = \"1MB\", scale = \"square\" }\n"),
        &sample("points = 3\n[sample.ranges]\n\"workload.message\" = \"1MB\"\n"),
    ]), @r#"
    p.toml:3: the sample is empty: it has 0 points, and the plan 0 runs
      fix: write how many points are to be drawn, as in `points = 40`
    p.toml:3: the sample has no ranges to draw from
      fix: write `[sample.ranges]` and below it a range for each key, as in `"workload.message" = ["64KB", "1MB"]`
    p.toml:4: `method` cannot be "sobol"
      fix: expected one of "random", "latin-hypercube"
    p.toml:5: the range of `workload.message` has no `to`
      fix: give both ends, as in `{ from = "5us", to = "50us" }`
    p.toml:5: the range of `workload.message` ends before it begins
      fix: give a `to` that is greater than `from`
    p.toml:5: the ends of the range of `workload.message` are quantities of different kinds
      fix: write both in units of one kind
    p.toml:5: the range of `workload.message` begins at zero, which has no logarithm
      fix: begin above zero, or set `scale = "linear"`
    p.toml:5: the scale of the range of `workload.message` cannot be "square"
      fix: expected one of "linear", "log"
    p.toml:5: `workload.message` is not a range
      fix: give its ends, as in `{ from = "5us", to = "50us", scale = "log" }`, or a list of values to choose from
    "#);
}

#[test]
fn assertions_that_assert_nothing() {
    let assert = |rest: &str| on_quickstart(&format!("{AXES}[[assert]]\n{rest}"));
    assert_snapshot!(refusals("plan-asserts", &[
        &assert("below = 2.0\n"),
        &assert("measure = \"slowdown.p98\"\nbelow = 2.0\n"),
        &assert("measure = \"slowdown.p99\"\n"),
        &assert("measure = \"slowdown.p99\"\nbelow = 2.0\nabove = 1.0\n"),
        &assert("measure = \"slowdown.p99\"\nbelow = 2.0\nconfidence = 95\n"),
        &assert("measure = \"slowdown.p99\"\nbelow = { \"transport.spray\" = \"oblivious\" }\n"),
        &assert("measure = \"slowdown.p99\"\nof = { \"workload.message\" = \"1MB\" }\nbelow = 2.0\n"),
        &assert("measure = \"slowdown.p99\"\nnear = { \"transport.spray\" = \"single\" }\n"),
        &assert("measure = \"slowdown.p99\"\nwithin = 0.05\n"),
    ]), @r#"
    p.toml:5: an assertion without a measure
      fix: the measures are those of `compare.json`, such as `fct_us.p99`, `slowdown.p99`, `goodput_bps`
    p.toml:5: there is no measure `slowdown.p98`
      fix: did you mean `slowdown.p99`? The measures are those of `compare.json`, such as `fct_us.p99`, `slowdown.p99`, `goodput_bps`
    p.toml:5: an assertion that asserts nothing
      fix: give one of `below`, `above` (a number, or points), `within = [low, high]`, or `near` with `within`
    p.toml:7: an assertion that asserts two things
      fix: write an `[[assert]]` for each
    p.toml:7: a confidence of 95
      fix: give a number between 0 and 1, such as 0.95
    p.toml:6: no point of the plan has `transport.spray` = "oblivious"
      fix: the values are: "single", "adaptive"
    p.toml:6: `workload.message` is not an axis of the plan
      fix: name a key of `[axes]`, `[[point]]` or `[sample.ranges]`
    p.toml:5: `near` does not say how near
      fix: give a share, as in `within = 0.05` for 5 %
    p.toml:6: `within` cannot be 0.05
      fix: give both ends, as in `within = [1.0, 1.5]`, or points that it is to be near: `near = { … }`
    "#);
}

/// Assertions that no run can decide are rejected before the first run.
#[test]
fn assertions_that_no_points_can_decide() {
    let assert = |rest: &str| format!("[[assert]]\nmeasure = \"slowdown.p99\"\n{rest}\n");
    let point = "[[point]]\n\"workload.message\" = \"8MB\"\n";
    let ranges = "[sample]\npoints = 3\n[sample.ranges]\n\
        \"workload.message\" = { from = \"64KB\", to = \"1MB\" }\n\
        \"transport.spray\" = [\"single\", \"adaptive\"]\n";
    let single = "{ \"transport.spray\" = \"single\" }";
    let both = "{ \"transport.spray\" = \"single\", \"workload.message\" = \"8MB\" }";
    let incast = "[set]\n\"workload[1].kind\" = \"incast\"\n\"workload[1].message\" = \"1MB\"\n";
    assert_snapshot!(refusals("plan-undecidable", &[
        &on_quickstart(&format!("{AXES}{point}{}", assert("of = { \"transport.spray\" = \"adaptiv\" }\nbelow = 2.0"))),
        &on_quickstart(&format!("{AXES}{}", assert(&format!("below = {single}")))),
        &on_quickstart(&format!("{AXES}{}", assert(&format!("of = {single}\nwithin = 0.1\nnear = {single}")))),
        &on_quickstart(&format!("{AXES}{point}{}", assert(&format!("of = {{ \"transport.spray\" = \"adaptive\" }}\nbelow = {single}")))),
        &on_quickstart(&format!("{AXES}{point}{}", assert(&format!("of = {both}\nbelow = 3")))),
        &on_quickstart(&format!("{ranges}{}", assert(&format!("of = {{ \"transport.spray\" = \"adaptive\" }}\nbelow = {single}")))),
        &on_quickstart(&format!("{ranges}{}", assert("of = { \"workload.message\" = \"64KB\" }\nbelow = 2.0"))),
        &on_quickstart(&format!("{AXES}[[assert]]\nmeasure = \"sections.permutaton.slowdown.p99\"\nbelow = 2.0\n")),
        &on_quickstart(&format!("{AXES}{incast}[tune]\nmeasure = \"sections.permutaton.slowdown.p99\"\n")),
        &on_quickstart(&format!("{AXES}{}", assert("below = 1.5\nfactor = 100.0"))),
        &on_quickstart(&format!("{AXES}[[point]]\n\"workload.message\" = \"8MB\"\n\"workload[0].message\" = \"9MB\"\n")),
        &on_quickstart(&format!("{AXES}[sample]\n")),
        &on_quickstart(&format!("{AXES}[tune]\n")),
    ]), @r#"
    p.toml:8: no point of the plan has `transport.spray` = "adaptiv"
      fix: the values are: "single", "adaptive"
    p.toml:6: transport.spray=single is compared with itself
      fix: say which points are compared, as in `of = { "transport.spray" = "adaptive" }`
    p.toml:8: transport.spray=single is compared with itself
      fix: say which points are compared, as in `of = { "transport.spray" = "adaptive" }`
    p.toml:9: the plan has no point transport.spray=single workload.message=8MB to compare transport.spray=adaptive workload.message=8MB with
      fix: add it as a `[[point]]`, name the points that are compared in `of`, or compare with a number
    p.toml:8: no point of the plan has `transport.spray` = "single" and `workload.message` = "8MB"
      fix: leave one of them out, or add the point as a `[[point]]`
    p.toml:10: the plan has no point workload.message=605228B transport.spray=single to compare workload.message=605228B transport.spray=adaptive with
      fix: add it as a `[[point]]`, name the points that are compared in `of`, or compare with a number
    p.toml:9: no point of the plan has `workload.message` = "64KB"
      fix: the values are: "605228B", "375671B", "852318B"
    p.toml:5: no run of the plan has the measure `sections.permutaton.slowdown.p99`
      fix: only a workload with several sections has measures of sections; `slowdown.p99` covers all flows
    p.toml:8: no run of the plan has the measure `sections.permutaton.slowdown.p99`
      fix: did you mean `sections.permutation.slowdown.p99`? The sections of the workload are: `incast`, `permutation`
    p.toml:7: `factor` multiplies the measure of other points, but neither `below` nor `above` names points
      fix: leave it out, or name points, as in `below = { "transport.spray" = "single" }`
    p.toml:6: `workload[0].message` is given already: `workload.message` is the same key
      fix: remove one of the two
    p.toml:4: an empty `[sample]`
      fix: write keys into it, or remove it
    p.toml:4: an empty `[tune]`
      fix: write keys into it, or remove it
    "#);
}

/// Keys and values are compared independently of their spelling.
#[test]
fn assertions_find_points_by_value() {
    let bench = Bench::new("plan-by-value");
    let plans = [
        (
            "[axes]\n\"workload[0].message\" = [\"64KB\", \"1MB\"]\n",
            "of = { \"workload.message\" = \"64000B\" }\nbelow = 9.0",
            "workload.message  64KB, 1MB",
        ),
        // The point has the scenario's message size of 2 MB.
        (
            "[axes]\n\"workload.message\" = [\"2000KB\", \"64KB\"]\n[[point]]\n\"transport.spray\" = \"single\"\n",
            "of = { \"transport.spray\" = \"single\" }\nbelow = { \"transport.spray\" = \"adaptive\" }",
            "workload.message  2000KB, 64KB\ntransport.spray   single, adaptive",
        ),
        (
            "[axes]\n\"workload.message\" = [\"1MB\", \"64KB\"]\n[[point]]\n\"workload[0].message\" = \"8MB\"\n",
            "of = { \"workload[0].message\" = \"8MB\" }\nabove = 0.5",
            "workload.message  1MB, 64KB, 8MB",
        ),
    ];
    for (points, assertion, axes) in plans {
        let assertion = format!("[[assert]]\nmeasure = \"slowdown.p99\"\n{assertion}\n");
        bench.write("p.toml", &on_quickstart(&format!("{points}{assertion}")));
        let text = bench.succeed(&["sweep", "p.toml", "--dry-run"]);
        assert!(text.contains(axes), "{text}");
    }
}

/// Budgets and samples that no machine could plan.
#[test]
fn budgets_beyond_measure() {
    let bench = Bench::new("plan-budgets");
    let sample = |points: &str, budget: &str| {
        on_quickstart(&format!(
            "seeds = 5\n[sample]\npoints = {points}\n[sample.ranges]\n\
             \"workload.message\" = {{ from = \"64KB\", to = \"1MB\" }}\n\
             [tune]\nmeasure = \"slowdown.p99\"\n{budget}\n"
        ))
    };
    bench.write("p.toml", &sample("4", ""));
    bench.write("many.toml", &sample("4000000000", ""));
    bench.write("huge.toml", &sample("4", "budget = 100000000000"));
    bench.write("large.toml", &sample("4", "budget = 20000"));
    let mut text = String::new();
    for arguments in [
        &["tune", "p.toml", "--budget", "18446744073709551615"][..],
        &["tune", "huge.toml"],
        &["tune", "large.toml"],
        &["sweep", "many.toml", "--yes"],
    ] {
        let _ = writeln!(text, "{}", bench.refuse(arguments));
    }
    assert_snapshot!(text, @r#"
    --budget 18446744073709551615: a budget of 18446744073709551615 runs
      fix: give at most 1000000
    huge.toml:9: a budget of 100000000000 runs
      fix: give at most 1000000
    large.toml: the plan has 52935 runs (10587 drawn points, 5 seeds), which is more than 10000
      fix: add `--yes` if that is meant; `[sample]` draws a few points of a large space
    many.toml: the plan has 20000000000 runs (4000000000 drawn points, 5 seeds), which is more than 1000000
      fix: `[sample]` draws a few points of a large space
    "#);
}

#[test]
fn folders_and_parts_that_do_not_fit() {
    let bench = Bench::new("plan-folders");
    let small = "[set]\n\"topology.hosts\" = 16\n\"topology.hosts-per-leaf\" = 4\n";
    let one = format!("name = \"one\"\nscenario = \"quickstart\"\n{small}{AXES}");
    bench.write("one.toml", &one);
    bench.write(
        "two.toml",
        &on_quickstart(&format!("seeds = [5, 6]\n{small}{AXES}")),
    );
    bench.write("theirs/notes.txt", "x");
    bench.succeed(&["sweep", "one.toml", "--out", "s"]);
    let mut text = String::new();
    for arguments in [
        &["sweep", "two.toml", "--out", "s"][..],
        &["sweep", "two.toml", "--out", "s", "--dry-run"],
        &["sweep", "one.toml", "--out", "theirs"],
        &["sweep", "two.toml", "--out", "t", "--merge", "s"],
        &["sweep", "two.toml", "--out", "t", "--merge", "theirs"],
        &["sweep", "two.toml", "--out", "t", "--merge", "nowhere"],
        &["sweep", "spray-studi"],
        &["sweep", "one.toml", "--shard", "0/3"],
        &["sweep", "one.toml", "--shard", "4/3"],
    ] {
        let error = bench.refuse(arguments);
        let _ = writeln!(
            text,
            "{}",
            error.split("\n\nFor more").next().unwrap_or_default()
        );
    }
    assert!(
        !bench.path("t").exists(),
        "nothing is made of what is refused"
    );
    assert_snapshot!(text, @r#"
    s: this folder holds 2 runs of the plan `one`, and none of them belongs to the 4 runs of this plan
      fix: name another folder with `--out`
    s: this folder holds 2 runs of the plan `one`, and none of them belongs to the 4 runs of this plan
      fix: name another folder with `--out`
    theirs: this folder is not empty, and holds no sweep
      fix: name a folder that does not exist yet with `--out`
    s: none of its 2 runs belongs to this plan
      fix: merge folders of the same plan, made by the same version and revision of the program
    theirs: this folder holds no sweep, so there are no runs to merge
      fix: name folders that `clearway sweep --out` wrote for the same plan
    nowhere: there is no such folder, so there are no runs to merge
      fix: name folders that `clearway sweep --out` wrote for the same plan
    spray-studi: there is no such file or built-in plan of a sweep
      fix: did you mean `spray-study`? Give the path of a TOML file or a built-in plan of a sweep: spray-study, nvlink-windows
    invalid value '0/3' for '--shard <I/N>': parts are counted from 1: 1/3 to 3/3
    invalid value '4/3' for '--shard <I/N>': expected a part such as `3/10`, the third of ten
    "#);
}

/// Files of the user in the folder of `--out` are not changed.
#[test]
fn folders_with_a_plan_of_the_users_own() {
    let bench = Bench::new("plan-own-folders");
    let plan = on_quickstart(
        "name = \"mine\"\n[set]\n\"topology.hosts\" = 16\n\"topology.hosts-per-leaf\" = 4\n",
    ) + AXES;
    bench.write("p.toml", &plan);
    let nameless = plan.replace("name = \"mine\"\n", "");
    for (folder, own) in [
        ("same", plan.as_str()),
        ("nameless", &nameless),
        ("foreign", "[phases]\nfirst = 1\n"),
        ("alone", &nameless),
    ] {
        bench.write(&format!("{folder}/plan.toml"), own);
        if folder != "alone" {
            bench.write(&format!("{folder}/report.html"), "mine");
        }
        let error = bench.refuse(&["sweep", "p.toml", "--out", folder]);
        let expected = format!("{folder}: this folder is not empty, and holds no sweep\n  fix: ");
        assert!(error.starts_with(&expected), "{error}");
        assert_eq!(bench.read(&format!("{folder}/plan.toml")), own);
        assert!(!bench.path(folder).join("runs").exists());
    }
    assert_eq!(bench.read("same/report.html"), "mine");
    // A folder that holds only the same plan is accepted, because no file would be replaced.
    bench.write("study/plan.toml", &plan);
    bench.succeed(&["sweep", "study/plan.toml", "--out", "study", "--quiet"]);
    assert_eq!(bench.read("study/plan.toml"), plan);
}

#[test]
fn files_that_are_for_another_command() {
    let bench = Bench::new("plan-kinds");
    for (file, name) in [
        ("sweep.toml", "spray-study"),
        ("jobs.toml", "vgg-pair"),
        ("scenario.toml", "quickstart"),
    ] {
        bench.write(file, &bench.succeed(&["show", name]));
    }
    let mut text = String::new();
    for arguments in [
        ["run", "sweep.toml"],
        ["run", "vgg-pair"],
        ["plan", "scenario.toml"],
        ["plan", "spray-study"],
        ["sweep", "jobs.toml"],
        ["tune", "quickstart"],
    ] {
        let _ = writeln!(text, "{}", bench.refuse(&arguments));
    }
    assert_snapshot!(text, @"
    sweep.toml:10: there is no section `assert`
      fix: sweep.toml is a plan of a sweep: `clearway sweep sweep.toml`
    vgg-pair: there is no such file or built-in scenario
      fix: vgg-pair is a plan of jobs: `clearway plan vgg-pair`
    scenario.toml:9: there is no section `workload`
      fix: scenario.toml is a scenario: `clearway run scenario.toml`
    spray-study: there is no such file or built-in plan
      fix: spray-study is a plan of a sweep: `clearway sweep spray-study`
    jobs.toml:8: there is no section `job`
      fix: jobs.toml is a plan of jobs: `clearway plan jobs.toml`
    quickstart: there is no such file or built-in plan of a sweep
      fix: quickstart is a scenario: `clearway run quickstart`
    ");
}

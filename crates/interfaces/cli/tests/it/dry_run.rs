//! `--dry-run`: estimates agree with the actual runs, and no files are left behind.

use crate::common::Bench;

/// The row that begins with `name`, without the name.
fn row(printed: &str, name: &str) -> String {
    let line = printed.lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("{name}: {printed}"));
    line[name.len()..].trim().to_owned()
}

fn printed(bench: &Bench, arguments: &[&str]) -> String {
    let output = bench.output(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn packets_are_those_of_the_run() {
    let bench = Bench::new("dry-run");
    let scenario = ["quickstart", "--set", "workload.message=200KB"];
    let foretold = printed(&bench, &[&["run"], &scenario[..], &["--dry-run"]].concat());
    assert_eq!(
        std::fs::read_dir(bench.path("")).unwrap().count(),
        0,
        "it writes nothing"
    );
    let summary = bench.summary(&scenario);
    assert_eq!(
        row(&foretold, "data packets").replace(',', ""),
        summary.packets.data_sent.to_string()
    );
    assert_eq!(row(&foretold, "flows"), "128, 25.6 MB of payload");
    assert!(row(&foretold, "packet-hops").contains("with acknowledgements"));
    assert!(row(&foretold, "CPU time").contains('s'));
}

#[test]
fn a_comparison_adds_up_its_runs() {
    let bench = Bench::new("dry-compare");
    let small = "quickstart:workload.message=20KB";
    let compared = [
        "compare",
        small,
        ":transport.kind=uet",
        "--seeds",
        "3",
        "--dry-run",
    ];
    let foretold = printed(&bench, &compared);
    assert!(foretold.contains("\n6 runs, "), "{foretold}");
    assert!(foretold.contains("transport.kind=uet"), "{foretold}");
    assert_eq!(std::fs::read_dir(bench.path("")).unwrap().count(), 0);
}

#[test]
fn operations_are_no_packets() {
    let bench = Bench::new("dry-scale-up");
    let output = bench.output(&["run", "nvlink-64", "--dry-run"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("fix: "), "{said}");
}

#[test]
fn studies_say_how_many_runs_they_are_and_what_they_cost() {
    let bench = Bench::new("dry-studies");
    bench.write(
        "plan.toml",
        "scenario = \"quickstart\"\nseeds = 3\n[set]\n\"workload.message\" = \"20KB\"\n\
         [axes]\n\"transport.spray\" = [\"single\", \"adaptive\"]\n\"transport.kind\" = [\"strack\", \"uet\"]\n\
         [tune]\nmeasure = \"slowdown.p99\"\n",
    );
    // 4 points with one seed, then 2 points with two more seeds.
    let tuned = printed(&bench, &["tune", "plan.toml", "--dry-run"]);
    assert!(tuned.starts_with("Runs       8 at most "), "{tuned}");
    let attacked = [
        "isolate",
        "incast-32",
        "--set",
        "workload.message=2MB",
        "--attackers",
        "1-4",
        "--attacks",
        "parallel,staggered",
        "--seeds",
        "2",
        "--dry-run",
    ];
    let attacked = printed(&bench, &attacked);
    assert!(
        attacked.starts_with("Runs       6 runs: 1 transport x 2 seeds x (1 + 2 attacks)"),
        "{attacked}"
    );
    let swept = printed(&bench, &["sweep", "plan.toml", "--dry-run"]);
    for (text, runs) in [(swept, "12"), (tuned, "8"), (attacked, "6")] {
        let expected = row(&text, "Expect");
        assert!(expected.contains(" packet-hops and "), "{expected}");
        assert!(
            expected.contains(&format!(" of {runs} runs, ")),
            "{expected}"
        );
    }
    assert_eq!(std::fs::read_dir(bench.path("")).unwrap().count(), 1);
}

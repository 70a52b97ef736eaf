//! `--dry-run`: what is foretold is what then happens, and nothing is left behind.

use crate::common::Bench;

/// The row that begins with `name`, without it.
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

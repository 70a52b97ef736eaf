//! Scenarios and their files that change while a sweep is under way.

use clearway_lab::Laboratory;
use clearway_sweep::{ProgramIdentity, Sweep, SweepPlan};
use clearway_testing::Folder;
use std::fs;
use std::path::Path;

const SCENARIO: &str = "\
[topology]\nkind = \"leaf-spine\"\nhosts = 8\nhosts-per-leaf = 4\n\
[[workload]]\nfile = \"flows.cm\"\n";

const PLAN: &str = "\
scenario = \"own.toml\"\nseeds = 2\n[axes]\n\"transport.spray\" = [\"single\", \"adaptive\"]\n";

fn flows(bytes: u32) -> String {
    format!("Nodes 8\nConnections 1\n0->7 start 0 size {bytes}\n")
}

fn sweep(folder: &Path) -> Sweep {
    fs::write(folder.join("own.toml"), SCENARIO).unwrap();
    fs::write(folder.join("flows.cm"), flows(1000)).unwrap();
    let plan = SweepPlan::read("plan.toml", PLAN, Some(folder)).unwrap();
    let program = ProgramIdentity {
        version: "1".into(),
        revision: "r".into(),
    };
    Sweep::resolve(plan, &Laboratory::new(), &program, false).unwrap()
}

#[test]
fn a_run_of_a_scenario_that_has_changed_is_refused() {
    let folder = Folder::new("changed-scenario");
    let sweep = sweep(&folder);
    let laboratory = Laboratory::new();
    let run = &sweep.runs[1];
    assert!(sweep.experiment(&laboratory, run).is_ok());
    let changed = SCENARIO.replace("hosts = 8", "hosts = 16");
    fs::write(folder.join("own.toml"), changed).unwrap();
    let error = sweep.experiment(&laboratory, run).unwrap_err().to_string();
    assert!(
        error.contains(
            "the scenario, or a file that it reads, has changed since the sweep began\n  fix: "
        ),
        "{error}"
    );
    fs::write(folder.join("own.toml"), SCENARIO).unwrap();
    assert!(sweep.experiment(&laboratory, run).is_ok(), "as it was");
}

#[test]
fn a_run_of_a_trace_that_has_changed_is_refused() {
    let folder = Folder::new("changed-trace");
    let sweep = sweep(&folder);
    let laboratory = Laboratory::new();
    let run = &sweep.runs[3];
    let before = sweep.experiment(&laboratory, run).unwrap();
    assert_eq!(before.general().seed, run.seed);
    fs::write(folder.join("flows.cm"), flows(20_000)).unwrap();
    assert!(sweep.experiment(&laboratory, run).is_err());
}

use super::*;
use crate::sample::sweep::{VALUES, measured};
use crate::sample_tables::points::{CROSSED, of_given_messages, spray, two_points};
use clearway_report::sweep::{Assertion, Bound, Limit, TuningRecord};

#[test]
fn a_measure_that_no_run_has_is_not_replaced_by_another() {
    let table = sweep_table(&measured(VALUES), Some("sections.nosuch.fctp"));
    assert_eq!(table, "No run has a value of `sections.nosuch.fctp`.\n");
    let mut tuned = measured(VALUES);
    tuned.tuning = Some(TuningRecord {
        measure: "sections.nosuch.fctp".into(),
        within: 0.0,
        then: None,
        is_grouped: false,
        rungs: Vec::new(),
        best: Vec::new(),
        last: Vec::new(),
    });
    let table = tuning_table(&tuned);
    assert!(
        table.ends_with("\nNo run has a value of `sections.nosuch.fctp`.\n"),
        "{table}"
    );
}

#[test]
fn a_terminal_shows_points_the_best_first() {
    let mut sweep = measured(VALUES);
    sweep.judge(&[Assertion {
        measure: "slowdown.p99".into(),
        statistic: Statistic::Mean,
        of: spray("adaptive"),
        bound: Bound::Below(Limit::Number(1.5)),
        confidence: 0.95,
    }]);
    insta::assert_snapshot!(sweep_table(&sweep, None), @r"
    Best slowdown p99: transport.spray=adaptive workload.message=1MB, 1.284x (1.187..1.381x: 95 %
    interval of the mean over 5 seeds). It is the best in 58.8 % of the bootstrap's samples of the
    seeds; cannot be told apart from it: transport.spray=adaptive workload.message=64kB.

    transport.spray  workload.message  slowdown p99  95 % interval  seeds  best in
    ---------------  ----------------  ------------  -------------  -----  -------
    adaptive                      1MB        1.284x  1.187..1.381x      5   58.8 %
    adaptive                     64kB        1.286x  1.169..1.403x      5   41.2 %
    single                       64kB        1.588x  1.453..1.723x      5    0.0 %
    single                        1MB        2.588x  2.453..2.723x      5    0.0 %

    pass: slowdown.p99 of transport.spray=adaptive below 1.5, 95 % sure
      passes at 2 of 2 points
    ");
    sweep.runs.retain(|run| run.seed == 1);
    sweep.missing = 16;
    sweep.assertions.clear();
    let table = sweep_table(&sweep, Some("goodput_bps"));
    assert!(
        table.contains("with 1 seed: there is no\ninterval"),
        "{table}"
    );
    assert!(
        table.contains("16 runs of the plan are not done yet"),
        "{table}"
    );
}

#[test]
fn a_terminal_shows_a_row_for_each_group() {
    let sweep = of_given_messages();
    insta::assert_snapshot!(sweep_table(&sweep, None), @"
    transport.spray=single has the best slowdown p99 at all 2 values of workload.message.

    workload.message  best                    slowdown p99  95 % interval  best in  cannot be told apart
    ----------------  ----------------------  ------------  -------------  -------  ------------------------
                64kB  transport.spray=single        2.010x  1.880..2.140x   50.0 %  transport.spray=adaptive
                 1MB  transport.spray=single        2.215x  2.085..2.345x    100 %

    transport.spray  workload.message  slowdown p99  95 % interval  seeds  best in
    ---------------  ----------------  ------------  -------------  -----  -------  ------------------------
    single                       64kB        2.010x  1.880..2.140x      2   50.0 %
    adaptive                     64kB        2.010x  1.880..2.140x      2   50.0 %
    adaptive                      1MB        2.205x              -      1    0.0 %  2 of 2 runs not complete
    single                        1MB        2.215x  2.085..2.345x      2    100 %

    failed: transport.spray=adaptive workload.message=1MB seed 2: killed by signal 9
    ");
}

#[test]
fn where_nothing_can_be_chosen_nothing_is_best() {
    let mut sweep = of_given_messages();
    sweep.axes[0].given = true;
    assert!(!sweep_table(&sweep, None).contains("Best"));
}

#[test]
fn groups_without_a_value_and_many_groups_have_rows() {
    let mut sweep = of_given_messages();
    sweep.axes[1].values = (0..50).map(|size| format!("{size}MB")).collect();
    sweep.axes[1].numbers = None;
    let runs = sweep.runs.clone();
    for value in 2..50 {
        for run in runs.iter().filter(|run| run.place[1] == 1) {
            let mut run = run.clone();
            run.place[1] = value;
            run.values.fill(None);
            sweep.runs.push(run);
        }
    }
    let table = sweep_table(&sweep, None);
    for text in ["  not known  ", "and 30 more"] {
        assert!(table.contains(text), "{table}");
    }
}

#[test]
fn intervals_that_cannot_be_are_not_shown() {
    let mut noisy = CROSSED[0];
    noisy[0] = 50.0;
    let sweep = two_points([CROSSED[0], noisy]);
    let table = sweep_table(&sweep, None);
    assert!(table.contains("  seeds differ 25.00x  "), "{table}");
    assert!(!table.contains("..-"), "{table}");
}

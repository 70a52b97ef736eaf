use super::*;
use crate::sample::{flow, incomplete_run, job, run};
use crate::sample_tables::comparison::{row, scale_up, seed, seeds, variant};
use clearway_report::FlowRow;
use clearway_report::comparison::{ComparedRun, Variant};
use clearway_units::Span;

#[test]
fn scale_up_runs_are_compared_by_their_operations() {
    let comparison = Comparison::from_variants(&[
        variant("3cpo", [1, 2].map(|seed| scale_up(seed, seed))),
        variant("static window", [1, 2].map(|seed| scale_up(seed, 1000))),
    ]);
    insta::assert_snapshot!(comparison_table(&comparison), @"
       operations   seeds  what
    -  ----------  ------  -------------
    A         512  1 to 2  3cpo
    B         512  1 to 2  static window

                                           A             B              B/A
    -------------------  -------------------  ------------  ---------------
    effective bandwidth                0.339         0.001         0.002x
                                0.271..0.406
    latency mean                865.6 cycles  1,864 cycles         2.154x
                         865.1..866.1 cycles                2.138..2.169x
    latency p50                 860.5 cycles  1,859 cycles         2.160x
                             860..861 cycles                2.145..2.176x
    latency p99                 1,126 cycles  2,124 cycles         1.887x
                         1,125..1,126 cycles                1.877..1.898x
    latency p99.9               1,150 cycles  2,148 cycles         1.869x
                         1,149..1,150 cycles                1.858..1.879x
    latency max                 1,150 cycles  2,148 cycles         1.869x
                         1,149..1,150 cycles                1.858..1.879x

    10 more measures are equal for all; compare.json has them.
    effective bandwidth: flits received per GPU and cycle; latency: injection to response.
    Medians over seeds, with the least and the greatest value below.
    Ratios of medians, with the 95 % interval of the ratio of the means over common seeds below;
    ~: within the spread of seeds (the two ranges overlap).
    ");
}

#[test]
fn the_order_of_starts_and_finishes_is_no_ratio() {
    // Flow n starts at n us; the second variant reverses their order.
    let comparison = Comparison::from_variants(&[
        variant("a", [seed(1, &[10, 12, 14])]),
        variant("b", [seed(1, &[30, 20, 10])]),
    ]);
    let table = comparison_table(&comparison);
    for line in [
        "finish order      1.000    -1.000       -",
        "finish spread  6.000 us  18.00 us  3.000x",
        "finish order: rank correlation",
    ] {
        assert!(table.contains(line), "{table}");
    }
    // Flows that start together have no order of starts.
    let together = Comparison::from_variants(&[seeds("a", &[100])]);
    assert!(!comparison_table(&together).contains("finish spread"));
}

#[test]
fn jobs_are_compared_if_all_variants_have_some() {
    let with = |seed: u64, us: &[u64]| {
        let mut record = run();
        record.scenario.seed = seed;
        record.digest = format!("{seed}-{us:?}");
        record.flows = vec![FlowRow {
            ideal_fct: Span::ZERO,
            ..flow(0, Some(Span::from_us(500)))
        }];
        record.jobs = vec![job("a", 2, us), job("b", 1, &us[..1])];
        ComparedRun::from_record(record)
    };
    let comparison = Comparison::from_variants(&[
        variant("ring", [with(1, &[100, 300]), with(2, &[120, 320])]),
        variant("tree", [with(1, &[50, 150]), with(2, &[60, 160])]),
    ]);
    let table = comparison_table(&comparison);
    let from = table.find("iteration mean").unwrap();
    let to = from + table[from..].find("\n\n").unwrap();
    insta::assert_snapshot!(&table[from..to], @"
    iteration mean           160.0 us           80.00 us  0.500x
                      150.0..170.0 us    75.00..85.00 us
    slowest job              210.0 us           105.0 us  0.500x
                      200.0..220.0 us    100.0..110.0 us
    iteration max            310.0 us           155.0 us  0.500x
                      300.0..320.0 us    150.0..160.0 us
    bus bandwidth          97.58 GB/s         195.2 GB/s  2.000x
                    90.15..105.0 GB/s  180.3..210.0 GB/s
    ");
    assert!(table.contains("\niteration mean: over jobs"), "{table}");
    // Measures that flows of jobs do not have are left out of the table, but remain in the document.
    assert_eq!(row(&comparison, "fct_us.max").values[0].median, None);
    let mixed =
        Comparison::from_variants(&[variant("jobs", [with(1, &[100])]), seeds("flows", &[100])]);
    let table = comparison_table(&mixed);
    assert!(
        !table.contains("iteration") && !table.contains("bus"),
        "{table}"
    );
    assert!(table.contains("FCT max"), "{table}");
    assert_eq!(row(&mixed, "jobs_us.max").values[0].median, Some(100.0));
}

#[test]
fn several_seeds_as_a_table() {
    let comparison = Comparison::from_variants(&[
        seeds("quickstart", &[100, 120, 110]),
        seeds("transport.spray=oblivious", &[230, 220, 210]),
        seeds("transport.spray=single", &[90, 104, 98]),
    ]);
    insta::assert_snapshot!(comparison_table(&comparison), @"
    transport.spray=oblivious is 2.00 (1.51 to 2.76) times as slow as quickstart; transport.spray=single
    is 1.13 (1.06 to 1.18) times as fast as quickstart, by the p99 slowdown of flows.

       flows  payload   seeds  what
    -  -----  -------  ------  -------------------------
    A      1     2 MB  1 to 3  quickstart
    B      1     2 MB  1 to 3  transport.spray=oblivious
    C      1     2 MB  1 to 3  transport.spray=single

                                 A                B              B/A                C              C/A
    -------------  ---------------  ---------------  ---------------  ---------------  ---------------
    FCT max               110.0 us         220.0 us         2.000x           98.00 us         0.891x ~
                   100.0..120.0 us  210.0..230.0 us  1.506..2.762x    90.00..104.0 us  0.849..0.941x
    FCT p99               110.0 us         220.0 us         2.000x           98.00 us         0.891x ~
                   100.0..120.0 us  210.0..230.0 us  1.506..2.762x    90.00..104.0 us  0.849..0.941x
    FCT p50               110.0 us         220.0 us         2.000x           98.00 us         0.891x ~
                   100.0..120.0 us  210.0..230.0 us  1.506..2.762x    90.00..104.0 us  0.849..0.941x
    FCT mean              110.0 us         220.0 us         2.000x           98.00 us         0.891x ~
                   100.0..120.0 us  210.0..230.0 us  1.506..2.762x    90.00..104.0 us  0.849..0.941x
    slowdown max            2.250x           4.501x         2.000x             2.005x         0.891x ~
                     2.046..2.455x    4.296..4.705x  1.506..2.762x      1.841..2.128x  0.849..0.941x
    slowdown p99            2.250x           4.501x         2.000x             2.005x         0.891x ~
                     2.046..2.455x    4.296..4.705x  1.506..2.762x      1.841..2.128x  0.849..0.941x
    slowdown p50            2.250x           4.501x         2.000x             2.005x         0.891x ~
                     2.046..2.455x    4.296..4.705x  1.506..2.762x      1.841..2.128x  0.849..0.941x
    slowdown mean           2.250x           4.501x         2.000x             2.005x         0.891x ~
                     2.046..2.455x    4.296..4.705x  1.506..2.762x      1.841..2.128x  0.849..0.941x
    goodput               145 Gbps        72.7 Gbps         0.500x           163 Gbps         1.122x ~
                     133..160 Gbps  69.6..76.2 Gbps  0.374..0.690x      154..178 Gbps  1.084..1.196x

    7 more measures are equal for all; compare.json has them.
    Medians over seeds, with the least and the greatest value below.
    Ratios of medians, with the 95 % interval of the ratio of the means over common seeds below;
    ~: within the spread of seeds (the two ranges overlap).
    ");
}

#[test]
fn one_seed_as_a_table() {
    let mut paused = incomplete_run();
    paused.version = "0.2.0".into();
    let comparison = Comparison::from_variants(&[
        variant("out/a", [ComparedRun::from_record(run())]),
        variant("out/b", [ComparedRun::from_record(run())]),
        variant("out/c", [ComparedRun::from_record(paused)]),
    ]);
    insta::assert_snapshot!(comparison_table(&comparison), @"
    out/b is equal to out/a; out/c is equal to out/a, by the p99 slowdown of flows (one seed: seeds
    alone may explain it).

       flows  payload  seeds  what
    -  -----  -------  -----  -----
    A      4     8 MB      1  out/a
    B      4     8 MB      1  out/b
    C      6    12 MB      1  out/c

                         A       B     B/A       C     C/A
    --------------  ------  ------  ------  ------  ------
    slowdown p99    2.000x  2.000x  1.000x  2.000x  1.000x
    headroom drops       0       0  1.000x       3  from 0
    CNPs                 0       0  1.000x      34  from 0
    pauses               0       0  1.000x   5,678  from 0
    corrupted            0       0  1.000x      12  from 0
    received twice       0       0  1.000x       9  from 0

    17 more measures are equal for all; compare.json has them.
    One seed each: seeds alone may explain the differences; --seeds N tells.
    warning: C is incomplete (seed 1: 4 of 6 flows completed): its completion times leave out the slowest flows
    warning: B came to the same as A, packet for packet (equal digests)
    warning: A and C do different work: 4 flows of 8 MB in all against 6 flows of 12 MB in all with seed 1
    warning: A and C come from different programs: 0.1.0 (revision 0123abc) and 0.2.0 (revision 0123abc)
    ");
}

#[test]
fn more_variants_than_fit_go_below() {
    let many: Vec<Variant> = (1..=7).map(|n| seeds(&format!("v{n}"), &[n])).collect();
    let text = comparison_table(&Comparison::from_variants(&many));
    let heads: Vec<&str> = text.lines().filter(|line| line.contains("/A")).collect();
    assert_eq!(heads.len(), 2);
    assert!(heads[0].ends_with("E/A") && heads[1].trim_start().starts_with('A'));
    assert!(heads[1].ends_with("G/A") && !heads[1].contains("E/A"));
    assert!(text.lines().all(|line| line.chars().count() <= 120));
}

//! Hierarchical collectives of several dimensions.

use super::oracle::achieves;
use super::*;
use crate::TaskId;
use DimensionAlgorithm::{Direct, DoubleBinaryTree, HalvingDoubling, Ring};
use insta::assert_snapshot;
use proptest::prelude::*;
use std::collections::BTreeMap;

const OPERATIONS: [&str; 4] = ["all-reduce", "reduce-scatter", "all-gather", "all-to-all"];

fn settings(
    operation: &str,
    sizes: &[u32],
    algorithms: &[DimensionAlgorithm],
) -> CollectiveSettings {
    let mut settings = CollectiveSettings::named(operation, "hierarchical").unwrap();
    settings
        .set("dimensions", &sizes.to_vec().to_value())
        .unwrap();
    settings
        .set("algorithms", &algorithms.to_vec().to_value())
        .unwrap();
    settings
}

fn sized(
    mut settings: CollectiveSettings,
    size: u64,
    others: &[(&str, Value)],
) -> CollectiveSettings {
    settings.set("size", &Bytes::new(size).to_value()).unwrap();
    for (key, value) in others {
        // Operations without a sum have no rate of it.
        let _ = settings.set(key, value);
    }
    settings
}

/// Bytes between each pair of ranks.
fn traffic(collective: &Collective) -> BTreeMap<(u32, u32), u64> {
    let mut traffic = BTreeMap::new();
    for (_, task) in collective.graph.numbered() {
        if let Task::Message { src, dst, bytes } = task {
            *traffic.entry((src.0, dst.0)).or_default() += bytes.as_u64();
        }
    }
    traffic
}

fn algorithms(operation: &str, size: u32, is_last: bool) -> Vec<DimensionAlgorithm> {
    let mut all = vec![Ring, Direct];
    let is_exchange = operation == "all-to-all";
    all.extend((size.is_power_of_two() && !is_exchange).then_some(HalvingDoubling));
    all.extend((is_last && operation == "all-reduce").then_some(DoubleBinaryTree));
    all
}

/// Every combination of algorithms in two dimensions, with and without splits, a delay, chunks and limits.
#[test]
fn two_dimensions_are_correct_with_all_algorithms() {
    let integer = |number| Value::Integer(number);
    let text = |text: &str| Value::Text(text.into());
    let others: [&[(&str, Value)]; 4] = [
        &[],
        &[
            ("splits", integer(3)),
            ("active-splits", integer(1)),
            ("direct-window", integer(2)),
        ],
        &[
            ("chunk", text("5B")),
            ("reduction-rate", text("1Gbps")),
            ("endpoint-delay", text("10ns")),
        ],
        &[
            ("splits", integer(2)),
            ("active-splits", integer(1)),
            ("window", integer(1)),
            ("endpoint-delay", text("3ns")),
        ],
    ];
    for operation in OPERATIONS {
        for sizes in [[2, 3], [4, 2], [3, 1], [1, 4], [5, 4]] {
            let wide: Vec<u32> = sizes.into_iter().filter(|&size| size > 1).collect();
            let last = usize::from(sizes[1] > 1);
            for first in algorithms(operation, sizes[0], last == 0 && wide.len() == 1) {
                for second in algorithms(operation, sizes[1], last == 1) {
                    for (number, others) in others.iter().enumerate() {
                        let ranks = sizes[0] * sizes[1];
                        for size in [u64::from(ranks) * 6, u64::from(ranks) * 7 + 5, 3] {
                            let settings = settings(operation, &sizes, &[first, second]);
                            let settings = sized(settings, size, others);
                            let collective = settings.build(ranks).unwrap();
                            if let Err(fault) = collective.verify() {
                                panic!("{}: {fault}", name(&settings, ranks));
                            }
                            if size < 100 && number < 3 {
                                assert!(achieves(&collective, size), "{}", name(&settings, ranks));
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn three_dimensions_are_correct() {
    for operation in OPERATIONS {
        for algorithms in [[Ring, Direct, Ring], [Direct, Ring, Direct]] {
            for splits in [1, 2] {
                let settings = settings(operation, &[2, 3, 2], &algorithms);
                let settings = sized(settings, 12 * 5 + 7, &[("splits", Value::Integer(splits))]);
                let collective = settings.build(12).unwrap();
                collective.verify().unwrap();
                assert!(achieves(&collective, 1), "{}", name(&settings, 12));
            }
        }
    }
}

/// In a dimension, ranks that differ in it alone exchange what is left of the data (Rashidi et al. 2020, §III).
#[test]
fn each_dimension_carries_its_share() {
    let size = 4 * 2 * 3 * 10;
    let of = |operation: &str| {
        let settings = sized(settings(operation, &[4, 2, 3], &[Direct]), size, &[]);
        traffic(&settings.build(24).unwrap())
    };
    let shares = |operation: &str| {
        let traffic = of(operation);
        let rank = |place: [u32; 3]| place[0] + 4 * place[1] + 8 * place[2];
        // From rank 0 to a neighbour in each dimension, and to a rank that differs in two.
        let ends = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]].map(|place| (0, rank(place)));
        ends.map(|ends| traffic.get(&ends).copied().unwrap_or(0))
    };
    assert_eq!(shares("reduce-scatter"), [size / 4, size / 8, size / 24, 0]);
    assert_eq!(shares("all-gather"), [size / 4, size / 8, size / 24, 0]);
    assert_eq!(shares("all-reduce"), [size / 2, size / 4, size / 12, 0]);
    assert_eq!(shares("all-to-all"), [size / 4, size / 2, size / 3, 0]);
}

/// ASTRA-sim sends an all-to-all from one rank to another in one message, whatever the dimension.
#[test]
fn an_all_to_all_has_one_message_for_each_member_of_a_row() {
    let settings = sized(settings("all-to-all", &[4, 2, 3], &[Direct]), 2400, &[]);
    let collective = settings.build(24).unwrap();
    let messages = collective.graph.numbered();
    let messages = messages.filter(|(_, task)| matches!(task, Task::Message { .. }));
    assert_eq!(messages.count(), 24 * (3 + 1 + 2));
    assert!(!collective.scattered.is_empty());
}

/// A ring is a ring, whichever file describes it.
#[test]
fn one_dimension_is_the_flat_algorithm() {
    for (operation, algorithm, flat) in [
        ("all-reduce", Ring, "ring"),
        ("all-reduce", HalvingDoubling, "halving-doubling"),
        ("reduce-scatter", Direct, "direct"),
        ("all-gather", Ring, "ring"),
    ] {
        let hierarchical = sized(settings(operation, &[8], &[algorithm]), 8000, &[]);
        let flat = CollectiveSettings::named(operation, flat).unwrap();
        let others = [
            ("chunk", Bytes::new(1 << 40).to_value()),
            ("first-partner", Value::Text("near".into())),
        ];
        let flat = sized(flat, 8000, &others);
        assert_eq!(
            hierarchical.build(8).unwrap().graph,
            flat.build(8).unwrap().graph
        );
    }
}

#[test]
fn nodes_are_dimensions_where_none_are_given() {
    let layout = Layout::of_nodes(&[0, 1, 0, 1, 0, 1]);
    let auto = sized(settings("all-reduce", &[], &[Ring, Direct]), 6000, &[]);
    let collective = auto.build_on(&layout).unwrap();
    collective.verify().unwrap();
    let traffic = traffic(&collective);
    // Rings of three in each node, and pairs over both.
    assert_eq!(traffic[&(0, 2)], 2 * 2 * 2000);
    assert_eq!(traffic[&(0, 1)], 2 * 1000);
    assert_eq!(traffic.get(&(0, 3)), None);
}

#[test]
fn steps_add_up() {
    for (operation, sizes, algorithms, steps) in [
        (
            "all-reduce",
            &[4, 8][..],
            &[Ring, HalvingDoubling][..],
            2 * 3 + 2 * 3,
        ),
        (
            "all-reduce",
            &[4, 3],
            &[Direct, DoubleBinaryTree],
            2 + 2 * 2,
        ),
        ("all-to-all", &[4, 3], &[Ring, Direct], 6 + 1),
        ("all-gather", &[2, 2, 2], &[Ring], 3),
    ] {
        let ranks = sizes.iter().product();
        let settings = sized(settings(operation, sizes, algorithms), 960, &[]);
        assert_eq!(settings.steps(ranks), steps);
        let graph = settings.build(ranks).unwrap().graph;
        assert_eq!(super::shapes::longest_chain(&graph), steps, "{operation}");
    }
}

/// Splits follow each other: without a limit all begin at once, with one the next begins when one has ended the phase.
#[test]
fn active_splits_limit_each_phase() {
    let firsts = |active: &str| {
        let active = if active == "auto" {
            Value::Text(active.into())
        } else {
            Value::Integer(1)
        };
        let others = [("splits", Value::Integer(4)), ("active-splits", active)];
        let settings = sized(settings("reduce-scatter", &[2, 2], &[Ring]), 1600, &others);
        let graph = settings.build(4).unwrap().graph;
        let ready = graph
            .numbered()
            .filter(|(id, _)| graph.needs(*id).is_empty());
        ready.count()
    };
    assert_eq!((firsts("auto"), firsts("1")), (16, 4));
}

#[test]
fn impossible_dimensions_have_a_fix() {
    let error = |operation, sizes: &[u32], algorithms: &[DimensionAlgorithm], ranks| {
        let error = settings(operation, sizes, algorithms)
            .build(ranks)
            .unwrap_err();
        format!("{error} ({})", error.fix)
    };
    assert_snapshot!(error("all-reduce", &[4, 2], &[], 9), @"`dimensions` of the hierarchical all-reduce: dimensions of 4 x 2 ranks, but there are 9 (write sizes whose product is the number of ranks)");
    assert_snapshot!(error("all-reduce", &[0, 2], &[], 2), @"`dimensions` of the hierarchical all-reduce: dimensions of 0 x 2 ranks, but there are 2 (write sizes whose product is the number of ranks)");
    assert_snapshot!(error("all-reduce", &[2, 2, 2], &[Ring, Direct], 8), @"`algorithms` of the hierarchical all-reduce: 2 algorithms for 3 dimensions (write one for each dimension, or one for all)");
    assert_snapshot!(error("all-to-all", &[4], &[HalvingDoubling], 4), @r#"`algorithms` of the hierarchical all-to-all: there is no all-to-all by halving and doubling (write "direct" or "ring")"#);
    assert_snapshot!(error("all-gather", &[3, 2], &[HalvingDoubling], 6), @r#"`algorithms` of the hierarchical all-gather: halving and doubling in a dimension of 3 ranks, not a power of two (write "ring" or "direct" for it)"#);
    assert_snapshot!(error("all-reduce", &[2, 2], &[DoubleBinaryTree, Ring], 4), @r#"`algorithms` of the hierarchical all-reduce: a double binary tree is only for the last dimension of an all-reduce (write "ring", "direct" or "halving-doubling" elsewhere)"#);
}

fn any_hierarchy() -> impl Strategy<Value = (CollectiveSettings, u32)> {
    let sizes = prop::collection::vec(1u32..6, 1..4).prop_filter("up to 60 ranks", |sizes| {
        (2..=60).contains(&sizes.iter().product::<u32>())
    });
    let choices = prop::collection::vec(any::<prop::sample::Index>(), 3);
    let counts = (1i64..5, 1i64..4, 1i64..4, 1u64..40);
    (0..OPERATIONS.len(), sizes, choices, counts, 0u64..300).prop_map(
        |(operation, sizes, choices, (splits, active, window, chunk), size)| {
            let operation = OPERATIONS[operation];
            let ranks: u32 = sizes.iter().product();
            let last = sizes.iter().rposition(|&size| size > 1).unwrap();
            let pick = |(place, &size): (usize, &u32)| {
                let all = algorithms(operation, size, place == last);
                all[choices[place].index(all.len())]
            };
            let algorithms: Vec<DimensionAlgorithm> = sizes.iter().enumerate().map(pick).collect();
            let others = [
                ("splits", Value::Integer(splits)),
                ("active-splits", Value::Integer(active)),
                ("direct-window", Value::Integer(window)),
                ("chunk", Bytes::new(chunk).to_value()),
            ];
            (
                sized(settings(operation, &sizes, &algorithms), size + 1, &others),
                ranks,
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_hierarchy_is_correct((settings, ranks) in any_hierarchy()) {
        let collective = settings.build(ranks).unwrap();
        prop_assert_eq!(collective.verify(), Ok(()));
    }

    /// The proof refuses each hierarchical collective that lacks a message.
    #[test]
    fn a_lost_message_is_found(
        (settings, ranks) in any_hierarchy(),
        pick in any::<prop::sample::Index>(),
    ) {
        let collective = settings.build(ranks).unwrap();
        let tasks = collective.graph.numbered();
        let messages: Vec<TaskId> = tasks
            .filter(|(_, task)| matches!(task, Task::Message { .. }))
            .map(|(id, _)| id)
            .collect();
        prop_assume!(!messages.is_empty());
        let lost = messages[pick.index(messages.len())];
        prop_assert!(super::mutations::without_task(&collective, lost).verify().is_err());
    }
}

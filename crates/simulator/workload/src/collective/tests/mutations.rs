//! The proof refuses incorrect graphs: each message, each dependency and each effect of every collective is needed.

use super::oracle::achieves;
use super::*;
use crate::{GraphError, Rank, TaskDependency, TaskId};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

/// A collective with some of its tasks and needs left out.
fn without(
    collective: &Collective,
    drops_task: impl Fn(TaskId) -> bool,
    drops_need: impl Fn(TaskId, usize) -> bool,
) -> Collective {
    let mut graph = Graph::new(collective.graph.ranks());
    let mut moves = Vec::new();
    let mut renumbered = Vec::new();
    let mut scattered = BTreeMap::new();
    for (id, task) in collective.graph.numbered() {
        if drops_task(id) {
            renumbered.push(None);
            continue;
        }
        let needs = collective.graph.needs(id).iter().enumerate();
        let needs = needs.filter(|&(place, _)| !drops_need(id, place));
        let needs =
            needs.filter_map(|(_, need)| renumbered[need.task().index()].map(TaskDependency::over));
        let needs: Vec<TaskDependency> = needs.collect();
        let added = graph.add(task, needs);
        if let Some(ranges) = collective.scattered.get(&id) {
            scattered.insert(added, ranges.clone());
        }
        renumbered.push(Some(added));
        moves.push(collective.moves[id.index()]);
    }
    Collective {
        graph,
        moves,
        scattered,
        ..collective.clone()
    }
}

pub(super) fn without_task(collective: &Collective, task: TaskId) -> Collective {
    without(collective, |id| id == task, |_, _| false)
}

fn without_need(collective: &Collective, task: TaskId, place: usize) -> Collective {
    let drops_need = |id, at| (id, at) == (task, place);
    without(collective, |_| false, drops_need)
}

fn with_other_effect(collective: &Collective, task: TaskId) -> Collective {
    let mut changed = collective.clone();
    let effect = &mut changed.moves[task.index()].effect;
    *effect = match effect {
        Effect::Reduce => Effect::Copy,
        Effect::Copy => Effect::Reduce,
        Effect::Nothing => unreachable!("a message that carries no data"),
    };
    changed
}

/// The same bytes but for one at either end.
fn with_other_place(collective: &Collective, task: TaskId) -> Collective {
    let mut changed = collective.clone();
    let offset = &mut changed.moves[task.index()].offset;
    *offset = match *offset {
        Bytes::ZERO => Bytes::new(1),
        offset => offset - Bytes::new(1),
    };
    changed
}

fn data_messages(collective: &Collective) -> Vec<TaskId> {
    let effects = collective.moves.iter().map(|a_move| a_move.effect);
    let numbered = (0..).map(TaskId).zip(effects);
    let data = numbered.filter(|(_, effect)| *effect != Effect::Nothing);
    data.map(|(id, _)| id).collect()
}

/// Every dependency, except an addition's on the message that it adds: no task may wait for the last of the additions.
fn needs(collective: &Collective) -> Vec<(TaskId, usize)> {
    let places = |(id, task)| {
        let count = match task {
            Task::Compute { span, .. } if !span.is_zero() => 0,
            _ => collective.graph.needs(id).len(),
        };
        (0..count).map(move |place| (id, place))
    };
    collective.graph.numbered().flat_map(places).collect()
}

fn assert_refused(mutant: &Collective, what: &str, settings: &CollectiveSettings, ranks: u32) {
    assert!(
        mutant.verify().is_err(),
        "{what}: {}",
        name(settings, ranks)
    );
}

/// True if every dependency of the collective is needed. A window and a barrier for all have more dependencies than the data needs. Where a
/// chunk of a halving is not within one block, its dependency for one block may be implied by that for the next.
fn is_lean(settings: &CollectiveSettings, ranks: u32) -> bool {
    let entries = settings.entries();
    let has = |key, value: Value| entries.contains(&(key, value));
    let is_whole = match settings {
        CollectiveSettings::HalvingDoubling(settings) => {
            let chunks = |chunk: Bytes| chunk.as_u64() << ranks.ilog2();
            let size = settings.size.as_u64();
            settings
                .cut
                .chunk
                .is_none_or(|chunk| size.is_multiple_of(chunks(chunk)))
        }
        _ => true,
    };
    is_whole && !has("window", Value::Integer(2)) && !has("barrier", Value::Text("global".into()))
}

#[test]
fn every_single_fault_in_every_small_collective_is_found() {
    for ranks in 3..=7 {
        // Whole chunks for halvings, odd ones for the others.
        for settings in [every_kind(16, 2), every_variant(16, 2)].concat() {
            let collective = settings.build(ranks).unwrap();
            for task in data_messages(&collective) {
                assert_refused(
                    &with_other_place(&collective, task),
                    "place",
                    &settings,
                    ranks,
                );
                assert_refused(
                    &without_task(&collective, task),
                    "message",
                    &settings,
                    ranks,
                );
                assert_refused(
                    &with_other_effect(&collective, task),
                    "effect",
                    &settings,
                    ranks,
                );
            }
            if is_lean(&settings, ranks) {
                for (task, place) in needs(&collective) {
                    let mutant = without_need(&collective, task, place);
                    assert_refused(&mutant, "dependency", &settings, ranks);
                }
            }
        }
    }
}

fn any_settings() -> impl Strategy<Value = (CollectiveSettings, u32)> {
    let kinds = every_kind(1, 1).len();
    let variants = every_variant(1, 1).len();
    (3u32..24, 1u64..100, 1u64..20, 0..kinds + variants).prop_map(|(ranks, size, chunk, which)| {
        let all = [every_kind(size, chunk), every_variant(size, chunk)].concat();
        (all[which].clone(), ranks)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_fault_in_any_collective_is_found(
        (settings, ranks) in any_settings(),
        pick in any::<prop::sample::Index>(),
    ) {
        let collective = settings.build(ranks).unwrap();
        prop_assert_eq!(collective.verify(), Ok(()));
        let messages = data_messages(&collective);
        let task = messages[pick.index(messages.len())];
        prop_assert!(without_task(&collective, task).verify().is_err());
        prop_assert!(with_other_effect(&collective, task).verify().is_err());
        prop_assert!(with_other_place(&collective, task).verify().is_err());
        let needs = needs(&collective);
        if is_lean(&settings, ranks) && !needs.is_empty() {
            let (task, place) = needs[pick.index(needs.len())];
            prop_assert!(without_need(&collective, task, place).verify().is_err());
        }
    }

    /// Mutants that the proof accepts are correct in random orders: dependencies may go which the data does not need.
    #[test]
    fn what_is_proven_is_correct_byte_by_byte(
        ranks in 3u32..8,
        which in any::<prop::sample::Index>(),
        (size, chunk) in (1u64..30, 1u64..8),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        seed in any::<u64>(),
    ) {
        let mut all = every_variant(size, chunk);
        all.retain(|settings| !is_lean(settings, ranks));
        let collective = all[which.index(all.len())].build(ranks).unwrap();
        let needs = needs(&collective);
        prop_assume!(!needs.is_empty());
        let dropped: Vec<_> = picks.iter().map(|pick| needs[pick.index(needs.len())]).collect();
        let mutant = without(&collective, |_| false, |id, place| dropped.contains(&(id, place)));
        match mutant.verify() {
            Ok(()) => prop_assert!(achieves(&mutant, seed)),
            Err(fault) => prop_assert!(
                matches!(fault, CollectiveFault::Race { .. } | CollectiveFault::Unset { .. }),
                "{fault}"
            ),
        }
    }

    /// Random messages among three ranks: every graph that the proof accepts is correct in random orders.
    #[test]
    fn random_graphs_are_judged_soundly(
        messages in prop::collection::vec((0u32..3, 1u32..3, any::<bool>(), any::<u8>()), 3..7),
        seed in any::<u64>(),
    ) {
        let mut graph = Graph::new(3);
        let mut moves = Vec::new();
        for (src, distance, reduces, needs) in messages {
            let src = Rank(src);
            let earlier = (0..moves.len() as u32).map(TaskId);
            let seen: Vec<TaskId> = earlier
                .filter(|id| graph.task(*id).is_seen_by(src) && needs & (1 << id.0) != 0)
                .collect();
            graph.message((src, Rank((src.0 + distance) % 3)), Bytes::new(1), seen);
            let effect = if reduces { Effect::Reduce } else { Effect::Copy };
            moves.push(Move { offset: Bytes::ZERO, effect });
        }
        let operation = Operation::AllReduce;
        for operation in [operation, Operation::Broadcast { root: Rank(0) }] {
            let size = Bytes::new(1);
            let collective = Collective {
                operation,
                size,
                graph: graph.clone(),
                moves: moves.clone(),
                scattered: BTreeMap::new(),
                owners: BlockOwners::NATURAL,
            };
            match collective.verify() {
                Ok(()) => {
                    for order in 0..5 {
                        prop_assert!(achieves(&collective, seed ^ order));
                    }
                }
                Err(CollectiveFault::Missing { .. }) => {
                    prop_assert!(!achieves(&collective, seed));
                }
                Err(_) => {}
            }
        }
    }
}

fn bytes(range: Range<u64>) -> Range<Bytes> {
    Bytes::new(range.start)..Bytes::new(range.end)
}

/// Rank 0 sends to 1, 1 adds and sends back.
fn two_ranks() -> Collective {
    ring(2, 1, 1)
}

#[test]
fn faults_name_rank_bytes_and_data() {
    let (one, two) = (TaskId(0), TaskId(1));
    let ring = two_ranks();
    assert_eq!(ring.verify(), Ok(()));
    assert_eq!(
        without_task(&ring, two).verify(),
        Err(CollectiveFault::Missing {
            rank: Rank(0),
            range: bytes(0..1),
            contributor: Rank(1)
        })
    );
    assert_eq!(
        with_other_effect(&ring, two).verify(),
        Err(CollectiveFault::Twice {
            message: two,
            rank: Rank(0),
            range: bytes(0..1),
            contributor: Rank(0)
        })
    );
    assert_eq!(
        without_need(&ring, two, 0).verify(),
        Err(CollectiveFault::Race {
            rank: Rank(1),
            range: bytes(0..1),
            messages: [one, two]
        })
    );
    let operation = Operation::Broadcast { root: Rank(1) };
    let unset = Collective {
        operation,
        ..ring.clone()
    };
    assert_eq!(
        unset.verify(),
        Err(CollectiveFault::Unset {
            message: one,
            rank: Rank(0),
            range: bytes(0..1)
        })
    );
    assert_eq!(
        unset.verify().unwrap_err().to_string(),
        "message 0 uses bytes 0 to 1 of rank 0, which are not there yet"
    );
}

#[test]
fn a_block_that_another_rank_has_cannot_be_sent() {
    let size = Bytes::new(2);
    let settings = DirectAllGatherSettings {
        size,
        ..Default::default()
    };
    let mut collective = settings.build(2).unwrap();
    collective.moves.swap(0, 1);
    assert_eq!(
        collective.verify(),
        Err(CollectiveFault::Unset {
            message: TaskId(1),
            rank: Rank(1),
            range: bytes(0..1)
        })
    );
}

#[test]
fn what_is_no_collective_at_all_is_refused() {
    let ring = two_ranks();
    let outside = |offset| {
        let mut ring = ring.clone();
        ring.moves[1].offset = Bytes::new(offset);
        ring.verify()
    };
    let fault = |range: Range<u64>| {
        Err(CollectiveFault::Outside {
            message: TaskId(1),
            range: bytes(range),
            size: Bytes::new(1),
        })
    };
    assert_eq!(outside(1), fault(1..2));
    assert_eq!(outside(u64::MAX), fault(u64::MAX..u64::MAX));
    let mut short = ring.clone();
    short.moves.pop();
    let (moves, tasks) = (1, 2);
    assert_eq!(short.verify(), Err(CollectiveFault::Moves { moves, tasks }));
    let mut circle = ring.clone();
    circle.graph = Graph::new(2);
    for (src, dst) in [(0, 1), (1, 0)] {
        circle
            .graph
            .message((Rank(src), Rank(dst)), Bytes::new(1), [TaskId(1 - src)]);
    }
    assert!(matches!(
        circle.verify(),
        Err(CollectiveFault::Graph(GraphError::Circle { .. }))
    ));
    for (operation, size) in [
        (Operation::Broadcast { root: Rank(2) }, 1),
        (Operation::ParameterServer { server: Rank(2) }, 1),
        (Operation::AllToAll, u64::MAX),
        (Operation::AllReduce, 0),
    ] {
        let size = Bytes::new(size);
        let wrong = Collective {
            operation,
            size,
            ..ring.clone()
        };
        assert_eq!(wrong.verify(), Err(CollectiveFault::Operation));
    }
}

#[test]
fn a_message_that_has_only_begun_does_not_order_anything() {
    let mut ring = ring(2, 2, 1);
    let begun = ring.graph.clone();
    ring.graph = Graph::new(2);
    for (id, task) in begun.numbered() {
        // The copy back needs the sum that has arrived, and now also that its own first message has begun.
        let own = (id.0 >= 2).then(|| TaskDependency::begun(TaskId(id.0 - 2)));
        ring.graph
            .add(task, begun.needs(id).iter().copied().chain(own));
    }
    assert_eq!(ring.verify(), Ok(()));
    ring.graph = Graph::new(2);
    for (id, task) in begun.numbered() {
        let own = (id.0 >= 2).then(|| TaskDependency::begun(TaskId(id.0 - 2)));
        ring.graph.add(task, own);
    }
    assert!(matches!(ring.verify(), Err(CollectiveFault::Race { .. })));
}

//! Trees, bytes of each rank, order and dependencies against closed forms.

use super::*;
use crate::TaskId;
use blocks::Blocks;
use std::collections::BTreeSet;

fn set(settings: &mut CollectiveSettings, key: &str, value: &str) {
    settings.set(key, &Value::Text(value.into())).unwrap();
}

fn build(names: (&str, &str), size: u64, chunk: u64, ranks: u32) -> Collective {
    let mut settings = CollectiveSettings::named(names.0, names.1).unwrap();
    set(&mut settings, "size", &Bytes::new(size).to_string());
    set(&mut settings, "chunk", &Bytes::new(chunk).to_string());
    settings.build(ranks).unwrap()
}

fn leaves(tree: &BinaryTree) -> BTreeSet<u32> {
    let all = (0..).zip(&tree.children);
    let leaves = all.filter(|(_, children)| children.iter().all(Option::is_none));
    leaves.map(|(rank, _)| rank).collect()
}

#[test]
fn both_trees_span_and_the_leaves_of_one_are_inside_the_other() {
    for ranks in 2..=64 {
        let trees = BinaryTree::pair(ranks);
        for tree in &trees {
            let order = tree.from_root();
            let reached: BTreeSet<u32> = order.iter().copied().collect();
            assert_eq!(order.len(), ranks as usize);
            assert_eq!(reached, (0..ranks).collect());
            for rank in 0..ranks {
                for child in tree.children[rank as usize].iter().flatten() {
                    assert_eq!(tree.parents[*child as usize], Some(rank));
                }
                match tree.parents[rank as usize] {
                    None => assert_eq!(rank, tree.root),
                    Some(parent) => {
                        assert!(tree.children[parent as usize].contains(&Some(rank)));
                    }
                }
            }
            assert!(tree.depth() <= ranks.next_power_of_two().ilog2());
        }
        if ranks % 2 == 0 {
            let [first, second] = trees.each_ref().map(leaves);
            assert!(first.is_disjoint(&second), "{ranks}");
            // But for the second tree's root, every rank is a leaf of one and inside the other.
            assert_eq!(first.len() + second.len(), ranks as usize);
        }
    }
}

#[test]
fn the_trees_of_eight_and_thirty_two_ranks_are_those_of_nccl() {
    let edges = |tree: &BinaryTree| -> Vec<(u32, Vec<u32>)> {
        let inner = tree.from_root().into_iter();
        let children = |rank| tree.children[rank as usize].iter().flatten().copied();
        inner
            .map(|rank| (rank, children(rank).collect::<Vec<_>>()))
            .filter(|(_, children)| !children.is_empty())
            .collect()
    };
    let [first, second] = BinaryTree::pair(8);
    assert_eq!(
        edges(&first),
        [
            (0, vec![4]),
            (4, vec![2, 6]),
            (2, vec![1, 3]),
            (6, vec![5, 7])
        ]
    );
    assert_eq!(
        edges(&second),
        [
            (7, vec![3]),
            (3, vec![5, 1]),
            (5, vec![6, 4]),
            (1, vec![2, 0])
        ]
    );
    let trees = BinaryTree::pair(32);
    assert_eq!(trees.each_ref().map(|tree| tree.root), [0, 31]);
    for tree in &trees {
        let degree = |degree| {
            let counts = tree
                .children
                .iter()
                .map(|pair| pair.iter().flatten().count());
            counts.filter(|&count| count == degree).count()
        };
        assert_eq!((tree.depth(), degree(1), degree(2)), (5, 1, 15));
    }
}

/// Bytes that a rank sends and receives.
type Traffic = fn(&Blocks, u32, u64, u32) -> (u64, u64);

fn block(blocks: &Blocks, index: u32, ranks: u32) -> u64 {
    let range = blocks.range(index % ranks);
    range.end - range.start
}

#[test]
fn every_rank_sends_and_receives_what_the_algorithm_says() {
    let cases: [((&str, &str), Traffic); 10] = [
        (("all-reduce", "ring"), |blocks, n, size, rank| {
            let block = |index| block(blocks, index, n);
            let sent = 2 * size - block(rank + 1) - block(rank + 2);
            (sent, 2 * size - block(rank) - block(rank + 1))
        }),
        (("reduce-scatter", "ring"), |blocks, n, size, rank| {
            let received = size - block(blocks, rank + n - 1, n);
            (size - block(blocks, rank, n), received)
        }),
        (("all-gather", "ring"), |blocks, n, size, rank| {
            let sent = size - block(blocks, rank + 1, n);
            (sent, size - block(blocks, rank, n))
        }),
        (("all-reduce", "direct"), |blocks, n, size, rank| {
            let own = block(blocks, rank, n);
            let both = size - own + u64::from(n - 1) * own;
            (both, both)
        }),
        (("reduce-scatter", "direct"), |blocks, n, size, rank| {
            let own = block(blocks, rank, n);
            (size - own, u64::from(n - 1) * own)
        }),
        (("all-gather", "direct"), |blocks, n, size, rank| {
            let own = block(blocks, rank, n);
            (u64::from(n - 1) * own, size - own)
        }),
        (("all-to-all", "direct"), |blocks, n, size, rank| {
            let own = block(blocks, rank, n);
            (size - own, u64::from(n - 1) * own)
        }),
        (("all-reduce", "parameter-server"), |_, n, size, rank| {
            let both = if rank == n - 1 {
                u64::from(n - 1) * size
            } else {
                size
            };
            (both, both)
        }),
        (("broadcast", "chain"), |_, n, size, rank| {
            let sent = if rank == n - 1 { 0 } else { size };
            (sent, if rank == 0 { 0 } else { size })
        }),
        (("broadcast", "tree"), |_, n, size, rank| {
            let children = [2 * rank + 1, 2 * rank + 2];
            let children = children.iter().filter(|child| **child < n).count() as u64;
            (children * size, if rank == 0 { 0 } else { size })
        }),
    ];
    for (names, traffic) in cases {
        for ranks in 2..=64 {
            for (size, chunk) in [(1003, 10), (37, 4)] {
                let collective = build(names, size, chunk, ranks);
                let blocks = Blocks::new(size, ranks);
                let expected = (0..ranks).map(|rank| traffic(&blocks, ranks, size, rank));
                let sent = collective.graph.bytes_sent().into_iter();
                let both = sent.zip(collective.bytes_received());
                let both = both.map(|(sent, received)| (sent.as_u64(), received.as_u64()));
                assert!(
                    both.eq(expected),
                    "{names:?} of {ranks} ranks, {size} bytes"
                );
            }
        }
    }
}

#[test]
fn halving_and_doubling_moves_what_a_ring_does_and_the_folded_ranks_once_more() {
    for ranks in 2..=64 {
        for &first_partner in FirstPartner::ALL {
            let size = 64 * 12;
            let mut settings = HalvingDoublingSettings {
                size: Bytes::new(size),
                first_partner,
                ..Default::default()
            };
            settings.cut.chunk = Some(Bytes::new(5));
            let collective = settings.build(ranks).unwrap();
            let core = 1 << ranks.ilog2();
            let expected = |rank| match rank {
                rank if rank >= core => size,
                rank => {
                    let folded = if rank < ranks - core { size } else { 0 };
                    2 * (size - size / u64::from(core)) + folded
                }
            };
            let expected: Vec<Bytes> = (0..ranks).map(expected).map(Bytes::new).collect();
            assert_eq!(collective.graph.bytes_sent(), expected);
            assert_eq!(collective.bytes_received(), expected);
        }
    }
}

#[test]
fn a_rank_of_two_trees_moves_half_of_the_data_over_each_edge_and_way() {
    for ranks in 2..=64 {
        let collective = build(("all-reduce", "double-binary-tree"), 800, 10, ranks);
        let trees = BinaryTree::pair(ranks);
        let edges = |rank: usize| {
            let edges = trees.each_ref().map(|tree| {
                let children = tree.children[rank].iter().flatten().count();
                children + usize::from(tree.parents[rank].is_some())
            });
            (edges[0] + edges[1]) as u64
        };
        let expected: Vec<Bytes> = (0..ranks as usize)
            .map(|rank| Bytes::new(400 * edges(rank)))
            .collect();
        assert_eq!(collective.graph.bytes_sent(), expected);
        assert_eq!(collective.bytes_received(), expected);
        if ranks % 2 == 0 && ranks > 2 {
            assert_eq!(expected.iter().max(), Some(&Bytes::new(1600)));
        }
    }
}

#[test]
fn times_of_32_ranks_are_those_of_the_arithmetic() {
    let bound = |operation: &str, algorithm: &str| {
        let settings = CollectiveSettings::named(operation, algorithm).unwrap();
        let collective = settings.build(32).unwrap();
        collective.lower_bound(Rate::from_gbps(400))
    };
    let tree = bound("all-reduce", "double-binary-tree");
    // 977 chunks: the first tree has one half of a chunk more than the second.
    assert!(
        tree >= Span::from_us(5120) && tree < Span::from_us(5124),
        "{tree}"
    );
    assert_eq!(bound("all-reduce", "ring"), Span::from_us(4960));
    assert_eq!(bound("all-reduce", "halving-doubling"), Span::from_us(4960));
    assert_eq!(bound("all-to-all", "direct"), Span::from_us(2480));
}

#[test]
fn scatter_and_gather_take_the_ideal_times_of_tmdml() {
    for (bytes, ranks, us) in [
        (97_700_000, 8, 136_780),
        (240_000_000, 8, 336_000),
        (527_800_000, 8, 738_920),
        (97_700_000, 128, 155_100),
        (240_000_000, 128, 381_000),
        (527_800_000, 128, 837_900),
    ] {
        let settings = DirectAllReduceSettings {
            size: Bytes::new(bytes),
            ..Default::default()
        };
        let collective = settings.build(ranks).unwrap();
        let bound = collective.lower_bound(Rate::from_gbps(10)).as_us() as i64;
        assert!(
            (bound - us).abs() < 20,
            "{bytes} bytes, {ranks} ranks: {bound} us"
        );
    }
}

/// Messages on the longest chain.
pub(super) fn longest_chain(graph: &Graph) -> u32 {
    let mut chain: Vec<u32> = Vec::new();
    for (id, task) in graph.numbered() {
        let before = graph
            .needs(id)
            .iter()
            .map(|need| chain[need.task().index()]);
        let own = u32::from(matches!(task, Task::Message { .. }));
        chain.push(before.max().unwrap_or(0) + own);
    }
    chain.into_iter().max().unwrap_or(0)
}

#[test]
fn steps_are_the_messages_of_the_longest_chain() {
    for ranks in 2..=40 {
        let size = u64::from(ranks) * 8;
        for mut settings in [every_kind(size, 4), every_variant(size, 4)].concat() {
            // With a window chunks wait for chunks before them.
            let _ = settings.set("window", &Value::Text("auto".into()));
            let graph = settings.build(ranks).unwrap().graph;
            let steps = settings.steps(ranks);
            assert_eq!(longest_chain(&graph), steps, "{}", name(&settings, ranks));
        }
    }
}

/// For each task, whether `id` waits for it, directly or not.
fn ancestors(graph: &Graph, id: TaskId) -> Vec<bool> {
    let mut is_ancestor = vec![false; graph.len()];
    let mut stack = vec![id];
    while let Some(at) = stack.pop() {
        for need in graph.needs(at) {
            if !std::mem::replace(&mut is_ancestor[need.task().index()], true) {
                stack.push(need.task());
            }
        }
    }
    is_ancestor
}

#[test]
fn a_barrier_of_one_rank_waits_for_its_parts_and_a_global_one_for_all() {
    for ranks in 2..=17 {
        for barrier in [Barrier::Rank, Barrier::Global] {
            let settings = DirectAllReduceSettings {
                size: Bytes::new(10 * u64::from(ranks)),
                barrier,
                ..Default::default()
            };
            let collective = settings.build(ranks).unwrap();
            let graph = &collective.graph;
            let with = |effect| -> Vec<TaskId> {
                let ids = graph.numbered().map(|(id, _)| id);
                let moves = &collective.moves;
                ids.filter(|id| moves[id.index()].effect == effect)
                    .collect()
            };
            for gathered in with(Effect::Copy) {
                let ancestors = ancestors(graph, gathered);
                for scattered in with(Effect::Reduce) {
                    let Task::Message { dst, .. } = graph.task(scattered) else {
                        unreachable!()
                    };
                    let is_own = dst == graph.task(gathered).rank();
                    let must = is_own || barrier == Barrier::Global;
                    assert_eq!(ancestors[scattered.index()], must);
                }
            }
        }
    }
}

#[test]
fn all_to_all_goes_to_the_next_rank_first() {
    let mut settings = AllToAllSettings {
        parallelism: Some(3),
        ..Default::default()
    };
    let graph = settings.build(5).unwrap().graph;
    let mut order = vec![Vec::new(); 5];
    for (id, task) in graph.numbered() {
        assert!(graph.needs(id).is_empty());
        if let Task::Message { src, dst, .. } = task {
            order[src.index()].push(dst.0);
        }
    }
    assert_eq!(
        order,
        [
            [1, 2, 3, 4],
            [2, 3, 4, 0],
            [3, 4, 0, 1],
            [4, 0, 1, 2],
            [0, 1, 2, 3]
        ]
    );
    let limit = graph.parallelism.unwrap();
    assert_eq!((limit.from_sender, limit.to_receiver), (3, Some(3)));
    settings.receiver_limit = false;
    let limit = settings.build(5).unwrap().graph.parallelism.unwrap();
    assert_eq!((limit.from_sender, limit.to_receiver), (3, None));
    settings.parallelism = None;
    assert_eq!(settings.build(5).unwrap().graph.parallelism, None);
}

#[test]
fn a_ring_passes_on_the_chunk_that_it_has_just_got() {
    let collective = RingAllReduceSettings::default().build(32).unwrap();
    let graph = &collective.graph;
    // 62 steps of 32 blocks of 4 MB, each 30 chunks and a half.
    assert_eq!(graph.len(), 62 * 32 * 31);
    let step = 32 * 31;
    for (id, task) in graph.numbered() {
        let Task::Message { src, dst, bytes } = task else {
            unreachable!()
        };
        let (number, chunk) = (id.0 % step / 31, id.0 % 31);
        assert_eq!((src.0, dst.0), (number, (number + 1) % 32));
        let is_last = chunk == 30;
        assert_eq!(bytes.as_u64(), if is_last { 67_840 } else { 131_072 });
        let before = (id.0 >= step).then(|| {
            let source = (number + 31) % 32;
            TaskId((id.0 / step - 1) * step + source * 31 + chunk)
        });
        let needs = graph.needs(id).iter().map(|need| need.task());
        assert!(needs.eq(before));
    }
}

#[test]
fn a_window_keeps_as_many_messages_of_an_edge_under_way() {
    let mut settings = ChainBroadcastSettings {
        size: Bytes::new(10),
        ..Default::default()
    };
    settings.pipelining.chunk = Bytes::new(1);
    settings.pipelining.window = Some(3);
    let graph = settings.build(3).unwrap().graph;
    for (id, task) in graph.numbered() {
        let needs: Vec<u32> = graph.needs(id).iter().map(|need| need.task().0).collect();
        let mut expected = Vec::new();
        if task.rank().0 == 1 {
            expected.push(id.0 - 1);
        }
        // The third message back of the same edge.
        expected.extend(id.0.checked_sub(6));
        assert_eq!(needs, expected);
    }
}

/// Both trees of 32 ranks have 8 edges in common. On a common edge, chunks of one tree must not wait for chunks of the other. With one
/// chunk under way on each edge, the last chunk is down once all earlier chunks have crossed an edge and it has gone up and down.
#[test]
fn a_window_is_for_an_edge_of_one_tree() {
    let mut settings = DoubleBinaryTreeSettings {
        size: Bytes::new(200),
        ..Default::default()
    };
    settings.pipelining.chunk = Bytes::new(1);
    settings.pipelining.window = Some(1);
    for ranks in [2, 3, 6, 32, 33] {
        let graph = settings.build(ranks).unwrap().graph;
        let mut steps: Vec<u32> = Vec::new();
        for (id, _) in graph.numbered() {
            let before = graph
                .needs(id)
                .iter()
                .map(|need| steps[need.task().index()]);
            steps.push(1 + before.max().unwrap_or(0));
        }
        let (chunks_of_a_tree, most) = (100, steps.iter().max());
        assert_eq!(
            most,
            Some(&(chunks_of_a_tree - 1 + settings.steps(ranks))),
            "{ranks} ranks"
        );
    }
}

#[test]
fn what_is_added_up_is_passed_on_when_the_sum_is_formed() {
    let mut settings = RingAllReduceSettings {
        size: Bytes::new(2000),
        ..Default::default()
    };
    settings.reduction.reduction_rate = Some(Rate::from_gbps(8));
    let collective = settings.build(2).unwrap();
    let graph = &collective.graph;
    let computes = |id: TaskId| match graph.task(id) {
        Task::Compute { rank, span, .. } => Some((rank.0, span)),
        Task::Message { .. } => None,
    };
    // Two messages that add, each with its computation, and two that copy.
    assert_eq!(computes(TaskId(1)), Some((1, Span::from_us(1))));
    assert_eq!(computes(TaskId(3)), Some((0, Span::from_us(1))));
    let needs = [4, 5].map(|id| graph.needs(TaskId(id))[0].task().0);
    assert_eq!((graph.len(), needs), (6, [3, 1]));
}

#[test]
fn moves_and_messages_stay_small() {
    assert_eq!(size_of::<Move>(), 16);
    assert_eq!(size_of::<Task>(), 24);
}

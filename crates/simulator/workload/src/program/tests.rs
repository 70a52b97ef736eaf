//! Matching of receives with sends, dependencies of operations, and each program that is refused.

use super::matching::{NONE, Numbers, order, partners};
use super::*;
use crate::CollectiveSettings;
use crate::graph::{GraphCall, Parallelism, Task, TaskDependency};
use clearway_units::{Purpose, RandomStream, Value};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const KB: Bytes = Bytes::new(1000);

fn calc(us: u64) -> Operation {
    Operation::Compute {
        unit: 0,
        span: Span::from_us(us),
    }
}

fn send(to: u32, tag: u32) -> Operation {
    let (to, bytes) = (Rank(to), KB);
    Operation::Send { to, bytes, tag }
}

fn receive(from: impl Into<Option<u32>>, tag: impl Into<Option<u32>>) -> Operation {
    Operation::Receive {
        from: from.into().map(Rank),
        bytes: KB,
        tag: tag.into(),
    }
}

fn sized(operation: Operation, new: u64) -> Operation {
    let new = Bytes::new(new);
    match operation {
        Operation::Send { to, tag, .. } => Operation::Send {
            to,
            bytes: new,
            tag,
        },
        Operation::Receive { from, tag, .. } => Operation::Receive {
            from,
            bytes: new,
            tag,
        },
        Operation::Collective { kind, group, .. } => Operation::Collective {
            kind,
            bytes: new,
            group,
        },
        Operation::Compute { .. } => operation,
    }
}

fn reduce(group: u32) -> Operation {
    Operation::Collective {
        kind: CollectiveKind::AllReduce,
        bytes: KB,
        group,
    }
}

const NO_WAITS: [(u32, OperationDependency); 0] = [];

fn rank<const N: usize, const W: usize>(
    operations: [Operation; N],
    waits: [(u32, OperationDependency); W],
) -> RankProgram {
    RankProgram::new(operations.to_vec(), waits.to_vec())
}

fn program(ranks: impl Into<Vec<RankProgram>>) -> JobProgram {
    JobProgram {
        ranks: ranks.into(),
        groups: Vec::new(),
    }
}

fn id(rank: u32, index: u32) -> OperationId {
    OperationId {
        rank: Rank(rank),
        index,
    }
}

/// Every rank sends to every other one, and is done when it has all.
fn to_all(
    call: &CollectiveCall<'_>,
    graph: &mut Graph,
) -> Result<Vec<Vec<TaskId>>, ExpansionFault> {
    let mut ends = vec![Vec::new(); call.group.len()];
    for (&src, &start) in call.group.iter().zip(call.starts) {
        for (&dst, ends) in call.group.iter().zip(&mut ends) {
            if src != dst {
                ends.push(graph.message((src, dst), call.bytes, [start]));
            }
        }
    }
    Ok(ends)
}

fn graph(program: &JobProgram) -> Graph {
    let graph = program.graph(&mut to_all).unwrap();
    graph.check().unwrap();
    graph
}

fn refused(program: &JobProgram) -> ProgramError {
    let error = program.graph(&mut to_all).unwrap_err();
    let (text, fix) = (error.to_string(), error.fix());
    assert!(text.contains(&error.operation().to_string()) && !fix.is_empty());
    error
}

/// The messages of a graph with their numbers, sorted by sender, receiver and order.
fn messages(graph: &Graph) -> Vec<(u32, u32, TaskId)> {
    let messages = graph.numbered().filter_map(|(id, task)| match task {
        Task::Message { src, dst, .. } => Some((src.0, dst.0, id)),
        Task::Compute { .. } => None,
    });
    let mut messages: Vec<_> = messages.collect();
    messages.sort();
    messages
}

/// Spans of the computations that wait for `message` at its receiver, in microseconds. They tell which receive took it.
fn followers(graph: &Graph, message: TaskId) -> Vec<u64> {
    let successors = graph.successors();
    let mut spans = Vec::new();
    let mut next = vec![message];
    while let Some(task) = next.pop() {
        for &(follower, _) in successors.get(task) {
            match graph.task(follower) {
                Task::Compute { span, .. } if span.is_zero() => next.push(follower),
                Task::Compute { span, .. } => spans.push(span.as_ps() / 1_000_000),
                Task::Message { .. } => {}
            }
        }
    }
    spans.sort_unstable();
    spans
}

/// A rank whose receives are each followed by a computation of 1, 2, … µs.
fn receiver<const N: usize>(receives: [Operation; N]) -> RankProgram {
    let mut operations = receives.to_vec();
    operations.extend((1..=N as u64).map(calc));
    let waits = (0..N as u32).map(|index| (N as u32 + index, OperationDependency::over(index)));
    RankProgram::new(operations, waits.collect())
}

#[test]
fn a_send_and_its_receive_are_one_message() {
    let program = program([
        rank(
            [calc(1), send(1, 7), calc(2)],
            [
                (1, OperationDependency::over(0)),
                (2, OperationDependency::over(1)),
            ],
        ),
        rank(
            [receive(0, 7), calc(3)],
            [(1, OperationDependency::over(0))],
        ),
    ]);
    let graph = graph(&program);
    assert_eq!(graph.len(), 4);
    let &[(0, 1, message)] = messages(&graph).as_slice() else {
        panic!("one message");
    };
    let needs: Vec<&[TaskDependency]> = graph.numbered().map(|(id, _)| graph.needs(id)).collect();
    let before = TaskId(0);
    assert_eq!(
        needs,
        [
            &[][..],
            &[TaskDependency::over(before)],
            &[TaskDependency::over(message)],
            &[TaskDependency::over(message)]
        ]
    );
}

#[test]
fn a_receive_that_waits_is_a_join_and_its_message_does_not_wait() {
    let program = program([
        rank([send(1, 0)], NO_WAITS),
        rank(
            [calc(1), receive(0, 0), calc(2), send(2, 0)],
            [
                (1, OperationDependency::over(0)),
                (2, OperationDependency::over(1)),
                (3, OperationDependency::begun(1)),
            ],
        ),
        rank([receive(1, 0)], NO_WAITS),
    ]);
    let graph = graph(&program);
    let [(0, 1, first), (1, 2, second)] = messages(&graph)[..] else {
        panic!("two messages");
    };
    assert!(graph.needs(first).is_empty());
    // A task that waits for the beginning of the receive waits for the dependencies of the receive.
    let &[begun] = graph.needs(second) else {
        panic!("one need");
    };
    let calculated = TaskId(1);
    assert_eq!(
        graph.task(calculated),
        Task::Compute {
            rank: Rank(1),
            unit: 0,
            span: Span::from_us(1)
        }
    );
    assert_eq!(
        graph.needs(begun.task()),
        [TaskDependency::over(calculated)]
    );
    let (last, _) = graph
        .numbered()
        .find(|(_, task)| matches!(task, Task::Compute { span, .. } if *span == Span::from_us(2)))
        .unwrap();
    let &[join] = graph.needs(last) else {
        panic!("one need");
    };
    assert_eq!(
        graph.needs(join.task()),
        [begun, TaskDependency::over(first)]
    );
}

#[test]
fn a_request_may_follow_the_posting_of_the_receive_for_its_answer() {
    let program = program([
        rank(
            [calc(1), receive(1, 0), send(1, 0)],
            [
                (1, OperationDependency::over(0)),
                (2, OperationDependency::begun(1)),
            ],
        ),
        rank(
            [receive(0, 0), send(0, 0)],
            [(1, OperationDependency::over(0))],
        ),
    ]);
    assert_eq!(messages(&graph(&program)).len(), 2);
}

#[test]
fn what_waits_for_the_beginning_of_a_send_or_computation_waits_for_its_task() {
    let program = program([
        rank(
            [send(1, 0), calc(1), calc(2)],
            [
                (1, OperationDependency::begun(0)),
                (2, OperationDependency::begun(1)),
            ],
        ),
        rank(
            [receive(0, 0), calc(3)],
            [(1, OperationDependency::begun(0))],
        ),
    ]);
    let graph = graph(&program);
    assert_eq!(graph.needs(TaskId(1)), [TaskDependency::begun(TaskId(0))]);
    assert_eq!(graph.needs(TaskId(2)), [TaskDependency::begun(TaskId(1))]);
    // A receive that waits for nothing has begun from the start.
    assert!(graph.needs(TaskId(3)).is_empty());
}

#[test]
fn messages_of_one_sender_and_tag_keep_their_order() {
    let sender = rank([send(1, 5), send(1, 6), send(1, 5)], NO_WAITS);
    let program = program([
        sender,
        receiver([receive(0, 5), receive(0, 5), receive(0, 6)]),
    ]);
    let graph = graph(&program);
    let followed: Vec<_> = messages(&graph)
        .iter()
        .map(|m| followers(&graph, m.2))
        .collect();
    assert_eq!(followed, [[1], [3], [2]]);
}

#[test]
fn the_order_is_that_of_the_waits_where_they_run_against_the_list() {
    // The second send and the second receive come first.
    let sender = rank(
        [send(1, 0), send(1, 0)],
        [(0, OperationDependency::over(1))],
    );
    let receiver = rank(
        [receive(0, 0), receive(0, 0), calc(1), calc(2)],
        [
            (0, OperationDependency::over(1)),
            (2, OperationDependency::over(0)),
            (3, OperationDependency::over(1)),
        ],
    );
    let graph = graph(&program([sender, receiver]));
    let [first, second] = [0, 1].map(|index| messages(&graph)[index].2);
    assert_eq!(graph.needs(second), [TaskDependency::over(first)]);
    assert_eq!(
        (followers(&graph, first), followers(&graph, second)),
        (vec![1, 2], vec![1])
    );
}

#[test]
fn any_tag_takes_the_first_message_of_its_sender() {
    let sender = rank([send(1, 5), send(1, 6), send(1, 7)], NO_WAITS);
    let program = program([
        sender,
        receiver([receive(0, 6), receive(0, None), receive(0, None)]),
    ]);
    let graph = graph(&program);
    let followed: Vec<_> = messages(&graph)
        .iter()
        .map(|m| followers(&graph, m.2))
        .collect();
    assert_eq!(followed, [[2], [1], [3]]);
}

#[test]
fn any_sender_is_taken_if_only_one_can_come() {
    let senders = || {
        [
            rank([send(2, 5), send(2, 6)], NO_WAITS),
            rank([send(2, 5)], NO_WAITS),
        ]
    };
    let with = |receiver| program([&senders()[..], &[receiver]].concat());
    let taken = |program: &JobProgram| -> Vec<_> {
        let graph = graph(program);
        messages(&graph)
            .iter()
            .map(|m| followers(&graph, m.2))
            .collect()
    };
    let tagged = with(receiver([
        receive(0, 5),
        receive(None, 5),
        receive(None, 6),
    ]));
    assert_eq!(taken(&tagged), [[1], [3], [2]]);
    let untagged = with(receiver([
        receive(1, None),
        receive(None, None),
        receive(None, 6),
    ]));
    assert_eq!(taken(&untagged), [[2], [3], [1]]);
    for (receives, index) in [
        ([receive(None, 5), receive(0, None), receive(0, None)], 0),
        ([receive(0, 6), receive(None, None), receive(None, 5)], 1),
    ] {
        let error = refused(&with(receiver(receives)));
        let (receive, senders) = (id(2, index), [Rank(0), Rank(1)]);
        assert_eq!(error, ProgramError::Ambiguous { receive, senders });
    }
}

#[test]
fn a_message_to_its_own_rank_takes_no_time() {
    let program = program([rank(
        [send(0, 1), receive(0, 1), calc(1), calc(2)],
        [
            (2, OperationDependency::over(1)),
            (3, OperationDependency::begun(0)),
        ],
    )]);
    let graph = graph(&program);
    assert!(messages(&graph).is_empty());
    assert_eq!(
        graph.needs(TaskId(1)).len() + graph.needs(TaskId(2)).len(),
        2
    );
}

#[test]
fn a_message_of_nothing_carries_one_byte() {
    let program = program([
        rank([sized(send(1, 0), 0)], NO_WAITS),
        rank([sized(receive(0, 0), 0)], NO_WAITS),
    ]);
    assert_eq!(graph(&program).bytes_sent(), [Bytes::new(1), Bytes::ZERO]);
}

#[test]
fn sends_and_receives_that_do_not_fit_are_refused() {
    let both = |send, receive| program([rank([send], NO_WAITS), rank([receive], NO_WAITS)]);
    let nobody = |from: Option<u32>, tag| ProgramError::NoSend {
        receive: id(1, 0),
        from: from.map(Rank),
        tag,
    };
    assert_eq!(
        refused(&both(send(1, 4), receive(0, 5))),
        nobody(Some(0), Some(5))
    );
    assert_eq!(
        refused(&both(send(1, 4), receive(None, 5))),
        nobody(None, Some(5))
    );
    assert_eq!(
        refused(&both(calc(1), receive(None, None))),
        nobody(None, None)
    );
    assert_eq!(
        refused(&both(calc(1), receive(0, None))),
        nobody(Some(0), None)
    );
    assert_eq!(
        refused(&both(send(1, 4), calc(1))),
        ProgramError::NoReceive {
            send: id(0, 0),
            to: Rank(1),
            tag: 4
        }
    );
    assert_eq!(
        refused(&both(sized(send(1, 4), 1001), receive(0, 4))),
        ProgramError::TooSmall {
            receive: id(1, 0),
            takes: KB,
            send: id(0, 0),
            brings: Bytes::new(1001)
        }
    );
    let (missing, ranks) = (Rank(2), 2);
    for (program, operation) in [
        (both(send(2, 4), calc(1)), id(0, 0)),
        (both(calc(1), receive(2, 4)), id(1, 0)),
    ] {
        let error = ProgramError::NoSuchRank {
            operation,
            rank: missing,
            ranks,
        };
        assert_eq!(refused(&program), error);
    }
    let huge = sized(send(1, 0), u64::MAX);
    let receives = [sized(receive(0, 0), u64::MAX), receive(0, 0)];
    let too_much = program([rank([huge, send(1, 0)], NO_WAITS), rank(receives, NO_WAITS)]);
    assert_eq!(
        refused(&too_much),
        ProgramError::TooManyBytes { send: id(0, 1) }
    );
}

#[test]
fn circles_are_named_across_ranks() {
    let crossed = program([
        rank(
            [receive(1, 0), send(1, 0)],
            [(1, OperationDependency::over(0))],
        ),
        rank(
            [receive(0, 0), send(0, 0), calc(1)],
            [
                (1, OperationDependency::over(0)),
                (2, OperationDependency::over(1)),
            ],
        ),
    ]);
    let operations = vec![id(0, 0), id(1, 1), id(1, 0), id(0, 1)];
    assert_eq!(refused(&crossed), ProgramError::Circle { operations });
    let alone = program([rank(
        [calc(1), calc(2)],
        [(1, OperationDependency::begun(1))],
    )]);
    let operations = vec![id(0, 1)];
    assert_eq!(refused(&alone), ProgramError::Circle { operations });
    let mut skewed = program([
        rank([reduce(0), reduce(1)], [(1, OperationDependency::over(0))]),
        rank([reduce(1), reduce(0)], [(1, OperationDependency::over(0))]),
    ]);
    skewed.groups = vec![vec![Rank(0), Rank(1)], vec![Rank(0), Rank(1)]];
    let operations = vec![id(0, 0), id(1, 1), id(1, 0), id(0, 1)];
    assert_eq!(refused(&skewed), ProgramError::Circle { operations });
}

#[test]
fn calls_meet_in_the_order_of_each_rank() {
    let of_rank = |us| {
        rank(
            [calc(us), reduce(0), calc(10 * us)],
            [
                (1, OperationDependency::over(0)),
                (2, OperationDependency::over(1)),
            ],
        )
    };
    let mut program = program([of_rank(1), of_rank(2), of_rank(3)]);
    program.groups = vec![vec![Rank(2), Rank(0)], vec![Rank(1)]];
    program.ranks[1] = rank(
        [calc(2), reduce(1), calc(20)],
        [
            (1, OperationDependency::over(0)),
            (2, OperationDependency::over(1)),
        ],
    );
    let mut calls = Vec::new();
    let graph = program
        .graph(&mut |call, graph| {
            calls.push((call.kind, call.bytes, call.group.to_vec()));
            to_all(call, graph)
        })
        .unwrap();
    graph.check().unwrap();
    // A group of one sends nothing.
    let group = vec![Rank(2), Rank(0)];
    assert_eq!(calls, [(CollectiveKind::AllReduce, KB, group)]);
    let [(0, 2, there), (2, 0, back)] = messages(&graph)[..] else {
        panic!("two messages");
    };
    assert_eq!(
        (followers(&graph, there), followers(&graph, back)),
        (vec![30], vec![10])
    );

    let collectives = program.collectives().unwrap();
    let [pair, alone] = &collectives[..] else {
        panic!("{collectives:?}");
    };
    assert_eq!((pair.kind, pair.bytes), (CollectiveKind::AllReduce, KB));
    assert_eq!((pair.group, &pair.calls[..]), (0, &[1, 1][..]));
    assert_eq!((alone.group, &alone.calls[..]), (1, &[1][..]));
    assert_eq!((pair.is_silent(), alone.is_silent()), (false, true));
}

#[test]
fn collectives_of_a_group_keep_the_order_of_their_calls() {
    // Each rank calls both groups' collectives; the second rank has a computation before them.
    let mut program = program([
        rank(
            [reduce(1), sized(reduce(0), 7), sized(reduce(0), 0)],
            NO_WAITS,
        ),
        rank(
            [calc(1), sized(reduce(0), 7), reduce(1), sized(reduce(0), 0)],
            NO_WAITS,
        ),
    ]);
    program.groups = vec![vec![Rank(0), Rank(1)], vec![Rank(1), Rank(0)]];
    let found = program.collectives().unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|it| (it.group, it.bytes.as_u64(), &it.calls[..], it.is_silent()))
        .collect();
    assert_eq!(
        found,
        [
            (0, 7, &[1, 1][..], false),
            (0, 0, &[2, 3][..], true),
            (1, KB.as_u64(), &[2, 0][..], false)
        ]
    );
    program.ranks[0] = rank([reduce(1)], NO_WAITS);
    assert!(program.collectives().is_err());
}

#[test]
fn a_call_of_nothing_waits_for_nobody_but_a_barrier_does() {
    let with = |operation| {
        let mut program = program([rank([operation], NO_WAITS), rank([operation], NO_WAITS)]);
        program.groups = vec![vec![Rank(0), Rank(1)]];
        let mut calls = 0;
        let mut expand = |call: &CollectiveCall<'_>, _: &mut Graph| {
            calls += 1;
            Ok(vec![Vec::new(); call.group.len()])
        };
        program.graph(&mut expand).unwrap().check().unwrap();
        calls
    };
    assert_eq!(with(sized(reduce(0), 0)), 0);
    let (kind, bytes, group) = (CollectiveKind::Barrier, Bytes::ZERO, 0);
    assert_eq!(with(Operation::Collective { kind, bytes, group }), 1);
}

#[test]
fn calls_that_do_not_fit_are_refused() {
    let both = |first: &[Operation], second: &[Operation]| {
        let rank = |operations: &[Operation]| RankProgram::new(operations.to_vec(), Vec::new());
        let mut program = program([rank(first), rank(second)]);
        program.groups = vec![vec![Rank(0), Rank(1)], vec![Rank(1)]];
        program
    };
    let no_call = |call, missing| ProgramError::NoCall {
        call,
        missing: Rank(missing),
    };
    assert_eq!(
        refused(&both(&[reduce(0), reduce(0)], &[reduce(0)])),
        no_call(id(0, 1), 1)
    );
    assert_eq!(refused(&both(&[], &[reduce(0)])), no_call(id(1, 0), 0));
    let call = id(0, 0);
    assert_eq!(
        refused(&both(&[reduce(1)], &[])),
        ProgramError::NotInGroup { call }
    );
    assert_eq!(
        refused(&both(&[reduce(7)], &[])),
        ProgramError::NotInGroup { call }
    );
    let calls = [
        "all-reduce of 1000 B".to_owned(),
        "all-reduce of 7 B".to_owned(),
    ];
    let (first, other) = (id(0, 0), id(1, 0));
    assert_eq!(
        refused(&both(&[reduce(0)], &[sized(reduce(0), 7)])),
        ProgramError::Differ {
            first,
            other,
            calls
        }
    );
    let scatter = |bytes| Operation::Collective {
        kind: CollectiveKind::AllToAll,
        bytes: Bytes::new(bytes),
        group: 0,
    };
    let uneven = refused(&both(&[scatter(1000)], &[scatter(7)]));
    assert_eq!(
        uneven.to_string(),
        "operation 0 of rank 1 brings 7 B into an all-to-all, but its partner, operation 0 of rank 0, 1000 B: \
         an all-to-all of different sizes is not supported\n  \
         fix: give all ranks of the call one size, such as the mean, or write it as sends and receives"
    );
    let fault = ExpansionFault {
        reason: "no algorithm".into(),
        fix: "choose one".into(),
    };
    let expansion = both(&[reduce(0)], &[reduce(0)]).graph(&mut |_, _| Err(fault.clone()));
    let error = expansion.unwrap_err();
    assert_eq!(error.fix(), "choose one");
    assert_eq!(error, ProgramError::Expansion { call, fault });
    assert!(
        both(&[reduce(0)], &[reduce(0)])
            .graph(&mut |_, _| Ok(Vec::new()))
            .is_err()
    );
}

/// All direct and indirect dependencies of `task` at `rank`.
fn before(graph: &Graph, task: TaskId, rank: Rank) -> Vec<bool> {
    let mut seen = vec![false; graph.len()];
    let mut next = vec![task];
    while let Some(task) = next.pop() {
        for need in graph.needs(task).iter().filter(|need| !need.is_begun()) {
            let other = need.task();
            if !std::mem::replace(&mut seen[other.index()], true)
                && graph.task(other).rank() == rank
            {
                next.push(other);
            }
        }
    }
    seen
}

#[test]
fn every_collective_fits_between_what_comes_before_and_after() {
    for kind in CollectiveSettings::KINDS {
        for ranks in [2, 4, 5, 8] {
            let mut settings = CollectiveSettings::named(kind.operation, kind.algorithm).unwrap();
            settings.set("size", &Value::Text("1KB".into())).unwrap();
            let Ok(mut part) = settings.build(ranks) else {
                continue;
            };
            part.graph.parallelism = None;
            assert_embeds(&part.graph);
        }
    }
}

/// Two ranks more than `part` has, of which all but the first two compute, call the collective and compute.
fn assert_embeds(part: &Graph) {
    let ranks = part.ranks() + 2;
    let of_rank = |own| match own {
        0 | 1 => RankProgram::default(),
        _ => rank(
            [calc(1), reduce(0), calc(2)],
            [
                (1, OperationDependency::over(0)),
                (2, OperationDependency::over(1)),
            ],
        ),
    };
    let program = JobProgram {
        ranks: (0..ranks).map(of_rank).collect(),
        groups: vec![(2..ranks).rev().map(Rank).collect()],
    };
    let graph = program
        .graph(&mut |call, graph| call.embed(part, graph))
        .unwrap();
    graph.check().unwrap();
    assert_eq!(messages(&graph).len(), messages(part).len());
    let computes = |us| {
        let span = Span::from_us(us);
        let tasks = graph.numbered();
        let found = tasks
            .filter(move |(_, task)| matches!(task, Task::Compute { span: s, .. } if *s == span));
        found
            .map(|(id, task)| (id, task.rank()))
            .collect::<Vec<_>>()
    };
    for (&(before_call, rank), &(after_call, same)) in computes(1).iter().zip(&computes(2)) {
        assert_eq!(rank, same);
        let seen = before(&graph, after_call, rank);
        for (id, task) in graph
            .numbered()
            .filter(|(id, _)| *id != before_call && *id != after_call)
        {
            if task.is_seen_by(rank) {
                assert!(seen[id.index()], "{task:?} is over before the call");
            }
            if task.rank() == rank {
                assert!(
                    before(&graph, id, rank)[before_call.index()],
                    "{task:?} begins with it"
                );
            }
        }
    }
}

#[test]
fn equal_calls_are_of_one_kind() {
    let ring = |size: &str| {
        let mut settings = CollectiveSettings::named("all-reduce", "ring").unwrap();
        settings.set("size", &Value::Text(size.into())).unwrap();
        settings.build(2).unwrap().graph
    };
    let calls = |group| {
        let after_last = |n| (n, OperationDependency::over(n - 1));
        rank(
            [reduce(group), reduce(group), reduce(group)],
            [after_last(1), after_last(2)],
        )
    };
    let program = JobProgram {
        ranks: vec![calls(0), calls(0), calls(1), calls(1)],
        groups: vec![vec![Rank(0), Rank(1)], vec![Rank(2), Rank(3)]],
    };
    let mut met: BTreeMap<Rank, u32> = BTreeMap::new();
    let mut graph = program
        .graph(&mut |call, graph| {
            // The last call of each group is larger.
            let number = met.entry(call.group[0]).or_default();
            *number += 1;
            call.embed(&ring(if *number > 2 { "2KB" } else { "1KB" }), graph)
        })
        .unwrap();
    let kinds = |graph: &Graph| -> Vec<(u32, Vec<Task>)> {
        let tasks = |call: &GraphCall| (call.first.0..call.first.0 + call.tasks).map(TaskId);
        let calls = graph.calls().iter();
        let kind = |call: &GraphCall| (call.kind, tasks(call).map(|id| graph.task(id)).collect());
        calls.map(kind).collect()
    };
    let own = kinds(&graph);
    assert_eq!(own.len(), 6);
    for (kind, tasks) in &own {
        for (other, others) in &own {
            assert_eq!(kind == other, tasks == others);
        }
    }
    let different: BTreeSet<u32> = own.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(different, BTreeSet::from_iter(0..4));
    // Twice the same graph has the same kinds twice.
    let once = graph.clone();
    graph.append(&once, &[]);
    assert_eq!(kinds(&graph), [&own[..], &own[..]].concat());
}

#[test]
fn what_is_no_graph_of_the_call_is_not_embedded() {
    let operations = || rank([reduce(0)], NO_WAITS);
    let mut program = program([operations(), operations()]);
    program.groups = vec![vec![Rank(0), Rank(1)]];
    let mut limited = Graph::new(2);
    limited.parallelism = Some(Parallelism {
        from_sender: 1,
        to_receiver: None,
    });
    for part in [Graph::new(3), limited] {
        let error = program.graph(&mut |call, graph| call.embed(&part, graph));
        assert!(matches!(error, Err(ProgramError::Expansion { .. })));
    }
}

/// Pairs of sends and receives in a run of MPI: messages of each sender come in their order, receives are begun in theirs, and of a message
/// and its receive the first waits for the other one. The senders are interleaved at random.
fn partners_of_a_run(program: &JobProgram, seed: u64) -> Vec<(u32, u32)> {
    let mut random = RandomStream::new(seed, Purpose::Test, 8);
    let numbers = Numbers::from_program(program).unwrap();
    let mut next = vec![0; program.ranks.len()];
    let (mut messages, mut receives) = (Vec::new(), Vec::new());
    let mut found = Vec::new();
    let fits = |from: Option<Rank>, tag: Option<u32>, sent: (Rank, u32)| {
        from.is_none_or(|from| from == sent.0) && tag.is_none_or(|tag| tag == sent.1)
    };
    loop {
        let unfinished =
            |rank: &u32| next[*rank as usize] < program.ranks[*rank as usize].operations().len();
        let ranks: Vec<u32> = (0..next.len() as u32).filter(unfinished).collect();
        if ranks.is_empty() {
            return found;
        }
        let rank = ranks[random.below(ranks.len() as u32) as usize];
        let operation = id(rank, next[rank as usize] as u32);
        next[rank as usize] += 1;
        let number = numbers.number(operation);
        match program.operation(operation) {
            Operation::Send { to, tag, .. } => {
                let taker = receives.iter().position(|&(at, from, wanted, _)| {
                    at == to && fits(from, wanted, (Rank(rank), tag))
                });
                match taker {
                    Some(place) => found.push((receives.remove(place).3, number)),
                    None => messages.push((to, Rank(rank), tag, number)),
                }
            }
            Operation::Receive { from, tag, .. } => {
                let message = messages.iter().position(|&(to, sender, sent, _)| {
                    to == Rank(rank) && fits(from, tag, (sender, sent))
                });
                match message {
                    Some(place) => found.push((number, messages.remove(place).3)),
                    None => receives.push((Rank(rank), from, tag, number)),
                }
            }
            Operation::Compute { .. } | Operation::Collective { .. } => {}
        }
    }
}

/// Two or three ranks that send to rank 0, which receives as much in some way.
fn any_exchange() -> impl Strategy<Value = JobProgram> {
    let message = (1u32..4, 0u32..3);
    proptest::collection::vec((message, 0u32..8, any::<bool>()), 0..8).prop_map(|messages| {
        let mut ranks = vec![Vec::new(); 4];
        let mut receives: Vec<_> = messages.clone();
        receives.sort_by_key(|&(_, place, _)| place);
        for ((from, tag), place, is_exact) in receives {
            let any_tag = !is_exact && place % 2 == 0;
            let any_rank = !is_exact && place % 3 == 0;
            ranks[0].push(receive(
                (!any_rank).then_some(from),
                (!any_tag).then_some(tag),
            ));
        }
        for ((from, tag), ..) in messages {
            ranks[from as usize].push(send(0, tag));
        }
        program(
            ranks
                .into_iter()
                .map(|operations| RankProgram::new(operations, Vec::new()))
                .collect::<Vec<_>>(),
        )
    })
}

proptest! {
    #[test]
    fn every_run_matches_as_found_before(program in any_exchange(), seed in any::<u64>()) {
        let numbers = Numbers::from_program(&program).unwrap();
        let orders: Vec<Vec<u32>> = program.ranks.iter().map(order).collect();
        if let Ok(partner) = partners(&program, &numbers, &orders) {
            let found = partners_of_a_run(&program, seed);
            prop_assert_eq!(2 * found.len(), partner.iter().filter(|&&p| p != NONE).count());
            for (receive, send) in found {
                prop_assert_eq!(partner[receive as usize], send);
                prop_assert_eq!(partner[send as usize], receive);
            }
        }
    }
}

#[test]
fn receives_that_take_more_than_comes_are_found() {
    let longer = |takes: [u64; 2]| {
        let receive = |bytes: u64| Operation::Receive {
            from: Some(Rank(0)),
            bytes: Bytes::new(bytes),
            tag: Some(7),
        };
        let brings = |bytes: u64| Operation::Send {
            to: Rank(1),
            bytes: Bytes::new(bytes),
            tag: 7,
        };
        let program = program([
            rank([brings(5), brings(6)], []),
            rank(takes.map(receive), []),
        ]);
        program.longer_receives()
    };
    assert_eq!(longer([5, 6]), None);
    let found = longer([9, 9]).unwrap();
    assert_eq!(found.count, 2);
    let name = |id: OperationId| format!("{}.{}", id.rank, id.index);
    assert_eq!(
        found.message(&name),
        "1.0 takes 9 B, but the message that comes to it, 0.0, has 5 B, and is all that is waited for (and 1 more like it)"
    );
    assert_eq!(longer([5, 7]).unwrap().count, 1);
}

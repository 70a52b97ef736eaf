//! Graphs that can run, and each way in which one cannot.

use super::*;

const KB: Bytes = Bytes::new(1000);

fn ranks(src: u32, dst: u32) -> (Rank, Rank) {
    (Rank(src), Rank(dst))
}

#[test]
fn needs_and_successors_are_the_same_edges() {
    let mut graph = Graph::new(3);
    let first = graph.message(ranks(0, 1), KB, []);
    let second = graph.compute(Rank(1), Span::from_us(1), [first]);
    let third = graph.message(ranks(1, 2), KB, [first, second]);
    let begun = graph.add(
        graph.task(third),
        [TaskDependency::begun(third), TaskDependency::over(second)],
    );
    graph.check().unwrap();
    assert_eq!(
        graph.needs(third),
        [TaskDependency::over(first), TaskDependency::over(second)]
    );
    assert_eq!(
        graph.needs(begun),
        [TaskDependency::begun(third), TaskDependency::over(second)]
    );
    assert!(graph.needs(first).is_empty());
    let successors = graph.successors();
    assert_eq!(successors.get(first), [(second, false), (third, false)]);
    assert_eq!(successors.get(second), [(third, false), (begun, false)]);
    assert_eq!(successors.get(third), [(begun, true)]);
    assert!(successors.get(begun).is_empty());
    assert_eq!(graph.bytes_sent(), [KB, KB + KB, Bytes::ZERO]);
}

#[test]
fn a_message_is_seen_at_both_ends_and_its_beginning_at_one() {
    let mut graph = Graph::new(3);
    let message = graph.message(ranks(0, 1), KB, []);
    graph.compute(Rank(0), Span::ZERO, [message]);
    graph.compute(Rank(1), Span::ZERO, [message]);
    graph.check().unwrap();
    let elsewhere = |rank, need| {
        let mut graph = graph.clone();
        let compute = Task::Compute {
            rank: Rank(rank),
            unit: 0,
            span: Span::ZERO,
        };
        let task = graph.add(compute, [need]);
        let needs = message;
        assert_eq!(graph.check(), Err(GraphError::Elsewhere { task, needs }));
    };
    elsewhere(2, TaskDependency::over(message));
    elsewhere(1, TaskDependency::begun(message));
}

#[test]
fn what_cannot_run_is_refused() {
    let refused = |build: fn(&mut Graph) -> GraphError| {
        let mut graph = Graph::new(2);
        let error = build(&mut graph);
        assert_eq!(graph.check(), Err(error));
    };
    refused(|graph| GraphError::NoSuchRank {
        task: graph.message(ranks(0, 2), KB, []),
        rank: Rank(2),
        ranks: 2,
    });
    refused(|graph| GraphError::ToItself {
        task: graph.message(ranks(1, 1), KB, []),
        rank: Rank(1),
    });
    refused(|graph| GraphError::NoBytes {
        task: graph.message(ranks(0, 1), Bytes::ZERO, []),
    });
    refused(|graph| {
        graph.message(ranks(0, 1), Bytes::new(u64::MAX), []);
        let task = graph.message(ranks(0, 1), Bytes::new(1), []);
        GraphError::TooManyBytes { task }
    });
    refused(|graph| GraphError::NoSuchTask {
        task: graph.message(ranks(0, 1), KB, [TaskId(7)]),
        needs: TaskId(7),
    });
    refused(|graph| {
        graph.parallelism = Some(Parallelism {
            from_sender: 4,
            to_receiver: Some(0),
        });
        GraphError::NoParallelism
    });
}

#[test]
fn a_circle_is_named_without_what_waits_for_it() {
    let mut graph = Graph::new(2);
    let before = graph.compute(Rank(0), Span::ZERO, []);
    let waits = graph.compute(Rank(0), Span::ZERO, [TaskId(4), before]);
    let first = graph.message(ranks(0, 1), KB, [before, TaskId(4)]);
    let second = graph.message(ranks(1, 0), KB, [first]);
    let third = graph.compute(Rank(0), Span::ZERO, [second]);
    assert_eq!((waits, third), (TaskId(1), TaskId(4)));
    let tasks = vec![third, second, first];
    assert_eq!(graph.check(), Err(GraphError::Circle { tasks }));
}

#[test]
fn an_appended_graph_waits_for_its_gates() {
    let mut pair = Graph::new(2);
    let first = pair.message(ranks(0, 1), KB, []);
    pair.message(ranks(1, 0), KB, [first]);
    let mut graph = Graph::new(2);
    let gates = [0, 1].map(|rank| graph.compute(Rank(rank), Span::from_us(5), []));
    graph.append(&pair, &gates);
    graph.append(&pair, &[]);
    graph.check().unwrap();
    let over = |id: u32| TaskDependency::over(TaskId(id));
    assert_eq!(graph.needs(TaskId(2)), [over(0)]);
    assert_eq!(graph.needs(TaskId(3)), [over(2), over(1)]);
    assert!(graph.needs(TaskId(4)).is_empty());
    assert_eq!(graph.needs(TaskId(5)), [over(4)]);
}

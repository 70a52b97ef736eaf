//! All executions of a collective in one process: messages are delivered in random orders, and the result is compared with a local one.

use clearway_collective::{
    Algorithm, BufferOperation, Buffers, CollectivePlan, Execution, Outgoing, Unexpected,
};
use clearway_units::{Purpose, RandomStream};
use clearway_workload::collective::CollectiveSettings;
use clearway_workload::{Task, TaskId};
use proptest::prelude::*;
use std::sync::Arc;

/// A message under way: sender, receiver, number, content.
type Letter = (u32, u32, u32, Vec<u8>);

/// Buffers of all ranks.
struct World {
    plan: Arc<CollectivePlan>,
    /// Buffers to send from, in an all-to-all; those of the result.
    send: Vec<Vec<f32>>,
    own: Vec<Vec<f32>>,
}

impl World {
    /// Ranks whose element `at` of rank `rank` is `value(rank, at)`.
    fn new(plan: &Arc<CollectivePlan>, value: impl Fn(u32, usize) -> f32) -> Self {
        let fill = |rank: u32| (0..plan.count()).map(|at| value(rank, at)).collect();
        let ranks = 0..plan.ranks();
        let (mut send, mut own): (Vec<Vec<f32>>, Vec<Vec<f32>>) = (Vec::new(), Vec::new());
        for rank in ranks {
            let mut buffer: Vec<f32> = fill(rank);
            match plan.algorithm().operation() {
                BufferOperation::AllToAll => {
                    let length = plan.block(rank).len() * plan.ranks() as usize;
                    own.push(vec![f32::NAN; length]);
                    send.push(buffer);
                }
                BufferOperation::AllGather => {
                    for (at, element) in buffer.iter_mut().enumerate() {
                        if !plan.block(rank).contains(&at) {
                            *element = f32::NAN;
                        }
                    }
                    own.push(buffer);
                }
                _ => own.push(buffer),
            }
        }
        let plan = Arc::clone(plan);
        Self { plan, send, own }
    }

    fn buffers(&mut self, rank: u32) -> Buffers<'_> {
        let rank = rank as usize;
        match self.plan.algorithm().operation() {
            BufferOperation::AllToAll => Buffers::Apart {
                send: &self.send[rank],
                receive: &mut self.own[rank],
            },
            _ => Buffers::InPlace(&mut self.own[rank]),
        }
    }

    /// Carries the collective out, with messages read and delivered in an order by `seed`.
    fn run(&mut self, seed: u64) {
        let mut random = RandomStream::new(seed, Purpose::Test, 0);
        let plan = Arc::clone(&self.plan);
        let begin = |world: &mut Self, rank| {
            Execution::new(&plan, rank, &mut world.buffers(rank)).expect("buffers fit")
        };
        let mut executions: Vec<Execution> =
            (0..plan.ranks()).map(|rank| begin(self, rank)).collect();
        let mut ready: Vec<(u32, Outgoing)> = Vec::new();
        let mut letters: Vec<Letter> = Vec::new();
        loop {
            for (rank, execution) in (0..).zip(&mut executions) {
                while let Some(outgoing) = execution.poll_message() {
                    ready.push((rank, outgoing));
                }
            }
            let choices = ready.len() + letters.len();
            if choices == 0 {
                break;
            }
            let choice = random.below(choices as u32) as usize;
            if choice < ready.len() {
                let (rank, Outgoing { to, message }) = ready.swap_remove(choice);
                let data = content(&executions[rank as usize], message, &self.buffers(rank));
                executions[rank as usize].on_sent(message);
                letters.push((rank, to, message, data));
            } else {
                let (from, to, message, data) = letters.swap_remove(choice - ready.len());
                let execution = &mut executions[to as usize];
                assert!(execution.expects(from));
                let taken = execution.on_message(from, message, data, &mut self.buffers(to));
                taken.expect("it is expected");
            }
        }
        for (rank, execution) in executions.iter().enumerate() {
            assert!(execution.is_over(), "rank {rank} waits for ever");
            assert!((0..plan.ranks()).all(|other| !execution.expects(other)));
        }
    }
}

/// Small whole numbers, whose sums are exact in any order.
fn whole(rank: u32, at: usize) -> f32 {
    ((at * 7 + rank as usize * 131) % 1021) as f32
}

/// Checks the results against local ones.
fn check(world: &World, value: impl Fn(u32, usize) -> f32) {
    let plan = &world.plan;
    let sum = |at| (0..plan.ranks()).map(|rank| value(rank, at)).sum::<f32>();
    for rank in 0..plan.ranks() {
        let own = &world.own[rank as usize];
        match plan.algorithm().operation() {
            BufferOperation::AllReduce => {
                (0..plan.count()).for_each(|at| assert_eq!(own[at], sum(at), "{rank} {at}"));
            }
            BufferOperation::ReduceScatter => {
                plan.block(rank)
                    .for_each(|at| assert_eq!(own[at], sum(at), "{rank} {at}"));
            }
            BufferOperation::AllGather => {
                for other in 0..plan.ranks() {
                    plan.block(other)
                        .for_each(|at| assert_eq!(own[at], value(other, at), "{rank} {at}"));
                }
            }
            BufferOperation::AllToAll => {
                let block = plan.block(rank);
                for other in 0..plan.ranks() {
                    let from = &own[other as usize * block.len()..][..block.len()];
                    let wanted: Vec<f32> = block.clone().map(|at| value(other, at)).collect();
                    assert_eq!(from, wanted, "{rank} {other}");
                }
            }
        }
    }
}

/// All algorithms of all operations.
fn algorithms() -> Vec<Algorithm> {
    let named = |operation| {
        Algorithm::names(operation).map(move |name| Algorithm::named(operation, name).unwrap())
    };
    BufferOperation::ALL.into_iter().flat_map(named).collect()
}

fn plan(
    algorithm: Algorithm,
    ranks: u32,
    count: usize,
    chunk: Option<usize>,
) -> Arc<CollectivePlan> {
    Arc::new(CollectivePlan::new(algorithm, ranks, count, chunk).expect("a plan"))
}

#[test]
fn every_algorithm_is_right_for_all_ranks_and_sizes() {
    let all = algorithms();
    assert_eq!(all.len(), 9, "{all:?}");
    for algorithm in all {
        for ranks in 1..10 {
            for count in [0, 1, 2, 3, 7, 8, 9, 64, 100, 1000] {
                for chunk in [None, Some(1), Some(7)] {
                    if chunk == Some(1) && count > 100 {
                        continue;
                    }
                    let mut world = World::new(&plan(algorithm, ranks, count, chunk), whole);
                    world.run(u64::from(ranks) * 1000 + count as u64);
                    check(&world, whole);
                }
            }
        }
    }
}

/// Numbers of very different magnitude: each order of additions has another sum.
fn rough(seed: u64) -> impl Fn(u32, usize) -> f32 {
    move |rank, at| {
        let mut random = RandomStream::new(seed, Purpose::Test, at as u64 * 64 + u64::from(rank));
        let scale = [1e-6, 1.0, 1e6, -1e6][random.below(4) as usize];
        (random.unit() * scale) as f32
    }
}

fn bits(buffer: &[f32]) -> Vec<u32> {
    buffer.iter().map(|element| element.to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn orders_of_messages_change_nothing(
        which in 0usize..9, ranks in 1u32..10, count in 0usize..200, chunk in 1usize..50, seeds in any::<[u64; 3]>(),
    ) {
        let plan = plan(algorithms()[which], ranks, count, Some(chunk));
        let mut exact = World::new(&plan, whole);
        exact.run(seeds[0]);
        check(&exact, whole);
        let mut worlds = [0, 1].map(|_| World::new(&plan, rough(seeds[2])));
        for (world, seed) in worlds.iter_mut().zip(seeds) {
            world.run(seed);
        }
        let [one, other] = &worlds;
        for rank in 0..ranks as usize {
            let (own, again) = (bits(&one.own[rank]), bits(&other.own[rank]));
            let block = match plan.algorithm().operation() {
                BufferOperation::ReduceScatter => plan.block(rank as u32),
                _ => 0..own.len(),
            };
            prop_assert_eq!(&own[block.clone()], &again[block]);
            if plan.algorithm().operation() == BufferOperation::AllReduce {
                prop_assert_eq!(&own, &bits(&one.own[0]));
            }
        }
    }
}

#[test]
fn rings_add_in_the_order_that_is_documented() {
    let (ranks, count) = (5, 23);
    let value = rough(7);
    for (operation, shift) in [
        (BufferOperation::AllReduce, 0),
        (BufferOperation::ReduceScatter, 1),
    ] {
        let plan = plan(Algorithm::default_of(operation), ranks, count, Some(3));
        let mut world = World::new(&plan, &value);
        world.run(1);
        for block in 0..ranks {
            for at in plan.block(block) {
                let start = block + shift;
                let first = value(start % ranks, at);
                let others = (1..ranks).map(|step| value((start + step) % ranks, at));
                let sum = others.fold(first, |received, own| own + received);
                assert_eq!(world.own[block as usize][at].to_bits(), sum.to_bits());
            }
        }
    }
}

#[test]
fn the_graph_is_that_of_the_simulator() {
    for algorithm in algorithms() {
        for (ranks, count, chunk) in [(2, 64, 8), (4, 64, 5), (8, 800, 16)] {
            let (name, operation) = (algorithm.name(), algorithm.operation());
            let mut settings = CollectiveSettings::named(operation.name(), name).unwrap();
            let bytes = |elements: usize| format!("{}B", elements * 4);
            let set = [("size", bytes(count)), ("chunk", bytes(chunk))];
            for (key, value) in set {
                settings
                    .set(key, &clearway_units::Value::Text(value))
                    .unwrap();
            }
            let mut simulated = settings.build(ranks).unwrap().graph;
            let ours = plan(algorithm, ranks, count, Some(chunk)).graph_of_bytes();
            // The simulator's receivers grant; here connections do.
            if let Some(limits) = &mut simulated.parallelism {
                limits.to_receiver = None;
            }
            assert_eq!(ours, simulated, "{algorithm} {ranks} {count} {chunk}");
            let first = ours.task(TaskId(0));
            assert!(matches!(first, Task::Message { bytes, .. } if bytes.as_u64() % 4 == 0));
        }
    }
}

#[test]
fn neighbours_are_those_of_the_graph() {
    let ring = plan(
        Algorithm::default_of(BufferOperation::AllReduce),
        5,
        100,
        None,
    );
    assert_eq!(ring.neighbours(0), [1, 4]);
    let direct = plan(
        Algorithm::default_of(BufferOperation::AllToAll),
        5,
        100,
        None,
    );
    assert_eq!(direct.neighbours(2), [0, 1, 3, 4]);
    let tree = Algorithm::named(BufferOperation::AllReduce, "tree").unwrap();
    // The first tree hangs rank 2 below rank 4 and above ranks 1 and 3; the second is its mirror image.
    let tree = plan(tree, 8, 100, Some(10));
    assert!(tree.neighbours(2).len() < 7, "{:?}", tree.neighbours(2));
    assert!(
        plan(
            Algorithm::default_of(BufferOperation::AllReduce),
            1,
            100,
            None
        )
        .neighbours(0)
        .is_empty()
    );
}

fn content(execution: &Execution, message: u32, buffers: &Buffers<'_>) -> Vec<u8> {
    let mut data = vec![0; execution.length(message)];
    execution.write_content(message, buffers, &mut data);
    data
}

/// What ranks send without having received anything: from, to, number and content of each message.
fn sent(plan: &Arc<CollectivePlan>, all: &mut [Buffers<'_>]) -> Vec<(u32, u32, u32, Vec<u8>)> {
    let mut sent = Vec::new();
    for (rank, buffers) in (0..).zip(all) {
        let mut execution = Execution::new(plan, rank, buffers).unwrap();
        while let Some(Outgoing { to, message }) = execution.poll_message() {
            let data = content(&execution, message, buffers);
            sent.push((rank, to, message, data));
        }
    }
    sent
}

#[test]
fn a_message_that_waits_for_its_turn_is_not_expected_any_more() {
    let direct = Algorithm::named(BufferOperation::ReduceScatter, "direct").unwrap();
    let plan = plan(direct, 4, 1, None);
    let mut buffers = [[1.0f32], [2.0], [3.0], [4.0]];
    let mut all: Vec<_> = (buffers.iter_mut().map(|one| Buffers::InPlace(one))).collect();
    let mut sent = sent(&plan, &mut all);
    let mut first = Execution::new(&plan, 0, &mut all[0]).unwrap();
    // The last come first, and wait for the first.
    sent.sort_by_key(|(_, _, message, _)| std::cmp::Reverse(*message));
    let [_, _, (_, _, lowest, _)] = sent[..] else {
        panic!("three ranks send")
    };
    for (from, to, message, data) in sent {
        assert!(to == 0 && first.expects(from) && !first.is_over());
        let result = first.on_message(from, message, data, &mut all[0]);
        assert_eq!(result.unwrap().is_some(), message == lowest);
        assert!(!first.expects(from));
    }
    assert!(first.is_over());
    assert_eq!(buffers[0], [10.0]);
}

#[test]
fn messages_that_nobody_waits_for_change_nothing() {
    let direct = Algorithm::named(BufferOperation::ReduceScatter, "direct").unwrap();
    let plan = plan(direct, 3, 6, None);
    let mut buffers = [[1.0f32; 6], [2.0; 6], [3.0; 6]];
    let [first, second, third] = &mut buffers;
    let mut all = [first, second, third].map(|buffer| Buffers::InPlace(&mut buffer[..]));
    let sent = sent(&plan, &mut all);
    let mut execution = Execution::new(&plan, 0, &mut all[0]).unwrap();
    let here: Vec<_> = sent.iter().filter(|(_, to, ..)| *to == 0).collect();
    let [(from, _, message, data), (other, _, second, more)] = here[..] else {
        panic!("two ranks send to each")
    };
    let (from, other, message, second) = (*from, *other, *message, *second);
    let mut give = |from, message, data: &[u8]| {
        execution.on_message(from, message, data.to_vec(), &mut all[0])
    };
    assert_eq!(give(other, message, data), Err(Unexpected::Number(message)));
    assert_eq!(give(from, 99, data), Err(Unexpected::Number(99)));
    let wrong = Unexpected::Length {
        message,
        given: 3,
        wanted: 8,
    };
    assert_eq!(give(from, message, &data[..3]), Err(wrong));
    // The later one first: it waits for its turn, once.
    let (early, late) = if message < second {
        (second, message)
    } else {
        (message, second)
    };
    let of = |wanted| {
        if wanted == message {
            (from, data)
        } else {
            (other, more)
        }
    };
    assert_eq!(give(of(early).0, early, of(early).1), Ok(None));
    assert_eq!(
        give(of(early).0, early, of(early).1),
        Err(Unexpected::Twice(early))
    );
    assert_eq!(
        give(of(late).0, late, of(late).1),
        Ok(Some(of(late).1.clone()))
    );
    assert_eq!(
        give(of(late).0, late, of(late).1),
        Err(Unexpected::Twice(late))
    );
    assert_eq!(buffers[0], [6.0, 6.0, 1.0, 1.0, 1.0, 1.0]);
}

#[test]
fn buffers_of_other_lengths_are_refused() {
    let reduce = plan(
        Algorithm::default_of(BufferOperation::AllReduce),
        3,
        10,
        None,
    );
    let mut short = [0.0; 9];
    let refused = Execution::new(&reduce, 0, &mut Buffers::InPlace(&mut short));
    let error = refused.unwrap_err().to_string();
    assert_eq!(
        error,
        "the buffers have 9 and 9 elements, and the collective 10 and 10"
    );
    let exchange = plan(
        Algorithm::default_of(BufferOperation::AllToAll),
        3,
        10,
        None,
    );
    let mut buffer = [0.0; 10];
    let refused = Execution::new(&exchange, 0, &mut Buffers::InPlace(&mut buffer));
    assert!(refused.is_err());
    // Rank 0 has the longest block: 4, from each of three.
    let mut receive = [0.0; 12];
    let mut buffers = Buffers::Apart {
        send: &buffer,
        receive: &mut receive,
    };
    assert!(Execution::new(&exchange, 0, &mut buffers).is_ok());
}

#[test]
fn chunks_and_ranks_out_of_bounds_are_told() {
    let ring = Algorithm::default_of(BufferOperation::AllReduce);
    let fault = |ranks, chunk| {
        let error = CollectivePlan::new(ring, ranks, 100, Some(chunk)).unwrap_err();
        format!("{error}; {}", error.fix)
    };
    assert_eq!(
        fault(0, 1),
        "the ring all-reduce: there are no ranks; take 1 rank or more"
    );
    for chunk in [0, (1 << 20) + 1] {
        let error = fault(2, chunk);
        assert!(error.contains("`chunk` of the ring all-reduce"), "{error}");
    }
    let many = CollectivePlan::new(ring, 1000, 1 << 40, Some(1)).unwrap_err();
    assert!(many.message.contains("messages"), "{many}");
    let unknown = Algorithm::named(BufferOperation::AllGather, "tree").unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "all-gather has no algorithm `tree`: it has ring, direct"
    );
}

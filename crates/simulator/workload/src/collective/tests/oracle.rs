//! Second, slow proof of the collectives: byte by byte, in random orders. For each byte it counts how often the data of each rank is in it.

use super::*;
use crate::{TaskDependency, TaskId};
use clearway_units::{Purpose, RandomStream};

/// For each byte of each rank how often each rank's data is in the sum, if anything is there.
type Memory = Vec<Vec<Option<Vec<u32>>>>;

/// For each byte of a buffer, the rank in whose block it is.
fn owners(collective: &Collective) -> Vec<u32> {
    let (size, ranks) = (collective.size.as_u64(), collective.graph.ranks());
    if collective.owners == BlockOwners::NATURAL {
        let (share, longer) = (size / u64::from(ranks), size % u64::from(ranks));
        let length = |block| share + u64::from(u64::from(block) < longer);
        let block = |block| std::iter::repeat_n(block, length(block) as usize);
        return (0..ranks).flat_map(block).collect();
    }
    let mut owners = vec![u32::MAX; size as usize];
    for (rank, block) in collective.owners.blocks(size, ranks) {
        for at in block {
            assert_eq!(std::mem::replace(&mut owners[at as usize], rank), u32::MAX);
        }
    }
    owners
}

/// The places of the bytes that a message carries.
fn places(collective: &Collective, id: TaskId, bytes: Bytes) -> Vec<usize> {
    let from = collective.moves[id.index()].offset.as_u64();
    match collective.scattered.get(&id) {
        None => (from..from + bytes.as_u64())
            .map(|at| at as usize)
            .collect(),
        Some(ranges) => {
            let places = ranges.iter().cloned().flatten();
            places.map(|at| at as usize).collect()
        }
    }
}

fn before(collective: &Collective) -> Memory {
    let (size, ranks) = (collective.size.as_u64(), collective.graph.ranks());
    let owners = owners(collective);
    let space = match collective.operation {
        Operation::AllToAll => size * u64::from(ranks),
        _ => size,
    };
    let cell = |rank: u32, at: u64| {
        let mut counts = vec![0; ranks as usize];
        counts[rank as usize] = 1;
        match collective.operation {
            Operation::AllReduce | Operation::ReduceScatter => Some(counts),
            Operation::ParameterServer { server } if server.0 == rank => {
                Some(vec![0; ranks as usize])
            }
            Operation::ParameterServer { .. } => Some(counts),
            Operation::AllGather => (owners[at as usize] == rank).then_some(counts),
            Operation::Broadcast { root } => (root.0 == rank).then_some(counts),
            Operation::AllToAll => (at / size == u64::from(rank)).then_some(counts),
        }
    };
    (0..ranks)
        .map(|rank| (0..space).map(|at| cell(rank, at)).collect())
        .collect()
}

fn is_achieved(collective: &Collective, memory: &Memory) -> bool {
    let (size, ranks) = (collective.size.as_u64(), collective.graph.ranks());
    let owners = owners(collective);
    let everyone = vec![1; ranks as usize];
    let only =
        |rank: u32| -> Vec<u32> { (0..ranks).map(|other| u32::from(other == rank)).collect() };
    let expected = |rank: u32, at: u64| match collective.operation {
        Operation::AllReduce => Some(everyone.clone()),
        Operation::ReduceScatter => (owners[at as usize] == rank).then(|| everyone.clone()),
        Operation::AllGather => Some(only(owners[at as usize])),
        Operation::Broadcast { root } => Some(only(root.0)),
        Operation::AllToAll => {
            (owners[(at % size) as usize] == rank).then(|| only((at / size) as u32))
        }
        Operation::ParameterServer { server } => {
            let workers = (0..ranks).map(|other| u32::from(other != server.0));
            (server.0 != rank).then(|| workers.collect())
        }
    };
    (0..).zip(memory).all(|(rank, cells)| {
        (0..).zip(cells).all(|(at, cell)| {
            let expected = expected(rank, at);
            expected.is_none() || expected == *cell
        })
    })
}

/// Runs the graph in a random order. The sender's memory is read at random either when a message begins or when it ends.
pub(super) fn achieves(collective: &Collective, seed: u64) -> bool {
    let graph = &collective.graph;
    let mut random = RandomStream::new(seed, Purpose::Test, 0);
    let mut memory = before(collective);
    let mut has_begun = vec![false; graph.len()];
    let mut is_over = vec![false; graph.len()];
    let mut under_way: Vec<(TaskId, Option<Vec<_>>)> = Vec::new();
    loop {
        let can_begin = |need: &TaskDependency| match need.is_begun() {
            true => has_begun[need.task().index()],
            false => is_over[need.task().index()],
        };
        let ids = (0..graph.len() as u32).map(TaskId);
        let ready: Vec<TaskId> = ids
            .filter(|id| !has_begun[id.index()] && graph.needs(*id).iter().all(can_begin))
            .collect();
        let choices = ready.len() + under_way.len();
        if choices == 0 {
            assert!(is_over.iter().all(|&is_over| is_over), "a graph that stops");
            return is_achieved(collective, &memory);
        }
        let choice = random.below(choices as u32) as usize;
        if let Some(&id) = ready.get(choice) {
            has_begun[id.index()] = true;
            let early = random.chance(0.5);
            under_way.push((id, early.then(|| content(collective, &memory, id))));
        } else {
            let (id, early) = under_way.swap_remove(choice - ready.len());
            is_over[id.index()] = true;
            let content = early.unwrap_or_else(|| content(collective, &memory, id));
            deliver(collective, &mut memory, id, content);
        }
    }
}

fn content(collective: &Collective, memory: &Memory, id: TaskId) -> Vec<Option<Vec<u32>>> {
    match (collective.graph.task(id), collective.moves[id.index()]) {
        (Task::Message { src, bytes, .. }, Move { effect, .. }) if effect != Effect::Nothing => {
            let places = places(collective, id, bytes).into_iter();
            places.map(|at| memory[src.index()][at].clone()).collect()
        }
        _ => Vec::new(),
    }
}

fn deliver(
    collective: &Collective,
    memory: &mut Memory,
    id: TaskId,
    content: Vec<Option<Vec<u32>>>,
) {
    let Task::Message { dst, bytes, .. } = collective.graph.task(id) else {
        return;
    };
    let effect = collective.moves[id.index()].effect;
    for (at, sent) in places(collective, id, bytes).into_iter().zip(content) {
        let cell = &mut memory[dst.index()][at];
        *cell = match (effect, sent, cell.take()) {
            (Effect::Copy, sent, _) => sent,
            (_, Some(sent), Some(there)) => {
                Some(sent.iter().zip(&there).map(|(a, b)| a + b).collect())
            }
            // Garbage in, garbage out.
            _ => None,
        };
    }
}

#[test]
fn every_collective_is_correct_in_random_orders() {
    for ranks in [2, 3, 4, 5, 6, 8, 11] {
        let n = u64::from(ranks);
        for (size, chunk) in [(n * 2 + 1, 1), (n + n / 2, 2), (n / 2, 1)] {
            for settings in [every_kind(size, chunk), every_variant(size, chunk)].concat() {
                let collective = settings.build(ranks).unwrap();
                for seed in 0..3 {
                    let achieves = achieves(&collective, seed);
                    assert!(achieves, "{} seed {seed}", name(&settings, ranks));
                }
            }
        }
    }
}

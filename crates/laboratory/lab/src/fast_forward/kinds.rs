//! Kinds of calls, and which of them overlap.

use crate::lanes::JobConnections;
use clearway_fabric::TracedRoutes;
use clearway_fabric::topology::LinkId;
use clearway_units::{Bytes, FlowId, MessageId};
use clearway_workload::{Call, JobSpec, Rank, Task, TaskId};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Number of a kind of calls.
pub(super) type KindId = u32;

/// A call: the number of its job, and its number among the calls of all iterations.
pub(super) type CallId = (u32, u64);

/// A kind of calls.
#[derive(Debug, Clone)]
pub(super) struct Kind {
    /// Messages of a call.
    pub(super) messages: u32,
    /// Tasks of a call.
    pub(super) tasks: u32,
    /// Sort: kinds with as many ranks, messages and bytes.
    pub(super) sort: u32,
    /// Bytes of a call.
    bytes: Bytes,
    /// Ranks of a call.
    ranks: u32,
    /// Number of its calls in the run.
    pub(super) calls: u64,
}

impl Kind {
    /// Bytes of each rank, in the mean: a measure of how long a call takes.
    fn bytes_of_rank(&self) -> u64 {
        self.bytes.as_u64() / u64::from(self.ranks.max(1))
    }
}

/// Sort of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Sort {
    pub(super) ranks: u32,
    pub(super) messages: u32,
    pub(super) bytes: Bytes,
}

/// Kinds of all jobs.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    pub(super) all: Vec<Kind>,
    pub(super) sorts: Vec<Sort>,
    jobs: Vec<JobCalls>,
    job_of: FxHashMap<FlowId, u32>,
    /// By kind, one bit for each kind that overlaps it.
    overlaps: Vec<Vec<u64>>,
}

/// Calls of a job, iteration by iteration.
#[derive(Debug, Default)]
struct JobCalls {
    /// Tasks of an iteration.
    tasks: u32,
    /// Calls of an iteration, in the order of their tasks; the number of the kind counts the kinds of all jobs.
    calls: Vec<Call>,
}

/// A call that carries less than this part of the bytes of another one is short beside it.
const SHORT: u64 = 4;
/// Most kinds of a run: the table of overlaps has a bit for each pair.
pub(super) const MOST_KINDS: usize = 1 << 14;

impl Kinds {
    /// Kinds of the calls of `jobs`. Jobs for which `is_left_out` have none.
    pub(super) fn new<'a>(
        jobs: impl Iterator<Item = (&'a JobSpec, &'a JobConnections)>,
        is_left_out: impl Fn(&JobSpec) -> bool,
        routes: &TracedRoutes<'_>,
    ) -> Self {
        let mut kinds = Self::default();
        let mut sorts: FxHashMap<Sort, u32> = FxHashMap::default();
        // The cables that the messages of each kind can cross.
        let mut cables: Vec<BTreeSet<usize>> = Vec::new();
        let mut of_connection: FxHashMap<FlowId, BTreeSet<usize>> = FxHashMap::default();
        for (number, (job, connections)) in (0u32..).zip(jobs) {
            let graph = job.plan.graph();
            let calls = match is_left_out(job) {
                true => Vec::new(),
                false => calls_of(job),
            };
            let first = kinds.all.len() as u32;
            let mut own = JobCalls {
                tasks: graph.len() as u32,
                calls,
            };
            for call in &mut own.calls {
                call.kind += first;
                if let Some(kind) = kinds.all.get_mut(call.kind as usize) {
                    kind.calls += u64::from(job.iterations);
                    continue;
                }
                let mut kind = Kind {
                    messages: 0,
                    tasks: call.tasks,
                    sort: 0,
                    bytes: Bytes::ZERO,
                    ranks: 0,
                    calls: job.iterations.into(),
                };
                let mut ranks: BTreeSet<Rank> = BTreeSet::new();
                let mut crossed = BTreeSet::new();
                for id in (call.first.0..call.first.0 + call.tasks).map(TaskId) {
                    let Task::Message { src, dst, bytes } = graph.task(id) else {
                        continue;
                    };
                    kind.messages += 1;
                    kind.bytes += bytes;
                    ranks.extend([src, dst]);
                    let connection = connections.connection((src, dst), id);
                    let links = of_connection.entry(connection).or_insert_with(|| {
                        let links = routes.of_flow(connection).into_keys();
                        // Acknowledgements go back on the same cables.
                        links.map(LinkId::cable).collect()
                    });
                    crossed.extend(links.iter().copied());
                }
                kind.ranks = ranks.len() as u32;
                let sort = Sort {
                    ranks: ranks.len() as u32,
                    messages: kind.messages,
                    bytes: kind.bytes,
                };
                let next = kinds.sorts.len() as u32;
                kind.sort = *sorts.entry(sort).or_insert(next);
                if kind.sort == next {
                    kinds.sorts.push(sort);
                }
                kinds.all.push(kind);
                cables.push(crossed);
            }
            for (_, connection) in connections.all() {
                kinds.job_of.insert(connection, number);
            }
            kinds.jobs.push(own);
        }
        kinds.overlaps = overlaps(&cables);
        kinds
    }

    /// The call of a message, and the place of the message in it; `None` if its job has no calls.
    pub(super) fn call(&self, connection: FlowId, message: MessageId) -> Option<(CallId, u32)> {
        let job = *self.job_of.get(&connection)?;
        let own = &self.jobs[job as usize];
        let (iteration, task) = (message.0 / own.tasks, message.0 % own.tasks);
        let after = own.calls.partition_point(|call| call.first.0 <= task);
        let index = after.checked_sub(1)?;
        let call = own.calls[index];
        let place = task - call.first.0;
        let number = u64::from(iteration) * own.calls.len() as u64 + index as u64;
        (place < call.tasks).then_some(((job, number), place))
    }

    /// The kind of a call.
    pub(super) fn kind_of(&self, (job, number): CallId) -> KindId {
        let calls = &self.jobs[job as usize].calls;
        calls[(number % calls.len() as u64) as usize].kind
    }

    /// True if calls of the kind `other` change what calls of the kind `own` take: messages of both can cross a common cable, and a call of
    /// the other lasts long enough to be beside a large part of this one. Short ones belong to what a long one finds each time.
    pub(super) fn disturbs(&self, other: KindId, own: KindId) -> bool {
        let bytes = |kind: KindId| self.all[kind as usize].bytes_of_rank();
        self.overlap(own, other) && bytes(other).saturating_mul(SHORT) >= bytes(own)
    }

    /// True if messages of both kinds can cross a common cable.
    fn overlap(&self, one: KindId, other: KindId) -> bool {
        self.overlaps[one as usize][other as usize / 64] >> (other % 64) & 1 == 1
    }
}

/// Calls of an iteration of a job: those that its graph names, each other message alone, and the whole graph if it names none. Kinds count
/// from zero, and each is first used in the order of its number.
pub(super) fn calls_of(job: &JobSpec) -> Vec<Call> {
    let graph = job.plan.graph();
    let whole = Call {
        first: TaskId(0),
        tasks: graph.len() as u32,
        kind: 0,
    };
    if graph.calls().is_empty() {
        return vec![whole];
    }
    let mut named = graph.calls().iter().peekable();
    let mut kinds: FxHashMap<u32, u32> = FxHashMap::default();
    let mut alone: FxHashMap<(Rank, Rank, Bytes), u32> = FxHashMap::default();
    let mut calls = Vec::new();
    let mut id = 0;
    while id < whole.tasks {
        let next = (kinds.len() + alone.len()) as u32;
        let first = TaskId(id);
        if let Some(call) = named.next_if(|call| call.first == first) {
            let kind = *kinds.entry(call.kind).or_insert(next);
            calls.push(Call { kind, ..*call });
            id += call.tasks;
            continue;
        }
        if let Task::Message { src, dst, bytes } = graph.task(first) {
            let kind = *alone.entry((src, dst, bytes)).or_insert(next);
            calls.push(Call {
                first,
                tasks: 1,
                kind,
            });
        }
        id += 1;
    }
    calls
}

/// For each kind one bit for each kind with a common cable, itself included.
fn overlaps(cables: &[BTreeSet<usize>]) -> Vec<Vec<u64>> {
    let words = cables.len().div_ceil(64);
    let mut users: FxHashMap<usize, Vec<u64>> = FxHashMap::default();
    for (kind, crossed) in cables.iter().enumerate() {
        for &cable in crossed {
            let own = users.entry(cable).or_insert_with(|| vec![0; words]);
            own[kind / 64] |= 1 << (kind % 64);
        }
    }
    let of_kind = |crossed: &BTreeSet<usize>| {
        let mut all = vec![0; words];
        for cable in crossed {
            for (word, own) in all.iter_mut().zip(&users[cable]) {
                *word |= own;
            }
        }
        all
    };
    cables.iter().map(of_kind).collect()
}

//! Kinds of calls, and which of them overlap.

use super::limits::FamilySet;
use super::samples::SampleKey;
use super::segments::{Position, Segments, are_alike};
use super::times::Measure;
use crate::lanes::JobConnections;
use clearway_fabric::TracedRoutes;
use clearway_fabric::topology::{LinkId, PathClass};
use clearway_units::{Bytes, FlowId, MessageId};
use clearway_workload::{GraphCall, JobSpec, Rank, Task, TaskId};
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

/// Number of a kind of calls.
pub(super) type KindId = u32;

/// A call: the number of its job, its number among the calls of all iterations, and its segment if it is cut.
pub(super) type CallId = (u32, u64, u16);

/// A kind of calls, or of segments of calls, which are calls to all that follows.
#[derive(Debug, Clone, Default)]
pub(super) struct Kind {
    /// Messages of a call.
    pub(super) messages: u32,
    /// Places of messages in a call.
    pub(super) places: u32,
    /// Shape: kinds of one shape have the same messages between ranks on paths of equal length, and share their samples.
    pub(super) shape: u32,
    /// Sort: kinds with as many ranks, messages and bytes.
    pub(super) sort: u32,
    /// Family: calls with as many messages and bytes, and their segments. They begin together, in any order, and segments follow one
    /// another.
    pub(super) family: u32,
    /// First of the kinds of the same call.
    base: KindId,
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

impl Sort {
    /// True if calls of both sorts differ by the rounding of their messages at most.
    fn is_alike(self, other: Self) -> bool {
        (self.ranks, self.messages) == (other.ranks, other.messages)
            && are_alike(self.bytes, other.bytes)
    }
}

/// Kinds of all jobs.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    pub(super) all: Vec<Kind>,
    pub(super) sorts: Vec<Sort>,
    /// Number of kinds of each shape.
    pub(super) kinds_of_shape: Vec<u32>,
    jobs: Vec<JobCalls>,
    /// Messages and bytes of a call of each family.
    pub(super) families: Vec<(usize, Bytes)>,
    /// Segments of calls, by the first kind of the call; the kinds of its segments follow one another.
    segments: FxHashMap<KindId, Segments>,
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
    calls: Vec<GraphCall>,
}

/// A call that carries less than this part of the bytes of another one is short beside it.
const SHORT: u64 = 3;
/// Most kinds of a run: the table of overlaps has a bit for each pair.
pub(super) const MOST_KINDS: usize = 1 << 14;

impl Kinds {
    /// Kinds of the calls of `jobs`. Jobs for which `is_left_out`, and jobs without a kind that occurs twice, have none.
    pub(super) fn new<'a>(
        jobs: impl Iterator<Item = (&'a JobSpec, &'a JobConnections)>,
        is_left_out: impl Fn(&JobSpec) -> bool,
        (routes, path): (&TracedRoutes<'_>, &dyn Fn(FlowId) -> PathClass),
    ) -> Self {
        let mut shapes: FxHashMap<u64, u32> = FxHashMap::default();
        let mut kinds = Self::default();
        // The cables that the messages of each kind can cross.
        let mut cables: Vec<BTreeSet<usize>> = Vec::new();
        let mut of_connection: FxHashMap<FlowId, BTreeSet<usize>> = FxHashMap::default();
        for (number, (job, connections)) in (0u32..).zip(jobs) {
            for (_, connection) in connections.all() {
                kinds.job_of.insert(connection, number);
            }
            let graph = job.plan.graph();
            let mut own = JobCalls {
                tasks: graph.len() as u32,
                calls: match is_left_out(job) {
                    true => Vec::new(),
                    false => calls_of(job),
                },
            };
            let first = kinds.all.len();
            // The first kind of each kind of calls.
            let mut bases: Vec<KindId> = Vec::new();
            let mut known = KnownCalls::default();
            for call in &mut own.calls {
                if call.kind as usize == bases.len() {
                    let messages = messages_of(call, (job, connections));
                    let alike = known.find(call.tasks, &messages);
                    bases.push(alike.unwrap_or(kinds.all.len() as KindId));
                    if alike.is_none() {
                        let base = kinds.add(call.tasks, &messages);
                        kinds.give_shapes(base, &messages, (path, &mut shapes));
                        cables.resize(kinds.all.len(), BTreeSet::new());
                        for (task, _, connection, _) in &messages {
                            let crossed = of_connection.entry(*connection).or_insert_with(|| {
                                let links = routes.of_flow(*connection).into_keys();
                                // Acknowledgements go back on the same cables.
                                links.map(LinkId::cable).collect()
                            });
                            let (kind, _) = kinds.kind_of_task(base, *task);
                            cables[kind as usize].extend(crossed.iter().copied());
                        }
                        known.add(base, call.tasks, messages);
                    }
                }
                call.kind = bases[call.kind as usize];
                kinds.count(call.kind, job.iterations.into());
            }
            if kinds.all[first..].iter().all(|kind| kind.calls < 2) {
                own.calls.clear();
            }
            kinds.jobs.push(own);
        }
        kinds.overlaps = overlaps(&cables);
        kinds
    }

    /// True if the job with this number has calls.
    pub(super) fn has_calls(&self, job: usize) -> bool {
        !self.jobs[job].calls.is_empty()
    }

    /// True if a job has calls.
    pub(super) fn are_any(&self) -> bool {
        self.jobs.iter().any(|job| !job.calls.is_empty())
    }

    /// Adds the kinds of a call with these messages; returns the first.
    fn add(&mut self, tasks: u32, messages: &[MessageOfCall]) -> KindId {
        let base = self.all.len() as KindId;
        let listed = messages.iter();
        let listed = listed.map(|(task, _, connection, bytes)| (*task, *connection, *bytes));
        let segments = Segments::new(tasks, &listed.collect::<Vec<_>>());
        let count = segments.as_ref().map_or(1, |_| Segments::KINDS);
        if let Some(segments) = segments {
            self.segments.insert(base, segments);
        }
        self.all.resize_with((base + count) as usize, Kind::default);
        let bytes: u64 = messages.iter().map(|(.., bytes)| bytes.as_u64()).sum();
        let family = self.family(messages.len(), Bytes::new(bytes));
        let mut ranks: Vec<BTreeSet<Rank>> = vec![BTreeSet::new(); count as usize];
        // Segments of one kind are alike: the first of each kind is counted.
        let mut counted: FxHashMap<KindId, u16> = FxHashMap::default();
        for (task, pair, _, bytes) in messages {
            let (kind, (segment, place)) = self.kind_of_task(base, *task);
            if *counted.entry(kind).or_insert(segment) != segment {
                continue;
            }
            let own = &mut self.all[kind as usize];
            own.messages += 1;
            own.bytes += *bytes;
            own.places = own.places.max(place + 1);
            ranks[(kind - base) as usize].extend([pair.0, pair.1]);
        }
        for (own, ranks) in self.all[base as usize..].iter_mut().zip(ranks) {
            own.ranks = ranks.len() as u32;
            own.family = family;
            own.base = base;
            let sort = Sort {
                ranks: own.ranks,
                messages: own.messages,
                bytes: own.bytes,
            };
            let known = self.sorts.iter().position(|other| other.is_alike(sort));
            own.sort = known.unwrap_or(self.sorts.len()) as u32;
            if known.is_none() {
                self.sorts.push(sort);
            }
        }
        base
    }

    /// The family of calls with so many messages and bytes.
    fn family(&mut self, messages: usize, bytes: Bytes) -> u32 {
        let mut known = self.families.iter();
        let known = known.position(|own| own.0 == messages && are_alike(own.1, bytes));
        if known.is_none() {
            self.families.push((messages, bytes));
        }
        known.unwrap_or(self.families.len() - 1) as u32
    }

    /// Gives the kinds of a call, from `base` on, their shapes.
    fn give_shapes(
        &mut self,
        base: KindId,
        messages: &[MessageOfCall],
        (path, shapes): (&dyn Fn(FlowId) -> PathClass, &mut FxHashMap<u64, u32>),
    ) {
        let count = self.all.len() - base as usize;
        // The first segment of a call has the messages of those between, and begins at rest.
        let hasher = |position: usize| {
            let mut hasher = FxHasher::default();
            position.hash(&mut hasher);
            hasher
        };
        let mut hashers: Vec<FxHasher> = (0..count).map(hasher).collect();
        let mut numbers: Vec<FxHashMap<Rank, u32>> = vec![FxHashMap::default(); count];
        let mut hashed: FxHashMap<KindId, u16> = FxHashMap::default();
        for (task, (src, dst), connection, bytes) in messages {
            let (kind, (segment, place)) = self.kind_of_task(base, *task);
            if *hashed.entry(kind).or_insert(segment) != segment {
                continue;
            }
            let index = (kind - base) as usize;
            let mut number = |rank: &Rank| {
                let next = numbers[index].len() as u32;
                *numbers[index].entry(*rank).or_insert(next)
            };
            let ends = (number(src), number(dst));
            (place, ends, bytes, path(*connection)).hash(&mut hashers[index]);
        }
        for (own, hasher) in self.all[base as usize..].iter_mut().zip(hashers) {
            let next = self.kinds_of_shape.len() as u32;
            own.shape = *shapes.entry(hasher.finish()).or_insert(next);
            if own.shape == next {
                self.kinds_of_shape.push(0);
            }
            self.kinds_of_shape[own.shape as usize] += 1;
        }
    }

    /// The kind of a task of a call whose first kind is `base`, its segment, and its place there.
    fn kind_of_task(&self, base: KindId, task: u32) -> (KindId, (u16, u32)) {
        match self.segments.get(&base) {
            None => (base, (0, task)),
            Some(segments) => {
                let (segment, place) = segments.of(task);
                (base + segments.position(segment) as u32, (segment, place))
            }
        }
    }

    /// Counts so many calls whose first kind is `base`.
    fn count(&mut self, base: KindId, calls: u64) {
        let segments = self.segments.get(&base).map(|own| u64::from(own.count()));
        let first = base as usize;
        self.all[first].calls += calls;
        if let Some(segments) = segments {
            self.all[first + Position::Second as usize].calls += calls;
            self.all[first + Position::Third as usize].calls += calls;
            self.all[first + Position::Between as usize].calls += calls * (segments - 4);
            self.all[first + Position::Last as usize].calls += calls;
        }
    }

    /// The call of a message, and the place of the message in it; `None` if its job has no calls.
    pub(super) fn call(&self, connection: FlowId, message: MessageId) -> Option<(CallId, u32)> {
        let job = *self.job_of.get(&connection)?;
        let own = &self.jobs[job as usize];
        let (iteration, task) = (message.0 / own.tasks, message.0 % own.tasks);
        let after = own.calls.partition_point(|call| call.first.0 <= task);
        let index = after.checked_sub(1)?;
        let call = own.calls[index];
        let task = task - call.first.0;
        if task >= call.tasks {
            return None;
        }
        let number = u64::from(iteration) * own.calls.len() as u64 + index as u64;
        let (_, (segment, place)) = self.kind_of_task(call.kind, task);
        Some(((job, number, segment), place))
    }

    /// The kind of a call.
    pub(super) fn kind_of(&self, call: CallId) -> KindId {
        let base = self.base_of(call);
        match self.segments.get(&base) {
            None => base,
            Some(segments) => base + segments.position(call.2) as u32,
        }
    }

    /// The first kind of a call.
    fn base_of(&self, (job, number, _): CallId) -> KindId {
        let calls = &self.jobs[job as usize].calls;
        calls[(number % calls.len() as u64) as usize].kind
    }

    /// Kinds of a family that are checked: of a call that is cut, the segments between the first and the last one.
    pub(super) fn checked(&self, family: u32) -> impl Iterator<Item = KindId> {
        let numbered = (0..).zip(&self.all);
        let is_between = |kind: KindId, base: KindId| {
            !self.segments.contains_key(&base) || kind == base + Position::Between as u32
        };
        numbered
            .filter(move |(kind, own)| own.family == family && is_between(*kind, own.base))
            .map(|(kind, _)| kind)
    }

    /// Where the samples of a kind are kept while the links are in this state. Kinds of a shape share them only while the links are as in
    /// the beginning: a change touches some of them.
    pub(super) fn key(&self, kind: KindId, state: u32) -> SampleKey {
        match state {
            0 => (0, self.all[kind as usize].shape),
            _ => (state, kind),
        }
    }

    /// What the level of a call of this kind measures.
    pub(super) fn measure(&self, kind: KindId) -> Measure {
        let base = self.all[kind as usize].base;
        match self.segments.contains_key(&base) {
            true => Measure::Connections,
            false => Measure::Messages,
        }
    }

    /// True if calls of both kinds are the same calls, or segments of the same calls.
    pub(super) fn are_of_one_call(&self, one: KindId, other: KindId) -> bool {
        self.all[one as usize].base == self.all[other as usize].base
    }

    /// True if another segment of the same call follows this one.
    pub(super) fn is_followed(&self, call: CallId) -> bool {
        let base = self.base_of(call);
        let segments = self.segments.get(&base);
        segments.is_some_and(|own| call.2 + 1 < own.count())
    }

    /// True if calls of the kind `other` change what calls of the kind `own` take: messages of both can cross a common cable, and a call of
    /// the other lasts long enough to be beside a large part of this one. Short ones belong to what a long one finds each time.
    pub(super) fn disturbs(&self, other: KindId, own: KindId) -> bool {
        let bytes = |kind: KindId| self.all[kind as usize].bytes_of_rank();
        self.overlap(own, other) && bytes(other).saturating_mul(SHORT) >= bytes(own)
    }

    /// The bits of calls of the family of this kind among those under way.
    pub(super) fn family_of(&self, kind: KindId) -> FamilySet {
        let base = 2 * self.all[kind as usize].family;
        1 << base.min(63) | 1 << (base + 1).min(63)
    }

    /// The bit of calls of this kind among those under way.
    pub(super) fn bit(&self, kind: KindId) -> FamilySet {
        let own = &self.all[kind as usize];
        let is_cut = self.segments.contains_key(&own.base);
        let goes_on = is_cut && kind != own.base + Position::Last as u32;
        1 << (2 * own.family + u32::from(goes_on)).min(63)
    }

    /// True if messages of both kinds can cross a common cable.
    pub(super) fn overlap(&self, one: KindId, other: KindId) -> bool {
        self.overlaps[one as usize][other as usize / 64] >> (other % 64) & 1 == 1
    }
}

/// A message of a call: its task, counted from the first of the call, its ranks, its connection and its length.
type MessageOfCall = (u32, (Rank, Rank), FlowId, Bytes);

/// Calls of a job whose kinds are known, by their messages without the lengths.
#[derive(Debug, Default)]
struct KnownCalls(FxHashMap<u64, Vec<(KindId, Vec<MessageOfCall>)>>);

impl KnownCalls {
    fn add(&mut self, base: KindId, tasks: u32, messages: Vec<MessageOfCall>) {
        let key = Self::key(tasks, &messages);
        self.0.entry(key).or_default().push((base, messages));
    }

    /// The first kind of a call with the same messages, whose lengths differ by rounding at most: the buckets of a gradient do.
    fn find(&self, tasks: u32, messages: &[MessageOfCall]) -> Option<KindId> {
        let mut known = self.0.get(&Self::key(tasks, messages))?.iter();
        let are_all_alike = |other: &Vec<MessageOfCall>| {
            let mut pairs = other.iter().zip(messages);
            pairs.all(|(one, other)| are_alike(one.3, other.3))
        };
        known
            .find(|(_, other)| are_all_alike(other))
            .map(|(base, _)| *base)
    }

    fn key(tasks: u32, messages: &[MessageOfCall]) -> u64 {
        let mut hasher = FxHasher::default();
        tasks.hash(&mut hasher);
        for (task, ranks, connection, _) in messages {
            (task, ranks, connection).hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// The messages of a call.
fn messages_of(
    call: &GraphCall,
    (job, connections): (&JobSpec, &JobConnections),
) -> Vec<MessageOfCall> {
    let message = |task: u32| {
        let id = TaskId(call.first.0 + task);
        let Task::Message { src, dst, bytes } = job.plan.graph().task(id) else {
            return None;
        };
        let connection = connections.connection((src, dst), id);
        Some((task, (src, dst), connection, bytes))
    };
    (0..call.tasks).filter_map(message).collect()
}

/// Calls of an iteration of a job: those that its graph names, each other message alone, and the whole graph if it names none. Kinds count
/// from zero, and each is first used in the order of its number.
pub(super) fn calls_of(job: &JobSpec) -> Vec<GraphCall> {
    let graph = job.plan.graph();
    let whole = GraphCall {
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
            calls.push(GraphCall { kind, ..*call });
            id += call.tasks;
            continue;
        }
        if let Task::Message { src, dst, bytes } = graph.task(first) {
            let kind = *alone.entry((src, dst, bytes)).or_insert(next);
            calls.push(GraphCall {
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

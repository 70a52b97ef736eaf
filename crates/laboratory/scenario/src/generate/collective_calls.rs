//! Messages of the collective calls of jobs: of traces and of training.
//!
//! A collective with the algorithm "hierarchical" runs by dimension if the ranks of its call are a lattice: each coordinate of one
//! dimension with each of the others. Else, as in ASTRA-sim, one dimension has them all: with the algorithm of all dimensions if they have
//! the same, or a ring.

mod algorithms;
mod implementation;

pub(super) use algorithms::{HIERARCHICAL, first_algorithm};
pub(super) use implementation::Implementation;

use super::{BuildContext, WorkloadDefinition};
use algorithms::algorithms;
use clearway_units::{
    Bytes, HostId, Parameter as _, ParameterSet as _, Value, nearest, suggestion,
};
use clearway_workload::WorkloadError;
use clearway_workload::collective::{
    Channels, CollectiveSettings, Dimensions, Layout, Reduction, sub_lattice,
};
use clearway_workload::graph::{Graph, MOST_TASKS, Rank, Task, TaskDependency, TaskId};
use clearway_workload::program::{CollectiveCall, CollectiveKind, ExpansionFault};
use implementation::CallDimensions;

/// Settings of the calls of a job.
pub(super) struct CallSettings<'a> {
    /// Algorithm of each operation.
    pub(super) all_reduce: &'a str,
    pub(super) all_gather: &'a str,
    pub(super) reduce_scatter: &'a str,
    pub(super) all_to_all: &'a str,
    pub(super) broadcast: &'a str,
    /// Maximum payload of a message; without it, the algorithm decides.
    pub(super) chunk: Option<Bytes>,
    /// Maximum number of messages of one all-to-all in flight from a rank.
    pub(super) parallelism: Option<u32>,
    pub(super) channels: &'a Channels,
    pub(super) hierarchy: &'a Dimensions,
    pub(super) reduction: &'a Reduction,
}

/// Implementation of an operation that replaces the one of the algorithm by this name, if there is one.
pub(super) type Replacement<'a> =
    dyn Fn(&'static str, &str) -> Result<Option<Implementation>, WorkloadError> + 'a;

/// Algorithm of each kind of call.
pub(super) struct Calls {
    all_reduce: Implementation,
    all_gather: Implementation,
    reduce_scatter: Implementation,
    all_to_all: Implementation,
    broadcast: Implementation,
    parallelism: Option<u32>,
    /// Ranks in each dimension, if the settings say so.
    dimensions: Vec<u32>,
}

impl CallSettings<'_> {
    /// Settings of hierarchical collectives.
    fn of_hierarchies(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let hierarchy = self.hierarchy.entries().into_iter();
        hierarchy.chain(self.reduction.entries())
    }
}

impl Calls {
    /// Creates the algorithms that the settings of a workload of kind `D` name.
    pub(super) fn new<D: WorkloadDefinition>(
        settings: &CallSettings<'_>,
        replacement: &Replacement<'_>,
    ) -> Result<Self, WorkloadError> {
        if settings.chunk == Some(Bytes::ZERO) {
            let fix = "write a size of at least one byte, as in \"128KiB\"";
            return Err(D::fault("chunk", "a chunk carries no bytes", fix));
        }
        let chosen = |operation: &'static str, algorithm: &str| {
            if let Some(found) = replacement(operation, algorithm)? {
                return Ok(found);
            }
            let found = CollectiveSettings::named(operation, algorithm);
            let mut found = found.ok_or_else(|| {
                let known: Vec<&str> = algorithms(operation).collect();
                let near = nearest(algorithm, known.iter().copied());
                let fix = suggestion(near, &format!("use one of: {}", known.join(", ")));
                let message = format!("there is no algorithm \"{algorithm}\"");
                D::fault(operation, message, fix)
            })?;
            if let Some(chunk) = settings.chunk {
                set(&mut found, "chunk", chunk);
            }
            // The result is ignored: some algorithms do not have channels.
            let _ = found.set("channels", &settings.channels.channels.to_value());
            if algorithm == HIERARCHICAL {
                for (key, value) in settings.of_hierarchies() {
                    // Operations without a sum have no rate of it.
                    let _ = found.set(key, &value);
                }
            }
            Ok::<_, WorkloadError>(Implementation::from(found))
        };
        let mut all_to_all = chosen("all-to-all", settings.all_to_all)?;
        // A limit of the graph would apply to all messages of the job; `limited` sets a limit for each call.
        if let CollectiveSettings::AllToAll(settings) = &mut all_to_all.settings {
            settings.parallelism = None;
        }
        let calls = Self {
            all_reduce: chosen("all-reduce", settings.all_reduce)?,
            all_gather: chosen("all-gather", settings.all_gather)?,
            reduce_scatter: chosen("reduce-scatter", settings.reduce_scatter)?,
            all_to_all,
            broadcast: chosen("broadcast", settings.broadcast)?,
            parallelism: settings.parallelism,
            dimensions: settings.hierarchy.dimensions.clone(),
        };
        calls.check_used::<D>(settings)?;
        Ok(calls)
    }

    /// Refuses settings of hierarchical collectives if there are none. Dimensions alone may be those of calls along some of them.
    fn check_used<D: WorkloadDefinition>(
        &self,
        settings: &CallSettings<'_>,
    ) -> Result<(), WorkloadError> {
        let all = [
            &self.all_reduce,
            &self.all_gather,
            &self.reduce_scatter,
            &self.all_to_all,
        ];
        if all.iter().any(|own| own.is_hierarchical()) {
            return Ok(());
        }
        let usual = CallSettings {
            hierarchy: &Dimensions::default(),
            reduction: &Reduction::default(),
            ..*settings
        };
        let given = settings.of_hierarchies().zip(usual.of_hierarchies());
        let mut unused = given.filter(|(own, usual)| own != usual);
        match unused.find(|((key, _), _)| *key != "dimensions") {
            None => Ok(()),
            Some(((key, _), _)) => {
                let message = "no collective has the algorithm \"hierarchical\"";
                let fix = "write it, as in `all-reduce = \"hierarchical\"`, or leave this out";
                Err(D::fault(key, message, fix))
            }
        }
    }

    /// Adds the messages of `call` to the graph of the job, whose ranks are on `hosts`. The result has the form that
    /// [`Expand`](clearway_workload::Expand) requires.
    pub(super) fn expand(
        &self,
        call: &CollectiveCall<'_>,
        (context, hosts): (&BuildContext<'_>, &[HostId]),
        graph: &mut Graph,
    ) -> Result<Vec<Vec<TaskId>>, ExpansionFault> {
        let own: Vec<HostId> = call.group.iter().map(|rank| hosts[rank.index()]).collect();
        let part = self.part(call, (&context.layout(&own), hosts.len() as u32))?;
        let tasks = (graph.len() + part.len()) as u64;
        if tasks > MOST_TASKS {
            return Err(ExpansionFault {
                reason: format!(
                    "with this collective the job becomes {tasks} messages and computations, but {MOST_TASKS} are the most that a job may have"
                ),
                fix: "write a larger `chunk`, or run fewer passes, ranks or layers".into(),
            });
        }
        call.embed(&part, graph)
    }

    /// The messages of a collective, with its ranks numbered from zero.
    fn part(
        &self,
        call: &CollectiveCall<'_>,
        (layout, all): (&Layout, u32),
    ) -> Result<Graph, ExpansionFault> {
        let ranks = layout.ranks();
        let built = |implementation: &Implementation| {
            let mut settings = implementation.settings.clone();
            set(&mut settings, "size", call.bytes);
            if implementation.is_hierarchical() {
                let sizes = self.dimensions_of(call, (layout, all));
                implementation.lay_out(&mut settings, &sizes, call.bytes);
            }
            let collective = settings.build_on(layout);
            collective
                .map(|collective| collective.graph)
                .map_err(|error| ExpansionFault {
                    reason: error.to_string(),
                    fix: error.fix,
                })
        };
        match call.kind {
            CollectiveKind::AllReduce => built(&self.all_reduce),
            CollectiveKind::AllGather => built(&self.all_gather),
            CollectiveKind::ReduceScatter => built(&self.reduce_scatter),
            CollectiveKind::AllToAll => {
                let part = built(&self.all_to_all)?;
                Ok(match self.parallelism {
                    Some(limit) => limited(&part, limit as usize),
                    None => part,
                })
            }
            CollectiveKind::Broadcast => built(&self.broadcast),
            CollectiveKind::Reduce => Ok(reversed(&built(&self.broadcast)?)),
            CollectiveKind::Gather => Ok(star(ranks, call.bytes, |other| (other, Rank(0)))),
            CollectiveKind::Scatter => Ok(star(ranks, call.bytes, |other| (Rank(0), other))),
            CollectiveKind::Barrier => Ok(barrier(ranks)),
        }
    }
}

impl Calls {
    /// Dimensions of a call.
    fn dimensions_of(
        &self,
        call: &CollectiveCall<'_>,
        (layout, all): (&Layout, u32),
    ) -> CallDimensions {
        let ranks: Vec<u32> = call.group.iter().map(|rank| rank.0).collect();
        let own = match &self.dimensions[..] {
            [] => Some(layout.dimensions().to_vec()).filter(|sizes| !sizes.is_empty()),
            sizes => sub_lattice(sizes, &ranks),
        };
        match own {
            Some(sizes) => CallDimensions::Sizes(sizes),
            None if ranks.len() < all as usize => CallDimensions::One(ranks.len() as u32),
            None => CallDimensions::OfNodes(ranks.len() as u32),
        }
    }
}

fn set(settings: &mut CollectiveSettings, key: &str, bytes: Bytes) {
    let value = Value::Text(format!("{}B", bytes.as_u64()));
    settings
        .set(key, &value)
        .expect("every collective has a size and a chunk");
}

/// The same messages in the same order, with at most `limit` messages in flight from each rank.
pub(super) fn limited(part: &Graph, limit: usize) -> Graph {
    let mut own: Vec<Vec<TaskId>> = vec![Vec::new(); part.ranks() as usize];
    let mut graph = Graph::new(part.ranks());
    for (id, task) in part.numbered() {
        let mut needs = part.needs(id).to_vec();
        if let Task::Message { src, .. } = task {
            let own = &mut own[src.index()];
            let before = own.len().checked_sub(limit);
            needs.extend(before.map(|before| TaskDependency::over(own[before])));
            own.push(id);
        }
        graph.add(task, needs);
    }
    graph
}

/// Reverses a broadcast into a reduce. In a reduce, each rank first receives from all ranks that it sends to in the broadcast. Then it
/// sends to the rank that it receives from in the broadcast. So sums go up the paths on which copies go down.
pub(super) fn reversed(part: &Graph) -> Graph {
    let successors = part.successors();
    let last = part.len() as u32;
    let mirrored = |id: TaskId| TaskId(last - 1 - id.0);
    let mut graph = Graph::new(part.ranks());
    for id in (0..last).rev().map(TaskId) {
        let task = match part.task(id) {
            Task::Message { src, dst, bytes } => Task::Message {
                src: dst,
                dst: src,
                bytes,
            },
            compute @ Task::Compute { .. } => compute,
        };
        let followers = successors.get(id).iter();
        graph.add(
            task,
            followers.map(|&(other, _)| TaskDependency::over(mirrored(other))),
        );
    }
    graph
}

/// Gather or scatter: one part of the array between the first rank and each other rank.
pub(super) fn star(ranks: u32, bytes: Bytes, ends: impl Fn(Rank) -> (Rank, Rank)) -> Graph {
    let (parts, size) = (u64::from(ranks), bytes.as_u64());
    let mut graph = Graph::new(ranks);
    for rank in 1..ranks {
        // If the size is not a multiple of the number of ranks, the first parts have one byte more.
        let more = u64::from(u64::from(rank) < size % parts);
        let part = Bytes::new(size / parts + more);
        if part > Bytes::ZERO {
            graph.message(ends(Rank(rank)), part, []);
        }
    }
    graph
}

/// Dissemination barrier: no rank leaves before all ranks have entered. In round k, each rank notifies the rank 2^k places after it, once
/// it has received the notifications of all earlier rounds.
pub(super) fn barrier(ranks: u32) -> Graph {
    let mut graph = Graph::new(ranks);
    let mut heard: Vec<Vec<TaskId>> = vec![Vec::new(); ranks as usize];
    let mut distance = 1u64;
    while distance < u64::from(ranks) {
        let mut told = Vec::new();
        for rank in 0..ranks {
            let to = ((u64::from(rank) + distance) % u64::from(ranks)) as u32;
            let after = heard[rank as usize].iter().copied();
            let message = graph.message((Rank(rank), Rank(to)), Bytes::new(1), after);
            told.push((to, message));
        }
        for (to, message) in told {
            heard[to as usize].push(message);
        }
        distance *= 2;
    }
    graph
}

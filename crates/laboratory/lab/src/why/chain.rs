//! The longest chain of a job: messages and computations that wait for each other, over all iterations.
//!
//! Each message takes its ideal time and each computation its configured time, even if its unit has other work. Limits of parallelism,
//! slots, jitter and other messages only add time.

use crate::assemble::Assembly;
use crate::lanes::JobConnections;
use clearway_units::{Bytes, FlowId, HostId, Span, Time};
use clearway_workload::{Graph, JobSpec, Pace, Rank, Task, TaskDependency, TaskId};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Step of a chain of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobStep {
    /// A message on a connection: until it arrives, or until it is acknowledged if its sender waits for the acknowledgement.
    Message {
        /// The connection.
        flow: FlowId,
        /// Length of the message.
        bytes: Bytes,
        /// Time of the message on an idle network.
        span: Span,
    },
    /// A computation.
    Computation {
        /// Host that computes.
        host: HostId,
        /// Shortest time of the computation.
        span: Span,
    },
}

/// The longest chain of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JobChain {
    /// Earliest end of the job.
    pub(super) end: Time,
    pub(super) label: String,
    /// Steps of the chain, in order.
    pub(super) steps: Vec<JobStep>,
}

/// Shortest times of a message: until it arrives, and until it is acknowledged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Least {
    pub(super) arrival: Span,
    pub(super) acknowledgement: Span,
}

/// Earliest times of the tasks of an iteration.
struct Iteration {
    begun: Vec<Time>,
    /// End of each task at its rank.
    over: Vec<Time>,
    /// Arrival of each message.
    arrived: Vec<Time>,
    /// End of the iteration at each rank, and the last task that the rank waited for, if any.
    ends: Vec<(Time, Option<TaskId>)>,
}

/// A job on an idle network.
struct Job<'a> {
    spec: &'a JobSpec,
    connections: &'a JobConnections,
    graph: &'a Graph,
    /// All tasks in topological order: each after the tasks that it waits for.
    order: Vec<TaskId>,
    messages: FxHashMap<(FlowId, Bytes), Least>,
    paces: Vec<Pace>,
}

impl Assembly {
    /// The longest chains of the jobs that start.
    pub(super) fn job_chains(&self) -> impl Iterator<Item = JobChain> {
        let jobs = self.jobs.all().filter(|(spec, _)| !spec.start.is_never());
        jobs.map(|(spec, connections)| Job::new(self, spec, connections).chain())
    }

    pub(super) fn least(&self, flow: FlowId, bytes: Bytes) -> Least {
        let flow = self.nic_traffic().flow(flow);
        let acknowledgement =
            self.ideal_between((flow.src, flow.dst), self.transports.number_of(flow), bytes);
        let back = self.answer_span(flow);
        Least {
            arrival: Span::from_ps(acknowledgement.as_ps().saturating_sub(back.as_ps())),
            acknowledgement,
        }
    }
}

impl<'a> Job<'a> {
    fn new(assembly: &Assembly, spec: &'a JobSpec, connections: &'a JobConnections) -> Self {
        let graph = spec.plan.graph();
        let mut messages = FxHashMap::default();
        for (id, task) in graph.numbered() {
            if let Task::Message { src, dst, bytes } = task {
                let flow = connections.connection((src, dst), id);
                let least = || assembly.least(flow, bytes);
                messages.entry((flow, bytes)).or_insert_with(least);
            }
        }
        // Jitter makes computations longer, never shorter.
        let pace = |rank| Pace {
            jitter: 0.0,
            ..spec.pace(Rank(rank), 0, 0)
        };
        Self {
            spec,
            connections,
            graph,
            order: order(graph),
            messages,
            paces: (0..graph.ranks()).map(pace).collect(),
        }
    }

    fn chain(mut self) -> JobChain {
        let mut ready = vec![vec![self.spec.start; self.graph.ranks() as usize]];
        let mut last = self.iteration(&ready[0]);
        for _ in 1..self.spec.iterations {
            ready.push(last.ends.iter().map(|&(end, _)| end).collect());
            last = self.iteration(&ready[ready.len() - 1]);
        }
        let ends = (0..).map(Rank).zip(&last.ends);
        let longest = ends.max_by_key(|&(rank, &(end, _))| (end, Reverse(rank)));
        let (mut rank, end) =
            longest.map_or((Rank(0), self.spec.start), |(rank, end)| (rank, end.0));
        let mut steps = Vec::new();
        // Walks back through the iterations. Only their begins are stored, so each iteration is computed again.
        while let Some(ready) = ready.pop() {
            let times = self.iteration(&ready);
            let mut open = times.ends[rank.index()].1.map(TaskDependency::over);
            while let Some(need) = open {
                let id = need.task();
                if !need.is_begun() {
                    steps.extend(self.step(id, rank, &times));
                }
                rank = self.graph.task(id).rank();
                open = self.cause(id, &times);
            }
        }
        steps.reverse();
        JobChain {
            end,
            label: self.spec.label.clone(),
            steps,
        }
    }

    /// An iteration whose ranks begin at these times.
    fn iteration(&mut self, ready: &[Time]) -> Iteration {
        let count = self.graph.len();
        let mut times = Iteration {
            begun: vec![Time::ZERO; count],
            over: vec![Time::ZERO; count],
            arrived: vec![Time::ZERO; count],
            ends: ready.iter().map(|&ready| (ready, None)).collect(),
        };
        for &id in &self.order {
            let (task, place) = (self.graph.task(id), id.index());
            let rank = task.rank();
            let needs = self.graph.needs(id).iter();
            let seen = needs.map(|&need| times.seen(self.graph, need, rank));
            let begun = seen.fold(ready[rank.index()], Time::max);
            times.begun[place] = begun;
            match task {
                Task::Compute { unit, span, .. } => {
                    let span = match span.is_zero() {
                        true => span,
                        false => self.paces[rank.index()].scale(unit, span),
                    };
                    times.over[place] = begun.saturating_add(span);
                }
                Task::Message { src, dst, bytes } => {
                    let least =
                        self.messages[&(self.connections.connection((src, dst), id), bytes)];
                    times.over[place] = begun.saturating_add(least.acknowledgement);
                    times.arrived[place] = begun.saturating_add(least.arrival);
                    times.end(dst, times.arrived[place], id);
                }
            }
            times.end(rank, times.over[place], id);
        }
        times
    }

    /// The dependency that a task waited for last; `None` if the task was ready at the begin of its rank.
    fn cause(&self, id: TaskId, times: &Iteration) -> Option<TaskDependency> {
        let rank = self.graph.task(id).rank();
        let begun = times.begun[id.index()];
        let mut needs = self.graph.needs(id).iter().copied();
        needs.find(|&need| times.seen(self.graph, need, rank) == begun)
    }

    /// Step for a task in a chain that continues at `rank`; `None` if the task takes no time.
    fn step(&self, id: TaskId, rank: Rank, times: &Iteration) -> Option<JobStep> {
        let seen = times.seen(self.graph, TaskDependency::over(id), rank);
        let span = seen.since(times.begun[id.index()]);
        let step = match self.graph.task(id) {
            Task::Compute { rank, .. } => JobStep::Computation {
                host: self.spec.hosts[rank.index()],
                span,
            },
            Task::Message { src, dst, bytes } => JobStep::Message {
                flow: self.connections.connection((src, dst), id),
                bytes,
                span,
            },
        };
        (!span.is_zero()).then_some(step)
    }
}

impl Iteration {
    /// Time at which a dependency is met for `rank`.
    fn seen(&self, graph: &Graph, need: TaskDependency, rank: Rank) -> Time {
        let place = need.task().index();
        match graph.task(need.task()) {
            _ if need.is_begun() => self.begun[place],
            Task::Message { src, .. } if src != rank => self.arrived[place],
            _ => self.over[place],
        }
    }

    fn end(&mut self, rank: Rank, time: Time, task: TaskId) {
        let end = &mut self.ends[rank.index()];
        if time > end.0 {
            *end = (time, Some(task));
        }
    }
}

/// All tasks in topological order: each after the tasks that it waits for.
fn order(graph: &Graph) -> Vec<TaskId> {
    let successors = graph.successors();
    let mut waits: Vec<usize> = graph
        .numbered()
        .map(|(id, _)| graph.needs(id).len())
        .collect();
    let free = graph.numbered().filter(|&(id, _)| waits[id.index()] == 0);
    let mut order: Vec<TaskId> = free.map(|(id, _)| id).collect();
    let mut next = 0;
    while let Some(&id) = order.get(next) {
        next += 1;
        for &(successor, _) in successors.get(id) {
            waits[successor.index()] -= 1;
            if waits[successor.index()] == 0 {
                order.push(successor);
            }
        }
    }
    order
}

//! Plan of a job, which all its ranks share.

use crate::graph::{Graph, Rank, Successors, Task, TaskId};
use rustc_hash::FxHashMap;

/// A graph, prepared for running: which tasks are a rank's own, and which tasks wait for which.
///
/// Jobs that do the same can share one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedGraph {
    graph: Graph,
    successors: Successors,
    /// Tasks rank by rank, from rank 0 on, within a rank in the order of their numbers.
    by_rank: Vec<TaskId>,
    /// Index of the first task of each rank in `by_rank`, and the end.
    first: Vec<u32>,
    /// For each task its place among the tasks of its rank.
    place: Vec<u32>,
    /// For each message its place among the messages to its receiver.
    arrival: Vec<u32>,
    /// Messages to each rank.
    incoming: Vec<u32>,
}

impl PreparedGraph {
    /// Prepares a graph that has been [checked](Graph::check).
    ///
    /// # Panics
    /// If the graph names ranks that it does not have.
    pub fn new(graph: Graph) -> Self {
        // Counting sort of the tasks by rank: linear in the tasks, of which there may be 2^25, and stable. `first[r + 1]` counts the tasks
        // of r.
        let ranks = graph.ranks() as usize;
        let mut first = vec![0u32; ranks + 1];
        let mut incoming = vec![0; ranks];
        let mut arrival = vec![0; graph.len()];
        for (id, task) in graph.numbered() {
            first[task.rank().index() + 1] += 1;
            if let Task::Message { dst, .. } = task {
                arrival[id.index()] = incoming[dst.index()];
                incoming[dst.index()] += 1;
            }
        }
        for rank in 0..ranks {
            first[rank + 1] += first[rank];
        }
        // The second pass in task order keeps the tasks of a rank in the order of their numbers.
        let mut next = first.clone();
        let mut by_rank = vec![TaskId(0); graph.len()];
        let mut place = vec![0; graph.len()];
        for (id, task) in graph.numbered() {
            let rank = task.rank().index();
            by_rank[next[rank] as usize] = id;
            place[id.index()] = next[rank] - first[rank];
            next[rank] += 1;
        }
        Self {
            successors: graph.successors(),
            graph,
            by_rank,
            first,
            place,
            arrival,
            incoming,
        }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// For each task, in the order of tasks, the number of messages before it that go from its sender to its receiver; 0 for computations.
    pub fn places_in_pairs(&self) -> Vec<u32> {
        let mut sent: FxHashMap<(Rank, Rank), u32> = FxHashMap::default();
        let place = |(_, task)| match task {
            Task::Message { src, dst, .. } => {
                let next = sent.entry((src, dst)).or_default();
                *next += 1;
                *next - 1
            }
            Task::Compute { .. } => 0,
        };
        self.graph.numbered().map(place).collect()
    }

    /// The tasks of a rank, by number.
    pub(super) fn rank_tasks(&self, rank: Rank) -> &[TaskId] {
        let index = rank.index();
        &self.by_rank[self.first[index] as usize..self.first[index + 1] as usize]
    }

    /// The place of a task among the tasks of its rank.
    pub(super) fn place(&self, id: TaskId) -> usize {
        self.place[id.index()] as usize
    }

    /// The place of a message among the messages to its receiver, if `id` is a message to `rank`.
    pub(super) fn arrival(&self, id: TaskId, rank: Rank) -> Option<usize> {
        match self.graph.task(id) {
            Task::Message { dst, .. } if dst == rank => Some(self.arrival[id.index()] as usize),
            _ => None,
        }
    }

    /// Messages to a rank.
    pub(super) fn incoming(&self, rank: Rank) -> usize {
        self.incoming[rank.index()] as usize
    }

    /// Number of tasks of a rank and of messages to it: it is through when the tasks are over and the messages have arrived.
    pub(super) fn work_of(&self, rank: Rank) -> u32 {
        self.rank_tasks(rank).len() as u32 + self.incoming[rank.index()]
    }

    /// The tasks of `rank` that wait for `id` to be over, or to have begun.
    pub(super) fn waiting(
        &self,
        id: TaskId,
        rank: Rank,
        for_beginning: bool,
    ) -> impl Iterator<Item = TaskId> + '_ {
        let successors = self.successors.get(id).iter();
        let wanted = successors.filter(move |&&(_, begun)| begun == for_beginning);
        let own = move |id: &TaskId| self.graph.task(*id).rank() == rank;
        wanted.map(|&(id, _)| id).filter(own)
    }
}

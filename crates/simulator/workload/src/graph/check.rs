//! Proof, before a run, that every task of a graph can run.

use super::{Graph, Rank, Task, TaskId};
use clearway_units::Bytes;
use std::fmt;

/// Reason for which a graph cannot run. A reader of traces names the tasks as its file does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraphError {
    /// A task of a rank that does not exist.
    NoSuchRank {
        /// The task.
        task: TaskId,
        /// The rank.
        rank: Rank,
        /// Number of ranks.
        ranks: u32,
    },
    /// A message of a rank to itself.
    ToItself {
        /// The message.
        task: TaskId,
        /// The rank.
        rank: Rank,
    },
    /// A message that carries nothing.
    NoBytes {
        /// The message.
        task: TaskId,
    },
    /// More bytes from one rank than 64 bits hold.
    TooManyBytes {
        /// The message with which it happened.
        task: TaskId,
    },
    /// A task waits for one that does not exist.
    NoSuchTask {
        /// The task.
        task: TaskId,
        /// The missing task.
        needs: TaskId,
    },
    /// A task waits for something that happens at another rank, or for the beginning of a message to its own.
    Elsewhere {
        /// The task.
        task: TaskId,
        /// Task that it waits for.
        needs: TaskId,
    },
    /// Tasks that wait for one another in a cycle: each for the next, the last for the first.
    Circle {
        /// The tasks.
        tasks: Vec<TaskId>,
    },
    /// A limit of parallelism that lets nothing pass.
    NoParallelism,
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchRank { task, rank, ranks } => write!(
                f,
                "task {} is of rank {rank}, but there are {ranks} ranks",
                task.0
            ),
            Self::ToItself { task, rank } => {
                write!(f, "message {} goes from rank {rank} to itself", task.0)
            }
            Self::NoBytes { task } => write!(f, "message {} carries no bytes", task.0),
            Self::TooManyBytes { task } => write!(
                f,
                "with message {} its sender sends more than 2^64 bytes",
                task.0
            ),
            Self::NoSuchTask { task, needs } => {
                write!(
                    f,
                    "task {} waits for {}, which does not exist",
                    task.0, needs.0
                )
            }
            Self::Elsewhere { task, needs } => write!(
                f,
                "task {} waits for {}, which happens at another rank",
                task.0, needs.0
            ),
            Self::Circle { tasks } => {
                let numbers: Vec<String> = tasks.iter().map(|task| task.0.to_string()).collect();
                write!(f, "tasks wait for one another: {}", numbers.join(", "))
            }
            Self::NoParallelism => write!(f, "a parallelism of zero lets no message pass"),
        }
    }
}

impl std::error::Error for GraphError {}

impl Graph {
    /// Proves that every task can run, independent of the network.
    ///
    /// # Errors
    /// The first fault: tasks in their order, then cycles.
    pub fn check(&self) -> Result<(), GraphError> {
        if let Some(limit) = self.parallelism
            && (limit.from_sender == 0 || limit.to_receiver == Some(0))
        {
            return Err(GraphError::NoParallelism);
        }
        let mut sent = vec![0u64; self.ranks as usize];
        for (id, task) in self.numbered() {
            self.check_task(id, task)?;
            if let Task::Message { src, bytes, .. } = task {
                let total = sent[src.index()].checked_add(bytes.as_u64());
                sent[src.index()] = total.ok_or(GraphError::TooManyBytes { task: id })?;
            }
            self.check_needs(id, task)?;
        }
        match self.circle() {
            Some(tasks) => Err(GraphError::Circle { tasks }),
            None => Ok(()),
        }
    }

    fn check_task(&self, id: TaskId, task: Task) -> Result<(), GraphError> {
        let on_rank = |rank: Rank| {
            let ranks = self.ranks;
            let error = GraphError::NoSuchRank {
                task: id,
                rank,
                ranks,
            };
            if rank.0 < ranks { Ok(()) } else { Err(error) }
        };
        match task {
            Task::Compute { rank, .. } => on_rank(rank),
            Task::Message { src, dst, bytes } => {
                on_rank(src)?;
                on_rank(dst)?;
                if src == dst {
                    return Err(GraphError::ToItself {
                        task: id,
                        rank: src,
                    });
                }
                if bytes == Bytes::ZERO {
                    return Err(GraphError::NoBytes { task: id });
                }
                Ok(())
            }
        }
    }

    fn check_needs(&self, id: TaskId, task: Task) -> Result<(), GraphError> {
        for need in self.needs(id) {
            let needs = need.task();
            let Some(other) = self.tasks.get(needs.index()) else {
                return Err(GraphError::NoSuchTask { task: id, needs });
            };
            let is_here = match need.is_begun() {
                true => other.rank() == task.rank(),
                false => other.is_seen_by(task.rank()),
            };
            if !is_here {
                return Err(GraphError::Elsewhere { task: id, needs });
            }
        }
        Ok(())
    }

    /// Tasks that wait for one another in a cycle, if there are any: the first cycle on the way back from the lowest task that never
    /// becomes ready.
    fn circle(&self) -> Option<Vec<TaskId>> {
        let successors = self.successors();
        let mut waits: Vec<u32> = (0..self.len())
            .map(|index| self.needs(TaskId(index as u32)).len() as u32)
            .collect();
        let mut ready: Vec<u32> = (0..self.len() as u32)
            .filter(|&id| waits[id as usize] == 0)
            .collect();
        while let Some(done) = ready.pop() {
            for &(next, _) in successors.get(TaskId(done)) {
                let waits = &mut waits[next.index()];
                *waits -= 1;
                if *waits == 0 {
                    ready.push(next.0);
                }
            }
        }
        let stuck = |id: TaskId| waits[id.index()] > 0;
        let start = (0..self.len() as u32).map(TaskId).find(|&id| stuck(id))?;
        let mut place = vec![u32::MAX; self.len()];
        let mut way = Vec::new();
        let mut at = start;
        while place[at.index()] == u32::MAX {
            place[at.index()] = way.len() as u32;
            way.push(at);
            let mut needs = self.needs(at).iter().map(|need| need.task());
            // A task that is stuck waits for another that is.
            at = needs.find(|&id| stuck(id))?;
        }
        Some(way.split_off(place[at.index()] as usize))
    }

    /// Edges of the graph in reverse.
    pub fn successors(&self) -> Successors {
        let mut first = vec![0u32; self.len() + 1];
        for need in &self.needs {
            first[need.task().index() + 1] += 1;
        }
        for index in 0..self.len() {
            first[index + 1] += first[index];
        }
        let mut fill = first.clone();
        let mut edges = vec![(TaskId(0), false); self.needs.len()];
        for index in 0..self.len() {
            let id = TaskId(index as u32);
            for need in self.needs(id) {
                let place = &mut fill[need.task().index()];
                edges[*place as usize] = (id, need.is_begun());
                *place += 1;
            }
        }
        Successors { first, edges }
    }
}

/// Tasks that wait for each task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Successors {
    first: Vec<u32>,
    edges: Vec<(TaskId, bool)>,
}

impl Successors {
    /// Tasks that wait for `id`, by number, each with true if `id` need only have begun.
    ///
    /// # Panics
    /// If the graph has no such task.
    pub fn get(&self, id: TaskId) -> &[(TaskId, bool)] {
        let index = id.index();
        &self.edges[self.first[index] as usize..self.first[index + 1] as usize]
    }
}

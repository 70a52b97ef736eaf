//! Graph of the messages and computations of a job's ranks, with their order.
//!
//! Every collective and every trace becomes a [`Graph`]. Its tasks are numbered in the order in which they were added; a task belongs to
//! one *rank*, and all its dependencies happen at that rank, so that each host can run its part alone:
//!
//! * a [message](Task::Message) belongs to its sender. For a task of its sender it is over when every byte is acknowledged, for a task of
//!   its receiver when every byte has arrived;
//! * a [computation](Task::Compute) is over when its time is. One unit of a rank does one computation at a time, in the order in
//!   which they become ready;
//! * a computation that takes no time joins its dependencies and occupies no unit.
//!
//! Messages from one rank to another share a connection and leave in the order in which they become ready.
//!
//! A graph of a million messages takes some 40 MB: tasks of fixed size and one list of all edges.

mod calls;
mod check;
mod task_id;
#[cfg(test)]
mod tests;

use clearway_units::{Bytes, Span};

use calls::Calls;
pub use calls::GraphCall;
pub use check::{GraphError, Successors};
pub use task_id::TaskId;

/// The number of a rank of a job, from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rank(pub u32);

impl Rank {
    /// The number as an index into a `Vec`.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Display for Rank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The unit of a rank that adds arrived bytes to the buffer. Traces do not use it: their units are 0 to 255.
///
/// It is not the processor that the job computes with. So sums are formed in parallel to computations, and neither jitter nor a straggler's
/// factor changes their time.
pub const ADDER: u16 = 256;

/// The most tasks that a job's graph is built with. A message of a ring takes 49 bytes when it has been built, and 75 at the peak, when the
/// graph becomes a [`PreparedGraph`](crate::PreparedGraph) (measured with 30 million; with a window some 20 more): so many take about 3 GB,
/// which leaves room for the state of the run.
pub const MOST_TASKS: u64 = 1 << 25;

/// Operation of a rank: a computation or a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Task {
    /// Keeps a unit of a rank busy.
    Compute {
        /// Rank that computes.
        rank: Rank,
        /// Unit of the rank; one unit does one computation after the other. Units below [`ADDER`] are the job's.
        unit: u16,
        /// Time of the computation. With zero, it occupies no unit and joins its dependencies.
        span: Span,
    },
    /// Sends a message.
    Message {
        /// Sender.
        src: Rank,
        /// Receiver: another rank.
        dst: Rank,
        /// Size, above zero.
        bytes: Bytes,
    },
}

impl Task {
    /// Rank at which the task begins.
    pub const fn rank(&self) -> Rank {
        match *self {
            Self::Compute { rank, .. } | Self::Message { src: rank, .. } => rank,
        }
    }

    /// True if tasks of `rank` can wait for it.
    pub fn is_seen_by(&self, rank: Rank) -> bool {
        match *self {
            Self::Compute { rank: own, .. } => own == rank,
            Self::Message { src, dst, .. } => src == rank || dst == rank,
        }
    }
}

/// Dependency of a task: another task that must be over, or must have begun.
///
/// Packed, because a trace has millions: the highest bit tells the two apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskDependency(u32);

impl TaskDependency {
    const BEGUN: u32 = 1 << 31;

    /// Dependency that is met when `task` is over.
    pub const fn over(task: TaskId) -> Self {
        Self(task.0)
    }

    /// Dependency that is met when `task` has begun. A message has begun when it is ready to be sent; only tasks of its
    /// sender can wait for that.
    pub const fn begun(task: TaskId) -> Self {
        Self(task.0 | Self::BEGUN)
    }

    /// The other task.
    pub const fn task(self) -> TaskId {
        TaskId(self.0 & !Self::BEGUN)
    }

    /// True if the other task need only have begun.
    pub const fn is_begun(self) -> bool {
        self.0 & Self::BEGUN != 0
    }
}

/// Limits on the number of messages under way at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parallelism {
    /// Limit for messages from each rank, above zero. The next one may leave when one is acknowledged: the one that became ready first,
    /// and among those that became ready together the one with the lowest number.
    pub from_sender: u32,
    /// Limit for messages to each rank, above zero, if there is one.
    pub to_receiver: Option<u32>,
}

/// Tasks of the ranks of a job and their dependencies; see the [module](self).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Graph {
    ranks: u32,
    tasks: Vec<Task>,
    /// Index in `needs` of the first need of each task; the needs of the last task end with the list.
    first_need: Vec<u32>,
    needs: Vec<TaskDependency>,
    /// Calls of collectives, in the order of their tasks.
    calls: Calls,
    /// A limit for all messages, if there is one.
    pub parallelism: Option<Parallelism>,
}

impl Graph {
    /// Creates a graph of `ranks` ranks without tasks.
    pub fn new(ranks: u32) -> Self {
        Self {
            ranks,
            ..Self::default()
        }
    }

    /// Adds a task that waits for `needs`. The tasks that they name may be added later; [`check`](Self::check) requires them to be there.
    ///
    /// # Panics
    /// With 2^31 tasks or 2^32 needs.
    pub fn add(&mut self, task: Task, needs: impl IntoIterator<Item = TaskDependency>) -> TaskId {
        let id = self.tasks.len();
        assert!(
            id < TaskDependency::BEGUN as usize,
            "a graph has less than 2^31 tasks"
        );
        self.tasks.push(task);
        let first = u32::try_from(self.needs.len()).expect("a graph has less than 2^32 needs");
        self.first_need.push(first);
        self.needs.extend(needs);
        TaskId(id as u32)
    }

    /// Adds a message that waits until `after` are over.
    ///
    /// # Panics
    /// As [`add`](Self::add).
    pub fn message(
        &mut self,
        (src, dst): (Rank, Rank),
        bytes: Bytes,
        after: impl IntoIterator<Item = TaskId>,
    ) -> TaskId {
        let task = Task::Message { src, dst, bytes };
        self.add(task, after.into_iter().map(TaskDependency::over))
    }

    /// Adds a computation on unit 0 that waits until `after` are over.
    ///
    /// # Panics
    /// As [`add`](Self::add).
    pub fn compute(
        &mut self,
        rank: Rank,
        span: Span,
        after: impl IntoIterator<Item = TaskId>,
    ) -> TaskId {
        let task = Task::Compute {
            rank,
            unit: 0,
            span,
        };
        self.add(task, after.into_iter().map(TaskDependency::over))
    }

    /// Adds all tasks of `other`, which has as many ranks. Each of them also waits until the task that `gates` names for its rank is over.
    /// On a rank without a gate it waits for nothing more.
    ///
    /// # Panics
    /// As [`add`](Self::add), or if the numbers of ranks differ.
    pub fn append(&mut self, other: &Self, gates: &[TaskId]) {
        assert_eq!(self.ranks, other.ranks, "one job has one set of ranks");
        let offset = self.len() as u32;
        let shifted = |need: &TaskDependency| match need.is_begun() {
            true => TaskDependency::begun(TaskId(need.task().0 + offset)),
            false => TaskDependency::over(TaskId(need.task().0 + offset)),
        };
        for (id, task) in other.numbered() {
            let gate = gates
                .get(task.rank().index())
                .copied()
                .map(TaskDependency::over);
            let needs: Vec<TaskDependency> =
                other.needs(id).iter().map(shifted).chain(gate).collect();
            self.add(task, needs);
        }
        self.calls.append(&other.calls, offset);
        self.parallelism = self.parallelism.or(other.parallelism);
    }

    /// Notes that the tasks from `first` to the last one are one call of a collective. Calls of equal `content` among the same ranks are of
    /// one kind.
    ///
    /// # Panics
    /// If tasks from `first` on belong to an earlier call.
    pub fn note_call(&mut self, first: TaskId, content: u64) {
        let tasks = self.len() as u32 - first.0;
        self.calls.add(first, tasks, content);
    }

    /// Calls of collectives, in the order of their tasks.
    pub fn calls(&self) -> &[GraphCall] {
        self.calls.list()
    }

    /// Number of ranks.
    pub const fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Number of tasks.
    pub const fn len(&self) -> usize {
        self.tasks.len()
    }

    /// True if there are no tasks.
    pub const fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The task with number `id`.
    ///
    /// # Panics
    /// If the graph has no such task.
    pub fn task(&self, id: TaskId) -> Task {
        self.tasks[id.index()]
    }

    /// Dependencies of a task.
    ///
    /// # Panics
    /// If the graph has no such task.
    pub fn needs(&self, id: TaskId) -> &[TaskDependency] {
        let index = id.index();
        let end = self.first_need.get(index + 1);
        let end = end.map_or(self.needs.len(), |&end| end as usize);
        &self.needs[self.first_need[index] as usize..end]
    }

    /// Every task with its number.
    pub fn numbered(&self) -> impl Iterator<Item = (TaskId, Task)> + '_ {
        let tasks = self.tasks.iter().enumerate();
        tasks.map(|(index, task)| (TaskId(index as u32), *task))
    }

    /// Payload of all messages from each rank.
    pub fn bytes_sent(&self) -> Vec<Bytes> {
        let mut sent = vec![Bytes::ZERO; self.ranks as usize];
        for task in &self.tasks {
            if let Task::Message { src, bytes, .. } = task {
                sent[src.index()] += *bytes;
            }
        }
        sent
    }
}

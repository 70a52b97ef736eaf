//! A graph of messages as the expansion of a call.

use super::{CollectiveCall, ExpansionFault};
use crate::graph::{Graph, Task, TaskDependency, TaskId};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

impl CollectiveCall<'_> {
    /// Adds `part`, the messages of this collective alone among ranks that count from zero in the order of the group, to the `graph` of the
    /// whole program. Returns the value that an [`Expand`](super::Expand) must return.
    ///
    /// A rank does nothing of it before it has come to the call. It is past the call when all bytes that it receives have arrived and all
    /// bytes that it sends are acknowledged.
    ///
    /// # Errors
    /// If `part` has another number of ranks than the group, or a limit of parallelism: a graph's limit holds for all its messages.
    pub fn embed(
        &self,
        part: &Graph,
        graph: &mut Graph,
    ) -> Result<Vec<Vec<TaskId>>, ExpansionFault> {
        let ranks = self.group.len();
        if part.ranks() as usize != ranks {
            let has = part.ranks();
            return Err(ExpansionFault {
                reason: format!("a collective of {has} ranks cannot be the one of {ranks} ranks"),
                fix: format!("build it for {ranks} ranks"),
            });
        }
        if part.parallelism.is_some() {
            return Err(ExpansionFault {
                reason: "its limit of parallelism would hold for all messages of the job".into(),
                fix: "build it without a limit".into(),
            });
        }
        let first = graph.len() as u32;
        let content = self.content(part);
        // For each task: true if another one waits for its end, at the rank where it begins and at the rank where it ends.
        let mut is_waited_for = vec![[false; 2]; part.len()];
        let mut needs = Vec::new();
        for (id, task) in part.numbered() {
            let own = task.rank();
            let mut follows_own = false;
            for need in part.needs(id) {
                let other = need.task();
                let end = usize::from(part.task(other).rank() != own);
                follows_own |= end == 0;
                let moved = TaskId(first + other.0);
                needs.push(match need.is_begun() {
                    true => TaskDependency::begun(moved),
                    false => {
                        is_waited_for[other.index()][end] = true;
                        TaskDependency::over(moved)
                    }
                });
            }
            // A task that follows another task of its rank already comes after the start.
            let start = self.starts[own.index()];
            needs.extend((!follows_own).then_some(TaskDependency::over(start)));
            graph.add(self.moved(task), needs.drain(..));
        }
        graph.note_call(TaskId(first), content);
        let mut ends = vec![Vec::new(); ranks];
        for ((id, task), [at_begin, at_end]) in part.numbered().zip(is_waited_for) {
            let moved = TaskId(first + id.0);
            if !at_begin {
                ends[task.rank().index()].push(moved);
            }
            if let Task::Message { dst, .. } = task
                && !at_end
            {
                ends[dst.index()].push(moved);
            }
        }
        Ok(ends)
    }

    /// Hash of the tasks of `part` and of the ranks that run them.
    fn content(&self, part: &Graph) -> u64 {
        let mut hasher = FxHasher::default();
        self.group.hash(&mut hasher);
        for (id, task) in part.numbered() {
            task.hash(&mut hasher);
            part.needs(id).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// A task with the ranks of the program.
    fn moved(&self, task: Task) -> Task {
        match task {
            Task::Compute { rank, unit, span } => Task::Compute {
                rank: self.group[rank.index()],
                unit,
                span,
            },
            Task::Message { src, dst, bytes } => Task::Message {
                src: self.group[src.index()],
                dst: self.group[dst.index()],
                bytes,
            },
        }
    }
}

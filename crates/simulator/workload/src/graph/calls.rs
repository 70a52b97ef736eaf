//! Calls of collectives in a graph: which tasks belong together, and which calls repeat one another.

use super::task_id::TaskId;
use rustc_hash::FxHashMap;

/// Consecutive tasks of a graph that are one call of a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphCall {
    /// First task.
    pub first: TaskId,
    /// Number of tasks.
    pub tasks: u32,
    /// Kind of the call: calls of one kind have the same tasks between the same ranks, in the same order.
    pub kind: u32,
}

/// Calls of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Calls {
    /// In the order of their tasks.
    list: Vec<GraphCall>,
    /// Content of each kind.
    contents: Vec<u64>,
    /// Kind of each content.
    kinds: FxHashMap<u64, u32>,
}

impl Calls {
    /// Adds a call whose tasks follow those of all earlier calls.
    pub(super) fn add(&mut self, first: TaskId, tasks: u32, content: u64) {
        let end = self.list.last().map_or(0, |last| last.first.0 + last.tasks);
        assert!(first.0 >= end, "a task belongs to one call");
        if tasks == 0 {
            return;
        }
        let next = self.contents.len() as u32;
        let kind = *self.kinds.entry(content).or_insert(next);
        if kind == next {
            self.contents.push(content);
        }
        self.list.push(GraphCall { first, tasks, kind });
    }

    /// Adds the calls of another graph, whose tasks follow with numbers that are larger by `offset`.
    pub(super) fn append(&mut self, other: &Self, offset: u32) {
        for call in &other.list {
            let content = other.contents[call.kind as usize];
            self.add(TaskId(call.first.0 + offset), call.tasks, content);
        }
    }

    pub(super) fn list(&self) -> &[GraphCall] {
        &self.list
    }
}

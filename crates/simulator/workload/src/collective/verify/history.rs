//! Accesses to the buffers, and the order of messages by the dependencies.

use crate::collective::Collective;
use crate::{Rank, Successors, TaskId};

/// Maximum number of successors of a task that the quick search considers.
const NEIGHBOURS: usize = 4;

/// The messages that have touched a segment of a rank, as far as a later one has to come after them.
#[derive(Default)]
struct Accesses {
    /// Messages that have read the segment since it was last replaced.
    readers: Vec<TaskId>,
    /// Messages that have replaced the segment, or added to it since.
    writers: Vec<TaskId>,
    /// True if the first writer has replaced the segment.
    is_replaced: bool,
}

/// Accesses to a segment, and the order of messages by the dependencies.
pub(super) struct History<'a> {
    collective: &'a Collective,
    successors: Successors,
    accesses: Vec<Accesses>,
    /// Place of each task in an order that respects the dependencies.
    place: Vec<u32>,
    /// For each task the last search that came to it, and whether that found it to be over.
    seen: Vec<(u32, bool)>,
    /// For each task the last search that looked for it.
    wanted: Vec<u32>,
    searches: u32,
    stack: Vec<TaskId>,
}

impl<'a> History<'a> {
    pub(super) fn new(collective: &'a Collective, order: &[TaskId]) -> Self {
        let mut place = vec![0; order.len()];
        for (index, id) in (0..).zip(order) {
            place[id.index()] = index;
        }
        let ranks = collective.graph.ranks() as usize;
        Self {
            collective,
            successors: collective.graph.successors(),
            accesses: (0..ranks).map(|_| Accesses::default()).collect(),
            place,
            seen: vec![(0, false); order.len()],
            wanted: vec![0; order.len()],
            searches: 0,
            stack: Vec::new(),
        }
    }

    pub(super) fn clear(&mut self) {
        for accesses in &mut self.accesses {
            accesses.readers.clear();
            accesses.writers.clear();
            accesses.is_replaced = false;
        }
    }

    /// Records that `message` reads the segment of `rank`. The error holds a message with which it races, and `message` itself.
    pub(super) fn read(&mut self, rank: Rank, message: TaskId) -> Result<(), [TaskId; 2]> {
        let accesses = std::mem::take(&mut self.accesses[rank.index()]);
        let ordered = self.follows(message, &accesses.writers);
        self.accesses[rank.index()] = accesses;
        self.accesses[rank.index()].readers.push(message);
        ordered
    }

    /// Records that `message` adds to the segment of `rank`.
    pub(super) fn add(&mut self, rank: Rank, message: TaskId) -> Result<(), [TaskId; 2]> {
        let accesses = std::mem::take(&mut self.accesses[rank.index()]);
        // Two additions may come in any order, so an addition has to follow only the replacement before it.
        let replaced = &accesses.writers[..usize::from(accesses.is_replaced)];
        let ordered = self
            .follows(message, replaced)
            .and_then(|()| self.follows(message, &accesses.readers));
        self.accesses[rank.index()] = accesses;
        self.accesses[rank.index()].writers.push(message);
        ordered
    }

    /// Records that `message` replaces the segment of `rank`.
    pub(super) fn replace(&mut self, rank: Rank, message: TaskId) -> Result<(), [TaskId; 2]> {
        let mut accesses = std::mem::take(&mut self.accesses[rank.index()]);
        self.follows(message, &accesses.writers)?;
        self.follows(message, &accesses.readers)?;
        accesses.readers.clear();
        accesses.writers.clear();
        accesses.writers.push(message);
        accesses.is_replaced = true;
        self.accesses[rank.index()] = accesses;
        Ok(())
    }

    /// Checks that all of `others` are over before `message` begins.
    fn follows(&mut self, message: TaskId, others: &[TaskId]) -> Result<(), [TaskId; 2]> {
        let far = |other: &&TaskId| !self.follows_closely(message, **other);
        let far: Vec<TaskId> = others.iter().filter(far).copied().collect();
        let Some(first) = far.iter().map(|id| self.place[id.index()]).min() else {
            return Ok(());
        };
        match self.search(message, &far, first) {
            Some(other) => Err([other, message]),
            None => Ok(()),
        }
    }

    /// True if the dependencies lead from `other` to `message` in few steps. Often they do, and where thousands of messages wait for a task
    /// that waits for thousands, a search for each would take too long.
    fn follows_closely(&self, message: TaskId, other: TaskId) -> bool {
        let successors = self.successors.get(other).iter();
        // A task that waits for the beginning of `other` says nothing about the end of `other`.
        let mut after_end = successors
            .filter(|(_, is_begun)| !is_begun)
            .take(NEIGHBOURS);
        after_end.any(|&(id, _)| id == message || self.leads_to(message, id, 2))
    }

    /// True if `message` begins after `id` has begun, as far as `steps` dependencies in a row show it.
    fn leads_to(&self, message: TaskId, id: TaskId, steps: u32) -> bool {
        let successors = self.successors.get(id);
        let is_next = successors.binary_search_by_key(&message, |(id, _)| *id);
        let mut near = successors.iter().take(NEIGHBOURS);
        is_next.is_ok() || steps > 1 && near.any(|&(id, _)| self.leads_to(message, id, steps - 1))
    }

    /// Returns the first of `others` that need not be over when `message` begins. It follows the dependencies of `message` back to the
    /// place `first`, the lowest of `others`.
    fn search(&mut self, message: TaskId, others: &[TaskId], first: u32) -> Option<TaskId> {
        self.searches += 1;
        self.stack.clear();
        self.stack.push(message);
        for other in others {
            self.wanted[other.index()] = self.searches;
        }
        let mut left = others.len();
        while let Some(at) = self.stack.pop() {
            for need in self.collective.graph.needs(at) {
                let id = need.task();
                if self.place[id.index()] < first {
                    continue;
                }
                let (seen, is_over) = &mut self.seen[id.index()];
                if *seen != self.searches {
                    (*seen, *is_over) = (self.searches, false);
                    self.stack.push(id);
                }
                // Dependencies of a task are over when the task has begun, but the task itself need not be over.
                if need.is_begun() || std::mem::replace(is_over, true) {
                    continue;
                }
                left -= usize::from(self.wanted[id.index()] == self.searches);
                if left == 0 {
                    return None;
                }
            }
        }
        let is_before = |id: &&TaskId| self.seen[id.index()] == (self.searches, true);
        others.iter().find(|id| !is_before(id)).copied()
    }
}

//! Proof that a collective achieves its operation, independent of the network.
//!
//! Instead of data, the buffers hold sets of *contributors*: the ranks whose data is in the sum at a place. The proof shows two things.
//!
//! 1. No race: of two messages that touch the same bytes of a rank, at least one of which changes them, one is over before the other
//!    begins, by the dependencies alone. Two that both add are free to come in any order. So the bytes that a message carries, and the
//!    bytes that it finds, do not depend on when it is sent, when the network reads the sender's memory and when it arrives.
//! 2. In one order that respects the dependencies, and by (1) therefore in all of them, nothing is added twice, nothing is sent before it
//!    is there, and in the end every rank holds the result of the [operation](super::Operation).
//!
//! Bytes that the same messages touch share their fate, so one of each segment is looked at: the work grows with ranks x segments, and
//! with the messages and dependencies between the accesses to a segment.

mod buffers;
mod fault;
mod history;
mod layout;

use super::{Collective, Effect, Move};
use crate::{Rank, Task, TaskId};
use buffers::Buffers;
use clearway_units::Bytes;
use history::History;
use layout::Layout;
use std::ops::Range;

pub use fault::CollectiveFault;
use fault::named;

impl Collective {
    /// Proves that the graph can run, and that in the end every rank has the result of the operation, independent of the network: no
    /// message is sent before its bytes are there, nothing is added twice, and no order that the dependencies leave open matters.
    ///
    /// A sum counts as formed when the message has arrived. Where adding up takes time, the tasks that need the sum must wait for the
    /// addition.
    ///
    /// # Errors
    /// The first fault: in the graph, in the moves, then by place in the buffer.
    pub fn verify(&self) -> Result<(), CollectiveFault> {
        self.graph.check().map_err(CollectiveFault::Graph)?;
        let (moves, tasks) = (self.moves.len(), self.graph.len());
        if moves != tasks {
            return Err(CollectiveFault::Moves { moves, tasks });
        }
        for (&message, ranges) in &self.scattered {
            let lengths = ranges
                .iter()
                .map(|range| u128::from(range.end.saturating_sub(range.start)));
            let sum: u128 = lengths.sum();
            let is_whole = message.index() < tasks
                && matches!(
                    self.graph.task(message),
                    Task::Message { bytes, .. } if u128::from(bytes.as_u64()) == sum
                );
            if !is_whole {
                return Err(CollectiveFault::Scattered { message });
            }
        }
        let layout = Layout::from_collective(self).ok_or(CollectiveFault::Operation)?;
        let order = self.order();
        let segments = self.segments(&layout, &order)?;
        let mut history = History::new(self, &order);
        let mut buffers = Buffers::new(layout.ranks);
        for (range, messages) in segments.iter() {
            history.clear();
            buffers.begin(&layout, range.start);
            for &message in messages {
                self.apply(message, &range, &mut history, &mut buffers)?;
            }
            buffers.check(&layout, &range)?;
        }
        Ok(())
    }

    /// The tasks in an order that respects the dependencies.
    fn order(&self) -> Vec<TaskId> {
        let successors = self.graph.successors();
        let tasks = self.graph.numbered();
        let mut waits: Vec<u32> = tasks
            .map(|(id, _)| self.graph.needs(id).len() as u32)
            .collect();
        let ids = (0..waits.len() as u32).map(TaskId);
        let mut order: Vec<TaskId> = ids.filter(|id| waits[id.index()] == 0).collect();
        let mut next = 0;
        while let Some(&done) = order.get(next) {
            next += 1;
            for &(id, _) in successors.get(done) {
                let waits = &mut waits[id.index()];
                *waits -= 1;
                if *waits == 0 {
                    order.push(id);
                }
            }
        }
        order
    }

    /// Byte ranges of a message that carries data.
    fn ranges(&self, id: TaskId) -> impl Iterator<Item = Range<u64>> + '_ {
        let Move { offset, effect } = self.moves[id.index()];
        let bytes = match self.graph.task(id) {
            Task::Message { bytes, .. } if effect != Effect::Nothing => Some(bytes),
            _ => None,
        };
        let scattered = self.scattered.get(&id);
        let end = |bytes: Bytes| offset.as_u64().saturating_add(bytes.as_u64());
        let whole = bytes.filter(|_| scattered.is_none());
        let whole = whole.map(|bytes| offset.as_u64()..end(bytes));
        let parts = scattered.filter(|_| bytes.is_some()).into_iter().flatten();
        whole.into_iter().chain(parts.cloned())
    }

    fn segments(&self, layout: &Layout<'_>, order: &[TaskId]) -> Result<Segments, CollectiveFault> {
        let mut bounds = layout.boundaries();
        for &message in order {
            for range in self.ranges(message) {
                bounds.extend([range.start, range.end]);
                if range.end > layout.extent {
                    return Err(CollectiveFault::Outside {
                        message,
                        range: named(&range),
                        size: Bytes::new(layout.extent),
                    });
                }
            }
        }
        bounds.sort_unstable();
        bounds.dedup();
        let place = |at: u64| bounds.partition_point(|&bound| bound < at);
        let touched = |id| {
            let ranges = self.ranges(id);
            ranges.map(move |range| (id, place(range.start)..place(range.end)))
        };
        let mut first = vec![0usize; bounds.len()];
        for (_, places) in order.iter().copied().flat_map(&touched) {
            places.for_each(|place| first[place + 1] += 1);
        }
        for place in 1..first.len() {
            first[place] += first[place - 1];
        }
        let mut fill = first.clone();
        let mut messages = vec![TaskId(0); first[first.len() - 1]];
        for (id, places) in order.iter().copied().flat_map(&touched) {
            for place in places {
                messages[fill[place]] = id;
                fill[place] += 1;
            }
        }
        Ok(Segments {
            bounds,
            first,
            messages,
        })
    }

    /// Applies a message to one segment.
    fn apply(
        &self,
        message: TaskId,
        range: &Range<u64>,
        history: &mut History<'_>,
        buffers: &mut Buffers,
    ) -> Result<(), CollectiveFault> {
        let Task::Message { src, dst, .. } = self.graph.task(message) else {
            return Ok(());
        };
        let unset = |rank| CollectiveFault::Unset {
            message,
            rank,
            range: named(range),
        };
        history.read(src, message).map_err(race(src, range))?;
        if !buffers.is_set[src.index()] {
            return Err(unset(src));
        }
        match self.moves[message.index()].effect {
            Effect::Reduce => {
                history.add(dst, message).map_err(race(dst, range))?;
                if !buffers.is_set[dst.index()] {
                    return Err(unset(dst));
                }
                if let Some(contributor) = buffers.add(src, dst) {
                    return Err(CollectiveFault::Twice {
                        message,
                        rank: dst,
                        range: named(range),
                        contributor,
                    });
                }
            }
            Effect::Copy => {
                history.replace(dst, message).map_err(race(dst, range))?;
                buffers.copy(src, dst);
            }
            Effect::Nothing => {}
        }
        Ok(())
    }
}

fn race(rank: Rank, range: &Range<u64>) -> impl FnOnce([TaskId; 2]) -> CollectiveFault + use<> {
    let range = named(range);
    move |messages| CollectiveFault::Race {
        rank,
        range,
        messages,
    }
}

/// The buffer cut where any message begins or ends, and for each segment the messages that carry it, in the order of tasks.
struct Segments {
    bounds: Vec<u64>,
    first: Vec<usize>,
    messages: Vec<TaskId>,
}

impl Segments {
    fn iter(&self) -> impl Iterator<Item = (Range<u64>, &[TaskId])> {
        let bounds = self.bounds.windows(2).zip(self.first.windows(2));
        bounds.map(|(bounds, first)| (bounds[0]..bounds[1], &self.messages[first[0]..first[1]]))
    }
}

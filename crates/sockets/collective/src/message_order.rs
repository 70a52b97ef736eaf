//! Order of the additions at a rank.
//!
//! The graph does not order two messages that add to the same elements of a rank, because a mathematical sum does not depend on the order.
//! A sum of floats does: here messages take turns, by their numbers.

use crate::plan::CollectivePlan;
use clearway_workload::collective::Effect;
use std::collections::BTreeMap;

/// Messages that have to wait for other messages.
#[derive(Debug, Default)]
pub(crate) struct MessageOrder {
    /// For each waiting message, the number of messages before it.
    waits: BTreeMap<u32, u32>,
    /// For each message, the messages that follow it directly.
    behind: BTreeMap<u32, Vec<u32>>,
}

impl MessageOrder {
    /// The turns at a rank.
    pub(crate) fn new(plan: &CollectivePlan, rank: u32) -> Self {
        let mut turns = Self::default();
        // The last message to each part of the buffer: start, and end and message.
        let mut last: BTreeMap<usize, (usize, u32)> = BTreeMap::new();
        for (id, (_, dst)) in plan.messages() {
            let (range, effect) = plan.target(id.0);
            if dst.0 != rank || effect != Effect::Reduce {
                continue;
            }
            let from = last.range(..range.start).next_back();
            let from = from.map_or(range.start, |(start, _)| *start);
            let near: Vec<_> = last.range(from..range.end).map(|(a, b)| (*a, *b)).collect();
            for (start, (end, before)) in
                near.into_iter().filter(|(_, (end, _))| *end > range.start)
            {
                turns.add(before, id.0);
                last.remove(&start);
                if start < range.start {
                    last.insert(start, (range.start, before));
                }
                if end > range.end {
                    last.insert(range.end, (end, before));
                }
            }
            last.insert(range.start, (range.end, id.0));
        }
        turns
    }

    fn add(&mut self, before: u32, behind: u32) {
        *self.waits.entry(behind).or_default() += 1;
        self.behind.entry(before).or_default().push(behind);
    }

    /// True if a message has to wait.
    pub(crate) fn waits(&self, message: u32) -> bool {
        self.waits.contains_key(&message)
    }

    /// Records an added message. Returns the messages whose turn it is now.
    pub(crate) fn on_added(&mut self, message: u32) -> Vec<u32> {
        let mut free = self.behind.remove(&message).unwrap_or_default();
        free.retain(|behind| {
            let Some(waits) = self.waits.get_mut(behind) else {
                return false;
            };
            *waits -= 1;
            *waits == 0
        });
        free.iter().for_each(|message| {
            self.waits.remove(message);
        });
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Algorithm, BufferOperation};

    fn turns(operation: BufferOperation, name: &str, ranks: u32, rank: u32) -> MessageOrder {
        let algorithm = Algorithm::named(operation, name).unwrap();
        let plan = CollectivePlan::new(algorithm, ranks, 64, Some(16)).unwrap();
        MessageOrder::new(&plan, rank)
    }

    #[test]
    fn a_ring_needs_no_turns() {
        let ring = turns(BufferOperation::AllReduce, "ring", 5, 2);
        assert!(ring.waits.is_empty() && ring.behind.is_empty());
    }

    #[test]
    fn ranks_that_send_directly_come_one_after_the_other() {
        // Rank 3 gets one message from each of four others, for the same elements.
        let mut direct = turns(BufferOperation::ReduceScatter, "direct", 5, 3);
        assert_eq!(direct.waits.len(), 3);
        let first = *direct.behind.keys().next().unwrap();
        assert!(!direct.waits(first));
        let mut at = first;
        for _ in 0..3 {
            let next = direct.on_added(at);
            assert_eq!(next.len(), 1);
            assert!(next[0] > at);
            at = next[0];
        }
        assert!(direct.on_added(at).is_empty() && direct.waits.is_empty());
    }

    #[test]
    fn overlapping_ranges_wait_for_all_before_them() {
        // Halves, then quarters of these, from other ranks.
        let halving = turns(BufferOperation::AllReduce, "halving-doubling", 4, 0);
        assert!(!halving.waits.is_empty());
        assert!(halving.behind.iter().all(|(before, behind)| {
            behind
                .iter()
                .all(|behind| behind > before && halving.waits(*behind))
        }));
    }
}

//! Queue pairs of a group that have something to send, and the condition under which they may.

use clearway_units::Time;
use std::collections::BTreeSet;

/// Added to the number of a group among departures, where slots are below.
pub(super) const GROUP: u32 = 1 << 31;
/// Added to the number of a group among timers.
pub(super) const GROUP_TIMER: u32 = 1 << 27;

/// Condition under which the queue pairs of a group send, and those that would.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) open: bool,
    /// Candidates, by the queues of their classes.
    pub(super) candidates: Vec<u32>,
    /// Candidates that have no place in the round robin yet: number of opening, and slot.
    pub(super) unqueued: BTreeSet<(u32, u32)>,
    /// Queue pairs opened so far, and those that are there.
    opened: u32,
    pub(super) alive: u32,
    /// The time of the group's valid entry among the departures, and among the timers.
    pub(super) departs: Time,
    pub(super) armed: Time,
}

impl Gate {
    pub(super) const fn new() -> Self {
        Self {
            open: false,
            candidates: Vec::new(),
            unqueued: BTreeSet::new(),
            opened: 0,
            alive: 0,
            departs: Time::NEVER,
            armed: Time::NEVER,
        }
    }

    /// A queue pair opens; returns its number.
    pub(super) fn open(&mut self) -> u32 {
        self.alive += 1;
        self.opened += 1;
        self.opened - 1
    }

    /// A queue pair without anything to send closes.
    pub(super) fn close(&mut self) {
        self.alive -= 1;
    }

    pub(super) fn count(&mut self, queue: u8, is_candidate: bool) {
        let queue = usize::from(queue);
        if self.candidates.len() <= queue {
            self.candidates.resize(queue + 1, 0);
        }
        let count = &mut self.candidates[queue];
        *count = *count + u32::from(is_candidate) - u32::from(!is_candidate);
    }

    pub(super) fn has_candidates(&self) -> bool {
        self.candidates.iter().any(|count| *count > 0)
    }
}

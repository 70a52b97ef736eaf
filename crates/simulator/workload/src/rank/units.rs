//! Units of a rank that compute: each does one thing at a time.

use crate::graph::TaskId;
use clearway_units::Time;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

#[derive(Debug, Default)]
struct Unit {
    busy: bool,
    queue: VecDeque<TaskId>,
}

/// The units of a rank.
#[derive(Debug, Default)]
pub(super) struct Units {
    units: BTreeMap<u16, Unit>,
    /// Ends of the computations that are under way; at equal times by unit.
    ends: BinaryHeap<Reverse<(Time, u16, TaskId)>>,
}

impl Units {
    /// A computation is ready.
    pub(super) fn queue(&mut self, unit: u16, task: TaskId) {
        self.units.entry(unit).or_default().queue.push_back(task);
    }

    /// The computation that a free unit does next.
    pub(super) fn take_next(&mut self, unit: u16) -> Option<TaskId> {
        let unit = self.units.get_mut(&unit)?;
        if unit.busy {
            return None;
        }
        unit.queue.pop_front()
    }

    /// A unit is busy with a computation until `end`.
    pub(super) fn begin(&mut self, unit: u16, task: TaskId, end: Time) {
        self.units.entry(unit).or_default().busy = true;
        self.ends.push(Reverse((end, unit, task)));
    }

    pub(super) fn next(&self) -> Time {
        self.ends
            .peek()
            .map_or(Time::NEVER, |Reverse((end, ..))| *end)
    }

    /// A computation that is over at `now`; its unit is free.
    pub(super) fn pop_due(&mut self, now: Time) -> Option<TaskId> {
        if self.next() > now {
            return None;
        }
        let Reverse((_, unit, task)) = self.ends.pop()?;
        self.units.entry(unit).or_default().busy = false;
        Some(task)
    }
}

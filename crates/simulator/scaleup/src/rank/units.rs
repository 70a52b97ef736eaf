//! Units of a rank that compute: each does one thing at a time.

use crate::Cycle;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Debug, Default)]
struct Unit {
    is_busy: bool,
    queue: VecDeque<u32>,
}

/// The units of a rank.
#[derive(Debug, Default)]
pub(super) struct Units {
    units: BTreeMap<u8, Unit>,
    /// Ends of the computations that are under way, with their units and tasks.
    ends: BTreeSet<(Cycle, u8, u32)>,
}

impl Units {
    /// Adds a computation that is ready.
    pub(super) fn queue(&mut self, unit: u8, task: u32) {
        self.units.entry(unit).or_default().queue.push_back(task);
    }

    /// The computation that a free unit does next.
    pub(super) fn take_next(&mut self, unit: u8) -> Option<u32> {
        let unit = self.units.get_mut(&unit)?;
        match unit.is_busy {
            true => None,
            false => unit.queue.pop_front(),
        }
    }

    /// Keeps a unit busy with a computation until `end`.
    pub(super) fn begin(&mut self, unit: u8, task: u32, end: Cycle) {
        self.units.entry(unit).or_default().is_busy = true;
        self.ends.insert((end, unit, task));
    }

    /// A computation that is over at `now`; its unit is free.
    pub(super) fn pop_due(&mut self, now: Cycle) -> Option<(u8, u32)> {
        let (end, unit, task) = *self.ends.first()?;
        if end > now {
            return None;
        }
        self.ends.pop_first();
        self.units.entry(unit).or_default().is_busy = false;
        Some((unit, task))
    }
}

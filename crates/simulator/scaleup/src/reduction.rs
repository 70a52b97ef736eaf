//! The reduction table of a switch.

use crate::Cycle;
use crate::packet::Packet;
use std::collections::VecDeque;

/// Leg of a request's way on which a switch makes an entry. A request on its way up waits for entries of those on their way down, and
/// these for GPUs alone: because neither takes the entries of the other, no circle of waiting arises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leg {
    Down,
    Up,
}

impl Leg {
    pub(crate) const ALL: [Self; 2] = [Self::Down, Self::Up];
}

/// Entry of a multicast operation whose responses are being merged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// Responses that are still to come.
    pub(crate) awaited: u32,
    /// Entry at the switch from which the request came, where the merged response goes.
    pub(crate) parent: u32,
    pub(crate) leg: Leg,
    pub(crate) contributions: u32,
    pub(crate) sum: u64,
}

/// Entries of one leg.
#[derive(Debug, Default)]
struct Share {
    used: u32,
    /// Entries that are free and promised to inputs that had waited.
    promised: u32,
    /// Inputs whose first packet waits for an entry.
    waiting: VecDeque<u16>,
}

/// Table of [`Entry`]s. Requests that find no entry of their leg wait in the order of their coming.
#[derive(Debug)]
pub(crate) struct ReductionTable {
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Most entries of each leg; `None` for as many as are needed.
    limits: Option<[u32; 2]>,
    shares: [Share; 2],
    pub(crate) use_of_entries: Occupancy,
    /// Requests that had to wait.
    pub(crate) waits: u64,
}

/// Peak and integral over time of a number.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Occupancy {
    pub(crate) peak: u32,
    integral: u128,
    value: u32,
    since: Cycle,
}

impl Occupancy {
    #[inline]
    pub(crate) fn set(&mut self, value: u32, now: Cycle) {
        self.integral += u128::from(self.value) * u128::from(now - self.since);
        (self.value, self.since) = (value, now);
        self.peak = self.peak.max(value);
    }

    /// Sum of the value over the cycles until `now`.
    pub(crate) fn integral(&self, now: Cycle) -> u128 {
        self.integral + u128::from(self.value) * u128::from(now.saturating_sub(self.since))
    }
}

impl ReductionTable {
    pub(crate) fn new(limits: Option<[u32; 2]>) -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            limits,
            shares: Default::default(),
            use_of_entries: Occupancy::default(),
            waits: 0,
        }
    }

    pub(crate) fn used(&self) -> u32 {
        self.shares.iter().map(|share| share.used).sum()
    }

    fn has_room(&self, leg: Leg) -> bool {
        let share = &self.shares[leg as usize];
        self.limits
            .is_none_or(|limits| share.used + share.promised < limits[leg as usize])
    }

    /// Takes an entry for a request at the head of `input`, or lets it wait. `is_promised` if it has waited and its turn has come.
    pub(crate) fn reserve(
        &mut self,
        input: u16,
        is_promised: bool,
        entry: Entry,
        now: Cycle,
    ) -> Option<u32> {
        let has_room = self.has_room(entry.leg);
        let share = &mut self.shares[entry.leg as usize];
        if is_promised {
            share.promised -= 1;
        // A newcomer may not overtake requests that wait, even if an entry is free.
        } else if !share.waiting.is_empty() || !has_room {
            share.waiting.push_back(input);
            self.waits += 1;
            return None;
        }
        share.used += 1;
        self.use_of_entries.set(self.used(), now);
        Some(match self.free.pop() {
            Some(index) => {
                self.entries[index as usize] = entry;
                index
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        })
    }

    /// The next input whose request may have an entry now.
    pub(crate) fn promise(&mut self) -> Option<u16> {
        Leg::ALL.into_iter().find_map(|leg| {
            let has_room = self.has_room(leg);
            let share = &mut self.shares[leg as usize];
            let input = share.waiting.front().copied().filter(|_| has_room)?;
            share.waiting.pop_front();
            share.promised += 1;
            Some(input)
        })
    }

    /// Adds a response. Returns the complete entry if it is the last.
    pub(crate) fn merge(&mut self, response: &Packet) -> Option<Entry> {
        let entry = &mut self.entries[response.entry as usize];
        debug_assert!(entry.awaited > 0, "one response too many");
        entry.awaited -= 1;
        entry.contributions += response.contributions;
        entry.sum = entry.sum.wrapping_add(response.sum);
        (entry.awaited == 0).then_some(*entry)
    }

    pub(crate) fn release(&mut self, index: u32, now: Cycle) {
        self.shares[self.entries[index as usize].leg as usize].used -= 1;
        self.use_of_entries.set(self.used(), now);
        self.free.push(index);
    }
}

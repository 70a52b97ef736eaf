//! The reduction table of a switch.

use crate::Cycle;
use crate::packet::Packet;
use std::collections::VecDeque;

/// Entry of a multicast operation whose responses are being merged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// Responses that are still to come.
    pub(crate) awaited: u32,
    /// Entry at the switch from which the request came, where the merged response goes.
    pub(crate) parent: u32,
    pub(crate) contributions: u32,
    pub(crate) sum: u64,
}

/// Table of [`Entry`]s. Requests that find it full wait in the order of their coming.
#[derive(Debug)]
pub(crate) struct ReductionTable {
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Most entries; `None` for as many as are needed.
    limit: Option<u32>,
    used: u32,
    /// Entries that are free and promised to inputs that had waited.
    promised: u32,
    /// Inputs whose first packet waits for an entry.
    waiting: VecDeque<u16>,
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
    pub(crate) fn new(limit: Option<u32>) -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            limit,
            used: 0,
            promised: 0,
            waiting: VecDeque::new(),
            use_of_entries: Occupancy::default(),
            waits: 0,
        }
    }

    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    fn has_room(&self) -> bool {
        self.limit
            .is_none_or(|limit| self.used + self.promised < limit)
    }

    /// Takes an entry for a request at the head of `input`, or lets it wait. `is_promised` if it has waited and its turn has come.
    pub(crate) fn reserve(
        &mut self,
        input: u16,
        is_promised: bool,
        entry: Entry,
        now: Cycle,
    ) -> Option<u32> {
        if is_promised {
            self.promised -= 1;
        } else if !self.waiting.is_empty() || !self.has_room() {
            self.waiting.push_back(input);
            self.waits += 1;
            return None;
        }
        self.used += 1;
        self.use_of_entries.set(self.used, now);
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
        if self.waiting.is_empty() || !self.has_room() {
            return None;
        }
        self.promised += 1;
        self.waiting.pop_front()
    }

    /// Adds a response. `Some` if it is the last: what they make together.
    pub(crate) fn merge(&mut self, response: &Packet) -> Option<Entry> {
        let entry = &mut self.entries[response.entry as usize];
        debug_assert!(entry.awaited > 0, "one response too many");
        entry.awaited -= 1;
        entry.contributions += response.contributions;
        entry.sum = entry.sum.wrapping_add(response.sum);
        (entry.awaited == 0).then_some(*entry)
    }

    pub(crate) fn release(&mut self, index: u32, now: Cycle) {
        self.used -= 1;
        self.use_of_entries.set(self.used, now);
        self.free.push(index);
    }
}

//! Events of one domain by cycle.

use crate::Cycle;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A calendar queue: a ring of cycles for near events, and a heap for later ones.
///
/// Events of a cycle come out in the order in which they were added: events of the heap are older than events of the ring.
#[derive(Debug)]
pub(crate) struct Calendar<E> {
    /// Events of the cycles from `now` on; cycle `c` is at `c` modulo their number, a power of two.
    slots: Vec<Vec<E>>,
    /// Bit `i` is set if slot `i` has events.
    occupied: Vec<u64>,
    now: Cycle,
    later: BinaryHeap<Reverse<Later<E>>>,
    /// Events put into the heap so far.
    put_off: u64,
}

/// The most cycles of a ring: more would take memory in each switch.
const MOST_SLOTS: usize = 4096;

/// An event beyond the ring, with its cycle and its number among those that were put off.
#[derive(Debug)]
struct Later<E>(Cycle, u64, E);

impl<E> PartialEq for Later<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl<E> Eq for Later<E> {}

impl<E> PartialOrd for Later<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Later<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

impl<E> Calendar<E> {
    /// A calendar whose ring holds `cycles` or, of many, some thousands.
    pub(crate) fn new(cycles: u32) -> Self {
        let slots = (cycles as usize).next_power_of_two().clamp(64, MOST_SLOTS);
        Self {
            slots: (0..slots).map(|_| Vec::new()).collect(),
            occupied: vec![0; slots / 64],
            now: 0,
            later: BinaryHeap::new(),
            put_off: 0,
        }
    }

    /// Adds an event of `cycle`, which is not past.
    #[inline]
    pub(crate) fn insert(&mut self, cycle: Cycle, event: E) {
        debug_assert!(cycle >= self.now, "an event of the past");
        if cycle - self.now >= self.slots.len() as u64 {
            self.later.push(Reverse(Later(cycle, self.put_off, event)));
            self.put_off += 1;
            return;
        }
        let slot = cycle as usize & (self.slots.len() - 1);
        self.slots[slot].push(event);
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    /// The cycle of the next event.
    pub(crate) fn next(&self) -> Option<Cycle> {
        let later = self.later.peek().map(|Reverse(Later(cycle, ..))| *cycle);
        match (self.next_in_ring(), later) {
            (Some(soon), Some(later)) => Some(soon.min(later)),
            (soon, later) => soon.or(later),
        }
    }

    fn next_in_ring(&self) -> Option<Cycle> {
        let here = self.now as usize & (self.slots.len() - 1);
        let words = self.occupied.len();
        let (first, shift) = (here / 64, here % 64);
        // The ring wraps within the word of `now`: the first step takes its slots from `now` on, the last step its slots before.
        for step in 0..=words {
            let word = (first + step) % words;
            let mut bits = self.occupied[word];
            if step == 0 {
                bits &= u64::MAX << shift;
            } else if step == words {
                bits &= (1 << shift) - 1;
            }
            if bits != 0 {
                let slot = word * 64 + bits.trailing_zeros() as usize;
                let ahead = slot.wrapping_sub(here) & (self.slots.len() - 1);
                return Some(self.now + ahead as u64);
            }
        }
        None
    }

    /// All events, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &E> {
        let later = self.later.iter().map(|Reverse(Later(_, _, event))| event);
        self.slots.iter().flatten().chain(later)
    }

    /// Goes on to `cycle`, the cycle of the next event or an earlier one, and takes out its events.
    pub(crate) fn take(&mut self, cycle: Cycle, events: &mut Vec<E>) {
        events.clear();
        self.now = cycle;
        let slot = cycle as usize & (self.slots.len() - 1);
        // Events of the heap were inserted before the ring's events for the same cycle.
        while self
            .later
            .peek()
            .is_some_and(|Reverse(Later(due, ..))| *due <= cycle)
        {
            if let Some(Reverse(Later(_, _, event))) = self.later.pop() {
                events.push(event);
            }
        }
        match events.is_empty() {
            true => std::mem::swap(events, &mut self.slots[slot]),
            false => events.append(&mut self.slots[slot]),
        }
        self.occupied[slot / 64] &= !(1 << (slot % 64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_come_out_at_their_cycles(gaps in prop::collection::vec((0u64..300, 1u64..50), 1..200)) {
            let mut calendar = Calendar::new(64);
            let (mut expected, mut seen, mut events) = (Vec::new(), Vec::new(), Vec::new());
            let mut now = 0;
            for (ahead, pause) in gaps {
                calendar.insert(now + ahead, now + ahead);
                expected.push(now + ahead);
                let until = now + pause;
                while let Some(cycle) = calendar.next().filter(|&cycle| cycle < until) {
                    calendar.take(cycle, &mut events);
                    prop_assert!(events.iter().all(|&due| due == cycle));
                    seen.append(&mut events);
                }
                now = until;
                calendar.take(now, &mut events);
                prop_assert!(events.iter().all(|&due| due == now));
                seen.append(&mut events);
            }
            while let Some(cycle) = calendar.next() {
                calendar.take(cycle, &mut events);
                seen.append(&mut events);
            }
            expected.sort_unstable();
            prop_assert_eq!(seen, expected);
        }
    }
}

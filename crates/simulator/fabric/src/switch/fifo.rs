//! Queue of packets at a port.
//!
//! `VecDeque` takes an element by value, and may have to grow before it stores it: the compiler copies each packet twice. Slots here are
//! never empty, so that a packet is copied from where it is to where it waits. With the same in mailboxes and at NICs that made 490 of 499
//! instructions of a packet-hop.

use crate::prefetching::MOST_BYTES;
use clearway_prefetch::prefetch_first;

/// First in, first out.
#[derive(Debug)]
pub(super) struct Fifo<P> {
    /// A power of two in number, or empty. Slots without an element keep an earlier one.
    slots: Vec<P>,
    /// Place of the oldest element.
    first: usize,
    /// Number of elements.
    count: usize,
}

impl<P> Default for Fifo<P> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            first: 0,
            count: 0,
        }
    }
}

impl<P> Fifo<P> {
    const FEWEST_SLOTS: usize = 4;

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.count
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Place of an element, counted from the oldest.
    #[inline]
    fn place(&self, number: usize) -> usize {
        (self.first + number) & self.slots.len().wrapping_sub(1)
    }

    /// Adds an element, which is to be written: it has some old value. `unused` makes one for each slot that nothing was ever in.
    #[inline]
    pub(super) fn next_slot(&mut self, unused: impl Fn() -> P) -> &mut P {
        if self.count == self.slots.len() {
            self.grow(unused);
        }
        let place = self.place(self.count);
        self.count += 1;
        &mut self.slots[place]
    }

    /// Doubles the slots.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, unused: impl Fn() -> P) {
        let slots = (2 * self.slots.len()).max(Self::FEWEST_SLOTS);
        let mut grown = Vec::with_capacity(slots);
        // Full: the elements in front of the oldest one are the youngest.
        self.slots.rotate_left(self.first);
        grown.append(&mut self.slots);
        grown.resize_with(slots, unused);
        self.slots = grown;
        self.first = 0;
    }

    /// Elements, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &P> {
        (0..self.count).map(|number| &self.slots[self.place(number)])
    }

    #[inline]
    pub(super) fn front(&self) -> Option<&P> {
        (!self.is_empty()).then(|| &self.slots[self.first])
    }

    #[inline]
    pub(super) fn front_mut(&mut self) -> Option<&mut P> {
        if self.is_empty() {
            return None;
        }
        self.slots.get_mut(self.first)
    }

    #[inline]
    pub(super) fn back_mut(&mut self) -> Option<&mut P> {
        if self.is_empty() {
            return None;
        }
        let place = self.place(self.count - 1);
        self.slots.get_mut(place)
    }

    /// Loads the oldest elements, and the slots that are filled next, into the caches.
    #[inline]
    pub(super) fn prefetch(&self) {
        let free = self.slots.len() - self.count;
        for (number, count) in [(0, self.count), (self.count, free)] {
            let place = self.place(number);
            let before_end = count.min(self.slots.len() - place);
            let (start, rest) = (
                &self.slots[place..place + before_end],
                &self.slots[..count - before_end],
            );
            prefetch_first(start, MOST_BYTES);
            prefetch_first(rest, MOST_BYTES.saturating_sub(size_of_val(start)));
        }
    }

    /// Takes the oldest element out, if there is one.
    #[inline]
    pub(super) fn pop_front(&mut self) {
        if !self.is_empty() {
            self.first = self.place(1);
            self.count -= 1;
        }
    }

    /// Takes all elements out.
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Numbers above a hundred take an element out, and the highest all.
        #[test]
        fn works_as_a_queue(steps in prop::collection::vec(0u8..=255, 0..600)) {
            let (mut fifo, mut known) = (Fifo::default(), VecDeque::new());
            for step in steps {
                match step {
                    0..150 => {
                        *fifo.next_slot(|| step) = step;
                        known.push_back(step);
                    }
                    150..254 => {
                        fifo.pop_front();
                        known.pop_front();
                    }
                    254.. => {
                        fifo.clear();
                        known.clear();
                    }
                }
                if let (Some(own), Some(other)) = (fifo.back_mut(), known.back_mut()) {
                    (*own, *other) = (own.wrapping_add(1), other.wrapping_add(1));
                }
                fifo.prefetch();
                prop_assert_eq!(fifo.len(), known.len());
                prop_assert_eq!(fifo.is_empty(), known.is_empty());
                prop_assert_eq!(fifo.front(), known.front());
                prop_assert_eq!(fifo.front_mut(), known.front_mut());
                prop_assert_eq!(fifo.back_mut(), known.back_mut());
                prop_assert!(fifo.iter().eq(&known));
            }
        }
    }
}

//! TransmissionEnds of the transmissions of a switch: at most one for each port.
//!
//! A queue in the order of time. A transmission that begins now ends among the last if it is long and among the first if it is short, so
//! that few others have to move; a heap, or a tournament of all ports, moves each of them through all of its levels.

use clearway_units::Time;
use std::collections::VecDeque;

/// TransmissionEnds of transmissions, each with its port, earliest first; at one instant the lowest port first.
#[derive(Debug)]
pub(super) struct TransmissionEnds {
    queue: VecDeque<(Time, u16)>,
    /// The earliest, which is asked for at each event.
    first: Time,
}

impl Default for TransmissionEnds {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            first: Time::NEVER,
        }
    }
}

impl TransmissionEnds {
    /// The earliest end.
    #[inline]
    pub(super) fn first(&self) -> Time {
        self.first
    }

    #[inline]
    fn note_first(&mut self) {
        self.first = self.queue.front().map_or(Time::NEVER, |(end, _)| *end);
    }

    /// Takes the first port whose transmission ends by `now`.
    #[inline]
    pub(super) fn pop_due(&mut self, now: Time) -> Option<u16> {
        if self.first > now {
            return None;
        }
        let (_, port) = self.queue.pop_front()?;
        self.note_first();
        Some(port)
    }

    /// Adds a transmission of `port` that ends at `end`.
    #[inline]
    pub(super) fn push(&mut self, end: Time, port: u16) {
        self.first = self.first.min(end);
        match self.queue.back() {
            Some(last) if *last > (end, port) => self.insert((end, port)),
            _ => self.queue.push_back((end, port)),
        }
    }

    #[inline(never)]
    fn insert(&mut self, new: (Time, u16)) {
        match self.queue.front() {
            Some(first) if *first < new => {
                let place = self.queue.partition_point(|known| *known < new);
                self.queue.insert(place, new);
            }
            _ => self.queue.push_front(new),
        }
    }

    /// Forgets the transmission of `port`.
    pub(super) fn remove(&mut self, port: u16) {
        self.queue.retain(|(_, other)| *other != port);
        self.note_first();
    }

    /// Forgets all.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.first = Time::NEVER;
    }

    /// All ends, with their ports.
    #[cfg(test)]
    fn iter(&self) -> impl Iterator<Item = (Time, u16)> {
        self.queue.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// TransmissionEnds of ports that transmit nothing yet, and steps of time.
        #[test]
        fn ports_come_by_time_and_number(steps in prop::collection::vec((0u16..9, 0u64..20), 1..200)) {
            let (mut ends, mut known) = (TransmissionEnds::default(), BTreeSet::new());
            for (port, at) in steps {
                let now = Time::from_ps(at);
                if port == 8 {
                    while let Some(port) = ends.pop_due(now) {
                        let first: (Time, u16) = known.pop_first().unwrap();
                        prop_assert!(first.1 == port && first.0 <= now);
                    }
                } else if known.iter().any(|(_, other)| *other == port) {
                    ends.remove(port);
                    known.retain(|(_, other)| *other != port);
                } else {
                    ends.push(now, port);
                    known.insert((now, port));
                }
                let first = known.first().map_or(Time::NEVER, |(end, _)| *end);
                prop_assert_eq!(ends.first(), first);
                prop_assert!(ends.iter().eq(known.iter().copied()));
            }
        }
    }
}

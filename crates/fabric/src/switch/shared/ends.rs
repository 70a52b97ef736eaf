//! When the transmissions of a switch end: at most one for each port.
//!
//! A queue in the order of time. What begins now ends among the last if it is long and among the first if it is short, so that few others
//! have to move; a heap, or a tournament of all ports, moves each of them through all of its levels.

use clearway_units::Time;
use std::collections::VecDeque;

/// Ends of transmissions, each with its port, earliest first; at one instant the lowest port first.
#[derive(Debug, Default)]
pub(super) struct Ends(VecDeque<(Time, u16)>);

impl Ends {
    /// The earliest end.
    #[inline]
    pub(super) fn first(&self) -> Time {
        self.0.front().map_or(Time::NEVER, |(end, _)| *end)
    }

    /// Takes the first port whose transmission ends by `now`.
    #[inline]
    pub(super) fn pop_due(&mut self, now: Time) -> Option<u16> {
        let &(end, port) = self.0.front()?;
        if end > now {
            return None;
        }
        self.0.pop_front();
        Some(port)
    }

    /// What `port` has begun to transmit ends at `end`.
    #[inline]
    pub(super) fn push(&mut self, end: Time, port: u16) {
        match self.0.back() {
            Some(last) if *last > (end, port) => self.insert((end, port)),
            _ => self.0.push_back((end, port)),
        }
    }

    #[inline(never)]
    fn insert(&mut self, new: (Time, u16)) {
        match self.0.front() {
            Some(first) if *first < new => {
                let place = self.0.partition_point(|known| *known < new);
                self.0.insert(place, new);
            }
            _ => self.0.push_front(new),
        }
    }

    /// Forgets what `port` transmits.
    pub(super) fn remove(&mut self, port: u16) {
        self.0.retain(|(_, other)| *other != port);
    }

    /// All ends, with their ports.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Time, u16)> {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Ends of ports that transmit nothing yet, and steps of time.
        #[test]
        fn ports_come_by_time_and_number(steps in prop::collection::vec((0u16..9, 0u64..20), 1..200)) {
            let (mut ends, mut known) = (Ends::default(), BTreeSet::new());
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

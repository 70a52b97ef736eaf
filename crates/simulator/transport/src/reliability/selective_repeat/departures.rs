//! Departure times and paths of the packets of a window.

use crate::paths::PathId;
use clearway_units::Time;
use std::ops::Range;

/// Last departure of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Departure {
    pub(crate) at: Time,
    pub(crate) path: PathId,
}

impl Departure {
    const NONE: Self = Self {
        at: Time::ZERO,
        path: 0,
    };
}

/// Ring of departures, addressed by packet sequence number. It has room for the packets in flight, and grows with their number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Departures(Box<[Departure]>);

impl Departures {
    /// Least size of a ring that is not empty.
    const LEAST: u64 = 8;

    /// Makes room for the packets with these sequence numbers; packets already noted keep their departures.
    #[inline]
    pub(crate) fn make_room(&mut self, packets: Range<u64>) {
        if packets.end - packets.start > self.0.len() as u64 {
            self.grow(packets);
        }
    }

    #[cold]
    fn grow(&mut self, packets: Range<u64>) {
        let count = packets.end - packets.start;
        let size = count.next_power_of_two().max(Self::LEAST);
        let mut grown = vec![Departure::NONE; size as usize].into_boxed_slice();
        for psn in packets.take(self.0.len()) {
            grown[psn as usize & (grown.len() - 1)] = *self.slot(psn);
        }
        self.0 = grown;
    }

    /// The departure of a packet for which there is room.
    pub(crate) fn slot(&mut self, psn: u64) -> &mut Departure {
        let index = psn as usize & (self.0.len() - 1);
        &mut self.0[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_grows_with_what_is_in_flight_and_forgets_nothing() {
        let mut departures = Departures::default();
        let at = |psn: u64| Time::from_us(psn);
        let begin = (1u64 << 32) - 100;
        let mut first = begin;
        for psn in begin..begin + 300 {
            departures.make_room(first..psn + 1);
            // Sequence numbers of packets have 32 bits.
            departures.slot(u64::from(psn as u32)).at = at(psn);
            for known in first..=psn {
                assert_eq!(departures.slot(known).at, at(known), "{known} of {psn}");
            }
            // A packet is acknowledged for three that leave.
            first += u64::from(psn % 3 == 0);
        }
        assert_eq!(departures.0.len(), 256);
    }
}

//! Pacing: departure time of the next packet.

use clearway_units::{Bytes, Rate, Span, Time};

/// Keeps packets apart by the time that the last one takes at the present rate. A change of rate moves a departure that is
/// still to come, so that a slow sender need not wait out a gap that no longer applies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pacer {
    rate: Option<Rate>,
    /// Earliest departure of the next packet.
    departure: Time,
    /// Departure time of the last packet that was paced, and its bytes on the wire.
    start: Time,
    size: u16,
    /// A packet that leaves late, because the NIC was busy, does not delay the next one: its gap counts from when it should have left.
    catches_up: bool,
    /// Departure time of the last packet, paced or not.
    last: Time,
}

impl Default for Pacer {
    fn default() -> Self {
        Self {
            rate: None,
            departure: Time::ZERO,
            start: Time::ZERO,
            size: 0,
            catches_up: false,
            last: Time::ZERO,
        }
    }
}

impl Pacer {
    /// Lets packets that the NIC has delayed by less than a gap make up for it, as a token bucket of one packet does: a flow gets the
    /// rate that it is allocated, also beside others.
    pub(crate) fn set_catching_up(&mut self) {
        self.catches_up = true;
    }

    #[inline]
    pub(crate) fn departure(&self) -> Time {
        self.departure
    }

    /// Departure time of the last packet.
    pub(crate) fn last(&self) -> Time {
        self.last
    }

    pub(crate) fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Sets the rate that the controller allows; `None` does not pace.
    #[inline]
    pub(crate) fn set_rate(&mut self, rate: Option<Rate>) {
        if rate.is_some() | self.rate.is_some() {
            self.change_rate(rate);
        }
    }

    #[inline(never)]
    fn change_rate(&mut self, rate: Option<Rate>) {
        if rate != self.rate {
            self.rate = rate;
            self.reschedule();
        }
    }

    /// Takes note that a packet of `size` bytes leaves.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time, size: u16) {
        self.last = now;
        if self.rate.is_some() {
            self.pace(now, size);
        }
    }

    #[inline(never)]
    fn pace(&mut self, now: Time, size: u16) {
        let late = self.catches_up && self.departure < now;
        self.start = match late && self.departure.saturating_add(self.gap()) > now {
            true => self.departure,
            false => now,
        };
        self.size = size;
        self.reschedule();
    }

    fn reschedule(&mut self) {
        self.departure = match self.rate {
            None => Time::ZERO,
            Some(_) => self.start.saturating_add(self.gap()),
        };
    }

    /// Time that the last packet takes at the present rate.
    fn gap(&self) -> Span {
        let size = Bytes::new(u64::from(self.size));
        self.rate.map_or(Span::ZERO, |rate| rate.span_of(size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_rate_moves_the_next_departure_by_the_change_of_the_gap() {
        let mut pacer = Pacer::default();
        pacer.on_sent(Time::from_us(1), 5000);
        assert_eq!(pacer.departure(), Time::ZERO, "nothing paces");
        pacer.set_rate(Some(Rate::from_gbps(40)));
        pacer.on_sent(Time::from_us(10), 5000);
        // 40000 bits.
        assert_eq!(pacer.departure(), Time::from_us(11));
        pacer.set_rate(Some(Rate::from_gbps(10)));
        assert_eq!(pacer.departure(), Time::from_us(14));
        pacer.set_rate(Some(Rate::from_gbps(80)));
        assert_eq!(pacer.departure(), Time::from_us(10) + Span::from_ns(500));
        pacer.set_rate(None);
        assert_eq!(pacer.departure(), Time::ZERO);
    }

    #[test]
    fn lateness_of_less_than_a_gap_is_made_up_for() {
        let mut pacer = Pacer::default();
        pacer.set_catching_up();
        pacer.set_rate(Some(Rate::from_gbps(40)));
        for (sent, next) in [
            (10_000, 11_000),
            (11_300, 12_000),
            (12_000, 13_000),
            (14_001, 15_001),
        ] {
            pacer.on_sent(Time::ZERO + Span::from_ns(sent), 5000);
            assert_eq!(pacer.departure(), Time::ZERO + Span::from_ns(next));
        }
    }
}

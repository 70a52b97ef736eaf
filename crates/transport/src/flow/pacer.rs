//! Pacing: departure time of the next packet.

use clearway_units::{Bytes, Rate, Time};

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
}

impl Default for Pacer {
    fn default() -> Self {
        Self {
            rate: None,
            departure: Time::ZERO,
            start: Time::ZERO,
            size: 0,
        }
    }
}

impl Pacer {
    #[inline]
    pub(crate) fn departure(&self) -> Time {
        self.departure
    }

    pub(crate) fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Sets the rate that the controller allows; `None` does not pace.
    #[inline]
    pub(crate) fn set_rate(&mut self, rate: Option<Rate>) {
        if rate != self.rate {
            self.rate = rate;
            self.reschedule();
        }
    }

    /// Takes note that a packet of `size` bytes leaves.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time, size: u16) {
        if self.rate.is_some() {
            (self.start, self.size) = (now, size);
            self.reschedule();
        }
    }

    fn reschedule(&mut self) {
        self.departure = match self.rate {
            None => Time::ZERO,
            Some(rate) => {
                let gap = rate.span_of(Bytes::new(u64::from(self.size)));
                self.start.saturating_add(gap)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_units::Span;

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
}

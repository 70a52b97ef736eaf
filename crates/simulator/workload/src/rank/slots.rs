//! Slots in which a rank may begin to communicate, if that is scheduled (Rajasekaran et al., HotNets '22, §4 "Flow scheduling").

use clearway_units::{Span, Time};

/// Instants a period apart, by the clock of one rank, at which its communication may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slots {
    /// Time from one slot to the next, above zero.
    pub period: Span,
    /// Time of the first slot; whole periods do not matter.
    pub shift: Span,
    /// Time after each slot in which communication may still begin; less than a period.
    pub grace: Span,
    /// Lateness of the clock of this rank.
    pub skew: Span,
}

impl Slots {
    /// The first time from `now` on at which communication may begin.
    pub fn next(&self, now: Time) -> Time {
        let period = self.period.as_ps();
        let first = (self.shift.as_ps() % period + self.skew.as_ps() % period) % period;
        let since = (now.as_ps() % period + period - first) % period;
        if since <= self.grace.as_ps() {
            return now;
        }
        now.saturating_add(Span::from_ps(period - since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_slot_is_the_first_that_has_not_gone_by() {
        let mut slots = Slots {
            period: Span::from_us(10),
            shift: Span::from_us(23),
            grace: Span::ZERO,
            skew: Span::from_us(1),
        };
        for (now, next) in [(0, 4), (4, 4), (5, 14), (13, 14), (14, 14), (99, 104)] {
            assert_eq!(slots.next(Time::from_us(now)), Time::from_us(next), "{now}");
        }
        slots.grace = Span::from_us(2);
        for (now, next) in [(4, 4), (5, 5), (6, 6), (7, 14), (3, 4)] {
            assert_eq!(slots.next(Time::from_us(now)), Time::from_us(next), "{now}");
        }
    }
}

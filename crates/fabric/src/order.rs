//! The order in which a switch handles the arrivals of a round.
//!
//! Arrivals are ordered by time and, at one instant, by `(link ⊕ a)·b mod 2³²` with `a` and odd `b` drawn from (seed, instant).
//! For a given instant that is a bijection on links, and one link delivers at most one packet at one instant: the order is
//! total, needs no insertion order to break ties, and prefers no port in the long run.
//!
//! Ports of a lossy switch do not affect each other, so arrivals are lined up for each egress port by itself: a few dozen in a
//! round, which insertion sorts best. Crowds are distributed over buckets by time first.

use crate::topology::LinkId;
use clearway_engine::Round;
use clearway_units::{Time, mix64};
use std::cmp::Ordering;

/// An arrival's place in the order, and where to find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// Picoseconds since the start of the round in the upper half, the link in the lower.
    key: u64,
    /// Port whose inlet holds the arrival.
    pub(crate) port: u32,
    /// Its index among the inlet's unread letters.
    pub(crate) index: u32,
}

impl Ticket {
    #[inline]
    pub(crate) fn new(start: Time, time: Time, link: LinkId, port: u32, index: u32) -> Self {
        let since = (time - start).as_ps();
        debug_assert!(since < 1 << 32, "rounds are shorter than 2^32 ps");
        Self {
            key: since << 32 | u64::from(link.0),
            port,
            index,
        }
    }
}

/// Orders the links that deliver at one instant.
#[inline]
pub(crate) fn tie_break(seed: u64, time: Time, link: LinkId) -> u32 {
    let mixed = mix64(seed ^ time.as_ps());
    (link.0 ^ mixed as u32).wrapping_mul((mixed >> 32) as u32 | 1)
}

/// Up to here, insertion alone is fastest.
const FEW: usize = 6;
/// Above this, buckets are sorted by comparison.
const CROWD: u32 = 40;
const MOST_BUCKETS: usize = 256;

/// Sorts tickets of a round; keeps its buffer.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    sorted: Vec<Ticket>,
}

impl Sorter {
    /// Sorts the tickets of a round, ties by `seed`.
    #[inline]
    pub(crate) fn sort(&mut self, tickets: &mut Vec<Ticket>, seed: u64, round: &Round) {
        let ranks = Ranks {
            seed,
            start: round.start(),
        };
        let crowded = tickets.len() > FEW && self.distribute(tickets, round);
        if crowded {
            tickets.sort_unstable_by(|a, b| ranks.compare(a, b));
        } else {
            ranks.insertion_sort(tickets);
        }
    }

    /// Puts tickets into as many buckets as there are tickets, by the leading bits of their time: nearly sorted. True if one
    /// bucket holds so many that they should not be sorted by insertion.
    fn distribute(&mut self, tickets: &mut Vec<Ticket>, round: &Round) -> bool {
        let buckets = tickets.len().next_power_of_two().min(MOST_BUCKETS);
        let bits = u64::BITS - ((round.end() - round.start()).as_ps() - 1).leading_zeros();
        let shift = 32 + bits.saturating_sub(buckets.ilog2());
        let mut ends = [0u32; MOST_BUCKETS];
        let ends = &mut ends[..buckets];
        for ticket in tickets.iter() {
            ends[(ticket.key >> shift) as usize] += 1;
        }
        let (mut position, mut most) = (0, 0);
        for end in ends.iter_mut() {
            most = most.max(*end);
            position += std::mem::replace(end, position);
        }
        self.sorted.clear();
        self.sorted.extend_from_slice(tickets);
        for ticket in tickets.iter() {
            let position = &mut ends[(ticket.key >> shift) as usize];
            self.sorted[*position as usize] = *ticket;
            *position += 1;
        }
        std::mem::swap(tickets, &mut self.sorted);
        most > CROWD
    }
}

/// The order of tickets.
struct Ranks {
    seed: u64,
    start: Time,
}

impl Ranks {
    #[inline]
    fn insertion_sort(&self, tickets: &mut [Ticket]) {
        for i in 1..tickets.len() {
            let ticket = tickets[i];
            let mut hole = i;
            while hole > 0 && self.compare(&ticket, &tickets[hole - 1]) == Ordering::Less {
                tickets[hole] = tickets[hole - 1];
                hole -= 1;
            }
            tickets[hole] = ticket;
        }
    }

    #[inline]
    fn compare(&self, a: &Ticket, b: &Ticket) -> Ordering {
        if (a.key ^ b.key) >> 32 != 0 {
            return a.key.cmp(&b.key);
        }
        let time = Time::from_ps(self.start.as_ps() + (a.key >> 32));
        let rank = |ticket: &Ticket| tie_break(self.seed, time, LinkId(ticket.key as u32));
        rank(a).cmp(&rank(b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_units::Span;
    use proptest::prelude::*;

    #[test]
    fn simultaneous_arrivals_have_distinct_ranks_and_no_favourite() {
        let mut first = [0u32; 8];
        for instant in 0..8000 {
            let time = Time::from_ps(instant * 20);
            let mut ranks: Vec<(u32, u32)> = (0..8)
                .map(|link| (tie_break(1, time, LinkId(link)), link))
                .collect();
            ranks.sort_unstable();
            assert!(ranks.windows(2).all(|pair| pair[0].0 < pair[1].0));
            first[ranks[0].1 as usize] += 1;
        }
        // 5 sigma of a binomial(8000, 1/8) is 148.
        assert!(first.iter().all(|&n| n.abs_diff(1000) < 148), "{first:?}");
    }

    proptest! {
        #[test]
        fn sorts_by_time_then_rank(times in prop::collection::vec(0u64..1_000_000, 0..400), narrow in 1u64..1_000_000) {
            let round = Round::new(0, Time::from_us(3), Time::from_us(4));
            let at = |i: usize| round.start() + Span::from_ps(times[i] % narrow);
            let mut tickets: Vec<Ticket> =
                (0..times.len()).map(|i| Ticket::new(round.start(), at(i), LinkId(i as u32), i as u32, 0)).collect();
            Sorter::default().sort(&mut tickets, 7, &round);
            let order: Vec<usize> = tickets.iter().map(|ticket| ticket.port as usize).collect();
            let mut expected: Vec<usize> = (0..times.len()).collect();
            expected.sort_by_key(|&i| (at(i), tie_break(7, at(i), LinkId(i as u32))));
            prop_assert_eq!(order, expected);
        }
    }
}

//! The order in which a switch handles the arrivals of a round.
//!
//! Arrivals are ordered by time and, at one instant, by `(link ⊕ a)·b mod 2³²` with `a` and odd `b` drawn from (seed, instant).
//! For a given instant that is a bijection on links, and one link delivers at most one packet at one instant: the order is
//! total, needs no insertion order to break ties, and prefers no port in the long run.
//!
//! Sorting uses the fact that arrivals spread over the round: one pass distributes them over as many buckets as there are
//! arrivals, which leaves them nearly sorted; insertion does the rest. About 25 instructions for each arrival instead of the
//! 100 and more of a comparison sort.

use crate::topology::LinkId;
use clearway_units::{Time, mix64};

/// An arrival's place in the order, and where to find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket {
    /// Picoseconds since the start of the round in the upper half, the tie-break in the lower.
    key: u64,
    /// Port whose inlet holds the arrival.
    pub(crate) port: u32,
    /// Its index among the inlet's unread letters.
    pub(crate) index: u32,
}

impl Ticket {
    #[inline]
    pub(crate) fn new(
        seed: u64,
        start: Time,
        time: Time,
        link: LinkId,
        port: u32,
        index: u32,
    ) -> Self {
        let since = (time - start).as_ps();
        debug_assert!(since < 1 << 32, "rounds are shorter than 2^32 ps");
        Self {
            key: since << 32 | u64::from(tie_break(seed, time, link)),
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

/// Below this, insertion alone is faster.
const FEW: usize = 24;
/// Buckets that hold more than this are sorted by comparison before the last pass.
const CROWDED: u32 = 16;

/// Sorts tickets; keeps its buffers.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    counts: Vec<u32>,
    sorted: Vec<Ticket>,
}

impl Sorter {
    /// Sorts the tickets of a round of `length` picoseconds.
    pub(crate) fn sort(&mut self, tickets: &mut Vec<Ticket>, length: u64) {
        if tickets.len() <= FEW {
            insertion_sort(tickets);
            return;
        }
        let buckets = tickets.len().next_power_of_two();
        // The largest key is below `length << 32`; its leading bits choose the bucket.
        let key_bits = 32 + (u64::BITS - (length - 1).leading_zeros());
        let shift = key_bits.saturating_sub(buckets.ilog2());
        self.counts.clear();
        self.counts.resize(buckets + 1, 0);
        for ticket in tickets.iter() {
            self.counts[(ticket.key >> shift) as usize] += 1;
        }
        let (mut position, mut crowded) = (0, false);
        for count in &mut self.counts {
            crowded |= *count > CROWDED;
            position += std::mem::replace(count, position);
        }
        self.sorted.clear();
        self.sorted.resize(
            tickets.len(),
            Ticket {
                key: 0,
                port: 0,
                index: 0,
            },
        );
        for ticket in tickets.iter() {
            let position = &mut self.counts[(ticket.key >> shift) as usize];
            self.sorted[*position as usize] = *ticket;
            *position += 1;
        }
        std::mem::swap(tickets, &mut self.sorted);
        if crowded {
            tickets.sort_unstable();
        } else {
            insertion_sort(tickets);
        }
    }
}

fn insertion_sort(tickets: &mut [Ticket]) {
    for i in 1..tickets.len() {
        let ticket = tickets[i];
        let mut hole = i;
        while hole > 0 && tickets[hole - 1].key > ticket.key {
            tickets[hole] = tickets[hole - 1];
            hole -= 1;
        }
        tickets[hole] = ticket;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        fn sorts_like_the_library(times in prop::collection::vec(0u64..1_000_000, 0..400), narrow in 1u64..1_000_000) {
            let ticket = |(i, &t): (usize, &u64)| Ticket::new(7, Time::ZERO, Time::from_ps(t % narrow), LinkId(i as u32), i as u32, 0);
            let mut tickets: Vec<Ticket> = times.iter().enumerate().map(ticket).collect();
            let mut expected = tickets.clone();
            expected.sort_unstable();
            Sorter::default().sort(&mut tickets, 1_000_000);
            prop_assert_eq!(tickets, expected);
        }
    }
}

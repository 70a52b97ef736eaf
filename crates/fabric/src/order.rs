//! The order in which a switch handles the arrivals of a round.
//!
//! Arrivals are ordered by time and, at one instant, by `(link ⊕ a)·b mod 2³²` with `a` and odd `b` drawn from (seed, instant).
//! For a given instant that is a bijection on links, and one link delivers at most one packet at one instant: the order is
//! total, needs no insertion order to break ties, and prefers no port in the long run.
//!
//! Ports of a lossy switch do not affect each other, so arrivals are lined up for each egress port by itself: a few dozen in a
//! round. A arrival_key is one integer with the time in front, which the standard library sorts without branches; ties are put
//! in order afterwards.

use crate::topology::LinkId;
use clearway_units::{Time, mix64};

/// An arrival's place in the order and where to find it: time since the start of the round, ingress port, index among the
/// unread messages of the port's inlet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ArrivalKey(u64);

impl ArrivalKey {
    /// Rounds are shorter than this.
    pub(crate) const LONGEST_ROUND_PS: u64 = 1 << 32;
    /// An inlet has fewer unread messages than this.
    pub(crate) const MOST_LETTERS: u64 = 1 << 16;
    /// A switch has at most so many ports.
    pub(crate) const MOST_PORTS: usize = 1 << 16;

    #[inline]
    pub(crate) fn new(start: Time, time: Time, port: usize, index: usize) -> Self {
        let since = (time - start).as_ps();
        debug_assert!(
            since < Self::LONGEST_ROUND_PS
                && (index as u64) < Self::MOST_LETTERS
                && port < Self::MOST_PORTS
        );
        Self(since << 32 | (port as u64) << 16 | index as u64)
    }
    #[inline]
    pub(crate) fn port(self) -> usize {
        (self.0 >> 16) as u16 as usize
    }
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as u16 as usize
    }
    /// Time of the arrival, in a round that begins at `start`.
    #[inline]
    pub(crate) fn time(self, start: Time) -> Time {
        Time::from_ps(start.as_ps() + u64::from(self.time_bits()))
    }
    #[inline]
    fn time_bits(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// Orders the links that deliver at one instant.
#[inline]
pub(crate) fn tie_break(seed: u64, time: Time, link: LinkId) -> u32 {
    let mixed = mix64(seed ^ time.as_ps());
    (link.0 ^ mixed as u32).wrapping_mul((mixed >> 32) as u32 | 1)
}

/// Sorts the arrival_keys of a round that starts at `start`; `link` gives the link behind an ingress port.
#[inline]
pub(crate) fn sort(
    arrival_keys: &mut [ArrivalKey],
    seed: u64,
    start: Time,
    link: impl Fn(usize) -> LinkId,
) {
    arrival_keys.sort_unstable();
    let mut first = 0;
    for i in 1..=arrival_keys.len() {
        if i < arrival_keys.len() && arrival_keys[i].time_bits() == arrival_keys[first].time_bits()
        {
            continue;
        }
        if i - first > 1 {
            let time = arrival_keys[first].time(start);
            arrival_keys[first..i].sort_unstable_by_key(|arrival_key| {
                tie_break(seed, time, link(arrival_key.port()))
            });
        }
        first = i;
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
            let start = Time::from_us(3);
            let at = |i: usize| start + Span::from_ps(times[i] % narrow);
            let mut arrival_keys: Vec<ArrivalKey> = (0..times.len()).map(|i| ArrivalKey::new(start, at(i), i, 0)).collect();
            let link = |port: usize| LinkId(port as u32 * 3);
            sort(&mut arrival_keys, 7, start, link);
            let order: Vec<usize> = arrival_keys.iter().map(|arrival_key| arrival_key.port()).collect();
            let mut expected: Vec<usize> = (0..times.len()).collect();
            expected.sort_by_key(|&i| (at(i), tie_break(7, at(i), link(i))));
            prop_assert_eq!(order, expected);
        }
    }
}

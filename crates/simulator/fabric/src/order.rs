//! The order in which a switch handles the arrivals of a round.
//!
//! Arrivals are ordered by time and, at one instant, by `(link ⊕ a)·b mod 2³²` with `a` and odd `b` drawn from (seed, instant).
//! For a given instant that is a bijection on links, and one link delivers at most one packet at one instant: the order is
//! total, needs no insertion order to break ties, and prefers no port in the long run.
//!
//! Ports of a lossy switch do not affect each other, so arrivals are lined up separately for each egress port: a few dozen in a round. A
//! switch with a shared buffer sorts all of its arrivals at once where pauses may change. A key is one integer with the time in front; ties
//! are put in order afterwards.
//!
//! Processors cannot predict how two arrivals of different links compare. A few keys in no order are therefore sorted by their ranks,
//! without a branch that depends on a key: more instructions than insertion, but less time.

use crate::topology::LinkId;
use clearway_engine::Round;
use clearway_units::{Time, mix64};

/// An arrival's position in the order and where to find it: time since the start of the round, ingress port, place among the
/// unread messages of the port's inlet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ArrivalKey(u64);

impl ArrivalKey {
    /// Rounds are shorter than this.
    pub(crate) const LONGEST_ROUND_PS: u64 = 1 << 32;
    /// Fewer messages than this arrive at an inlet within a round. Those that are on a long cable, and so unread, may be more.
    pub(crate) const MOST_MESSAGES: u64 = 1 << 16;
    /// A switch has at most so many ports.
    pub(crate) const MOST_PORTS: usize = 1 << 16;

    #[inline]
    pub(crate) fn new(start: Time, time: Time, port: usize, place: usize) -> Self {
        let since = (time - start).as_ps();
        debug_assert!(
            since < Self::LONGEST_ROUND_PS
                && (place as u64) < Self::MOST_MESSAGES
                && port < Self::MOST_PORTS
        );
        Self(since << 32 | (port as u64) << 16 | place as u64)
    }
    /// Time of the first of the arrivals that are left in a round, or the last instant of the round.
    #[inline]
    pub(crate) fn next(left: &[Self], round: &Round) -> Time {
        match left.first() {
            Some(key) => key.time(round.start()),
            None => Time::from_ps(round.end().as_ps() - 1),
        }
    }
    #[inline]
    pub(crate) fn port(self) -> usize {
        (self.0 >> 16) as u16 as usize
    }
    #[inline]
    pub(crate) fn place(self) -> usize {
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

/// Memory in which keys are sorted.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    /// By slice of the round: the number of keys in it, then the place of the next one.
    slices: Vec<u32>,
    sorted: Vec<ArrivalKey>,
    /// Keys in the order of their ranks.
    ranked: [ArrivalKey; MOST_RANKED],
}

/// Up to so many keys are sorted by their ranks.
const MOST_RANKED: usize = 32;
/// Ranks are computed from times of less than so many picoseconds, beside which there is room for the number of a key.
const LONGEST_RANKED_PS: u64 = 1 << (i32::BITS - 1 - MOST_RANKED.ilog2());
/// Up to so many keys, as one egress port has, the standard library is fast.
const FEW: usize = 64;
/// A round has at most so many slices.
const MOST_SLICES: usize = 1024;
/// Insertion gives up if it has to move more keys than this for each key.
const MOST_MOVES: usize = 8;

impl Sorter {
    /// Sorts the arrival keys of `round`; `links` are the links behind the ingress ports.
    ///
    /// Arrivals are spread over a round, so that a slice of it for each key brings nearly all of them into their order.
    #[inline]
    pub(crate) fn sort(
        &mut self,
        arrival_keys: &mut Vec<ArrivalKey>,
        seed: u64,
        round: &Round,
        links: &[LinkId],
    ) {
        if arrival_keys.len() < 2 {
            return;
        }
        let length = (round.end() - round.start()).as_ps();
        if arrival_keys.len() <= MOST_RANKED
            && length <= LONGEST_RANKED_PS
            && descents(arrival_keys) > arrival_keys.len() / 4
        {
            sort_by_rank(arrival_keys, &mut self.ranked);
        } else if arrival_keys.len() <= FEW {
            arrival_keys.sort_unstable();
        } else {
            self.sort_many(arrival_keys, round);
        }
        // Counted to the end, which the compiler does for several keys at once.
        let ties = arrival_keys.windows(2).fold(0, |ties, pair| {
            ties + u32::from(pair[0].time_bits() == pair[1].time_bits())
        });
        if ties > 0 {
            break_ties(arrival_keys, seed, round, links);
        }
    }

    #[inline(never)]
    fn sort_many(&mut self, arrival_keys: &mut Vec<ArrivalKey>, round: &Round) {
        let count = arrival_keys.len().next_power_of_two().min(MOST_SLICES);
        let length = (round.end() - round.start()).as_ps();
        // The first shift that brings every instant of the round into a slice.
        let bits = u64::BITS - (length - 1).leading_zeros();
        let shift = bits.saturating_sub(count.trailing_zeros());
        let slice_of = |key: &ArrivalKey| (key.time_bits() >> shift) as usize & (count - 1);
        self.slices.clear();
        self.slices.resize(count, 0);
        let slices = &mut self.slices[..count];
        arrival_keys
            .iter()
            .for_each(|key| slices[slice_of(key)] += 1);
        let mut place = 0;
        for slice in slices.iter_mut() {
            place += std::mem::replace(slice, place);
        }
        self.sorted.clear();
        self.sorted.resize(arrival_keys.len(), ArrivalKey(0));
        for key in arrival_keys.iter() {
            let place = &mut slices[slice_of(key)];
            self.sorted[*place as usize] = *key;
            *place += 1;
        }
        std::mem::swap(arrival_keys, &mut self.sorted);
        // Arrivals that crowd into few slices would make insertion quadratic.
        if !insert(arrival_keys) {
            arrival_keys.sort_unstable();
        }
    }
}

/// Number of keys that are less than the key in front of them.
#[inline]
fn descents(arrival_keys: &[ArrivalKey]) -> usize {
    let pairs = arrival_keys.windows(2);
    pairs.map(|pair| usize::from(pair[1] < pair[0])).sum()
}

/// Sorts up to [`MOST_RANKED`] keys of a round of up to [`LONGEST_RANKED_PS`]: the place of a key is the number of keys before it. Keys of
/// one instant stay in their order.
#[inline(never)]
fn sort_by_rank(arrival_keys: &mut [ArrivalKey], sorted: &mut [ArrivalKey; MOST_RANKED]) {
    const LANES: usize = 8;
    let count = arrival_keys.len();
    let mut ranks_by = [i32::MAX; MOST_RANKED];
    for (number, (rank_by, key)) in ranks_by.iter_mut().zip(&*arrival_keys).enumerate() {
        *rank_by = (key.time_bits() * MOST_RANKED as u32) as i32 | number as i32;
    }
    let (groups, _) = ranks_by.as_chunks::<LANES>();
    let groups = &groups[..count.div_ceil(LANES).min(groups.len())];
    for (key, &rank_by) in arrival_keys.iter().zip(&ranks_by) {
        // A sum for each lane, so that the compiler compares several at once.
        let mut before = [0; LANES];
        for group in groups {
            for (before, &other) in before.iter_mut().zip(group) {
                *before += u32::from(other < rank_by);
            }
        }
        let place: u32 = before.iter().sum();
        sorted[place as usize % MOST_RANKED] = *key;
    }
    arrival_keys.copy_from_slice(&sorted[..count]);
}

/// Puts arrivals of the same instants, which are next to each other, in order.
#[inline(never)]
fn break_ties(arrival_keys: &mut [ArrivalKey], seed: u64, round: &Round, links: &[LinkId]) {
    let mut first = 0;
    while let Some(key) = arrival_keys.get(first) {
        let time_bits = key.time_bits();
        let later = arrival_keys[first + 1..].iter();
        let ties = later.take_while(|key| key.time_bits() == time_bits).count();
        let end = first + 1 + ties;
        if ties > 0 {
            let time = key.time(round.start());
            arrival_keys[first..end]
                .sort_unstable_by_key(|key| tie_break(seed, time, links[key.port()]));
        }
        first = end;
    }
}

/// Sorts keys that are nearly sorted. Returns false, with the keys in any order, if they are not.
fn insert(arrival_keys: &mut [ArrivalKey]) -> bool {
    let mut budget = arrival_keys.len() * MOST_MOVES;
    for next in 1..arrival_keys.len() {
        let key = arrival_keys[next];
        let mut place = next;
        while place > 0 && arrival_keys[place - 1] > key {
            arrival_keys[place] = arrival_keys[place - 1];
            place -= 1;
        }
        arrival_keys[place] = key;
        let moves = next - place;
        if moves > budget {
            return false;
        }
        budget -= moves;
    }
    true
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

    #[test]
    fn ranks_have_room_for_the_longest_round_and_no_more() {
        let start = Time::from_us(5);
        for length in [LONGEST_RANKED_PS, LONGEST_RANKED_PS + 1] {
            for count in [2, MOST_RANKED - 1, MOST_RANKED, MOST_RANKED + 1] {
                let round = Round::new(0, start, start + Span::from_ps(length));
                // Descending, and the first two at the last instant.
                let at = |port: usize| start + Span::from_ps(length - port.max(1) as u64);
                let key = |port| ArrivalKey::new(start, at(port), port, 0);
                let mut arrival_keys: Vec<ArrivalKey> = (0..count).map(key).collect();
                let links: Vec<LinkId> = (0..count as u32).map(LinkId).collect();
                Sorter::default().sort(&mut arrival_keys, 7, &round, &links);
                let mut expected: Vec<usize> = (0..count).collect();
                expected.sort_by_key(|&port| (at(port), tie_break(7, at(port), links[port])));
                let order: Vec<usize> = arrival_keys.iter().map(|key| key.port()).collect();
                assert_eq!(order, expected, "{length} ps, {count} keys");
            }
        }
    }

    proptest! {
        #[test]
        fn sorts_by_time_then_rank(
            times in prop_oneof![
                prop::collection::vec(any::<u64>(), 0..40),
                prop::collection::vec(any::<u64>(), 0..400),
            ],
            narrow in 1..=1u64 << 31,
            length in 20u32..=31,
        ) {
            let start = Time::from_us(3);
            let round = Round::new(0, start, start + Span::from_ps(1 << length));
            let at = |i: usize| start + Span::from_ps(times[i] % narrow.min(1 << length));
            let mut arrival_keys: Vec<ArrivalKey> = (0..times.len()).map(|i| ArrivalKey::new(start, at(i), i, 0)).collect();
            let links: Vec<LinkId> = (0..times.len() as u32).map(|port| LinkId(port * 3)).collect();
            Sorter::default().sort(&mut arrival_keys, 7, &round, &links);
            let order: Vec<usize> = arrival_keys.iter().map(|arrival_key| arrival_key.port()).collect();
            let mut expected: Vec<usize> = (0..times.len()).collect();
            expected.sort_by_key(|&i| (at(i), tie_break(7, at(i), links[i])));
            prop_assert_eq!(order, expected);
        }
    }
}

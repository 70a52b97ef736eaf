//! Random numbers: one independent stream for each (seed, purpose, entity).

use crate::mix64;
use rand_core::Rng;
use rand_pcg::Pcg32;

/// Purpose of a random stream. Two purposes never share numbers, even for one entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Random choices of workloads, such as senders and receivers (entity: section, or host in a section).
    Workload = 1,
    /// Choice of the packets that a queue marks (entity: directed link).
    Marking = 2,
    /// Choice of the packets that a link corrupts (entity: directed link).
    BitErrors = 3,
    /// Hash functions of switches (entity: switch).
    Hashing = 4,
    /// Entropies and starting points of path selectors (entity: flow).
    Paths = 5,
    /// Order of simultaneous arrivals.
    Ties = 6,
    /// For tests and tools outside a run.
    Test = 7,
    /// Random choices of congestion controllers (entity: flow).
    Controller = 8,
    /// Durations of computations (entity: job, rank).
    Compute = 9,
    /// Skew of the ranks' clocks (entity: job, rank).
    Clock = 10,
    /// Choice of a flow's NICs where its hosts have several (entity: flow).
    Nics = 11,
    /// Random choices of the planner's search (entity: the first job of a circle).
    Planning = 12,
    /// Choice of the flows that attack (entity: section).
    Attack = 13,
    /// Skew of the clocks of hosts (entity: host).
    HostClock = 14,
    /// Tokens of injection control (entity: GPU and class).
    Injection = 15,
    /// Delays of the bursts of workloads, and the other random choices of each burst (entity: burst of a section).
    Bursts = 16,
    /// Resampled seeds for an interval (entity: number of seeds).
    Bootstrap = 17,
    /// Points of sweeps that are drawn (entity: hash of the key).
    Sampling = 18,
    /// Loss, duplication, reordering, corruption and marks of a link of a test bed (entity: directed link).
    Impairment = 19,
    /// Choice of the packet that a full queue trims (entity: directed link).
    Trimming = 20,
    /// Choice among equal next hops by a switch that looks at its queues (entity: switch).
    LocalChoice = 21,
    /// Groups of switches through which packets take a detour (entity: directed link from a host).
    Detours = 22,
    /// Experts of the tokens of a mixture-of-experts layer (entity: hash of section and job, plus layer).
    Routing = 23,
}

/// A stream of random numbers: PCG-XSH-RR 64/32 (O'Neill 2014), a fixed algorithm, 16 bytes of state.
///
/// ```
/// use clearway_units::{Purpose, RandomStream};
/// let mut marks = RandomStream::new(1, Purpose::Marking, 7);
/// let mut again = RandomStream::new(1, Purpose::Marking, 7);
/// assert_eq!(marks.next_u32(), again.next_u32());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RandomStream(Pcg32);

impl RandomStream {
    /// The stream of `entity` for `purpose` in a run with `seed`.
    pub fn new(seed: u64, purpose: Purpose, entity: u64) -> Self {
        let stream = mix64(mix64(seed) ^ purpose as u64);
        Self(Pcg32::new(
            mix64(stream ^ entity),
            mix64(stream.wrapping_add(entity)),
        ))
    }
    /// 32 uniform bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }
    /// 64 uniform bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
    /// A uniform integer in `0..bound`, without bias (Lemire 2019).
    ///
    /// # Panics
    /// If `bound` is zero.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        assert!(bound > 0, "no number is below zero");
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u64::from(self.next_u32()) * u64::from(bound);
            if product as u32 >= threshold {
                return (product >> 32) as u32;
            }
        }
    }
    /// A uniform number in `[0, 1)` with 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
    /// True with probability `p`, resolved to 2^-32 on the fast path and exactly 0 and 1 at the ends.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        p > 0.0 && self.unit() < p
    }
    /// Shuffles `items` uniformly (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u32 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_pinned_and_distinct() {
        let first = |purpose, entity| RandomStream::new(1, purpose, entity).next_u64();
        // A change here changes every published digest.
        assert_eq!(first(Purpose::Marking, 0), 14_022_189_093_965_657_997);
        let mut seen = std::collections::BTreeSet::new();
        for purpose in [Purpose::Marking, Purpose::BitErrors, Purpose::Paths] {
            for entity in 0..1000 {
                assert!(seen.insert(first(purpose, entity)));
            }
        }
    }

    #[test]
    fn bounded_numbers_are_uniform() {
        let mut stream = RandomStream::new(3, Purpose::Test, 0);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[stream.below(6) as usize] += 1;
        }
        // 5 sigma of a binomial(60000, 1/6) is 456.
        assert!(
            counts.iter().all(|&n| n.abs_diff(10_000) < 456),
            "{counts:?}"
        );
        let hits = (0..100_000).filter(|_| stream.chance(0.3)).count();
        assert!(hits.abs_diff(30_000) < 725, "{hits}");
        assert!(!stream.chance(0.0) && stream.chance(1.0));
    }

    #[test]
    fn shuffles_keep_all_items() {
        let mut items: Vec<u32> = (0..100).collect();
        RandomStream::new(1, Purpose::Test, 1).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}

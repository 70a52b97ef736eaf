//! Random choices for scenarios.

use clearway_units::{Purpose, RandomStream};

/// A stream of choices.
pub(crate) struct Draw(RandomStream);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(RandomStream::new(seed, Purpose::Test, 0))
    }
    /// Choices about shared buffers, apart from the others, which therefore do not depend on them.
    pub(crate) fn about_buffers(seed: u64) -> Self {
        Self(RandomStream::new(seed, Purpose::Test, 1))
    }
    /// Choices about priorities, apart from all others.
    pub(crate) fn about_priorities(seed: u64) -> Self {
        Self(RandomStream::new(seed, Purpose::Test, 2))
    }
    /// Choices about rate allocation, apart from all others.
    pub(crate) fn about_allocation(seed: u64) -> Self {
        Self(RandomStream::new(seed, Purpose::Test, 3))
    }
    /// Choices about packet trimming, apart from all others.
    pub(crate) fn about_trimming(seed: u64) -> Self {
        Self(RandomStream::new(seed, Purpose::Test, 5))
    }
    /// Choices about adaptive routing, apart from all others.
    pub(crate) fn about_routing(seed: u64) -> Self {
        Self(RandomStream::new(seed, Purpose::Test, 6))
    }
    /// Choices about queues that the fabric states, apart from all others.
    pub(crate) fn about_queues(seed: u64) -> Self {
        Self(RandomStream::new(seed, Purpose::Test, 8))
    }
    /// Choices about further transports, apart from all others.
    pub(crate) fn about_transports(seed: u64) -> Self {
        Self(RandomStream::new(seed, Purpose::Test, 7))
    }
    /// Choices about events of links, apart from all others.
    pub(crate) fn about_events(seed: u64) -> Self {
        Self(RandomStream::new(seed, Purpose::Test, 4))
    }
    /// Choices about the roles of switches, apart from all others.
    pub(crate) fn about_roles(seed: u64) -> Self {
        Self(RandomStream::new(seed, Purpose::Test, 6))
    }
    /// Choices about groups of switches, apart from all others.
    pub(crate) fn about_groups(seed: u64) -> Self {
        Self(RandomStream::new(seed, Purpose::Test, 7))
    }
    /// Choices about direct networks, apart from all others.
    pub(crate) fn about_direct_networks(seed: u64) -> Self {
        Self(RandomStream::new(seed, Purpose::Test, 9))
    }
    /// Choices about virtual channels, apart from all others.
    pub(crate) fn about_channels(seed: u64) -> Self {
        Self(RandomStream::new(seed, Purpose::Test, 10))
    }
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.0.below(bound)
    }
    /// From `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        let choices = u32::try_from(high - low + 1).expect("a small range");
        low + u64::from(self.0.below(choices))
    }
    /// True in `percent` of all cases.
    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.0.below(100) < percent
    }
    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.below(choices.len() as u32) as usize]
    }
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        self.0.shuffle(items);
    }
}

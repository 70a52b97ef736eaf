//! Random choices.

use clearway_units::{Purpose, RandomStream};

/// Random choices of one scenario.
#[derive(Debug, Clone)]
pub(crate) struct RandomChoices(RandomStream);

impl RandomChoices {
    /// Creates the random choices of scenario `number` of the storm with this seed.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        Self(RandomStream::new(seed, Purpose::Test, number))
    }

    /// Chooses one of `items`.
    ///
    /// # Panics
    /// If `items` is empty.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u32::try_from(bound).expect("few values to choose from");
        self.0.below(bound) as usize
    }

    /// True with probability `p`.
    pub(crate) fn chance(&mut self, p: f64) -> bool {
        self.0.chance(p)
    }

    /// A number near `centre` on a logarithmic scale, by a factor of up to 2^`doublings`.
    pub(crate) fn around(&mut self, centre: u64, doublings: u32) -> u64 {
        let steps = self.below(2 * doublings as usize + 1) as u32;
        // Values between powers of two as well: limits are often at powers of two.
        let centre = u128::from(centre) * (768 + self.below(513) as u128) / 1024;
        let value = (centre << steps) >> doublings;
        u64::try_from(value).unwrap_or(u64::MAX)
    }
}

//! Oblivious spraying: the baseline that STrack §4.2 compares with. Every path in turn, in an order that changes with each round,
//! regardless of acknowledgements.
//!
//! The paper does not define its oblivious spraying further than that; the order here (a fresh random XOR of the counter on each wrap)
//! comes from the UEC reference simulator. Without it, flows that started together would march over the fabric in step for ever.

use super::{DEFAULT_PATHS, PathId, PathSelector, SelectorContext, SelectorDefinition, SendState};
use clearway_units::RandomStream;
use std::num::NonZero;

clearway_units::parameters! {
    /// Settings of [`Oblivious`].
    pub struct ObliviousParameters {
        /// Number of paths that are used in turn, at least 1.
        pub max_paths: NonZero<u16> = DEFAULT_PATHS, "max-paths", "STrack §4.1";
    }
}

/// Round robin over all paths with a fresh permutation on each wrap; marks are ignored.
#[derive(Debug, Clone)]
pub struct Oblivious {
    /// Position in the present round.
    position: u32,
    /// The next power of two at or above `max_paths`, less one.
    position_mask: u32,
    /// Permutation of the present round: the path is the position XOR this value.
    permutation: u32,
    max_paths: u32,
    random: RandomStream,
}

impl SelectorDefinition for Oblivious {
    const NAME: &'static str = "oblivious";
    const SUMMARY: &'static str = "every path in turn, regardless of congestion";
    type Parameters = ObliviousParameters;

    fn new(parameters: &ObliviousParameters, context: SelectorContext<'_>) -> Self {
        let mut random = context.random;
        let max_paths = u32::from(parameters.max_paths.get());
        let position_mask = max_paths.next_power_of_two() - 1;
        let draw = random.next_u32();
        Self {
            position: draw & position_mask,
            position_mask,
            permutation: (draw >> 16) & position_mask,
            max_paths,
            random,
        }
    }

    fn most_paths(parameters: &ObliviousParameters) -> u32 {
        parameters.max_paths.get().into()
    }
}

impl Oblivious {
    /// The next path of the round.
    #[inline]
    pub(super) fn next_path(&mut self) -> PathId {
        loop {
            self.position = (self.position + 1) & self.position_mask;
            if self.position == 0 {
                self.permutation = self.random.next_u32() & self.position_mask;
            }
            let path = self.position ^ self.permutation;
            if path < self.max_paths {
                return path as PathId;
            }
        }
    }
}

impl PathSelector for Oblivious {
    #[inline]
    fn choose(&mut self, _: &SendState) -> PathId {
        self.next_path()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{context, facts, state};
    use super::*;

    #[test]
    fn oblivious_uses_every_path_once_in_each_round() {
        for max_paths in [1u16, 8, 200, 256] {
            let mut selector = Oblivious::new(
                &ObliviousParameters {
                    max_paths: NonZero::new(max_paths).unwrap(),
                },
                context(&facts(), 5),
            );
            while selector.position != selector.position_mask {
                selector.choose(&state(1.0));
            }
            let round = |selector: &mut Oblivious| -> Vec<PathId> {
                (0..max_paths)
                    .map(|_| selector.choose(&state(1.0)))
                    .collect()
            };
            let (first, second) = (round(&mut selector), round(&mut selector));
            for paths in [&first, &second] {
                let mut sorted = paths.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..max_paths).collect::<Vec<_>>());
            }
            assert!(
                max_paths < 200 || first != second,
                "a fresh order each round"
            );
        }
    }
}

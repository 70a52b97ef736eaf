//! The mixed selector of the UEC reference simulator: paths of unmarked acknowledgements in the order in which they have come, and
//! where none is left the choice of [`Bitmap`], which hears of everything.
//!
//! Deviation: the simulator remembers without bound. Here 65 536 paths are remembered, more than a window has packets, so that a peer
//! that repeats its acknowledgements takes no memory.

use super::{
    Bitmap, BitmapParameters, DEFAULT_PATHS, PathFeedback, PathId, PathSelector, SelectorContext,
    SelectorDefinition, SendState,
};
use std::collections::VecDeque;
use std::num::NonZero;

/// Paths that are remembered at most.
const MOST: usize = 1 << 16;

clearway_units::parameters! {
    /// Settings of [`Mixed`].
    pub struct MixedParameters {
        /// Number of paths, at least 1.
        pub max_paths: NonZero<u16> = DEFAULT_PATHS, "max-paths", "STrack §4.1; UEC 1.0.3: 64 to 256";
    }
}

/// Paths of unmarked acknowledgements first, then the paths of [`Bitmap`].
#[derive(Debug, Clone)]
pub struct Mixed {
    /// Paths of unmarked acknowledgements that no packet has taken yet.
    good: VecDeque<PathId>,
    bitmap: Bitmap,
}

impl SelectorDefinition for Mixed {
    const NAME: &'static str = "mixed";
    const SUMMARY: &'static str = "UEC: paths of unmarked acknowledgements first, then as bitmap";
    type Parameters = MixedParameters;

    fn new(parameters: &MixedParameters, context: SelectorContext<'_>) -> Self {
        let bitmap = BitmapParameters {
            max_paths: parameters.max_paths,
        };
        Self {
            good: VecDeque::new(),
            bitmap: Bitmap::new(&bitmap, context),
        }
    }

    fn most_paths(parameters: &MixedParameters) -> u32 {
        parameters.max_paths.get().into()
    }
}

impl PathSelector for Mixed {
    fn on_feedback(&mut self, feedback: &PathFeedback) {
        self.bitmap.on_feedback(feedback);
        if feedback.verdict.is_good() && self.bitmap.knows(feedback.path) {
            if self.good.len() == MOST {
                self.good.pop_front();
            }
            self.good.push_back(feedback.path);
        }
    }

    fn on_path_timeout(&mut self, path: PathId) {
        self.bitmap.on_path_timeout(path);
    }

    fn choose(&mut self, state: &SendState) -> PathId {
        self.good
            .pop_front()
            .unwrap_or_else(|| self.bitmap.choose(state))
    }

    fn choose_for_probe(&mut self, state: &SendState) -> PathId {
        self.bitmap.choose_for_probe(state)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{answer, context, facts, state};
    use super::*;
    use crate::paths::PathVerdict;

    fn mixed() -> Mixed {
        Mixed::new(&MixedParameters::default(), context(&facts(), 0))
    }

    /// Section 4: an unbounded FIFO of good paths first, else bitmap.
    #[test]
    fn good_paths_come_first_and_in_their_order() {
        let mut selector = mixed();
        let mut bitmap = selector.bitmap.clone();
        for path in 10..30 {
            selector.on_feedback(&answer(path, PathVerdict::Good));
        }
        selector.on_feedback(&answer(99, PathVerdict::Marked));
        assert_eq!(
            selector.choose_for_probe(&state(1.0)),
            bitmap.choose(&state(1.0)),
            "a probe leaves what is remembered"
        );
        for path in 10..30 {
            assert_eq!(selector.choose(&state(1.0)), path);
        }
        assert_eq!(selector.choose(&state(1.0)), bitmap.choose(&state(1.0)));
    }

    /// Section 4: the bitmap hears everything.
    #[test]
    fn marked_paths_are_skipped_where_nothing_is_remembered() {
        let mut selector = mixed();
        let mut bitmap = selector.bitmap.clone();
        for path in 0..200 {
            for heard in [&mut selector as &mut dyn PathSelector, &mut bitmap] {
                heard.on_feedback(&answer(path, PathVerdict::Marked));
            }
        }
        for _ in 0..600 {
            assert_eq!(selector.choose(&state(1.0)), bitmap.choose(&state(1.0)));
        }
    }

    #[test]
    fn memory_is_bounded_and_forgets_the_oldest() {
        let mut selector = mixed();
        selector.on_feedback(&answer(7, PathVerdict::Good));
        selector.on_feedback(&answer(300, PathVerdict::Good));
        for _ in 0..MOST {
            selector.on_feedback(&answer(8, PathVerdict::Good));
        }
        assert_eq!(selector.good.len(), MOST);
        assert_eq!(selector.choose(&state(1.0)), 8);
    }
}

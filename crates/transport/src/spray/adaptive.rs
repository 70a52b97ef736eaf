//! STrack's adaptive packet spraying (STrack §3.1, Algorithm 3).
//!
//! An unmarked acknowledgement donates its path to the next packet. Without one, packets take the paths in turn and skip those
//! whose last acknowledgement was marked; each packet forgives the first path that it skips, so that a bad path is tried again
//! after a sweep. Only the first `2 × window` paths are swept: what a larger sweep would remember is older than two round trips.
//!
//! Deviations from the algorithm as printed:
//! * Q2, polarity: printed, a mark *clears* the bit and the chooser skips set bits. The prose says that marked paths are
//!   skipped; here a set bit means a bad path.
//! * Q3, path 0: printed, the remembered path counts only if above zero, and negation cannot invalidate path 0. Here it is an
//!   `Option`; a marked acknowledgement empties it.
//! * Q15: §1 speaks of a bitmap that is reset after one or two round trips. Algorithm 3 has no such timer, and a sweep of
//!   `2 × window` paths takes no longer than that.
//! * Q16: the window in `2 × cwnd` is in packets.
//! * Probes sweep but leave the remembered path to data; the paper says nothing of their paths.

use super::{
    DEFAULT_PATHS, PathFeedback, PathId, PathSelector, SelectorContext, SelectorDefinition,
    SendState,
};
use std::num::NonZero;

const DEFAULT_SWEEP: NonZero<u16> = NonZero::new(8).expect("not zero");

clearway_units::parameters! {
    /// Settings of [`Adaptive`].
    pub struct AdaptiveParameters {
        /// Number of paths, at least 1.
        pub max_paths: NonZero<u16> = DEFAULT_PATHS, "max-paths", "STrack §4.1 and Algorithm 3 line 1";
        /// Paths that are swept however small the window, at least 1.
        pub min_paths: NonZero<u16> = DEFAULT_SWEEP, "min-paths", "STrack Algorithm 3 line 18";
    }
}

/// The path selector of STrack.
#[derive(Debug, Clone)]
pub struct Adaptive {
    /// The path of the last unmarked acknowledgement, if no packet has used it (`next_path_id`).
    next: Option<PathId>,
    /// The path used last (`rr`).
    last: u32,
    min_paths: u32,
    max_paths: u32,
    /// A set bit is a path whose last acknowledgement was marked (`bitmap`, inverted: see Q2).
    bad: Box<[u64]>,
}

impl SelectorDefinition for Adaptive {
    const NAME: &'static str = "adaptive";
    const SUMMARY: &'static str =
        "STrack: paths of unmarked acknowledgements first, marked ones skipped";
    type Parameters = AdaptiveParameters;

    fn new(parameters: &AdaptiveParameters, mut context: SelectorContext<'_>) -> Self {
        let max_paths = u32::from(parameters.max_paths.get());
        Self {
            next: None,
            last: context.random.below(max_paths),
            min_paths: u32::from(parameters.min_paths.get()).min(max_paths),
            max_paths,
            bad: vec![0; max_paths.div_ceil(64) as usize].into_boxed_slice(),
        }
    }

    fn most_paths(parameters: &AdaptiveParameters) -> u32 {
        parameters.max_paths.get().into()
    }
}

impl Adaptive {
    #[inline]
    fn is_bad(&self, path: u32) -> bool {
        self.bad[(path >> 6) as usize] >> (path & 63) & 1 != 0
    }

    /// The sweep of Algorithm 3 lines 16 to 27.
    fn sweep(&mut self, window: f64) -> u32 {
        let paths = ((2.0 * window) as u32).clamp(self.min_paths, self.max_paths);
        let mut path = self.last + 1;
        if path >= paths {
            path %= paths;
        }
        if self.is_bad(path) {
            // The first skipped path is forgiven, so the search ends there at the latest.
            self.bad[(path >> 6) as usize] &= !(1 << (path & 63));
            path = self
                .first_good(path + 1, paths)
                .or_else(|| self.first_good(0, path))
                .unwrap_or(path);
        }
        self.last = path;
        path
    }

    /// The first path in `from..to` that is not bad.
    fn first_good(&self, from: u32, to: u32) -> Option<u32> {
        let mut path = from;
        while path < to {
            let good = !self.bad[(path >> 6) as usize] >> (path & 63);
            if good != 0 {
                let found = path + good.trailing_zeros();
                return (found < to).then_some(found);
            }
            path = (path | 63) + 1;
        }
        None
    }
}

impl PathSelector for Adaptive {
    #[inline(always)]
    fn on_feedback(&mut self, feedback: &PathFeedback) {
        let path = feedback.path;
        if u32::from(path) >= self.max_paths {
            return;
        }
        let (word, bit) = (usize::from(path >> 6), 1u64 << (path & 63));
        if feedback.verdict.is_marked() {
            self.next = None;
            self.bad[word] |= bit;
        } else {
            self.next = Some(path);
            self.bad[word] &= !bit;
        }
    }

    #[inline]
    fn choose(&mut self, state: &SendState) -> PathId {
        match self.next.take() {
            Some(path) => {
                self.last = u32::from(path);
                path
            }
            None => self.sweep(state.window) as PathId,
        }
    }

    fn choose_for_probe(&mut self, state: &SendState) -> PathId {
        self.sweep(state.window) as PathId
    }
}

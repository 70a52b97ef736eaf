//! STrack's adaptive packet spraying (STrack §3.1, Algorithm 3).
//!
//! An unmarked acknowledgement donates its path to the next packet. Without one, packets take the paths in turn and skip those whose last
//! acknowledgement was marked; each packet forgives the first path that it skips, so that a bad path is tried again after a sweep. Only the
//! first `2 × window` paths are swept: the marks of a larger sweep would be older than two round trips.
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
//! * A path that answers nothing is like any other, as printed. With `dead-path = "probe"` the sweep leaves out dead paths, and
//!   forgives none of them: the first skipped path is then the first marked one that is not dead. If all paths of the sweep are
//!   dead it goes on to those beyond.

use super::dead_paths::DeadPaths;
use super::{
    DEFAULT_PATHS, PathFeedback, PathId, PathSelector, SelectorContext, SelectorDefinition,
    SendState,
};
use clearway_prefetch::{LINE, prefetch_first};
use clearway_units::{Span, Time};
use std::num::NonZero;

const DEFAULT_SWEEP: NonZero<u16> = NonZero::new(8).expect("not zero");

clearway_units::choices! {
    /// Treatment of paths on which nothing is answered.
    pub enum DeadPath {
        /// None: a path is good unless its last acknowledgement was marked.
        Off = "off",
        /// Avoidance of a path that has not answered when a packet has that left `probe-after` later on another path. It is tried
        /// again after `rto`, then each time after as long again as it has been silent, until it answers. The path that answered last is
        /// never avoided.
        Probe = "probe",
    }
}

clearway_units::parameters! {
    /// Settings of [`Adaptive`].
    pub struct AdaptiveParameters {
        /// Number of paths, at least 1.
        pub max_paths: NonZero<u16> = DEFAULT_PATHS, "max-paths", "STrack §4.1 and Algorithm 3 line 1";
        /// Minimum number of paths in a sweep, however small the window; at least 1.
        pub min_paths: NonZero<u16> = DEFAULT_SWEEP, "min-paths", "STrack Algorithm 3 line 18";
        /// Treatment of paths without answers, for instance over a failed link that routing still uses: "off", or "probe" to avoid them.
        /// "probe" needs selective repeat with probes, and an acknowledgement for each packet.
        pub dead_path: DeadPath = DeadPath::Off, "dead-path", "not in STrack, which marks paths alone; over UDP paths are avoided so";
    }
}

/// The path selector of STrack.
#[derive(Debug, Clone)]
pub struct Adaptive {
    /// The path of the last unmarked acknowledgement, if no packet has used it (`next_path_id`). None where dead paths are avoided,
    /// which keep their own: so who avoids none pays nothing for it.
    next: Option<PathId>,
    /// The path used last (`rr`).
    last: u32,
    min_paths: u32,
    max_paths: u32,
    /// Number of paths whose acknowledgements only set or clear a mark: all paths, or 0 where dead paths are avoided.
    plain_paths: u32,
    /// A set bit is a path whose last acknowledgement was marked (`bitmap`, inverted: see Q2).
    bad: Box<[u64]>,
    /// `None` if paths without an answer are not avoided.
    dead: Option<Box<DeadPaths>>,
}

impl SelectorDefinition for Adaptive {
    const NAME: &'static str = "adaptive";
    const SUMMARY: &'static str =
        "STrack: paths of unmarked acknowledgements first; skips marked paths";
    type Parameters = AdaptiveParameters;

    fn new(parameters: &AdaptiveParameters, mut context: SelectorContext<'_>) -> Self {
        let max_paths = u32::from(parameters.max_paths.get());
        let dead = match parameters.dead_path {
            DeadPath::Off => None,
            DeadPath::Probe => DeadPaths::new(max_paths, &context),
        };
        Self {
            next: None,
            last: context.random.below(max_paths),
            min_paths: u32::from(parameters.min_paths.get()).min(max_paths),
            max_paths,
            plain_paths: if dead.is_none() { max_paths } else { 0 },
            bad: vec![0; max_paths.div_ceil(64) as usize].into_boxed_slice(),
            dead: dead.map(Box::new),
        }
    }

    fn most_paths(parameters: &AdaptiveParameters) -> u32 {
        parameters.max_paths.get().into()
    }
}

impl Adaptive {
    /// Loads the marks of the paths into the caches.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch_first(&self.bad, LINE);
    }

    #[inline]
    fn is_bad(&self, path: u32) -> bool {
        self.bad[(path >> 6) as usize] >> (path & 63) & 1 != 0
    }

    #[inline]
    fn forgive(&mut self, path: u32) {
        self.bad[(path >> 6) as usize] &= !(1 << (path & 63));
    }

    /// The first path of a sweep, and the number of paths that it has.
    #[inline]
    fn sweep_start(&self, window: f64) -> (u32, u32) {
        let paths = ((2.0 * window) as u32).clamp(self.min_paths, self.max_paths);
        let mut path = self.last + 1;
        if path >= paths {
            path %= paths;
        }
        (path, paths)
    }

    /// The sweep of Algorithm 3 lines 16 to 27.
    fn sweep(&mut self, window: f64) -> u32 {
        let (mut path, paths) = self.sweep_start(window);
        if self.is_bad(path) {
            // The first skipped path is forgiven, so the search ends there at the latest.
            self.forgive(path);
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

/// Choice of paths where dead ones are avoided.
impl Adaptive {
    /// Takes note of the mark on `path`, or that there was none. Returns the path that the next packet may take.
    #[inline]
    fn note_mark(&mut self, path: PathId, is_marked: bool) -> Option<PathId> {
        let (word, bit) = (usize::from(path >> 6), 1u64 << (path & 63));
        if is_marked {
            self.bad[word] |= bit;
            None
        } else {
            self.bad[word] &= !bit;
            Some(path)
        }
    }

    /// Feedback on a path that is not plain. By value, so that the packet loop makes no copy of values that only this function reads.
    #[cold]
    #[inline(never)]
    fn on_further_feedback(&mut self, path: PathId, is_marked: bool, now: Time, rtt: Span) {
        if u32::from(path) >= self.max_paths {
            return;
        }
        let next = self.note_mark(path, is_marked);
        if let Some(dead) = &mut self.dead {
            let departure = now.as_ps().saturating_sub(rtt.as_ps());
            dead.on_answer(path, Time::from_ps(departure));
            dead.next = next;
        }
    }

    /// The path of a packet that leaves at `now`; one of data takes the remembered path if there is one.
    #[cold]
    #[inline(never)]
    fn choose_around_dead(&mut self, window: f64, now: Time, is_data: bool) -> PathId {
        let Some(mut dead) = self.dead.take() else {
            return self.sweep(window) as PathId;
        };
        let remembered = if is_data { dead.next.take() } else { None };
        let path = match remembered {
            Some(path) => path.into(),
            None => self.sweep_around(&dead, window, now),
        };
        self.last = path;
        dead.on_sent(path as PathId, now);
        self.dead = Some(dead);
        path as PathId
    }

    /// As [`sweep`](Self::sweep) without the dead paths; if all of them are dead, of the paths that the sweep leaves out.
    fn sweep_around(&mut self, dead: &DeadPaths, window: f64, now: Time) -> u32 {
        let (path, paths) = self.sweep_start(window);
        let swept = (path..paths).chain(0..path);
        // The path that answered last is not dead, so there is one.
        self.first_alive(swept, dead, now)
            .or_else(|| self.first_alive(paths..self.max_paths, dead, now))
            .unwrap_or(path)
    }

    /// The first good path of those that are not dead, or if all of these are bad the first of them, which is forgiven in any case.
    fn first_alive(
        &mut self,
        paths: impl Iterator<Item = u32>,
        dead: &DeadPaths,
        now: Time,
    ) -> Option<u32> {
        let mut alive = paths.filter(|path| !dead.avoids(*path, now));
        let first = alive.next()?;
        if !self.is_bad(first) {
            return Some(first);
        }
        self.forgive(first);
        alive.find(|path| !self.is_bad(*path)).or(Some(first))
    }

    /// True if sweeps leave out `path` at `now`, because it is dead.
    #[cfg(test)]
    pub(super) fn avoids(&self, path: PathId, now: Time) -> bool {
        let dead = self.dead.as_ref();
        dead.is_some_and(|dead| dead.avoids(path.into(), now))
    }
}

impl PathSelector for Adaptive {
    #[inline(always)]
    fn on_feedback(&mut self, feedback: &PathFeedback) {
        let path = feedback.path;
        if u32::from(path) >= self.plain_paths {
            let is_marked = feedback.verdict.is_marked();
            return self.on_further_feedback(path, is_marked, feedback.now, feedback.rtt);
        }
        self.next = self.note_mark(path, feedback.verdict.is_marked());
    }

    #[inline]
    fn choose(&mut self, state: &SendState) -> PathId {
        match self.next.take() {
            Some(path) => {
                self.last = u32::from(path);
                path
            }
            None if self.dead.is_some() => self.choose_around_dead(state.window, state.now, true),
            None => self.sweep(state.window) as PathId,
        }
    }

    fn choose_for_probe(&mut self, state: &SendState) -> PathId {
        self.choose_around_dead(state.window, state.now, false)
    }
}

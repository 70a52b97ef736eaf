//! Spraying by penalties, the bitmap of the UEC reference simulator: every path in turn, those with penalties skipped.
//!
//! A marked acknowledgement adds 1 to the penalty of its path and a negative one 4, up to 15; unmarked ones change nothing. Each packet
//! takes one off the first path that it skips, so that a path comes back after as many sweeps as its penalty.
//!
//! A packet that is not answered within its timeout adds 15 to the penalty of its path: a path that leads nowhere is used for one packet in
//! 16 sweeps. Deviation, decision U17: the simulator adds them to path 0, because it does not know which path the packet took.

use super::{
    DEFAULT_PATHS, Oblivious, ObliviousParameters, PathFeedback, PathId, PathSelector, PathVerdict,
    SelectorContext, SelectorDefinition, SendState,
};
use std::num::NonZero;

const MARK: u8 = 1;
const NACK: u8 = 4;
/// Penalty of a packet that nothing answered.
const TIMEOUT: u8 = 15;
const MOST: u8 = 15;

clearway_units::parameters! {
    /// Settings of [`Bitmap`].
    pub struct BitmapParameters {
        /// Number of paths, at least 1.
        pub max_paths: NonZero<u16> = DEFAULT_PATHS, "max-paths", "STrack §4.1; UEC 1.0.3: 64 to 256";
    }
}

/// Every path in turn, without those that acknowledgements speak against.
#[derive(Debug, Clone)]
pub struct Bitmap {
    /// The order of the paths: a fresh one on each wrap.
    order: Oblivious,
    /// By path (`score`).
    penalties: Box<[u8]>,
}

impl SelectorDefinition for Bitmap {
    const NAME: &'static str = "bitmap";
    const SUMMARY: &'static str = "UEC: every path in turn; skips paths after marks and NACKs";
    type Parameters = BitmapParameters;

    fn new(parameters: &BitmapParameters, context: SelectorContext<'_>) -> Self {
        let order = ObliviousParameters {
            max_paths: parameters.max_paths,
        };
        Self {
            order: Oblivious::new(&order, context),
            penalties: vec![0; parameters.max_paths.get().into()].into_boxed_slice(),
        }
    }

    fn most_paths(parameters: &BitmapParameters) -> u32 {
        parameters.max_paths.get().into()
    }
}

impl Bitmap {
    /// True if `path` is one that this selector chooses from.
    pub(super) fn knows(&self, path: PathId) -> bool {
        usize::from(path) < self.penalties.len()
    }
}

impl PathSelector for Bitmap {
    fn on_feedback(&mut self, feedback: &PathFeedback) {
        let Some(penalty) = self.penalties.get_mut(usize::from(feedback.path)) else {
            return;
        };
        let more = match feedback.verdict {
            PathVerdict::Good => 0,
            PathVerdict::Marked => MARK,
            PathVerdict::Nack { .. }
            | PathVerdict::Trimmed {
                last_hop: false, ..
            } => NACK,
            // The last hop is the same on all paths.
            PathVerdict::Trimmed { marked, .. } => MARK * u8::from(marked),
        };
        *penalty = (*penalty + more).min(MOST);
    }

    fn on_path_timeout(&mut self, path: PathId) {
        if let Some(penalty) = self.penalties.get_mut(usize::from(path)) {
            *penalty = (*penalty + TIMEOUT).min(MOST);
        }
    }

    fn choose(&mut self, _: &SendState) -> PathId {
        let mut path = self.order.next_path();
        let mut is_forgiven = false;
        // The search ends where it has seen as many paths as there are and one more.
        for _ in 0..self.penalties.len() {
            let penalty = &mut self.penalties[usize::from(path)];
            if *penalty == 0 {
                break;
            }
            if !is_forgiven {
                *penalty -= 1;
                is_forgiven = true;
            }
            path = self.order.next_path();
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{answer, context, facts, state};
    use super::*;

    fn bitmap(max_paths: u16, flow: u64) -> Bitmap {
        let max_paths = NonZero::new(max_paths).unwrap();
        Bitmap::new(&BitmapParameters { max_paths }, context(&facts(), flow))
    }

    fn choices(selector: &mut Bitmap, count: usize) -> Vec<PathId> {
        let choose = || selector.choose(&state(1.0));
        std::iter::repeat_with(choose).take(count).collect()
    }

    /// A flow with four paths whose order stays as it is: the XOR of each round is 0.
    fn in_order() -> Bitmap {
        let plain = |flow: &Bitmap| choices(&mut flow.clone(), 12) == [0, 1, 2, 3].repeat(3);
        let mut flows = (0..).map(|flow| bitmap(4, flow));
        flows.find(plain).unwrap()
    }

    /// Specification, section 11: 4 paths, XOR 0, score\[1\] = 2.
    #[test]
    fn a_path_is_skipped_once_for_each_point() {
        let mut selector = in_order();
        for _ in 0..2 {
            selector.on_feedback(&answer(1, PathVerdict::Marked));
        }
        assert_eq!(choices(&mut selector, 8), [0, 2, 3, 0, 2, 3, 0, 1]);
    }

    #[test]
    fn a_path_without_an_answer_is_left_out_for_fifteen_sweeps() {
        let mut selector = in_order();
        selector.on_path_timeout(1);
        // A path that the selector does not have changes nothing.
        selector.on_path_timeout(4);
        // The order of the others is a fresh one now and then.
        let left_out = choices(&mut selector, 45);
        assert!(!left_out.contains(&1), "{left_out:?}");
        assert!(choices(&mut selector, 4).contains(&1));
    }

    /// Section 4: a mark counts 1 and a NACK 4, at most 15; `Good` takes nothing back.
    #[test]
    fn penalties_add_up_to_fifteen() {
        let mut selector = in_order();
        let nack = PathVerdict::Nack { marked: true };
        let mut after = |verdict| {
            selector.on_feedback(&answer(2, verdict));
            selector.penalties[2]
        };
        assert_eq!(after(PathVerdict::Marked), 1);
        assert_eq!(after(nack), 5);
        assert_eq!(after(PathVerdict::Good), 5);
        assert_eq!([nack; 3].map(&mut after), [9, 13, 15]);
        assert_eq!(after(PathVerdict::Marked), 15);
    }

    /// Section 4: the search stops after paths + 1 steps, and only the first path that is skipped is forgiven.
    #[test]
    fn without_a_free_path_the_search_ends_after_a_sweep() {
        let mut selector = in_order();
        for path in 0..4 {
            for _ in 0..3 {
                selector.on_feedback(&answer(path, PathVerdict::Marked));
            }
        }
        // 0, 1, 2, 3 and 0 again.
        assert_eq!(choices(&mut selector, 1), [0]);
        assert_eq!(*selector.penalties, [2, 3, 3, 3]);
    }

    #[test]
    fn paths_that_were_never_sent_are_ignored() {
        let mut selector = bitmap(3, 0);
        selector.on_feedback(&answer(3, PathVerdict::Marked));
        assert_eq!(*selector.penalties, [0, 0, 0]);
    }
}

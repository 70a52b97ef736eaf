//! A path selector of your own in the whole program:
//! `cargo run --release -p own-spray -- compare quickstart:transport.spray=adaptive :transport.spray=two-choices`.
//!
//! Each packet carries a path number, which the switches hash onto a route. This selector draws two paths at random and takes
//! the one that was marked less lately; a path that has just proved free is used again. Copy this folder and change the rules.

use clearway::lab::paths::{
    PathFeedback, PathId, PathSelector, SelectorContext, SelectorDefinition, SendState,
};
use clearway::lab::units::{RandomStream, parameters};
use clearway::{Laboratory, main_with};
use std::process::ExitCode;

parameters! {
    /// Settings of [`TwoChoices`]. Each becomes a key of the scenario's `[transport]` section, with this text as its explanation:
    /// meaning, name, type, default, key, and where the default comes from.
    pub struct TwoChoicesParameters {
        /// Number of paths, at least 1.
        pub paths: u16 = 64, "paths", "example";
        /// Use the path of the last unmarked acknowledgement for the next packet.
        pub remember: bool = true, "remember", "example";
    }
}

/// The better of two random paths. One of these exists for each flow.
struct TwoChoices {
    /// Marks seen lately on each path: grows with each mark, halves with each acknowledgement without one.
    marks: Vec<u8>,
    remember: bool,
    /// The path of the last unmarked acknowledgement, until a packet takes it.
    free: Option<PathId>,
    /// The flow's own random numbers: the same in every run with the same seed, whatever other flows do.
    random: RandomStream,
}

impl SelectorDefinition for TwoChoices {
    const NAME: &'static str = "two-choices";
    const SUMMARY: &'static str = "the better of two random paths";
    type Parameters = TwoChoicesParameters;

    fn new(parameters: &TwoChoicesParameters, context: SelectorContext<'_>) -> Self {
        Self {
            marks: vec![0; usize::from(parameters.paths.max(1))],
            remember: parameters.remember,
            free: None,
            random: context.random,
        }
    }
}

impl TwoChoices {
    fn better_of_two(&mut self) -> PathId {
        let paths = self.marks.len() as u32;
        let (a, b) = (self.random.below(paths), self.random.below(paths));
        let better = if self.marks[a as usize] <= self.marks[b as usize] {
            a
        } else {
            b
        };
        better as PathId
    }
}

impl PathSelector for TwoChoices {
    fn on_feedback(&mut self, feedback: &PathFeedback) {
        // The number comes from the network: it may be one that was never sent.
        let Some(marks) = self.marks.get_mut(usize::from(feedback.path)) else {
            return;
        };
        if feedback.verdict.is_marked() {
            *marks = marks.saturating_add(1);
        } else {
            *marks /= 2;
            self.free = self.remember.then_some(feedback.path);
        }
    }

    fn choose(&mut self, _: &SendState) -> PathId {
        match self.free.take() {
            Some(path) => path,
            None => self.better_of_two(),
        }
    }

    fn choose_for_probe(&mut self, _: &SendState) -> PathId {
        self.better_of_two()
    }
}

fn main() -> ExitCode {
    main_with(Laboratory::new().with_selector::<TwoChoices>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flow_completes() {
        let laboratory = Laboratory::new().with_selector::<TwoChoices>();
        let choice = "transport.spray=two-choices".to_owned();
        let scenario = laboratory.load("quickstart", &[choice]).unwrap();
        let finished = laboratory.run(&scenario).unwrap();
        assert_eq!(finished.flows.len(), 128);
        let slowest = finished.longest_completion().expect("all flows are done");
        assert!(slowest.as_us() < 200.0, "{slowest}");
    }
}

//! Random feedback: a flow that sends little ignores some congestion feedback (Snyder §3.3.4).
//!
//! Feedback that would lower the reference takes effect with a probability of the reference over its largest value. Feedback that
//! all flows get alike thus slows down those most that send most, as random marking does.

use clearway_units::{Purpose, RandomStream};

clearway_units::parameters! {
    /// Settings of [`RandomFeedback`].
    pub struct RandomFeedbackParameters {
        /// React to congestion only with the probability present window / initial window.
        pub random_feedback: bool = false, "random-feedback", "Snyder §3.3.4: a variant, to compare with";
    }
}

/// Random feedback of one flow.
#[derive(Debug, Clone)]
pub struct RandomFeedback {
    random: RandomStream,
    drawn: bool,
}

impl RandomFeedback {
    /// For a new flow. Until it [has](Self::take_random) the flow's own numbers, all flows draw the same.
    pub fn new(parameters: &RandomFeedbackParameters) -> Self {
        Self {
            random: RandomStream::new(0, Purpose::Controller, 0),
            drawn: parameters.random_feedback,
        }
    }

    /// The flow's own numbers.
    pub fn take_random(&mut self, random: RandomStream) {
        self.random = random;
    }

    /// True if the flow is to react to congestion; with random feedback that has the probability `share`, its window over the largest.
    #[inline]
    pub fn reacts(&mut self, share: f64) -> bool {
        !self.drawn || self.random.chance(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_the_probability() {
        let mut feedback = RandomFeedback::new(&RandomFeedbackParameters {
            random_feedback: true,
        });
        feedback.take_random(RandomStream::new(2, Purpose::Test, 0));
        let mut reactions = |share| (0..10_000).filter(|_| feedback.reacts(share)).count();
        assert_eq!(
            (reactions(0.0), reactions(1.0), reactions(1.5)),
            (0, 10_000, 10_000)
        );
        assert!(reactions(0.25).abs_diff(2500) < 220);
    }

    #[test]
    fn without_random_feedback_every_flow_reacts() {
        let mut feedback = RandomFeedback::new(&Default::default());
        assert!((0..100).all(|_| feedback.reacts(0.0)));
    }
}

//! Random feedback: a flow that sends little ignores some bad news (Snyder §3.3.4).
//!
//! News that would lower the reference counts with the probability that the reference has of its largest value. What every flow
//! hears alike thus slows down those most that send most, as random marking does.

use clearway_units::{Purpose, RandomStream};

clearway_units::parameters! {
    /// Settings of [`Lots`].
    pub struct LotsParameters {
        /// Heed congestion only with a probability of present window over initial window.
        pub random_feedback: bool = false, "random-feedback", "Snyder §3.3.4: a variant, to compare with";
    }
}

/// Draws the lots of one flow.
#[derive(Debug, Clone)]
pub struct Lots {
    random: RandomStream,
    drawn: bool,
}

impl Lots {
    /// For a new flow. Until it [has](Self::take_random) the flow's own numbers, all flows draw the same.
    pub fn new(parameters: &LotsParameters) -> Self {
        Self {
            random: RandomStream::new(0, Purpose::Controller, 0),
            drawn: parameters.random_feedback,
        }
    }

    /// The flow's own numbers.
    pub fn take_random(&mut self, random: RandomStream) {
        self.random = random;
    }

    /// True if the flow is to heed news of congestion, where its window is `share` of the largest.
    #[inline]
    pub fn heeds(&mut self, share: f64) -> bool {
        !self.drawn || self.random.chance(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_the_probability() {
        let mut lots = Lots::new(&LotsParameters {
            random_feedback: true,
        });
        lots.take_random(RandomStream::new(2, Purpose::Test, 0));
        let mut heeded = |share| (0..10_000).filter(|_| lots.heeds(share)).count();
        assert_eq!((heeded(0.0), heeded(1.0), heeded(1.5)), (0, 10_000, 10_000));
        assert!(heeded(0.25).abs_diff(2500) < 220);
    }

    #[test]
    fn without_lots_all_is_heeded() {
        let mut lots = Lots::new(&Default::default());
        assert!((0..100).all(|_| lots.heeds(0.0)));
    }
}

//! Sampling Frequency (SF, Snyder §4.1.2), and the clock by which a reference rate or window may change: once per round trip without SF.
//!
//! HPCC keeps a *reference*: each acknowledgement gives a candidate that is computed from the reference and applies at once, but
//! replaces the reference only now and then, so that one event is not answered many times. Usually that is once per round trip.
//! With Sampling Frequency a reference may *fall* each time that so many acknowledgements have come: a flow that has more
//! bandwidth gets more of them and slows down more often, which is fair. Increases stay once per round trip.
//!
//! # Decisions
//! * A change counts as a fall if the candidate is below the reference. The acknowledgements since the last change of the
//!   reference in either direction are counted; a fall does not move the round trip by which increases go.
//! * The first round trip starts with the first acknowledgement. Within it the reference may already fall.

use super::AckSample;
use super::random_feedback::RandomFeedback;
use super::round_trip::RoundTrip;
use super::variable_increase::VariableIncrease;

clearway_units::parameters! {
    /// Settings of [`ReferenceClock`].
    pub struct SamplingParameters {
        /// Acknowledgements after which the reference may fall again (Sampling Frequency); `"auto"` is once per round trip.
        pub sampling_acks: Option<u32> = None, "sampling-acks", "the controller's own paper reacts once per round trip; 30 in Snyder Table 4.1";
    }
}

/// Decides with which acknowledgement a reference may change.
#[derive(Debug, Clone)]
pub struct ReferenceClock {
    /// Acknowledgements since the last change.
    acks: u32,
    /// Acknowledgements between two falls.
    period: Option<u32>,
    round_trip: RoundTrip,
}

impl ReferenceClock {
    /// Creates a clock for a new flow.
    pub fn new(parameters: &SamplingParameters) -> Self {
        Self {
            acks: 0,
            period: parameters.sampling_acks,
            round_trip: RoundTrip::default(),
        }
    }

    /// Takes an acknowledgement that says nothing of congestion. The first of all still starts the first round trip.
    #[inline]
    pub fn skip(&mut self, sample: &AckSample<'_>) {
        let _ = self.round_trip.is_over(sample);
    }

    /// Counts an acknowledgement. True if the reference may now change in the direction that the acknowledgement asks for; that
    /// chance is then used up.
    #[inline]
    pub fn on_ack(&mut self, sample: &AckSample<'_>, falling: bool) -> bool {
        self.acks = self.acks.saturating_add(1);
        let round_trip_over = self.round_trip.is_over(sample);
        let due = match self.period {
            Some(period) if falling => self.acks >= period,
            _ => round_trip_over,
        };
        if due {
            self.acks = 0;
            if !falling || self.period.is_none() {
                self.round_trip.restart(sample);
            }
        }
        due
    }
}

/// A reference with everything that decides about its changes.
#[derive(Debug, Clone)]
pub(super) struct Reference {
    pub(super) value: f64,
    /// Reference from which on random feedback always reacts.
    full: f64,
    clock: ReferenceClock,
    random_feedback: RandomFeedback,
    increase: Option<Box<VariableIncrease>>,
}

impl Reference {
    pub(super) fn new(
        value: f64,
        full: f64,
        clock: ReferenceClock,
        random_feedback: RandomFeedback,
        increase: Option<VariableIncrease>,
    ) -> Self {
        Self {
            value,
            full,
            clock,
            random_feedback,
            increase: increase.map(Box::new),
        }
    }

    pub(super) fn take_random(&mut self, random: clearway_units::RandomStream) {
        self.random_feedback.take_random(random);
    }

    /// See [`ReferenceClock::skip`].
    #[inline]
    pub(super) fn skip(&mut self, sample: &AckSample<'_>) {
        self.clock.skip(sample);
        if let Some(increase) = &mut self.increase {
            increase.on_ack(sample);
        }
    }

    /// The factor of the additive increase.
    #[inline]
    pub(super) fn factor(&self) -> f64 {
        self.increase.as_ref().map_or(1.0, |vai| vai.factor())
    }

    /// True if the candidate has become the reference. `congestion` is in the units of the variable increase.
    #[inline]
    pub(super) fn propose(
        &mut self,
        sample: &AckSample<'_>,
        candidate: f64,
        congestion: f64,
        congested: bool,
    ) -> bool {
        let due = self.clock.on_ack(sample, candidate < self.value);
        // Where random feedback ignores the congestion, the chance to change is used up all the same.
        let taken = due && (!congested || self.random_feedback.reacts(self.value / self.full));
        if taken {
            self.value = candidate;
        }
        if let Some(increase) = &mut self.increase {
            increase.observe(congestion, congested);
            if taken {
                increase.spend();
            }
            increase.on_ack(sample);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::super::random_feedback::RandomFeedbackParameters;
    use super::*;
    use crate::congestion::tests::ack;
    use clearway_units::{Purpose, RandomStream};

    fn clock(sampling_acks: Option<u32>) -> ReferenceClock {
        ReferenceClock::new(&SamplingParameters { sampling_acks })
    }

    /// The numbers of the acknowledgements with which the reference may change, with `window` packets in flight.
    fn changes(clock: &mut ReferenceClock, window: u64, acks: u64, falling: bool) -> Vec<u64> {
        (1..=acks)
            .filter(|&n| clock.on_ack(&ack(n, window), falling))
            .collect()
    }

    #[test]
    fn usually_once_per_round_trip() {
        for falling in [true, false] {
            // The first acknowledgement starts the count; 1 + 10 packets had then been sent.
            assert_eq!(
                changes(&mut clock(None), 10, 40, falling),
                [12, 23, 34],
                "{falling}"
            );
        }
    }

    #[test]
    fn sampled_falls_come_after_so_many_acknowledgements_whatever_the_window() {
        for window in [10, 1000] {
            assert_eq!(
                changes(&mut clock(Some(30)), window, 100, true),
                [30, 60, 90]
            );
        }
    }

    #[test]
    fn sampling_leaves_increases_once_per_round_trip() {
        assert_eq!(
            changes(&mut clock(Some(30)), 10, 40, false),
            changes(&mut clock(None), 10, 40, false)
        );
    }

    /// Two flows whose acknowledgements come at rates of two to one: the first slows down twice as often.
    #[test]
    fn twice_the_acknowledgements_give_twice_the_falls() {
        let falls = |acks| changes(&mut clock(Some(30)), 100, acks, true).len();
        assert_eq!((falls(600), falls(1200)), (20, 40));
        // Once per round trip the number of round trips decides, which have as many acknowledgements as the window packets.
        let falls = |window| changes(&mut clock(None), window, 12 * (window + 1), true).len();
        assert_eq!((falls(50), falls(100)), (11, 11));
    }

    #[test]
    fn a_fall_starts_the_count_anew_and_leaves_the_round_trip() {
        let mut clock = clock(Some(3));
        let mut due = |n, falling| clock.on_ack(&ack(n, 10), falling);
        assert!(!due(1, true) && !due(2, true) && due(3, true));
        assert!(!due(4, true) && !due(5, false));
        assert!((6..=11).all(|n| !due(n, false)));
        assert!(due(12, false), "a round trip after the first one");
        assert!(
            !due(13, true) && !due(14, true),
            "an increase counts as well"
        );
        assert!(due(15, true));
    }

    #[test]
    fn a_lost_lot_costs_the_chance() {
        let mut reference = Reference::new(
            50.0,
            100.0,
            clock(Some(1)),
            RandomFeedback::new(&RandomFeedbackParameters {
                random_feedback: true,
            }),
            None,
        );
        reference.take_random(RandomStream::new(1, Purpose::Test, 5));
        // The reference is put back after each change: the flow reacts to half of them.
        let mut taken = 0;
        for n in 1..=10_000 {
            taken += u32::from(reference.propose(&ack(n, 10), 49.0, 0.0, true));
            reference.value = 50.0;
        }
        assert!(taken.abs_diff(5000) < 250, "{taken}");
        // Without congestion nothing is drawn at random.
        for n in 1..=100 {
            let lower = reference.value - 0.1;
            assert!(reference.propose(&ack(n, 10), lower, 0.0, false));
        }
    }
}

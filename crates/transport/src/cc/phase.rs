//! Adaptive unfairness (Rajasekaran et al., HotNets '22, §4): a flow that is further in its communication phase takes more.
//!
//! Training jobs compute and communicate in turn. Where two of them share a link, a little unfairness lets one finish its
//! communication first, so that next time it begins earlier, until the phases no longer meet. Here the additive increase is multiplied by
//! one plus the share of the phase that is done, so that no job has to be chosen as the aggressive one, and jobs that are not
//! compatible take turns in being it.
//!
//! The paper does so with DCQCN's `R_AI`. With other controllers it is an experiment of ours.
//!
//! # Decisions
//! * Done is what is acknowledged: it is known exactly, retransmissions do not count, and at the end of a phase, when everything is
//!   acknowledged, the factor is 1 again. The paper says "data sent", its "amount of progress in the communication phase".
//! * A phase is what the flow carries in one iteration of its job; a message on its own is one phase. With several queue pairs each has
//!   its share of it.
//! * Where the length of a phase is not known the factor stays 1.

use super::AckSample;
use clearway_units::Bytes;

clearway_units::parameters! {
    /// Settings of [`PhaseIncrease`].
    pub struct PhaseIncreaseParameters {
        /// Growth of the additive increase from the beginning of a communication phase to its end, in multiples of its step: 1 is
        /// adaptive unfairness, 0 leaves it alone.
        pub phase_increase: f64 = 0.0, "phase-increase", "off; HotNets '22 §4 has R_AI x (1 + sent / communication phase)";
    }
}

/// Adaptive unfairness of one flow: the present factor of its additive increase.
#[derive(Debug, Clone)]
pub struct PhaseIncrease {
    gain: f64,
    /// Bytes of a phase; zero if unknown.
    phase: u64,
    /// One over `phase`.
    inverse: f64,
    factor: f64,
}

impl PhaseIncrease {
    /// For a new flow, if the parameters ask for it.
    pub fn new(parameters: &PhaseIncreaseParameters) -> Option<Self> {
        (parameters.phase_increase > 0.0).then_some(Self {
            gain: parameters.phase_increase,
            phase: 0,
            inverse: 0.0,
            factor: 1.0,
        })
    }

    /// The flow sends in phases of so many bytes.
    pub fn set_phase(&mut self, phase: Bytes) {
        self.phase = phase.as_u64();
        self.inverse = 1.0 / phase.as_f64().max(1.0);
    }

    /// The factor of the additive increase: 1 at the beginning of a phase, and `phase-increase` more towards its end.
    #[inline]
    pub fn factor(&self) -> f64 {
        self.factor
    }

    /// An acknowledgement has come.
    #[inline]
    pub fn on_ack(&mut self, sample: &AckSample<'_>) {
        if self.phase > 0 {
            let done = sample.delivered.as_u64() % self.phase;
            self.factor = 1.0 + self.gain * (done as f64 * self.inverse);
        }
    }
}

/// Steps of a controller that grow with the phase, with their values at its beginning.
#[derive(Debug, Clone)]
pub(super) struct Phased<T> {
    increase: PhaseIncrease,
    usual: T,
}

impl<T> Phased<T> {
    pub(super) fn new(parameters: &PhaseIncreaseParameters, usual: T) -> Option<Box<Self>> {
        let increase = PhaseIncrease::new(parameters)?;
        Some(Box::new(Self { increase, usual }))
    }

    pub(super) fn set_phase(&mut self, phase: Bytes) {
        self.increase.set_phase(phase);
    }

    /// Takes an acknowledgement, and returns the steps at the beginning of a phase and the present factor.
    pub(super) fn on_ack(&mut self, sample: &AckSample<'_>) -> (&T, f64) {
        self.increase.on_ack(sample);
        (&self.usual, self.increase.factor())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::tests::ack;

    fn increase(gain: f64) -> PhaseIncrease {
        let parameters = PhaseIncreaseParameters {
            phase_increase: gain,
        };
        PhaseIncrease::new(&parameters).unwrap()
    }

    /// With so much acknowledged since the beginning.
    fn delivered(increase: &mut PhaseIncrease, bytes: u64) -> f64 {
        let sample = AckSample {
            delivered: Bytes::new(bytes),
            ..ack(1, 10)
        };
        increase.on_ack(&sample);
        increase.factor()
    }

    #[test]
    fn it_is_there_only_if_asked_for() {
        assert!(PhaseIncrease::new(&PhaseIncreaseParameters::default()).is_none());
    }

    #[test]
    fn the_factor_grows_from_one_to_two_in_each_phase() {
        let mut increase = increase(1.0);
        increase.set_phase(Bytes::new(1000));
        assert_eq!(increase.factor(), 1.0);
        for (bytes, factor) in [(0, 1.0), (250, 1.25), (500, 1.5), (999, 1.999)] {
            for phases in 0..3 {
                let now = delivered(&mut increase, phases * 1000 + bytes);
                assert!((now - factor).abs() < 1e-12, "{bytes}: {now}");
                assert!((1.0..2.0).contains(&now));
            }
        }
        assert_eq!(delivered(&mut increase, 4000), 1.0, "a phase begins anew");
    }

    #[test]
    fn the_gain_is_a_setting() {
        let mut increase = increase(3.0);
        increase.set_phase(Bytes::new(1000));
        assert_eq!(delivered(&mut increase, 1500), 2.5);
    }

    #[test]
    fn without_a_phase_nothing_changes() {
        let mut increase = increase(1.0);
        assert_eq!(delivered(&mut increase, 12_345), 1.0);
        increase.set_phase(Bytes::ZERO);
        assert_eq!(delivered(&mut increase, 12_345), 1.0);
    }
}

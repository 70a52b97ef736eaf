//! Adaptive unfairness (Rajasekaran et al., HotNets '22, §4) and MLTCP (HotNets '24): a flow that is further in its communication phase
//! takes more.
//!
//! Training jobs compute and communicate in turn. Where two of them share a link, a little unfairness lets one finish its
//! communication first, so that next time it begins earlier, until the phases no longer meet. Here the additive increase is multiplied by
//! `F(r) = S r + I`, where `r` is the share of the phase that is done, so that no job has to be chosen as the aggressive one, and jobs that
//! are not compatible take turns in being it. `S` is `phase-increase` and `I` is `phase-base`.
//!
//! Adaptive unfairness has `S = 1` and `I = 1`, for DCQCN's `R_AI`. MLTCP has `S = 1.75` and `I = 0.25`, for the increase of TCP Reno after
//! slow start: a flow at the beginning of its phase takes less than an ordinary one, and at its end twice as much. With other controllers
//! both are experiments of ours.
//!
//! # Two identical jobs
//! While both send, their shares are in the ratio of their factors, which then does not change. A job that leads by `d`, where each needs
//! `V` alone, leads by `d + S d (V - d) / (V I + S d)` in the next iteration: 0 is unstable, and `V`, where the phases no longer meet, is
//! stable. That holds where rates follow the factors, as with losses or marks that all flows see alike.
//!
//! # Decisions
//! * The acknowledged bytes count as done: they are known exactly, retransmissions do not count, and at the end of a phase, when everything
//!   is acknowledged, the factor is 1 again. The paper says "data sent", its "amount of progress in the communication phase".
//! * A phase is the payload of the flow in one iteration of its job; a message on its own is one phase. With several queue pairs each has
//!   its share of it. `r` is therefore below 1, where MLTCP has to cap it.
//! * The border of phases is known, where MLTCP takes a gap between acknowledgements for it.
//! * If the length of a phase is not known the factor stays 1: a flow that does not belong to a training job is an ordinary one.

use super::AckSample;
use clearway_units::Bytes;

clearway_units::parameters! {
    /// Settings of [`PhaseIncrease`].
    pub struct PhaseIncreaseParameters {
        /// Growth of the additive increase from the beginning of a communication phase to its end, in multiples of its step (`S`): 1 is
        /// adaptive unfairness, 0 is no growth.
        pub phase_increase: f64 = 0.0, "phase-increase", "off; HotNets '22 §4 has R_AI x (1 + sent / communication phase), MLTCP 1.75";
        /// Additive increase at the beginning of a communication phase, in multiples of its step (`I`).
        pub phase_base: f64 = 1.0, "phase-base", "HotNets '22 §4; MLTCP has 0.25";
    }
}

impl PhaseIncreaseParameters {
    /// True if the additive increase depends on phases at all.
    fn is_on(&self) -> bool {
        self.phase_increase > 0.0 || self.phase_base != 1.0
    }
}

/// Adaptive unfairness of one flow: the present factor of its additive increase.
#[derive(Debug, Clone)]
pub struct PhaseIncrease {
    /// `S` and `I`.
    gain: f64,
    base: f64,
    /// Bytes of a phase; zero if unknown.
    phase: u64,
    /// Bytes of the present phase that are acknowledged.
    done: u64,
    /// One over `phase`.
    inverse: f64,
    factor: f64,
}

impl PhaseIncrease {
    /// For a new flow, if the parameters ask for it.
    pub fn new(parameters: &PhaseIncreaseParameters) -> Option<Self> {
        parameters.is_on().then_some(Self {
            gain: parameters.phase_increase,
            base: parameters.phase_base,
            phase: 0,
            done: 0,
            inverse: 0.0,
            factor: 1.0,
        })
    }

    /// The flow sends in phases of so many bytes.
    pub fn set_phase(&mut self, phase: Bytes) {
        self.phase = phase.as_u64();
        self.inverse = 1.0 / phase.as_f64().max(1.0);
        if self.phase > 0 {
            self.factor = self.base;
        }
    }

    /// The factor of the additive increase: `phase-base` at the beginning of a phase, and `phase-increase` more towards its end.
    #[inline]
    pub fn factor(&self) -> f64 {
        self.factor
    }

    /// True if phases are known and all that was sent in the last one is acknowledged, and before the first one.
    pub fn is_between_phases(&self) -> bool {
        self.phase > 0 && self.done == 0
    }

    /// An acknowledgement has come.
    #[inline]
    pub fn on_ack(&mut self, sample: &AckSample<'_>) {
        if self.phase > 0 {
            self.done = sample.delivered.as_u64() % self.phase;
            self.factor = self.base + self.gain * (self.done as f64 * self.inverse);
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

    pub(super) fn is_between_phases(&self) -> bool {
        self.increase.is_between_phases()
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
    use crate::congestion::tests::ack;

    fn increase(gain: f64, base: f64) -> PhaseIncrease {
        let parameters = PhaseIncreaseParameters {
            phase_increase: gain,
            phase_base: base,
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
        assert_eq!(increase(0.0, 0.25).factor(), 1.0, "no phase is known");
    }

    #[test]
    fn the_factor_grows_from_one_to_two_in_each_phase() {
        let mut increase = increase(1.0, 1.0);
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
        let mut increase = increase(3.0, 1.0);
        increase.set_phase(Bytes::new(1000));
        assert_eq!(delivered(&mut increase, 1500), 2.5);
    }

    /// MLTCP's aggressiveness goes from a quarter to two.
    #[test]
    fn the_base_is_a_setting() {
        let mut increase = increase(1.75, 0.25);
        increase.set_phase(Bytes::new(1 << 20));
        assert_eq!(increase.factor(), 0.25);
        assert_eq!(delivered(&mut increase, 1 << 19), 1.125);
        assert_eq!(delivered(&mut increase, 3 << 19), 1.125);
        let last = delivered(&mut increase, (1 << 20) - 1);
        assert!((1.99..2.0).contains(&last), "{last}");
    }

    #[test]
    fn without_a_phase_nothing_changes() {
        let mut increase = increase(1.0, 0.25);
        assert_eq!(delivered(&mut increase, 12_345), 1.0);
        increase.set_phase(Bytes::ZERO);
        assert_eq!(delivered(&mut increase, 12_345), 1.0);
    }

    /// Payload of a phase, and its time alone.
    const PHASE: f64 = 1e9;
    /// Parts of a phase that are sent at once: the step of integration.
    const STEPS: f64 = 20_000.0;

    /// Two identical jobs that compute for as long as they communicate and share a link of one byte per unit of time in the ratio of their
    /// factors. Returns the lead of the first in each iteration, in phases.
    fn leads(gain: f64, base: f64, first: f64, iterations: usize) -> Vec<f64> {
        let mut jobs = [0.0, first * PHASE].map(|start| (start, 0.0, increase(gain, base)));
        for (_, _, increase) in &mut jobs {
            increase.set_phase(Bytes::new(PHASE as u64));
        }
        let mut leads = vec![first];
        for iteration in 0..iterations as u64 {
            let ends = ends_of_phase(&mut jobs, iteration);
            leads.push((ends[1] - ends[0]) / PHASE);
            for ((start, sent, _), end) in jobs.iter_mut().zip(ends) {
                (*start, *sent) = (end + PHASE, 0.0);
            }
        }
        leads
    }

    /// Ends of the communication of two jobs, from their starts, the bytes that they have sent in this phase and their factors.
    fn ends_of_phase(jobs: &mut [(f64, f64, PhaseIncrease); 2], iteration: u64) -> [f64; 2] {
        let mut ends = [None; 2];
        let mut now = jobs[0].0.min(jobs[1].0);
        loop {
            let factors = [0, 1].map(|n| {
                let (start, sent, increase) = &mut jobs[n];
                let sends = *start <= now && ends[n].is_none();
                let done = iteration * PHASE as u64 + *sent as u64;
                if sends {
                    delivered(increase, done)
                } else {
                    0.0
                }
            });
            let all = factors[0] + factors[1];
            // The step ends where a job starts or ends.
            let mut step = PHASE / STEPS;
            for (n, (start, sent, _)) in jobs.iter().enumerate() {
                if *start > now {
                    step = step.min(start - now);
                } else if factors[n] > 0.0 {
                    step = step.min((PHASE - sent) * all / factors[n]);
                }
            }
            now += step;
            for (n, (_, sent, _)) in jobs.iter_mut().enumerate() {
                *sent += if all > 0.0 {
                    step * factors[n] / all
                } else {
                    0.0
                };
                if PHASE - *sent < 0.5 && ends[n].is_none() {
                    ends[n] = Some(now);
                }
            }
            if let [Some(first), Some(second)] = ends {
                return [first, second];
            }
        }
    }

    /// Lead in the next iteration in closed form, in phases.
    fn next_lead(gain: f64, base: f64, lead: f64) -> f64 {
        lead + gain * lead * (1.0 - lead) / (base + gain * lead)
    }

    #[test]
    fn a_lead_of_a_twentieth_parts_two_identical_jobs_in_five_iterations() {
        let leads = leads(1.75, 0.25, 0.05, 5);
        let expected = [0.05, 0.296, 0.771, 0.964, 0.995, 0.999];
        assert_eq!(leads.len(), expected.len());
        for (lead, expected) in leads.iter().zip(expected) {
            assert!((lead - expected).abs() < 7e-4, "{leads:?}");
        }
    }

    #[test]
    fn leads_follow_the_closed_form() {
        for (gain, base) in [(1.75, 0.25), (1.0, 1.0), (4.0, 0.25), (0.5, 2.0)] {
            for first in [0.01, 0.3, 0.7] {
                let leads = leads(gain, base, first, 4);
                for pair in leads.windows(2) {
                    let next = next_lead(gain, base, pair[0]);
                    assert!((pair[1] - next).abs() < 2e-4, "{gain} {base}: {leads:?}");
                }
            }
        }
    }

    /// Fixed points: jobs in step stay so for want of a lead, and phases that have parted do not meet again.
    #[test]
    fn jobs_stay_in_step_or_apart() {
        for lead in [0.0, 1.0] {
            let leads = leads(1.75, 0.25, lead, 3);
            assert!(
                leads.iter().all(|now| (now - lead).abs() < 1e-6),
                "{leads:?}"
            );
        }
    }
}

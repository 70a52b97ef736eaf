//! HPCC (SIGCOMM 2019): rate and window follow the utilisation of the links on the path, as switches report it.
//!
//! Each acknowledgement brings a [`Hop`] of every switch port on the way. From two of them follow the rate at which the port
//! sends and the queue behind it, together the bytes in flight on that link as a multiple of its bandwidth-delay product (`u`). The
//! fullest link counts, averaged over a round trip (`U`). A reference rate is divided by `U / eta`, or, while that is below 1 and has
//! not been for long, only raised by a step. Every acknowledgement applies the result at once; once per round trip it becomes the
//! reference.
//!
//! The window is the bandwidth-delay product at the present rate, which also paces.
//!
//! # Parts
//! [Variable additive increase](super::VariableIncrease) with the queue in bytes as its measure, [Sampling
//! Frequency](super::ReferenceClock) and [random feedback](super::RandomFeedback) can each be switched on (Snyder §3.3.4, §4.2).
//!
//! # Decisions
//! * The form follows the authors' simulator, which Snyder used: the state is a rate, and the window follows from it. The paper's `W_AI` is
//!   here `rate-ai` times the base round trip.
//! * Snyder §4.2.1 says "multiplies by C"; a rate that is to fall when C is above 1 is divided.
//! * The base round trip is the fabric's longest for all flows, as in the simulator: with it all flows of a link judge its queue alike.
//!   `base-rtt = "path"` is each flow's own.
//! * Switches count bytes on the wire, while the window counts payload, as in the simulator: at line rate slightly more is in
//!   flight than the bandwidth-delay product, by the share of headers.
//! * Records of different ports cannot be compared. A hop is left out if its record is not later than the last, if its rate differs, or if
//!   its port would have sent more than twice what the link can carry, which rounded figures do not reach. If the number of hops has
//!   changed, the path has, and the acknowledgement only sets the start of the next difference.
//! * Without a record, on a path without switches, nothing is known to be congested: the rate stays.
//! * The paper leaves two cases open: after a pause the flow goes on with its earlier rate, and losses change nothing.
//! * Telemetry is taken at the dequeue, as in the simulator, not at the end of the transmission: see [`Hop`].
//! * `fast-react = false`: the rate changes only along with the reference, while `U` still averages over all acknowledgements.

use super::base_rtt::BaseRtt;
use super::phase_increase::{PhaseIncreaseParameters, Phased};
use super::random_feedback::{RandomFeedback, RandomFeedbackParameters};
use super::rate::{RateLimits, WindowLimit};
use super::sampling::{Reference, ReferenceClock, SamplingParameters};
use super::variable_increase::{VariableIncrease, VariableIncreaseParameters};
use super::{AckSample, Allowance, CongestionControl, ControllerDefinition, NetworkFacts};
use crate::congestion::telemetry::{Hop, MOST_HOPS};
use clearway_units::{Bytes, RandomStream, Rate};
use rustc_hash::FxHashMap;

/// Steps of additive increase in the line rate, where the step is `"auto"`. The HPCC artifact has 2500 (10 Mb/s for each 25 Gb/s).
const AUTO_STEPS: f64 = 2000.0;

clearway_units::parameters! {
    /// Settings of [`Hpcc`].
    pub struct HpccParameters {
        /// Target utilisation of links (`eta`), above 0.
        pub target_utilisation: f64 = 0.95, "target-utilisation", "HPCC §3.3; Snyder Table 3.1";
        /// Steps of additive increase before a multiplicative one (`maxStage`).
        pub max_stage: u32 = 5, "max-stage", "HPCC §3.3; Snyder Table 3.1";
        /// Rate added with each update (`W_AI` over the base round trip); `"auto"` is a 2000th of the line rate.
        pub rate_ai: Option<Rate> = None, "rate-ai", "Snyder Table 3.1: 50 Mb/s at 100 Gb/s; 1 Gb/s in its HPCC 1Gbps";
        /// Minimum rate.
        pub min_rate: Rate = Rate::from_bps(100_000_000), "min-rate", "HPCC artifact: MIN_RATE 100 Mb/s";
        /// Unloaded round trip (`T`), which also sets the window: `"network"`, the longest in the fabric; `"path"`, the flow's round trip;
        /// or a duration.
        pub base_rtt: BaseRtt = BaseRtt::Network, "base-rtt", "HPCC artifact: GLOBAL_T 1";
        /// Rate and window change with every acknowledgement, not only when the reference changes.
        pub fast_react: bool = true, "fast-react", "HPCC §3.2; HPCC artifact: FAST_REACT 1";
        /// Queue size above which tokens are made (`Token_Thresh`).
        pub token_threshold: Bytes = Bytes::new(50_000), "token-threshold", "Snyder Table 4.1: the least bandwidth-delay product of the network";
        /// Queue size that makes one token (`AI_DIV`).
        pub ai_div: Bytes = Bytes::new(1000), "ai-div", "Snyder Table 4.1";
        with {
            /// Variable additive increase.
            pub increase: VariableIncreaseParameters,
            /// Sampling Frequency: when the reference may change.
            pub sampling: SamplingParameters,
            /// Random feedback.
            pub random_feedback: RandomFeedbackParameters,
            /// Adaptive unfairness.
            pub phase: PhaseIncreaseParameters,
        }
    }
}

/// Utilisation of the fullest link, measured from the hops of one acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Measure {
    /// Bytes in flight on the fullest link over its bandwidth-delay product.
    utilisation: f64,
    /// Time between the two packets that it was measured with, in picoseconds.
    elapsed: f64,
}

/// The records of the last acknowledgement.
#[derive(Debug, Clone, Default)]
struct Path {
    hops: [Option<Hop>; MOST_HOPS],
    count: usize,
}

impl Path {
    /// Compares the hops with those before (HPCC Algorithm 1, `MeasureInflight`) and keeps them. `None` if there is nothing to
    /// compare. `inverse_rtt` is in 1/ps.
    #[inline]
    fn measure(&mut self, hops: &[Hop], inverse_rtt: f64) -> Option<Measure> {
        let same = hops.len().min(MOST_HOPS) == self.count;
        let mut fullest: Option<Measure> = None;
        for (last, hop) in self.hops.iter_mut().zip(hops) {
            if same
                && let Some(last) = last
                && let Some(next) = compare(last, hop, inverse_rtt)
                && fullest.is_none_or(|most| next.utilisation > most.utilisation)
            {
                fullest = Some(next);
            }
            *last = Some(*hop);
        }
        self.count = hops.len().min(MOST_HOPS);
        fullest
    }
}

/// Utilisation of a link between two packets; `None` if their records cannot be compared.
#[inline]
fn compare(last: &Hop, hop: &Hop, inverse_rtt: f64) -> Option<Measure> {
    let elapsed = hop.elapsed_since(last).as_ps() as i64 as f64;
    if elapsed <= 0.0 || hop.rate != last.rate {
        return None;
    }
    // Picoseconds that a byte takes.
    let byte = 8e12 / hop.rate.as_bps() as i64 as f64;
    let busy = f64::from(hop.sent_since(last)) * byte / elapsed;
    if busy > 2.0 {
        return None;
    }
    let queue = f64::from(hop.queue.min(last.queue)) * byte * inverse_rtt;
    Some(Measure {
        utilisation: busy + queue,
        elapsed,
    })
}

/// Records of the senders that a controller governs. Records of different senders must not be compared, as senders may take different
/// paths.
#[derive(Debug, Clone, Default)]
struct Records {
    /// Records of the present sender, and its number.
    path: Path,
    sender: u64,
    /// Records of other senders, with the number of the selection that put them away.
    others: FxHashMap<u64, (u64, Path)>,
    selections: u64,
}

impl Records {
    /// Most further senders whose records are kept.
    const MOST: usize = 4096;

    /// Makes `sender` the present one.
    fn select(&mut self, sender: u64) {
        if sender == self.sender {
            return;
        }
        let kept = self.others.remove(&sender);
        let own = kept.map_or_else(Path::default, |(_, own)| own);
        if self.others.len() == Self::MOST {
            // Selections have different numbers, so the order in the table does not matter.
            let selection = |(_, (selection, _)): &(&u64, &(u64, Path))| *selection;
            let oldest = self.others.iter().min_by_key(selection);
            if let Some(oldest) = oldest.map(|(sender, _)| *sender) {
                self.others.remove(&oldest);
            }
        }
        let before = std::mem::replace(&mut self.path, own);
        self.selections += 1;
        self.others.insert(self.sender, (self.selections, before));
        self.sender = sender;
    }
}

/// HPCC.
#[derive(Debug, Clone)]
pub struct Hpcc {
    limits: RateLimits,
    /// The present rate, in bits per second.
    rate: f64,
    /// `Rc`, in bits per second.
    reference: Reference,
    /// `U`.
    utilisation: f64,
    /// `incStage`.
    stage: u16,
    max_stage: u16,
    records: Box<Records>,
    /// One over the base round trip in picoseconds, and one over `eta`.
    inverse_rtt: f64,
    inverse_target: f64,
    rate_ai: f64,
    phased: Option<Box<Phased<f64>>>,
    fast_react: bool,
}

impl ControllerDefinition for Hpcc {
    const NAME: &'static str = "hpcc";
    const SUMMARY: &'static str =
        "HPCC: a rate and a window from switch telemetry, which keep links just below full";
    type Parameters = HpccParameters;

    fn new(parameters: &HpccParameters, network: &NetworkFacts) -> Self {
        let base_rtt = parameters.base_rtt.resolve(network);
        let seen = NetworkFacts {
            bdp: network.line_rate.bytes_in(base_rtt),
            ..*network
        };
        let limits = RateLimits::new(&seen, parameters.min_rate, WindowLimit::Scaled);
        let increase = VariableIncrease::new(
            &parameters.increase,
            parameters.token_threshold.as_f64(),
            parameters.ai_div.as_f64(),
        );
        let auto = limits.line / AUTO_STEPS;
        let rate_ai = parameters.rate_ai.map_or(auto, |rate| rate.as_bps() as f64);
        Self {
            rate: limits.line,
            reference: Reference::new(
                limits.line,
                limits.line,
                ReferenceClock::new(&parameters.sampling),
                RandomFeedback::new(&parameters.random_feedback),
                increase,
            ),
            limits,
            utilisation: 1.0,
            stage: 0,
            max_stage: parameters.max_stage.min(u16::MAX.into()) as u16,
            records: Box::default(),
            inverse_rtt: 1.0 / base_rtt.as_ps() as f64,
            inverse_target: 1.0 / parameters.target_utilisation.max(1e-3),
            rate_ai,
            phased: Phased::new(&parameters.phase, rate_ai),
            fast_react: parameters.fast_react,
        }
    }
}

impl Hpcc {
    /// The rate that `U` asks for (`C` is `U / eta`), and the stage after it: HPCC Algorithm 1, `ComputeWind`.
    #[inline]
    fn candidate(&self) -> (f64, u16, bool) {
        let excess = self.utilisation * self.inverse_target;
        let step = self.rate_ai * self.reference.factor();
        let (rate, stage) = if excess >= 1.0 || self.stage >= self.max_stage {
            (self.reference.value / excess + step, 0)
        } else {
            (self.reference.value + step, self.stage + 1)
        };
        (self.limits.clamp(rate), stage, excess >= 1.0)
    }
}

impl CongestionControl for Hpcc {
    #[inline(never)]
    fn on_ack(&mut self, sample: &AckSample<'_>) {
        if sample.probe {
            return;
        }
        if let Some(phased) = &mut self.phased {
            let (usual, factor) = phased.on_ack(sample);
            self.rate_ai = usual * factor;
        }
        let Some(measure) = self.records.path.measure(sample.hops, self.inverse_rtt) else {
            self.reference.skip(sample);
            return;
        };
        let weight = (measure.elapsed * self.inverse_rtt).min(1.0);
        self.utilisation += weight * (measure.utilisation - self.utilisation);
        let (candidate, stage, congested) = self.candidate();
        let queue = sample.hops.iter().map(|hop| hop.queue).max().unwrap_or(0);
        let taken = self
            .reference
            .propose(sample, candidate, f64::from(queue), congested);
        if taken {
            self.stage = stage;
        }
        if taken || self.fast_react {
            self.rate = candidate;
        }
    }

    #[inline(never)]
    fn allowance(&self) -> Allowance {
        self.limits.allowance(self.rate)
    }

    fn largest_window(&self) -> f64 {
        self.limits.largest_window()
    }

    fn uses_telemetry(&self) -> bool {
        true
    }

    fn take_phase(&mut self, phase: Bytes) {
        if let Some(phased) = &mut self.phased {
            phased.set_phase(phase);
        }
    }

    fn counts_progress(&self) -> bool {
        self.phased.is_some()
    }

    fn select_sender(&mut self, sender: u64) {
        self.records.select(sender);
    }

    fn take_random(&mut self, random: RandomStream) {
        self.reference.take_random(random);
    }
}

#[cfg(test)]
mod tests;

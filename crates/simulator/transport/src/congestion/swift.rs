//! Swift (SIGCOMM 2020): a window that follows the round-trip time, down to less than one packet.
//!
//! Below a target delay the window grows by a small step per round trip; above it it shrinks with the excess, at most once per
//! round trip. The target has a base, a part for each switch on the path (topology scaling) and a part that small windows have
//! more of (flow scaling), so that they give way less. A window below one packet is kept by pacing: one packet each
//! `round trip / window`.
//!
//! # Parts
//! [Sampling Frequency](super::ReferenceClock) and [variable additive increase](super::VariableIncrease), whose measure is the
//! queueing delay, need a *reference window* as HPCC has a reference rate (Snyder §4.2.2): each acknowledgement computes the window
//! from the reference, and the step is added whether the delay is above the target or not. `reference-window` is that alone.
//! [Random feedback](super::RandomFeedback) works with both forms. Snyder §4.3.2 uses neither part together with flow scaling.
//!
//! # Decisions
//! * Snyder Equation 3.1 lacks a division by the delay: `1 - beta × (delay - target) / delay`, as in Swift. Equation 3.2 is meant
//!   as `max(0, min(a / sqrt(window) + b, fs-range))`.
//! * Snyder's "hop" is a switch: then the target is 2.8 us above the unloaded round trip on both of its fabrics. `hops = "links"`
//!   counts one more.
//! * The delay is the whole round-trip time; there is no delay in hosts. The round trip in "once per round trip" is the last one.
//! * The base round trip gives the first window, the step of additive increase and the delay beyond which queueing counts. It is the flow's
//!   own, since a longer one would hide a queue.
//! * The largest window lets a single flow stand at the largest possible target: it only limits mistakes.
//! * The threshold of the variable increase is above the target without flow scaling, so that it does not move.
//! * Losses cut the window once per round trip as far as one cut may go (Swift §3, Algorithm 1, without its reset after many
//!   timeouts): lossless fabrics have none.

use super::base_rtt::BaseRtt;
use super::phase_increase::{PhaseIncreaseParameters, Phased};
use super::random_feedback::{RandomFeedback, RandomFeedbackParameters};
use super::sampling::{Reference, ReferenceClock, SamplingParameters};
use super::variable_increase::{VariableIncrease, VariableIncreaseParameters};
use super::{
    AckSample, Allowance, CongestionControl, ControllerDefinition, LossSample, NetworkFacts,
};
use clearway_units::{Bytes, RandomStream, Rate, RelativeSize, Span, Time};

clearway_units::choices! {
    /// Hops of a path, as topology scaling counts them.
    pub enum HopCount {
        /// Switches on the path.
        Switches = "switches",
        /// Links on the path: one more.
        Links = "links",
    }
}

/// Steps of additive increase in the line rate, where the step is `"auto"`.
const AUTO_STEPS: f64 = 2000.0;

clearway_units::parameters! {
    /// Settings of [`Swift`].
    pub struct SwiftParameters {
        /// Rate added per round trip, as packets of the window; `"auto"` is a 2000th of the line rate.
        pub rate_ai: Option<Rate> = None, "rate-ai", "Snyder Table 3.1: 50 Mb/s at 100 Gb/s; 1 Gb/s in its Swift 1Gbps";
        /// Gain of multiplicative decrease. A cut removes the share gain × (delay - target) / delay of the window.
        pub beta: f64 = 0.8, "beta", "Snyder Table 3.1; Swift §3.1";
        /// Largest share of the window that one cut removes, at most 1.
        pub max_mdf: f64 = 0.5, "max-mdf", "Snyder Table 3.1; Swift §3.1";
        /// Target delay before scaling. The scaled target must exceed the unloaded round trip.
        pub base_delay: Span = Span::from_us(5), "base-delay", "Snyder Table 3.1";
        /// Target delay for each hop (topology scaling).
        pub hop_delay: Span = Span::from_us(2), "hop-delay", "Snyder Table 3.1";
        /// Hops that topology scaling counts: switches or links on the path.
        pub hops: HopCount = HopCount::Switches, "hops", "decision: the target is then 2.8 us above the round trip on both fabrics of Snyder";
        /// Flow scaling: small windows have a larger target.
        pub flow_scaling: bool = true, "flow-scaling", "Swift §3.2; off with VAI and SF in Snyder §4.3.2";
        /// Largest addition of flow scaling to the target; `"auto"` is five times the base delay.
        pub fs_range: Option<Span> = None, "fs-range", "Snyder Table 3.1: 5 × base delay";
        /// Window in packets above which flow scaling adds nothing.
        pub fs_max_window: f64 = 50.0, "fs-max-window", "Snyder Table 3.1; 100 in its datacenter runs";
        /// Window in packets below which flow scaling adds its whole range, above 0.
        pub fs_min_window: f64 = 0.1, "fs-min-window", "Snyder Table 3.1";
        /// Unloaded round trip: `"network"`, the longest in the fabric; `"path"`, the flow's round trip; or a duration.
        pub base_rtt: BaseRtt = BaseRtt::Path, "base-rtt", "decision: what is not queueing delay";
        /// Smallest window in packets, above 0.
        pub min_window: f64 = 0.01, "min-window", "decision: one packet in a hundred round trips";
        /// Largest window in payload bytes; `"auto"` is the line rate times the largest target.
        pub max_window: Option<RelativeSize> = None, "max-window", "decision: it must not bind at the target";
        /// Window of a new flow in payload bytes; `"auto"` is the line rate times the base round trip.
        pub initial_window: Option<RelativeSize> = None, "initial-window", "Snyder §3.3.4: a start at line rate";
        /// Reference window: the window follows from a reference that changes once per round trip, always with additive increase.
        pub reference_window: bool = false, "reference-window", "Snyder §4.2.2; implied by variable-increase and by sampling-acks";
        /// Delay beyond the target above which tokens are made (`Token_Thresh`).
        pub token_threshold: Span = Span::from_us(4), "token-threshold", "Snyder Table 4.1: a queue of 50 KB at 100 Gb/s";
        /// Queueing delay that makes one token (`AI_DIV`).
        pub ai_div: Span = Span::from_ns(30), "ai-div", "Snyder Table 4.1";
        with {
            /// Variable additive increase.
            pub increase: VariableIncreaseParameters,
            /// Sampling Frequency: when the reference window may change.
            pub sampling: SamplingParameters,
            /// Random feedback.
            pub random_feedback: RandomFeedbackParameters,
            /// Adaptive unfairness.
            pub phase: PhaseIncreaseParameters,
        }
    }
}

/// The target delay (Swift §3.1 and §3.2; Snyder Equations 3.2 and 3.3), in picoseconds and packets.
#[derive(Debug, Clone, Copy)]
struct Target {
    /// Base and topology scaling.
    fixed: f64,
    /// The most that flow scaling adds.
    range: f64,
    /// `a` and `b` of Equation 3.3.
    slope: f64,
    offset: f64,
}

impl Target {
    fn new(parameters: &SwiftParameters, network: &NetworkFacts) -> Self {
        let hops = match parameters.hops {
            HopCount::Switches => network.path.switches,
            HopCount::Links => network.path.switches + 1,
        };
        let base = parameters.base_delay.as_ps() as f64;
        let range = match parameters.fs_range {
            _ if !parameters.flow_scaling => 0.0,
            Some(range) => range.as_ps() as f64,
            None => 5.0 * base,
        };
        let inverse_root = |window: f64| 1.0 / window.max(1e-6).sqrt();
        let (least, most) = (
            inverse_root(parameters.fs_max_window),
            inverse_root(parameters.fs_min_window),
        );
        let slope = range / (most - least).max(1e-9);
        Self {
            fixed: base + f64::from(hops) * parameters.hop_delay.as_ps() as f64,
            range,
            slope,
            offset: -slope * least,
        }
    }

    /// Target delay in picoseconds for a window in packets.
    #[inline]
    fn at(&self, window: f64) -> f64 {
        if self.range == 0.0 {
            return self.fixed;
        }
        let scaling = self.slope / window.sqrt() + self.offset;
        self.fixed + scaling.min(self.range).max(0.0)
    }

    fn largest(&self) -> f64 {
        self.fixed + self.range
    }
}

/// Form of the window update.
#[derive(Debug, Clone)]
enum Form {
    /// The window changes with each acknowledgement, downwards at most once per round trip.
    Plain(RandomFeedback),
    /// The window is computed from a reference window.
    Reference(Box<Reference>),
}

/// Swift. Windows are in packets, times in picoseconds.
#[derive(Debug, Clone)]
pub struct Swift {
    window: f64,
    min_window: f64,
    max_window: f64,
    /// Window from which on random feedback always reacts.
    initial_window: f64,
    target: Target,
    /// Packets per round trip.
    step: f64,
    phased: Option<Box<Phased<f64>>>,
    beta: f64,
    /// Least factor by which one cut multiplies the window.
    least_factor: f64,
    form: Form,
    last_cut: Time,
    /// Round trip of the last acknowledgement.
    rtt: Span,
    base_rtt: Span,
    /// Bytes of a full packet: payload, and bits on the wire.
    payload: f64,
    packet_bits: f64,
}

impl ControllerDefinition for Swift {
    const NAME: &'static str = "swift";
    const SUMMARY: &'static str =
        "Swift: a window that follows the round-trip time, paced below one packet";
    type Parameters = SwiftParameters;

    fn new(parameters: &SwiftParameters, network: &NetworkFacts) -> Self {
        let target = Target::new(parameters, network);
        let payload = f64::from(network.payload);
        let base_rtt = parameters.base_rtt.resolve(network);
        // Bytes that the line carries in so many picoseconds.
        let line_rate = network.line_rate.as_bps() as f64;
        let line = |ps: f64| line_rate * ps / 8e12;
        let size = |size: Option<RelativeSize>, auto: f64| {
            size.map_or(auto, |size| network.size(size).as_f64()) / payload
        };
        // Not below a byte.
        let min_window = parameters.min_window.max(1.0 / payload);
        let initial = size(parameters.initial_window, line(base_rtt.as_ps() as f64));
        let largest = target.largest().max(base_rtt.as_ps() as f64);
        let max_window = size(parameters.max_window, line(largest)).max(min_window);
        let window = initial.clamp(min_window, max_window);
        let random_feedback = RandomFeedback::new(&parameters.random_feedback);
        let has_reference = parameters.reference_window
            || parameters.increase.variable_increase
            || parameters.sampling.sampling_acks.is_some();
        let form = if has_reference {
            Form::Reference(Box::new(Reference::new(
                window,
                window,
                ReferenceClock::new(&parameters.sampling),
                random_feedback,
                variable_increase(parameters, &target, base_rtt),
            )))
        } else {
            Form::Plain(random_feedback)
        };
        let auto = line_rate / AUTO_STEPS;
        let rate_ai = parameters.rate_ai.map_or(auto, |rate| rate.as_bps() as f64);
        let step = rate_ai * base_rtt.as_ps() as f64 / 8e12 / payload;
        Self {
            window,
            min_window,
            max_window,
            initial_window: window,
            target,
            step,
            phased: Phased::new(&parameters.phase, step),
            beta: parameters.beta,
            least_factor: (1.0 - parameters.max_mdf).max(0.0),
            form,
            last_cut: Time::ZERO,
            rtt: base_rtt,
            base_rtt,
            payload,
            packet_bits: f64::from(network.payload + network.header) * 8.0,
        }
    }
}

/// Variable increase by queueing delay in picoseconds. The delay that the target grants, and `token-threshold` more, makes no tokens.
fn variable_increase(
    parameters: &SwiftParameters,
    target: &Target,
    base_rtt: Span,
) -> Option<VariableIncrease> {
    let threshold =
        target.fixed - base_rtt.as_ps() as f64 + parameters.token_threshold.as_ps() as f64;
    let token = parameters.ai_div.as_ps() as f64;
    VariableIncrease::new(&parameters.increase, threshold, token)
}

impl Swift {
    /// The factor of a cut at a delay of `delay` (Swift §3.1; Snyder Equation 3.1).
    #[inline]
    fn cut_factor(&self, delay: f64, target: f64) -> f64 {
        (1.0 - self.beta * (delay - target) / delay.max(1.0)).max(self.least_factor)
    }

    #[inline]
    fn set_window(&mut self, window: f64) {
        self.window = window.clamp(self.min_window, self.max_window);
    }

    /// True if a round trip has passed since the last cut.
    #[inline]
    fn can_cut(&self, now: Time) -> bool {
        now.since(self.last_cut) >= self.rtt
    }

    /// Updates the window in the plain form (Swift §3, Algorithm 1).
    #[inline]
    fn adjust(&mut self, sample: &AckSample<'_>, delay: f64) {
        let target = self.target.at(self.window);
        if delay < target {
            let packets = sample.acked.as_u64() as i64 as f64 / self.payload;
            self.set_window(self.window + self.step * packets / self.window.max(1.0));
        } else if self.can_cut(sample.now) {
            self.last_cut = sample.now;
            let share = self.window / self.initial_window;
            if let Form::Plain(random_feedback) = &mut self.form
                && random_feedback.reacts(share)
            {
                self.set_window(self.window * self.cut_factor(delay, target));
            }
        }
    }

    /// Computes the window from the reference, always with the step (Snyder §4.2.2).
    #[inline]
    fn adjust_from_reference(&mut self, sample: &AckSample<'_>, delay: f64) {
        let Form::Reference(reference) = &self.form else {
            return;
        };
        // Updates are relative to the reference (Snyder §4.2.2): acknowledgements of equal congestion give the same window.
        let target = self.target.at(reference.value);
        let congested = delay > target;
        let factor = if congested {
            self.cut_factor(delay, target)
        } else {
            1.0
        };
        let Form::Reference(reference) = &mut self.form else {
            return;
        };
        let candidate = (reference.value * factor + self.step * reference.factor())
            .clamp(self.min_window, self.max_window);
        let queueing = sample.rtt.saturating_sub(self.base_rtt).as_ps() as i64 as f64;
        reference.propose(sample, candidate, queueing, congested);
        self.window = candidate;
    }
}

impl CongestionControl for Swift {
    #[inline(never)]
    fn on_ack(&mut self, sample: &AckSample<'_>) {
        if sample.probe {
            return;
        }
        self.rtt = sample.rtt;
        if let Some(phased) = &mut self.phased {
            let (usual, factor) = phased.on_ack(sample);
            self.step = usual * factor;
        }
        let delay = sample.rtt.as_ps() as i64 as f64;
        match self.form {
            Form::Plain(_) => self.adjust(sample, delay),
            Form::Reference(_) => self.adjust_from_reference(sample, delay),
        }
    }

    fn on_loss(&mut self, loss: &LossSample) {
        if self.can_cut(loss.now) {
            self.last_cut = loss.now;
            self.set_window(self.window * self.least_factor);
            if let Form::Reference(reference) = &mut self.form {
                reference.value = reference.value.min(self.window);
            }
        }
    }

    #[inline(never)]
    fn allowance(&self) -> Allowance {
        let rate = (self.window < 1.0).then(|| {
            // One packet in each `rtt / window`.
            let rtt = (self.rtt.as_ps() as i64 as f64).max(1.0);
            Rate::from_bps(((self.window * self.packet_bits * 1e12 / rtt) as u64).max(1))
        });
        Allowance {
            window: self.window * self.payload,
            rate,
        }
    }

    fn largest_window(&self) -> f64 {
        self.max_window * self.payload
    }

    fn take_phase(&mut self, phase: Bytes) {
        if let Some(phased) = &mut self.phased {
            phased.set_phase(phase);
        }
    }

    fn counts_progress(&self) -> bool {
        self.phased.is_some()
    }

    fn take_random(&mut self, random: RandomStream) {
        match &mut self.form {
            Form::Plain(random_feedback) => random_feedback.take_random(random),
            Form::Reference(reference) => reference.take_random(random),
        }
    }
}

#[cfg(test)]
mod tests;

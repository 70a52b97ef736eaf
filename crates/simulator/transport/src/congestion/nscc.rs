//! NSCC (Ultra Ethernet 1.0, network-signaled congestion control): one window over all paths, moved by marks and queueing delay.
//!
//! Each acknowledgement falls into one of four quadrants of (mark, queueing delay beyond the target): unmarked and short, the window grows
//! in proportion to how far the delay is below the target, or fast without any delay; unmarked and long, it grows by a fair step; marked
//! and long, it shrinks by the average delay, at most once per round trip; marked and short, only the path changes. Increases are collected
//! and applied once for several packets. If little was delivered in a period with losses, the window falls to the delivered bytes at once
//! (quick adaptation), and signals that are older than the fall are ignored.
//!
//! The source is the UEC reference simulator, whose constants equal the specification's except where the table of keys says otherwise.
//!
//! # Decisions
//! * The window counts payload, as everywhere here; the largest window is 1.5 times the product of rate and round trip on the wire. The
//!   reference counts headers in both: 1.5 % (U1).
//! * With trimming the delay alone never makes the window fall to the delivered bytes (specification); without trimming, a delay of four
//!   targets does (reference simulator, U3). `quick-adapt-delay` says which.
//! * The round trip of a trimmed packet lowers the base round trip, though trimmed packets overtake queues (U5).
//! * The average delay has a gain per acknowledgement (reference), or over the last round trip (specification): `average-over-rtt` (U6).
//! * A trigger of quick adaptation stays until one happens (U7).
//! * An acknowledgement of a probe counts the bytes that it acknowledges, but its round trip only for the base: it may be in another class.
//! * Penalties that destinations ask for are not built, and windows of flows to one host are independent (U4, U32).

use super::phase_increase::{PhaseIncreaseParameters, Phased};
use super::{
    AckSample, Allowance, CongestionControl, ControllerDefinition, LossCause, LossSample,
    NetworkFacts,
};
use clearway_units::{Bytes, Rate, Span, Time};

clearway_units::parameters! {
    /// Settings of [`Nscc`].
    pub struct NsccParameters {
        /// Target queueing delay in unloaded round trips of the network.
        pub target_rtts: f64 = 0.75, "target-rtts", "UEC reference simulator: 0.75 with trimming, 1 without";
        /// Target queueing delay; `"auto"` is `target-rtts`.
        pub target_queue_delay: Option<Span> = None, "target-qdelay", "UEC reference simulator";
        /// Packets added per window of acknowledgements at zero queueing delay, times the scale of the network and target /
        /// `reference-rtt`.
        pub alpha: f64 = 4.0, "alpha", "UEC reference simulator: proportional increase";
        /// Packets added per window of unmarked acknowledgements with a delay above the target, times the scale of the network.
        pub fair_increase: f64 = 5.0, "fair-increase", "UEC reference simulator";
        /// Packets added once per round trip regardless of marks and delays, times the scale of the network.
        pub eta: f64 = 0.15, "eta", "UEC reference simulator: fairness";
        /// Bytes added per acknowledged byte while there is no queueing delay, times the scale of the network.
        pub fast_increase: f64 = 0.25, "fast-increase", "UEC reference simulator";
        /// Queueing delay below which an acknowledgement counts towards the fast increase.
        pub fast_delay: Span = Span::from_us(1), "fast-delay", "UEC reference simulator";
        /// Gain of multiplicative decrease, relative to the average delay.
        pub gamma: f64 = 0.8, "gamma", "UEC reference simulator";
        /// Smallest factor of one decrease, at most 1.
        pub max_decrease: f64 = 0.5, "max-decrease", "UEC reference simulator";
        /// Largest and first window, in multiples of the rate times the flow's base round trip.
        pub max_window_bdps: f64 = 1.5, "max-cwnd-bdps", "UEC reference simulator";
        /// Divisor of the largest window: quick adaptation needs fewer delivered bytes than the quotient.
        pub quick_adapt_fraction: f64 = 8.0, "quick-adapt-fraction", "UEC reference simulator: 2^-3";
        /// Queueing delay, in multiples of the target, above which quick adaptation needs no loss; `"auto"` is never.
        pub quick_adapt_delay: Option<f64> = None, "quick-adapt-delay", "UEC: never with trimming; reference simulator: 4 (U3)";
        /// Weight of the newest queueing delay in the average, above 0 and at most 1.
        pub ewma: f64 = 0.0125, "ewma", "UEC reference simulator, per acknowledgement (U6)";
        /// Weight by time instead of `ewma`: the time since the last delay in base round trips, at most 1.
        pub average_over_rtt: bool = false, "average-over-rtt", "UEC specification (U6)";
        /// Acknowledged packets after which the collected increases are applied, at the latest after a round trip.
        pub adjust_packets: f64 = 8.0, "adjust-packets", "UEC reference simulator";
        /// Packets trimmed at the last switch shrink the window.
        pub last_hop_cut: bool = true, "last-hop-cut", "UEC reference simulator: false with receiver credits";
        /// Negative acknowledgements lower the base round trip.
        pub base_rtt_by_nack: bool = true, "base-rtt-by-nack", "UEC reference simulator (U5)";
        /// Rate for which the gains are stated. The scale of the network is its bandwidth-delay product over `reference-rate` ×
        /// `reference-rtt`.
        pub reference_rate: Rate = Rate::from_gbps(100), "reference-rate", "UEC reference simulator";
        /// Round trip for which the gains are stated.
        pub reference_rtt: Span = Span::from_us(12), "reference-rtt", "UEC reference simulator";
        with {
            /// Adaptive unfairness of the fair and the fairness step (U26).
            pub phase: PhaseIncreaseParameters,
        }
    }
}

/// Steps that MLTCP's factor multiplies.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Steps {
    /// Bytes times bytes acknowledged, divided by the window (`fi`).
    fair: f64,
    /// Bytes per round trip (`eta`).
    fairness: f64,
}

/// Values that do not change during a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Constants {
    min_window: f64,
    /// Bytes of the largest window for each picosecond of the base round trip.
    max_window_per_ps: f64,
    /// Unloaded round trip of the network, in picoseconds.
    network_rtt: f64,
    /// Target queueing delay in picoseconds.
    target: f64,
    /// Bytes times bytes acknowledged, divided by the window, for each picosecond below the target.
    proportional: f64,
    fast_increase: f64,
    fast_delay: f64,
    /// Acknowledged bytes after which the collected increases are applied.
    adjust_bytes: f64,
    gamma: f64,
    max_decrease: f64,
    quick_adapt_share: f64,
    quick_adapt_delay: f64,
    ewma: f64,
    average_over_rtt: bool,
    last_hop_cut: bool,
    base_rtt_by_nack: bool,
}

impl Constants {
    fn new(parameters: &NsccParameters, network: &NetworkFacts) -> Self {
        let network_rtt = (network.base_rtt.as_ps() as f64).max(1.0);
        let segment = f64::from(network.payload);
        let packet = segment + f64::from(network.header);
        let reference_rtt = (parameters.reference_rtt.as_ps() as f64).max(1.0);
        let scale = scale(parameters, network);
        let target = parameters
            .target_queue_delay
            .map_or(parameters.target_rtts * network_rtt, |span| {
                span.as_ps() as f64
            });
        Self {
            min_window: packet,
            max_window_per_ps: parameters.max_window_bdps * bytes_per_ps(network.line_rate),
            network_rtt,
            target,
            proportional: parameters.alpha * segment * scale / reference_rtt,
            fast_increase: parameters.fast_increase * scale,
            fast_delay: parameters.fast_delay.as_ps() as f64,
            adjust_bytes: parameters.adjust_packets * packet,
            gamma: parameters.gamma,
            max_decrease: parameters.max_decrease.min(1.0),
            quick_adapt_share: 1.0 / parameters.quick_adapt_fraction.max(1.0),
            quick_adapt_delay: parameters
                .quick_adapt_delay
                .map_or(f64::INFINITY, |targets| targets * target),
            ewma: parameters.ewma.clamp(0.0, 1.0),
            average_over_rtt: parameters.average_over_rtt,
            last_hop_cut: parameters.last_hop_cut,
            base_rtt_by_nack: parameters.base_rtt_by_nack,
        }
    }
}

fn bytes_per_ps(rate: Rate) -> f64 {
    rate.as_bps() as f64 / 8e12
}

/// Scale of the network: its bandwidth-delay product relative to that for which the gains are stated.
fn scale(parameters: &NsccParameters, network: &NetworkFacts) -> f64 {
    let rtts = (network.base_rtt, parameters.reference_rtt);
    let [own, reference] = [
        (network.line_rate, rtts.0),
        (parameters.reference_rate, rtts.1),
    ]
    .map(|(rate, rtt)| bytes_per_ps(rate) * (rtt.as_ps() as f64).max(1.0));
    own / reference.max(1.0)
}

/// The congestion controller of Ultra Ethernet at the sender.
#[derive(Debug, Clone)]
pub struct Nscc {
    /// The window in bytes.
    window: f64,
    max_window: f64,
    /// Least round trip seen, in picoseconds (`base_rtt`).
    base_rtt: f64,
    /// Average queueing delay in picoseconds.
    average: f64,
    last_sample: Time,
    steps: Steps,
    /// Bytes acknowledged in a row without queueing delay.
    fast_bytes: f64,
    /// Increase collected, times the window (`inc`), and the bytes that it was collected from.
    collected: f64,
    received: f64,
    last_adjustment: Time,
    last_decrease: Time,
    /// Bytes acknowledged in the present period of quick adaptation, and the end of that.
    achieved: f64,
    period_end: Option<Time>,
    /// Bytes in flight at the last quick adaptation, and those heard of since: their signals are ignored.
    to_ignore: f64,
    ignored: f64,
    /// A packet was trimmed since the last quick adaptation.
    trigger: bool,
    fast_mode: bool,
    started: bool,
    constants: Box<Constants>,
    phased: Option<Box<Phased<Steps>>>,
}

impl ControllerDefinition for Nscc {
    const NAME: &'static str = "nscc";
    const SUMMARY: &'static str = "NSCC of Ultra Ethernet: one window, four quadrants of mark and queueing delay, quick adaptation";
    type Parameters = NsccParameters;

    fn new(parameters: &NsccParameters, network: &NetworkFacts) -> Self {
        let constants = Constants::new(parameters, network);
        let per_scale = f64::from(network.payload) * scale(parameters, network);
        let steps = Steps {
            fair: parameters.fair_increase * per_scale,
            fairness: parameters.eta * per_scale,
        };
        let base_rtt = constants.network_rtt;
        let max_window = (constants.max_window_per_ps * base_rtt).max(constants.min_window);
        Self {
            window: max_window,
            max_window,
            base_rtt,
            average: 0.0,
            last_sample: Time::ZERO,
            steps,
            fast_bytes: 0.0,
            collected: 0.0,
            received: 0.0,
            last_adjustment: Time::ZERO,
            last_decrease: Time::ZERO,
            achieved: 0.0,
            period_end: None,
            to_ignore: 0.0,
            ignored: 0.0,
            trigger: false,
            fast_mode: false,
            started: false,
            constants: Box::new(constants),
            phased: Phased::new(&parameters.phase, steps),
        }
    }
}

impl Nscc {
    /// Lowers the base round trip to the least seen, and the largest window with it.
    fn observe_base_rtt(&mut self, rtt: f64) {
        // No round trip takes no time: a peer has echoed a stamp that was not sent.
        if rtt > 0.0 && rtt < self.base_rtt {
            self.base_rtt = rtt;
            self.max_window =
                (self.constants.max_window_per_ps * rtt).max(self.constants.min_window);
        }
    }

    fn add_to_average(&mut self, now: Time, delay: f64) {
        let gain = match self.constants.average_over_rtt {
            true => (now.since(self.last_sample).as_ps() as f64 / self.base_rtt).min(1.0),
            false => self.constants.ewma,
        };
        self.last_sample = now;
        self.average += gain * (delay - self.average);
    }

    fn clamp(&mut self) {
        self.window = self
            .window
            .clamp(self.constants.min_window, self.max_window);
    }

    /// Lets the window fall to the delivered bytes of the period, if these are few and there is a reason. True if this answers the present
    /// signal, or if the signal is older than the last fall.
    fn quick_adapt(&mut self, signal: &Signal) -> bool {
        let mut done = false;
        if self.ignored < self.to_ignore && signal.marked {
            done = true;
        } else if self.period_end.is_none_or(|end| signal.now > end) {
            let reason =
                self.trigger || signal.loss || signal.delay > self.constants.quick_adapt_delay;
            let little = self.achieved < self.max_window * self.constants.quick_adapt_share;
            if self.period_end.is_some() && reason && little {
                self.window = self.achieved.max(self.constants.min_window);
                self.to_ignore = signal.in_flight;
                self.ignored = 0.0;
                self.trigger = false;
                done = true;
            }
            self.achieved = 0.0;
            let period = Span::from_ps((self.base_rtt + self.constants.target) as u64);
            self.period_end = Some(signal.now + period);
        }
        if done {
            self.collected = 0.0;
            self.received = 0.0;
        }
        done
    }

    /// Grows the window fast after more than a window of acknowledgements without queueing delay.
    fn increase_fast(&mut self, acked: f64, delay: f64) {
        if delay < self.constants.fast_delay {
            self.fast_bytes += acked;
            if self.fast_bytes > self.window || self.fast_mode {
                self.window += self.constants.fast_increase * acked;
                self.fast_mode = true;
                return;
            }
        } else {
            self.fast_bytes = 0.0;
        }
        self.fast_mode = false;
    }

    /// The four quadrants.
    fn react(&mut self, now: Time, marked: bool, acked: f64, delay: f64) {
        let long = delay >= self.constants.target;
        match (marked, long) {
            (false, true) => self.collected += self.steps.fair * acked,
            (false, false) => {
                self.increase_fast(acked, delay);
                if !self.fast_mode {
                    self.collected +=
                        self.constants.proportional * acked * (self.constants.target - delay);
                }
            }
            (true, true) => {
                self.fast_mode = false;
                self.fast_bytes = 0.0;
                let since = now.since(self.last_decrease).as_ps() as f64;
                if self.average > self.constants.target && since > self.base_rtt {
                    let excess = (self.average - self.constants.target) / self.average;
                    self.window *=
                        (1.0 - self.constants.gamma * excess).max(self.constants.max_decrease);
                    self.last_decrease = now;
                }
            }
            (true, false) => {}
        }
        self.clamp();
    }

    /// Applies the collected increases.
    fn adjust(&mut self, sample: &AckSample<'_>) {
        let since = sample.now.since(self.last_adjustment).as_ps() as f64;
        if self.received <= self.constants.adjust_bytes && since <= self.constants.network_rtt {
            return;
        }
        self.window += self.collected / self.window;
        if since >= self.constants.network_rtt {
            self.window += self.steps.fairness;
            self.last_adjustment = sample.now;
            if let Some(phased) = &mut self.phased {
                let (usual, factor) = phased.on_ack(sample);
                self.steps = Steps {
                    fair: usual.fair * factor,
                    fairness: usual.fairness * factor,
                };
            }
        }
        self.collected = 0.0;
        self.received = 0.0;
        self.clamp();
    }

    /// A packet was trimmed.
    fn on_trim(&mut self, loss: &LossSample, rtt: Span, last_hop: bool) {
        let size = loss.lost.as_f64();
        if self.constants.base_rtt_by_nack {
            self.observe_base_rtt(rtt.as_ps() as f64);
        }
        self.ignored += size;
        self.add_to_average(loss.now, self.constants.network_rtt);
        self.trigger = true;
        let signal = Signal {
            now: loss.now,
            marked: true,
            loss: true,
            delay: 0.0,
            in_flight: loss.in_flight.as_f64(),
        };
        if !self.quick_adapt(&signal) && (self.constants.last_hop_cut || !last_hop) {
            self.window = (self.window - size).max(self.constants.min_window);
        }
    }
}

/// Input of quick adaptation.
struct Signal {
    now: Time,
    marked: bool,
    loss: bool,
    /// Queueing delay in picoseconds.
    delay: f64,
    in_flight: f64,
}

// Out of line: the packet loop has room for STrack alone.
impl CongestionControl for Nscc {
    #[inline(never)]
    fn on_ack(&mut self, sample: &AckSample<'_>) {
        let (acked, rtt) = (sample.acked.as_f64(), sample.rtt.as_ps() as f64);
        self.achieved += acked;
        self.received += acked;
        self.ignored += acked;
        self.observe_base_rtt(rtt);
        let delay = match sample.probe {
            true => self.average,
            false => rtt - self.base_rtt,
        };
        if !sample.probe {
            // An unmarked packet that was late is damped: the queue that it saw may be gone.
            let damped = match !sample.ecn && delay > self.constants.target {
                true => self.base_rtt / 4.0,
                false => delay,
            };
            self.add_to_average(sample.now, damped);
        }
        let signal = Signal {
            now: sample.now,
            marked: sample.ecn,
            loss: false,
            delay,
            in_flight: sample.in_flight.as_f64(),
        };
        if self.quick_adapt(&signal) {
            return;
        }
        self.react(sample.now, sample.ecn, acked, delay);
        self.adjust(sample);
    }

    fn on_loss(&mut self, loss: &LossSample) {
        match loss.cause {
            LossCause::Trimmed { last_hop, rtt } => self.on_trim(loss, rtt, last_hop),
            LossCause::Timeout => {
                self.window = (self.window - loss.lost.as_f64()).max(self.constants.min_window);
            }
            LossCause::OutOfOrder | LossCause::Probe | LossCause::GoBack => {}
        }
    }

    fn on_restart(&mut self, now: Time) {
        if !self.started {
            self.started = true;
            self.last_adjustment = now;
            self.last_decrease = now;
            self.last_sample = now;
        }
    }

    #[inline(never)]
    fn allowance(&self) -> Allowance {
        Allowance {
            window: self.window,
            rate: None,
        }
    }

    fn largest_window(&self) -> f64 {
        self.max_window
    }

    fn take_phase(&mut self, phase: Bytes) {
        if let Some(phased) = &mut self.phased {
            phased.set_phase(phase);
        }
    }

    fn counts_progress(&self) -> bool {
        self.phased.is_some()
    }
}

#[cfg(test)]
mod tests;

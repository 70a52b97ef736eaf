//! SMaRTT (Bonato et al., arXiv 2404.01630; FASTFLOW in its source): a window that four rules move, by mark and by round trip.
//!
//! Without a mark the window grows: by a share of a packet per round trip (fair increase), and below the target round trip also by how far
//! the round trip is below it (multiplicative increase). With a mark it shrinks: in proportion to itself (fair decrease), and above the
//! target also by the excess of the round trip (multiplicative decrease). A window's worth of acknowledgements without a mark or a queue
//! makes it grow by leaps (fast increase). After a loss it falls at the end of a period to the bytes that have arrived in it (QuickAdapt),
//! and signals of earlier packets are ignored.
//!
//! # Units
//! Windows are in bytes of payload, times in picoseconds. An acknowledgement of `n` bytes counts as `n / m` of a packet of `m` bytes, also
//! in fast increase, where the paper has packets.
//!
//! # Decisions
//! * The gains are from the paper's own simulator. The repository of Uno, by the same authors, has others: 0.15, 1, 1 and 1 for `fi`, `mi`,
//!   `md` and `fd`, and a target of 1.5 base round trips.
//! * The window starts at its largest value: 1.25 bandwidth-delay products, of the 1.25 to 1.5 in the source.
//! * The base round trip is the flow's own, for a longer one would hide a queue.
//! * QuickAdapt's period is the target round trip. The code checks it only when an acknowledgement or a loss comes, so it scales the
//!   arrived bytes to one period.
//! * Packets in flight at an adaptation are ignored: their marks, their round trips and their losses.
//! * Every loss, in whatever way it was found, is answered as a NACK: the lost bytes leave the window, and the period ends with an
//!   adaptation.
//! * Wait-to-decrease is off, as in the source. Its average counts acknowledgements.
//! * A pause in which a whole period has gone by begins a new one: a flow without data is not a sign of congestion.

use super::base_rtt::BaseRtt;
use super::{
    AckSample, Allowance, CongestionControl, ControllerDefinition, LossSample, NetworkFacts,
};
use clearway_units::{Bytes, RelativeSize, Span, Time};

clearway_units::parameters! {
    /// Settings of [`Smartt`].
    pub struct SmarttParameters {
        /// Queueing delay of the target round trip.
        pub target_queue_delay: Span = Span::from_us(7), "target-qdelay", "SMaRTT's simulator: base round trip + 7 us";
        /// Unloaded round trip: `"network"`, the longest in the fabric; `"path"`, the flow's round trip; or a duration.
        pub base_rtt: BaseRtt = BaseRtt::Path, "base-rtt", "decision: what is not queueing delay";
        /// Packets added per round trip without marks (fair increase).
        pub fi: f64 = 0.25, "fi", "SMaRTT's simulator; 0.15 in Uno's";
        /// Gain of multiplicative increase.
        pub mi: f64 = 2.0, "mi", "SMaRTT's simulator; 1 in Uno's";
        /// Gain of multiplicative decrease.
        pub md: f64 = 1.0, "md", "SMaRTT's simulator";
        /// Share of its size by which a marked packet cuts the largest window; smaller windows are cut in proportion (fair decrease).
        pub fd: f64 = 0.8, "fd", "SMaRTT's simulator; 1 in Uno's";
        /// Packets added per acknowledged packet in fast increase (`k`).
        pub k: f64 = 4.0, "fast-k", "SMaRTT's simulator";
        /// Queueing delay below which an unmarked acknowledgement counts towards fast increase.
        pub fast_delay: Span = Span::from_us(1), "fast-delay", "SMaRTT's simulator; five packets in Uno's";
        /// Average share of marked acknowledgements above which the window may shrink (wait-to-decrease); `"auto"` does not wait.
        pub decrease_above: Option<f64> = None, "wait-to-decrease", "off in SMaRTT's simulator; 0.25 in its paper, 0.3 in Uno's";
        /// Weight of the newest acknowledgement in the average of `wait-to-decrease`, 0 to 1.
        pub mark_gain: f64 = 0.125, "mark-gain", "SMaRTT's paper; 0.05 to 0.125 in its simulators";
        /// Largest window, in payload bytes.
        pub max_window: RelativeSize = RelativeSize::percent_of_bdp(125), "max-window", "SMaRTT's simulator: 1.25 to 1.5";
        /// Window of a new flow; `"auto"` is the largest.
        pub initial_window: Option<RelativeSize> = None, "initial-window", "SMaRTT's simulator: 1.25 to 1.5 bandwidth-delay products";
    }
}

/// Gains of the window.
#[derive(Debug, Clone, Copy)]
struct Gains {
    fi: f64,
    mi: f64,
    md: f64,
    fd: f64,
    k: f64,
}

/// SMaRTT. The window is in bytes, round trips are in picoseconds.
#[derive(Debug, Clone)]
pub struct Smartt {
    window: f64,
    max_window: f64,
    /// Payload of a full packet (`m`), the least window.
    payload: f64,
    /// Round trip below which an unmarked acknowledgement counts towards fast increase.
    fast_rtt: f64,
    target_rtt: f64,
    gains: Gains,
    /// Payload acknowledged in a row without a mark or a queue.
    fast_bytes: f64,
    is_fast: bool,
    /// Length and end of the period of QuickAdapt; [`Time::NEVER`] before the first acknowledgement.
    period: Span,
    period_end: Time,
    /// Payload acknowledged in it.
    achieved: u64,
    /// A loss waits for the end of the period.
    has_lost: bool,
    /// Payload that was in flight at the last adaptation and has not been heard of since.
    ignored: u64,
    /// Average share of marks, its gain, and the share above which the window may shrink.
    marks: f64,
    mark_gain: f64,
    decrease_above: f64,
}

impl ControllerDefinition for Smartt {
    const NAME: &'static str = "smartt";
    const SUMMARY: &'static str =
        "SMaRTT: a window driven by marks and round trips, set to the delivered bytes after losses";
    type Parameters = SmarttParameters;

    fn new(parameters: &SmarttParameters, network: &NetworkFacts) -> Self {
        let payload = f64::from(network.payload);
        let resolve = |size: RelativeSize| network.size(size).as_f64();
        let max_window = resolve(parameters.max_window).max(payload);
        let initial = parameters.initial_window.map_or(max_window, resolve);
        let base_rtt = parameters.base_rtt.resolve(network);
        let target_rtt = base_rtt + parameters.target_queue_delay;
        Self {
            window: initial.clamp(payload, max_window),
            max_window,
            payload,
            fast_rtt: (base_rtt + parameters.fast_delay).as_ps() as f64,
            target_rtt: target_rtt.as_ps() as f64,
            gains: Gains {
                fi: parameters.fi,
                mi: parameters.mi,
                md: parameters.md,
                fd: parameters.fd,
                k: parameters.k,
            },
            fast_bytes: 0.0,
            is_fast: false,
            period: target_rtt,
            period_end: Time::NEVER,
            achieved: 0,
            has_lost: false,
            ignored: 0,
            marks: 0.0,
            mark_gain: parameters.mark_gain.min(1.0),
            // An average is above it always.
            decrease_above: parameters.decrease_above.unwrap_or(-1.0),
        }
    }
}

impl Smartt {
    fn set_window(&mut self, window: f64) {
        self.window = window.clamp(self.payload, self.max_window);
    }

    /// Ends the period of QuickAdapt if it is over. True if the window has been set to the bytes that arrived.
    fn adapt(&mut self, now: Time, in_flight: Bytes) -> bool {
        if self.period_end.is_never() {
            self.period_end = now.saturating_add(self.period);
        }
        if now < self.period_end {
            return false;
        }
        let late = now.since(self.period_end).as_ps() as f64;
        let adapts = std::mem::take(&mut self.has_lost);
        if adapts {
            let period = self.period.as_ps() as f64;
            self.set_window(self.achieved as f64 * period / (late + period));
            self.ignored = in_flight.as_u64();
            (self.fast_bytes, self.is_fast) = (0.0, false);
        }
        self.achieved = 0;
        self.period_end = now.saturating_add(self.period);
        adapts
    }

    /// Fast increase: true if it has raised the window.
    fn increase_fast(&mut self, bytes: f64, rtt: f64, ecn: bool) -> bool {
        if ecn || rtt >= self.fast_rtt {
            (self.fast_bytes, self.is_fast) = (0.0, false);
            return false;
        }
        self.fast_bytes += bytes;
        self.is_fast |= self.fast_bytes > self.window;
        if self.is_fast {
            self.set_window(self.window + self.gains.k * bytes);
        }
        self.is_fast
    }

    /// Change of the window by the four rules for an acknowledgement of `bytes`.
    fn change(&self, bytes: f64, rtt: f64, ecn: bool) -> f64 {
        let Gains { fi, mi, md, fd, .. } = self.gains;
        // Packets of the window: with so many acknowledgements a rule adds its gain times `m`.
        let share = bytes / self.window * self.payload;
        let beyond = (rtt - self.target_rtt) / rtt.max(1.0);
        match ecn {
            false if beyond >= 0.0 => fi * share,
            false => bytes.min(mi * share * -beyond) + fi * share,
            true if self.marks <= self.decrease_above => 0.0,
            true => {
                -bytes.min(md * bytes * beyond.max(0.0))
                    - fd * bytes * self.window / self.max_window
            }
        }
    }
}

impl CongestionControl for Smartt {
    #[inline(never)]
    fn on_ack(&mut self, sample: &AckSample<'_>) {
        self.achieved += sample.acked.as_u64();
        // A probe carries nothing, and may overtake data.
        if sample.probe {
            return;
        }
        let mark = f64::from(u8::from(sample.ecn));
        self.marks += self.mark_gain * (mark - self.marks);
        if self.adapt(sample.now, sample.in_flight) {
            return;
        }
        if self.ignored > 0 {
            self.ignored = self.ignored.saturating_sub(sample.acked.as_u64());
            return;
        }
        let (bytes, rtt) = (sample.acked.as_f64(), sample.rtt.as_ps() as f64);
        if !self.increase_fast(bytes, rtt, sample.ecn) {
            self.set_window(self.window + self.change(bytes, rtt, sample.ecn));
        }
    }

    /// Packets have been lost, as NACKs or the timer say.
    fn on_loss(&mut self, loss: &LossSample) {
        let bytes = loss.lost.as_u64();
        if self.ignored > 0 {
            self.ignored = self.ignored.saturating_sub(bytes);
            return;
        }
        self.has_lost = true;
        (self.fast_bytes, self.is_fast) = (0.0, false);
        self.set_window(self.window - bytes as f64);
        self.adapt(loss.now, loss.in_flight);
    }

    fn on_restart(&mut self, now: Time) {
        let over = self.period_end.saturating_add(self.period);
        if now >= over {
            self.achieved = 0;
            self.period_end = now.saturating_add(self.period);
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
}

#[cfg(test)]
mod tests;

//! TCP Reno with explicit congestion notification (RFC 3168), as far as congestion is concerned: one packet more per round
//! trip, and half the window for the first mark in a window.
//!
//! Acknowledgements echo the mark of each packet, without delayed acknowledgements. Slow start is off by default, as in the
//! comparison with DCTCP that this controller is for.
//!
//! # MLTCP
//! `phase-increase = 1.75` and `phase-base = 0.25` multiply the packet per round trip by [`F(r)`](super::PhaseIncrease) (MLTCP, HotNets
//! '24). Slow start and the decrease are as in Reno. The authors' ns-3 module also starts each phase with a window of ten packets, which
//! `phase-window` does; by default a flow goes on with the window that it had, as it does after any pause.

use super::additive_window::AdditiveWindow;
use super::phase_increase::{PhaseIncreaseParameters, Phased};
use super::{
    AckSample, Allowance, CongestionControl, ControllerDefinition, LossSample, NetworkFacts,
};
use clearway_units::{Bytes, RelativeSize, Time};

clearway_units::parameters! {
    /// Settings of [`Reno`].
    pub struct RenoParameters {
        /// Largest window, in payload bytes.
        pub max_window: RelativeSize = RelativeSize::percent_of_bdp(100), "max-window", "decision: what fills an idle path";
        /// Window of a new flow; `"auto"` is one full packet.
        pub initial_window: Option<RelativeSize> = None, "initial-window", "decision: reproduces TCP's completion times beside DCTCP's";
        /// Packets added per round trip.
        pub increase: f64 = 1.0, "increase", "RFC 5681 §3.1";
        /// Factor by which a mark multiplies the window, at most 1. A loss halves the window; a timeout leaves one packet.
        pub decrease: f64 = 0.5, "decrease", "RFC 3168 §6.1.2";
        /// Slow start: the window doubles each round trip until the first mark or loss.
        pub slow_start: bool = false, "slow-start", "decision: as in the comparison with DCTCP";
        /// Window in packets at the beginning of each communication phase after the first; `"auto"` is the window at the end of the last
        /// phase.
        pub phase_window: Option<f64> = None, "phase-window", "decision: as after other pauses; 10 in MLTCP's ns-3 module";
        with {
            /// Adaptive unfairness, and MLTCP.
            pub phase: PhaseIncreaseParameters,
        }
    }
}

/// TCP Reno with ECN.
#[derive(Debug, Clone)]
pub struct Reno {
    window: AdditiveWindow,
    decrease: f64,
    phased: Option<Box<Phased<f64>>>,
    phase_window: Option<f64>,
}

impl ControllerDefinition for Reno {
    const NAME: &'static str = "reno";
    const SUMMARY: &'static str =
        "TCP Reno with ECN: one more packet per round trip, half the window after a mark";
    type Parameters = RenoParameters;

    fn new(parameters: &RenoParameters, network: &NetworkFacts) -> Self {
        let window = AdditiveWindow::new(
            network,
            parameters.initial_window,
            parameters.max_window,
            parameters.increase,
            parameters.slow_start,
        );
        Self {
            phased: Phased::new(&parameters.phase, window.step()),
            window,
            decrease: parameters.decrease.min(1.0),
            phase_window: parameters.phase_window,
        }
    }
}

impl CongestionControl for Reno {
    #[inline(never)]
    fn on_ack(&mut self, sample: &AckSample<'_>) {
        self.window.advance(sample);
        if let Some(phased) = &mut self.phased {
            let (usual, factor) = phased.on_ack(sample);
            self.window.set_step(usual * factor);
        }
        if self.window.is_reduced() {
            return;
        }
        if sample.ecn {
            self.window.cut(self.decrease, sample.in_flight);
        } else {
            self.window.grow(sample.acked);
        }
    }

    fn on_loss(&mut self, loss: &LossSample) {
        self.window.on_loss(loss);
    }

    fn on_restart(&mut self, _: Time) {
        let begins = |phased: &Phased<f64>| phased.is_between_phases();
        if let Some(packets) = self.phase_window
            && self.window.acknowledged() > 0
            && self.phased.as_deref().is_some_and(begins)
        {
            self.window.restart(packets);
        }
    }

    #[inline(never)]
    fn allowance(&self) -> Allowance {
        Allowance {
            window: self.window.window(),
            rate: None,
        }
    }

    fn largest_window(&self) -> f64 {
        self.window.max()
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

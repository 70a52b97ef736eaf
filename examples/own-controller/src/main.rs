//! A congestion controller of your own in the whole program:
//! `cargo run --release -p own-controller -- compare quickstart:transport.controller=strack :transport.controller=aimd`.
//!
//! The controller is the textbook one: additive increase, multiplicative decrease, on congestion marks. Copy this
//! folder, rename what is called `aimd`, and change the rules.

use clearway::lab::congestion::{
    AckSample, Allowance, CongestionControl, ControllerDefinition, LossSample, NetworkFacts,
};
use clearway::lab::units::{Time, parameters};
use clearway::{Laboratory, main_with};
use std::process::ExitCode;

parameters! {
    /// Settings of [`Aimd`]. Each becomes a key of the scenario's `[transport]` section, with this text as its explanation:
    /// meaning, name, type, default, key, and where the default comes from.
    pub struct AimdParameters {
        /// Packets that a round trip without marks adds to the window.
        pub increase: f64 = 8.0, "increase", "example";
        /// Share of the window that a round trip with marks takes away, 0 to 1.
        pub decrease: f64 = 0.5, "decrease", "example";
    }
}

/// Additive increase, multiplicative decrease. One of these exists for each flow.
struct Aimd {
    parameters: AimdParameters,
    /// Payload bytes of one packet.
    packet: f64,
    /// The window in payload bytes, and its bounds.
    window: f64,
    most: f64,
    /// Time before which a further mark counts as the same congestion: one round trip after the last decrease.
    next_decrease: Time,
}

impl ControllerDefinition for Aimd {
    const NAME: &'static str = "aimd";
    const SUMMARY: &'static str = "additive increase, multiplicative decrease on marks";
    type Parameters = AimdParameters;

    fn new(parameters: &AimdParameters, network: &NetworkFacts) -> Self {
        let bdp = network.bdp.as_f64();
        Self {
            parameters: parameters.clone(),
            packet: f64::from(network.payload),
            window: bdp,
            most: 2.0 * bdp,
            next_decrease: Time::ZERO,
        }
    }
}

impl Aimd {
    fn shrink_once_per_round_trip(&mut self, sample: &AckSample<'_>) {
        if sample.now >= self.next_decrease {
            self.window *= 1.0 - self.parameters.decrease;
            self.next_decrease = sample.now + sample.rtt;
        }
    }
}

impl CongestionControl for Aimd {
    fn on_ack(&mut self, sample: &AckSample<'_>) {
        if sample.ecn {
            self.shrink_once_per_round_trip(sample);
        } else {
            // Over a round trip the acknowledged bytes add up to one window, and so the shares to `increase` packets.
            let share = sample.acked.as_f64() / self.window;
            self.window += self.parameters.increase * self.packet * share;
        }
        self.window = self.window.clamp(self.packet, self.most);
    }

    fn on_loss(&mut self, _: &LossSample) {
        self.window = (self.window / 2.0).max(self.packet);
    }

    fn allowance(&self) -> Allowance {
        Allowance {
            window: self.window,
            rate: None,
        }
    }

    fn largest_window(&self) -> f64 {
        self.most
    }
}

fn main() -> ExitCode {
    main_with(Laboratory::new().with_controller::<Aimd>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flow_completes() {
        let laboratory = Laboratory::new().with_controller::<Aimd>();
        let choice = "transport.controller=aimd".to_owned();
        let scenario = laboratory.load("quickstart", &[choice]).unwrap();
        let finished = laboratory.run(&scenario).unwrap();
        assert_eq!(finished.flows.len(), 128);
        let slowest = finished.longest_completion().expect("all flows are done");
        assert!(slowest.as_us() < 200.0, "{slowest}");
    }
}

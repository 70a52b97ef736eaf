//! Swift (SIGCOMM 2020) as Snyder's dissertation has it in §3.2.2 and §4.2.2.
//!
//! Decisions on open points of the text: the excess over the target is relative to the delay (printed, equation 3.1 has a time); flow
//! scaling is bounded by its range; hops are switches; the additive increase is a rate over a base round trip; a window below one packet is
//! paced with the last round trip; with a reference window the additive increase is always added, once per update; a loss is answered by
//! the largest decrease.

use super::fairness::{Sampling, VariableIncrease};
use super::{Acks, Branches, assert_rate, assert_window};
use clearway_transport::congestion::{
    AckSample, CongestionControl, ControllerDefinition, NetworkFacts, PathFacts, Swift,
    SwiftParameters,
};
use clearway_units::{Bytes, Rate, RelativeSize, Span};

const US: f64 = 1e6;

/// The star of Snyder §3.3.4: 4.16 us and 52 KB at 100 Gb/s.
fn star() -> NetworkFacts {
    let rtt = Span::from_ns(4160);
    NetworkFacts {
        line_rate: Rate::from_gbps(100),
        base_rtt: rtt,
        propagation_rtt: Span::from_us(4),
        bdp: Bytes::new(52_000),
        payload: 1000,
        header: 48,
        ack: 60,
        path: PathFacts { rtt, switches: 1 },
    }
}

/// Windows are in packets, times in picoseconds.
struct Model {
    step: f64,
    /// Range of flow scaling in microseconds, and the windows at which it ends.
    flow_scaling: [f64; 3],
    max_window: f64,
    window: f64,
    last_decrease: f64,
    last_rtt: f64,
    /// The reference window and when it may change, where there is one.
    reference: Option<(f64, Sampling)>,
    variable: Option<VariableIncrease>,
    taken: Branches,
}

impl Model {
    fn new(parameters: &SwiftParameters) -> Self {
        let sampling = parameters.sampling.sampling_acks;
        let variable = parameters.increase.variable_increase;
        let has_reference = parameters.reference_window || sampling.is_some() || variable;
        let range = match parameters.fs_range {
            _ if !parameters.flow_scaling => 0.0,
            None => 25.0,
            Some(range) => range.as_us(),
        };
        Self {
            // Table 3.1.
            step: parameters.rate_ai.map_or(50e6, |rate| rate.as_bps() as f64) * 4.16e-6
                / 8.0
                / 1000.0,
            flow_scaling: [range, parameters.fs_min_window, parameters.fs_max_window],
            // 12.5 packets are sent in a microsecond.
            max_window: match parameters.max_window {
                Some(_) => 52.0,
                None => 12.5 * (5.0 + 2.0 + range),
            },
            window: 52.0,
            last_decrease: f64::NEG_INFINITY,
            last_rtt: 0.0,
            reference: has_reference.then(|| (52.0, Sampling::new(sampling))),
            // Thresholds on the queueing delay: 4 us above the target, a token for each 30 ns.
            variable: variable.then(|| VariableIncrease::new((7.0 - 4.16 + 4.0) * US, 30e3)),
            taken: Branches::default(),
        }
    }

    /// The target delay: equations 3.2 and 3.3.
    fn target(&mut self, window: f64) -> f64 {
        let [range, least, most] = self.flow_scaling;
        let alpha = range / (1.0 / least.sqrt() - 1.0 / most.sqrt());
        let beta = -alpha / most.sqrt();
        let scaling = (alpha / window.sqrt() + beta).clamp(0.0, range);
        self.taken.take(match scaling {
            0.0 => "no flow scaling",
            s if s == range => "all of flow scaling",
            _ => "flow scaling",
        });
        (5.0 + 2.0 + scaling) * US
    }

    fn decrease(&mut self, delay: f64, target: f64) -> f64 {
        let factor = 1.0 - 0.8 * (delay - target) / delay;
        self.taken
            .either(factor > 0.5, "decrease", "largest decrease");
        factor.max(0.5)
    }

    fn bound(&mut self, window: f64) -> f64 {
        self.taken
            .take_if(window > self.max_window, "largest window");
        self.taken.take_if(window < 0.01, "smallest window");
        window.clamp(0.01, self.max_window)
    }

    fn on_ack(&mut self, ack: &AckSample<'_>) {
        self.last_rtt = ack.rtt.as_ps() as f64;
        if self.reference.is_some() {
            self.on_ack_with_reference(ack);
        } else {
            self.on_ack_without(ack);
        }
    }

    fn on_ack_without(&mut self, ack: &AckSample<'_>) {
        let (now, delay) = (ack.now.as_ps() as f64, ack.rtt.as_ps() as f64);
        let packets = ack.acked.as_f64() / 1000.0;
        let target = self.target(self.window);
        let mut window = self.window;
        if delay < target {
            let whole = window >= 1.0;
            window += self.step * packets / if whole { window } else { 1.0 };
            self.taken
                .either(whole, "increase per window", "increase per packet");
        } else if now - self.last_decrease >= delay {
            window *= self.decrease(delay, target);
            self.last_decrease = now;
        } else {
            self.taken.take("decrease once per round trip");
        }
        self.window = self.bound(window);
    }

    fn on_ack_with_reference(&mut self, ack: &AckSample<'_>) {
        let delay = ack.rtt.as_ps() as f64;
        let (mut reference, mut sampling) = self.reference.take().expect("a reference");
        let target = self.target(reference);
        let factor = if delay > target {
            self.decrease(delay, target)
        } else {
            1.0
        };
        let tokens = self.variable.as_ref().map_or(1.0, VariableIncrease::factor);
        let window = self.bound(reference * factor + self.step * tokens);
        let changes = sampling.changes(window < reference, ack, &mut self.taken);
        if changes {
            reference = window;
        }
        if let Some(variable) = &mut self.variable {
            if changes {
                variable.spend();
            }
            variable.observe(delay - 4.16 * US, delay > target);
            variable.end_round_trip(ack, &mut self.taken);
        }
        self.window = window;
        self.reference = Some((reference, sampling));
    }

    /// Swift's answer to a retransmission: the largest decrease, once per round trip.
    fn on_loss(&mut self, now: f64) {
        if now - self.last_decrease < self.last_rtt {
            return self.taken.take("loss within a round trip");
        }
        self.last_decrease = now;
        self.window = self.bound(self.window * 0.5);
        if let Some((reference, _)) = &mut self.reference {
            *reference = reference.min(self.window);
        }
        self.taken.take("loss");
    }

    /// The rate in bit/s of a window below one packet: one with its header in so many round trips.
    fn rate(&self) -> f64 {
        1048.0 * 8e12 * self.window / self.last_rtt
    }
}

fn compare(seed: u64, change: impl FnOnce(&mut SwiftParameters), taken: &mut Branches) {
    let mut parameters = SwiftParameters::default();
    let ends = [parameters.fs_min_window, parameters.fs_max_window];
    assert_eq!(ends, [0.1, 50.0], "Table 3.1");
    change(&mut parameters);
    let network = star();
    let mut real = Swift::new(&parameters, &network);
    let mut model = Model::new(&parameters);
    let mut acks = Acks::new(seed, 1000, network.base_rtt);
    for step in 0..20_000 {
        let allowance = real.allowance();
        assert_window(allowance, model.window * 1000.0, (seed, step));
        if model.window < 1.0 {
            model.taken.take("below one packet");
            assert_rate(allowance, model.rate(), (seed, step));
        } else {
            assert_eq!(allowance.rate, None, "{seed} {step}");
        }
        let ack = acks.next(model.window * 1000.0);
        real.on_ack(&ack);
        model.on_ack(&ack);
        if let Some(loss) = acks.loss(0.003) {
            real.on_loss(&loss);
            model.on_loss(loss.now.as_ps() as f64);
        }
    }
    taken.add(&model.taken);
}

#[test]
fn windows_are_those_of_the_paper() {
    let mut taken = Branches::default();
    for seed in 0..4 {
        compare(seed, |_| {}, &mut taken);
    }
    compare(4, |p| p.flow_scaling = false, &mut taken);
    let change = |p: &mut SwiftParameters| {
        p.rate_ai = Some(Rate::from_gbps(10));
        p.max_window = Some(RelativeSize::percent_of_bdp(100));
    };
    compare(5, change, &mut taken);
    let change = |p: &mut SwiftParameters| {
        p.fs_range = Some(Span::from_us(8));
        p.fs_min_window = 0.5;
        p.fs_max_window = 100.0;
    };
    compare(6, change, &mut taken);
    taken.assert_all(
        "all of flow scaling, below one packet, decrease, decrease once per round trip, flow scaling, increase per \
         packet, increase per window, largest decrease, largest window, loss, loss within a round trip, no flow \
         scaling, smallest window",
    );
}

#[test]
fn windows_with_variable_increase_and_sampling_frequency() {
    let mut taken = Branches::default();
    for seed in 10..17 {
        let change = |p: &mut SwiftParameters| {
            // Flow scaling is off with the other two in the figures (§4.3.2).
            p.flow_scaling = seed >= 14;
            p.reference_window = true;
            p.increase.variable_increase = seed % 3 != 0;
            p.sampling.sampling_acks = (seed % 3 != 1).then_some(if seed < 13 { 30 } else { 5 });
            p.max_window = (seed % 2 == 0).then_some(RelativeSize::percent_of_bdp(100));
        };
        compare(seed, change, &mut taken);
    }
    taken.assert_all(
        "below one packet, dampener falls, dampener reset, decrease, decrease waits for samples, decrease within a \
         round trip, flow scaling, full bank, increase, largest decrease, largest window, loss, loss within a round trip, no flow \
         scaling, tokens",
    );
}

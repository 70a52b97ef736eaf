//! HPCC (SIGCOMM 2019, Algorithm 1) as in its artifact, with variable additive increase and Sampling Frequency.
//!
//! Decisions on open points: the rate is bounded by a least rate and the line rate, and the window is the rate times the base round trip;
//! the first acknowledgement is recorded only; VAI measures the longest queue of any hop; losses change nothing.

use super::fairness::{Sampling, VariableIncrease};
use super::{Acks, Branches, assert_rate, assert_window};
use clearway_transport::congestion::telemetry::Hop;
use clearway_transport::congestion::{
    AckSample, BaseRtt, CongestionControl, ControllerDefinition, Hpcc, HpccParameters,
};
use clearway_transport::testing::network;
use clearway_units::{Rate, Span, Time};

/// The base round trip: a bandwidth-delay product of 153 KB at 100 Gb/s.
const T: Span = Span::from_ns(12_240);
const LINE: f64 = 100e9;

/// Rates are in bit/s, times in picoseconds.
struct Model {
    rate_ai: f64,
    fast_react: bool,
    rate: f64,
    reference: f64,
    utilisation: f64,
    inc_stage: u32,
    previous: Vec<Hop>,
    sampling: Sampling,
    variable: Option<VariableIncrease>,
    taken: Branches,
}

impl Model {
    fn on_ack(&mut self, ack: &AckSample<'_>) {
        if self.previous.is_empty() {
            self.previous = ack.hops.to_vec();
            self.sampling.last_update = Some(ack.sent());
            if let Some(variable) = &mut self.variable {
                variable.end_round_trip(ack, &mut self.taken);
            }
            return;
        }
        self.measure(ack.hops);
        let excess = self.utilisation / 0.95;
        let mut step = self.rate_ai;
        if let Some(variable) = &mut self.variable {
            let queue = ack.hops.iter().map(|hop| hop.queue).max().expect("hops");
            variable.observe(queue.into(), excess >= 1.0);
            step *= variable.factor();
        }
        let (rate, stage) = if excess >= 1.0 || self.inc_stage >= 5 {
            self.taken.either(
                excess >= 1.0,
                "multiplicative",
                "multiplicative after five steps",
            );
            (self.reference / excess + step, 0)
        } else {
            self.taken.take("additive");
            (self.reference + step, self.inc_stage + 1)
        };
        self.taken.take_if(rate > LINE, "line rate");
        self.taken.take_if(rate < 100e6, "least rate");
        let rate = rate.clamp(100e6, LINE);
        let decreases = rate < self.reference;
        let changes = self.sampling.changes(decreases, ack, &mut self.taken);
        if changes {
            (self.reference, self.inc_stage) = (rate, stage);
            if let Some(variable) = &mut self.variable {
                variable.spend();
            }
        }
        if changes || self.fast_react {
            self.rate = rate;
        }
        if let Some(variable) = &mut self.variable {
            variable.end_round_trip(ack, &mut self.taken);
        }
    }

    /// The utilisation of the busiest hop, filtered over a base round trip.
    fn measure(&mut self, hops: &[Hop]) {
        let base = T.as_ps() as f64;
        let (mut best, mut tau) = (0.0, 0.0);
        for (hop, before) in hops.iter().zip(&self.previous) {
            let elapsed = (hop.time.as_ps() - before.time.as_ps()) as f64;
            let capacity = hop.rate.as_bps() as f64 / 8e12;
            let sent = f64::from(hop.sent.wrapping_sub(before.sent)) / elapsed;
            let queue = f64::from(hop.queue.min(before.queue));
            let u = sent / capacity + queue / (capacity * base);
            if u > best {
                (best, tau) = (u, elapsed);
            }
        }
        self.previous = hops.to_vec();
        self.taken.take_if(tau > base, "longer than a round trip");
        let weight = tau.min(base) / base;
        self.utilisation = (1.0 - weight) * self.utilisation + weight * best;
    }
}

/// Ports of a path, whose load follows the congestion of the acknowledgements.
struct Ports(Vec<Hop>);

impl Ports {
    fn next(&mut self, acks: &mut Acks) -> &[Hop] {
        // Up to five bandwidth-delay products of queue, in the worst episode.
        let fill = acks.conditions[0];
        let busy = [0.2, 0.7, 1.0][(acks.conditions[2] * 2.0) as usize];
        for hop in &mut self.0 {
            let elapsed = 1000 + acks.span(acks.conditions[1], 0.0);
            let bytes = hop.rate.bytes_in(Span::from_ps(elapsed)).as_f64() * busy;
            hop.time += Span::from_ps(elapsed);
            hop.sent = hop
                .sent
                .wrapping_add((bytes * acks.random.unit().sqrt()) as u32);
            hop.queue = (fill * 153_000.0 * acks.random.unit()) as u32;
        }
        &self.0
    }
}

fn compare(seed: u64, change: impl FnOnce(&mut HpccParameters), taken: &mut Branches) {
    let mut parameters = HpccParameters {
        base_rtt: BaseRtt::Fixed(T),
        ..Default::default()
    };
    change(&mut parameters);
    let mut real = Hpcc::new(
        &parameters,
        &network(Rate::from_gbps(100), Span::from_us(12)),
    );
    let mut model = Model {
        // Table 3.1.
        rate_ai: parameters.rate_ai.map_or(50e6, |rate| rate.as_bps() as f64),
        fast_react: parameters.fast_react,
        rate: LINE,
        reference: LINE,
        utilisation: 1.0,
        inc_stage: 0,
        previous: Vec::new(),
        sampling: Sampling::new(parameters.sampling.sampling_acks),
        variable: parameters
            .increase
            .variable_increase
            .then(|| VariableIncrease::new(50e3, 1e3)),
        taken: Branches::default(),
    };
    assert!(real.uses_telemetry());
    let mut acks = Acks::new(seed, 1000, T);
    // Byte counters wrap on the way.
    let hop = |gbps| Hop {
        time: Time::from_us(1),
        rate: Rate::from_gbps(gbps),
        sent: u32::MAX - 1_000_000,
        queue: 0,
    };
    let mut ports = Ports([400, 100, 400].map(hop).to_vec());
    for step in 0..20_000 {
        let window = model.rate * T.as_ps() as f64 / 8e12;
        assert_rate(real.allowance(), model.rate, (seed, step));
        assert_window(real.allowance(), window, (seed, step));
        let ack = acks.next(window);
        let ack = AckSample {
            hops: ports.next(&mut acks),
            ..ack
        };
        real.on_ack(&ack);
        if let Some(loss) = acks.loss(0.01) {
            real.on_loss(&loss);
        }
        model.on_ack(&ack);
    }
    taken.add(&model.taken);
}

const PLAIN: &str = "additive, increase, least rate, line rate, longer than a round trip, multiplicative, \
                     multiplicative after five steps";

#[test]
fn rates_are_those_of_the_paper() {
    let mut taken = Branches::default();
    for seed in 0..4 {
        compare(seed, |p| p.fast_react = seed != 3, &mut taken);
    }
    compare(4, |p| p.rate_ai = Some(Rate::from_gbps(1)), &mut taken);
    taken.assert_all(PLAIN);
}

#[test]
fn rates_with_variable_increase_and_sampling_frequency() {
    let mut taken = Branches::default();
    for seed in 10..14 {
        let change = |p: &mut HpccParameters| {
            p.increase.variable_increase = seed != 11;
            p.sampling.sampling_acks = (seed != 12).then_some(30);
        };
        compare(seed, change, &mut taken);
    }
    let own = "dampener falls, dampener reset, decrease waits for samples, decrease within a round trip, full bank, tokens";
    taken.assert_all(&format!("{PLAIN}, {own}"));
}

//! STrack's congestion controller: Algorithms 1, 2 and 4 and Table 1 of the paper (arXiv 2407.15266).
//!
//! Decisions on open points of the paper: the target is the network's propagation round trip, which also scales the gains, while the base
//! round trip of Algorithm 1 is the flow's least; a decrease needs a mark, except in the variant as printed; increments are for newly
//! acknowledged packets; the achieved bandwidth-delay product counts only if it is above zero; a timeout takes the lost bytes from the
//! window.

use super::{Acks, Branches, assert_window};
use clearway_transport::congestion::{
    AckSample, CongestionControl, ControllerDefinition, LossCause, LossSample, NetworkFacts,
    Strack, StrackParameters,
};
use clearway_transport::testing::network;
use clearway_units::{Rate, RelativeSize, Span, Time};

/// Times are in picoseconds, windows in bytes.
#[derive(Default)]
struct Model {
    mtu: f64,
    max_cwnd: f64,
    /// False for the third branch of Algorithm 4 as printed.
    decrease_needs_mark: bool,
    target: f64,
    alpha: f64,
    beta: f64,
    eta: f64,
    cwnd: f64,
    base_rtt: f64,
    avg_delay: f64,
    last_decrease: f64,
    last_selfai: f64,
    rx_count: f64,
    rx_clear: f64,
    achieved_bdp: f64,
    last_ack: f64,
    taken: Branches,
}

impl Model {
    fn new(network: &NetworkFacts, max_bdp: f64, decrease_needs_mark: bool) -> Self {
        let net_base_rtt = network.propagation_rtt.as_ps() as f64;
        let bdp = network.line_rate.as_bps() as f64 / 8.0 * net_base_rtt / 1e12;
        let bdp_sf = bdp / 150_000.0; // 100 Gb/s × 12 us
        let delay_sf = net_base_rtt / 12e6;
        let max_cwnd = max_bdp * network.bdp.as_f64();
        Self {
            mtu: network.payload.into(),
            max_cwnd,
            decrease_needs_mark,
            target: net_base_rtt,
            alpha: 4.0 * bdp_sf * delay_sf / net_base_rtt,
            beta: 5.0 * bdp_sf,
            eta: 0.15 * bdp_sf,
            cwnd: max_cwnd,
            base_rtt: net_base_rtt,
            last_ack: f64::NEG_INFINITY,
            ..Self::default()
        }
    }

    /// The flow sends its first packet, or again after a pause. A short pause does not end the measurement.
    fn on_restart(&mut self, now: Time) {
        let now = now.as_ps() as f64;
        if now - self.last_ack > self.base_rtt + self.target {
            (self.rx_count, self.achieved_bdp, self.rx_clear) = (0.0, 0.0, now);
            self.taken.take("long pause");
        } else {
            self.taken.take("short pause");
        }
    }

    /// Algorithm 1.
    fn on_ack(&mut self, ack: &AckSample<'_>) {
        let now = ack.now.as_ps() as f64;
        let rtt = ack.rtt.as_ps() as f64;
        if rtt < self.base_rtt {
            self.base_rtt = rtt;
            self.taken.take("shorter base round trip");
        }
        let acked = if ack.probe { 0.0 } else { ack.acked.as_f64() };
        self.update_achieved_bdp(now, acked);
        if ack.probe {
            self.taken.take("probe");
        } else {
            self.adjust_cwnd(now, ack.ecn, rtt - self.base_rtt, acked);
        }
        self.last_ack = now;
    }

    /// Algorithm 2.
    fn update_achieved_bdp(&mut self, now: f64, acked: f64) {
        self.rx_count += acked;
        if now - self.rx_clear > self.base_rtt + self.target {
            self.achieved_bdp = self.rx_count;
            self.rx_count = 0.0;
            self.rx_clear = now;
        }
    }

    /// Algorithm 4.
    fn adjust_cwnd(&mut self, now: f64, ecn: bool, delay: f64, acked: f64) {
        let target_qhigh = 3.0 * self.target;
        let can_decrease = now - self.last_decrease > self.base_rtt;
        let can_fairness_shuffle = now - self.last_selfai > self.base_rtt;
        self.avg_delay = self.avg_delay * (1.0 - 0.125) + 0.125 * delay;
        let excess = (self.avg_delay - self.target) / self.avg_delay;
        let packets = acked / self.mtu;
        let mut cwnd = self.cwnd / self.mtu;
        if !ecn && delay > target_qhigh {
            cwnd += self.beta / cwnd * packets;
            self.taken.take("unmarked beyond the high target");
        } else if !ecn && delay < self.target {
            cwnd += self.alpha * (self.target - delay) / cwnd * packets;
            self.taken.take("unmarked below the target");
        } else if (ecn || !self.decrease_needs_mark) && can_decrease && self.avg_delay > self.target
        {
            if !ecn {
                self.taken.take("unmarked decrease");
            }
            if delay > target_qhigh
                && self.achieved_bdp > 0.0
                && self.achieved_bdp < self.max_cwnd / 8.0
            {
                cwnd = self.achieved_bdp / self.mtu;
                self.last_decrease = now;
                self.taken.take("fall to the achieved product");
            } else if delay > self.target {
                cwnd *= (1.0 - 0.8 * excess).max(0.5);
                self.last_decrease = now;
                self.taken.either(
                    0.8 * excess < 0.5,
                    "multiplicative decrease",
                    "largest decrease",
                );
            } else {
                self.taken.take("only the average above the target");
            }
        } else {
            self.taken.either(
                ecn,
                "marked without decrease",
                "unmarked between the targets",
            );
        }
        self.taken.take_if(cwnd < 1.0, "below one packet");
        if can_fairness_shuffle {
            cwnd += self.eta;
            self.last_selfai = now;
            self.taken.take("fairness");
        }
        self.cwnd = (cwnd * self.mtu).clamp(self.mtu, self.max_cwnd);
        self.taken.take(match self.cwnd {
            w if w == self.mtu => "smallest window",
            w if w == self.max_cwnd => "largest window",
            _ => "window between",
        });
    }

    fn on_loss(&mut self, loss: &LossSample) {
        if loss.cause == LossCause::Timeout {
            self.cwnd = (self.cwnd - loss.lost.as_f64()).max(self.mtu);
            self.taken.take("timeout");
        } else {
            self.taken.take("loss without timeout");
        }
    }
}

/// Feeds both with the same sequence, of acknowledgements, probes, losses and pauses.
fn compare(seed: u64, gbps: u64, percent: u64, needs_mark: bool, taken: &mut Branches) {
    let network = network(Rate::from_gbps(gbps), Span::from_us(8));
    let parameters = StrackParameters {
        max_window: RelativeSize::percent_of_bdp(percent),
        decrease_requires_ecn: needs_mark,
        ..Default::default()
    };
    let mut real = Strack::new(&parameters, &network);
    let mut model = Model::new(&network, percent as f64 / 100.0, needs_mark);
    // On a path shorter than the longest, from a second sequence on.
    let mut acks = Acks::new(
        seed,
        network.payload,
        Span::from_us(if seed.is_multiple_of(2) { 8 } else { 5 }),
    );
    real.on_restart(Time::from_ps(1));
    model.on_restart(Time::from_ps(1));
    assert_window(real.allowance(), model.cwnd, "the start");
    for step in 0..20_000 {
        let mut ack = acks.next(model.cwnd);
        ack.probe = acks.random.chance(0.01);
        if let Some(loss) = acks.loss(0.004) {
            real.on_loss(&loss);
            model.on_loss(&loss);
        } else if acks.random.chance(0.001) {
            // A pause, then a round trip until the first acknowledgement.
            let pause = (60e6 * acks.random.unit()) as u64;
            let start = Time::from_ps(acks.now + pause);
            real.on_restart(start);
            model.on_restart(start);
            acks.now += pause + acks.base_rtt;
            ack.now = Time::from_ps(acks.now);
        }
        real.on_ack(&ack);
        model.on_ack(&ack);
        assert_window(real.allowance(), model.cwnd, (seed, step, ack));
    }
    assert!(real.allowance().rate.is_none(), "STrack has a window alone");
    taken.add(&model.taken);
}

#[test]
fn windows_are_those_of_the_paper() {
    let mut taken = Branches::default();
    let settings = [
        (400, 125, true),
        (100, 100, true),
        (800, 150, true),
        (200, 125, true),
        (400, 125, false),
    ];
    for (seed, (gbps, percent, needs_mark)) in settings.into_iter().enumerate() {
        compare(seed as u64, gbps, percent, needs_mark, &mut taken);
    }
    taken.assert_all(
        "only the average above the target, below one packet, fairness, fall to the achieved product, largest \
         decrease, largest window, long pause, loss without timeout, marked without decrease, multiplicative decrease, \
         probe, short pause, shorter base round trip, smallest window, timeout, unmarked below the target, unmarked \
         decrease, unmarked between the targets, unmarked beyond the high target, window between",
    );
}

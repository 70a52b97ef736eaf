//! Reaction points of DCQCN: with timer and byte counter, as in its paper (SIGCOMM 2015), and with timers alone, as in the HPCC artifact.
//!
//! Decisions on open points: timers and byte counter run from the first notification on; the cut comes before the update of alpha in the
//! paper's variant, after it in the artifact's.

use super::{Branches, assert_rate};
use clearway_transport::congestion::{
    AckSample, CongestionControl, ControllerDefinition, Dcqcn, DcqcnParameters, DcqcnTimer,
    DcqcnTimerParameters,
};
use clearway_transport::testing::network;
use clearway_units::{Bytes, Purpose, RandomStream, Rate, Span, Time};

const LINE: f64 = 40e9;
const MIN: f64 = 100e6;
const G: f64 = 1.0 / 256.0;
const US: u64 = 1_000_000;

/// The variant with a byte counter. Rates are in bit/s, times in picoseconds.
#[derive(Default)]
struct Paper {
    byte_counter: u64,
    hai_multiplies: bool,
    current: f64,
    target: f64,
    alpha: f64,
    timer_steps: u32,
    byte_steps: u32,
    bytes: u64,
    next_alpha: u64,
    next_increase: u64,
    taken: Branches,
}

impl Paper {
    fn new(byte_counter: u64, hai_multiplies: bool) -> Self {
        Self {
            byte_counter,
            hai_multiplies,
            current: LINE,
            target: LINE,
            alpha: 1.0,
            next_alpha: u64::MAX,
            next_increase: u64::MAX,
            ..Self::default()
        }
    }

    fn on_notification(&mut self, now: u64) {
        self.target = self.current;
        self.current = (self.current * (1.0 - self.alpha / 2.0)).max(MIN);
        self.alpha = (1.0 - G) * self.alpha + G;
        (self.timer_steps, self.byte_steps, self.bytes) = (0, 0, 0);
        (self.next_alpha, self.next_increase) = (now + 55 * US, now + 55 * US);
        self.taken.take("cut");
        self.taken.take_if(self.current == MIN, "least rate");
    }

    fn on_sent(&mut self, bytes: u64) {
        if self.next_alpha == u64::MAX {
            return self.taken.take("sent before the first notification");
        }
        self.bytes += bytes;
        while self.bytes >= self.byte_counter {
            self.bytes -= self.byte_counter;
            self.byte_steps += 1;
            self.taken.take("byte counter");
            self.increase();
        }
    }

    /// Fires the timers that are due up to an instant.
    fn advance(&mut self, now: u64) {
        while self.next_alpha.min(self.next_increase) <= now {
            if self.next_alpha <= self.next_increase {
                self.alpha *= 1.0 - G;
                self.next_alpha += 55 * US;
            } else {
                self.timer_steps += 1;
                self.next_increase += 55 * US;
                self.increase();
            }
        }
    }

    fn increase(&mut self) {
        let least = self.timer_steps.min(self.byte_steps);
        if self.timer_steps.max(self.byte_steps) < 5 {
            self.taken.take("fast recovery");
        } else if least > 5 {
            let steps = if self.hai_multiplies { least - 5 } else { 1 };
            self.target += f64::from(steps) * 400e6;
            self.taken.take("hyper increase");
        } else {
            self.target += 40e6;
            self.taken.take("additive increase");
        }
        self.taken.take_if(self.target > LINE, "line rate");
        self.target = self.target.min(LINE);
        self.current = f64::midpoint(self.current, self.target);
    }
}

/// The variant of timers alone.
#[derive(Default)]
struct Artifact {
    clamp_target: bool,
    current: f64,
    target: f64,
    alpha: f64,
    stage: u32,
    alpha_cnp: bool,
    decrease_cnp: bool,
    next_alpha: u64,
    next_decrease: u64,
    next_increase: u64,
    taken: Branches,
}

impl Artifact {
    fn on_mark(&mut self, now: u64) {
        (self.alpha_cnp, self.decrease_cnp) = (true, true);
        if self.next_alpha == u64::MAX {
            self.alpha_cnp = false;
            self.next_alpha = now + US;
            self.next_decrease = now + 4 * US + 1000;
        }
    }

    fn advance(&mut self, now: u64) {
        loop {
            let next = self
                .next_alpha
                .min(self.next_decrease)
                .min(self.next_increase);
            if next > now || next == u64::MAX {
                return;
            } else if next == self.next_alpha {
                self.next_alpha += US;
                let marked = std::mem::take(&mut self.alpha_cnp);
                self.alpha = (1.0 - G) * self.alpha + if marked { G } else { 0.0 };
                self.taken
                    .take(if marked { "alpha up" } else { "alpha down" });
            } else if next == self.next_decrease {
                self.next_decrease += 4 * US;
                if std::mem::take(&mut self.decrease_cnp) {
                    self.decrease(next);
                }
            } else {
                self.next_increase += 900 * US;
                self.increase();
            }
        }
    }

    fn decrease(&mut self, now: u64) {
        if self.clamp_target || self.stage != 0 {
            self.target = self.current;
            self.taken.take("target moved");
        } else {
            self.taken.take("target kept");
        }
        self.current = (self.current * (1.0 - self.alpha / 2.0)).max(MIN);
        self.stage = 0;
        self.next_increase = now + 900 * US;
    }

    fn increase(&mut self) {
        let (step, name) = match self.stage {
            0 => (0.0, "recovery"),
            1 => (50e6, "additive increase"),
            _ => (100e6, "hyper increase"),
        };
        self.taken.take(name);
        self.target = (self.target + step).min(LINE);
        self.current = f64::midpoint(self.current, self.target);
        self.stage += 1;
    }
}

/// Calls the controller at each of its deadlines, or once for all of them, as for a flow that had nothing to send.
fn advance(real: &mut impl CongestionControl, now: u64, late: bool) {
    while !late && real.deadline().as_ps() <= now {
        real.on_deadline(real.deadline());
    }
    real.on_deadline(Time::from_ps(now));
}

/// Mean time between events, and the chance of a notification at each, until conditions change.
fn conditions(random: &mut RandomStream) -> (u32, f64) {
    let gap = [2, 20, 60, 200][random.below(4) as usize] * US as u32;
    (gap, [0.0, 0.001, 0.1, 0.8][random.below(4) as usize])
}

fn compare_with_paper(seed: u64, byte_counter: u64, hai_multiplies: bool, taken: &mut Branches) {
    let parameters = DcqcnParameters {
        byte_counter: Some(Bytes::new(byte_counter)),
        hai_multiplies,
        ..Default::default()
    };
    let mut real = Dcqcn::new(&parameters, &network(Rate::from_gbps(40), Span::from_us(8)));
    let mut model = Paper::new(byte_counter, hai_multiplies);
    let mut random = RandomStream::new(seed, Purpose::Test, 2);
    let (mut now, mut gap, mut notified) = (0, US as u32, 0.0);
    for step in 0..50_000 {
        if step % 250 == 249 {
            (gap, notified) = conditions(&mut random);
        }
        now += u64::from(1 + random.below(2 * gap));
        advance(&mut real, now, random.chance(0.3));
        model.advance(now);
        assert_rate(real.allowance(), model.current, (seed, step, "timers"));
        if random.chance(notified) {
            real.on_notification(Time::from_ps(now));
            model.on_notification(now);
        } else {
            let bytes = u64::from(random.below(100_000));
            real.on_sent(Time::from_ps(now), Bytes::new(bytes));
            model.on_sent(bytes);
        }
        assert_rate(real.allowance(), model.current, (seed, step));
        assert_eq!(real.allowance().window, f64::INFINITY);
    }
    taken.add(&model.taken);
}

fn compare_with_artifact(seed: u64, clamp_target: bool, taken: &mut Branches) {
    let parameters = DcqcnTimerParameters {
        clamp_target,
        ..Default::default()
    };
    let network = network(Rate::from_gbps(40), Span::from_us(8));
    let mut real = DcqcnTimer::new(&parameters, &network);
    let mut model = Artifact {
        clamp_target,
        current: LINE,
        target: LINE,
        alpha: 1.0,
        next_alpha: u64::MAX,
        next_decrease: u64::MAX,
        next_increase: u64::MAX,
        ..Artifact::default()
    };
    let mut random = RandomStream::new(seed, Purpose::Test, 3);
    let (mut now, mut gap, mut marked) = (0, US as u32, 0.0);
    for step in 0..50_000 {
        if step % 250 == 249 {
            (gap, marked) = conditions(&mut random);
        }
        now += u64::from(1 + random.below(2 * gap));
        advance(&mut real, now, random.chance(0.3));
        model.advance(now);
        let ecn = random.chance(marked);
        real.on_ack(&AckSample {
            now: Time::from_ps(now),
            rtt: Span::from_us(9),
            ecn,
            acked: Bytes::new(4096),
            in_flight: Bytes::new(40_000),
            probe: false,
            delivered: Bytes::new(4096 * (1 + step)),
            hops: &[],
        });
        if ecn {
            model.on_mark(now);
        }
        assert_rate(real.allowance(), model.current, (seed, step));
        let window = network.bdp.as_f64() * model.current / LINE;
        super::assert_window(real.allowance(), window, (seed, step));
    }
    taken.add(&model.taken);
}

#[test]
fn rates_are_those_of_the_paper() {
    let mut taken = Branches::default();
    for (seed, (bytes, multiplies)) in [
        (150_000, false),
        (1_000_000, false),
        (150_000, true),
        (30_000, true),
    ]
    .into_iter()
    .enumerate()
    {
        compare_with_paper(seed as u64, bytes, multiplies, &mut taken);
    }
    taken.assert_all(
        "additive increase, byte counter, cut, fast recovery, hyper increase, least rate, line rate, sent before the \
         first notification",
    );
}

#[test]
fn rates_are_those_of_the_artifact() {
    let mut taken = Branches::default();
    for (seed, clamp_target) in [false, false, true].into_iter().enumerate() {
        compare_with_artifact(seed as u64, clamp_target, &mut taken);
    }
    taken.assert_all(
        "additive increase, alpha down, alpha up, hyper increase, recovery, target kept, target moved",
    );
}

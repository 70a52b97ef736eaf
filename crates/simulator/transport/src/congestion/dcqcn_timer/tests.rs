use super::*;
use crate::testing::network;
use clearway_units::{Bytes, Purpose, RandomStream};

const G: f64 = 1.0 / 256.0;

fn controller(change: impl FnOnce(&mut DcqcnTimerParameters)) -> DcqcnTimer {
    let mut parameters = DcqcnTimerParameters::default();
    change(&mut parameters);
    let facts = network(Rate::from_gbps(100), Span::from_us(8));
    DcqcnTimer::new(&parameters, &facts)
}

fn ack(now: Time, ecn: bool) -> AckSample<'static> {
    AckSample {
        now,
        rtt: Span::from_us(9),
        ecn,
        acked: Bytes::new(4096),
        in_flight: Bytes::new(100_000),
        probe: false,
        delivered: Bytes::ZERO,
        hops: &[],
    }
}

#[test]
fn unmarked_acknowledgements_start_nothing() {
    let mut controller = controller(|_| {});
    controller.on_ack(&ack(Time::from_us(5), false));
    assert!(controller.deadline().is_never());
    assert_eq!(controller.rate, 100e9);
}

#[test]
fn the_first_cut_comes_after_its_timer_and_a_nanosecond() {
    let mut controller = controller(|_| {});
    controller.on_ack(&ack(Time::from_us(10), true));
    let due = Time::from_us(14) + Span::from_ns(1);
    assert_eq!((controller.deadline(), controller.rate), (due, 100e9));
    controller.on_deadline(due);
    // Alpha has been updated four times without a mark: the first one counts only for the start.
    let alpha = (1.0 - G) * ((1.0 - G) * ((1.0 - G) * (1.0 - G)));
    assert_eq!(controller.alpha, alpha);
    assert_eq!(controller.rate, 100e9 * (1.0 - alpha / 2.0));
    // The stage was zero, so the target stays.
    assert_eq!(controller.target, 100e9);
    assert_eq!(controller.deadline(), due + Span::from_us(900));
}

#[test]
fn cuts_in_a_row_keep_the_first_target_unless_clamped() {
    let targets = |clamp_target| {
        let mut controller = controller(|p| p.clamp_target = clamp_target);
        for us in (0..40).step_by(2) {
            controller.on_deadline(Time::from_us(us));
            controller.on_ack(&ack(Time::from_us(us), true));
        }
        (controller.target, controller.rate)
    };
    let ((free, _), (clamped, rate)) = (targets(false), targets(true));
    assert_eq!(free, 100e9);
    assert!(clamped < 1e9 && clamped > rate, "{clamped} {rate}");
}

#[test]
fn stages_are_recovery_additive_hyper() {
    let mut controller = controller(|_| {});
    for us in (0..20).step_by(2) {
        controller.on_deadline(Time::from_us(us));
        controller.on_ack(&ack(Time::from_us(us), true));
    }
    controller.on_deadline(Time::from_us(30));
    controller.target = 1e9;
    let mut targets = Vec::new();
    for _ in 0..4 {
        let due = controller.deadline();
        let expected = (controller.rate + controller.target) / 2.0;
        controller.on_deadline(due);
        let step = controller.target - targets.last().map_or(1e9, |(target, _)| *target);
        assert_eq!(controller.rate, expected + step / 2.0);
        targets.push((controller.target, controller.stage));
    }
    assert_eq!(targets, [(1e9, 1), (1.05e9, 2), (1.15e9, 3), (1.25e9, 4)]);
}

#[test]
fn an_idle_flow_wakes_nobody_once_its_rate_is_back() {
    let mut controller = controller(|_| {});
    controller.on_ack(&ack(Time::ZERO, true));
    let mut wakes = 0;
    while !controller.deadline().is_never() {
        controller.on_deadline(controller.deadline());
        wakes += 1;
    }
    assert_eq!(controller.rate, 100e9);
    assert!(wakes < 70, "{wakes}");
}

/// The same rules with timers that fire one by one, in steps of 100 ns; the cut's timer a step later, as its nanosecond says.
struct Ticking {
    controller: DcqcnTimer,
    started: Option<u64>,
    increase_at: u64,
}

impl Ticking {
    /// All that happens at step `step`: the acknowledgement, then timers.
    fn at(&mut self, step: u64, marked: bool) {
        let c = &mut self.controller;
        if marked {
            if self.started.is_none() {
                self.started = Some(step);
                c.cut_flag = true;
            } else {
                (c.alpha_flag, c.cut_flag) = (true, true);
            }
        }
        let Some(started) = self.started else {
            return;
        };
        let age = step - started;
        if age > 0 && age.is_multiple_of(10) {
            let new = if c.alpha_flag { c.g } else { 0.0 };
            c.alpha = (1.0 - c.g) * c.alpha + new;
            c.alpha_flag = false;
        }
        // A nanosecond after a whole period: before anything that comes with the next step.
        if age > 0 && age.is_multiple_of(40) && c.cut_flag {
            c.cut_flag = false;
            if c.clamp_target || c.stage != 0 {
                c.target = c.rate;
            }
            c.rate = (c.rate * (1.0 - c.alpha / 2.0)).max(c.limits.min);
            c.stage = 0;
            self.increase_at = step + 9000;
        } else if step == self.increase_at {
            self.increase_at += 9000;
            c.increase();
        }
    }
}

#[test]
fn lazy_timers_do_what_ticking_ones_do() {
    for seed in 0..12 {
        let mut random = RandomStream::new(seed, Purpose::Test, 0);
        let clamp_target = seed % 2 == 0;
        let mut lazy = controller(|p| p.clamp_target = clamp_target);
        let mut ticking = Ticking {
            controller: controller(|p| p.clamp_target = clamp_target),
            started: None,
            increase_at: u64::MAX,
        };
        let mut chance = 0.01;
        for step in 0..200_000u64 {
            if step % 20_000 == 0 {
                chance = [0.1, 0.001, 0.00005, 0.0][random.below(4) as usize];
            }
            let marked = random.chance(chance);
            let now = Time::from_ps(step * 100_000);
            if marked {
                lazy.on_ack(&ack(now, true));
            }
            ticking.at(step, marked);
            // Just before the next step, so that the nanosecond of the cut's timer has passed.
            let end = now + Span::from_ns(99);
            if lazy.deadline() <= end {
                lazy.on_deadline(end);
                assert_eq!(
                    lazy.rate, ticking.controller.rate,
                    "seed {seed}, step {step}"
                );
                assert_eq!(
                    lazy.target, ticking.controller.target,
                    "seed {seed}, step {step}"
                );
            }
            if marked && step % 7 == 0 {
                lazy.update_alpha(end);
                assert_eq!(
                    lazy.alpha, ticking.controller.alpha,
                    "seed {seed}, step {step}"
                );
            }
        }
        assert_eq!(lazy.rate, ticking.controller.rate, "seed {seed}");
    }
}

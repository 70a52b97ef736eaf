use super::*;
use crate::congestion::ControllerSettings;
use crate::congestion::feedback::FeedbackSettings;
use crate::paths::SelectorSettings;
use crate::profile::{Profile, Reliability};
use crate::reliability::go_back_n::GoBackNParameters;
use crate::testing::{Bottleneck, Pair, PipeSettings, network};
use clearway_units::{Purpose, RandomStream};

const G: f64 = 1.0 / 256.0;

fn facts(gbps: u64) -> NetworkFacts {
    network(Rate::from_gbps(gbps), Span::from_us(8))
}

fn dcqcn(change: impl FnOnce(&mut DcqcnParameters)) -> Dcqcn {
    let mut parameters = DcqcnParameters::default();
    change(&mut parameters);
    Dcqcn::new(&parameters, &facts(40))
}

/// Fires all timers up to and including `us`.
fn run_to(controller: &mut Dcqcn, us: u64) {
    controller.on_deadline(Time::from_us(us));
}

#[test]
fn defaults_scale_with_the_line_rate() {
    let controller = Dcqcn::new(&DcqcnParameters::default(), &facts(400));
    assert_eq!((controller.rate_ai, controller.rate_hai), (400e6, 4e9));
    assert_eq!(controller.byte_counter, 100_000_000);
    let controller = dcqcn(|_| {});
    assert_eq!((controller.rate_ai, controller.rate_hai), (40e6, 400e6));
    assert_eq!(controller.byte_counter, 10_000_000);
    assert_eq!(controller.allowance().rate, Some(Rate::from_gbps(40)));
    assert_eq!(controller.allowance().window, f64::INFINITY);
}

#[test]
fn nothing_runs_before_the_first_notification() {
    let mut controller = dcqcn(|_| {});
    controller.on_sent(Time::from_us(1), Bytes::new(1 << 30));
    assert!(controller.deadline().is_never());
    controller.on_deadline(Time::from_us(10_000));
    assert_eq!((controller.rate, controller.byte_steps), (40e9, 0));
}

#[test]
fn alpha_follows_its_recursion_with_and_without_notifications() {
    let mut controller = dcqcn(|_| {});
    // One notification each 50 us: no decay in between.
    let mut alpha = 1.0;
    for k in 0..20 {
        controller.on_notification(Time::from_us(1 + 50 * k));
        alpha = (1.0 - G) * alpha + G;
        assert_eq!(controller.alpha, alpha);
    }
    // Then 13 silent periods of 55 us; the 14th ends with the notification, which is counted first.
    let last = 1 + 50 * 19;
    controller.on_notification(Time::from_us(last + 14 * 55));
    for _ in 0..13 {
        alpha *= 1.0 - G;
    }
    assert_eq!(controller.alpha, (1.0 - G) * alpha + G);
}

#[test]
fn the_reaction_point_of_htsim() {
    let mut controller = Dcqcn::new(
        &DcqcnParameters {
            reaction_point: ReactionPoint::Htsim,
            ..DcqcnParameters::default()
        },
        &facts(400),
    );
    assert_eq!((controller.rate_ai, controller.rate_hai), (20e9, 40e9));
    assert_eq!(controller.byte_counter, 10_000_000);
    let send = |controller: &mut Dcqcn, us| controller.on_sent(Time::from_us(us), Bytes::new(4160));
    // It decays with each packet, whenever that is sent.
    let mut alpha = 1.0;
    for us in [1, 2, 3, 100, 101] {
        send(&mut controller, us);
        alpha *= 1.0 - G;
    }
    assert_eq!(controller.alpha, alpha);
    // The cut is by half of that.
    controller.on_notification(Time::from_us(200));
    let rate = 400e9 * (1.0 - alpha / 2.0);
    assert_eq!((controller.rate, controller.target), (rate, 400e9));
    controller.on_notification(Time::from_us(210));
    let alpha = (1.0 - G) * alpha + G;
    let (rate, target) = (rate * (1.0 - alpha / 2.0), rate);
    assert_eq!((controller.rate, controller.target), (rate, target));
    // Five steps recover, the sixth adds.
    run_to(&mut controller, 210 + 5 * 55);
    assert_eq!(controller.target, target);
    run_to(&mut controller, 210 + 6 * 55);
    assert_eq!(controller.target, (target + 20e9).min(400e9));
}

/// After a round trip with 100 us in queues, tokens make the steps larger for as long as they last.
#[test]
fn tokens_enlarge_the_steps_after_recovery() {
    let changed = |variable_increase| {
        let mut controller = dcqcn(|p| {
            p.increase.token_threshold = Some(Span::from_us(10));
            p.increase.increase.bank_cap = 150.0;
            p.increase.increase.variable_increase = variable_increase;
        });
        for n in 1..=2 {
            controller.on_ack(&AckSample {
                rtt: facts(40).path.rtt + Span::from_us(100),
                ..crate::congestion::tests::ack(n, 0)
            });
        }
        controller.on_notification(Time::from_us(100));
        controller.on_notification(Time::from_us(101));
        [4, 5, 6, 7].map(|steps| {
            run_to(&mut controller, 101 + 55 * steps);
            (controller.target - 20e9) / 40e6
        })
    };
    assert_eq!(changed(false), [0.0, 1.0, 2.0, 3.0]);
    // 100 tokens, then 50, at a dampener of 10; then none.
    let (first, second) = (100.0 / 2.25, 50.0 / 2.25);
    for (step, expected) in
        changed(true)
            .into_iter()
            .zip([0.0, first, first + second, first + second + 1.0])
    {
        assert!((step - expected).abs() < 1e-6, "{step} {expected}");
    }
}

/// An acknowledgement by which so many bytes of the flow have arrived.
fn delivered(controller: &mut Dcqcn, bytes: u64) {
    controller.on_ack(&AckSample {
        now: Time::ZERO,
        delivered: Bytes::new(bytes),
        ..crate::congestion::tests::ack(1, 0)
    });
}

/// The target rate after each increase by the timer, with `bytes` of a phase of 1000 acknowledged; in additive steps above its first value.
fn steps_with(change: impl FnOnce(&mut DcqcnParameters), bytes: u64) -> Vec<f64> {
    let mut controller = dcqcn(change);
    controller.take_phase(Bytes::new(1000));
    delivered(&mut controller, bytes);
    controller.on_notification(Time::from_us(0));
    controller.on_notification(Time::from_us(1));
    let start = controller.target;
    let mut target = |step: u64| {
        run_to(&mut controller, 1 + 55 * step);
        (controller.target - start) / 40e6
    };
    (4..=7).map(&mut target).collect()
}

#[test]
fn steps_grow_with_the_phase_and_only_if_asked_for() {
    assert_eq!(steps_with(|_| {}, 500), [0.0, 1.0, 2.0, 3.0]);
    let adaptive = |p: &mut DcqcnParameters| p.phase.phase_increase = 1.0;
    assert_eq!(steps_with(adaptive, 0), [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(steps_with(adaptive, 500), [0.0, 1.5, 3.0, 4.5]);
    // A quarter of the third phase is done.
    assert_eq!(steps_with(adaptive, 2250), [0.0, 1.25, 2.5, 3.75]);
    assert_eq!(steps_with(adaptive, 3000), [0.0, 1.0, 2.0, 3.0]);
}

/// MLTCP's factor on `R_AI`: a quarter at the beginning of a phase, 1.125 at its half.
#[test]
fn steps_of_mltcp_begin_with_a_quarter() {
    let mltcp = |p: &mut DcqcnParameters| {
        p.phase.phase_increase = 1.75;
        p.phase.phase_base = 0.25;
    };
    assert_eq!(steps_with(mltcp, 0), [0.0, 0.25, 0.5, 0.75]);
    assert_eq!(steps_with(mltcp, 1500), [0.0, 1.125, 2.25, 3.375]);
    let base = |p: &mut DcqcnParameters| p.phase.phase_base = 0.25;
    assert_eq!(steps_with(base, 500), [0.0, 0.25, 0.5, 0.75]);
}

#[test]
fn hyper_steps_grow_only_if_asked_for() {
    let hyper = |phase_hyper| {
        let mut controller = dcqcn(|p| {
            p.phase.phase_increase = 1.0;
            p.phase_hyper = phase_hyper;
        });
        controller.take_phase(Bytes::new(1000));
        delivered(&mut controller, 500);
        for us in 0..8 {
            controller.on_notification(Time::from_us(us));
        }
        run_to(&mut controller, 7 + 55 * 6);
        let now = Time::from_us(7 + 55 * 6 + 1);
        controller.on_sent(now, Bytes::new(50_000_000));
        let before = controller.target;
        controller.on_sent(now, Bytes::new(10_000_000));
        controller.target - before
    };
    assert_eq!((hyper(false), hyper(true)), (400e6, 600e6));
}

#[test]
fn the_first_cut_halves_and_the_rate_has_a_floor() {
    let mut controller = dcqcn(|_| {});
    controller.on_notification(Time::from_us(10));
    assert_eq!((controller.rate, controller.target), (20e9, 40e9));
    assert_eq!(controller.deadline(), Time::from_us(65));
    controller.on_notification(Time::from_us(20));
    assert_eq!((controller.rate, controller.target), (10e9, 20e9));
    assert_eq!(controller.deadline(), Time::from_us(75));
    for us in 30..100 {
        controller.on_notification(Time::from_us(us));
    }
    assert_eq!(controller.rate, 100e6);
}

#[test]
fn five_recoveries_leave_a_thirty_second_of_the_error() {
    // Steps one to four only recover; the fifth adds the additive step, which is nothing here.
    let mut controller = dcqcn(|p| p.rate_ai = Some(Rate::from_bps(1)));
    controller.on_notification(Time::from_us(0));
    run_to(&mut controller, 5 * 55);
    assert_eq!(controller.timer_steps, 5);
    let error = (40e9 - controller.rate) / 20e9;
    assert!((error - 1.0 / 32.0).abs() < 1e-9, "{error}");
}

#[test]
fn phases_come_in_order() {
    let mut controller = dcqcn(|_| {});
    for us in 0..6 {
        controller.on_notification(Time::from_us(us));
    }
    // 625 Mb/s, and 1.25 Gb/s to recover to.
    let start = controller.target;
    assert_eq!(start, 1.25e9);
    let mut targets = Vec::new();
    for step in 1..=8 {
        run_to(&mut controller, 5 + 55 * step);
        targets.push(controller.target - start);
    }
    // By the timer alone: four recoveries, then additive increase for ever.
    assert_eq!(targets, [0.0, 0.0, 0.0, 0.0, 40e6, 80e6, 120e6, 160e6]);
    // The byte counter catches up: once both are past five, the increase is hyper.
    let now = Time::from_us(5 + 55 * 8 + 1);
    let before = controller.target;
    controller.on_sent(now, Bytes::new(50_000_000));
    assert_eq!(
        (controller.byte_steps, controller.target - before),
        (5, 200e6)
    );
    let before = controller.target;
    controller.on_sent(now, Bytes::new(9_999_999));
    assert_eq!(controller.target, before);
    controller.on_sent(now, Bytes::new(1));
    assert_eq!(
        (controller.byte_steps, controller.target - before),
        (6, 400e6)
    );
    // A notification starts all of it afresh.
    controller.on_notification(now);
    assert_eq!(
        (
            controller.timer_steps,
            controller.byte_steps,
            controller.bytes
        ),
        (0, 0, 0)
    );
}

#[test]
fn hyper_increases_may_multiply() {
    let mut controller = dcqcn(|p| p.hai_multiplies = true);
    for us in 0..8 {
        controller.on_notification(Time::from_us(us));
    }
    run_to(&mut controller, 7 + 55 * 9);
    let now = Time::from_us(7 + 55 * 9 + 1);
    controller.on_sent(now, Bytes::new(50_000_000));
    let mut gains = Vec::new();
    for _ in 0..3 {
        let before = controller.target;
        controller.on_sent(now, Bytes::new(10_000_000));
        gains.push(controller.target - before);
    }
    assert_eq!(gains, [400e6, 800e6, 1200e6]);
}

#[test]
fn a_rate_that_is_back_wakes_nobody() {
    let mut controller = dcqcn(|_| {});
    controller.on_notification(Time::ZERO);
    let mut wakes = 0;
    while !controller.deadline().is_never() {
        controller.on_deadline(controller.deadline());
        wakes += 1;
    }
    assert_eq!(controller.rate, 40e9);
    assert!(wakes < 60, "{wakes}");
    controller.on_notification(Time::from_us(100_000));
    assert!(!controller.deadline().is_never());
}

#[test]
fn windows_are_none_fixed_or_scaled() {
    let window = |limit| {
        let mut controller = dcqcn(|p| p.window = limit);
        controller.on_notification(Time::ZERO);
        (controller.allowance().window, controller.largest_window())
    };
    let bdp = facts(40).bdp.as_f64();
    assert_eq!(window(WindowLimit::None), (f64::INFINITY, f64::INFINITY));
    assert_eq!(window(WindowLimit::Fixed), (bdp, bdp));
    assert_eq!(window(WindowLimit::Scaled), (bdp / 2.0, bdp));
}

/// The same rules with timers that fire one by one, in steps of 1 us.
struct Ticking {
    controller: Dcqcn,
    rate_at: u64,
    alpha_at: u64,
}

impl Ticking {
    /// All that happens at `us`, in the order of equal times: notification, packet sent, timers.
    fn at(&mut self, us: u64, notified: bool, sent: u64) {
        let c = &mut self.controller;
        if notified {
            c.active = true;
            c.target = c.rate;
            c.rate = (c.rate * (1.0 - c.alpha / 2.0)).max(c.limits.min);
            c.alpha = (1.0 - c.g) * c.alpha + c.g;
            (c.timer_steps, c.byte_steps, c.bytes) = (0, 0, 0);
            (self.rate_at, self.alpha_at) = (us + 55, us + 55);
        }
        if c.active {
            c.bytes += sent;
            while c.bytes >= c.byte_counter {
                c.bytes -= c.byte_counter;
                c.byte_steps += 1;
                c.increase();
            }
            if us == self.rate_at {
                self.rate_at += 55;
                c.timer_steps += 1;
                c.increase();
            }
            if us == self.alpha_at {
                self.alpha_at += 55;
                c.alpha *= 1.0 - c.g;
            }
        }
    }
}

#[test]
fn lazy_timers_do_what_ticking_ones_do() {
    for seed in 0..20 {
        let mut random = RandomStream::new(seed, Purpose::Test, 0);
        let small = |p: &mut DcqcnParameters| p.byte_counter = Some(Bytes::new(100_000));
        let mut lazy = dcqcn(small);
        let mut ticking = Ticking {
            controller: dcqcn(small),
            rate_at: u64::MAX,
            alpha_at: u64::MAX,
        };
        // Notifications are now frequent and now rare, so that both long decays and settled rates occur.
        let mut chance = 0.02;
        for us in 0..40_000u64 {
            if us % 8000 == 0 {
                chance = [0.05, 0.001, 0.0002][random.below(3) as usize];
            }
            let (notified, sends) = (random.chance(chance), random.chance(0.3));
            let sent = if sends { 4160 } else { 0 };
            let now = Time::from_us(us);
            if notified {
                lazy.on_notification(now);
            }
            if sends {
                lazy.on_sent(now, Bytes::new(sent));
            }
            // The endpoint keeps deadlines, though sometimes late.
            if lazy.deadline() <= now && random.chance(0.7) {
                lazy.on_deadline(now);
            }
            ticking.at(us, notified, sent);
            if notified || (sends && lazy.deadline() > now) {
                assert_eq!(lazy.rate, ticking.controller.rate, "seed {seed}, {us} us");
                assert_eq!(
                    lazy.target, ticking.controller.target,
                    "seed {seed}, {us} us"
                );
            }
            if notified {
                assert_eq!(lazy.alpha, ticking.controller.alpha, "seed {seed}, {us} us");
            }
        }
    }
}

/// RoCEv2: go-back-N, DCQCN, one path, notifications.
fn rocev2(facts: NetworkFacts) -> Profile {
    Profile {
        network: facts,
        reliability: Reliability::GoBackN(GoBackNParameters::default()),
        controller: ControllerSettings::named("dcqcn").unwrap(),
        variants: Vec::new(),
        selector: SelectorSettings::named("single").unwrap(),
        feedback: FeedbackSettings::named("interval").unwrap(),
        scope: Default::default(),
        credit: crate::congestion::credit::CreditParameters::default(),
        strict_priority: false,
    }
}

#[test]
fn two_flows_share_a_bottleneck() {
    let facts = facts(100);
    let bottleneck = Bottleneck {
        rate: Rate::from_gbps(40),
        limit: Bytes::new(100_000_000),
        mark_from: Bytes::new(5_000),
        mark_all: Bytes::new(2_000_000),
    };
    let pipe = PipeSettings {
        bottleneck: Some(bottleneck),
        ..PipeSettings::ideal(&facts)
    };
    let mut pair = Pair::new(rocev2(facts), pipe, 1);
    let first = pair.open();
    pair.post(first, 0, Bytes::new(1 << 40));
    pair.run_until(Time::from_us(1_000));
    let second = pair.open();
    pair.post(second, 0, Bytes::new(1 << 40));
    pair.run_until(Time::from_us(50_000));
    let delivered = |pair: &Pair, flow| pair.ends[0].progress(flow).unwrap().acknowledged.as_f64();
    let before = [first, second].map(|flow| delivered(&pair, flow));
    // Marks are random, and shares wander about a half for tens of milliseconds.
    pair.run_until(Time::from_us(300_000));
    let after = [first, second].map(|flow| delivered(&pair, flow));
    let share = [after[0] - before[0], after[1] - before[1]];
    let fairness = share[0] / (share[0] + share[1]);
    assert!((0.475..0.525).contains(&fairness), "{fairness}");
    // 250 ms at 40 Gb/s are 1250 MB, headers included.
    let utilisation = (share[0] + share[1]) * 4160.0 / 4096.0 / 1250e6;
    assert!((0.9..1.001).contains(&utilisation), "{utilisation}");
    let counters = pair.counters();
    assert!(counters.notifications_received > 100);
    assert_eq!(counters.notifications_sent, counters.notifications_received);
    assert_eq!(
        (counters.retransmitted, pair.pipes[0].counters().dropped),
        (0, 0)
    );
    // At most one notification each 50 us and flow.
    assert!(counters.notifications_sent <= 2 * 6_000);
}

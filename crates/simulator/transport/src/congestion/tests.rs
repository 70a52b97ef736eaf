use super::*;
use crate::congestion::feedback::FeedbackSettings;
use crate::testing::{Pair, PipeSettings, network};
use crate::{Profile, Registry, Reliability, Scope};
use clearway_units::{Purpose, RandomStream};
use std::collections::BTreeSet;

/// A controller of another crate: wakes up every microsecond to add a packet.
struct Clock {
    window: f64,
    next: Time,
}

clearway_units::parameters! {
    /// Settings of the controller of the tests.
    pub struct ClockParameters {
        /// Time between two wake-ups.
        pub period: Span = Span::from_us(1), "period", "nowhere";
    }
}

impl CongestionControl for Clock {
    fn on_ack(&mut self, sample: &AckSample<'_>) {
        if self.next.is_never() {
            self.next = sample.now + Span::from_us(1);
        }
    }
    fn allowance(&self) -> Allowance {
        Allowance {
            window: self.window,
            rate: Some(Rate::from_gbps(100)),
        }
    }
    fn largest_window(&self) -> f64 {
        1e6
    }
    fn deadline(&self) -> Time {
        self.next
    }
    fn on_deadline(&mut self, now: Time) {
        if now >= self.next {
            self.window = (self.window + 4096.0).min(1e6);
            self.next = if self.window < 1e6 {
                now + Span::from_us(1)
            } else {
                Time::NEVER
            };
        }
    }
}

impl ControllerDefinition for Clock {
    const NAME: &'static str = "clock";
    const SUMMARY: &'static str = "adds a packet each microsecond";
    type Parameters = ClockParameters;
    fn new(_: &ClockParameters, _: &NetworkFacts) -> Self {
        Self {
            window: 4096.0,
            next: Time::NEVER,
        }
    }
}

fn registry() -> Registry {
    Registry::builtin().with_controller::<Clock>()
}

/// The acknowledgement of the `number`-th packet of 1000 bytes, with `window` packets in flight.
pub(super) fn ack(number: u64, window: u64) -> AckSample<'static> {
    AckSample {
        now: Time::from_us(number),
        rtt: Span::from_us(5),
        ecn: false,
        acked: Bytes::new(1000),
        in_flight: Bytes::new(1000 * window),
        probe: false,
        delivered: Bytes::new(1000 * number),
        hops: &[],
    }
}

fn facts() -> NetworkFacts {
    network(Rate::from_gbps(400), Span::from_us(8))
}

#[track_caller]
fn check(name: &str, controller: &Controller) {
    let window = controller.allowance().window;
    assert!(window >= 1.0, "{name}: {window}");
    assert!(window <= controller.largest_window(), "{name}: {window}");
    assert!(!window.is_nan(), "{name}");
}

/// Telemetry as no network would give it: hops come and go, counters jump, clocks stand still or run backwards.
fn disturb(hops: &mut Vec<Hop>, random: &mut RandomStream) {
    match random.below(8) {
        0 => drop(hops.pop()),
        1 => hops.clear(),
        2 | 3 if hops.len() < 9 => hops.push(Hop {
            time: Time::from_ps(random.next_u64() >> random.below(64)),
            rate: Rate::from_bps(1 + (random.next_u64() >> random.below(64)) / 2),
            sent: random.next_u32(),
            queue: u32::MAX,
        }),
        _ => {}
    }
    for hop in hops {
        match random.below(6) {
            0 => hop.time = Time::from_ps(hop.time.as_ps() / 2),
            1 => hop.queue = random.next_u32() >> random.below(32),
            2 => hop.sent = random.next_u32(),
            3 => {}
            _ => {
                let step = Span::from_ps(random.next_u64() >> (20 + random.below(44)));
                hop.time = hop.time.saturating_add(step);
                hop.sent = hop.sent.wrapping_add(random.below(100_000));
            }
        }
    }
}

#[test]
fn every_registered_controller_survives_random_acknowledgements() {
    for (name, _) in registry().controllers() {
        let mut controller = registry().controller(name).unwrap().build(&facts());
        // One that waits for the network allows nothing before.
        if controller.allocation().is_some() {
            assert_eq!(controller.allowance().window, 0.0);
            controller.on_allocation(Some(Rate::from_gbps(7)));
        }
        check(name, &controller);
        let mut random = RandomStream::new(1, Purpose::Test, 1);
        controller.take_random(RandomStream::new(1, Purpose::Test, 2));
        let mut now = Time::ZERO;
        let (mut delivered, mut hops) = (0, Vec::new());
        for _ in 0..50_000 {
            disturb(&mut hops, &mut random);
            now += Span::from_ns(u64::from(random.below(2000)));
            match random.below(100) {
                0 => controller.on_restart(now),
                1 => controller.on_loss(&LossSample {
                    now,
                    cause: LossCause::Timeout,
                    lost: Bytes::new(u64::from(random.next_u32())),
                    in_flight: Bytes::ZERO,
                }),
                2 => controller.on_loss(&LossSample {
                    now,
                    cause: LossCause::OutOfOrder,
                    lost: Bytes::new(4096),
                    in_flight: Bytes::ZERO,
                }),
                3 => controller.on_deadline(now),
                4 => controller.on_notification(now),
                5..20 => controller.on_sent(now, Bytes::new(4160)),
                _ => {
                    let acked = Bytes::new(u64::from(random.below(3)) * 4096);
                    delivered += acked.as_u64();
                    controller.on_ack(&AckSample {
                        now,
                        rtt: Span::from_ns(u64::from(random.below(60_000))),
                        ecn: random.chance(0.5),
                        acked,
                        in_flight: Bytes::new(u64::from(random.below(1_000_000))),
                        probe: random.chance(0.02),
                        delivered: Bytes::new(delivered),
                        hops: &hops,
                    });
                }
            }
            check(name, &controller);
        }
    }
}

#[test]
fn early_deadlines_change_nothing() {
    for (name, _) in registry().controllers() {
        let mut controller = registry().controller(name).unwrap().build(&facts());
        controller.on_restart(Time::from_us(1));
        controller.on_ack(&AckSample {
            now: Time::from_us(10),
            rtt: Span::from_us(9),
            ecn: false,
            acked: Bytes::new(4096),
            in_flight: Bytes::ZERO,
            probe: false,
            delivered: Bytes::ZERO,
            hops: &[],
        });
        let (allowance, deadline) = (controller.allowance(), controller.deadline());
        for _ in 0..3 {
            controller.on_deadline(Time::from_us(10));
            assert_eq!(controller.allowance(), allowance, "{name}");
            assert_eq!(controller.deadline(), deadline, "{name}");
        }
    }
}

#[test]
fn every_controller_and_selector_delivers_through_a_lossy_bottleneck_in_every_scope() {
    for (reliability, _) in Reliability::ALL {
        deliver_with_every_part(&Reliability::named(reliability).unwrap());
    }
}

fn deliver_with_every_part(reliability: &Reliability) {
    for (controller, _) in registry().controllers() {
        for (selector, _) in registry().selectors() {
            // Go-back-N takes a packet that was overtaken for a lost one.
            if selector != "single" && matches!(reliability, Reliability::GoBackN(_)) {
                continue;
            }
            for scope in Scope::ALL {
                deliver(reliability, controller, selector, *scope);
            }
        }
    }
}

/// Sends three flows through a lossy bottleneck.
fn deliver(reliability: &Reliability, controller: &str, selector: &str, scope: Scope) {
    let network = facts();
    let mut profile = Profile::strack(network);
    profile.reliability = reliability.clone();
    profile.feedback = FeedbackSettings::named("interval").unwrap();
    profile.controller = registry().controller(controller).unwrap();
    profile.selector = registry().selector(selector).unwrap();
    profile.scope.scope = scope;
    let pipe = PipeSettings {
        bottleneck: Some(crate::testing::Bottleneck {
            rate: Rate::from_gbps(200),
            limit: Bytes::new(300_000),
            mark_from: Bytes::new(50_000),
            mark_all: Bytes::new(150_000),
        }),
        data_loss: 0.002,
        ..PipeSettings::ideal(&network)
    };
    let mut pair = Pair::new(profile, pipe, 3);
    let flows = [2_000_000, 1_000_000, 1_000_000].map(|bytes| pair.send(Bytes::new(bytes)));
    pair.run_until(Time::from_us(200_000));
    for flow in flows {
        let name = format!("{controller} × {selector} × {scope}");
        assert!(pair.finished(flow).is_some(), "{name}");
        assert_eq!(pair.deliveries(flow, 0), 1, "{name}");
    }
    assert_eq!(pair.ends[0].open_senders(), 0);
}

#[test]
fn a_controller_paces_and_wakes_up() {
    let mut profile = Profile::strack(facts());
    profile.controller = ControllerSettings::custom::<Clock>();
    let mut pair = Pair::new(profile, PipeSettings::ideal(&facts()), 3);
    let flow = pair.send(Bytes::new(4_096_000));
    pair.run();
    // 1000 packets of 4160 bytes at 100 Gb/s take 332.8 us; the window opens within the first few round trips.
    let finished = pair.finished(flow).unwrap().as_us();
    assert!((340.0..380.0).contains(&finished), "{finished}");
}

#[test]
fn pacing_alone_is_exact() {
    let mut profile = Profile::strack(facts());
    let mut settings = ControllerSettings::named("constant").unwrap();
    settings
        .set("rate", &Value::Text("100Gbps".into()))
        .unwrap();
    profile.controller = settings;
    let mut pair = Pair::new(profile, PipeSettings::ideal(&facts()), 3);
    let flow = pair.send(Bytes::new(100 * 4096));
    pair.run();
    // The last of 100 packets leaves after 99 intervals of 332.8 ns and then takes 8.08448 us.
    assert_eq!(
        pair.finished(flow),
        Some(Time::from_ps(99 * 332_800 + 8_084_480))
    );
}

#[test]
fn settings_know_their_names_and_keys() {
    let registry = registry();
    assert_eq!(
        registry
            .controllers()
            .map(|(name, _)| name)
            .collect::<Vec<_>>(),
        [
            "strack",
            "constant",
            "nscc",
            "dcqcn",
            "dcqcn-timer",
            "dctcp",
            "dctcp-rate",
            "reno",
            "hpcc",
            "swift",
            "timely",
            "smartt",
            "s-perc",
            "1rc",
            "clock"
        ]
    );
    assert_eq!(registry.controller("renno"), None);
    let mut strack = registry.controller("strack").unwrap();
    strack.set("gamma", &Value::Float(0.5)).unwrap();
    assert!(strack.entries().contains(&("gamma", Value::Float(0.5))));
    assert_ne!(strack, ControllerSettings::named("strack").unwrap());
    assert_eq!(
        strack.set("gama", &Value::Float(0.5)),
        Err(SetError::UnknownKey)
    );
    assert!(strack.describe().iter().all(|info| !info.source.is_empty()));
    let custom = ControllerSettings::custom::<Clock>();
    assert_eq!(custom.clone(), custom);
    assert_eq!((custom.name(), custom.describe().len()), ("clock", 1));
}

#[test]
#[should_panic(expected = "two controllers are called `clock`")]
fn names_are_unique() {
    let _ = registry().with_controller::<Clock>();
}

#[test]
fn keys_of_one_transport_do_not_collide() {
    for (reliability, _) in Reliability::ALL {
        for (feedback, _) in Registry::builtin().feedback_rules() {
            let mut own = Reliability::named(reliability).unwrap().describe();
            own.extend(FeedbackSettings::named(feedback).unwrap().describe());
            check_keys(&own);
        }
    }
}

fn check_keys(own: &[ParameterInfo]) {
    for (controller, _) in Registry::builtin().controllers() {
        for (selector, _) in Registry::builtin().selectors() {
            let controller = ControllerSettings::named(controller).unwrap().describe();
            let selector = crate::paths::SelectorSettings::named(selector)
                .unwrap()
                .describe();
            let mut keys = BTreeSet::new();
            for info in own.iter().chain(&controller).chain(&selector) {
                assert!(keys.insert(info.key), "`{}` stands twice", info.key);
            }
        }
    }
}

/// A controller whose own deadline is always far away.
struct Patient {
    next: Time,
}

impl CongestionControl for Patient {
    fn on_ack(&mut self, sample: &AckSample<'_>) {
        self.next = sample.now + Span::from_ms(50);
    }
    fn allowance(&self) -> Allowance {
        Allowance {
            window: 100_000.0,
            rate: None,
        }
    }
    fn deadline(&self) -> Time {
        self.next
    }
    fn on_deadline(&mut self, now: Time) {
        if now >= self.next {
            self.next = Time::NEVER;
        }
    }
}

impl ControllerDefinition for Patient {
    const NAME: &'static str = "patient";
    const SUMMARY: &'static str = "wants to be called in 50 ms";
    type Parameters = ClockParameters;
    fn new(_: &ClockParameters, _: &NetworkFacts) -> Self {
        Self { next: Time::NEVER }
    }
}

#[test]
fn a_far_deadline_of_the_controller_does_not_delay_the_probe() {
    let mut profile = Profile::strack(facts());
    profile.controller = ControllerSettings::custom::<Patient>();
    let mut pair = Pair::new(profile, PipeSettings::ideal(&facts()), 3);
    let flow = pair.open();
    pair.post(flow, 0, Bytes::new(4096));
    // By now the timers of the first message have run out and only the controller's is left.
    pair.run_until(Time::from_us(1000));
    pair.pipes[0].drop_if(|number, _| number == 1);
    pair.post(flow, 1, Bytes::new(4096));
    pair.run_until(Time::from_us(1060));
    assert_eq!(pair.deliveries(flow, 1), 1);
    assert_eq!(pair.counters().lost_probe, 1);
}

/// Every sender holds one inline.
#[test]
fn controllers_keep_their_size() {
    let size = size_of::<Controller>();
    assert!(size <= 184, "{size}");
}

#[test]
fn the_largest_packet_is_data_or_a_large_control_packet() {
    let facts = network(Rate::from_gbps(100), Span::from_us(10));
    let data = facts.payload + facts.header;
    let profile = |control: u64| {
        let mut controller = ControllerSettings::named("1rc").unwrap();
        let size = Value::Text(format!("{control}B"));
        controller.set("control-size", &size).unwrap();
        Profile {
            controller,
            ..Profile::strack(facts)
        }
    };
    assert_eq!(u32::from(profile(100).largest_packet()), data);
    assert_eq!(profile(60_000).largest_packet(), 60_000);
}

//! Scopes with a controller whose rate, window and state are known, so that shares can be counted.

use crate::congestion::scope::{Scope, ScopeParameters};
use crate::congestion::{
    AckSample, Allowance, CongestionControl, ControllerDefinition, ControllerSettings,
};
use crate::congestion::{LossSample, NetworkFacts};
use crate::testing::{Pair, PipeSettings, network};
use crate::{Opening, Profile, Reliability};
use clearway_units::{
    Bytes, FlowId, HostId, MessageId, Purpose, RandomStream, Rate, Span, Time, Value,
};

const PACKET: u64 = 4096;

clearway_units::parameters! {
    /// Settings of the controller of the tests.
    pub struct CountingParameters {
        /// Nothing.
        pub unused: Span = Span::ZERO, "unused", "nowhere";
    }
}

/// A controller that allows one packet more with each acknowledgement, and checks its inputs.
struct Counting {
    window: f64,
    /// `delivered` of the last acknowledgement, and the sender of the next one.
    delivered: u64,
    senders: Vec<u64>,
}

impl CongestionControl for Counting {
    fn on_ack(&mut self, sample: &AckSample<'_>) {
        let delivered = sample.delivered.as_u64();
        assert_eq!(
            delivered,
            self.delivered + sample.acked.as_u64(),
            "a round trip of all senders cannot be told"
        );
        self.delivered = delivered;
        self.window += PACKET as f64;
    }
    fn on_loss(&mut self, _: &LossSample) {}
    fn allowance(&self) -> Allowance {
        Allowance {
            window: self.window,
            rate: None,
        }
    }
    fn largest_window(&self) -> f64 {
        1e6
    }
    fn select_sender(&mut self, sender: u64) {
        self.senders.push(sender);
    }
}

impl ControllerDefinition for Counting {
    const NAME: &'static str = "counting";
    const SUMMARY: &'static str = "a packet more with each acknowledgement";
    type Parameters = CountingParameters;
    fn new(_: &CountingParameters, _: &NetworkFacts) -> Self {
        Self {
            window: PACKET as f64,
            delivered: 0,
            senders: Vec::new(),
        }
    }
}

/// A controller with a window of one packet, of none after the first acknowledgement, and of ten from 12 us on, by its timer alone.
struct Timed {
    window: f64,
    deadline: Time,
}

impl CongestionControl for Timed {
    fn on_ack(&mut self, _: &AckSample<'_>) {
        if !self.deadline.is_never() {
            self.window = 0.0;
        }
    }
    fn allowance(&self) -> Allowance {
        Allowance {
            window: self.window,
            rate: None,
        }
    }
    fn largest_window(&self) -> f64 {
        1e6
    }
    fn deadline(&self) -> Time {
        self.deadline
    }
    fn on_deadline(&mut self, now: Time) {
        if now >= self.deadline {
            *self = Self {
                window: 10.0 * PACKET as f64,
                deadline: Time::NEVER,
            };
        }
    }
}

impl ControllerDefinition for Timed {
    const NAME: &'static str = "timed";
    const SUMMARY: &'static str = "a window that opens at an instant";
    type Parameters = CountingParameters;
    fn new(_: &CountingParameters, _: &NetworkFacts) -> Self {
        Self {
            window: PACKET as f64,
            deadline: Time::from_us(12),
        }
    }
}

fn facts() -> NetworkFacts {
    network(Rate::from_gbps(400), Span::from_us(8))
}

fn in_scope(scope: Scope, idle: Option<Span>, controller: ControllerSettings) -> Pair {
    let mut profile = Profile::strack(facts());
    profile.controller = controller;
    profile.scope = ScopeParameters { scope, idle };
    Pair::new(profile, PipeSettings::ideal(&facts()), 1)
}

/// `constant`, with some of its settings.
fn constant(settings: &[(&str, &str)]) -> ControllerSettings {
    let mut controller = ControllerSettings::named("constant").unwrap();
    for (key, value) in settings {
        let value = Value::Text((*value).into());
        controller.set(key, &value).unwrap();
    }
    controller
}

fn counting() -> ControllerSettings {
    ControllerSettings::custom::<Counting>()
}

/// Payload that has been acknowledged of `flow`, in full packets.
fn packets(pair: &Pair, flow: FlowId) -> u64 {
    let progress = pair.ends[0].progress(flow).unwrap();
    progress.acknowledged.as_u64() / PACKET
}

/// Packets of 4160 bytes that pass at `gbps` in a millisecond.
fn in_a_millisecond(gbps: u64) -> u64 {
    gbps * 1_000_000 / (8 * (PACKET + 64))
}

/// Packets of three long flows that are acknowledged after a millisecond with a rate of 30 Gb/s and no window to speak of.
fn shares_of_a_rate(scope: Scope) -> [u64; 3] {
    let rate = constant(&[("rate", "30Gbps"), ("window", "100MB")]);
    let mut pair = in_scope(scope, None, rate);
    let flows = [(); 3].map(|()| pair.send(Bytes::new(50_000_000)));
    pair.run_until(Time::from_us(1008));
    flows.map(|flow| packets(&pair, flow))
}

#[test]
fn a_rate_is_that_of_each_queue_pair_or_of_all() {
    let whole = in_a_millisecond(30);
    for scope in [Scope::QueuePair, Scope::Destination] {
        let shares = shares_of_a_rate(scope);
        assert!(
            shares.iter().all(|share| share.abs_diff(whole) <= 2),
            "{scope}: {shares:?}"
        );
    }
    for scope in [Scope::Pair, Scope::ServiceLevel, Scope::Host] {
        let shares = shares_of_a_rate(scope);
        let third = whole / 3;
        assert!(
            shares.iter().all(|share| share.abs_diff(third) <= 2),
            "{scope}: {shares:?}"
        );
    }
}

#[test]
fn a_window_is_that_of_each_queue_pair_or_of_all() {
    for (scope, of_each) in [
        (Scope::QueuePair, [12, 12, 12]),
        (Scope::Destination, [12, 12, 12]),
        (Scope::Pair, [4, 4, 4]),
        (Scope::ServiceLevel, [4, 4, 4]),
        (Scope::Host, [4, 4, 4]),
    ] {
        let mut pair = in_scope(scope, None, constant(&[("window", "49152B")]));
        let flows = [(); 3].map(|()| pair.open());
        // One after the other at one instant, before the wire is offered anything.
        for flow in flows {
            pair.ends[0].post(Time::ZERO, flow, MessageId(0), Bytes::new(50_000_000));
        }
        for flow in flows {
            pair.close(flow);
        }
        pair.run_until(Time::from_us(5));
        let in_flight = flows.map(|flow| {
            let progress = pair.ends[0].progress(flow).unwrap();
            progress.in_flight.as_u64() / PACKET
        });
        assert_eq!(in_flight, of_each, "{scope}");
        // Nobody is left out later on either.
        pair.run_until(Time::from_us(1000));
        let shares = flows.map(|flow| packets(&pair, flow));
        let (most, least) = (shares.iter().max(), shares.iter().min());
        assert!(most.unwrap() - least.unwrap() <= 12, "{scope}: {shares:?}");
    }
}

#[test]
fn classes_have_a_controller_each_by_service_level_and_peers_by_pair() {
    let opening = |class| Opening::usual(class, facts().path);
    let class = |number| crate::Class::new(number).unwrap();
    for (scope, controllers) in [
        (Scope::QueuePair, 4),
        (Scope::Destination, 2),
        (Scope::Pair, 2),
        (Scope::ServiceLevel, 3),
        (Scope::Host, 4),
    ] {
        let mut pair = in_scope(scope, None, constant(&[]));
        for (flow, peer, number) in [(0, 1, 1), (1, 1, 2), (2, 2, 1), (3, 2, 3)] {
            let opening = opening(class(number));
            pair.call(0, |end, _| end.open(FlowId(flow), HostId(peer), &opening));
        }
        assert_eq!(pair.ends[0].controllers.len(), controllers, "{scope}");
    }
}

#[test]
fn weights_follow_the_connections_that_are_busy() {
    let rate = constant(&[("rate", "40Gbps"), ("window", "100MB")]);
    let mut pair = in_scope(Scope::Host, None, rate);
    let idle = pair.open();
    let long = pair.send(Bytes::new(50_000_000));
    let rate_of = |pair: &Pair, flow| pair.ends[0].progress(flow).unwrap().rate;
    assert_eq!(
        rate_of(&pair, long),
        Some(Rate::from_gbps(40)),
        "an idle connection takes nothing"
    );
    pair.post(idle, 0, Bytes::new(PACKET));
    assert_eq!(rate_of(&pair, long), Some(Rate::from_gbps(20)));
    let short = pair.send(Bytes::new(PACKET));
    assert_eq!(
        rate_of(&pair, long).map(|rate| rate.as_bps() / 1_000_000),
        Some(13_333)
    );
    pair.run_until(Time::from_us(100));
    assert!(pair.finished(short).is_some());
    assert_eq!(rate_of(&pair, long), Some(Rate::from_gbps(40)));
}

#[test]
fn a_shared_controller_is_told_the_sums_and_who_is_next() {
    for scope in [Scope::Destination, Scope::Pair] {
        let mut pair = in_scope(scope, None, counting());
        let flows = [(); 5].map(|()| pair.send(Bytes::new(40 * PACKET)));
        pair.run();
        for flow in flows {
            assert_eq!(pair.deliveries(flow, 0), 1, "{scope}");
        }
    }
}

/// The queue pair whose timer is armed is done before the deadline. The other one may not send before it, so nothing but the controller's
/// timer lets it go on.
#[test]
fn the_timer_of_a_shared_controller_outlives_the_queue_pair_that_armed_it() {
    for scope in [Scope::Destination, Scope::Pair, Scope::ServiceLevel] {
        let mut profile = Profile::strack(facts());
        // An idle queue pair has no timer with go-back-N.
        profile.reliability = Reliability::named("go-back-n").unwrap();
        profile.controller = ControllerSettings::custom::<Timed>();
        profile.scope = ScopeParameters { scope, idle: None };
        let mut pair = Pair::new(profile, PipeSettings::ideal(&facts()), 1);
        let second = pair.open();
        let first = pair.send(Bytes::new(PACKET));
        pair.run_until(Time::from_us(9));
        assert!(pair.finished(first).is_some());
        pair.post(second, 0, Bytes::new(40 * PACKET));
        let in_flight = |pair: &Pair| pair.ends[0].progress(second).unwrap().in_flight;
        pair.run_until(Time::from_us(11));
        assert_eq!(in_flight(&pair), Bytes::ZERO, "{scope}");
        pair.run_until(Time::from_us(13));
        assert_eq!(in_flight(&pair), Bytes::new(10 * PACKET), "{scope}");
    }
}

/// Window that a flow of one packet leaves behind for one that opens `pause` later.
fn window_after(pause: Span, scope: Scope, idle: Option<Span>) -> u64 {
    let mut pair = in_scope(scope, idle, counting());
    pair.send(Bytes::new(10 * PACKET));
    pair.run();
    pair.run_until(pair.now() + pause);
    let next = pair.open();
    pair.post(next, 0, Bytes::new(100 * PACKET));
    pair.ends[0].progress(next).unwrap().window.as_u64() / PACKET
}

#[test]
fn state_outlives_its_queue_pairs_until_it_is_forgotten() {
    let (short, long) = (Span::from_us(50), Span::from_ms(50));
    assert_eq!(window_after(long, Scope::QueuePair, None), 1);
    assert_eq!(window_after(long, Scope::Host, None), 1);
    for scope in [Scope::Destination, Scope::Pair, Scope::ServiceLevel] {
        let grown = window_after(long, scope, None);
        assert!(grown > 4, "{scope}: {grown}");
        assert_eq!(
            window_after(short, scope, Some(Span::from_ms(1))),
            grown,
            "{scope}"
        );
        assert_eq!(
            window_after(long, scope, Some(Span::from_ms(1))),
            1,
            "{scope}"
        );
    }
}

/// Events of 40 flows of one to three packets and more, which open now and then, on a pipe that loses and marks some packets.
fn story(scope: Scope, controller: &str, seed: u64, one_by_one: bool) -> String {
    let mut profile = Profile::strack(facts());
    profile.controller = ControllerSettings::named(controller).unwrap();
    profile.scope = ScopeParameters { scope, idle: None };
    if seed % 2 == 1 {
        profile.reliability = Reliability::named("go-back-n").unwrap();
    }
    let mut pair = Pair::new(profile, PipeSettings::ideal(&facts()), 1);
    if one_by_one {
        pair.ends[0].settle_one_by_one();
    }
    pair.pipes[0].drop_if(move |number, _| number % 61 == seed);
    pair.pipes[0].mark_if(move |number, _| number % 7 == seed);
    let mut random = RandomStream::new(seed, Purpose::Test, 17);
    for flow in 0..40u64 {
        let bytes = match random.below(4) {
            0 => u64::from(random.below(300_000)) + 1,
            few => PACKET * u64::from(few),
        };
        pair.send(Bytes::new(bytes));
        if random.below(3) == 0 {
            pair.run_until(Time::from_us(flow * 2));
        }
    }
    pair.run();
    format!("{:?} {:?}", pair.events(), pair.counters())
}

#[test]
fn a_gate_and_late_news_change_nothing_but_the_effort() {
    for scope in [Scope::Destination, Scope::Pair, Scope::ServiceLevel] {
        for controller in ["strack", "swift", "dcqcn", "dctcp", "timely", "constant"] {
            for seed in 0..4 {
                let [whole, each] = [false, true].map(|each| story(scope, controller, seed, each));
                assert!(whole == each, "{scope} {controller} {seed}");
                assert!(whole.len() > 10_000, "something happens");
            }
        }
    }
}

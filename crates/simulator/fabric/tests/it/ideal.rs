//! Ideal completion times: no flow beats its own, on fabrics of any kind with transports of any kind, and a lone flow comes near it.

use crate::common::{HEADER, Scenario};
use clearway_fabric::topology::{PacketSizes, PathUse, Routes, Striped, Topology};
use clearway_fabric::{Flow, PathChoice};
use clearway_transport::congestion::ControllerSettings;
use clearway_transport::paths::SelectorSettings;
use clearway_transport::reliability::go_back_n::Stripe;
use clearway_transport::{Profile, Reliability};
use clearway_units::{Bytes, HostId, Purpose, RandomStream, Rate, RelativeSize, Span, Time};
use proptest::prelude::*;
use std::num::NonZero;
use std::sync::Arc;

/// Random choices besides the scenario's.
struct Draw(RandomStream);

impl Draw {
    fn chance(&mut self, percent: u32) -> bool {
        self.0.below(100) < percent
    }
    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.below(choices.len() as u32) as usize]
    }
}

fn sizes(payload: u32) -> PacketSizes {
    PacketSizes {
        payload,
        header: HEADER,
        ack: HEADER,
    }
}

/// Rates and delays that differ from cable to cable, by few or many values.
fn mix(draw: &mut Draw, topology: &mut Topology) {
    const RATES: [u64; 6] = [10, 25, 40, 100, 300, 400];
    let rates = RATES.len() as u32;
    let kinds = 1 + draw.0.below(rates) as usize;
    let (mixes_delays, odd) = (draw.chance(50), draw.chance(20));
    for cable in &mut topology.cables {
        let bps = draw.pick(&RATES[..kinds]) * 1_000_000_000;
        let more = if odd { draw.0.below(1 << 30).into() } else { 0 };
        cable.rate = Rate::from_bps(bps + more);
        if mixes_delays {
            cable.delay = Span::from_ns(draw.pick(&[100, 500, 1000, 1001]));
        }
    }
}

/// Go-back-N with several queue pairs, more often than the scenarios have it.
fn stripe(draw: &mut Draw, profile: &mut Profile) {
    let mut reliability = Reliability::named("go-back-n").expect("built in");
    if let Reliability::GoBackN(settings) = &mut reliability {
        settings.queue_pairs = NonZero::new(draw.pick(&[1, 2, 3, 4])).unwrap();
        settings.stripe = draw.pick(&[Stripe::Split, Stripe::RoundRobin, Stripe::Message]);
        settings.stripe_chunk = Bytes::new(draw.pick(&[1, 4000, 65_536]));
        settings.timeout = Span::from_us(300);
        settings.timeout_max = Span::from_us(900);
    }
    profile.reliability = reliability;
    if draw.chance(70) {
        profile.selector = SelectorSettings::named("single").expect("built in");
    }
}

/// A window that holds nothing back.
fn open_window(profile: &mut Profile) {
    let mut controller = ControllerSettings::named("constant").expect("built in");
    if let ControllerSettings::Constant(settings) = &mut controller {
        settings.window = RelativeSize::Absolute(Bytes::new(1 << 40));
        settings.rate = None;
    }
    profile.controller = controller;
}

/// A scenario, of which many have mixed rates, several queue pairs, one flow alone or routes by destination.
fn scenario(seed: u64) -> Scenario {
    let mut draw = Draw(RandomStream::new(seed, Purpose::Test, 77));
    let mut scenario = Scenario::random(seed);
    // Ideal times refer to the links at the start, and events may make links faster.
    scenario.link_events = Arc::default();
    // All flows have the transport whose ideal times are computed.
    scenario.further_transports = Default::default();
    for flow in Arc::make_mut(&mut scenario.flows) {
        flow.transport = 0;
    }
    let payload = scenario.profile.network.payload;
    let mut profile = Profile::clone(&scenario.profile);
    if scenario.buffer.is_none() {
        if draw.chance(70) {
            mix(&mut draw, &mut scenario.topology);
        }
        if draw.chance(50) {
            stripe(&mut draw, &mut profile);
        }
        if draw.chance(50) {
            open_window(&mut profile);
            let packets = Bytes::new(1000 * u64::from(payload + HEADER));
            scenario.switch.queue = RelativeSize::Absolute(packets);
        }
    }
    if draw.chance(20) {
        scenario.switch.routing = PathChoice::Destination;
    }
    // The size of a shared buffer has been chosen for the rates and classes that there are.
    if scenario.buffer.is_none() && draw.chance(60) {
        let hosts = scenario.topology.hosts;
        let (src, dst) = (draw.0.below(hosts), draw.0.below(hosts));
        let packets = draw.pick(&[0, 1, 2, 3, 10, 70]) * u64::from(payload);
        let bytes = packets + u64::from(draw.0.below(2) * draw.0.below(payload));
        let flow = Flow::timed(HostId(src), HostId(dst), Bytes::new(bytes), Time::ZERO);
        scenario.flows = [flow].into();
        (scenario.local, scenario.coordinated) = Default::default();
    }
    // Ideal times refer to the fabric at the start: a link that becomes faster would beat them.
    scenario.link_events = Arc::default();
    let routes = Routes::compute(&scenario.topology).expect("still connected");
    profile.network = routes.paths.network_facts(sizes(payload));
    scenario.profile = Arc::new(profile);
    scenario
}

/// Of each flow that completed its completion time and its ideal one.
fn times(scenario: &Scenario) -> Vec<(Span, Span)> {
    let routes = Routes::compute(&scenario.topology).expect("connected");
    let profile = &scenario.profile;
    let roles = scenario.topology.switches.iter().map(|spec| spec.role);
    let rules: Vec<PathChoice> = roles
        .map(|role| scenario.switch.path_choice(role))
        .collect();
    let any_path =
        scenario.topology.detours().is_some() || rules.iter().any(|rule| rule.is_local());
    let paths = match rules.iter().all(|rule| *rule == PathChoice::Destination) {
        _ if any_path => PathUse::PerQueuePair(u32::MAX),
        true => PathUse::One,
        false => PathUse::PerQueuePair(profile.selector.most_paths()),
    };
    let outcome = scenario.run_unwatched(1);
    let flows = scenario.flows.iter().zip(&outcome.flows);
    let times = flows.filter_map(|(flow, outcome)| {
        let parts = profile.parts(flow.bytes);
        let message = Striped {
            parts: &parts,
            paths,
        };
        let sizes = sizes(profile.network.payload);
        let ideal = routes
            .paths
            .ideal_completion(flow.src, flow.dst, message, sizes);
        Some((outcome.sent? - outcome.started?, ideal))
    });
    times.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_flow_beats_its_ideal(seed: u64) {
        let scenario = scenario(seed);
        for (flow, (fct, ideal)) in times(&scenario).into_iter().enumerate() {
            prop_assert!(ideal <= fct, "flow {flow}: {fct} {ideal}");
        }
    }
}

/// Ideals are not far too short, which the property above would not show: many lone flows take exactly their ideal, most little more.
#[test]
fn lone_flows_come_near_their_ideals() {
    let (mut exact, mut near, mut all) = (0, 0, 0);
    for seed in 0..400 {
        let mut scenario = scenario(seed);
        if scenario.buffer.is_some() || scenario.flows.len() > 1 {
            continue;
        }
        open_window(Arc::make_mut(&mut scenario.profile));
        for cable in &mut scenario.topology.cables {
            (cable.bit_error_rate, cable.packet_loss) = (0.0, 0.0);
        }
        for (fct, ideal) in times(&scenario) {
            all += 1;
            exact += u32::from(fct == ideal);
            near += u32::from(fct.as_ps() < ideal.as_ps() / 10 * 11);
        }
    }
    assert!(all > 80, "{all}");
    assert!(exact * 3 > all, "{exact} of {all}");
    assert!(near * 4 > all * 3, "{near} of {all}");
}

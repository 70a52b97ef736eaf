//! s-PERC and 1RC in whole fabrics: shares of links, and speculative packets that links drop.

use clearway_fabric::topology::{
    PacketSizes, Routes, Topology, dumbbell, leaf_spine, single_switch,
};
use clearway_fabric::{
    Flow, LinkChange, LinkEvent, LinkSchedule, Outcome, RunControl, RunDecision, Setup,
    SharedBufferParameters, Simulation, SwitchParameters, Watch,
};
use clearway_transport::congestion::ControllerSettings;
use clearway_transport::paths::SelectorSettings;
use clearway_transport::{ClassSet, Profile, Reliability};
use clearway_units::{Bytes, HostId, Rate, Span, Time, Value};
use proptest::prelude::*;
use std::sync::Arc;

const REROUTE_DELAY: Span = Span::from_us(20);
const PAYLOAD: u32 = 1000;
const HEADER: u32 = 64;

/// Settings of a controller by their keys.
pub(crate) fn controller(name: &str, settings: &[(&str, Value)]) -> ControllerSettings {
    let mut controller = ControllerSettings::named(name).unwrap();
    for (key, value) in settings {
        controller.set(key, value).unwrap();
    }
    controller
}

fn run(
    topology: &Topology,
    controller: &ControllerSettings,
    flows: &[Flow],
    seed_and_threads: (u64, usize),
) -> Outcome {
    run_with(topology, controller, flows, seed_and_threads, Vec::new())
}

fn run_with(
    topology: &Topology,
    controller: &ControllerSettings,
    flows: &[Flow],
    seed_and_threads: (u64, usize),
    events: Vec<LinkEvent>,
) -> Outcome {
    run_changed(
        topology,
        controller,
        flows,
        (seed_and_threads, events),
        |_| {},
    )
}

/// Runs flows on a fabric with a profile that is changed before.
pub(crate) fn run_changed(
    topology: &Topology,
    controller: &ControllerSettings,
    flows: &[Flow],
    ((seed, threads), events): ((u64, usize), Vec<LinkEvent>),
    change: impl FnOnce(&mut Profile),
) -> Outcome {
    let routes = Routes::compute(topology).unwrap();
    let sizes = PacketSizes {
        payload: PAYLOAD,
        header: HEADER,
        ack: HEADER,
    };
    let mut profile = Profile::strack(routes.paths.network_facts(sizes));
    profile.reliability = Reliability::named("go-back-n").unwrap();
    profile.selector = SelectorSettings::named("single").unwrap();
    profile.controller = controller.clone();
    change(&mut profile);
    let setup = Setup {
        topology,
        routes,
        flows: flows.into(),
        further_classes: ClassSet::EMPTY,
        profile: Arc::new(profile),
        further_transports: Default::default(),
        switch: SwitchParameters::default(),
        buffer: Some(SharedBufferParameters::default()),
        link_events: Arc::new(LinkSchedule::new(events, REROUTE_DELAY)),
        seed,
    };
    let simulation = Simulation::new(&setup, |_| None, Watch::Off);
    let outcome = simulation.sharing_all_rounds().run(RunControl {
        threads: threads.into(),
        at_most: Time::from_us(100_000),
        coordinator: None,
        traffic: None,
        coordination_delay: None,
        on_progress: &mut |_| RunDecision::Continue,
    });
    outcome.check_conservation().unwrap();
    outcome
}

pub(crate) fn flow(src: u32, dst: u32, bytes: u64, us: u64) -> Flow {
    Flow::timed(
        HostId(src),
        HostId(dst),
        Bytes::new(bytes),
        Time::from_us(us),
    )
}

/// Goodputs of flows in Gb/s.
pub(crate) fn goodputs(outcome: &Outcome, flows: &[Flow]) -> Vec<f64> {
    let rate = |(result, flow): (&clearway_fabric::FlowOutcome, &Flow)| {
        let lasted = result.sent.unwrap().since(result.started.unwrap());
        flow.bytes.as_f64() * 8e-9 / lasted.as_secs()
    };
    outcome.flows.iter().zip(flows).map(rate).collect()
}

#[track_caller]
pub(crate) fn near(values: &[f64], expected: &[f64], within: f64) {
    assert_eq!(values.len(), expected.len());
    for (value, expected) in values.iter().zip(expected) {
        assert!((value / expected - 1.0).abs() < within, "{values:?}");
    }
}

/// Goodput in Gb/s of a flow that is allocated so much of a link of 100 Gb/s: 96 % less the share of acknowledgements.
pub(crate) fn part(share: f64) -> f64 {
    let packet = f64::from(PAYLOAD + HEADER);
    share * (96.0 - 100.0 * f64::from(HEADER) / packet) * f64::from(PAYLOAD) / packet
}

pub(crate) const RATE: Rate = Rate::from_gbps(100);

#[test]
fn flows_share_a_link_evenly_and_leave_it_to_those_that_stay() {
    let topology = single_switch(5, RATE, Span::from_us(1)).unwrap();
    let s_perc = controller("s-perc", &[]);
    let flows: Vec<Flow> = (0..4).map(|src| flow(src, 4, 20_000_000, 0)).collect();
    let outcome = run(&topology, &s_perc, &flows, (1, 1));
    near(&goodputs(&outcome, &flows), &[part(0.25); 4], 0.01);
    // Three of a quarter of the size: the fourth has all of the link afterwards.
    let mut flows = flows;
    (0..3).for_each(|n| flows[n].bytes = Bytes::new(5_000_000));
    let outcome = run(&topology, &s_perc, &flows, (1, 1));
    let last = part(1.0) * 20.0 / 35.0;
    near(
        &goodputs(&outcome, &flows),
        &[part(0.25), part(0.25), part(0.25), last],
        0.01,
    );
    assert_eq!((outcome.links.dropped, outcome.endpoints.timeouts), (0, 0));
}

#[test]
fn what_one_link_denies_another_gives() {
    // 0 to 3 and 1 to 3 share the link to host 3; 1 to 4 has the rest of host 1's link, and 2 to 4 the rest of the link to host 4.
    let topology = single_switch(5, RATE, Span::from_us(1)).unwrap();
    let pairs = [(0, 3), (2, 3), (1, 3), (1, 4)];
    let flows = pairs.map(|(src, dst)| flow(src, dst, 20_000_000, 0));
    let outcome = run(&topology, &controller("s-perc", &[]), &flows, (1, 1));
    let goodputs = goodputs(&outcome, &flows);
    let third = part(1.0 / 3.0);
    near(&goodputs[..3], &[third; 3], 0.01);
    near(&goodputs[3..], &[part(1.0) - third], 0.01);
}

#[test]
fn weights_share_between_hosts() {
    let topology = single_switch(3, RATE, Span::from_us(1)).unwrap();
    let flows = [
        flow(0, 2, 10_000_000, 0),
        flow(0, 2, 10_000_000, 0),
        flow(1, 2, 20_000_000, 0),
    ];
    for name in ["s-perc", "1rc"] {
        let weighted = controller(name, &[("weights", Value::Boolean(true))]);
        let outcome = run(&topology, &weighted, &flows, (1, 1));
        near(
            &goodputs(&outcome, &flows),
            &[part(0.25), part(0.25), part(0.5)],
            0.03,
        );
        let plain = controller(name, &[]);
        let outcome = run(&topology, &plain, &flows[..], (1, 1));
        let third = part(1.0 / 3.0);
        near(&goodputs(&outcome, &flows)[..2], &[third, third], 0.03);
    }
}

#[test]
fn short_messages_are_exempt_and_others_wait_one_round_trip() {
    let topology = single_switch(2, RATE, Span::from_us(1)).unwrap();
    // The unloaded round trip is 4 us and a little.
    let times = |name, bytes| {
        let flows = [flow(0, 1, bytes, 0)];
        let outcome = run(&topology, &controller(name, &[]), &flows, (1, 1));
        (outcome.flows[0].sent.unwrap().as_us(), outcome.endpoints)
    };
    let (short, counters) = times("s-perc", 40_000);
    assert!(short < 8.0 && counters.rate_controls_sent == 0, "{short}");
    let (long, counters) = times("s-perc", 60_000);
    assert!((12.9..14.0).contains(&long), "{long}");
    // At the start, then once in each round trip, at last to leave.
    assert!(
        (3..6).contains(&counters.rate_controls_sent),
        "{counters:?}"
    );
    assert_eq!(counters.rate_controls_received, counters.rate_controls_sent);
    let (at_once, counters) = times("1rc", 60_000);
    assert!(at_once < 9.8, "{at_once}");
    assert!(
        counters.speculative_sent > 30 && counters.speculative_dropped == 0,
        "{counters:?}"
    );
}

/// Four flows from the hosts of one leaf to the hosts of the other, and all of their links by way of the first spine.
fn two_leaves() -> (Topology, Vec<Flow>, Vec<usize>) {
    let delay = Span::from_us(1);
    let topology = leaf_spine(8, 4, 2, 1, (RATE, delay), (RATE, delay)).unwrap();
    let flows = (0..4)
        .map(|src| flow(src, src + 4, 20_000_000, 0))
        .collect();
    let spine = topology.switch_node(2);
    let cables = topology.cables.iter().enumerate();
    let of_spine = cables.filter(|(_, cable)| cable.ends.contains(&spine));
    let of_spine = of_spine.map(|(index, _)| index).collect();
    (topology, flows, of_spine)
}

/// The time from which on four flows share one link until all of 20 MB have left it, if nothing had been sent before.
fn four_by_one_link() -> Span {
    Span::from_us((4.0 * 20e6 * 8e-3 / part(1.0)) as u64)
}

/// Time at which the last flow had sent all.
fn last_sent(outcome: &Outcome) -> Time {
    let sent = outcome.flows.iter().map(|flow| flow.sent.unwrap());
    sent.max().unwrap()
}

#[test]
fn rates_follow_flows_to_the_links_of_another_path() {
    let (topology, flows, cables) = two_leaves();
    for name in ["s-perc", "1rc"] {
        for seed in 1..=6 {
            // The link between the first leaf and the first spine.
            let down = LinkEvent {
                at: Time::from_us(500),
                cable: cables[0],
                change: LinkChange::Down,
            };
            let controller = controller(name, &[]);
            let outcome = run_with(&topology, &controller, &flows, (seed, 1), vec![down]);
            // Both links together send twice as much before.
            let most = Time::from_us(500) + four_by_one_link();
            assert!(last_sent(&outcome) < most, "{name}, seed {seed}");
            // More than the link takes would fill the buffer within the run.
            assert_eq!(outcome.links.pause_frames, 0, "{name}, seed {seed}");
            let otherwise =
                outcome.links.dropped - outcome.links.link_down_drops - outcome.links.agent_drops;
            assert_eq!(otherwise, 0, "{name}, seed {seed}");
        }
    }
}

#[test]
fn rates_follow_the_rate_of_a_degraded_link() {
    let topology = single_switch(5, RATE, Span::from_us(1)).unwrap();
    let flows: Vec<Flow> = (0..4).map(|src| flow(src, 4, 5_000_000, 0)).collect();
    let receiver = Topology::host_node(HostId(4));
    let mut cables = topology.cables.iter();
    let receiver = cables
        .position(|cable| cable.ends.contains(&receiver))
        .unwrap();
    let event = |us, gbps| LinkEvent {
        at: Time::from_us(us),
        cable: receiver,
        change: LinkChange::Rate(Rate::from_gbps(gbps)),
    };
    for name in ["s-perc", "1rc"] {
        let controller = controller(name, &[]);
        let events = vec![event(500, 25), event(1500, 100)];
        let outcome = run_with(&topology, &controller, &flows, (1, 1), events);
        // A quarter of the rate for one millisecond costs three quarters of it.
        let calm = run(&topology, &controller, &flows, (1, 1));
        let later = last_sent(&outcome).since(last_sent(&calm)).as_us();
        assert!((740.0..770.0).contains(&later), "{name}: {later}");
        assert_eq!(outcome.links.pause_frames, 0, "{name}");
    }
}

#[test]
fn rates_are_those_of_before_after_flaps_and_losses() {
    let (topology, flows, cables) = two_leaves();
    let event = |us, change| LinkEvent {
        at: Time::from_us(us),
        cable: cables[0],
        change,
    };
    let flaps = (0..5).flat_map(|n| {
        let at = 200 + 400 * n;
        [event(at, LinkChange::Down), event(at + 200, LinkChange::Up)]
    });
    let loss = [
        event(100, LinkChange::PacketLoss(0.01)),
        event(2500, LinkChange::PacketLoss(0.0)),
    ];
    // A second set of flows comes when all is well again and the first is gone.
    let later = 12_000;
    let mut all = flows.clone();
    all.extend((0..4).map(|src| flow(src, src + 4, 10_000_000, later)));
    for troubles in [flaps.collect(), loss.to_vec()] {
        for name in ["s-perc", "1rc"] {
            let controller = controller(name, &[]);
            let calm = run(&topology, &controller, &all, (3, 1));
            let shaken = run_with(&topology, &controller, &all, (3, 1), troubles.clone());
            assert!(shaken.endpoints.rate_controls_lost > 0, "{name}");
            let later = |outcome: &Outcome| goodputs(outcome, &all)[4..].to_vec();
            near(&later(&shaken), &later(&calm), 0.005);
        }
    }
}

#[test]
fn short_flows_take_no_more_of_a_link_than_they_can_use() {
    // One long flow beside flows of 5 KB from three hosts, one after another: each lasts as long as the round trip of 4 us.
    let topology = single_switch(5, RATE, Span::from_us(1)).unwrap();
    let mut flows = vec![flow(0, 4, 10_000_000, 0)];
    flows.extend((0..300).flat_map(|n| (1..4).map(move |src| flow(src, 4, 5_000, 4 * n))));
    let long = |limit: &str| {
        let limit = ("host-limit", Value::Text(limit.into()));
        let one_rc = controller("1rc", &[limit]);
        let outcome = run(&topology, &one_rc, &flows, (1, 1));
        goodputs(&outcome, &flows)[0]
    };
    let (line_rate, demand) = (long("line-rate"), long("demand"));
    // All three together bring 32 Gb/s.
    assert!(line_rate < 0.55 * part(1.0), "{line_rate}");
    assert!((0.62..0.75).contains(&(demand / part(1.0))), "{demand}");
}

#[test]
fn queues_stay_short_where_hosts_send_and_receive() {
    let topology = single_switch(8, RATE, Span::from_us(1)).unwrap();
    // Host 0 receives and sends as much as it can; so do all with the flows around the ring.
    let to_one = [(1, 0), (2, 0), (3, 0), (0, 4), (0, 5)].map(|(src, dst)| (src, dst, 30_000_000));
    let ring: Vec<_> = (0..8)
        .flat_map(|src| (1..8).map(move |step| (src, (src + step) % 8, 6_000_000)))
        .collect();
    for pairs in [&to_one[..], &ring] {
        let flows: Vec<Flow> = pairs
            .iter()
            .map(|&(src, dst, bytes)| flow(src, dst, bytes, 0))
            .collect();
        for name in ["s-perc", "1rc"] {
            let outcome = run(&topology, &controller(name, &[]), &flows, (1, 1));
            assert_eq!(outcome.links.pause_frames, 0, "{name}");
        }
    }
    // With 98 % for data alone acknowledgements and control packets fill the buffer.
    let flows = to_one.map(|(src, dst, bytes)| flow(src, dst, bytes, 0));
    let full = controller("s-perc", &[("headroom", Value::Float(0.98))]);
    let outcome = run(&topology, &full, &flows, (1, 1));
    assert!(outcome.links.pause_frames > 0);
}

/// Two to seven hosts on each side of a slow or fast link, or under leaves and spines.
fn any_topology() -> impl Strategy<Value = Topology> {
    let gbps = || prop_oneof![Just(25), Just(100), Just(400)].prop_map(Rate::from_gbps);
    let delay = || (300..3000u64).prop_map(Span::from_ns);
    let star = (3..9u32, gbps(), delay())
        .prop_map(|(hosts, rate, delay)| single_switch(hosts, rate, delay).unwrap());
    let bell =
        (2..6u32, 2..6u32, gbps(), gbps(), delay()).prop_map(|(left, right, host, link, delay)| {
            dumbbell(left, right, (host, delay), (link, delay)).unwrap()
        });
    let clos = (2..4u32, 2..5u32, 1..3u32, gbps(), gbps(), delay()).prop_map(
        |(leaves, hosts, spines, host, link, delay)| {
            leaf_spine(
                leaves * hosts,
                hosts,
                spines,
                1,
                (host, delay),
                (link, delay),
            )
            .unwrap()
        },
    );
    prop_oneof![star, bell, clos]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Links drop only the tail of a flow's speculative run, over all hops: so no receiver ever misses a packet (no NACK, no timeout), and
    /// only dropped packets are sent again.
    #[test]
    fn links_drop_tails_and_nothing_has_to_be_detected(
        topology in any_topology(),
        draws in prop::collection::vec((any::<u32>(), any::<u32>(), 1..400_000u64, 0..60u64), 2..40),
        (skew, weights, seed) in (prop_oneof![Just(0u64), Just(100)], any::<bool>(), 0..1000u64),
    ) {
        let hosts = topology.hosts;
        let flows: Vec<Flow> = draws
            .iter()
            .map(|&(src, step, bytes, us)| {
                let src = src % hosts;
                flow(src, (src + 1 + step % (hosts - 1)) % hosts, bytes, us)
            })
            .collect();
        let one_rc = controller("1rc", &[
            ("clock-skew", Value::Text(format!("{skew}ns"))),
            ("weights", Value::Boolean(weights)),
        ]);
        let outcome = run(&topology, &one_rc, &flows, (seed, 1));
        let (endpoints, links) = (&outcome.endpoints, &outcome.links);
        prop_assert!(outcome.flows.iter().all(|flow| flow.sent.is_some()));
        prop_assert_eq!((endpoints.nacks_sent, endpoints.timeouts, endpoints.discarded), (0, 0, 0));
        prop_assert_eq!(links.dropped, links.agent_drops);
        prop_assert_eq!(endpoints.speculative_dropped, links.agent_drops);
        prop_assert_eq!(endpoints.retransmitted, links.agent_drops);
        prop_assert_eq!(endpoints.rate_controls_received, endpoints.rate_controls_sent);
        let shared = run(&topology, &one_rc, &flows, (seed, 2));
        prop_assert_eq!(outcome.digest, shared.digest);
    }
}

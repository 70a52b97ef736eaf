//! Conservation of packets and bytes: books that balance, flows that end, a queue that queueing theory knows.

use crate::common::{HEADER, Scenario};
use clearway_fabric::topology::{LinkId, NodeId, PacketSizes, Routes, single_switch};
use clearway_fabric::{
    DropCause, Flow, Observer, Outcome, RunControl, RunDecision, Setup, Simulation, Stopped,
    SwitchParameters, Watch,
};
use clearway_transport::congestion::ControllerSettings;
use clearway_transport::{Class, ClassSet, Header, Packet, Profile};
use clearway_units::{Bytes, HostId, Purpose, RandomStream, Rate, RelativeSize, Span, Time};
use proptest::prelude::*;
use std::sync::Arc;

/// Separate count of the events that links and queues report.
#[derive(Default)]
struct Counts {
    dropped: u64,
    corrupted: u64,
    marked: u64,
    /// Bytes in each data queue, by link.
    queues: Vec<u64>,
}

impl Observer for Counts {
    fn on_drop(&mut self, _: Time, _: LinkId, _: &Packet, cause: DropCause) {
        match cause {
            DropCause::QueueFull
            | DropCause::HeadroomFull
            | DropCause::Agent
            | DropCause::LinkDown
            | DropCause::NoRoute => self.dropped += 1,
            DropCause::BitError => self.corrupted += 1,
        }
    }
    fn on_mark(&mut self, _: Time, _: LinkId, packet: &Packet) {
        assert!(packet.ecn && packet.class == Class::DATA);
        self.marked += 1;
    }
    fn on_queue(&mut self, _: Time, link: LinkId, bytes: u64) {
        let link = link.0 as usize;
        self.queues.resize(self.queues.len().max(link + 1), 0);
        self.queues[link] = bytes;
    }
}

/// Invariants after any run.
fn balanced(
    scenario: &Scenario,
    (outcome, observers): &(Outcome, Vec<Counts>),
) -> Result<(), TestCaseError> {
    if let Err(text) = outcome.check_conservation() {
        return Err(TestCaseError::fail(text));
    }
    let sum = |what: fn(&Counts) -> u64| observers.iter().map(what).sum::<u64>();
    prop_assert_eq!(outcome.links.dropped, sum(|counts| counts.dropped));
    prop_assert_eq!(outcome.links.corrupted, sum(|counts| counts.corrupted));
    prop_assert_eq!(outcome.links.marked, sum(|counts| counts.marked));
    if outcome.cut_off.is_none() {
        let queued = sum(|counts| counts.queues.iter().sum());
        prop_assert_eq!(queued, 0, "bytes left in queues");
    }
    let endpoints = &outcome.endpoints;
    let received = endpoints.data_received
        + endpoints.sacks_received
        + endpoints.probes_received
        + endpoints.notifications_received;
    prop_assert_eq!(received, outcome.links.delivered);
    for (flow, setup) in outcome.flows.iter().zip(&*scenario.flows) {
        if setup.start.is_some() && setup.start < Some(outcome.finished) {
            prop_assert_eq!(flow.started, setup.start);
        }
        prop_assert!(flow.sent.is_none() || flow.received.is_some());
        prop_assert!(flow.received.is_none() || flow.started < flow.received);
        if let Some(sent) = flow.sent {
            prop_assert!(flow.received < Some(sent));
            let needed = setup.bytes.packets_of(scenario.profile.network.payload).0;
            let statistics = &flow.statistics;
            prop_assert!(statistics.packets - statistics.retransmitted == needed);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_books_balance(seed in any::<u64>(), packets in 0u64..40, errors in 0u32..3, limit in 1u64..200_000_000) {
        let mut scenario = Scenario::lossy(seed);
        let packet = u64::from(scenario.profile.network.payload + HEADER);
        scenario.switch.queue = RelativeSize::Absolute(Bytes::new(packets * packet));
        scenario.topology.queues.clear();
        for cable in &mut scenario.topology.cables {
            cable.bit_error_rate = [0.0, 1e-6, 1e-4][errors as usize];
        }
        scenario.at_most = Time::from_ps(limit);
        let run = scenario.run(1, Counts::default);
        balanced(&scenario, &run)?;
        let (outcome, _) = run;
        if packets == 0 {
            prop_assert_eq!(outcome.links.delivered, 0, "a queue of no bytes holds nothing");
        }
    }

    /// With queues of a dozen packets and a timeout above the round trip every flow that starts also ends.
    #[test]
    fn every_flow_ends(seed in any::<u64>(), packets in 12u64..60, errors in 0u32..3) {
        let mut scenario = Scenario::lossy(seed);
        let facts = scenario.profile.network;
        let packet = u64::from(facts.payload + HEADER);
        scenario.switch.queue = RelativeSize::Absolute(Bytes::new(packets * packet));
        scenario.topology.queues.clear();
        for cable in &mut scenario.topology.cables {
            cable.bit_error_rate = [0.0, 1e-8, 1e-6][errors as usize];
        }
        let mut profile = (*scenario.profile).clone();
        let reliability = profile.reliability.selective_repeat_mut();
        let reliability = reliability.expect("STrack has it");
        reliability.timeout = facts.base_rtt * 4 + Span::from_us(100);
        scenario.profile = Arc::new(profile);
        scenario.at_most = Time::from_us(1_000_000);
        let run = scenario.run(1, Counts::default);
        balanced(&scenario, &run)?;
        let (outcome, _) = run;
        prop_assert!(matches!(outcome.stopped, None | Some(Stopped::Stuck)), "{:?}", outcome.stopped);
        for flow in &outcome.flows {
            prop_assert_eq!(flow.started.is_some(), flow.sent.is_some());
        }
        prop_assert_eq!(outcome.endpoints.overflow, 0);
    }
}

/// The scenarios above would show nothing if no run were cut short with packets under way.
#[test]
fn runs_that_are_cut_short_leave_packets_in_the_network() {
    let mut under_way = 0;
    for seed in 0..50 {
        let mut scenario = Scenario::random(seed);
        scenario.at_most = Time::from_us(5);
        let outcome = scenario.run_unwatched(1);
        outcome.check_conservation().unwrap();
        under_way += u32::from(outcome.stopped == Some(Stopped::AtMost) && outcome.in_network > 0);
    }
    assert!(under_way > 25, "{under_way}");
}

/// A sender that is so impatient that it sends everything twice is done when the first copy is acknowledged; the second is still
/// under way.
#[test]
fn the_limit_holds_when_all_flows_are_done() {
    let topology = single_switch(2, Rate::from_gbps(100), Span::from_us(2)).unwrap();
    let routes = Routes::compute(&topology).unwrap();
    let sizes = PacketSizes {
        payload: 1186,
        header: HEADER,
        ack: HEADER,
    };
    let mut profile = Profile::strack(routes.paths.network_facts(sizes));
    let reliability = profile.reliability.selective_repeat_mut();
    reliability.expect("STrack has it").timeout = Span::from_us(6);
    // The sender takes the network for a shorter one, or its timeout would be longer.
    profile.network.base_rtt = Span::from_us(5);
    let setup = Setup {
        flows: Arc::new([Flow::timed(
            HostId(0),
            HostId(1),
            Bytes::new(10_000),
            Time::ZERO,
        )]),
        topology: &topology,
        routes,
        further_classes: ClassSet::EMPTY,
        profile: Arc::new(profile),
        further_transports: Default::default(),
        switch: SwitchParameters::default(),
        buffer: None,
        link_events: Arc::default(),
        seed: 1,
    };
    let run = |at_most| {
        let outcome = Simulation::new(&setup, |_| None, Watch::Off).run(RunControl {
            threads: 1.into(),
            at_most,
            coordinator: None,
            traffic: None,
            coordination_delay: None,
            on_progress: &mut |_| RunDecision::Continue,
        });
        outcome.check_conservation().unwrap();
        outcome
    };
    let whole = run(Time::from_us(1_000));
    let done = whole.flows[0].sent.unwrap();
    assert_eq!((whole.stopped, whole.cut_off), (None, None));
    assert!(whole.endpoints.retransmitted > 0 && whole.in_network == 0);

    let cut = run(done + Span::from_ps(1));
    let end = cut.cut_off.expect("copies are under way");
    assert!(
        end > done && end <= done + topology.shortest_delay(),
        "{end}"
    );
    assert!(cut.in_network > 0);
    assert_eq!((cut.stopped, cut.finished), (None, done), "it is complete");
    assert_eq!(cut.digest, whole.digest);
    assert!(cut.endpoints.duplicates < whole.endpoints.duplicates);
}

/// A link that loses packets loses large and small ones alike, and each direction separately.
#[test]
fn a_link_loses_the_share_of_packets_that_it_should() {
    let loss = 0.05;
    let lost = |payload| {
        let mut scenario = Scenario::lossy(1);
        let mut topology = single_switch(2, Rate::from_gbps(100), Span::from_us(1)).unwrap();
        topology.cables[1].packet_loss = loss;
        let routes = Routes::compute(&topology).unwrap();
        let sizes = PacketSizes {
            payload,
            header: HEADER,
            ack: HEADER,
        };
        let profile = Profile::strack(routes.paths.network_facts(sizes));
        scenario.profile = Arc::new(profile);
        scenario.switch = SwitchParameters::default();
        scenario.topology = topology;
        scenario.flows = Arc::new([Flow::timed(
            HostId(0),
            HostId(1),
            Bytes::new(u64::from(payload) * 20_000),
            Time::ZERO,
        )]);
        (scenario.local, scenario.coordinated) = Default::default();
        scenario.at_most = Time::from_us(10_000_000);
        let outcome = scenario.run_unwatched(1);
        outcome.check_conservation().unwrap();
        assert_eq!(outcome.stopped, None, "{:?}", outcome.endpoints);
        let crossed = outcome.endpoints.data_sent + outcome.endpoints.sacks_sent;
        outcome.links.corrupted as f64 / crossed as f64
    };
    for payload in [100, 4000] {
        let share = lost(payload);
        // Of more than 20 000 packets: five standard deviations are 0.0077.
        assert!((share - loss).abs() < 0.0077, "{payload}: {share}");
    }
}

/// Measures how long data packets wait for the link to the last host.
struct Waits {
    switch: NodeId,
    /// Time at which each flow's packet came to the switch.
    arrived: Vec<Time>,
    waits: Vec<f64>,
}

const SERVICE: Span = Span::from_us(1);
const DELAY: Span = Span::from_ns(500);

impl Observer for Waits {
    fn on_arrival(&mut self, now: Time, node: NodeId, packet: &Packet) {
        let Header::Data { .. } = packet.header else {
            return;
        };
        let flow = packet.flow.index();
        if node == self.switch {
            self.arrived[flow] = now;
        } else {
            let sojourn = now - self.arrived[flow] - DELAY;
            let wait = sojourn.as_ps() as f64 - SERVICE.as_ps() as f64;
            self.waits.push(wait / SERVICE.as_ps() as f64);
        }
    }
}

/// The waiting times, in units of the service time, at a link of 10 Gb/s that Poisson arrivals from 40 fast hosts load by
/// `percent`.
fn waiting_times(percent: u64, packets: u32) -> Vec<f64> {
    const SENDERS: u32 = 40;
    let sizes = PacketSizes {
        payload: 1186,
        header: HEADER,
        ack: HEADER,
    };
    let mut topology = single_switch(SENDERS + 1, Rate::from_gbps(400), DELAY).unwrap();
    topology.cables[SENDERS as usize].rate = Rate::from_gbps(10);
    let routes = Routes::compute(&topology).unwrap();
    let mut profile = Profile::strack(routes.paths.network_facts(sizes));
    profile.controller = ControllerSettings::named("constant").unwrap();
    // A packet that waits must not be asked for.
    let reliability = profile.reliability.selective_repeat_mut();
    let reliability = reliability.expect("STrack has it");
    reliability.probe_after = 1e4;
    reliability.timeout = Span::from_us(100_000);
    reliability.linger = Some(Span::from_us(1_000));
    // Given their number, the arrivals of a Poisson process are independent and uniform.
    let mut random = RandomStream::new(percent, Purpose::Test, 0);
    let end = SERVICE.as_ps() as f64 * f64::from(packets) * 100.0 / percent as f64;
    let mut flow = |_| {
        Flow::timed(
            HostId(random.below(SENDERS)),
            HostId(SENDERS),
            Bytes::new(1186),
            Time::from_ps((random.unit() * end) as u64),
        )
    };
    let setup = Setup {
        flows: (0..packets).map(&mut flow).collect(),
        topology: &topology,
        routes,
        further_classes: ClassSet::EMPTY,
        profile: Arc::new(profile),
        further_transports: Default::default(),
        switch: SwitchParameters {
            queue: RelativeSize::Absolute(Bytes::new(1 << 30)),
            ecn: false,
            ..SwitchParameters::default()
        },
        buffer: None,
        link_events: Arc::default(),
        seed: 1,
    };
    let mut observers = setup.per_domain(|| Waits {
        switch: topology.switch_node(0),
        arrived: vec![Time::ZERO; packets as usize],
        waits: Vec::new(),
    });
    let watch = Watch::by(&mut observers);
    let outcome = Simulation::new(&setup, |_| None, watch).run(RunControl {
        threads: 1.into(),
        at_most: Time::from_us(10_000_000),
        coordinator: None,
        traffic: None,
        coordination_delay: None,
        on_progress: &mut |_| RunDecision::Continue,
    });
    outcome.check_conservation().unwrap();
    assert_eq!(outcome.endpoints.data_sent, u64::from(packets));
    assert_eq!(outcome.endpoints.retransmitted, 0);
    observers.remove(0).waits
}

/// M/D/1: the mean wait is rho / (2 (1 - rho)) service times (Pollaczek and Khinchine), and the share of packets that do not wait
/// is 1 - rho. Errors from the means of 50 batches.
#[test]
fn a_queue_with_poisson_arrivals_waits_as_theory_says() {
    for (percent, packets) in [(50, 60_000), (80, 120_000)] {
        let rho = percent as f64 / 100.0;
        let waits = waiting_times(percent, packets);
        let expected = rho / (2.0 * (1.0 - rho));
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let batches: Vec<f64> = waits.chunks(waits.len() / 50).map(mean).collect();
        let average = mean(&batches);
        let spread: Vec<f64> = batches
            .iter()
            .map(|b| (b - average) * (b - average))
            .collect();
        let error = (mean(&spread) / batches.len() as f64).sqrt();
        assert!(error < 0.05 * expected, "{percent} %: too few packets");
        assert!(
            (average - expected).abs() < 3.0 * error,
            "{percent} %: {average} +- {error}, expected {expected}"
        );
        let immediate = waits.iter().filter(|&&wait| wait == 0.0).count() as f64;
        let share = immediate / waits.len() as f64;
        assert!((share - (1.0 - rho)).abs() < 0.01, "{percent} %: {share}");
    }
}

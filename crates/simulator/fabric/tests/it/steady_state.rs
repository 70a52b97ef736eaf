//! Steady state of STrack's congestion control: many senders into one host (STrack §4.2, incast).
//!
//! The fixed point of Algorithm 4 is where a sender's increase in a base round trip (`eta`) equals its decrease, `gamma w (q - T) / q`,
//! with the window `w = C (base + q) / (N packet)`. Measured on four 1 us links each way at 400 Gb/s, 4096 B payload, from 1 to 3 ms, in
//! us:
//!
//! | senders | predicted | strict window: queue | window as published: queue (seen by senders) |
//! |---|---|---|---|
//! | 8 | 8.17 | 7.81 | 7.84 (8.10) |
//! | 32 | 8.69 | 8.59 | 8.76 (9.03) |
//! | 64 | 9.44 | 9.39 | 9.93 (10.19) |
//! | 128 | 11.09 | 10.73 (10.3 to 10.9 by seed) | 13.04 (13.30) |
//!
//! Senders see the queue and 0.26 us of serialisation that the base round trip of 8 us leaves out. As published, a sender sends
//! while less than its window is in flight, so that it holds `ceil(w)` packets: half a packet more than the formula has, and
//! with 128 senders and windows between 1 and 2 exactly two packets each, 256 packets or 21.3 us in all.

use clearway_fabric::topology::{LinkId, NodeId, PacketSizes, Routes, Topology, leaf_spine};
use clearway_fabric::{
    DropCause, Flow, Interests, Observer, Outcome, RunControl, RunDecision, Setup, Simulation,
    SwitchParameters, Watch,
};
use clearway_transport::reliability::selective_repeat::{ProbeClass, SelectiveRepeatParameters};
use clearway_transport::{ClassSet, Event, Header, Packet, Profile};
use clearway_units::{Bytes, HostId, Rate, Span, Time};
use std::sync::Arc;

const RATE: Rate = Rate::from_gbps(400);
const SIZES: PacketSizes = PacketSizes {
    payload: 4096,
    header: 64,
    ack: 64,
};
/// Bytes of a full packet on the wire.
const PACKET: f64 = 4160.0;
const BYTES_PER_US: f64 = 50_000.0;
const HOSTS_PER_LEAF: u32 = 16;

/// Observer of the link to the receiver and of the senders' measurements.
struct LastHop {
    link: LinkId,
    from: Time,
    to: Time,
    /// The queue's present length and since when.
    bytes: u64,
    since: Time,
    /// Bytes times picoseconds between `from` and `to`.
    area: f64,
    drops: Vec<Time>,
    /// Data packets that came to the receiver between `from` and `to`.
    packets: f64,
    /// Acknowledgements between `from` and `to`, and the sum of their round trips in us.
    acks: f64,
    round_trips: f64,
}

impl LastHop {
    fn new(link: LinkId, from: Time, to: Time) -> Self {
        Self {
            link,
            from,
            to,
            bytes: 0,
            since: Time::ZERO,
            area: 0.0,
            drops: Vec::new(),
            packets: 0.0,
            acks: 0.0,
            round_trips: 0.0,
        }
    }

    fn in_time(&self, now: Time) -> bool {
        (self.from..self.to).contains(&now)
    }
}

impl Observer for LastHop {
    fn interests(&self) -> Interests {
        Interests {
            transport: true,
            ..Interests::PACKETS
        }
    }

    fn on_queue(&mut self, now: Time, link: LinkId, bytes: u64) {
        if link != self.link {
            return;
        }
        let span = now.min(self.to).since(self.since.max(self.from));
        self.area += self.bytes as f64 * span.as_ps() as f64;
        (self.bytes, self.since) = (bytes, now);
    }

    fn on_arrival(&mut self, now: Time, node: NodeId, packet: &Packet) {
        let data = matches!(packet.header, Header::Data { .. });
        if node == NodeId(0) && data && self.in_time(now) {
            self.packets += 1.0;
        }
    }

    fn on_drop(&mut self, now: Time, _: LinkId, _: &Packet, _: DropCause) {
        self.drops.push(now);
    }

    fn on_transport(&mut self, now: Time, _: HostId, event: &Event) {
        if let Event::Ack { rtt, .. } = event
            && self.in_time(now)
        {
            self.acks += 1.0;
            self.round_trips += rtt.as_us();
        }
    }
}

/// Four links of 1 us each way between hosts on different leaves: 8 us of propagation.
fn fabric() -> Topology {
    let link = (RATE, Span::from_us(1));
    leaf_spine(9 * HOSTS_PER_LEAF, HOSTS_PER_LEAF, 16, 1, link, link).unwrap()
}

/// Measurements of an incast in its steady state.
struct Settled {
    /// Mean wait at the last hop in us.
    queue: f64,
    /// Mean of the queueing delay that senders measure, in us.
    seen: f64,
    /// Mean packets in flight of one sender.
    in_flight: f64,
    /// Share of the time in which the last link carried data.
    utilisation: f64,
    last_drop: Time,
    duplicates: u64,
}

/// `senders` long flows into host 0, all from other leaves, watched from 1 to 3 ms.
fn incast(senders: u32, change: impl Fn(&mut SelectiveRepeatParameters)) -> Settled {
    incast_with_seed(1, senders, change)
}

fn incast_with_seed(
    seed: u64,
    senders: u32,
    change: impl Fn(&mut SelectiveRepeatParameters),
) -> Settled {
    let (from, to) = (Time::from_us(1_000), Time::from_us(3_000));
    let topology = fabric();
    let routes = Routes::compute(&topology).unwrap();
    let facts = routes.paths.network_facts(SIZES);
    assert_eq!(facts.propagation_rtt, Span::from_us(8));
    let mut profile = Profile::strack(facts);
    let reliability = profile.reliability.selective_repeat_mut();
    change(reliability.expect("STrack has it"));
    let flow = |sender| {
        Flow::timed(
            HostId(HOSTS_PER_LEAF + sender),
            HostId(0),
            Bytes::new(1 << 30),
            Time::ZERO,
        )
    };
    let setup = Setup {
        topology: &topology,
        routes,
        flows: (0..senders).map(flow).collect(),
        further_classes: ClassSet::EMPTY,
        profile: Arc::new(profile),
        further_transports: Default::default(),
        switch: SwitchParameters::default(),
        buffer: None,
        link_events: Arc::default(),
        seed,
    };
    let link = topology.link_to_host(HostId(0)).unwrap();
    let mut observers = setup.per_domain(|| LastHop::new(link, from, to));
    let watch = Watch::by(&mut observers);
    let outcome = Simulation::new(&setup, |_| None, watch).run(RunControl {
        threads: 1.into(),
        at_most: to,
        coordinator: None,
        traffic: None,
        coordination_delay: None,
        on_progress: &mut |_| RunDecision::Continue,
    });
    outcome.check_conservation().unwrap();
    settled(senders, &outcome, &observers, to - from)
}

fn settled(senders: u32, outcome: &Outcome, observers: &[LastHop], span: Span) -> Settled {
    let sum = |what: fn(&LastHop) -> f64| observers.iter().map(what).sum::<f64>();
    let round_trip = sum(|hop| hop.round_trips) / sum(|hop| hop.acks);
    let drops = observers.iter().flat_map(|hop| &hop.drops);
    Settled {
        queue: sum(|hop| hop.area) / span.as_ps() as f64 / BYTES_PER_US,
        seen: round_trip - 8.0,
        in_flight: round_trip * BYTES_PER_US / PACKET / f64::from(senders),
        utilisation: sum(|hop| hop.packets) * PACKET / BYTES_PER_US / span.as_us(),
        last_drop: drops.max().copied().unwrap_or(Time::ZERO),
        duplicates: outcome.endpoints.duplicates,
    }
}

/// The queueing delay in us at which a sender's increase in a base round trip equals its decrease: with the window
/// `w = C (base + q) / (N packet)`, `eta = gamma w (q - T) / q`.
fn predicted(senders: u32) -> f64 {
    let (base, target, gamma) = (8.0, 8.0, 0.8);
    let eta = 0.15 * (400.0 * 8.0) / (100.0 * 12.0);
    let surplus = |q: f64| {
        let window = BYTES_PER_US * (base + q) / (f64::from(senders) * PACKET);
        gamma * window * (q - target) / q - eta
    };
    let (mut low, mut high) = (target, 10.0 * target);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if surplus(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

fn assert_near(measured: f64, expected: f64, percent: f64, what: &str) {
    let off = 100.0 * (measured - expected) / expected;
    assert!(
        off.abs() < percent,
        "{what}: {measured:.2} is {off:.1} % off {expected:.2}"
    );
}

/// The numbers that others have worked out from the same formulas.
#[test]
fn the_predicted_queues() {
    let rounded = |senders| (predicted(senders) * 10.0).round() / 10.0;
    let queues = [8, 32, 64, 128].map(rounded);
    assert_eq!(queues, [8.2, 8.7, 9.4, 11.1]);
}

fn strict(reliability: &mut SelectiveRepeatParameters) {
    reliability.strict_window = true;
    reliability.probe_class = ProbeClass::Data;
}

#[test]
fn the_last_queue_settles_where_the_formulas_say() {
    for senders in [8, 32, 64] {
        let (expected, what) = (predicted(senders), format!("{senders} senders"));
        let kept = incast(senders, strict);
        assert_near(kept.queue, expected, 5.0, &format!("{what}, strict"));
        assert_near(kept.utilisation, 1.0, 1.0, &what);
        let published = incast(senders, |_| ());
        assert_near(published.queue, expected, 10.0, &what);
        assert_near(published.utilisation, 1.0, 1.0, &what);
    }
    // Windows of two packets, more or less: the seed shows.
    let queues = (1..=4).map(|seed| incast_with_seed(seed, 128, strict).queue);
    assert_near(queues.sum::<f64>() / 4.0, predicted(128), 10.0, "128");
}

/// Windows between one and two packets: as published, every sender holds two packets, at any fraction. The formula, which knows no whole
/// packets, has 11.1 us; two packets of each sender less the base round trip are 13.3 us.
#[test]
fn with_128_senders_each_holds_two_packets() {
    let settled = incast(128, |reliability| {
        reliability.probe_class = ProbeClass::Data;
    });
    assert_near(settled.in_flight, 2.0, 1.0, "packets in flight");
    let two_each = 2.0 * 128.0 * PACKET / BYTES_PER_US - 8.0;
    assert_near(settled.seen, two_each, 2.0, "delay");
    assert_near(settled.queue, settled.seen - 0.26, 1.0, "queue");
    assert_near(settled.utilisation, 1.0, 1.0, "utilisation");
}

/// STrack §4.2: drops in the first round trips, while all start with full windows, and then none. The queue of 5 BDP empties
/// in 40 us.
#[test]
fn drops_end_after_two_round_trips_and_a_queue() {
    let last = Time::from_us(2 * 8 + 40);
    let settled = incast(32, |_| ());
    assert!(settled.last_drop > Time::ZERO && settled.last_drop < last);
    let settled = incast(64, |reliability| reliability.probe_class = ProbeClass::Data);
    assert!(settled.last_drop > Time::ZERO && settled.last_drop < last);
}

/// A probe that comes back quickly while nothing else does means a loss (Algorithm 1 line 10) only if it waits in the queues in
/// which the data waits. With 80 and more senders a sender often hears nothing for longer than three base round trips although
/// nothing is lost; probes that overtake the data then have it sent again: hundreds to thousands of duplicates in 3 ms.
#[test]
fn probes_in_the_class_of_data_do_not_mistake_waiting_for_loss() {
    for (senders, seed) in [(80, 1), (80, 2), (100, 3), (100, 4)] {
        let settled = incast_with_seed(seed, senders, |reliability| {
            reliability.probe_class = ProbeClass::Data;
        });
        let what = format!("{senders}, seed {seed}");
        assert_near(settled.queue, predicted(senders), 10.0, &what);
        assert_near(settled.utilisation, 1.0, 1.0, "utilisation");
        assert!(settled.last_drop < Time::from_us(200), "{what}");
        assert!(settled.duplicates < 50, "{what}: {}", settled.duplicates);
    }
}

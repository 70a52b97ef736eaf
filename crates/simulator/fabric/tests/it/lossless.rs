//! Guarantees of a lossless fabric: with congestion control off and any incast, nothing is lost, the bottleneck never idles, and every byte
//! of buffer is given back.

use clearway_fabric::topology::{
    LinkId, NodeId, PacketSizes, Routes, Topology, dumbbell, leaf_spine, single_switch,
};
use clearway_fabric::{
    DropCause, Flow, Observer, Outcome, RunControl, RunDecision, Sampler, Setup,
    SharedBufferParameters, Simulation, Snapshot, SwitchParameters, Watch,
};
use clearway_transport::congestion::ControllerSettings;
use clearway_transport::{Class, ClassSet, Header, Packet, Profile};
use clearway_units::{Bytes, HostId, ParameterSet, Rate, RelativeSize, Span, Time, Value};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const SIZES: PacketSizes = PacketSizes {
    payload: 4032,
    header: 64,
    ack: 64,
};
const RATE: Rate = Rate::from_gbps(400);

/// Data that comes in at the receiver, and drops, marks and pauses anywhere.
#[derive(Default)]
struct Seen {
    first: Option<Time>,
    last: Option<Time>,
    /// Bytes after the first packet.
    bytes: u64,
    drops: Vec<(Class, DropCause)>,
    marks: Vec<Class>,
    pauses: u64,
    resumes: u64,
}

impl Observer for Seen {
    fn on_arrival(&mut self, now: Time, node: NodeId, packet: &Packet) {
        let Header::Data { .. } = packet.header else {
            return;
        };
        if node == NodeId(0) {
            if self.first.is_some() {
                self.bytes += u64::from(packet.size);
            }
            self.first.get_or_insert(now);
            self.last = Some(now);
        }
    }
    fn on_drop(&mut self, _: Time, _: LinkId, packet: &Packet, cause: DropCause) {
        self.drops.push((packet.class, cause));
    }
    fn on_mark(&mut self, _: Time, _: LinkId, packet: &Packet) {
        self.marks.push(packet.class);
    }
    fn on_pause(&mut self, _: Time, _: LinkId, classes: ClassSet) {
        if classes.is_empty() {
            self.resumes += 1;
        } else {
            self.pauses += 1;
        }
    }
}

/// Hosts send `bytes` each to host 0 at once.
struct Incast {
    senders: std::ops::Range<u32>,
    /// Class of senders with odd numbers; the others send in class 1.
    odd: Class,
    topology: Topology,
    switch: SwitchParameters,
    buffer: SharedBufferParameters,
    window: Bytes,
    bytes: Bytes,
    seed: u64,
}

impl Incast {
    fn setup(&self) -> Setup<'_> {
        let routes = Routes::compute(&self.topology).unwrap();
        let mut profile = Profile::strack(routes.paths.network_facts(SIZES));
        profile.controller = ControllerSettings::named("constant").unwrap();
        let window = Value::Text(self.window.to_string());
        profile.controller.set("window", &window).unwrap();
        // Waiting packets must not be probed for or sent again.
        let reliability = profile.reliability.selective_repeat_mut();
        let reliability = reliability.expect("STrack has it");
        reliability.probe_after = 1e6;
        reliability.timeout = Span::from_us(1_000_000);
        reliability.linger = Some(Span::ZERO);
        profile
            .reliability
            .set("ooo-min", &Value::Integer(60_000))
            .unwrap();
        let flow = |src| Flow {
            class: if src % 2 == 1 { self.odd } else { Class::DATA },
            ..Flow::timed(HostId(src), HostId(0), self.bytes, Time::ZERO)
        };
        Setup {
            topology: &self.topology,
            routes,
            flows: self.senders.clone().map(flow).collect(),
            further_classes: ClassSet::EMPTY,
            profile: Arc::new(profile),
            further_transports: Default::default(),
            switch: self.switch.clone(),
            buffer: Some(self.buffer.clone()),
            link_events: Arc::default(),
            seed: self.seed,
        }
    }

    fn run(&self, threads: usize) -> (Outcome, Vec<Seen>) {
        run(&self.setup(), threads)
    }

    /// The time that the link to the receiver needs for `bytes`.
    fn drain(&self, bytes: u64) -> Span {
        let link = self.topology.link_to_host(HostId(0)).unwrap();
        let packet = u64::from(SIZES.payload + SIZES.header);
        let rate = self.topology.cables[link.cable()].rate;
        let whole = rate.span_of(Bytes::new(packet)) * (bytes / packet);
        match bytes % packet {
            0 => whole,
            rest => whole + rate.span_of(Bytes::new(rest)),
        }
    }
}

fn run(setup: &Setup<'_>, threads: usize) -> (Outcome, Vec<Seen>) {
    setup.check_buffers().unwrap();
    let mut seen = setup.per_domain(Seen::default);
    let outcome = Simulation::new(setup, |_| None, Watch::by(&mut seen)).run(RunControl {
        threads: threads.into(),
        at_most: Time::from_us(900_000),
        coordinator: None,
        traffic: None,
        coordination_delay: None,
        on_progress: &mut |_| RunDecision::Continue,
    });
    (outcome, seen)
}

fn without_marks() -> SwitchParameters {
    SwitchParameters {
        ecn: false,
        ..SwitchParameters::default()
    }
}

/// A pool from which each of `senders` ingress ports with this alpha takes at least `needed` bytes before it is paused.
fn pool_for(needed: u64, senders: u64, alpha: f64) -> u64 {
    // Each takes x = alpha (P - n x), that is alpha P / (1 + alpha n).
    (needed as f64 * (1.0 + alpha * senders as f64) / alpha) as u64 + 1
}

fn fabric(kind: u32, hosts: u32, delay: Span) -> Topology {
    let link = (RATE, delay);
    match kind {
        0 => single_switch(hosts, RATE, delay).unwrap(),
        1 => dumbbell(1, hosts - 1, link, link).unwrap(),
        _ => {
            let per_leaf = 2;
            let leaves = hosts.div_ceil(per_leaf).max(2);
            leaf_spine(leaves * per_leaf, per_leaf, 2, 1, link, link).unwrap()
        }
    }
}

/// A buffer whose pool is as small as it may be for full throughput, times `slack`.
fn tight_buffer(
    topology: &Topology,
    delay: Span,
    alpha: f64,
    slack: f64,
    reaction: Span,
) -> SharedBufferParameters {
    let packet = u64::from(SIZES.payload + SIZES.header);
    let mut parameters = SharedBufferParameters {
        alpha,
        alpha_scales: false,
        reaction,
        ..SharedBufferParameters::default()
    };
    // A port may go on only when one of its packets leaves. The rest of its packets here, perhaps all there are, then has to last until the
    // first new packet comes.
    let loop_bytes = RATE.bytes_in(delay * 2 + reaction).as_u64() + 3 * packet + 256;
    let needed = loop_bytes + parameters.resume_offset.as_u64() + packet;
    let headroom = RATE.bytes_in(delay * 3).as_u64().max(loop_bytes);
    let ports = topology.ports();
    let most_ports = (0..topology.switches.len())
        .map(|switch| ports[topology.switch_node(switch).0 as usize].len() as u64)
        .max()
        .unwrap_or(0);
    let pool = pool_for(needed, u64::from(topology.hosts - 1), alpha);
    let aside = most_ports * (headroom + parameters.reserve.as_u64());
    parameters.buffer = Some(Bytes::new(aside + (pool as f64 * slack) as u64));
    parameters
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_incast_loses_nothing_and_keeps_the_bottleneck_busy(
        kind in 0u32..3,
        hosts in 3u32..14,
        delay_ns in prop::sample::select(vec![20u64, 300, 1000, 3000]),
        reaction_ns in prop::sample::select(vec![0u64, 0, 500]),
        alpha in prop::sample::select(vec![0.0078125, 0.125, 1.0, 4.0]),
        slack in prop::sample::select(vec![1.0, 1.3, 3.0]),
        kilobytes in 100u64..1_500,
        seed in any::<u64>(),
    ) {
        let delay = Span::from_ns(delay_ns);
        let topology = fabric(kind, hosts, delay);
        let buffer = tight_buffer(&topology, delay, alpha, slack, Span::from_ns(reaction_ns));
        // Those on the receiver's own leaf would be done before the first packet of the others is there.
        let first = if kind == 2 { 2 } else { 1 };
        let incast = Incast {
            senders: first..topology.hosts,
            odd: Class::DATA,
            topology,
            switch: without_marks(),
            buffer,
            window: Bytes::new(10_000_000),
            bytes: Bytes::new(kilobytes * 1000),
            seed,
        };
        let (outcome, seen) = incast.run(1);
        prop_assert_eq!(outcome.check_conservation(), Ok(()));
        prop_assert_eq!(outcome.stopped, None);
        prop_assert_eq!((outcome.links.dropped, outcome.in_network), (0, 0));
        prop_assert_eq!(outcome.endpoints.retransmitted, 0);
        prop_assert_eq!(outcome.links.pause_frames, outcome.links.pause_frames_received);
        prop_assert!(outcome.pauses.iter().all(|pauses| !pauses.at_the_end));
        // Host 0 is in the first domain.
        let watch = &seen[0];
        let (Some(first), Some(last)) = (watch.first, watch.last) else {
            return Err(TestCaseError::fail("nothing has arrived"));
        };
        // In one of some thousand incasts a tight pool is shared unequally for a while, so that a sender has too little left when it
        // is told to go on: at most once, and not for longer than that takes to reach it.
        let gap = match slack < 3.0 {
            true => delay * 2 + Span::from_ns(reaction_ns),
            false => Span::from_ns(1),
        };
        let busy = incast.drain(watch.bytes);
        prop_assert!(last - first <= busy + gap, "{} instead of {busy}", last - first);
    }
}

/// Sixteen senders into one through a buffer that is far smaller than their data.
fn crowded(headroom: Option<u64>) -> Incast {
    let delay = Span::from_us(1);
    let topology = fabric(0, 17, delay);
    let mut buffer = tight_buffer(&topology, delay, 0.125, 1.0, Span::ZERO);
    buffer.headroom = headroom.map(Bytes::new);
    Incast {
        senders: 1..17,
        odd: Class::DATA,
        topology,
        switch: without_marks(),
        buffer,
        window: Bytes::new(4_000_000),
        bytes: Bytes::new(1_000_000),
        seed: 1,
    }
}

#[test]
fn pauses_are_counted_on_the_links_that_were_paused() {
    let (outcome, seen) = crowded(None).run(1);
    let seen: (u64, u64) = seen.iter().fold((0, 0), |sum, watch| {
        (sum.0 + watch.pauses, sum.1 + watch.resumes)
    });
    let counted: u64 = outcome.pauses.iter().map(|link| link.pauses).sum();
    assert!(counted > 16, "{counted}");
    assert_eq!(seen, (counted, counted));
    assert_eq!(outcome.links.pause_frames, 2 * counted);
    for pauses in &outcome.pauses {
        // Cable h belongs to host h; link 2h leaves it.
        assert!(pauses.link.0 % 2 == 0 && pauses.link.0 > 0, "{pauses:?}");
        // 16 MB at 400 Gb/s take 320 us; each sender needs its link for 20 us.
        assert!(
            pauses.time > Span::from_us(100) && pauses.time < Span::from_us(330),
            "{pauses:?}"
        );
    }
    assert_eq!(outcome.pauses.len(), 16);
}

/// Counts, every 100 ns, the samples in which each link is paused.
struct PausedSamples {
    due: Time,
    samples: BTreeMap<LinkId, u64>,
}

impl Sampler for PausedSamples {
    fn due(&self) -> Time {
        self.due
    }
    fn on_sample(&mut self, _: Time, snapshot: &mut Snapshot<'_>) {
        snapshot.for_each_paused_link(|link| *self.samples.entry(link).or_default() += 1);
        self.due += Span::from_ns(100);
    }
}

/// Hosts and switches both pause their senders.
#[test]
fn samples_see_links_paused_as_long_as_they_are() {
    let delay = Span::from_ns(100);
    let topology = fabric(2, 16, delay);
    let incast = Incast {
        senders: 1..16,
        buffer: tight_buffer(&topology, delay, 0.125, 1.0, Span::ZERO),
        topology,
        ..crowded(None)
    };
    let mut paused = PausedSamples {
        due: Time::ZERO,
        samples: BTreeMap::new(),
    };
    let setup = incast.setup();
    let control = RunControl {
        threads: 2.into(),
        at_most: Time::from_us(900_000),
        coordinator: None,
        traffic: None,
        coordination_delay: None,
        on_progress: &mut |_| RunDecision::Continue,
    };
    let simulation = Simulation::new(&setup, |_| None, Watch::Links);
    let outcome = simulation.run_sampled(control, Some(&mut paused));
    let of_switches = |link: LinkId| link.0 >= 2 * 16;
    assert!(outcome.pauses.iter().any(|pauses| of_switches(pauses.link)));
    assert!(
        outcome
            .pauses
            .iter()
            .any(|pauses| !of_switches(pauses.link))
    );
    for pauses in &outcome.pauses {
        let sampled = paused.samples.remove(&pauses.link).unwrap_or(0);
        let expected = pauses.time.as_ps() / 100_000;
        // Each pause begins and ends between two samples.
        let difference = sampled.abs_diff(expected);
        assert!(
            difference <= pauses.pauses + 1,
            "{pauses:?}: {sampled} samples"
        );
    }
    assert!(paused.samples.is_empty(), "{:?}", paused.samples);
}

#[test]
fn too_little_headroom_drops_and_says_so() {
    let (outcome, seen) = crowded(Some(20_000)).run(1);
    outcome.check_conservation().unwrap();
    assert!(outcome.links.headroom_drops > 0);
    assert_eq!(outcome.links.headroom_drops, outcome.links.dropped);
    let drops = drops(&seen);
    assert_eq!(drops.len() as u64, outcome.links.dropped);
    assert!(drops.iter().all(|drop| drop.1 == DropCause::HeadroomFull));
}

#[test]
fn the_headroom_that_is_derived_is_needed() {
    // Two delays at 400 Gb/s are 100 KB; 3 packets and 2 frames come on top. Half of that is too little.
    let derived = 100_000 + 3 * 4096 + 128;
    assert_eq!(crowded(Some(derived)).run(1).0.links.dropped, 0);
    assert!(crowded(Some(derived / 2)).run(1).0.links.dropped > 0);
}

#[test]
fn results_do_not_depend_on_threads() {
    let delay = Span::from_ns(300);
    let topology = fabric(2, 12, delay);
    let buffer = tight_buffer(&topology, delay, 0.125, 1.0, Span::from_ns(100));
    let incast = Incast {
        senders: 1..12,
        odd: Class::DATA,
        topology,
        switch: without_marks(),
        buffer,
        window: Bytes::new(2_000_000),
        bytes: Bytes::new(700_000),
        seed: 7,
    };
    let (one, _) = incast.run(1);
    assert!(one.pauses.iter().any(|pauses| pauses.pauses > 1));
    for threads in [2, 4] {
        let (other, _) = incast.run(threads);
        assert_eq!((one.digest, &one.pauses), (other.digest, &other.pauses));
        assert_eq!(one.flows, other.flows);
    }
}

#[test]
fn lossless_and_lossy_classes_live_on_one_switch() {
    let lossy = Class::new(3).unwrap();
    let mut incast = crowded(None);
    incast.odd = lossy;
    let only_one = Value::List(vec![Value::Integer(1)]);
    incast.buffer.set("pfc.classes", &only_one).unwrap();
    let (outcome, seen) = incast.run(1);
    outcome.check_conservation().unwrap();
    let drops = drops(&seen);
    assert!(!drops.is_empty());
    assert!(
        drops
            .iter()
            .all(|drop| *drop == (lossy, DropCause::QueueFull)),
        "{drops:?}"
    );
    // Nothing is sent again here before the run ends, so losses of the lossy class are not repaired.
    for (index, flow) in outcome.flows.iter().enumerate() {
        assert!(
            index % 2 == 0 || flow.sent.is_some(),
            "flow {index} is lossless"
        );
    }
    for pauses in &outcome.pauses {
        let sender = pauses.link.cable();
        assert_eq!(
            sender % 2,
            0,
            "only senders of class 1 are paused: {pauses:?}"
        );
    }
    assert!(!outcome.pauses.is_empty());
}

#[test]
fn control_packets_are_never_marked() {
    let mut incast = crowded(None);
    incast.switch = SwitchParameters {
        kmin: RelativeSize::Absolute(Bytes::ZERO),
        kmax: RelativeSize::Absolute(Bytes::ZERO),
        control_priority: false,
        ..SwitchParameters::default()
    };
    // Host 1 sends through empty queues; its acknowledgements wait in the queue of the hosts that send to it.
    incast.senders = 1..17;
    let mut setup = incast.setup();
    let others_to_host_1 = |&flow: &Flow| match flow.src {
        HostId(1) => flow,
        _ => Flow {
            dst: HostId(1),
            ..flow
        },
    };
    setup.flows = setup.flows.iter().map(others_to_host_1).collect();
    let (_, seen) = run(&setup, 1);
    let watches = seen.iter();
    let marks: Vec<Class> = watches.flat_map(|watch| watch.marks.clone()).collect();
    assert!(marks.len() > 1000, "{}", marks.len());
    assert!(marks.iter().all(|class| class.is_data()));
}

#[test]
fn room_is_set_aside_for_control_packets_among_data() {
    let mut incast = crowded(Some(10_000));
    incast.odd = Class::new(3).unwrap();
    incast.senders = 1..2;
    incast.buffer.buffer = Some(Bytes::ZERO);
    let needed = |incast: &Incast| incast.setup().check_buffers().unwrap_err().needed;
    // 17 ports, a reserve of 4096 bytes, and one packet of 4096 bytes.
    let for_classes = |classes: u64| Bytes::new(17 * (10_000 + 4096) * classes + 4096);
    assert_eq!(needed(&incast), for_classes(1));
    incast.switch.control_priority = false;
    assert_eq!(needed(&incast), for_classes(2), "class 3 and class 1");
    incast.odd = Class::DATA;
    assert_eq!(needed(&incast), for_classes(1), "class 1 for both");
}

fn drops(seen: &[Seen]) -> Vec<(Class, DropCause)> {
    let watches = seen.iter();
    watches
        .flat_map(|watch| watch.drops.iter().copied())
        .collect()
}

//! Random fabrics, workloads and settings for tests, drawn from one seed.

mod buffers;
mod draw;
mod events;
mod fabrics;
mod mixed;
mod sniffer;
mod triggers;

use clearway_fabric::topology::{
    Cable, NodeId, PacketSizes, PortChoice, Routes, SwitchRole, Topology,
};
use clearway_fabric::{
    ClassMarks, Flow, FurtherTransports, LinkSchedule, MarkAt, Observer, Outcome, PathChoice,
    Reactions, RunControl, RunDecision, Sampler, Setup, SharedBufferParameters, Simulation,
    SwitchParameters, TelemetryFormat, TrimVictim, Watch,
};
use clearway_transport::Class;
use clearway_transport::congestion::credit::CreditScheme;
use clearway_transport::congestion::perc::HostLimit;
use clearway_transport::congestion::{ControllerSettings, OneRcParameters, SPercParameters};
use clearway_transport::paths::{DeadPath, SelectorSettings};
use clearway_transport::reliability::selective_repeat::ProbeClass;
use clearway_transport::{ClassSet, Profile, Reliability};
use clearway_units::{Bytes, FlowId, HostId, Rate, RelativeSize, Span, Time};
use draw::Draw;
use sniffer::Sniffer;
use std::num::NonZero;
use std::sync::Arc;
pub(crate) use triggers::Triggers;

/// Header and acknowledgement size of all scenarios.
pub(crate) const HEADER: u32 = 64;

/// Input of a run, drawn from a seed.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) topology: Topology,
    pub(crate) flows: Arc<[Flow]>,
    /// Rules that start the flows without a start time, each at one host.
    pub(crate) local: Triggers,
    /// The same, from anywhere.
    pub(crate) coordinated: Triggers,
    pub(crate) coordination_delay: Option<Span>,
    pub(crate) profile: Arc<Profile>,
    pub(crate) further_transports: FurtherTransports,
    pub(crate) switch: SwitchParameters,
    /// Shared buffers with priority flow control.
    pub(crate) buffer: Option<SharedBufferParameters>,
    pub(crate) link_events: Arc<LinkSchedule>,
    pub(crate) at_most: Time,
}

impl Scenario {
    /// Any scenario: two fifths have shared buffers with priority flow control.
    pub(crate) fn random(seed: u64) -> Self {
        let mut draw = Draw::about_buffers(seed);
        let mut scenario = if draw.chance(40) {
            Self::lossless(seed, &mut draw)
        } else {
            Self::lossy(seed)
        };
        scenario.vary();
        scenario
    }

    /// One on a ring or torus with two virtual channels.
    pub(crate) fn with_channels(seed: u64) -> Self {
        let mut draw = Draw::about_channels(seed);
        let topology = fabrics::torus(&mut draw);
        let around = draw.chance(50);
        let mut scenario =
            Self::lossless_on(topology, around, seed, &mut draw, &mut Draw::new(seed));
        scenario.vary();
        scenario
    }

    /// Chooses everything but fabric, flows and buffers.
    fn vary(&mut self) {
        let (seed, scenario) = (self.seed, self);
        scenario.choose_priorities(&mut Draw::about_priorities(seed));
        choose_allocation(
            &mut Draw::about_allocation(seed),
            Arc::make_mut(&mut scenario.profile),
        );
        scenario.choose_trimming(&mut Draw::about_trimming(seed));
        choose_routing(&mut Draw::about_routing(seed), &mut scenario.switch);
        mixed::choose_transports(&mut Draw::about_transports(seed), scenario);
        // Switches of a scale-up fabric have no virtual channels.
        if !scenario.topology.has_virtual_channels() {
            scenario.choose_roles(&mut Draw::about_roles(seed));
        }
        fabrics::choose_queues(&mut Draw::about_queues(seed), &mut scenario.topology);
        scenario.link_events = events::random_events(&mut Draw::about_events(seed), scenario);
    }

    /// Makes some switches part of scale-up fabrics, which have no pauses and get none from their neighbours.
    fn choose_roles(&mut self, draw: &mut Draw) {
        if !draw.chance(20) {
            return;
        }
        for index in 0..self.topology.switches.len() {
            let node = self.topology.switch_node(index);
            let mut cables = self.topology.cables.iter();
            let is_apart = cables.all(|cable| {
                let is_end = cable.ends.contains(&node);
                !is_end || cable.ends.iter().any(|end| self.topology.is_host(*end))
            });
            // Switches with one host would be NICs, which forward nothing.
            let of_one = self.topology.cables.iter().filter(|cable| {
                cable.ends.contains(&node)
                    && cable.ends.iter().any(|end| self.topology.is_host(*end))
            });
            let of_one = of_one.count() == 1;
            if draw.chance(50) && (self.buffer.is_none() || is_apart) {
                let role = draw.pick(&[
                    SwitchRole::ScaleUp,
                    SwitchRole::Nic(PortChoice::LeastQueue),
                    SwitchRole::Nic(PortChoice::Hash),
                ]);
                if !of_one || role == SwitchRole::ScaleUp {
                    self.topology.switches[index].role = role;
                }
            }
        }
    }

    /// In some, switches trim packets and transports follow the rules of UEC.
    fn choose_trimming(&mut self, draw: &mut Draw) {
        let profile = Arc::make_mut(&mut self.profile);
        let Reliability::SelectiveRepeat(settings) = &mut profile.reliability else {
            return;
        };
        if !draw.chance(45) {
            return;
        }
        settings.ack_in_order = draw.chance(40);
        settings.timeout_per_packet = draw.chance(50);
        settings.timeout = settings.timeout.min(Span::from_us(100));
        if !settings.ack_in_order {
            settings.ack_bytes = Some(Bytes::new(draw.pick(&[4_000, 16_384, 50_000])));
        }
        if draw.chance(40) {
            let credit = &mut profile.credit;
            credit.scheme = CreditScheme::Rccc;
            credit.window_bdps = draw.pick(&[0.1, 0.5, 1.5]);
            credit.rate = draw.pick(&[0.5, 0.99, 1.0]);
            credit.idle_pulls = draw.chance(70);
            self.switch.mark_last_hop = draw.chance(50);
        }
        self.switch.trimming = self.buffer.is_none() && self.switch.control_priority;
        self.switch.trim_victim = draw.pick(&[TrimVictim::Random, TrimVictim::Arriving]);
        self.switch.trim_size = Bytes::new(draw.pick(&[24, 64, 800]));
    }

    /// In some, higher classes go first.
    fn choose_priorities(&mut self, draw: &mut Draw) {
        if !draw.chance(35) {
            return;
        }
        self.switch.strict_priority = true;
        Arc::make_mut(&mut self.profile).strict_priority = true;
        // The size of a shared buffer has been chosen for the classes that are in use.
        if self.buffer.is_none() {
            buffers::random_classes(draw, Arc::make_mut(&mut self.flows));
        }
    }

    /// One whose switches have a queue for each port.
    pub(crate) fn lossy(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let topology = fabrics::random_fabric(&mut draw);
        let topology = fabrics::in_groups(&mut Draw::about_groups(seed), topology);
        let topology = fabrics::or_direct(&mut Draw::about_direct_networks(seed), topology);
        Self::on(topology, seed, &mut draw)
    }

    /// One whose switches have shared buffers, which `draw` is about.
    fn lossless(seed: u64, draw: &mut Draw) -> Self {
        let mut rest = Draw::new(seed);
        let circle = draw.chance(15);
        let topology = if circle {
            buffers::circle(draw)
        } else {
            let topology = fabrics::random_fabric(&mut rest);
            let topology = fabrics::in_groups(&mut Draw::about_groups(seed), topology);
            fabrics::or_direct(&mut Draw::about_direct_networks(seed), topology)
        };
        Self::lossless_on(topology, circle, seed, draw, &mut rest)
    }

    /// One with shared buffers on a fabric. In a `circle` all hosts send to others as far on.
    fn lossless_on(
        topology: Topology,
        circle: bool,
        seed: u64,
        draw: &mut Draw,
        rest: &mut Draw,
    ) -> Self {
        let mut scenario = Self::on(topology, seed, rest);
        if circle {
            let hosts = scenario.topology.hosts;
            scenario.flows = buffers::flows_around_the_circle(draw, hosts);
            (scenario.local, scenario.coordinated) = Default::default();
        }
        let flows = Arc::make_mut(&mut scenario.flows);
        buffers::random_classes(draw, flows);
        if scenario.topology.has_virtual_channels() {
            buffers::leave_out_second_channels(flows);
        }
        buffers::random_transport(draw, Arc::make_mut(&mut scenario.profile));
        let network = &scenario.profile.network;
        let packet = u64::from(network.payload + network.header);
        scenario.buffer = Some(buffers::random_buffer(draw, packet));
        buffers::choose_size(draw, packet, &mut scenario);
        scenario
    }

    fn on(topology: Topology, seed: u64, draw: &mut Draw) -> Self {
        let payload = draw.pick(&[256, 1000, 1000, 4086, 4096]);
        let routes = Routes::compute(&topology).expect("random fabrics are connected");
        let sizes = PacketSizes {
            payload,
            header: HEADER,
            ack: HEADER,
        };
        let mut profile = Profile::strack(routes.paths.network_facts(sizes));
        random_transport(draw, &mut profile);
        let switch = random_switch(draw, payload);
        let (flows, local, coordinated) = triggers::random_flows(draw, topology.hosts, payload);
        let coordination_delay = draw
            .chance(50)
            .then(|| Span::from_ps(draw.between(0, 5_000_000)));
        // Most runs end without a limit; a receiver with a hopeless queue must not keep the others waiting, and rounds of a nanosecond are
        // many.
        let at_most = if draw.chance(10) || topology.shortest_delay() < Span::from_ns(50) {
            Time::from_ps(draw.between(1, 60_000_000))
        } else {
            Time::from_us(3_000)
        };
        Self {
            seed,
            topology,
            flows,
            local,
            coordinated,
            coordination_delay,
            profile: Arc::new(profile),
            further_transports: Default::default(),
            switch,
            buffer: None,
            link_events: Arc::default(),
            at_most,
        }
    }

    /// Gives each host a second cable, to the switch behind the one it is on, and makes both of them ports of its NIC. False if hosts have
    /// several NICs, or the fabric has one switch or groups.
    pub(crate) fn join_nics(&mut self) -> bool {
        let topology = &mut self.topology;
        let (hosts, switches) = (topology.hosts, topology.switches.len() as u32);
        if !topology.further_nics.is_empty() || topology.groups.is_some() || switches < 2 {
            return false;
        }
        let of_hosts = topology
            .cables
            .iter()
            .filter(|cable| cable.ends[0].0 < hosts);
        let second: Vec<Cable> = of_hosts
            .map(|cable| {
                let next = (cable.ends[1].0 - hosts + 1) % switches;
                let ends = [cable.ends[0], NodeId(hosts + next)];
                Cable {
                    ends,
                    ..cable.clone()
                }
            })
            .collect();
        let was_whole = second.len() == hosts as usize && second.iter().all(|cable| cable.up);
        topology.cables.extend(second);
        let choice = match self.seed % 2 {
            0 => PortChoice::LeastQueue,
            _ => PortChoice::Hash,
        };
        *topology = topology.clone().join_nics(choice).split_hosts();
        let is_joined = topology.further_nics.is_empty();
        was_whole
            && is_joined
            && Routes::compute(topology).is_ok()
            && self.setup().check_buffers().is_ok()
    }

    pub(crate) fn setup(&self) -> Setup<'_> {
        Setup {
            topology: &self.topology,
            routes: Routes::compute(&self.topology).expect("random fabrics are connected"),
            flows: Arc::clone(&self.flows),
            further_classes: ClassSet::EMPTY,
            profile: Arc::clone(&self.profile),
            further_transports: self.further_transports.clone(),
            switch: self.switch.clone(),
            buffer: self.buffer.clone(),
            link_events: Arc::clone(&self.link_events),
            seed: self.seed,
        }
    }

    /// Runs it, watched by one observer for each domain.
    pub(crate) fn run<O: Observer>(
        &self,
        threads: usize,
        observer: impl FnMut() -> O,
    ) -> (Outcome, Vec<O>) {
        let mut observers = self.setup().per_domain(observer);
        let outcome = self.run_under(threads, Watch::by(&mut observers), None);
        (outcome, observers)
    }

    /// As [`run`](Self::run), with a sampler.
    pub(crate) fn run_sampled<O: Observer>(
        &self,
        threads: usize,
        observer: impl FnMut() -> O,
        sampler: &mut dyn Sampler,
    ) -> (Outcome, Vec<O>) {
        let mut observers = self.setup().per_domain(observer);
        let outcome = self.run_under(threads, Watch::by(&mut observers), Some(sampler));
        (outcome, observers)
    }

    pub(crate) fn run_unwatched(&self, threads: usize) -> Outcome {
        self.run_under(threads, Watch::Off, None)
    }

    fn run_under(
        &self,
        threads: usize,
        watch: Watch<'_>,
        sampler: Option<&mut dyn Sampler>,
    ) -> Outcome {
        let setup = self.setup();
        let simulation = Simulation::new(&setup, |host| self.reactions_of(host), watch);
        // Most of these fabrics are so small that one thread would run nearly all rounds alone.
        let control = RunControl {
            threads: threads.into(),
            at_most: self.at_most,
            coordinator: self.coordinator(),
            traffic: None,
            coordination_delay: self.coordination_delay,
            on_progress: &mut |_| RunDecision::Continue,
        };
        simulation
            .sharing_all_rounds()
            .run_sampled(control, sampler)
    }

    pub(crate) fn reactions_of(&self, host: HostId) -> Option<Box<dyn Reactions>> {
        let starts_here = |flow: FlowId| self.flows[flow.index()].src == host;
        self.local.filter(starts_here).boxed()
    }

    pub(crate) fn coordinator(&self) -> Option<Box<dyn Reactions>> {
        self.coordinated.clone().boxed()
    }
}

/// Lets some switches choose ports by their queues.
fn choose_routing(draw: &mut Draw, switch: &mut SwitchParameters) {
    if !draw.chance(30) {
        return;
    }
    switch.routing = draw.pick(&[
        PathChoice::Adaptive,
        PathChoice::Adaptive,
        PathChoice::RoundRobin,
        PathChoice::Flowlet,
    ]);
    let adaptive = &mut switch.adaptive.0;
    if draw.chance(40) {
        adaptive.levels = vec![0.05, 0.1, 0.2];
    }
    if draw.chance(40) {
        adaptive.refresh = Span::from_ns(draw.pick(&[100, 1000, 5000]));
    }
    adaptive.hash_below = Bytes::new(draw.pick(&[0, 100, 100, 1000]));
    adaptive.flowlet_gap = Span::from_ns(draw.pick(&[0, 500, 2000, 10_000]));
}

/// In some, links allocate rates.
fn choose_allocation(draw: &mut Draw, profile: &mut Profile) {
    if !draw.chance(20) {
        return;
    }
    let mut controller =
        ControllerSettings::named(draw.pick(&["s-perc", "1rc", "1rc"])).expect("built in");
    match &mut controller {
        ControllerSettings::SPerc(settings) => {
            settings.exempt = RelativeSize::percent_of_bdp(draw.pick(&[1, 100]));
            settings.common.weights = draw.chance(50);
        }
        ControllerSettings::OneRc(settings) => {
            settings.clock_skew = Span::from_ns(draw.pick(&[0, 100]));
            settings.common.weights = draw.chance(50);
        }
        other => unreachable!("{other:?} is neither"),
    }
    if draw.chance(80) {
        profile.reliability = Reliability::named("go-back-n").expect("built in");
        profile.selector = SelectorSettings::named("single").expect("built in");
    }
    let (ControllerSettings::SPerc(SPercParameters { common, .. })
    | ControllerSettings::OneRc(OneRcParameters { common, .. })) = &mut controller
    else {
        unreachable!("it is one of the two");
    };
    common.control_gap = NonZero::new(draw.pick(&[1, 4, 16])).expect("not zero");
    common.headroom = draw.pick(&[None, Some(0.98)]);
    common.host_limit = draw.pick(&[HostLimit::LineRate, HostLimit::Demand]);
    profile.controller = controller;
}

fn random_transport(draw: &mut Draw, profile: &mut Profile) {
    let facts = profile.network;
    if draw.chance(20) {
        profile.controller = ControllerSettings::custom::<Sniffer>();
    } else if draw.chance(40) {
        let ControllerSettings::Constant(mut settings) =
            ControllerSettings::named("constant").expect("built in")
        else {
            unreachable!("the name belongs to it");
        };
        settings.window = RelativeSize::percent_of_bdp(draw.pick(&[10, 50, 100, 300]));
        let bps = facts.line_rate.as_bps();
        settings.rate = draw
            .chance(50)
            .then(|| Rate::from_bps(bps / draw.between(1, 9)));
        profile.controller = ControllerSettings::Constant(settings);
    } else if draw.chance(30)
        && let ControllerSettings::Strack(settings) = &mut profile.controller
    {
        settings.decrease_requires_ecn = false;
        settings.initial_window = Some(RelativeSize::percent_of_bdp(draw.pick(&[5, 50])));
    }
    let selector = draw.pick(&["adaptive", "oblivious", "single"]);
    profile.selector = SelectorSettings::named(selector).expect("built in");
    match &mut profile.selector {
        SelectorSettings::Adaptive(settings) if draw.chance(30) => {
            settings.max_paths = NonZero::new(3).expect("not zero");
        }
        SelectorSettings::Oblivious(settings) if draw.chance(30) => {
            settings.max_paths = NonZero::new(5).expect("not zero");
        }
        _ => {}
    }
    if let SelectorSettings::Adaptive(settings) = &mut profile.selector
        && draw.chance(30)
    {
        settings.dead_path = DeadPath::Probe;
    }
    let reliability = profile.reliability.selective_repeat_mut();
    let reliability = reliability.expect("STrack has it");
    reliability.timeout = Span::from_us(draw.pick(&[40, 100, 250]));
    reliability.ack_on_ecn = draw.chance(30);
    reliability.strict_window = draw.chance(20);
    reliability.control_first = draw.chance(70);
    if draw.chance(30) {
        reliability.ack_bytes = Some(Bytes::new(draw.pick(&[1, 4_000, 16_384])));
    }
    if draw.chance(30) {
        reliability.probe_class = ProbeClass::Data;
    }
    if draw.chance(30) {
        reliability.probe_after = 1.0;
    }
}

fn random_switch(draw: &mut Draw, payload: u32) -> SwitchParameters {
    let packets = |n: u64| RelativeSize::Absolute(Bytes::new(n * u64::from(payload + HEADER)));
    let queue = match draw.below(4) {
        0 => packets(draw.between(2, 12)),
        1 => RelativeSize::percent_of_bdp(40),
        2 => RelativeSize::percent_of_bdp(100),
        _ => RelativeSize::percent_of_bdp(500),
    };
    let (kmin, kmax) = match draw.below(4) {
        0 => (packets(0), packets(3)),
        1 => (packets(2), packets(2)),
        2 => (packets(draw.between(1, 4)), packets(draw.between(4, 12))),
        _ => (
            RelativeSize::percent_of_bdp(25),
            RelativeSize::OfTime(Span::from_ns(1200)),
        ),
    };
    // Without a draw.
    let class_marks = [2, 3].map(|class| ClassMarks {
        class: Class::new(class).expect("below eight"),
        kmin: packets(u64::from(class) - 2),
        kmax: packets(2 * u64::from(class)),
        pmax: 0.5,
    });
    SwitchParameters {
        class_marks: match payload % 3 {
            0 => class_marks.to_vec(),
            _ => Vec::new(),
        },
        queue,
        ecn: draw.chance(80),
        kmin,
        kmax,
        pmax: draw.pick(&[0.1, 0.5, 1.0]),
        mark: draw.pick(&[MarkAt::Dequeue, MarkAt::Enqueue]),
        routing: PathChoice::Ecmp,
        control_priority: draw.chance(60),
        strict_priority: false,
        telemetry: draw.pick(&[TelemetryFormat::Exact, TelemetryFormat::Hpcc]),
        ..SwitchParameters::default()
    }
}

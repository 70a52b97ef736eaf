//! The simulator against a slow and simple one that shares only the transport endpoints: on random small scenarios, with lossy
//! switches and with shared buffers and priority flow control, both must tell the same story, event by event at each node and
//! each link, for any number of threads.
//!
//! A failing scenario is named by its seed: `CLEARWAY_ORACLE_SEED=17 cargo test -p clearway-fabric --test it oracle`.
//! `CLEARWAY_ORACLE_SCENARIOS` sets how many there are.

mod choice;
mod log;
mod network;
mod queue;
mod shared;
mod simulator;
mod skips;

use crate::common::Scenario;
use clearway_fabric::topology::LinkId;
use clearway_fabric::{DropCause, LinkChange, LinkPauses, Outcome, PathChoice, Rounds, Stopped};
use clearway_testing::{cases, number};
use clearway_transport::congestion::perc::Attachment;
use clearway_transport::congestion::telemetry::{Hop, HopRecords, Telemetry};
use clearway_transport::{Class, ClassSet, DataFlags, Header, Packet, Reliability};
use clearway_units::{FlowId, Span, Time};
use log::{Entry, Log};
use network::Network;
use simulator::Oracle;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A packet as the oracle carries it: always with telemetry, whether or not anyone looks at it.
type IntPacket = clearway_transport::congestion::telemetry::IntPacket<Beside>;

/// Data that travels beside a packet here: all kinds of the simulator, which compiles one at a time.
#[derive(Debug, Clone, Default)]
struct Beside {
    hops: HopRecords,
    attachment: Attachment,
}

impl Telemetry for Beside {
    const PRESENT: bool = true;
    const AGENTS: bool = true;
    fn record(&mut self, hop: Hop) {
        self.hops.record(hop);
    }
    fn hops(&self) -> &[Hop] {
        self.hops.hops()
    }
    fn attachment(&self) -> &Attachment {
        &self.attachment
    }
    fn attachment_mut(&mut self) -> Option<&mut Attachment> {
        Some(&mut self.attachment)
    }
    fn attach(&mut self, attachment: Attachment) {
        self.attachment = attachment;
    }
    fn seal(&mut self) {
        self.hops.seal();
    }
}

/// Scenarios of a default run.
const SCENARIOS: u32 = 1200;
/// Every so many scenarios are run with several threads as well, unless that takes so many rounds: threads that wait for each
/// other are slow where there are fewer cores.
const THREADED: u64 = 3;
const THREADED_ROUNDS: u64 = 300;

/// Coverage of the scenarios, counted so that the test does not become trivial unnoticed.
#[derive(Debug, Default)]
struct Coverage {
    entries: usize,
    threaded: usize,
    full_queues: usize,
    bit_errors: usize,
    marks: usize,
    trims: usize,
    /// Trimmed packets that no queue had room for.
    trims_dropped: usize,
    retransmitted: u64,
    probes: u64,
    timeouts: u64,
    rate_controls: u64,
    agent_drops: u64,
    /// Control packets in scenarios in which links fail.
    rate_controls_of_failures: u64,
    pulls: u64,
    /// Packets on detours that arrived at nodes.
    detours: usize,
    events: EventCoverage,
    routing: RoutingCoverage,
    mixed: MixedCoverage,
    ended: usize,
    cut_short: usize,
    /// Runs that ended although events were left.
    cut_off: usize,
    stuck: usize,
    /// Scenarios with pauses in which headrooms have to suffice.
    derived_headroom: usize,
    flow_control: FlowControl,
}

/// Coverage of the scenarios with events of links.
#[derive(Debug, Default)]
struct EventCoverage {
    scenarios: usize,
    shared: usize,
    link_down_drops: u64,
    no_route_drops: u64,
    pause_frames_lost: u64,
    /// Shared buffers with a pause storm that held something back.
    stormed: usize,
    /// Runs with drops of either kind in which all flows were done.
    survived: usize,
}

/// Coverage of the scenarios with several transports.
#[derive(Debug, Default)]
struct MixedCoverage {
    scenarios: usize,
    shared: usize,
    /// Scenarios in which switches record telemetry on the packets of some transports alone.
    partly_recorded: usize,
    /// Scenarios in which flows of several transports are done.
    done: usize,
}

impl MixedCoverage {
    fn add(&mut self, scenario: &Scenario, outcome: &Outcome) {
        let further = &scenario.further_transports.profiles;
        let recorded = further.iter().filter(|profile| profile.uses_telemetry());
        let recorded = recorded.count() + usize::from(scenario.profile.uses_telemetry());
        let flows = scenario.flows.iter().zip(&outcome.flows);
        let done = flows.filter(|(_, outcome)| outcome.sent.is_some());
        let transports: BTreeSet<u8> = done.map(|(flow, _)| flow.transport).collect();
        self.scenarios += 1;
        self.shared += usize::from(scenario.buffer.is_some());
        self.partly_recorded += usize::from((1..=further.len()).contains(&recorded));
        self.done += usize::from(transports.len() > 1);
    }

    fn check(&self) {
        let often = [
            self.scenarios / 2,
            self.shared,
            self.partly_recorded,
            self.done,
        ];
        assert!(often.iter().all(|&n| n > 50), "{self:?}");
    }
}

impl EventCoverage {
    fn add(&mut self, scenario: &Scenario, outcome: &Outcome) {
        let links = &outcome.links;
        self.scenarios += 1;
        self.shared += usize::from(scenario.buffer.is_some());
        self.link_down_drops += links.link_down_drops;
        self.no_route_drops += links.no_route_drops;
        self.pause_frames_lost += links.pause_frames_lost;
        let dropped = links.link_down_drops + links.no_route_drops > 0;
        self.survived += usize::from(dropped && outcome.stopped.is_none());
        let mut changes = scenario.link_events.events().iter();
        let storms = changes.any(|event| event.change == LinkChange::PauseStorm(true));
        self.stormed += usize::from(storms && !outcome.pauses.is_empty());
    }

    fn check(&self) {
        let often = [self.scenarios, self.shared, self.survived];
        assert!(often.iter().all(|&n| n > 50), "{self:?}");
        assert!(self.link_down_drops > 5_000, "{self:?}");
        assert!(self.no_route_drops > 1_000, "{self:?}");
        assert!(self.pause_frames_lost > 5, "{self:?}");
        assert!(self.stormed > 25, "{self:?}");
    }
}

/// Coverage of the scenarios whose switches choose ports by their own state.
#[derive(Debug, Default)]
struct RoutingCoverage {
    adaptive: usize,
    round_robin: usize,
    flowlets: usize,
    shared: usize,
    with_events: usize,
    packet_hops: u64,
}

impl RoutingCoverage {
    fn add(&mut self, scenario: &Scenario, outcome: &Outcome) {
        match scenario.switch.routing {
            PathChoice::Adaptive => self.adaptive += 1,
            PathChoice::RoundRobin => self.round_robin += 1,
            PathChoice::Flowlet => self.flowlets += 1,
            PathChoice::Ecmp | PathChoice::Destination => return,
        }
        self.shared += usize::from(scenario.buffer.is_some());
        self.with_events += usize::from(!scenario.link_events.is_empty());
        self.packet_hops += outcome.links.hops;
    }

    fn check(&self) {
        let often = [self.adaptive, self.round_robin, self.flowlets, self.shared];
        assert!(often.iter().all(|&n| n > 50), "{self:?}");
        assert!(self.with_events > 20, "{self:?}");
        assert!(self.packet_hops > 100_000, "{self:?}");
    }
}

/// Coverage of the scenarios with shared buffers, most of it by scenario.
#[derive(Debug, Default)]
struct FlowControl {
    scenarios: usize,
    pauses: u64,
    paused: usize,
    resumed: usize,
    /// A link was paused at least three times.
    again: usize,
    partly_paused: usize,
    headroom_drops: usize,
    lossy_drops: usize,
    marked: usize,
    ended: usize,
    cut_short_while_paused: usize,
    deadlocked: usize,
}

impl FlowControl {
    fn add(&mut self, log: &Log, outcome: &Outcome) {
        let some = |count: usize| usize::from(count > 0);
        let told = |select: fn(ClassSet) -> bool| {
            let is_told = move |entry: &Entry| matches!(entry, Entry::Pause(set) if select(*set));
            some(log.count(is_told))
        };
        let paused_at_the_end = outcome.pauses.iter().any(|link| link.at_the_end);
        let links = &outcome.links;
        self.scenarios += 1;
        self.pauses += outcome.pauses.iter().map(|link| link.pauses).sum::<u64>();
        self.paused += some(outcome.pauses.len());
        self.resumed += told(ClassSet::is_empty);
        self.again += usize::from(outcome.pauses.iter().any(|link| link.pauses > 2));
        self.partly_paused += told(|classes| classes.len() > 1);
        self.headroom_drops += some(links.headroom_drops as usize);
        self.lossy_drops += some((links.dropped - links.headroom_drops) as usize);
        self.marked += some(links.marked as usize);
        match outcome.stopped {
            None => self.ended += 1,
            Some(Stopped::Deadlocked) => self.deadlocked += 1,
            Some(_) => self.cut_short_while_paused += usize::from(paused_at_the_end),
        }
    }

    fn check(&self) {
        let often = [self.paused, self.resumed, self.again, self.marked];
        assert!(often.iter().all(|&n| n > 100), "{self:?}");
        let drops = [self.headroom_drops, self.lossy_drops, self.partly_paused];
        assert!(drops.iter().all(|&n| n > 20), "{self:?}");
        let endings = [
            self.ended / 50,
            self.cut_short_while_paused / 2,
            self.deadlocked,
        ];
        assert!(endings.iter().all(|&n| n > 2), "{self:?}");
        assert!(self.scenarios > 400 && self.pauses > 10_000, "{self:?}");
    }
}

impl Coverage {
    fn add(&mut self, scenario: &Scenario, log: &Log, outcome: &Outcome) {
        if scenario.buffer.is_some() {
            self.flow_control.add(log, outcome);
        }
        let dropped =
            |cause| move |entry: &Entry| matches!(entry, Entry::Drop(_, c) if *c == cause);
        self.entries += log.len();
        self.full_queues += log.count(dropped(DropCause::QueueFull));
        self.bit_errors += log.count(dropped(DropCause::BitError));
        self.marks += log.count(|entry| matches!(entry, Entry::Mark(_)));
        self.trims += log.count(|entry| matches!(entry, Entry::Trim(_)));
        let is_rest = |packet: &Packet| matches!(packet.header, Header::Data { flags, .. } if flags.contains(DataFlags::TRIMMED));
        self.trims_dropped +=
            log.count(|entry| matches!(entry, Entry::Drop(packet, _) if is_rest(packet)));
        self.detours +=
            log.count(|entry| matches!(entry, Entry::Arrival(packet) if packet.via > 0));
        self.retransmitted += outcome.endpoints.retransmitted;
        self.probes += outcome.endpoints.probes_sent;
        self.timeouts += outcome.endpoints.timeouts;
        self.rate_controls += outcome.endpoints.rate_controls_received;
        self.agent_drops += outcome.links.agent_drops;
        self.pulls += outcome.endpoints.pulls_received;
        if !scenario.link_events.is_empty() {
            self.rate_controls_of_failures += outcome.endpoints.rate_controls_received;
            self.events.add(scenario, outcome);
        }
        self.routing.add(scenario, outcome);
        if !scenario.further_transports.profiles.is_empty() {
            self.mixed.add(scenario, outcome);
        }
        match outcome.stopped {
            None => {
                self.ended += 1;
                self.cut_off += usize::from(outcome.cut_off.is_some());
            }
            Some(Stopped::Stuck) => self.stuck += 1,
            Some(_) => self.cut_short += 1,
        }
    }

    fn check(&self) {
        let events = [self.full_queues, self.bit_errors, self.marks, self.trims];
        assert!(events.iter().all(|&n| n > 1000), "{self:?}");
        let repairs = [self.retransmitted, self.probes, self.timeouts];
        assert!(repairs.iter().all(|&n| n > 100), "{self:?}");
        assert!(self.trims_dropped > 20, "{self:?}");
        assert!(self.detours > 1000, "{self:?}");
        let agents = [
            self.rate_controls / 10,
            self.rate_controls_of_failures,
            self.agent_drops,
        ];
        assert!(agents.iter().all(|&n| n > 100), "{self:?}");
        assert!(self.pulls > 1000, "{self:?}");
        let endings = [self.ended / 10, self.cut_short, self.cut_off, self.stuck];
        assert!(endings.iter().all(|&n| n > 2), "{self:?}");
        let enough = self.threaded > 250 && self.derived_headroom > 20;
        assert!(enough, "{self:?}");
        self.flow_control.check();
        self.events.check();
        self.routing.check();
        self.mixed.check();
    }
}

/// Runs the simulator; its one log, and the rest.
fn fast(scenario: &Scenario, threads: usize) -> (Log, Outcome) {
    let (outcome, logs) = scenario.run(threads, Log::default);
    let network = Network::new(&scenario.topology, &scenario.link_events, scenario.seed);
    let log = Log::join(logs).comparable(scenario, &network);
    (log, without_sharing(outcome))
}

/// An outcome without the fields that depend on the number of threads or on observers.
fn without_sharing(outcome: Outcome) -> Outcome {
    Outcome {
        meters: Vec::new(),
        flows: outcome.flows,
        finished: outcome.finished,
        stopped: outcome.stopped,
        cut_off: outcome.cut_off,
        rounds: Rounds {
            shared: 0,
            shared_work: 0,
            ..outcome.rounds
        },
        threads: 1,
        links: outcome.links,
        endpoints: outcome.endpoints,
        transports: outcome.transports,
        in_network: outcome.in_network,
        pauses: outcome.pauses,
        digest: outcome.digest,
    }
}

fn same_log(seed: u64, names: [&str; 2], logs: [&Log; 2], scenario: &Scenario) {
    if let Some(text) = logs[0].first_difference(logs[1], names, &scenario.topology) {
        panic!(
            "seed {seed} ({}, {} flows): {text}",
            scenario.topology.summary,
            scenario.flows.len()
        );
    }
}

fn check(seed: u64, coverage: &mut Coverage) {
    check_scenario(&Scenario::random(seed), coverage);
}

fn check_scenario(scenario: &Scenario, coverage: &mut Coverage) {
    let seed = scenario.seed;
    let (log, outcome) = fast(scenario, 1);
    check_that_it_ends(scenario, &outcome);
    if let Err(text) = outcome.check_conservation() {
        panic!("seed {seed}: {text}");
    }
    let end = outcome.cut_off.unwrap_or(Time::NEVER);
    let oracle = Oracle::new(scenario).run(end);
    same_log(seed, ["fast", "oracle"], [&log, &oracle.log], scenario);
    assert_eq!(outcome.flows, oracle.flows, "seed {seed}");
    assert_eq!(outcome.links, oracle.links, "seed {seed}");
    assert_eq!(outcome.endpoints, oracle.endpoints, "seed {seed}");
    assert_eq!(outcome.transports, oracle.transports, "seed {seed}");
    assert_eq!(outcome.in_network, oracle.in_network, "seed {seed}");
    assert_eq!(outcome.digest, oracle.digest, "seed {seed}");
    let pauses: Vec<LinkPauses> = oracle
        .log
        .pauses()
        .map(|(link, told)| account(link, &told, outcome.cut_off.unwrap_or(outcome.finished)))
        .filter(|link| link.pauses > 0)
        .collect();
    assert_eq!(outcome.pauses, pauses, "seed {seed}");
    if derives_headroom(scenario) {
        assert_eq!(outcome.links.headroom_drops, 0, "seed {seed}");
        coverage.derived_headroom += usize::from(!outcome.pauses.is_empty());
    }
    check_ending(scenario, &outcome, oracle.last_within, oracle.last);
    // The packet loop is compiled once more for runs that nobody watches.
    let unwatched = without_sharing(scenario.run_unwatched(1));
    assert_eq!(unwatched, outcome, "seed {seed}: watched or not");
    if seed.is_multiple_of(THREADED) && outcome.rounds.total < THREADED_ROUNDS {
        check_threads(scenario, &log, &outcome);
        coverage.threaded += 1;
    }
    coverage.add(scenario, &log, &outcome);
}

/// Checks that a run that the limit ends after its flows are done would also end without the limit.
fn check_that_it_ends(scenario: &Scenario, outcome: &Outcome) {
    if outcome.cut_off.is_none() || outcome.stopped.is_some() {
        return;
    }
    let mut patient = scenario.clone();
    // All packets under way when all flows are done are gone long before that.
    patient.at_most = scenario.at_most + Span::from_us(1_000_000);
    let outcome = patient.run_unwatched(1);
    let seed = scenario.seed;
    // A source of rate control that is cut off for good repeats its last control packet.
    if outcome.links.no_route_drops + outcome.links.link_down_drops > 0
        && outcome.endpoints.rate_controls_sent > 0
    {
        return;
    }
    assert_eq!(outcome.cut_off, None, "seed {seed}: it goes on for ever");
}

/// Headrooms are as large as they have to be.
fn derives_headroom(scenario: &Scenario) -> bool {
    let buffer = scenario.buffer.as_ref();
    // A link that comes back is not paused before the first frame from its other end, and the headroom there may be in use.
    scenario.link_events.is_empty() && buffer.is_some_and(|buffer| buffer.headroom.is_none())
}

/// Number and duration of the pauses of a link, from all that its transmitter was told.
fn account(link: LinkId, told: &[(Time, ClassSet)], end: Time) -> LinkPauses {
    let mut account = LinkPauses {
        link,
        pauses: 0,
        time: Span::ZERO,
        at_the_end: false,
    };
    let mut since = Time::ZERO;
    for &(time, classes) in told {
        if account.at_the_end {
            account.time += time - since;
        } else if !classes.is_empty() {
            account.pauses += 1;
        }
        account.at_the_end = !classes.is_empty();
        since = time;
    }
    if account.at_the_end {
        account.time += end.since(since);
    }
    account
}

fn check_threads(scenario: &Scenario, log: &Log, outcome: &Outcome) {
    let seed = scenario.seed;
    for threads in 2..=4 {
        let (other_log, other) = fast(scenario, threads);
        let name = format!("{threads} threads");
        same_log(seed, ["1 thread", &name], [log, &other_log], scenario);
        let (text, expected) = (format!("{other:?}"), format!("{outcome:?}"));
        assert_eq!(text, expected, "seed {seed}, {name}");
    }
}

/// Checks that the run ended when it had to: without further events, or when the next event was at or after the limit, a round that had
/// begun included.
fn check_ending(scenario: &Scenario, outcome: &Outcome, last_within: Option<Time>, last: Time) {
    let (seed, limit) = (scenario.seed, scenario.at_most);
    let length = scenario.topology.shortest_delay();
    if length > Span::from_us(10) {
        // The simulator may prefer shorter rounds to so long ones.
        return;
    }
    let network = Network::new(&scenario.topology, &scenario.link_events, seed);
    let round = |time: Time| time.as_ps() / length.as_ps();
    let last_round = last_within.map(round);
    let in_time = |time: Time| time < limit || Some(round(time)) == last_round;
    if outcome.cut_off.is_none() && outcome.stopped != Some(Stopped::Deadlocked) {
        let mut paused = outcome.pauses.iter().filter(|pauses| pauses.at_the_end);
        // A storm without end spreads.
        let by_storm = paused
            .clone()
            .any(|own| network.storms(own.link, Time::NEVER));
        assert!(
            by_storm || paused.next().is_none(),
            "seed {seed}: what is paused waits for nothing"
        );
    }
    let all_sent = outcome.flows.iter().all(|flow| flow.sent.is_some());
    assert_eq!(all_sent, outcome.stopped.is_none(), "seed {seed}");
    if let Some(end) = outcome.cut_off {
        let rounds = last_round.map_or(0, |round| round + 1);
        let round_end = Time::from_ps(rounds * length.as_ps());
        assert_eq!(end, limit.max(round_end), "seed {seed}");
    }
    match outcome.stopped {
        None => {
            let last = outcome.flows.iter().filter_map(|flow| flow.sent).max();
            assert_eq!(Some(outcome.finished), last, "seed {seed}");
            assert!(in_time(outcome.finished), "seed {seed}");
        }
        Some(Stopped::AtMost) => {
            assert_eq!(Some(outcome.finished), outcome.cut_off, "seed {seed}");
        }
        Some(Stopped::Stuck) => assert!(in_time(last), "seed {seed}"),
        Some(Stopped::Deadlocked) => {
            let paused = outcome.pauses.iter().any(|pauses| pauses.at_the_end);
            assert!(in_time(last) && paused, "seed {seed}");
        }
        Some(Stopped::Interrupted) => panic!("seed {seed}: nobody interrupts"),
    }
}

/// Scenarios in which the receiver of a flow is gone before its sender knows that all has arrived.
const ONCE_ENDLESS: [u64; 2] = [9006, 12_113];
/// Scenarios in which one of a host's endpoints has no packet after all, and another one has.
const EMPTY_HANDED: [u64; 2] = [3101, 5622];

#[test]
fn both_simulators_tell_the_same_story() {
    let variable = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let mut coverage = Coverage::default();
    if let Some(seed) = variable("CLEARWAY_ORACLE_SEED") {
        return check(seed, &mut coverage);
    }
    let scenarios = number(
        "CLEARWAY_ORACLE_SCENARIOS",
        cases(SCENARIOS, 5 * SCENARIOS).into(),
    );
    let seeds = (0..scenarios).chain(ONCE_ENDLESS).chain(EMPTY_HANDED);
    seeds.for_each(|seed| check(seed, &mut coverage));
    if scenarios >= SCENARIOS.into() {
        coverage.check();
    }
}

/// Scenarios whose hosts have a NIC of two ports, on two switches.
const DUAL_HOMED: u64 = 150;

#[test]
fn both_simulators_tell_the_same_story_of_nics_with_several_ports() {
    let mut coverage = Coverage::default();
    let mut checked = 0;
    for seed in 0..DUAL_HOMED {
        let mut scenario = Scenario::random(seed);
        if scenario.join_nics() {
            check_scenario(&scenario, &mut coverage);
            checked += 1;
        }
    }
    let ended = coverage.ended;
    assert!(checked > 40 && ended > 20, "{checked} {ended}");
}

/// Scenarios on rings and tori with two virtual channels.
const TWO_CHANNELS: u32 = 200;

/// Coverage of the scenarios on rings and tori.
#[derive(Debug, Default)]
struct ChannelCoverage {
    /// Arrivals of packets on their second channel.
    on_second: usize,
    /// Pauses of second channels.
    pauses_of_second: usize,
    /// Scenarios with pauses that cannot deadlock.
    free: usize,
    ended: usize,
}

impl ChannelCoverage {
    fn add(&mut self, scenario: &Scenario) {
        let is_second = |class: Class| class.index() > 4;
        let second = (0..8)
            .filter_map(Class::new)
            .filter(|class| is_second(*class));
        let second = second.map(ClassSet::only);
        let second = second.fold(ClassSet::EMPTY, ClassSet::union);
        let (log, outcome) = fast(scenario, 1);
        self.on_second +=
            log.count(|entry| matches!(entry, Entry::Arrival(packet) if is_second(packet.class)));
        self.pauses_of_second +=
            log.count(|entry| matches!(entry, Entry::Pause(set) if set.without(second) != *set));
        self.ended += usize::from(outcome.stopped.is_none());
        let is_whole = scenario.topology.cables.iter().all(|cable| cable.up);
        if !is_whole || !scenario.link_events.is_empty() || !scenario.switch.control_priority {
            return;
        }
        let seed = scenario.seed;
        assert_ne!(outcome.stopped, Some(Stopped::Deadlocked), "seed {seed}");
        self.free += usize::from(!outcome.pauses.is_empty());
    }
}

#[test]
fn both_simulators_tell_the_same_story_of_virtual_channels() {
    let mut coverage = Coverage::default();
    let mut channels = ChannelCoverage::default();
    for seed in 0..cases(TWO_CHANNELS, 5 * TWO_CHANNELS).into() {
        let scenario = Scenario::with_channels(seed);
        check_scenario(&scenario, &mut coverage);
        channels.add(&scenario);
    }
    let often = [
        channels.on_second / 100,
        channels.pauses_of_second / 10,
        channels.ended,
    ];
    assert!(
        often.iter().all(|&n| n > 80) && channels.free > 30,
        "{channels:?}"
    );
}

/// Scenarios with an adversary, and the longest time by which it delays packets: all timers are shorter.
const HOSTILE_SCENARIOS: u64 = 200;
const LONGEST_DELAY: Span = Span::from_us(1_500);

#[test]
fn a_network_that_replays_and_delays_packets_delivers_each_message_once() {
    let (mut finished, mut replayed, mut late) = (0, 0, 0);
    for seed in 0..HOSTILE_SCENARIOS {
        let mut scenario = Scenario::random(seed);
        // Receivers are gone as soon as their flows are over.
        let further = scenario.further_transports.profiles.iter_mut();
        for profile in std::iter::once(&mut scenario.profile).chain(further) {
            match &mut Arc::make_mut(profile).reliability {
                Reliability::SelectiveRepeat(parameters) => parameters.linger = Some(Span::ZERO),
                Reliability::GoBackN(parameters) => parameters.linger = Some(Span::ZERO),
            }
        }
        let end = scenario.at_most.min(Time::from_us(3_000));
        let result = Oracle::new(&scenario).hostile(LONGEST_DELAY).run(end);
        for (flow, &times) in &result.deliveries {
            assert_eq!(times, 1, "seed {seed}, flow {flow}");
        }
        for (index, outcome) in result.flows.iter().enumerate() {
            let is_delivered = result.deliveries.contains_key(&FlowId(index as u32));
            assert!(
                is_delivered || outcome.sent.is_none(),
                "seed {seed}, flow {index}"
            );
            finished += u32::from(outcome.sent.is_some());
        }
        replayed += result.replayed;
        late += result.endpoints.duplicates;
    }
    assert!(
        finished > 1000 && replayed > 10_000 && late > 10_000,
        "{finished} flows, {replayed} copies, {late} of them of data"
    );
}

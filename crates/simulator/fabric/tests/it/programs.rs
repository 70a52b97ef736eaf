//! Hosts whose programs post messages on connections.

use clearway_fabric::topology::{PacketSizes, Routes, Topology, leaf_spine};
use clearway_fabric::{
    Flow, FlowOutcome, KnownTransfer, Outcome, Post, Program, RunControl, RunDecision, Setup,
    Simulation, Stopped, SwitchParameters, Watch,
};
use clearway_transport::{Class, ClassSet, Profile};
use clearway_units::{Bytes, FlowId, HostId, MessageId, Rate, Span, Time};
use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

const HOSTS: u32 = 8;
const SIZES: PacketSizes = PacketSizes {
    payload: 4086,
    header: 64,
    ack: 64,
};

/// Time, host, kind of event and number of the message.
type Entry = (Time, u32, &'static str, u32);
type Log = Arc<Mutex<Vec<Entry>>>;

/// Two hosts that throw a ball: each answers a message with one on the connection back.
struct Thrower {
    host: u32,
    to_other: FlowId,
    bytes: Bytes,
    throws: u32,
    thrown: u32,
    /// Time of the next throw; at first [`Time::NEVER`] for the host that waits.
    serve: Time,
    pause: Span,
    posts: VecDeque<Post>,
    /// True for messages that take the known times.
    is_known: fn(u32) -> bool,
    known: VecDeque<KnownTransfer>,
    log: Log,
}

impl Thrower {
    fn note(&self, now: Time, what: &'static str, message: MessageId) {
        let mut log = self.log.lock().unwrap();
        log.push((now, self.host, what, message.0));
    }
}

impl Program for Thrower {
    fn on_sent(&mut self, now: Time, connection: FlowId, message: MessageId) {
        assert_eq!(connection, self.to_other);
        self.note(now, "sent", message);
    }
    fn on_received(&mut self, now: Time, connection: FlowId, message: MessageId) {
        assert_ne!(connection, self.to_other);
        self.note(now, "received", message);
        self.serve = now + self.pause;
        if self.pause.is_zero() {
            self.on_deadline(now);
        }
    }
    fn on_deadline(&mut self, now: Time) {
        if now < self.serve {
            return;
        }
        self.serve = Time::NEVER;
        if self.thrown < self.throws {
            let (connection, message) = (self.to_other, MessageId(self.thrown));
            match (self.is_known)(self.thrown) {
                true => self.known.push_back(KnownTransfer {
                    connection,
                    message,
                    bytes: self.bytes,
                    received: ONE_WAY,
                    sent: ONE_WAY + ANSWER,
                }),
                false => self.posts.push_back(Post {
                    connection,
                    message,
                    bytes: self.bytes,
                }),
            }
            self.thrown += 1;
        }
    }
    fn deadline(&self) -> Time {
        self.serve
    }
    fn poll_post(&mut self) -> Option<Post> {
        self.posts.pop_front()
    }
    fn poll_known(&mut self) -> Option<KnownTransfer> {
        self.known.pop_front()
    }
}

fn fabric() -> Topology {
    let link = (Rate::from_gbps(400), Span::from_us(1));
    leaf_spine(HOSTS, 4, 2, 1, link, link).unwrap()
}

/// Hosts 0 and `other` throw a ball of so many bytes so many times each.
fn play(other: u32, bytes: u64, throws: u32, pause: Span, threads: usize) -> (Outcome, Vec<Entry>) {
    play_known((other, bytes), throws, pause, threads, |_| false)
}

/// The same, where some messages take the known times of a ball of one packet.
fn play_known(
    (other, bytes): (u32, u64),
    throws: u32,
    pause: Span,
    threads: usize,
    is_known: fn(u32) -> bool,
) -> (Outcome, Vec<Entry>) {
    let topology = fabric();
    let routes = Routes::compute(&topology).unwrap();
    let network = routes.paths.network_facts(SIZES);
    let connection = |src, dst| Flow {
        src: HostId(src),
        dst: HostId(dst),
        bytes: Bytes::new(bytes * u64::from(throws)),
        transport: 0,
        variant: 0,
        phase: Bytes::ZERO,
        class: Class::DATA,
        messages: NonZeroU32::new(throws),
        start: None,
    };
    let setup = Setup {
        topology: &topology,
        routes,
        flows: [connection(0, other), connection(other, 0)].into(),
        further_classes: ClassSet::EMPTY,
        profile: Arc::new(Profile::strack(network)),
        further_transports: Default::default(),
        switch: SwitchParameters::default(),
        buffer: None,
        link_events: Default::default(),
        seed: 1,
    };
    let log: Log = Arc::default();
    let program = |host: HostId| {
        let serve = match host.0 {
            0 => Time::from_us(3),
            host if host == other => Time::NEVER,
            _ => return None,
        };
        Some(Box::new(Thrower {
            host: host.0,
            to_other: FlowId(u32::from(host.0 != 0)),
            bytes: Bytes::new(bytes),
            throws,
            thrown: 0,
            serve,
            pause,
            posts: VecDeque::new(),
            is_known,
            known: VecDeque::new(),
            log: Arc::clone(&log),
        }) as Box<dyn Program>)
    };
    let simulation = Simulation::new(&setup, |_| None, Watch::Off).with_programs(program);
    let outcome = simulation.run(RunControl {
        threads: threads.into(),
        at_most: Time::NEVER,
        coordinator: None,
        traffic: None,
        coordination_delay: None,
        on_progress: &mut |_| RunDecision::Continue,
    });
    outcome.check_conservation().unwrap();
    let mut log = log.lock().unwrap().clone();
    log.sort_unstable();
    (outcome, log)
}

/// 4150 B at 400 Gb/s are 83 ns; four links of 1 us, store and forward.
const ONE_WAY: Span = Span::from_ns(4 * (1000 + 83));
/// 64 B are 1.28 ns.
const ANSWER: Span = Span::from_ps(4 * (1_000_000 + 1280));

#[test]
fn a_ball_goes_to_and_fro() {
    for (threads, pause) in [
        (1, Span::ZERO),
        (1, Span::from_us(50)),
        (3, Span::from_us(2)),
    ] {
        let (outcome, log) = play(5, 4086, 3, pause, threads);
        assert_eq!(outcome.stopped, None);
        let mut expected = Vec::new();
        let mut now = Time::from_us(3);
        for throw in 0..6u32 {
            let (from, to) = if throw % 2 == 0 { (0, 5) } else { (5, 0) };
            now += ONE_WAY;
            expected.push((now, to, "received", throw / 2));
            expected.push((now + ANSWER, from, "sent", throw / 2));
            // The acknowledgement leaves before the message that the host throws back at once.
            now += pause.max(Span::from_ps(1280));
        }
        expected.sort_unstable();
        assert_eq!(log, expected, "{pause}");
        // The connections as flows: from the first message to the last acknowledgement.
        let [there, back] = &outcome.flows[..] else {
            panic!("two connections")
        };
        let times = |who: u32, what: &str| {
            let own = expected
                .iter()
                .filter(|entry| entry.1 == who && entry.2 == what);
            own.map(|entry| entry.0).max()
        };
        assert_eq!(there.started, Some(Time::from_us(3)));
        assert_eq!(
            (there.received, there.sent),
            (times(5, "received"), times(0, "sent"))
        );
        assert_eq!(
            (back.received, back.sent),
            (times(0, "received"), times(5, "sent"))
        );
        assert_eq!(there.statistics.packets, 3);
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    let one = play(6, 3_000_000, 4, Span::from_ns(700), 1);
    let three = play(6, 3_000_000, 4, Span::from_ns(700), 3);
    assert_eq!(one.0.digest, three.0.digest);
    assert_eq!(one.1, three.1);
    assert_eq!(one.1.len(), 16);
}

#[test]
fn messages_of_known_times_take_no_packets() {
    let ball = (5, 4086);
    let pause = Span::from_us(50);
    let (simulated, log) = play_known(ball, 6, pause, 1, |_| false);
    let ways: [fn(u32) -> bool; 4] = [|n| n % 2 == 0, |n| n % 2 == 1, |n| n < 5, |_| true];
    for is_known in ways {
        let packets = (0..6).filter(|&number| !is_known(number)).count() as u64;
        for threads in [1, 3] {
            let (outcome, own) = play_known(ball, 6, pause, threads, is_known);
            assert_eq!(outcome.stopped, None);
            assert_eq!(own, log);
            assert_eq!(outcome.endpoints.data_sent, 2 * packets);
            for (flow, other) in outcome.flows.iter().zip(&simulated.flows) {
                let times = |flow: &FlowOutcome| (flow.started, flow.received, flow.sent);
                assert_eq!(times(flow), times(other));
                assert_eq!(flow.statistics.packets, packets);
            }
        }
    }
}

/// Computes until `end`, and posts nothing; one that gives up never does so.
struct Computer {
    end: Time,
    gives_up: bool,
    over: Option<Time>,
}

impl Program for Computer {
    fn on_sent(&mut self, _: Time, _: FlowId, _: MessageId) {}
    fn on_received(&mut self, _: Time, _: FlowId, _: MessageId) {}
    fn on_deadline(&mut self, now: Time) {
        if now >= self.end {
            self.end = Time::NEVER;
            self.over = Some(now).filter(|_| !self.gives_up);
        }
    }
    fn deadline(&self) -> Time {
        self.end
    }
    fn poll_post(&mut self) -> Option<Post> {
        None
    }
    fn over(&self) -> Option<Time> {
        self.over
    }
}

/// A message from host 0 to host 1, and a computation of 500 us at host 2.
fn compute_beside_a_flow(at_most: Time, gives_up: bool, interrupt: bool) -> Outcome {
    let topology = fabric();
    let routes = Routes::compute(&topology).unwrap();
    let network = routes.paths.network_facts(SIZES);
    let setup = Setup {
        topology: &topology,
        routes,
        flows: [Flow::timed(
            HostId(0),
            HostId(1),
            Bytes::new(4086),
            Time::ZERO,
        )]
        .into(),
        further_classes: ClassSet::EMPTY,
        profile: Arc::new(Profile::strack(network)),
        further_transports: Default::default(),
        switch: SwitchParameters::default(),
        buffer: None,
        link_events: Default::default(),
        seed: 1,
    };
    let program = |host: HostId| {
        (host.0 == 2).then(|| {
            Box::new(Computer {
                end: Time::from_us(500),
                gives_up,
                over: None,
            }) as Box<dyn Program>
        })
    };
    let outcome = Simulation::new(&setup, |_| None, Watch::Off)
        .with_programs(program)
        .run(RunControl {
            threads: 1.into(),
            at_most,
            coordinator: None,
            traffic: None,
            coordination_delay: None,
            on_progress: &mut |progress| match interrupt && progress.flows_sent == 1 {
                true => RunDecision::Stop,
                false => RunDecision::Continue,
            },
        });
    outcome.check_conservation().unwrap();
    assert!(outcome.flows[0].sent.unwrap() < Time::from_us(20));
    outcome
}

#[test]
fn a_run_is_over_when_its_programs_are() {
    let end = |outcome: &Outcome| (outcome.stopped, outcome.finished);
    let limit = Time::from_us(100);
    let whole = compute_beside_a_flow(Time::NEVER, false, false);
    assert_eq!(end(&whole), (None, Time::from_us(500)));
    let cut = compute_beside_a_flow(limit, false, false);
    assert_eq!(end(&cut), (Some(Stopped::AtMost), limit));
    assert_eq!(cut.cut_off, Some(limit));
    assert_eq!(cut.digest, whole.digest);
    let stuck = compute_beside_a_flow(Time::NEVER, true, false);
    assert_eq!(stuck.stopped, Some(Stopped::Stuck));
    let interrupted = compute_beside_a_flow(Time::NEVER, false, true);
    assert_eq!(interrupted.stopped, Some(Stopped::Interrupted));
    assert!(interrupted.finished < limit);
}

#[test]
fn a_program_that_stops_half_way_leaves_a_run_stuck() {
    let topology = fabric();
    let routes = Routes::compute(&topology).unwrap();
    let network = routes.paths.network_facts(SIZES);
    let setup = Setup {
        topology: &topology,
        routes,
        flows: [Flow {
            src: HostId(0),
            dst: HostId(1),
            bytes: Bytes::new(2000),
            transport: 0,
            variant: 0,
            phase: Bytes::ZERO,
            class: Class::DATA,
            messages: NonZeroU32::new(2),
            start: None,
        }]
        .into(),
        further_classes: ClassSet::EMPTY,
        profile: Arc::new(Profile::strack(network)),
        further_transports: Default::default(),
        switch: SwitchParameters::default(),
        buffer: None,
        link_events: Default::default(),
        seed: 1,
    };
    let log: Log = Arc::default();
    let program = |host: HostId| {
        (host.0 < 2).then(|| {
            Box::new(Thrower {
                host: host.0,
                to_other: FlowId(host.0),
                bytes: Bytes::new(1000),
                throws: 1 - host.0,
                thrown: 0,
                serve: Time::ZERO,
                pause: Span::ZERO,
                posts: VecDeque::new(),
                is_known: |_| false,
                known: VecDeque::new(),
                log: Arc::clone(&log),
            }) as Box<dyn Program>
        })
    };
    let simulation = Simulation::new(&setup, |_| None, Watch::Off).with_programs(program);
    let outcome = simulation.run(RunControl {
        threads: 1.into(),
        at_most: Time::NEVER,
        coordinator: None,
        traffic: None,
        coordination_delay: None,
        on_progress: &mut |_| RunDecision::Continue,
    });
    assert_eq!(outcome.stopped, Some(Stopped::Stuck));
    assert_eq!(outcome.flows[0].sent, None);
}

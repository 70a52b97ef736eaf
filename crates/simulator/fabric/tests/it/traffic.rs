//! Flows that are pulled one after the other run as if they had all been known.

use clearway_fabric::topology::{PacketSizes, Routes, Topology, leaf_spine};
use clearway_fabric::{
    Advance, Driver, Flow, FlowEvent, FlowOutcome, FlowSource, Outcome, RunControl, RunDecision,
    Setup, Simulation, Stopped, SwitchParameters, Traffic, Watch,
};
use clearway_transport::{ClassSet, Profile};
use clearway_units::{Bytes, FlowId, HostId, Purpose, RandomStream, Rate, Span, Time};
use std::cell::Cell;
use std::sync::Arc;

const HOSTS: u32 = 12;
const SIZES: PacketSizes = PacketSizes {
    payload: 1000,
    header: 48,
    ack: 60,
};

/// Flows in the order of their starts: bunches at one instant, close neighbours and long pauses.
fn flows(count: usize, seed: u64) -> Vec<Flow> {
    let mut random = RandomStream::new(seed, Purpose::Test, 0);
    let mut start = Time::ZERO;
    let mut flow = || {
        start += match random.below(4) {
            0 => Span::ZERO,
            1 => Span::from_ns(u64::from(random.below(900))),
            2 => Span::from_us(u64::from(random.below(4))),
            _ => Span::from_us(u64::from(random.below(40))),
        };
        let src = random.below(HOSTS);
        let dst = (src + 1 + random.below(HOSTS - 1)) % HOSTS;
        Flow::timed(
            HostId(src),
            HostId(dst),
            Bytes::new(1 + u64::from(random.below(30_000))),
            start,
        )
    };
    (0..count).map(|_| flow()).collect()
}

fn setup(topology: &Topology, flows: Vec<Flow>) -> Setup<'_> {
    let routes = Routes::compute(topology).unwrap();
    let network = routes.paths.network_facts(SIZES);
    Setup {
        topology,
        routes,
        flows: flows.into(),
        further_classes: ClassSet::EMPTY,
        profile: Arc::new(Profile::strack(network)),
        further_transports: Default::default(),
        switch: SwitchParameters::default(),
        buffer: None,
        link_events: Arc::default(),
        seed: 3,
    }
}

fn run(setup: &Setup<'_>, threads: usize, at_most: Time, traffic: Option<Traffic<'_>>) -> Outcome {
    let mut on_progress = |_| RunDecision::Continue;
    let traffic = traffic.map(|traffic| Traffic {
        arrivals: match traffic.arrivals {
            FlowSource::Known(flows) => FlowSource::Known(flows),
            FlowSource::Posted(driver) => FlowSource::Posted(driver),
        },
        on_done: traffic.on_done,
    });
    let outcome = Simulation::new(setup, |_| None, Watch::Off).run(RunControl {
        threads: threads.into(),
        at_most,
        coordinator: None,
        traffic,
        coordination_delay: None,
        on_progress: &mut on_progress,
    });
    outcome.check_conservation().unwrap();
    outcome
}

fn fabric() -> Topology {
    let link = (Rate::from_gbps(100), Span::from_us(1));
    leaf_spine(HOSTS, 4, 2, 1, link, link).unwrap()
}

/// Runs all flows as a stream beside the setup's flows. Returns the outcome of each, and the most that were under way.
fn stream(
    setup: &Setup<'_>,
    threads: usize,
    at_most: Time,
    flows: &[Flow],
) -> (Outcome, Vec<(FlowId, Flow, FlowOutcome)>, usize) {
    let (under_way, most) = (Cell::new(0), Cell::new(0));
    let mut arrivals = flows.iter().copied().inspect(|_| {
        under_way.set(under_way.get() + 1);
        most.set(most.get().max(under_way.get()));
    });
    let mut done = Vec::new();
    let mut on_done = |id, flow: &Flow, outcome: &FlowOutcome| {
        under_way.set(under_way.get() - 1);
        done.push((id, *flow, *outcome));
    };
    let traffic = Traffic {
        arrivals: FlowSource::Known(&mut arrivals),
        on_done: &mut on_done,
    };
    let outcome = run(setup, threads, at_most, Some(traffic));
    (outcome, done, most.get())
}

#[test]
fn a_stream_runs_as_a_table_does_and_holds_only_what_is_under_way() {
    let topology = fabric();
    for seed in 0..3 {
        let flows = flows(400, seed);
        let table = setup(&topology, flows.clone());
        let expected = run(&table, 1, Time::NEVER, None);
        assert_eq!(expected.stopped, None);
        for threads in [1, 3] {
            let bare = setup(&topology, Vec::new());
            let (outcome, mut done, most) = stream(&bare, threads, Time::NEVER, &flows);
            assert_eq!(outcome.digest, expected.digest, "seed {seed}");
            assert_eq!(outcome.finished, expected.finished);
            assert!(outcome.flows.is_empty());
            assert!(most < 40, "{most} flows of 400 are held at once");
            let ends: Vec<_> = done.iter().map(|(_, _, outcome)| outcome.sent).collect();
            assert!(ends.is_sorted(), "flows are handed out as they end");
            done.sort_by_key(|(id, ..)| *id);
            let same = done.iter().zip(&flows).zip(&expected.flows);
            assert_eq!(done.len(), flows.len());
            for ((streamed, flow), outcome) in same {
                assert_eq!(
                    (&streamed.1, &streamed.2),
                    (flow, outcome),
                    "{}",
                    streamed.0
                );
            }
        }
    }
}

#[test]
fn flows_of_a_table_and_of_a_stream_run_side_by_side() {
    let topology = fabric();
    let all = flows(400, 9);
    let (first, then) = all.split_at(200);
    let whole = run(&setup(&topology, all.clone()), 1, Time::NEVER, None);
    let table = setup(&topology, first.to_vec());
    let (outcome, done, _) = stream(&table, 2, Time::NEVER, then);
    assert_eq!(outcome.digest, whole.digest);
    assert_eq!((outcome.flows.len(), done.len()), (200, 200));
    assert!(done.iter().all(|(id, ..)| id.index() >= 200));
}

#[test]
fn a_stream_that_is_cut_off_hands_out_what_is_left() {
    let topology = fabric();
    let flows = flows(500, 4);
    let half = flows[250].start.unwrap();
    let bare = setup(&topology, Vec::new());
    let (outcome, done, _) = stream(&bare, 1, half, &flows);
    assert_eq!(outcome.stopped, Some(Stopped::AtMost));
    let table = run(&setup(&topology, flows.clone()), 1, half, None);
    assert_eq!(outcome.digest, table.digest);
    assert_eq!(done.len(), flows.len());
    let unfinished = done.iter().filter(|(.., outcome)| outcome.sent.is_none());
    let ids: Vec<FlowId> = unfinished.map(|(id, ..)| *id).collect();
    assert!(ids.len() > 250 && ids.is_sorted());
    let under_way = ids.iter().filter(|id| id.index() < 250).count();
    assert!((1..20).contains(&under_way), "{under_way}");
    for (id, flow, outcome) in &done {
        assert_eq!(flow, &flows[id.index()]);
        assert_eq!(outcome, &table.flows[id.index()]);
    }
}

/// Advances in steps of any length, posts each flow when its start has come and stops at `end`.
struct Stepper<'a> {
    left: &'a [Flow],
    now: Time,
    steps: RandomStream,
    longest: Span,
    end: Time,
    seen: Vec<(Time, FlowEvent)>,
}

impl Driver for Stepper<'_> {
    fn advance(&mut self, now: Time, next: Time, post: &mut Vec<Flow>) -> Advance {
        if self.left.is_empty() && self.end.is_never() {
            return Advance::ToTheEnd;
        }
        assert!(now <= self.now, "no round goes beyond what was asked for");
        let mut next = next;
        while next >= self.now {
            if self.now >= self.end {
                return Advance::Stop;
            }
            let due = self
                .left
                .iter()
                .take_while(|flow| flow.start.unwrap() <= self.now);
            let due = due.count();
            let (flows, left) = self.left.split_at(due);
            post.extend(flows.iter().map(|flow| Flow {
                start: Some(self.now),
                ..*flow
            }));
            self.left = left;
            if due > 0 {
                next = next.min(self.now);
            }
            if left.is_empty() && self.end.is_never() {
                return Advance::ToTheEnd;
            }
            let step = 1 + u64::from(self.steps.below(self.longest.as_ps() as u32));
            let step = self.now + Span::from_ps(step);
            // No flow is posted later than it starts.
            let start = left.first().and_then(|flow| flow.start);
            self.now = step.min(start.unwrap_or(step)).min(self.end);
        }
        Advance::Until(self.now)
    }

    fn on_event(&mut self, event: FlowEvent) {
        assert!(event.time < self.now || self.left.is_empty());
        self.seen.push((event.time, event));
    }
}

/// Runs `flows` as a driver posts them, in steps of at most `longest`, until `end`.
fn drive(
    topology: &Topology,
    threads: usize,
    flows: &[Flow],
    (longest, end): (Span, Time),
) -> (Outcome, Vec<(Time, FlowEvent)>) {
    let mut stepper = Stepper {
        left: flows,
        now: Time::ZERO,
        steps: RandomStream::new(longest.as_ps(), Purpose::Test, 1),
        longest,
        end,
        seen: Vec::new(),
    };
    let traffic = Traffic {
        arrivals: FlowSource::Posted(&mut stepper),
        on_done: &mut |_, _, _| (),
    };
    let bare = setup(topology, Vec::new());
    let outcome = run(&bare, threads, Time::NEVER, Some(traffic));
    (outcome, stepper.seen)
}

#[test]
fn posted_flows_run_as_known_ones_whatever_the_steps() {
    let topology = fabric();
    for seed in 0..3 {
        let flows = flows(300, seed);
        let expected = run(&setup(&topology, flows.clone()), 1, Time::NEVER, None);
        let mut events = None;
        for (threads, longest) in [(1, 3), (1, 800), (2, 4_000), (1, 90_000), (3, 700)] {
            let longest = Span::from_ns(longest);
            let (outcome, seen) = drive(&topology, threads, &flows, (longest, Time::NEVER));
            assert_eq!(outcome.digest, expected.digest, "steps of {longest}");
            assert_eq!(
                (outcome.stopped, outcome.finished),
                (None, expected.finished)
            );
            let first = events.get_or_insert_with(|| seen.clone());
            assert_eq!(&seen, first, "steps of {longest}");
            assert_eq!(seen.len(), 3 * flows.len(), "started, received, sent");
        }
    }
}

#[test]
fn a_driver_ends_the_run_when_it_likes() {
    let topology = fabric();
    let flows = flows(300, 8);
    let half = flows[150].start.unwrap() + Span::from_ns(1);
    let limits = (Span::from_us(3), half);
    let (outcome, seen) = drive(&topology, 1, &flows, limits);
    assert_eq!(outcome.stopped, Some(Stopped::Interrupted));
    let (again, same) = drive(&topology, 3, &flows, (Span::from_ns(500), half));
    assert_eq!((again.digest, &same), (outcome.digest, &seen));
    // All is done long before the end: nothing is missing.
    let late = (Span::from_us(100), Time::from_us(1_000_000));
    let (outcome, _) = drive(&topology, 1, &flows[..20], late);
    assert_eq!(outcome.stopped, None);
}

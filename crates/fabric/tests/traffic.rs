//! Flows that are pulled one after the other run as if they had all been known.

use clearway_fabric::topology::{PacketSizes, Routes, Topology, leaf_spine};
use clearway_fabric::{
    Flow, FlowOutcome, Outcome, RunControl, Setup, Simulation, Stopped, SwitchParameters, Traffic,
    Verdict,
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
        switch: SwitchParameters::default(),
        buffer: None,
        seed: 3,
    }
}

fn run(
    setup: &Setup<'_>,
    threads: usize,
    at_most: Time,
    traffic: Option<Traffic<'_>>,
) -> Outcome<()> {
    let mut on_progress = |_| Verdict::Continue;
    let traffic = traffic.map(|traffic| Traffic {
        arrivals: traffic.arrivals,
        on_done: traffic.on_done,
    });
    let outcome = Simulation::new(setup, |_| None, || ()).run(RunControl {
        threads,
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

/// Runs all flows as a stream beside those of the setup; what became of each, and the most that were under way.
fn stream(
    setup: &Setup<'_>,
    threads: usize,
    at_most: Time,
    flows: &[Flow],
) -> (Outcome<()>, Vec<(FlowId, Flow, FlowOutcome)>, usize) {
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
        arrivals: &mut arrivals,
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

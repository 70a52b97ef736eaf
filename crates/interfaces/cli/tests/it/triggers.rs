//! Triggers of `.cm` files, and the start times of the triggered flows.

use crate::common::{Bench, matrix_scenario};
use clearway_lab::{Finished, Laboratory};
use clearway_units::Span;

/// Runs a connection matrix on 16 hosts, with four on each leaf.
fn run(name: &str, matrix: &str, overrides: &[&str]) -> Finished {
    let bench = Bench::new(name);
    bench.write("x.cm", matrix);
    bench.write("s.toml", &matrix_scenario("x.cm"));
    let laboratory = Laboratory::new();
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let path = bench.path("s.toml");
    let scenario = laboratory.load(path.to_str().unwrap(), &overrides).unwrap();
    laboratory.run(&scenario).unwrap()
}

/// The time from the end of flow `first`, at its sender, to the start of flow `second`.
fn sent_to_start(finished: &Finished, first: usize, second: usize) -> Span {
    let end = finished.flows[first].finished.expect("it ends");
    finished.flows[second]
        .started
        .expect("it starts")
        .since(end)
}

#[test]
fn on_its_own_host_a_trigger_acts_at_once() {
    let finished = run(
        "trigger-local",
        "Nodes 16\nConnections 2\nTriggers 1\n0->13 id 1 start 0 size 20000 send_done_trigger 1\n0->9 id 2 trigger 1 size 20000\ntrigger id 1 oneshot\n",
        &[],
    );
    assert_eq!(sent_to_start(&finished, 0, 1), Span::ZERO);
}

#[test]
fn the_receiver_starts_its_answer_at_once() {
    let finished = run(
        "trigger-answer",
        "Nodes 16\nConnections 2\nTriggers 1\n0->13 id 1 start 0 size 4096 recv_done_trigger 1\n13->0 id 2 trigger 1 size 4096\ntrigger id 1 oneshot\n",
        &[],
    );
    // Four links: 1 us and the serialisation of 4096 B + 64 B at 400 Gb/s each.
    let one_way = Span::from_us(4) + Span::from_ps(4 * 4160 * 20);
    let started = finished.flows[1].started.expect("it starts");
    assert_eq!(started.since(clearway_units::Time::ZERO), one_way);
}

const ELSEWHERE: &str = "Nodes 16\nConnections 2\nTriggers 1\n0->13 id 1 start 0 size 20000 send_done_trigger 1\n5->9 id 2 trigger 1 size 20000\ntrigger id 1 oneshot\n";

#[test]
fn news_takes_the_shortest_link_delay_to_another_host() {
    let finished = run("trigger-elsewhere", ELSEWHERE, &[]);
    assert_eq!(sent_to_start(&finished, 0, 1), Span::from_us(1));
    let finished = run("trigger-delay", ELSEWHERE, &["trigger-delay=7us"]);
    assert_eq!(sent_to_start(&finished, 0, 1), Span::from_us(7));
    // A trigger does not travel faster than the delay of a link.
    let finished = run("trigger-too-fast", ELSEWHERE, &["trigger-delay=1ns"]);
    assert_eq!(sent_to_start(&finished, 0, 1), Span::from_us(1));
}

#[test]
fn a_barrier_waits_for_the_last() {
    let finished = run(
        "trigger-barrier",
        "Nodes 16\nConnections 4\nTriggers 1\n0->13 id 1 start 0 size 20000 send_done_trigger 1\n1->12 id 2 start 30 size 200000 send_done_trigger 1\n2->11 id 3 trigger 1 size 20000\n3->10 id 4 trigger 1 size 20000\ntrigger id 1 barrier count 2\n",
        &[],
    );
    assert!(finished.flows[1].finished > finished.flows[0].finished);
    for waiting in [2, 3] {
        assert_eq!(sent_to_start(&finished, 1, waiting), Span::from_us(1));
    }
}

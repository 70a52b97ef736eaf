//! Wall-clock time of a whole fabric: engine, switches, hosts and transport together.
//!
//! `cargo bench -p clearway-fabric`. For figures that a busy machine does not disturb see `cargo xtask bench`.

#![allow(missing_docs, reason = "criterion's macros declare functions")]

use clearway_fabric::topology::{PacketSizes, Routes, Topology, leaf_spine};
use clearway_fabric::{
    Flow, Outcome, RunControl, RunDecision, Setup, Simulation, SwitchParameters, Watch,
};
use clearway_transport::{ClassSet, Profile};
use clearway_units::{Bytes, HostId, Purpose, RandomStream, Rate, Span, Time};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::sync::Arc;

const SIZES: PacketSizes = PacketSizes {
    payload: 4096,
    header: 64,
    ack: 64,
};

fn fabric(hosts: u32, per_leaf: u32) -> Topology {
    let link = (Rate::from_gbps(400), Span::from_us(1));
    leaf_spine(hosts, per_leaf, per_leaf, 1, link, link).expect("the numbers come out even")
}

/// Every host sends one message to the next in a random circle.
fn permutation(topology: &Topology, bytes: u64) -> Setup<'_> {
    let routes = Routes::compute(topology).expect("all links are up");
    let profile = Profile::strack(routes.paths.network_facts(SIZES));
    let mut order: Vec<u32> = (0..topology.hosts).collect();
    RandomStream::new(1, Purpose::Test, 0).shuffle(&mut order);
    let flows = (0..order.len()).map(|i| {
        Flow::timed(
            HostId(order[i]),
            HostId(order[(i + 1) % order.len()]),
            Bytes::new(bytes),
            Time::ZERO,
        )
    });
    Setup {
        topology,
        routes,
        flows: flows.collect(),
        further_classes: ClassSet::EMPTY,
        profile: Arc::new(profile),
        further_transports: Default::default(),
        switch: SwitchParameters::default(),
        buffer: None,
        link_events: Arc::default(),
        seed: 1,
    }
}

fn run(setup: &Setup<'_>, threads: usize) -> Outcome {
    Simulation::new(setup, |_| None, Watch::Off).run(RunControl {
        threads: threads.into(),
        at_most: Time::from_us(1_000_000),
        coordinator: None,
        traffic: None,
        coordination_delay: None,
        on_progress: &mut |_| RunDecision::Continue,
    })
}

fn permutations(criterion: &mut Criterion) {
    let topology = fabric(128, 16);
    let setup = permutation(&topology, 500_000);
    let mut group = criterion.benchmark_group("permutation of 128 hosts, 500 KB");
    group.sample_size(20);
    // Throughput in packet-hops.
    group.throughput(Throughput::Elements(run(&setup, 1).links.hops));
    for threads in [1, 2] {
        group.bench_function(format!("{threads} threads"), |bencher| {
            bencher.iter(|| run(&setup, threads).links.hops);
        });
    }
    group.finish();
}

criterion_group!(benches, permutations);
criterion_main!(benches);

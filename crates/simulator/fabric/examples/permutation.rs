//! Times a permutation on a leaf-spine fabric: hosts per leaf, leaves, bytes, threads.
use clearway_fabric::topology::{PacketSizes, Routes, leaf_spine};
use clearway_fabric::{Flow, RunControl, RunDecision, Setup, Simulation, SwitchParameters, Watch};
use clearway_transport::{ClassSet, Profile};
use clearway_units::{Bytes, HostId, Purpose, RandomStream, Rate, Span, Time};
use std::sync::Arc;

fn main() {
    let arguments: Vec<u64> = std::env::args()
        .skip(1)
        .map(|text| text.parse().expect("a number"))
        .collect();
    let [per_leaf, leaves, bytes, threads] = arguments[..] else {
        panic!("four numbers")
    };
    let link = (Rate::from_gbps(400), Span::from_us(1));
    let hosts = (per_leaf * leaves) as u32;
    let topology =
        leaf_spine(hosts, per_leaf as u32, per_leaf as u32, 1, link, link).expect("fits");
    let routes = Routes::compute(&topology).expect("connected");
    let facts = routes.paths.network_facts(PacketSizes {
        payload: 4086,
        header: 64,
        ack: 64,
    });
    let mut order: Vec<u32> = (0..hosts).collect();
    RandomStream::new(1, Purpose::Test, 0).shuffle(&mut order);
    let flows = (0..order.len()).map(|i| {
        Flow::timed(
            HostId(order[i]),
            HostId(order[(i + 1) % order.len()]),
            Bytes::new(bytes),
            Time::ZERO,
        )
    });
    let setup = Setup {
        topology: &topology,
        routes,
        flows: flows.collect(),
        further_classes: ClassSet::EMPTY,
        profile: Arc::new(Profile::strack(facts)),
        further_transports: Default::default(),
        switch: SwitchParameters::default(),
        buffer: None,
        link_events: Arc::default(),
        seed: 1,
    };
    let outcome = Simulation::new(&setup, |_| None, Watch::Off).run(RunControl {
        threads: (threads as usize).into(),
        at_most: Time::from_us(1_000_000),
        coordinator: None,
        traffic: None,
        coordination_delay: None,
        on_progress: &mut |_| RunDecision::Continue,
    });
    eprintln!(
        "finished {} hops {} data {} dropped {} marked {} retransmitted {} digest {} rounds {} {:?}",
        outcome.finished,
        outcome.links.hops,
        outcome.links.data_hops,
        outcome.links.dropped,
        outcome.links.marked,
        outcome.endpoints.retransmitted,
        outcome.digest,
        outcome.rounds.total,
        outcome.check_conservation()
    );
}

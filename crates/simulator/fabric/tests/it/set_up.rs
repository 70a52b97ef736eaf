//! Fabrics that several threads put together.

use clearway_fabric::topology::{NodeId, PacketSizes, Routes, leaf_spine};
use clearway_fabric::{
    Flow, FlowEvent, FlowMilestone, Observer, Outcome, Reactions, RunControl, RunDecision, Setup,
    Simulation, SwitchParameters, Watch,
};
use clearway_transport::{ClassSet, Packet, Profile};
use clearway_units::{Bytes, FlowId, HostId, Rate, Span, Time};
use std::collections::BTreeSet;
use std::sync::Arc;

const HOSTS: u32 = 8192;

/// Host that starts a further flow when it has sent its first one.
const REACTING: HostId = HostId(5);

struct SendMore;

impl Reactions for SendMore {
    fn on_event(&mut self, event: FlowEvent, start: &mut Vec<FlowId>) {
        if event.flow == FlowId(REACTING.0) && event.milestone == FlowMilestone::Sent {
            start.push(FlowId(HOSTS));
        }
    }
}

/// The switches at which packets have arrived.
#[derive(Debug, Default, PartialEq)]
struct Switches(BTreeSet<NodeId>);

impl Observer for Switches {
    fn on_arrival(&mut self, _: Time, node: NodeId, _: &Packet) {
        if node.0 >= HOSTS {
            self.0.insert(node);
        }
    }
}

fn run(setup: &Setup<'_>, threads: usize) -> (Outcome, Vec<Switches>, Vec<u32>) {
    let mut asked = Vec::new();
    let reactions = |host: HostId| {
        asked.push(host.0);
        (host == REACTING).then(|| Box::new(SendMore) as Box<dyn Reactions>)
    };
    let mut observers = setup.per_domain(Switches::default);
    let watch = Watch::by(&mut observers);
    let simulation = Simulation::by_threads(threads.into(), setup, reactions, watch);
    let outcome = simulation.run(RunControl {
        threads: 1.into(),
        at_most: Time::from_us(1_000),
        coordinator: None,
        traffic: None,
        coordination_delay: None,
        on_progress: &mut |_| RunDecision::Continue,
    });
    (outcome, observers, asked)
}

#[test]
fn a_large_fabric_is_the_same_by_any_number_of_threads() {
    let link = (Rate::from_gbps(400), Span::from_us(1));
    let topology = leaf_spine(HOSTS, 64, 16, 1, link, link).unwrap();
    let routes = Routes::compute(&topology).unwrap();
    let facts = routes.paths.network_facts(PacketSizes {
        payload: 4096,
        header: 54,
        ack: 64,
    });
    let shifted = |host: u32| HostId((host + 1_000) % HOSTS);
    let mut flows: Vec<Flow> = (0..HOSTS)
        .map(|host| Flow::timed(HostId(host), shifted(host), Bytes::new(9_000), Time::ZERO))
        .collect();
    flows.push(Flow {
        start: None,
        ..Flow::timed(REACTING, HostId(6), Bytes::new(1), Time::ZERO)
    });
    let setup = Setup {
        topology: &topology,
        routes,
        flows: flows.into(),
        further_classes: ClassSet::EMPTY,
        profile: Arc::new(Profile::strack(facts)),
        further_transports: Default::default(),
        switch: SwitchParameters::default(),
        buffer: None,
        link_events: Arc::default(),
        seed: 3,
    };
    let (alone, seen, asked) = run(&setup, 1);
    for (switch, seen) in seen.iter().enumerate() {
        let own = BTreeSet::from([topology.switch_node(switch)]);
        assert_eq!(seen.0, own, "each observer is that of its domain");
    }
    assert_eq!(asked, (0..HOSTS).collect::<Vec<_>>());
    assert!(alone.flows.iter().all(|flow| flow.received.is_some()));
    for threads in [2, 3] {
        let (shared, same_seen, same_asked) = run(&setup, threads);
        assert_eq!(shared.digest, alone.digest, "{threads} threads");
        assert_eq!(shared.finished, alone.finished);
        assert_eq!(same_seen, seen);
        assert_eq!(same_asked, asked);
    }
}

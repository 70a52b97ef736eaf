//! Predicted routes of packets, against the links that they crossed in a run.

use crate::common::Scenario;
use clearway_fabric::topology::LinkId;
use clearway_fabric::{Observer, PathChoice, TracedRoutes};
use clearway_transport::paths::SelectorSettings;
use clearway_transport::{Header, Packet};
use clearway_units::{FlowId, HostId, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The links that each data packet of a flow has crossed, by its source port.
#[derive(Default)]
struct Crossed(BTreeMap<(FlowId, HostId, HostId, u16), BTreeSet<LinkId>>);

impl Observer for Crossed {
    fn on_departure(&mut self, _: Time, link: LinkId, packet: &Packet) {
        if let Header::Data { .. } = packet.header {
            let key = (packet.flow, packet.src, packet.dst, packet.source_port);
            self.0.entry(key).or_default().insert(link);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn packets_go_where_trails_say(seed: u64, by_number: bool, sprays: bool) {
        let mut scenario = Scenario::random(seed);
        // Trails refer to the fabric at the start.
        scenario.link_events = Arc::default();
        scenario.switch.routing = match by_number {
            true => PathChoice::Destination,
            false => PathChoice::Ecmp,
        };
        if !sprays {
            let single = SelectorSettings::named("single").expect("built in");
            Arc::make_mut(&mut scenario.profile).selector = single;
        }
        let (_, observers) = scenario.run(1, Crossed::default);
        let setup = scenario.setup();
        let trails = TracedRoutes::new(&setup);
        let mut of_flows: BTreeMap<FlowId, BTreeSet<LinkId>> = BTreeMap::new();
        let mut crossed: BTreeMap<_, BTreeSet<LinkId>> = BTreeMap::new();
        for observer in observers {
            for (key, links) in observer.0 {
                crossed.entry(key).or_default().extend(links);
            }
        }
        for ((flow, src, dst, port), links) in crossed {
            let ways = trails.detours(src, dst).into_iter();
            let trail: BTreeSet<LinkId> = ways
                .flat_map(|via| trails.of_packet(src, dst, port, via).into_keys())
                .collect();
            // A packet may be lost on its way.
            prop_assert!(links.iter().all(|link| trail.contains(link)), "{links:?} {trail:?}");
            of_flows.entry(flow).or_default().extend(links);
        }
        for (flow, links) in of_flows {
            let predicted = trails.of_flow(flow);
            let first = scenario.flows[flow.index()].src;
            let up: f64 = predicted
                .iter()
                .filter(|(link, _)| scenario.topology.link_ends(**link).0.0 == first.0)
                .map(|(_, part)| part)
                .sum();
            prop_assert!((up - 1.0).abs() < 1e-9, "all of it leaves its host: {up}");
            if !sprays {
                prop_assert!(links.iter().all(|link| predicted.contains_key(link)));
            }
        }
    }
}

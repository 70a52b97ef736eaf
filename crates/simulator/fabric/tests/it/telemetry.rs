//! Telemetry of a switch port, worked out by hand.

use clearway_fabric::topology::{PacketSizes, Routes, single_switch};
use clearway_fabric::{
    Flow, RunControl, RunDecision, Setup, SharedBufferParameters, Simulation, SwitchParameters,
    Watch,
};
use clearway_transport::congestion::telemetry::Hop;
use clearway_transport::congestion::{
    AckSample, Allowance, CongestionControl, ControllerDefinition, ControllerSettings, NetworkFacts,
};
use clearway_transport::{ClassSet, Profile, Reliability};
use clearway_units::{Bytes, HostId, Rate, Span, Time};
use std::sync::{Arc, Mutex};

/// Hops of all acknowledgements.
static HOPS: Mutex<Vec<Hop>> = Mutex::new(Vec::new());

clearway_units::parameters! {
    /// Settings of the listener.
    pub struct Settings {
        /// Congestion window.
        pub window: Bytes = Bytes::new(1_000_000), "window", "more than the flows have";
    }
}

/// A controller that keeps its inputs.
#[derive(Debug)]
struct Listener(f64);

impl CongestionControl for Listener {
    fn on_ack(&mut self, sample: &AckSample<'_>) {
        HOPS.lock().unwrap().extend(sample.hops);
    }

    fn allowance(&self) -> Allowance {
        Allowance {
            window: self.0,
            rate: None,
        }
    }

    fn uses_telemetry(&self) -> bool {
        true
    }
}

impl ControllerDefinition for Listener {
    const NAME: &'static str = "listener";
    const SUMMARY: &'static str = "a fixed window, and notes of telemetry";
    type Parameters = Settings;

    fn new(settings: &Settings, _: &NetworkFacts) -> Self {
        Self(settings.window.as_f64())
    }
}

/// Records of the port to host 2, in the order of time: hosts 0 and 1 send it three packets each, host 1 by 100 ns later.
fn hops(buffer: Option<SharedBufferParameters>) -> Vec<Hop> {
    let topology = single_switch(3, Rate::from_gbps(100), Span::from_us(1)).unwrap();
    let routes = Routes::compute(&topology).unwrap();
    let sizes = PacketSizes {
        payload: 4086,
        header: 64,
        ack: 64,
    };
    let mut profile = Profile::strack(routes.paths.network_facts(sizes));
    profile.reliability = Reliability::named("go-back-n").unwrap();
    profile.controller = ControllerSettings::custom::<Listener>();
    let flow = |host, start| {
        let bytes = Bytes::new(3 * 4086);
        Flow::timed(
            HostId(host),
            HostId(2),
            bytes,
            Time::ZERO + Span::from_ns(start),
        )
    };
    HOPS.lock().unwrap().clear();
    let setup = Setup {
        topology: &topology,
        routes,
        flows: [flow(0, 0), flow(1, 100)].into(),
        further_classes: ClassSet::EMPTY,
        profile: Arc::new(profile),
        further_transports: Default::default(),
        switch: SwitchParameters::default(),
        buffer,
        link_events: Default::default(),
        seed: 1,
    };
    Simulation::new(&setup, |_| None, Watch::Off)
        .run(RunControl {
            threads: 1.into(),
            at_most: Time::from_us(1000),
            coordinator: None,
            traffic: None,
            coordination_delay: None,
            on_progress: &mut |_| RunDecision::Continue,
        })
        .check_conservation()
        .unwrap();
    let mut hops = HOPS.lock().unwrap().clone();
    hops.sort_by_key(|hop| hop.time);
    hops
}

/// A packet is 332 ns on the wire. Packets of host 0 reach the switch after 1332, 1664 and 1996 ns, packets of host 1 100 ns later, and the
/// port sends one after the other from 1332 ns on. Packets that come while a packet is on the wire are not in its record: behind the first
/// no packet waits, though the second comes before the first has left.
#[test]
fn a_hop_tells_the_state_of_the_port_when_it_dequeued_the_packet() {
    const PACKET: u32 = 4086 + 64;
    let behind = [0, 1, 2, 2, 1, 0];
    let expected: Vec<Hop> = (0..)
        .zip(behind)
        .map(|(number, behind)| Hop {
            time: Time::ZERO + Span::from_ns(1332 + 332 * u64::from(number)),
            rate: Rate::from_gbps(100),
            sent: number * PACKET,
            queue: behind * PACKET,
        })
        .collect();
    assert_eq!(hops(None), expected);
    assert_eq!(hops(Some(SharedBufferParameters::default())), expected);
}

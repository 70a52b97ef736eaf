//! The transports of a run: the network facts of each transport, and the flows that use it.

use crate::prepared::{PreparedFabric, at_transport};
use crate::scenario::validation::{
    check_ecn, check_queue, check_queues_of_file, check_timers, telemetry_bytes,
};
use crate::scenario::{Scenario, ScenarioError, TransportSettings};
use clearway_fabric::topology::{PacketSizes, Paths, Topology};
use clearway_fabric::{Flow, FurtherTransports};
use clearway_transport::congestion::NetworkFacts;
use clearway_transport::wire::Format;
use clearway_transport::{Class, Profile};
use clearway_workload::{FlowSpec, Start};
use std::num::NonZeroU32;
use std::sync::Arc;

/// A transport on the fabric of a run.
#[derive(Debug, Clone)]
pub(crate) struct RunTransport {
    /// Sizes of packets without telemetry.
    pub(crate) sizes: PacketSizes,
    pub(crate) profile: Arc<Profile>,
}

/// All transports of a run.
#[derive(Debug, Clone)]
pub(crate) struct RunTransports {
    /// The transport of `[transport]`, then the sections' own transports.
    all: Vec<RunTransport>,
    of_section: Vec<u8>,
}

impl RunTransports {
    /// The transports of a scenario, checked against its fabric.
    pub(crate) fn new(
        scenario: &Scenario,
        prepared: (&[PacketSizes], &Topology),
        paths: &Paths,
    ) -> Result<Self, ScenarioError> {
        let (sizes, topology) = prepared;
        let transports = scenario.transports();
        let settings = (0u8..).zip(transports.settings).zip(sizes);
        let transport = |((place, settings), &sizes): ((u8, &TransportSettings), _)| {
            let network = network_of(scenario, place, topology, (paths, sizes))?;
            let mut profile = Profile {
                variants: scenario.variants_of(place),
                strict_priority: scenario.switch.ports.strict_priority,
                ..settings.profile(network)
            };
            for index in scenario.disobedient(place) {
                let section = &scenario.workloads[index];
                let misbehaving = section.attack.misbehaving(&profile, &section.controller());
                let placed =
                    |error: ScenarioError| error.or_in(scenario.places(), "workload", index);
                profile.variants.push(misbehaving.map_err(placed)?);
            }
            Ok::<_, ScenarioError>(RunTransport {
                sizes,
                profile: Arc::new(profile),
            })
        };
        Ok(Self {
            all: settings.map(transport).collect::<Result<_, _>>()?,
            of_section: transports.of_section,
        })
    }

    /// The transport of `[transport]`.
    pub(crate) fn first(&self) -> &RunTransport {
        &self.all[0]
    }

    /// Transports in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &RunTransport> {
        self.all.iter()
    }

    /// Network facts of each transport, in the order of transport numbers.
    pub(crate) fn networks(&self) -> Vec<NetworkFacts> {
        self.iter().map(|own| own.profile.network).collect()
    }

    /// Number of the transport of a flow; messages outside of sections use the transport of `[transport]`.
    pub(crate) fn number_of(&self, flow: &FlowSpec) -> u8 {
        let own = self.of_section.get(flow.section as usize);
        own.copied().unwrap_or(0)
    }

    /// The transport of a flow.
    pub(crate) fn flow_transport(&self, flow: &FlowSpec) -> &RunTransport {
        self.numbered(self.number_of(flow))
    }

    pub(crate) fn numbered(&self, number: u8) -> &RunTransport {
        &self.all[usize::from(number)]
    }

    /// Transports after the first, in the fabric's form, with the streamed flows that use them.
    pub(crate) fn further(&self, stream: impl Iterator<Item = FlowSpec>) -> FurtherTransports {
        let further = self.all[1..].iter();
        let profiles: Vec<_> = further.map(|own| Arc::clone(&own.profile)).collect();
        let of_stream = match profiles.is_empty() {
            true => Arc::default(),
            false => stream.map(|flow| self.number_of(&flow)).collect(),
        };
        FurtherTransports {
            profiles,
            of_stream,
        }
    }

    /// The fabric's form of a flow of the workload.
    pub(crate) fn fabric_flow(&self, flow: &FlowSpec) -> Flow {
        Flow {
            src: flow.src,
            dst: flow.dst,
            bytes: flow.bytes,
            class: flow.priority.and_then(Class::new).unwrap_or(Class::DATA),
            transport: self.number_of(flow),
            variant: flow.variant,
            // Jobs set the phase of their connections later.
            phase: flow.bytes,
            messages: match flow.start {
                Start::Posted(messages) => NonZeroU32::new(messages),
                Start::At(_) | Start::On(_) => None,
            },
            start: match flow.start {
                Start::At(time) => Some(time),
                Start::On(_) | Start::Posted(_) => None,
            },
        }
    }

    /// Format that needs the most bytes of captured frames. RoCEv2 needs the whole frame, for its checksum.
    pub(crate) fn widest_format(&self) -> Format {
        let formats = self.all.iter();
        let mut formats = formats.map(|own| Format::for_reliability(&own.profile.reliability));
        match formats.any(|format| format == Format::Rocev2) {
            true => Format::Rocev2,
            false => Format::Strack,
        }
    }
}

/// Facts that a transport knows about the network, checked against its timers and the queues and ECN thresholds of the scenario.
pub(crate) fn network_of(
    scenario: &Scenario,
    transport: u8,
    topology: &Topology,
    (paths, sizes): (&Paths, PacketSizes),
) -> Result<NetworkFacts, ScenarioError> {
    let places = scenario.places();
    let here = |error| at_transport(scenario, transport, error);
    let transports = scenario.transports();
    let settings = transports.settings[usize::from(transport)];
    let network = paths.network_facts(sizes);
    let telemetry = telemetry_bytes(settings, &network, sizes).map_err(here)?;
    let network = paths.network_facts(sizes.with(telemetry));
    check_timers(settings, &network).map_err(here)?;
    check_queue(scenario, topology, &network).map_err(|error| error.or_in(places, "switch", 0))?;
    check_queues_of_file(scenario, topology, &network)
        .map_err(|error| error.or_in(places, "topology", 0))?;
    check_ecn(scenario, topology, &network).map_err(|error| error.or_in(places, "switch", 0))?;
    Ok(network)
}

/// As [`network_of`], for the transport of a section.
pub(crate) fn network_of_section(
    scenario: &Scenario,
    prepared: &PreparedFabric,
    section: usize,
    paths: &Paths,
) -> Result<NetworkFacts, ScenarioError> {
    let transport = prepared.transport_of_section[section];
    let seen = (paths, prepared.sizes_of(section));
    network_of(scenario, transport, &prepared.topology, seen)
}

//! Input of a run.

use crate::events::LinkSchedule;
use crate::flow::Flow;
use crate::path_table::PathTable;
use crate::switch::{SharedBufferParameters, SwitchParameters};
use crate::topology::{PacketSizes, Routes, Topology};
use clearway_transport::congestion::CongestionControl as _;
use clearway_transport::{ClassSet, Profile};
use clearway_units::Bytes;
use std::sync::Arc;

/// Input of a run: fabric, flows, transport, switches and seed.
#[derive(Debug, Clone)]
pub struct Setup<'a> {
    /// The fabric.
    pub topology: &'a Topology,
    /// Routes of the fabric.
    pub routes: Routes,
    /// All flows; flow `i` has [`FlowId`](clearway_units::FlowId) `i`.
    pub flows: Arc<[Flow]>,
    /// The classes of flows that come beside these: see [`RunControl::traffic`](super::RunControl::traffic).
    pub further_classes: ClassSet,
    /// The transport of all hosts; where there are several, the first one. Relative thresholds of switches refer to it. Line rate and
    /// bandwidth-delay product are replaced by the values of the host's own NIC.
    pub profile: Arc<Profile>,
    /// The transports of flows that do not use `profile`.
    pub further_transports: FurtherTransports,
    /// Settings of the switches.
    pub switch: SwitchParameters,
    /// The shared buffers of switches with priority flow control; without them each queue is separate and drops.
    pub buffer: Option<SharedBufferParameters>,
    /// Events of links during the run.
    pub link_events: Arc<LinkSchedule>,
    /// Seed of all random streams.
    pub seed: u64,
}

/// Transports of a run beside the first one. Each host has an endpoint of each.
#[derive(Debug, Clone, Default)]
pub struct FurtherTransports {
    /// Profiles of further transports; [`Flow::transport`] counts them from 1.
    pub profiles: Vec<Arc<Profile>>,
    /// The transports of flows that come beside [`Setup::flows`], in their order; those after the last have the first transport.
    pub of_stream: Arc<[u8]>,
}

impl Setup<'_> {
    /// Makes a value for each domain of the fabric, such as an [observer](crate::Watch::by): a domain is a switch with its hosts.
    pub fn per_domain<T>(&self, make: impl FnMut() -> T) -> Vec<T> {
        std::iter::repeat_with(make)
            .take(self.topology.switches.len())
            .collect()
    }

    /// The profiles of all transports.
    pub(super) fn profiles(&self) -> impl Iterator<Item = &Arc<Profile>> {
        std::iter::once(&self.profile).chain(&self.further_transports.profiles)
    }

    /// The profile of a [transport](Flow::transport).
    ///
    /// # Panics
    /// If the run has no such transport.
    pub fn profile_of(&self, transport: u8) -> &Arc<Profile> {
        match transport {
            0 => &self.profile,
            further => &self.further_transports.profiles[usize::from(further) - 1],
        }
    }

    /// The transport of each flow, listed or not; empty where there is one.
    pub(super) fn transports(&self) -> Arc<[u8]> {
        if self.further_transports.profiles.is_empty() {
            return Arc::default();
        }
        let listed = self.flows.iter().map(|flow| flow.transport);
        let streamed = self.further_transports.of_stream.iter().copied();
        listed.chain(streamed).collect()
    }

    /// Bytes of the largest packet of all transports.
    pub(super) fn largest_packet(&self) -> u16 {
        let sizes = self.profiles().map(|profile| profile.largest_packet());
        sizes.max().unwrap_or(u16::MAX)
    }

    /// Packets carry telemetry.
    pub(super) fn uses_telemetry(&self) -> bool {
        self.profiles().any(|profile| profile.uses_telemetry())
    }

    /// Links have agents.
    pub(super) fn uses_agents(&self) -> bool {
        let mut profiles = self.profiles();
        profiles.any(|profile| {
            let controller = profile.controller.build(&profile.network);
            controller.allocation().is_some()
        })
    }

    pub(super) fn path_table(&self) -> PathTable {
        let sizes = self.profiles().map(|profile| PacketSizes {
            payload: profile.network.payload,
            header: profile.network.header,
            ack: profile.network.ack,
        });
        PathTable {
            paths: Arc::clone(&self.routes.paths),
            sizes: sizes.collect(),
        }
    }
}

/// A buffer that its reserves and headrooms use up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferTooSmall {
    /// The switch.
    pub switch: String,
    /// Size of the buffer.
    pub buffer: Bytes,
    /// Bytes that reserves, headrooms and one packet need.
    pub needed: Bytes,
}

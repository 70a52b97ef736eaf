//! Input of a run.

use crate::events::LinkSchedule;
use crate::flow::Flow;
use crate::host::PathTable;
use crate::switch::{SharedBufferParameters, SwitchParameters};
use crate::topology::{PacketSizes, Routes, Topology};
use clearway_transport::cc::CongestionControl;
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
    /// The transport of all hosts. Line rate and bandwidth-delay product are replaced by those of the host's own NIC.
    pub profile: Arc<Profile>,
    /// Settings of the switches.
    pub switch: SwitchParameters,
    /// The shared buffers of switches with priority flow control; without, each queue is by itself and drops.
    pub buffer: Option<SharedBufferParameters>,
    /// Events of links during the run.
    pub link_events: Arc<LinkSchedule>,
    /// Seed of all random streams.
    pub seed: u64,
}

impl Setup<'_> {
    /// Packets carry telemetry.
    pub(super) fn uses_telemetry(&self) -> bool {
        let mut controllers = self.profile.controllers();
        let network = &self.profile.network;
        controllers.any(|settings| settings.build(network).uses_telemetry())
    }

    /// Links have agents.
    pub(super) fn uses_agents(&self) -> bool {
        let controller = self.profile.controller.build(&self.profile.network);
        controller.allocation().is_some()
    }

    pub(super) fn path_table(&self) -> PathTable {
        let network = &self.profile.network;
        PathTable {
            paths: Arc::clone(&self.routes.paths),
            sizes: PacketSizes {
                payload: network.payload,
                header: network.header,
                ack: network.ack,
            },
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

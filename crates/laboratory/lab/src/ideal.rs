//! Ideal times of flows with their transports.

use crate::assemble::Assembly;
use clearway_fabric::topology::{PacketSizes, Striped};
use clearway_transport::Reliability;
use clearway_units::{Bytes, FlowId, HostId, Span};
use clearway_workload::{FlowSpec, Start};

impl Assembly {
    /// The completion time of a flow on an idle network; zero for a connection of a job, which waits for other messages.
    pub fn ideal_completion(&self, flow: FlowId) -> Span {
        let flow = self.nic_traffic().flow(flow);
        if let Start::Posted(_) = flow.start {
            return Span::ZERO;
        }
        let transport = self.transports.number_of(flow);
        self.ideal_between((flow.src, flow.dst), transport, flow.bytes)
    }

    /// The completion time of a message between two NICs on an idle network.
    pub(crate) fn ideal_between(
        &self,
        (from, to): (HostId, HostId),
        transport: u8,
        bytes: Bytes,
    ) -> Span {
        let transport = self.transports.numbered(transport);
        let parts = transport.profile.parts(bytes);
        let message = Striped {
            parts: &parts,
            paths: self.spreading.path_use(&transport.profile),
        };
        self.ideal_paths
            .ideal_completion(from, to, message, transport.sizes)
    }

    /// The reliability scheme of a listed flow.
    pub(crate) fn reliability_of(&self, flow: FlowId) -> &Reliability {
        let flow = self.workload.flow(flow);
        &self.transports.flow_transport(flow).profile.reliability
    }

    /// Sizes of a flow's packets without telemetry, from which ideal completion times are computed.
    pub fn sizes_of(&self, flow: &FlowSpec) -> PacketSizes {
        self.transports.flow_transport(flow).sizes
    }

    /// The least time of an acknowledgement from the receiver of a flow between NICs.
    pub(crate) fn answer_span(&self, flow: &FlowSpec) -> Span {
        let sizes = self.sizes_of(flow);
        self.ideal_paths.acknowledgement(flow.src, flow.dst, sizes)
    }
}

//! Records of operations.

use crate::{Cycle, OperationKind, Target};
use clearway_units::HostId;

/// An operation that is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationRecord {
    /// The GPU that initiated it.
    pub gpu: HostId,
    /// Number at that GPU, in the order of sending.
    pub number: u32,
    /// Direction of its data.
    pub kind: OperationKind,
    /// Memory that it went to.
    pub target: Target,
    /// Mark of the program that posted it.
    pub tag: u64,
    /// Cycle in which it was posted.
    pub posted: Cycle,
    /// Cycle in which its head flit left the GPU.
    pub sent: Cycle,
    /// Cycle in which its response was there.
    pub completed: Cycle,
}

impl OperationRecord {
    /// Cycles from injection to response; waiting for consent or credits is not in it.
    pub fn latency(&self) -> Cycle {
        self.completed - self.sent
    }
}

/// Totals of a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkTotals {
    /// Flits.
    pub flits: u64,
    /// Packets.
    pub packets: u64,
    /// Longest queue of a channel in front of it, in flits; zero for the link of a GPU, whose operations wait in no queue of the network.
    pub peak_queue: u32,
}

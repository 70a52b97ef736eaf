//! A packet on its way.

use crate::tree::Root;
use crate::{OperationKind, PacketClass, Target};
use clearway_units::{HostId, mix64};

/// A packet of an operation, or a copy of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packet {
    /// The GPU whose operation it belongs to.
    pub(crate) initiator: HostId,
    /// Number of the operation at its initiator.
    pub(crate) number: u32,
    pub(crate) target: Target,
    /// Mark of the initiator's program.
    pub(crate) tag: u64,
    pub(crate) root: Root,
    pub(crate) kind: OperationKind,
    pub(crate) class: PacketClass,
    pub(crate) flits: u16,
    /// Entry of the reduction table that waits for the response, at the switch from which a request comes and to which a response goes.
    pub(crate) entry: u32,
    /// GPUs whose answers a response unites.
    pub(crate) contributions: u32,
    /// Sum of these answers.
    pub(crate) sum: u64,
}

/// No entry of a reduction table: a unicast packet, or a response that is complete.
pub(crate) const NO_ENTRY: u32 = u32::MAX;

/// The answer of one GPU to an operation: a number that nobody else's answer has, so that a sum tells whose answers are in it.
pub(crate) fn answer(gpu: HostId, initiator: HostId, number: u32) -> u64 {
    mix64(mix64(u64::from(gpu.0)) ^ (u64::from(initiator.0) << 32 | u64::from(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_small() {
        assert_eq!(size_of::<Packet>(), 48);
    }
}

//! Virtual channels.

use crate::packet::Packet;
use crate::{InjectionChannels, OperationKind, PacketClass};

/// A virtual channel of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Channel {
    Response = 0,
    /// Requests; from a GPU with a channel for each kind, of writes.
    Request = 1,
    /// Read requests from a GPU with a channel for each kind.
    ReadRequest = 2,
}

/// Channels of an input.
pub(crate) const CHANNELS: usize = 3;
/// Channels of an output: both kinds of requests share one.
pub(crate) const LANES: usize = 2;
impl Channel {
    /// The channel of a packet from a GPU.
    #[inline]
    pub(crate) fn of_injected(packet: &Packet, channels: InjectionChannels) -> Self {
        match (packet.class, packet.kind, channels) {
            (PacketClass::Response, ..) => Self::Response,
            (_, OperationKind::Read, InjectionChannels::PerKind) => Self::ReadRequest,
            _ => Self::Request,
        }
    }

    /// The channel of a packet between switches, and of its output queue everywhere.
    #[inline]
    pub(crate) fn of_class(class: PacketClass) -> Self {
        match class {
            PacketClass::Response => Self::Response,
            PacketClass::Request => Self::Request,
        }
    }
}

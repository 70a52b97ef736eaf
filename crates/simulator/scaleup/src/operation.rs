//! Operations on remote memory, and the packets they are made of.

use clearway_units::HostId;

/// A multicast group, numbered from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

impl GroupId {
    /// The identifier as an index into a `Vec`.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Memory that an operation goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Memory of one GPU.
    Gpu(HostId),
    /// A multicast region: memory of all members of a group, the initiator among them.
    Group(GroupId),
}

/// Direction of an operation's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationKind {
    /// Data goes out, acknowledgements come back; to a group: a multicast write.
    Write,
    /// Data comes back; from a group: a read reduction (pull).
    Read,
}

/// An operation of a GPU: one packet's worth of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Direction of its data.
    pub kind: OperationKind,
    /// Memory that it goes to.
    pub target: Target,
    /// Address in that memory, in units of packets. It decides the root of the tree.
    pub address: u64,
    /// Mark of the program that posts it, which it gets back with the completion.
    pub tag: u64,
}

/// Class of a packet. Classes are kept apart for freedom from deadlock, and each has separate tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PacketClass {
    /// Requests: read requests without data, and write requests with it.
    Request,
    /// Responses: data of reads, and acknowledgements of writes.
    Response,
}

/// Bytes of a flit (§6.1.4).
pub const FLIT_BYTES: u64 = 16;

/// Lengths of packets in flits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlitSizes {
    /// Flits of a header, which is all that a read request and an acknowledgement are.
    pub header: u32,
    /// Flits of data in a write request and in the response of a read.
    pub payload: u32,
}

impl Default for FlitSizes {
    /// A header of 16 B and 128 B of data, in flits of 16 B (§6.1.4).
    fn default() -> Self {
        Self {
            header: 1,
            payload: 8,
        }
    }
}

impl FlitSizes {
    /// Flits of the packet of `class` of an operation.
    #[inline]
    pub fn flits(self, kind: OperationKind, class: PacketClass) -> u32 {
        match (kind, class) {
            (OperationKind::Write, PacketClass::Request)
            | (OperationKind::Read, PacketClass::Response) => self.header + self.payload,
            (OperationKind::Read, PacketClass::Request)
            | (OperationKind::Write, PacketClass::Response) => self.header,
        }
    }
}

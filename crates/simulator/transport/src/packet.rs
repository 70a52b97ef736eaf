//! The packet as every part of a run sees it: addressing, congestion marks and one transport header.

use clearway_units::{FlowId, HostId, MessageId, Time, mix64};

/// The service class of a packet at NICs and switches, 0 to 7, as the priorities of IEEE 802.1Q.
///
/// Class 0 is control: served first where it has priority, and then never paused. The others carry data, and take turns unless
/// the higher ones go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(u8);

impl Class {
    /// Number of classes.
    pub const COUNT: usize = 8;
    /// Acknowledgements and probes.
    pub const CONTROL: Self = Self(0);
    /// Class of payload, unless a flow asks for another.
    pub const DATA: Self = Self(1);

    /// The class with a number below [`COUNT`](Self::COUNT).
    pub const fn new(number: u8) -> Option<Self> {
        if (number as usize) < Self::COUNT {
            Some(Self(number))
        } else {
            None
        }
    }
    /// Number of the class, 0 to 7.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
    /// True for every class but [`CONTROL`](Self::CONTROL).
    #[inline]
    pub const fn is_data(self) -> bool {
        self.0 != 0
    }
}

/// A set of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ClassSet(u8);

impl ClassSet {
    /// No class.
    pub const EMPTY: Self = Self(0);

    /// The set of one class.
    #[inline]
    pub const fn only(class: Class) -> Self {
        Self(1 << class.0)
    }

    /// Adds a class.
    #[inline]
    pub const fn insert(&mut self, class: Class) {
        self.0 |= 1 << class.0;
    }
    /// Removes a class.
    #[inline]
    pub const fn remove(&mut self, class: Class) {
        self.0 &= !(1 << class.0);
    }
    /// True if the set has no class.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// The classes that are not in `other`.
    #[inline]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
    /// Number of classes in the set.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }
    /// The data class whose turn it is after `last`: the next higher one, or else the lowest.
    #[inline]
    pub const fn next_after(self, last: Class) -> Option<Class> {
        let data = self.0 & !1;
        let higher = data & 0xfe_u8.wrapping_shl(last.0 as u32);
        let from = if higher != 0 { higher } else { data };
        if from == 0 {
            None
        } else {
            Some(Class(from.trailing_zeros() as u8))
        }
    }
    /// The class with the highest number.
    #[inline]
    pub const fn highest(self) -> Option<Class> {
        match self.0 {
            0 => None,
            set => Some(Class(7 - set.leading_zeros() as u8)),
        }
    }
    /// True if the set contains `class`.
    #[inline]
    pub const fn contains(self, class: Class) -> bool {
        self.0 & 1 << class.0 != 0
    }
    /// Classes that are in either set.
    #[inline]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Flags of a data packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DataFlags(u8);

impl DataFlags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// Asks the receiver to acknowledge at once.
    pub const ACK_REQUEST: Self = Self(1);
    /// The packet sequence number was on the wire before.
    pub const RETRANSMISSION: Self = Self(1 << 1);
    /// The last packet of its message.
    pub const END_OF_MESSAGE: Self = Self(1 << 2);
    /// The last packet of its flow: once all has arrived, the receiver may forget the flow. Without
    /// [`END_OF_MESSAGE`](Self::END_OF_MESSAGE) it belongs to no message: the flow was closed after everything had been sent.
    pub const END_OF_FLOW: Self = Self(1 << 3);

    /// A switch has cut the payload off, for want of room (packet trimming).
    pub const TRIMMED: Self = Self(1 << 4);
    /// With [`TRIMMED`](Self::TRIMMED): the switch that did so is the last one, to which the receiver is connected.
    pub const LAST_HOP: Self = Self(1 << 5);

    const ALL: u8 = (1 << 6) - 1;

    /// The flags of a byte on a wire; bits without a meaning are left out.
    #[inline]
    pub const fn from_bits_truncate(bits: u8) -> Self {
        Self(bits & Self::ALL)
    }
    /// The flags as a byte on a wire.
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0
    }
    /// True if all of `flags` are set.
    #[inline]
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }
    /// True if one of `flags` is set.
    #[inline]
    pub const fn intersects(self, flags: Self) -> bool {
        self.0 & flags.0 != 0
    }
    /// The flags of either set.
    #[inline]
    pub const fn union(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }
    /// These flags, with `flags` set if `on`; nothing is cleared.
    #[inline]
    #[must_use]
    pub const fn with(self, flags: Self, on: bool) -> Self {
        // Without a branch: this is in the packet loop.
        Self(self.0 | (flags.0 * on as u8))
    }
}

/// A packet: 56 bytes, so that it and its arrival time share one cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Instant at which the sender of the flow put the packet (or the packet that an acknowledgement answers) on the wire.
    pub stamp: Time,
    /// The flow, the same number in both directions.
    pub flow: FlowId,
    /// The host that sent this packet.
    pub src: HostId,
    /// The host that this packet is for.
    pub dst: HostId,
    /// [Digest of the addressing](header_hash), which switches hash for ECMP.
    pub header_hash: u32,
    /// Bytes on the wire, headers included.
    pub size: u16,
    /// UDP source port: the entropy by which ECMP spreads the packets of a flow. An acknowledgement carries the port of the
    /// packet that it answers, so that the sender knows the path.
    pub source_port: u16,
    /// Service class.
    pub class: Class,
    /// Queue pair of the flow that sent the packet, or the packet that an acknowledgement answers.
    pub queue_pair: u8,
    /// Congestion experienced: set by queues on data, echoed by receivers on acknowledgements.
    pub ecn: bool,
    /// Group of switches by way of which the packet takes a detour, plus 1; 0 for none. The switch of its sender sets it, and the first
    /// switch of that group clears it.
    pub via: u8,
    /// Transport header.
    pub header: Header,
}

impl Packet {
    /// True for a data packet that still has its payload.
    #[inline]
    pub const fn can_be_trimmed(&self) -> bool {
        matches!(self.header, Header::Data { flags, .. } if !flags.contains(DataFlags::TRIMMED))
    }

    /// Cuts the payload off a data packet: `size` bytes stay, which go on in the class of control. Other packets stay as they are.
    pub fn trim(&mut self, size: u16, last_hop: bool) {
        if let Header::Data { flags, .. } = &mut self.header {
            *flags = flags
                .union(DataFlags::TRIMMED)
                .with(DataFlags::LAST_HOP, last_hop);
            self.size = self.size.min(size);
            self.class = Class::CONTROL;
        }
    }
}

/// Digest of the addressing (source, destination, source port): the fields that ECMP hashes.
#[inline(always)]
pub fn header_hash(src: HostId, dst: HostId, source_port: u16) -> u32 {
    AddressHash::new(src, dst).with_port(source_port)
}

/// The part of a [`header_hash`] that all packets of a flow have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AddressHash(u64);

impl AddressHash {
    #[inline]
    pub(crate) fn new(src: HostId, dst: HostId) -> Self {
        Self(mix64(u64::from(src.0) << 32 | u64::from(dst.0)))
    }

    #[inline]
    pub(crate) fn with_port(self, source_port: u16) -> u32 {
        mix64(self.0 ^ u64::from(source_port)) as u32
    }
}

/// The transport header. Variants stay within 24 bytes; larger ones belong in a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// Payload.
    Data {
        /// Packet sequence number, from zero on each flow.
        psn: u32,
        /// The message that the payload belongs to.
        message: MessageId,
        /// Offset of the payload in the message: direct placement, no reorder buffer.
        offset: u64,
        /// Bytes of payload.
        payload: u16,
        /// Number of parts in which the message was striped over queue pairs, 1 if it was not. The packet belongs to the part of its
        /// queue pair, and `end_of_message` ends that part.
        parts: u8,
        /// Further facts about the packet.
        flags: DataFlags,
        /// With receiver credits, up to where the sender could use credit: quanta since the beginning of the flow, modulo 2^16.
        pull_target: u16,
    },
    /// Selective acknowledgement (STrack §3.3.1, Fig. 7).
    Sack {
        /// Bit `k` says that packet `epsn + base_offset + k` has arrived.
        bitmap: u64,
        /// Payload bytes that have arrived, duplicates excluded, modulo 2^32.
        bytes_received: u32,
        /// Expected packet sequence number: everything below has arrived.
        epsn: u32,
        /// Start of the bitmap segment, counted from `epsn`.
        base_offset: u16,
        /// Packets that have arrived out of order, above `epsn`.
        out_of_order: u16,
        /// Answers a probe.
        probe: bool,
    },
    /// Negative acknowledgement of one packet, which has arrived [trimmed](DataFlags::TRIMMED).
    Nack {
        /// Packet sequence number of the trimmed packet.
        psn: u32,
        /// The switch that trimmed it is the last one before the receiver.
        last_hop: bool,
    },
    /// Credit from a receiver, the pull of Ultra Ethernet: all quanta that it has granted since the beginning of the flow, modulo 2^16.
    Pull {
        /// The quanta.
        pull: u16,
    },
    /// Cumulative acknowledgement of go-back-N.
    Ack {
        /// Expected packet sequence number: everything below has arrived.
        epsn: u32,
        /// A packet beyond the expected one has arrived and was discarded: the sender is to go back.
        nack: bool,
        /// The packet that this answers was marked. Not the mark of the acknowledgement itself, which may be in a class that
        /// queues mark.
        marked: bool,
    },
    /// Congestion notification from a receiver: the CNP of RoCEv2.
    Notification,
    /// Control packet of s-PERC or 1RC. The fields that links write travel beside it, as its
    /// [record](crate::congestion::perc::ControlRecord); the fields here are visible on a wire.
    RateControl {
        /// On its way back to the source; links leave it alone.
        reflected: bool,
        /// The flow has sent all its data: links forget it.
        leaving: bool,
        /// Egress links that it has passed.
        links: u8,
        /// Number of the control packet of its flow, modulo 2^16.
        sequence: u16,
        /// Open connections of the source host, `k`: the flow has the weight 1/k.
        connections: u16,
        /// The least number of speculative packets that a link lets through; `u32::MAX` means no limit.
        let_through: u32,
        /// Rate that the host and the links passed so far allocate, in bit/s.
        rate: u64,
    },
    /// Asks for a [`Header::Sack`] without sending payload (STrack §3.3.2).
    Probe {
        /// Packet sequence number at which the bitmap segment of the answer should begin.
        base: u32,
        /// Asks for credit, with the pull target of a data packet.
        pull_target: Option<u16>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_classes_add_and_take_out() {
        assert_eq!(Class::new(8), None);
        let seven = Class::new(7).unwrap();
        let mut set = ClassSet::EMPTY;
        set.insert(seven);
        set.insert(Class::DATA);
        set.remove(Class::DATA);
        assert!(set.contains(seven) && !set.contains(Class::DATA) && !set.contains(Class::CONTROL));
        set.insert(Class::DATA);
        assert_eq!(set.next_after(Class::DATA), Some(seven));
        assert_eq!(set.next_after(seven), Some(Class::DATA));
        assert_eq!(set.highest(), Some(seven));
        assert_eq!(ClassSet::EMPTY.highest(), None);
        set.remove(seven);
        assert_eq!(set.next_after(Class::DATA), Some(Class::DATA));
        set.remove(Class::DATA);
        set.insert(Class::CONTROL);
        assert_eq!((set.len(), set.next_after(seven)), (1, None));
    }

    #[test]
    fn hot_structs_keep_their_size() {
        assert_eq!(size_of::<Header>(), 24);
        assert_eq!(size_of::<Packet>(), 56);
    }
}

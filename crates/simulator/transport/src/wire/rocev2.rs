//! RoCEv2: reliable connections of InfiniBand over UDP (IBTA specification volume 1, chapter 9, and annex A17).
//!
//! Data are SENDs, whose packets all have the same headers, as in the simulation; an RDMA WRITE would have 16 bytes more in each first
//! packet, and the length of the whole message in them, which no packet of ours knows. Facts that the base transport header cannot express
//! are lost: the time stamp, whether a packet was sent before, and the upper bits of sequence numbers, which have 24.
//!
//! * *Opcode*: First, Middle, Last or Only by the place in the message. A packet begins its message if its offset is zero, or
//!   if it is the first of its queue pair; so the parts of striped messages after a flow's first one begin with a Middle.
//! * *Destination queue pair*: see [`queue_pair`].
//! * *Acknowledgements* carry the number of the last packet that has arrived in order, negative ones the number of the missing packet (NAK
//!   code 0, a gap in the sequence). The echo of a mark is the BECN bit.
//! * *Congestion notifications* have opcode 0x81, the BECN bit, and 16 reserved bytes.

use super::Network;
use super::error::WireError;
use super::icrc::{COVERED, invariant};
use crate::packet::{DataFlags, Header, Packet};
use clearway_units::FlowId;

/// The UDP port.
pub const PORT: u16 = 4791;

/// Base transport header.
const BASE: usize = 12;
pub(super) const INVARIANT_CRC: usize = 4;
/// Bytes behind the base header of a congestion notification.
const RESERVED: usize = 16;
const RETH: usize = 16;
const AETH: usize = 4;

const SEND_FIRST: u8 = 0x00;
const SEND_MIDDLE: u8 = 0x01;
const SEND_LAST: u8 = 0x02;
const SEND_ONLY: u8 = 0x04;
const ACKNOWLEDGE: u8 = 0x11;
const CONGESTION_NOTIFICATION: u8 = 0x81;

/// Syndromes: an acknowledgement without end-to-end credits, and NAK code 0.
const SYNDROME_ACK: u8 = 0x1f;
const SYNDROME_SEQUENCE_ERROR: u8 = 0x60;

const BECN: u8 = 0x40;
const ACK_REQUEST: u8 = 0x80;
/// The path is the one that the connection has migrated to, as always with a single path.
const MIGRATED: u8 = 0x40;

/// The number of a queue pair: 32 for each flow, from 32 on, because 0 and 1 are reserved for management. It is the same at both ends.
/// Unique for the first 524 286 flows.
pub fn queue_pair(flow: FlowId, queue_pair: u8) -> u32 {
    const FLOWS: u32 = (1 << 19) - 2;
    (flow.0 % FLOWS + 1) << 5 | u32::from(queue_pair & 31)
}

/// Appends base and extended headers; the payload comes after them. `completed` is how many messages the sender of an
/// acknowledgement has received in full.
pub(super) fn write(packet: &Packet, completed: u32, padding: usize, out: &mut Vec<u8>) {
    let (opcode, congestion, request, psn) = match packet.header {
        Header::Data {
            psn, offset, flags, ..
        } => {
            let ends = flags.intersects(DataFlags::END_OF_MESSAGE.union(DataFlags::END_OF_FLOW));
            let opcode = match (offset == 0 || psn == 0, ends) {
                (true, true) => SEND_ONLY,
                (true, false) => SEND_FIRST,
                (false, false) => SEND_MIDDLE,
                (false, true) => SEND_LAST,
            };
            let requests = flags.contains(DataFlags::ACK_REQUEST);
            let request = if requests { ACK_REQUEST } else { 0 };
            (opcode, 0, request, psn)
        }
        Header::Ack { epsn, nack, marked } => {
            let psn = if nack { epsn } else { epsn.wrapping_sub(1) };
            (ACKNOWLEDGE, if marked { BECN } else { 0 }, 0, psn)
        }
        _ => (CONGESTION_NOTIFICATION, BECN, 0, 0),
    };
    let [_, qp @ ..] = queue_pair(packet.flow, packet.queue_pair).to_be_bytes();
    let [_, psn @ ..] = psn.to_be_bytes();
    let migrated = if opcode == CONGESTION_NOTIFICATION {
        0
    } else {
        MIGRATED
    };
    // The default partition.
    out.extend([
        opcode,
        migrated | (padding as u8) << 4,
        0xff,
        0xff,
        congestion,
    ]);
    out.extend(qp);
    out.push(request);
    out.extend(psn);
    if let Header::Ack { nack, .. } = packet.header {
        let [_, completed @ ..] = completed.to_be_bytes();
        out.push(if nack {
            SYNDROME_SEQUENCE_ERROR
        } else {
            SYNDROME_ACK
        });
        out.extend(completed);
    }
}

/// Bytes of the headers of a packet, and of zeros that come after them: payload, or reserved bytes.
pub(super) fn lengths(header: &Header) -> (usize, usize) {
    match header {
        Header::Data { payload, .. } => (BASE, usize::from(*payload)),
        Header::Ack { .. } => (BASE + AETH, 0),
        _ => (BASE, RESERVED),
    }
}

/// Headers of a RoCEv2 packet, and the length of its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rocev2 {
    /// Operation, of which the upper three bits are the kind of connection.
    pub opcode: u8,
    /// Number of the queue pair at the receiver.
    pub destination: u32,
    /// Packet sequence number, 24 bits.
    pub psn: u32,
    /// Asks for an acknowledgement.
    pub ack_request: bool,
    /// Backward notification of congestion.
    pub becn: bool,
    /// Remote address and length of an RDMA operation, in the packets that begin one.
    pub remote: Option<(u64, u32)>,
    /// Syndrome and message sequence number of an acknowledgement.
    pub acknowledgement: Option<(u8, u32)>,
    /// Bytes of payload, without padding.
    pub payload: u16,
}

/// Reads `packet`, from the IP header to the end.
///
/// # Errors
/// If it ends too soon or its invariant CRC is wrong.
pub(super) fn read(packet: &[u8]) -> Result<Rocev2, WireError> {
    let (covered, crc) = packet
        .split_last_chunk::<INVARIANT_CRC>()
        .filter(|(covered, _)| covered.len() >= COVERED)
        .ok_or(WireError::TooShort)?;
    if invariant(covered, 0, &[]) != *crc {
        return Err(WireError::Checksum);
    }
    let (base, mut rest) = covered[COVERED - BASE..]
        .split_first_chunk::<BASE>()
        .ok_or(WireError::TooShort)?;
    let padding = usize::from(base[1] >> 4 & 0b11);
    let mut rocev2 = Rocev2 {
        opcode: base[0],
        destination: u32::from_be_bytes([0, base[5], base[6], base[7]]),
        psn: u32::from_be_bytes([0, base[9], base[10], base[11]]),
        ack_request: base[8] & ACK_REQUEST != 0,
        becn: base[4] & BECN != 0,
        remote: None,
        acknowledgement: None,
        payload: 0,
    };
    // RDMA WRITE First, Only and Only with immediate; RDMA READ request.
    if matches!(rocev2.opcode, 0x06 | 0x0a | 0x0b | 0x0c) {
        let (reth, after) = rest.split_at_checked(RETH).ok_or(WireError::TooShort)?;
        let (address, keys) = reth.split_at(8);
        rocev2.remote = Some((number(address), number(&keys[4..]) as u32));
        rest = after;
    }
    if rocev2.opcode == ACKNOWLEDGE {
        let (aeth, after) = rest.split_at_checked(AETH).ok_or(WireError::TooShort)?;
        rocev2.acknowledgement = Some((aeth[0], number(&aeth[1..]) as u32));
        rest = after;
    }
    let payload = rest.len().checked_sub(padding);
    rocev2.payload = payload.ok_or(WireError::TooShort)? as u16;
    if rocev2.opcode == CONGESTION_NOTIFICATION {
        rocev2.payload = 0;
    }
    Ok(rocev2)
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |number, &byte| number << 8 | u64::from(byte))
}

impl Rocev2 {
    /// True if the packet carries part of a SEND.
    pub fn is_send(&self) -> bool {
        matches!(
            self.opcode,
            SEND_FIRST | SEND_MIDDLE | SEND_LAST | SEND_ONLY
        )
    }
    /// True if the packet is a congestion notification (CNP).
    pub fn is_notification(&self) -> bool {
        self.opcode == CONGESTION_NOTIFICATION
    }
    /// True if the packet is a negative acknowledgement (NAK).
    pub fn is_nak(&self) -> bool {
        let syndrome = self.acknowledgement.map(|(syndrome, _)| syndrome);
        syndrome.is_some_and(|syndrome| syndrome & 0x60 == SYNDROME_SEQUENCE_ERROR)
    }
}

/// A frame with the headers below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Addresses, class and mark.
    pub network: Network,
    /// The transport.
    pub transport: Rocev2,
}

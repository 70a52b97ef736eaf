//! The header of STrack, as Clearway writes it: the paper gives the fields (§3.3.1, Fig. 7) and no encoding.
//!
//! It stands in UDP datagrams to port [`PORT`]. All numbers are big-endian. Twenty bytes are common to all types, and the rest
//! follows from the type; in front of payload both together are 40 bytes.
//!
//! | bytes | field |
//! |---|---|
//! | 0 | version (upper 4 bits, 1) and type (lower 4 bits): 1 data, 2 selective acknowledgement, 3 probe, 4 cumulative acknowledgement, 5 congestion notification, 6 rate control (s-PERC, 1RC), 7 negative acknowledgement of a trimmed packet, 8 pull (RCCC) |
//! | 1 | flags, see below |
//! | 2 | queue pair |
//! | 3 | data: in how many parts the message was striped; else 0 |
//! | 4–7 | flow |
//! | 8–15 | time stamp in picoseconds: when the packet, or the one that it answers, was put on the wire |
//! | 16–17 | entropy: the source port by which paths are chosen, all 16 bits of it |
//! | 18–19 | simulated size of the packet on the wire |
//!
//! | type | bytes | field |
//! |---|---|---|
//! | data | 20–23 | packet sequence number |
//! | | 24–27 | message |
//! | | 28–35 | offset in the message |
//! | | 36–37 | bytes of payload |
//! | | 38–39 | pull target; 0 without receiver credits |
//! | selective acknowledgement | 20–23 | expected packet sequence number (EPSN) |
//! | | 24–25 | base offset: where the bitmap begins, counted from the EPSN |
//! | | 26–27 | packets that have arrived out of order (OOO) |
//! | | 28–31 | payload bytes received, modulo 2^32 |
//! | | 32–39 | bitmap: bit k (of value 2^k) is packet EPSN + base offset + k |
//! | probe | 20–23 | where the bitmap of the answer should begin |
//! | | 24–25 | pull target, if the probe asks for credit |
//! | pull | 20–21 | quanta of credit granted since the beginning of the flow, modulo 2^16 |
//! | cumulative acknowledgement | 20–23 | expected packet sequence number |
//! | negative acknowledgement | 20–23 | packet sequence number of the trimmed packet |
//! | rate control | 20–27 | rate that the host and the links passed so far allocate, in bit/s |
//! | | 28–31 | speculative packets that are let through; 2^32 - 1 is no limit |
//! | | 32–33 | number of the control packet of its flow |
//! | | 34–35 | open connections of the source host |
//! | | 36 | egress links passed |
//! | | 37–39 | 0 |
//!
//! The rates and states that links keep for themselves in a control packet of rate control are not written. A trimmed data packet ends
//! after its header.
//!
//! | flag | data | selective acknowledgement | cumulative acknowledgement | rate control | negative acknowledgement | probe |
//! |---|---|---|---|---|---|---|
//! | 0x01 | acknowledgement requested | answers a probe | negative: go back | on its way back | trimmed at the last hop | asks for credit |
//! | 0x02 | sent before | echo of a mark | echo of a mark | the flow leaves | echo of a mark | |
//! | 0x04 | end of message | | | | | |
//! | 0x08 | end of flow | | | | | |
//! | 0x10 | trimmed | | | | | |
//! | 0x20 | trimmed at the last hop | | | | | |

use super::Network;
use super::error::WireError;
use crate::packet::{DataFlags, Header, Packet, header_hash};
use clearway_units::{FlowId, MessageId, Time};

/// The UDP port: one that IANA has not assigned, beside the ports of RoCEv2 (4791) and Ultra Ethernet (4793). It is below all source ports
/// that are used, so analysers, which try the lower port first, take no datagram for something else.
pub const PORT: u16 = 4794;

const VERSION: u8 = 1;
const COMMON: usize = 20;
const DATA: u8 = 1;
const SACK: u8 = 2;
const PROBE: u8 = 3;
const ACK: u8 = 4;
const NOTIFICATION: u8 = 5;
const RATE_CONTROL: u8 = 6;
const NACK: u8 = 7;
const PULL: u8 = 8;

/// Appends the header of a packet; its payload comes after it.
pub fn write(packet: &Packet, out: &mut Vec<u8>) {
    let (kind, flags, parts) = match packet.header {
        Header::Data { parts, flags, .. } => (DATA, flags.bits(), parts),
        Header::Sack { probe, .. } => (SACK, bits([probe, packet.ecn, false, false]), 0),
        Header::Nack { last_hop, .. } => (NACK, bits([last_hop, packet.ecn, false, false]), 0),
        Header::Probe { pull_target, .. } => (PROBE, u8::from(pull_target.is_some()), 0),
        Header::Pull { .. } => (PULL, 0, 0),
        Header::Ack { nack, marked, .. } => (ACK, bits([nack, marked, false, false]), 0),
        Header::Notification => (NOTIFICATION, 0, 0),
        Header::RateControl {
            reflected, leaving, ..
        } => (RATE_CONTROL, bits([reflected, leaving, false, false]), 0),
    };
    out.extend([VERSION << 4 | kind, flags, packet.queue_pair, parts]);
    out.extend(packet.flow.0.to_be_bytes());
    out.extend(packet.stamp.as_ps().to_be_bytes());
    out.extend(packet.source_port.to_be_bytes());
    out.extend(packet.size.to_be_bytes());
    write_fields(&packet.header, out);
}

fn write_fields(header: &Header, out: &mut Vec<u8>) {
    match *header {
        Header::Data {
            psn,
            message,
            offset,
            payload,
            pull_target,
            ..
        } => {
            out.extend(psn.to_be_bytes());
            out.extend(message.0.to_be_bytes());
            out.extend(offset.to_be_bytes());
            out.extend(payload.to_be_bytes());
            out.extend(pull_target.to_be_bytes());
        }
        Header::Sack {
            bitmap,
            bytes_received,
            epsn,
            base_offset,
            out_of_order,
            ..
        } => {
            out.extend(epsn.to_be_bytes());
            out.extend(base_offset.to_be_bytes());
            out.extend(out_of_order.to_be_bytes());
            out.extend(bytes_received.to_be_bytes());
            out.extend(bitmap.to_be_bytes());
        }
        Header::Nack { psn, .. } => out.extend(psn.to_be_bytes()),
        Header::Probe { base, pull_target } => {
            out.extend(base.to_be_bytes());
            out.extend(pull_target.into_iter().flat_map(u16::to_be_bytes));
        }
        Header::Pull { pull } => out.extend(pull.to_be_bytes()),
        Header::Ack { epsn, .. } => out.extend(epsn.to_be_bytes()),
        Header::Notification => {}
        Header::RateControl {
            links,
            sequence,
            connections,
            let_through,
            rate,
            ..
        } => {
            out.extend(rate.to_be_bytes());
            out.extend(let_through.to_be_bytes());
            out.extend(sequence.to_be_bytes());
            out.extend(connections.to_be_bytes());
            out.extend([links, 0, 0, 0]);
        }
    }
}

/// The lowest bit first.
fn bits(flags: [bool; 4]) -> u8 {
    flags
        .iter()
        .rev()
        .fold(0, |bits, &flag| bits << 1 | u8::from(flag))
}

/// Reads the packet in a datagram that came with the headers `network`. Payload is counted, not kept.
///
/// # Errors
/// If the datagram ends too soon, or is of a version or type that does not exist.
pub fn read(datagram: &[u8], network: &Network) -> Result<Packet, WireError> {
    let (packet, rest) = read_header(datagram, network)?;
    // The datagram must hold all payload that IPv4 lets it hold.
    if let Header::Data { payload, .. } = packet.header
        && packet.can_be_trimmed()
    {
        let room = super::network::LONGEST_DATAGRAM - COMMON - 20;
        if rest.len() < usize::from(payload).min(room) {
            return Err(WireError::TooShort);
        }
    }
    Ok(packet)
}

/// Reads the header at the beginning of a datagram as [`read`] does, whether its payload is there or not. Also returns the bytes after the
/// header.
///
/// # Errors
/// As `read`, except that only the header has to be there.
pub fn read_header<'a>(
    datagram: &'a [u8],
    network: &Network,
) -> Result<(Packet, &'a [u8]), WireError> {
    let mut fields = Fields(datagram);
    let [first, flags, queue_pair, parts] = fields.take()?;
    if first >> 4 != VERSION {
        return Err(WireError::NotOurs);
    }
    let flow = FlowId(u32::from_be_bytes(fields.take()?));
    let stamp = Time::from_ps(u64::from_be_bytes(fields.take()?));
    let source_port = fields.number()?;
    let size = fields.number()?;
    let flag = |bit: u8| flags >> bit & 1 == 1;
    let header = match first & 0x0f {
        DATA => Header::Data {
            psn: u32::from_be_bytes(fields.take()?),
            message: MessageId(u32::from_be_bytes(fields.take()?)),
            offset: u64::from_be_bytes(fields.take()?),
            payload: fields.number()?,
            pull_target: fields.number()?,
            parts,
            flags: DataFlags::from_bits_truncate(flags),
        },
        SACK => Header::Sack {
            epsn: u32::from_be_bytes(fields.take()?),
            base_offset: fields.number()?,
            out_of_order: fields.number()?,
            bytes_received: u32::from_be_bytes(fields.take()?),
            bitmap: u64::from_be_bytes(fields.take()?),
            probe: flag(0),
        },
        PROBE => Header::Probe {
            base: u32::from_be_bytes(fields.take()?),
            pull_target: flag(0).then(|| fields.number()).transpose()?,
        },
        PULL => Header::Pull {
            pull: fields.number()?,
        },
        ACK => Header::Ack {
            epsn: u32::from_be_bytes(fields.take()?),
            nack: flag(0),
            marked: flag(1),
        },
        NOTIFICATION => Header::Notification,
        NACK => Header::Nack {
            psn: u32::from_be_bytes(fields.take()?),
            last_hop: flag(0),
        },
        RATE_CONTROL => fields.rate_control([flag(0), flag(1)])?,
        _ => return Err(WireError::NotOurs),
    };
    let echo = matches!(header, Header::Sack { .. }) && flag(1);
    let packet = Packet {
        stamp,
        flow,
        src: network.src,
        dst: network.dst,
        header_hash: header_hash(network.src, network.dst, source_port),
        size,
        source_port,
        class: network.class,
        queue_pair,
        ecn: echo || network.marked,
        via: 0,
        header,
    };
    Ok((packet, fields.0))
}

/// Bytes of the header of a packet.
pub(super) fn header_length(header: &Header) -> usize {
    COMMON
        + match header {
            Header::Data { .. } | Header::Sack { .. } | Header::RateControl { .. } => 20,
            Header::Probe {
                pull_target: Some(_),
                ..
            } => 6,
            Header::Probe { .. } | Header::Ack { .. } | Header::Nack { .. } => 4,
            Header::Pull { .. } => 2,
            Header::Notification => 0,
        }
}

/// Bytes of the datagram that are left to read.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (field, rest) = self.0.split_first_chunk().ok_or(WireError::TooShort)?;
        self.0 = rest;
        Ok(*field)
    }

    fn number(&mut self) -> Result<u16, WireError> {
        Ok(u16::from_be_bytes(self.take()?))
    }

    fn rate_control(&mut self, [reflected, leaving]: [bool; 2]) -> Result<Header, WireError> {
        let rate = u64::from_be_bytes(self.take()?);
        let let_through = u32::from_be_bytes(self.take()?);
        let (sequence, connections) = (self.number()?, self.number()?);
        let [links, ..]: [u8; 4] = self.take()?;
        Ok(Header::RateControl {
            reflected,
            leaving,
            links,
            sequence,
            connections,
            let_through,
            rate,
        })
    }
}

//! Ethernet, IPv4 and UDP: addresses of sender and receiver, service class, and congestion mark.

use super::error::WireError;
use crate::packet::{Class, Header, Packet};
use clearway_units::HostId;

pub(super) const ETHERNET: usize = 14;
pub(super) const IPV4: usize = 20;
pub(super) const UDP: usize = 8;
/// All three.
pub(super) const NETWORK: usize = ETHERNET + IPV4 + UDP;
/// The most bytes that UDP can carry.
pub(super) const LONGEST_DATAGRAM: usize = u16::MAX as usize - IPV4 - UDP;

const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const PROTOCOL_UDP: u8 = 17;
const NOT_ECT: u8 = 0b00;
const ECT_0: u8 = 0b10;
const CONGESTION_EXPERIENCED: u8 = 0b11;
/// Class selector 6: network control, where notifications and other control traffic usually travel.
const DSCP_CONTROL: u8 = 48;

/// A MAC address.
pub(super) type Mac = [u8; 6];

/// The locally administered address of a node: a host by its number, a switch by its number of a node.
pub(super) fn mac(is_switch: bool, number: u32) -> Mac {
    let [a, b, c, d] = number.to_be_bytes();
    let local = if is_switch { 0x06 } else { 0x02 };
    [local, 0, a, b, c, d]
}

/// 10.0.0.0/8 has room for the lowest 24 bits of a host's number.
fn ip(host: HostId) -> [u8; 4] {
    let [_, b, c, d] = host.0.to_be_bytes();
    [10, b, c, d]
}

fn host(ip: [u8; 4]) -> HostId {
    HostId(u32::from_be_bytes([0, ip[1], ip[2], ip[3]]))
}

fn dscp(class: Class) -> u8 {
    match class.index() as u8 {
        0 => DSCP_CONTROL,
        number => number << 3 | 2,
    }
}

fn class(dscp: u8) -> Class {
    match dscp {
        DSCP_CONTROL => Class::CONTROL,
        dscp => Class::new(dscp >> 3).unwrap_or(Class::CONTROL),
    }
}

/// ECN field of the IP header. A selective acknowledgement echoes the mark of data, in its own header.
fn congestion(packet: &Packet) -> u8 {
    match packet.header {
        Header::Sack { .. } => NOT_ECT,
        _ if packet.ecn => CONGESTION_EXPERIENCED,
        _ if packet.class.is_data() => ECT_0,
        _ => NOT_ECT,
    }
}

/// The UDP source port on the wire.
pub(super) const fn wire_port(source_port: u16) -> u16 {
    source_port | 0xc000
}

/// Writes the headers in front of a datagram of `length` bytes.
pub(super) fn write(packet: &Packet, port: u16, length: usize, out: &mut Vec<u8>) {
    out.extend(mac(false, packet.dst.0));
    out.extend(mac(false, packet.src.0));
    out.extend(ETHERTYPE_IPV4);
    let start = out.len();
    let type_of_service = dscp(packet.class) << 2 | congestion(packet);
    out.extend([0x45, type_of_service]);
    out.extend(((IPV4 + UDP + length) as u16).to_be_bytes());
    // No identification, and not to be fragmented; 64 hops to live, of which no switch takes any.
    out.extend([0, 0, 0x40, 0, 64, PROTOCOL_UDP, 0, 0]);
    out.extend(ip(packet.src));
    out.extend(ip(packet.dst));
    let sum = checksum(&out[start..]);
    out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
    out.extend(wire_port(packet.source_port).to_be_bytes());
    out.extend(port.to_be_bytes());
    out.extend(((UDP + length) as u16).to_be_bytes());
    // Without a checksum, as is usual for RoCEv2, whose invariant CRC covers more.
    out.extend([0, 0]);
}

/// The Internet checksum (RFC 1071) of an even number of bytes; zero for a header that holds its own checksum.
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2);
    let sum: u32 = words
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !(folded as u16 + (folded >> 16) as u16)
}

/// Addresses, class, congestion mark and ports, as the headers give them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// The sender.
    pub src: HostId,
    /// The receiver.
    pub dst: HostId,
    /// The service class, by the DSCP.
    pub class: Class,
    /// Congestion experienced.
    pub marked: bool,
    /// UDP source port on the wire.
    pub source_port: u16,
    /// UDP destination port.
    pub destination_port: u16,
}

/// Reads the headers of a frame; returns them, the packet from the IP header to the end of the datagram, and the datagram.
pub(super) fn read(frame: &[u8]) -> Result<(Network, &[u8], &[u8]), WireError> {
    if frame.len() < NETWORK {
        return Err(WireError::TooShort);
    }
    let (ethernet, packet) = frame.split_at(ETHERNET);
    if ethernet[12..] != ETHERTYPE_IPV4 || packet[0] != 0x45 || packet[9] != PROTOCOL_UDP {
        return Err(WireError::NotOurs);
    }
    if checksum(&packet[..IPV4]) != 0 {
        return Err(WireError::Checksum);
    }
    let word = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    let total = usize::from(word(2));
    let length = usize::from(word(IPV4 + 4));
    if total > packet.len() || length < UDP || IPV4 + length != total {
        return Err(WireError::TooShort);
    }
    let address = |at: usize| host([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]]);
    let network = Network {
        src: address(12),
        dst: address(16),
        class: class(packet[1] >> 2),
        marked: packet[1] & 0b11 == CONGESTION_EXPERIENCED,
        source_port: word(IPV4),
        destination_port: word(IPV4 + 2),
    };
    Ok((network, &packet[..total], &packet[IPV4 + UDP..total]))
}

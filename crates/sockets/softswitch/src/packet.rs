//! IP packets as switches see them: destination, ECMP fields, ECN field.

use crate::address::{host_of, host_of_v6};
use clearway_transport::header_hash;
use clearway_units::{HostId, mix64};

/// Shortest header of IPv4.
const IPV4_HEADER: usize = 20;
/// Header of IPv6 without extensions.
const IPV6_HEADER: usize = 40;
/// Most IPv6 extension headers to skip on the way to the ports.
const MOST_EXTENSIONS: u32 = 8;

/// Version of the Internet Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V4,
    V6,
}

/// Packet fields that switches read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Headers {
    pub(crate) version: Version,
    /// Destination host, whether or not the fabric has that many hosts.
    pub(crate) to: HostId,
    /// Fields that ECMP hashes, without the source host.
    entropy: Entropy,
    /// Offset of the IP payload.
    pub(crate) payload: usize,
}

/// Ports and protocol of a packet; zero for a protocol without ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Entropy {
    source_port: u16,
    destination_port: u16,
    protocol: u8,
}

/// Fault of a packet that a switch cannot forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketFault {
    /// No IP header, or a header that does not match the packet.
    Malformed,
    /// The destination is not a host.
    NoRoute,
}

impl Headers {
    pub(crate) fn parse(packet: &[u8]) -> Result<Self, PacketFault> {
        match packet.first().map(|byte| byte >> 4) {
            Some(4) => ipv4(packet),
            Some(6) => ipv6(packet),
            _ => Err(PacketFault::Malformed),
        }
    }

    /// The simulator's digest of the addressing, mixed with the destination port and the protocol. Replies in a real flow have exchanged
    /// ports, and the port of a server is the same on all paths, so the source port alone would not spread them.
    pub(crate) fn hash(&self, from: HostId) -> u32 {
        let Entropy {
            source_port,
            destination_port,
            protocol,
        } = self.entropy;
        let digest = header_hash(from, self.to, source_port);
        let rest = u64::from(destination_port) << 32 | u64::from(protocol) << 48;
        mix64(rest | u64::from(digest)) as u32
    }
}

fn ipv4(packet: &[u8]) -> Result<Headers, PacketFault> {
    let header = packet.get(..IPV4_HEADER).ok_or(PacketFault::Malformed)?;
    let payload = usize::from(header[0] & 0x0f) * 4;
    let total = usize::from(be16(header, 2));
    if payload < IPV4_HEADER || total < payload || total > packet.len() {
        return Err(PacketFault::Malformed);
    }
    let address = u32::from_be_bytes([header[16], header[17], header[18], header[19]]);
    let to = host_of(address).ok_or(PacketFault::NoRoute)?;
    // Later fragments have no ports, and all fragments of a packet should go one way.
    let is_fragment = be16(header, 6) & 0x3fff != 0;
    let protocol = header[9];
    let entropy = match is_fragment {
        true => Entropy {
            protocol,
            ..Entropy::default()
        },
        false => ports(&packet[..total], payload, protocol),
    };
    Ok(Headers {
        version: Version::V4,
        to,
        entropy,
        payload,
    })
}

fn ipv6(packet: &[u8]) -> Result<Headers, PacketFault> {
    let header = packet.get(..IPV6_HEADER).ok_or(PacketFault::Malformed)?;
    let total = IPV6_HEADER + usize::from(be16(header, 4));
    if total > packet.len() {
        return Err(PacketFault::Malformed);
    }
    let address: [u8; 16] = header[24..40].try_into().unwrap_or_default();
    let to = host_of_v6(u128::from_be_bytes(address)).ok_or(PacketFault::NoRoute)?;
    Ok(Headers {
        version: Version::V6,
        to,
        entropy: entropy_v6(&packet[..total], header[6]),
        payload: IPV6_HEADER,
    })
}

/// Entropy behind the extension headers. A packet that ends within the extension headers has no ports, but is still valid.
fn entropy_v6(packet: &[u8], first: u8) -> Entropy {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const AUTHENTICATION: u8 = 51;
    const DESTINATION: u8 = 60;
    let (mut protocol, mut at) = (first, IPV6_HEADER);
    for _ in 0..MOST_EXTENSIONS {
        let units = match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION => 8,
            AUTHENTICATION => 4,
            FRAGMENT => break,
            _ => return ports(packet, at, protocol),
        };
        let Some(&[next, length]) = packet.get(at..at + 2) else {
            break;
        };
        // The length of an authentication header counts units of 4 bytes, minus 2 (RFC 4302, section 2.2).
        let more = if units == 4 { 2 } else { 1 };
        at += (usize::from(length) + more) * units;
        protocol = next;
    }
    Entropy {
        protocol,
        ..Entropy::default()
    }
}

/// Ports of protocols whose header begins with ports; zero if they are missing.
fn ports(packet: &[u8], at: usize, protocol: u8) -> Entropy {
    const TCP: u8 = 6;
    const UDP: u8 = 17;
    const SCTP: u8 = 132;
    let header = match protocol {
        TCP | UDP | SCTP => packet.get(at..at + 4),
        _ => None,
    };
    Entropy {
        source_port: header.map_or(0, |header| be16(header, 0)),
        destination_port: header.map_or(0, |header| be16(header, 2)),
        protocol,
    }
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// True if this packet, which has [`Headers`], is ECN-capable and not marked yet (RFC 3168: ECT(0), ECT(1)).
pub(crate) fn is_markable(version: Version, packet: &[u8]) -> bool {
    let field = match version {
        Version::V4 => packet[1] & 3,
        Version::V6 => packet[1] >> 4 & 3,
    };
    matches!(field, 1 | 2)
}

/// Marks a packet: congestion experienced. In IPv4, updates the checksum (RFC 1624).
pub(crate) fn mark(version: Version, packet: &mut [u8]) {
    match version {
        Version::V6 => packet[1] |= 0x30,
        Version::V4 => {
            let before = be16(packet, 0);
            packet[1] |= 3;
            let after = be16(packet, 0);
            let sum = u32::from(!be16(packet, 10)) + u32::from(!before) + u32::from(after);
            let sum = (sum & 0xffff) + (sum >> 16);
            let sum = (sum & 0xffff) + (sum >> 16);
            packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests;

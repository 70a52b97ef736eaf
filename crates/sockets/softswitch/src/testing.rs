//! Packets for tests.

use crate::{address_of, address_v6_of};
use clearway_units::HostId;

/// A UDP packet with `ecn` as its ECN field, a header checksum, and a payload of this number of bytes.
pub(crate) fn udp_v4(
    from: HostId,
    to: HostId,
    (source_port, destination_port): (u16, u16),
    ecn: u8,
    payload: usize,
) -> Vec<u8> {
    let total = (28 + payload) as u16;
    let mut packet = vec![0x45, ecn];
    packet.extend_from_slice(&total.to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0]);
    packet.extend_from_slice(&address_of(from).octets());
    packet.extend_from_slice(&address_of(to).octets());
    let words = packet
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    udp(&mut packet, (source_port, destination_port), payload);
    packet
}

/// The same packet over IPv6.
pub(crate) fn udp_v6(
    from: HostId,
    to: HostId,
    ports: (u16, u16),
    ecn: u8,
    payload: usize,
) -> Vec<u8> {
    let length = (8 + payload) as u16;
    let mut packet = vec![0x60, ecn << 4, 0, 0];
    packet.extend_from_slice(&length.to_be_bytes());
    packet.extend_from_slice(&[17, 64]);
    packet.extend_from_slice(&address_v6_of(from).octets());
    packet.extend_from_slice(&address_v6_of(to).octets());
    udp(&mut packet, ports, payload);
    packet
}

fn udp(packet: &mut Vec<u8>, (source_port, destination_port): (u16, u16), payload: usize) {
    packet.extend_from_slice(&source_port.to_be_bytes());
    packet.extend_from_slice(&destination_port.to_be_bytes());
    packet.extend_from_slice(&((8 + payload) as u16).to_be_bytes());
    packet.extend_from_slice(&[0, 0]);
    packet.extend((0..payload).map(|index| index as u8));
}

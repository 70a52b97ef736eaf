//! Packets as bytes: real frames for captures, and datagrams for sockets.
//!
//! A simulated packet becomes an Ethernet frame with IPv4, UDP and the headers of its transport. Go-back-N is RoCEv2 ([`rocev2`]);
//! selective repeat has a header of our own ([`strack`]). Pause frames follow IEEE 802.1Qbb.
//!
//! # Addresses
//!
//! * Host `h` has the address 10.x.y.z, where x.y.z are the lower 24 bits of `h`, and the locally administered MAC address 02:00 followed
//!   by its number; a switch's address begins with 06:00. Frames carry the MAC addresses of their ends on every link, and switches take
//!   nothing from the time to live.
//! * The UDP source port is the packet's port with the two highest bits set, as adapters choose it: 49152 and above. The lower 14 bits are
//!   the entropy; so no analyser takes the port for another protocol's.
//! * Data of class n has DSCP 8n + 2, so that the upper three bits are the class, as switches usually map them. Control has
//!   DSCP 48. Data is ECN-capable; a mark is congestion experienced.
//!
//! # Lengths
//!
//! A frame has the length of its headers and payload, or the packet's simulated size if that is more: zeros behind the IP packet, an
//! Ethernet trailer, fill the rest. The frame check sequence is left out and not counted. Headers are 58 bytes for data and 62 for
//! acknowledgements of RoCEv2 (74 for notifications), and 82 for data and acknowledgements of STrack; a scenario that gives its packets at
//! least as much has frames of the simulated size. Payload that IPv4 has no room for is left out.
//!
//! Payload is zeros. The invariant CRC of RoCEv2 covers the whole frame, also where a capture keeps only its beginning.

mod error;
mod icrc;
mod network;
mod pause;
pub mod rocev2;
pub mod strack;
#[cfg(test)]
mod tests;

pub use error::WireError;
pub use network::Network;
pub use pause::{PauseSource, encode_pause};

use crate::packet::{ClassSet, Header, Packet};
use crate::profile::Reliability;
use network::{ETHERNET, IPV4, LONGEST_DATAGRAM, NETWORK, UDP};

/// The headers above UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Headers of RoCEv2, for go-back-N.
    Rocev2,
    /// Header of [`strack`], for selective repeat.
    Strack,
}

impl Format {
    /// The format of a reliability scheme.
    pub fn for_reliability(reliability: &Reliability) -> Self {
        match reliability {
            Reliability::GoBackN(_) => Self::Rocev2,
            Reliability::SelectiveRepeat(_) => Self::Strack,
        }
    }
}

/// Replaces the contents of `frame` by the first `snap` bytes of a packet's frame, and returns the length of the whole frame.
///
/// `completed` is how many messages the sender of an acknowledgement has received in full; the message sequence number of
/// RoCEv2 says so. Selective acknowledgements, probes, rate control, trimmed packets and their acknowledgements, for which RoCEv2 has no
/// words, are always in the format of STrack.
pub fn encode(
    packet: &Packet,
    format: Format,
    completed: u32,
    snap: usize,
    frame: &mut Vec<u8>,
) -> usize {
    frame.clear();
    let unknown = match packet.header {
        Header::Data { .. } => !packet.can_be_trimmed(),
        Header::Ack { .. } | Header::Notification => false,
        _ => true,
    };
    let length = match format {
        Format::Rocev2 if !unknown => encode_rocev2(packet, completed, snap, frame),
        _ => encode_strack(packet, frame),
    };
    let length = length.max(packet.size.into());
    frame.resize(length.min(snap), 0);
    length
}

/// Writes everything up to the payload; returns the length with it.
fn encode_strack(packet: &Packet, frame: &mut Vec<u8>) -> usize {
    let header = strack::header_length(&packet.header);
    let payload = match packet.header {
        Header::Data { payload, .. } if packet.can_be_trimmed() => payload.into(),
        _ => 0,
    };
    let length = (header + payload).min(LONGEST_DATAGRAM);
    network::write(packet, strack::PORT, length, frame);
    strack::write(packet, frame);
    NETWORK + length
}

/// Writes the headers and, if it is within the first `snap` bytes, everything up to the CRC; returns the length with it.
fn encode_rocev2(packet: &Packet, completed: u32, snap: usize, frame: &mut Vec<u8>) -> usize {
    let (header, payload) = rocev2::lengths(&packet.header);
    let room = (LONGEST_DATAGRAM - header - rocev2::INVARIANT_CRC) & !0b11;
    let payload = payload.min(room);
    let padding = payload.next_multiple_of(4) - payload;
    let zeros = payload + padding;
    let length = header + zeros + rocev2::INVARIANT_CRC;
    network::write(packet, rocev2::PORT, length, frame);
    rocev2::write(packet, completed, padding, frame);
    let before_crc = frame.len() + zeros;
    if before_crc < snap {
        let crc = icrc::invariant(&frame[ETHERNET..], zeros, &[]);
        frame.resize(before_crc, 0);
        frame.extend(crc);
    }
    ETHERNET + IPV4 + UDP + length
}

/// Content of a decoded frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// A packet in the format of STrack. It has everything that the packet had but the digest that switches hash.
    Strack(Packet),
    /// A packet of RoCEv2.
    Rocev2(rocev2::Received),
    /// A pause frame and the classes that it holds back.
    Pause(ClassSet),
}

/// Reads a whole frame.
///
/// # Errors
/// If it is cut off, damaged or of a kind that [`encode`] does not write.
pub fn decode(frame: &[u8]) -> Result<Decoded, WireError> {
    if let Some(classes) = pause::read(frame) {
        return classes.map(Decoded::Pause);
    }
    let (network, packet, datagram) = network::read(frame)?;
    match network.destination_port {
        rocev2::PORT => Ok(Decoded::Rocev2(rocev2::Received {
            network,
            transport: rocev2::read(packet)?,
        })),
        strack::PORT => strack::read(datagram, &network).map(Decoded::Strack),
        _ => Err(WireError::NotOurs),
    }
}

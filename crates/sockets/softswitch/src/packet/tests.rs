use super::*;
use crate::testing::{udp_v4, udp_v6};
use proptest::prelude::*;

/// The Internet checksum of a header with its checksum in place: zero.
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|pair| u32::from(be16(pair, 0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[test]
fn headers_say_where_a_packet_goes() {
    let headers = Headers::parse(&udp_v4(HostId(0), HostId(3), (7, 9), 2, 100)).unwrap();
    assert_eq!((headers.to, headers.payload), (HostId(3), 20));
    assert_eq!(headers.entropy.source_port, 7);
    assert_eq!(headers.entropy.destination_port, 9);
    let same = Headers::parse(&udp_v6(HostId(0), HostId(3), (7, 9), 2, 100)).unwrap();
    assert_eq!((same.to, same.payload), (HostId(3), 40));
    assert_eq!(same.hash(HostId(0)), headers.hash(HostId(0)));
    assert_ne!(same.hash(HostId(1)), headers.hash(HostId(0)));
}

#[test]
fn each_port_matters_for_the_hash() {
    let hash = |ports| {
        let packet = udp_v4(HostId(0), HostId(1), ports, 0, 0);
        Headers::parse(&packet).unwrap().hash(HostId(0))
    };
    let hashes = [(1, 2), (2, 1), (1, 3), (0, 3), (3, 0)].map(hash);
    for (index, hash) in hashes.iter().enumerate() {
        assert!(!hashes[..index].contains(hash), "{hashes:?}");
    }
}

#[test]
fn fragments_of_a_packet_go_one_way() {
    let whole = udp_v4(HostId(0), HostId(1), (5, 6), 0, 64);
    let fragment = |bits: u16| {
        let mut packet = whole.clone();
        packet[6..8].copy_from_slice(&bits.to_be_bytes());
        Headers::parse(&packet).unwrap().entropy
    };
    assert_eq!(fragment(0x2000), fragment(0x00b9), "first and last");
    assert_ne!(fragment(0x2000), fragment(0x4000), "do not fragment");
}

#[test]
fn extension_headers_are_followed_to_the_ports() {
    let plain = udp_v6(HostId(0), HostId(1), (5, 6), 0, 16);
    let with = |extension: &[u8], kind: u8| {
        let mut packet = plain[..40].to_vec();
        packet[6] = kind;
        packet.extend_from_slice(extension);
        packet.extend_from_slice(&plain[40..]);
        let length = (packet.len() - 40) as u16;
        packet[4..6].copy_from_slice(&length.to_be_bytes());
        Headers::parse(&packet).unwrap().entropy
    };
    let udp = Headers::parse(&plain).unwrap().entropy;
    assert_eq!(with(&[17, 0, 1, 4, 0, 0, 0, 0], 0), udp, "hop by hop");
    let twice = [60, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0];
    assert_eq!(with(&twice, 43), udp, "routing and destination options");
    assert_eq!(
        with(&[17, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1], 51),
        udp,
        "authentication"
    );
    let no_ports = |entropy: Entropy| (entropy.source_port, entropy.destination_port) == (0, 0);
    assert!(no_ports(with(&[17, 0, 0, 1, 0, 0, 0, 7], 44)), "fragment");
    assert!(no_ports(with(&[17, 255, 1, 4, 0, 0, 0, 0], 60)), "beyond");
}

#[test]
fn truncated_and_strange_packets_are_told_apart() {
    let sound = udp_v4(HostId(0), HostId(1), (5, 6), 0, 64);
    for length in 0..sound.len() {
        assert_eq!(
            Headers::parse(&sound[..length]),
            Err(PacketFault::Malformed),
            "{length}"
        );
    }
    let sound = udp_v6(HostId(0), HostId(1), (5, 6), 0, 64);
    for length in 0..sound.len() {
        assert_eq!(
            Headers::parse(&sound[..length]),
            Err(PacketFault::Malformed),
            "{length}"
        );
    }
    let mut stranger = udp_v4(HostId(0), HostId(1), (5, 6), 0, 64);
    stranger[16] = 11;
    assert_eq!(Headers::parse(&stranger), Err(PacketFault::NoRoute));
    let mut short_header = udp_v4(HostId(0), HostId(1), (5, 6), 0, 64);
    short_header[0] = 0x44;
    assert_eq!(Headers::parse(&short_header), Err(PacketFault::Malformed));
}

#[test]
fn marks_change_one_field_and_keep_the_checksum_right() {
    for field in [1, 2] {
        let mut packet = udp_v4(HostId(0), HostId(1), (5, 6), field, 64);
        packet[1] |= 0xb8;
        packet[10..12].copy_from_slice(&[0; 2]);
        let sum = checksum(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(checksum(&packet[..20]), 0);
        assert!(is_markable(Version::V4, &packet));
        let before = packet.clone();
        mark(Version::V4, &mut packet);
        assert_eq!(packet[1], 0xbb);
        assert_eq!(checksum(&packet[..20]), 0);
        assert_eq!(packet[12..], before[12..]);
        assert!(!is_markable(Version::V4, &packet), "marked already");
    }
    let mut packet = udp_v6(HostId(0), HostId(1), (5, 6), 2, 64);
    packet[0] |= 0x0f;
    packet[1] |= 0xcf;
    assert!(is_markable(Version::V6, &packet));
    mark(Version::V6, &mut packet);
    assert_eq!(packet[..2], [0x6f, 0xff]);
    for packet in [udp_v4, udp_v6].map(|udp| udp(HostId(0), HostId(1), (5, 6), 0, 64)) {
        let version = Headers::parse(&packet).unwrap().version;
        assert!(!is_markable(version, &packet), "not ECT");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(headers) = Headers::parse(&bytes) {
            prop_assert!(headers.payload <= bytes.len());
            let mut packet = bytes.clone();
            is_markable(headers.version, &packet);
            mark(headers.version, &mut packet);
            prop_assert_eq!(Headers::parse(&packet), Ok(headers));
        }
    }

    #[test]
    fn checksums_stay_right_whatever_the_header(mut bytes in prop::collection::vec(any::<u8>(), 20..=20)) {
        bytes[0] = 0x45;
        bytes[10..12].copy_from_slice(&[0; 2]);
        let sum = checksum(&bytes);
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        mark(Version::V4, &mut bytes);
        prop_assert!(matches!(checksum(&bytes), 0 | 0xffff));
    }
}

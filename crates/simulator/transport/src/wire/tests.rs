use super::rocev2::Received;
use super::*;
use crate::packet::{Class, DataFlags, header_hash};
use clearway_units::{FlowId, HostId, MessageId, Time};
use proptest::prelude::*;

fn packet(header: Header) -> Packet {
    Packet {
        stamp: Time::from_ps(1234),
        flow: FlowId(7),
        src: HostId(3),
        dst: HostId(0x01_02_03),
        header_hash: header_hash(HostId(3), HostId(0x01_02_03), 0x1234),
        size: 64,
        source_port: 0x1234,
        class: Class::CONTROL,
        queue_pair: 2,
        ecn: false,
        via: 0,
        header,
    }
}

fn data(psn: u32, offset: u64, payload: u16, end_of_message: bool) -> Packet {
    let header = Header::Data {
        psn,
        message: MessageId(0),
        offset,
        payload,
        parts: 1,
        pull_target: 0,
        flags: DataFlags::NONE
            .with(DataFlags::ACK_REQUEST, end_of_message)
            .with(DataFlags::END_OF_MESSAGE, end_of_message)
            .with(DataFlags::END_OF_FLOW, end_of_message),
    };
    Packet {
        size: payload + 64,
        class: Class::DATA,
        ..packet(header)
    }
}

fn whole(packet: &Packet, format: Format) -> Vec<u8> {
    let mut frame = Vec::new();
    let length = encode(packet, format, 5, usize::MAX, &mut frame);
    assert_eq!(length, frame.len());
    frame
}

fn rocev2(packet: &Packet) -> Received {
    match decode(&whole(packet, Format::Rocev2)) {
        Ok(Decoded::Rocev2(received)) => received,
        other => panic!("{other:?}"),
    }
}

/// Any header that a transport may write.
fn header() -> impl Strategy<Value = Header> {
    let data = (
        any::<[u32; 2]>(),
        any::<u64>(),
        any::<u16>(),
        any::<u8>(),
        (any::<u8>(), any::<u16>()),
    )
        .prop_map(
            |([psn, message], offset, payload, parts, (flags, pull_target))| Header::Data {
                psn,
                message: MessageId(message),
                offset,
                payload,
                parts,
                pull_target,
                flags: DataFlags::from_bits_truncate(flags),
            },
        );
    let nack =
        (any::<u32>(), any::<bool>()).prop_map(|(psn, last_hop)| Header::Nack { psn, last_hop });
    let sack = (
        any::<u64>(),
        any::<[u32; 2]>(),
        any::<[u16; 2]>(),
        any::<bool>(),
    )
        .prop_map(
            |(bitmap, [epsn, bytes_received], [base_offset, out_of_order], probe)| Header::Sack {
                bitmap,
                bytes_received,
                epsn,
                base_offset,
                out_of_order,
                probe,
            },
        );
    let ack = (any::<u32>(), any::<[bool; 2]>()).prop_map(|(epsn, [nack, marked])| Header::Ack {
        epsn,
        nack,
        marked,
    });
    let probe = (any::<u32>(), any::<Option<u16>>())
        .prop_map(|(base, pull_target)| Header::Probe { base, pull_target });
    let pull = any::<u16>().prop_map(|pull| Header::Pull { pull });
    let numbers = (any::<[u16; 2]>(), any::<u32>(), any::<u64>());
    let control = (any::<[bool; 2]>(), any::<u8>(), numbers).prop_map(
        |([reflected, leaving], links, ([sequence, connections], let_through, rate))| {
            Header::RateControl {
                reflected,
                leaving,
                links,
                sequence,
                connections,
                let_through,
                rate,
            }
        },
    );
    prop_oneof![
        data,
        sack,
        nack,
        ack,
        probe,
        pull,
        control,
        Just(Header::Notification)
    ]
}

fn any_packet() -> impl Strategy<Value = Packet> {
    let numbers = (any::<u64>(), any::<u32>(), any::<[u16; 2]>(), any::<u8>());
    let ends = (0..1u32 << 24, 0..1u32 << 24);
    (header(), numbers, ends, 0..8u8, any::<bool>()).prop_map(
        |(header, (stamp, flow, [size, source_port], queue_pair), (src, dst), class, ecn)| Packet {
            stamp: Time::from_ps(stamp),
            flow: FlowId(flow),
            src: HostId(src),
            dst: HostId(dst),
            header_hash: header_hash(HostId(src), HostId(dst), source_port),
            size,
            source_port,
            class: Class::new(class).unwrap(),
            queue_pair,
            ecn,
            via: 0,
            header,
        },
    )
}

proptest! {
    #[test]
    fn strack_says_everything(packet in any_packet()) {
        let frame = whole(&packet, Format::Strack);
        prop_assert_eq!(decode(&frame), Ok(Decoded::Strack(packet)));
        prop_assert!(frame.len() >= usize::from(packet.size));
    }

    #[test]
    fn rocev2_says_what_its_headers_have_room_for(packet in any_packet()) {
        let frame = whole(&packet, Format::Rocev2);
        let received = match decode(&frame) {
            Ok(Decoded::Rocev2(received)) => received,
            Ok(Decoded::Strack(read)) => {
                let whole = matches!(packet.header, Header::Data { .. }) && packet.can_be_trimmed();
                let unknown = !whole && !matches!(packet.header, Header::Ack { .. } | Header::Notification);
                prop_assert!(unknown);
                prop_assert_eq!(read, packet);
                return Ok(());
            }
            other => panic!("{other:?}"),
        };
        let (network, transport) = (received.network, received.transport);
        prop_assert_eq!((network.src, network.dst), (packet.src, packet.dst));
        prop_assert_eq!((network.class, network.marked), (packet.class, packet.ecn));
        prop_assert_eq!(network.source_port, packet.source_port | 0xc000);
        let destination = rocev2::queue_pair(packet.flow, packet.queue_pair);
        prop_assert_eq!(transport.destination, destination);
        prop_assert!(destination > 31 && destination < 0xff_ffff);
        match packet.header {
            Header::Data { psn, payload, flags, .. } => {
                prop_assert!(transport.is_send());
                prop_assert_eq!(transport.psn, psn & 0xff_ffff);
                prop_assert_eq!(transport.ack_request, flags.contains(DataFlags::ACK_REQUEST));
                let most = u16::MAX - 20 - 8 - 12 - 4;
                prop_assert_eq!(transport.payload, payload.min(most & !3));
            }
            Header::Ack { epsn, nack, marked } => {
                let named = if nack { epsn } else { epsn.wrapping_sub(1) };
                prop_assert_eq!(transport.psn, named & 0xff_ffff);
                prop_assert_eq!((transport.is_nak(), transport.becn), (nack, marked));
                prop_assert_eq!(transport.acknowledgement.map(|(_, messages)| messages), Some(5));
            }
            _ => prop_assert!(transport.is_notification() && transport.becn),
        }
    }

    #[test]
    fn a_snapped_frame_is_the_beginning_of_the_whole(packet in any_packet(), snap in 0..300usize) {
        for format in [Format::Rocev2, Format::Strack] {
            let frame = whole(&packet, format);
            let mut start = Vec::new();
            prop_assert_eq!(encode(&packet, format, 5, snap, &mut start), frame.len());
            prop_assert_eq!(&start[..], &frame[..snap.min(frame.len())]);
        }
    }

    #[test]
    fn damage_is_no_panic(packet in any_packet(), at in any::<[prop::sample::Index; 3]>(), value in any::<u8>()) {
        for format in [Format::Rocev2, Format::Strack] {
            let mut frame = whole(&packet, format);
            let index = at[0].index(frame.len().min(100));
            frame[index] = value;
            let _ = decode(&frame);
            let _ = decode(&frame[..at[1].index(frame.len())]);
            // Without the checksums in the way.
            let network = super::Network {
                src: packet.src,
                dst: packet.dst,
                class: packet.class,
                marked: false,
                source_port: 0,
                destination_port: strack::PORT,
            };
            let _ = strack::read(&frame[at[2].index(frame.len())..], &network);
        }
    }

    #[test]
    fn pause_frames_say_which_classes(bits in any::<u8>(), switch in any::<bool>(), number in any::<u32>()) {
        let mut classes = ClassSet::EMPTY;
        for class in (1..8).filter(|class| bits >> class & 1 == 1) {
            classes.insert(Class::new(class).unwrap());
        }
        let source = if switch { PauseSource::Switch(number) } else { PauseSource::Host(number) };
        let frame = encode_pause(source, classes, 64);
        prop_assert_eq!(frame.len(), 64);
        prop_assert_eq!(decode(&frame), Ok(Decoded::Pause(classes)));
    }
}

#[test]
fn opcodes_follow_the_place_in_the_message() {
    let opcode = |packet: &Packet| rocev2(packet).transport.opcode;
    assert_eq!(opcode(&data(0, 0, 4096, false)), 0x00);
    assert_eq!(opcode(&data(1, 4096, 4096, false)), 0x01);
    assert_eq!(opcode(&data(2, 8192, 100, true)), 0x02);
    assert_eq!(opcode(&data(9, 0, 100, true)), 0x04);
    // The second stripe of a message begins at its first packet.
    assert_eq!(opcode(&data(0, 50_000, 4096, false)), 0x00);
    let answer = |nack| {
        packet(Header::Ack {
            epsn: 9,
            nack,
            marked: false,
        })
    };
    assert_eq!(opcode(&answer(true)), 0x11);
    assert_eq!(rocev2(&answer(true)).transport.psn, 9);
    assert_eq!(rocev2(&answer(false)).transport.psn, 8);
    assert_eq!(opcode(&packet(Header::Notification)), 0x81);
}

#[test]
fn frames_have_the_simulated_size_where_headers_fit() {
    assert_eq!(
        whole(&data(1, 4096, 4096, false), Format::Rocev2).len(),
        4160
    );
    // Three bytes of padding and the headers leave nothing over.
    assert_eq!(whole(&data(1, 4096, 97, false), Format::Rocev2).len(), 161);
    let small = |header, format| whole(&packet(header), format).len();
    let ack = Header::Ack {
        epsn: 1,
        nack: false,
        marked: false,
    };
    assert_eq!(small(ack, Format::Rocev2), 64);
    assert_eq!(small(Header::Notification, Format::Rocev2), 74);
    let probe = |pull_target| Header::Probe {
        base: 1,
        pull_target,
    };
    assert_eq!(small(probe(None), Format::Strack), 66);
    assert_eq!(small(probe(Some(3)), Format::Strack), 68);
    assert_eq!(small(Header::Pull { pull: 1 }, Format::Strack), 64);
    assert_eq!(
        whole(&data(1, 4096, 4096, false), Format::Strack).len(),
        4178
    );
}

/// Byte by byte, as the formats say.
#[test]
fn a_negative_acknowledgement_in_full() {
    let frame = whole(
        &packet(Header::Ack {
            epsn: 0x0100_0002,
            nack: true,
            marked: true,
        }),
        Format::Rocev2,
    );
    let ethernet = [2, 0, 0, 1, 2, 3, 2, 0, 0, 0, 0, 3, 8, 0];
    assert_eq!(frame[..14], ethernet);
    let ip = [0x45, 0xc0, 0, 48, 0, 0, 0x40, 0, 64, 17];
    assert_eq!(frame[14..24], ip);
    assert_eq!(frame[26..34], [10, 0, 0, 3, 10, 1, 2, 3]);
    let words = frame[14..34].chunks(2);
    let sum: u32 = words
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]))
        .sum();
    assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    let udp = [0xd2, 0x34, 0x12, 0xb7, 0, 28, 0, 0];
    assert_eq!(frame[34..42], udp);
    // Flow 7, queue pair 2: (7 + 1) * 32 + 2.
    let base = [0x11, 0x40, 0xff, 0xff, 0x40, 0, 1, 2, 0, 0, 0, 2];
    assert_eq!(frame[42..54], base);
    assert_eq!(frame[54..58], [0x60, 0, 0, 5]);
    assert_eq!(frame[62..], [0, 0]);
}

#[test]
fn cut_or_damaged_frames_are_refused() {
    for format in [Format::Rocev2, Format::Strack] {
        let frame = whole(&data(1, 4096, 100, false), format);
        let datagram = usize::from(u16::from_be_bytes([frame[16], frame[17]])) + 14;
        for length in 0..datagram {
            assert_eq!(
                decode(&frame[..length]),
                Err(WireError::TooShort),
                "{length}"
            );
        }
    }
    let mut frame = whole(&data(1, 4096, 100, false), Format::Rocev2);
    let payload = 14 + 20 + 8 + 12 + 50;
    frame[payload] ^= 1;
    assert_eq!(decode(&frame), Err(WireError::Checksum));
    frame[payload] ^= 1;
    frame[22] -= 1;
    assert_eq!(decode(&frame), Err(WireError::Checksum), "time to live");
    frame[12] = 0x86;
    assert_eq!(decode(&frame), Err(WireError::NotOurs));
}

/// The total length of the IP packet, in 16 bits, has room for no more.
#[test]
fn the_longest_payload_fills_an_ip_packet_and_no_more() {
    for format in [Format::Rocev2, Format::Strack] {
        let mut packet = data(5, 0, 0, true);
        if let Header::Data { payload, .. } = &mut packet.header {
            (*payload, packet.size) = (u16::MAX, u16::MAX);
        }
        let frame = whole(&packet, format);
        let ip = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
        assert!((65_532..=65_535).contains(&ip), "{format:?} {ip}");
        assert!(frame.len() >= ETHERNET + ip);
        assert!(decode(&frame).is_ok(), "{format:?}");
    }
}

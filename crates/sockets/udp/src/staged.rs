//! Acknowledgements that wait to be sent, without redundant ones.
//!
//! The receiver acknowledges each expected packet. If many packets arrive with one system call, the last acknowledgement of each path makes
//! the others redundant: it has the same or a later state of the same segment of the bitmap, and a later time stamp of the same path. An
//! acknowledgement with a mark or of a probe is never left out, because the sender reacts to it.

use clearway_transport::{Header, Packet};
use std::collections::VecDeque;

/// Packets from the transport, in order.
#[derive(Debug, Default)]
pub(crate) struct Staged(VecDeque<Packet>);

impl Staged {
    /// Most packets that wait here.
    pub(crate) const MOST: usize = 64;

    pub(crate) fn pop(&mut self) -> Option<Packet> {
        self.0.pop_front()
    }

    /// Takes packets from `next` until it is known which one to send, and returns that one. Others wait here.
    #[inline]
    pub(crate) fn pull(&mut self, mut next: impl FnMut() -> Option<Packet>) -> Option<Packet> {
        while let Some(packet) = next() {
            if self.0.is_empty() && !acknowledges(&packet) {
                return Some(packet);
            }
            if !self.push(packet) {
                break;
            }
        }
        self.pop()
    }

    /// Adds a packet. Returns true if the caller should add more packets before it sends any: a later acknowledgement may make this one
    /// redundant.
    fn push(&mut self, packet: Packet) -> bool {
        if !acknowledges(&packet) {
            self.0.push_back(packet);
            return false;
        }
        let known = self
            .0
            .iter_mut()
            .rev()
            .find(|old| old.source_port == packet.source_port && old.flow == packet.flow);
        match known {
            Some(old) if makes_needless(&packet, old) => *old = packet,
            _ => self.0.push_back(packet),
        }
        self.0.len() < Self::MOST
    }
}

fn acknowledges(packet: &Packet) -> bool {
    matches!(
        packet.header,
        Header::Sack { probe: false, .. } | Header::Ack { nack: false, .. }
    )
}

/// True if the sender learns nothing from `old` that `new`, of the same path, does not say.
fn makes_needless(new: &Packet, old: &Packet) -> bool {
    if old.ecn || new.ecn {
        return false;
    }
    let (reached, seen, seen_from) = match new.header {
        Header::Sack {
            epsn,
            bitmap,
            base_offset,
            ..
        } => (epsn, bitmap, base_offset),
        Header::Ack { epsn, .. } => (epsn, 0, 0),
        _ => return false,
    };
    let (epsn, bitmap, base_offset) = match old.header {
        Header::Sack {
            epsn,
            bitmap,
            base_offset,
            probe: false,
            ..
        } => (epsn, bitmap, base_offset),
        Header::Ack {
            epsn,
            nack: false,
            marked: false,
        } => (epsn, 0, 0),
        _ => return false,
    };
    // Numbers wrap: only differences count.
    let base = epsn.wrapping_add(base_offset.into());
    let later = reached.wrapping_sub(epsn) as i32 >= 0;
    let below = match reached.wrapping_sub(base) as i32 {
        ..=0 => 0,
        packets @ 1..64 => (1 << packets) - 1,
        _ => u64::MAX,
    };
    // State that `new` reports for the segment of `old`.
    let ahead = reached.wrapping_add(seen_from.into()).wrapping_sub(base) as i32;
    let known = match ahead {
        0..64 => seen << ahead,
        -63..0 => seen >> -ahead,
        _ => 0,
    };
    later && bitmap & !(below | known) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_transport::Class;
    use clearway_units::{FlowId, HostId, Time};

    fn sack(path: u16, epsn: u32, base_offset: u16, bitmap: u64) -> Packet {
        Packet {
            stamp: Time::ZERO,
            flow: FlowId(0),
            src: HostId(0),
            dst: HostId(1),
            header_hash: 0,
            size: 0,
            source_port: path,
            class: Class::CONTROL,
            queue_pair: 0,
            ecn: false,
            via: 0,
            header: Header::Sack {
                bitmap,
                bytes_received: 0,
                epsn,
                base_offset,
                out_of_order: 0,
                probe: false,
            },
        }
    }

    #[test]
    fn one_acknowledgement_of_each_path_is_left_if_it_says_all() {
        let mut staged = Staged::default();
        for epsn in 0..60 {
            assert!(staged.push(sack((epsn % 3) as u16, epsn, 0, 0)));
        }
        assert_eq!(staged.0.len(), 3);
        let last = std::iter::from_fn(|| staged.pop()).last();
        assert_eq!(last, Some(sack(2, 59, 0, 0)));
    }

    #[test]
    fn cumulative_acknowledgements_are_left_out_but_for_marks_and_negative_ones() {
        let ack = |epsn, nack, marked| Packet {
            header: Header::Ack { epsn, nack, marked },
            ..sack(0, 0, 0, 0)
        };
        let mut staged = Staged::default();
        for epsn in 1..=10 {
            staged.push(ack(epsn, false, epsn == 4));
        }
        assert!(!staged.push(ack(10, true, false)));
        staged.push(ack(11, false, false));
        let left = std::iter::from_fn(|| staged.pop()).map(|packet| packet.header);
        let kept = [
            (4, false, true),
            (10, false, false),
            (10, true, false),
            (11, false, false),
        ];
        let kept = kept.map(|(epsn, nack, marked)| Header::Ack { epsn, nack, marked });
        assert_eq!(left.collect::<Vec<_>>(), kept);
    }

    #[test]
    fn what_only_an_older_one_says_is_kept() {
        let needless = |new: Packet, old: Packet| makes_needless(&new, &old);
        assert!(needless(sack(0, 5, 0, 0b111), sack(0, 5, 0, 0b101)));
        assert!(!needless(sack(0, 5, 0, 0b011), sack(0, 5, 0, 0b101)));
        assert!(!needless(sack(0, 5, 64, 0b111), sack(0, 5, 0, 0b101)));
        // Segments that overlap: packets 6 and 8 of 5 to 68, and 8 of 7 to 70.
        assert!(needless(sack(0, 7, 0, 0b10), sack(0, 5, 0, 0b1010)));
        assert!(!needless(sack(0, 6, 1, 0b100), sack(0, 5, 0, 0b1010)));
        assert!(needless(sack(0, 5, 0, 0b10_1000), sack(0, 5, 3, 0b101)));
        assert!(!needless(sack(0, 5, 0, 1 << 63), sack(0, 5, 3, 1 << 61)));
        assert!(!needless(sack(0, 4, 0, 0), sack(0, 5, 0, 0)));
        assert!(needless(sack(0, 8, 0, 0), sack(0, 5, 0, 0b101)));
        assert!(!needless(sack(0, 7, 0, 0), sack(0, 5, 0, 0b101)));
        assert!(needless(sack(0, 100, 0, 0), sack(0, 5, 0, u64::MAX)));
        assert!(needless(sack(0, 1, 0, 0), sack(0, u32::MAX, 0, 1)));
        let marked = Packet {
            ecn: true,
            ..sack(0, 5, 0, 0)
        };
        assert!(!needless(sack(0, 6, 0, 0), marked) && !needless(marked, sack(0, 4, 0, 0)));
    }
}

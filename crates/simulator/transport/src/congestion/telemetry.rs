//! In-band network telemetry (INT): records that switches write onto data packets, and receivers echo.
//!
//! As in HPCC (SIGCOMM 2019, §4.1 and Figure 7): each switch port appends a [`Hop`] to each data packet when it takes the packet out of
//! its queue and starts to transmit it; the receiver copies all of them into the acknowledgement, and the sender's controller finds them in
//! [`AckSample::hops`](crate::congestion::AckSample::hops).
//!
//! A packet and its telemetry travel together as an [`IntPacket`], which is moved from queue to queue. Without telemetry `T` is `()`: then
//! it is a packet and costs nothing more. [`HopRecords`] holds as many hops as HPCC's header. They are in memory of their own, so that a
//! hop writes one record and moves a pointer, and the acknowledgement takes over the records of the packet that it answers.

use crate::congestion::perc::Attachment;
use crate::packet::Packet;
use clearway_units::{Rate, Span, Time};
use std::ops::{Deref, DerefMut};

/// The most hops that a packet can hold: HPCC's header has room for five, and later hops are not recorded.
pub const MOST_HOPS: usize = 5;

/// Telemetry record of one hop: state of a switch port at the instant when it dequeues a packet and starts to transmit it.
///
/// Bytes that arrive during the packet's own transmission are not in the record, as in HPCC's simulator (`SwitchNotifyDequeue`). At the
/// end of the transmission they would make the queue look longer than any packet found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Instant of the dequeue: the first bit of the packet leaves the port.
    pub time: Time,
    /// The rate of the link behind the port.
    pub rate: Rate,
    /// Bytes that have left through the port before this packet, since the start of the run, modulo 2^32.
    pub sent: u32,
    /// Bytes that wait behind the packet, in all classes.
    pub queue: u32,
}

impl Hop {
    /// The time since the same port dequeued an earlier packet.
    #[inline]
    pub fn elapsed_since(&self, earlier: &Self) -> Span {
        self.time.since(earlier.time)
    }

    /// The record as the fields of HPCC's header hold it, which its simulator fills: whole nanoseconds, 128 bytes sent and 80 bytes
    /// of queue, up to 10.5 MB. Those fields are also narrow, and wrap after 16.8 ms and 134 MB; that is left out.
    #[must_use]
    pub fn coarse(self) -> Self {
        const MOST_QUEUE: u32 = (1 << 17) - 1;
        Self {
            time: Time::from_ps(self.time.as_ps() / 1000 * 1000),
            rate: self.rate,
            sent: self.sent / 128 * 128,
            queue: (self.queue / 80).min(MOST_QUEUE) * 80,
        }
    }

    /// Bytes that have left the port from the dequeue of an earlier packet on: that packet, and all before this one. Right as long as
    /// they are fewer than 2^32.
    #[inline]
    pub fn sent_since(&self, earlier: &Self) -> u32 {
        self.sent.wrapping_sub(earlier.sent)
    }
}

/// Data that travels beside a packet and that switches write: telemetry, or the records of s-PERC and 1RC.
pub trait Telemetry: std::fmt::Debug + Clone + Default + Send + Sync + 'static {
    /// False if there is nothing to write: then switches record no hops.
    const PRESENT: bool;
    /// True if links have agents, which see and rewrite the attachments of packets.
    const AGENTS: bool = false;
    /// Records the hop of a data packet that leaves a switch.
    fn record(&mut self, hop: Hop);
    /// Records that switches have written, in the order of the path.
    fn hops(&self) -> &[Hop];
    /// Keeps switches from recording anything more: the packet is of a transport that does not use telemetry, on a fabric where another one
    /// does. Earlier records are forgotten.
    #[inline]
    fn seal(&mut self) {}
    /// Attachment that agents of links read.
    #[inline]
    fn attachment(&self) -> &Attachment {
        &Attachment::None
    }
    /// As [`attachment`](Self::attachment), for agents, which rewrite it; `None` where there are none.
    #[inline]
    fn attachment_mut(&mut self) -> Option<&mut Attachment> {
        None
    }
    /// Replaces the attachment that agents of links read, where there are any.
    #[inline]
    fn attach(&mut self, attachment: Attachment) {
        let _ = attachment;
    }
}

/// Records of s-PERC and 1RC, and no telemetry.
impl Telemetry for Attachment {
    const PRESENT: bool = false;
    const AGENTS: bool = true;
    #[inline]
    fn record(&mut self, _: Hop) {}
    #[inline]
    fn hops(&self) -> &[Hop] {
        &[]
    }
    #[inline]
    fn attachment(&self) -> &Attachment {
        self
    }
    #[inline]
    fn attachment_mut(&mut self) -> Option<&mut Attachment> {
        Some(self)
    }
    #[inline]
    fn attach(&mut self, attachment: Attachment) {
        *self = attachment;
    }
}

/// No telemetry.
impl Telemetry for () {
    const PRESENT: bool = false;
    #[inline]
    fn record(&mut self, _: Hop) {}
    #[inline]
    fn hops(&self) -> &[Hop] {
        &[]
    }
}

/// The telemetry of HPCC: a record of each of the first [`MOST_HOPS`] hops. Memory for them comes with the first one.
#[derive(Debug, Clone, Default)]
pub struct HopRecords(Option<Box<Records>>);

#[derive(Debug, Clone)]
struct Records {
    /// Records of the hops; those from index `count` on are unused.
    hops: [Hop; MOST_HOPS],
    count: u8,
}

impl Records {
    /// Count of records that no switch may add to.
    const SEALED: u8 = u8::MAX;
}

impl Default for Records {
    #[inline]
    fn default() -> Self {
        let unused = Hop {
            time: Time::ZERO,
            rate: Rate::from_gbps(1),
            sent: 0,
            queue: 0,
        };
        Self {
            hops: [unused; MOST_HOPS],
            count: 0,
        }
    }
}

impl Telemetry for HopRecords {
    const PRESENT: bool = true;
    #[inline]
    fn record(&mut self, hop: Hop) {
        let records = self.0.get_or_insert_default();
        if let Some(free) = records.hops.get_mut(usize::from(records.count)) {
            *free = hop;
            records.count += 1;
        }
    }
    #[inline]
    fn hops(&self) -> &[Hop] {
        let Some(records) = &self.0 else {
            return &[];
        };
        let count = usize::from(records.count);
        records.hops.get(..count).unwrap_or(&[])
    }
    #[inline]
    fn seal(&mut self) {
        self.0.get_or_insert_default().count = Records::SEALED;
    }
}

/// A packet with in-band network telemetry: with the records that switches have written onto it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntPacket<T = ()> {
    /// The packet.
    pub packet: Packet,
    /// Hops that a data packet has passed; for an acknowledgement, hops of the packet that it answers.
    pub telemetry: T,
}

impl<T: Default> IntPacket<T> {
    /// Moves the packet elsewhere. What is left of it here has no telemetry.
    #[inline(always)]
    #[must_use]
    pub fn take(&mut self) -> Self {
        Self {
            packet: self.packet,
            telemetry: std::mem::take(&mut self.telemetry),
        }
    }
}

impl<T> Deref for IntPacket<T> {
    type Target = Packet;
    #[inline]
    fn deref(&self) -> &Packet {
        &self.packet
    }
}

impl<T> DerefMut for IntPacket<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Packet {
        &mut self.packet
    }
}

impl<T: Telemetry> From<Packet> for IntPacket<T> {
    #[inline]
    fn from(packet: Packet) -> Self {
        Self {
            packet,
            telemetry: T::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_units::Rate;

    fn hop(us: u64, sent: u32) -> Hop {
        Hop {
            time: Time::from_us(us),
            rate: Rate::from_gbps(100),
            sent,
            queue: 0,
        }
    }

    #[test]
    fn differences_survive_the_wrap_of_the_counter() {
        let (earlier, later) = (hop(1, u32::MAX - 99), hop(3, 900));
        assert_eq!(later.sent_since(&earlier), 1000);
        assert_eq!(later.elapsed_since(&earlier), Span::from_us(2));
    }

    #[test]
    fn coarse_hops_are_rounded_down() {
        let exact = Hop {
            time: Time::from_ps(1_234_567),
            queue: 1000,
            ..hop(0, 1000)
        };
        let coarse = exact.coarse();
        assert_eq!(coarse.time, Time::from_ps(1_234_000));
        assert_eq!((coarse.sent, coarse.queue), (896, 960));
        let full = Hop {
            queue: u32::MAX,
            ..exact
        };
        assert_eq!(full.coarse().queue, 10_485_680);
    }

    #[test]
    fn hops_beyond_the_fifth_are_not_recorded() {
        let mut records = HopRecords::default();
        assert!(records.hops().is_empty());
        (0..7).for_each(|n| records.record(hop(n.into(), n)));
        let sent: Vec<u32> = records.hops().iter().map(|hop| hop.sent).collect();
        assert_eq!(sent, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn nothing_is_recorded_on_a_sealed_packet() {
        let mut records = HopRecords::default();
        records.record(hop(1, 100));
        records.seal();
        assert_eq!(records.hops(), []);
        records.record(hop(2, 200));
        assert_eq!(records.hops(), []);
    }

    #[test]
    fn packets_with_telemetry_keep_their_size() {
        assert_eq!(size_of::<IntPacket>(), size_of::<Packet>());
        assert_eq!(size_of::<IntPacket<HopRecords>>(), size_of::<Packet>() + 8);
        assert!(size_of::<IntPacket<Attachment>>() <= size_of::<Packet>() + 24);
    }
}

//! Traffic totals of each link, counted in runs that [somebody watches](crate::Watch).
//!
//! A packet counts as a whole, when its transmission ends at a switch and when it begins at a host. A reading between two rounds includes
//! the part of a packet that has left by that instant. So the bytes of an interval are the bytes that crossed the link's sending end in it:
//! never more than the link's rate allows. Counting costs nothing for that.

use crate::topology::LinkId;
use clearway_units::{Rate, Time};

/// Totals of a link: traffic, marks, drops and longest queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkTotals {
    /// Bytes, headers included.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Packets that the queue in front of it marked.
    pub marks: u64,
    /// Packets that were dropped in front of it, or lost on it.
    pub drops: u64,
    /// Data packets that its queue trimmed.
    pub trims: u64,
    /// The most bytes that were in its data queue, or in the fullest of several.
    pub peak_queue: u64,
}

/// Traffic, marks, drops and longest queue of a link in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LinkInterval {
    /// Bytes that have left, headers included; of a packet that is on the wire when the interval ends, the part that has left.
    pub bytes: f64,
    /// Packets that were counted.
    pub packets: u64,
    /// Packets that the queue in front of the link marked.
    pub marks: u64,
    /// Packets that were dropped in front of it, or lost on it.
    pub drops: u64,
    /// The most bytes that were in its data queue. Bytes that were there before count when a packet joins them.
    pub peak_queue: u64,
}

/// Link at an instant between two rounds.
#[derive(Debug)]
pub struct LinkView<'a> {
    /// The link.
    pub link: LinkId,
    /// Bytes of data that wait in front of it at a switch.
    pub queue: u64,
    pub(crate) meter: &'a mut LinkMeter,
    /// Bytes that have left beyond the totals: the part of a packet that is on the wire.
    pub(crate) ahead: f64,
}

impl LinkView<'_> {
    /// Traffic since the last call. It stands still in a run that [nobody watches](crate::Watch::Off).
    #[inline]
    pub fn take(&mut self) -> LinkInterval {
        self.meter.take(self.ahead)
    }

    /// Totals since the start of the run.
    pub fn totals(&self) -> LinkTotals {
        self.meter.totals()
    }

    /// Adds the traffic of a [skipped](crate::Snapshot::skip) stretch: bytes, packets, marks, drops and trims.
    pub fn add_skipped(&mut self, traffic: &LinkTotals) {
        self.meter.add(traffic);
    }
}

/// Bytes that have yet to leave at `now` of a packet whose last bit leaves at `end`.
pub(crate) fn bytes_left(now: Time, end: Time, rate: Rate) -> f64 {
    match end > now {
        true => end.since(now).as_ps() as f64 * rate.as_bps() as f64 / 8e12,
        false => 0.0,
    }
}

/// Counts at one link. What few packets change, and what readings compare with, is apart: most links of a large fabric have none of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LinkMeter {
    bytes: u64,
    packets: u64,
    /// The longest queue since the last reading.
    peak: u64,
    rare: Option<Box<RareCounts>>,
}

#[derive(Debug, Clone, Default)]
struct RareCounts {
    marks: u64,
    drops: u64,
    trims: u64,
    /// The longest queue before the last reading.
    peak_queue: u64,
    /// The totals at the last reading, and the bytes that had left beyond them.
    seen: LinkTotals,
    ahead: f64,
}

impl LinkMeter {
    #[inline(always)]
    pub(crate) fn on_departure(&mut self, size: u16) {
        self.bytes += u64::from(size);
        self.packets += 1;
    }

    #[inline(always)]
    pub(crate) fn on_enqueue(&mut self, bytes: u64) {
        if bytes > self.peak {
            self.peak = bytes;
        }
    }

    pub(crate) fn on_mark(&mut self) {
        self.rare().marks += 1;
    }

    pub(crate) fn on_trim(&mut self) {
        self.rare().trims += 1;
    }

    pub(crate) fn on_drop(&mut self) {
        self.rare().drops += 1;
    }

    fn rare(&mut self) -> &mut RareCounts {
        self.rare.get_or_insert_default()
    }

    /// Adds traffic that was not simulated: all of it but the queue.
    fn add(&mut self, traffic: &LinkTotals) {
        self.bytes += traffic.bytes;
        self.packets += traffic.packets;
        let rare = self.rare();
        rare.marks += traffic.marks;
        rare.drops += traffic.drops;
        rare.trims += traffic.trims;
    }

    /// Traffic since the last call, if `ahead` bytes have left beyond the totals.
    #[inline]
    fn take(&mut self, ahead: f64) -> LinkInterval {
        let totals = self.totals();
        let peak_queue = std::mem::take(&mut self.peak);
        let rare = self.rare();
        rare.peak_queue = totals.peak_queue;
        let seen = std::mem::replace(&mut rare.seen, totals);
        let before = std::mem::replace(&mut rare.ahead, ahead);
        // A part of a packet that was counted may never be followed by the rest, where the link went down in between or has another rate.
        let bytes = (totals.bytes - seen.bytes) as f64 + (ahead - before);
        LinkInterval {
            bytes: bytes.max(0.0),
            packets: totals.packets - seen.packets,
            marks: totals.marks - seen.marks,
            drops: totals.drops - seen.drops,
            peak_queue,
        }
    }

    /// Totals since the start of the run.
    fn totals(&self) -> LinkTotals {
        let counts = LinkTotals {
            bytes: self.bytes,
            packets: self.packets,
            peak_queue: self.peak,
            ..LinkTotals::default()
        };
        match &self.rare {
            None => counts,
            Some(rare) => LinkTotals {
                marks: rare.marks,
                drops: rare.drops,
                trims: rare.trims,
                peak_queue: rare.peak_queue.max(self.peak),
                ..counts
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_on_the_wire_has_left_in_part() {
        let rate = Rate::from_gbps(400);
        // A byte takes 20 ps.
        let (now, end) = (Time::from_ps(1_000), Time::from_ps(3_000));
        assert_eq!(bytes_left(now, end, rate), 100.0);
        assert_eq!(bytes_left(end, end, rate), 0.0);
        assert_eq!(bytes_left(end, now, rate), 0.0);
    }

    #[test]
    fn no_interval_has_less_than_nothing() {
        let mut meter = LinkMeter::default();
        meter.on_departure(100);
        assert_eq!(meter.take(40.0).bytes, 140.0);
        // The link has gone down in the middle of a packet.
        assert_eq!(meter.take(0.0).bytes, 0.0);
        meter.on_departure(50);
        assert_eq!(meter.take(0.0).bytes, 50.0);
    }

    #[test]
    fn intervals_add_up_to_the_totals() {
        let mut meter = LinkMeter::default();
        let mut bytes = 0.0;
        for round in 1..4u16 {
            meter.on_departure(round * 100);
            meter.on_enqueue(u64::from(5 - round) * 10);
            meter.on_enqueue(3);
            meter.on_mark();
            // So much of the next counted packet is on the wire.
            let interval = meter.take(f64::from(3 - round) * 30.0);
            bytes += interval.bytes;
            assert_eq!(
                (interval.packets, interval.marks, interval.drops),
                (1, 1, 0)
            );
            assert_eq!(interval.peak_queue, u64::from(5 - round) * 10);
        }
        meter.on_drop();
        meter.on_enqueue(99);
        let totals = meter.totals();
        assert_eq!((totals.bytes, bytes), (600, 600.0));
        assert_eq!((totals.packets, totals.marks, totals.drops), (3, 3, 1));
        assert_eq!(totals.peak_queue, 99);
        assert_eq!(meter.take(0.0).peak_queue, 99);
        assert_eq!(meter.take(0.0), LinkInterval::default());
    }
}

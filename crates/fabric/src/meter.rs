//! Totals of what each link has carried, counted where observers ask for it.

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
    /// The most bytes that were in its data queue, or in the fullest of several.
    pub peak_queue: u64,
}

/// Counts at one link.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinkMeter {
    totals: LinkTotals,
    /// The totals when somebody last looked.
    seen: LinkTotals,
    /// The longest queue since then.
    peak: u64,
}

impl LinkMeter {
    #[inline(always)]
    pub(crate) fn on_departure(&mut self, size: u16) {
        self.totals.bytes += u64::from(size);
        self.totals.packets += 1;
    }

    #[inline(always)]
    pub(crate) fn on_enqueue(&mut self, bytes: u64) {
        self.peak = self.peak.max(bytes);
    }

    pub(crate) fn on_mark(&mut self) {
        self.totals.marks += 1;
    }

    pub(crate) fn on_drop(&mut self) {
        self.totals.drops += 1;
    }

    /// Totals since the last call. The longest queue is measured at arrivals: bytes that were there before count when a packet joins them.
    #[inline]
    pub fn take(&mut self) -> LinkTotals {
        let (totals, seen) = (self.totals, self.seen);
        self.totals.peak_queue = totals.peak_queue.max(self.peak);
        self.seen = self.totals;
        LinkTotals {
            bytes: totals.bytes - seen.bytes,
            packets: totals.packets - seen.packets,
            marks: totals.marks - seen.marks,
            drops: totals.drops - seen.drops,
            peak_queue: std::mem::take(&mut self.peak),
        }
    }

    /// Totals since the start of the run.
    pub fn totals(&self) -> LinkTotals {
        LinkTotals {
            peak_queue: self.totals.peak_queue.max(self.peak),
            ..self.totals
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_add_up_to_the_totals() {
        let mut meter = LinkMeter::default();
        let mut bytes = 0;
        for round in 1..4u16 {
            meter.on_departure(round * 100);
            meter.on_enqueue(u64::from(5 - round) * 10);
            meter.on_enqueue(3);
            meter.on_mark();
            let interval = meter.take();
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
        assert_eq!((totals.bytes, bytes), (600, 600));
        assert_eq!((totals.packets, totals.marks, totals.drops), (3, 3, 1));
        assert_eq!(totals.peak_queue, 99);
        assert_eq!(meter.take().peak_queue, 99);
        assert_eq!(meter.take(), LinkTotals::default());
    }
}

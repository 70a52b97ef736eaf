//! What crosses each link.

use crate::record::Both;
use clearway_fabric::topology::LinkId;
use clearway_fabric::{DropCause, Observer};
use clearway_transport::Packet;
use clearway_units::Time;
use std::sync::Arc;

/// What a link has carried since the start of the run.
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

#[derive(Debug, Clone, Copy, Default)]
struct Meter {
    totals: LinkTotals,
    /// The totals when somebody last looked.
    seen: LinkTotals,
    /// The most bytes since somebody last looked.
    peak: u64,
}

/// What has happened at a link since somebody last looked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval {
    pub(super) link: LinkId,
    pub(super) peak: u64,
    pub(super) bytes: u64,
    pub(super) marks: u64,
    pub(super) drops: u64,
}

/// Meters the links of one domain.
#[derive(Debug, Clone, Default)]
pub struct LinkMeter {
    links: Vec<LinkId>,
    places: Arc<[u32]>,
    meters: Vec<Meter>,
}

impl LinkMeter {
    #[inline(always)]
    fn at(&mut self, link: LinkId) -> &mut Meter {
        let place = self.places[link.0 as usize];
        &mut self.meters[place as usize]
    }

    /// What has happened at each link since the last call. Peaks are those of arrivals: what was in a queue before counts when
    /// something joins it.
    pub(super) fn take(&mut self, mut look: impl FnMut(Interval)) {
        for (&link, meter) in self.links.iter().zip(&mut self.meters) {
            let (totals, seen) = (meter.totals, meter.seen);
            look(Interval {
                link,
                peak: meter.peak,
                bytes: totals.bytes - seen.bytes,
                marks: totals.marks - seen.marks,
                drops: totals.drops - seen.drops,
            });
            meter.totals.peak_queue = totals.peak_queue.max(meter.peak);
            meter.seen = meter.totals;
            meter.peak = 0;
        }
    }

    /// Each link with what it has carried.
    pub fn totals(&self) -> impl Iterator<Item = (LinkId, LinkTotals)> {
        let meters = self.links.iter().zip(&self.meters);
        meters.map(|(&link, meter)| {
            let mut totals = meter.totals;
            totals.peak_queue = totals.peak_queue.max(meter.peak);
            (link, totals)
        })
    }
}

impl Observer for LinkMeter {
    fn attach(&mut self, links: &[LinkId], places: &Arc<[u32]>) {
        self.links = links.to_vec();
        self.places = Arc::clone(places);
        self.meters = vec![Meter::default(); links.len()];
    }

    #[inline(always)]
    fn on_departure(&mut self, _: Time, link: LinkId, packet: &Packet) {
        let meter = self.at(link);
        meter.totals.bytes += u64::from(packet.size);
        meter.totals.packets += 1;
    }

    #[inline(always)]
    fn on_enqueue(&mut self, _: Time, link: LinkId, bytes: u64) {
        let meter = self.at(link);
        meter.peak = meter.peak.max(bytes);
    }

    fn on_mark(&mut self, _: Time, link: LinkId, _: &Packet) {
        self.at(link).totals.marks += 1;
    }

    fn on_drop(&mut self, _: Time, link: LinkId, _: &Packet, _: DropCause) {
        self.at(link).totals.drops += 1;
    }
}

/// An observer with a meter in it.
pub trait Metered: Observer {
    /// The meter.
    fn meter(&mut self) -> &mut LinkMeter;
}

impl Metered for LinkMeter {
    fn meter(&mut self) -> &mut LinkMeter {
        self
    }
}

impl<B: Observer> Metered for Both<LinkMeter, B> {
    fn meter(&mut self) -> &mut LinkMeter {
        &mut self.first
    }
}

/// The totals of all links, by [`LinkId`]; zeros for links that are down.
pub fn link_totals<'a>(
    links: usize,
    meters: impl IntoIterator<Item = &'a LinkMeter>,
) -> Vec<LinkTotals> {
    let mut totals = vec![LinkTotals::default(); links];
    for meter in meters {
        for (link, of_link) in meter.totals() {
            totals[link.0 as usize] = of_link;
        }
    }
    totals
}

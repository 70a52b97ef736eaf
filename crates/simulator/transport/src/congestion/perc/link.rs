//! Egress link of s-PERC: fair rates from sums, and windows for speculative packets (Algorithms 3 to 5).

use super::record::{ControlRecord, Speculative, Status};
use super::sums::{Part, RATE_UNITS, Sums, UNIT_WEIGHT};
use super::window_table::WindowTable;
use clearway_units::{Bytes, Rate, Span, Time};

/// A flow is bottlenecked elsewhere if `e < b * (1 - TOLERANCE)`. Records hold rates as `f32`, right to 6e-8, and weights of 65535
/// connections are right to as much; in a tie of two links `e` and `b` therefore differ by a few times that.
const TOLERANCE: f64 = 1e-6;

/// Least part of the capacity that bottlenecked flows share. Only sums that are wrong after losses of control packets come near.
const LEAST_SHARE: f64 = 1e-6;

/// Windows are rounded down, except from this close to a whole packet: a quotient of rates is rarely exact.
const WHOLE: f64 = 1.0 + 1e-9;

/// Settings of 1RC at a link (§5.2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EpochParameters {
    /// Length of an epoch, the same in the whole network. The dissertation takes the longest unloaded round trip.
    pub length: Span,
    /// The longest unloaded round trip of the network, over which a rate makes a window.
    pub max_rtt: Span,
    /// Size on the wire of a full data packet.
    pub packet: Bytes,
    /// Bandwidth-delay product in packets: the most that a window holds.
    pub bdp_packets: u32,
}

/// Settings of a [`LinkAgent`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkParameters {
    /// Rate of the link.
    pub capacity: Rate,
    /// Part of the capacity that is given to flows, above 0 and at most 1 (default 0.98): the rest lets queues drain.
    pub headroom: f64,
    /// Least time after which the largest rates bottlenecked elsewhere are forgotten: two unloaded round trips. Where flows send control
    /// packets less often, a round is as long as the longest time between two of them, and half of this.
    pub round: Span,
    /// Period of the sums: at least the longest time between two control packets of a flow, and a timeout. A flow of which nothing is
    /// heard is forgotten after two of them at the latest.
    pub period: Span,
    /// 1RC; without it all speculative packets are admitted.
    pub epochs: Option<EpochParameters>,
}

impl LinkParameters {
    /// s-PERC without 1RC, with a headroom of 2 %, for flows whose control packets are at most `period` apart.
    pub const fn new(capacity: Rate, round: Span, period: Span) -> Self {
        Self {
            capacity,
            headroom: 0.98,
            round,
            period,
            epochs: None,
        }
    }
}

/// 1RC at a link.
#[derive(Debug, Clone)]
struct Windows {
    table: WindowTable,
    length: Span,
    /// Packets for each byte per second of bottleneck rate, without the headroom.
    packets_per_rate: f64,
    bdp_packets: u32,
    late: u64,
}

impl Windows {
    fn new(epochs: &EpochParameters, headroom: f64) -> Self {
        assert!(!epochs.length.is_zero(), "an epoch has a length");
        let packet = epochs.packet.as_f64().max(1.0);
        Self {
            table: WindowTable::default(),
            length: epochs.length,
            packets_per_rate: epochs.max_rtt.as_secs() / packet / headroom,
            bdp_packets: epochs.bdp_packets.max(1),
            late: 0,
        }
    }

    /// Enters the window of a rate if the control packet is the first of its epoch (Algorithm 4 lines 15 and 16). One from more
    /// than an epoch ahead has a false clock and enters nothing.
    fn enter(&mut self, now: Time, sent: Time, bottleneck: f64) {
        let epoch = self.epoch_of(sent);
        if epoch <= self.epoch_of(now).saturating_add(1) {
            let window = (bottleneck * self.packets_per_rate * WHOLE) as u32;
            self.table
                .insert_first(epoch, window.clamp(1, self.bdp_packets));
        }
    }

    /// Number from which on speculative packets are dropped (Algorithm 4 line 18, Algorithm 5 line 2). Zero without an entry, which
    /// is counted.
    fn threshold(&mut self, first: Time, connections: u16) -> u32 {
        match self.table.get(self.epoch_of(first)) {
            Some(window) => (window / u32::from(connections.max(1))).max(1),
            None => {
                self.late += 1;
                0
            }
        }
    }

    fn epoch_of(&self, time: Time) -> u64 {
        time.as_ps() / self.length.as_ps()
    }
}

/// Largest rate per unit weight that was classified as elsewhere (`MaxE`), of this round and the last.
#[derive(Debug, Clone)]
struct LargestElsewhere {
    /// Since the last round began (`MaxE`) …
    since_last: f64,
    /// … and in this round (`MaxE'`).
    in_round: f64,
    /// Least length of a round.
    least: Span,
    /// Length of this round.
    length: Span,
    ends: Time,
    /// The longest time between two control packets of a flow, in the last round and in this one.
    intervals: [Span; 2],
}

impl LargestElsewhere {
    fn new(least: Span) -> Self {
        assert!(!least.is_zero(), "a round has a length");
        Self {
            since_last: 0.0,
            in_round: 0.0,
            least,
            length: least,
            ends: Time::ZERO + least,
            intervals: [Span::ZERO; 2],
        }
    }

    /// Ends the rounds that have passed, and takes note of the time between a flow's control packets.
    fn roll_over(&mut self, now: Time, interval: Span) {
        if now >= self.ends {
            let passed = now.since(self.ends);
            // If a whole round passed without a control packet, even the values of the last round are too old.
            self.since_last = match passed < self.length {
                true => self.in_round,
                false => 0.0,
            };
            self.in_round = 0.0;
            let [last, this] = self.intervals;
            self.intervals = [this, Span::ZERO];
            // A packet is on its way for up to a round trip, of which `least` has two.
            let whole = last.max(this).max(interval) + self.least / 2;
            let late = Span::from_ps(passed.as_ps() % self.length.as_ps());
            self.length = whole.max(self.least);
            // The new round began `late` ago. It lasts at least 1 ps from now, so that calls at one instant end one round at most.
            self.ends = now.saturating_add(self.length.saturating_sub(late).max(Span::from_ps(1)));
        }
        self.intervals[1] = self.intervals[1].max(interval);
    }

    fn enter(&mut self, rate: f64) {
        self.since_last = self.since_last.max(rate);
        self.in_round = self.in_round.max(rate);
    }
}

/// One egress port of a switch: `NumB`, `SumE` and `MaxE` of its link, and its window table.
#[derive(Debug, Clone)]
pub struct LinkAgent {
    /// Bytes per second that flows may use (`c`).
    capacity: f64,
    /// The greatest capacity that the link has had: no part in the sums is larger.
    greatest: f64,
    /// Rate of the link, and the part of it that is given to flows.
    rate: Rate,
    headroom: f64,
    sums: Sums,
    largest: LargestElsewhere,
    /// The longest time between two control packets of a flow that is believed.
    longest_interval: Span,
    windows: Option<Box<Windows>>,
    malformed: u64,
}

impl LinkAgent {
    /// The link with a number and without flows. Two links that a flow may pass one instead of the other differ in the last 24 bits of
    /// their numbers.
    ///
    /// # Panics
    /// If the headroom is not in (0, 1], or a round, a period or an epoch has no length.
    pub fn new(number: u32, parameters: &LinkParameters) -> Self {
        let headroom = parameters.headroom;
        assert!(
            headroom > 0.0 && headroom <= 1.0,
            "a headroom in (0, 1], not {headroom}"
        );
        let windows = |epochs| Box::new(Windows::new(epochs, headroom));
        Self {
            capacity: usable(parameters.capacity, headroom),
            greatest: usable(parameters.capacity, headroom),
            rate: parameters.capacity,
            headroom,
            sums: Sums::new(number, parameters.period),
            largest: LargestElsewhere::new(parameters.round),
            longest_interval: parameters.period,
            windows: parameters.epochs.as_ref().map(windows),
            malformed: 0,
        }
    }

    /// Sets the rate of the link, which a link that is degraded or repaired changes. Flows hear of it with their next control packets.
    #[inline]
    pub fn set_rate(&mut self, rate: Rate) {
        if rate != self.rate {
            (self.rate, self.capacity) = (rate, usable(rate, self.headroom));
            self.greatest = self.greatest.max(self.capacity);
        }
    }

    /// Processes a control packet on its way to the receiver (Algorithm 4; without 1RC and with one connection Algorithm 3).
    ///
    /// A record that makes no sense, or that has no room for another link, changes no sum and is counted.
    pub fn on_control(&mut self, now: Time, record: &mut ControlRecord) {
        self.sums.roll_over(now);
        let interval = record.interval().min(self.longest_interval);
        self.largest.roll_over(now, interval);
        let Some(link) = record.next_link() else {
            self.malformed += 1;
            return;
        };
        let status = record.status(link).filter(|_| record.is_valid_at(link));
        let Some(status) = status else {
            self.malformed += 1;
            record.allocated[link] = 0.0;
            return;
        };
        // After a change of path or a long silence these sums hold no part of the flow (`sums.rs`): taking one out would spoil them.
        let status = match self.sums.know(record.visits[link]) {
            true => status,
            false => Status::New,
        };
        let bottleneck = self.join(link, status, record);
        self.police(now, status, bottleneck, record);
        self.allocate(link, bottleneck, record);
    }

    /// Takes the flow out of the sums, and returns the rate of a flow that is bottlenecked here with it (`b`, Algorithm 4 lines 8 to
    /// 14).
    fn join(&mut self, link: usize, status: Status, record: &ControlRecord) -> f64 {
        let old = record.old_connections;
        let part = match status {
            Status::New => None,
            Status::Bottlenecked => Some(Part::Weight(weight(old))),
            Status::Elsewhere => Some(self.rate_part(record.allocated[link], old)),
        };
        // The flow's own part goes out first: `b` counts the flow once, with its new weight.
        if let Some(part) = part {
            self.sums.remove(part, record.visits[link]);
        }
        // After losses of control packets `SumE` may be too large: the floor keeps the share above zero.
        let free = (self.capacity - self.elsewhere()).max(self.capacity * LEAST_SHARE);
        free / self.sums.bottlenecked_with(weight(record.new_connections))
    }

    /// Enters the epoch's window, and tells a new flow how many of its speculative packets it lets through (Algorithm 4 lines 15 to
    /// 19).
    fn police(&mut self, now: Time, status: Status, bottleneck: f64, record: &mut ControlRecord) {
        let Some(windows) = &mut self.windows else {
            return;
        };
        windows.enter(now, record.sent(), bottleneck);
        // A flow with a rate is also new to the links of another path, but has no speculative packets any more.
        if status == Status::New && !record.has_rate {
            let threshold = windows.threshold(record.first(), record.speculative_connections);
            record.let_through = record.let_through.min(threshold);
        }
    }

    /// Allocates a rate and classifies the flow (Algorithm 4 lines 20 to 33).
    fn allocate(&mut self, link: usize, bottleneck: f64, record: &mut ControlRecord) {
        let connections = record.new_connections;
        let limit = record.limit_elsewhere(link);
        // Sums take the rate as the record holds it, so that it can be taken out again.
        let allocated = bottleneck.min(limit) as f32;
        record.bottleneck[link] = bottleneck as f32;
        record.allocated[link] = allocated;
        // If `b` is below `MaxE`, a flow limited elsewhere has more than `b`: other links then do not take `b` as a limit (`i`).
        record.set_ignored(link, bottleneck < self.largest.since_last);
        // A flow that leaves puts no part back, so the link forgets it at once.
        let (status, part) = if record.leaving() {
            (Status::New, None)
        } else if limit < bottleneck * (1.0 - TOLERANCE) {
            self.largest.enter(allocated.into());
            let part = self.rate_part(allocated, connections);
            (Status::Elsewhere, Some(part))
        } else {
            let part = Part::Weight(weight(connections));
            (Status::Bottlenecked, Some(part))
        };
        record.visits[link] = self.sums.add(part);
        record.set_status(link, status);
    }

    /// False if a speculative packet is to be dropped before it is queued (Algorithm 5).
    #[inline]
    pub fn admits(&mut self, packet: &Speculative) -> bool {
        self.windows.as_mut().is_none_or(|windows| {
            packet.sequence < windows.threshold(packet.first, packet.connections)
        })
    }

    /// Weight of the flows that are bottlenecked at this link (`NumB`).
    pub fn bottlenecked(&self) -> f64 {
        self.sums.bottlenecked_with(0)
    }

    /// Rates of the flows that are bottlenecked elsewhere, in bytes per second (`SumE`).
    pub fn elsewhere(&self) -> f64 {
        self.sums.elsewhere()
    }

    /// Speculative packets and new flows whose epoch had no window, or none any more.
    pub fn late_epochs(&self) -> u64 {
        self.windows.as_ref().map_or(0, |windows| windows.late)
    }

    /// Control packets that were not processed: malformed, or with no room for another link.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Part of a flow with a rate. A link never allocates more than its capacity at that time, so the greatest capacity bounds each part.
    fn rate_part(&self, per_unit_weight: f32, connections: u16) -> Part {
        let rate = f64::from(per_unit_weight) / f64::from(connections);
        Part::Rate((rate.min(self.greatest) * RATE_UNITS) as u64)
    }
}

/// Bytes per second of a link that flows may use.
fn usable(rate: Rate, headroom: f64) -> f64 {
    rate.as_bps() as f64 / 8.0 * headroom
}

/// Weight of a flow in the units of `NumB`: one over the connections of its host.
fn weight(connections: u16) -> u64 {
    UNIT_WEIGHT / u64::from(connections)
}

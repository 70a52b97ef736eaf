//! Egress link of s-PERC: fair rates from sums, and windows for speculative packets (Algorithms 3 to 5).

use super::record::{ControlRecord, Speculative, Status};
use super::window_table::WindowTable;
use clearway_units::{Bytes, Rate, Span, Time};

/// A flow is bottlenecked elsewhere if `e < b * (1 - TOLERANCE)`. Records hold rates as `f32`, right to 6e-8, and weights of 65535
/// connections are right to as much; in a tie of two links `e` and `b` therefore differ by a few times that.
const TOLERANCE: f64 = 1e-6;

/// Weight of a flow of a host with one connection, in the units of `NumB`: 2^24 such flows fit.
const UNIT_WEIGHT: u64 = 1 << 40;

/// Units of `SumE` in a byte per second. The sum holds 2^48 bytes per second, 2.2 Pb/s.
const RATE_UNITS: f64 = 65536.0;

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
    /// Period after which the largest rates bottlenecked elsewhere are forgotten: at least the longest time between two control
    /// packets of a flow, which is its round trip, loaded.
    pub round: Span,
    /// 1RC; without it all speculative packets are admitted.
    pub epochs: Option<EpochParameters>,
}

impl LinkParameters {
    /// s-PERC without 1RC, with the default headroom.
    pub const fn new(capacity: Rate, round: Span) -> Self {
        Self {
            capacity,
            headroom: 0.98,
            round,
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

/// One egress port of a switch: `NumB`, `SumE` and `MaxE` of its link, and its window table.
#[derive(Debug, Clone)]
pub struct LinkAgent {
    /// Bytes per second that flows may use (`c`).
    capacity: f64,
    /// Sum of the rates of flows that are bottlenecked elsewhere (`SumE`), in [`RATE_UNITS`].
    elsewhere: u64,
    /// Sum of the weights of flows that are bottlenecked here (`NumB`), in [`UNIT_WEIGHT`].
    bottlenecked: u64,
    /// Largest rate per unit weight that was classified as elsewhere, since the last round began (`MaxE`) …
    largest: f64,
    /// … and in this round (`MaxE'`).
    largest_in_round: f64,
    round: Span,
    /// Ordinal of the present round.
    ordinal: u64,
    windows: Option<Box<Windows>>,
    malformed: u64,
}

impl LinkAgent {
    /// A link without flows.
    ///
    /// # Panics
    /// If the headroom is not in (0, 1], or a round or an epoch has no length.
    pub fn new(parameters: &LinkParameters) -> Self {
        let headroom = parameters.headroom;
        assert!(
            headroom > 0.0 && headroom <= 1.0,
            "a headroom in (0, 1], not {headroom}"
        );
        assert!(!parameters.round.is_zero(), "a round has a length");
        let windows = |epochs| Box::new(Windows::new(epochs, headroom));
        Self {
            capacity: parameters.capacity.as_bps() as f64 / 8.0 * headroom,
            elsewhere: 0,
            bottlenecked: 0,
            largest: 0.0,
            largest_in_round: 0.0,
            round: parameters.round,
            ordinal: 0,
            windows: parameters.epochs.as_ref().map(windows),
            malformed: 0,
        }
    }

    /// Processes a control packet on its way to the receiver (Algorithm 4; without 1RC and with one connection Algorithm 3).
    ///
    /// A record that makes no sense, or that has no room for another link, changes no sum and is counted.
    pub fn on_control(&mut self, now: Time, record: &mut ControlRecord) {
        self.roll_over(now);
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
        let bottleneck = self.join(link, status, record);
        self.police(now, status, bottleneck, record);
        self.allocate(link, bottleneck, record);
    }

    /// Counts the flow as bottlenecked here (Algorithm 4 lines 8 to 14) and returns the rate of such flows (`b`).
    fn join(&mut self, link: usize, status: Status, record: &ControlRecord) -> f64 {
        let weight = weight(record.new_connections);
        match status {
            Status::New => {}
            Status::Bottlenecked => {
                let old = self::weight(record.old_connections);
                self.bottlenecked = self.bottlenecked.saturating_sub(old);
            }
            Status::Elsewhere => {
                let old = self.rate_units(record.allocated[link], record.old_connections);
                self.elsewhere = self.elsewhere.saturating_sub(old);
            }
        }
        self.bottlenecked = self.bottlenecked.saturating_add(weight);
        let free = (self.capacity - self.elsewhere()).max(self.capacity * LEAST_SHARE);
        free / self.bottlenecked()
    }

    /// Enters the epoch's window, and tells a new flow how many of its speculative packets it lets through (Algorithm 4 lines 15 to
    /// 19).
    fn police(&mut self, now: Time, status: Status, bottleneck: f64, record: &mut ControlRecord) {
        let Some(windows) = &mut self.windows else {
            return;
        };
        windows.enter(now, record.sent(), bottleneck);
        if status == Status::New {
            let threshold = windows.threshold(record.first(), record.speculative_connections);
            record.let_through = record.let_through.min(threshold);
        }
    }

    /// Allocates a rate and classifies the flow (Algorithm 4 lines 20 to 33).
    fn allocate(&mut self, link: usize, bottleneck: f64, record: &mut ControlRecord) {
        let weight = weight(record.new_connections);
        let limit = record.limit_elsewhere(link);
        // Sums take the rate as the record holds it, so that it can be taken out again.
        let allocated = bottleneck.min(limit) as f32;
        record.bottleneck[link] = bottleneck as f32;
        record.allocated[link] = allocated;
        record.set_ignored(link, bottleneck < self.largest);
        let status = if record.leaving() {
            self.bottlenecked -= weight;
            Status::New
        } else if limit < bottleneck * (1.0 - TOLERANCE) {
            self.bottlenecked -= weight;
            let rate = self.rate_units(allocated, record.new_connections);
            self.elsewhere = self.elsewhere.saturating_add(rate);
            self.largest = self.largest.max(allocated.into());
            self.largest_in_round = self.largest_in_round.max(allocated.into());
            Status::Elsewhere
        } else {
            Status::Bottlenecked
        };
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
        self.bottlenecked as f64 / UNIT_WEIGHT as f64
    }

    /// Rates of the flows that are bottlenecked elsewhere, in bytes per second (`SumE`).
    pub fn elsewhere(&self) -> f64 {
        self.elsewhere as f64 / RATE_UNITS
    }

    /// Speculative packets and new flows whose epoch had no window, or none any more.
    pub fn late_epochs(&self) -> u64 {
        self.windows.as_ref().map_or(0, |windows| windows.late)
    }

    /// Control packets that were not processed: malformed, or with no room for another link.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Ends the rounds that have passed: `MaxE` becomes that of the last round.
    fn roll_over(&mut self, now: Time) {
        let ordinal = now.as_ps() / self.round.as_ps();
        if ordinal <= self.ordinal {
            return;
        }
        let next = ordinal == self.ordinal + 1;
        self.largest = if next { self.largest_in_round } else { 0.0 };
        self.largest_in_round = 0.0;
        self.ordinal = ordinal;
    }

    /// Real rate of a flow in the units of `SumE`. A link never allocates more than its capacity.
    fn rate_units(&self, per_unit_weight: f32, connections: u16) -> u64 {
        let rate = f64::from(per_unit_weight) / f64::from(connections);
        (rate.min(self.capacity) * RATE_UNITS) as u64
    }
}

/// Weight of a flow in the units of `NumB`: one over the connections of its host.
fn weight(connections: u16) -> u64 {
    UNIT_WEIGHT / u64::from(connections)
}

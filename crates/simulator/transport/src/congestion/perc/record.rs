//! Records that travel beside packets: control records of s-PERC, and the marks of speculative packets.
//!
//! Rates are `f32`, as a switch would hold them: with 24 bits they are right to 6e-8. A control record is in memory of its own, because few
//! packets have one.

use super::sums::Visit;
use crate::packet::Header;
use clearway_units::{Rate, Span, Time};

/// The most links in a control record: the host limit, which is link 0, and seven egress links of switches. Links beyond do not
/// take part.
pub const MOST_LINKS: usize = 8;

/// Egress links of switches in a record. Link `l` of the dissertation stands at index `l - 1`.
const EGRESS_LINKS: usize = MOST_LINKS - 1;

/// Relation of a flow to a link (`s[l]`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// The link does not know the flow (`NEW_FLOW`).
    New,
    /// The flow is bottlenecked here (B): it counts in `NumB`.
    Bottlenecked,
    /// The flow is bottlenecked elsewhere (E): it counts in `SumE`.
    Elsewhere,
}

/// Connections of a source host, which set the weights of its flows (§5.3). Zero counts as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// Connections open now: the flow's weight is 1 over this (`k`, `new_weight`).
    pub open: u16,
    /// Connections that were open at the start of the epoch: divides the windows of speculative packets (§5.3.1).
    pub at_epoch_start: u16,
}

impl Connections {
    /// A single connection, or weights not in use.
    pub const ONE: Self = Self {
        open: 1,
        at_epoch_start: 1,
    };
}

/// Start of one trip of a control record to the receiver and back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trip {
    pub(super) now: Time,
    /// Number of the trip, modulo 2^16.
    pub(super) sequence: u16,
    /// Connections open now (`new_weight`).
    pub(super) open: u16,
    pub(super) host_rate: Rate,
    pub(super) leaving: bool,
    /// The flow has a rate: no speculative packet of it is to come.
    pub(super) has_rate: bool,
}

/// A flow's control packet (§5.1.1, §5.4, Algorithm 4): state of the flow at each link of its path.
///
/// Rates in it are in bytes per second and per unit weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ControlRecord {
    /// The host limit: `b[0]` and `x[0]`.
    pub(super) host: f32,
    /// Bottleneck rates (`b`).
    pub(super) bottleneck: [f32; EGRESS_LINKS],
    /// Allocated rates (`x`).
    pub(super) allocated: [f32; EGRESS_LINKS],
    /// Link of each entry, and the period in which it wrote it.
    pub(super) visits: [Visit; EGRESS_LINKS],
    /// Time in ns since the control packet before this one was sent.
    pub(super) interval: u32,
    /// The least number of speculative packets that a link lets through; `u32::MAX` is infinity.
    pub(super) let_through: u32,
    pub(super) first: Time,
    pub(super) sent: Time,
    pub(super) old_connections: u16,
    pub(super) new_connections: u16,
    pub(super) speculative_connections: u16,
    pub(super) sequence: u16,
    /// States (`s`), two bits each.
    pub(super) statuses: u16,
    /// Ignore bits (`i`).
    pub(super) ignored: u8,
    /// Egress links passed on this trip.
    pub(super) visited: u8,
    pub(super) leaving: bool,
    /// The flow has a rate: it speculates no more.
    pub(super) has_rate: bool,
}

impl ControlRecord {
    /// The record of a new flow whose first control packet is sent at `now`. All links are new, their `b` infinite and ignored.
    pub fn new(now: Time, host_rate: Rate, connections: Connections) -> Self {
        let open = connections.open.max(1);
        Self {
            host: per_unit_weight(host_rate, open),
            bottleneck: [f32::INFINITY; EGRESS_LINKS],
            allocated: [0.0; EGRESS_LINKS],
            visits: [Visit::NONE; EGRESS_LINKS],
            interval: 0,
            let_through: u32::MAX,
            first: now,
            sent: now,
            old_connections: open,
            new_connections: open,
            speculative_connections: connections.at_epoch_start.max(1),
            sequence: 0,
            statuses: 0,
            ignored: u8::MAX,
            visited: 0,
            leaving: false,
            has_rate: false,
        }
    }

    /// Makes the record ready for its next trip: no link is passed, and the connections announced last become the old ones. Entries
    /// beyond the links of the last trip are of a former, longer path, and limit nothing any more.
    pub(super) fn begin_trip(&mut self, trip: Trip) {
        for beyond in usize::from(self.visited)..EGRESS_LINKS {
            self.set_ignored(beyond, true);
            self.set_status(beyond, Status::New);
        }
        let interval = trip.now.since(self.sent).as_ps() / 1000;
        self.interval = u32::try_from(interval).unwrap_or(u32::MAX);
        let open = trip.open.max(1);
        self.old_connections = self.new_connections;
        self.new_connections = open;
        self.host = per_unit_weight(trip.host_rate, open);
        self.sent = trip.now;
        self.sequence = trip.sequence;
        self.leaving = trip.leaving;
        self.has_rate = trip.has_rate;
        self.visited = 0;
    }

    /// Allocation of the flow in bytes per second: the least `x` of the links passed, over the connections announced. Never negative
    /// or infinite; zero if a link could not make sense of the record.
    pub fn rate(&self) -> f64 {
        let passed = &self.allocated[..usize::from(self.visited).min(EGRESS_LINKS)];
        let least = passed
            .iter()
            .fold(sane(self.host), |least, &x| least.min(sane(x)));
        least / f64::from(self.new_connections.max(1))
    }

    /// Send time of the flow's first control packet, by its host's clock (the Speculative Start Time Stamp, SSTS).
    pub fn first(&self) -> Time {
        self.first
    }

    /// Send time of this control packet, by its host's clock (`timestamp`).
    pub fn sent(&self) -> Time {
        self.sent
    }

    /// Time since the control packet before this one was sent; zero with the first one.
    pub(super) fn interval(&self) -> Span {
        Span::from_ns(self.interval.into())
    }

    /// Number of this trip, modulo 2^16.
    pub fn sequence(&self) -> u16 {
        self.sequence
    }

    /// Header of the packet that carries the record, with the fields that are visible on a wire.
    pub fn header(&self, reflected: bool) -> Header {
        Header::RateControl {
            reflected,
            leaving: self.leaving,
            links: self.visited,
            sequence: self.sequence,
            connections: self.new_connections,
            let_through: self.let_through,
            rate: (self.rate() * 8.0) as u64,
        }
    }

    /// True if the flow has sent all its data, and links are to forget it.
    pub fn leaving(&self) -> bool {
        self.leaving
    }

    /// The least threshold of any link passed: speculative packets numbered below it arrive. `None` is infinity.
    pub fn let_through(&self) -> Option<u32> {
        (self.let_through != u32::MAX).then_some(self.let_through)
    }

    /// Connections that this and the last control packet announced (`new_weight`, `old_weight`).
    pub fn connections(&self) -> (u16, u16) {
        (self.new_connections, self.old_connections)
    }

    /// Moves to the next egress link and returns its index; `None` if the record has no room for it.
    pub(super) fn next_link(&mut self) -> Option<usize> {
        let link = usize::from(self.visited);
        (link < EGRESS_LINKS).then(|| {
            self.visited += 1;
            link
        })
    }

    /// State of the flow at a link; `None` if the bits stand for none.
    pub(super) fn status(&self, link: usize) -> Option<Status> {
        match self.statuses >> (2 * link) & 3 {
            0 => Some(Status::New),
            1 => Some(Status::Bottlenecked),
            2 => Some(Status::Elsewhere),
            _ => None,
        }
    }

    pub(super) fn set_status(&mut self, link: usize, status: Status) {
        let bits = match status {
            Status::New => 0,
            Status::Bottlenecked => 1,
            Status::Elsewhere => 2,
        };
        self.statuses = self.statuses & !(3 << (2 * link)) | bits << (2 * link);
    }

    pub(super) fn set_ignored(&mut self, link: usize, ignored: bool) {
        self.ignored = self.ignored & !(1 << link) | u8::from(ignored) << link;
    }

    /// Limit of all links but `link` (`e`, Algorithm 4 lines 20 to 23): the host limit and each `b` that is not ignored.
    pub(super) fn limit_elsewhere(&self, link: usize) -> f64 {
        let mut least = sane(self.host);
        for (other, &b) in self.bottleneck.iter().enumerate() {
            if other != link && self.ignored >> other & 1 == 0 {
                least = least.min(sane(b));
            }
        }
        least
    }

    /// False if a link cannot make sense of the record: no connections, or a rate that counts and is not a number at least zero.
    pub(super) fn is_valid_at(&self, link: usize) -> bool {
        let valid = |rate: f32| rate.is_finite() && rate >= 0.0;
        let limits = self.bottleneck.iter().enumerate();
        self.old_connections > 0
            && self.new_connections > 0
            && self.speculative_connections > 0
            && self.status(link).is_some()
            && valid(self.host)
            && valid(self.allocated[link])
            && limits
                .filter(|&(other, _)| other != link && self.ignored >> other & 1 == 0)
                .all(|(_, &b)| valid(b))
    }
}

/// The host limit in bytes per second and per unit weight.
fn per_unit_weight(host_rate: Rate, connections: u16) -> f32 {
    (host_rate.as_bps() as f64 / 8.0 * f64::from(connections)) as f32
}

/// A rate that a peer has sent: one that is not a number at least zero counts as zero.
fn sane(rate: f32) -> f64 {
    if rate.is_finite() && rate > 0.0 {
        f64::from(rate)
    } else {
        0.0
    }
}

/// Marks of a speculative data packet (§5.2, §5.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speculative {
    /// Send time of the flow's first control packet, by its host's clock (SSTS). Its epoch selects the window.
    pub first: Time,
    /// Number of the packet among all speculative packets of its host and epoch.
    pub sequence: u32,
    /// Connections open at the start of the epoch, which divide the window. Zero counts as one.
    pub connections: u16,
}

/// The one thing of this protocol that travels beside a packet.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Attachment {
    /// Nothing: a scheduled data packet, or one of another protocol.
    #[default]
    None,
    /// The packet is a control packet.
    Control(Box<ControlRecord>),
    /// The packet is a speculative data packet.
    Speculative(Speculative),
}

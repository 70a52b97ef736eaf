//! Ideal completion times: a lower bound for every flow.
//!
//! A message is ready at time zero and done when its last byte is acknowledged at its sender. The bound is the largest of the times that
//! each packet and each link needs alone.
//!
//! * **One path** (all packets take the same, or there is only one): the first packet store-and-forward up to the slowest link, all
//!   bytes over that, the last packet on to the receiver. It is exact where all links have one rate. Of several equal-cost paths
//!   the fastest counts, as nobody knows which one the flow will take.
//! * **Several paths** (spraying, or queue pairs with a path each) have the links of the two hosts in common. The sender's link sends one
//!   packet after the other, full ones of a queue pair before its short last one. Each reaches the receiver's link no earlier than over the
//!   fastest path for its size; from then on that link has to carry the packets that have come and those still to come. The network between
//!   is bounded by a cut: all bytes, less the first packet's way there and the last one's way back, at the sum of the rates that lead out
//!   of one switch towards the other, or into that one, further thin links behind these included.
//! * In the end the acknowledgement of the last packet over the fastest path back.
//!
//! Real runs also wait for windows, pacing and other flows, and carry telemetry.

use super::path_class::fs_per_byte;
use super::{PacketSizes, PathClass, Paths};
use clearway_units::{Bytes, HostId, Rate, Span};

/// Number of the equal-cost paths that the packets of a flow may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathUse {
    /// One for all its queue pairs: switches choose by the destination.
    One,
    /// So many for each of its queue pairs: one without spraying.
    PerQueuePair(u32),
}

/// A message as its flow sends it.
#[derive(Debug, Clone, Copy)]
pub struct Striped<'a> {
    /// The payload of each queue pair that carries a part of it.
    pub parts: &'a [Bytes],
    /// The paths that its packets take.
    pub paths: PathUse,
}

/// The packets of a queue pair: full ones, then perhaps a short one.
#[derive(Debug, Clone, Copy)]
struct Train {
    /// Full packets.
    full: u64,
    /// Bytes of the last packet on the wire, if that is short.
    short: Option<u32>,
}

/// All packets of a message.
struct Trains {
    trains: Vec<Train>,
    /// Bytes of a full packet on the wire.
    size: u32,
    /// Full packets, and bytes of all packets on the wire.
    full: u64,
    wire: u64,
    /// Bytes of the smallest packet on the wire, and of the smallest that may leave first.
    least: u32,
    first: u32,
}

impl Trains {
    fn new(parts: &[Bytes], sizes: PacketSizes) -> Self {
        let payload = u64::from(sizes.payload);
        let train = |bytes: &Bytes| {
            let (full, rest) = (bytes.as_u64() / payload, bytes.as_u64() % payload);
            let short = rest > 0 || full == 0;
            Train {
                full,
                short: short.then_some(rest as u32 + sizes.header),
            }
        };
        let trains: Vec<Train> = parts.iter().map(train).collect();
        let size = sizes.payload + sizes.header;
        let full = trains.iter().map(|train| train.full).sum();
        let shorts = || trains.iter().filter_map(|train| train.short);
        let leaders = trains.iter().filter(|train| train.full == 0);
        Self {
            size,
            full,
            wire: full * u64::from(size) + shorts().map(u64::from).sum::<u64>(),
            least: shorts().min().unwrap_or(size),
            first: leaders
                .filter_map(|train| train.short)
                .min()
                .unwrap_or(size),
            trains,
        }
    }

    /// The packets of one queue pair alone.
    fn alone(&self, train: Train) -> Self {
        let short = train.short.unwrap_or(self.size);
        Self {
            trains: vec![train],
            size: self.size,
            full: train.full,
            wire: train.full * u64::from(self.size) + train.short.map_or(0, u64::from),
            least: short,
            first: if train.full == 0 { short } else { self.size },
        }
    }

    fn shorts(&self) -> impl Iterator<Item = u32> + '_ {
        self.trains.iter().filter_map(|train| train.short)
    }
}

/// Picoseconds, wide enough for the largest message on the slowest link.
type Ps = u128;

fn ps(span: Span) -> Ps {
    span.as_ps().into()
}

/// Serialisation time of `bytes` at `rate`, as on a wire.
fn takes(rate: Rate, bytes: u32) -> Ps {
    ps(rate.span_of(Bytes::new(bytes.into())))
}

/// The links of two hosts and the fastest paths between their switches.
struct Legs<'a> {
    up: PathClass,
    fastest: &'a [PathClass],
    down: PathClass,
}

impl<'a> Legs<'a> {
    fn rate_of(host: PathClass) -> Rate {
        host.bottleneck.expect("a host has a link")
    }

    /// The least time of a lone packet from the one switch to the other.
    fn crossing(&self, bytes: u32) -> Ps {
        let spans = self.fastest.iter().map(|path| path.span_of(bytes));
        ps(spans.min().unwrap_or(Span::ZERO))
    }

    /// The least time of all packets if they take one path.
    fn over_one_path(&self, packets: &Trains) -> Ps {
        let is_exact = self.fastest.len() == 1;
        let over = |&path: &PathClass| {
            let whole = self.up.then(path).then(self.down);
            if let [train] = packets.trains[..] {
                return span_of_train(whole, train, packets, is_exact);
            }
            let legs = Legs {
                fastest: &[path],
                ..*self
            };
            span_of_trains(whole, packets, is_exact).max(legs.over_the_ends(packets))
        };
        self.fastest.iter().map(over).min().unwrap_or(0)
    }

    /// The least time of all packets over the links of the two hosts, between which each takes the fastest path for its size.
    fn over_the_ends(&self, packets: &Trains) -> Ps {
        let (up, down) = (Self::rate_of(self.up), Self::rate_of(self.down));
        let size = packets.size;
        let per_full = (takes(up, size), takes(down, size));
        let arrival = |bytes| ps(self.up.propagation) + self.crossing(bytes);
        let of_train = |train: &Train| {
            let short = train.short?;
            Some(Ps::from(train.full) * per_full.0 + takes(up, short) + arrival(short))
        };
        let at_receiver = PacketArrivals {
            full: packets.full.into(),
            before_full: arrival(size),
            apart: per_full.0,
            per_full: per_full.1,
            short: packets.trains.iter().filter_map(of_train).min(),
            shorts: packets.shorts().map(|short| takes(down, short)).sum(),
        };
        let sent = Ps::from(packets.full) * per_full.0
            + packets.shorts().map(|short| takes(up, short)).sum::<Ps>();
        let last = arrival(packets.least) + takes(down, packets.least);
        at_receiver.done().max(sent + last) + ps(self.down.propagation)
    }

    /// The least time of all packets if the paths carry no more than `bps` together.
    fn over_a_cut(&self, packets: &Trains, bps: u64) -> Ps {
        let (up, down) = (Self::rate_of(self.up), Self::rate_of(self.down));
        let delays = self.fastest.iter().map(|path| path.propagation);
        let ends = self.up.propagation + self.down.propagation;
        ps(ends + delays.min().unwrap_or(Span::ZERO))
            + takes(up, packets.first)
            + Ps::from(packets.wire) * 8_000_000_000_000 / Ps::from(bps)
            + takes(down, packets.least)
    }
}

/// Earliest arrivals of packets at the receiver's link: the k-th full one at `before_full + k · apart`, no short one before `short`.
struct PacketArrivals {
    full: Ps,
    before_full: Ps,
    apart: Ps,
    /// Serialisation time on the link of one full packet, and of all short ones together.
    per_full: Ps,
    short: Option<Ps>,
    shorts: Ps,
}

impl PacketArrivals {
    /// Earliest time at which the link can have carried all packets. For any time t, that is no earlier than t plus the serialisation of
    /// all packets that come at t or later. Full packets come evenly, so that this bound is largest for the first or last of them, or
    /// beside the short ones.
    fn done(&self) -> Ps {
        let of_full = |k: Ps| self.before_full + k * self.apart;
        let short = self.short.unwrap_or(0);
        // Full packets that have come before the first short one.
        let by = short.saturating_sub(self.before_full) / self.apart.max(1);
        let by = by.min(self.full);
        let from_full = |k: Ps| {
            let shorts = if short >= of_full(k) { self.shorts } else { 0 };
            of_full(k) + (self.full - k + 1) * self.per_full + shorts
        };
        // The bound is linear in `k` on either side of the first short packet, so it is largest at an end of one side.
        let places = [1, by, by + 1, self.full];
        let of_fulls = places.into_iter().filter(|k| (1..=self.full).contains(k));
        let from_short = self.short.map(|short| {
            let later = self.full - by + Ps::from(by > 0 && of_full(by) == short);
            short + self.shorts + later * self.per_full
        });
        of_fulls.map(from_full).chain(from_short).max().unwrap_or(0)
    }
}

/// So many bytes over the slowest link of a path, in femtoseconds: exactly, or by the whole femtoseconds of a byte, by which paths are
/// compared.
fn on_the_slowest(path: PathClass, bytes: u64, is_exact: bool) -> Ps {
    let Some(slowest) = path.bottleneck else {
        return 0;
    };
    if is_exact {
        ps(slowest.span_of(Bytes::new(bytes))) * 1000
    } else {
        Ps::from(bytes) * Ps::from(fs_per_byte(slowest))
    }
}

/// Serialisation time of a byte behind the slowest link of a path, in femtoseconds.
fn after_the_slowest(path: PathClass) -> Ps {
    let slowest = path.bottleneck.map_or(0, fs_per_byte);
    Ps::from(path.fs_per_byte - path.before_bottleneck - slowest)
}

/// The time of one queue pair's packets over a path.
fn span_of_train(path: PathClass, train: Train, packets: &Trains, is_exact: bool) -> Ps {
    let [size, in_all, before, on_last] = [
        packets.size.into(),
        path.fs_per_byte,
        path.before_bottleneck,
        path.last,
    ]
    .map(Ps::from);
    let last = Ps::from(train.short.unwrap_or(packets.size));
    let count = train.full + u64::from(train.short.is_some());
    let fs = if count < 2 {
        in_all * last
    } else {
        let all = on_the_slowest(path, packets.wire, is_exact);
        let over_the_slowest = all + before * size + after_the_slowest(path) * last;
        // A short last packet may catch up with the one before it on the links behind the slowest.
        let earlier = (count - 2) * u64::from(packets.size);
        let earlier = on_the_slowest(path, earlier, is_exact);
        over_the_slowest.max(earlier + in_all * size + on_last * last)
    };
    ps(path.propagation) + fs / 1000
}

/// The time of several queue pairs' packets over one path: the slowest link carries all, between the first packet and the last.
fn span_of_trains(path: PathClass, packets: &Trains, is_exact: bool) -> Ps {
    let fs = on_the_slowest(path, packets.wire, is_exact)
        + Ps::from(path.before_bottleneck) * Ps::from(packets.first)
        + after_the_slowest(path) * Ps::from(packets.least);
    ps(path.propagation) + fs / 1000
}

impl Paths {
    /// The completion time of a message that has the network to itself and is never held back by its window. No run can beat it, and
    /// on fabrics whose links all have one rate a lone flow on one path takes exactly so long. The module's documentation says how it is
    /// bounded.
    ///
    /// # Panics
    /// If no path leads from one host to the other and back.
    pub fn ideal_completion(
        &self,
        from: HostId,
        to: HostId,
        message: Striped<'_>,
        sizes: PacketSizes,
    ) -> Span {
        let (up, there, back, down) = self.legs(from, to);
        let legs = Legs {
            up,
            fastest: there.fastest(&self.fastest),
            down,
        };
        let packets = Trains::new(message.parts, sizes);
        let parts = message.parts.len() as u64;
        let paths = match message.paths {
            _ if there.is_single => 1,
            PathUse::One => 1,
            PathUse::PerQueuePair(each) => u64::from(each.max(1)) * parts,
        };
        let ideal = if paths == 1 {
            legs.over_one_path(&packets)
        } else {
            let widest = legs.fastest.iter().filter_map(|path| path.bottleneck).max();
            let widest = widest.map_or(u64::MAX, Rate::as_bps);
            // Cables have the same rate in both directions, so the capacity of the way back bounds the links into the receiver's switch.
            let bps = there.capacity.min(back.capacity);
            let bps = bps.min(widest.saturating_mul(paths));
            let together = legs
                .over_the_ends(&packets)
                .max(legs.over_a_cut(&packets, bps));
            let alone = |&train: &Train| legs.over_one_path(&packets.alone(train));
            match message.paths {
                PathUse::PerQueuePair(1) => {
                    let parts = packets.trains.iter().map(alone);
                    parts.fold(together, Ps::max)
                }
                _ => together,
            }
        };
        let ideal = ideal + ps(self.acknowledgement(from, to, sizes));
        Span::from_ps(u64::try_from(ideal).unwrap_or(u64::MAX))
    }

    /// The least time of an acknowledgement from the receiver of a flow back to its sender.
    pub fn acknowledgement(&self, from: HostId, to: HostId, sizes: PacketSizes) -> Span {
        let (up, back, _, down) = self.legs(to, from);
        let paths = back.fastest(&self.fastest).iter();
        let spans = paths.map(|&path| up.then(path).then(down).span_of(sizes.ack));
        spans.min().unwrap_or(Span::ZERO)
    }
}

//! Steady states: several looks at a fabric in which nothing changes but how much of each message is sent.

use super::limits::SHARE_OF_ERROR;
use clearway_fabric::{LinkTotals, Snapshot};
use clearway_statistics::student_t;
use clearway_units::{FlowId, MessageId, Span, Time};

/// Windows whose rates are compared.
pub(super) const WINDOWS: usize = 8;

/// Length of a window, at least, in multiples of the time until a controller's timer: DCQCN raises its rate step by step.
pub(super) const TIMERS: u64 = 16;

/// A sender, which is a queue pair of a flow, with the message that it sends.
pub(super) type SenderId = (FlowId, u8, MessageId);

/// A sender at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sender {
    id: SenderId,
    /// Packets that it has sent, retransmissions not counted, and the departure time of the last packet.
    sent: u64,
    departed: Time,
    /// Payload bytes that are acknowledged, and in flight.
    acknowledged: u64,
    in_flight: u64,
    /// Time until the controller's timer.
    timer: Span,
}

/// All senders and links at an instant.
#[derive(Debug, Clone, Default)]
pub(super) struct Look {
    time: Time,
    /// The same by the clock of packets.
    packet_time: Time,
    /// By identity.
    senders: Vec<Sender>,
    /// By link; empty in a run whose links do not count.
    links: Vec<LinkTotals>,
}

impl Look {
    /// A look at the fabric; `None` if nobody sends, or if something is about to change: a sender has sent all of its messages and waits
    /// for acknowledgements, or cannot skip packets.
    pub(super) fn new(now: Time, snapshot: &mut Snapshot<'_>) -> Option<Self> {
        let mut senders = Vec::new();
        let packet_time = snapshot.packet_time();
        let mut is_steady = true;
        snapshot.for_each_open_flow(|open| {
            let Some((message, _)) = open.skippable() else {
                is_steady &= !open.has_outstanding();
                return;
            };
            let (sent, departed) = open.departures();
            senders.push(Sender {
                id: (open.flow(), open.queue_pair(), message),
                sent,
                departed,
                acknowledged: open.acknowledged().as_u64(),
                in_flight: open.progress().in_flight.as_u64(),
                timer: open.timer(packet_time),
            });
        });
        if !is_steady || senders.is_empty() {
            return None;
        }
        senders.sort_unstable_by_key(|sender| sender.id);
        let mut links = Vec::new();
        snapshot.for_each_link(|view| {
            let index = view.link.0 as usize;
            if index >= links.len() {
                links.resize(index + 1, LinkTotals::default());
            }
            links[index] = view.totals();
        });
        Some(Self {
            time: now,
            packet_time,
            senders,
            links,
        })
    }

    /// True if both looks see the same senders, at the same messages.
    pub(super) fn has_senders_of(&self, other: &Self) -> bool {
        let others = other.senders.iter().map(|sender| sender.id);
        self.senders.iter().map(|sender| sender.id).eq(others)
    }
}

impl Look {
    /// The stride from `start` to this look, if all senders are as they were: they sent their last packets as long ago, and have as much in
    /// flight.
    pub(super) fn stride_from(&self, start: &Self) -> Option<Stride> {
        let phase = |look: &Self, sender: &Sender| {
            let since = look.packet_time.since(sender.departed);
            (sender.id, since, sender.in_flight)
        };
        let pairs = self.senders.iter().zip(&start.senders);
        let packets = pairs.map(|(end, begin)| {
            let packets = end.sent - begin.sent;
            let is_same = phase(self, end) == phase(start, begin) && packets > 0;
            is_same.then_some((end.id, packets))
        });
        Some(Stride {
            time: self.time.since(start.time).as_ps(),
            packets: packets.collect::<Option<_>>()?,
        })
    }

    /// Number of senders.
    pub(super) fn senders(&self) -> usize {
        self.senders.len()
    }

    /// Largest difference of the packets that a sender has sent since `start` from those of its course, as a part of them.
    pub(super) fn largest_difference(&self, start: &Self, steady: &Steady) -> f64 {
        let time = self.time.since(start.time).as_ps();
        let pairs = self.senders.iter().zip(&start.senders);
        let differences = pairs.filter_map(|(end, start)| {
            let expected = steady.course(end.id)?.packets_in(time);
            Some((end.sent - start.sent) as f64 / expected.max(1) as f64 - 1.0)
        });
        differences.map(f64::abs).fold(0.0, f64::max)
    }
}

/// A period of all senders together.
#[derive(Debug, Clone)]
pub(super) struct Stride {
    /// Picoseconds, more than zero.
    pub(super) time: u64,
    /// Packets of each sender in it.
    pub(super) packets: Vec<(SenderId, u64)>,
}

impl Stride {
    /// Packets of a sender; zero for another one.
    pub(super) fn packets_of(&self, id: SenderId) -> u64 {
        let place = self.packets.binary_search_by_key(&id, |own| own.0);
        place.map_or(0, |place| self.packets[place].1)
    }
}

/// Steady course of a sender.
#[derive(Debug, Clone, Copy)]
pub(super) struct Course {
    pub(super) id: SenderId,
    /// So many packets left in so many picoseconds.
    pub(super) packets: u64,
    pub(super) time: u64,
    /// Half the width of the 95 % confidence interval of its rate, as a part of it.
    pub(super) width: f64,
}

impl Course {
    /// Packets that leave in so many picoseconds, rounded.
    pub(super) fn packets_in(&self, time: u64) -> u64 {
        let product = u128::from(time) * u128::from(self.packets);
        ((product + u128::from(self.time) / 2) / u128::from(self.time)) as u64
    }

    /// Picoseconds in which so many packets leave.
    pub(super) fn time_of(&self, packets: u64) -> u64 {
        let product = u128::from(packets) * u128::from(self.time);
        (product / u128::from(self.packets)).min(u128::from(u64::MAX)) as u64
    }

    /// Packets for each picosecond.
    pub(super) fn rate(&self) -> f64 {
        self.packets as f64 / self.time as f64
    }
}

/// A steady state.
#[derive(Debug, Clone)]
pub(super) struct Steady {
    /// By identity.
    pub(super) courses: Vec<Course>,
    /// Time from the first to the last look.
    pub(super) span: Span,
    /// Traffic of each link in that time; empty in a run whose links do not count.
    pub(super) links: Vec<LinkTotals>,
}

impl Steady {
    /// The steady state that the looks show, all at the same senders; `None` if a rate is less certain than half of `error`, or bytes in
    /// flight grow or shrink by more.
    pub(super) fn new(looks: &[Look], error: f64) -> Option<Self> {
        let (first, last) = (looks.first()?, looks.last()?);
        let course = |place: usize| {
            let senders: Vec<Sender> = looks.iter().map(|look| look.senders[place]).collect();
            course(&senders, error)
        };
        let courses: Option<Vec<Course>> = (0..first.senders.len()).map(course).collect();
        let links = last.links.iter().zip(&first.links);
        let links = links.map(|(end, start)| LinkTotals {
            bytes: end.bytes - start.bytes,
            packets: end.packets - start.packets,
            marks: end.marks - start.marks,
            drops: end.drops - start.drops,
            trims: end.trims - start.trims,
            peak_queue: 0,
        });
        Some(Self {
            courses: courses?,
            span: last.time.since(first.time),
            links: links.collect(),
        })
    }

    /// Width of the least certain rate, as a part of it.
    pub(super) fn width(&self) -> f64 {
        let widths = self.courses.iter().map(|course| course.width);
        widths.fold(0.0, f64::max)
    }

    /// The course of a sender.
    pub(super) fn course(&self, id: SenderId) -> Option<&Course> {
        let place = self.courses.binary_search_by_key(&id, |course| course.id);
        place.ok().map(|place| &self.courses[place])
    }

    /// True if all senders, and no others, have the rates of a period, but for a part of it that is at most `most`.
    pub(super) fn has(&self, stride: &Stride, most: f64) -> bool {
        let pairs = self.courses.iter().zip(&stride.packets);
        let mut differences = pairs.map(|(course, (id, packets))| {
            let rate = *packets as f64 / stride.time as f64;
            (course.id == *id).then_some((rate / course.rate() - 1.0).abs())
        });
        self.courses.len() == stride.packets.len()
            && differences.all(|own| own.is_some_and(|own| own <= most))
    }

    /// Largest difference of a rate from the rate of the same sender in `before`, as a part of it.
    pub(super) fn difference(&self, before: &Self) -> f64 {
        let pairs = self.courses.iter();
        let pairs = pairs.filter_map(|course| Some((course, before.course(course.id)?)));
        pairs
            .map(|(now, before)| (now.rate() / before.rate() - 1.0).abs())
            .fold(0.0, f64::max)
    }
}

/// The course of a sender that was seen at the ends of all windows; `None` if it is not steady.
fn course(senders: &[Sender], error: f64) -> Option<Course> {
    let (first, last) = (senders.first()?, senders.last()?);
    let windows = senders.windows(2);
    let window = |pair: &[Sender]| {
        let packets = pair[1].sent - pair[0].sent;
        let time = pair[1].departed.since(pair[0].departed).as_ps();
        (packets > 0 && time > 0).then(|| packets as f64 / time as f64)
    };
    let rates: Option<Vec<f64>> = windows.map(window).collect();
    let rates = rates?;
    let (packets, time) = (
        last.sent - first.sent,
        last.departed.since(first.departed).as_ps(),
    );
    // Where rates drift slowly, longer windows differ by more than chance.
    let pairs: Vec<f64> = rates.chunks(2).map(mean).collect();
    let width = half_width(&rates).max(half_width(&pairs));
    // What a controller does by a timer must be seen several times.
    let timers = senders.iter().map(|sender| sender.timer.as_ps());
    if timers.max()? > time / WINDOWS as u64 / TIMERS {
        return None;
    }
    // What waits in queues is in flight.
    let half = senders.len() / 2;
    let in_flight = |senders: &[Sender]| {
        let bytes = senders.iter().map(|sender| sender.in_flight as f64);
        bytes.sum::<f64>() / senders.len() as f64
    };
    let growth = in_flight(&senders[half + 1..]) - in_flight(&senders[..half]);
    let delivered = (last.acknowledged - first.acknowledged) as f64;
    let most = error * SHARE_OF_ERROR;
    (width <= most && growth.abs() <= most * delivered).then_some(Course {
        id: last.id,
        packets,
        time,
        width,
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Half the width of the 95 % confidence interval of the mean, as a part of it.
fn half_width(values: &[f64]) -> f64 {
    let (mean, count) = (mean(values), values.len() as f64);
    let squares = values
        .iter()
        .map(|value| (value / mean - 1.0) * (value / mean - 1.0));
    let variance = squares.sum::<f64>() / (count - 1.0);
    student_t(0.95, values.len() as u64 - 1) * (variance / count).sqrt()
}

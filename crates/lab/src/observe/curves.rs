//! Curves of bounded length with common instants.

use clearway_fabric::topology::LinkId;
use clearway_units::{FlowId, Span, Time};
use std::collections::BTreeMap;

/// What a curve tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Bytes in the data queue in front of a link, at the end of the interval.
    QueueDepth,
    /// The most bytes that were in it during the interval.
    QueuePeak,
    /// Bits per second on the wire of a link, headers included.
    LinkRate,
    /// Bits per second of payload that a flow's receiver has acknowledged.
    FlowGoodput,
    /// The congestion window of a flow in bytes.
    Window,
    /// The rate in bits per second at which a flow may send.
    PacingRate,
    /// Bytes of a flow that are sent and not acknowledged.
    InFlight,
    /// Payload of all flows, in bits per second.
    Goodput,
    /// Flows that have started and are not done.
    ActiveFlows,
    /// Flows that are done.
    CompletedFlows,
    /// Jain's fairness index over the goodput of flows in the last window of eight base round trips (or one interval, if that is
    /// longer), of the flows that were active during all of it: 1 is fair, 1/n is one of n.
    Fairness,
    /// Jain's fairness index over the rates at which flows may send, of all flows that are active at the end of the interval. The
    /// rate of a flow is its pacing rate or its window over its unloaded round trip, whichever is less.
    RateFairness,
    /// Packets marked.
    Marks,
    /// Packets dropped.
    Drops,
    /// Links that flow control holds back, at the end of the interval.
    PausedLinks,
}

/// How two neighbouring intervals become one.
enum Merging {
    /// The later.
    Last,
    /// The larger.
    Largest,
    /// The mean over time.
    Mean,
    /// The sum.
    Sum,
}

impl Metric {
    fn merging(self) -> Merging {
        match self {
            Self::QueuePeak => Merging::Largest,
            Self::LinkRate | Self::FlowGoodput | Self::Goodput | Self::Fairness => Merging::Mean,
            Self::Marks | Self::Drops => Merging::Sum,
            Self::QueueDepth
            | Self::Window
            | Self::PacingRate
            | Self::InFlight
            | Self::ActiveFlows
            | Self::CompletedFlows
            | Self::RateFairness
            | Self::PausedLinks => Merging::Last,
        }
    }

    /// The value over two intervals of lengths `spans`. Where one has none, the other's.
    fn merge(self, values: [f64; 2], spans: [Span; 2]) -> f64 {
        let [a, b] = values;
        if a.is_nan() || b.is_nan() {
            return if b.is_nan() { a } else { b };
        }
        match self.merging() {
            Merging::Last => b,
            Merging::Largest => a.max(b),
            Merging::Sum => a + b,
            Merging::Mean => {
                let [first, second] = spans.map(|span| span.as_ps() as f64);
                (a * first + b * second) / (first + second)
            }
        }
    }
}

/// Whom a curve is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The whole run.
    Run,
    /// A link.
    Link(LinkId),
    /// A flow.
    Flow(FlowId),
}

/// One value of one metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesRow {
    /// The end of the interval.
    pub time: Time,
    /// Its length.
    pub interval: Span,
    /// What.
    pub metric: Metric,
    /// Of whom.
    pub subject: Subject,
    /// How much.
    pub value: f64,
}

/// A metric of one subject over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// What.
    pub metric: Metric,
    /// Of whom.
    pub subject: Subject,
    /// One value for each instant; not a number where there is none.
    pub values: Vec<f64>,
}

/// Many curves over the same instants, at most `limit` of them.
#[derive(Debug)]
pub(super) struct Curves {
    limit: usize,
    times: Vec<Time>,
    /// Values from the first instant to the last that had one.
    curves: BTreeMap<(Metric, Subject), Vec<f64>>,
}

impl Curves {
    pub(super) fn new(limit: usize) -> Self {
        assert!(limit >= 2, "two instants become one");
        Self {
            limit,
            times: Vec::new(),
            curves: BTreeMap::new(),
        }
    }

    /// Adds an instant with its rows. True if that filled the curves, so that neighbours were merged.
    pub(super) fn add(&mut self, time: Time, rows: &[SeriesRow]) -> bool {
        let before = self.times.len();
        self.times.push(time);
        for row in rows {
            let values = self.curves.entry((row.metric, row.subject)).or_default();
            values.resize(before, f64::NAN);
            values.push(row.value);
        }
        let full = self.times.len() >= self.limit;
        if full {
            self.coarsen();
        }
        full
    }

    /// Takes out everything about a subject.
    pub(super) fn forget(&mut self, subject: Subject) {
        self.curves.retain(|(_, of), _| *of != subject);
    }

    fn coarsen(&mut self) {
        let starts = std::iter::once(Time::ZERO).chain(self.times.iter().copied());
        let spans: Vec<Span> = starts
            .zip(&self.times)
            .map(|(start, &end)| end.since(start))
            .collect();
        for ((metric, _), values) in &mut self.curves {
            values.resize(spans.len(), f64::NAN);
            let pairs = values.chunks(2).zip(spans.chunks(2));
            let merged = pairs.map(|(values, spans)| match (values, spans) {
                ([a, b], [first, second]) => metric.merge([*a, *b], [*first, *second]),
                _ => values[0],
            });
            *values = merged.collect();
        }
        self.times = self
            .times
            .chunks(2)
            .map(|pair| pair[pair.len() - 1])
            .collect();
    }

    /// The instants, and the curves ordered by metric and subject.
    pub(super) fn into_parts(self) -> (Vec<Time>, Vec<Curve>) {
        let length = self.times.len();
        let curves = self
            .curves
            .into_iter()
            .map(|((metric, subject), mut values)| {
                values.resize(length, f64::NAN);
                Curve {
                    metric,
                    subject,
                    values,
                }
            });
        (self.times, curves.collect())
    }
}
